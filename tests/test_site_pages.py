"""The built pages as a reader sees them: the answer first, nothing beyond the right edge, captions, tables and words for people."""

import re
from collections import Counter

import pytest
from built_site import PAGES, SITE, needs_the_book

pytestmark = needs_the_book
WIDTHS = (360, 390, 768, 1024, 1100, 1440)
PAPER = 718  # CSS pixels between the margins of an A4 sheet
ROWS = 18  # of a table on a page: three data sets at six levels
NOTEBOOKS = [page for page in PAGES if page.startswith("notebooks/")]
ARTICLES = [page for page in PAGES if page not in ("genindex.html", "search.html")]

# what stands beyond the right edge of the text, or is hidden there; a map is a window by nature, one pixel is a rounding, and of a
# formula the drawing counts, not the words for screen readers inside it
BEYOND = """() => {
    const article = document.querySelector('.bd-article');
    const right = Math.min(article.getBoundingClientRect().right, window.innerWidth) + 1;
    return [...article.querySelectorAll('*')]
      .filter(e => !e.closest('.leaflet-container, mjx-assistive-mml, .visually-hidden') && e.checkVisibility())
      .filter(e => e.tagName === 'svg' || !e.closest('svg') && e.textContent.trim() && !e.matches('.math, mjx-container'))
      .filter(e => e.getBoundingClientRect().width > 2)
      .filter(e => e.getBoundingClientRect().right > right
                   || e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'visible')
      .map(e => `${e.tagName}.${e.className}: ${e.textContent.trim().slice(0, 50)}`); }"""
# the words of a page without its programs, its formulas and the identifiers of what it cites
WORDS = """() => { const article = document.querySelector('.bd-article').cloneNode(true);
    article.querySelectorAll('pre, code, script, style, mjx-container, .math, .citation-list').forEach(e => e.remove());
    article.querySelectorAll('td, td > span, th, small, p, li, dd, dt').forEach(e => e.append(' '));
    return article.textContent; }"""
# how each table of numbers is set, and what room it has
SET_AS = """() => [...document.querySelectorAll('.bd-article .numbers-box')].map(box => [
    getComputedStyle(box.querySelector('table')).display === 'table' ? 'table' : 'cards', box.clientWidth])"""
NOT_FOR_PEOPLE = {
    "a Python value": r"\b(True|None|nan|NaN|inf)\b|\bFalse\b(?! positive)",
    "a power of ten": r"(?<!commit )(?<![\w.])\d+(?:\.\d+)?[eE][+-]?\d+\b",
    "digits that nobody reads": r"\d\.\d{8,}",
    "a raw key": r"\b[a-z_]+\.(?:AP-Attack|POI-Attack|PIT-Attack|none|W4M|Geo-I|Promesse|differential|distortion|joint)\b",
    "a thousand with a comma": r"\d,\d{3}\b",
}


def _widest(pages, count=6):
    """The pages with the most tables that are just as wide as a page holds: of five columns, then of four."""
    text = {page: (SITE / page).read_text(encoding="utf-8") for page in pages}
    return sorted(pages, key=lambda page: (-text[page].count("numbers columns-5"), -text[page].count("numbers columns-4")))[
        :count
    ]


def _one_after_another(pages):
    """A fixture of opened pages; pytest runs all tests of a page before it opens the next."""

    @pytest.fixture(scope="module", params=pages)
    def opened(request, browser, address):
        context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        page = context.new_page()
        page.goto(address + request.param)  # loaded to its end: a large page is idle before that
        page.wait_for_load_state("networkidle")
        yield page
        context.close()

    return opened


article = _one_after_another(ARTICLES)
notebook = _one_after_another(NOTEBOOKS)
page_of_wide_tables = _one_after_another(_widest(NOTEBOOKS))


@pytest.fixture
def page_of_notebook(notebook):
    notebook.emulate_media(media="screen")
    notebook.set_viewport_size({"width": 1440, "height": 900})
    return notebook


def test_nothing_stands_beyond_the_right_edge_at_any_width_nor_on_paper(article):
    beyond = []
    article.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    for media, width in [*(("screen", width) for width in WIDTHS), ("print", PAPER)]:
        article.emulate_media(media=media)
        article.set_viewport_size({"width": width, "height": 900})
        beyond += [f"{media} {width}: {element}" for element in article.evaluate(BEYOND)]
    assert not beyond


def test_a_page_opens_with_its_answer(page_of_notebook):
    answer = page_of_notebook.locator(".bd-article .answer").first
    assert answer.bounding_box()["y"] < 400
    words = answer.inner_text()
    assert re.match(r"The answer\.|What we found\.|\d+ errat", words)
    assert "Repeat it: mobpriv run" in words
    assert answer.evaluate("e => e.previousElementSibling.tagName") == "H1"


def test_at_most_two_folds_of_code_stand_together(page_of_notebook):
    """One for the set-up, one for the experiment, before a figure, a table, a heading or a result in words comes."""
    marks = page_of_notebook.evaluate(
        """() => [...document.querySelectorAll('.bd-article :is(h1, h2, figure, table, .output, details.hide)')]
            .map(e => e.matches('details') ? 'f' : '-').join('')"""
    )
    assert "fff" not in marks


