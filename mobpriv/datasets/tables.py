"""Read any table of positions as ``Traces``, with a mapping of column names: text, Parquet, and what :mod:`mobpriv.datasets.formats` reads.

Every reader of this package returns ``(traces, left_out)``: the valid records, and a table of what was left out and why.
``left_out`` has the columns of :class:`mobpriv.traces.table.TableProblem`. In addition to the rules of :func:`mobpriv.traces.table.without` it
has those of the readers (lines or times that cannot be read, files without records). Its columns:

* ``place``: the file and the line;
* ``row``: counts the rows read; −1 if the line never became a row;
* ``value``: one person's record, which no page shows.

The records read, the records left out and the header lines together are all lines of the file.
"""

import lzma
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mobpriv.base.numbers import counted
from mobpriv.datasets.formats import Table, opened
from mobpriv.datasets.lines import BLANK, PACKED, LeftOut, Lines, header_of, open_blocks, open_text, read_lines, unreadable
from mobpriv.datasets.lines import UNREADABLE as UNREADABLE_LINE
from mobpriv.datasets.times import DIGITS_CUT, DIGITS_CUT_REMEDY, Unclear, digits_cut, known_zone, times
from mobpriv.datasets.wanted import MISSING, Wanted, plain_names
from mobpriv.traces.table import COLUMNS, TableProblem, Traces, problem, without

NAME_TYPE = pa.dictionary(pa.int32(), pa.string())  # text with many repetitions
ROLES_IN_WORDS = {  # of the columns of traces and calls, in words
    "user": "user",
    "t": "time",
    "lat": "latitude",
    "lng": "longitude",
    "cell": "cell",
    "end_cell": "cell at the end",
    "duration": "duration",
}
_NAMED = ("user", "cell", "end_cell")  # the columns that hold names
_MAX_COLUMNS = 1_000  # most columns of a table: more take minutes and gigabytes
_HEAD = 1 << 20  # bytes of a text from which its format is recognised
_POLAR = 89.99  # degrees: within 1.1 km of a pole "east" has no meaning, and cells and the Mercator plane end there
NO_USER = "user written as missing (NULL, nan, NA, \\N, …)"
NOWHERE = "latitude 0, longitude 0: written for a position that is not known"
_REMEDIES = {
    DIGITS_CUT: DIGITS_CUT_REMEDY,
    NOWHERE: "the record is left out; nobody is at 0, 0 in the Gulf of Guinea",
}
_TABLES = "export it as CSV or Parquet"
_JSON = "a JSON document: let its name end in .json, .geojson or .jsonl"
_XML = "an XML document: GPX and KML are read if the name ends in .gpx or .kml"
_PACKED_OTHERWISE = "unpack it, or pack it with gzip"
_NO_TABLE = {  # first bytes of files that are mistaken for tables
    b"%PDF": f"a PDF document: {_TABLES}",
    b"PK\x03\x04": f"an Excel workbook or another ZIP archive: {_TABLES}",
    b"\xd0\xcf\x11\xe0": f"an Excel workbook: {_TABLES}",
    b"<!doc": f"a web page: {_TABLES}",
    b"<html": f"a web page: {_TABLES}",
    **dict.fromkeys((b"<?xml", b"<gpx", b"<kml"), _XML),
    **dict.fromkeys((b"{", b"["), _JSON),
    **dict.fromkeys((b"ARROW1", b"FEA1"), "an Arrow file (Feather): let its name end in .feather"),
    b"SQLite format 3": f"an SQLite database: let its name end in .gpkg if it is a GeoPackage, or {_TABLES}",
    b"PAR1": "a Parquet file that is packed: unpack it",
    **dict.fromkeys((b"\x89PNG", b"\xff\xd8\xff", b"GIF8"), f"a picture: {_TABLES}"),
    b"\x89HDF": f"an HDF5 file: {_TABLES}",
    b"\x1f\x8b": "packed with gzip: let its name end in .gz",
    b"BZh": "packed with bzip2: let its name end in .bz2",
    b"\xfd7zXZ": "packed with xz: let its name end in .xz",
    b"\x28\xb5\x2f\xfd": f"packed with Zstandard: {_PACKED_OTHERWISE}",
    b"\x04\x22\x4d\x18": f"packed with LZ4: {_PACKED_OTHERWISE}",
    b"7z\xbc\xaf": f"packed with 7-Zip: {_PACKED_OTHERWISE}",
    b"rar!": f"packed with RAR: {_PACKED_OTHERWISE}",
}
_DECIMAL_COMMA = r"\s*[+-]?\d+,\d+\s*"
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary)
_HOLDS = {  # what the columns of a table may hold
    **dict.fromkeys(_NAMED, (*_NUMBERS, *_TEXT, *_BYTES)),
    "t": (*_NUMBERS, *_TEXT, pa.types.is_timestamp, pa.types.is_date),
    **dict.fromkeys(("lat", "lng", "duration"), (*_NUMBERS, *_TEXT)),
}


