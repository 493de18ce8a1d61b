"""A table of traces, protected by a mechanism and written for publication.

The published table has the user, time and position of each record, in columns named and written as in the given table. Users get new
names, and the records are sorted by these names and by time, so that their order does not help an adversary. A mechanism protects no
other column, so the others are left out. A manifest says what was done.
"""

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
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
_FORMS = (".parquet", ".csv")
_DECIMALS = 7  # of published degrees, at most: 1 cm
_FAR = 10  # degrees of latitude, beyond which a published record is far from all given ones


class Protected(NamedTuple):
    table: pd.DataFrame  # as it is written
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
    # signals reach the main thread only: an interrupt must not end in the middle of a draw
    with ThreadPoolExecutor(1) as thread:
        published = thread.submit(mechanism.protect, traces, rng).result()[list(COLUMNS)]
        users = by_user(published)[0]
        names = users if keep_names else thread.submit(_new_names, len(users), rng).result()
    if failures := getattr(rng, "failures", None):
        raise OSError("the operating system's random numbers failed: nothing is published, repeat the command") from failures[0]
    table = published.assign(user=pd.Categorical(published["user"].map(dict(zip(users, names, strict=True))), sorted(names)))
    table = table.sort_values(["user", "t"], kind="stable", ignore_index=True)
    columns = reading.columns if reading else {name: name for name in COLUMNS}
    unchanged = int(_places(table).isin(_places(traces)).sum())  # numpy's isin takes eight times as long
    # a mechanism that moves some records only: more decimals would mark those that it moved
    decimals = _decimals_of(traces) if 0 < unchanged < len(table) else _DECIMALS
    warnings = _warnings(traces, table, len(users), unchanged)
    table = table.assign(lat=table["lat"].round(decimals), lng=table["lng"].round(decimals))
    whole = bool((milliseconds(traces) % 1000 == 0).all())
    table["t"] = _times(table, reading.time if reading else "", time_type, whole)
    guarantee, epsilon = _guarantee(mechanism, traces, rng)
    manifest = {
        "mechanism": {"name": mechanism.name, **asdict(mechanism)},
        "guarantee": guarantee,
        **({"epsilon": epsilon} if epsilon else {}),
        "users": {"given": traces["user"].nunique(), "published": len(users), "names": "kept" if keep_names else "new"},
        "records": {"given": len(traces), "published": len(table)},
        "columns": {"published": list(columns.values()), "left out": [name for name in traces if name not in COLUMNS]},
        "times": "UTC",
        "decimals": {"of all positions": decimals, "unchanged positions": unchanged},
        "warnings": warnings,
        "mobpriv": __version__,
    }
    pairs = pd.DataFrame({"protected": names, "original": users}).sort_values("protected", ignore_index=True)
    return Protected(table.rename(columns=columns)[list(columns.values())], manifest, pairs)


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


def _warnings(traces: Traces, published: Traces, users: int, unchanged: int) -> list[str]:
    """What a publisher should know before anything else, a sentence each."""
    if not len(published):
        return ["the mechanism publishes no record: choose other parameters"]
    given, lat = traces["user"].nunique(), published["lat"]
    far = int(((lat < traces["lat"].min() - _FAR) | (lat > traces["lat"].max() + _FAR)).sum())
    found = {
        f"{given - users} of {counted(given, 'user')} are left out": 2 * users < given,
        f"{shown(unchanged)} of {counted(len(published), 'record')} are published where they were": 2 * unchanged
        > len(published),
        f"{shown(far)} of {counted(len(published), 'record')} are published more than {_FAR}° of latitude away from all given ones": (
            2 * far > len(published)
        ),
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


def _guarantee(mechanism, traces: Traces, rng: np.random.Generator) -> tuple[str, dict[str, float | int | str]]:
    """What the mechanism's noise guarantees, added up over a user's records: in words, and in numbers if there is one."""
    if not isinstance(mechanism, GeoI):
        return "none by noise: judge the table by attacks", {}
    if not isinstance(rng, SystemGenerator):
        return "none: anybody with the seed can remove the noise", {}
    if mechanism.plane != "ground":
        return "none stated: the noise is drawn in metres of the map, which are shorter on the ground", {}
    counts = np.diff(by_user(traces)[1])
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
    manifest, table = output.with_name(f"{output.name}.manifest.json"), protected.table

    def describe(part: Path) -> None:
        record = protected.manifest | {"output": {"file": output.name, "sha256": sha256_of(parts[output])}}
        part.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    writers = {
        output: lambda part: (
            table.to_csv(part, index=False) if output.suffix.lower() == ".csv" else table.to_parquet(part, index=False)
        ),
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
