"""Tables of call records, ``Calls``, and of the antenna cells that they name, ``Cells``.

They hold the data of dχ (§II, §VI-A) and of PRIMULE (§3.1, §7), which both start from call detail records.

``Calls`` is a pandas DataFrame, sorted by (user, t), with a plain RangeIndex and the columns:

* ``user`` (categorical of str, sorted): the caller (or her pseudonym);
* ``t`` (datetime64[ms, UTC]): when the call began;
* ``cell`` (categorical of str): the cell that served its beginning;
* ``end_cell`` (the same categories): the cell that served its end; ``cell`` if the file does not say;
* ``duration`` (float64): s, ≥ 0; NaN if the file does not say.

Further columns are kept. ``Cells`` is a DataFrame with the columns:

* ``cell``: str, sorted, each once;
* ``lat``, ``lng``: degrees, WGS 84; both NaN if unknown;
* ``municipality``: str, missing if unknown.

The categories of ``cell`` and ``end_cell`` are all the cells of the table ``Cells`` in its order: a code is a row of ``Cells``.

:func:`as_calls` and :func:`as_cells` validate tables; the code that receives the result does not check it again. The rules of
:mod:`mobpriv.traces.table` for a user and a time hold here too. Its ``by_user``, ``milliseconds``, ``rows`` and ``within_days`` work on
both tables.
"""

from functools import partial

import numpy as np
import pandas as pd

from mobpriv.traces.table import (
    InvalidTable,
    TableProblem,
    check_zone,
    kept_and_left_out,
    needed,
    problem,
    sorted_categories,
    sorted_rows,
    user_and_time_rules,
)

CALL_COLUMNS = ("user", "t", "cell")
OPTIONAL = ("end_cell", "duration")
_CELL_COLUMNS = ("cell", "lat", "lng")

Calls = pd.DataFrame
Cells = pd.DataFrame
Period = tuple[pd.Timestamp, pd.Timestamp]  # [start, end)

_OUT = "leave the record out"
_NO_PLACE = "leave the record out, or give the cell its coordinates"


class InvalidCalls(InvalidTable):
    """A table that is not ``Calls``."""


def as_cells(table: pd.DataFrame) -> Cells:
    """Validate a table of cells and return it as ``Cells``: typed and sorted by cell; further columns (a geometry) are kept.

    A cell may lack both coordinates; then only a call that it serves breaks a rule. All other faults raise a ``ValueError``: a
    row without a cell, a repeated cell, only one coordinate, an impossible latitude or longitude. The argument is not changed.
    """
    needed("cells", _CELL_COLUMNS, table)
    lat, lng = (pd.to_numeric(table[c], errors="coerce").to_numpy(float, na_value=np.nan) for c in ("lat", "lng"))
    name = _texts(table["cell"])
    no_number = (np.isnan(lat) & table["lat"].notna().to_numpy()) | (np.isnan(lng) & table["lng"].notna().to_numpy())
    no_place, known_place = (lat == 0) & (lng == 0), "give its coordinates, or leave both empty where nobody knows them"
    for rule, broken, remedy in (
        ("every row of a table of cells names its cell", name.isna().to_numpy(), "give it a name or leave the row out"),
        ("a cell occurs once in a table of cells", name.duplicated().to_numpy(), "keep one of its rows"),
        ("coordinates of a cell are numbers", no_number, "write degrees of WGS 84, or leave both empty"),
        ("a cell has both coordinates or none", np.isnan(lat) != np.isnan(lng), "fill in the other, or leave both empty"),
        ("latitudes of cells lie in [-90, 90]", np.abs(lat) > 90, "write degrees of WGS 84; are lat and lng swapped?"),
        ("cells lie elsewhere than at latitude 0, longitude 0", no_place, known_place),
        ("longitudes of cells lie in [-180, 180]", np.abs(lng) > 180, "write degrees of WGS 84"),
    ):
        if broken.any():
            row = int(broken.argmax())
            raise ValueError(
                f"{rule}: {int(broken.sum())} do not, first row {row} (cell {name.iloc[row]}, lat {table['lat'].iloc[row]}, "
                f"lng {table['lng'].iloc[row]}): {remedy}"
            )
    known = _texts(table["municipality"]) if "municipality" in table else pd.Series(None, table.index, dtype="str")
    return table.assign(cell=name, lat=lat, lng=lng, municipality=known).sort_values("cell", kind="stable", ignore_index=True)


