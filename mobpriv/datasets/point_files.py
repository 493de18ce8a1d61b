"""Read files of points of interest: one row a point, with at least ``lat`` and ``lng`` in degrees of WGS 84."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from mobpriv.base.numbers import counted
from mobpriv.datasets.lines import BLANK, read_lines
from mobpriv.datasets.tables import check_columns, existing, head, is_parquet, parquet_table

_NEEDED = "it needs a line of names, lat,lng, and a line for each point"


def points(path, columns: dict[str, str] | None = None) -> pd.DataFrame:
    """The points of a Parquet or CSV file (also ``.tsv``, ``.txt``, or packed: ``.csv.gz``), in the file's order.

    ``columns`` maps columns, ``{"lat": "latitude", "lng": "longitude"}``; further columns are kept. A point without a valid
    position is refused, with its place in the file, and not left out, because the caller decides which points count. Blank
    lines are ignored. Points at the same position are different points.
    """
    path = existing(path)
    if not path.stat().st_size:
        raise ValueError(f"{path}: the file is empty; {_NEEDED}")
    columns = {c: (columns or {}).get(c, c) for c in ("lat", "lng", *(columns or {}))}
    table, number = rows_of(path, columns, dict.fromkeys(columns, pa.float64()))
    if not len(table):
        raise ValueError(f"{path}: the file holds no point; {_NEEDED}")
    for c, bound in (("lat", 90), ("lng", 180)):
        value = pd.to_numeric(table[c], errors="coerce").astype(float)
        wrong = ~(value.abs() <= bound).to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            place = f"line {number[row]}" if number is not None else f"row {row}"
            outside = counted(int(wrong.sum()), "point")
            raise ValueError(
                f"{path}: {columns[c]} must be a number in [-{bound}, {bound}] degrees ({outside} outside, "
                f"first in {place}: {table[c].iloc[row]}): leave them out of the file, or reproject it to WGS 84"
            )
        table[c] = value
    return table


def rows_of(path: Path, columns: dict[str, str], kinds: dict[str, pa.DataType]) -> tuple[pd.DataFrame, np.ndarray | None]:
    """The rows of a Parquet file or a text, and the line numbers of a text; a line that cannot be read is refused.

    ``columns`` maps columns, ``kinds`` are their types in a text.
    """
    if is_parquet(path):
        table, number = parquet_table(path), None
        check_columns(path, list(table.columns), columns)
    else:
        table, number = _text(path, columns, kinds)
    return table.rename(columns={name: c for c, name in columns.items()}), number


def _text(path: Path, columns: dict[str, str], kinds: dict[str, pa.DataType]) -> tuple[pd.DataFrame, np.ndarray]:
    names, above, delimiter = head(path)
    check_columns(path, names, columns)
    types = {columns[c]: kind for c, kind in kinds.items()}
    lines = read_lines(path, delimiter, types, names, above, True)
    lost = [part for part in lines.left_out if part.rule != BLANK]
    if lost:
        raise ValueError(
            f"{path}: {lost[0].rule}: {counted(lost[0].lines, 'line')}, first line {lost[0].first}: {lost[0].text[:80]!r}: "
            "mend the line, or leave it out of the file"
        )
    if not lines.table.num_columns:
        return pd.DataFrame(columns=names), lines.number
    return lines.table.to_pandas(), lines.number
