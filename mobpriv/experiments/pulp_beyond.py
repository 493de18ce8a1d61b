"""PULP beyond its paper: margins, an adversary who knows the past, other mechanisms, and why ALP differs.

Source (extended here): Cerf et al., TDSC 2018.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from mobpriv.attacks import ILLAttack
from mobpriv.attacks.policies import reidentified
from mobpriv.base.numbers import shown
from mobpriv.base.processes import in_one_thread
from mobpriv.base.ranges import between, one_of, positive, whole
from mobpriv.experiments.days import AttackSetting, Choice, choose, days_spanned, in_halves
from mobpriv.experiments.pulp import NO_MECHANISM, Law, cut_rule, evenly_spaced, objective_text, recommended
from mobpriv.mechanisms import HMC, TriLateration
from mobpriv.pulp import SWEEPS, Candidate, Metrics, Sweep, models
from mobpriv.pulp.annealing import anneal
from mobpriv.pulp.configurator import known
from mobpriv.pulp.users import noise_at
from mobpriv.traces.sub_traces import slices
from mobpriv.traces.table import Traces, by_user, milliseconds, rows, together

# ------------------------- Measure the uncertainty of PULP's recommendations, and add a margin so that its thresholds are met
# The paper's laws treat models as exact. Here the models are refitted to resampled profiles (:func:`bands`), and thresholds are
# raised by observed shortfalls (:func:`margin`, :func:`with_margin`).
RESAMPLED = ("repetitions", "errors")
_SETTING_KEYS = ["user", "mechanism", "value"]


def resample(profile: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Resample each setting's repetitions with replacement: the noise of the profiling runs.

    A setting that was run once keeps its levels.
    """
    order = profile.sort_values([*_SETTING_KEYS, "repetition"], ignore_index=True)
    size = order.groupby(_SETTING_KEYS)["user"].transform("size").to_numpy()
    first = np.arange(len(order)) - order.groupby(_SETTING_KEYS).cumcount().to_numpy()
    return order.iloc[first + rng.integers(size)].assign(repetition=order["repetition"].to_numpy()).reset_index(drop=True)


