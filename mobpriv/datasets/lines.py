"""Read delimited text files as columns, fast, and account for every line that is not a row.

A line ends with LF or CR LF, and the rest of the file after the last end is a line. Other characters that some programs treat
as line breaks (CR alone, U+2028, …) do not end a line. Every line of a file is a header line, a row, or a line left out under
exactly one rule.

Quotation marks have a meaning only in files declared as quoted (CSV, RFC 4180):

* A value is quoted completely or not at all, and a quotation mark in it is doubled.
* A quoted value may run over lines if it is closed, and only in a column that need not be on one line.
* A line that violates this is left out alone, without other lines.
* Each further line of a value that runs over lines counts under :data:`_INSIDE`, so that no line disappears silently.
"""

import bz2
import csv
import gzip
import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from mobpriv.base.numbers import counted
from mobpriv.datasets.wanted import MISSING, Wanted, plain_names
from mobpriv.traces.table import TableProblem

PACKED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
LARGE = 1 << 25  # bytes: larger files are read in two threads
BLOCK_BYTES = 1 << 26  # bytes of a file read at a time
_MAX_LINE_BYTES = 1 << 20  # bytes: a longer line is no record
BLANK, _NOT_UTF8, UNREADABLE = "blank line", "bytes that are not UTF-8", "line not readable"
_INSIDE, _CUT = "further line of a quoted value", "file cut in its last line"
REMEDIES = {
    BLANK: "the line is left out",
    _NOT_UTF8: "the line is left out; save the file as UTF-8",
    UNREADABLE: "the line is left out",
    _INSIDE: "it belongs to the record above; if it should be a record of its own, mend the quotation marks",
    _CUT: "the line is left out; copy the file again",
}
_NULLS = sorted(MISSING)
_READABLE = (  # pattern of possible values of each type: other texts are not converted
    (pa.types.is_floating, r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:[+-]?(nan|inf|infinity))"),
    (pa.types.is_integer, r"[+-]?(\d+|0[xX][0-9a-fA-F]+)"),
    (pa.types.is_date, r"\d{4}-\d{2}-\d{2}"),
    (pa.types.is_time, r"\d{2}:\d{2}(:\d{2})?"),
)
# kinds of lines
_ROW, _FURTHER, _EMPTY, _BAD, _FOREIGN = 0, 1, 2, 3, 4
_UNWANTED = 5  # a row, but of an unwanted user
_RULES = {_EMPTY: BLANK, _BAD: UNREADABLE, _FOREIGN: _NOT_UTF8, _FURTHER: _INSIDE}


class LeftOut(NamedTuple):
    """The lines that one rule leaves out of a file."""

    rule: str
    lines: int  # how many
    first: int  # the first of them, counted from 1
    text: str  # of the first of them
    fault: str = ""  # of the first of them: what is expected, and what is there


class Lines(NamedTuple):
    """A delimited file as columns, and the lines that are not rows."""

    table: pa.Table
    number: np.ndarray  # line of each row in the file, counted from 1
    left_out: list[LeftOut]
    users: tuple[str, ...] = ()  # all that occur, if only some were wanted


class Text(NamedTuple):
    """The bytes of a file and its lines."""

    data: np.ndarray  # uint8
    start: np.ndarray  # start of each line; one more: the end of the file
    values: np.ndarray  # number of delimited values in each line, ignoring quotation marks
    kind: np.ndarray  # _ROW, _EMPTY, _BAD or _FOREIGN
    complete: bool = True  # whether these are all lines of the file

    def line(self, k: int) -> str:
        """The text of a line; "" if there are fewer lines."""
        if k >= len(self.kind):
            return ""
        end = min(self.start[k + 1], self.start[k] + _MAX_LINE_BYTES)
        return bytes(self.data[self.start[k] : end]).decode("utf-8", "replace")

    def usual(self) -> int:
        """The most frequent number of values in its lines."""
        return int(np.bincount(np.minimum(self.values[self.kind == _ROW], 10_000), minlength=1).argmax())


