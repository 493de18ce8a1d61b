"""Links to a notebook that is part of another notebook's page (``book/merged.yml``), and the forward from its former address."""

from pathlib import Path

import yaml
from sphinx import addnodes

_FORWARD = '<!doctype html><meta charset="utf-8"><title>Moved</title><meta http-equiv="refresh" content="0; url={page}.html#{anchor}">\n'


def _page_of(folder) -> dict[str, str]:
    """Notebook that is part of a page -> the page."""
    pages = yaml.safe_load((Path(folder) / "merged.yml").read_text("utf-8"))
    return {part: page for page, parts in pages.items() for part in parts}


def link(app, doctree):
    """A link to such a notebook leads to its part of the page; with an anchor, to the anchor on the page."""
    page_of = _page_of(app.srcdir)
    for node in doctree.findall(addnodes.pending_xref):
        file, _, anchor = node["reftarget"].partition("#")
        name = Path(file).stem
        if file.endswith(".ipynb") and name in page_of:
            page = {"refdomain": "doc", "reftarget": f"notebooks/{page_of[name]}", "reftargetid": anchor}
            node.attributes |= page if anchor else {"reftarget": name}


def forward(app, error):
    """A page at the former address of each such notebook leads on."""
    if not error and app.builder.format == "html":
        for name, page in _page_of(app.srcdir).items():
            text = _FORWARD.format(page=page, anchor=name.replace("_", "-"))
            (Path(app.outdir) / "notebooks" / f"{name}.html").write_text(text, "utf-8")


def setup(app):
    app.connect("doctree-read", link)
    app.connect("build-finished", forward)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
