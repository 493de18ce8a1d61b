"""Run a notebook with papermill and write the executed notebook and the record of its results, both or neither."""

import html
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

from mobpriv import __version__, datasets
from mobpriv.base.processes import environment, temporary_folder
from mobpriv.book import dependencies, provenance, quantities
from mobpriv.book.notebooks import checked_parameters, find, parameters, read_notebook
from mobpriv.book.results import PARAMETERS, RESULTS, ROOT, STEPS_FOLDER

# environment of a kernel and its workers
KERNEL = {
    # no messages that do not concern the experiment: missing widgets for progress bars, the debugger
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    "PYTHONWARNINGS": "ignore:IProgress not found",
    # otherwise glibc returns each large array to the system and fetches it again: a fifth of the time on millions of records
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(1 << 28),
}
ONE_THREAD = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_REFUSALS = ("ValueError", "Unclear", "InvalidTraces", "FileNotFoundError", "NeedsRegistration")


class CellFailed(Exception):
    """A cell of a notebook raised an exception; the message is its traceback."""


def run(
    notebook: str | Path,
    given: dict[str, Any] | None = None,
    *,
    output: Path,
    results: Path,
    root: Path = ROOT,
    key: str = "",
    watch: Callable[[int, int, Path], None] | None = None,
    further_files: Callable[[nbformat.NotebookNode, dict], dict[Path, str]] | None = None,
) -> dict:
    """Run a notebook with papermill; returns the record written to ``results``.

    ``output``: file for the executed notebook.
    ``results``: file for the saved numbers and their provenance. Both files are written only if the whole run succeeds.
    ``key``: content hash for the record; by default the hash of code, parameters and data.
    ``further_files(executed, record)``: gives more files with their text, written together with the two or not at all.
    ``watch(cell, cells, steps)``: called at the start of each cell, counted from 1; the folder ``steps`` has a file per finished step.

    Not thread-safe, because it sets environment variables for the kernel; several processes may call it.
    Raises ValueError for a wrong parameter, FileNotFoundError, :class:`CellFailed` for a cell that raises.
    """
    path = find(notebook, root)
    given = checked_parameters(path, given or {}, root)
    defaults = {p.name: p.default for p in parameters(path, root).values()}
    code = dependencies.code_hash(path, {**defaults, **given}, root)
    # the default covers notebook, parameters, data and code, so that a run never uses the steps of another one
    key = key or provenance.fingerprint(
        [code, *data_fingerprints({**defaults, **given}.get("dataset", ""), given.get("quick", False))]
    )
    started = time.perf_counter()
    with temporary_folder("mobpriv-") as folder:
        saved = folder / "results.json"
        steps = Path(results).parent / f".{path.stem}.{key[:16]}.steps"
        kernel_variables = {RESULTS: str(saved), STEPS_FOLDER: str(steps.resolve()), PARAMETERS: ",".join(defaults)}
        hook = _watch_hook(watch, path, steps) if watch else {}
        executed = _execute(path, given, folder / path.name, root, kernel_variables, hook)
        no_results = {"data": None, "selection": "", "parameters": {}, "results": {}, "spared": 0.0}
        handed_over = json.loads(saved.read_text(encoding="utf-8")) if saved.is_file() else no_results
    quantities.read(root, {}).check_declared(path.stem, handed_over["results"])
    record = {
        "provenance": {
            "notebook": path.stem,
            "data": handed_over["data"],
            "selection": handed_over["selection"],
            "parameters": provenance.without_path({**defaults, **given, **handed_over["parameters"]}),
            "command": provenance.command(path.stem, {**defaults, **given}, defaults),
            "mobpriv": __version__,
            "commit": provenance.commit(root),
            "packages": provenance.versions(),
            # as if nothing had been shared with other runs
            "seconds": round(time.perf_counter() - started + handed_over["spared"], 1),
            "content_hash": key,
            "code_hash": code,
        },
        "results": handed_over["results"],
    }
    executed = _without_paths(executed, [given.get("dataset", ""), str(root)])
    record_text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    provenance.write_all(
        {
            Path(output): nbformat.writes(executed) + "\n",
            Path(results): record_text,
            **(further_files(executed, record) if further_files else {}),
        }
    )
    shutil.rmtree(steps, ignore_errors=True)
    return record


def _watch_hook(watch: Callable[[int, int, Path], None], path: Path, steps: Path) -> dict:
    """The nbclient hook that calls ``watch`` for each code cell; papermill adds the first cell, with the parameters."""
    number, cells = 0, sum(cell.cell_type == "code" for cell in read_notebook(path).cells) + 1

    def on_cell(**_):
        nonlocal number
        number += 1
        watch(min(number, cells), cells, steps)

    return {"on_cell_execute": on_cell}


