"""Fixtures shared by the tests."""

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# no deadline: a first example compiles; in CI the same examples at each run (what is found by chance is found here), and fewer
settings.register_profile("here", deadline=None, max_examples=60)
settings.register_profile("ci", deadline=None, max_examples=25, derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

if "PYTEST_XDIST_WORKER" in os.environ:  # workers that share the cores would have their threads wait for one another's
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    import numba

    numba.set_num_threads(1)  # the fixture "threads" gives them back
    gc.disable()  # until the tests are collected: see below

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("MOBPRIV_SHARED", ROOT.parent / "shared"))  # recorded outputs and real data, beside the project
NOTHING_CAN_BE = [
    float("nan"),
    "a text",
    "0.5",
    [],
    {},
    object(),
    1j,
    np.str_("x"),
    np.datetime64("2020-01-01"),
    -np.inf,
    b"1",
]  # no parameter of a mechanism


def pytest_collection_finish() -> None:
    """Imports and collected tests stay: to look through them for garbage took a tenth of the time."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    gc.unfreeze()  # or highspy counts at the end what it calls leaks


def refuses(words: str, call, /, *given, **named) -> None:
    """The call is refused with these words (a regular expression), in one line."""
    __tracebackhide__ = True  # a failure shows the test
    with pytest.raises(ValueError, match=words, check=lambda error: "\n" not in str(error)):
        call(*given, **named)  # the error is bound to no name: its traceback would keep open what the call opened


def refusals(*cases, call=lambda what: what()):
    """A test of several refusals: each case holds what the call is given and, last, the words."""

    @pytest.mark.parametrize(("given", "words"), [(given, words) for *given, words in cases], ids=[str(c[-1]) for c in cases])
    def test(given, words):
        refuses(words, call, *given)

    return test


def published(notebook: str, run: str = "cabspotting") -> dict:
    """The book's results of a notebook on real data."""
    return json.loads((ROOT / "book" / "results" / run / f"{notebook}.json").read_text("utf-8"))["results"]


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


@pytest.fixture
def threads() -> Iterator[int]:
    """All threads of compiled code, as many as there are cores, for tests of what they do."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    yield numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(before)


@pytest.fixture
def warm() -> Iterator[None]:
    """Kernels that need not import the package anew, for tests of what notebooks do."""
    from mobpriv.book.warm_kernels import kernels

    with kernels():
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator:
    """Two Dask workers in this process, on free ports: others may test at the same time."""
    distributed = pytest.importorskip("distributed")
    # None would not mean no dashboard, but port 8787
    options = {"processes": False, "dashboard_address": ":0", "protocol": "tcp"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
        yield cluster


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
