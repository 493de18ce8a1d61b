"""An executed notebook as a page: its answer under the title, code in few folds, figures numbered."""

from itertools import count

import nbformat

from mobpriv.book import notebook_pages
from mobpriv.book.notebook_pages import Part, numbered

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


def page(*cells, opening="OPENING", closing=(), synthetic="synthetic region", further=()):
    numbers, main = count(1), Part("nb", notebook(*(cells or USUAL)), opening, synthetic)
    return notebook_pages.page([main, *further], closing, lambda: f"R{next(numbers)}").cells


def test_the_answer_stands_between_the_title_and_the_first_words():
    first, words = page(code("x = 1"))[:2]
    assert first.source == "(label)=\n# Figure 1: a title\n\nOPENING"
    assert words.source.startswith(
        ":::{div} synthetic\n**Synthetic data.** All people and vehicles in the synthetic region are invented."
    )
    assert words.source.endswith("\n\n**The claim.** Words.")
    assert page(code("x = 1"), synthetic="")[1].source == "**The claim.** Words."
    for source in ("# Alone", "# With a line\n\n\n"):  # no words below the title
        alone = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(source)])
        assert notebook_pages.page([Part("nb", alone, "")], (), lambda: "R1").cells[0].source == source.strip()


def drawn(words: str, *tags: str):
    html = f'<figure><span class="figure-number"></span>{words}</figure>'
    return code(f"show({words})", "figure", *tags, outputs=[figure(html)])


def test_the_main_figure_follows_the_answer_and_has_the_first_number():
    """A link remains where it was."""
    for tag, main, other in (((), "one", "two"), (("headline",), "two", "one")):
        cells = page(code("table()", "figure"), drawn("one"), code("x = 1"), drawn("two", *tag))
        assert f"Figure R1.</span>{main}" in notebook_pages.html_of(cells[1])
        assert f"Figure R2.</span>{other}" in "".join(notebook_pages.html_of(cell) for cell in cells[2:] if "outputs" in cell)
        assert [cell.source for cell in cells if "#result" in cell.source] == [
            'The figure that belongs here is <a class="further-up" href="#result">further up on this page</a>.'
        ]
        assert cells[0].source.endswith('<div id="result"></div>')
        assert notebook_pages.headlines(cells) == [cells[1]]


def test_a_further_notebook_is_a_section_with_its_own_answer_figure_and_target():
    words = nbformat.v4.new_markdown_cell("## Details\n\n```python\n# a comment\n```\n\n### More")
    opening = "```{eval-rst}\n.. meta::\n   :description: Three.\n```\n\n::::{div} answer\n**Three.**\n::::"
    second = Part("second", notebook(code("x = 2"), words, drawn("two")), opening, "synthetic city")
    cells = page(drawn("one"), further=[second], closing=[("below", "## Repeat")])
    part = [cell for cell in cells if notebook_pages.part_of(cell) == "second"]
    assert part[0].source == (
        '(second)=\n(label)=\n## Figure 1: a title\n\n::::{div} answer\n**Three.**\n::::\n\n<div id="result-second"></div>'
    )
    assert "Figure R2.</span>two" in notebook_pages.html_of(part[1])
    assert "invented" in part[2].source  # the second notebook uses other synthetic data
    assert [cell.source for cell in part if cell.source.startswith("###")] == [
        "### Details\n\n```python\n# a comment\n```\n\n#### More"
    ]
    assert any('href="#result-second"' in cell.source for cell in part)
    assert [notebook_pages.part_of(cell) for cell in cells if cell not in part] == [""] * (len(cells) - len(part))
    assert len({cell.id for cell in cells}) == len(cells)
    assert cells[-1].source.count("show(") == 2  # the code of the figures of both


def test_the_data_that_two_notebooks_use_are_named_once_on_a_page():
    second = Part("second", notebook(*USUAL), "", "synthetic region")
    cells = page(further=[second])
    assert [sum(words in cell.source for cell in cells) for words in ("invented", "12 users, 3 halves")] == [1, 1]
    other = Part("other", notebook(*USUAL), "", "synthetic city")
    assert sum("12 users, 3 halves" in cell.source for cell in page(further=[other])) == 2  # of another data set


