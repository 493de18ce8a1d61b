"""The setting of PULP's evaluation: the days, the four laws with the objectives of Figures 8 to 11, and their outcome.

The paper calls a level "achieved" and does not say whether it was computed from the model or measured. We report both:
``model`` is the fitted curve at the recommended setting, ``measured`` the level of a trace protected again with fresh noise.

Source: Cerf et al., TDSC 2018, §VI-A, §VI-C.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base import estimates
from mobpriv.base.numbers import shown
from mobpriv.base.ranges import whole
from mobpriv.datasets import Dataset
from mobpriv.experiments.days import Choice, choose
from mobpriv.pulp import (
    SWEEPS,
    Candidate,
    Metrics,
    Recommendation,
    Sweep,
    achieved,
    both_thresholds,
    models,
    privacy_threshold,
    profile,
    pu_ratio,
    recommend,
    utility_threshold,
)
from mobpriv.pulp.levels import NO_POI
from mobpriv.traces.table import by_user, rows

NO_MECHANISM = "none"  # instead of a mechanism: no mechanism satisfies the law
RATIO_TOLERANCE = 0.01  # tolerance, as a share of the ratio asked for (§VI-C1)
# "most users have the same level" (§VI-C): largest distance to the median, as a share of it. The paper gives no number.
_SAME_LEVEL = 0.1
SLACK = 1e-9  # tolerance for rounding when a model meets its threshold
# per cent of the users at which a distribution is stored; its ends would be two users' own numbers
_PERCENTILES = tuple(range(5, 100, 5))
_FEWEST_USERS = 5
"""Least number of real users behind a stored number: the median of one user is her own number, and no person's numbers are shown."""


class Law(NamedTuple):
    """A law of §IV or §V with the objectives to try; an objective is the tuple of its numbers."""

    name: str
    objectives: tuple[tuple[float, ...], ...]
    recommendation: Callable  # (candidates, *objective)
    met: Callable  # (privacy, utility, *objective) -> truth values

    def of(self, objective: tuple[float, ...], **options) -> Callable:
        """Return the law for one objective, as :func:`mobpriv.pulp.recommend` takes it."""
        return lambda candidates: self.recommendation(candidates, *objective, **options)


# the paper names three of Figure 9's five pairs: (0.3, 0.5), (0.5, 0.9), (0.9, 0.4); (0.6, 0.7) is from Table I, (0.7, 0.6) our choice
THRESHOLD_PAIRS = ((0.3, 0.5), (0.5, 0.9), (0.6, 0.7), (0.7, 0.6), (0.9, 0.4))
_THRESHOLDS = ((0.3,), (0.5,), (0.7,), (0.8,), (0.9,))

PU_RATIO = Law(
    "PU-ratio",
    ((0.5,), (1,), (2,), (3,)),
    pu_ratio,
    lambda privacy, utility, w: np.abs(privacy - w * utility) <= RATIO_TOLERANCE * w * utility + SLACK,
)
PU_THLD = Law(
    "PU-thld",
    THRESHOLD_PAIRS,
    both_thresholds,
    lambda privacy, utility, p, u: (privacy >= p - SLACK) & (utility >= u - SLACK),
)
P_THLD = Law("P-thld", _THRESHOLDS, privacy_threshold, lambda privacy, utility, p: privacy >= p - SLACK)
U_THLD = Law("U-thld", _THRESHOLDS, utility_threshold, lambda privacy, utility, u: utility >= u - SLACK)
CONFIGURATION_LAWS = (PU_RATIO, PU_THLD, P_THLD, U_THLD)


def prepare(dataset: str, start: str = "", days: int = 30, leave_out: str = "", sample: int = 0) -> Choice:
    """Choose a data set's 30 most active days (§II-A); ``sample``: only so many users, evenly spaced by name, 0 takes all."""
    choice = choose(dataset, start, days, leave_out)
    users = by_user(choice.traces)[0]
    chosen = evenly_spaced(users, sample)
    if len(chosen) == len(users):
        return choice
    traces = rows(choice.traces, choice.traces["user"].isin(chosen).to_numpy())
    words = f"{choice.selection}. We use {len(chosen)} of these users, at equal steps in the list sorted by name, with {shown(len(traces))} records"
    return choice._replace(traces=traces, selection=words)


