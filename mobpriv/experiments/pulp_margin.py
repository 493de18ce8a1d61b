"""Measure the uncertainty of PULP's recommendations, and add a margin so that its thresholds are met.

The paper's laws treat models as exact. Here the models are refitted to resampled profiles (:func:`bands`), and thresholds are
raised by observed shortfalls (:func:`margin`, :func:`with_margin`).

Source (extended here): Cerf et al., TDSC 2018.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mobpriv.base.ranges import between, one_of, whole
from mobpriv.experiments.pulp import NONE, Law, recommended, text
from mobpriv.pulp import SWEEPS, Sweep, models

RESAMPLED = ("repetitions", "errors")
KEYS = ["user", "mechanism", "value"]


def resample(profile: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Resample each setting's repetitions with replacement: the noise of the profiling runs.

    A setting that was run once keeps its levels.
    """
    order = profile.sort_values([*KEYS, "repetition"], ignore_index=True)
    size = order.groupby(KEYS)["user"].transform("size").to_numpy()
    first = np.arange(len(order)) - order.groupby(KEYS).cumcount().to_numpy()
    return order.iloc[first + rng.integers(size)].assign(repetition=order["repetition"].to_numpy()).reset_index(drop=True)


def resample_errors(profile: pd.DataFrame, found: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Simulate the profile: the model's level plus an error drawn from those of the same user, mechanism and metric.

    The errors contain the noise and the misfit of the curve, and are assumed independent.
    """
    made = profile.copy()
    of = found.set_index(["user", "mechanism", "metric"])[["a", "b", "c", "d"]]
    for (user, mechanism), rows in profile.groupby(["user", "mechanism"]).indices.items():
        x = np.log(profile["value"].to_numpy()[rows])
        for metric in ("privacy", "utility"):
            a, b, c, d = of.loc[(user, mechanism, metric)]
            level = a * np.arctan(b * (x - c)) + d
            errors = profile[metric].to_numpy()[rows] - level
            known = np.isfinite(errors)  # an unknown level stays unknown
            drawn = rng.choice(errors[known], len(rows)) if known.any() else np.nan
            made.iloc[rows, made.columns.get_loc(metric)] = np.where(known, level + drawn, np.nan)
    return made


def bands(
    profile: pd.DataFrame,
    laws: Sequence[Law],
    times: int,
    rng: np.random.Generator,
    sweeps: Sequence[Sweep] = SWEEPS,
    resampled: str = "repetitions",
) -> pd.DataFrame:
    """Return the recommendations for each law's first objective from models of ``times`` resampled profiles.

    One row per law and user:

    * law, user, mechanism, value: from the profile itself.
    * same: the share of resampled profiles that recommend this mechanism, or none.
    * low, high: the 2.5 and 97.5 percentiles of its setting there; NaN if it is never recommended again.
    """
    whole("times", times, 1)
    one_of("resampled", resampled, RESAMPLED)
    found = models(profile, sweeps)
    base = _by_law(found, laws)
    drawn = []
    for _ in range(times):
        again = resample(profile, rng) if resampled == "repetitions" else resample_errors(profile, found, rng)
        drawn.append(_by_law(models(again, sweeps), laws).loc[base.index])
    same = np.array([(d["mechanism"] == base["mechanism"]).to_numpy() for d in drawn])
    values = np.where(same, np.array([d["value"].to_numpy(float) for d in drawn]), np.nan)
    there = ~np.isnan(values).all(axis=0)
    ends = np.full((2, len(base)), np.nan)
    ends[:, there] = np.nanpercentile(values[:, there], [2.5, 97.5], axis=0)
    return base.assign(same=same.mean(axis=0), low=ends[0], high=ends[1]).reset_index()


def _by_law(found: pd.DataFrame, laws: Sequence[Law]) -> pd.DataFrame:
    """Return mechanism and value by law and user."""
    tables = [recommended(found, law._replace(objectives=law.objectives[:1])).assign(law=law.name) for law in laws]
    return pd.concat(tables).set_index(["law", "user"])[["mechanism", "value"]]


def shortfall(law: Law, levels: pd.DataFrame) -> pd.Series:
    """Return how far each pair of levels misses the law's first objective (PU-thld, P-thld, U-thld); negative: above it.

    With two thresholds the larger shortfall counts.
    """
    (objective,) = law.objectives[:1]
    thresholds = dict(zip(_thresholds(law), objective, strict=True))
    return pd.concat([t - levels[metric] for metric, t in thresholds.items()], axis=1).max(axis=1).rename("shortfall")


def _thresholds(law: Law) -> tuple[str, ...]:
    """Return the levels for which a law has thresholds, in the order of its objective."""
    found = {"PU-thld": ("privacy", "utility"), "P-thld": ("privacy",), "U-thld": ("utility",)}
    one_of("a law with thresholds", law.name, tuple(found))
    return found[law.name]


def margin(law: Law, levels: pd.DataFrame, wanted: float) -> float:
    """Return the margin to add to the thresholds so that a protection meets them with probability ``wanted``; at least 0.

    It is the ``wanted`` (n + 1)/n quantile of the shortfalls of n users, all repetitions of a user weighted equally (the rank
    of split conformal prediction). It would be a guarantee if the shortfall stayed the same at the setting for the raised
    thresholds, which must be measured. Infinite if n is too small: n ≥ wanted / (1 − wanted) is needed.
    """
    between("wanted", wanted, 0, 1, "must lie in [0, 1]")
    short = shortfall(law, levels).to_numpy()
    if np.isnan(short).any():
        raise ValueError(
            f"a margin needs levels that are numbers (got NaN for {levels['user'].to_numpy()[np.isnan(short)][0]})"
        )
    users = levels["user"].to_numpy()
    n = len(np.unique(users))
    share = wanted * (n + 1) / n if n else np.inf
    if share > 1:
        return np.inf
    weight = 1 / pd.Series(users).groupby(users).transform("size").to_numpy() / n
    order = np.argsort(short, kind="stable")
    place = np.searchsorted(np.cumsum(weight[order]), share - 1e-12)
    return max(float(short[order][min(place, len(order) - 1)]), 0.0)


def with_margin(found: pd.DataFrame, law: Law, added: Mapping[str, float]) -> pd.DataFrame:
    """Return the recommendations for the law's first objective, with thresholds raised by each user's ``added``, at most to 1.

    The table shows the objective before it was raised.
    """
    (objective,) = law.objectives[:1]
    missing = sorted(user for user in set(found["user"]) if np.isnan(added.get(user, np.nan)))
    if missing:
        raise ValueError(f"every user needs a margin ({missing[0]} has none)")
    tables = []
    for amount in sorted({added[user] for user in found["user"]}):
        own = found[found["user"].map(lambda user, amount=amount: added[user] == amount)]
        raised = law._replace(objectives=(tuple(min(1.0, t + amount) for t in objective),))
        tables.append(recommended(own, raised))
    table = pd.concat(tables, ignore_index=True).assign(objective=text(objective))
    return table.sort_values("user", ignore_index=True)


def left_out_errors(profile: pd.DataFrame, sweeps: Sequence[Sweep] = SWEEPS) -> pd.DataFrame:
    """Return the root mean square error at settings left out of a fit: one row per user, one column per (mechanism, metric)."""
    table = models(profile, sweeps, left_out=True)
    table["error"] = np.sqrt(table["left_out"])
    return table.pivot(index="user", columns=["mechanism", "metric"], values="error")


def own_margin(law: Law, chosen: pd.DataFrame, errors: pd.DataFrame, times: float) -> dict[str, float]:
    """Compute a margin for each user from her own models: ``times`` the error spread of the recommended mechanism's models.

    ``chosen``: the recommendations without a margin; ``errors``: from :func:`left_out_errors`. With two thresholds the larger
    spread counts. The margin is 0 for a user without a recommendation, or without a known error.
    """
    found = {}
    for user, mechanism in chosen[["user", "mechanism"]].itertuples(index=False):
        known = [0.0] if mechanism == NONE else [float(errors.loc[user, (mechanism, metric)]) for metric in _thresholds(law)]
        found[user] = times * max((spread for spread in known if np.isfinite(spread)), default=0.0)
    return found
