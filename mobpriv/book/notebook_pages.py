"""Executed notebooks as a page of the book: answer and figure first, code folded, verdicts and provenance last."""

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import nbformat

from mobpriv.base.numbers import NARROW
from mobpriv.book.self_checks import CHECK

_HIDDEN = {"hide-input", "remove-input", "remove-cell"}
_SOLUTION = "solution"  # tag of a cell in the (folded) solution of an exercise: its code stays visible in its place
_SET_UP = {"parameters", "injected-parameters", "quick", "input"}
_SYNTHETIC = """:::{{div}} synthetic
**Synthetic data.** All people and vehicles in the {title} are invented.
:::"""
_SELECTION = ":::{div} selection"
_FOLDED = ("set-up", "experiment")  # titles of the folds
_LINK = 'The {kind} that belongs here is <a class="further-up" href="#{place}">further up on this page</a>.'
_HEADING = re.compile(r"^(?=#+ )", re.MULTILINE)


class Part(NamedTuple):
    """A notebook on a page."""

    name: str
    executed: nbformat.NotebookNode
    opening: str  # MyST below its title
    synthetic: str = ""  # name of the synthetic data that it uses


def page(parts: Sequence[Part], closing: Iterable[tuple[str, str]], number: Callable[[], str]) -> nbformat.NotebookNode:
    """The page of executed notebooks: the first gives the title, each further one is a section.

    ``closing``: (id, MyST) of the sections after the notebooks.
    ``number``: gives the next number for a figure without a number of its paper.
    """
    main, *further = parts
    notebook = nbformat.from_dict(main.executed)
    cells = results_first(opened(notebook.cells, main.opening, main.synthetic))
    for part in further:
        cells += _section(part, "" if part.synthetic == main.synthetic else part.synthetic)
    figure_code = [cell.source for cell in cells if _kind(cell) == "figure"]
    synthetic = {part.name: part.synthetic for part in further}
    notebook.cells = [
        shown for cell in _folded(cells) for shown in _with_its_data_below(cell, synthetic.get(part_of(cell), main.synthetic))
    ]
    notebook.cells = _each_selection_once(notebook.cells)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = numbered("".join(output.data["text/html"]), number)
    notebook.cells += [_markdown(text, name) for name, text in closing]
    if figure_code:
        code, title = "\n\n".join(figure_code), "The code of the figures and tables\n:class-container: drawing"
        notebook.cells.append(_markdown(f"::::{{dropdown}} {title}\n\n```python\n{code}\n```\n::::", "drawing"))
    return notebook