def read_table(
    path,
    columns: dict[str, str] | None = None,
    time: str | None = None,
    zone: str | None = None,
    names: list[str] | None = None,
    delimiter: str | None = None,
) -> tuple[Traces, pd.DataFrame]:
    """Records of a text (``.csv``, ``.tsv``, ``.txt``, also packed: ``.gz``, ``.bz2``, ``.xz``), of a Parquet file, of a file of
    :mod:`mobpriv.datasets.formats`, or of a data frame.

    * ``columns`` maps columns: ``{"user": "uid", "t": "time", "lat": "latitude", "lng": "longitude"}``. Columns that already
      have the right name may be left out.
    * ``names`` names the columns of a file without a header line.
    * ``time`` is ``"s"``, ``"ms"``, ``"us"``, ``"ns"`` or ``"iso"`` (by default numbers are seconds).
    * ``zone`` is the zone of times that name none: see :func:`mobpriv.datasets.times.times`.

    Names of users stay text ("000"); further columns are kept.
    """
    return read_part(path, columns, time, zone, names, delimiter)[:2]


class Part(NamedTuple):
    """The records of some users of a table."""

    traces: Traces
    left_out: pd.DataFrame  # of these users, and lines of a text without a user
    users: tuple[str, ...]  # all users there; () if everybody was wanted
    searched: int  # bytes of the text that were searched; 0 for all
    notes: tuple[str, ...]  # how positions were read that are not written as usual


def read_part(
    path,
    columns: dict[str, str] | None = None,
    time: str | None = None,
    zone: str | None = None,
    names: list[str] | None = None,
    delimiter: str | None = None,
    wanted: Wanted | None = None,
    max_bytes: int | None = None,
) -> Part:
    """:func:`read_table` for the ``wanted`` users only, as fast as a search.

    In a text only the first ``max_bytes`` are searched, in a Parquet file all. A table in memory is read for all users.
    """
    source = opened(path)
    path = source.path if isinstance(source, Table) else existing(source)
    wanted = None if wanted is None or wanted.everybody else wanted
    known_zone(zone)
    columns = {c: (columns or {}).get(c, c) for c in (*COLUMNS, *(columns or {}))}
    bad, users, searched = [], (), 0
    if isinstance(source, Table):
        table, bad, where = memory_table(source, columns), source.left_out, source.place
    elif is_parquet(path):
        table, number, users = _parquet_part(path, columns, wanted) if wanted else (parquet_table(path, columns), None, ())
        where = lambda row: f"{path.name} row {row if number is None else number[row]}"  # noqa: E731
    else:
        table, lines, searched = text_table(path, columns, names, delimiter, wanted, max_bytes)
        bad, users = unreadable([(path.name, lines)], None), lines.users
        where = lambda row: f"{path.name} line {lines.number[row]}"  # noqa: E731
    table, notes = _usual_positions(table)
    return Part(*as_records(table, bad, path.name, where, time, zone), users, searched, notes)


def memory_table(source: Table, columns: dict[str, str]) -> pd.DataFrame:
    """The rows of a table in memory; ``columns`` are checked and renamed."""
    check_columns(source.path, source.table.column_names, columns)
    return parquet_rows(source.path, source.table, columns)


