"""Build the book: run changed notebooks, evaluate the ledger, write the pages, call jupyter-book."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import as_completed
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from string import ascii_uppercase
from typing import NamedTuple

import nbformat
from filelock import FileLock, Timeout
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mobpriv.base import processes, sharing
from mobpriv.book import (
    claims,
    course,
    dependencies,
    ledger,
    merged,
    notebook_pages,
    notebooks,
    openings,
    pages,
    provenance,
    quantities,
    reference,
    running,
    runs,
    self_checks,
    sums,
    verdicts,
    webpage,
    yaml_files,
)
from mobpriv.book.results import ROOT

BUILT = "_build/commit"  # file: the commit of the rendered book


class BuildFailed(Exception):
    """The book cannot be built; the message gives the reason for each notebook."""


@contextmanager
def build_lock(root: Path) -> Iterator[None]:
    """Lock a project's folder: two builds at once would overwrite each other's pages."""
    (root / "book" / "_generated").mkdir(parents=True, exist_ok=True)
    lock = FileLock(root / "book" / "_generated" / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(f"another build is running in {root.name}: wait until it ends, or stop it") from None
    try:
        yield
    finally:
        lock.release()


def build(root: Path = ROOT, workers: int = 2, quick: bool = False, render: bool = True) -> Path:
    """Run changed notebooks on their embedded data, evaluate the ledger and render, if ``render``; returns the page to open.

    An interrupted build continues after the last finished notebook.
    """
    names = sorted(path.stem for path in (root / "notebooks").glob("*.ipynb"))
    listed = {name for chapter in _contents(root).values() for name in _notebooks(chapter)}
    if listed != set(names):
        missing = [f"book/_toc.yml lacks notebooks/{name}" for name in names if name not in listed]
        raise BuildFailed(
            "\n".join(missing + [f"book/_toc.yml names notebooks/{n}, which is not there" for n in listed - set(names)])
        )
    embedded = embedded_runs(root)
    with build_lock(root):
        _run_all([_embedded_job(name, embedded[name], quick, root) for name in names], workers)
        write_pages(embedded, root)
        if render:
            write_site(root, workers)
            provenance.write_atomically(root / BUILT, "a quick run" if quick else provenance.commit(root, "."))
    return root / "_build" / "html" / "index.html"


def embedded_runs(root: Path) -> dict[str, str]:
    """Notebook -> run on its embedded data."""
    names = sorted(path.stem for path in (root / "notebooks").glob("*.ipynb"))
    return {name: notebooks.parameters(name, root)["dataset"].default for name in names}


def chapters_of(root: Path) -> dict[str, list[str]]:
    """Title of a chapter -> the files of its pages and of their parts, in order."""
    parts = {f"notebooks/{page}": [f"notebooks/{name}" for name in names] for page, names in merged.parts(root).items()}
    return {
        title: [file for page in pages_listed for file in (page, *parts.get(page, ()))]
        for title, pages_listed in pages_of(root).items()
    }


def pages_of(root: Path) -> dict[str, list[str]]:
    """Title of a chapter -> the files of its pages in order."""

    def files(node):
        if isinstance(node, dict):
            if "file" in node:
                yield str(node["file"])
            for value in node.values():
                yield from files(value)
        elif isinstance(node, list):
            for entry in node:
                yield from files(entry)

    files_of = {}
    for entry in yaml_files.content(root / "book" / "_toc.yml")["chapters"]:
        files_of.setdefault(entry.get("title", "The book"), []).extend(files(entry))
    return files_of


SUPPLEMENT = "Supplement"  # the last chapter: further pages of all other chapters


def _contents(root: Path) -> dict[str, list[str]]:
    """Title of a chapter -> its files in order, including its pages in the supplement."""
    chapters = chapters_of(root)
    further = chapters.pop(SUPPLEMENT, [])
    return {
        title: [*paths, *(file for file in further if Path(file).stem.startswith(f"{paths[0]}_"))]
        for title, paths in chapters.items()
    }


def _notebooks(files: list[str]) -> list[str]:
    return [Path(file).stem for file in files if file.startswith("notebooks/")]


def real(folder: Path, only: list[str], workers: int = 1, root: Path = ROOT) -> None:
    """Run notebooks on the real data in ``folder``; ``only``: these notebooks, [] for all."""
    real_runs = [run for run in runs.read(root).runs.values() if run.file]
    data_files = {run.name: found for run in real_runs if (found := sorted(folder.glob(run.file)))}
    if not data_files:
        raise FileNotFoundError(f"{folder} has no file for the runs: {', '.join(run.file for run in real_runs)}")
    with build_lock(root):
        _run_all(
            [
                _real_job(name, run, data_files[run.name][0].resolve(), root)
                for run in real_runs
                for name in (run.notebooks if run.name in data_files else ())
                if not only or name in only
            ],
            workers,
        )


class Job(NamedTuple):
    """A run of a notebook: the arguments of :func:`mobpriv.book.running.run`."""

    notebook: Path
    parameters: dict
    output: Path
    results: Path
    root: Path
    key: str  # content hash
    page: Path | None = None  # file of a page of its own
    run: str = ""  # on real data, named in messages

    @property
    def title(self) -> str:
        return f"{self.run}/{self.notebook.stem}" if self.run else self.notebook.stem


def _embedded_job(name: str, run: str, quick: bool, root: Path) -> Job:
    path, given = root / "notebooks" / f"{name}.ipynb", {"quick": True} if quick else {}
    others = running.data_fingerprints(run) + _named_files(name, root) + shown_beside(path, root)
    generated = root / "book" / "_generated"
    key = dependencies.page_hash(path, given, root, others)
    return Job(path, given, executed(root, run, name), generated / "results" / run / f"{name}.json", root, key)


def _named_files(name: str, root: Path) -> list[str]:
    """Fingerprints of the project's files that are defaults of parameters."""
    named = [str(p.default) for p in notebooks.parameters(name, root).values() if p.default and isinstance(p.default, str)]
    return [f"{file} {provenance.file_hash(root / file)}" for file in sorted(named) if (root / file).is_file()]


