"""The command line: ``mobpriv run | assess | book | course | real | show | validate | protect | judge | leaderboard | new | data``.

Exit codes:

- 0: success;
- 1: a cell or the build failed (traceback on stderr);
- 2: wrong input (one line on stderr);
- 130: interrupted.
"""

import re
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from mobpriv import __version__
from mobpriv.base.numbers import counted, extent, shown

app = typer.Typer(
    help="Repeat the experiments of five papers on mobility privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="List, describe and download data sets.", no_args_is_help=True)
app.add_typer(data_app, name="data")
new_app = typer.Typer(help="Write files to start from.", no_args_is_help=True)
app.add_typer(new_app, name="new")
_stdout, _stderr = Console(highlight=False), Console(stderr=True, highlight=False)
_EXAMPLES = {"traces": "thesis_3_mechanisms", "calls": "dchi_booleans"}  # notebook proposed for a first run on a table
_OF_MUNICIPALITIES = "primule_risk"  # also proposed if the cells have municipalities
_OPTIONS = {name: f"--{name}" for name in ("user", "lat", "lng", "cell", "duration", "cells", "time", "zone")}
_OPTIONS |= {"t": "--time-column", "end_cell": "--end-cell"}
_FILE = "CSV, Parquet, GeoParquet, GeoPackage, GeoJSON, JSON, GPX, KML or Feather file"
_User = Annotated[str, typer.Option("--user", help="Column of the user (default: by its usual names, like the next three).")]
_TimeColumn = Annotated[str, typer.Option("--time-column", help="Column of the time.")]
_Lat = Annotated[str, typer.Option("--lat", help="Column of the latitude.")]
_Lng = Annotated[str, typer.Option("--lng", help="Column of the longitude.")]
_Time = Annotated[
    str, typer.Option("--time", help="Format of the times: s, ms, us, ns (since 1970) or iso (default: recognised).")
]
_Zone = Annotated[str, typer.Option("--zone", help="Time zone of times without one, for instance Europe/Paris.")]
_OF_THE_BOOK = (
    "filelock",
    "ipykernel",
    "nbclient",
    "nbconvert",
    "nbformat",
    "papermill",
    "pybtex",
)  # packages of the extra "book"
_SOON_READ = 1 << 20  # bytes of a table that is read before a run, to refuse it at once
_KIND_WORDS = {"traces": "positions", "calls": "call records"}


@contextmanager
def one_clear_line(
    table: Path | None = None,
    given: dict[str, str] | None = None,
    command: Callable | None = None,
    steps: bool = False,
) -> Iterator[None]:
    """Turn errors into messages: wrong input gives one line and exit code 2, a failed run its traceback and exit code 1.

    ``table``: the file that is read; ``given``: options for reading it. If options are missing, the line ends with the
    command that has them: ``command`` makes it from the options (default: ``mobpriv validate``). ``steps``: whether an
    interrupted command leaves finished steps.
    """
    from mobpriv import datasets

    def stop(*_):
        raise KeyboardInterrupt  # clean up as after Ctrl-C

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except _failures() as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None
    except (ValueError, OSError, datasets.NeedsRegistration) as error:
        asks = error.asks if table and isinstance(error, datasets.Unclear) else {}
        how = _how_to_say(command or partial(_validating, table), given or {}, asks) if asks else ""
        print(f"mobpriv: {error}{how}", file=sys.stderr)
        raise typer.Exit(2) from None
    except ModuleNotFoundError as error:
        if error.name not in _OF_THE_BOOK:
            raise
        print(
            f"mobpriv: this command needs {error.name}: install the packages of the book, pip install 'mobpriv[book]'",
            file=sys.stderr,
        )
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        left = (
            "the finished steps of a run are kept: repeat the command to continue after them" if steps else "nothing is written"
        )
        print(f"mobpriv: interrupted ({left})", file=sys.stderr)
        raise typer.Exit(130) from None


def _failures() -> tuple[type[Exception], ...]:
    """The errors of a failed run or build; none if the book's modules are not loaded, which need further packages."""
    named = {"running": "CellFailed", "build": "BuildFailed", "claims": "LedgerError"}
    loaded = {name: sys.modules.get(f"mobpriv.book.{name}") for name in named}
    return tuple(getattr(module, named[name]) for name, module in loaded.items() if module)


def _present(place: str | None) -> str | None:
    """Refuse a file that is missing, before the packages that read it are imported; a name without dot or slash may be a data set."""
    if place and re.search(r"[./]", str(place)) and ":" not in str(place) and not Path(place).expanduser().exists():
        typer.echo(f"mobpriv: there is no file {place}", err=True)
        raise typer.Exit(2)
    return place


def _how_to_say(command: Callable, given: dict[str, str], asks: dict[str, str]) -> str:
    """How to give the missing options: an example command, or the options alone if an example is unknown."""
    if all(asks.values()):
        return f", as in: {command(given | asks)}"
    return f" with {', '.join(map(_OPTIONS.get, asks))} of {command({})}"


def _command(words: list, given: dict[str, str]) -> str:
    """A command with these options for reading its table."""
    options = [word for name, value in given.items() for word in (_OPTIONS[name], value)]
    return shlex.join(["mobpriv", *map(str, words), *options])


def _validating(table: Path, given: dict[str, str]) -> str:
    """The command that reads a table with these options and writes the valid records."""
    return f"{_command(['validate', table], given)} {shlex.join(['-o', _ready(table)])}"


def _ready(table: Path) -> str:
    """The name of the output: cdr.2024-01.csv.gz becomes cdr.2024-01_ready.parquet."""
    from mobpriv.datasets import bare

    return f"{bare(table)}_ready.parquet"


def _pairs(given: list[str]) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"a parameter is given as name=value (got {text!r})")
        if name.strip() in pairs:
            raise ValueError(f"a parameter may be given only once (got {name.strip()} twice)")
        pairs[name.strip()] = value
    return pairs


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mobpriv {__version__}")
        raise typer.Exit


@app.callback()
def _app(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
):
    pass


