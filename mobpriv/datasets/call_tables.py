"""Tables of call records, and of the antenna cells that they name.

A file of calls has one record a call: user, time, cell, and optionally the cell at the end and the duration in seconds. The
positions of the cells are in a separate file ``NAME_cells`` in the same folder as ``NAME``: ``july_cells.csv`` (or .tsv, .txt,
.csv.gz, .parquet, .geojson) for ``july.parquet``. It has a row a cell: ``cell``, ``lat``, ``lng`` and, if known,
``municipality``.

Calls are left out, and reported, as in :mod:`mobpriv.datasets.tables`. A table of cells is small and made by hand, so errors in
it are refused, not left out.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mobpriv.calls.table import CALL_COLUMNS, Calls, Cells, Period, as_cells, call_problem, without
from mobpriv.datasets.formats import READERS, Table, opened
from mobpriv.datasets.lines import BLANK, PACKED, LeftOut, unreadable
from mobpriv.datasets.point_files import rows_of
from mobpriv.datasets.recognition import USUAL, Reading, named_as
from mobpriv.datasets.tables import (
    NAME_TYPE,
    categorical_names,
    check_names,
    column_names,
    complete_parquet,
    existing,
    head,
    is_parquet,
    memory_table,
    parquet_rows,
    parquet_table,
    sorted_out,
    text_blocks,
    text_table,
)
from mobpriv.datasets.times import DIGITS_CUT, Unclear, digits_cut, known_zone, times
from mobpriv.datasets.wanted import MISSING

_ROWS_AT_A_TIME = 1 << 20  # rows of a Parquet file that are read at a time
_ENDINGS = (".parquet", ".csv", ".tsv", ".txt", ".csv.gz", ".geojson")  # of tables of cells
_MUNICIPALITY = "municipality municipalityname commune comune town city district"
_NEEDED = "a table of cells has the columns cell, lat, lng and, where it is known, municipality"


def read_calls(
    path,
    cells=None,
    columns: dict[str, str] | None = None,
    time: str | None = None,
    zone: str | None = None,
    period: Period | None = None,
    names: list[str] | None = None,
    delimiter: str | None = None,
) -> tuple[Calls, Cells, pd.DataFrame]:
    """Calls of a file or a data frame, as in :func:`mobpriv.datasets.read_table`; their cells; what was left out.

    ``cells`` is the file of its cells (by default that of :func:`cells_beside`), or a table as for :func:`as_cells`.
    ``columns`` maps columns: ``{"user": "caller", "t": "start", "cell": "cell_id"}``, and ``end_cell`` and ``duration`` if they
    have other names. Calls outside ``period`` are left out. All else is as in :func:`mobpriv.datasets.read_table`.
    """
    source = opened(path)
    path = source.path if isinstance(source, Table) else existing(source)
    known_zone(zone)
    cells = as_cells(cells) if isinstance(cells, pd.DataFrame) else read_cells(cells_beside(path) if cells is None else cells)
    header = names or (head(path, None, delimiter).names if delimiter else column_names(source))
    columns = {c: c for c in ("end_cell", "duration") if c in header} | (columns or {})
    columns = {c: columns.get(c, c) for c in (*CALL_COLUMNS, *columns)}
    bad, where = [], lambda row: f"{path.name} row {row}"
    if isinstance(source, Table):
        table, bad, where = memory_table(source, columns), source.left_out, source.place
    elif is_parquet(path):
        table = parquet_table(path, columns)
    else:
        table, lines, _ = text_table(path, columns, names, delimiter)
        bad, where = unreadable([(path.name, lines)], None), lambda row: f"{path.name} line {lines.number[row]}"
    cut = np.zeros(len(table), bool)
    for c in (c for c in ("cell", "end_cell") if c in columns):
        name = categorical_names(table[c])
        cut |= digits_cut(name)
        table[c] = name.cat.remove_categories([name for name in name.cat.categories if name in MISSING])  # missing values
    valid = partial(without, cells=cells, period=period)
    calls, left_out = sorted_out(table, bad, path.name, where, time, zone, {DIGITS_CUT: cut}, valid, call_problem)
    return calls, cells, left_out


def call_blocks(path, reading: Reading, first: int = -1, end: int = -1) -> Iterator[tuple[pa.Table, dict, list[LeftOut]]]:
    """Calls of a file that may exceed the memory, in blocks, by the rules of :func:`read_calls`.

    Each block has the records, the masks of those whose name or time is invalid, and the lines that are no records. ``first``
    and ``end`` select rows of a Parquet file.

    A block has the columns user, cell, end_cell (text), t (UTC) and duration (s; infinite if it is not a number).
    """
    path, columns = existing(path), reading.columns
    for table, lines in _parquet_blocks(path, columns, first, end) if is_parquet(path) else text_blocks(path, columns):
        names = {c: categorical_names(table[c]) for c in ("user", "cell", "end_cell") if c in columns}
        t, failed = times(table["t"], reading.time or None, reading.zone or None, path.name, part=True)
        cut = failed.pop(DIGITS_CUT, np.zeros(len(table), bool))
        for name in names.values():
            cut |= digits_cut(name)
        texts = {c: pa.array(name, pa.dictionary(pa.int32(), pa.string())).cast(pa.string()) for c, name in names.items()}
        rest = {"duration": pa.array(_seconds(table["duration"]))} if "duration" in columns else {}
        left_out = [left for left in lines if left.rule != BLANK]
        yield pa.table({**texts, "t": pa.array(t), **rest}), {DIGITS_CUT: cut, **failed}, left_out


def _seconds(duration: pd.Series) -> np.ndarray:
    number = pd.to_numeric(duration, errors="coerce").to_numpy(float, na_value=np.nan)
    return np.where(np.isnan(number) & duration.notna().to_numpy(), np.inf, number)


def _parquet_blocks(path: Path, columns: dict[str, str], first: int, end: int) -> Iterator[tuple[pd.DataFrame, list]]:
    with complete_parquet(path):
        at = 0
        for batch in pq.ParquetFile(path).iter_batches(_ROWS_AT_A_TIME, columns=[*columns.values()]):
            selected = slice(max(first - at, 0), max(end - at, 0))
            at += len(batch)
            if selected.start < len(batch) and selected.stop:
                yield parquet_rows(path, pa.Table.from_batches([batch])[selected], columns), []


def cells_beside(path) -> Path:
    """The file of the cells of a file of calls: ``NAME_cells`` in the folder of ``NAME``."""
    path = Path(path)
    name = bare(path)
    files = [file for ending in _ENDINGS if (file := path.with_name(f"{name}_cells{ending}")).is_file()]
    if not files:
        raise FileNotFoundError(f"{path}: the cells of these calls are not there: put {name}_cells.csv next to it ({_NEEDED})")
    if len(files) > 1:
        several = " or of ".join(file.name for file in files)
        raise ValueError(f"{path}: its cells could be those of {several}: leave one of them there")
    return files[0]


def bare(path: Path) -> str:
    """A table's name without its ending: cdr.2024-01.csv.gz becomes cdr.2024-01."""
    name = path.name
    for ending in (*PACKED, ".csv", ".tsv", ".txt", *READERS):
        name = name[: -len(ending)] if name.lower().endswith(ending) else name
    return name


