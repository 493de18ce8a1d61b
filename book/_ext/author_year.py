"""The bibliography as the text cites: a list sorted and labelled by author and year, which a screen reader reads as a list."""

from pybtex.plugin import register_plugin
from pybtex.style.formatting.unsrt import Style as Unsorted
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.sorting import BaseSortingStyle


class AuthorYearLabels(BaseLabelStyle):
    """ "Maouche, 2019": the words of a citation in the text; "n.d." for what bears no date."""

    def format_labels(self, sorted_entries):
        return [_label(entry) for entry in sorted_entries]


class ByLabel(BaseSortingStyle):
    def sorting_key(self, entry):
        return _label(entry).casefold()


def _label(entry) -> str:
    return f"{_names(entry)}, {entry.fields.get('year', 'n.d.')}"


def _names(entry) -> str:
    people = entry.persons.get("author") or entry.persons["editor"]
    names = [" ".join([*person.prelast_names, *person.last_names]) for person in people]
    return " and ".join(names) if len(names) < 3 else f"{names[0]} et al."


class AuthorYear(Unsorted):
    default_sorting_style = "author_year"
    default_label_style = "author_year"


def as_list(app, pagename, templatename, context, doctree):
    """docutils calls an entry doc-biblioentry, a role that is deprecated and no child of a list."""
    if 'role="doc-biblioentry"' in context.get("body", ""):
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def setup(app):
    register_plugin("pybtex.style.labels", "author_year", AuthorYearLabels)
    register_plugin("pybtex.style.sorting", "author_year", ByLabel)
    register_plugin("pybtex.style.formatting", "author_year", AuthorYear)
    app.connect("html-page-context", as_list)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
