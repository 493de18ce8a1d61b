"""The book about a table of the reader's own: a page for each notebook on the path that takes its kind of data, and a list of them."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from mobpriv import datasets
from mobpriv.book import build, dependencies, notebooks, provenance, running, webpage
from mobpriv.book.results import ROOT
from mobpriv.book.webpage import ASSESSMENTS


def write(
    data: str, folder: Path, name: str, workers: int = 2, quick: bool = False, root: Path = ROOT
) -> dict[str, BaseException]:
    """Write the pages about ``data`` and ``index.html`` to ``folder``; returns notebook -> error of the pages that failed.

    ``data``: the name of a data set or an absolute path. ``name``: what the list of pages calls it.
    A page that exists and depends on nothing that has changed is kept. A notebook that refuses the data has no page; the list gives
    its reason, and this is no failure.
    """
    chapters = _on_the_path(datasets.kind_of(data), root)
    jobs = [_job(notebook, data, folder, quick, root) for names in chapters.values() for notebook in names]
    errors = build.run_jobs(jobs, workers)
    for notebook in errors:  # pages of an earlier table of this name
        for old in folder.glob(f"{notebook}.*"):
            old.unlink()
    provenance.write_atomically(folder / "index.html", _index(chapters, errors, name, quick, root))
    return {notebook: error for notebook, error in errors.items() if not isinstance(error, ValueError)}


def _on_the_path(kind: str, root: Path) -> dict[str, list[str]]:
    """Chapter -> its notebooks that take this kind of data, the assessment first; no exercises, nothing of the supplement."""
    first, chapters = ASSESSMENTS[kind], {}
    for chapter, files in build.chapters_of(root).items():
        names = [Path(file).stem for file in files if file.startswith("notebooks/")] if chapter != build.SUPPLEMENT else []
        of_kind = [name for name in names if _kind(name, root) == kind and name != first and not name.endswith("_lesson")]
        chapters |= {chapter: of_kind} if of_kind else {}
    return {"Assessment": [first], **chapters}


def _kind(notebook: str, root: Path) -> str:
    """The kind of data that a notebook takes; "" if it takes none."""
    usual = datasets.DATASETS.get(notebooks.parameters(notebook, root)["dataset"].default)
    return usual.kind if usual else ""


def _job(notebook: str, data: str, folder: Path, quick: bool, root: Path) -> build.Job:
    path = root / "notebooks" / f"{notebook}.ipynb"
    given = {"dataset": data, **({"quick": True} if quick else {})}
    others = [*running.data_fingerprints(data, quick), *build.shown_beside(path, root)]
    executed, results, page = (folder / f"{notebook}.{ending}" for ending in ("ipynb", "json", "html"))
    return build.Job(path, given, executed, results, root, dependencies.page_hash(path, given, root, others), page)


def _index(chapters: Mapping[str, list[str]], errors: Mapping[str, BaseException], name: str, quick: bool, root: Path) -> str:
    """The list of pages by chapter; a page that does not exist has the reason in its place."""
    written = sum(notebook not in errors for names in chapters.values() for notebook in names)
    sections = [
        f"<h2>{escape(chapter)}</h2><ul>{''.join(_entry(notebook, errors.get(notebook), root) for notebook in names)}</ul>"
        for chapter, names in chapters.items()
    ]
    notice = "<strong>Quick, not a result.</strong> Each page says how it is shortened. " if quick else ""
    head = (
        f"<h1>{escape(name)}: the experiments of the book</h1><p>{notice}{written} of {sum(map(len, chapters.values()))} experiments ran. "
        "Each page compares these data with the papers' numbers and with the data sets of the book.</p>"
    )
    return webpage.document(f"{escape(name)}: the experiments of the book", head + "".join(sections), root)


def _entry(notebook: str, error: BaseException | None, root: Path) -> str:
    title = escape(notebooks.title(notebook, root))
    if error is None:
        return f'<li><a href="{notebook}.html">{title}</a></li>'
    reason = str(error).strip().splitlines()[-1]
    words = "does not run on these data" if isinstance(error, ValueError) else "failed"
    return f"<li>{title} ({words}: {escape(reason)})</li>"
