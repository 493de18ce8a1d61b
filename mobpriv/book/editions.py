"""The two editions of the course (``make course``): without solutions for students; with solutions, slides and common mistakes for teachers.

Nothing is run again. The student edition is the whole book, rendered by the same code from a copy of the project in which the lessons have
neither solutions nor results. :func:`leaks` then reads every file of it, also those inside archives.
"""

import html
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path

import nbformat
import yaml

from mobpriv.book import build, course, provenance, self_checks, webpage, yaml_files

_COPIED = ("mobpriv", "data", "notebooks", "book", "benchmarks")
_WRITTEN = ("_build", "_generated", "__pycache__", "*.nbi", "*.nbc")  # by the build or by Python
_DIRECTIVE = re.compile(r"^:::\{(solution-(?:start|end))\}.*?^:::[ \t]*$", re.MULTILINE | re.DOTALL)
_LONG = 30  # characters of a line that is looked for: shorter ones occur by chance
_TEACHERS = re.compile(r"^:::\{div\} teachers\n.*?^:::\n", re.MULTILINE | re.DOTALL)  # text for teachers alone
_SOLUTIONS = re.compile(r"(?<!\S)[^.\s][^.\n]*\bsolutions?\b[^.\n]*\. ?")  # sentences about them
_READ_ME = """Exercises on mobility privacy. They need Python 3.11 to 3.14, and the network once, to install the packages.

  python -m venv env && source env/bin/activate
  pip install "$(ls mobpriv-*.whl)[book]" jupyterlab
  jupyter lab

On Windows, env\\Scripts\\activate replaces "source env/bin/activate", and the full name of the .whl file replaces $(ls ...).

The course page of the book says which exercises belong to a lesson. Open the notebook, run all cells above the exercise, and write your
code below it. Then put your number in place of the dots of book.check, and run that cell.
"""


def write(root: Path, workers: int) -> Path:
    """Write both editions of a built book; returns the folder."""
    folder = root / "course"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as part:
        new = Path(part)
        _student(root, new, workers)
        _teacher(root, new / "teacher")
        for path in (new / "student", new / "teacher", new / "exercises.zip"):
            target = folder / path.name
            shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
            path.replace(target)
    return folder


def lessons(root: Path) -> list[Path]:
    return sorted((root / "notebooks").glob("*_lesson.ipynb"))


# ------------------------------------------------------------------------------------------------------------- for students
def without_solutions(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A lesson without its solutions and without the cell that saves their results."""
    kept, inside = [], False
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if not inside and "remove-cell" not in cell.metadata.get("tags", []):
                kept.append(cell)
            continue
        text, place = "", 0
        for directive in _DIRECTIVE.finditer(cell.source):
            text += "" if inside else cell.source[place : directive.start()]
            inside, place = directive[1] == "solution-start", directive.end()
        text += "" if inside else cell.source[place:]
        if not kept:  # the introduction
            text = _SOLUTIONS.sub("", text)
        if text.strip():
            kept.append(nbformat.from_dict({**cell, "source": text.strip()}))
    return nbformat.from_dict({**notebook, "cells": kept})


def for_jupyter(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook for a folder without the book: no links to its pages, and headings in place of directives that Jupyter does not know."""
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"\[([^\]]+)\]\((?!https?:|#)[^)]+\)", r"\1", cell.source)
            text = re.sub(r":::\{exercise-start\} (.+)\n:label: .+\n:::", r"## Exercise: \1", text)
            text = re.sub(r":::\{exercise-end\}\n:::", "", text).strip()
            cell = nbformat.from_dict({**cell, "source": text})
        if cell.source:
            cells.append(cell)
    return nbformat.from_dict({**notebook, "cells": cells})