@app.command()
def run(
    notebook: Annotated[str, typer.Argument(help="Short name of a notebook, or its file.")],
    datasets: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            help="Data set: a name (mobpriv data list), a file or a folder. For a file NAME of call records, NAME_cells has the cells.",
        ),
    ] = None,
    parameter: Annotated[list[str] | None, typer.Option("-p", "--parameter", help="name=value, may be repeated.")] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Shorten the run to try out a notebook; gives no valid result (mobpriv show lists the changes)."
        ),
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for the results (default: runs/NOTEBOOK/DATA).")
    ] = None,
):
    """Run a notebook; writes the executed notebook, a self-contained HTML page and the results as JSON."""
    with one_clear_line(Path(datasets[0]) if datasets else None, steps=True):
        from mobpriv.book import notebooks, running, webpage

        given = _pairs(parameter or [])
        if len(datasets or []) > 1:
            raise ValueError(f"one data set is given, not several (got --data {' --data '.join(datasets)})")
        data = datasets[0] if datasets else ""
        if data and "dataset" in given:
            raise ValueError(f"the data set is given twice: --data {data} and -p dataset={given['dataset']}")
        if data or given.get("dataset"):
            given["dataset"] = _resolved(data or given["dataset"])
        if quick:
            given["quick"] = True
        path = notebooks.find(notebook)
        given = notebooks.checked_parameters(path, given)
        folder = output or _folder(path.stem, given.get("dataset") or notebooks.parameters(path)["dataset"].default)
        _can_be_written(folder)
        executed, results = folder / f"{path.stem}.ipynb", folder / f"{path.stem}.json"
        page = folder / f"{path.stem}.html"
        further_files = lambda notebook, record: {page: webpage.page(notebook, record)}  # noqa: E731  (three files, all or none)
        _announce(_plan(path, given, folder))
        with _progress() as watch:
            running.run(path, given, output=executed, results=results, further_files=further_files, watch=watch)
        for file in (page, executed, results):
            typer.echo(file)


_GOALS = {  # measure -> the parameter of the notebook, its comparison, its unit and its largest value
    "re-identified": ("max_reidentified", "<", "%", 100),
    "coverage": ("min_coverage", ">", "", 1),
    "distance": ("max_distance", "<", "m", 1e6),
}


@app.command()
def assess(
    data: Annotated[
        str,
        typer.Argument(
            help="A table of traces or of call records, or the name of a data set (mobpriv data list).", callback=_present
        ),
    ],
    goal: Annotated[
        list[str] | None,
        typer.Option(help="'re-identified < 5 %', 'coverage > 0.5' or 'distance < 200 m'; may be repeated."),
    ] = None,
    parameter: Annotated[list[str] | None, typer.Option("-p", "--parameter", help="name=value, may be repeated.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use the first 20 users and one draw: a first look, not a result.")
    ] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder for the results.")] = None,
):
    """What a table gives away, on one page. For traces also what protection buys and costs, and which settings meet a goal.

    Needs the packages of the book: pip install 'mobpriv[book]'.
    """
    with one_clear_line(Path(data)):
        from mobpriv.book.own_book import ASSESSMENTS
        from mobpriv.datasets import kind_of

        goals = _goals(goal or [])
        if goals:  # only what is asked for
            goals = {"max_reidentified": 1.0, "min_coverage": 0.0, "max_distance": 0.0} | goals
        if doubled := [name for name in goals if any(given.startswith(f"{name}=") for given in parameter or [])]:
            raise ValueError(f"{doubled[0]} is set by --goal: leave out -p {doubled[0]}, and give all goals with --goal")
        goals = [f"{name}={value!r}" for name, value in goals.items()]
        kind = kind_of(_resolved(data))
        if kind == "calls" and goals:
            raise ValueError(f"a goal is for traces, and {data} holds call records: leave --goal out")
    run(ASSESSMENTS[kind], [data], [*(parameter or []), *goals], quick, output)


def _goals(texts: Sequence[str]) -> dict[str, float]:
    """The parameters that goals set, with their values."""
    values = {}
    for text in texts:
        match = re.fullmatch(r"\s*([a-z-]+)\s*([<>])=?\s*(\d+(?:\.\d+)?|\.\d+)\s*(%|m)?\s*", text)
        measure, sign, number, unit = match.groups() if match else ("", "", "0", "")
        parameter, comparison, wanted, largest = _GOALS.get(measure, ("", "", "", 0))
        if not match:
            fault = "it needs a measure, < or >, and a number such as 5 or 0.5"
        elif not parameter:
            fault = f"the measures are {', '.join(_GOALS)}"
        elif sign != comparison:
            fault = f"{measure} takes {comparison}"
        elif (unit or "") != wanted:
            fault = f"{measure} is in {wanted}" if wanted else f"{measure} has no unit"
        elif not 0 < float(number) <= largest:
            fault = f"{measure} is above 0 and at most {largest:.0f}"
        else:
            fault = f"there are two goals for {measure}" if parameter in values else ""
        if fault:
            examples = "'re-identified < 5 %', 'coverage > 0.5' or 'distance < 200 m'"
            raise ValueError(f"a goal is written as {examples} (got {text!r}: {fault})")
        values[parameter] = float(number) / (100 if unit == "%" else 1)
    return values


def _plan(path: Path, given: dict, folder: Path) -> dict[str, str]:
    """A description of a run: label -> words."""
    from mobpriv.book import durations, notebooks
    from mobpriv.datasets import DATASETS, cells_beside, kind_of, load, opened, read_cells, recognised

    parameters = notebooks.parameters(path)
    values = {p.name: p.default for p in parameters.values()} | given
    data, quick = values["dataset"], values.get("quick")
    usual = DATASETS.get(parameters["dataset"].default)
    # calls simulated within boundaries, which are not a table, or from traces
    simulated = "people" if values.get("people") else "rate" if values.get("rate") else ""
    source = data if data in DATASETS or simulated == "people" else opened(data)
    needs, kind = usual.kind if usual else "traces", "" if simulated == "people" else kind_of(source)
    if kind != needs and not simulated:
        other = next(name for name, known in DATASETS.items() if known.kind == needs)
        calling = ", or simulate 30 calls per user and day with -p rate=30" if "rate" in parameters else ""
        raise ValueError(
            f"{path.stem} needs {_KIND_WORDS[needs]}, and {data} holds {_KIND_WORDS[kind]}: run it on {other}, for instance{calling}"
        )
    size = durations.size(data) if simulated != "people" else None
    described = Path(data).name + (f", {size}" if size else "")
    if data not in DATASETS and Path(data).is_file() and Path(data).name != "privamov-gps" and simulated != "people":
        reading = recognised(source, kind=kind)  # rejects a table that needs more options, before anything runs
        if kind == "calls":
            read_cells(cells_beside(data))
        elif Path(data).stat().st_size < _SOON_READ and not len(
            load(source).traces
        ):  # also rejects one without a usable record
            raise ValueError(f"{data} holds no records")
        described += f" ({reading.in_words})" if reading.guessed or reading.notes else ""
    named = {n: v for n, v in given.items() if n not in ("dataset", "quick") and v != parameters[n].default}
    set_to = "; ".join(f"{name} = {value}" for name, value in named.items())
    if quick:
        short = "; ".join(f"{name} = {value}" for name, value in notebooks.quick_values(path, values).items())
        set_to = "; ".join(filter(None, (f"quick, not a result: {short or 'nothing is shortened'}", set_to)))
    return {
        "experiment": notebooks.title(path),
        "data": described,
        "parameters": set_to or "the defaults",
        "results": f"to {folder}",
        "takes": durations.expected(path.stem, values, size),
    }


