"""The whole built book as one PDF, printed by Chromium: title, contents, every page of ``book/_toc.yml``, appendices.

All pages become one document, so that links between them work and its sheets are numbered through. Chromium cannot write the
page numbers of a table of contents: the document is printed twice, the second time with the numbers of the first.
"""

import os
import re
import shutil
import sys
from html import escape, unescape
from pathlib import Path
from posixpath import dirname, join, normpath
from string import ascii_uppercase
from typing import NamedTuple

from mobpriv import __version__
from mobpriv.book import provenance, yaml_files
from mobpriv.book.build import pages_of
from mobpriv.book.results import ROOT

_APPENDICES = ("ledger", "supplement")  # first files of the chapters that are appendices
_WIDEST = "0000"  # stands for a page number in the first print
_IDS = "id|for|name|headers|aria-labelledby|aria-describedby|aria-controls"
_TIMEOUT = 1_800_000  # ms
_STYLE = "book/_ext/pdf.css"
_DRAWN = """async () => { await window.MathJax?.startup?.promise; await document.fonts.ready;
    await Promise.all([...document.images].map(image => image.decode())); }"""
_NUMBER = "numbers => document.querySelectorAll('.contents a').forEach(a => a.lastChild.textContent = numbers[a.hash.slice(1)])"


class _Page(NamedTuple):
    place: str  # id in the document
    chapter: int
    title: str
    article: str  # HTML


def write(file: Path, root: Path = ROOT) -> int:
    """Print the built book of the project at ``root`` into ``file``; returns the number of its sheets."""
    site = root / "_build" / "html"
    if not (site / "index.html").is_file():
        raise FileNotFoundError("the book is not built: make book")
    source = site.parent / f".{file.name}.{os.getpid()}.html"  # beside the folder of the pictures
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        source.write_text(document(root, site), encoding="utf-8")
        printed, sheets = _printed(source)
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(printed)
        part.replace(file)
    finally:
        source.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
    return sheets


def document(root: Path, site: Path) -> str:
    """All pages of the book as one HTML document next to the folder ``site``."""
    files_of = {"": ["index"], **pages_of(root)}
    files = [file for files in files_of.values() for file in files]
    html = {file: (site / f"{file}.html").read_text(encoding="utf-8") for file in files}
    places = {f"{file}.html": f"page-{i}" for i, file in enumerate(files, 1)}
    pages, heads = [], []
    letters = iter(ascii_uppercase)
    for chapter, (name, chapter_files) in enumerate(files_of.items()):
        heads.append(f"Appendix {next(letters)}. {name}" if chapter_files[0] in _APPENDICES else name)
        for file in chapter_files:
            pages.append(_page(file, html[file], chapter, places))
    title = yaml_files.content(root / "_config.yml")["title"]
    heads[0] = title
    return (
        f'<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"{_head(html)}<style>{(ROOT / _STYLE).read_text(encoding='utf-8')}{''.join(map(_running_head, range(len(heads)), heads))}</style></head><body>"
        f'<div class="front"><h1>{escape(title)}</h1><p>Version {__version__}, commit {provenance.commit(root)}</p>'
        "<p>Text and figures: CC BY 4.0. Code: BSD 3-Clause.</p></div>"
        f'<div class="contents"><h1>Contents</h1>{_contents(pages, heads)}</div>'
        '<main class="bd-main"><div class="bd-content"><div class="bd-article-container">'
        f"{''.join(page.article for page in pages)}</div></div></main></body></html>"
    )


