"""Call records as a table of profiles, protected by a mechanism and written for publication.

PRIMULE and MDAV publish individual call profiles: a row a user and municipality, a column a slot of the week, shares of days. The
mechanisms of dχ publish profiles of visits: a row a user, a column a cell, visits or their number. No row has a name, and the rows
are sorted by their values, so that neither names nor order help an adversary.
"""

from dataclasses import asdict

import numpy as np
import pandas as pd

from mobpriv import __version__
from mobpriv.base.numbers import counted
from mobpriv.base.system_noise import SystemGenerator
from mobpriv.datasets import DATASETS, CallSet
from mobpriv.datasets.times import known_zone
from mobpriv.icp.profiles import WEEKS, Window, icps, values
from mobpriv.mechanisms.icp import Mdav, Primule, per_group
from mobpriv.mechanisms.visits import Geometric, LaplaceCounts, RandomisedResponse
from mobpriv.own_data.protection import Protected
from mobpriv.traces.table import milliseconds
from mobpriv.visits.profiles import booleans, count_profiles, day

_OF_PROFILES = (Primule, Mdav)
MECHANISMS = {kind.__name__: kind for kind in (*_OF_PROFILES, RandomisedResponse, LaplaceCounts, Geometric)}


def protect(
    data: CallSet, mechanism, rng: np.random.Generator, zone: str = "", start: str = "", weeks: int = WEEKS
) -> Protected:
    """The profiles of ``weeks`` weeks under the mechanism, and what a reader of the table must know; there are no pairs of names.

    ``zone``: of the callers' days, by default that of a known data set. ``start``: the first day, by default that of the first
    call. ValueError without a zone, and if no municipality has ``k`` profiles.
    """
    zone = zone or (DATASETS[data.name].zone if data.name in DATASETS else "")
    if not zone:
        raise ValueError("the callers' time zone is needed, because it determines the days: give it with --zone")
    known_zone(zone)
    if getattr(mechanism, "scale", "") == "printed" or not getattr(mechanism, "modulo", True):
        raise ValueError(
            f"{mechanism!r} follows an erratum of the paper and does not satisfy its ε: leave out scale and modulo"
        )
    if not isinstance(getattr(mechanism, "epsilon", 1.0), int | float):
        raise ValueError(f"one ε for all users is needed here (got epsilon={mechanism.epsilon!r})")
    if not len(data.calls):
        raise ValueError(f"{data.name} holds no calls")
    first = day(start or data.calls["t"].min(), zone).full[0].date()
    window = Window(first, zone, weeks)
    of_profiles = isinstance(mechanism, _OF_PROFILES)
    table, manifest = (_call_profiles if of_profiles else _visits)(data, mechanism, rng, window)
    kept, left_out = manifest["records"]["published"], manifest["records"]["left out"]
    assert len(data.calls) == kept + sum(left_out.values()), "every call is in a profile, or left out for a reason"
    manifest = {
        "mechanism": {"name": mechanism.name, **asdict(mechanism)},
        "guarantee": _guarantee(mechanism, rng),
        "days": {"first": str(first), "weeks": window.weeks, "zone": zone},
        **manifest,
        "warnings": _warnings(mechanism, table),
        "mobpriv": __version__,
    }
    return Protected(table, manifest, pd.DataFrame({"protected": [], "original": []}))


def _call_profiles(data: CallSet, mechanism, rng, window: Window) -> tuple[pd.DataFrame, dict]:
    """Individual call profiles; municipalities with fewer than k are left out, because they would be published unchanged."""
    extraction = icps(data.calls, data.cells, window)
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
    slot = window.slot_of(milliseconds(data.calls))
    cells = data.cells["cell"][data.cells["municipality"].isin(small)]
    of_small = int(((slot >= 0) & (slot < 21 * window.weeks) & data.calls["cell"].isin(cells)).sum())
    left_out = dict(zip(extraction.left_out["rule"], map(int, extraction.left_out["records"]), strict=True))
    if of_small:
        left_out[f"municipality with fewer than {k} profiles"] = of_small
    return published.sort_values([*published], ignore_index=True), {
        "users": {"given": data.calls["user"].nunique(), "published": kept["user"].nunique()},
        "profiles": {"given": len(profiles), "published": len(published)},
        "municipalities": {"given": int((sizes > 0).sum()), "published": int((sizes >= k).sum())},
        "records": {"given": len(data.calls), "published": extraction.kept - of_small, "left out": left_out},
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
    if isinstance(mechanism, _OF_PROFILES):
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
