"""Individual call profiles from files of call records that do not fit into memory (PRIMULE, §3.1 and §7: 85 million records).

DuckDB reads Parquet or text and aggregates. The days of a profile are bits of two masks, one for weekdays and one for weekends.
Each chunk of records becomes a partial table (user, place, weekdays, weekend, records); "or" of the masks merges the partial
tables. Chunks are independent: see :mod:`mobpriv.icp.cluster`.

The profiles equal those of :func:`mobpriv.icp.profiles.icps` for the records that :func:`mobpriv.datasets.read_calls` reads. They do
not depend on chunks, threads or the order of the records. Both omit a user or cell whose name means a missing value (empty, NA,
None), and a call of negative duration.
"""

import errno
import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from mobpriv.base.processes import temporary_folder
from mobpriv.base.ranges import positive, true_or_false
from mobpriv.base.ranges import whole as whole_number
from mobpriv.datasets import cells_beside, is_parquet, read_cells, recognised
from mobpriv.datasets.call_tables import call_blocks
from mobpriv.datasets.formats import READERS
from mobpriv.datasets.recognition import Reading
from mobpriv.datasets.tables import check_columns, column_names, complete_parquet, existing
from mobpriv.datasets.times import Unclear, known_zone
from mobpriv.datasets.wanted import MISSING
from mobpriv.icp.profiles import Extraction, Window, as_icps, keys_of_masks, towns_of
from mobpriv.icp.sql import CODE, Job, lookups, partial_table_sql, sql_can_read, sql_quoted

CHUNK = 1 << 24  # records
MEMORY = 0.5  # GB
_LAYOUT = 2  # version of partial tables: change it with their content, so that old ones are not reused
_BATCH = 1 << 17  # rows per batch from DuckDB
_JOINED = (
    "select {who}, place, bit_or(weekdays) weekdays, bit_or(weekend) weekend, sum(records)::bigint records "
    "from {source} group by {who}, place"
)


_READ = {
    "user": "VARCHAR",
    "cell": "VARCHAR",
    "end_cell": "VARCHAR",
    "t": "TIMESTAMP WITH TIME ZONE",
    "duration": "DOUBLE",
}  # columns of a block


class Chunk(NamedTuple):
    """Records of a file: rows ``first`` to ``end`` (exclusive) of a Parquet file, or a whole text file (both −1)."""

    path: str
    first: int
    end: int


def icps_of_files(
    files,
    window: Window,
    cells=None,
    *,
    columns: dict[str, str] | None = None,
    time: str = "",
    zone: str = "",
    every_slot: bool = False,
    both_cells: bool = False,
    memory: float = MEMORY,
    threads: int | None = None,
    chunk: int = CHUNK,
    folder=None,
) -> Extraction:
    """Compute :func:`mobpriv.icp.profiles.icps` for the call records of ``files``.

    ``files`` is one Parquet file or text file (``.csv``, ``.tsv``, ``.txt``, gzipped or not), or several with the same columns.

    * ``cells``: their table of cells or its file; by default the one next to the first file
      (:func:`mobpriv.datasets.cells_beside`).
    * ``columns``, ``time``, ``zone``: as in :func:`mobpriv.datasets.recognised`, which finds those that are not given.
    * ``every_slot``, ``both_cells``: as in :func:`mobpriv.icp.profiles.icps`.
    * ``memory``: limit of DuckDB in GB; the rest is temporarily on disk. In addition the profiles take 22 bytes each, and the
      names of their users.
    * ``threads``: by default all cores.
    * ``chunk``: records per chunk; a text file is one chunk.
    * ``folder``: keeps finished chunks. A second call reuses them if files, window and variant are the same. It can be removed
      when the profiles are computed.

    The result counts omitted records under the first rule of :data:`mobpriv.icp.sql.RULE_NAMES` that they break; its ``read``
    counts all records of the files. Departures from :func:`mobpriv.datasets.read_calls`: a cell needs no coordinates, and the end cell
    is checked only with ``both_cells``. A repeated record changes no profile. A file must have the columns that ``every_slot`` and
    ``both_cells`` need; a table without them has NaN.

    Raises ValueError for incomplete or unreadable files, and OSError if the disk is full.
    """
    memory = positive("memory", memory, "GB", least=0.1)
    threads = whole_number("threads", os.cpu_count() if threads is None else threads, 1)
    job, chunks = make_job(files, window, cells, columns, time, zone, every_slot, both_cells, chunk)
    if len(chunks) == 1 and folder is None:
        return assemble_profiles([aggregate(job, chunks[0], memory, threads)], job, memory, threads)
    with nullcontext(Path(folder)) if folder is not None else temporary_folder("mobpriv-icps-") as cache:
        cache.mkdir(parents=True, exist_ok=True)
        parts = [cache / f"{_digest(job, one)}.parquet" for one in chunks]
        steps = zip(chunks, parts, strict=True)
        for one, part in tqdm(steps, "profiles", len(chunks), unit=" chunks", delay=5, leave=False, disable=None):
            if not _done(part):
                aggregate(job, one, memory, threads, part)
        return assemble_profiles(parts, job, memory, threads, cache)