def _usual_positions(table: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Numbers with a decimal comma, and longitudes from 0 to 360, as usual; and in words what was changed."""
    notes = []
    for c in ("lat", "lng"):
        if not pd.api.types.is_numeric_dtype(table[c].dtype):
            text = table[c].astype("str")
            comma = text.str.fullmatch(_DECIMAL_COMMA).fillna(False).to_numpy(bool)
            if comma.any():
                table = table.assign(**{c: text.mask(comma, text.str.replace(",", "."))})
                notes.append(
                    f"{counted(int(comma.sum()), ROLES_IN_WORDS[c])} with a decimal comma {'is' if comma.sum() == 1 else 'are'} read"
                )
    lng = pd.to_numeric(table["lng"], errors="coerce").to_numpy(float, na_value=np.nan)
    with np.errstate(invalid="ignore"):
        beyond = (lng > 180) & (lng <= 360)
        if 2 * beyond.sum() > len(lng) and not (lng < 0).any():
            table = table.assign(lng=np.where(beyond, lng - 360, lng))
            notes.append("longitudes run from 0 to 360: we subtract 360 from those above 180")
    return table, tuple(notes)


def existing(path, folder: bool = False) -> Path:
    path = Path(path)
    if not (path.is_dir() if folder else path.is_file()):
        reason = "is not one" if path.exists() else "there is none"
        raise FileNotFoundError(f"{path}: a {'folder' if folder else 'file'} is needed here, and {reason}")
    return path


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its name or its first bytes."""
    if path.suffix.lower() == ".parquet":
        return True
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def as_records(
    table: pd.DataFrame, problems: list[TableProblem], source: str, where, time: str | None = None, zone: str | None = None
) -> tuple[Traces, pd.DataFrame]:
    """``(traces, left_out)`` of a table read from ``source``; ``where(row)`` names the place of a row in it.

    Every row is in ``traces`` or counts under one rule of ``left_out``.
    """
    numbers = {c: pd.to_numeric(table[c], errors="coerce").astype(float) for c in ("lat", "lng")}
    lat = numbers["lat"].to_numpy()
    polar = ((lat > _POLAR) & (lat <= 90)) | ((lat < -_POLAR) & (lat >= -90))  # beyond ±90 another rule applies
    broken = {"latitude at a pole": polar, NOWHERE: (lat == 0) & (numbers["lng"].to_numpy() == 0)}
    return sorted_out(table.assign(**numbers), problems, source, where, time, zone, broken, without, problem)


def sorted_out(
    table: pd.DataFrame,
    problems: list[TableProblem],
    source: str,
    where,
    time: str | None,
    zone: str | None,
    masks: dict[str, np.ndarray],
    without,
    problem,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """:func:`as_records` for any table with the columns user and t.

    ``masks`` holds the masks of further rules, ``without`` is the validator of the table's kind, and ``problem`` describes a
    violated rule.
    """
    user = categorical_names(table["user"])
    unnamed = user.isin(MISSING).to_numpy()
    cut = digits_cut(user)
    t, failed = times(table["t"], time, zone, source)
    table, problems, keep = table.assign(user=user), list(problems), np.ones(len(table), bool)
    cut |= failed.pop(DIGITS_CUT, False) | masks.pop(DIGITS_CUT, False)
    for rule, broken in {NO_USER: unnamed, DIGITS_CUT: cut, **failed, **masks}.items():
        broken = broken & keep
        if broken.any():
            violated = problem(rule, broken, table, _REMEDIES.get(rule, "the record is left out"))
            problems.append(violated._replace(users=0) if rule == NO_USER else violated)
            keep &= ~broken
    table = table.assign(t=t)
    kept = range(len(table)) if keep.all() else np.flatnonzero(keep)
    records, left_out = without(table if keep.all() else table[keep])
    for p in left_out.itertuples(index=False, name=None):
        p = TableProblem(*p)
        problems.append(p._replace(row=int(kept[p.row])))
    problems = [p if p.row < 0 else p._replace(place=where(p.row)) for p in problems]
    left_out = pd.DataFrame(problems, columns=TableProblem._fields)
    lost = left_out[(left_out["records"] > 0) & (left_out["rule"] != BLANK)]
    if not len(records) and len(lost):
        raise none_left(source, left_out)
    return records, left_out


class NoRecordCanBeUsed(ValueError):
    """Every record of a table breaks a rule; the message names the rule that most of them break."""

    left_out: pd.DataFrame  # all of them


def none_left(source: str, left_out: pd.DataFrame) -> NoRecordCanBeUsed:
    """The error for a table whose records are all in ``left_out``."""
    worst = left_out.loc[left_out["records"].where(left_out["rule"] != BLANK, 0).idxmax()]
    error = NoRecordCanBeUsed(
        f"{source}: no record can be used. {worst['rule']}: {counted(int(worst['records']), 'record')}, "
        f"first {worst['place']}; {worst['remedy']}"
    )
    error.left_out = left_out
    return error


def categorical_names(user: pd.Series) -> pd.Series:
    """Users or cells as a categorical of plain names; an empty name counts as missing."""
    if not isinstance(user.dtype, pd.CategoricalDtype):
        user = user.astype("category")
    given = user.cat.categories
    text = given
    if pd.api.types.is_float_dtype(given.dtype):  # whole numbers without decimals, also those that Python writes as 1e+16
        text = pd.Index([f"{x:.0f}" if x % 1 == 0 else str(x) for x in given], dtype="str")
    plain = plain_names(text)
    if not (pd.api.types.is_string_dtype(given.dtype) and plain.equals(given)):
        number, names = pd.factorize(plain)
        code = np.r_[number, -1][user.cat.codes.to_numpy()]
        user = pd.Series(pd.Categorical.from_codes(code, pd.Index(names, dtype="str")), user.index)
    return user.cat.remove_categories([""]) if "" in user.cat.categories else user


def parquet_table(path: Path, columns: dict[str, str] | None = None) -> pd.DataFrame:
    """Read a Parquet file; decimals become the nearest floating-point numbers.

    ``columns`` maps columns (see :func:`read_table`): they are checked and renamed.
    """
    with complete_parquet(path):
        names = pq.read_schema(path).names
        if columns is not None:
            check_columns(path, names, columns)
        coded = [name for c, name in columns.items() if c in _NAMED] if columns else None
        table = pq.read_table(path, read_dictionary=coded)
    return parquet_rows(path, table, columns)


@contextmanager
def complete_parquet(path: Path) -> Iterator[None]:
    """Turn the Parquet reader's errors for a broken file into a message of one line."""
    try:
        yield
    except (pa.ArrowException, OSError) as reason:
        raise ValueError(f"{path}: not a whole Parquet file ({_first(reason)}); was it cut while copying?") from None


def _parquet_part(path: Path, columns: dict[str, str], wanted: Wanted) -> tuple[pd.DataFrame, np.ndarray, tuple[str, ...]]:
    """The rows of the wanted users and of no user, their numbers in the file, and all users.

    The column of the user is read first, then only the row groups that hold any of these rows.
    """
    column = columns["user"]
    with complete_parquet(path):
        file = pq.ParquetFile(path, read_dictionary=[column])
        check_columns(path, file.schema_arrow.names, columns)
        groups = [file.read_row_group(k, [column])[column] for k in range(file.num_row_groups)]
        values = pa.chunked_array([_plain(group.unique()) for group in groups] or [pa.nulls(0, pa.string())]).unique()
        names = categorical_names(parquet_rows(path, pa.table({column: values}), {"user": column})["user"])
        users = names.dropna()
        chosen = values.filter(pa.array((names.isin([*wanted.of(users), *MISSING]) | names.isna()).to_numpy()))
        parts, number, first = [file.schema_arrow.empty_table()], [np.zeros(0, np.int64)], 0
        for k, group in enumerate(groups):
            keep = pc.is_in(group, value_set=chosen)
            if pc.any(keep).as_py():
                parts.append(file.read_row_group(k).filter(keep))
                number.append(first + np.flatnonzero(keep.to_numpy()))
            first += len(group)
        table = pa.concat_tables(parts)
    return parquet_rows(path, table, columns), np.concatenate(number), tuple(sorted(set(users) - MISSING))


def _plain(values: pa.Array) -> pa.Array:
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def parquet_rows(path: Path, table: pa.Table, columns: dict[str, str] | None) -> pd.DataFrame:
    """The rows of a Parquet file; the columns in ``columns`` get the names of ``Traces``."""
    for k, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):  # round to the nearest float: the cast alone can be off by one bit
            number = table[k].cast(pa.float64()).to_numpy().round(field.type.scale)
            table = table.set_column(k, field.name, pa.array(number))
    if columns is not None:
        table = _with_roles(path, table, columns)
    return _pandas(table)


def _pandas(table: pa.Table) -> pd.DataFrame:
    """Convert column by column and release each at once, which halves the memory."""
    return table.unify_dictionaries().to_pandas(ignore_metadata=True, split_blocks=True, self_destruct=True)


def check_names(path: Path, names: list[str]) -> None:
    """Refuse a table with duplicate column names, or with too many columns."""
    if len(names) > _MAX_COLUMNS:
        most = f"at most {_MAX_COLUMNS:,} can be read: write those that are needed to a file"
        raise ValueError(f"{path}: {len(names):,} columns, {most}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path}: {names.count(twice[0])} columns are called {twice[0]}: rename all but one")


def _holds_record(values: list[str]) -> bool:
    """Whether values are a position or a time, which are no names of columns."""
    record = re.compile(r"[+-]?\d+\.\d+|\d{9,}|\d{4}-\d\d-\d\d[T ].*")
    day = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}\b.*")  # a table may have a column for each of several days
    return any(record.fullmatch(value) for value in values) or sum(bool(day.fullmatch(value)) for value in values) == 1


