"""The built book in a real browser: no request leaves it, no script fails, no link is dead, no new accessibility violation."""

import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest

SITE = Path(os.environ.get("MOBPRIV_SITE", Path(__file__).parent.parent / "_build" / "html"))
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync"
).split()
# What the theme and the citation markup bring: (rule, part of the offending element). Nothing of ours belongs here.
OF_THE_THEME = (
    ("region", "logo__title"),  # the book's name beside the logo stands outside the landmarks
    ("aria-allowed-role", 'role="doc-biblioentry"'),
    ("aria-deprecated-role", 'role="doc-biblioentry"'),
    ("aria-required-children", "citation-list"),
)
VIEWS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 390)}

_missing = None
if CHROMIUM is None:
    _missing = "needs chromium (from the distribution's packages)"
elif not (SITE / "index.html").is_file():
    _missing = "needs the built book (make book)"
if _missing and os.environ.get("CI"):
    raise RuntimeError(f"in CI the built book must be tested, and it {_missing}")
pytestmark = pytest.mark.skipif(_missing is not None, reason=str(_missing))

PAGES = sorted(p.relative_to(SITE).as_posix() for p in SITE.rglob("*.html") if not {"_static", "_sources"} & set(p.parts))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(SITE))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


def _opened(browser, address: str, page: str, view: str = "light") -> tuple:
    """The page, scrolled through once so that everything lazy has loaded, and what went wrong meanwhile."""
    scheme, width = VIEWS[view]
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, reduced_motion="reduce")
    opened, wrong = context.new_page(), []
    opened.on(
        "request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else wrong.append(f"request to {r.url}")
    )
    opened.on("response", lambda r: wrong.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    opened.on("console", lambda m: wrong.append(f"console: {m.text}") if m.type == "error" else None)
    opened.on("pageerror", lambda e: wrong.append(f"script: {e}"))
    opened.goto(address + page, wait_until="networkidle")
    opened.evaluate(
        """async () => { for (let y = 0; y < document.body.scrollHeight; y += 600) {
               window.scrollTo(0, y); await new Promise(done => setTimeout(done, 30)); } }"""
    )
    opened.wait_for_load_state("networkidle")
    return context, opened, wrong


@pytest.mark.parametrize("page", PAGES)
def test_nothing_fails_and_nothing_leaves_the_site(browser, address, page):
    context, _, wrong = _opened(browser, address, page)
    context.close()
    assert not wrong


@pytest.mark.parametrize("page", PAGES)
def test_no_page_is_wider_than_a_phone(browser, address, page):
    context, opened, _ = _opened(browser, address, page, "phone")
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

    context, opened, _ = _opened(browser, address, page, view)
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
    context, opened, wrong = _opened(browser, address, "search.html?q=ledger")
    opened.wait_for_selector("#search-results li", timeout=10_000)
    titles = opened.locator("#search-results li").all_inner_texts()
    context.close()
    assert any("claims, one by one" in title for title in titles)
    assert not wrong


def test_a_map_becomes_interactive(browser, address):
    pages = [page for page in PAGES if 'class="mobpriv-map"' in (SITE / page).read_text(encoding="utf-8")]
    if not pages:
        pytest.fail("no page of this book holds a map")
    context, opened, wrong = _opened(browser, address, pages[0])
    opened.wait_for_selector(".mobpriv-map .leaflet-container", timeout=10_000)
    assert opened.locator(".mobpriv-map svg[role=img]").first.is_hidden()
    context.close()
    assert not wrong