def open_text(path: Path, delimiter: str, max_bytes: int | None = None) -> Text:
    """Split a file into lines, unpacked if it ends as in :data:`PACKED`; with ``max_bytes`` the complete lines among its first so many bytes."""
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise ValueError(f"delimiter must be one ASCII character that is no quotation mark or line end (got {delimiter!r})")
    if unpack := PACKED.get(path.suffix.lower()):
        with unpack(path) as file:
            raw = file.read(-1 if max_bytes is None else max_bytes + 1)
    else:
        raw = pa.memory_map(str(path)).read_buffer() if path.stat().st_size else b""
    data = np.frombuffer(raw, np.uint8)
    complete = max_bytes is None or len(data) <= max_bytes
    if not complete:
        data = data[:max_bytes]
        ends = np.flatnonzero(data[-_MAX_LINE_BYTES:] == 10)
        data = data[: len(data) - len(data[-_MAX_LINE_BYTES:]) + ends[-1] + 1] if len(ends) else data
    return _in_lines(_from_the_beginning(data, path), delimiter, complete)


def open_blocks(
    path: Path, delimiter: str, names: list[str], types: Iterable[str], size: int = 0, above: int = 1
) -> Iterator[Text]:
    """A file in blocks of complete lines, of about ``size`` bytes each (0: :data:`BLOCK_BYTES`).

    No record is in two blocks. The first block starts after the ``above`` header lines. All are read by :func:`read_lines` with the same
    ``names`` and ``types``.
    """
    one_line, ahead = np.array([name in types for name in names]), b""
    with PACKED.get(path.suffix.lower(), open)(path, "rb") as file:
        _from_the_beginning(np.frombuffer(file.readline(), np.uint8), path)
        for _ in range(above - 1):
            file.readline()
        while block := _lines_of(file, size or BLOCK_BYTES, ahead):
            ahead = _lines_of(file, _MAX_LINE_BYTES, b"")  # a record of the block may end here
            cut = len(block)
            if b'"' in block[-_MAX_LINE_BYTES:]:
                text = _in_lines(np.frombuffer(block + ahead, np.uint8), delimiter, True)
                kind = text.kind.copy()
                _classify(text.data, text.start, text.values, kind, 0, len(names), ord(delimiter), True, one_line)
                k = int(np.searchsorted(text.start, cut))
                while k < len(kind) and kind[k] == _FURTHER:
                    k += 1
                block, ahead = (block + ahead)[: text.start[k]], (block + ahead)[text.start[k] :]
            yield _in_lines(np.frombuffer(block, np.uint8), delimiter, True)


def _lines_of(file, size: int, begun: bytes) -> bytes:
    """``begun`` and further complete lines of a file, at least ``size`` bytes in all."""
    block = begun + file.read(max(size - len(begun), 0))
    return block if block.endswith(b"\n") else block + file.readline()


def _from_the_beginning(data: np.ndarray, path: Path) -> np.ndarray:
    """The bytes of a file without a byte order mark."""
    if data[:2].tobytes() in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{path}: the file is UTF-16: save it as UTF-8")
    return data[3:] if data[:3].tobytes() == b"\xef\xbb\xbf" else data


def _in_lines(data: np.ndarray, delimiter: str, complete: bool) -> Text:
    ends, ascii_only = _line_ends(data)
    text = Text(data, *_lines(data, ends, ord(delimiter)), complete)
    if not ascii_only:
        _mark_foreign(text)
    return text


@numba.njit(cache=True)
def _line_ends(data):
    n, seen = 0, np.uint8(0)
    for byte in data:
        n += byte == 10
        seen |= byte
    return n + (len(data) > 0 and data[-1] != 10), seen < 128


@numba.njit(cache=True)
def _lines(data, lines, delimiter):
    start, values, kind = np.zeros(lines + 1, np.int64), np.ones(lines, np.int32), np.zeros(lines, np.uint8)
    k, count, blank, bad = 0, 1, True, False
    for i in range(len(data)):
        byte = data[i]
        if byte > 32 and byte != delimiter:  # most bytes take only this branch
            blank = False
        elif byte == delimiter:
            count += 1
        elif byte == 10:
            values[k], kind[k] = count, _kind(blank, bad, i + 1 - start[k])
            k += 1
            start[k] = i + 1
            count, blank, bad = 1, True, False
        elif byte == 13:  # bad within a line; allowed at its end, and at the end of a file, where the LF may be cut off
            bad |= i + 1 < len(data) and data[i + 1] != 10
        elif byte == 0:
            bad = True
        elif byte != 32 and byte != 9:
            blank = False
    if k < lines:
        values[k], kind[k] = count, _kind(blank, bad, len(data) - start[k])
        start[k + 1] = len(data)
    return start, values, kind