def _announce(plan: dict[str, str]) -> None:
    """Print the description of a run: a table on a terminal, one line elsewhere."""
    if not _stderr.is_terminal:
        typer.echo("; ".join(f"{name}: {words}" for name, words in plan.items()), err=True)
        return
    table = Table.grid(padding=(0, 2))
    for name, words in plan.items():
        table.add_row(f"[dim]{name}[/dim]", escape(words))
    _stderr.print(table)


@contextmanager
def _progress() -> Iterator[Callable[[int, int, Path], None]]:
    """Show the current cell, the finished steps and the elapsed time; nothing outside a terminal."""
    columns = (TextColumn("cell {task.completed} of {task.total}"), BarColumn(), _Steps(), TimeElapsedColumn())
    with Progress(*columns, console=_stderr, transient=True, disable=not _stderr.is_terminal) as bar:
        task = bar.add_task("", total=None, steps=None, visible=False)
        yield lambda cell, cells, steps: bar.update(task, completed=cell, total=cells, steps=steps, visible=True)


@contextmanager
def _working(words: str) -> Iterator[Callable[[str], None]]:
    """Show what is done and the elapsed time, on a terminal; the function that is given changes the words."""
    columns = (SpinnerColumn(), TextColumn("{task.description} …", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=_stderr, transient=True, disable=not _stderr.is_terminal) as bar:
        task = bar.add_task(words, total=None)
        yield lambda now: bar.update(task, description=now)


class _Steps(ProgressColumn):
    """The number of finished steps of a long notebook, including those of an interrupted run."""

    def render(self, task):
        folder = task.fields["steps"]
        finished = sum(1 for _ in folder.glob("*.json")) if folder and folder.is_dir() else 0
        return f"{finished} step{'s' * (finished != 1)} finished" if finished else ""


def _folder(notebook: str, data: str) -> Path:
    """runs/NOTEBOOK/DATA, with the start of the file's hash if another file of that name was run before."""
    from mobpriv.book import provenance
    from mobpriv.datasets import DATASETS

    path = Path(data)
    name = path.name if data not in DATASETS and path.stem in DATASETS else path.stem  # an own city.parquet is not the city
    folder = Path("runs") / notebook / name
    try:
        before = provenance.read_record(folder / f"{notebook}.json")
    except provenance.BrokenRecord as error:
        typer.echo(f"{error}: done now", err=True)
        return folder
    if before and before["provenance"]["data"] and path.is_file():
        digest = provenance.file_hash(path)
        if before["provenance"]["data"]["sha256"] != digest:
            return folder.with_name(f"{name}-{digest[:6]}")
    return folder


def _can_be_written(folder: Path) -> None:
    """Reject a folder that is not writable, before the run; a system's folder may say that it is."""
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            return
    except OSError:
        what = "not writable" if existing.is_dir() else "a file"
    raise OSError(f"{folder} cannot be written: {existing} is {what}; take another -o")


def _resolved(data: str) -> str:
    """The name of a known data set, or an absolute path, because notebooks run in the project's folder."""
    from mobpriv.datasets import DATASETS

    if data in DATASETS:
        return data
    path = Path(data).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"there is no file or data set {data!r} (data sets: {', '.join(DATASETS)})")
    return str(path.resolve())


@app.command("book")
def build_book(
    workers: Annotated[int, typer.Option(min=1, help="Notebooks at a time.")] = 2,
    quick: Annotated[bool, typer.Option("--quick", help="Quick runs of all notebooks.")] = False,
    data: Annotated[
        str, typer.Option(help="A table or data set: write the pages about it to a folder of their own.", show_default=False)
    ] = "",
    name: Annotated[str, typer.Option(help="What these pages call the data (default: the name of the file).")] = "",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for these pages (default: runs/book/NAME).")
    ] = None,
):
    """Run every changed notebook on the embedded data and build the book; with --data, write pages about a table instead."""
    with one_clear_line(Path(data) if data else None, steps=True):
        from mobpriv.book import build, notebooks, own_book
        from mobpriv.datasets import kind_of

        if not data and (name or output):
            raise ValueError("--name and -o are for pages about a table: give it with --data")
        if not data:
            typer.echo(f"The book is at {build.build(workers=workers, quick=quick)}")
            return
        folder = output or Path("runs") / "book" / (name or Path(data).stem)
        _can_be_written(folder)
        first = notebooks.find(own_book.ASSESSMENTS[kind_of(_resolved(data))])
        plan = _plan(first, {"dataset": _resolved(data)}, folder)  # refuses a table that is not clear
        _announce({"data": plan["data"], "results": plan["results"]})
        failed = own_book.write(_resolved(data), folder, name or Path(data).name, workers, quick)
        typer.echo(folder / "index.html")
        if failed:
            raise build.BuildFailed("\n\n".join(f"{notebook}: {error}" for notebook, error in failed.items()))


@app.command()
def course(workers: Annotated[int, typer.Option(min=1, help="Number of notebooks that run at once.")] = 2):
    """Build the student and the teacher edition of the course, from the book's executed notebooks."""
    with one_clear_line(steps=True):
        from mobpriv.book import build, editions
        from mobpriv.book.results import ROOT

        build.build(workers=workers, render=False)
        typer.echo(f"The editions for students and teachers are in {editions.write(ROOT, workers)}")