def _texts(column: pd.Series) -> pd.Series:
    """Names as text (7, not 7.0); an empty name is missing."""
    if pd.api.types.is_float_dtype(column.dtype) and (column.dropna() % 1 == 0).all():
        column = column.astype("Int64")
    text = column.astype("object").where(column.notna(), None).map(str, na_action="ignore").astype("str")
    return text.mask(text == "")


def problems(table: pd.DataFrame, cells: Cells | None = None, period: Period | None = None) -> pd.DataFrame:
    """List every rule of ``Calls`` that records break, one row per rule (:class:`mobpriv.traces.table.TableProblem`).

    With ``cells``, each cell must be listed there and have coordinates. With ``period``, calls must begin in it. Order and
    exact repetitions are not checked: :func:`as_calls` sorts, and :func:`without` reports repetitions.
    """
    found = [call_problem(rule, broken, table, remedy) for rule, broken, remedy in _broken(table, cells, period)]
    return pd.DataFrame(found, columns=TableProblem._fields)


def call_problem(rule: str, broken: np.ndarray, table: pd.DataFrame, remedy: str) -> TableProblem:
    """:func:`mobpriv.traces.table.problem` with the columns of a call record."""
    return problem(rule, broken, table, remedy, (*CALL_COLUMNS, *(c for c in OPTIONAL if c in table.columns)))


def _broken(table: pd.DataFrame, cells: Cells | None, period: Period | None) -> list[tuple[str, np.ndarray, str]]:
    """The broken rules, the records that break them, and the remedies."""
    traces = "; with lat and lng they look like traces" if {"lat", "lng"} <= set(table.columns) else ""
    needed("calls", CALL_COLUMNS, table, traces)
    check_zone(table["t"])
    rules = [*user_and_time_rules(table), ("cell missing", _missing(table["cell"]), _OUT)]
    if cells is not None:
        for c in ("cell", "end_cell") if "end_cell" in table.columns else ("cell",):
            words, row = c.replace("_", " "), _rows_of(table[c], cells)
            unknown = ~_missing(table[c]) & (row < 0)
            rules.append((f"{words} unknown", unknown, _of_unknown(table[c][unknown], cells) if unknown.any() else ""))
            if cells["lat"].isna().any():
                placeless = np.r_[cells["lat"].isna().to_numpy(), False]  # the last entry is for −1, an unknown cell
                rules.append((f"{words} without coordinates", placeless[row], _NO_PLACE))
    if "duration" in table.columns:
        number = pd.to_numeric(table["duration"], errors="coerce").to_numpy(float, na_value=np.nan)
        no_number = (np.isnan(number) & table["duration"].notna().to_numpy()) | np.isinf(number)
        rules.append(("duration not a number", no_number, "write seconds, or leave it empty"))
        rules.append(("duration negative", number < 0, _OUT))
    if period is not None:
        rules += _outside(table, period)
    return [rule for rule in rules if rule[1].any()]


