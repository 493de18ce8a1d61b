"""The registry of runs, data sets and papers, ``book/results/runs.yml``."""

from pathlib import Path
from typing import NamedTuple

from mobpriv.book import yaml_files

_DATA_KINDS = ("traces", "calls")
_VARIANTS = ("text", "program")


class Run(NamedTuple):
    name: str
    title: str  # on the pages
    kind: str  # of its data: traces | calls
    data: str = ""  # data set whose printed numbers it is compared with; "" for none
    variant: str = "text"
    synthetic: bool = False  # embedded synthetic data: every build runs it with the notebooks' defaults
    made_up: bool = False  # synthetic people within real boundaries: shown after real data
    file: str = ""  # pattern of the file in the folder of real data
    parameters: dict = {}  # noqa: RUF012  (a default that nothing changes)
    notebooks: tuple[str, ...] = ()  # of a run on real data; an embedded run has the notebooks that use it by default

    def folder(self, root: Path) -> Path:
        """The folder with its results; of an embedded run, those of the last build."""
        return root / "book" / ("_generated/results" if self.synthetic else "results") / self.name


def named(title: str) -> str:
    """A title within a sentence: "Cabspotting", "the synthetic city"."""
    return f"the {title}" if title[0].islower() else title


class Paper(NamedTuple):
    title: str  # on the pages
    claims: str  # prefix of the ids of its claims
    errata: str  # prefix of the ids of its errata
    data_sets: tuple[str, ...] = ()  # data sets that it used


class Registry(NamedTuple):
    runs: dict[str, Run]
    data_sets: dict[str, str]  # data set with printed numbers -> title
    papers: dict[str, Paper] = {}  # noqa: RUF012  (a default that nothing changes)

    def title(self, name: str) -> str:
        """The title of a run or a data set; its name if it is not in the registry."""
        return self.runs[name].title if name in self.runs else self.data_sets.get(name, name)

    def place(self, name: str) -> tuple:
        """The sort key of a run: order of the registry, then other runs by name."""
        order = list(self.runs)
        return (order.index(name), "") if name in self.runs else (len(order), name)

    def paper(self, name: str) -> Paper:
        """The paper of a ledger file; one-line ValueError if the registry lacks it."""
        if name not in self.papers:
            raise ValueError(
                f"runs.yml: papers lacks {name!r}, which a file of claims or errata names (known: {', '.join(self.papers)})"
            )
        return self.papers[name]

    @property
    def embedded(self) -> list[str]:
        return [run.name for run in self.runs.values() if run.synthetic]


def read(root: Path) -> Registry:
    """Read the registry of the project at ``root``; one-line ValueError for a malformed entry."""
    path = root / "book" / "results" / "runs.yml"
    content = yaml_files.content(path)
    runs = {name: _run(path, name, dict(fields)) for name, fields in content["runs"].items()}
    data_sets = content.get("data_sets", {})
    for run in runs.values():
        if run.data and run.data not in data_sets:
            raise ValueError(f"{path.name}: {run.name}: data must be one of {', '.join(data_sets)} (got {run.data!r})")
    papers = {name: _paper(path, name, fields) for name, fields in content.get("papers", {}).items()}
    return Registry(runs, data_sets, papers)


def _paper(path: Path, name: str, fields: dict) -> Paper:
    *needed, optional = Paper._fields
    if not {*needed} <= set(fields) <= {*needed, optional}:
        raise ValueError(
            f"{path.name}: {name}: a paper needs {', '.join(needed)}, and may have {optional} (got {', '.join(fields)})"
        )
    return Paper(**{**fields, optional: tuple(fields.get(optional, ()))})


def _run(path: Path, name: str, fields: dict) -> Run:
    unknown = sorted(set(fields) - set(Run._fields))
    if unknown:
        raise ValueError(f"{path.name}: {name}: unknown {', '.join(unknown)} (known: {', '.join(Run._fields[1:])})")
    missing = sorted({"title", "kind"} - set(fields))
    if missing:
        raise ValueError(f"{path.name}: {name}: lacks {', '.join(missing)}")
    run = Run(name, **{**fields, "notebooks": tuple(fields.get("notebooks", ()))})
    if run.kind not in _DATA_KINDS or run.variant not in _VARIANTS:
        raise ValueError(f"{path.name}: {name}: kind is one of {', '.join(_DATA_KINDS)}, variant one of {', '.join(_VARIANTS)}")
    if run.synthetic == bool(run.file and run.notebooks):
        raise ValueError(f"{path.name}: {name}: either synthetic: true, or a file and its notebooks")
    return run
