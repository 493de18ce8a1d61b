"""The registry, ``book/results/runs.yml``: what pages, claims and the build know of data sets and papers."""

from pathlib import Path
from typing import NamedTuple

from mobpriv.book import yaml_files

KINDS = ("traces", "calls")
READINGS = ("text", "program")


class Run(NamedTuple):
    name: str
    title: str  # what the pages call it
    kind: str  # of its data: traces | calls
    data: str = ""  # the data set whose printed numbers it is held against; "" for none
    reading: str = "text"
    synthetic: bool = False  # made-up data that come with the book: every build runs it, with the notebooks' own defaults
    made_up: bool = False  # a run on a real file whose people are made up (on real boundaries): it stands behind real data
    file: str = ""  # pattern of its file in the folder of real data
    parameters: dict = {}  # noqa: RUF012  (a default that nothing changes)
    notebooks: tuple[str, ...] = ()  # of a run on real data; an embedded one has those whose default data set it is


def named(title: str) -> str:
    """A title within a sentence: "Cabspotting", "the synthetic city"."""
    return f"the {title}" if title[0].islower() else title


class Paper(NamedTuple):
    title: str  # what the pages call it
    claims: str  # with what the ids of its claims begin
    errata: str  # with what those of its errata begin
    data_sets: tuple[str, ...] = ()  # those that it used itself


class Registry(NamedTuple):
    runs: dict[str, Run]
    data_sets: dict[str, str]  # with printed numbers -> what the pages call them
    papers: dict[str, Paper] = {}  # noqa: RUF012  (a default that nothing changes)

    def title(self, name: str) -> str:
        """What a run or a data set is called on the pages; what is not in the registry keeps its name."""
        return self.runs[name].title if name in self.runs else self.data_sets.get(name, name)

    def place(self, name: str) -> tuple:
        """Where a run stands among the others: as in the registry, strangers behind it by name."""
        order = list(self.runs)
        return (order.index(name), "") if name in self.runs else (len(order), name)

    def paper(self, name: str) -> Paper:
        """The paper that a ledger file names; ValueError, one line, for one that the registry lacks."""
        if name not in self.papers:
            raise ValueError(
                f"runs.yml: papers lacks {name!r}, which a file of claims or errata names (known: {', '.join(self.papers)})"
            )
        return self.papers[name]

    @property
    def embedded(self) -> list[str]:
        return [run.name for run in self.runs.values() if run.synthetic]


def read(root: Path) -> Registry:
    """The registry of the project at ``root``; ValueError, one line, for what it must not hold."""
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
    if run.kind not in KINDS or run.reading not in READINGS:
        raise ValueError(f"{path.name}: {name}: kind is one of {', '.join(KINDS)}, reading one of {', '.join(READINGS)}")
    if run.synthetic == bool(run.file and run.notebooks):
        raise ValueError(f"{path.name}: {name}: either synthetic: true, or a file and its notebooks")
    return run
