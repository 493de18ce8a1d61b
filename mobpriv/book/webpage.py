"""An executed notebook as one HTML file that needs nothing beside it: pictures inside, no request to anywhere."""

import html
import importlib.util
import re
from copy import deepcopy
from pathlib import Path

import nbformat

from mobpriv import plot
from mobpriv.book import pages

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
img, svg { max-width: 100%; height: auto; }
.jp-RenderedImage, .output_png { background: #fff; width: fit-content; }
.output, .jp-OutputArea, .table { overflow-x: auto; }
table { border-collapse: collapse; } th, td { padding: .25rem .6rem; text-align: right; border: 0; border-bottom: 1px solid #8884; }
table.beside { font-size: .88em; } table.beside th, table.beside td { vertical-align: top; }
table.beside th[scope=row] { text-align: left; font-weight: 400; min-width: 11rem; } table.beside small { display: block; white-space: nowrap; }
.origin th, .origin td { text-align: left; vertical-align: top; }
.mobpriv-map { margin: 0; } .mobpriv-map svg { max-height: 75vh; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .6rem; background: #8881; } details { margin: .5rem 0; }
@media (max-width: 600px) { .mobpriv-figure { overflow-x: auto; } .mobpriv-figure svg { min-width: var(--own-width, 25rem); } }
.note { border-left: 4px solid #b36b00; padding: .3rem .8rem; background: #b36b0018; }
.jp-InputPrompt, .jp-OutputPrompt, .prompt { display: none; }
"""


MATH = "<script>window.MathJax = {tex: {inlineMath: [['$', '$']]}, options: {enableMenu: false}}</script><script>%s</script>"


def page(notebook: nbformat.NotebookNode, record: dict) -> str:
    """The page of an executed notebook with its provenance."""
    from nbconvert import HTMLExporter

    notebook = deepcopy(notebook)  # its prose is changed below
    exporter = HTMLExporter(template_name="basic", embed_images=True, exclude_input=True, exclude_anchor_links=True)
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = without_roles(cell.source)
        elif cell.cell_type == "code":
            parts.append(f"<details><summary>code</summary><pre>{html.escape(cell.source)}</pre></details>")
        body, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(cells=[cell], metadata=notebook.metadata))
        parts.append(body)
    own = record["provenance"]
    note = '<p class="note">Synthetic data: computed from a made-up city, not from real people.</p>'
    notes = note if own["data"] and own["data"]["synthetic"] else ""
    if own["parameters"].get("quick"):
        notes += '<p class="note">A quick run, shortened to try the notebook out: not a result.</p>'
    rows = pages.provenance_row(own).items()
    table = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v).replace('`', '')}</td></tr>" for k, v in rows)
    text = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<title>{html.escape(own["notebook"])}</title><link rel="icon" href="data:,">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}{_colours()}</style></head>'
        f"<body><main>{notes}{''.join(parts)}<h2>Where the numbers come from</h2>"
        f'<div class="table origin"><table>{table}</table></div></main>{_mathjax() if "$" in text else ""}</body></html>\n'
    )


def _colours() -> str:
    """The colours of the figures; this page has no switch, it follows the reader's system."""
    light, dark = plot.stylesheet().split("html[data-theme=dark]")
    return f"{light}@media (prefers-color-scheme: dark) {{ :root {dark} }}"


def without_roles(text: str) -> str:
    """Markdown of the book without what only the book understands: labels, roles, directives, links to its other pages."""
    text = re.sub(r"^\([\w-]+\)=\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\{cite(?::\w+)?\}`([^`]+)`", r"[\1]", text)
    text = re.sub(r"\{[\w:]+\}`([^`<]+?)\s*(?:<[^`]*>)?`", r"\1", text)
    text = re.sub(r"^[:`]{3,}\{[\w-]+\}[ \t]*(.*)$", lambda m: f"**{m[1]}**\n" if m[1] else "", text, flags=re.MULTILINE)
    text = re.sub(r"^(?::{3,}|:[\w-]+:.*)$", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text)


def _mathjax() -> str:
    """The formula renderer of the book, inside the page (2 MB); nothing where it is not installed: formulas stay as TeX."""
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    script = Path(found.origin).parent / "static" / "mathjax" / "tex-svg.js" if found and found.origin else None
    return MATH % script.read_text(encoding="utf-8").replace("</script", "<\\/script") if script and script.is_file() else ""
