"""Every page of exercises: each has a folded solution, whose cells are run and check themselves, and most check the reader's number."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

from mobpriv.book import course, quantities, runs, self_checks
from mobpriv.book.results import ROOT

LESSONS = sorted((ROOT / "notebooks").glob("*_lesson.ipynb"))
assert LESSONS
each = pytest.mark.parametrize("path", LESSONS, ids=[path.stem for path in LESSONS])
DIRECTIVE = re.compile(r"^:::\{((?:exercise|solution)-(?:start|end))\}[ \t]*(.*)$", re.MULTILINE)


def parts(path: Path) -> list[tuple[str, str, list]]:
    """What stands where: "exercise" with its label, or "solution" with its exercise's, and the code cells within; "" outside of both."""
    closed, inside = [], ("", "", [])
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            inside[2].append(cell)
            continue
        for directive, argument in DIRECTIVE.findall(cell.source):
            kind, end = directive.split("-")
            closed.append(inside)
            if end == "end":
                assert inside[0] == kind, f"{directive} without its start"
                inside = ("", "", [])
            else:
                label = argument.strip() if kind == "solution" else re.search(r"^:label: (\S+)$", cell.source, re.MULTILINE)[1]
                inside = (kind, label, [])
    assert inside[0] == "", "the last directive is closed"
    return [*closed, inside]


def asserts(cell) -> bool:
    return any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(cell.source)))


@each
def test_three_to_six_exercises_each_followed_by_its_solution(path: Path):
    order = [(kind, label) for kind, label, _ in parts(path) if kind]
    exercises = [label for kind, label in order if kind == "exercise"]
    assert 3 <= len(exercises) == len(set(exercises)) <= 6
    assert order == [(kind, label) for label in exercises for kind in ("exercise", "solution")]


@each
def test_every_solution_is_run_and_checks_itself_and_no_other_cell_is_tagged(path: Path):
    for kind, label, cells in parts(path):
        if kind == "solution":
            assert any(asserts(cell) for cell in cells), f"{label} asserts nothing"
        given = [cell for cell in cells if self_checks.CHECK not in cell.metadata.get("tags", [])]
        assert not given or kind != "exercise", f"{label} gives code away"
        for cell in cells:
            assert ("solution" in cell.metadata.get("tags", [])) == (kind == "solution"), cell.source


@each
def test_most_exercises_check_a_number_and_none_shows_it(path: Path):
    """At most two cannot be checked: the open-ended one, and a proof or a number that another seed changes."""
    in_exercises = [cell for kind, _, cells in parts(path) if kind == "exercise" for cell in cells]
    asked = list(self_checks.questions(nbformat.read(path, as_version=4), path.stem))  # refuses a cell that holds more
    assert len(asked) == len(in_exercises), "checks are within exercises"
    unchecked = [label for kind, label, cells in parts(path) if kind == "exercise" and not cells]
    assert len(unchecked) <= 2
    names = quantities.read(ROOT, runs.read(ROOT).runs)
    assert all(names.find(path.stem, question.quantity) for question in asked)


@each
def test_the_course_uses_each_lesson(path: Path):
    planned = {label for lesson in course.plan(ROOT) for label in lesson.exercises}
    assert planned & {label for label, exercise in course.exercises(ROOT).items() if exercise.notebook == path.stem}


@each
def test_solutions_are_folded(path: Path):
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")
    starts = re.findall(r"^:::\{solution-start\}.*?^:::$", text, re.MULTILINE | re.DOTALL)
    assert starts
    assert all(":class: dropdown" in start for start in starts)