def _rows_of(column: pd.Series, cells: Cells) -> np.ndarray:
    """The row of ``cells`` for each cell in a column; −1 if missing or unknown."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype("category")
    names = _texts(pd.Series(column.cat.categories))
    row = pd.Index(cells["cell"]).get_indexer(pd.Index(names))
    row[names.isna().to_numpy()] = -1
    return np.r_[row, -1][column.cat.codes.to_numpy()]


def _of_unknown(column: pd.Series, cells: Cells) -> str:
    """What to do about cells that are not in the table of cells: a few of both, and whether they differ in form only."""
    names, known = _texts(pd.Series(column.unique()).astype("object")), cells["cell"]
    digits = [set(of.str.extract(r"(\d+)\D*$", expand=False).dropna().str.lstrip("0")) for of in (names, known)]
    few = [", ".join(of[:3]) + (", …" if len(of) > 3 else "") for of in (names, known)]
    if 2 * len(digits[0] & digits[1]) > len(names):
        return f"cells are {few[0]} here, and {few[1]} in the table of cells: write them alike"
    return f"leave the record out, or add {few[0]} to the table of cells"


def _missing(column: pd.Series) -> np.ndarray:
    """Mask of missing or empty names."""
    return (column.isna() | (column == "")).to_numpy(bool)


def _outside(table: pd.DataFrame, period: Period) -> list[tuple[str, np.ndarray, str]]:
    first, end = period
    if first.tzinfo is None or end.tzinfo is None or not first < end:
        raise ValueError(f"a period has two moments with a time zone, the first before the other (got {first}, {end})")
    remedy = f"leave the record out; the period is {first} up to {end}, exclusive"
    t = table["t"]
    return [
        ("time before the period", (t < first).to_numpy(bool), remedy),
        ("time after the period", (t >= end).to_numpy(bool), remedy),
    ]


def as_calls(table: pd.DataFrame, cells: Cells | None = None, period: Period | None = None) -> Calls:
    """Validate call records and return them as ``Calls``: typed, sorted by (user, t), equal times in the given order.

    Raises :class:`InvalidCalls` with every broken rule, its count and its first record. Without ``cells`` every cell is
    accepted, and the categories are the cells that occur. The argument is not changed.
    """
    broken = problems(table, cells, period)
    if len(broken):
        raise InvalidCalls(broken)
    return _in_order(table, cells)


def without(table: pd.DataFrame, cells: Cells | None = None, period: Period | None = None) -> tuple[Calls, pd.DataFrame]:
    """Remove the records that break a rule or repeat another, and return the ``Calls`` and a table of what was left out.

    A record is a repetition if all columns of ``Calls`` agree; further columns are not compared. The second table has the
    columns of :class:`mobpriv.traces.table.TableProblem`. A record that breaks two rules counts under the first.
    """
    in_order, columns = partial(_in_order, cells=cells), [*CALL_COLUMNS, *OPTIONAL]
    return kept_and_left_out(table, _broken(table, cells, period), in_order, columns, call_problem)


def _in_order(table: pd.DataFrame, cells: Cells | None) -> Calls:
    """Type and sort a table that breaks no rule."""
    names = pd.Index(_occurring(table) if cells is None else cells["cell"], dtype="str")
    at = {c: _rows_of(table[c], pd.DataFrame({"cell": names})) for c in ("cell", "end_cell") if c in table.columns}
    end = np.where(at["end_cell"] < 0, at["cell"], at["end_cell"]) if "end_cell" in at else at["cell"]
    seconds = table["duration"] if "duration" in table.columns else pd.Series(np.nan, table.index)
    rest = [c for c in table.columns if c not in (*CALL_COLUMNS, *OPTIONAL)]
    out = pd.DataFrame(
        {
            "user": sorted_categories(table["user"]),
            "t": table["t"].dt.tz_convert("UTC").dt.as_unit("ms"),
            "cell": pd.Series(pd.Categorical.from_codes(at["cell"], names, validate=False), table.index),
            "end_cell": pd.Series(pd.Categorical.from_codes(end, names, validate=False), table.index),
            "duration": pd.to_numeric(seconds).astype("float64"),
            **{c: table[c] for c in rest},
        },
        copy=False,
    )
    return sorted_rows(out)


def _occurring(table: pd.DataFrame) -> np.ndarray:
    """The sorted names of the cells that occur."""
    names = [_texts(pd.Series(table[c].dropna().unique()).astype("object")) for c in ("cell", "end_cell") if c in table.columns]
    return np.unique(pd.concat(names).dropna().to_numpy(object))
