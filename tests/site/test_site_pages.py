"""The built pages as a reader sees them, each visited once: nothing fails, nothing leaves, no barrier, the answer first, all within the page.

A page that passed before as it is now is visited again only in CI (``passed_pages.py``).
"""

import re
from collections import Counter

import passed_pages
import pytest
from built_site import HEIGHT, PAGES, SITE, needs_the_book, tab, visit, visited

pytestmark = needs_the_book
WIDTHS = (360, 768, 1024, 1100, 1440, 390)  # that of a phone last, for the check that follows
PAPER = 718  # CSS pixels between the margins of an A4 sheet
TABLES = 4
BEFORE_FIGURE = 120  # words of the title and the opening
SEEN_ROWS = 15  # of a table that is not behind a fold
OPENING = 120  # words: the answer, as many claims as fit, why it matters
ROWS = 18  # of a table on a page: three data sets at six levels
# What the theme brings: (rule, part of the offending element). Nothing of ours belongs here.
OF_THE_THEME = (
    ("region", "logo__title"),  # the book's name beside the logo stands outside the landmarks
)
READ = [page for page in PAGES if page not in ("genindex.html", "search.html")]
NOTEBOOKS = [page for page in PAGES if page.startswith("notebooks/")]
LARGEST_FIRST = sorted(PAGES, key=lambda page: -(SITE / page).stat().st_size)  # so that no worker is left with one at the end

# what stands beyond the right edge of the text, or is hidden there; a map is a window by nature, one pixel is a rounding, and of a
# formula the drawing counts, not the words for screen readers inside it; what of ours scrolls sideways, on the screen; and the page itself
BEYOND = """screen => {
    const article = document.querySelector('.bd-article'), edge = article.getBoundingClientRect().right;
    const right = Math.min(edge, window.innerWidth) + 1;
    const ours = '.claim, .erratum, table.sets, table.score, .filters, .origins, .citation-list';
    const counts = e => !e.closest('.leaflet-container, mjx-assistive-mml, .visually-hidden') && e.checkVisibility()
        && (e.tagName === 'svg' || !e.closest('svg') && e.textContent.trim() && !e.matches('.math, mjx-container'));
    const beyond = [];
    for (const e of article.querySelectorAll('*')) {
        const box = e.getBoundingClientRect();
        if (box.width <= 2) continue;
        const scrolls = e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'visible';
        if ((box.right > right || scrolls) && counts(e)
            || screen && (box.right > edge + 0.5 || scrolls && e.tagName !== 'SELECT') && e.closest(ours) && e.checkVisibility())
            beyond.push(`${e.tagName}.${e.className}: ${e.textContent.trim().slice(0, 50)}`); }
    if (screen && document.documentElement.scrollWidth > window.innerWidth) beyond.push('the page');
    return beyond; }"""
# the words of a page without its programs, its formulas and the identifiers of what it cites
WORDS = """() => { const article = document.querySelector('.bd-article').cloneNode(true);
    article.querySelectorAll('pre, code, script, style, mjx-container, .math, .citation-list').forEach(e => e.remove());
    article.querySelectorAll('td, td > span, th, small, p, li, dd, dt').forEach(e => e.append(' '));
    return article.textContent; }"""
# how each table of numbers is set, and what room it has
SET_AS = """() => [...document.querySelectorAll('.bd-article .numbers-box')].map(box => [
    getComputedStyle(box.querySelector('table')).display === 'table' ? 'table' : 'cards', box.clientWidth])"""
# every fold opened; code without its colours, which make no line longer and are half of a page's elements
OPENED = """() => { document.querySelectorAll('details').forEach(fold => fold.open = true);
    document.querySelectorAll('.cell_input pre').forEach(code => { const words = document.createElement('span');
        words.textContent = code.textContent; code.replaceChildren(words); }); }"""
NOT_FOR_PEOPLE = {
    "a Python value": r"\b(True|None|nan|NaN|inf)\b|\bFalse\b(?! positive)",
    "a power of ten": r"(?<!commit )(?<![\w.])\d+(?:\.\d+)?[eE][+-]?\d+\b",
    "digits that nobody reads": r"\d\.\d{8,}",
    "a raw key": r"\b[a-z_]+\.(?:AP-Attack|POI-Attack|PIT-Attack|none|W4M|Geo-I|Promesse|differential|distortion|joint)\b",
    "a thousand with a comma": r"\d,\d{3}\b",
}