@numba.njit(cache=True)
def _kind(blank, bad, size):
    if bad or size > _MAX_LINE_BYTES:
        return _BAD
    return _EMPTY if blank else _ROW


def _mark_foreign(text: Text) -> None:
    """Mark the lines that are not UTF-8; decode in pieces that end with a line."""
    at, step = 0, 1 << 14  # lines
    lines = len(text.kind)
    while at < lines:
        to = min(at + step, lines)
        try:
            bytes(text.data[text.start[at] : text.start[to]]).decode("utf-8")
            at = to
        except UnicodeDecodeError as error:
            k = int(np.searchsorted(text.start, text.start[at] + error.start, side="right")) - 1
            text.kind[k] = _FOREIGN
            at = k + 1


def header_of(text: Text, delimiter: str, path: Path, above: int = 0) -> list[str]:
    """The names in the line below the ``above`` first ones; a column without a name is called by its number."""
    if above >= len(text.kind):
        return []
    line = re.sub(r"^\s*#\s*", "", text.line(above).rstrip("\r\n"))
    try:
        names = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error as reason:
        raise ValueError(f"{path}: line {above + 1} names no columns ({reason})") from None
    if not any(name.strip() for name in names):
        return []
    return [name.strip() or f"column {k}" for k, name in enumerate(names, 1)]


def read_lines(
    path: Path,
    delimiter: str,
    types: dict[str, pa.DataType | None],
    names: list[str],
    header: int = 0,
    quoted: bool = False,
    text: Text | None = None,
    only: list[str] | None = None,
    wanted: Wanted | None = None,
    user: str = "",
) -> Lines:
    """Read a delimited file after its ``header`` lines; ``names`` names the columns.

    * ``types`` fixes the types of some columns; the others, and those whose type is None, are inferred.
    * ``quoted``: values may be quoted; those of the columns in ``types`` stay on one line.
    * ``text`` is the result of :func:`open_text`, if the file is open already.
    * ``only`` names the columns to return.
    * ``wanted``: rows with a value in the column ``user`` are read for these users only; faulty lines count for all users.

    A line is not a row if it

    * is blank (only delimiters and spaces), too long, or not UTF-8;
    * holds a NUL or a carriage return;
    * has too few or too many values, or a value that is not of its column's type.
    """
    text = open_text(path, delimiter) if text is None else text
    kind = text.kind.copy()
    header = min(header, len(kind))
    one_line = np.array([name in types for name in names])
    _classify(text.data, text.start, text.values, kind, header, len(names), ord(delimiter), quoted, one_line)
    everybody = _choose(text, kind, header, names.index(user), delimiter, wanted) if wanted else ()
    number = header + np.flatnonzero(kind[header:] == _ROW)
    table = pa.table({})
    if len(number):
        several = bool((kind[header:] == _FURTHER).any())
        table, wrong = _columns(_rows(text, kind, header), delimiter, names, types, quoted, several, only)
        if len(wrong):
            for k in number[wrong]:  # with all lines of the record
                kind[k] = _BAD
                while k + 1 < len(kind) and kind[k + 1] == _FURTHER:
                    k += 1
                    kind[k] = _BAD
            keep = np.ones(len(number), bool)
            keep[wrong] = False
            table, number = table.filter(pa.array(keep)), number[keep]
    fault = lambda k: _fault(text, k, delimiter, names, types, quoted)  # noqa: E731
    return Lines(table, number + 1, _left_out(text, kind, header, fault), everybody)


