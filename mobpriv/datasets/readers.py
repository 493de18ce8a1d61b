"""Readers for the four data sets of the thesis (Table 3.1): Cabspotting, GeoLife, MDC, PrivaMov.

Each reader returns ``(traces, left_out)``: see :mod:`mobpriv.datasets.tables`. Traces are sorted, in whatever order the files
are (Cabspotting's originals can be newest first). ``progress`` shows a bar on stderr if reading takes more than two seconds.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
from tqdm import tqdm

from mobpriv.datasets.lines import Lines, open_text, read_lines, unreadable
from mobpriv.datasets.tables import NAME_TYPE, as_records, check_columns, existing
from mobpriv.traces.table import Traces


def read_cabspotting(folder, progress: bool = True) -> tuple[Traces, pd.DataFrame]:
    """Read Cabspotting (CRAWDAD epfl/mobility): one file ``new_<cab>.txt`` per cab.

    A line is ``latitude longitude occupied unixtime``, separated by spaces. The cab's name is the user; column ``occ`` (0 or 1:
    with a passenger) is kept.
    """
    folder = existing(folder, folder=True)
    files = sorted(folder.glob("new_*.txt"))
    if not files:
        where = "give the folder that holds Cabspotting's files"
        raise FileNotFoundError(f"{folder}: no file new_<cab>.txt in this folder: {where}")
    types = {"lat": pa.float64(), "lng": pa.float64(), "occ": pa.int8(), "t": pa.int64()}
    read = [read_lines(file, " ", types, list(types)) for file in _bar(files, progress)]
    users = [file.stem.removeprefix("new_") for file in files]
    return _joined(folder.name, [file.name for file in files], users, read, list(types))


PLT_FOLDERS = ("Data/*/", "*/", "", "*/Data/*/", "*/*/Data/*/")  # where GeoLife's folders Trajectory may be


def read_geolife(folder, progress: bool = True) -> tuple[Traces, pd.DataFrame]:
    """Read GeoLife 1.3: files ``Data/<user>/Trajectory/<start>.plt``.

    ``folder`` is ``Data``, its parent, or one user's folder. A file has six header lines, then ``latitude,longitude,0,altitude
    in feet,days since 1899-12-30,date,time`` with CRLF; times are GMT. ``labels.txt`` (modes of transport) is not read.
    """
    folder = existing(folder, folder=True)
    for above in PLT_FOLDERS:
        files = sorted(folder.glob(f"{above}Trajectory/*.plt"))
        if files:
            break
    else:
        where = "give the folder that holds GeoLife's Data"
        raise FileNotFoundError(f"{folder}: no file Data/<user>/Trajectory/*.plt here: {where}")
    types = dict.fromkeys(("lat", "lng"), pa.float64()) | dict.fromkeys(("zero", "altitude", "days"), pa.string())
    types |= {"date": pa.date32(), "time": pa.time32("s")}
    read = []
    for file in _bar(files, progress):
        text = open_text(file, ",")
        header = next((k for k in range(6) if _PLT.match(text.line(k))), 6)  # keep all records of a file without the six lines
        lines = read_lines(file, ",", types, list(types), header, text=text)
        read.append(lines._replace(table=_with_time(lines.table)))
    users = [file.parent.parent.name for file in files]
    names = [f"{user}/Trajectory/{file.name}" for user, file in zip(users, files, strict=True)]
    return _joined(folder.name, names, users, read, ["lat", "lng", "t"])


_PLT = re.compile(r"(?:[+-]?[\d.]+,){5}\d{4}-\d\d-\d\d,\d\d:\d\d:\d\d\s*$")  # a record of GeoLife


def _with_time(table: pa.Table) -> pa.Table:
    """Latitude, longitude and unix seconds of GeoLife's columns."""
    if not table.num_rows:
        return pa.table({})
    day = table["date"].cast(pa.int32()).cast(pa.int64())
    t = pa.compute.add(pa.compute.multiply(day, 86_400), table["time"].cast(pa.int32()).cast(pa.int64()))
    return pa.table({"lat": table["lat"], "lng": table["lng"], "t": t})