def _page(file: str, html: str, chapter: int, places: dict[str, str]) -> _Page:
    """A page with ids that are unique in the document, and with links into the document."""
    place = places[f"{file}.html"]
    article = re.search(r'(?s)<article class="bd-article"[^>]*>(.*)</article>', html)[1]
    article = re.sub(r"(?s)<script\b.*?</script>", "", article)

    def ids(match):
        return f'{match[1]}="{" ".join(f"{place}--{name}" for name in match[2].split())}"'

    def address(match):
        kind, value = match.groups()
        if re.match(r"[a-z]+:", value):
            return match[0]
        path, _, anchor = value.partition("#")
        target = normpath(join(dirname(file), path)) if path else f"{file}.html"
        if kind == "src":
            return f'src="html/{target}"'
        # a download is no part of the document
        return f'href="#{places[target]}{"--" * bool(anchor)}{anchor}"' if target in places else ""

    article = re.sub(rf'(?<=\s)({_IDS})="([^"]*)"', ids, article)
    article = re.sub(r'\b(href|src)="([^"]*)"', address, article)
    article = re.sub(r"url\((&quot;)?#", rf"url(\1#{place}--", article)
    title = re.search(r"(?s)<h1>(.*?)(?:<a class=\"headerlink\"|</h1>)", article)[1]
    kind = " ledger" * file.startswith("ledger")
    article = f'<article class="bd-article{kind}" id="{place}" style="page: chapter-{chapter}">{article}</article>'
    return _Page(place, chapter, unescape(re.sub("<[^>]+>", "", title)), article)


def _head(html: dict[str, str]) -> str:
    """The styles of the book, and the scripts that set formulas, which only pages with formulas have."""
    tags = re.findall(
        r'<link[^>]* rel="stylesheet"[^>]*>|<script[^>]*mathjax[^>]*></script>|<script>[^<]*MathJax[^<]*</script>',
        "".join(page.partition("</head>")[0] for page in html.values()),
    )
    absolute = [re.sub(r'(href|src)="(?:\.\./)*(_static/[^"?]*)[^"]*"', r'\1="html/\2"', tag) for tag in tags]
    return "".join(dict.fromkeys(absolute))


def _running_head(chapter: int, words: str) -> str:
    quoted = words.replace("\\", "\\\\").replace('"', '\\"')
    return f'@page chapter-{chapter} {{ @top-right {{ content: "{quoted}"; font: 9pt sans-serif; color: #555; }} }}\n'


def _contents(pages: list[_Page], heads: list[str]) -> str:
    """The chapters and their pages, each with room for its page number."""
    items, shown = [], None
    for page in pages:
        opens = page.chapter != shown
        words = heads[page.chapter] if opens and page.chapter else page.title
        link = f'<a href="#{page.place}">{escape(words)}<span>{_WIDEST}</span></a>'
        items.append(f"</ol></li><li>{link}<ol>" if opens else f"<li>{link}</li>")
        shown = page.chapter
    return f"<ol>{''.join(items).removeprefix('</ol></li>')}</ol></li></ol>"


def _printed(source: Path) -> tuple[bytes, int]:
    """The PDF of a document with page numbers in its contents, and its number of sheets."""
    from playwright.sync_api import sync_playwright  # of the extra "test"

    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        raise FileNotFoundError("the PDF is printed by Chromium, which is not installed (Debian, Ubuntu: apt install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(color_scheme="light", reduced_motion="reduce")
        page.set_default_timeout(_TIMEOUT)
        page.goto(source.as_uri())
        page.evaluate(_DRAWN)
        _, numbers = sheets(page.pdf(prefer_css_page_size=True))
        page.evaluate(_NUMBER, numbers)
        printed = page.pdf(prefer_css_page_size=True, outline=True, tagged=True)
        browser.close()
    count, final = sheets(printed)
    if final != numbers:
        raise ValueError("the page numbers in the contents are those of another print: run make pdf again")
    return printed, count


def sheets(printed: bytes) -> tuple[int, dict[str, int]]:
    """The number of sheets of a PDF, and the sheet of each page of the book: place -> number."""
    objects = re.findall(rb"(?m)^(\d+) 0 obj\n<</Type /Page\n", printed)
    order = {number: i for i, number in enumerate(objects, 1)}
    return len(order), {m[1].decode(): order[m[2]] for m in re.finditer(rb"/(page-\d+) \[(\d+) 0 R /XYZ", printed)}


def main() -> int:
    file = ROOT / "_build" / f"mobpriv-book-{__version__}.pdf"
    try:
        count = write(file)
    except (ValueError, OSError) as error:
        print(f"make pdf: {error}", file=sys.stderr)
        return 2
    print(f"{file.relative_to(ROOT)}: {count} pages, {file.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
