"""Fixtures shared by the tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("MOBPRIV_SHARED", ROOT.parent / "shared"))  # recorded outputs and real data, beside the project


def _folder(name: str) -> Path:
    path = SHARED / name
    if not path.is_dir():
        pytest.skip(f"needs the folder {name}/ beside the project (or under MOBPRIV_SHARED)")
    return path


@pytest.fixture(scope="session")
def reference() -> Path:
    """Outputs recorded from the authors' programs."""
    return _folder("reference")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Real traces: never copied into the project."""
    return _folder("data")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The built book, served."""
    from built_site import served

    with served() as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    from chromium import CHROMIUM, FLAGS, MISSING

    if MISSING:
        pytest.skip(MISSING)
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()
