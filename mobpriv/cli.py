"""The command line: ``mobpriv run | book | real | show | validate | data``.

Exit codes: 0, done; 2, the command was given something wrong (one line on stderr); 1, a cell or the build failed (its traceback);
130, interrupted.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

app = typer.Typer(
    help="The experiments of five papers on mobility privacy, run again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="The data sets: which there are, what they hold, how to get them.", no_args_is_help=True)
app.add_typer(data_app, name="data")
_stdout, _stderr = Console(highlight=False), Console(stderr=True, highlight=False)


@contextmanager
def one_clear_line() -> Iterator[None]:
    """What the user gave wrong becomes one line and exit code 2; a failed run its traceback and exit code 1."""
    from mobpriv import datasets
    from mobpriv.book import build, claims, running

    def stop(*_):
        raise KeyboardInterrupt  # a polite kill tidies up as Ctrl-C does

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except (running.CellFailed, build.BuildFailed, claims.LedgerError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None
    except (ValueError, OSError, datasets.NeedsRegistration) as error:
        hint = any(option in str(error) for option in ("time='", "zone='", "columns={"))
        on_the_command_line = " (mobpriv validate FILE --user … --time … --zone … -o READY.parquet does that)" if hint else ""
        print(f"mobpriv: {error}{on_the_command_line}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        print(
            "mobpriv: interrupted (the finished steps of a run are kept: the same command goes on behind them)", file=sys.stderr
        )
        raise typer.Exit(130) from None


def _pairs(given: list[str]) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"a parameter is given as name=value (got {text!r})")
        if name.strip() in pairs:
            raise ValueError(f"a parameter is given once (got {name.strip()} twice)")
        pairs[name.strip()] = value
    return pairs


@app.command()
def run(
    notebook: Annotated[str, typer.Argument(help="Short name of a notebook, or its file.")],
    datasets: Annotated[
        list[str] | None, typer.Option("--data", help="Data set: a name (mobpriv data list), a file or a folder.")
    ] = None,
    parameter: Annotated[list[str] | None, typer.Option("-p", "--parameter", help="name=value, may be repeated.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="To try a notebook out, not a result (mobpriv show says what it shortens).")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for the results [default: runs/NOTEBOOK/DATA].")
    ] = None,
):
    """Run a notebook: executed notebook, one self-contained HTML page and the results as JSON."""
    from mobpriv.book import notebooks, running, webpage

    with one_clear_line():
        given = _pairs(parameter or [])
        if len(datasets or []) > 1:
            raise ValueError(f"one data set is given, not several (got --data {' --data '.join(datasets)})")
        data = datasets[0] if datasets else ""
        if data and "dataset" in given:
            raise ValueError(f"the data set is given twice: --data {data} and -p dataset={given['dataset']}")
        if data or given.get("dataset"):
            given["dataset"] = _found(data or given["dataset"])
        if quick:
            given["quick"] = True
        path = notebooks.find(notebook)
        given = notebooks.checked(path, given)
        folder = output or _folder(path.stem, given.get("dataset") or notebooks.parameters(path)["dataset"].default)
        _can_be_written(folder)
        executed, results = folder / f"{path.stem}.ipynb", folder / f"{path.stem}.json"
        page = folder / f"{path.stem}.html"
        also = lambda notebook, record: {page: webpage.page(notebook, record)}  # noqa: E731  (three outputs, all or none)
        if quick:
            short = notebooks.shortened(path)
            typer.echo(
                "quick, not a result: " + ("; ".join(f"{n} = {v}" for n, v in short.items()) or "nothing is shortened"),
                err=True,
            )
        running.run(path, given, output=executed, results=results, also=also)
        for file in (page, executed, results):
            typer.echo(file)


def _folder(notebook: str, data: str) -> Path:
    """runs/NOTEBOOK/DATA; with the first digits of the file's hash where another file of that name was run before."""
    from mobpriv.book import provenance
    from mobpriv.datasets import DATASETS

    path = Path(data)
    own = path.name if data not in DATASETS and path.stem in DATASETS else path.stem  # an own city.parquet is not the city
    folder = Path("runs") / notebook / own
    try:
        before = provenance.read_record(folder / f"{notebook}.json")
    except provenance.BrokenRecord as error:
        typer.echo(f"{error}: done now", err=True)
        return folder
    if before and before["provenance"]["data"] and path.is_file():
        digest = provenance.file_hash(path)
        if before["provenance"]["data"]["sha256"] != digest:
            return folder.with_name(f"{own}-{digest[:6]}")
    return folder


def _can_be_written(folder: Path) -> None:
    """Refuses, before the work, a folder that nothing can be written into."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise OSError(
            f"{folder} cannot be written: {there} is {'not writable' if there.is_dir() else 'a file'}; take another -o"
        )


def _found(data: str) -> str:
    """The name of a known data set as it is, anything else as an absolute path: notebooks run in the project's folder."""
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
):
    """Run every notebook that changed on the embedded data and build the book."""
    from mobpriv.book import build

    with one_clear_line():
        typer.echo(f"The book is at {build.build(workers=workers, quick=quick)}")


