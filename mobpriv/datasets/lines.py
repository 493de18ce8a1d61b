"""Delimited text files as columns, at full speed, with the lines that could not be read."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from mobpriv.traces import Problem

LARGE = 1 << 25  # bytes: a file that is worth two threads
_BLANK = ["", "nan", "na", "n/a", "null", "none"]


class Lines(NamedTuple):
    """A delimited file as columns, and the lines that are no rows."""

    table: pa.Table
    number: np.ndarray  # line of each row in the file, counted from 1
    bad: list[tuple[int, str]]  # line and its text
    cut: bool  # the last line is bad and has no end


_NOTHING = Lines(pa.table({}), np.zeros(0, np.int64), [], False)


def read_lines(
    path: Path, delimiter: str, types: dict[str, pa.DataType], names: list[str] | None = None, header: int = 0
) -> Lines:
    """Read a delimited file; ``header`` lines are passed over, then one line of names unless ``names`` gives them.

    ``types`` fixes the types of some columns, the others are guessed. The file is read at full speed first; if a value does not
    fit its type, it is read again as text to find the lines that are at fault. A line with too few or too many values, or with
    a value that is not of its column's type, is bad; empty lines are passed over.
    """
    skipped: list[tuple[int, str]] = []

    def skip(row):
        skipped.append((row.number, row.text))
        return "skip"

    def read(types, threads=False, **convert):
        skipped.clear()
        return pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(use_threads=threads, skip_rows=header, column_names=names, block_size=1 << 24),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter, invalid_row_handler=skip, ignore_empty_lines=False),
            convert_options=pa.csv.ConvertOptions(column_types=types, **convert),
        )

    try:
        table, wrong = read(types, path.stat().st_size > LARGE), []
        if skipped and skipped[0][0] is None:  # threads do not know their lines
            table = read(types)
    except pa.ArrowInvalid as reason:
        if any(text in str(reason) for text in ("Empty CSV", "Could not skip")):
            return _NOTHING
        columns = names or _names(path, delimiter, header)
        raw = read(dict.fromkeys(columns, pa.binary()), check_utf8=False)
        table, wrong = _typed(raw, types)
        texts = [(row, _text(raw, row, delimiter)) for row in wrong]
    first = 1 + header + (names is None)
    gone = [number for number, _ in skipped]
    number = np.arange(first, first + table.num_rows + len(gone))
    number = np.setdiff1d(number, gone) if gone else number
    bad = [(line, text) for line, text in skipped if text.strip()]
    keep = ~_empty(table)
    if len(wrong):
        bad = sorted(bad + [(int(number[row]), text) for row, text in texts])
        keep[wrong] = False
    if not keep.all():
        table, number = table.filter(pa.array(keep)), number[keep]
    last = int(number[-1]) if len(number) else 0
    return Lines(table, number, bad, bool(bad) and bad[-1][0] > last and not _ends_with_newline(path))


def _names(path: Path, delimiter: str, header: int) -> list[str]:
    with pa.input_stream(path) as file:  # unpacks .gz by its name
        head = file.read(1 << 16).decode("utf-8", "replace").splitlines()[header]
    return [name.strip().strip('"') for name in head.split(delimiter)]


def _empty(table: pa.Table) -> np.ndarray:
    """Rows that come from empty lines: no value in any column."""
    empty = np.ones(table.num_rows, bool)
    for column in sorted(table.columns, key=lambda c: _is_text(c.type)):  # numbers are quicker, and mostly enough
        if not empty.any():
            break
        if _is_text(column.type):
            empty &= pa.compute.equal(pa.compute.fill_null(column.cast(pa.string()), ""), "").to_numpy()
        else:
            empty &= column.is_null().to_numpy() if column.null_count else False
    return empty


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_dictionary(kind)


def _typed(raw: pa.Table, types: dict[str, pa.DataType]) -> tuple[pa.Table, np.ndarray]:
    """The text columns of ``raw`` as ``types``, with null where that fails, and the rows where it fails.

    A column without a type becomes numbers if every value is one.
    """
    wrong, columns = np.zeros(raw.num_rows, bool), {}
    for name in raw.column_names:
        text = pd.Series([(b or b"").decode("utf-8", "replace").strip() for b in raw[name].to_pylist()], dtype="str")
        blank = text.str.lower().isin(_BLANK)
        kind = types.get(name)
        value = text if kind is not None and _is_text(kind) else _parsed(text, kind)
        if kind is None and (value.isna() & ~blank).any():
            value = text
        wrong |= (value.isna() & ~blank).to_numpy()
        columns[name] = pa.Array.from_pandas(value, type=pa.string() if value is text else kind)
    return pa.table(columns), np.flatnonzero(wrong)


def _parsed(text: pd.Series, kind: pa.DataType | None) -> pd.Series:
    if kind is not None and pa.types.is_date(kind):
        return pd.to_datetime(text, format="%Y-%m-%d", errors="coerce").dt.date
    if kind is not None and pa.types.is_time(kind):
        return pd.to_datetime(text, format="%H:%M:%S", errors="coerce").dt.time
    value = pd.to_numeric(text, errors="coerce")
    if kind is not None and pa.types.is_integer(kind):
        low, high = (-128, 127) if kind == pa.int8() else (-(2**53), 2**53)
        value = value.where((value % 1 == 0) & value.between(low, high)).astype("Int64")
    return value


def _text(raw: pa.Table, row: int, delimiter: str) -> str:
    return delimiter.join((raw[name][row].as_py() or b"").decode("utf-8", "replace") for name in raw.column_names)


def _ends_with_newline(path: Path) -> bool:
    if path.suffix == ".gz":
        return True
    with open(path, "rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


def unreadable(read: list[tuple[str, Lines]], user_of=lambda file: file) -> list[Problem]:
    """The problems of files read by :func:`read_lines`, each with its first example: bad lines, cut files, empty files.

    ``read`` holds names of files and what was read; ``user_of`` says whose a file is.
    """
    found = []
    for cut, rule, remedy in (
        (False, "line not readable", "the line is left out"),
        (True, "file cut in its last line", "the line is left out; copy the file again"),
    ):
        lines = [(file, *line) for file, part in read for line in part.bad if (part.cut and line == part.bad[-1]) == cut]
        if lines:
            file, number, text = lines[0]
            users = len({user_of(file) for file, _, _ in lines})
            found.append(Problem(rule, len(lines), users, -1, f"{file} line {number}: {text[:80]!r}", remedy))
    empty = [file for file, part in read if not part.table.num_rows and not part.bad]
    if empty:
        more = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        users = len({user_of(file) for file in empty})
        found.append(
            Problem("file without records", 0, users, -1, f"{empty[0]}{more}", "copy the file again if it should hold records")
        )
    return found
