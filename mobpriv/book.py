"""Notebooks as experiments: their parameters, running them, keeping their results.

The conventions that every notebook in ``notebooks/`` follows:

* one cell tagged ``parameters``, one per line, annotated, with unit and meaning behind it::

      cell: float = 800.0  # m, side of a heat-map cell

  and among them ``dataset: str = "city"`` (a name or a file), ``seed: int`` and ``quick: bool = False``;
* it reads its traces with ``data = mobpriv.datasets.load(dataset)`` or through mobpriv.reidentification, in a cell tagged
  ``input``: what that cell refuses is the reader's mistake, one line and no traceback;
* it hands its numbers over with ``book.save({...}, data)``: what the pages print and the claims test.
"""

import ast
import json
import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import numpy as np

from mobpriv import __version__, claims, provenance

ROOT = Path(__file__).parent.parent
RESULTS = "MOBPRIV_RESULTS"  # where the runner tells a notebook to leave its results
EMBEDDED = "city"
# what a kernel would print on every page although it says nothing about the experiment: no widgets for progress bars, no debugger
QUIET = {"PYDEVD_DISABLE_FILE_VALIDATION": "1", "PYTHONWARNINGS": "ignore:IProgress not found"}
UNITS = {"m", "km", "s", "min", "h", "days", "1/m", "share", "users", "degrees", "records"}
_MISSING = object()


class Parameter(NamedTuple):
    name: str
    type: str  # as annotated: str, int, float, bool, list[…], dict[…]
    default: Any
    unit: str  # "" where it has none
    meaning: str


class CellFailed(Exception):
    """A cell of a notebook raised; the message is its traceback."""


def find(notebook: str | Path, root: Path = ROOT) -> Path:
    """The file of a notebook given by path or by its short name in ``notebooks/``."""
    for path in (Path(notebook), root / "notebooks" / f"{notebook}.ipynb", root / "notebooks" / notebook):
        if path.suffix == ".ipynb" and path.is_file():
            return path
    names = sorted(p.stem for p in (root / "notebooks").glob("*.ipynb"))
    raise FileNotFoundError(f"there is no notebook {str(notebook)!r}; notebooks: {', '.join(names) or 'none'}")


def parameters(notebook: str | Path, root: Path = ROOT) -> dict[str, Parameter]:
    """The parameters of a notebook, read from its cell tagged ``parameters``."""
    import papermill  # half a second of imports that a notebook calling save() need not pay

    path = find(notebook, root)
    found = {}
    for name, entry in papermill.inspect_notebook(str(path)).items():
        unit, _, meaning = entry["help"].partition(",")
        if unit.strip() not in UNITS:
            unit, meaning = "", entry["help"]
        try:
            default = ast.literal_eval(entry["default"])
        except (ValueError, SyntaxError):
            raise ValueError(f"{path.name}: the default of {name} must be a plain value (it is {entry['default']})") from None
        found[name] = Parameter(name, entry["inferred_type_name"], default, unit.strip(), meaning.strip())
    return found


def checked(notebook: str | Path, given: dict[str, Any], root: Path = ROOT) -> dict[str, Any]:
    """``given`` as plain Python values of the types the notebook annotates (text is read as the type it stands for).

    Raises ValueError, one line, for a name the notebook does not have and for a value of another type.
    """
    known, plain = parameters(notebook, root), {}
    for name, value in given.items():
        if name not in known:
            listed = ", ".join(f"{p.name} ({p.type})" for p in known.values()) or "none"
            raise ValueError(f"{Path(notebook).stem} has no parameter {name!r}; its parameters: {listed}")
        kind = known[name].type
        plain[name] = as_type(value, kind)
        if plain[name] is _MISSING:
            raise ValueError(f"parameter {name} of {Path(notebook).stem} must be {kind} (got {value!r})")
    return plain


