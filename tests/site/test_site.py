"""The built book as a whole: no link is dead, the search finds what it should, a map becomes interactive."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urlencode, urljoin, urlparse

import nbformat
import pytest
from built_site import FORWARDS, PAGES, SITE, needs_the_book, visited
from chromium import sheets

from mobpriv.book import merged, webpage
from mobpriv.book.results import ROOT

pytestmark = needs_the_book


class Anchors(HTMLParser):
    """Of a page the ids it holds and the links it makes."""

    def __init__(self, html: str):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given["id"]} if given.get("id") else set()
        self.links += [given["href"]] if "href" in given else []


def test_no_internal_link_is_dead():
    anchors = {page: Anchors((SITE / page).read_text(encoding="utf-8")) for page in PAGES}
    dead = []
    for page, page_anchors in anchors.items():
        for href in page_anchors.links:
            target, anchor = urldefrag(urljoin(page, href))
            if urlparse(href).scheme or href.startswith("//"):
                continue
            target = unquote(urlparse(target).path)
            exists = (SITE / target).exists() and (
                not anchor or target not in anchors or unquote(anchor) in anchors[target].ids
            )
            dead += [] if exists else [f"{page}: {href}"]
    assert not dead


def test_the_address_of_a_merged_notebook_leads_to_its_part_of_the_page():
    parts = {f"notebooks/{name}.html": (page, name) for page, names in merged.parts(ROOT).items() for name in names}
    assert sorted(parts) == FORWARDS
    for forward, (page, name) in parts.items():
        anchor = name.replace("_", "-")
        assert f"url={page}.html#{anchor}" in (SITE / forward).read_text("utf-8")
        assert anchor in Anchors((SITE / "notebooks" / f"{page}.html").read_text("utf-8")).ids


def test_every_page_has_a_description():
    own = {"search.html", "genindex.html", "404.html"}  # of the renderer
    assert not [page for page in PAGES if page not in own and 'name="description"' not in (SITE / page).read_text("utf-8")]


@pytest.fixture(scope="module")
def finding(browser, address):
    """Ask the search of the book: the addresses of its hits, the best first."""
    context, opened, wrong = visited(browser, address, "search.html")

    def ask(query: str) -> list[str]:
        opened.goto(f"{address}search.html?{urlencode({'q': query})}")
        opened.get_by_text(re.compile("did not match|Search finished")).first.wait_for()
        assert not wrong
        return opened.locator("#search-results li > a:first-child").evaluate_all(
            "all => all.map(e => new URL(e.href).pathname)"
        )

    yield ask
    context.close()


@pytest.fixture(scope="module")
def searching(finding):
    """The first hit, "" if there is none."""
    return lambda query: (finding(query) or [""])[0]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Figure 3.4", "notebooks/thesis_3_mechanisms.html"),
        ("Figure 3.5", "notebooks/thesis_3_top_k.html"),
        ("figure 3.1", "notebooks/thesis_3_heat_map.html"),
        ("3.4", "notebooks/thesis_3_mechanisms.html"),
        ("Theorem 1", "notebooks/joint_theorem_1.html"),
        ("Table 3.2", "notebooks/thesis_3_datasets.html"),
        ("Scenario 2", "notebooks/joint_scenario_2.html"),
        ("Claims of PULP", "ledger_pulp.html"),
    ],
)
def test_the_search_names_the_page_of_a_title_first(searching, query, first):
    assert searching(query) == f"/{first}"


@pytest.mark.parametrize("query", ["ledger", "k-anonymity", "AP-Attack", "Geo-I", "re-identification", "dχ", "3.6", "heat map"])
def test_the_search_finds_the_words_of_the_book(searching, query):
    """The first page that it names holds them."""
    page = (SITE / searching(query).lstrip("/")).read_text("utf-8")
    assert query.casefold() in unescape(re.sub("<[^>]*>", "", page)).casefold()


@pytest.mark.parametrize(
    "query",
    [
        "names are removed",
        "text and code differ",
        "attacker knows the defence",
        "adaptive adversary",
        "another grid",
        "held-out evaluation",
        "selection bias",
        "many reports",
        "unit of ε",
        "privacy budget",
        "noise reveals a user",
        "k-anonymity compose",
        "hidden stops",
        "which mechanism should I use",
    ],
)
def test_the_search_finds_an_insight_by_its_plain_words(finding, query):
    """The page of the insights, or the page that an insight links to, is among the first five."""
    article = re.search("(?s)<article.*</article>", (SITE / "insights.html").read_text("utf-8"))[0]
    linked = {f"/{page}" for page in re.findall(r'href="((?:notebooks/\w+|across)\.html)', article)}
    assert {*finding(query)[:5]} & {"/insights.html", *linked}


@pytest.mark.parametrize("query", ["(k, δ)", "[Cerf", "1/m", "T2.4"])
def test_the_search_finds_something_for_words_with_signs(searching, query):
    assert searching(query)


def test_the_landing_page_is_two_screens_of_four_hundred_words(browser, address):
    context, page, _ = visited(browser, address, "index.html")
    words, bottom = page.evaluate(
        """() => { const article = document.querySelector('.bd-article'), copy = article.cloneNode(true);
            copy.querySelectorAll('figure, script').forEach(e => e.remove());
            copy.querySelectorAll('td, th, p, li').forEach(e => e.append(' '));
            return [copy.textContent.split(/\\s+/).filter(Boolean).length, article.getBoundingClientRect().bottom + scrollY]; }"""
    )
    context.close()
    assert words <= 400
    assert bottom <= 2 * 1024  # of a screen of 1280 × 1024


def test_an_assessment_prints_on_four_sheets(browser):
    made = ROOT / "book" / "_generated"
    notebook = nbformat.read(made / "executed" / "city" / "across_traces.ipynb", 4)
    record = json.loads((made / "downloads" / "city" / "across_traces.json").read_text("utf-8"))
    page = browser.new_page()
    page.set_content(webpage.page(notebook, record))
    printed = sheets(page)
    page.close()
    assert len(printed) <= 4


def test_a_map_becomes_interactive(browser, address):
    pages = [page for page in PAGES if 'class="mobpriv-map"' in (SITE / page).read_text(encoding="utf-8")]
    if not pages:
        pytest.fail("no page of this book holds a map")
    context, opened, wrong = visited(browser, address, pages[0])
    opened.wait_for_selector(".mobpriv-map .leaflet-container", timeout=10_000)
    assert opened.locator(".mobpriv-map svg[role=img]").first.is_hidden()
    context.close()
    assert not wrong