def data_fingerprints(dataset: str, quick: bool = False) -> list[str]:
    """Fingerprints of a data set's files: a file or folder, or the files of an embedded or downloaded data set.

    A quick run hashes only the part of a file that it reads.
    """
    if os.path.isfile(dataset) and quick:
        return [datasets.sha256_of(Path(dataset), datasets.SEARCHED), *_cells_of(dataset)]
    if os.path.exists(dataset):
        return [provenance.file_hash(Path(dataset)), *_cells_of(dataset)]
    known = datasets.DATASETS.get(dataset)
    if known is None:
        return []
    files = [datasets.cache_folder() / dataset] if known.place else sorted(datasets.data_folder().glob(f"{dataset}*"))
    return [f"{path.name} {provenance.file_hash(path)}" for path in files if path.exists()]


def _cells_of(dataset: str) -> list[str]:
    """The fingerprint of the table of cells next to a file of calls; empty without one."""
    try:
        return [provenance.file_hash(datasets.cells_beside(dataset))]
    except (ValueError, OSError):
        return []


def _execute(
    path: Path, given: dict, output: Path, root: Path, kernel_variables: dict[str, str], hook: dict
) -> nbformat.NotebookNode:
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    for name in ("asyncio", "papermill", "traitlets"):
        logging.getLogger(name).addFilter(_says_more)
    with environment({**kernel_variables, **KERNEL}):
        try:
            executed = papermill.execute_notebook(
                str(path),
                str(output),
                given,
                cwd=str(root),
                progress_bar=False,
                request_save_on_cell_execute=False,  # twice a cell; what is worth remembering, a step remembers
                kernel_name="python3",
                coalesce_streams=True,  # printed output arrives in arbitrary pieces
                **_kernel_in(output.parent, Path(kernel_variables[RESULTS])),
                **hook,
            )
        except PapermillExecutionError as error:
            cells = nbformat.read(output, as_version=4).cells
            failed = next((cell for cell in cells if cell.metadata.get("papermill", {}).get("exception")), None)
            refused = failed is not None and "input" in failed.metadata.get("tags", [])
            if refused and error.ename in _REFUSALS:
                raise ValueError(error.evalue) from None
            text = "\n".join(error.traceback)
            where = f"{path.name}, cell {error.cell_index + 1}: {error.ename}: {error.evalue}"
            raise CellFailed(re.sub(r"\x1b\[[0-9;]*m", "", text) + f"\n{where}") from None
        except DeadKernelError:
            raise CellFailed(f"{path.name}: the kernel died, probably because memory ran out") from None
    return _plain_notebook(executed)


def _says_more(record: logging.LogRecord) -> bool:
    """Whether a log message is not the one about a dead kernel, which an exception reports as well."""
    return "Kernel died" not in record.getMessage()


def _kernel_in(folder: Path, saved: Path) -> dict:
    """A manager of kernels that write to the run's own folder and communicate over sockets there.

    Without TCP ports several kernels can start at once. A kernel that has ``saved`` its results is ended at once, which saves half
    a second.
    """
    from jupyter_client.manager import AsyncKernelManager

    sockets = str(folder / "kernel")
    place = {"connection_file": f"{sockets}.json"}
    if os.name == "posix" and len(sockets) <= 90:  # the path of a socket is limited to about a hundred characters
        place |= {"transport": "ipc", "ip": sockets}

    class InFolder(AsyncKernelManager):
        def __init__(self, **options):
            super().__init__(**{**options, **place})

        def format_kernel_cmd(self, extra_arguments=None):
            # otherwise a kernel that is stopped logs the interrupt as an error
            return super().format_kernel_cmd([*(extra_arguments or []), "--IPKernelApp.log_level=CRITICAL"])

        async def shutdown_kernel(self, now=False, restart=False):
            await super().shutdown_kernel(now or saved.is_file(), restart)

    return {"kernel_manager_class": InFolder}


def _plain_notebook(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without times, paths and random cell ids, so that equal runs give equal bytes."""
    notebook = nbformat.from_dict(notebook)
    notebook.metadata = {k: v for k, v in notebook.metadata.items() if k in ("kernelspec", "language_info")}
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell.metadata = {k: v for k, v in cell.metadata.items() if k in ("tags", "mystnb")}
    return notebook


def _without_paths(executed: nbformat.NotebookNode, paths: list[str]) -> nbformat.NotebookNode:
    """The notebook with paths reduced to their last part, because paths are private."""
    text = nbformat.writes(executed)
    for path in paths:
        if len(Path(path).parts) > 1:
            for full, last in zip(_spellings(path), _spellings(Path(path).name), strict=True):
                text = text.replace(json.dumps(full, ensure_ascii=False)[1:-1], json.dumps(last, ensure_ascii=False)[1:-1])
    return nbformat.reads(text, as_version=4)


def _spellings(text: str) -> tuple[str, ...]:
    """The forms of a text in a notebook: printed, quoted by Python or by papermill's cell of parameters, in HTML."""
    escaped = text.encode("unicode_escape").decode()
    return text, repr(text)[1:-1], escaped, escaped.replace('"', r"\""), html.escape(text), html.escape(repr(text)[1:-1])
