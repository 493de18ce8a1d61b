"""The PDF of the book: one document of all pages, with page numbers in its contents, and nothing that leads out of it."""

import re

import pytest
from chromium import MISSING

from mobpriv.book import pdf

TOC = """\
format: jb-book
root: index
chapters:
  - file: risk
    title: A risk & "its" measure
    sections: [{file: notebooks/risk_one}]
  - file: supplement
    title: Supplement
"""
PAGES = {
    "index": '<h1>The book<a class="headerlink" href="#the-book">#</a></h1><p><a href="notebooks/risk_one.html#fig">a figure</a> '
    '<a href="https://example.org/">elsewhere</a></p>',
    "risk": "<h1>Risk</h1><p style='height: 40cm'>long</p>",
    "notebooks/risk_one": '<h1>One &amp; all</h1><svg width="9" height="9"><clipPath id="fig"><path d="M0 0h9v9z"/></clipPath>'
    '<g clip-path="url(#fig)"><use xlink:href="#fig"/></g></svg><p aria-describedby="fig other">'
    '<a href="../risk.html">back</a> <a href="../_downloads/a.csv">table</a><img src="../_images/dot.svg" alt="a dot"></p>'
    "<script>throw 1</script>",
    "supplement": '<h1>Supplement</h1><p id="fig">more</p>',
}


@pytest.fixture
def book(tmp_path):
    """A built book of four pages."""
    site = tmp_path / "_build" / "html"
    for folder in (site / "notebooks", site / "_images", tmp_path / "book"):
        folder.mkdir(parents=True)
    (tmp_path / "book" / "_toc.yml").write_text(TOC)
    (tmp_path / "_config.yml").write_text("title: The book of risks\n")
    (site / "_images" / "dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    for file, article in PAGES.items():
        (site / f"{file}.html").write_text(
            f'<html><head></head><body><article class="bd-article">{article}</article></body></html>'
        )
    return tmp_path


def test_ids_are_unique_and_links_stay_in_the_document(book):
    document = pdf.document(book, book / "_build" / "html")
    ids = re.findall(r' id="([^"]+)"', document)
    assert sorted(ids) == sorted(set(ids))
    inner = re.findall(r'href="#([^"]+)"', document)
    assert {"page-3--fig", "page-2"} <= set(inner) <= {*ids, "page-1--the-book"}
    assert 'clip-path="url(#page-3--fig)"' in document
    assert 'aria-describedby="page-3--fig page-3--other"' in document
    assert re.findall(r'(?:href|src)="([^#"]*)"', document) == ["https://example.org/", "html/_images/dot.svg"]
    assert "<script>" not in document


def test_the_contents_name_chapters_pages_and_appendices(book):
    document = pdf.document(book, book / "_build" / "html")
    contents = re.search(r"(?s)<h1>Contents</h1>(.*?)</div>", document)[1]
    assert re.findall(r">([^<]+)<span>", contents) == [
        "The book",
        "A risk &amp; &quot;its&quot; measure",
        "One &amp; all",
        "Appendix A. Supplement",
    ]
    assert contents.count("<ol>") == contents.count("</ol>")
    assert '@page chapter-1 { @top-right { content: "A risk & \\"its\\" measure"' in document


@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
def test_the_pdf_numbers_its_sheets(book):
    file = book / "out" / "book.pdf"
    count = pdf.write(file, book)
    printed = file.read_bytes()
    sheets, numbers = pdf.sheets(printed)
    assert numbers == {"page-1": 3, "page-2": 4, "page-3": 6, "page-4": 7}  # the second page is long: two sheets
    assert count == sheets == 7
    assert str(book).encode() not in printed
    assert [path.name for path in file.parent.iterdir()] == ["book.pdf"]
    assert sorted(path.name for path in (book / "_build").iterdir()) == ["html"]
    assert b"/Outlines" in printed


def test_without_a_built_book_one_line_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^the book is not built: make book$"):
        pdf.write(tmp_path / "book.pdf", tmp_path)