def as_type(value: Any, kind: str) -> Any:
    """``value`` as a plain Python value of the annotated type, or the marker ``_MISSING`` where it is none."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    base = kind.partition("[")[0]
    if base == "str":
        return str(value) if isinstance(value, str | Path) else _MISSING
    if isinstance(value, str):
        try:
            value = {"true": True, "false": False}.get(value.lower()) if base == "bool" else ast.literal_eval(value)
        except (ValueError, SyntaxError):
            return _MISSING
    if base == "float" and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if base == "list" and isinstance(value, list | tuple):
        inner = kind.partition("[")[2].removesuffix("]")
        value = [as_type(entry, inner) for entry in value] if inner else list(value)
        return _MISSING if any(entry is _MISSING for entry in value) else value
    types = {"int": int, "bool": bool, "dict": dict}
    fits = base in types and isinstance(value, types[base]) and (base == "bool" or not isinstance(value, bool))
    return value if fits else _MISSING


def run(
    notebook: str | Path, given: dict[str, Any] | None = None, *, output: Path, results: Path, root: Path = ROOT, key: str = ""
) -> dict:
    """Run a notebook through papermill; returns the record it wrote to ``results``.

    ``output`` gets the executed notebook, ``results`` the numbers it saved with their provenance; both are written elsewhere
    first and moved when the whole run has succeeded. ``key`` is the content hash to keep in the record.
    Not for use by several threads at once (it sets an environment variable for the kernel); processes are fine.
    Raises ValueError for a wrong parameter, FileNotFoundError, :class:`CellFailed` for a cell that raises.
    """
    path = find(notebook, root)
    given = checked(path, given or {}, root)
    defaults = {p.name: p.default for p in parameters(path, root).values()}
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mobpriv-") as folder:
        saved = Path(folder) / "results.json"
        # steps of another notebook, other parameters or other code must not be taken for this run's
        made_by = key or provenance.content_hash(path, given, root)
        steps = Path(results).parent / f".{path.stem}.{made_by[:16]}.steps"
        executed = _execute(path, given, Path(folder) / path.name, saved, root, steps)
        handed_over = provenance.read_record(saved) or {"data": None, "selection": "", "results": {}}
    record = {
        "provenance": {
            "notebook": path.stem,
            "data": handed_over["data"],
            "selection": handed_over["selection"],
            "parameters": provenance.without_path({**defaults, **given}),
            "command": provenance.command(path.stem, {**defaults, **given}, defaults),
            "mobpriv": __version__,
            "commit": provenance.commit(root),
            "packages": provenance.versions(),
            "seconds": round(time.perf_counter() - started, 1),
            "content_hash": key,
        },
        "results": handed_over["results"],
    }
    shutil.rmtree(steps, ignore_errors=True)
    provenance.write_atomically(Path(output), nbformat.writes(executed) + "\n")
    provenance.write_atomically(Path(results), json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return record


def _execute(path: Path, given: dict, output: Path, saved: Path, root: Path, steps: Path) -> nbformat.NotebookNode:
    import papermill
    from papermill.exceptions import PapermillExecutionError

    with _environment({RESULTS: str(saved), STEPS: str(steps.resolve()), **QUIET}):
        try:
            executed = papermill.execute_notebook(
                str(path),
                str(output),
                given,
                cwd=str(root),
                progress_bar=False,
                kernel_name="python3",
                **_over_ipc(output.parent),
            )
        except PapermillExecutionError as error:
            cells = nbformat.read(output, as_version=4).cells
            failed = next((cell for cell in cells if cell.metadata.get("papermill", {}).get("exception")), None)
            refused = failed is not None and "input" in failed.metadata.get("tags", [])
            if refused and error.ename in ("ValueError", "InvalidTraces", "FileNotFoundError", "NeedsRegistration"):
                raise ValueError(error.evalue) from None
            text = "\n".join(error.traceback)
            where = f"{path.name}, cell {error.cell_index + 1}: {error.ename}: {error.evalue}"
            raise CellFailed(re.sub(r"\x1b\[[0-9;]*m", "", text) + f"\n{where}") from None
    return plain_notebook(executed)


def _over_ipc(folder: Path) -> dict:
    """Kernels talk over sockets in the run's own folder: no TCP port, so several can start at once without taking each other's."""
    sockets = str(folder / "kernel")
    if os.name != "posix" or len(sockets) > 90:  # a socket's path holds about a hundred characters
        return {}
    from jupyter_client.manager import AsyncKernelManager

    class OverIPC(AsyncKernelManager):
        def __init__(self, **options):
            super().__init__(**{**options, "transport": "ipc", "ip": sockets})

        def format_kernel_cmd(self, extra_arguments=None):
            # a kernel that is told to stop reports the interrupt as an error of its own
            return super().format_kernel_cmd([*(extra_arguments or []), "--IPKernelApp.log_level=CRITICAL"])

    return {"kernel_manager_class": OverIPC}


def plain_notebook(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what differs from run to run: times, paths, random cell ids. The same run gives the same bytes."""
    notebook = nbformat.from_dict(notebook)
    notebook.metadata = {k: v for k, v in notebook.metadata.items() if k in ("kernelspec", "language_info")}
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell.metadata = {k: v for k, v in cell.metadata.items() if k in ("tags", "mystnb")}
    return notebook