def _real_job(name: str, run: runs.Run, data: Path, root: Path) -> Job:
    path = root / "notebooks" / f"{name}.ipynb"
    given = {"dataset": str(data), **given_to(run, name, root)}
    named = _named_files(name, root)
    key = provenance.fingerprint([code_hash(run, name, root), *running.data_fingerprints(str(data)), *named])
    results = root / "book" / "results" / run.name / f"{name}.json"
    return Job(path, given, executed(root, run.name, name), results, root, key, run=run.name)


def given_to(run: runs.Run, name: str, root: Path) -> dict:
    """The parameters of a run that a notebook has."""
    known = notebooks.parameters(name, root)
    return {parameter: value for parameter, value in run.parameters.items() if parameter in known}


def code_hash(run: runs.Run, name: str, root: Path) -> str:
    """The code hash of a run with today's code."""
    defaults = {p.name: p.default for p in notebooks.parameters(name, root).values()}
    given = notebooks.checked_parameters(name, given_to(run, name, root), root)
    return dependencies.code_hash(root / "notebooks" / f"{name}.ipynb", {**defaults, **given}, root)


def executed(root: Path, run: str, name: str) -> Path:
    return root / "book" / "_generated" / "executed" / run / f"{name}.ipynb"


def shown_beside(path: Path, root: Path) -> list[str]:
    """Fingerprints of the published results, printed numbers, titles and labels that a page shows."""
    read_notebooks, registry = dependencies.reads(path), runs.read(root)
    if not read_notebooks:
        return []
    entries = claims.read(root / "book" / "claims", claims.Claim)
    names = {entry.notebook for entry in entries} | read_notebooks if "*" in read_notebooks else read_notebooks
    files = sorted(file for name in names - {"*"} for file in (root / "book" / "results").glob(f"*/{name}.json"))
    printed = [claims.printed(entries, name, data_set) for name in sorted(names) for data_set in registry.data_sets]
    runs_shown = {file.parent.name for file in files}
    titles = [run.title for run in registry.runs.values() if run.synthetic or run.name in runs_shown]
    labels = quantities.read(root, registry.runs)
    words = [labels.patterns.get(name, ()) for name in sorted(names)]
    used = {part for of in words for family, *_ in of for part in quantities.parts_of(family)}
    parts = {key: text for key, text in labels.parts.items() if "=" not in key or key.partition("=")[0] in used}
    return [
        *(f"{file.parent.name} {json.dumps(provenance.read_record(file)['results'])}" for file in files),
        json.dumps([printed, titles, words, parts], sort_keys=True),
    ]


