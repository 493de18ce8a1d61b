"""An executed notebook as one HTML file that needs nothing beside it: pictures inside, no request to anywhere."""

import html
from pathlib import Path

import nbformat

from mobpriv import pages, provenance

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
img, svg { max-width: 100%; height: auto; }
.jp-RenderedImage, .output_png { background: #fff; width: fit-content; }
.output, .jp-OutputArea, .table { overflow-x: auto; }
table { border-collapse: collapse; } th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #8884; }
pre { overflow-x: auto; padding: .6rem; background: #8881; } details { margin: .5rem 0; }
.note { border-left: 4px solid #b36b00; padding: .3rem .8rem; background: #b36b0018; }
.jp-InputPrompt, .jp-OutputPrompt, .prompt { display: none; }
"""


def write(executed: Path, target: Path, record: dict) -> Path:
    """The page of an executed notebook with its provenance; returns ``target``."""
    from nbconvert import HTMLExporter

    notebook = nbformat.read(executed, as_version=4)
    exporter = HTMLExporter(template_name="basic", embed_images=True)
    parts = []
    for cell in notebook.cells:
        one = nbformat.v4.new_notebook(cells=[cell], metadata=notebook.metadata)
        if cell.cell_type == "code":
            exporter.exclude_input = True
            source = html.escape(cell.source)
            parts.append(f"<details><summary>code</summary><pre>{source}</pre></details>")
        body, _ = exporter.from_notebook_node(one)
        parts.append(body)
    own = record["provenance"]
    note = '<p class="note">Synthetic data: computed from a made-up city, not from real people.</p>'
    synthetic = note if own["data"] and own["data"]["synthetic"] else ""
    rows = pages.provenance_row(own)
    table = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v).replace('`', '')}</td></tr>" for k, v in rows.items())
    title = html.escape(own["notebook"])
    provenance.write_atomically(
        target,
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><main>{synthetic}{''.join(parts)}<h2>Where the numbers come from</h2>"
        f'<div class="table"><table>{table}</table></div></main></body></html>\n',
    )
    return target
