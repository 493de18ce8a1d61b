"""Every notebook of the book: stripped, its parameters explained, its cells where the conventions want them, its quick run."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from mobpriv.book import build, notebooks, provenance, results, running, runs

NOTEBOOKS = sorted((results.ROOT / "notebooks").glob("*.ipynb"))
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:papermill", "ignore::DeprecationWarning:nbclient")
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
# of each chapter one notebook is run quickly, with fewer users and shorter lists than the build takes; where the build follows, as in CI,
# one of traces and one of calls; all are with -m quick_run
QUICKLY = {"thesis_3_records", "primule_risk"}
if "CI" not in os.environ:
    QUICKLY |= {"thesis_4_steps", "thesis_5_traces", "thesis_6_no_single", "joint_rivals", "pulp_laws", "dchi_sample"}
BORDER = {"choose", "load", "prepare", "city_truth"}  # what reads a reader's data


def code_cells(path: Path) -> list[tuple[ast.Module, set[str]]]:
    cells = nbformat.read(path, as_version=4).cells
    return [(ast.parse(cell.source), set(cell.metadata.get("tags", []))) for cell in cells if cell.cell_type == "code"]


def names(tree: ast.AST, context: type) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def changed(tree: ast.AST) -> set[str]:
    """Names that a cell makes or writes into: x, x[…], x.y, x |= …, def x."""
    changes = names(tree, ast.Store)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            changes.add(node.name)
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            changes |= names(node.value, ast.Load)
    return changes


def test_no_notebook_carries_outputs():
    command = [sys.executable, "-m", "nbstripout", "--verify", "--keep-id", *map(str, NOTEBOOKS)]
    completed = subprocess.run(command, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr


@each
def test_parameters_are_annotated_and_explained(path: Path):
    cells = nbformat.read(path, as_version=4).cells
    (tagged,) = (cell for cell in cells if "parameters" in cell.metadata.get("tags", []))
    parameters = notebooks.parameters(path)
    assert len(parameters) == len([line for line in tagged.source.splitlines() if line.strip()]), "one parameter a line"
    assert parameters["dataset"].type == "str"
    assert parameters["dataset"].default in runs.read(results.ROOT).embedded
    assert parameters["seed"].type == "int"
    assert (parameters["quick"].type, parameters["quick"].default) == ("bool", False)
    # an ε of locations is per metre, of profiles of calls per POI or visit
    of_epsilon = ("per POI", "per visit") if path.stem.startswith("dchi_") else ("1/m",)
    for p in parameters.values():
        assert p.type != "None", f"{p.name} has no annotation"
        assert p.meaning, f"{p.name} has no comment that says what it means"
        if p.type.startswith(("int", "float", "list[int]", "list[float]")):
            assert p.allowed, f"{p.name} has no range"
        assert (p.type, p.unit) != ("int", "m"), f"{p.name} counts things, and its comment begins with a symbol read as metres"
        assert "epsilon" not in p.name or p.unit in of_epsilon, p.name
    defaults = {p.name: p.default for p in parameters.values()}
    assert notebooks.checked_parameters(path, defaults) == defaults, "the defaults lie in their ranges"


@each
def test_what_is_quick_stands_in_one_cell(path: Path):
    cells = code_cells(path)
    assert sum("quick" in tags for _, tags in cells) <= 1
    defaults = {p.name: p.default for p in notebooks.parameters(path).values()}
    # refuses lines of another form, knows the values beforehand
    for name, value in notebooks.quick_values(path, defaults).items():
        assert notebooks.checked_parameters(path, {name: value}) == {name: value}
        assert value != defaults[name], f"a quick run leaves {name} as it is"
    assert not any("quick" in names(tree, ast.Load) for tree, tags in cells if not tags & {"quick", "parameters"})


@each
def test_data_are_read_in_cells_tagged_input_which_stand_together(path: Path):
    """Apart they would be folds of their own between those of the experiment."""
    cells = code_cells(path)
    for tree, tags in cells:
        called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
        reading = BORDER & {getattr(f, "id", getattr(f, "attr", "")) for f in called}
        assert not reading or "input" in tags, f"{', '.join(reading)} outside a cell tagged input"
    places = [i for i, (_, tags) in enumerate(cells) if "input" in tags]
    assert not places or places[-1] - places[0] == len(places) - 1


@each
def test_it_opens_with_its_title_and_figures_make_no_numbers(path: Path):
    """No name that a cell tagged ``figure`` makes or changes is read by a later cell that is not."""
    first = nbformat.read(path, as_version=4).cells[0]
    assert (first.cell_type, bool(re.search("^# ", first.source, re.MULTILINE))) == ("markdown", True)
    drawn = set()
    for tree, tags in code_cells(path):
        if "figure" in tags:
            drawn |= changed(tree)
        else:
            rebound = names(tree, ast.Store)  # made anew before it is read, as far as names tell
            assert not drawn & names(tree, ast.Load) - rebound


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.quick_run, id=path.stem) for path in NOTEBOOKS if path.stem not in QUICKLY]
    + [pytest.param(path, id=path.stem) for path in NOTEBOOKS if path.stem in QUICKLY],
)
@pytest.mark.usefixtures("warm")
def test_the_quick_run_saves_results(path: Path, tmp_path):
    record = running.run(path, {"quick": True}, output=tmp_path / "out.ipynb", results=tmp_path / "out.json")
    assert record["results"]
    short = notebooks.shortened(path)
    defaults = notebooks.parameters(path)
    used = record["provenance"]["parameters"]
    assert used["quick"] is True
    assert [name for name in short if used[name] == defaults[name].default] == [], "the record holds what ran"
    outputs = [o for cell in nbformat.read(tmp_path / "out.ipynb", 4).cells if cell.cell_type == "code" for o in cell.outputs]
    warned = [o.text for o in outputs if o.output_type == "stream" and o.name == "stderr"]
    assert not warned


@pytest.mark.parametrize("run", runs.read(results.ROOT).runs.values(), ids=lambda run: run.name)
def test_each_parameter_of_a_run_is_one_of_a_notebook(run):
    """A run gives a notebook the parameters that it has; a misspelt one would be given to none."""
    known = {
        name for notebook in run.notebooks for name in notebooks.parameters(results.ROOT / "notebooks" / f"{notebook}.ipynb")
    }
    assert set(run.parameters) - known == set(), "book/results/runs.yml"


@pytest.mark.parametrize("run", [run for run in runs.read(results.ROOT).runs.values() if run.file], ids=lambda run: run.name)
def test_published_results_were_made_with_the_parameters_of_today(run):
    """Lists are not compared: a notebook saves the sizes that its data allowed."""
    others = {}
    for notebook in run.notebooks:
        recorded = provenance.read_record(run.folder(results.ROOT) / f"{notebook}.json")["provenance"]["parameters"]
        defaults = {name: p.default for name, p in notebooks.parameters(notebook).items() if name != "dataset"}
        today = {**defaults, **build.given_to(run, notebook, results.ROOT)}
        for name, value in today.items():
            if not isinstance(recorded[name], list) and recorded[name] != value:
                others[f"{notebook}: {name}"] = (recorded[name], value)
    assert others == {}
