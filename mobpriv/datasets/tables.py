"""Any table of positions as ``Traces``: CSV and Parquet files with a mapping of column names.

What every reader of this package returns is ``(traces, left_out)``: the valid records, and a table that says what was left out
and why. ``left_out`` has the columns of :class:`mobpriv.traces.Problem`; beside the rules of :func:`mobpriv.traces.without` it
holds what only a reader sees (lines or times that cannot be read, files without records). ``value`` begins with the file and
the line; ``row`` counts the rows that were read, and is −1 for what never became a row.
"""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mobpriv.datasets.lines import Lines, read_lines, unreadable
from mobpriv.datasets.times import times
from mobpriv.traces import COLUMNS, Problem, Traces, without

NAMES = pa.dictionary(pa.int32(), pa.string())  # text of which much repeats


def read_table(
    path,
    columns: dict[str, str] | None = None,
    time: str | None = None,
    zone: str | None = None,
    names: list[str] | None = None,
    delimiter: str | None = None,
) -> tuple[Traces, pd.DataFrame]:
    """Records of a ``.parquet``, ``.csv``, ``.tsv`` or ``.txt`` file, or of a gzipped text file.

    ``columns`` says which of its columns is which: ``{"user": "uid", "t": "time", "lat": "latitude", "lng": "longitude"}``;
    columns that already have the right name may be left out. ``names`` names the columns of a file without a header line.
    ``time`` is ``"s"``, ``"ms"`` or ``"iso"`` (by default numbers are seconds), ``zone`` the zone of times that name none:
    see :func:`mobpriv.datasets.times.times`. Names of users stay text ("000"); further columns ride along.
    """
    path = existing(path)
    columns = {c: (columns or {}).get(c, c) for c in (*COLUMNS, *(columns or {}))}
    if path.suffix == ".parquet":
        table, lines = parquet_table(path), None
    else:
        table, lines = _csv(path, columns, names, delimiter)
    missing = [name if c == name else f"{name} (for {c})" for c, name in columns.items() if name not in table.columns]
    if missing:
        have = ", ".join(map(str, table.columns)) or "none"
        raise ValueError(
            f"{path}: no column {', '.join(missing)}; it has: {have}. Say which is which, as in columns={{'user': 'uid'}}"
        )
    table = table.rename(columns={name: c for c, name in columns.items() if name != c})
    if lines is None:
        return as_records(table, [], path.name, lambda row: f"{path.name} row {row}", time, zone)
    bad = unreadable([(path.name, lines)], lambda _: None)
    return as_records(table, bad, path.name, lambda row: f"{path.name} line {lines.number[row]}", time, zone)


def existing(path, folder: bool = False) -> Path:
    path = Path(path)
    if not (path.is_dir() if folder else path.is_file()):
        found = "is not one" if path.exists() else "there is none"
        raise FileNotFoundError(f"{path}: a {'folder' if folder else 'file'} is needed here, and {found}")
    return path


def as_records(
    table: pd.DataFrame, found: list[Problem], source: str, where, time: str | None = None, zone: str | None = None
) -> tuple[Traces, pd.DataFrame]:
    """``(traces, left_out)`` of a table that was read from ``source``; ``where(row)`` names the place of a row in it."""
    user = table["user"]
    if not isinstance(user.dtype, pd.CategoricalDtype):
        user = _as_text(user).astype("category")
    if "" in user.cat.categories:
        user = user.cat.remove_categories([""])  # an empty name is a missing one
    t, failed = times(table["t"], time, zone, source)
    found, keep = list(found), np.ones(len(table), bool)
    for rule, broken in failed.items():
        if broken.any():
            row = int(broken.argmax())
            value = f"{where(row)}: user {user.iloc[row]}, t {table['t'].iloc[row]}"
            found.append(Problem(rule, int(broken.sum()), user[broken].nunique(), row, value, "the record is left out"))
            keep &= ~broken
    numbers = {c: pd.to_numeric(table[c], errors="coerce").astype(float) for c in ("lat", "lng")}
    table = table.assign(user=user, t=t, **numbers)
    place = np.flatnonzero(keep)
    traces, left_out = without(table if keep.all() else table[keep])
    for k in left_out.index[left_out["rule"] != "record repeated"]:
        row = int(place[left_out.loc[k, "row"]])
        left_out.loc[k, ["row", "value"]] = row, f"{where(row)}: {left_out.loc[k, 'value']}"
    left_out = pd.DataFrame([*found, *left_out.itertuples(index=False, name=None)], columns=Problem._fields)
    if not len(traces) and left_out["records"].sum():
        worst = left_out.loc[left_out["records"].idxmax()]
        raise ValueError(
            f"{source}: no record can be used. {worst['rule']}: {worst['records']} records, "
            f"first {worst['value']}; {worst['remedy']}"
        )
    return traces, left_out


def _as_text(user: pd.Series) -> pd.Series:
    if pd.api.types.is_float_dtype(user.dtype) and (user.dropna() % 1 == 0).all():
        user = user.astype("Int64")  # whole numbers with gaps: 7, not 7.0
    return user.astype("str").where(user.notna())


def parquet_table(path: Path) -> pd.DataFrame:
    """A Parquet file; decimals become the nearest floating-point numbers."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as reason:
        raise ValueError(f"{path}: not a whole Parquet file ({_first(reason)}); was it cut while copying?") from None
    for k, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):  # as numbers, and the nearest ones: the cast alone can miss them by one bit
            number = table[k].cast(pa.float64()).to_numpy().round(field.type.scale)
            table = table.set_column(k, field.name, pa.array(number))
    return table.to_pandas(ignore_metadata=True)


def _csv(path: Path, columns: dict[str, str], names, delimiter) -> tuple[pd.DataFrame, Lines]:
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", errors="replace") as file:
            head = file.readline().rstrip("\r\n")
        if delimiter is None:
            delimiter = max(",\t;", key=head.count) if any(c in head for c in ",\t;") else " "
        header = names or [c.strip().strip('"') for c in head.split(delimiter)]
        types = {columns["user"]: NAMES, columns["lat"]: pa.float64(), columns["lng"]: pa.float64()}
        lines = read_lines(path, delimiter, {c: kind for c, kind in types.items() if c in header}, names)
    except (EOFError, OSError, pa.ArrowException) as reason:
        raise ValueError(f"{path}: cannot be read ({_first(reason)}); was it cut while copying?") from None
    if not lines.table.num_columns:
        return pd.DataFrame({c: pd.Series([], dtype="str") for c in header if c}), lines
    return lines.table.unify_dictionaries().to_pandas(), lines


def _first(reason: Exception) -> str:
    return str(reason).splitlines()[0].split(". ")[0] if str(reason) else type(reason).__name__
