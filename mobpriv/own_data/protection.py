"""A table of traces, protected by a mechanism and written for publication.

The published table has the user, time and position of each record, in columns named and written as in the given table. Users get new
names, and the records are sorted by these names and by time, so that their order does not help an adversary. A mechanism protects no
other column, so the others are left out. A manifest says what was done.
"""

import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import MISSING, asdict, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mobpriv import __version__, mechanisms
from mobpriv.base.numbers import counted, shown
from mobpriv.base.system_noise import SystemGenerator
from mobpriv.datasets import Reading, is_parquet, sha256_of
from mobpriv.mechanisms import GeoI
from mobpriv.own_data.loading import keywords
from mobpriv.traces.table import COLUMNS, Traces, by_user, milliseconds

_ON_TRACES = {name: getattr(mechanisms, name) for name in mechanisms.__all__}
NAMES = pa.dictionary(pa.int32(), pa.string())
_FORMS = (".parquet", ".csv")
_DECIMALS = 7  # of published degrees, at most: 1 cm
_FAR = 10  # degrees of latitude, beyond which a published record is far from all given ones
_BINS = 100  # bins of latitudes, a degree


class Protected(NamedTuple):
    table: pd.DataFrame | Iterator[pd.DataFrame]  # as it is written, whole or in blocks
    manifest: dict[str, Any]
    pairs: pd.DataFrame  # protected, original: the users' names, not for publication


def mechanism_of(text: str, known: Mapping[str, type] | None = None):
    """The mechanism that ``text`` describes, with the paper's values for the parameters that it does not name.

    ``known``: the mechanisms by their names, by default those on traces. ValueError for an unknown mechanism or parameter, for a
    missing parameter, and for a mechanism that needs more than numbers and words.

    >>> mechanism_of("promesse(alpha=100)")
    Promesse(alpha=100, plane='ground', max_gap=None, max_jump=None)
    >>> mechanism_of("Geo-I")
    GeoI(epsilon=0.01, plane='ground')
    """
    name, bracket, rest = text.partition("(")
    classes = {_plain(name): kind for name, kind in (known or _ON_TRACES).items()}
    usable = {plain: kind.__name__ for plain, kind in classes.items() if known or not _needed(kind)}
    kind = classes.get(_plain(name))
    if kind is None:
        usual = "primule" if known else "promesse"
        example = usable[next(iter(get_close_matches(_plain(name), usable, 1)), usual)]
        raise ValueError(
            f"a mechanism{' for call records' if known else ''} is one of {', '.join(usable.values())} (got {text!r}): write for example --with {example}"
        )
    if _needed(kind) and not known:
        raise ValueError(
            f"a mechanism needs only numbers and words here, and {kind.__name__} needs {', '.join(_needed(kind))}: "
            f"use it in Python, or take one of {', '.join(usable.values())}"
        )
    takes = [field.name for field in fields(kind)]
    rule = f"{kind.__name__} takes {', '.join(takes) or 'no parameters'}, written as {kind.__name__}(name=value)"
    given = keywords(bracket + rest, rule, text)
    if unknown := [parameter for parameter in given if parameter not in takes]:
        raise ValueError(f"{rule} (got {unknown[0]} in {text!r})")
    if missing := [parameter for parameter in _needed(kind) if parameter not in given]:
        raise ValueError(f"{rule}, and {' and '.join(missing)} must be given (got {text!r})")
    if given.get("times") == "wrapper":
        raise ValueError(
            "times='wrapper' repeats a mistake of the thesis author's program, which moves all records to January 1970: leave it out"
        )
    return kind(**given)


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "").replace("_", "")


def _needed(kind: type) -> list[str]:
    """The parameters without a default."""
    return [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]


