"""Data sets: readers for their formats, fetching, the embedded synthetic city and region.

``load`` reads all sets of traces, ``load_calls`` all sets of call records.
"""

import os
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mobpriv.base.folders import PROJECT
from mobpriv.calls.table import Calls, Cells, Period
from mobpriv.datasets.call_tables import bare, cells_beside, read_calls, read_cells
from mobpriv.datasets.catalogue import CITY_FILE, DATASETS, REGION_FILE, Description
from mobpriv.datasets.fetching import NeedsRegistration, cache_folder, cached, fetch, sha256_of
from mobpriv.datasets.formats import FRAME, Table, opened
from mobpriv.datasets.lines import BLANK
from mobpriv.datasets.point_files import points
from mobpriv.datasets.readers import PLT_FOLDERS, read_cabspotting, read_geolife, read_mdc, read_privamov
from mobpriv.datasets.recognition import Reading, kind_of_table, recognised
from mobpriv.datasets.tables import column_names, is_parquet, parquet_table, read_part, read_table
from mobpriv.datasets.times import Unclear
from mobpriv.datasets.wanted import Wanted
from mobpriv.traces.table import Traces, rows

__all__ = [
    "BLANK",
    "DATASETS",
    "CallSet",
    "Dataset",
    "Description",
    "NeedsRegistration",
    "Reading",
    "Unclear",
    "bare",
    "cache_folder",
    "cells_beside",
    "city_truth",
    "column_names",
    "data_folder",
    "fetch",
    "is_parquet",
    "kind_of",
    "load",
    "load_calls",
    "opened",
    "points",
    "read_cabspotting",
    "read_calls",
    "read_cells",
    "read_geolife",
    "read_mdc",
    "read_privamov",
    "read_table",
    "recognised",
    "region_truth",
    "sha256_of",
]

SEARCHED = 1_300_000_000
"""Bytes of a text that are searched for the users of a part (25 million records take about five seconds)."""

READERS = {
    "cabspotting": read_cabspotting,
    "geolife": read_geolife,
    "mdc": read_mdc,
    "privamov": read_privamov,
    "table": read_table,
}


class Dataset(NamedTuple):
    traces: Traces
    left_out: pd.DataFrame  # records left out and why: see mobpriv.datasets.tables
    name: str
    sha256: str  # of the file, or of the folder's files
    synthetic: bool
    source: str  # title of a known set, else the name of the file or folder
    persons: str = ""  # prefix of its persons' names, if it holds others, too
    names: tuple[str, ...] = ()  # of all users in the file, if only some were read
    reading: str = ""  # how it was read and which part of it, as text; "" for all of it under its own names


class CallSet(NamedTuple):
    calls: Calls
    cells: Cells
    left_out: pd.DataFrame  # records left out and why: see mobpriv.datasets.tables
    name: str
    sha256: str  # of the file of the calls
    synthetic: bool
    source: str  # title of a known set, else the name of the file
    reading: str = ""  # how it was read, as text; "" if under its own names


def data_folder() -> Path:
    """The folder of the embedded data: ``MOBPRIV_DATA`` if set, else ``data/`` of the project."""
    return Path(os.environ.get("MOBPRIV_DATA") or PROJECT / "data")