@app.command()
def real(
    folder: Annotated[Path, typer.Argument(help="Folder with cabspotting.parquet, geolife.parquet, …")],
    notebook: Annotated[list[str] | None, typer.Argument(help="Only these notebooks.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Notebooks at a time.")] = 1,
):
    """Run the notebooks on real data as specified in book/results/runs.yml and rewrite book/results (takes hours)."""
    with one_clear_line(steps=True):
        from mobpriv.book import build, notebooks

        build.real(folder, [notebooks.find(n).stem for n in notebook or []], workers)


@app.command()
def carry(before: Annotated[Path, typer.Argument(help="A checkout of the commit before, with its book built.")]):
    """Keep results on real data if their notebooks give the same numbers on the embedded data as before."""
    with one_clear_line():
        from mobpriv.book import carrying

        carried = carrying.carry(before)
        typer.echo(f"{len(carried.results)} results carried over")
        for (run, name), reason in carried.kept_stale.items():
            typer.echo(f"{run}/{name} stays stale: {reason}")


@app.command()
def show(notebook: Annotated[str, typer.Argument(help="Short name of a notebook, or its file.")]):
    """List the parameters of a notebook: type, default, unit, range, meaning, value with --quick."""
    with one_clear_line():
        from mobpriv.book import notebooks

        short = notebooks.shortened(notebook)
        table = Table("parameter", "type", "default", "unit", "range", "meaning", "with --quick", box=None)
        for p in notebooks.parameters(notebook).values():
            cells = (p.name, p.type, repr(p.default), p.unit or "–", p.allowed or "–", p.meaning, short.get(p.name, ""))
            table.add_row(*map(escape, cells))
        Console(highlight=False, width=max(_stdout.width, 140)).print(table)  # readable in a pipe too


@app.command()
def validate(
    file: Annotated[Path, typer.Argument(help=f"{_FILE}, or the folder of a known data set.", callback=_present)],
    user: _User = "",
    t: _TimeColumn = "",
    lat: _Lat = "",
    lng: _Lng = "",
    cell: Annotated[
        str, typer.Option(help="Column of the cell. The table has call records if this is given or there are no positions.")
    ] = "",
    end_cell: Annotated[str, typer.Option(help="Call records: column of the cell at the end.")] = "",
    duration: Annotated[str, typer.Option(help="Call records: column of the duration in seconds.")] = "",
    cells: Annotated[
        Path | None,
        typer.Option(
            help="Call records: table of the cells (cell, lat, lng, municipality; default: NAME_cells.csv, .parquet or .geojson next to NAME)."
        ),
    ] = None,
    time: _Time = "",
    zone: _Zone = "",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the valid records to this Parquet file, for use with mobpriv run."),
    ] = None,
):
    """Describe a table of traces or call records and list its faults by rule, each with the first row that breaks it."""
    from mobpriv import datasets
    from mobpriv.datasets.tables import read_part

    given = {"user": user, "t": t, "lat": lat, "lng": lng, "cell": cell, "end_cell": end_cell, "duration": duration}
    given |= {"cells": str(cells or ""), "time": time, "zone": zone}
    given = {name: value for name, value in given.items() if value}
    with one_clear_line(file, given):
        if not file.exists():
            known = f": mobpriv data show {file} describes the data set" if str(file) in datasets.DATASETS else ""
            raise FileNotFoundError(f"there is no file {file}{known}")
        if output and (output.suffix.lower() != ".parquet" or output.resolve() == file.resolve()):
            is_parquet = output.suffix.lower() == ".parquet"
            rule = "differ from the table" if is_parquet else "be a Parquet file, with a name that ends in .parquet"
            raise ValueError(f"the output must {rule} (got -o {output})")
        if file.is_dir() and given:
            raise ValueError(
                f"{file} is a folder of a known format, whose columns and times are known: omit {', '.join(map(_OPTIONS.get, given))}"
            )
        with _stderr.status(f"reading {escape(file.name)} …"):
            source = datasets.opened(file)
        kind = "calls" if {"cell", "end_cell", "duration", "cells"} & set(given) else datasets.kind_of(source)
        table_of_cells, command, notes = None, "", ()
        if file.is_dir():
            data_set = datasets.load(file)
            records, left_out = data_set.traces, data_set.left_out
        else:
            columns = {name: value for name, value in given.items() if name not in ("cells", "time", "zone")}
            reading = datasets.recognised(source, columns, time, zone, kind)
            if kind == "calls":
                records, table_of_cells, left_out = datasets.read_calls(source, cells, **reading.arguments)
            else:
                records, left_out, _, _, notes = read_part(source, **reading.arguments)
            command = _validating(file, _options_for(reading, given))
        if not len(records):
            raise ValueError(f"{file} holds no records")
        is_ready = file.name.endswith("_ready.parquet") and not len(left_out)
        if command:
            typer.echo("; ".join((f"{file.name}: {reading.in_words}{_guessed(reading)}", *notes)))
        _print_contents(records, table_of_cells)
        if command:
            _warn_of_row_numbers(records, reading.columns["user"])
        _warn_of_changing_names(records)
        if len(left_out):
            _warn_of_many(len(records), left_out)
            _left_out(left_out)
        else:
            typer.echo("The table has no faults.")
        if output:
            _write(records, table_of_cells, output)
        elif command and not is_ready:
            typer.echo(f"\nTo write the valid records to a table:\n  {command}")
        ready = str(output or (_ready(file) if command and not is_ready else file))
        if kind in _EXAMPLES:
            names = [_EXAMPLES[kind]]
            if kind == "calls" and table_of_cells["municipality"].notna().any():
                names.append(_OF_MUNICIPALITIES)
            zone_option = ["-p", f"zone={zone or 'ZONE'}"] if kind == "calls" else []
            commands = [shlex.join(["mobpriv", "run", name, "--data", ready, *zone_option, "--quick"]) for name in names]
            hint = " (replace ZONE by the callers' time zone, such as Europe/Paris: it determines the days)"
            hint = hint if "ZONE" in str(commands) else ""
            if kind == "traces":
                typer.echo(f"To see what it gives away:\n  {shlex.join(['mobpriv', 'assess', ready, '--quick'])}")
            typer.echo(f"To run an experiment on it{hint}:" + "".join(f"\n  {command}" for command in commands))


