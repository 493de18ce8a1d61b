"""Pages that show several notebooks (``book/merged.yml``)."""

from pathlib import Path

import nbformat

from mobpriv.book import notebook_pages, yaml_files


def parts(root: Path) -> dict[str, list[str]]:
    """Page -> the notebooks that follow its own as parts."""
    file = root / "book" / "merged.yml"
    return (yaml_files.content(file) or {}) if file.is_file() else {}


def cells(notebook: str, root: Path) -> list[nbformat.NotebookNode]:
    """The cells of a notebook on its written page; of a page with parts, the sections below all parts belong to the first."""
    page = next((page for page, names in parts(root).items() if notebook in names), notebook)
    written = nbformat.read(root / "book" / "notebooks" / f"{page}.ipynb", as_version=4).cells
    return [cell for cell in written if notebook_pages.part_of(cell) == ("" if page == notebook else notebook)]
