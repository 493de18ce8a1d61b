"""Measure how profiles change with the choices of their extraction (§3.1), and with the number of calls.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §3.1.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.attacks.icp.linking import candidates
from mobpriv.base.estimates import Estimate, clustered_difference, clustered_rate
from mobpriv.base.ranges import whole
from mobpriv.calls.table import Calls
from mobpriv.datasets import CallSet
from mobpriv.icp.profiles import Icps, Window, icps

K = 10  # the paper's least k


class Moved(NamedTuple):
    profiles: int
    changed: Estimate  # share of the original profiles that change or disappear
    unsafe: Estimate  # share of the new profiles with an anonymity set below k
    shift: Estimate  # paired change of this share, over the profiles present before and after


def moved(before: Icps, after: Icps, k: int = K) -> Moved:
    """Compare profiles of the same users and municipalities before and after a choice changes; neither is empty."""
    whole("k", k, 2)
    one, other = _named(before, k), _named(after, k)
    both = one.merge(other, on=["user", "municipality"], how="left", suffixes=("", " after"), indicator=True)
    there = (both["_merge"] == "both").to_numpy()
    changed = ~there | (both["key"] != both["key after"]).to_numpy()
    unsafe = [both[name].to_numpy()[there].astype(bool) for name in ("unsafe after", "unsafe")]
    return Moved(
        len(other),
        clustered_rate(changed, both["user"].to_numpy()),
        clustered_rate(other["unsafe"].to_numpy(), other["user"].to_numpy()),
        clustered_difference(*unsafe, both["user"].to_numpy()[there]) if there.any() else Estimate(np.nan, np.nan, np.nan, 0),
    )


def _named(profiles: Icps, k: int) -> pd.DataFrame:
    user, town = (profiles[name].astype(str).to_numpy() for name in ("user", "municipality"))
    keys = profiles["key"].to_numpy()
    return pd.DataFrame({"user": user, "municipality": town, "key": keys, "unsafe": candidates(keys, within=town) < k})


def choices(data: CallSet, window: Window) -> Mapping[str, Icps]:
    """Return the profiles of the window with one choice of §3.1 varied at a time, by the choice's name."""
    first, zone, weeks = window.first, window.zone, window.weeks
    windows = {
        "slots from 8 and 16 h": Window(first, zone, weeks, (0, 8, 16)),
        "slots from 7 and 18 h": Window(first, zone, weeks, (0, 7, 18)),
        "slots from 6 and 20 h": Window(first, zone, weeks, (0, 6, 20)),
        "by the clocks of UTC": Window(first, "UTC", weeks),
        "by the clocks of Europe/Rome": Window(first, "Europe/Rome", weeks),
    }
    found = {name: icps(data.calls, data.cells, of).profiles for name, of in windows.items()}
    found["every slot that a call touches"] = icps(data.calls, data.cells, window, every_slot=True).profiles
    found["also where a call ended"] = icps(data.calls, data.cells, window, both_cells=True).profiles
    start, end = window.period
    within = data.calls[(data.calls["t"] >= start) & (data.calls["t"] < end)]
    for least in (5, 28):
        many = within["user"].map(within["user"].value_counts()).astype(int).to_numpy() >= least
        if many.any():
            found[f"users of {least} calls or more"] = icps(within[many], data.cells, window).profiles
    return {name: profiles for name, profiles in found.items() if len(profiles)}


def thinned(calls: Calls, share: float, rng: np.random.Generator) -> Calls:
    """Keep each call with probability ``share``: the same people with fewer calls."""
    return calls[rng.random(len(calls)) < share]
