"""Small notebooks for tests."""

import json
from pathlib import Path

import nbformat

from mobpriv.book.provenance import RECORDED

PARAMETERS = """\
dataset: str = "city"  # name or file of the data set
cell: float = 800.0  # m, side of a heat-map cell, > 0
sizes: list[int] = [1, 2]  # users, in each repetition, ≥ 1
seed: int = 1  # of the random numbers, ≥ 0
quick: bool = False  # rough and fast"""

DATA = "from types import SimpleNamespace\ndata = SimpleNamespace(name='city', sha256='ab' * 32, synthetic=True, left_out=None)"
SAVES = f"""\
import numpy as np
from mobpriv import book
{DATA}
draw = float(np.random.default_rng(seed).random())
book.save({{"rate.AP-Attack.Promesse": {{"value": 0.07, "low": 0.05, "high": 0.09, "n": 200}},
           "rate.AP-Attack.none": 0.5, "draw": draw, "cell": cell, "shown": True}}, data, "30 days")
draw"""


RUNS = """\
papers: {p: {title: "P 2020, a paper", claims: A, errata: E}}
data_sets: {cabspotting: Cabspotting}
runs:
  cabspotting: {title: Cabspotting, kind: traces, data: cabspotting, file: "c*.parquet", notebooks: [nb]}
  cabspotting-program:
    {title: "Cabspotting, as the program", kind: traces, data: cabspotting, variant: program, file: "c*.parquet", notebooks: [nb]}
  city: {title: synthetic city, kind: traces, synthetic: true}
"""


def registry(root: Path) -> None:
    """The runs of a project."""
    path = root / "book" / "results" / "runs.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(RUNS)


def publish(root: Path, runs: str, claims: str, quantities: str, published: dict[str, dict]) -> Path:
    """A project with its registry, its claims, its labels, and each run's published results of the notebook nb."""
    for name, content in {"results/runs": runs, "claims/p": claims, "quantities/p": quantities}.items():
        (path := root / "book" / f"{name}.yml").parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for run, kept in published.items():
        (folder := root / "book" / "results" / run).mkdir()
        (folder / "nb.json").write_text(json.dumps({"provenance": dict.fromkeys(RECORDED, ""), "results": kept}))
    return root


def make(root: Path, name: str, *cells: str, title: str = "A demonstration", tags: dict[int, str] | None = None) -> Path:
    """A project's notebook with a title, the parameters above and the code cells given; ``tags``: number of a cell -> its tag."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell(f"(fig-{name})=\n# {title}"), nbformat.v4.new_code_cell(PARAMETERS)]
        + [nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    )
    for number, tag in {1: "parameters", **(tags or {})}.items():
        notebook.cells[number].metadata["tags"] = [tag]
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    path = root / "notebooks" / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path
