"""Call records as a table of profiles, protected by a mechanism and written for publication.

PRIMULE and MDAV publish individual call profiles: a row a user and municipality, a column a slot of the week, shares of days. The
mechanisms of dχ publish profiles of visits: a row a user, a column a cell, visits or their number. No row has a name, and the rows
are sorted by their values, so that neither names nor order help an adversary.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from mobpriv import __version__
from mobpriv.base.numbers import counted
from mobpriv.base.system_noise import SystemGenerator
from mobpriv.calls.table import Cells
from mobpriv.datasets import DATASETS, CallSet, Reading, sha256_of
from mobpriv.datasets.call_tables import call_blocks
from mobpriv.datasets.times import known_zone
from mobpriv.datasets.wanted import MISSING
from mobpriv.icp.files import icps_of_files
from mobpriv.icp.profiles import WEEKS, Extraction, Window, icps, values
from mobpriv.mechanisms.icp import Mdav, Primule, per_group
from mobpriv.mechanisms.visits import Geometric, LaplaceCounts, RandomisedResponse
from mobpriv.own_data.protection import Protected
from mobpriv.traces.table import TableProblem
from mobpriv.visits.profiles import booleans, count_profiles, day

OF_PROFILES = (Primule, Mdav)
_WINDOW_RULES = ("before the window", "after the window", "cell unknown", "cell without a municipality")
MECHANISMS = {kind.__name__: kind for kind in (*OF_PROFILES, RandomisedResponse, LaplaceCounts, Geometric)}


def protect(
    data: CallSet, mechanism, rng: np.random.Generator, zone: str = "", start: str = "", weeks: int = WEEKS
) -> Protected:
    """The profiles of ``weeks`` weeks under the mechanism, and what a reader of the table must know; there are no pairs of names.

    ``zone``: of the callers' days, by default that of a known data set. ``start``: the first day, by default that of the first
    call. ValueError without a zone, and if no municipality has ``k`` profiles.
    """
    zone = _checked(mechanism, zone or (DATASETS[data.name].zone if data.name in DATASETS else ""))
    if not len(data.calls):
        raise ValueError(f"{data.name} holds no calls")
    window = Window(day(start or data.calls["t"].min(), zone).full[0].date(), zone, weeks)
    if isinstance(mechanism, OF_PROFILES):
        extract = partial(_extract, data.calls, window)
        table, manifest = _call_profiles(extract, data.cells, data.calls["user"].nunique(), mechanism, rng, window)
    else:
        table, manifest = _visits(data, mechanism, rng, window)
    kept, left_out = manifest["records"]["published"], manifest["records"]["left out"]
    assert len(data.calls) == kept + sum(left_out.values()), "every call is in a profile, or left out for a reason"
    return _protected(table, manifest, mechanism, rng, window)


def protect_file(
    path: Path,
    cells: Cells,
    reading: Reading,
    mechanism,
    rng: np.random.Generator,
    zone: str,
    start: str = "",
    weeks: int = WEEKS,
) -> tuple[Protected, CallSet]:
    """:func:`protect` for one of :data:`OF_PROFILES` and a file of calls that may exceed the memory; also the given calls without records.

    The profiles of all users are in memory, the calls are not.
    """
    zone = _checked(mechanism, zone)
    users, first = set(), []
    for calls, broken, _ in call_blocks(path, reading, 0, sys.maxsize):
        whole = calls.filter(pa.array(~np.any([np.zeros(len(calls), bool), *broken.values()], axis=0)))
        users.update(pc.unique(whole["user"]).to_pylist())
        first.append(pc.min(whole["t"]).as_py())
    if not (users := users - {None, *MISSING}):
        raise ValueError(f"{path.name} holds no calls")
    window = Window(day(start or pd.Timestamp(min(filter(None, first))), zone).full[0].date(), zone, weeks)
    extract = lambda of: icps_of_files(path, window, of, columns=reading.columns, time=reading.time, zone=reading.zone)  # noqa: E731
    table, manifest = _call_profiles(extract, cells, len(users), mechanism, rng, window)
    left_out = manifest["records"]["left out"]
    when_read = {rule: left_out.pop(rule) for rule in [*left_out] if rule not in (*_WINDOW_RULES, _few(mechanism.k))}
    problems = [TableProblem(rule, n, 0, -1, "", "", "") for rule, n in when_read.items()]
    manifest["records"]["given"] -= sum(when_read.values())
    given = CallSet(
        pd.DataFrame(),
        cells,
        pd.DataFrame(problems, columns=TableProblem._fields),
        path.stem,
        sha256_of(path),
        False,
        path.name,
    )
    return _protected(table, manifest, mechanism, rng, window), given


def _checked(mechanism, zone: str) -> str:
    """The zone; ValueError without one, or for parameters under which the mechanism keeps no ε."""
    if not zone:
        raise ValueError("the callers' time zone is needed, because it determines the days: give it with --zone")
    known_zone(zone)
    if getattr(mechanism, "scale", "") == "printed" or not getattr(mechanism, "modulo", True):
        raise ValueError(
            f"{mechanism!r} follows an erratum of the paper and does not satisfy its ε: leave out scale and modulo"
        )
    if not isinstance(getattr(mechanism, "epsilon", 1.0), int | float):
        raise ValueError(f"one ε for all users is needed here (got epsilon={mechanism.epsilon!r})")
    return zone


def _protected(table: pd.DataFrame, manifest: dict, mechanism, rng, window: Window) -> Protected:
    manifest = {
        "mechanism": {"name": mechanism.name, **asdict(mechanism)},
        "guarantee": _guarantee(mechanism, rng),
        "days": {"first": str(window.first), "weeks": window.weeks, "zone": window.zone},
        **manifest,
        "warnings": _warnings(mechanism, table),
        "mobpriv": __version__,
    }
    return Protected(table, manifest, pd.DataFrame({"protected": [], "original": []}))


def _extract(calls, window: Window, cells: Cells) -> Extraction:
    return icps(calls, cells, window)


def _few(k: int) -> str:
    return f"municipality with fewer than {k} profiles"


def _call_profiles(
    extract: Callable[[Cells], Extraction], cells: Cells, users: int, mechanism, rng, window: Window
) -> tuple[pd.DataFrame, dict]:
    """Individual call profiles; municipalities with fewer than k are left out, because they would be published unchanged.

    ``extract`` computes the profiles for a table of cells; ``users`` is the number of given users.
    """
    extraction = extract(cells)
    profiles, k = extraction.profiles, mechanism.k
    sizes = profiles["municipality"].value_counts()
    small = sizes.index[(sizes > 0) & (sizes < k)]
    kept = profiles[~profiles["municipality"].isin(small)]
    if not len(kept):
        largest = f"the largest has {sizes.max()}" if len(sizes) and sizes.max() else "no call is at a cell with a municipality"
        raise ValueError(f"k = {k} needs a municipality with {k} profiles or more ({largest}): take a smaller k or more calls")
    names = [
        f"week {w} {days} {slot}"
        for w in range(1, window.weeks + 1)
        for days in ("weekday", "weekend")
        for slot in _slots(window)
    ]
    shares = pd.DataFrame(values(kept["key"].to_numpy(), window.weeks), columns=names)
    town = kept["municipality"].astype(str).to_numpy()
    published = per_group(mechanism, shares, town, rng).values
    published.insert(0, "municipality", town)
    left_out = dict(zip(extraction.left_out["rule"], map(int, extraction.left_out["records"]), strict=True))
    in_profiles = extraction.kept
    if len(small):
        in_profiles = extract(cells.assign(municipality=cells["municipality"].mask(cells["municipality"].isin(small)))).kept
        left_out[_few(k)] = extraction.kept - in_profiles
    return published.sort_values([*published], ignore_index=True), {
        "users": {"given": users, "published": kept["user"].nunique()},
        "profiles": {"given": len(profiles), "published": len(published)},
        "municipalities": {"given": int((sizes > 0).sum()), "published": int((sizes >= k).sum())},
        "records": {"given": extraction.read, "published": in_profiles, "left out": left_out},
    }


def _slots(window: Window) -> list[str]:
    """The slots of a day by their hours: "0-8 h"."""
    return [f"{a}-{b} h" for a, b in zip(window.slots, (*window.slots[1:], 24), strict=True)]


def _visits(data: CallSet, mechanism, rng, window: Window) -> tuple[pd.DataFrame, dict]:
    """Profiles of visits to all cells; users without a call in these days too, because leaving a user out would reveal that she has none."""
    last = day(pd.Timestamp(window.first) + pd.Timedelta(days=7 * window.weeks - 1), window.zone)
    period = (day(window.first, window.zone).full[0], last.full[1])
    cells = [str(cell) for cell in data.cells["cell"]]
    counts, left_out = count_profiles(data.calls, dict(zip(cells, cells, strict=True)), period)
    true = booleans(counts) if isinstance(mechanism, RandomisedResponse) else counts
    published = mechanism.protect(true, rng).astype(int).sort_values([*counts], ignore_index=True)
    return published, {
        "users": {"given": len(counts), "published": len(published)},
        "profiles": {"given": len(counts), "published": len(published)},
        "records": {
            "given": len(data.calls),
            "published": int(counts.to_numpy().sum()),
            "left out": dict(zip(left_out["rule"], map(int, left_out["records"]), strict=True)),
        },
    }


def _warnings(mechanism, table: pd.DataFrame) -> list[str]:
    unchanged = len(table.columns) - 1 - len(mechanism.h) if getattr(mechanism, "h", None) is not None else 0
    if not unchanged:
        return []
    return [
        f"{counted(unchanged, 'column')} outside h {'is' if unchanged == 1 else 'are'} published as given, and can identify users"
    ]


def _guarantee(mechanism, rng: np.random.Generator) -> str:
    if isinstance(mechanism, OF_PROFILES):
        known = "the whole profile" if mechanism.h is None else f"{counted(len(mechanism.h), 'column')} of the profile"
        return (
            f"each published profile agrees on {known} with those of at least {mechanism.k - 1} others of its municipality; "
            "what the group has in common is published, and a user with profiles in several municipalities is not k-anonymous"
        )
    if not isinstance(rng, SystemGenerator):
        return "none: anybody with the seed can remove the noise"
    unit = "visited cell" if isinstance(mechanism, RandomisedResponse) else "visit"
    return (
        f"dχ-privacy with ε = {mechanism.epsilon:g} for each {unit}: it adds up over all by which two users differ, "
        f"so a whole profile has a far larger ε{'' if getattr(mechanism, 'exact', False) else '; up to the rounding of the random numbers'}"
    )
