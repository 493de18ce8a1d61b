"""The course: its plan (``book/course.yml``), its page, and the slides of a lesson."""

import html
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import nbformat

from mobpriv.book import merged, notebooks, yaml_files

_WORDS_A_MINUTE = 100  # of a reader who wants to understand


class Lesson(NamedTuple):
    """A lesson of 90 minutes."""

    title: str
    goals: str
    needs: str
    read: list[str]  # pages: names of files in book/ or notebooks/
    exercises: dict[str, int]  # label -> minutes, in the lesson
    home: dict[str, int]  # label -> minutes, of further exercises
    hand_in: str
    mistakes: list[str]  # for teachers


class Exercise(NamedTuple):
    notebook: str
    title: str


def plan(root: Path) -> list[Lesson]:
    """The lessons in order, none without a plan; one-line ValueError for a field that is missing or unknown."""
    file, lessons = root / "book" / "course.yml", []
    for number, entry in enumerate(yaml_files.content(file) if file.is_file() else (), 1):
        if set(entry) != set(Lesson._fields):
            raise ValueError(
                f"book/course.yml, lesson {number}: the fields are {', '.join(Lesson._fields)} (got {', '.join(entry)})"
            )
        lessons.append(Lesson(**entry))
    return lessons


def exercises(root: Path) -> dict[str, Exercise]:
    """Label -> exercise, of all lesson notebooks."""
    found = {}
    for path in sorted((root / "notebooks").glob("*_lesson.ipynb")):
        text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")
        for title, label in re.findall(r"^:::\{exercise-start\} (.+)\n:label: (\S+)$", text, re.MULTILINE):
            found[label] = Exercise(path.stem, title)
    return found


def page(root: Path) -> str:
    """The lessons in MyST, for ``book/course.md``; the pages that it names are written already."""
    every, parts = exercises(root), []
    for number, lesson in enumerate(plan(root), 1):
        minutes = math.ceil(sum(words(name, root) for name in lesson.read) / _WORDS_A_MINUTE)
        read = [f"[{title(name, root)}]({address(name, root)})" for name in lesson.read]
        do, home = (_timed(asked, every) for asked in (lesson.exercises, lesson.home))
        parts.append(
            f"### {number}. {lesson.title}\n\n"
            f"**You learn to** {lesson.goals}. **You need:** {lesson.needs}.\n\n"
            f"- Read, {minutes} min:\n{_indented(read)}"
            f"- Do in the lesson, {sum(lesson.exercises.values())} min:\n{do}"
            + (f"- Do at home, {sum(lesson.home.values())} min:\n{home}" if home else "")
            + f"- Hand in: {lesson.hand_in}\n"
        )
    return "\n".join(parts)


def _timed(asked: Mapping[str, int], every: Mapping[str, Exercise]) -> str:
    """A line an exercise, with its minutes and its file; ``project`` is no exercise of a notebook."""
    lines = {label: f"[The project]({label})" for label in asked}
    lines |= {label: f"[{every[label].title}]({label}) (`{every[label].notebook}.ipynb`)" for label in asked if label in every}
    return _indented([f"{lines[label]}, {minutes} min" for label, minutes in asked.items()])


def _indented(items: list[str]) -> str:
    """A list inside a list, an item a line: titles may be questions, which commas would run together."""
    return "".join(f"  - {item}\n" for item in items)


def _is_notebook(name: str, root: Path) -> bool:
    return (root / "notebooks" / f"{name}.ipynb").is_file()


def address(name: str, root: Path) -> str:
    return f"notebooks/{name}.ipynb" if _is_notebook(name, root) else f"{name}.md"


def title(name: str, root: Path) -> str:
    """The title of a page."""
    if _is_notebook(name, root):
        return notebooks.title(name, root)
    return re.search(r"^# (.+)$", (root / "book" / f"{name}.md").read_text(encoding="utf-8"), re.MULTILINE)[1]


_BELOW = ("mobpriv-below", "mobpriv-provenance", "mobpriv-drawing")  # cells of a page after its notebook


def words(name: str, root: Path) -> int:
    """The number of words that a reader sees on a page, without folds, code and tables of numbers."""
    if _is_notebook(name, root):
        text = "\n\n".join(c.source for c in merged.cells(name, root) if c.cell_type == "markdown" and c.id not in _BELOW)
    else:
        text = (root / "book" / f"{name}.md").read_text(encoding="utf-8")
    text = re.sub(r"<details.*?</details>|^```.*?^```|^\$\$.*?\$\$|^:::[^\n]*$", " ", text, flags=re.DOTALL | re.MULTILINE)
    return len(re.findall(r"\w[\w'’.-]*", re.sub(r"\]\([^)]*\)|<[^>]+>|\{\w+\}`", " ", text)))


# ----------------------------------------------------------------------------------------------------------------- slides
SLIDE_STYLE = """
section.slide { min-height: 100vh; padding: 4vh 5vw; border-bottom: 1px solid var(--pst-color-border); scroll-snap-align: start; }
html { scroll-snap-type: y proximity; font-size: 1.15rem; } main { max-width: 78rem; }
@media print { section.slide { break-after: page; border: 0; min-height: 0; } }
"""


class Slide(NamedTuple):
    title: str
    sentence: str  # MyST
    figure: str  # HTML, "" if the page has none


def slides(lesson: Lesson, number: int, answers: Mapping[str, str], figure, root: Path) -> Iterator[Slide]:
    """A slide for the lesson, then one for each page that it reads: the question, the answer, the figure.

    ``answers``: notebook -> its answer; ``figure``: function of a notebook's name.
    """
    yield Slide(f"{number}. {lesson.title}", f"You learn to {lesson.goals}.", "")
    for name in lesson.read:
        if _is_notebook(name, root):
            yield Slide(title(name, root), answers.get(name, ""), figure(name))


def slide_sections(shown: list[Slide], to_html) -> str:
    """The slides as HTML, one a screen and one a sheet on paper; ``to_html``: of MyST."""
    return "".join(
        f'<section class="slide"><{head}>{html.escape(slide.title)}</{head}>{to_html(slide.sentence)}{slide.figure}</section>'
        for head, slide in zip(("h1", *("h2" for _ in shown[1:])), shown, strict=True)
    )