def cut_rule(choice: Choice, days: int) -> str:
    """Return the rule by which :func:`mobpriv.traces.table.split_in_half` cuts: middle of the days or of the records' span.

    The own span is used if it is shorter than the days by a day or more. Otherwise the halves would differ in length, and a
    setting depends on the length: a longer trace visits more cells.
    """
    moment = choice.traces["t"]
    return "calendar" if moment.max() - moment.min() > pd.Timedelta(days=days - 1) else "set"


def evenly_spaced(users: pd.Index, sample: int) -> pd.Index:
    """Choose so many of the users, evenly spaced in their order; 0, or more than there are, takes all."""
    if not whole("sample", sample, 0) or sample >= len(users):
        return users
    return users[np.linspace(0, len(users) - 1, sample).round().astype(int)]


def fewest_users(data: Dataset) -> int:
    """Return the least number of users behind a stored number: :data:`_FEWEST_USERS` for real data, 1 for synthetic data."""
    return 1 if data.synthetic else _FEWEST_USERS


def profile_and_fit(
    choice: Choice,
    seeds: Sequence[int],
    sweeps: Sequence[Sweep] = SWEEPS,
    metrics: Metrics = Metrics(),  # noqa: B008 - it cannot be changed
    keep: Callable[[str, Callable], list[dict]] = lambda name, compute: compute(),
    workers: int = 1,
    left_out: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Profile the users and fit their models."""
    measured = profile(choice.traces, sweeps, seeds, metrics, workers, keep)
    return measured, models(measured, sweeps, left_out=left_out)


def recommended(fits: pd.DataFrame, law: Law, **options) -> pd.DataFrame:
    """Return a law's recommendation to every user for each of its objectives.

    Columns: ``objective`` (its :func:`objective_text`) and those of :func:`mobpriv.pulp.recommend`. A user without a
    recommendation has the mechanism :data:`NO_MECHANISM`.
    """
    tables = [recommend(fits, law.of(o, **options)).assign(objective=objective_text(o)) for o in law.objectives]
    table = pd.concat(tables, ignore_index=True)
    table["mechanism"] = table["mechanism"].fillna(NO_MECHANISM)
    return table[["objective", *table.columns.drop("objective")]]


def objective_text(objective: tuple[float, ...]) -> str:
    """Write an objective as in names of results: "0.5", or for two thresholds, in per cent, "30 and 50"."""
    return " and ".join(f"{100 * n:g}" for n in objective) if len(objective) > 1 else f"{objective[0]:g}"


def followed(
    choice: Choice,
    chosen: pd.DataFrame,
    seeds: Sequence[int],
    sweeps: Sequence[Sweep] = SWEEPS,
    metrics: Metrics = Metrics(),  # noqa: B008
    keep: Callable[[str, Callable], list[dict]] = lambda name, compute: compute(),
    workers: int = 1,
) -> pd.DataFrame:
    """Protect the traces again as recommended: one row per objective, user and seed, with the measured levels.

    Columns: objective, user, mechanism, value, repetition, privacy, utility. A deterministic mechanism has the same levels in
    every repetition. Users without a recommendation have no row.
    """
    columns = ["user", "mechanism", "value"]
    settings = chosen.loc[chosen["mechanism"] != NO_MECHANISM, ["objective", *columns]]
    levels = achieved(choice.traces, settings[columns].drop_duplicates(), sweeps, seeds, metrics, workers, keep)
    deterministic = levels.groupby(columns)["repetition"].transform("size") == 1
    repeated = [levels[~deterministic], *(levels[deterministic].assign(repetition=i) for i in range(1, 1 + len(seeds)))]
    levels = pd.concat(repeated)[[*columns, "repetition", "privacy", "utility"]]
    return settings.merge(levels, on=columns).sort_values(["objective", "user", "repetition"], ignore_index=True)


def summary(
    law: Law, chosen: pd.DataFrame, levels: pd.DataFrame, sweeps: Sequence[Sweep] = SWEEPS, least: int = 1
) -> dict[str, Any]:
    """Compute the six panels of Figures 8 to 11, and how often the objectives are met, by the names of results.

    ``chosen``, ``levels``: from :func:`recommended` and :func:`followed`. For fewer than ``least`` users
    (:func:`fewest_users`) only shares of all users are stored. ``o`` is an objective's :func:`objective_text`, ``what`` is
    privacy, utility, or ratio (privacy to utility; infinite without utility). Rates are over users:

    * ``overall.mechanism``: its share of a user's recommendations, over all objectives.
    * ``users``; ``no_model``: users without a model of any mechanism; ``no_poi``: those of them without a POI.
    * ``share.o.mechanism``: share of users with this recommendation (a); :data:`NO_MECHANISM`: no mechanism satisfies the law.
    * ``value.mechanism.o.q``: the q-th percentile of the recommended settings (b), (c), over those users.
    * ``measured.what.o.q``, ``model.what.o.q``: percentiles of the levels (d) to (f), over users with a recommendation. A
      measured level is the user's mean over the repetitions, its ratio that of the means.
    * ``same.measured.what.o``, ``same.model.what.o``: users with a recommendation whose level is within :data:`_SAME_LEVEL` of
      the median, as a share of it.
    * ``of.mechanism.what.o``: the median measured level of the users with this recommendation.
    * ``met.measured.o``: users whose objective is met, each by her share of repetitions; ``met.model.o``; ``drawn.o``: over
      repetitions.
    * ``median.*``: the fiftieth percentile with its interval.
    """
    # without a model no mechanism satisfies any objective: the reason names each mechanism, perhaps for both levels
    unmodelled = np.all([chosen["reason"].str.contains(rf"{re.escape(s.name)}: \w+: no model") for s in sweeps], axis=0)
    unmodelled = pd.Series(unmodelled, chosen.index)
    everyone, advised = unmodelled.groupby(chosen["user"]).all(), chosen[chosen["mechanism"] != NO_MECHANISM]
    results: dict[str, Any] = {"users": len(everyone), "no_model": estimates.rate(everyone)}
    results["no_poi"] = estimates.rate(chosen["reason"].str.contains(NO_POI, regex=False).groupby(chosen["user"]).all())
    least = whole("least", least, 1)
    for sweep in sweeps if advised["user"].nunique() >= least else ():
        # over all recommendations; a user with several counts by the share of hers
        results[f"overall.{sweep.name}"] = estimates.rate((advised["mechanism"] == sweep.name).groupby(advised["user"]).mean())
    for objective in law.objectives:
        o = objective_text(objective)
        recommendations, measured = chosen[chosen["objective"] == o], levels[levels["objective"] == o]
        for mechanism in (*(s.name for s in sweeps), NO_MECHANISM):
            results[f"share.{o}.{mechanism}"] = estimates.rate(recommendations["mechanism"] == mechanism)
        for sweep in sweeps:
            values = recommendations.loc[recommendations["mechanism"] == sweep.name, "value"]
            results |= _distribution(f"value.{sweep.name}.{o}", values, least)
        recommendations = recommendations[recommendations["mechanism"] != NO_MECHANISM]
        if len(recommendations) < least:
            continue
        means = measured.groupby("user")[["privacy", "utility"]].mean()
        for how, table in (("model", recommendations), ("measured", means)):
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = table["privacy"].to_numpy() / table["utility"].to_numpy()
            for what, level_values in (("privacy", table["privacy"]), ("utility", table["utility"]), ("ratio", ratios)):
                results |= _distribution(f"{how}.{what}.{o}", level_values, least)
                results |= _share_near_median(how, what, o, np.asarray(level_values, float))
        mechanisms = recommendations.set_index("user")["mechanism"].loc[means.index]
        for mechanism in mechanisms.unique():
            mechanism_means = means[(mechanisms == mechanism).to_numpy()]
            if len(mechanism_means) < least:
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                levels_of = mechanism_means.assign(ratio=mechanism_means["privacy"] / mechanism_means["utility"])
            for what in levels_of:
                results[f"of.{mechanism}.{what}.{o}"] = estimates.quantile(levels_of[what], 0.5)
        met = law.met(measured["privacy"], measured["utility"], *objective)
        results[f"met.model.{o}"] = estimates.rate(law.met(recommendations["privacy"], recommendations["utility"], *objective))
        results[f"met.measured.{o}"] = estimates.rate(met.groupby(measured["user"]).mean())
        results[f"drawn.{o}"] = estimates.spread(met.groupby(measured["repetition"]).mean())
    return results


def near_best(candidates: Sequence[Candidate], least: float, within: float = 0.01) -> Recommendation:
    """Apply U-thld without its preference for privacy that exists only in the model.

    Levels are clamped at 1. The law finds the best privacy that has ``least`` utility. Then the setting of highest utility is
    chosen among those whose privacy is at most ``within`` lower.
    """
    law_result, settings = utility_threshold(candidates, least), []
    for candidate, best in zip(candidates, law_result.settings, strict=True):
        if best.value is not None:
            relaxed = privacy_threshold([candidate], min(max(min(best.privacy, 1.0) - within, 0.0), 1.0)).settings[0]
            settings.append(best if relaxed.value is None else relaxed)
    if not settings:
        return law_result
    best_privacy = max(min(s.privacy, 1.0) for s in settings)
    chosen = max((s for s in settings if min(s.privacy, 1.0) >= best_privacy - within), key=lambda s: s.utility)
    return Recommendation(chosen.mechanism, chosen.value, chosen.privacy, chosen.utility, "", tuple(settings))


def check_pois(choice: Choice, metrics: Metrics = Metrics()) -> None:  # noqa: B008
    """Raise ValueError if no user has a POI: then nobody has a model, and there is nothing to show."""
    if not len(metrics.centres(choice.traces).lat):
        raise ValueError(
            f"no user has a POI, a stay of {metrics.duration / 60:g} minutes within {metrics.diameter:g} m: choose other users or days"
        )


def _share_near_median(how: str, what: str, o: str, levels: np.ndarray) -> dict[str, Any]:
    """Return the share of users whose level is about the median."""
    middle = np.median(levels)
    with np.errstate(invalid="ignore"):  # two infinite ratios are equal, and infinitely far from a finite one
        near = (levels == middle) | (np.abs(levels - middle) <= _SAME_LEVEL * np.abs(middle))
    near &= np.isfinite(levels) == np.isfinite(middle)
    return {f"same.{how}.{what}.{o}": estimates.rate(near)}


def single_mechanism(fits: pd.DataFrame, law: Law, mechanism: str = "Geo-I", least: int = 1) -> dict[str, Any]:
    """Apply the law to one mechanism alone, by the models, to show what the other mechanisms change.

    ``alone.given.o``: users with a recommendation; ``alone.value.o``, ``alone.privacy.o``, ``alone.utility.o``,
    ``alone.ratio.o``: medians over these, if they are at least ``least``.
    """
    chosen, results = recommended(fits[fits["mechanism"] == mechanism], law), {}
    for objective in law.objectives:
        o = objective_text(objective)
        recommendations = chosen[chosen["objective"] == o]
        results[f"alone.given.{o}"] = estimates.rate(recommendations["mechanism"] != NO_MECHANISM)
        recommendations = recommendations[recommendations["mechanism"] != NO_MECHANISM]
        if len(recommendations) >= least:
            for what in ("value", "privacy", "utility"):
                results[f"alone.{what}.{o}"] = estimates.quantile(recommendations[what], 0.5)
            results[f"alone.ratio.{o}"] = estimates.quantile(recommendations["privacy"] / recommendations["utility"], 0.5)
    return results


def model_quartiles(fits: pd.DataFrame, sweeps: Sequence[Sweep] = SWEEPS, least: int = 1) -> dict[str, Any]:
    """Return quartiles of the models at the profile's settings: ``path.mechanism.level.setting.q`` with q = 25, 50, 75.

    Only users with a model of both levels count.
    """
    results: dict[str, Any] = {}
    for sweep in sweeps:
        mechanism_fits = fits[fits["mechanism"] == sweep.name]
        mechanism_fits = mechanism_fits[mechanism_fits["a"].notna().groupby(mechanism_fits["user"]).transform("all")]
        for metric, metric_fits in mechanism_fits.groupby("metric"):
            a, b, c, d = (metric_fits[name].to_numpy()[:, None] for name in "abcd")
            levels = a * np.arctan(b * (np.log(sweep.values) - c)) + d
            for value, user_levels in zip(sweep.values, levels.T, strict=True) if len(metric_fits) >= least else ():
                name = f"path.{sweep.name}.{metric}.{float(f'{value:.3g}')}"
                quartiles = averaged_percentiles(user_levels, (25, 50, 75), least)
                results |= {f"{name}.{q}": x for q, x in zip((25, 50, 75), quartiles, strict=True)}
    return results


def percentile_ratio(values, rng: np.random.Generator, times: int = 1000) -> estimates.Estimate:
    """Return the ratio of the 90th to the 10th percentile of n users' settings, with a bootstrap interval over users.

    ValueError for fewer than ten users: a tenth of them is nobody.
    """
    values = np.asarray(values, float)
    if len(values) < 10:
        raise ValueError(f"a ratio of the 90th to the 10th percentile needs at least 10 users (got {len(values)})")
    drawn = np.percentile(values[rng.integers(len(values), size=(times, len(values)))], [90, 10], axis=1)
    low, high = np.percentile(drawn[0] / drawn[1], [2.5, 97.5])
    upper, lower = np.percentile(values, [90, 10])
    return estimates.Estimate(float(upper / lower), float(low), float(high), len(values), "bootstrap over users, 95 %")


def averaged_percentiles(values, shares: Sequence[float], least: int = 1, method: str = "linear") -> list[float]:
    """Return percentiles that are not one person's number: means of the ``least`` values nearest in order.

    ``least``: see :func:`fewest_users`. ValueError for fewer values than ``least``.
    """
    values = np.sort(np.asarray(values, float))
    if len(values) < least:
        raise ValueError(f"a percentile needs at least {least} users (got {len(values)})")
    if least == 1:
        return np.percentile(values, shares, method=method).tolist()
    begins = np.clip(np.ceil(np.asarray(shares) / 100 * len(values)).astype(int) - 1 - least // 2, 0, len(values) - least)
    return [float(values[i : i + least].mean()) for i in begins]


def _distribution(name: str, values, least: int) -> dict[str, Any]:
    """Return percentiles of values, perhaps infinite, and the median with its interval; nothing below ``least`` values."""
    values = np.asarray(values, float)
    if len(values) < max(least, 1):
        return {}
    places = averaged_percentiles(values, _PERCENTILES, least, "inverted_cdf")
    results = {f"{name}.{q}": x for q, x in zip(_PERCENTILES, places, strict=True)}
    return results | {f"median.{name}": estimates.quantile(values, 0.5)}


def search_ratio(
    choice: Choice,
    chosen: pd.DataFrame,
    w: float,
    seeds: Sequence[int],
    sweeps: Sequence[Sweep] = SWEEPS,
    metrics: Metrics = Metrics(),  # noqa: B008
    reach: float = 4.0,
    width: float = 0.02,
    workers: int = 1,
) -> pd.DataFrame:
    """Solve PU-ratio on the traces instead of on their models: find the setting where mean privacy is ``w`` times mean utility.

    ``chosen`` has the columns user, mechanism, value. The interval from value / ``reach`` to value · ``reach``, clamped to the
    mechanism's range, is bisected until its ends differ by a share of ``width``. Each setting is protected once per seed (once
    by a deterministic mechanism). Columns:

    * user, mechanism, value (the last middle).
    * bracketed: whether the sign differs at the ends, so that a solution exists.
    * nearest: the least |mean privacy / (w · mean utility) − 1| of all settings tried.
    """
    by_name = {s.name: s for s in sweeps}
    settings = chosen[["user", "mechanism", "value"]].reset_index(drop=True)
    range_low, range_high = (
        np.array([getattr(by_name[m], end) for m in settings["mechanism"]], float) for end in ("low", "high")
    )
    low, high = (np.log(np.clip(settings["value"] * factor, range_low, range_high)).to_numpy() for factor in (1 / reach, reach))
    nearest = np.full(len(settings), np.inf)

    def difference(x: np.ndarray) -> np.ndarray:
        """Return mean privacy minus w times mean utility at ln settings, one per row."""
        tried = settings.assign(value=np.exp(x))
        levels = achieved(choice.traces, tried, sweeps, seeds, metrics, workers)
        means = levels.groupby(["user", "mechanism"])[["privacy", "utility"]].mean()
        user_means = means.loc[pd.MultiIndex.from_frame(settings[["user", "mechanism"]])].to_numpy().T
        with np.errstate(divide="ignore", invalid="ignore"):
            np.fmin(nearest, np.abs(user_means[0] / (w * user_means[1]) - 1), out=nearest)
        return user_means[0] - w * user_means[1]

    if len(settings):
        left, right = difference(low), difference(high)
        settings["bracketed"] = left * right <= 0
        while (high - low).max() > np.log1p(width):
            middle = (low + high) / 2
            value = difference(middle)
            same_sign = left * value > 0
            low, high = np.where(same_sign, middle, low), np.where(same_sign, high, middle)
            left = np.where(same_sign, value, left)
    return settings.assign(value=np.exp((low + high) / 2), nearest=nearest)