def read_cells(path) -> Cells:
    """Cells of a Parquet, CSV or GeoJSON file; columns are recognised by their usual names.

    A GeoJSON file has for each cell a point or the area that it serves; of an area, a point inside is used.
    """
    path = existing(path)
    try:
        table, number = (_features(path), None) if path.suffix.lower() in (".geojson", ".json") else _rows(path)
    except Unclear as reason:  # drop the hints: they are about the calls, not the cells
        raise ValueError(str(reason)) from None
    if not len(table):
        raise ValueError(f"{path}: the file holds no cell; {_NEEDED}")
    try:
        named = {c: categorical_names(table[c]).astype("object") for c in ("cell", "municipality") if c in table}
        if "municipality" in named:
            named["municipality"] = named["municipality"].mask(named["municipality"].isin(MISSING))
        return as_cells(table.assign(**named))
    except ValueError as reason:
        row = re.search(r"row (\d+)", str(reason))
        line = f" (line {number[int(row[1])]} of the file)" if number is not None and row else ""
        raise ValueError(f"{path}: {reason}{line}") from None


def _rows(path: Path) -> tuple[pd.DataFrame, np.ndarray | None]:
    header = column_names(path)
    check_names(path, header)
    columns = {role: named_as(path, role, header, USUAL[role]) for role in ("cell", "lat", "lng")}
    town = named_as(path, "municipality", header, _MUNICIPALITY)
    columns |= {"municipality": town} if town in header else {}
    return rows_of(path, columns, dict.fromkeys(columns, NAME_TYPE) | {"lat": pa.float64(), "lng": pa.float64()})


def _features(path: Path) -> pd.DataFrame:
    """The features of a GeoJSON file, with latitude and longitude of their points."""
    import geopandas
    from shapely.errors import ShapelyError

    try:
        shapes = geopandas.read_file(path)
    except (RuntimeError, ValueError, OSError, ShapelyError) as reason:  # the driver's errors are RuntimeErrors
        raise ValueError(f"{path}: not a GeoJSON file ({str(reason).splitlines()[0][:100]})") from None
    table = pd.DataFrame(shapes.drop(columns="geometry", errors="ignore"))
    usual = {"cell": USUAL["cell"], "municipality": _MUNICIPALITY}
    columns = {role: named_as(path, role, list(table), names) for role, names in usual.items()}
    if columns["cell"] not in table or "geometry" not in shapes:
        raise ValueError(f"{path}: {_NEEDED}; of a feature, the point is its position (it has: {', '.join(shapes.columns)})")
    inside = (shapes.geometry.to_crs("EPSG:4326") if shapes.crs else shapes.geometry).representative_point()
    table = table.rename(columns={name: role for role, name in columns.items()})
    return table.assign(lat=np.asarray(inside.y, float), lng=np.asarray(inside.x, float))