def _student(root: Path, folder: Path, workers: int) -> None:
    source = folder / "source"
    _copy_without_solutions(root, source)
    embedded = build.embedded_runs(source)
    build.write_pages(embedded, source)
    key = root / "book" / "_generated" / self_checks.KEY
    shutil.copyfile(key, source / "book" / "_generated" / self_checks.KEY)
    build.write_site(source, workers)
    (source / "_build" / "html").replace(folder / "student")
    wheel = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        folder,
        ".",
    ]
    finished = subprocess.run(wheel, cwd=source, capture_output=True, text=True)
    if finished.returncode:
        raise build.BuildFailed(f"the wheel of the student edition cannot be built: {finished.stderr.strip()}")
    with zipfile.ZipFile(folder / "exercises.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.txt", _READ_ME)
        for path in lessons(source):
            archive.writestr(path.name, nbformat.writes(for_jupyter(nbformat.read(path, as_version=4))))
        for path in (key, *folder.glob("*.whl")):
            archive.write(path, path.name)
    found = leaks((folder / "student", folder / "exercises.zip"), secret_lines(root))
    if found:
        raise build.BuildFailed("\n".join(f"the student edition has a line of a solution: {place}" for place in found[:10]))


def _copy_without_solutions(root: Path, source: Path) -> None:
    """Copy what the build needs; the lessons lose their solutions, results and findings, the plan its common mistakes."""
    for name in _COPIED:
        shutil.copytree(root / name, source / name, ignore=shutil.ignore_patterns(*_WRITTEN))
    for path in root.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copyfile(path, source / path.name)
    for part in ("executed", "results"):
        shutil.copytree(root / "book" / "_generated" / part, source / "book" / "_generated" / part)
    names = {path.stem for path in lessons(root)}
    for path in [*lessons(source), *(source / "book" / "_generated" / "executed").glob("*/*_lesson.ipynb")]:
        nbformat.write(without_solutions(nbformat.read(path, as_version=4)), path)
    for path in (source / "book" / "_generated" / "results").glob("*/*_lesson.json"):
        record = provenance.read_record(path)
        provenance.write_atomically(path, json.dumps({**record, "results": {}}, ensure_ascii=False))
    for path in (source / "book" / "claims").glob("*.yml"):
        provenance.write_atomically(path, without_findings(path, names))
    for name in ("course", "how-to-read"):
        path = source / "book" / f"{name}.md"
        provenance.write_atomically(path, for_students(path.read_text(encoding="utf-8")))
    plan = [{**lesson._asdict(), "mistakes": []} for lesson in course.plan(root)]
    provenance.write_atomically(source / "book" / "course.yml", json.dumps(plan, ensure_ascii=False))


def for_students(page: str) -> str:
    """A page in MyST without its parts for teachers and its sentences on solutions."""
    return _SOLUTIONS.sub("", _TEACHERS.sub("", page))


def without_findings(path: Path, names: Collection[str]) -> str:
    """A file of claims without the findings of these notebooks. It is no JSON, whose 1e-09 is a text in YAML."""
    content = yaml_files.content(path)
    of_others = [entry for entry in content.get("findings", []) if entry["notebook"] not in names]
    return yaml.safe_dump({**content, "findings": of_others}, allow_unicode=True, sort_keys=False)


def leaks(places: Iterable[Path], secret: dict[str, str]) -> list[str]:
    """Where one of the :func:`secret_lines` occurs in folders and archives: "file: line"."""
    found = []
    for place in places:
        for name, content in _files(place):
            text = _plain(content) + _plain(
                _untagged(content)
            )  # code in HTML has tags; in a notebook it has none, but its tables have
            found += [f"{name}: {line}" for plain, line in secret.items() if plain in text]
    return found