def read_mdc(path) -> tuple[Traces, pd.DataFrame]:
    """Read Nokia's Mobile Data Challenge: the folder with ``gps.csv`` and ``records.csv``.

    Both are separated by tabs, without a header line:

    * ``gps.csv`` begins with the columns ``db_key, time, longitude, latitude, altitude`` (time: the satellites', unix seconds
      UTC); further columns are not used.
    * ``records.csv`` begins with ``db_key, userid`` and assigns users to the rows of ``gps.csv``.

    If the first line holds names, columns are found by name, not by order. If ``gps.csv`` itself has a column ``userid``,
    ``records.csv`` is not needed. The offset of the local time zone (``tz``) is not used: all times stay UTC.

    Assumed, not tested on originals (they need registration): the order of these first columns, as in the published schema of
    the data base. Rows of ``gps.csv`` whose key is in no record are left out under the rule "user missing".
    """
    folder = Path(path)
    gps = existing(folder / "gps.csv" if folder.is_dir() else folder)
    first = ["db_key", "time", "longitude", "latitude", "altitude"]
    lines = _tab_separated(gps, first, ["userid"])
    table = _table(lines, [*first, "userid"])
    bad = unreadable([(gps.name, lines)], None)
    if "userid" in lines.table.column_names:
        user = table["userid"]
    else:
        records = _tab_separated(existing(gps.parent / "records.csv"), ["db_key", "userid"], [])
        bad += unreadable([("records.csv", records)], None)
        owner = _table(records, ["db_key", "userid"]).drop_duplicates()
        owner = owner.drop_duplicates("db_key", keep=False).set_index("db_key")["userid"]  # a key with two users has none
        user = owner.astype("category").reindex(table["db_key"])
    table = pd.DataFrame({"user": user.array, "t": table["time"], "lat": table["latitude"], "lng": table["longitude"]})
    return as_records(table, bad, gps.name, lambda row: f"{gps.name} line {lines.number[row]}", "s")


_MDC = {"db_key": pa.string(), "userid": NAME_TYPE, **dict.fromkeys(("time", "longitude", "latitude"), pa.float64())}


def _tab_separated(path: Path, first: list[str], optional: list[str]) -> Lines:
    """The known columns of a table separated by tabs.

    Without a header line the table begins with the columns ``first``; with a header line it must name them.
    """
    text = open_text(path, "\t")
    names = [name.strip(' "\r\n') or f"column {k}" for k, name in enumerate(text.line(0).split("\t"), 1)]
    header = int(first[0] in names or first[1] in names)
    if not header:
        columns = text.usual()
        if len(text.kind) and columns < len(first):
            raise ValueError(f"{path}: needs the columns {', '.join(first)}, separated by tabs (line 1: {text.line(0)[:80]!r})")
        names = first + [f"column {k}" for k in range(len(first), columns)]
    needed = {name: name for name in first[:4] if name != "db_key" or "userid" not in names}
    check_columns(path, names, needed)
    types = {name: kind for name, kind in _MDC.items() if name in names and name in (*first, *optional)}
    return read_lines(path, "\t", types, names, header, text=text, only=[*types])


def _table(lines: Lines, columns: list[str]) -> pd.DataFrame:
    """The rows read, or a table with these columns and no rows."""
    if lines.table.num_columns:
        return lines.table.unify_dictionaries().to_pandas()
    return pd.DataFrame(dict.fromkeys(columns, pd.Series([], dtype="str")))


def read_privamov(path, zone: str = "UTC") -> tuple[Traces, pd.DataFrame]:
    """Read PrivaMov: the file ``privamov-gps`` (or the folder that holds it), separated by tabs, without a header line.

    A line is ``user  timestamp  longitude  latitude``, timestamps as in ``2014-10-08 13:22:25.123``. Assumed, not tested on the
    original (it needs an agreement): this order, and that timestamps, which name no zone, are UTC.
    """
    path = Path(path)
    if path.is_dir():
        files = [path / name for name in ("privamov-gps", "privamov-gps.csv", "raw-gps") if (path / name).is_file()]
        if not files:
            raise FileNotFoundError(f"{path}: no file privamov-gps in this folder")
        path = files[0]
    types = {"user": NAME_TYPE, "t": pa.string(), "lng": pa.float64(), "lat": pa.float64()}
    lines = read_lines(existing(path), "\t", types, list(types))
    table = _table(lines, list(types))
    bad = unreadable([(path.name, lines)], None)
    return as_records(table, bad, path.name, lambda row: f"{path.name} line {lines.number[row]}", "iso", zone)


def _bar(files: list[Path], progress: bool):
    return tqdm(files, desc="reading", unit=" files", delay=2, leave=False, disable=not progress)


def _joined(
    source: str, names: list[str], users: list[str], read: list[Lines], columns: list[str]
) -> tuple[Traces, pd.DataFrame]:
    """One table of many files, each of one user."""
    sizes = np.array([lines.table.num_rows for lines in read])
    categories = sorted(set(users))
    code = pd.Index(categories).get_indexer(users)
    full = [lines.table for lines in read if lines.table.num_rows]
    joined = pa.concat_tables(full).to_pandas() if full else pd.DataFrame({c: np.zeros(0) for c in columns})
    table = joined.assign(user=pd.Categorical.from_codes(np.repeat(code, sizes), categories))
    ends = np.cumsum(sizes)
    owner = dict(zip(names, users, strict=True))

    def where(row: int) -> str:
        file = int(np.searchsorted(ends, row, side="right"))
        return f"{names[file]} line {read[file].number[row - (ends[file] - sizes[file])]}"

    bad = unreadable(list(zip(names, read, strict=True)), owner.__getitem__)
    extra = [c for c in columns if c not in ("t", "lat", "lng")]
    return as_records(table[["user", "t", "lat", "lng", *extra]], bad, source, where, "s")