@contextmanager
def _environment(variables: dict[str, str]):
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def save(results: dict[str, Any], data: Any = None, selection: str = "") -> None:
    """Keep the numbers of an experiment, called once at the end of a notebook.

    ``results``: name of a quantity -> a number, a truth value, ``{"value": …, "low": …, "high": …, "n": …}`` (the interval and
    the number of cases are optional), or the rows of a table (a list of dicts, or a DataFrame). A name is dotted,
    ``"rate.AP-Attack.Promesse"``; the claims read it as ``rate['AP-Attack', 'Promesse']``.
    ``data`` is what ``mobpriv.datasets.load`` gave (None for an experiment without data), ``selection`` says in words which
    part of it was used and how it was halved.
    """
    described = None
    if data is not None:
        left_out = getattr(data, "left_out", None)
        described = {
            "name": data.name,
            "sha256": data.sha256,
            "synthetic": bool(data.synthetic),
            "left_out": {p.rule: int(p.records) for p in left_out.itertuples()} if left_out is not None else {},
        }
    content = {"data": described, "selection": selection, "results": {str(k): _plain(k, v) for k, v in results.items()}}
    default = ROOT / "book" / "_generated" / "results" / "by-hand" / f"{_session()}.json"
    path = Path(os.environ.get(RESULTS, default))
    provenance.write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _session() -> str:
    return Path(os.environ.get("JPY_SESSION_NAME", "notebook")).stem


