"""Every notebook of the book: stripped, its parameters explained, listed, and able to run in its quick version."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from mobpriv.book import notebooks, results, running

NOTEBOOKS = sorted((results.ROOT / "notebooks").glob("*.ipynb"))
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:papermill", "ignore::DeprecationWarning:nbclient"),
]
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def test_no_notebook_carries_outputs():
    files = [str(path) for path in NOTEBOOKS]
    found = subprocess.run(
        [sys.executable, "-m", "nbstripout", "--verify", "--keep-id", *files], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout + found.stderr


@each
def test_parameters_are_annotated_and_explained(path: Path):
    cells = nbformat.read(path, as_version=4).cells
    tagged = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    found = notebooks.parameters(path)
    lines = [line for line in tagged[0].source.splitlines() if line.strip()]
    assert len(found) == len(lines), "one parameter a line"
    assert (found["dataset"].type, found["dataset"].default) == ("str", notebooks.EMBEDDED)
    assert found["seed"].type == "int"
    assert (found["quick"].type, found["quick"].default) == ("bool", False)
    for p in found.values():
        assert p.type != "None", f"{p.name} has no annotation"
        assert p.meaning, f"{p.name} has no comment that says what it means"


@each
def test_it_opens_with_its_title(path: Path):
    first = nbformat.read(path, as_version=4).cells[0]
    assert first.cell_type == "markdown"
    assert any(line.startswith("# ") for line in first.source.splitlines())


@each
def test_the_quick_run_saves_results(path: Path, tmp_path):
    record = running.run(path, {"quick": True}, output=tmp_path / "out.ipynb", results=tmp_path / "out.json")
    assert record["results"]
    outputs = [o for cell in nbformat.read(tmp_path / "out.ipynb", 4).cells if cell.cell_type == "code" for o in cell.outputs]
    warned = [o.text for o in outputs if o.output_type == "stream" and o.name == "stderr"]
    assert not warned
