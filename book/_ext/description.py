"""A description for a page that has none: its first paragraph, for search engines and for links in messages."""

from html import escape

from docutils import nodes

_LENGTH = 300  # characters


def describe(app, pagename, templatename, context, doctree):
    paragraphs = doctree.findall(nodes.paragraph) if doctree is not None else ()
    texts = (" ".join(paragraph.astext().split()) for paragraph in paragraphs)
    text = next((text for text in texts if len(text.split()) > 5), "")
    if text and 'name="description"' not in context.get("metatags", ""):
        shown = text if len(text) <= _LENGTH else f"{text[:_LENGTH].rpartition(' ')[0]} …"
        context["metatags"] = f'{context.get("metatags", "")}\n<meta name="description" content="{escape(shown)}" />'


def setup(app):
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
