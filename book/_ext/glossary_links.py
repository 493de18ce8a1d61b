"""A term of the glossary is linked where a page uses it first: in running text, not in headings, links, code or captions.

``glossary_chapters`` in _config.yml: words that are terms in some chapters alone, or on pages whose name begins so.
``glossary_nouns``: words that are verbs as well, which are terms only behind an article, a number or an adjective.
"""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.util.nodes import make_refnode

GLOSSARY = "glossary"
LEFT_ALONE = (nodes.title, nodes.reference, nodes.literal, nodes.raw, nodes.math, nodes.FixedTextElement, nodes.thead)
LEFT_ALONE += (addnodes.glossary, addnodes.pending_xref, nodes.term)
_BEFORE = (
    "a ",
    "an ",
    "the ",
    "each ",
    "every ",
    "of ",
    "no ",
    "new ",
    "long ",
    "short ",
    "single ",
    "such ",
    "erased ",
    "real ",
)
_NOUN = f"(?:{'|'.join(f'(?<={word})' for word in _BEFORE)})"


def link(app, doctree, docname):
    page = docname.split("/")[-1]
    terms = {
        name: place
        for (kind, name), place in app.env.domains["std"].objects.items()
        if kind == "term" and any(map(page.startswith, app.config.glossary_chapters.get(name, [""])))
    }
    if docname == GLOSSARY or not terms:
        return
    # a longer term before one that it contains; an s may follow: POIs, heat maps
    words = "|".join(
        _NOUN * (name in app.config.glossary_nouns) + re.escape(name) for name in sorted(terms, key=len, reverse=True)
    )
    pattern = re.compile(rf"(?<![\w-])({words})(?=s?(?![\w-]))", re.IGNORECASE)
    of = {name.lower(): place for name, place in terms.items()}
    seen = set()
    for text in list(doctree.findall(nodes.Text)):
        if not _left_alone(text):
            parts = list(_parts(text.astext(), pattern, of, seen, app.builder, docname))
            if len(parts) > 1:
                text.parent.replace(text, parts)


def _left_alone(node) -> bool:
    while node is not None:
        if isinstance(node, LEFT_ALONE):
            return True
        node = node.parent
    return False


def _parts(text, pattern, of, seen, builder, docname):
    """The text in pieces, its first uses of terms as links."""
    at = 0
    for found in pattern.finditer(text):
        name = found[1].lower()
        if name not in seen:
            seen.add(name)
            page, label = of[name]
            yield nodes.Text(text[at : found.start()])
            yield make_refnode(builder, docname, page, label, nodes.inline("", found[0], classes=["glossary-term"]), found[0])
            at = found.end()
    yield nodes.Text(text[at:])


def setup(app):
    app.add_config_value("glossary_chapters", {}, "env")
    app.add_config_value("glossary_nouns", [], "env")
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