def check_columns(path: Path, names: list[str], columns: dict[str, str]) -> None:
    """Refuse a table with duplicate column names, too many columns, or missing columns."""
    check_names(path, names)
    for name in columns.values():
        roles = [c for c, other in columns.items() if other == name]
        if len(roles) > 1:
            raise ValueError(f"{path}: column {name} is named for {' and '.join(roles)}: each needs a column of its own")
    missing = {c: name for c, name in columns.items() if name not in names}
    if missing and not names and path.is_file() and not path.stat().st_size:
        lines = f"it needs a line of names, {','.join(columns)}, and a line for each record"
        raise ValueError(f"{path}: the file is empty; {lines}")
    if _holds_record(names if missing else list(columns.values())):
        raise ValueError(
            f"{path}: there is no line of names, it seems, but a record in its place: put a line of names above it"
        )
    if {"lat", "lng"} <= set(missing) and "geometry" in names:
        raise ValueError(
            f"{path}: positions are in the column geometry, but are needed as numbers: write them to columns, in geopandas "
            "frame.assign(lat=frame.geometry.y, lng=frame.geometry.x)"
        )
    if missing:
        has = ", ".join(names) or "none"
        unassigned = [name for name in names if name not in columns.values()]
        only = unassigned[0] if len(unassigned) == len(missing) == 1 else ""
        words = {c: ROLES_IN_WORDS.get(c, c) for c in missing}
        lacking = ", ".join(name if name == words[c] else f"{name} ({words[c]})" for c, name in missing.items())
        raise Unclear(f"{path}: no column {lacking}; it has: {has}. Say which is which", dict.fromkeys(missing, only))
    clashing = [c for c, name in columns.items() if c != name and c in names and c not in columns.values()]
    if clashing:
        c = clashing[0]
        raise ValueError(f"{path}: {columns[c]} is to be the column {c}, and there is a column {c}: rename that")


