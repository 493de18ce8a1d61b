"""Estimates: the duration of a run, from recorded runs, and the number of records in a file, without reading it."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.optimize import nnls

from mobpriv import datasets
from mobpriv.base.numbers import shown
from mobpriv.book import provenance, runs
from mobpriv.book.results import ROOT
from mobpriv.datasets.formats import READERS
from mobpriv.datasets.lines import PACKED

_START_SECONDS = 5.0  # s, start of a run: kernel and imports
_COUNTED_BYTES = 1 << 20  # bytes of a text file in which records are counted


class Size(NamedTuple):
    records: int
    exact: bool

    def __str__(self) -> str:
        return f"{'' if self.exact else 'about '}{shown(self.records)} records"


class Timed(NamedTuple):
    title: str  # of the run
    records: int  # of its data set
    seconds: float
    variant: str = ""  # variant, if the notebook has several


def size(dataset: str) -> Size | None:
    """The number of records: from a Parquet file, or estimated from the first megabyte of a text; None if neither is possible."""
    known = datasets.DATASETS.get(dataset)
    path = datasets.data_folder() / f"{dataset}.parquet" if known and not known.place else Path(dataset)
    if path.is_file() and datasets.is_parquet(path):
        try:
            return Size(pq.read_metadata(path).num_rows, True)
        except (pa.ArrowException, OSError):
            return None
    if not path.is_file() or path.suffix.lower() in (*PACKED, *READERS):  # whose lines are not records
        return None
    with path.open("rb") as file:
        head = file.read(_COUNTED_BYTES)
    lines, file_size = head.count(b"\n"), path.stat().st_size
    if file_size <= len(head):
        return Size(max(lines - 1, 0), False)
    two_digits = 10 ** max(len(str(lines * file_size // len(head))) - 2, 0)
    return Size(round(lines * file_size / len(head) / two_digits) * two_digits, False)


def _on_record(notebook: str, root: Path = ROOT) -> list[Timed]:
    """The full runs of a notebook with known time and number of records: published runs and the last build."""
    registry, timed = runs.read(root), []
    for run in registry.runs.values():
        record = provenance.read_record(run.folder(root) / f"{notebook}.json")
        # the data card of its data set: its own, or that of a run on the same file
        alike = [run, *(other for other in registry.runs.values() if run.file and other.file == run.file)]
        cards = (provenance.read_record(other.folder(root) / "data_card.json") for other in alike)
        card = next(filter(None, cards), None)
        if record and card and not record["provenance"]["parameters"].get("quick"):
            records = int(card["results"]["records"]["value"])
            run_provenance = record["provenance"]
            timed.append(Timed(run.title, records, run_provenance["seconds"], run_provenance["parameters"].get("variant", "")))
    return timed


def expected(notebook: str, parameters: dict, data_size: Size | None, root: Path = ROOT) -> str:
    """The estimated duration of a run and its evidence, in words: recorded times in proportion to the records, and on a line.

    Runs of the other variant, and runs that took hardly longer than the start, count only if there are no others.
    """
    if parameters.get("quick"):
        return "some seconds to two minutes after the start, because it uses few users only"
    if parameters.get("minutes"):  # depends on the visited cells, not on the number of records
        return f"about {parameters['minutes']:g} min at most for the optimal channels (the parameter minutes)"
    known = _on_record(notebook, root)
    known = [t for t in known if t.variant == parameters.get("variant", "")] or known
    known = [t for t in known if t.seconds > 2 * _START_SECONDS] or known
    evidence = ", ".join(f"{in_time(t.seconds)} on {t.title} with {shown(t.records)} records" for t in known)
    if not known or data_size is None:
        why = "no full run of the notebook is on record" if not known else "the number of records is not known"
        return f"unknown, because {why}"
    seconds, records = np.array([(max(timed.seconds - _START_SECONDS, 1.0), timed.records) for timed in known]).T
    times = seconds / records * data_size.records
    if len(set(records)) > 1:  # work that does not grow with the records: a line, whose relative errors are smallest
        constant, of_record = nnls(np.column_stack([1 / seconds, records / seconds]), np.ones(len(seconds)))[0]
        times = np.append(times, constant + of_record * data_size.records)
    low, high = (in_time(_START_SECONDS + bound) for bound in (times.min(), times.max()))
    return f"about {low if low == high else f'{low} to {high}'} on a computer like that of the recorded runs ({evidence})"


def in_time(seconds: float) -> str:
    """A duration in a readable unit: "40 s", "12 min", "1.5 h"."""
    if seconds < 100:
        return f"{round(seconds, -1 if seconds >= 20 else 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