def make_job(files, window, cells, columns, time, zone, every_slot, both_cells, chunk=CHUNK) -> tuple[Job, list[Chunk]]:
    """Check all arguments before any work; return the job and its chunks."""
    if not isinstance(window, Window):
        raise ValueError(f"window must be a Window (got {window!r})")
    true_or_false("every_slot", every_slot)
    true_or_false("both_cells", both_cells)
    chunk = whole_number("chunk", chunk, 1)
    paths = [existing(path) for path in ([files] if isinstance(files, str | os.PathLike) else files)]
    if not paths:
        raise ValueError("files must name one file or more (got none)")
    for path in paths:
        if path.suffix.lower() in READERS and not is_parquet(path):
            raise ValueError(
                f"{path}: only text and Parquet are read in parts: write it as Parquet (mobpriv validate, with -o)"
            )
    reading = recognised(paths[0], columns, time, zone, "calls")
    if reading.zone:
        known_zone(reading.zone)
    _check_roles(paths[0], reading, window, every_slot, both_cells)
    chunks = []
    for path in paths:
        check_columns(path, column_names(path), reading.columns)
        chunks += _chunks_of(path, chunk)
    if not isinstance(cells, pd.DataFrame):
        cells = read_cells(cells_beside(paths[0]) if cells is None else cells)
    town_of, towns = towns_of(cells)
    town_of = town_of[~town_of.index.isin(MISSING)]
    code = np.where(town_of < 0, CODE["cell without a municipality"], town_of)
    names = [*town_of.index, *sorted(MISSING)]
    codes = np.r_[code, np.full(len(MISSING), CODE["cell missing"])].astype(np.int16)
    if len(towns) > np.iinfo(np.int16).max:
        raise ValueError(f"there must be at most 32,767 municipalities (got {len(towns):,})")
    places = pa.table({"cell": pa.array(names, pa.string()), "place": pa.array(codes)})
    return Job(window, reading, places, tuple(towns), every_slot, both_cells), chunks


def _check_roles(path: Path, reading: Reading, window: Window, every_slot: bool, both_cells: bool) -> None:
    for role, option in (("duration", every_slot or both_cells), ("end_cell", both_cells)):
        if option and role not in reading.columns:
            raise Unclear(
                f"{path}: no column {role}, which every_slot and both_cells need: say which it is in columns", {role: ""}
            )
    if reading.zone not in ("", "UTC", window.zone):
        raise ValueError(
            f"{path}: times that show no zone must be of the window's zone, {window.zone}, or of UTC (got {reading.zone}): "
            "write them in UTC, or read the file with load_calls()"
        )


def _chunks_of(path: Path, chunk: int) -> list[Chunk]:
    if not is_parquet(path):
        return [Chunk(str(path), -1, -1)]
    with complete_parquet(path):
        rows = pq.read_metadata(path).num_rows
    return [Chunk(str(path), first, min(first + chunk, rows)) for first in range(0, max(rows, 1), chunk)]


