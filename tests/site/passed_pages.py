"""Which pages of the built book passed before as they are: those need no second visit. Not in CI, where every page is visited.

What a page is: its HTML without what only says when and at which commit it was made, every style and script of the book, and the code
and the versions of the programs that visit it.
"""

import hashlib
import json
import os
import re
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

from built_site import SITE
from chromium import CHROMIUM

TESTS = Path(__file__).parents[1]
FOLDER = TESTS.parent / ".pytest_cache" / "passed_pages"
VISITORS = ("conftest.py", *(f"site/{name}.py" for name in ("built_site", "chromium", "passed_pages", "test_site_pages")))
PROGRAMS = ("axe-playwright-python", "playwright")
# the time that a run took, in its provenance and where the page opens, and the commit of its code
OF_THE_BUILD = r"running time</dt><dd>[^<]*|\([^()<]* on the data that come with the book|commit [0-9a-f]{7,40}(?: \+ changes)?"


def passed(page: str) -> bool:
    """Has the page passed as it is now?"""
    return not os.environ.get("CI") and _mark(page).is_file()


def keep(page: str) -> None:
    """Remember that the page passed."""
    if not os.environ.get("CI"):
        FOLDER.mkdir(parents=True, exist_ok=True)
        _mark(page).touch()


def _mark(page: str) -> Path:
    return FOLDER / digest((SITE / page).read_text(encoding="utf-8"), surroundings())


def digest(html: str, others: str) -> str:
    """Of a page and of what it is shown and visited with."""
    return hashlib.sha256(json.dumps([re.sub(OF_THE_BUILD, "", html), others]).encode()).hexdigest()


@cache
def surroundings() -> str:
    """Of every style and script of the book and of what visits it."""
    hashed = hashlib.sha256()
    shown = sorted(path for path in SITE.rglob("*") if path.suffix in (".css", ".js") and path.name != "searchindex.js")
    for path in [*shown, *(TESTS / name for name in VISITORS)]:
        hashed.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    browser = subprocess.run([CHROMIUM, "--version"], capture_output=True, text=True, check=True).stdout
    hashed.update(json.dumps([browser, *map(version, PROGRAMS)]).encode())
    return hashed.hexdigest()