def test_a_notebook_without_a_title_keeps_its_cells():
    words = nbformat.v4.new_markdown_cell("Words.")
    assert [cell.source for cell in notebook_pages.opened([words, code("x = 1")])] == ["", "Words.", "x = 1"]
    assert [cell.source for cell in notebook_pages.opened([code("x = 1")])] == ["", "x = 1"]


def test_all_cells_tagged_as_headlines_come_first():
    cells = page(drawn("one"), code("print(goal)", "figure", "headline"), drawn("two", "headline"))
    assert [cell.source for cell in cells[1:3]] == ["print(goal)", "show(two)"]
    assert sum("#result" in cell.source for cell in cells) == 2


def test_a_page_without_a_main_figure_and_a_lesson_keep_their_order():
    lesson = page(code("x = 1"), drawn("one"), code("y = 2", "solution"), drawn("two", "solution"))
    assert [cell.source for cell in lesson[2:6]] == ["x = 1", "show(one)", "y = 2", "show(two)"]
    tables = page(code("x = 1"), code("table()", "figure", outputs=[figure("<table></table>")]))
    assert [cell.source for cell in tables[2:4]] == ["x = 1", "table()"]
    assert notebook_pages.headlines(tables) == []


def test_one_fold_for_the_set_up_and_one_for_the_experiment():
    cells = page()
    folds = [cell for cell in cells if "hide-input" in cell.metadata.get("tags", [])]
    assert [cell.source.splitlines()[0] for cell in folds] == ["seed: int = 1", "x = 1"]
    prompts = [cell.metadata["mystnb"]["code_prompt_show"] for cell in folds]
    assert prompts == ["Show the code: set-up", "Show the code: experiment"]
    assert folds[0].source.endswith("print(data)")
    data = cells[cells.index(folds[0]) + 1]  # below it stands in words what was read
    assert data.source.startswith(":::{div} selection")
    assert (data.cell_type, "**Data (synthetic region).** 12 users, 3 halves. Another line." in data.source) == (
        "markdown",
        True,
    )


def test_nothing_that_was_run_gets_lost():
    cells = page()
    programs = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    for source in ("seed = 2", "import numpy as np", "data = load", "x = 1", "y = x", "show(y)", "save(y)"):
        assert programs.count(source) == 1


def test_the_code_of_a_figure_stands_at_the_end():
    cells = page(closing=[("verdicts", "VERDICTS")])
    drawn = next(cell for cell in cells if cell.get("outputs") and "figure" in cell.metadata.tags)
    assert "remove-input" in drawn.metadata.tags
    assert cells[-2].source == "VERDICTS"
    assert cells[-1].source.startswith("::::{dropdown} ")
    assert cells[-1].source.endswith("```python\nshow(y)\n```\n::::")


def test_a_cell_with_an_output_keeps_its_place():
    """The next cell's fold does not swallow it."""
    cells = page(code("a = 1\nprint(a)", outputs=[STREAM]), code("b = 2"))
    assert [cell.source for cell in cells[2:]] == ["a = 1\nprint(a)", "b = 2"]


def test_figures_without_a_number_of_their_paper_s_are_numbered_in_order():
    empty = '<span class="figure-number"></span>'
    numbers = count(4)
    html = numbered(f'{empty}<span class="figure-number">Figure 3.4.</span>{empty}', lambda: f"R{next(numbers)}")
    assert [part.split("<")[0] for part in html.split('number">')[1:]] == ["Figure R4.", "Figure 3.4.", "Figure R5."]
    drawn = [cell for cell in page() if cell.get("outputs")]
    assert "Figure R1." in drawn[-1].outputs[0]["data"]["text/html"]


def test_a_solution_keeps_its_cells_and_shows_their_code():
    """It is a fold itself: no fold within, nothing moved to the end, no two cells made one."""
    start, end = ":::{solution-start} one\n:::", ":::{solution-end}\n:::"
    cells = page(
        code("x = 1"),
        nbformat.v4.new_markdown_cell(start),
        code("y = x", "solution"),
        code("show(y)", "solution", "figure", outputs=[figure("<p>1</p>")]),
        nbformat.v4.new_markdown_cell(end),
        code("z = 1"),
    )
    assert [cell.source for cell in cells[3:8]] == [start, "y = x", "show(y)", end, "z = 1"]
    assert not {tag for cell in cells[4:6] for tag in cell.metadata.tags} & {"hide-input", "remove-input"}
    assert not any("The code of the figures" in cell.source for cell in cells)