def _plain(name: str, value: Any) -> Any:
    """``value`` as JSON can hold it: infinite numbers as text, which the claims read as numbers; not-a-number as null."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        value = value.to_dict("records")
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(k): _plain(name, v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(name, v) for v in value]
    if isinstance(value, float):
        return (
            None
            if math.isnan(value)
            else value
            if math.isfinite(value)
            else {1: "infinite", -1: "-infinite"}[int(math.copysign(1, value))]
        )
    if value is None or isinstance(value, bool | int | str):
        return value
    raise ValueError(f"result {name!r}: a result is a number, a truth value, text or a table (got {type(value).__name__})")


def published(notebook: str, root: Path = ROOT) -> dict[str, dict]:
    """The results of a notebook on real data that ``book/results`` holds: data set -> name of a quantity -> value."""
    folders = sorted((root / "book" / "results").glob("*/"))
    records = {folder.name: provenance.read_record(folder / f"{notebook}.json") for folder in folders}
    return {dataset: record["results"] for dataset, record in records.items() if record}


STEPS = "MOBPRIV_STEPS"  # folder where the runner lets a long notebook keep what it has finished


def step(name: str, compute: Callable, *arguments) -> Any:
    """``compute(*arguments)``, kept on disk until the whole notebook has succeeded.

    A long run that was interrupted goes on behind its last finished step. What ``compute`` returns must be plain (numbers,
    text, lists, dicts), and comes back the same whether it was just computed or read: through JSON. Run by hand, outside the
    runner, nothing is kept.
    """
    folder = os.environ.get(STEPS)
    path = Path(folder) / (re.sub(r"[^\w.-]+", "_", name) + ".json") if folder else None
    if path and path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    text = json.dumps(compute(*arguments))
    if path:
        provenance.write_atomically(path, text)
    return json.loads(text)


def printed(notebook: str, dataset: str, root: Path = ROOT) -> dict[str, float]:
    """The numbers that the papers print for a notebook's quantities on a data set, as the claims ledger holds them."""
    known = claims.known_name(dataset)
    entries = [c for c in claims.read(root / "book" / "claims", claims.Claim) if c.notebook == notebook and c.quantity]
    values = {claims.plain_name(c.quantity): (c.printed if isinstance(c.printed, dict) else {}).get(known) for c in entries}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def label(data) -> str:
    """What a data set is called on a page that also shows others: only the embedded city may be called by that name."""
    return claims.NAMES[EMBEDDED] if data.synthetic and data.name == EMBEDDED else "this run"


def title(run: str) -> str:
    """What a run is called on the pages: "geolife-program" is "GeoLife, as the program"."""
    return claims.NAMES.get(run, run)


class Beside:
    """A table of results: rows of quantities, columns of runs; each cell a number with its interval and its n."""

    def __init__(self, columns: dict[str, dict[str, tuple[str, str]]]):
        self.columns = columns

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.columns)
        names = list(next(iter(self.columns.values())))
        body = "".join(f'<tr><th scope="row">{escape(name)}</th>{self._cells(name)}</tr>' for name in names)
        return f'<table class="beside"><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>'

    def _cells(self, name: str) -> str:
        cells = [column[name] for column in self.columns.values()]
        return "".join(f"<td>{escape(number)}<small>{escape(extent)}</small></td>" for number, extent in cells)

    def __repr__(self) -> str:
        import pandas as pd

        return pd.DataFrame(
            {run: {k: " ".join(v) for k, v in column.items()} for run, column in self.columns.items()}
        ).to_string()


def beside(notebook: str, results: dict[str, Any], rows: dict[str, str], root: Path = ROOT) -> Beside:
    """A table of this run's results beside the papers' numbers and the published runs on real data.

    ``rows``: name of a quantity -> what to call it; a name that ends in "(%)" shows shares as percentages. Every number comes
    with its 95 % interval and its n where it has them.
    """
    runs = {"this run": {name: _plain(name, value) for name, value in results.items()}} | published(notebook, root)
    columns = {}
    for run, found in runs.items():
        paper = printed(notebook, run, root) if run in claims.PRINTED_FOR else {}
        if paper.keys() & rows.keys():
            columns[f"{title(run)}, paper"] = {
                text: _shown(paper[name], text) if name in paper else ("", "") for name, text in rows.items()
            }
        columns[title(run)] = {text: _shown(found.get(name), text) for name, text in rows.items()}
    return Beside(columns)


def _shown(value: Any, text: str) -> tuple[str, str]:
    if not isinstance(value, dict):
        return _digits(value, text), ""
    number, low, high, n = (value.get(key) for key in ("value", "low", "high", "n"))
    extent = f"{_digits(low, text)} to {_digits(high, text)}" if low is not None and high is not None else ""
    return _digits(number, text), extent + (f", n = {n}" if n else "")


def _digits(value: Any, text: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, str | bool):
        return {True: "yes", False: "no"}.get(value, value)
    if text.endswith("(%)"):
        return f"{100 * value:.1f}"
    if abs(value) >= 1000 or float(value).is_integer():
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) >= 1 else f"{value:.3g}"