def secret_lines(root: Path) -> dict[str, str]:
    """The lines of the solutions that nothing else of the project contains, and the common mistakes: without layout -> as written."""
    known, secret = set(), {}
    for path in (root / "notebooks").glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        shown = without_solutions(notebook).cells if path in lessons(root) else notebook.cells
        known |= {plain for cell in shown for plain in _lines(cell.source)}
    for path in (*(root / "mobpriv").rglob("*.py"), *(root / "book").glob("*.md")):
        known |= set(_lines(path.read_text(encoding="utf-8")))
    for path in (*lessons(root), *(root / "book" / "_generated" / "executed").glob("*/*_lesson.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        kept = {cell.id for cell in without_solutions(notebook).cells}
        for cell in notebook.cells:
            if cell.id not in kept:
                secret |= _lines(cell.source)
                # a line of a table without a number is a label, as in the question
                secret |= {
                    plain: line for text in _printed(cell) for plain, line in _lines(text).items() if re.search(r"\d", line)
                }
    mistakes = {_plain(text): text for lesson in course.plan(root) for text in lesson.mistakes}
    return {plain: line for plain, line in secret.items() if plain not in known} | mistakes


def _printed(cell) -> Iterator[str]:
    for output in cell.get("outputs", ()):
        yield output.get("text", "")
        shown = output.get("data", {})
        yield shown.get("text/plain", "")
        yield _untagged(re.sub("</tr>|</figcaption>", "\n", re.sub(r"\s+", " ", shown.get("text/html", ""))))


def _lines(text: str) -> dict[str, str]:
    """Long lines without layout -> as written; imports and directives are no secret."""
    lines = {_plain(line): line.strip() for line in text.splitlines()}
    return {
        plain: line for plain, line in lines.items() if len(plain) >= _LONG and not line.startswith(("import ", "from ", ":"))
    }


def _plain(text: str) -> str:
    """Text without layout, entities and the escapes of JSON."""
    return re.sub(r"[\s\\]+", "", html.unescape(text))


def _untagged(text: str) -> str:
    return re.sub(r"<[^<>]*>", "", text)


def _files(place: Path) -> Iterator[tuple[str, str]]:
    """Name and text of each text file of a folder or an archive, and of archives in it."""
    if place.is_dir():
        for path in sorted(path for path in place.rglob("*") if path.is_file()):
            yield from _texts(str(path.relative_to(place.parent)), path.read_bytes())
    else:
        yield from _texts(place.name, place.read_bytes())


def _texts(name: str, content: bytes) -> Iterator[tuple[str, str]]:
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for inner in archive.namelist():
                yield from _texts(f"{name}/{inner}", archive.read(inner))
    elif b"\0" not in content:
        yield name, content.decode("utf-8", errors="ignore")


# ------------------------------------------------------------------------------------------------------------- for teachers
def _teacher(root: Path, folder: Path) -> None:
    folder.mkdir()
    embedded, every = build.embedded_runs(root), course.exercises(root)
    evaluated = build.evaluation(root)
    answers = {name: answer.says for name, answer in evaluated.answers.items()}
    figure = partial(build.figure, root=root)
    for path in lessons(root):
        run = embedded[path.stem]
        executed = nbformat.read(build.executed(root, run, path.stem), as_version=4)
        page = webpage.page(executed, evaluated.records[run][path.stem], root)
        provenance.write_atomically(folder / f"{path.stem}.html", page)
    parts = [
        "<h1>The course: teacher's edition</h1>",
        "<p>Slides, solutions and common mistakes. Do not pass this folder on.</p>",
    ]
    for number, lesson in enumerate(course.plan(root), 1):
        shown = list(course.slides(lesson, number, answers, figure, root))
        name, slides = f"slides_{number:02}.html", course.slide_sections(shown, webpage.markdown)
        provenance.write_atomically(
            folder / name, webpage.document(html.escape(lesson.title), slides, root, style=course.SLIDE_STYLE)
        )
        solved = dict.fromkeys(every[label].notebook for label in (*lesson.exercises, *lesson.home) if label in every)
        links = [(name, "slides"), *((f"{notebook}.html", f"solutions: {course.title(notebook, root)}") for notebook in solved)]
        parts.append(f"<h2>{number}. {html.escape(lesson.title)}</h2><p>")
        parts.append("<br>".join(f'<a href="{target}">{html.escape(text)}</a>' for target, text in links))
        parts.append(
            f"</p><p>Common mistakes:</p><ul>{''.join(f'<li>{html.escape(text)}</li>' for text in lesson.mistakes)}</ul>"
        )
    provenance.write_atomically(folder / "index.html", webpage.document("Teacher's edition", "".join(parts), root))