def resample_errors(profile: pd.DataFrame, fits: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Simulate the profile: the model's level plus an error drawn from those of the same user, mechanism and metric.

    The errors contain the noise and the misfit of the curve, and are assumed independent.
    """
    simulated = profile.copy()
    coefficients = fits.set_index(["user", "mechanism", "metric"])[["a", "b", "c", "d"]]
    for (user, mechanism), places in profile.groupby(["user", "mechanism"]).indices.items():
        x = np.log(profile["value"].to_numpy()[places])
        for metric in ("privacy", "utility"):
            a, b, c, d = coefficients.loc[(user, mechanism, metric)]
            level = a * np.arctan(b * (x - c)) + d
            errors = profile[metric].to_numpy()[places] - level
            known = np.isfinite(errors)  # an unknown level stays unknown
            drawn = rng.choice(errors[known], len(places)) if known.any() else np.nan
            simulated.iloc[places, simulated.columns.get_loc(metric)] = np.where(known, level + drawn, np.nan)
    return simulated


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
    fits = models(profile, sweeps)
    base = _by_law(fits, laws)
    recommendations = []
    for _ in range(times):
        new_profile = resample(profile, rng) if resampled == "repetitions" else resample_errors(profile, fits, rng)
        recommendations.append(_by_law(models(new_profile, sweeps), laws).loc[base.index])
    same = np.array([(d["mechanism"] == base["mechanism"]).to_numpy() for d in recommendations])
    values = np.where(same, np.array([d["value"].to_numpy(float) for d in recommendations]), np.nan)
    ever_same = ~np.isnan(values).all(axis=0)
    bounds = np.full((2, len(base)), np.nan)
    bounds[:, ever_same] = np.nanpercentile(values[:, ever_same], [2.5, 97.5], axis=0)
    return base.assign(same=same.mean(axis=0), low=bounds[0], high=bounds[1]).reset_index()


def _by_law(fits: pd.DataFrame, laws: Sequence[Law]) -> pd.DataFrame:
    """Return mechanism and value by law and user."""
    tables = [recommended(fits, law._replace(objectives=law.objectives[:1])).assign(law=law.name) for law in laws]
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
    metrics = {"PU-thld": ("privacy", "utility"), "P-thld": ("privacy",), "U-thld": ("utility",)}
    one_of("a law with thresholds", law.name, tuple(metrics))
    return metrics[law.name]


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


def with_margin(fits: pd.DataFrame, law: Law, added: Mapping[str, float]) -> pd.DataFrame:
    """Return the recommendations for the law's first objective, with thresholds raised by each user's ``added``, at most to 1.

    The table shows the objective before it was raised.
    """
    (objective,) = law.objectives[:1]
    missing = sorted(user for user in set(fits["user"]) if np.isnan(added.get(user, np.nan)))
    if missing:
        raise ValueError(f"every user needs a margin ({missing[0]} has none)")
    tables = []
    for amount in sorted({added[user] for user in fits["user"]}):
        user_fits = fits[fits["user"].map(lambda user, amount=amount: added[user] == amount)]
        raised = law._replace(objectives=(tuple(min(1.0, t + amount) for t in objective),))
        tables.append(recommended(user_fits, raised))
    table = pd.concat(tables, ignore_index=True).assign(objective=objective_text(objective))
    return table.sort_values("user", ignore_index=True)


def left_out_errors(profile: pd.DataFrame, sweeps: Sequence[Sweep] = SWEEPS) -> pd.DataFrame:
    """Return the root mean square error at settings left out of a fit: one row per user, one column per (mechanism, metric)."""
    table = models(profile, sweeps, left_out=True)
    table["error"] = np.sqrt(table["left_out"])
    return table.pivot(index="user", columns=["mechanism", "metric"], values="error")


def personal_margin(law: Law, chosen: pd.DataFrame, errors: pd.DataFrame, times: float) -> dict[str, float]:
    """Compute a margin for each user from her own models: ``times`` the error spread of the recommended mechanism's models.

    ``chosen``: the recommendations without a margin; ``errors``: from :func:`left_out_errors`. With two thresholds the larger
    spread counts. The margin is 0 for a user without a recommendation, or without a known error.
    """
    margins = {}
    for user, mechanism in chosen[["user", "mechanism"]].itertuples(index=False):
        metrics = () if mechanism == NO_MECHANISM else _thresholds(law)
        spreads = [float(errors.loc[user, (mechanism, metric)]) for metric in metrics]
        margins[user] = times * max((spread for spread in spreads if np.isfinite(spread)), default=0.0)
    return margins


# --------------------------- Extend PULP beyond its paper: to an adversary who knows the users' past, and to other mechanisms
# The adversary of the thesis's chapter 3 knows the first half; PULP profiles and protects the second half.
_RADIUS = tuple(np.geomspace(50, 5000, 9).tolist())  # m; four values a decade, like the paper's other mechanisms
# m; from a quarter of HMC's default cell to four times it, two values an octave
_CELL = tuple(np.geomspace(200, 3200, 9).tolist())
TRILATERATION = Sweep(TriLateration(), "radius", _RADIUS, rises="privacy")


@dataclass(frozen=True, eq=False)
class ConfigurableHMC:
    """HMC with the size of its cells as the only parameter, so that PULP can configure it.

    ``Sweep(HMC(known), "cell", …)`` would fail: an HMC makes its grid once, and a copy with another ``cell``
    (:func:`dataclasses.replace`) keeps that grid. Here each size has its own HMC.

    The ``known`` data of all users are fixed before anybody is protected, and each trace is altered separately. So PULP's
    condition, "the obfuscation for one user only depends on this user", holds with respect to the other protected traces.
    """

    known: Traces
    cell: float = 800.0  # m
    erased: float | None = 1200.0  # s, stays of this length are erased at the end; None erases none
    by_cell: dict = field(default_factory=dict, repr=False)  # cell -> HMC: its heat maps are those of all known users

    name = "HMC"
    random = True

    def __post_init__(self):
        positive("cell", self.cell, "m")

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        if self.cell not in self.by_cell:
            self.by_cell[self.cell] = HMC(self.known, cell=self.cell, erased=self.erased)
        return self.by_cell[self.cell].protect(traces, rng)


def hmc_sweep(known: Traces) -> Sweep:
    return Sweep(ConfigurableHMC(known), "cell", _CELL, rises="privacy")


def second_half(
    dataset: str, start: str = "", days: int = 30, leave_out: str = "", sample: int = 0
) -> tuple[AttackSetting, Choice]:
    """Return the halves of the most active days, and from the second half ``sample`` users, evenly spaced by name; 0 takes all.

    Only users with records in the first half count. The halves are cut by :func:`mobpriv.experiments.pulp.cut_rule`.
    """
    chosen = choose(dataset, start, days, leave_out)
    setting = in_halves(chosen, cut_rule(chosen, days), days)
    users = by_user(setting.secret)[0].intersection(by_user(setting.known)[0])
    if not len(users):
        raise ValueError("nobody has records in both halves")
    everybody, users = users, evenly_spaced(users, sample)
    among = ", at equal steps in the list of users sorted by name" if len(users) < len(everybody) else ""
    known, secret = (f"{days_spanned(half):.0f}" for half in (setting.known, setting.secret))
    spans = f"{known} days each" if known == secret else f"{known} and {secret} days"
    words = f"{setting.selection}. The halves span {spans}. PULP protects the test half of {shown(len(users))} users{among}"
    secret = rows(setting.secret, setting.secret["user"].isin(users).to_numpy())
    return setting, Choice(setting.data, secret, secret["t"].min(), words)


def days_with_records(traces: Traces) -> pd.Series:
    """Return the number of days (UTC) with records for each user."""
    users, offsets = by_user(traces)
    return pd.Series(_day_index(traces)[offsets[1:] - 1] + 1, users)


def first_days(traces: Traces, day_counts: pd.Series) -> Traces:
    """Keep each user's records of her first ``day_counts`` days (UTC) with records; ``day_counts``: user -> number."""
    users, offsets = by_user(traces)
    return rows(traces, _day_index(traces) < np.repeat(day_counts.reindex(users).to_numpy(), np.diff(offsets)))


def _day_index(traces: Traces) -> np.ndarray:
    """Return for each record the number of earlier days with records of the same user."""
    offsets, day = by_user(traces)[1], milliseconds(traces) // 86_400_000
    new = np.r_[True, day[1:] != day[:-1]]
    new[offsets[:-1]] = True
    so_far = np.cumsum(new)
    return so_far - np.repeat(so_far[offsets[:-1]], np.diff(offsets))


def protected_with_settings(
    traces: Traces,
    chosen: pd.DataFrame,
    sweeps: Sequence[Sweep],
    metrics: Metrics | None,
    seed: int,
    fixed: dict[tuple, Traces] | None = None,
) -> tuple[Traces, pd.DataFrame]:
    """Protect users with their settings (user, mechanism, value; at most one row per user); return traces and levels.

    Without ``metrics`` no levels are measured. The noise is that of :func:`mobpriv.pulp.achieved` with the same seed, and so are
    the levels. Users without a setting publish nothing and have no row. ``fixed`` receives the traces that mechanisms without
    randomness publish: pass the same one for each seed. ValueError for a user without records, an unknown mechanism, or an invalid value.
    """
    (known_users, offsets), by_name = by_user(traces), {sweep.name: sweep for sweep in sweeps}
    row_ranges = {user: np.arange(*pair) for user, pair in zip(known_users, pairwise(offsets), strict=True)}
    whole("seed", seed, 0)
    settings = chosen[["user", "mechanism", "value"]].dropna()
    for user, mechanism, value in settings.itertuples(index=False):
        if user not in known_users:
            raise ValueError(f"settings must be those of users who have records ({user} has none)")
        one_of("a chosen mechanism", mechanism, tuple(by_name))
        positive(f"the value chosen for {user}", value)
    if settings["user"].duplicated().any():
        raise ValueError(
            f"a user follows one setting ({settings.loc[settings['user'].duplicated(), 'user'].iloc[0]} has several)"
        )
    fixed = {} if fixed is None else fixed
    protected = in_one_thread(_protected_each, traces, row_ranges, settings, by_name, metrics, seed, fixed)
    parts = [rows(traces, np.zeros(len(traces), bool)), *(part for part, _ in protected)]
    levels = [level for _, levels_of_one in protected for level in levels_of_one]
    return together(parts), pd.DataFrame(levels, columns=["user", "privacy", "utility"])


def _protected_each(
    traces, row_ranges, settings, sweeps, metrics: Metrics | None, seed: int, fixed: dict[tuple, Traces]
) -> list[tuple[Traces, list[dict]]]:
    """Protect each user's trace with her setting; return it with its levels, if ``metrics`` measure them."""
    protected = []
    for setting in settings.itertuples(index=False, name=None):
        user, mechanism, value = setting
        one = sweeps[mechanism].at(float(value))
        published = fixed.get(setting)
        if published is None:
            rng = noise_at(seed, user, mechanism, value)
            published = one.protect(rows(traces, row_ranges[user]), rng)
            if not getattr(one, "random", True):
                fixed[setting] = published
        measured = [metrics.of(rows(traces, row_ranges[user])).levels(published)[:2]] if metrics else []
        protected.append((published, [{"user": user, "privacy": pr, "utility": ut} for pr, ut in measured]))
    return protected


def days_reidentified(attack: ILLAttack, published: Traces, users: Sequence[str]) -> pd.Series:
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
    levels: dict[str, Any] = {}
    for user in by_user(original)[0]:
        original_trace, published_trace = (
            rows(traces, (traces["user"] == user).to_numpy()) for traces in (original, published)
        )
        levels[user] = metrics.of(original_trace).levels(published_trace)[:2]
    return pd.DataFrame.from_dict(levels, orient="index", columns=["privacy", "utility"])


# ----------------------------------------- Explain why PULP and ALP differ, by separating their methods from their objectives
# PULP chooses Geo-I's ε on fitted curves so that privacy equals utility. ALP maximises their sum by simulated annealing on noisy
# measurements. :class:`Response` holds one user's levels at a row of ε in several repetitions. It gives each objective's best ε
# without model or search. Annealing can be repeated at no cost, as every step draws from these measurements.
_OBJECTIVES = ("ratio", "sum")  # privacy equals utility (PU-ratio with w = 1); largest sum of privacy and utility
_FINE = 2001  # values searched for the best one, evenly spaced in ln ε


def costs(objective: str, privacy, utility):
    """Return the cost of a setting, as ALP defines it.

    * "sum": (1 − privacy) + (1 − utility), both objectives of §VI-D.
    * "ratio": the distance of privacy's share of the sum from a half, as a share of a half: 0 if the ratio is 1, and at most 1.
    """
    one_of("objective", objective, _OBJECTIVES)
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
        fine = np.geomspace(self.values[0], self.values[-1], _FINE)
        privacy, utility = self.means(fine)
        difference = privacy - utility
        crossings = np.flatnonzero(difference[:-1] * difference[1:] <= 0)
        if objective == "ratio" and len(crossings):
            i = max(crossings, key=lambda i: privacy[i] + utility[i])
            if difference[i] == 0:
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
        midpoints = np.sqrt(self.values[:-1] * self.values[1:])
        nearest, means = np.searchsorted(midpoints, values), self.means(values)
        deviations = [levels - levels.mean(axis=1, keepdims=True) for levels in (self.privacy, self.utility)]

        def cost(place: int) -> float:
            drawn = rng.integers(self.privacy.shape[1], size=runs)
            levels = [m[place] + np.median(n[nearest[place], drawn]) for m, n in zip(means, deviations, strict=True)]
            return float(costs(objective, *levels))

        result = anneal(cost, len(values), 1.0 if objective == "ratio" else 2.0, rng)
        return float(values[result.best])


def responses(measured: pd.DataFrame) -> dict[str, Response]:
    """Return user -> response, from a table of :func:`mobpriv.pulp.profile` with one mechanism.

    Users without a privacy level, or with a refused trace, are left out.
    """
    names = measured["mechanism"].unique()
    if len(names) > 1:
        raise ValueError(f"a response belongs to one mechanism (got {', '.join(names)})")
    user_responses = {}
    for user, user_levels in measured.groupby("user", sort=True):
        privacy, utility = (
            user_levels.pivot(index="value", columns="repetition", values=what) for what in ("privacy", "utility")
        )
        if not (privacy.isna().any(axis=None) or utility.isna().any(axis=None)):
            user_responses[user] = Response(privacy.index.to_numpy(float), privacy.to_numpy(), utility.to_numpy())
    return user_responses


def largest_sum(candidate: Candidate) -> float:
    """Return the setting with the largest sum of privacy and utility in a user's models: ALP's objective on PULP's curves.

    ValueError for a candidate without models, and for an empty range.
    """
    if candidate.missing or not known(candidate):
        raise ValueError(
            f"the largest sum needs models of both levels ({candidate.mechanism} has {candidate.missing or 'none'})"
        )
    fine = np.geomspace(candidate.low, candidate.high, _FINE)
    privacy, utility = (m.a * np.arctan(m.b * (np.log(fine) - m.c)) + m.d for m in (candidate.privacy, candidate.utility))
    return float(fine[costs("sum", privacy, utility).argmin()])