def aggregate(job: Job, chunk: Chunk, memory: float = MEMORY, threads: int = 1, target: Path | None = None) -> pa.Table | None:
    """The partial table of a chunk; with ``target`` it is written to that file, completely or not at all."""
    with _duckdb(memory, threads, chunk.path, target.parent if target else None) as con:
        for name, table in zip(("places", "hours", "slots"), (job.places, *lookups(job.window)), strict=True):
            con.register(f"given_{name}", table)
            con.execute(f"create temp table {name} as select * from given_{name}")
        types = _types(con, chunk)
        rows = f"where file_row_number >= {chunk.first} and file_row_number < {chunk.end}"
        source = f"read_parquet({_path(chunk.path)}, file_row_number = true) {rows}"
        query = partial_table_sql(job, source, types) if sql_can_read(job, types) else _by_blocks(con, job, chunk)
        if target is None:
            return con.sql(query).to_arrow_reader(_BATCH).read_all()
        con.execute(f"copy ({query}) to {sql_quoted(target.with_suffix('.part'))} (format parquet, compression lz4)")
        target.with_suffix(".part").replace(target)
    return None


def _types(con, chunk: Chunk) -> dict[str, str]:
    """DuckDB's types of the columns of a Parquet file."""
    if chunk.end < 0:
        return {}
    described = con.execute(f"describe select * from read_parquet({_path(chunk.path)})").fetchall()
    return {name: kind for name, kind, *_ in described}


def _by_blocks(con, job: Job, chunk: Chunk) -> str:
    """Count records block by block, as :func:`mobpriv.datasets.read_calls` reads them, into the table ``part``."""
    plain_job = job._replace(reading=Reading({c: c for c in job.reading.columns}, "", "", ()))
    con.execute("create temp table part (user varchar, place smallint, weekdays bigint, weekend integer, records bigint)")
    for block, failed, lines in call_blocks(chunk.path, job.reading, chunk.first, chunk.end):
        fault = np.zeros(len(block), np.int16)
        for rule, broken in failed.items():
            fault[broken & (fault == 0)] = CODE[rule]
        con.register("calls", block.append_column("fault", pa.array(fault)))
        con.execute(f"insert into part by name {partial_table_sql(plain_job, 'calls', _READ, faults=True)}")
        con.unregister("calls")
        for skipped in lines:
            con.execute("insert into part values (null, ?, 0, 0, ?)", [CODE[skipped.rule], skipped.lines])
    return _JOINED.format(who="user", source="part")


def merge_tables(parts: Sequence, memory: float = MEMORY, threads: int = 1) -> pa.Table:
    """Merge partial tables (files or tables) into one with a row per (user, place)."""
    with _duckdb(memory, threads, "the partial profiles") as con:
        return con.sql(_JOINED.format(who="user", source=_tables(con, parts))).to_arrow_reader(_BATCH).read_all()


def assemble_profiles(
    parts: Sequence, job: Job, memory: float = MEMORY, threads: int = 1, spill_folder: Path | None = None
) -> Extraction:
    """Profiles and omitted records from partial tables (files or tables).

    DuckDB sorts and counts all rows within its ``memory``. Outside it only names, numbers and keys are held.
    """
    with _duckdb(memory, threads, "the partial profiles", spill_folder) as con:
        source = _tables(con, parts)
        names = con.sql(f"select distinct user from {source} where user is not null order by user")
        names = names.to_arrow_reader(_BATCH).read_all()["user"]
        con.register("names", pa.table({"user": names, "who": np.arange(len(names), dtype=np.int32)}))
        con.execute(f"create temp table found as {_JOINED.format(who='who', source=f'{source} left join names using (user)')}")
        left_out = con.execute("select place, sum(records), count(who) from found where place < 0 group by place").fetchall()
        ((n, kept),) = con.execute("select count(*), coalesce(sum(records), 0) from found where place >= 0").fetchall()
        user, town, key = np.empty(n, np.int32), np.empty(n, np.int16), np.empty(n, np.int64)
        rows = "select who, place, weekdays, weekend from found where place >= 0 order by place, who"
        first = 0
        for batch in con.sql(rows).to_arrow_reader(_BATCH):
            batch_rows = slice(first, first := first + len(batch))
            user[batch_rows], town[batch_rows], *masks = (batch[name].to_numpy() for name in batch.schema.names)
            key[batch_rows] = keys_of_masks(*masks, job.window.weeks)
    users, towns = pd.Index(names.to_pandas(), dtype="str", name="user"), pd.Index(job.towns, dtype="str", name="municipality")
    return Extraction(as_icps(user, town, key, users, towns), _left_out(left_out), int(kept))


