"""The wheel: an installed package protects and judges the embedded city, without a checkout and without the packages of the book."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# an environment without these packages, in which the embedded files are where the wheel puts them
STARTED = """
import importlib.abc, pathlib, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in ("filelock", "ipykernel", "jupyter_book", "nbclient", "nbconvert", "nbformat", "papermill", "pybtex"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
sys.prefix = sys.argv.pop(1)
from mobpriv.cli import app
app(prog_name="mobpriv")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder into which the wheel's package and files are unpacked."""
    folder, source = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("source") / "mobpriv"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):  # setuptools leaves its build beside what it builds
        if not name.startswith(("tests/", "benchmarks/")) and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            os.link(ROOT / name, source / name) if os.stat(ROOT).st_dev == os.stat(source).st_dev else (
                source / name
            ).write_bytes((ROOT / name).read_bytes())
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        folder,
        ".",
    ]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    (data,) = (folder / "site").glob("mobpriv-*.data/data")
    return folder / "site", data


@pytest.fixture
def mobpriv(installed, tmp_path):
    def call(*arguments):
        site, prefix = installed
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MOBPRIV_")}
        return subprocess.run(
            [sys.executable, "-c", STARTED, str(prefix), *arguments],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(site), "COLUMNS": "200"},
            capture_output=True,
            text=True,
        )

    return call


def test_the_installed_package_protects_the_embedded_city(mobpriv, tmp_path):
    done = mobpriv("protect", "city", "--with", "geoi", "-o", "out.parquet")
    assert (done.returncode, done.stderr) == (0, "")
    assert "195 users published" in done.stdout
    assert (tmp_path / "out.parquet.manifest.json").is_file()


def test_a_command_that_needs_the_book_says_what_to_install(mobpriv):
    done = mobpriv("assess", "city", "--quick")
    assert done.returncode == 2
    assert done.stderr.strip().endswith("install the packages of the book, pip install 'mobpriv[book]'")


def test_the_wheel_holds_what_an_assessment_needs(installed):
    share = installed[1] / "share" / "mobpriv"
    for name in ("notebooks/across_traces.ipynb", "book/quantities/across.yml", "book/glossary.md", "book/_static/figures.css"):
        assert (share / name).is_file()
    results = {file.relative_to(ROOT) for file in (ROOT / "book" / "results").rglob("*.*") if not file.name.startswith(".")}
    assert results <= {file.relative_to(share) for file in share.rglob("*.*")}
