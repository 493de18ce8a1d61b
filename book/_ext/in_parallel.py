"""Read the pages in several processes: these extensions do not say that they allow it, and none of them stores anything about a page."""

SILENT = ("sphinx_multitoc_numbering", "sphinx-mathjax-offline", "sphinx_jupyterbook_latex")


def allow(app, config):
    for name in SILENT:
        app.extensions[name].parallel_read_safe = True


def setup(app):
    app.connect("config-inited", allow)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