@app.command()
def protect(
    data: Annotated[str, typer.Argument(help=f"{_FILE}, or the name of a data set (mobpriv data list).", callback=_present)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The protected table, a .parquet or .csv file.")],
    mechanism: Annotated[
        str | None, typer.Option("--with", help="Mechanism and parameters, for instance 'promesse(alpha=200)'.")
    ] = None,
    goal: Annotated[
        list[str] | None,
        typer.Option(help="Instead of --with: take the setting that the results of mobpriv assess recommend for this goal."),
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="Also write a CSV table of each new name and the original one: keep it secret.")
    ] = None,
    keep_names: Annotated[bool, typer.Option("--keep-names", help="Keep the users' names (default: new names).")] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="For experiments: anybody with the seed can remove the noise (default: the system's random numbers)."
        ),
    ] = None,
    user: _User = "",
    t: _TimeColumn = "",
    lat: _Lat = "",
    lng: _Lng = "",
    time: _Time = "",
    zone: Annotated[
        str, typer.Option(help="Time zone of times without one, and of the callers' days, for instance Europe/Paris.")
    ] = "",
    cell: Annotated[str, typer.Option(help="Call records: column of the cell.")] = "",
    cells: Annotated[
        Path | None, typer.Option(help="Call records: table of the cells (default: NAME_cells next to NAME).")
    ] = None,
    start: Annotated[str, typer.Option(help="Call records: first day of the profiles (default: day of the first call).")] = "",
    weeks: Annotated[int, typer.Option(help="Call records: weeks of the profiles.")] = 4,
):
    """Protect a table of traces or call records and write it for publication, with a manifest of what was done.

    Call records are published as profiles: shares of days by municipality (Primule, Mdav), or visits to each cell.
    """
    import numpy as np

    from mobpriv.base.processes import temporary_folder
    from mobpriv.base.system_noise import SystemGenerator
    from mobpriv.datasets import kind_of
    from mobpriv.icp.profiles import WEEKS
    from mobpriv.own_data import call_protection, protection, streaming

    given = _given(user=user, t=t, lat=lat, lng=lng, time=time, zone=zone, cell=cell)
    words = [
        "protect",
        data,
        *(["--with", mechanism] if mechanism is not None else []),
        *(w for g in goal or [] for w in ("--goal", g)),
        "-o",
        output,
        *(["--pairs", pairs] if pairs else []),
    ]
    words += [*["--keep-names"] * keep_names, *(["--seed", seed] if seed is not None else [])]
    with one_clear_line(Path(data), given, partial(_command, words)):
        if (mechanism is None) == (not goal):
            raise ValueError(
                "a mechanism is named, --with 'promesse(alpha=200)', or chosen by a goal, --goal 're-identified < 5 %'"
            )
        place = _resolved(data)
        of_calls = bool(cell) or kind_of(place) == "calls"
        if goal:
            if of_calls:
                raise ValueError(f"a goal is for traces, and {data} holds call records: name a mechanism with --with")
        else:
            chosen = protection.mechanism_of(mechanism, call_protection.MECHANISMS if of_calls else None)
        protection.check_output(output, place, pairs)
        if of_calls:
            if pairs or keep_names or lat or lng:
                raise ValueError(
                    "profiles of calls have no names and no positions: leave out --pairs, --keep-names, --lat and --lng"
                )
            _protect_calls(place, chosen, output, seed, given, cells, start, weeks)
            return
        if cells or start or weeks != WEEKS:
            raise ValueError(f"--cells, --start and --weeks are for call records, and {data} holds traces: leave them out")
        rng = SystemGenerator() if seed is None else np.random.default_rng(seed)
        source, reading = _source(place, given)
        kind = protection.time_type_of(Path(place), reading) if reading else None
        if (
            not goal
            and isinstance(source, Path)
            and isinstance(chosen, streaming.USER_BY_USER)
            and streaming.is_needed(source, reading)
        ):
            publication = protection.Publication(chosen, rng, reading, keep_names, kind)
            with temporary_folder("mobpriv-protect-") as folder, _working(f"reading {Path(place).name}") as watch:
                protected, data_set = streaming.protect(Path(place), reading, publication, folder, watch)
                _publish(protected, data_set, output, pairs, seed)
            return
        data_set = _loaded(source, reading)
        if not len(data_set.traces):
            raise ValueError(f"{data} holds no records")
        if goal:
            name, chosen = _recommended(place, goal, data_set)
        with _working(f"protecting {counted(len(data_set.traces), 'record')}"):
            protected = protection.protect(data_set.traces, chosen, rng, reading, keep_names, kind)
        if goal:
            protected.manifest["chosen"] = {"goal": goal, "setting": name, "among": "the settings of mobpriv assess"}
            typer.echo(f"the assessment recommends {name}")
        _publish(protected, data_set, output, pairs, seed)


def _publish(protected, data_set, output: Path, pairs: Path | None, seed: int | None) -> None:
    """Write a protected table with its manifest, and report what was read, left out and published."""
    from mobpriv.own_data import protection

    records, of = protected.manifest["records"], "call record" if "profiles" in protected.manifest else "record"
    records["left out when read"] = {problem.rule: int(problem.records) for problem in data_set.left_out.itertuples()}
    protected.manifest["input"] = {"file": data_set.source, "sha256": data_set.sha256}
    if seed is not None:
        protected.manifest["seed"] = seed
    manifest = protection.write(protected, output, pairs)
    users, profiles = protected.manifest["users"], protected.manifest.get("profiles")
    published = f"in {counted(profiles['published'], 'profile')}" if profiles else f"of {counted(users['published'], 'user')}"
    _report(data_set)
    typer.echo(
        f"{counted(records['given'], of)} of {counted(users['given'], 'user')} given, {shown(records['published'])} {published} "
        f"published: {output}\nguarantee: {protected.manifest['guarantee']}\nmanifest: {manifest}"
    )
    if left_out := records.get("left out"):
        typer.echo("call records left out:" + "".join(f"\n  {rule}: {shown(n)}" for rule, n in left_out.items()))
    for warning in protected.manifest["warnings"]:
        typer.echo(f"Warning: {warning}")