def test_every_figure_has_a_number_a_caption_and_a_name_that_reads_as_a_sentence(page_of_notebook):
    figures = page_of_notebook.eval_on_selector_all(
        ".bd-article figure",
        """all => all.map(e => ({caption: (e.querySelector('figcaption') || {}).textContent || '',
            name: (e.querySelector('[role=img]') || e.querySelector('[aria-label]')).getAttribute('aria-label')}))""",
    )
    for figure in figures:
        assert re.match(r"Figure [\w.]+\. [A-Z(].*[.?)]$", figure["caption"].strip(), re.DOTALL), figure["caption"]
        assert re.match(r"[A-Z].{20,}[.?)]$", figure["name"].strip(), re.DOTALL), figure["name"]
        wrong = {what for what, pattern in NOT_FOR_PEOPLE.items() if re.search(pattern, figure["name"])}
        assert not wrong, figure["name"]


def test_no_two_figures_share_a_number():
    numbers = Counter(
        number
        for page in NOTEBOOKS
        for number in re.findall(r'figure-number">(Figure [^<]*)</span>', (SITE / page).read_text(encoding="utf-8"))
        if not re.fullmatch(r"Figure \d+\.", number)  # of a paper's own, which two papers may share
    )
    assert [number for number, count in numbers.items() if count > 1] == []


def test_tables_are_for_reading(page_of_notebook):
    tables = page_of_notebook.eval_on_selector_all(
        ".bd-article .cell_output table",
        "all => all.map(e => [e.className, e.querySelectorAll('tbody tr:not(.group)').length])",
    )
    assert [name for name, _ in tables if "numbers" not in name] == []
    assert [rows for _, rows in tables if rows > ROWS] == []


def test_a_table_is_one_in_dark_as_in_light(page_of_wide_tables):
    """The theme pads what stands on its dark page; a few pixels less, and wide tables become cards there alone."""
    page_of_wide_tables.set_viewport_size({"width": 1200, "height": 900})
    shown = {}
    for scheme in ("light", "dark"):
        page_of_wide_tables.evaluate("scheme => document.documentElement.setAttribute('data-theme', scheme)", scheme)
        shown[scheme] = page_of_wide_tables.evaluate(SET_AS)
    assert "table" in [how for how, _ in shown["light"]]
    assert shown["dark"] == shown["light"]


def test_a_table_whose_rows_are_cards_shows_its_corner(page_of_wide_tables):
    page_of_wide_tables.set_viewport_size({"width": 390, "height": 900})
    named = page_of_wide_tables.evaluate(
        """() => [...document.querySelectorAll('.bd-article .numbers-box')]
            .filter(box => getComputedStyle(box.querySelector('table')).display !== 'table' && box.querySelector('thead th:first-child'))
            .map(box => [box.querySelector('thead th').textContent, (box.querySelector('.corner') || {}).innerText])"""
    )
    assert [(corner, shown) for corner, shown in named if corner != shown] == []


def test_no_page_shows_what_is_meant_for_programs(article):
    words = article.evaluate(WORDS)
    found = {what: re.findall(rf".{{0,30}}(?:{pattern}).{{0,10}}", words)[:3] for what, pattern in NOT_FOR_PEOPLE.items()}
    assert not {what: hits for what, hits in found.items() if hits}


def test_a_term_is_linked_where_it_is_used_first(page_of_notebook):
    terms = page_of_notebook.eval_on_selector_all(".glossary-term", "all => all.map(e => e.textContent.toLowerCase())")
    assert terms
    assert len(terms) == len(set(terms))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_and_lines_of_figures_stand_out_from_the_page(page_of_notebook, scheme):
    """Strokes and fills of what is drawn, on the page's own background: 3 to 1, as for graphics (WCAG 1.4.11); 2 for the grid's ticks."""
    page_of_notebook.evaluate("scheme => document.documentElement.setAttribute('data-theme', scheme)", scheme)
    drawn = page_of_notebook.evaluate(
        """() => { const page = getComputedStyle(document.querySelector('.bd-main')).backgroundColor;
            const body = getComputedStyle(document.body).backgroundColor;
            const found = new Set();
            document.querySelectorAll('.mobpriv-figure svg :is(path, use, text)').forEach(e => {
                const style = getComputedStyle(e), box = e.getBoundingClientRect();
                if (e.closest('defs, clipPath') || !box.width && !box.height || style.opacity < 0.9) return;
                if (e.tagName == 'text') found.add(style.fill);
                else if (style.stroke != 'none' && style.strokeOpacity > 0.9) found.add(style.stroke); });
            return [page == 'rgba(0, 0, 0, 0)' ? body : page, [...found]]; }"""
    )
    background, colours = drawn
    assert {c: round(_contrast(c, background), 1) for c in colours if _contrast(c, background) < 2.9} == {}


def _contrast(colour: str, background: str) -> float:
    low, high = sorted(map(_luminance, (colour, background)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
