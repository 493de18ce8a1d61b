"""``{{ sum_thesis }}``, ``{{ landing_thesis_3_attacks }}``, … in a page: what the build counted and found (``book/_generated/filled.json``)."""

import json
from pathlib import Path


def fill(app, config):
    path = Path(app.srcdir) / "_generated" / "filled.json"
    config.myst_substitutions = {**config.myst_substitutions, **(json.loads(path.read_text("utf-8")) if path.is_file() else {})}


def setup(app):
    app.connect("config-inited", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
