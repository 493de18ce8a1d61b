"""The built book in a real browser: no request leaves it, no script fails, no link is dead, no new accessibility violation."""

from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest
from built_site import PAGES, SITE, needs_the_book, visited

# What the theme brings: (rule, part of the offending element). Nothing of ours belongs here.
OF_THE_THEME = (
    ("region", "logo__title"),  # the book's name beside the logo stands outside the landmarks
)
pytestmark = needs_the_book


@pytest.mark.parametrize("page", PAGES)
def test_nothing_fails_and_nothing_leaves_the_site(browser, address, page):
    context, _, wrong = visited(browser, address, page)
    context.close()
    assert not wrong


@pytest.mark.parametrize("page", PAGES)
def test_no_page_is_wider_than_a_phone(browser, address, page):
    context, opened, _ = visited(browser, address, page, "phone")
    wide = opened.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    context.close()
    assert wide <= 0


@pytest.fixture(scope="module")
def anchors(browser, address) -> dict[str, tuple[set[str], list[str]]]:
    """Of every page: the ids it holds and the links it makes."""
    context = browser.new_context(java_script_enabled=False)
    opened, found = context.new_page(), {}
    for page in PAGES:
        opened.goto(address + page)
        ids = opened.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
        found[page] = set(ids), opened.eval_on_selector_all("[href]", "all => all.map(e => e.getAttribute('href'))")
    context.close()
    return found


@pytest.mark.parametrize("page", PAGES)
def test_no_internal_link_is_dead(anchors, page):
    dead = []
    for href in anchors[page][1]:
        target, anchor = urldefrag(urljoin(page, href))
        if urlparse(href).scheme or href.startswith("//"):
            continue
        target = unquote(urlparse(target).path)
        if not (SITE / target).exists():
            dead.append(href)
        elif anchor and target in anchors and unquote(anchor) not in anchors[target][0]:
            dead.append(href)
    assert not dead


@pytest.mark.parametrize("view", ["light", "dark"])
@pytest.mark.parametrize("page", [page for page in PAGES if page not in ("genindex.html", "search.html")])
def test_accessibility(browser, address, page, view):
    from axe_playwright_python.sync_playwright import Axe

    context, opened, _ = visited(browser, address, page, view)
    found = Axe().run(opened).response["violations"]
    context.close()
    violations = [
        f"{violation['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for violation in found
        for node in violation["nodes"]
        if not any(violation["id"] == rule and part in node["html"] for rule, part in OF_THE_THEME)
    ]
    assert not violations


def test_search_finds_a_word_of_the_ledger(browser, address):
    context, opened, wrong = visited(browser, address, "search.html?q=ledger")
    opened.wait_for_selector("#search-results li", timeout=10_000)
    titles = opened.locator("#search-results li").all_inner_texts()
    context.close()
    assert any("claims, one by one" in title for title in titles)
    assert not wrong


def test_a_map_becomes_interactive(browser, address):
    pages = [page for page in PAGES if 'class="mobpriv-map"' in (SITE / page).read_text(encoding="utf-8")]
    if not pages:
        pytest.fail("no page of this book holds a map")
    context, opened, wrong = visited(browser, address, pages[0])
    opened.wait_for_selector(".mobpriv-map .leaflet-container", timeout=10_000)
    assert opened.locator(".mobpriv-map svg[role=img]").first.is_hidden()
    context.close()
    assert not wrong
