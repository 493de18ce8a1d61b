"""Extend PULP beyond its paper: to an adversary who knows the users' past, and to other mechanisms.

The adversary of the thesis's chapter 3 knows the first half; PULP profiles and protects the second half.

Source (extended here): Cerf et al., TDSC 2018.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from mobpriv.attacks import ILLAttack
from mobpriv.attacks.policies import reidentified
from mobpriv.base.numbers import shown
from mobpriv.base.ranges import one_of, positive, whole
from mobpriv.experiments.days import Choice, Setting, choose, in_halves
from mobpriv.experiments.pulp import cut_rule, evenly
from mobpriv.mechanisms import HMC, TriLateration
from mobpriv.pulp import Metrics, Sweep
from mobpriv.pulp.users import in_one_thread, noise
from mobpriv.traces.sub_traces import slices
from mobpriv.traces.table import Traces, by_user, from_blocks, milliseconds, rows

RADIUS = tuple(np.geomspace(50, 5000, 9).tolist())  # m; four values a decade, like the paper's other mechanisms
# m; from a quarter of HMC's default cell to four times it, two values an octave
CELL = tuple(np.geomspace(200, 3200, 9).tolist())
TRILATERATION = Sweep(TriLateration(), "radius", RADIUS, rises="privacy")


@dataclass(frozen=True, eq=False)
class Confusion:
    """HMC with the size of its cells as the only parameter, so that PULP can configure it.

    ``Sweep(HMC(known), "cell", …)`` would fail: an HMC makes its grid once, and a copy with another ``cell``
    (:func:`dataclasses.replace`) keeps that grid. Here each size has its own HMC.

    The ``known`` data of all users are fixed before anybody is protected, and each trace is altered separately. So PULP's
    condition, "the obfuscation for one user only depends on this user", holds with respect to the other protected traces.
    """

    known: Traces
    cell: float = 800.0  # m
    erased: float | None = 1200.0  # s, stays of this length are erased at the end; None erases none
    made: dict = field(default_factory=dict, repr=False)  # cell -> HMC: its heat maps are those of all known users

    name = "HMC"
    random = True

    def __post_init__(self):
        positive("cell", self.cell, "m")

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        if self.cell not in self.made:
            self.made[self.cell] = HMC(self.known, cell=self.cell, erased=self.erased)
        return self.made[self.cell].protect(traces, rng)


def confusion(known: Traces) -> Sweep:
    return Sweep(Confusion(known), "cell", CELL, rises="privacy")


def second_half(dataset: str, start: str = "", days: int = 30, leave_out: str = "", sample: int = 0) -> tuple[Setting, Choice]:
    """Return the halves of the most active days, and from the second half ``sample`` users, evenly spaced by name; 0 takes all.

    Only users with records in the first half count. The halves are cut by :func:`mobpriv.experiments.pulp.cut_rule`.
    """
    chosen = choose(dataset, start, days, leave_out)
    setting = in_halves(chosen, cut_rule(chosen, days), days)
    users = by_user(setting.secret)[0].intersection(by_user(setting.known)[0])
    if not len(users):
        raise ValueError("nobody has records in both halves")
    everybody, users = users, evenly(users, sample)
    among = ", taken at equal steps in the list sorted by name" if len(users) < len(everybody) else ""
    spans = " and ".join(f"{span(half):.1f}" for half in (setting.known, setting.secret))
    words = (
        f"{setting.selection}. The halves span {spans} days. PULP protects the second half of {shown(len(users))} users{among}"
    )
    secret = rows(setting.secret, setting.secret["user"].isin(users).to_numpy())
    return setting, Choice(setting.data, secret, secret["t"].min(), words)


def span(traces: Traces) -> float:
    """Return the days from the first record to the last."""
    return (traces["t"].max() - traces["t"].min()) / pd.Timedelta(days=1)


def days_of(traces: Traces) -> pd.Series:
    """Return the number of days (UTC) with records for each user."""
    users, offsets = by_user(traces)
    return pd.Series(_day_of_hers(traces)[offsets[1:] - 1] + 1, users)


def first_days(traces: Traces, most: pd.Series) -> Traces:
    """Keep each user's records of her first ``most`` days (UTC) with records; ``most``: user -> number."""
    users, offsets = by_user(traces)
    return rows(traces, _day_of_hers(traces) < np.repeat(most.reindex(users).to_numpy(), np.diff(offsets)))