TOO_WIDE = "document.documentElement.scrollWidth - window.innerWidth"
# the background, and the colours of marks and lines of what is drawn
COLOURS = """() => { const page = getComputedStyle(document.querySelector('.bd-main')).backgroundColor;
    const body = getComputedStyle(document.body).backgroundColor;
    const found = new Set();
    document.querySelectorAll('.mobpriv-figure svg :is(path, use, text)').forEach(e => {
        const style = getComputedStyle(e), box = e.getBoundingClientRect();
        if (e.closest('defs, clipPath') || !box.width && !box.height || style.opacity < 0.9) return;
        if (e.tagName == 'text') found.add(style.fill);
        else if (style.stroke != 'none' && style.strokeOpacity > 0.9) found.add(style.stroke); });
    return [page == 'rgba(0, 0, 0, 0)' ? body : page, [...found]]; }"""
# The looks of text that no page had before, in one element each: what decides of contrast is the text's colour and size and what lies
# behind it, all that its ancestors paint, and for a link its line and the text around it. Text that is positioned may lie over anything:
# all of it is taken, and what frames the pages once.
LOOKS = """known => {
    const nothing = 'rgba(0, 0, 0, 0),none,1,none,normal,none';
    const of = e => { const s = getComputedStyle(e);
        const paints = [s.backgroundColor, s.backgroundImage, s.opacity, s.filter, s.mixBlendMode, s.boxShadow].join();
        return paints === nothing ? '' : paints + '|'; };
    const behind = new Map([[null, ['', false]]]);
    const painted = e => { if (!behind.has(e)) { const [above, free] = painted(e.parentElement), position = getComputedStyle(e).position;
        behind.set(e, [above + of(e), free || position === 'absolute' || position === 'fixed']); } return behind.get(e); };
    const text = e => [...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && n.data.trim()) || e.matches('input, select, a[href]');
    const looks = new Set(known);
    document.body.querySelectorAll('*').forEach((e, i) => {
        e.removeAttribute('data-look');
        if (!text(e) || !e.checkVisibility()) return;
        const s = getComputedStyle(e), [stack, free] = painted(e), around = e.matches('a') && getComputedStyle(e.parentElement);
        const linked = around ? [s.textDecoration, s.borderBottom, around.color, around.fontSize, around.fontWeight, around.display] : '';
        const itself = !free ? '' : e.closest('main') ? `${location} ${i}` : e.outerHTML;
        const look = [s.color, s.fontSize, s.fontWeight, s.textShadow, stack, itself, linked].join();
        if (!looks.has(look)) e.setAttribute('data-look', looks.add(look).size); });
    return [...looks].slice(known.length); }"""
# violations; what is drawn and what is folded away is out of the page meanwhile: of axe's time it would take half, a drawing has its name,
# and its colours a check of their own
AXE = """options => {
    const out = [...document.querySelectorAll('svg[role=img], details:not([open]) pre')].map(e => {
        const inside = document.createDocumentFragment(); inside.append(...e.childNodes); return [e, inside]; });
    axe.configure({rules: [{id: 'color-contrast', selector: '[data-look]'}, {id: 'link-in-text-block', selector: 'a[data-look]'}]});
    return axe.run({preload: false, resultTypes: ['violations'], ...options})
        .finally(() => out.forEach(([e, inside]) => e.append(inside))).then(found => found.violations); }"""
CHECKS = []
SHOWN = {}  # how each tab shows its page now
SEEN = {"light": [], "dark": []}  # looks of text that are no barrier


def having(what: str) -> list[str]:
    return [page for page in PAGES if what in (SITE / page).read_text(encoding="utf-8")]


INSTRUMENTS, LESSONS = having('class="mobpriv-figure instrument"'), having('class="solution dropdown')
FOLDED = having('details class="admonition hide')


def each(pages):
    """A check of every opened page of these."""

    def add(check):
        CHECKS.append((check, frozenset(pages)))
        return check

    return add


