"""An executed notebook as a page: its answer under the title, code in few folds, figures numbered."""

from itertools import count

import nbformat
import pytest

from mobpriv.book import notebook_pages
from mobpriv.book.notebook_pages import numbered

STREAM = {"output_type": "stream", "name": "stdout", "text": "12 users, 3 halves.\nanother line\n"}


def code(source: str, *tags: str, outputs=()):
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)} if tags else {})
    cell.outputs = [nbformat.from_dict(output) for output in outputs]
    return cell


def figure(html: str) -> dict:
    return {"output_type": "display_data", "metadata": {}, "data": {"text/html": html}}


def notebook(*cells):
    title = nbformat.v4.new_markdown_cell("(label)=\n# Figure 1: a title\n\n**The claim.** Words.")
    return nbformat.v4.new_notebook(cells=[title, *cells])


USUAL = (
    code("seed: int = 1", "parameters"),
    code("seed = 2", "injected-parameters"),
    code("seed = 1 if quick else seed", "quick"),
    code("import numpy as np\nfrom pathlib import Path"),
    code("data = load(dataset)\nprint(data)", "input", outputs=[STREAM]),
    code("x = 1"),
    code("y = x"),
    nbformat.v4.new_markdown_cell("## The figure"),
    code("show(y)", "figure", outputs=[figure('<figure><span class="figure-number"></span></figure>')]),
    code("save(y)", "remove-cell"),
)


def page(*cells, opening="OPENING", closing=(), synthetic="synthetic region"):
    numbers = count(1)
    return notebook_pages.page(notebook(*(cells or USUAL)), opening, closing, lambda: f"R{next(numbers)}", synthetic).cells


def test_the_answer_stands_between_the_title_and_the_first_words():
    first = page()[0].source
    assert first.startswith("(label)=\n# Figure 1: a title\n\nOPENING\n\n")
    assert first.index("Synthetic data") < first.index("the synthetic region exists") < first.index("**The claim.**")
    assert "Synthetic" not in page(synthetic="")[0].source


def test_one_fold_for_the_set_up_and_one_for_the_experiment():
    folds = [cell for cell in page() if "hide-input" in cell.metadata.get("tags", [])]
    assert [cell.source.splitlines()[0] for cell in folds] == ["seed: int = 1", "x = 1"]
    assert [cell.metadata["mystnb"]["code_prompt_show"] for cell in folds] == [
        "Show the code: set-up",
        "Show the code: experiment",
    ]
    assert folds[0].source.endswith("print(data)")


def test_nothing_that_was_run_gets_lost():
    cells = page()
    programs = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    for source in ("seed = 2", "import numpy as np", "data = load", "x = 1", "y = x", "show(y)", "save(y)"):
        assert programs.count(source) == 1


def test_what_was_read_stands_in_words_below_the_set_up():
    data = next(cell for cell in page() if cell.source.startswith(":::{div} selection"))
    assert "**Data.** 12 users, 3 halves. Another line." in data.source
    assert data.cell_type == "markdown"


def test_the_code_of_a_figure_stands_at_the_end():
    cells = page(closing=[("verdicts", "VERDICTS")])
    drawn = next(cell for cell in cells if cell.get("outputs") and "figure" in cell.metadata.tags)
    assert "remove-input" in drawn.metadata.tags
    assert [cell.source for cell in cells[-2:]] == [
        "VERDICTS",
        "::::{dropdown} The code of the figures and tables\n:class-container: drawing\n\n```python\nshow(y)\n```\n::::",
    ]


def test_a_cell_with_an_output_keeps_its_place():
    """The next cell's fold does not swallow it."""
    cells = page(code("a = 1\nprint(a)", outputs=[STREAM]), code("b = 2"))
    assert [cell.source for cell in cells[1:]] == ["a = 1\nprint(a)", "b = 2"]


def test_figures_without_a_number_of_their_paper_s_are_numbered_in_order():
    empty = '<span class="figure-number"></span>'
    numbers = count(4)
    html = numbered(f'{empty}<span class="figure-number">Figure 3.4.</span>{empty}', lambda: f"R{next(numbers)}")
    assert [part.split("<")[0] for part in html.split('number">')[1:]] == ["Figure R4.", "Figure 3.4.", "Figure R5."]
    drawn = [cell for cell in page() if cell.get("outputs")]
    assert "Figure R1." in drawn[-1].outputs[0]["data"]["text/html"]


@pytest.mark.parametrize("source", ["# Alone", "# With a line\n\n\n"])
def test_a_title_without_words_below_it(source):
    made = notebook_pages.page(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(source)]), "", (), lambda: "R1", False
    )
    assert made.cells[0].source == source.strip()


def test_a_solution_keeps_its_cells_and_shows_their_code():
    """It is a fold itself: no fold within, nothing moved to the end, no two cells made one."""
    cells = page(
        code("x = 1"),
        nbformat.v4.new_markdown_cell(":::{solution-start} one\n:::"),
        code("y = x", "solution"),
        code("show(y)", "solution", "figure", outputs=[figure("<p>1</p>")]),
        nbformat.v4.new_markdown_cell(":::{solution-end}\n:::"),
        code("z = 1"),
    )
    assert [cell.source for cell in cells[2:7]] == [
        ":::{solution-start} one\n:::",
        "y = x",
        "show(y)",
        ":::{solution-end}\n:::",
        "z = 1",
    ]
    hidden = {tag for cell in cells[3:5] for tag in cell.metadata.tags} & {"hide-input", "remove-input"}
    assert not hidden
    assert not any("The code of the figures" in cell.source for cell in cells)