def _recommended(place: str, goal: list[str], data_set):
    """The name and the mechanism of the setting that the finished assessment of this table recommends."""
    from mobpriv.book import provenance
    from mobpriv.experiments import across
    from mobpriv.own_data import recommended

    limits, name = _goals(goal), Path(place).name
    folder, again = _folder("across_traces", place), shlex.join(["mobpriv", "assess", place])
    record = provenance.read_record(folder / "across_traces.json")
    if not record:
        raise ValueError(f"there is no assessment of {name} in {folder}: run {again} first, which takes minutes")
    if record["provenance"]["parameters"].get("quick"):
        raise ValueError(f"the assessment in {folder} is a quick one, which is not a result: run {again}")
    if record["provenance"]["data"]["sha256"] != data_set.sha256:
        raise ValueError(f"{name} has changed since its assessment in {folder}: run {again}")
    setting = recommended.setting_for(record["results"], limits)
    return setting, across.settings(data_set.traces)[setting]


def _protect_calls(place: str, mechanism, output: Path, seed: int | None, given: dict[str, str], cells, start: str, weeks: int):
    """Write the profiles of call records under the mechanism, and report what is in them."""
    import numpy as np

    from mobpriv import datasets
    from mobpriv.base.system_noise import SystemGenerator
    from mobpriv.own_data import call_protection, streaming

    zone, time = given.get("zone", ""), given.get("time", "")
    columns = {role: name for role, name in given.items() if role not in ("zone", "time")}
    known = place in datasets.DATASETS
    if known and (columns or time or cells):
        raise ValueError(
            f"{place} is a known data set, whose columns, times and cells are known: leave out the options for reading it"
        )
    rng = SystemGenerator() if seed is None else np.random.default_rng(seed)
    if not known and isinstance(mechanism, call_protection.OF_PROFILES) and streaming.exceeds(Path(place), streaming.CALLS):
        reading = datasets.recognised(place, columns, time, zone, "calls")
        with _working(f"protecting {Path(place).name} in parts"):
            of_cells = datasets.read_cells(cells or datasets.cells_beside(place))
            protected, data_set = call_protection.protect_file(
                Path(place), of_cells, reading, mechanism, rng, zone, start, weeks
            )
    else:
        reading = {} if known else {"columns": columns, "time": time, "zone": zone}
        data_set = datasets.load_calls(place, cells, **{name: value for name, value in reading.items() if value})
        with _working(f"protecting {counted(len(data_set.calls), 'call record')}"):
            protected = call_protection.protect(data_set, mechanism, rng, zone, start, weeks)
    if failures := getattr(rng, "failures", None):
        raise OSError("the operating system's random numbers failed: nothing is published, repeat the command") from failures[0]
    _publish(protected, data_set, output, None, seed)


@app.command()
def judge(
    original: Annotated[
        str, typer.Argument(help="The table before protection: a file, or the name of a data set.", callback=_present)
    ],
    protected: Annotated[
        str,
        typer.Argument(
            help="The table after protection, of any mechanism; or a mechanism: module:Class or file.py:Class(parameter=value).",
            callback=_present,
        ),
    ],
    pairs: Annotated[
        Path | None,
        typer.Option(help="CSV table of the users' names, with the columns protected and original (default: equal names)."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Write all numbers with intervals to this file, .csv or (for mobpriv leaderboard) .json."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the mechanisms' noise.")] = 1,
    user: _User = "",
    t: _TimeColumn = "",
    lat: _Lat = "",
    lng: _Lng = "",
    time: _Time = "",
    zone: _Zone = "",
):
    """Compare a protected table, or a mechanism of yours, with the published mechanisms on the same original: which users are re-identified, and what is lost."""
    import numpy as np

    from mobpriv.own_data import judging, loading

    given = _given(user=user, t=t, lat=lat, lng=lng, time=time, zone=zone)
    words = [
        "judge",
        original,
        protected,
        *(["--pairs", pairs] if pairs else []),
        *(["-o", output] if output else []),
        "--seed",
        seed,
    ]
    with one_clear_line(Path(original), given, partial(_command, words)):
        of_class = loading.names_a_class(protected)
        if of_class and pairs:
            raise ValueError("a mechanism keeps the users' names: leave out --pairs")
        inputs = [Path(table).resolve() for table in (original, protected, pairs) if table]
        if output and (output.suffix.lower() not in (".csv", ".json") or output.is_dir() or output.resolve() in inputs):
            raise ValueError(f"the numbers go to a file of their own that ends in .csv or .json (got -o {output})")
        if output and not output.resolve().parent.is_dir():  # before the attacks, which take a minute
            raise FileNotFoundError(f"there is no folder {output.resolve().parent} for the output: make it, or take another -o")
        mechanism = loading.from_class(protected) if of_class else None
        tables = [original] if mechanism else [original, protected]
        read = [_traces(_resolved(str(table)), given, of_both=not mechanism) for table in tables]
        for role, name in given.items():
            if role not in ("time", "zone") and not any(reading and reading.columns[role] == name for _, reading in read):
                raise ValueError(f"no table has the column {name} that {_OPTIONS[role]} names")
        for data_set, _ in read:
            _report(data_set)
        before = read[0][0].traces
        if mechanism:
            table, of = _tested(mechanism, protected, before, seed), "given mechanism"
        else:
            after = read[1][0].traces
            _check_overlap(before, after)
            table, of = judging.matched(before, after, judging.read_pairs(pairs) if pairs else None), "given table"
        with _working("attacking the table, and the original under each published mechanism"):
            numbers = judging.judge(before, table, np.random.default_rng(seed), given=of)
        _print_numbers(numbers)
        if output:
            part = output.with_name(f".{output.name}.part")
            if output.suffix.lower() == ".json":
                from mobpriv.own_data import leaderboard

                part.write_text(leaderboard.as_json(numbers, of, read[0][0], seed), encoding="utf-8")
            else:
                numbers.to_csv(part, index=False)
            part.replace(output)
            typer.echo(f"written: {output}")


