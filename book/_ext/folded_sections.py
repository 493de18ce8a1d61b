"""A page shows its first sections; the later ones, long tables, and the list of the paper's claims are behind folds.

What a reader sees at once stays within some words and tables, whatever a notebook computes. Nothing is left out: a fold opens without a
script, on paper, and where a link leads into it.
"""

import re

from docutils import nodes

WORDS, TABLES = 1150, 4  # on a page at once
WORDS_OF_SEVERAL = 950  # on a page with several notebooks, whose openings and figures come on top
ROWS, CELLS = 15, 250  # rows and words of a table that is shown at once
CLAIMS, FOUND, REPEAT = "The paper's claims on this page", "What else we found", "Repeat this page"


def fold(app, doctree):
    """Folds the sections of a notebook's page behind those that fit; the first is open up to its fourth table.

    A further notebook of the page is seen up to its first figure; this is counted before the sections are.
    """
    name = app.env.docname
    if not name.startswith("notebooks/") or name.endswith("_lesson"):  # exercises are worked through from the first to the last
        return
    page = next(doctree.findall(nodes.section), None)
    for raw in page.findall(nodes.raw) if page else ():
        raw[:] = [nodes.Text(re.sub(r'(?s)<div class="numbers-box">.*?</table></div>', _long_folded, raw.astext()))]
    further = [part for part in page.children if _is_notebook(part)] if page else []
    heads = [child for part in further for child in part.children[: _head(part)]]
    words, tables = (
        sum(sizes) for sizes in zip((WORDS - WORDS_OF_SEVERAL if further else 0, 0), *map(_size, heads), strict=True)
    )
    first, never = True, {REPEAT} if further else {REPEAT, FOUND}
    for part in page.children if page else ():
        for section in part.children[_head(part) :] if part in further else [part]:
            words, tables = _fold_section(section, words, tables, first, never)
            first = first and not _title(section)


def _fold_section(part: nodes.Node, words: int, tables: int, first: bool, never: set[str]) -> tuple[int, int]:
    """Folds a part of the page that does not fit behind ``words`` and ``tables``, but none of ``never``; returns both with it."""
    title = _title(part)
    if title == CLAIMS:
        _behind(part, "Show the claims")
        return words, tables
    tables_before = tables
    own_words, own_tables = _size(part)
    words, tables = words + own_words, tables + own_tables
    if title and title not in never and (words > WORDS or tables > TABLES):
        if not first:
            _behind(part, "Show this section")
        elif tables > TABLES:
            _behind(part, "Show the rest of this section", _fitting(part, TABLES - tables_before))
        words, tables = WORDS + 1, TABLES + 1  # the later sections, too
    return words, tables


def _title(part: nodes.Node) -> str:
    return part[0].astext().replace("\u2019", "'") if isinstance(part, nodes.section) else ""


def _is_notebook(part: nodes.Node) -> bool:
    """Whether a section is a further notebook of the page: only these open with an answer."""
    return isinstance(part, nodes.section) and any(
        "answer" in child.get("classes", ()) for child in part.findall(nodes.container)
    )


def _head(notebook: nodes.section) -> int:
    """The number of children of a further notebook up to its main figure; without one, up to its first section."""
    for i, child in enumerate(notebook.children):
        if isinstance(child, nodes.section):
            return i
        if any("<figure" in raw.astext() for raw in child.findall(nodes.raw)):
            return i + 1
    return len(notebook.children)


def _long_folded(table: re.Match) -> str:
    """A table as it is, or behind a fold if it is long."""
    rows, words = table[0].count('<th scope="row"'), len(re.sub("<[^>]+>", " ", table[0]).split())
    summary = f'<details class="more"><summary>Show the table ({rows} rows)</summary>{table[0]}</details>'
    return summary if rows > ROWS or words > CELLS else table[0]


def _fitting(section: nodes.section, tables: int) -> int:
    """The number of children of a section, its title included, that hold at most so many tables."""
    for i, part in enumerate(section.children):
        tables -= _size(part)[1]
        if tables < 0:
            return max(i, 1)
    return len(section)


def _size(part: nodes.Node) -> tuple[int, int]:
    """Words and tables of a part, folded code and drawings aside."""
    words = tables = 0
    for node in part.findall(nodes.Text):
        if not _hidden(node, part):
            words += len(node.split())
    for raw in part.findall(nodes.raw):
        html = re.sub(r"(?s)<(svg|script|style|details).*?</\1>", " ", raw.astext())
        words, tables = words + len(re.sub("<[^>]+>", " ", html).split()), tables + html.count("<table")
    return words, tables + sum(1 for _ in part.findall(nodes.table))


def _hidden(node: nodes.Node, part: nodes.Node) -> bool:
    while node is not part:
        node = node.parent
        if isinstance(node, nodes.literal_block | nodes.raw | nodes.comment):
            return True
    return False


def _behind(section: nodes.section, summary: str, first: int = 1) -> None:
    """Fold the children of a section from the ``first`` on."""
    section.append(nodes.raw("", "</details>", format="html"))
    section.insert(first, nodes.raw("", f'<details class="more"><summary>{summary}</summary>', format="html"))


def setup(app):
    app.connect("doctree-read", fold, priority=900)  # behind what links and numbers
    return {"parallel_read_safe": True, "parallel_write_safe": True}
