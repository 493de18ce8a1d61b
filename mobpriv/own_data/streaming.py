"""A table of traces that exceeds the memory, protected in blocks of users.

The mechanisms of :data:`USER_BY_USER` protect each user without looking at others. The table is split into blocks of users, in the
order of their names; the published records are split again, in the order of the published names. Only a block is in memory at a
time. The published table is that of :func:`mobpriv.own_data.protection.protect`, with the same seed to the last digit.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mobpriv.datasets import Dataset, Reading, is_parquet, sha256_of
from mobpriv.datasets.formats import READERS
from mobpriv.datasets.lines import REMEDIES, LeftOut
from mobpriv.datasets.tables import (
    NoRecordCanBeUsed,
    categorical_names,
    column_names,
    complete_parquet,
    first_rows,
    head,
    none_left,
    parquet_rows,
    read_part,
    text_blocks,
)
from mobpriv.mechanisms import GeoI, Nothing, Promesse, TriLateration
from mobpriv.own_data.protection import NAMES, Protected, Publication, pairs_of
from mobpriv.traces.table import COLUMNS, TableProblem, Traces

USER_BY_USER = (Nothing, GeoI, Promesse, TriLateration)
BLOCK = 2_000_000  # records in memory at a time: about 1 GB with their copies
CALLS = 20_000_000  # call records in memory, at most
_BYTES = 40  # of a record in a text, about
_ROWS = 1 << 20  # rows that are read at a time
_FAST = {"use_dictionary": ["user"], "compression": "lz4"}  # for temporary files: half the time
TURNED = "longitudes run from 0 to 360: we subtract 360 from those above 180"


def exceeds(path: Path, records: int) -> bool:
    """Whether a Parquet file or a text may hold more records; files of other formats are always read at once."""
    if is_parquet(path):
        with complete_parquet(path):
            return pq.read_metadata(path).num_rows > records
    return path.suffix.lower() not in READERS and path.stat().st_size > _BYTES * records


def is_needed(path: Path, reading: Reading) -> bool:
    """Whether a Parquet file or a text may hold more records than a block; a text with decimal commas is read at once."""
    if not exceeds(path, BLOCK) or is_parquet(path):
        return exceeds(path, BLOCK)
    positions = first_rows(path, reading.columns, head(path).delimiter)[["lat", "lng"]]
    return not positions.apply(lambda text: text.str.contains(",", regex=False)).any(axis=None)


def protect(
    path: Path, reading: Reading, publication: Publication, folder: Path, watch: Callable[[str], None] = lambda _: None
) -> tuple[Protected, Dataset]:
    """The table under the mechanism, in blocks that are read while they are written, and the given data set without its records.

    ``folder`` holds the blocks: keep it until the table is written. ValueError for a table without a record that can be used.
    """
    columns = {role: reading.columns[role] for role in COLUMNS}
    counts, lines, kinds, east, west, of_text = Counter(), [], set(), 0, 0, not is_parquet(path)
    for table, left_out in _tables(path, columns):
        counts.update(categorical_names(table["user"]).value_counts().to_dict())
        lines += left_out
        kinds.add(pa.array(table["t"]).type)
        lng = pd.to_numeric(table["lng"], errors="coerce")
        east, west = east + int(lng.between(180, 360, "right").sum()), west + int((lng < 0).sum())
    # of all records, as read_part() does: a block may hold few of them
    notes = reading.notes if 2 * east <= counts.total() or west else (*reading.notes, TURNED)
    kind = pa.string() if len(kinds) > 1 else None  # a text whose times look like numbers in some blocks only
    rows = _numbered(path, columns, kind, TURNED in notes)
    blocks = _split(rows, _block_of(pd.Series(counts, dtype=np.int64).sort_index()), folder / "given")
    problems, protected = [_of_lines(lines, path.name)], []
    for k, file in enumerate(blocks, 1):
        watch(f"protecting block {k} of {len(blocks)}")
        try:
            part = read_part(file, None, reading.time or None, reading.zone or None)
            traces, left_out = part.traces, part.left_out
        except NoRecordCanBeUsed as error:  # the other blocks may have some
            traces, left_out = (), error.left_out
        problems.append(_placed(left_out, file, path.name, of_text))
        file.unlink()
        if len(traces):
            published = pa.Table.from_pandas(publication.draw(traces[list(COLUMNS)]), preserve_index=False)
            protected.append(folder / f"{k}.parquet")
            pq.write_table(published.set_column(0, "user", published["user"].cast(NAMES)), protected[-1], **_FAST)
    if not protected:
        left_out = _together(problems)
        raise none_left(path.name, left_out) if len(left_out) else ValueError(f"{path.name} holds no records")
    names = publication.names()
    blocks = _split(
        map(pq.read_table, protected), _block_of(publication.published[names.sort_values().index]), folder / "published"
    )
    further = [name for name in column_names(path) if name not in columns.values()]
    given = Dataset(pd.DataFrame(), _together(problems), path.stem, sha256_of(path), False, path.name, reading="; ".join(notes))
    tables = (
        publication.table(_records(file), names) for file in blocks or protected[:1]
    )  # an empty table, if nothing is published
    return Protected(tables, publication.manifest(further), pairs_of(names)), given


def _tables(path: Path, columns: dict[str, str]) -> Iterator[tuple[pd.DataFrame, list[LeftOut]]]:
    """The rows of a file, part by part, and the lines that are none."""
    if not is_parquet(path):
        yield from text_blocks(path, columns)
        return
    with complete_parquet(path):
        for batch in pq.ParquetFile(path).iter_batches(_ROWS, columns=[*columns.values()]):
            yield parquet_rows(path, pa.Table.from_batches([batch]), columns), []


def _numbered(path: Path, columns: dict[str, str], kind: pa.DataType | None, turned: bool) -> Iterator[pa.Table]:
    """The rows of a file with their numbers, times of one ``kind`` (None: as they are) and longitudes up to 180 (``turned``)."""
    at = 0
    for table, _ in _tables(path, columns):
        user, t = categorical_names(table["user"]).cat, pa.array(table["t"])
        code = pa.array(user.codes.to_numpy(np.int32), mask=(user.codes < 0).to_numpy())
        rows = {
            "user": pa.DictionaryArray.from_arrays(code, pa.array(user.categories, pa.string())),
            "t": t.cast(kind) if kind else t,
            "lat": pa.array(table["lat"]),
            "lng": pa.array(_turned(table["lng"]) if turned else table["lng"]),
            "row": pa.array(np.arange(at, at + len(table))),
        }
        at += len(table)
        yield pa.table(rows)


def _turned(lng: pd.Series) -> pd.Series:
    number = pd.to_numeric(lng, errors="coerce")
    return number.mask(number.between(180, 360, "right"), number - 360)


def _block_of(counts: pd.Series) -> dict[str, int]:
    """The block of each user, in the order of ``counts``, her records."""
    return ((counts.cumsum() - 1) // BLOCK).to_dict()


def _split(tables: Iterable[pa.Table], block_of: dict[str, int], folder: Path) -> list[Path]:
    """Write the rows of the tables, in their order, to a file for each block of users; rows without a user to the first one."""
    folder.mkdir()
    with ExitStack() as files:
        writers = {}
        for rows in tables:
            user = rows["user"].combine_chunks()
            user = user.chunk(0) if isinstance(user, pa.ChunkedArray) else user
            of_code = np.array([*(block_of.get(name, 0) for name in user.dictionary.to_pylist()), 0])
            block = of_code[user.indices.fill_null(-1).to_numpy()]
            for k in np.unique(block):
                if k not in writers:
                    writers[k] = files.enter_context(pq.ParquetWriter(folder / f"{k}.parquet", rows.schema, **_FAST))
                writers[k].write_table(rows.filter(pa.array(block == k)))
    return [folder / f"{k}.parquet" for k in sorted(writers)]


def _records(file: Path) -> Traces:
    """The published records of a block, under the original names."""
    records = pd.read_parquet(file)
    return records.assign(user=pd.Categorical(records["user"].astype("str")))


def _of_lines(lines: list[LeftOut], name: str) -> pd.DataFrame:
    """The problems of lines that are no records; their numbers in the file are not known."""
    remedy = lambda line: "; ".join(filter(None, (line.fault, REMEDIES[line.rule])))  # noqa: E731
    problems = [TableProblem(line.rule, line.lines, 0, -1, name, repr(line.text[:80]), remedy(line)) for line in lines]
    return pd.DataFrame(problems, columns=TableProblem._fields)


def _placed(left_out: pd.DataFrame, file: Path, name: str, of_text: bool) -> pd.DataFrame:
    """The problems of a block with the places in the whole file: its rows from 0, or its records from 1."""
    if not len(left_out):
        return left_out
    number = pq.read_table(file, columns=["row"])["row"].to_numpy()
    row = number[left_out["place"].str.extract(r"row (\d+)$")[0].astype(int)]
    return left_out.assign(row=row, place=[f"{name} record {k + 1}" if of_text else f"{name} row {k}" for k in row])


def _together(problems: list[pd.DataFrame]) -> pd.DataFrame:
    """The problems of all blocks, one for each rule, with its first example."""
    every = pd.concat(problems, ignore_index=True)
    groups = every.groupby("rule", sort=False)
    first = every.loc[groups["row"].idxmin()].reset_index(drop=True)
    return first.assign(records=groups["records"].sum().to_numpy(), users=groups["users"].sum().to_numpy())