@app.command()
def real(
    folder: Annotated[Path, typer.Argument(help="Folder with cabspotting.parquet, geolife.parquet, …")],
    notebook: Annotated[list[str] | None, typer.Argument(help="Only these notebooks.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Notebooks at a time.")] = 1,
):
    """Run the notebooks on real data as book/results/runs.yml says, and rewrite book/results (long)."""
    from mobpriv.book import build, notebooks

    with one_clear_line():
        build.real(folder, [notebooks.find(n).stem for n in notebook or []], workers)


@app.command()
def show(notebook: Annotated[str, typer.Argument(help="Short name of a notebook, or its file.")]):
    """The parameters of a notebook: type, default, unit, range, meaning, and what --quick makes of them."""
    from mobpriv.book import notebooks

    with one_clear_line():
        short = notebooks.shortened(notebook)
        table = Table("parameter", "type", "default", "unit", "range", "meaning", "with --quick", box=None)
        for p in notebooks.parameters(notebook).values():
            cells = (p.name, p.type, repr(p.default), p.unit or "–", p.allowed or "–", p.meaning, short.get(p.name, ""))
            table.add_row(*map(escape, cells))
        Console(highlight=False, width=max(_stdout.width, 140)).print(table)  # readable in a pipe too


@app.command()
def validate(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet file, or the folder of a known data set.")],
    user: Annotated[str, typer.Option(help="Column of the user.")] = "user",
    t: Annotated[str, typer.Option("--time-column", help="Column of the time.")] = "t",
    lat: Annotated[str, typer.Option(help="Column of the latitude.")] = "lat",
    lng: Annotated[str, typer.Option(help="Column of the longitude.")] = "lng",
    time: Annotated[str, typer.Option(help="What numbers in the time column are: s, ms, or iso for text.")] = "",
    zone: Annotated[str, typer.Option(help="Time zone of times that name none, for instance Europe/Paris.")] = "",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write what is right of it here (Parquet), to run on.")
    ] = None,
):
    """What a table of traces holds and what is wrong with it, rule by rule with the first row that breaks it."""
    from mobpriv import datasets

    with one_clear_line():
        if not file.exists():
            raise FileNotFoundError(f"there is no file {file}")
        columns = {"user": user, "t": t, "lat": lat, "lng": lng}
        reading = {"columns": columns} if columns != {name: name for name in columns} else {}
        reading |= {name: value for name, value in {"time": time, "zone": zone}.items() if value}
        if file.is_dir() and reading:
            raise ValueError(
                f"{file} is a folder of a known format, whose columns and times are known: leave {', '.join(reading)} out"
            )
        read = datasets.load(file) if file.is_dir() else None  # a folder of a known format
        traces, left_out = (read.traces, read.left_out) if read else datasets.read_table(file, **reading)
        _holds(traces)
        if output:
            _write(traces, output)
        if not len(left_out):
            _stdout.print("Nothing is wrong with it.")
            return
        _stdout.print(f"\n{int(left_out['records'].sum()):,} records are left out:")
        for p in left_out.itertuples():
            typer.echo(f"  {p.rule}: {p.records:,} records of {p.users:,} users")
            typer.echo(f"    first: {p.place}: {p.value}" if p.value else f"    first: {p.place}")
            typer.echo(f"    {p.remedy}")


def _write(traces, output: Path) -> None:
    part = output.with_name(f".{output.name}.part")
    try:
        traces.to_parquet(part)
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
    typer.echo(f"written: {output}")


def _holds(traces) -> None:
    _stdout.print(f"{len(traces):,} records of {traces['user'].nunique():,} users")
    if len(traces):
        _stdout.print(f"from {traces['t'].min():%Y-%m-%d %H:%M:%S %Z} to {traces['t'].max():%Y-%m-%d %H:%M:%S %Z}")
        _stdout.print(
            f"latitude {traces['lat'].min():.5f} to {traces['lat'].max():.5f}, longitude {traces['lng'].min():.5f} to {traces['lng'].max():.5f}"
        )


@data_app.command("list")
def data_list():
    """The known data sets."""
    from mobpriv.datasets import DATASETS

    table = Table("name", "title", "kind", "where", box=None)
    for name, known in DATASETS.items():
        table.add_row(name, known.title, "synthetic" if known.synthetic else "real", getattr(known, "place", "") or "embedded")
    _stdout.print(table)


@data_app.command("show")
def data_show(name: Annotated[str, typer.Argument(help="A name (mobpriv data list), a file or a folder.")]):
    """What a data set holds, and what its reader left out."""
    from mobpriv import datasets

    with one_clear_line():
        found = datasets.load(_found(name))
        _stdout.print(f"{found.name}: {found.source} ({'synthetic' if found.synthetic else 'real'}), SHA-256 {found.sha256}")
        _holds(found.traces)
        for p in found.left_out.itertuples():
            _stdout.print(f"left out: {p.rule}: {p.records:,} records")


@data_app.command("fetch")
def data_fetch(name: Annotated[str, typer.Argument(help="A name from mobpriv data list.")]):
    """Download a data set into the cache, or say where to register for it."""
    from mobpriv import datasets

    with one_clear_line():
        if name not in datasets.DATASETS:
            raise ValueError(f"there is no data set {name!r} (data sets: {', '.join(datasets.DATASETS)})")
        typer.echo(datasets.fetch(name))


if __name__ == "__main__":
    app()
