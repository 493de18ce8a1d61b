"""How a table is written, found out from its names and its first rows: which column is which, and what its times are.

Nothing is guessed between two candidates, no time zone at all: :exc:`mobpriv.datasets.times.Unclear` says what is missing.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow.parquet as pq

from mobpriv.datasets import tables
from mobpriv.datasets.tables import ROLES, existing
from mobpriv.datasets.times import Unclear, kind_of, times

ROWS = 10_000  # that are looked at
USUAL = {  # what columns are called, without case, spaces and the like
    "user": "user uid userid username device deviceid id person personid participant subject subscriber subscriberid imsi vehicle vehicleid taxi cab",
    "t": "t ts time times timestamp datetime date timeutc timestamputc datetimeutc utc utctime unixtime unixtimestamp epoch localtime recordedat",
    "lat": "lat latitude latitudedeg y",
    "lng": "lng lon long longitude longitudedeg x",
}
KINDS = {"s": "seconds since 1970", "ms": "milliseconds since 1970", "iso": "text as in ISO 8601", "": "a column of times"}


class Reading(NamedTuple):
    """How a table is to be read: what :func:`mobpriv.datasets.read_table` asks for."""

    columns: dict[str, str]  # user, t, lat, lng -> the column's name
    time: str  # "s", "ms", "iso"; "" for a column of type time
    zone: str  # of times that name none; "" where they name it, or are UTC
    guessed: tuple[str, ...]  # whose column was found by its name; "time" where milliseconds were found

    @property
    def arguments(self) -> dict:
        """Those of :func:`mobpriv.datasets.read_table`."""
        return {"columns": self.columns, "time": self.time or None, "zone": self.zone or None}

    @property
    def in_words(self) -> str:
        named = ", ".join(f"{ROLES[role]} = {name}" for role, name in self.columns.items())
        zone = f", in the zone {self.zone}" if self.zone else ""
        return f"{named}; times are {KINDS[self.time]}{zone}"


def recognised(path, columns: dict[str, str] | None = None, time: str = "", zone: str = "") -> Reading:
    """How the table at ``path`` is to be read. What is given (``columns``: role -> name) is taken at its word.

    Raises :exc:`Unclear`, which names what must be said, where a column is not found or two could be it, where times show no zone, and where
    numbers are no times.
    """
    path, given = existing(path), columns or {}
    names, delimiter = (pq_names(path), None) if path.suffix == ".parquet" else tables.head(path)
    found = {role: given.get(role) or _column(path, role, names) for role in ROLES}
    tables.check_columns(path, names, found)
    sample, found_out = _times_of(path, found, delimiter), not time
    if not time and len(sample):
        try:
            time = kind_of(sample) or ("iso" if delimiter else "")
        except Unclear as reason:
            raise Unclear(f"{path}: {reason}", reason.asks) from None
    times(sample, time or None, zone or None, str(path))
    guessed = [role for role, name in found.items() if name != given.get(role, role)]
    return Reading(found, time, zone, (*guessed, *(["time"] if found_out and time == "ms" else [])))


def _column(path: Path, role: str, names: list[str]) -> str:
    """The column that is called as the role is, or the only one that is called as such columns are; the role itself where none is."""
    if role in names:
        return role
    candidates = [name for name in names if re.sub(r"[\W_]+", "", name).lower() in USUAL[role].split()]
    if len(candidates) > 1:
        raise Unclear(f"{path}: the {ROLES[role]} could be column {' or '.join(candidates)}: say which", {role: candidates[0]})
    return candidates[0] if candidates else role


def pq_names(path: Path) -> list[str]:
    with tables.whole(path):
        return pq.read_schema(path).names


def _times_of(path: Path, columns: dict[str, str], delimiter: str | None) -> pd.Series:
    """The first times of a table that are not empty, as they stand there."""
    name = columns["t"]
    if path.suffix == ".parquet":
        with tables.whole(path):
            batch = next(pq.ParquetFile(path).iter_batches(ROWS, columns=[name]), None)
        column = batch.to_pandas()[name] if batch is not None else pd.Series([], dtype="str")
    else:
        column = tables.first_rows(path, columns, delimiter)["t"].head(ROWS)
    column = column.dropna()
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    return column[column.astype("str").str.strip() != ""]