class Publication:
    """A table under a mechanism: drawn in blocks of users, then named, and written in blocks."""

    def __init__(self, mechanism, rng, reading: Reading | None = None, keep_names=False, time_type: pa.DataType | None = None):
        self.mechanism, self._rng, self._keep_names, self._time_type = mechanism, rng, keep_names, time_type
        self._columns = reading.columns if reading else {name: name for name in COLUMNS}
        self._time = reading.time if reading else ""
        self._given, self._published = [], []  # records of each user by her name, a series a block
        self._latitudes = np.zeros(180 * _BINS + 1, np.int64)  # published records
        self._south, self._north = 90.0, -90.0  # of the given records
        self._unchanged, self._decimals, self._whole = 0, 0, True

    def draw(self, traces: Traces) -> Traces:
        """The records of some users under the mechanism; all records of a user are in one block."""
        published = self._uninterrupted(self.mechanism.protect, traces, self._rng)[list(COLUMNS)]
        self._given.append(_records(traces))
        self._published.append(_records(published))
        self._unchanged += int(_places(published).isin(_places(traces)).sum())  # numpy's isin takes eight times as long
        self._decimals = max(self._decimals, _decimals_of(traces))
        self._whole &= bool((milliseconds(traces) % 1000 == 0).all())
        self._south, self._north = min(self._south, traces["lat"].min()), max(self._north, traces["lat"].max())
        self._latitudes += np.bincount(_bin(published["lat"].to_numpy()), minlength=len(self._latitudes))
        return published

    def names(self) -> pd.Series:
        """The published name of each published user, by her name, after the last block."""
        users = self.published.index
        return pd.Series(users if self._keep_names else self._uninterrupted(_new_names, len(users), self._rng), users)

    @property
    def published(self) -> pd.Series:
        """The number of published records of each published user, by her name."""
        return pd.concat(self._published)

    def _uninterrupted(self, draw, *arguments):
        # signals reach the main thread only: an interrupt must not end in the middle of a draw
        with ThreadPoolExecutor(1) as thread:
            drawn = thread.submit(draw, *arguments).result()
        if failures := getattr(self._rng, "failures", None):
            raise OSError(
                "the operating system's random numbers failed: nothing is published, repeat the command"
            ) from failures[0]
        return drawn

    @property
    def _published_decimals(self) -> int:
        # a mechanism that moves some records only: more decimals would mark those that it moved
        return self._decimals if 0 < self._unchanged < self.published.sum() else _DECIMALS

    def table(self, published: Traces, names: pd.Series) -> pd.DataFrame:
        """The records of some users as they are written: sorted by their ``names``, in the columns and form of the given table."""
        of_users = names[by_user(published)[0]]
        table = published.assign(user=pd.Categorical(published["user"].map(of_users), sorted(of_users)))
        table = table.sort_values(["user", "t"], kind="stable", ignore_index=True)
        decimals = self._published_decimals
        table = table.assign(lat=table["lat"].round(decimals), lng=table["lng"].round(decimals))
        table["t"] = _times(table, self._time, self._time_type, self._whole)
        return table.rename(columns=self._columns)[list(self._columns.values())]

    def manifest(self, left_out: list[str]) -> dict[str, Any]:
        """What was done, after the last block; ``left_out``: the given columns that are not published."""
        given, published = pd.concat(self._given), self.published
        far = int(
            self._latitudes[: max(_bin(self._south - _FAR), 0)].sum() + self._latitudes[_bin(self._north + _FAR) + 1 :].sum()
        )
        guarantee, epsilon = _guarantee(self.mechanism, given.to_numpy(), self._rng)
        return {
            "mechanism": {"name": self.mechanism.name, **asdict(self.mechanism)},
            "guarantee": guarantee,
            **({"epsilon": epsilon} if epsilon else {}),
            "users": {"given": len(given), "published": len(published), "names": "kept" if self._keep_names else "new"},
            "records": {"given": int(given.sum()), "published": int(published.sum())},
            "columns": {"published": list(self._columns.values()), "left out": left_out},
            "times": "UTC",
            "decimals": {"of all positions": self._published_decimals, "unchanged positions": self._unchanged},
            "warnings": _warnings(len(given), len(published), int(published.sum()), self._unchanged, far),
            "mobpriv": __version__,
        }