def _day_of_hers(traces: Traces) -> np.ndarray:
    """Return for each record the number of earlier days with records of the same user."""
    offsets, day = by_user(traces)[1], milliseconds(traces) // 86_400_000
    new = np.r_[True, day[1:] != day[:-1]]
    new[offsets[:-1]] = True
    so_far = np.cumsum(new)
    return so_far - np.repeat(so_far[offsets[:-1]], np.diff(offsets))


def protected_as_told(
    traces: Traces, chosen: pd.DataFrame, sweeps: Sequence[Sweep], metrics: Metrics, seed: int
) -> tuple[Traces, pd.DataFrame]:
    """Protect users with their settings (user, mechanism, value; at most one row per user); return traces and levels.

    The noise is that of :func:`mobpriv.pulp.achieved` with the same seed, and so are the levels. Users without a setting
    publish nothing and have no row. ValueError for a user without records, an unknown mechanism, or an invalid value.
    """
    by_name, known = {sweep.name: sweep for sweep in sweeps}, by_user(traces)[0]
    whole("seed", seed, 0)
    told = chosen[["user", "mechanism", "value"]].dropna()
    for user, mechanism, value in told.itertuples(index=False):
        if user not in known:
            raise ValueError(f"settings must be those of users who have records ({user} has none)")
        one_of("a chosen mechanism", mechanism, tuple(by_name))
        positive(f"the value chosen for {user}", value)
    if told["user"].duplicated().any():
        raise ValueError(f"a user follows one setting ({told.loc[told['user'].duplicated(), 'user'].iloc[0]} has several)")
    parts, found = [rows(traces, np.zeros(len(traces), bool))], []
    for user, mechanism, value in told.itertuples(index=False):
        own = rows(traces, (traces["user"] == user).to_numpy())
        rng = noise(seed, f"{user}, {mechanism}, {float(value)!r}")
        published, privacy, utility = in_one_thread(_protected, own, by_name[mechanism].at(float(value)), metrics, rng)
        parts.append(published)
        found.append({"user": user, "privacy": privacy, "utility": utility})
    kept = [part for part in parts if len(part)] or parts[:1]
    users = pd.Index([user for part in kept for user in by_user(part)[0]])
    lat, lng = (np.concatenate([part[column].to_numpy() for part in kept]) for column in ("lat", "lng"))
    counts = np.concatenate([np.diff(by_user(part)[1]) for part in kept])
    together = from_blocks(users, counts, np.concatenate([milliseconds(part) for part in kept]), lat, lng)
    return together, pd.DataFrame(found, columns=["user", "privacy", "utility"])


def _protected(trace: Traces, mechanism, metrics: Metrics, rng: np.random.Generator) -> tuple[Traces, float, float]:
    """Protect one user's trace; return it with its levels."""
    published = mechanism.protect(trace, rng)
    return published, *metrics.of(trace).levels(published)[:2]


def days_found(attack: ILLAttack, published: Traces, users: Sequence[str]) -> pd.Series:
    """Return each user's share of published days that the trained ``attack`` attributes to her; 0 without days."""
    share = pd.Series(0.0, index=pd.Index(users, name="user"))
    if not len(published):
        return share
    days = slices(published, attack.delta)
    hits = reidentified(attack.rank(days.traces), days.owner.index, days.owner.to_dict())
    return hits.astype(float).groupby(days.owner.to_numpy()).mean().reindex(share.index, fill_value=0.0)


_NUMBERS = {"PU-ratio": 1, "PU-thld": 2, "P-thld": 1, "U-thld": 1}  # how many numbers a law's objective has


def goodness(law: str, objective: tuple[float, ...], privacy, utility):
    """Return the quantity that a law maximises among the settings that satisfy it: (6), (9), (12), (14)."""
    one_of("law", law, tuple(_NUMBERS))
    if len(objective) != _NUMBERS[law]:
        raise ValueError(f"the objective of {law} must have {_NUMBERS[law]} numbers (got {len(objective)})")
    if law == "PU-ratio":
        return privacy + objective[0] * utility
    if law == "PU-thld":
        return objective[0] * privacy + objective[1] * utility
    return {"P-thld": utility, "U-thld": privacy}[law]


def levels_together(original: Traces, published: Traces, metrics: Metrics) -> pd.DataFrame:
    """Return the levels of users protected together, one row per user; a missing user counts as erased."""
    found: dict[str, Any] = {}
    for user in by_user(original)[0]:
        own, hers = (rows(traces, (traces["user"] == user).to_numpy()) for traces in (original, published))
        found[user] = metrics.of(own).levels(hers)[:2]
    return pd.DataFrame.from_dict(found, orient="index", columns=["privacy", "utility"])