def _run_all(jobs: list[Job], workers: int) -> None:
    """Run notebooks; :class:`BuildFailed` if any fails."""
    if failures := run_jobs(jobs, workers):
        raise BuildFailed("\n\n".join(f"{title}: {error}" for title, error in failures.items()))


def run_jobs(jobs: list[Job], workers: int) -> dict[str, BaseException]:
    """Run notebooks, ``workers`` at a time; skip those with an unchanged content hash. Returns title -> error of those that failed.

    Those whose last run took longest start first, so that no worker waits for the last one alone.
    """
    pending = {job.title: job for job in jobs if not _unchanged(job)}
    last = {title: _last_seconds(job) for title, job in pending.items()}
    order = sorted(pending, key=lambda title: -(last[title] or 0))
    console, failures = Console(stderr=True), {}
    console.print(f"{len(jobs) - len(pending)} of {len(jobs)} notebooks unchanged, {len(pending)} to run", highlight=False)
    if any(job.run for job in pending.values()):
        for title in order:
            minutes = "not run before" if last[title] is None else f"{last[title] / 60:.1f} min the last time"
            console.print(f"  {title}: {minutes}", highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress, processes_used = Progress(*columns, console=console), max(1, min(workers, len(pending)))
    with progress, sharing.sharing(), processes.pool(processes_used) as pool:
        task = progress.add_task("notebooks", total=len(pending))
        futures = {pool.submit(_run_one, pending[title], workers): title for title in order}
        for future in as_completed(futures):
            title = futures[future]
            if error := future.exception():
                failures[title] = error
            refused = "refused the data" if isinstance(error, ValueError) else "failed"
            console.print(f"  {title}: {refused if error else f'{future.result():.1f} s'}", highlight=False)
            progress.advance(task)
    return failures


def _last_seconds(job: Job) -> float | None:
    try:
        record = provenance.read_record(job.results)
    except provenance.BrokenRecord:
        return None
    return record["provenance"]["seconds"] if record else None


def _unchanged(job: Job) -> bool:
    try:
        record = provenance.read_record(job.results)
    except provenance.BrokenRecord as error:
        Console(stderr=True).print(f"{error}: done now", highlight=False)
        return False
    return bool(record) and record["provenance"]["content_hash"] == job.key and job.output.is_file()


def _run_one(job: Job, workers: int) -> float:
    path, parameters, output, results, root, key, own_page, _ = job
    processes.ends_with_parent(os.environ[sharing.FOLDER])  # a killed parent cannot remove the folder
    kernels = nullcontext()
    if workers > 1:  # several notebooks run at once: each has one thread
        from mobpriv.book import warm_kernels  # half a second of imports

        os.environ.update(running.ONE_THREAD)  # before a kernel starts
        kernels = warm_kernels.kernels()
    further_files = (lambda notebook, record: {own_page: webpage.page(notebook, record, root)}) if own_page else None
    with kernels:
        record = running.run(path, parameters, output=output, results=results, root=root, key=key, further_files=further_files)
    return record["provenance"]["seconds"]


def all_records(root: Path) -> dict[str, dict[str, dict]]:
    """All results in the order of the registry: run -> notebook -> record."""
    records = {}
    for run in runs.read(root).runs.values():
        records[run.name] = {path.stem: provenance.read_record(path) for path in sorted(run.folder(root).glob("*.json"))}
    return records


def stale_results(records: dict[str, dict[str, dict]], root: Path) -> set[tuple[str, str]]:
    """(run, notebook) of the results on real data whose code has changed since the run."""
    stale = set()
    for run in runs.read(root).runs.values():
        for name, record in records[run.name].items() if run.file else ():
            has_notebook = (root / "notebooks" / f"{name}.ipynb").is_file()
            if has_notebook and record["provenance"].get("code_hash") != code_hash(run, name, root):
                stale.add((run.name, name))
    return stale


class Evaluation(NamedTuple):
    """All results and their evaluation by the ledger."""

    registry: runs.Registry
    records: dict[str, dict[str, dict]]  # run -> notebook -> record
    verdicts: list[verdicts.Verdict]
    answers: dict[str, openings.Answer]  # notebook -> answer at the top of its page
    findings: dict[str, list[str]]  # notebook -> further findings
    landing: dict[str, str]  # notebook -> sentence on the landing page
    errata: list[claims.Erratum]
    elsewhere: dict[str, str]  # erratum -> sentences on its test on other data
    names: quantities.Names
    stale: set[tuple[str, str]]  # (run, notebook)
    quick_runs: set[str]  # quick runs

    def of(self, notebook: str, embedded_run: str) -> dict[str, dict]:
        """The records of a notebook: run -> record, the embedded run ``embedded_run`` first."""
        return {run: self.records[run][notebook] for run in (embedded_run, *self.records) if notebook in self.records[run]}


def evaluation(root: Path) -> Evaluation:
    """Evaluate the ledger and the errata; LedgerError if an entry cannot be tested or does not hold."""
    registry, records, folder = runs.read(root), all_records(root), root / "book" / "claims"
    results = {run: {name: record["results"] for name, record in entries.items()} for run, entries in records.items()}
    quick_runs = {
        run for run in registry.embedded if any(r["provenance"]["parameters"].get("quick") for r in records[run].values())
    }
    names, errata = quantities.read(root, registry.runs), claims.read(root / "book" / "errata", claims.Erratum)
    stale = stale_results(records, root)
    all_verdicts = verdicts.evaluate(claims.read(folder, claims.Claim), results, registry, names, quick_runs, stale)
    elsewhere = verdicts.check_errata(errata, results, registry, quick_runs)
    findings = claims.findings(folder)

    def finding_texts(selected: list[claims.Finding], kind: str) -> dict[str, list[str]]:
        return verdicts.finding_texts(selected, results, registry, names, quick_runs, kind)

    answers = [finding for finding in findings if finding.answer]
    matters = finding_texts([a._replace(says=a.matters) for a in answers if a.matters], verdicts.BRIEF)
    answered = {
        notebook: openings.Answer(says, " ".join(matters.get(notebook, ())))
        for notebook, (says,) in finding_texts(answers, verdicts.ANSWER).items()
    }
    others = finding_texts([finding for finding in findings if not finding.answer], verdicts.FINDING)
    chosen = [finding._replace(says=finding.landing) for finding in findings if finding.landing]
    landing = dict.fromkeys((finding.notebook for finding in chosen), "") | {
        notebook: " ".join(sentences) for notebook, sentences in finding_texts(chosen, verdicts.BRIEF).items()
    }
    return Evaluation(registry, records, all_verdicts, answered, others, landing, errata, elsewhere, names, stale, quick_runs)


def write_pages(embedded: dict[str, str], root: Path) -> None:
    """Write the executed pages with verdicts, provenance and downloads, and the pages of ledger, errata, score and status.

    ``embedded``: notebook -> run on its embedded data.
    """
    book, contents, generated = evaluation(root), _contents(root), root / "book" / "_generated"
    shutil.rmtree(generated / "downloads", ignore_errors=True)
    parts_of = merged.parts(root)
    parts = {name for names in parts_of.values() for name in names}
    for old in (root / "book" / "notebooks").glob("*.ipynb"):
        if old.stem not in embedded or old.stem in parts:
            old.unlink()
    for letter, files in zip(_letters(contents), contents.values(), strict=True):
        numbers = count(1)  # figures of our own are numbered by chapter: R1, R2, … in Re-identification
        for name in _notebooks(files):
            _write_downloads(book, name, embedded[name], root)
            if name not in parts:
                runs_of = {part: embedded[part] for part in (name, *parts_of.get(name, ()))}
                page = _page(book, runs_of, root, lambda counter=numbers, letter=letter: f"{letter}{next(counter)}")
                _write_if_changed(root / "book" / "notebooks" / f"{name}.ipynb", nbformat.writes(page) + "\n")
    titles = {name: notebooks.title(name, root) for name in embedded}
    chapters = {caption: {name: titles[name] for name in _notebooks(files)} for caption, files in contents.items()}
    supplementary = _notebooks(chapters_of(root).get(SUPPLEMENT, []))
    answers_of_pages = {name: answer for name, answer in book.answers.items() if name not in parts}
    texts, supplement = {}, []
    for (caption, (setting, *_)), chapter in zip(contents.items(), chapters.values(), strict=True):
        main_pages, further_pages = (
            {name: text for name, text in chapter.items() if (name in supplementary) is off} for off in (False, True)
        )
        if chapter:
            texts[f"path_{setting}"] = openings.path(main_pages, book.verdicts, answers_of_pages, further_pages)
        if further_pages:
            supplement += [f"## {caption}", "", openings.listed(further_pages, {})]  # each page opens with its answer
    for paper, on_paper in ledger.grouped_by(lambda verdict: verdict.claim.paper, book.verdicts).items():
        texts[ledger.page_of(paper)] = ledger.ledger_page(on_paper, book.registry, chapters)
        texts[f"score_{paper}"] = pages.score_page(on_paper, book.registry, book.quick_runs)
    for name, text in {
        **texts,
        **{f"figures_{chapter}": text for chapter, text in _by_figure(book, titles, root).items()},
        "supplement": "\n".join(supplement),
        "reference": reference.page(),
        "course": course.page(root),
        "ids": ledger.ids_page(book.registry, [verdict.claim for verdict in book.verdicts]),
        "errata": ledger.errata_page(book.errata, book.registry, book.elsewhere),
        "sums": sums.table(book.verdicts, book.registry, chapters),
        "status": pages.status_page(book.records, book.registry, book.stale, titles),
    }.items():
        _write_if_changed(generated / f"{name}.md", text)
    written_by_hand = (path.read_text(encoding="utf-8") for path in (root / "book").glob("*.md"))
    for name in {name for text in written_by_hand for name in re.findall(r"_generated/figure_(\w+)\.md", text)}:
        drawn = figure(name, root)
        _write_if_changed(generated / f"figure_{name}.md", f"```{{raw}} html\n{drawn}\n```\n")
    of_lessons = {name: book.records[run][name] for name, run in embedded.items() if name.endswith("_lesson")}
    of_lessons = {name: record for name, record in of_lessons.items() if record["results"]}  # the student edition has none
    key = self_checks.key_of(of_lessons, book.names, root)
    _write_if_changed(generated / self_checks.KEY, json.dumps(key, indent=1, ensure_ascii=False) + "\n")
    filled = sums.substitutions(book.verdicts) | {f"landing_{notebook}": text for notebook, text in book.landing.items()}
    for notebook in embedded:  # a quick build has no answers
        answer = book.answers.get(notebook, openings.Answer(""))
        filled |= {f"answer_{notebook}": answer.says, f"matters_{notebook}": answer.matters}
    _write_if_changed(generated / "filled.json", json.dumps(filled, indent=1) + "\n")
    if book.stale:
        Console(stderr=True).print(
            f"{pages.results_on(book.stale, book.registry)} {'is' if len(book.stale) == 1 else 'are'} stale: run `make real DATA=FOLDER` to compute them again",
            highlight=False,
        )


def _by_figure(book: Evaluation, titles: dict[str, str], root: Path) -> dict[str, str]:
    """Chapter -> list of its paper's figures; for a chapter of the thesis, the figures with its number."""
    figure_lists = {}
    for chapter, drawn in claims.drawings(root / "book" / "claims").items():
        chapter_verdicts = [verdict for verdict in book.verdicts if verdict.claim.notebook.startswith(f"{chapter}_")]
        _, _, number = chapter.partition("_")
        figure_lists[chapter] = sums.by_figure(chapter_verdicts, titles, drawn, f"{number}." if number else "")
    return figure_lists


def _letters(captions: Iterable[str]) -> list[str]:
    """A letter for each part of the book: the first letter of its caption not used before, else of the alphabet."""
    taken = []
    for caption in captions:
        candidates = [*filter(str.isalpha, caption.upper()), *ascii_uppercase]
        taken.append(next(letter for letter in candidates if letter not in taken))
    return taken


def _page(book: Evaluation, runs_of: dict[str, str], root: Path, number: Callable[[], str]) -> nbformat.NotebookNode:
    """The page of notebooks, each run on its embedded data; ``runs_of``: notebook -> that run; ``number``: gives the next number for a figure."""
    main, *further = runs_of
    judged = {name: [verdict for verdict in book.verdicts if verdict.claim.notebook == name] for name in runs_of}
    words = {main: openings.WORDS, **dict.fromkeys(further, openings.WORDS_OF_PART)}
    all_records = {name: book.of(name, run) for name, run in runs_of.items()}
    parts, feet = [], []
    for name, run in runs_of.items():
        records = all_records[name]
        stale = [other for other in records if (other, name) in book.stale]
        data = run in records and records[run]["provenance"]["data"]
        opening = openings.opening(judged[name], book.answers.get(name), book.registry, words[name])
        parts.append(
            notebook_pages.Part(
                name,
                nbformat.read(executed(root, run, name), as_version=4),
                "\n\n".join(filter(None, [opening, pages.OLDER_CODE if stale else ""])),
                book.registry.title(run) if data and data["synthetic"] else "",
            )
        )
        feet.append(pages.footer(name, records, book.registry, stale, notebooks.title(name, root) if further else ""))
    on_page = [verdict for verdicts_of_one in judged.values() for verdict in verdicts_of_one]
    below = openings.closing(
        {name: all_records[name].get(run) for name, run in runs_of.items()},
        ledger.verdicts_in_words(on_page, book.registry) if on_page else "",
        [finding for name in runs_of for finding in book.findings.get(name, ())],
        [erratum for erratum in book.errata if erratum.notebook in runs_of],
    )
    return notebook_pages.page(parts, [("below", below), ("provenance", "\n\n".join(feet))], number)


def _write_downloads(book: Evaluation, name: str, embedded_run: str, root: Path) -> None:
    """Write the downloads: source, executed notebook, the record of each run, a table of all numbers."""
    downloads, records = root / "book" / "_generated" / "downloads", book.of(name, embedded_run)
    _copy(root / "notebooks" / f"{name}.ipynb", downloads / "source" / f"{name}.ipynb")
    _copy(executed(root, embedded_run, name), downloads / "executed" / f"{name}.ipynb")
    for run, record in records.items():
        provenance.write_atomically(downloads / run / f"{name}.json", json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    provenance.write_atomically(downloads / "numbers" / f"{name}.csv", pages.numbers(name, records, book.names, book.registry))


def figure(name: str, root: Path) -> str:
    """The main figure of a notebook as on its page, as HTML for another page; "" if there is none."""
    drawn = map(notebook_pages.html_of, notebook_pages.headlines(merged.cells(name, root)))
    return next((html for html in drawn if "<figure" in html), "")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _write_if_changed(path: Path, text: str) -> None:
    """Write a file unless its content is equal, so that the renderer reads only changed files."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        provenance.write_atomically(path, text)


_RENDER = """
import gc
from functools import partial
from jupyter_book import sphinx
from jupyter_book.cli.main import main
sphinx.build_sphinx = partial(sphinx.build_sphinx, jobs={workers})  # the command line has no option for it
gc.disable()  # pages stay to the end: to look through them for garbage takes a tenth of the time
main()
"""


def write_site(root: Path, workers: int) -> None:
    """Render the book with jupyter-book; a warning is an error."""
    options = "build book -W -n --keep-going --quiet".split()
    command = [sys.executable, "-c", _RENDER.format(workers=workers), *options]
    # the renderer does not notice changes in included, generated files
    shutil.rmtree(root / "_build", ignore_errors=True)
    finished = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if finished.returncode:
        raise BuildFailed(f"{finished.stdout}\n{finished.stderr}".strip())
