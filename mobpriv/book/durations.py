"""About how long a run takes, from the runs whose time is on record; and how many records a file holds, without reading it."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from mobpriv import datasets
from mobpriv.book import provenance, runs
from mobpriv.book.results import ROOT
from mobpriv.numbers import shown

START = 5.0  # s, of any run: a kernel, and what it imports
HEAD = 1 << 20  # bytes of a text that its records are counted in


class Size(NamedTuple):
    records: int
    exact: bool

    def __str__(self) -> str:
        return f"{'' if self.exact else 'about '}{shown(self.records)} records"


class Timed(NamedTuple):
    title: str  # of the run
    records: int  # of its data set
    seconds: float
    reading: str = ""  # of the paper, where the notebook has several


def size(dataset: str) -> Size | None:
    """The records of a data set: as a Parquet file says, or estimated from a text's first megabyte; None where neither can be had."""
    known = datasets.DATASETS.get(dataset)
    path = datasets.data_folder() / f"{dataset}.parquet" if known and not known.place else Path(dataset)
    if path.is_file() and datasets.is_parquet(path):
        try:
            return Size(pq.read_metadata(path).num_rows, True)
        except (pa.ArrowException, OSError):
            return None
    if not path.is_file() or path.suffix == ".gz":
        return None
    with path.open("rb") as file:
        head = file.read(HEAD)
    lines, whole = head.count(b"\n"), path.stat().st_size
    if whole <= len(head):
        return Size(max(lines - 1, 0), False)
    two_digits = 10 ** max(len(str(lines * whole // len(head))) - 2, 0)
    return Size(round(lines * whole / len(head) / two_digits) * two_digits, False)


def on_record(notebook: str, root: Path = ROOT) -> list[Timed]:
    """The whole runs of a notebook whose time and number of records are known: the published ones, and the last build's."""
    registry, found = runs.read(root), []
    for run in registry.runs.values():
        record = provenance.read_record(_folder(root, run) / f"{notebook}.json")
        card = next((card for card in map(provenance.read_record, _cards(registry, run, root)) if card), None)
        if record and card and not record["provenance"]["parameters"].get("quick"):
            records = int(card["results"]["records"]["value"])
            made = record["provenance"]
            found.append(Timed(run.title, records, made["seconds"], made["parameters"].get("reading", "")))
    return found


def _cards(registry: runs.Registry, run: runs.Run, root: Path) -> list[Path]:
    """Where the data card of a run's data set may stand: its own, or that of a run on the same file."""
    same = [run, *(other for other in registry.runs.values() if run.file and other.file == run.file)]
    return [_folder(root, other) / "data_card.json" for other in same]


def _folder(root: Path, run: runs.Run) -> Path:
    """Where the results of a run lie: the embedded one's are those of the last build."""
    return root / "book" / ("_generated/results" if run.synthetic else "results") / run.name


def expected(notebook: str, parameters: dict, here: Size | None, root: Path = ROOT) -> str:
    """About how long a run takes and from what that is known, in words: the times on record, in proportion to the records.

    Runs of the other reading, and those that took hardly more than the start, count only where there are no others.
    """
    if parameters.get("quick"):
        return "seconds beyond the start, for it looks at a few users only"
    if parameters.get("minutes"):  # no matter of records: it depends on the cells that users visited
        return f"about {parameters['minutes']:g} min at most for the optimal channels (the parameter minutes)"
    known = on_record(notebook, root)
    known = [t for t in known if t.reading == parameters.get("reading", "")] or known
    known = [t for t in known if t.seconds > 2 * START] or known
    evidence = ", ".join(f"{in_time(t.seconds)} on {t.title} with {shown(t.records)} records" for t in known)
    if not known or here is None:
        why = "no whole run of it is on record" if not known else "the number of records is not known beforehand"
        return f"how long cannot be said: {why}"
    times = sorted(START + max(timed.seconds - START, 0) * here.records / timed.records for timed in known)
    low, high = in_time(times[0]), in_time(times[-1])
    return f"about {low if low == high else f'{low} to {high}'} on a computer like that of the runs on record ({evidence})"


def in_time(seconds: float) -> str:
    """Seconds in the unit that people use: "40 s", "12 min", "1.5 h"."""
    if seconds < 100:
        return f"{round(seconds, -1 if seconds >= 20 else 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