@pytest.fixture(scope="module")
def one_tab(browser, address):
    """One for all pages: what they share is loaded and compiled once."""
    context, page, wrong = tab(browser, address)
    yield page, wrong
    context.close()


@pytest.mark.parametrize("name", LARGEST_FIRST)
def test_a_page(one_tab, address, subtests, name):
    if passed_pages.passed(name):
        pytest.skip("passed before as it is")
    page, wrong = one_tab
    page.goto("about:blank")  # no page is visited with what another has left
    wrong.clear()
    page.emulate_media(media="screen", color_scheme="light")
    SHOWN[page] = (1280, "screen", "light")
    visit(page, address, name)
    held = []
    for check, pages in CHECKS:
        if name in pages:
            with subtests.test(check.__name__):
                check(page)
                held.append(check)
    page.evaluate("localStorage.clear(), sessionStorage.clear()")
    assert not wrong, "a request that leaves the book or fails, or an error of a script"
    if len(held) == sum(name in pages for _, pages in CHECKS):
        passed_pages.keep(name)


def look(page, width=1280, media="screen", scheme="light"):
    """At a width, on the screen or on paper, in one of the two themes; nothing is laid out again that is so already."""
    if SHOWN.get(page, ("", ""))[1:] != (media, scheme):
        page.emulate_media(media=media, color_scheme=scheme)
        page.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)
    if SHOWN.get(page, ("",))[0] != width:
        page.set_viewport_size({"width": width, "height": HEIGHT})
    SHOWN[page] = (width, media, scheme)
    page.evaluate("window.scrollTo(0, 0)")


# ------------------------------------------------------------------------------------------------------------------ every page
@each([page for page in READ if page != "reference.html"])  # which is written for people who write programs
def no_page_shows_what_is_meant_for_programs(page):
    words = page.evaluate(WORDS)
    leaks = {
        what: [words[max(0, hit.start() - 30) : hit.end() + 10] for hit in re.finditer(pattern, words)][:3]
        for what, pattern in NOT_FOR_PEOPLE.items()
    }
    assert not {what: hits for what, hits in leaks.items() if hits}


# ------------------------------------------------------------------------------------------------------------------- notebooks
@each(NOTEBOOKS)
def a_page_opens_with_its_answer(page):
    look(page)
    answer = page.locator(".bd-article .answer").first
    assert answer.bounding_box()["y"] < 400
    assert re.fullmatch(r".{20,}[.?]", answer.locator("strong").first.inner_text(), re.DOTALL)
    assert len(answer.inner_text().split()) <= OPENING
    assert "To repeat this page, run mobpriv run" in page.locator(".bd-article").inner_text()
    assert answer.evaluate("e => e.previousElementSibling.tagName") == "H1"


@each([page for page in NOTEBOOKS if page not in LESSONS])
def few_tables_are_seen_at_once(page):
    """Beside that of the claims; the later and the long ones are in folds (``book/_ext/folded_sections.py``)."""
    rows = page.eval_on_selector_all(
        ".bd-article table",
        """all => all.filter(e => e.checkVisibility({contentVisibilityAuto: true}) && !e.closest('.answer'))
            .map(e => e.querySelectorAll('tbody th[scope=row]').length)""",
    )
    assert len(rows) <= TABLES
    assert max(rows, default=0) <= SEEN_ROWS


@each([page for page in NOTEBOOKS if page not in LESSONS])
def the_figure_is_near(page):
    """Not far below the title: at most so many words, and on a phone two screens."""
    figure = page.locator(".bd-article figure").first
    if figure.count():
        look(page, 390)
        before = page.evaluate(
            """() => { const figure = document.querySelector('.bd-article figure'), range = document.createRange();
                range.setStart(document.querySelector('.bd-article'), 0); range.setEndBefore(figure);
                return [...range.cloneContents().querySelectorAll('h1, .answer')].map(e => e.textContent).join(' '); }"""
        )
        assert len(re.sub("#$", "", before).split()) <= BEFORE_FIGURE
        assert figure.bounding_box()["y"] <= 2 * 844