def _markdown(text: str, name: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(text, id=f"mobpriv-{name}")


def _section(part: Part, synthetic: str) -> list:
    """The cells of a notebook as a section with its own target, headings a level lower; ``synthetic``: data to name, if any."""
    opening = re.sub(r"(?s)^```\{eval-rst\}.*?^```\n", "", part.opening, flags=re.MULTILINE)  # a page has one description
    cells = results_first(opened(nbformat.from_dict(part.executed).cells, opening, synthetic), f"result-{part.name}")
    cells[0].source = f"({part.name})=\n{cells[0].source}"
    for i, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            text, *blocks = re.split(r"(?s)(^(?:```|~~~).*?^(?:```|~~~)[^\n]*$)", cell.source, flags=re.MULTILINE)
            lower = [_HEADING.sub("#", words) if j % 2 == 0 else words for j, words in enumerate([text, *blocks])]
            cell.source = "".join(lower)
        cell.id, cell.metadata["part"] = f"{part.name}-{i}", part.name
    return cells


def _each_selection_once(cells: list) -> list:
    """The cells without the line on the data of a notebook that reads the same data as an earlier one of the page."""
    first = {cell.source: i for i, cell in reversed([*enumerate(cells)])}
    return [cell for i, cell in enumerate(cells) if not cell.source.startswith(_SELECTION) or first[cell.source] == i]


def part_of(cell) -> str:
    """The notebook whose section a cell of a page is in; "" in the first notebook of a page."""
    return cell.metadata.get("part", "")


def numbered(html: str, number: Callable[[], str]) -> str:
    """HTML in which every figure has a number."""
    empty = '<span class="figure-number"></span>'
    return re.sub(re.escape(empty), lambda _: f'<span class="figure-number">Figure {number()}.</span>', html)


def opened(cells: list, opening: str = "", synthetic: str = "") -> list:
    """The cells with the opening below the title; the first paragraph becomes a cell of its own, after the note on ``synthetic`` data."""
    first, *others = cells if cells and cells[0].cell_type == "markdown" else [_markdown("", "title"), *cells]
    title, rest = re.match(r"((?:\([\w-]+\)=\n)?# [^\n]*\n?|)(.*)", first.source, re.DOTALL).groups()
    top = nbformat.from_dict({**first, "source": f"{title.strip()}\n\n{opening.strip()}".strip()})
    introduction = f"{_SYNTHETIC.format(title=synthetic) if synthetic else ''}\n\n{rest.strip()}".strip()
    return [top, *([_markdown(introduction, "introduction")] if introduction else []), *others]


def headlines(cells: Iterable) -> list[nbformat.NotebookNode]:
    """The cells with a page's main results: those tagged ``headline``, else the first figure outside a solution."""
    tagged = [(cell, cell.metadata.get("tags", [])) for cell in cells]
    drawn = [cell for cell, tags in tagged if "figure" in tags and _SOLUTION not in tags and "<figure" in html_of(cell)]
    return [cell for cell, tags in tagged if "headline" in tags] or drawn[:1]


def html_of(cell) -> str:
    """The HTML of a cell's outputs."""
    return "".join("".join(output["data"].get("text/html", "")) for output in cell.outputs if "data" in output)


def results_first(cells: list, place: str = "result") -> list:
    """The cells with the main results behind the first cell, and a link where they were; exercises keep their order.

    ``place``: the id of the place of the main results.
    """
    main = headlines(cells)
    if not main or any(_SOLUTION in cell.metadata.get("tags", []) for cell in cells):
        return cells
    top, *others = cells
    top.source += f'\n\n<div id="{place}"></div>'
    return [top, *main, *(_link(cell, place) if cell in main else cell for cell in others)]


def _link(result, place: str) -> nbformat.NotebookNode:
    """The line that leads from a section to its main result."""
    kind = "figure" if "<figure" in html_of(result) else "table"
    return _markdown(_LINK.format(place=place, kind=kind), f"link-{result.id}")


def _kind(cell) -> str:
    """figure, set-up or experiment; "" for text and for cells whose code is hidden or in a solution."""
    tags = set(cell.metadata.get("tags", []))
    if cell.cell_type != "code" or tags & {*_HIDDEN, _SOLUTION, CHECK}:
        return ""
    if "figure" in tags:
        return "figure"
    only_imports = all(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.parse(cell.source).body)
    return "set-up" if tags & _SET_UP or only_imports else "experiment"


def _folded(cells: list) -> list:
    """The cells with adjacent cells of one kind merged and folded; code of figures moves to the end of the page."""
    merged = []
    for cell in cells:
        kind = _kind(cell)
        if kind in _FOLDED and merged and _kind(merged[-1]) == kind and not merged[-1].outputs:
            before = merged[-1]
            tags = sorted({*before.metadata.tags, *cell.metadata.get("tags", [])})
            before.source, before.outputs = f"{before.source}\n\n{cell.source}", cell.outputs
            before.metadata["tags"] = tags
            continue
        if cell.cell_type == "code":
            cell.metadata.setdefault("tags", [])
        merged.append(cell)
    for cell in merged:
        kind = _kind(cell)
        if kind == "figure":
            cell.metadata["tags"] = [*cell.metadata.tags, "remove-input"]
        elif CHECK in cell.metadata.get("tags", []):
            cell.metadata["tags"] = [*cell.metadata.tags, "remove-output"]  # it asks for a number: on a page nobody can give it
        elif kind in _FOLDED:
            cell.metadata["tags"] = [*cell.metadata.tags, "hide-input"]
            cell.metadata["mystnb"] = {
                f"code_prompt_{verb}": f"{verb.capitalize()} the code: {kind}" for verb in ("show", "hide")
            }
    return merged


def _with_its_data_below(cell, title: str) -> list:
    """The printed selection of a cell that reads data, as a line of text below the cell; ``title``: of synthetic data, else ""."""
    if "input" not in cell.metadata.get("tags", []) or cell.cell_type != "code":
        return [cell]
    printed = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    cell.outputs = [output for output in cell.outputs if output.output_type != "stream"]
    lines = [line.strip().rstrip(".") for line in printed.splitlines()]
    text = " ".join(f"{line[0].upper()}{line[1:]}." for line in lines if line)
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", NARROW, text)
    label = f"**Data ({title}).**" if title else "**Data.**"
    return [cell, _markdown(f"{_SELECTION}\n{label} {text}\n:::", f"data-{cell.id}")] if text else [cell]