def _choose(text: Text, kind: np.ndarray, header: int, column: int, delimiter: str, wanted: Wanted) -> tuple[str, ...]:
    """Mark the rows of unwanted users; return all users. A row without a user is left out later, under its own rule."""
    owner, first = _owners(text.data, text.start, kind, header, column, ord(delimiter))
    written = [next(csv.reader(_record(text, kind, k), delimiter=delimiter))[column] for k in first]
    names = plain_names(pd.Index(written, dtype="str"))
    everybody = {name for name in names if name} - MISSING
    chosen = {"", *MISSING, *wanted.of(everybody)}
    keep = np.array([name in chosen for name in names] + [True])  # the last: lines that are no rows
    kind[~keep[owner]] = _UNWANTED
    return tuple(sorted(everybody))


def _record(text: Text, kind: np.ndarray, k: int) -> list[str]:
    """The lines of the record that begins with a line."""
    last = k
    while last + 1 < len(kind) and kind[last + 1] == _FURTHER:
        last += 1
    return [text.line(line) for line in range(k, last + 1)]


@numba.njit(cache=True)
def _owners(data, start, kind, header, column, delimiter):
    """For every line the number of its user (-1 if it is not a row), and for every user the first line.

    Users are distinguished by a 64-bit hash of the value's bytes without its quotation marks. Further lines of a record belong
    to its user.
    """
    owner, first = np.full(len(kind), -1, np.int64), np.empty(1024, np.int64)
    size, users = 4096, 0
    keys, of_key = np.zeros(size, np.uint64), np.full(size, -1, np.int64)
    for k in range(header, len(kind)):
        if kind[k] == _FURTHER and k > header:
            owner[k] = owner[k - 1]
            continue
        if kind[k] != _ROW:
            continue
        i, end = start[k], len(data)
        for _ in range(column):
            quoted = data[i] == 34
            while data[i] != delimiter or quoted:
                i += 1
                if data[i] == 34:
                    quoted = not quoted
            i += 1
        quoted, h = data[i] == 34, np.uint64(0xCBF29CE484222325)
        i += quoted
        while i < end and data[i] != 10 and data[i] != 13:
            if data[i] == delimiter and not quoted:
                break
            if data[i] == 34 and quoted:
                if i + 1 >= end or data[i + 1] != 34:
                    break
                i += 1
            h = (h ^ np.uint64(data[i])) * np.uint64(0x100000001B3)  # FNV-1a
            i += 1
        at = np.int64((h ^ (h >> np.uint64(32))) & np.uint64(size - 1))
        while of_key[at] >= 0 and keys[at] != h:
            at = (at + 1) & (size - 1)
        if of_key[at] < 0:
            if users == len(first):
                first = np.concatenate((first, np.empty(users, np.int64)))
            keys[at], of_key[at], first[users] = h, users, k
            users += 1
            if 2 * users > size:
                keys, of_key, size = _twice_as_large(keys, of_key)
                owner[k] = users - 1
                continue
        owner[k] = of_key[at]
    return owner, first[:users]


@numba.njit(cache=True)
def _twice_as_large(keys, of_key):
    size = 2 * len(keys)
    larger, number = np.zeros(size, np.uint64), np.full(size, -1, np.int64)
    for i in range(len(keys)):
        h, n = keys[i], of_key[i]
        if n >= 0:
            at = np.int64((h ^ (h >> np.uint64(32))) & np.uint64(size - 1))
            while number[at] >= 0:
                at = (at + 1) & (size - 1)
            larger[at], number[at] = h, n
    return larger, number, size


@numba.njit(cache=True)
def _classify(data, start, values, kind, header, columns, delimiter, quoted, one_line):
    """Set ``kind`` of every line after the header: rows have as many values as there are ``columns``."""
    k = header
    while k < len(kind):
        if kind[k] == _ROW:
            simple = True
            if quoted:
                for i in range(start[k], start[k + 1]):
                    if data[i] == 34:
                        simple = False
                        break
            if simple:
                if values[k] != columns:
                    kind[k] = _BAD
            else:
                last = _quoted_record(data, start, kind, k, columns, delimiter, one_line)
                if last < 0:
                    kind[k] = _BAD
                else:
                    kind[k + 1 : last + 1] = _FURTHER
                    k = last
        k += 1