def city_truth() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The truth of the embedded city: stays (user, start, end, lat, lng, role) and users (indexed by user).

    See ``data/README.md`` for their columns.
    """
    stays = parquet_table(data_folder() / "city_stays.parquet")
    for c in ("start", "end"):
        stays[c] = pd.to_datetime(stays[c], unit="s", utc=True).dt.as_unit("ms")
    return stays, parquet_table(data_folder() / "city_users.parquet").set_index("user")


def region_truth():
    """The truth of the embedded region: roles and municipalities.

    Roles have the columns person, municipality, role (see :mod:`mobpriv.datasets.region`). Municipalities are a GeoDataFrame
    (municipality, share of the inhabitants, antennas, geometry), the largest first.
    """
    import geopandas  # takes a second to import

    roles = parquet_table(data_folder() / "region_people.parquet")
    return roles, geopandas.read_file(data_folder() / "region_municipalities.geojson")


def kind_of(name_or_path) -> str:
    """Whether a data set holds "traces" or "calls", by the catalogue or by the column names of a file or a table in memory."""
    if isinstance(name_or_path, Table):
        return kind_of_table(name_or_path)
    if str(name_or_path) in DATASETS:
        return DATASETS[str(name_or_path)].kind
    path = Path(name_or_path)
    if path.is_dir():
        _form(path)  # refuses an unknown folder
    table = path.is_file() and path.suffix != ".geojson" and _form(path) == "table"  # boundaries are not a table
    return kind_of_table(path) if table else "traces"


def _only(kind: str, name_or_path, reading: dict | None = None) -> None:
    """Refuse a data set of the other kind; columns given in ``reading`` are accepted without a check."""
    columns = (reading or {}).get("columns") or {}
    needed = {"calls": ("cell",), "traces": ("lat", "lng")}[kind]
    if any(c in columns for c in needed) or (reading or {}).get("names"):
        return
    actual = kind_of(name_or_path)
    if actual != kind:
        words = {"calls": "call records (a cell, no position)", "traces": "traces (positions)"}
        name = name_or_path.path if isinstance(name_or_path, Table) else name_or_path
        raise ValueError(
            f"{name} holds {words[actual]}, and {words[kind]} are needed here: mobpriv data list says which sets hold what"
        )


def load_calls(name_or_path, cells=None, period: Period | None = None, **reading) -> CallSet:
    """Call records by the name of a data set ("region"), the path of a file, or as a data frame, with the file of their cells.

    The usual names of columns are recognised; ``reading`` says the others, as for :func:`load`, see :func:`read_calls`.
    """
    text = _known_name(name_or_path)
    known = DATASETS.get(text)
    source = opened(data_folder() / REGION_FILE if known else name_or_path)
    path = source.path if isinstance(source, Table) else source
    if not known and not isinstance(source, Table) and not path.exists():
        raise FileNotFoundError(f"{path}: no such file, and no data set of that name (known: {', '.join(DATASETS)})")
    _only("calls", text if known else source, reading)
    if known:
        _embedded(path, "region")
    reading, read_as = _recognised(source, "calls", reading)
    calls, its_cells, left_out = read_calls(source, cells, period=period, **reading)
    name = text if known else path.resolve().name.split(".")[0]
    return CallSet(
        calls,
        its_cells,
        left_out,
        name,
        _sha256(path),
        known.synthetic if known else _marked_synthetic(path),
        known.title if known else path.resolve().name,
        read_as,
    )


def _known_name(source) -> str:
    """What may be the name of a data set; "" for a table in memory."""
    return "" if isinstance(source, Table | pd.DataFrame) else str(source)


def _sha256(path: Path, max_bytes: int | None = None) -> str:
    """The hash of a file; "" for a data frame."""
    return sha256_of(path, max_bytes) if path != FRAME else ""


def _recognised(source, kind: str, reading: dict) -> tuple[dict, str]:
    """The arguments for reading a table, and in words how it is read; "" if under its own names. ``reading`` is not questioned."""
    if not set(reading) <= {"columns", "time", "zone"}:
        return reading, ""
    how = recognised(source, **{name: value for name, value in reading.items() if value}, kind=kind)
    return how.arguments, f"We recognise the columns by their names: {how.in_words}" if how.guessed or how.notes else ""


def load(
    name_or_path, form: str | None = None, max_users: int = 0, leave_out: tuple[str, ...] = (), begins: str = "", **reading
) -> Dataset:
    """A data set by its name ("city", "cabspotting", …: see ``DATASETS``), a file or folder by its path, or a data frame.

    A file is a table, and so is a data frame, also a GeoDataFrame of points. The usual names of columns are recognised, and
    seconds are distinguished from milliseconds, see :func:`recognised`. What cannot be recognised can be given as ``reading``:

    * ``columns={"user": "uid", "t": "when"}``: the columns;
    * ``time="ms"``: the unit of numbers; ``zone="Europe/Paris"``: the zone of times that name none;
    * ``names`` and ``delimiter``: of a text without a header line, see :func:`read_table`.

    A folder's format is recognised by its files; else ``form`` names it ("cabspotting", "geolife", "mdc", "privamov", "table").

    Only the first ``max_users`` users by name are read, among those whose name begins with ``begins`` and is not in ``leave_out``; 0
    reads all users. A part of a table takes seconds, because only its column of users is read in full. In a text larger than
    :data:`SEARCHED` only that many bytes are searched, and hashed.

    >>> load("city", max_users=3).traces["user"].nunique()
    3
    """
    if form is not None and form not in READERS:
        raise ValueError(f"form must be one of {', '.join(READERS)} (got {form!r})")
    wanted = Wanted(max_users, tuple(leave_out), begins) if max_users else Wanted()
    if (name := _known_name(name_or_path)) in DATASETS:
        _only("traces", name)
        return _known(name, wanted, reading)
    source = opened(name_or_path) if form in (None, "table") else Path(name_or_path)
    in_memory = isinstance(source, Table)
    path = source.path if in_memory else source
    if not in_memory and not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder, and no data set of that name (known: {', '.join(DATASETS)})")
    if form is None:
        _only("traces", source, reading)
    form = form or ("table" if in_memory else _form(path))
    name = path.resolve().name.split(".")[0]
    if form != "table":
        traces, left_out = READERS[form](path, **reading)
        return _part_of(Dataset(traces, left_out, name, sha256_of(path), False, path.resolve().name), wanted)
    reading, read_as = _recognised(source, "traces", reading)
    part = read_part(source, **reading, wanted=wanted, max_bytes=SEARCHED if max_users else None)
    searched = f"We search only the first {part.searched / 1e9:.1f} GB of the file" if part.searched else ""
    data_set = Dataset(
        part.traces,
        part.left_out,
        name,
        _sha256(path, SEARCHED if searched else None),
        _marked_synthetic(path),
        path.resolve().name,
        names=part.users,
        reading=". ".join(filter(None, (read_as, *part.notes, searched))),
    )
    return _part_of(data_set, wanted) if in_memory else data_set


def _part_of(data_set: Dataset, wanted: Wanted) -> Dataset:
    """The wanted users of a data set that was read completely."""
    if wanted.everybody:
        return data_set
    names = data_set.traces["user"].cat.categories
    chosen = data_set.traces["user"].isin(wanted.of(names)).to_numpy()
    return data_set._replace(traces=rows(data_set.traces, chosen), names=tuple(names))


def _known(name: str, wanted: Wanted, reading: dict) -> Dataset:
    known = DATASETS[name]
    if known.place:
        path = cached(name)
        traces, left_out = READERS[name](path, **reading)
    else:
        path = data_folder() / CITY_FILE
        _embedded(path, name)
        traces, left_out = read_table(path, **reading)
    data_set = Dataset(traces, left_out, name, sha256_of(path), known.synthetic, known.title, known.persons)
    return _part_of(data_set, wanted)


def _embedded(path: Path, name: str) -> None:
    """Refuse a file that is not the embedded data set of this name."""
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: the embedded {name} is missing. "
            f"python -m mobpriv.datasets.{name} FOLDER makes it, MOBPRIV_DATA=FOLDER finds it"
        )
    if not _marked_synthetic(path):
        raise ValueError(f"{path} is not marked as synthetic: read real data by its path, or generate the {name} again")


def _form(path: Path) -> str:
    """The format of a path, by its files."""
    if path.is_file():
        return "privamov" if path.name == "privamov-gps" else "table"
    for form, *patterns in (
        ("cabspotting", "new_*.txt"),
        ("geolife", *(f"{above}Trajectory/*.plt" for above in PLT_FOLDERS)),
        ("mdc", "gps.csv"),
        ("privamov", "privamov-gps*"),
    ):
        if any(next(path.glob(pattern), None) is not None for pattern in patterns):
            return form
    known = ", ".join(form for form in READERS if form != "table")
    raise ValueError(f"{path}: the folder holds no files of a known format (known: {known}); of another format, give one file")


def _marked_synthetic(path: Path) -> bool:
    if path == FRAME or not is_parquet(path):
        return False
    try:
        return (pq.read_schema(path).metadata or {}).get(b"synthetic") == b"true"
    except pa.ArrowException:
        return False