def _with_roles(path: Path, table: pa.Table, columns: dict[str, str]) -> pa.Table:
    """Rename columns to those of ``Traces`` or ``Calls``, and check that their types can be read."""
    role = {name: c for c, name in columns.items()}
    table = table.rename_columns([role.get(name, name) for name in table.column_names])
    for c, allowed in ((c, allowed) for c, allowed in _HOLDS.items() if c in columns):
        column = table[c]
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not any(is_kind(kind) for is_kind in allowed):
            raise ValueError(f"{path}: column {columns[c]} holds {kind}, which cannot be read as {c}")
        if any(is_kind(kind) for is_kind in _BYTES):
            try:
                column, kind = column.cast(kind).cast(pa.string()), pa.string()
            except pa.ArrowInvalid:
                raise ValueError(f"{path}: column {columns[c]} holds bytes that are not UTF-8") from None
        if pa.types.is_date(kind):
            kind = pa.timestamp("ms")
        # whole numbers beside missing ones would become floating-point numbers, which are not exact
        if c in _NAMED and (any(is_kind(kind) for is_kind in _TEXT) or (pa.types.is_integer(kind) and column.null_count)):
            kind = NAME_TYPE
        elif pa.types.is_null(kind):
            kind = pa.float64()
        if column.type != kind:
            column = column.cast(kind) if not pa.types.is_dictionary(kind) else column.cast(pa.string()).dictionary_encode()
        table = table.set_column(table.column_names.index(c), c, column)
    return table


