"""The files of the synthetic region: compact Parquet, byte for byte independent of the blocks in which the rows come."""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mobpriv.datasets.region.ground import Ground

_FILE_ENDINGS = (".parquet", "_cells.parquet", "_people.parquet", "_municipalities.geojson")
PERSON_ROLES = ("resident", "dynamic resident", "commuter", "visitor", "passing by")
_ROWS_PER_GROUP = 1 << 21  # of a group of rows
_TEXT = pa.dictionary(pa.int32(), pa.string())
_CALLS = pa.schema({"user": _TEXT, "t": pa.int64(), "cell": _TEXT, "end_cell": _TEXT, "duration": pa.int32()})
_PEOPLE = pa.schema({"person": _TEXT, "municipality": _TEXT, "role": _TEXT})
_SYNTHETIC = {"synthetic": "true"}


class Block(NamedTuple):
    """Calls by (person, time), and the roles of their people by (person, municipality).

    People, cells and municipalities are numbers.
    """

    person: np.ndarray
    t: np.ndarray  # s since 1970-01-01 UTC
    cell: np.ndarray
    end_cell: np.ndarray
    duration: np.ndarray  # s
    role_person: np.ndarray  # person
    municipality: np.ndarray
    role: np.ndarray  # place in PERSON_ROLES


def write(folder, ground: Ground, blocks: Iterable[Block], level: int) -> list[Path]:
    """Write the four files of a region to ``folder``.

    They are written elsewhere and moved when complete, so that a full disk leaves no files, or the old ones.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".region-", dir=folder) as aside:
        written = _write(Path(aside), ground, blocks, level)
        return [file.replace(folder / file.name) for file in written]


def _write(folder: Path, ground: Ground, blocks: Iterable[Block], level: int) -> list[Path]:
    calls, cells, people, towns = (folder / f"region{part}" for part in _FILE_ENDINGS)
    table = pa.Table.from_pandas(ground.cells, preserve_index=False).replace_schema_metadata(_SYNTHETIC)
    pq.write_table(table, cells, compression="zstd", compression_level=level)
    with _file(calls, _CALLS, level) as one, _file(people, _PEOPLE, level) as other:
        of_calls, of_people = _Rows(one, _calls_table, ground), _Rows(other, people_table, ground)
        for block in blocks:
            of_calls.add(block[:5])
            of_people.add(block[5:])
        of_calls.end()
        of_people.end()
    towns.write_text(ground.municipalities.to_json(drop_id=True) + "\n", encoding="utf-8")
    return [calls, cells, people, towns]


class _Rows:
    """Columns to be written to a file, in groups of :data:`_ROWS_PER_GROUP` rows in whatever portions they come."""

    def __init__(self, file: pq.ParquetWriter, table: Callable[..., pa.Table], ground: Ground):
        self.file, self.table, self.ground, self.waiting = file, table, ground, []

    def add(self, columns: tuple[np.ndarray, ...]) -> None:
        self.waiting.append(columns)
        if sum(len(columns[0]) for columns in self.waiting) >= _ROWS_PER_GROUP:
            joined = [np.concatenate(column) for column in zip(*self.waiting, strict=True)]
            full = len(joined[0]) // _ROWS_PER_GROUP * _ROWS_PER_GROUP
            for first in range(0, full, _ROWS_PER_GROUP):
                self._write([column[first : first + _ROWS_PER_GROUP] for column in joined])
            self.waiting = [tuple(column[full:] for column in joined)]

    def end(self) -> None:
        self._write([np.concatenate(column) for column in zip(*self.waiting, strict=True)])

    def _write(self, columns: list[np.ndarray]) -> None:
        if len(columns[0]):
            self.file.write_table(self.table(*columns, self.ground), _ROWS_PER_GROUP)


def _file(path: Path, schema: pa.Schema, level: int) -> pq.ParquetWriter:
    numbers = [field.name for field in schema if pa.types.is_integer(field.type)]
    return pq.ParquetWriter(
        path,
        schema.with_metadata(_SYNTHETIC),
        compression="zstd",
        compression_level=level,
        use_dictionary=[name for name in schema.names if name not in numbers],
        column_encoding=dict.fromkeys(numbers, "BYTE_STREAM_SPLIT"),
    )


def _calls_table(person, t, cell, end_cell, duration, ground: Ground) -> pa.Table:
    cells = pa.array(ground.cells["cell"], pa.string())
    end = pa.array(end_cell, pa.int32(), mask=end_cell == cell)  # null if it is the same
    coded = pa.DictionaryArray.from_arrays
    columns = [_people(person), pa.array(t), coded(pa.array(cell, pa.int32()), cells), coded(end, cells)]
    return pa.Table.from_arrays([*columns, pa.array(duration, pa.int32())], schema=_CALLS)


def people_table(person, municipality, role, ground: Ground) -> pa.Table:
    coded, towns = pa.DictionaryArray.from_arrays, pa.array(ground.municipalities["municipality"], pa.string())
    role = coded(pa.array(role, pa.int32()), pa.array(PERSON_ROLES))
    columns = [_people(person), coded(pa.array(municipality, pa.int32()), towns), role]
    return pa.Table.from_arrays(columns, schema=_PEOPLE)


def _people(person: np.ndarray) -> pa.DictionaryArray:
    """A column of people, by number, as names; its dictionary holds those that occur."""
    new = np.r_[True, person[1:] != person[:-1]]
    return pa.DictionaryArray.from_arrays(pa.array(np.cumsum(new) - 1, pa.int32()), person_names(person[new]))


def person_names(person: np.ndarray) -> pa.Array:
    """p and seven digits: names that sort as the numbers do."""
    digits = person[:, None] // 10 ** np.arange(6, -1, -1) % 10
    text = np.column_stack([np.full(len(digits), ord("p")), digits + ord("0")]).astype(np.uint8)
    ends = np.arange(0, 8 * len(text) + 1, 8, dtype=np.int32)
    return pa.StringArray.from_buffers(len(text), pa.py_buffer(ends), pa.py_buffer(text.tobytes()))