def protect(
    traces: Traces,
    mechanism,
    rng: np.random.Generator,
    reading: Reading | None = None,
    keep_names: bool = False,
    time_type: pa.DataType | None = None,
) -> Protected:
    """The traces under the mechanism, as a table for publication, and what a reader of the table must know.

    ``reading``: names of the columns and form of the times, by default those of :data:`mobpriv.traces.table.Traces`. With
    ``keep_names`` users keep their names. ``time_type``: the type of the given column of times, if the file has types.
    """
    publication = Publication(mechanism, rng, reading, keep_names, time_type)
    published = publication.draw(traces)
    names = publication.names()
    manifest = publication.manifest([name for name in traces if name not in COLUMNS])
    return Protected(publication.table(published, names), manifest, pairs_of(names))


def pairs_of(names: pd.Series) -> pd.DataFrame:
    """The table of the published and the original names."""
    return pd.DataFrame({"protected": names.to_numpy(), "original": names.index}).sort_values("protected", ignore_index=True)


def _records(traces: Traces) -> pd.Series:
    """The number of records of each user, by her name."""
    users, offsets = by_user(traces)
    return pd.Series(np.diff(offsets), users)


def _bin(lat):
    """The number of the bin of a latitude, beginning at the south pole."""
    return np.floor((np.clip(lat, -90, 90) + 90) * _BINS).astype(np.int64)


def _new_names(n: int, rng: np.random.Generator) -> list[str]:
    """Names in random order. They begin with a mark of this run, so that pairs of another run match no name."""
    mark, digits = rng.bytes(4).hex(), len(str(n))
    return [f"{mark}-{number:0{digits}d}" for number in 1 + rng.permutation(n)]


def _places(traces: Traces) -> pd.Series:
    """A whole number for each position, to 7 decimals."""
    lat, lng = (np.rint(traces[name].to_numpy() * 10**_DECIMALS).astype(np.int64) for name in ("lat", "lng"))
    return pd.Series((lat << 32) + lng)


def _decimals_of(traces: Traces) -> int:
    """The number of decimals, at most 7, that suffices for most latitudes and for most longitudes."""
    degrees = traces[["lat", "lng"]].to_numpy()
    suffices = (n for n in range(_DECIMALS) if np.median(np.abs(degrees.round(n) - degrees), axis=0).max() < 1e-9)
    return next(suffices, _DECIMALS)


def _warnings(given: int, users: int, records: int, unchanged: int, far: int) -> list[str]:
    """What a publisher should know before anything else, a sentence each; ``users`` and ``records`` are the published ones."""
    if not records:
        return ["the mechanism publishes no record: choose other parameters"]
    of_records = f"of {counted(records, 'record')} are published"
    found = {
        f"{given - users} of {counted(given, 'user')} are left out": 2 * users < given,
        f"{shown(unchanged)} {of_records} where they were": 2 * unchanged > records,
        f"{shown(far)} {of_records} more than {_FAR}° of latitude away from all given ones": 2 * far > records,
    }
    return [sentence for sentence, holds in found.items() if holds]


def time_type_of(file: Path, reading: Reading) -> pa.DataType | None:
    """The type of the column of times in a Parquet file."""
    return pq.read_schema(file).field(reading.columns["t"]).type if is_parquet(file) else None


