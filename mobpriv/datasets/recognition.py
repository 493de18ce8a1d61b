"""Recognise how a table is written, from its column names and first rows: the role of each column, and the format of its times.

If two columns are candidates, or a time zone is missing, nothing is guessed: :exc:`mobpriv.datasets.times.Unclear` names what
is missing.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow.parquet as pq

from mobpriv.base.numbers import counted
from mobpriv.calls import table as calls
from mobpriv.datasets import tables
from mobpriv.datasets.formats import Table, opened
from mobpriv.datasets.tables import ROLES_IN_WORDS, existing, is_parquet
from mobpriv.datasets.times import END_OF_DAY, IN_WORDS, Unclear, time_format, times
from mobpriv.datasets.wanted import MISSING
from mobpriv.traces import table as traces

_ROWS_EXAMINED = 10_000  # examined
USUAL = {  # usual names of columns, lower case, without spaces and punctuation; those behind a | count if there is none before it
    "user": "user uid userid username device deviceid id person personid participant subject subscriber subscriberid customer customerid "
    "caller callerid msisdn imsi imei vehicle vehicleid taxi cab | trajid trajectoryid track trackid | file",
    "t": "t ts time times timestamp datetime date timeutc timestamputc datetimeutc utc utctime unixtime unixtimestamp epoch localtime localdate "
    "recordedat trackedat eventtime eventdate eventtimestamp starttime startdate calltime calldate",
    "lat": "lat latitude latitudedeg y gpslat gpslatitude celllat celllatitude",
    "lng": "lng lon long longitude longitudedeg x gpslng gpslon gpslongitude celllng celllon celllongitude",
    "cell": "cell cellid antenna antennaid tower towerid site siteid startcell startcellid bts btsid cgi ecgi poi poiid",
    "end_cell": "endcell endcellid lastcell lastcellid",
    "duration": "duration durations durationsec durationseconds callduration",
}
_KINDS_OF_DATA = {"traces": traces.COLUMNS, "calls": calls.CALL_COLUMNS}  # kinds of tables, and the columns they need


class Reading(NamedTuple):
    """How to read a table: the arguments of :func:`mobpriv.datasets.read_table` or :func:`mobpriv.datasets.read_calls`."""

    columns: dict[str, str]  # user, t, lat, lng, or user, t, cell, and end_cell, duration -> the column's name
    time: str  # "s", "ms", "us", "ns", "iso"; "" for a column of type time
    zone: str  # of times that name none; "" if they name it, or are UTC
    guessed: tuple[str, ...]  # roles whose column was found by its name; "time" if a unit other than seconds was recognised
    notes: tuple[str, ...] = ()  # what else is unusual in how the table is written

    @property
    def arguments(self) -> dict:
        """Keyword arguments of :func:`mobpriv.datasets.read_table` and :func:`mobpriv.datasets.read_calls`."""
        return {"columns": self.columns, "time": self.time or None, "zone": self.zone or None}

    @property
    def in_words(self) -> str:
        named = ", ".join(f"{ROLES_IN_WORDS[role]} = {name}" for role, name in self.columns.items())
        zone = f", in the time zone {self.zone}" if self.zone else ""
        return "; ".join((named, f"times are {IN_WORDS[self.time]}{zone}", *self.notes))


def kind_of_table(source) -> str:
    """Whether a table, as in :func:`recognised`, holds "traces" or "calls": a cell without a position means calls."""
    plain_names = {_plain(name) for name in tables.column_names(_source(source))}
    positions = all(plain_names & set(USUAL[role].split()) for role in ("lat", "lng"))
    return "calls" if plain_names & set(USUAL["cell"].split()) and not positions else "traces"


def _source(source) -> Table | Path:
    source = opened(source)
    return source if isinstance(source, Table) else existing(source)


def recognised(source, columns: dict[str, str] | None = None, time: str = "", zone: str = "", kind: str = "traces") -> Reading:
    """How to read a table of traces or of calls: a file or a data frame. Given ``columns`` (role -> name) are not questioned.

    Raises :exc:`Unclear`, which names the missing information, in these cases:

    * a column is not found, or two could be it;
    * times show no zone, or numbers or texts are no times;
    * coordinates have a decimal comma in a table whose values are separated by commas.
    """
    source, given = _source(source), columns or {}
    path = source.path if isinstance(source, Table) else source
    in_columns = isinstance(source, Table) or is_parquet(path)
    names, above, delimiter = (tables.column_names(source), 1, None) if in_columns else tables.head(path)
    tables.check_names(path, names)
    role_columns = {role: given.get(role) or named_as(path, role, names, USUAL[role]) for role in _KINDS_OF_DATA[kind]}
    if kind == "calls":  # end cell and duration are optional
        ends = {role: given.get(role) or named_as(path, role, names, USUAL[role]) for role in calls.OPTIONAL}
        role_columns |= {role: name for role, name in ends.items() if role in given or name in names}
    tables.check_columns(path, names, role_columns)
    first = _first_rows(source, role_columns, delimiter)
    for role in [role for role in ("lat", "lng") if role in role_columns and delimiter == ","]:
        _check_points(path, role, first[role])
    sample, format_open = _moments(first["t"]), not time
    if not time and len(sample):
        try:
            time = time_format(sample) or ("iso" if delimiter else "")
        except Unclear as reason:
            raise Unclear(f"{path}: {reason}", reason.asks) from None
    times(sample, time or None, zone or None, str(path))
    guessed = [role for role, name in role_columns.items() if name != given.get(role, role)]
    notes = []
    if above > 1:
        notes.append(f"{counted(above - 1, 'line')} above the names {'is' if above == 2 else 'are'} no record")
    if END_OF_DAY in sample.astype("str").str[11:16].to_numpy():
        notes.append(f"{END_OF_DAY} is the end of its day")
    unit = ["time"] if format_open and time in ("ms", "us", "ns") else []
    return Reading(role_columns, time, zone, (*guessed, *unit), tuple(notes))


def named_as(path: Path, role: str, names: list[str], usual: str) -> str:
    """The only column with a usual name; the role itself if there is none."""
    plain_names = {name: _plain(name) for name in names}
    tiers = [[name for name in names if plain_names[name] in tier.split()] for tier in usual.split("|")]
    candidates = next(filter(None, tiers), [])
    # date and time, or calldate and calltime: the halves of a time
    halves = {plain_names[name] for name in candidates}
    if len(candidates) == len(halves) == 2 and len({half.replace("date", "time") for half in halves}) == 1:
        raise Unclear(
            f"{path}: the date and the time of day are in two columns, {' and '.join(candidates)}: join them to one such as 2024-09-03T17:21, "
            "or say which of them holds both",
            {},
        )
    if len(candidates) > 1:
        likeliest = next((name for name in candidates if plain_names[name] != "id"), candidates[0])  # an id may number the rows
        words = f"the {ROLES_IN_WORDS.get(role, role)} could be column {' or '.join(candidates)}: say which"
        raise Unclear(f"{path}: {words}", {role: likeliest})
    return candidates[0] if candidates else role


def _plain(name: str) -> str:
    """A name in lower case, without spaces and punctuation."""
    return re.sub(r"[\W_]+", "", name).lower()


def _first_rows(source: Table | Path, columns: dict[str, str], delimiter: str | None) -> pd.DataFrame:
    """The first rows of a table, unconverted, by role."""
    if delimiter:
        return tables.first_rows(source, columns, delimiter).head(_ROWS_EXAMINED)
    if isinstance(source, Table):
        batch = source.table.select(list(columns.values()))[:_ROWS_EXAMINED]
    else:
        with tables.complete_parquet(source):
            batch = next(pq.ParquetFile(source).iter_batches(_ROWS_EXAMINED, columns=list(columns.values())), None)
    table = pd.DataFrame(columns=list(columns.values()), dtype="str") if batch is None else batch.to_pandas()
    return table.rename(columns={name: role for role, name in columns.items()})


def _moments(column: pd.Series) -> pd.Series:
    """The times that are not missing."""
    column = column.dropna()
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    return column[~column.astype("str").str.strip().isin(["", *MISSING])]


def _check_points(path: Path, role: str, column: pd.Series) -> None:
    """Refuse coordinates with a decimal comma."""
    text = column.dropna().astype("str").str.strip()
    comma = text[text.str.fullmatch(r"[+-]?\d+,\d+").to_numpy(bool)]
    if 2 * len(comma) > len(text):
        words = (
            f"the {ROLES_IN_WORDS[role]}s have a decimal comma, and commas separate the values: write a point, or separate by ;"
        )
        raise Unclear(f"{path}: {words}", {})
