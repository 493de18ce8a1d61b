"""Explain why PULP and ALP differ, by separating their methods from their objectives.

PULP chooses Geo-I's ε on fitted curves so that privacy equals utility. ALP maximises their sum by simulated annealing on noisy
measurements. :class:`Response` holds one user's levels at a row of ε in several repetitions. It gives each objective's best ε
without model or search. Annealing can be repeated at no cost, as every step draws from these measurements.

Source: Cerf et al., TDSC 2018, §VI-D.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from mobpriv.base.ranges import one_of, whole
from mobpriv.pulp import Candidate
from mobpriv.pulp.alp import anneal

OBJECTIVES = ("ratio", "sum")  # privacy equals utility (PU-ratio with w = 1); largest sum of privacy and utility
FINE = 2001  # values searched for the best one, evenly spaced in ln ε


def costs(objective: str, privacy, utility):
    """Return the cost of a setting, as ALP defines it.

    * "sum": (1 − privacy) + (1 − utility), both objectives of §VI-D.
    * "ratio": the distance of privacy's share of the sum from a half, as a share of a half: 0 if the ratio is 1, and at most 1.
    """
    one_of("objective", objective, OBJECTIVES)
    privacy, utility = np.asarray(privacy, float), np.asarray(utility, float)
    if objective == "sum":
        return 2 - np.minimum(privacy, 1) - np.minimum(utility, 1)
    privacy = np.maximum(privacy, 0)  # as printed it can be below 0, and then counts as 0
    total = privacy + utility
    share = np.divide(privacy, total, out=np.ones_like(total), where=total > 0)
    return np.abs(share / 0.5 - 1)


class Response(NamedTuple):
    """One user's levels under one mechanism, in independent repetitions."""

    values: np.ndarray  # of the parameter, rising
    privacy: np.ndarray  # (values, draws)
    utility: np.ndarray

    def means(self, value) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean levels, interpolated linearly in ln ε between the values."""
        x = np.log(value)
        return tuple(np.interp(x, np.log(self.values), levels.mean(axis=1)) for levels in (self.privacy, self.utility))

    def halves(self) -> tuple["Response", "Response"]:
        """Split the repetitions in two: choose on one half, evaluate on the other. ValueError for fewer than two repetitions."""
        n = whole("draws", self.privacy.shape[1], 2) // 2
        cuts = slice(None, n), slice(n, None)
        return tuple(self._replace(privacy=self.privacy[:, cut], utility=self.utility[:, cut]) for cut in cuts)

    def best(self, objective: str) -> float:
        """Return the value of least mean cost; for the ratio, the crossing of the mean levels if they cross."""
        fine = np.geomspace(self.values[0], self.values[-1], FINE)
        privacy, utility = self.means(fine)
        apart = privacy - utility
        crossed = np.flatnonzero(apart[:-1] * apart[1:] <= 0)
        if objective == "ratio" and len(crossed):
            i = max(crossed, key=lambda i: privacy[i] + utility[i])
            if apart[i] == 0:
                return float(fine[i])
            return float(brentq(lambda value: float(np.subtract(*self.means(value))), fine[i], fine[i + 1], xtol=1e-15))
        return float(fine[costs(objective, privacy, utility).argmin()])

    def annealed(self, objective: str, values: Sequence[float], rng: np.random.Generator, runs: int = 3) -> float:
        """Return the result of simulated annealing among ``values``; each step uses the median of ``runs`` drawn levels.

        A drawn level is the mean at the value plus the noise of one repetition at the nearest measured value. Privacy and
        utility of a step use the same repetitions.
        """
        whole("runs", runs, 1)
        values = np.asarray(values, float)
        between = np.sqrt(self.values[:-1] * self.values[1:])
        nearest, means = np.searchsorted(between, values), self.means(values)
        noise = [levels - levels.mean(axis=1, keepdims=True) for levels in (self.privacy, self.utility)]

        def cost(place: int) -> float:
            drawn = rng.integers(self.privacy.shape[1], size=runs)
            levels = [m[place] + np.median(n[nearest[place], drawn]) for m, n in zip(means, noise, strict=True)]
            return float(costs(objective, *levels))

        found = anneal(cost, len(values), 1.0 if objective == "ratio" else 2.0, rng)
        return float(values[found.best])


def responses(measured: pd.DataFrame) -> dict[str, Response]:
    """Return user -> response, from a table of :func:`mobpriv.pulp.profile` with one mechanism.

    Users without a privacy level, or with a refused trace, are left out.
    """
    names = measured["mechanism"].unique()
    if len(names) > 1:
        raise ValueError(f"a response belongs to one mechanism (got {', '.join(names)})")
    found = {}
    for user, own in measured.groupby("user", sort=True):
        privacy, utility = (own.pivot(index="value", columns="repetition", values=what) for what in ("privacy", "utility"))
        if not (privacy.isna().any(axis=None) or utility.isna().any(axis=None)):
            found[user] = Response(privacy.index.to_numpy(float), privacy.to_numpy(), utility.to_numpy())
    return found


def largest_sum(candidate: Candidate) -> float:
    """Return the setting with the largest sum of privacy and utility in a user's models: ALP's objective on PULP's curves.

    ValueError for a candidate without models, and for an empty range.
    """
    if candidate.missing or not np.isfinite([*candidate.privacy, *candidate.utility]).all():
        raise ValueError(
            f"the largest sum needs models of both levels ({candidate.mechanism} has {candidate.missing or 'none'})"
        )
    if not 0 < candidate.low <= candidate.high < np.inf:
        raise ValueError(
            f"the range of {candidate.mechanism} must be positive, its ends in order (got {candidate.low} to {candidate.high})"
        )
    fine = np.geomspace(candidate.low, candidate.high, FINE)
    privacy, utility = (m.a * np.arctan(m.b * (np.log(fine) - m.c)) + m.d for m in (candidate.privacy, candidate.utility))
    return float(fine[costs("sum", privacy, utility).argmin()])
