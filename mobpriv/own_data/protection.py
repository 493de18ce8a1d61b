"""A table of traces, protected by a mechanism and written for publication.

The published table has the user, time and position of each record, in columns named and written as in the given table. Users get new
names, and the records are sorted by these names and by time, so that their order does not help an adversary. A mechanism protects no
other column, so the others are left out. A manifest says what was done.
"""

import ast
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, asdict, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mobpriv import __version__, mechanisms
from mobpriv.base.system_noise import SystemGenerator
from mobpriv.datasets import Reading
from mobpriv.mechanisms import GeoI
from mobpriv.traces.table import COLUMNS, Traces, by_user, milliseconds

_FORMS = (".parquet", ".csv")


class Protected(NamedTuple):
    table: pd.DataFrame  # as it is written
    manifest: dict[str, Any]
    pairs: pd.DataFrame  # protected, original: the users' names, not for publication


def mechanism_of(text: str):
    """The mechanism that ``text`` describes, with the paper's values for the parameters that it does not name.

    ValueError for an unknown mechanism or parameter, and for a mechanism that needs more than numbers and words.

    >>> mechanism_of("promesse(alpha=100)")
    Promesse(alpha=100, plane='ground', max_gap=None, max_jump=None)
    >>> mechanism_of("Geo-I")
    GeoI(epsilon=0.01, plane='ground')
    """
    name, bracket, rest = text.partition("(")
    classes = {_plain(known): getattr(mechanisms, known) for known in mechanisms.__all__}
    usable = {plain: kind.__name__ for plain, kind in classes.items() if not _needed(kind)}
    kind = classes.get(_plain(name))
    if kind is None:
        example = usable.get(next(iter(get_close_matches(_plain(name), usable, 1)), "promesse"))
        raise ValueError(
            f"a mechanism is one of {', '.join(usable.values())} (got {text!r}): write for example --with {example}"
        )
    if _needed(kind):
        raise ValueError(
            f"a mechanism needs only numbers and words here, and {kind.__name__} needs {', '.join(_needed(kind))}: "
            f"use it in Python, or take one of {', '.join(usable.values())}"
        )
    known = [field.name for field in fields(kind)]
    rule = f"{kind.__name__} takes {', '.join(known) or 'no parameters'}, written as {kind.__name__}(name=value)"
    try:
        call = ast.parse(f"f{bracket}{rest}" if bracket else "f()", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or "#" in text:
            raise ValueError
        given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
        if len(given) < len(call.keywords):
            raise ValueError
        unknown = [*map(ast.unparse, call.args), *(parameter for parameter in given if parameter not in known)]
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise ValueError(f"{rule} (got {text!r})") from None
    if unknown:
        raise ValueError(f"{rule} (got {unknown[0]} in {text!r})")
    return kind(**given)


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "").replace("_", "")


def _needed(kind: type) -> list[str]:
    """The parameters without a default."""
    return [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]


def protect(
    traces: Traces, mechanism, rng: np.random.Generator, reading: Reading | None = None, keep_names: bool = False
) -> Protected:
    """The traces under the mechanism, as a table for publication, and what a reader of the table must know.

    ``reading``: names of the columns and form of the times, by default those of :data:`mobpriv.traces.table.Traces`. With
    ``keep_names`` users keep their names.
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
    table["t"] = _times(table, reading.time if reading else "")
    manifest = {
        "mechanism": {"name": mechanism.name, **asdict(mechanism)},
        "guarantee": _guarantee(mechanism, traces, rng),
        "users": {"given": traces["user"].nunique(), "published": len(users), "names": "kept" if keep_names else "new"},
        "records": {"given": len(traces), "published": len(table)},
        "columns": {"published": list(columns.values()), "left out": [name for name in traces if name not in COLUMNS]},
        "times": "UTC",
        "mobpriv": __version__,
    }
    pairs = pd.DataFrame({"protected": names, "original": users}).sort_values("protected", ignore_index=True)
    return Protected(table.rename(columns=columns)[list(columns.values())], manifest, pairs)


def _new_names(n: int, rng: np.random.Generator) -> list[str]:
    """Names in random order. They begin with a mark of this run, so that pairs of another run match no name."""
    mark, digits = rng.bytes(4).hex(), len(str(n))
    return [f"{mark}-{number:0{digits}d}" for number in 1 + rng.permutation(n)]


def _times(traces: Traces, form: str) -> pd.Series:
    """The times as the given table writes them: numbers since 1970 in a unit, "iso", or "" for a column of times."""
    if form == "iso":
        return traces["t"].dt.strftime("%Y-%m-%dT%H:%M:%S.%f").str[:-3] + "Z"
    since_1970 = pd.Series(milliseconds(traces), traces.index)
    in_unit = {"ns": since_1970 * 10**6, "us": since_1970 * 1000, "ms": since_1970, "s": since_1970 / 1000}
    return in_unit.get(form, traces["t"])


def _guarantee(mechanism, traces: Traces, rng: np.random.Generator) -> str:
    """What the mechanism's noise guarantees, added up over a user's records."""
    if not isinstance(mechanism, GeoI):
        return "none by noise: judge the table by attacks"
    if not isinstance(rng, SystemGenerator):
        return "none: anybody with the seed can remove the noise"
    if mechanism.plane != "ground":
        return "none stated: the noise is drawn in metres of the map, which are shorter on the ground"
    counts = np.diff(by_user(traces)[1])
    per_record, median, most = mechanism.epsilon, float(np.median(counts)), int(counts.max())
    return (
        f"geo-indistinguishability with ε = {per_record:g} per metre for each record; it adds up over a user's records: "
        f"{per_record * median:g} per metre for the median user ({median:g} records), {per_record * most:g} for the one with the most ({most})"
    )


def check_output(output: Path, given: str, pairs: Path | None = None) -> None:
    """ValueError for files that :func:`write` cannot write, or that would replace the ``given`` table."""
    if output.suffix.lower() not in _FORMS or output.resolve() == Path(given).resolve():
        raise ValueError(f"the output is another file than the table and ends in {' or '.join(_FORMS)} (got -o {output})")
    if pairs and (pairs.suffix.lower() != ".csv" or pairs.resolve() in (output.resolve(), Path(given).resolve())):
        raise ValueError(f"the pairs go to another file that ends in .csv (got --pairs {pairs})")
    for file in filter(None, (output, output.with_name(f"{output.name}.manifest.json"), pairs)):
        if file.is_dir():
            raise ValueError(f"each output is a file, and {file} is a folder: take another name")
    for folder in {file.resolve().parent for file in (output, pairs) if file}:
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder} for the output: make it, or take another")


def write(protected: Protected, output: Path, pairs: Path | None = None) -> Path:
    """Write the table, its manifest and on request the pairs, all or none; returns the file of the manifest."""
    manifest = output.with_name(f"{output.name}.manifest.json")
    text = json.dumps(protected.manifest, indent=1, ensure_ascii=False) + "\n"
    table = protected.table
    writers = {
        output: lambda part: (
            table.to_csv(part, index=False) if output.suffix.lower() == ".csv" else table.to_parquet(part, index=False)
        ),
        manifest: lambda part: part.write_text(text, encoding="utf-8"),
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
