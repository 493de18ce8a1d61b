"""Building the book: run what changed, evaluate the ledger, write the pages, call jupyter-book."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import nbformat
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mobpriv.book import claims, comparison, notebooks, pages, provenance, running
from mobpriv.book.notebooks import EMBEDDED
from mobpriv.book.results import ROOT

ONE_THREAD = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class BuildFailed(Exception):
    """The book cannot be built; the message says why, notebook by notebook."""


def build(root: Path = ROOT, workers: int = 2, quick: bool = False, render: bool = True) -> Path:
    """Run the notebooks that changed on the embedded data, evaluate the ledger and render; returns the page to open.

    What is finished stays: an interrupted build goes on where it stopped.
    """
    generated = root / "book" / "_generated"
    names = sorted(path.stem for path in (root / "notebooks").glob("*.ipynb"))
    listed = set(_listed_notebooks(root / "book" / "_toc.yml"))
    if listed != set(names):
        missing = [f"book/_toc.yml lacks notebooks/{name}" for name in names if name not in listed]
        raise BuildFailed(
            "\n".join(missing + [f"book/_toc.yml names notebooks/{n}, which is not there" for n in listed - set(names)])
        )
    run_all(names, {"quick": True} if quick else {}, EMBEDDED, generated / "results" / EMBEDDED, root, workers)
    write_pages(names, root)
    if render:
        jupyter_book(root)
    return root / "_build" / "html" / "index.html"


def _listed_notebooks(toc: Path) -> Iterable[str]:
    def files(node):
        if isinstance(node, dict):
            if "file" in node:
                yield str(node["file"])
            for value in node.values():
                yield from files(value)
        elif isinstance(node, list):
            for entry in node:
                yield from files(entry)

    for file in files(yaml.safe_load(toc.read_text(encoding="utf-8"))):
        if file.startswith("notebooks/"):
            yield Path(file).stem


def real(folder: Path, only: list[str], workers: int = 1, root: Path = ROOT) -> None:
    """The runs of ``book/results/runs.yml`` whose files lie in ``folder``; ``only``: these notebooks, where a run has them."""
    runs = yaml.safe_load((root / "book" / "results" / "runs.yml").read_text(encoding="utf-8"))
    found = {run: sorted(folder.glob(spec["file"])) for run, spec in runs.items()}
    if not any(found.values()):
        raise FileNotFoundError(f"{folder} holds none of {', '.join(spec['file'] for spec in runs.values())}")
    for run, files in found.items():
        if files:
            names = [name for name in runs[run]["notebooks"] if not only or name in only]
            results = root / "book" / "results" / run
            run_all(names, runs[run].get("parameters", {}), str(files[0].resolve()), results, root, workers)


def run_all(names: list[str], given: dict, dataset: str, results: Path, root: Path, workers: int) -> None:
    """Run notebooks on one data set, ``workers`` at a time, and skip those whose content hash says that nothing changed."""
    executed = root / "book" / "_generated" / "executed" / results.name
    pending = []
    for name in names:
        path = root / "notebooks" / f"{name}.ipynb"
        known = notebooks.parameters(path, root)
        parameters = {parameter: value for parameter, value in given.items() if parameter in known}
        if "dataset" in known and dataset != EMBEDDED:
            parameters["dataset"] = dataset
        compared = (root / "book" / "results").glob("*/*.json") if dataset == EMBEDDED else ()
        printed = {source: comparison.printed(name, source, root) for source in claims.PRINTED_FOR}
        key = provenance.content_hash(path, parameters, root, compared, printed)
        record = provenance.read_record(results / f"{name}.json")
        if not (record and record["provenance"]["content_hash"] == key and (executed / f"{name}.ipynb").is_file()):
            pending.append((path, parameters, executed / f"{name}.ipynb", results / f"{name}.json", root, key))
    console, failures = Console(stderr=True), []
    console.print(
        f"{len(names) - len(pending)} of {len(names)} notebooks unchanged, {len(pending)} to run ({results.name})",
        highlight=False,
    )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    pool = ProcessPoolExecutor(
        max(1, min(workers, len(pending))), mp_context=get_context("spawn"), initializer=_one_thread_each, initargs=(workers,)
    )
    with Progress(*columns, console=console) as progress, pool:
        task = progress.add_task("notebooks", total=len(pending))
        futures = {pool.submit(_run_one, *job): job[0].stem for job in pending}
        try:
            for future in as_completed(futures):
                name = futures[future]
                error = future.exception()
                if error:
                    failures.append(f"{name}: {error}")
                    console.print(f"  {name}: failed", highlight=False)
                else:
                    console.print(f"  {name}: {future.result():.1f} s", highlight=False)
                progress.advance(task)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if failures:
        raise BuildFailed("\n\n".join(failures))


def _one_thread_each(workers: int) -> None:
    """Set before a kernel starts: with several notebooks at once each uses one thread."""
    if workers > 1:
        os.environ.update(ONE_THREAD)


def _run_one(path: Path, parameters: dict, output: Path, results: Path, root: Path, key: str) -> float:
    return running.run(path, parameters, output=output, results=results, root=root, key=key)["provenance"]["seconds"]


def all_records(root: Path) -> dict[str, dict[str, dict]]:
    """Every result at hand: data set -> notebook -> record; real data sets from ``book/results``, the city from this build."""
    folders = [root / "book" / "_generated" / "results" / EMBEDDED, *sorted((root / "book" / "results").glob("*/"))]
    return {
        folder.name: {path.stem: _record(path) for path in sorted(folder.glob("*.json"))}
        for folder in folders
        if folder.is_dir()
    }


def _record(path: Path) -> dict:
    record = json.loads(path.read_text(encoding="utf-8"))
    missing = [key for key in provenance.RECORDED if key not in record.get("provenance", {})]
    if missing or "results" not in record:
        raise BuildFailed(f"{path} is no record of a run (its provenance lacks {', '.join(missing)}): run its notebook again")
    return record


def write_pages(names: list[str], root: Path) -> None:
    """Write the executed pages with their provenance and downloads, the ledger, the errata and the score."""
    generated, target, records = root / "book" / "_generated", root / "book" / "notebooks", all_records(root)
    results = {dataset: {name: record["results"] for name, record in entries.items()} for dataset, entries in records.items()}
    verdicts = claims.evaluate(claims.read(root / "book" / "claims", claims.Claim), results)
    errata = claims.read(root / "book" / "errata", claims.Erratum)
    claims.check_errata(errata, results)
    shutil.rmtree(generated / "downloads", ignore_errors=True)
    for stale in target.glob("*.ipynb"):
        if stale.stem not in names:
            stale.unlink()
    for name in names:
        executed = nbformat.read(generated / "executed" / EMBEDDED / f"{name}.ipynb", as_version=4)
        of_notebook = {dataset: entries[name] for dataset, entries in records.items() if name in entries}
        page = pages.decorated(executed, name, of_notebook, [v for v in verdicts if v.claim.notebook == name])
        _write_if_changed(target / f"{name}.ipynb", nbformat.writes(page) + "\n")
        downloads = generated / "downloads"
        _copy(root / "notebooks" / f"{name}.ipynb", downloads / "source" / f"{name}.ipynb")
        _copy(generated / "executed" / EMBEDDED / f"{name}.ipynb", downloads / "executed" / f"{name}.ipynb")
        for dataset, record in of_notebook.items():
            provenance.write_atomically(
                downloads / dataset / f"{name}.json", json.dumps(record, indent=1, ensure_ascii=False) + "\n"
            )
    for name, text in {
        "ledger": pages.ledger_page(verdicts),
        "errata": pages.errata_page(errata),
        "score": pages.score_page(verdicts, errata),
        "headline": _headline(target, names),
    }.items():
        _write_if_changed(generated / f"{name}.md", text)


def _headline(target: Path, names: list[str]) -> str:
    """The figure of the cell tagged ``headline``, for the landing page."""
    for name in names:
        for cell in nbformat.read(target / f"{name}.ipynb", as_version=4).cells:
            if "headline" in cell.metadata.get("tags", []):
                html = "".join(o["data"]["text/html"] for o in cell.outputs if "text/html" in o.get("data", {}))
                return f"```{{raw}} html\n{html}\n```\n"
    return ""


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _write_if_changed(path: Path, text: str) -> None:
    """Leave an equal file alone, so that the renderer reads only what changed."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        provenance.write_atomically(path, text)


def jupyter_book(root: Path) -> None:
    """Render; every warning is an error."""
    command = [
        sys.executable,
        "-c",
        "from jupyter_book.cli.main import main; main()",
        "build",
        "book",
        "-W",
        "-n",
        "--keep-going",
        "--quiet",
    ]
    # the pages include generated files, whose changes the renderer does not see
    shutil.rmtree(root / "_build", ignore_errors=True)
    finished = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if finished.returncode:
        raise BuildFailed(f"{finished.stdout}\n{finished.stderr}".strip())