@numba.njit(cache=True)
def _quoted_record(data, start, kind, line, columns, delimiter, one_line):
    """The last line of the record that begins with ``line``, or -1 if it violates RFC 4180."""
    i, end, last, column = start[line], len(data), line, 0
    limit = min(end, start[line] + _MAX_LINE_BYTES)
    while True:
        if i < limit and data[i] == 34:
            i += 1
            while True:  # to the closing quotation mark
                if i >= limit:
                    return -1
                if data[i] == 34:
                    if i + 1 < end and data[i + 1] == 34:
                        i += 2
                        continue
                    break
                if data[i] == 10:
                    last += 1
                    if last >= len(kind) or one_line[min(column, len(one_line) - 1)]:
                        return -1
                    if kind[last] != _ROW and kind[last] != _EMPTY:
                        return -1
                i += 1
            i += 1
        else:
            while i < limit and data[i] != delimiter and data[i] != 10 and data[i] != 13:
                if data[i] == 34:  # in the middle of a value
                    return -1
                i += 1
        column += 1
        if i < end and data[i] == delimiter:
            i += 1
            continue
        if i < end and data[i] == 13:
            i += 1
        if i >= end or data[i] == 10:
            return last if column == columns else -1
        return -1


def _rows(text: Text, kind: np.ndarray, header: int) -> pa.Buffer:
    """The bytes of all rows."""
    kept = kind <= _FURTHER
    kept[:header] = False
    if kept[header:].all():
        return pa.py_buffer(text.data[text.start[header] :])
    return pa.py_buffer(_joined(text.data, text.start, kept))


@numba.njit(cache=True)
def _joined(data, start, kept):
    out = np.empty(len(data) + 1, np.uint8)
    n = 0
    for k in range(len(kept)):
        if kept[k]:
            size = start[k + 1] - start[k]
            out[n : n + size] = data[start[k] : start[k + 1]]
            n += size
    return out[:n]


def _columns(rows: pa.Buffer, delimiter, names, types, quoted, several, only) -> tuple[pa.Table, np.ndarray]:
    """The columns of rows with the right number of values, and the rows that hold a value not of its column's type."""
    fixed = {name: kind for name, kind in types.items() if kind is not None}

    def read(types):
        return pa.csv.read_csv(
            pa.BufferReader(rows),
            read_options=pa.csv.ReadOptions(use_threads=rows.size > LARGE, column_names=names, block_size=1 << 24),
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter, quote_char='"' if quoted else False, newlines_in_values=several, ignore_empty_lines=False
            ),
            convert_options=pa.csv.ConvertOptions(column_types=types, null_values=["", *_NULLS], include_columns=only),
        )

    try:
        return read(fixed), np.zeros(0, np.int64)
    except pa.ArrowInvalid:
        raw = read(dict.fromkeys(names, pa.string()))
    wrong, columns = np.zeros(raw.num_rows, bool), {}
    for name in raw.column_names:
        kind, column = types.get(name), raw[name]
        if kind is None:
            columns[name] = _guessed(column)
        elif pa.types.is_string(kind):
            columns[name] = column
        elif pa.types.is_dictionary(kind):
            columns[name] = column.dictionary_encode()
        else:
            columns[name], failed = _typed(column, kind)
            wrong |= failed
    return pa.table(columns), np.flatnonzero(wrong)


def _typed(column: pa.ChunkedArray, kind: pa.DataType) -> tuple[pa.ChunkedArray, np.ndarray]:
    """Text as values of ``kind``, null if the conversion fails, and a mask of the failures."""
    form = next(form for is_kind, form in _READABLE if is_kind(kind))
    values, failed = [], [np.zeros(0, bool)]
    for text in column.chunks:
        text = pc.utf8_trim(text, " \t")
        blank = pc.or_(pc.equal(text, ""), pc.is_in(text, value_set=pa.array(_NULLS)))
        likely = pc.and_(pc.match_substring_regex(text, f"^({form})$"), pc.invert(blank))
        part = _cast(pc.utf8_ltrim(pc.if_else(likely, text, None), "+"), kind)
        values += part
        missing = np.concatenate([piece.is_null().to_numpy(zero_copy_only=False) for piece in part])
        failed.append(missing & ~pc.fill_null(blank, True).to_numpy(zero_copy_only=False))
    return pa.chunked_array(values, kind), np.concatenate(failed)