@each(NOTEBOOKS)
def at_most_two_folds_of_code_stand_together(page):
    """One for the set-up, one for the experiment, before a figure, a table, a heading or a result in words comes."""
    marks = page.evaluate(
        """() => [...document.querySelectorAll('.bd-article :is(h1, h2, h3, h4, figure, table, .output, details.hide)')]
            .map(e => e.matches('details') ? 'f' : '-').join('')"""
    )
    assert "fff" not in marks


@each(NOTEBOOKS)
def every_figure_has_a_number_a_caption_and_a_name_that_reads_as_a_sentence(page):
    figures = page.eval_on_selector_all(
        ".bd-article figure",
        """all => all.map(e => ({caption: (e.querySelector('figcaption') || {}).textContent || '',
            name: (e.querySelector('[role=img]') || e.querySelector('[aria-label]')).getAttribute('aria-label')}))""",
    )
    for figure in figures:
        assert re.match(r"Figure [\w.]+\. [A-Z(].*[.?)]$", figure["caption"].strip(), re.DOTALL), figure["caption"]
        assert re.match(r"[A-Z].{20,}[.?)]$", figure["name"].strip(), re.DOTALL), figure["name"]
        wrong = {what for what, pattern in NOT_FOR_PEOPLE.items() if re.search(pattern, figure["name"])}
        assert not wrong, figure["name"]


@each(NOTEBOOKS)
def no_notebook_warns(page):
    assert page.locator(".bd-article .output.stderr").all_inner_texts() == []


@each(NOTEBOOKS)
def tables_are_for_reading(page):
    tables = page.eval_on_selector_all(
        ".bd-article .cell_output table",
        "all => all.map(e => [e.className, e.querySelectorAll('tbody tr:not(.group)').length])",
    )
    assert [name for name, _ in tables if "numbers" not in name] == []
    assert [rows for _, rows in tables if rows > ROWS] == []


@each(NOTEBOOKS)
def a_term_is_linked_where_it_is_used_first(page):
    terms = page.eval_on_selector_all(".glossary-term", "all => all.map(e => e.textContent.toLowerCase())")
    assert terms
    assert len(terms) == len(set(terms))


@each(READ)
def no_barrier_stands_in_the_way(page):
    """All rules of axe, also on the folded sections, which stay open for what follows."""
    from axe_playwright_python.base import AXE_SCRIPT

    look(page)
    page.evaluate("document.querySelectorAll('details.more').forEach(fold => fold.open = true)")
    page.evaluate(AXE_SCRIPT)
    new = page.evaluate(LOOKS, SEEN["light"])
    assert not _violations(page)
    SEEN["light"] += new


@each(NOTEBOOKS)
def marks_and_lines_of_figures_stand_out_from_the_page(page):
    """Strokes and fills of what is drawn, on the page's own background: 3 to 1, as for graphics (WCAG 1.4.11); 2 for the grid's ticks."""
    faint = {}
    for scheme in ("light", "dark"):
        look(page, scheme=scheme)
        background, colours = page.evaluate(COLOURS)
        faint |= {(scheme, c): round(_contrast(c, background), 1) for c in colours if _contrast(c, background) < 2.9}
    assert faint == {}


@each(READ)
def no_text_is_faint_in_dark(page):
    """A look that no page had before, for one element of each."""
    look(page, scheme="dark")
    if new := page.evaluate(LOOKS, SEEN["dark"]):
        assert not _violations(page, runOnly=["color-contrast"])
        SEEN["dark"] += new


@each(NOTEBOOKS)
def a_table_is_one_in_dark_as_in_light(page):
    """The theme pads what stands on its dark page; a few pixels less, and wide tables become cards there alone."""
    shown = {}
    for scheme in ("dark", "light"):  # as the page is shown last
        look(page, 1200, scheme=scheme)
        shown[scheme] = page.evaluate(SET_AS)
    assert shown["dark"] == shown["light"]


# ----------------------------------------------------------------------------------------------------------------- on a phone
@each(set(PAGES) - set(READ))  # the others below, at all widths
def no_page_is_wider_than_a_phone(page):
    look(page, 390)
    assert page.evaluate(TOO_WIDE) <= 0


