"""The student edition has no solution, in whatever file; a planted line is found there."""

import json
import re
import zipfile

import nbformat
import pytest

from mobpriv.book import editions, yaml_files
from mobpriv.book.results import ROOT

LESSONS = editions.lessons(ROOT)
each = pytest.mark.parametrize("path", LESSONS, ids=[path.stem for path in LESSONS])
SECRET = editions.secret_lines(ROOT)


@each
def test_nothing_of_a_solution_stays_and_nothing_else_goes(path):
    notebook = nbformat.read(path, as_version=4)
    stripped = editions.without_solutions(notebook)
    tags = [set(cell.metadata.get("tags", [])) for cell in stripped.cells]
    assert not any(of & {"solution", "remove-cell"} for of in tags)
    assert any("check" in of for of in tags)
    text = "\n".join(cell.source for cell in stripped.cells)
    assert not re.search(r"\bsolution|\bassert\b|book\.save", text)
    assert stripped.cells[0].source.startswith("# Exercises: ")
    every = "\n".join(cell.source for cell in notebook.cells)
    for directive in ("exercise-start", "exercise-end"):
        assert text.count(directive) == every.count(directive)
    kept = [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and not {"solution", "remove-cell"} & set(cell.metadata.get("tags", []))
    ]
    assert [cell.source for cell in stripped.cells if cell.cell_type == "code"] == [cell.source for cell in kept]


def test_text_around_a_solution_in_the_same_cell_is_kept():
    source = "before\n\n:::{solution-start} a\n:label: b\n:class: dropdown\n:::\n\nhidden"
    cells = [
        nbformat.v4.new_markdown_cell(source),
        nbformat.v4.new_markdown_cell("hidden, too\n\n:::{solution-end}\n:::\n\nafter"),
    ]
    stripped = editions.without_solutions(nbformat.v4.new_notebook(cells=cells))
    assert [cell.source for cell in stripped.cells] == ["before", "after"]


def test_links_to_pages_that_a_student_lacks_become_words():
    text = "See [a term](../glossary.md), [a page](x.ipynb#part), [an address](https://example.org) and [below](#part)."
    stripped = editions.for_jupyter(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)]))
    assert stripped.cells[0].source == "See a term, a page, [an address](https://example.org) and [below](#part)."


def test_students_read_nothing_that_is_for_teachers():
    text = "For all.\n\n:::{div} teachers\nmake course\n\nSolutions.\n:::\n\nTask. Each solution runs. More.\n"
    assert editions.for_students(text) == "For all.\n\n\nTask. More.\n"
    page = editions.for_students((ROOT / "book" / "course.md").read_text(encoding="utf-8"))
    assert "{include} _generated/course.md" in page
    assert not re.search("make course|hash|[Gg]rade|solution|teachers", page)


@each
def test_each_lesson_has_lines_to_look_for_and_its_stripped_notebook_has_none(path, tmp_path):
    written = tmp_path / path.name
    nbformat.write(editions.without_solutions(nbformat.read(path, as_version=4)), written)
    assert editions.leaks([tmp_path], SECRET) == []
    written.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    assert len(editions.leaks([tmp_path], SECRET)) >= 20


LINE = next(line for line in SECRET.values() if "package" in line and "<" in line and '"' in line)


@pytest.mark.parametrize(
    "as_in",
    [
        pytest.param(lambda line: f"<pre><span>{line[:20]}</span><span>{line[20:]}</span></pre>", id="highlighted HTML"),
        pytest.param(lambda line: json.dumps({"source": [line]}), id="notebook"),
        pytest.param(lambda line: line.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;"), id="entities"),
    ],
)
def test_a_planted_line_is_found_in_a_page_and_in_an_archive_of_an_archive(as_in, tmp_path):
    (tmp_path / "page").write_text(as_in(LINE), encoding="utf-8")
    assert editions.leaks([tmp_path], SECRET) == [f"{tmp_path.name}/page: {LINE}"]
    with zipfile.ZipFile(tmp_path / "inner.whl", "w") as archive:
        archive.write(tmp_path / "page", "page")
    (tmp_path / "page").unlink()
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as archive:
        archive.write(tmp_path / "inner.whl", "inner.whl")
    (tmp_path / "inner.whl").unlink()
    assert editions.leaks([tmp_path / "outer.zip"], SECRET) == [f"outer.zip/inner.whl/page: {LINE}"]


def test_a_common_mistake_is_looked_for(tmp_path):
    (tmp_path / "page.html").write_text("<li>Times are left in UTC, so calls move between slots.</li>", encoding="utf-8")
    assert len(editions.leaks([tmp_path], SECRET)) == 1


def test_the_claims_of_the_student_edition_are_those_of_the_book(tmp_path):
    """Also their small tolerances, which JSON would write as YAML's texts."""
    for path in sorted((ROOT / "book" / "claims").glob("*.yml")):
        written = tmp_path / path.name
        written.write_text(editions.without_findings(path, {"thesis_3_lesson"}), encoding="utf-8")
        before, after = (yaml_files.content(file) for file in (path, written))
        assert after["claims"] == before["claims"]
        assert after["findings"] == [entry for entry in before["findings"] if entry["notebook"] != "thesis_3_lesson"]