class Head(NamedTuple):
    """How a text begins."""

    names: list[str]  # of the columns
    lines: int  # up to the names
    delimiter: str


def head(path: Path, names=None, delimiter: str | None = None) -> Head:
    """How a text begins. Lines that begin with ``#``, and a line such as ``sep=;``, may be above the names."""
    text, delimiter, above = _opened(path, names, delimiter, _HEAD)
    return Head(*_names(path, text, delimiter, above, names), delimiter)


def first_rows(path: Path, columns: dict[str, str], delimiter: str) -> pd.DataFrame:
    """The rows in the first :data:`_HEAD` bytes of a text, with coordinates as text."""
    return text_table(path, columns, None, delimiter, max_bytes=_HEAD, coordinates=pa.string())[0]


def column_names(source: Table | Path) -> list[str]:
    """The names of the columns of a table in memory, a Parquet file or a text."""
    if isinstance(source, Table):
        return source.table.column_names
    if is_parquet(source):
        with complete_parquet(source):
            return pq.read_schema(source).names
    return head(source).names


def _opened(path: Path, names, delimiter, max_bytes: int | None):
    """A text, its delimiter, and how many lines are above its names."""
    if path.suffix.lower() not in PACKED:
        with path.open("rb") as file:
            _only_text(path, file.read(1024), bool(names))
    with _to_its_end(path):
        text = open_text(path, delimiter or ",", _HEAD)
        _only_text(path, text.data[:1024].tobytes(), bool(names))
        first = 0 if names else _lines_above(text)
        if delimiter is None:
            said = re.fullmatch(r"sep=(.)\s*", text.line(first - 1), re.IGNORECASE) if first else None
            delimiter = said[1] if said else _delimiter(text, names, first)
        return open_text(path, delimiter, max_bytes), delimiter, first


def _only_text(path: Path, begins: bytes, records: bool) -> None:
    """Refuse a file that is no text, by its first bytes; a line of ``records`` may be faulty."""
    begins = begins.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    kind = next((kind for first, kind in _NO_TABLE.items() if begins.startswith(first.lower())), "")
    if kind:
        raise ValueError(f"{path} is {kind}")
    utf_16 = begins.startswith((b"\xff\xfe", b"\xfe\xff"))  # refused elsewhere
    if not records and not utf_16 and re.search(rb"[\x00-\x08\x0e-\x1f]", begins.split(b"\n", 1)[0]):
        raise ValueError(f"{path} is no text (its first line has control characters): {_TABLES}")


def _lines_above(text) -> int:
    """How many lines are above the names; names may themselves follow a ``#``."""
    first = 0
    while first < len(text.kind) and re.match(r"\s*#|sep=.\s*$", text.line(first), re.IGNORECASE):
        first += 1
    below = text.line(first).rstrip("\r\n")
    if first and text.line(first - 1).lstrip().startswith("#") and (not below or _holds_record(re.split("[,;|\t ]", below))):
        first -= 1  # the names are in the last of these lines
    return first


def _names(path: Path, text, delimiter: str, above: int, names) -> tuple[list[str], int]:
    """The names of the columns, and the lines up to them."""
    if names:
        return list(names), 0
    return header_of(text, delimiter, path, above), above + 1


@contextmanager
def _to_its_end(path: Path) -> Iterator[None]:
    """Turn the errors for a text that was cut off into a message of one line."""
    try:
        yield
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as reason:
        raise ValueError(f"{path}: cannot be read ({_first(reason)}); was it cut while copying?") from None


def text_table(
    path: Path,
    columns: dict[str, str],
    names,
    delimiter,
    wanted: Wanted | None = None,
    max_bytes: int | None = None,
    coordinates: pa.DataType = pa.float64(),  # noqa: B008  (a type, which nobody changes)
) -> tuple[pd.DataFrame, Lines, int]:
    """The rows of a text, their lines, and how many of its bytes were searched (0: all)."""
    text, delimiter, above = _opened(path, names, delimiter, max_bytes)
    header, first = _names(path, text, delimiter, above, names)
    check_columns(path, header, columns)
    if delimiter != "," and _decimal_commas(text, delimiter, first):
        coordinates = pa.string()
    types = _types(columns, coordinates)
    searched = 0 if text.complete else len(text.data)
    options = {"names": header, "header": first, "wanted": wanted, "user": columns["user"]}
    table, lines = _rows_of(path, text, delimiter, columns, types, options)
    if not lines.table.num_columns:
        _check_width(path, header, text, lines)
        nothing = {c: pd.Series([], dtype="str") for c in (*columns, *set(header) - set(columns.values()))}
        return pd.DataFrame(nothing), lines, searched
    return _pandas(table), lines, searched


