"""The built book in a real browser: where it is, and a page of it opened. Its fixtures stand in ``conftest.py``."""

import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from chromium import MISSING

SITE = Path(os.environ.get("MOBPRIV_SITE", Path(__file__).parents[2] / "_build" / "html"))
VIEWS = {"light": ("light", 1280), "phone": ("light", 390)}
HEIGHT = 900

_missing = MISSING
if not _missing and not (SITE / "index.html").is_file():
    _missing = "needs the built book (make book)"
if _missing and os.environ.get("CI"):
    raise RuntimeError(f"in CI the built book must be tested, and it {_missing}")
needs_the_book = pytest.mark.skipif(_missing is not None, reason=str(_missing))

FILES = sorted(p.relative_to(SITE).as_posix() for p in SITE.rglob("*.html") if not {"_static", "_sources"} & set(p.parts))
FORWARDS = [page for page in FILES if 'http-equiv="refresh"' in (SITE / page).read_text(encoding="utf-8")[:400]]
PAGES = [page for page in FILES if page not in FORWARDS]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextmanager
def served() -> Iterator[str]:
    """The address of the book as long as it is served."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(SITE))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def tab(browser, address: str, view: str = "light") -> tuple:
    """An empty page, and the list of what goes wrong for as long as it is open."""
    scheme, width = VIEWS[view]
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": HEIGHT}, reduced_motion="reduce")
    page, wrong = context.new_page(), []
    page.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else wrong.append(f"request to {r.url}"))
    page.on("response", lambda r: wrong.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    page.on("console", lambda m: wrong.append(f"console: {m.text}") if m.type == "error" else None)
    page.on("pageerror", lambda e: wrong.append(f"script: {e}"))
    return context, page, wrong


def visit(page, address: str, name: str, view: str = "light"):
    """Open a page of the book and scroll through it once, so that everything lazy has loaded."""
    width = VIEWS[view][1]
    page.goto(address + name)  # loaded to its end: a large page is idle before that
    page.set_viewport_size({"width": width, "height": 10 * HEIGHT})  # in long strides
    page.evaluate(
        """async () => { for (let y = 0; y < document.body.scrollHeight; y += window.innerHeight) {
               window.scrollTo(0, y); await new Promise(done => setTimeout(done, 50)); }
           await window.MathJax?.startup?.promise; await document.fonts.ready; }"""
    )
    if page.locator(".mobpriv-map").count():  # a map loads its program when it is seen
        page.wait_for_load_state("networkidle")
    page.set_viewport_size({"width": width, "height": HEIGHT})


def visited(browser, address: str, name: str, view: str = "light") -> tuple:
    """A page of the book in a tab of its own, and what goes wrong for as long as it is open."""
    context, page, wrong = tab(browser, address, view)
    visit(page, address, name, view)
    return context, page, wrong