@app.command("leaderboard")
def leaderboard_page(
    folder: Annotated[Path, typer.Argument(help="Folder with results of mobpriv judge -o NAME.json.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page, a self-contained HTML file.")] = Path(
        "leaderboard.html"
    ),
):
    """Compare mechanisms that were judged on the same data: users re-identified against utility."""
    from mobpriv.own_data import leaderboard

    with one_clear_line():
        if output.suffix.lower() != ".html" or output.is_dir() or not output.resolve().parent.is_dir():
            raise ValueError(f"the page goes to a file that ends in .html, in a folder that exists (got -o {output})")
        page = leaderboard.page(leaderboard.read(folder))
        part = output.with_name(f".{output.name}.part")
        part.write_text(page, encoding="utf-8")
        part.replace(output)
        typer.echo(f"written: {output}")


def _given(**options: str) -> dict[str, str]:
    """The options for reading a table that are given."""
    return {name: value for name, value in options.items() if value}


def _traces(place: str, given: dict[str, str], of_both: bool = False):
    """A data set of traces with options for reading it, and how its table is read."""
    source, reading = _source(place, given, of_both)
    return _loaded(source, reading), reading


def _source(place: str, given: dict[str, str], of_both: bool = False):
    """A table of traces, opened, and how it is read with the given options; of another data set its place and None.

    With ``of_both`` the options are given for two tables: a table without such a column, or with times that are recognised, ignores
    them.
    """
    from mobpriv import datasets
    from mobpriv.base.ranges import one_of
    from mobpriv.datasets.times import IN_WORDS

    if place in datasets.DATASETS or not Path(place).is_file() or Path(place).name == "privamov-gps":
        return place, None
    with _stderr.status(f"reading {escape(Path(place).name)} …"):
        source = datasets.opened(place)
    time, zone = (given.get(name, "") for name in ("time", "zone"))
    one_of("time", time, IN_WORDS)
    columns = {role: name for role, name in given.items() if role not in ("time", "zone")}
    if of_both:
        names = datasets.column_names(source)
        columns = {role: name for role, name in columns.items() if name in names}
    kind = datasets.kind_of(source)
    try:
        reading = datasets.recognised(source, columns, "" if of_both else time, zone, kind)
    except datasets.Unclear:
        if not (of_both and time):
            raise
        reading = datasets.recognised(source, columns, time, zone, kind)
    if "lat" not in reading.columns:
        raise ValueError(f"{place} holds call records, and a mechanism for traces protects positions")
    return source, reading


def _loaded(source, reading):
    from mobpriv import datasets

    if reading is None:
        return datasets.load(source)
    data_set = datasets.load(source, **reading.arguments)
    return data_set._replace(reading="; ".join(filter(None, (*reading.notes, data_set.reading))))


def _report(data_set) -> None:
    """Print what was unusual in a table, and what was left out when it was read."""
    if data_set.reading:
        typer.echo(f"{data_set.source}: {data_set.reading}")
    if len(data_set.left_out):
        _left_out(data_set.left_out, data_set.source)


def _check_overlap(original, protected) -> None:
    """Refuse two tables of different times: nothing could be compared."""
    spans = [(traces["t"].min(), traces["t"].max()) for traces in (original, protected) if len(traces)]
    if len(spans) == 2 and max(first for first, _ in spans) > min(last for _, last in spans):
        one, other = (f"from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}" for first, last in spans)
        raise ValueError(
            f"the tables have no time in common: the original is {one} UTC, the protected one {other}: are their time zones and units right?"
        )


def _tested(mechanism, name: str, traces, seed: int):
    """The traces under a mechanism, after the tests of its contract and of its claim."""
    import numpy as np

    from mobpriv.own_data import contract, judging

    with _working("testing the contract") as watch:
        if broken := contract.broken_rules(mechanism, lambda rule: watch(f"testing the contract: {rule}")):
            raise ValueError("\nmobpriv: ".join(f"{name}: {line}" for line in broken))
        typer.echo(f"{name}: the tests find no broken rule of a mechanism's contract")
        if contract.depends_on_others(mechanism, contract.walks()):
            typer.echo("Note: a user's published records depend on the other users of the table")
        if getattr(mechanism, "epsilon", None) is not None:
            watch(f"testing the claim ε = {mechanism.epsilon}")
            typer.echo(judging.tested_claim(mechanism, np.random.default_rng(seed)))
        watch(f"protecting {counted(len(traces), 'record')}")
        return contract.published_by(mechanism, traces, np.random.default_rng(seed), quote=False)


def _print_numbers(numbers) -> None:
    """A row per mechanism, a column per quantity."""
    from mobpriv.own_data.judging import UNITS, settings_in_words

    table = Table(
        caption="The adversary knows the first half of the original with the users' names, and attacks the second half. Rates are over "
        f"the users attacked, the others are medians over the published users; 95 % intervals. {settings_in_words()}."
    )
    for name in ("", *UNITS):
        table.add_column(name, justify="right" if name else "left", no_wrap=not name)
    for mechanism, of in numbers.groupby("mechanism", sort=False):
        by_name = of.set_index("quantity")
        cells = []
        for name, unit in UNITS.items():
            number = by_name.loc[name]
            interval = extent(number["low"], number["high"], unit)  # few users: none
            cells.append(f"{shown(number['value'], unit)}" + (f"\n({interval})" if interval else ""))
        table.add_row(mechanism, *cells)
    Console(highlight=False, width=max(_stdout.width, 140)).print(table)  # readable in a pipe too


def _options_for(reading, given: dict[str, str]) -> dict[str, str]:
    """The options with which a table is read in the same way."""
    columns = {role: name for role, name in reading.columns.items() if role != name or role in given}
    cells = {"cells": given["cells"]} if "cells" in given else {}
    return columns | cells | {name: value for name, value in (("time", reading.time), ("zone", reading.zone)) if value}


def _guessed(reading) -> str:
    """The roles that were recognised, in brackets."""
    from mobpriv.datasets.tables import ROLES_IN_WORDS

    words = [ROLES_IN_WORDS.get(role, "unit of the times" if role == "time" else role) for role in reading.guessed]
    return f" (guessed: {', '.join(words)})" if words else ""


def _warn_of_row_numbers(traces, column: str) -> None:
    """Warn that the column of the user may number the rows, if most users have a single record."""
    from mobpriv.traces.table import by_user

    users, offsets = by_user(traces)
    single = int((offsets[1:] - offsets[:-1] == 1).sum())
    if len(users) > 1 and 2 * single > len(users):
        typer.echo(
            f"Warning: {shown(single)} of {counted(len(users), 'user')} have a single record; if {column} numbers the rows, give "
            "the column of the user with --user"
        )