# ------------------------------------------------------------------------------------------------- instruments, exercises, folds
@each(INSTRUMENTS)
def a_knob_turns_by_keyboard(page):
    look(page, 390)
    knob = page.locator(".instrument").first
    count = knob.locator(".knob input").count()
    knob.locator(".knob input:checked").focus()
    for _ in range(count):
        page.keyboard.press("ArrowRight")
        chosen = knob.locator(".knob input:checked").get_attribute("value")
        seen = [i for i in range(count) if knob.locator(".frame").nth(i).is_visible()]
        assert seen == [int(chosen)]


@each(FOLDED)
def code_is_folded_and_on_paper_only_a_lesson_shows_it(page):
    """The folds of a lesson hold its imports and its data, which its solutions build on."""
    look(page)
    fold = page.locator("details.hide").first
    code = fold.locator("div.highlight-ipython3, div.highlight-python").first
    assert not code.is_visible()
    look(page, PAPER, "print")
    if page.locator(".solution.dropdown").count():
        assert "import" in code.inner_text()
        assert code.bounding_box()["height"] > 20
    else:
        assert not fold.is_visible()


@each(LESSONS)
def a_solution_is_folded_and_holds_its_code(page):
    look(page)
    solutions = page.locator(".solution.dropdown")
    for i in range(solutions.count()):
        code = solutions.nth(i).locator("div.highlight-ipython3, div.highlight-python").first
        assert not code.is_visible()
        solutions.nth(i).locator(".toggle-button").first.click()
        assert code.is_visible()
        assert "assert" in solutions.nth(i).inner_text()
    assert page.locator(".exercise").count() == solutions.count()


# ----------------------------------------------------------------------------------------------- every page, its folds opened
@each(READ)
def nothing_stands_beyond_the_right_edge_at_any_width_nor_on_paper(page):
    page.evaluate(OPENED)
    beyond = []
    for media, width in [("print", PAPER), *(("screen", width) for width in WIDTHS)]:
        look(page, width, media)
        beyond += [f"{media} {width}: {element}" for element in page.evaluate(BEYOND, media == "screen")]
    assert not beyond


@each(NOTEBOOKS)
def a_table_whose_rows_are_cards_shows_its_corner(page):
    look(page, 390)
    named = page.evaluate(
        """() => [...document.querySelectorAll('.bd-article .numbers-box')]
            .filter(box => box.checkVisibility({visibilityProperty: true, opacityProperty: true}) && getComputedStyle(box.querySelector('table')).display !== 'table' && box.querySelector('thead th:first-child'))
            .map(box => [box.querySelector('thead th').textContent, (box.querySelector('.corner') || {}).innerText])"""
    )
    assert [(corner, shown) for corner, shown in named if corner != shown] == []


# ------------------------------------------------------------------------------------------------------------ all pages together
def test_the_book_has_instruments_lessons_and_folds():
    assert INSTRUMENTS
    assert LESSONS
    assert set(FOLDED) > set(LESSONS)


def test_some_tables_are_tables_and_some_cards(browser, address):
    """Where no table were one, that it is the same in both themes would say nothing."""
    widest = max(NOTEBOOKS, key=lambda page: (SITE / page).read_text(encoding="utf-8").count("numbers columns-5"))
    context, page, _ = visited(browser, address, widest)
    look(page, 1200)
    assert "table" in [how for how, _ in page.evaluate(SET_AS)]
    look(page, 390)
    assert "cards" in [how for how, _ in page.evaluate(SET_AS)]
    context.close()


def test_no_two_figures_share_a_number():
    numbers = Counter(
        number
        for page in NOTEBOOKS
        for number in re.findall(r'figure-number">(Figure [^<]*)</span>', (SITE / page).read_text(encoding="utf-8"))
        if not re.fullmatch(r"Figure \d+\.", number)  # of a paper's own, which two papers may share
    )
    assert [number for number, count in numbers.items() if count > 1] == []


def _violations(page, **options) -> list[str]:
    return [
        f"{violation['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for violation in page.evaluate(AXE, options)
        for node in violation["nodes"]
        if not any(violation["id"] == rule and part in node["html"] for rule, part in OF_THE_THEME)
    ]


def _contrast(colour: str, background: str) -> float:
    low, high = sorted(map(_luminance, (colour, background)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
