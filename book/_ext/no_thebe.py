"""Drop the scripts of sphinx-thebe: jupyter-book loads them even where no button uses them, twice, and the second fails."""


def drop(app, pagename, templatename, context, doctree):
    def wanted(script) -> bool:
        return "thebe" not in f"{getattr(script, 'filename', script)} {getattr(script, 'attributes', '')}".lower()

    context["script_files"] = [script for script in context.get("script_files", []) if wanted(script)]


def setup(app):
    app.connect("html-page-context", drop, priority=1000)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