def _tables(con, parts: Sequence) -> str:
    """The SQL source of the partial tables."""
    if not len(parts):
        raise ValueError("there must be one partial table of profiles or more to put together (got none)")
    if isinstance(parts[0], pa.Table):
        con.register("parts", pa.concat_tables(parts))
        return "parts"
    return f"read_parquet([{', '.join(_path(file) for file in parts)}])"


def _left_out(omitted: list[tuple]) -> pd.DataFrame:
    """Table of rule, records, users in the order of the rules. ``omitted``: code of a rule, its records and its users."""
    by_code = {code: counted for code, *counted in omitted}
    return pd.DataFrame(
        [(rule, *map(int, by_code[code])) for rule, code in CODE.items() if code in by_code],
        columns=["rule", "records", "users"],
    )


@contextmanager
def _duckdb(memory: float, threads: int, what: str, folder: Path | None = None):
    """A connection that puts what exceeds its memory into ``folder``, or a temporary one; ``what`` it reads, for its errors."""
    config = {
        "memory_limit": f"{memory * 1000:.0f}MB",
        "threads": threads,
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,  # no downloads
        "autoload_known_extensions": False,
    }
    with (
        nullcontext(folder) if folder else temporary_folder("mobpriv-icps-") as spill_folder,
        duckdb.connect(config={**config, "temp_directory": str(spill_folder)}) as con,
        _one_line_errors(what, spill_folder),
    ):
        # chunks have their own progress bar; a notebook without widgets has none, and setting this would fail
        if con.execute("select current_setting('enable_progress_bar')").fetchall()[0][0]:
            con.execute("set enable_progress_bar = false")
        yield con


@contextmanager
def _one_line_errors(what: str, folder: Path):
    """Turn errors of DuckDB and of the disk into errors of one line."""
    try:
        yield
    except (duckdb.Error, OSError) as error:
        message = str(error).strip().splitlines()[0]
        disk_full = any(
            words in str(error) for words in ("No space left", "File too large", "Disk quota", "max_temp_directory_size")
        )
        if disk_full or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)):
            raise OSError(
                f"{folder}: no room is left on this disk for the partial profiles: free some, or name another folder ({message})"
            ) from None
        if isinstance(error, duckdb.OutOfMemoryException):
            raise MemoryError(
                f"{what}: DuckDB needs more memory than it may take: raise memory, or lower threads ({message})"
            ) from None
        internal = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.InternalException)
        if isinstance(error, internal) or not isinstance(error, duckdb.Error):
            raise
        raise ValueError(f"{what}: this file cannot be read to its end ({message}); was it cut while copying?") from None


def _path(path) -> str:
    """The SQL text of a path; wildcards in its name are escaped."""
    return sql_quoted(re.sub(r"([*?\[])", r"[\1]", str(path)))


def _digest(job: Job, chunk: Chunk) -> str:
    """A digest of everything that determines a partial table."""
    state = os.stat(chunk.path)
    places = hashlib.sha256(repr(job.places.to_pydict()).encode()).hexdigest()
    content = (
        _LAYOUT,
        chunk._replace(path=os.path.abspath(chunk.path)),
        state.st_size,
        state.st_mtime_ns,
        job._replace(places=places),
    )
    return "icps-" + hashlib.sha256(repr(content).encode()).hexdigest()[:24]


def _done(part: Path) -> bool:
    """Whether a partial table exists and is complete."""
    try:
        return part.is_file() and pq.read_metadata(part).num_columns == 5
    except (pa.ArrowException, OSError):
        return False