def _cast(text: pa.Array, kind: pa.DataType) -> list[pa.Array]:
    """Text as values in pieces, null for invalid ones; pieces are halved until the invalid value is found."""
    try:
        if pa.types.is_time(kind):  # there is no cast from text
            moment = pc.binary_join_element_wise("1970-01-01T", text, "").cast(pa.timestamp("s"))
            return [moment.cast(kind)]
        return [text.cast(kind)]
    except pa.ArrowInvalid:
        if len(text) == 1:
            return [pa.nulls(1, kind)]
        half = len(text) // 2
        return _cast(text[:half], kind) + _cast(text[half:], kind)


def _guessed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as numbers, if every value is one."""
    for kind in (pa.int64(), pa.float64()):
        value, failed = _typed(column, kind)
        if not failed.any():
            return value
    return column


def _fault(text: Text, k: int, delimiter: str, names: list[str], types: dict, quoted: bool) -> str:
    """What is expected of a line that cannot be read, and what is there; no value of it."""
    line = text.line(k).rstrip("\r\n")
    if "\0" in line or "\r" in line:
        return "a NUL or a carriage return is in the line"
    if text.start[k + 1] - text.start[k] > _MAX_LINE_BYTES:
        return f"a line has at most {_MAX_LINE_BYTES:,} bytes"
    if quoted and '"' in line:
        return "a quotation mark does not enclose a whole value on this line"
    values = line.split(delimiter)
    if len(values) != len(names):
        return f"expected {counted(len(names), 'value')}, found {len(values)}"
    for name, value in zip(names, values, strict=True):
        form = next((form for is_kind, form in _READABLE if types.get(name) is not None and is_kind(types[name])), "")
        if form and value.strip() not in ("", *_NULLS) and not re.fullmatch(form, value.strip(" \t")):
            return f"{name} is no {'date or time' if pa.types.is_temporal(types[name]) else 'number'}"
    return ""


def _left_out(text: Text, kind: np.ndarray, header: int, fault: Callable[[int], str]) -> list[LeftOut]:
    left_out = []
    lines = len(kind)
    cut = lines > header and kind[-1] == _BAD and text.data[-1] != 10
    for code, rule in _RULES.items():
        numbers = header + np.flatnonzero(kind[header : lines - cut] == code)
        if len(numbers):
            k = int(numbers[0])
            why = fault(k) if rule == UNREADABLE else ""
            left_out.append(LeftOut(rule, len(numbers), k + 1, text.line(k).rstrip("\r\n"), why))
    if cut:
        left_out.append(LeftOut(_CUT, 1, lines, text.line(lines - 1)))
    return left_out


def unreadable(read: list[tuple[str, Lines]], user_of: Callable | None = lambda file: file) -> list[TableProblem]:
    """The problems of files read by :func:`read_lines`, each with its first example: lines left out, cut files, empty files.

    ``read`` holds pairs of a file's name and its lines. ``user_of`` gives the user of a file; it is None if a file has several
    users, because then a line's user is unknown.
    """
    problems = []
    for rule, remedy in REMEDIES.items():
        parts = [(file, part) for file, lines in read for part in lines.left_out if part.rule == rule]
        if parts:
            file, first = parts[0]
            users = len({user_of(file) for file, _ in parts}) if user_of else 0
            place, records = f"{file} line {first.first}", sum(part.lines for _, part in parts)
            remedy = f"{first.fault}; {remedy}" if first.fault else remedy
            problems.append(TableProblem(rule, records, users, -1, place, repr(first.text[:80]), remedy))
    empty = [file for file, lines in read if not lines.table.num_rows and all(part.rule == BLANK for part in lines.left_out)]
    if empty:
        more = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        users = len({user_of(file) for file in empty}) if user_of else 0
        remedy = "copy the file again if it should hold records"
        problems.append(TableProblem("file without records", 0, users, -1, f"{empty[0]}{more}", "", remedy))
    return problems