def text_blocks(path: Path, columns: dict[str, str]) -> Iterator[tuple[pd.DataFrame, list[LeftOut]]]:
    """:func:`text_table` block by block, for the named columns only: for a text that exceeds the memory."""
    header, above, delimiter = head(path)
    check_columns(path, header, columns)
    types = _types(columns)
    options = {"names": header, "header": 0, "only": [*columns.values()]}
    pieces = open_blocks(path, delimiter, header, types, above=above)
    while True:
        with _to_its_end(path):
            text = next(pieces, None)
        if text is None:
            return
        table, lines = _rows_of(path, text, delimiter, columns, types, options)
        if lines.table.num_columns:
            yield _pandas(table), lines.left_out
        else:
            yield pd.DataFrame({c: pd.Series([], dtype="str") for c in columns}), lines.left_out


def _types(columns: dict[str, str], coordinates: pa.DataType = pa.float64()) -> dict[str, pa.DataType | None]:  # noqa: B008
    kinds = {"t": None, "lat": coordinates, "lng": coordinates, "duration": pa.float64(), **dict.fromkeys(_NAMED, NAME_TYPE)}
    return {columns[c]: kind for c, kind in kinds.items() if c in columns}


def _rows_of(path: Path, text, delimiter: str, columns: dict[str, str], types: dict, options: dict) -> tuple[pa.Table, Lines]:
    """The rows of a text, with columns by role; ``options`` holds further arguments of :func:`read_lines`."""
    lines = read_lines(path, delimiter, types, quoted=True, text=text, **options)
    table, t = lines.table, columns["t"]
    if not table.num_columns:
        return table, lines
    if pa.types.is_floating(table[t].type):
        raw = read_lines(path, delimiter, types | {t: pa.string()}, quoted=True, text=text, **options | {"only": [t]})
        written = raw.table[t].take(np.searchsorted(raw.number, lines.number))
        if pc.any(pc.match_substring_regex(written, "[Ee]")).as_py():  # a spreadsheet may have cut off digits
            table = table.set_column(table.column_names.index(t), t, written)
    if pa.types.is_boolean(table[t].type) or pa.types.is_time(table[t].type):  # inferred types that are no times
        table = table.set_column(table.column_names.index(t), t, table[t].cast(pa.string()))
    return _with_roles(path, table, columns), lines


def _check_width(path: Path, header: list[str], text, lines: Lines) -> None:
    """Refuse a text in which no line has as many values as there are names."""
    unreadable_lines = any(part.rule == UNREADABLE_LINE for part in lines.left_out)
    if not lines.table.num_rows and unreadable_lines and text.usual() not in (1, len(header)):
        raise ValueError(
            f"{path}: there are {counted(len(header), 'name')} of columns, {', '.join(header)}, and most lines have "
            f"{counted(text.usual(), 'value')}: give every column a name, and no more"
        )


def _decimal_commas(text, delimiter: str, first: int) -> bool:
    """Whether a value in the first lines is a number with a decimal comma."""
    values = (
        value.strip('" \r\n') for k in range(first, min(len(text.kind), first + 100)) for value in text.line(k).split(delimiter)
    )
    return any(re.fullmatch(_DECIMAL_COMMA, value) for value in values)


def _delimiter(text, names, above: int) -> str:
    """The delimiter of a table: the most frequent one in the line of names.

    With ``names``, the delimiter that gives as many values in most lines.
    """
    head = [text.line(k).rstrip("\r\n") for k in range(above, min(len(text.kind), above + 100))]
    if names:
        fits = {c: sum(line.count(c) == len(names) - 1 for line in head) for c in ",\t;| "}
        if len(names) > 1 and max(fits.values()):
            return max(fits, key=fits.__getitem__)
    first = head[0] if head else ""
    return max(",\t;|", key=first.count) if any(c in first for c in ",\t;|") else " "


def _first(reason: Exception) -> str:
    return str(reason).splitlines()[0].split(". ")[0] if str(reason) else type(reason).__name__