def _warn_of_changing_names(records) -> None:
    """Warn that pseudonyms may change, if few occur in both halves of the time."""
    from mobpriv.traces.table import by_user, split_in_half

    known, secret = (by_user(half)[0] for half in split_in_half(records, "set"))
    common, days = len(known.intersection(secret)), (records["t"].max() - records["t"].min()).days
    if days >= 2 and 2 * common < len(known.union(secret)):
        few = f"only {shown(common)}" if common else "none"
        typer.echo(
            f"Warning: {few} of {counted(len(known.union(secret)), 'user')} {'have' if common > 1 else 'has'} records in both halves of the "
            "time; if pseudonyms change, earlier records cannot re-identify the users"
        )


def _warn_of_many(kept: int, problems) -> None:
    from mobpriv.datasets import BLANK

    lost = int(problems["records"][problems["rule"] != BLANK].sum())
    if lost > kept:
        typer.echo(f"Warning: most records are left out, {shown(lost)} of {shown(lost + kept)}")


def _left_out(problems, source: str = "") -> None:
    lost = int(problems["records"].sum())
    of_source = f" of {source}" if source else ""
    typer.echo(f"\n{counted(lost, 'record')}{of_source} {'is' if lost == 1 else 'are'} left out:")
    for p in problems.itertuples():
        of_users = f" of {counted(p.users, 'user')}" if p.users else ""
        typer.echo(f"  {p.rule}: {counted(p.records, 'record')}{of_users}")
        if p.place:
            typer.echo(f"    first: {p.place}: {p.value}" if p.value else f"    first: {p.place}")
            typer.echo(f"    {p.remedy}")


def _write(records, cells, output: Path) -> None:
    """Write the records, and for calls the table of cells."""
    from mobpriv.calls import table as calls
    from mobpriv.traces import table as traces

    columns = list(traces.COLUMNS if cells is None else (*calls.CALL_COLUMNS, *calls.OPTIONAL))
    # only these, so that no other column can be mistaken for one of them
    _replace(records[columns], output)
    if cells is not None:
        _replace(cells[["cell", "lat", "lng", "municipality"]], output.with_name(f"{output.stem}_cells.parquet"))
    others = ", ".join(name for name in records.columns if name not in columns)
    beside = f" and {output.stem}_cells.parquet" if cells is not None else ""
    typer.echo(f"written: {output}{beside}{f', without the columns {others}' if others else ''}")


def _replace(table, file: Path) -> None:
    part = file.with_name(f".{file.name}.part")
    try:
        table.to_parquet(part)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _print_contents(records, cells) -> None:
    """Print what a table contains; ``cells``: of calls, None for traces."""
    what = "call" if cells is not None else "record"
    _stdout.print(f"{counted(len(records), what)} of {counted(records['user'].nunique(), 'user')}")
    if not len(records):
        return
    _stdout.print(f"from {records['t'].min():%Y-%m-%d %H:%M:%S %Z} to {records['t'].max():%Y-%m-%d %H:%M:%S %Z}")
    if cells is not None:
        towns = cells["municipality"].nunique()
        where = f" in {counted(towns, 'municipality', 'municipalities')}" if towns else ", of no known municipality"
        _stdout.print(f"{shown(records['cell'].nunique())} of {counted(len(cells), 'cell')}{where}")
        nowhere = records["cell"].isin(cells["cell"][cells["municipality"].isna()])
        if nowhere.any():
            _stdout.print(
                f"{counted(int(nowhere.sum()), 'call')} at cells without a municipality: PRIMULE computes no profiles from them"
            )
        return
    _stdout.print(
        f"latitude {records['lat'].min():.5f} to {records['lat'].max():.5f}, longitude {records['lng'].min():.5f} to {records['lng'].max():.5f}"
    )


@new_app.command("mechanism")
def new(name: Annotated[str, typer.Argument(help="Name of the file, in small letters, for instance my_mechanism.")]):
    """Write NAME.py, a mechanism that protects nothing yet, and its test test_NAME.py, in the current folder."""
    from mobpriv.own_data import new_mechanism

    with one_clear_line():
        file, test = new_mechanism.write(name, Path())
        kind = "".join(word.capitalize() for word in name.split("_"))
        typer.echo(f"written: {file} and {test}\nTo judge it on a table of yours:\n  mobpriv judge my.csv {file}:{kind}")


@data_app.command("list")
def data_list():
    """List the known data sets."""
    from mobpriv.datasets import DATASETS

    table = Table("name", "title", "kind", "holds", "where", box=None)
    for name, known in DATASETS.items():
        kind = "synthetic" if known.synthetic else "real"
        table.add_row(name, known.title, kind, _KIND_WORDS[known.kind], known.place or "embedded")
    _stdout.print(table)


@data_app.command("show")
def data_show(name: Annotated[str, typer.Argument(help="A name (mobpriv data list), a file or a folder.")]):
    """Describe a data set and the records that its reader left out."""
    from mobpriv import datasets

    with one_clear_line(Path(name)):
        given = _resolved(name)
        data_set = datasets.load_calls(given) if datasets.kind_of(given) == "calls" else datasets.load(given)
        _stdout.print(
            f"{data_set.name}: {data_set.source} ({'synthetic' if data_set.synthetic else 'real'}), SHA-256 {data_set.sha256}"
        )
        if data_set.reading:
            typer.echo(data_set.reading)
        _print_contents(*((data_set.calls, data_set.cells) if datasets.kind_of(given) == "calls" else (data_set.traces, None)))
        for p in data_set.left_out.itertuples():
            _stdout.print(f"left out: {p.rule}: {counted(p.records, 'record')}")


@data_app.command("fetch")
def data_fetch(name: Annotated[str, typer.Argument(help="A name from mobpriv data list.")]):
    """Download a data set into the cache, or show where to register for it."""
    from mobpriv import datasets

    with one_clear_line():
        if name not in datasets.DATASETS:
            raise ValueError(f"there is no data set {name!r} (data sets: {', '.join(datasets.DATASETS)})")
        typer.echo(datasets.fetch(name))


if __name__ == "__main__":
    app()