def _times(traces: Traces, form: str, kind: pa.DataType | None, whole: bool) -> pd.Series:
    """The times as the given table writes them: numbers since 1970 in a unit, "iso", or "" for a column of times.

    ``kind``: the column's type, if known; ``whole``: whether all given times are whole seconds.
    """
    if form == "iso":
        return traces["t"].dt.strftime("%Y-%m-%dT%H:%M:%S.%f").str[:-3] + "Z"
    if not form:
        return traces["t"].dt.as_unit(kind.unit) if kind and pa.types.is_timestamp(kind) else traces["t"]
    since_1970 = pd.Series(milliseconds(traces), traces.index)
    if form in ("us", "ns"):
        return since_1970 * {"us": 1000, "ns": 10**6}[form]
    unit = 1000 if form == "s" else 1
    if kind and pa.types.is_integer(kind):
        return (since_1970 // unit).astype(kind.to_pandas_dtype())
    if kind and pa.types.is_floating(kind):
        return (since_1970 / unit).astype("float64")
    return since_1970 // unit if whole or form == "ms" else since_1970 / unit


def _guarantee(mechanism, counts: np.ndarray, rng: np.random.Generator) -> tuple[str, dict[str, float | int | str]]:
    """What the mechanism's noise guarantees in words, and in numbers if there is one; ``counts``: records of each user, which it adds up over."""
    if not isinstance(mechanism, GeoI):
        return "none by noise: judge the table by attacks", {}
    if not isinstance(rng, SystemGenerator):
        return "none: anybody with the seed can remove the noise", {}
    if mechanism.plane != "ground":
        return "none stated: the noise is drawn in metres of the map, which are shorter on the ground", {}
    per_record, median, most = mechanism.epsilon, float(np.median(counts)), int(counts.max())
    epsilon = {
        "unit": "1/m",
        "each record": per_record,
        "median user": per_record * median,
        "user with the most records": per_record * most,
    }
    return (
        f"geo-indistinguishability with ε = {per_record:g} per metre for each record; it adds up over a user's records: "
        f"{epsilon['median user']:g} per metre for the median user ({counted(median, 'record')}), "
        f"{per_record * most:g} for the one with the most ({most})"
    ), epsilon


def check_output(output: Path, given: str, pairs: Path | None = None) -> None:
    """ValueError for files that :func:`write` cannot write, or that would replace the ``given`` table or earlier pairs."""
    if output.suffix.lower() not in _FORMS or output.resolve() == Path(given).resolve():
        raise ValueError(f"the output is another file than the table and ends in {' or '.join(_FORMS)} (got -o {output})")
    if pairs and (pairs.suffix.lower() != ".csv" or pairs.resolve() in (output.resolve(), Path(given).resolve())):
        raise ValueError(f"the pairs go to another file that ends in .csv (got --pairs {pairs})")
    if pairs and pairs.is_file():
        raise ValueError(f"{pairs} may hold the only pairs of an earlier table: move it, or take another name for --pairs")
    for file in filter(None, (output, output.with_name(f"{output.name}.manifest.json"), pairs)):
        if file.is_dir():
            raise ValueError(f"each output is a file, and {file} is a folder: take another name")
    for folder in {file.resolve().parent for file in (output, pairs) if file}:
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder} for the output: make it, or take another")


def write(protected: Protected, output: Path, pairs: Path | None = None) -> Path:
    """Write the table, its manifest and on request the pairs, all or none; returns the file of the manifest."""
    manifest = output.with_name(f"{output.name}.manifest.json")

    def describe(part: Path) -> None:
        record = protected.manifest | {"output": {"file": output.name, "sha256": sha256_of(parts[output])}}
        part.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    writers = {
        output: lambda part: (_write_text if output.suffix.lower() == ".csv" else _write_parquet)(protected.table, part),
        manifest: describe,
    }
    if pairs:
        writers[pairs] = lambda part: protected.pairs.to_csv(part, index=False)
    parts = {file: file.with_name(f".{file.name}.{os.getpid()}.part") for file in writers}
    try:
        if pairs:
            parts[pairs].touch(mode=0o600)  # for its owner alone, from the start
        for file, part in parts.items():
            writers[file](part)
        for file, part in parts.items():
            part.replace(file)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
    return manifest


def _write_text(table: pd.DataFrame | Iterator[pd.DataFrame], part: Path) -> None:
    for k, block in enumerate([table] if isinstance(table, pd.DataFrame) else table):
        block.to_csv(part, index=False, mode="a", header=not k)


def _write_parquet(table: pd.DataFrame | Iterator[pd.DataFrame], part: Path) -> None:
    if isinstance(table, pd.DataFrame):
        table.to_parquet(part, index=False)
        return
    with ExitStack() as files:
        writer = None
        for block in table:
            rows = pa.Table.from_pandas(block, preserve_index=False).replace_schema_metadata()
            wide = [pa.field(f.name, NAMES) if pa.types.is_dictionary(f.type) else f for f in rows.schema]
            rows = rows.cast(pa.schema(wide))  # the codes of all blocks are of one type
            writer = writer or files.enter_context(pq.ParquetWriter(part, rows.schema))
            writer.write_table(rows)
