"""The setting of PULP's evaluation (Cerf et al., TDSC 2018, §VI-A, §VI-C): the days, the four laws with the objectives of Figures 8 to 11,
and what becomes of users who follow them.

The paper calls a level "achieved" and does not say whether it was read off the model or measured. Here both are told apart: ``model`` is
what the fitted curve says at the recommended setting, ``measured`` what a trace has that is protected again with fresh noise.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mobpriv import estimates
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
    ratio,
    recommend,
    utility_threshold,
)
from mobpriv.pulp.levels import NO_POI
from mobpriv.ranges import whole
from mobpriv.traces import by_user, rows

NONE = "none"  # in the place of a mechanism: no mechanism keeps the law
WITHIN = 0.01  # of the ratio asked for, §VI-C1
# "most users have the same level" (§VI-C): they lie so near the median, as a share of it. The paper gives no number.
SAME = 0.1
SLACK = 1e-9  # a model meets its threshold but for rounding
SHARES = tuple(
    range(5, 100, 5)
)  # percent: of the users, where a distribution is kept; its ends would be two users' own numbers
FEWEST = 5
"""Real users of whom a number must be to be kept: a median or a mean of one is her own, and no single person's numbers are shown."""


class Law(NamedTuple):
    """A law of §IV or §V with the objectives it is tried with; an objective is the tuple of its numbers."""

    name: str
    objectives: tuple[tuple[float, ...], ...]
    recommendation: Callable  # (candidates, *objective)
    met: Callable  # (privacy, utility, *objective) -> truth values

    def of(self, objective: tuple[float, ...], **options) -> Callable:
        """The law for one objective, as :func:`mobpriv.pulp.recommend` takes it."""
        return lambda candidates: self.recommendation(candidates, *objective, **options)


# the paper names three of the five pairs of Figure 9 ((0.3, 0.5), (0.5, 0.9), (0.9, 0.4)); (0.6, 0.7) is that of Table I, the last one ours
PAIRS = ((0.3, 0.5), (0.5, 0.9), (0.6, 0.7), (0.7, 0.6), (0.9, 0.4))
THRESHOLDS = ((0.3,), (0.5,), (0.7,), (0.8,), (0.9,))

PU_RATIO = Law(
    "PU-ratio",
    ((0.5,), (1,), (2,), (3,)),
    ratio,
    lambda privacy, utility, w: np.abs(privacy - w * utility) <= WITHIN * w * utility + SLACK,
)
PU_THLD = Law(
    "PU-thld",
    PAIRS,
    both_thresholds,
    lambda privacy, utility, p, u: (privacy >= p - SLACK) & (utility >= u - SLACK),
)
P_THLD = Law("P-thld", THRESHOLDS, privacy_threshold, lambda privacy, utility, p: privacy >= p - SLACK)
U_THLD = Law("U-thld", THRESHOLDS, utility_threshold, lambda privacy, utility, u: utility >= u - SLACK)
LAWS = (PU_RATIO, PU_THLD, P_THLD, U_THLD)


def prepare(dataset: str, start: str = "", days: int = 30, leave_out: str = "", sample: int = 0) -> Choice:
    """A data set's 30 most active days (§II-A). ``sample``: only so many users, evenly among their names in order; 0 takes all."""
    choice = choose(dataset, start, days, leave_out)
    users = by_user(choice.traces)[0]
    chosen = evenly(users, sample)
    if len(chosen) == len(users):
        return choice
    traces = rows(choice.traces, choice.traces["user"].isin(chosen).to_numpy())
    words = f"{choice.selection}; of these users {len(chosen)}, evenly among their names, with {len(traces):,} records"
    return choice._replace(traces=traces, selection=words)


def cut_rule(choice: Choice, days: int) -> str:
    """Where :func:`mobpriv.traces.split_in_half` cuts the records: in the middle of the days, or of their own span where it is shorter by a
    day or more. Halves of the days would differ in length there, and a setting belongs to a length: a longer trace fills its cells."""
    moment = choice.traces["t"]
    return "calendar" if moment.max() - moment.min() > pd.Timedelta(days=days - 1) else "set"


def evenly(users: pd.Index, sample: int) -> pd.Index:
    """So many of the users, evenly among them in their order; 0, or more than there are, takes all."""
    if not whole("sample", sample, 0) or sample >= len(users):
        return users
    return users[np.linspace(0, len(users) - 1, sample).round().astype(int)]


def fewest(data: Dataset) -> int:
    """How many users a number must be of to be kept: :data:`FEWEST` of real data, of made-up ones a single one."""
    return 1 if data.synthetic else FEWEST


def fitted(
    choice: Choice,
    seeds: Sequence[int],
    sweeps: Sequence[Sweep] = SWEEPS,
    metrics: Metrics = Metrics(),  # noqa: B008 - it cannot be changed
    keep: Callable[[str, Callable], list[dict]] = lambda name, compute: compute(),
    workers: int = 1,
    left_out: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The profile of the users, and their models."""
    measured = profile(choice.traces, sweeps, seeds, metrics, workers, keep)
    return measured, models(measured, sweeps, left_out=left_out)


def recommended(found: pd.DataFrame, law: Law, **options) -> pd.DataFrame:
    """What a law recommends to every user for each of its objectives: the columns of :func:`mobpriv.pulp.recommend` behind ``objective``,
    which is the objective's :func:`text`. A user whom it recommends nothing has the mechanism :data:`NONE`."""
    tables = [recommend(found, law.of(o, **options)).assign(objective=text(o)) for o in law.objectives]
    table = pd.concat(tables, ignore_index=True)
    table["mechanism"] = table["mechanism"].fillna(NONE)
    return table[["objective", *table.columns.drop("objective")]]


def text(objective: tuple[float, ...]) -> str:
    """An objective as names of results have it: "0.5", or of two thresholds, in percent, "30 and 50"."""
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
    """Who follows a recommendation protects the trace again: one row an objective, user and seed, with the measured levels.

    Columns: objective, user, mechanism, value, repetition, privacy, utility. A mechanism that draws nothing has the same levels in every
    repetition. Users without a recommendation have no row.
    """
    columns = ["user", "mechanism", "value"]
    settings = chosen.loc[chosen["mechanism"] != NONE, ["objective", *columns]]
    levels = achieved(choice.traces, settings[columns].drop_duplicates(), sweeps, seeds, metrics, workers, keep)
    once = levels.groupby(columns)["repetition"].transform("size") == 1
    every = [levels[~once], *(levels[once].assign(repetition=i) for i in range(1, 1 + len(seeds)))]
    levels = pd.concat(every)[[*columns, "repetition", "privacy", "utility"]]
    return settings.merge(levels, on=columns).sort_values(["objective", "user", "repetition"], ignore_index=True)


def summary(
    law: Law, chosen: pd.DataFrame, levels: pd.DataFrame, sweeps: Sequence[Sweep] = SWEEPS, least: int = 1
) -> dict[str, Any]:
    """The six panels of Figures 8 to 11, and whether the objectives are kept, by the names that results bear.

    ``chosen``, ``levels``: of :func:`recommended` and :func:`followed`. Of fewer than ``least`` users nothing is kept but shares of all
    (:func:`fewest`). ``o`` stands for an objective's :func:`text`, ``what`` for privacy,
    utility, or ratio (privacy to utility; of no utility infinite). Rates are over users:

    * ``overall.mechanism``: its share of a user's recommendations, over all objectives.
    * ``users``; ``no_model``: who has no model of any mechanism; ``no_poi``: of these, who has no POI.
    * ``share.o.mechanism``: to whom it is recommended (a); :data:`NONE`: nobody keeps the law.
    * ``value.mechanism.o.q``: the q-th percentile of the recommended settings (b), (c), over those users.
    * ``measured.what.o.q``, ``model.what.o.q``: percentiles of the levels (d) to (f), over users with a recommendation; a measured
      level is the user's mean over the draws, its ratio that of the means.
    * ``same.measured.what.o``, ``same.model.what.o``: users with a recommendation whose level is at most :data:`SAME` of it away from the
      median.
    * ``of.mechanism.what.o``: the median of the measured level over those to whom this mechanism is recommended.
    * ``met.measured.o``: users whose objective is met, a user in the share of her draws; ``met.model.o``; ``drawn.o``: over draws.
    * ``median.*``: the fiftieth percentile with its interval.
    """
    # no mechanism keeps any objective for want of a model: the reason says so of each, perhaps of both its levels
    unmodelled = np.all([chosen["reason"].str.contains(rf"{re.escape(s.name)}: \w+: no model") for s in sweeps], axis=0)
    unmodelled = pd.Series(unmodelled, chosen.index)
    everyone, advised = unmodelled.groupby(chosen["user"]).all(), chosen[chosen["mechanism"] != NONE]
    found: dict[str, Any] = {"users": len(everyone), "no_model": estimates.rate(everyone)}
    found["no_poi"] = estimates.rate(chosen["reason"].str.contains(NO_POI, regex=False).groupby(chosen["user"]).all())
    least = whole("least", least, 1)
    for sweep in sweeps if advised["user"].nunique() >= least else ():
        # of all recommendations; who gets several counts in the share of hers
        found[f"overall.{sweep.name}"] = estimates.rate((advised["mechanism"] == sweep.name).groupby(advised["user"]).mean())
    for objective in law.objectives:
        o = text(objective)
        own, drawn = chosen[chosen["objective"] == o], levels[levels["objective"] == o]
        for mechanism in (*(s.name for s in sweeps), NONE):
            found[f"share.{o}.{mechanism}"] = estimates.rate(own["mechanism"] == mechanism)
        for sweep in sweeps:
            values = own.loc[own["mechanism"] == sweep.name, "value"]
            found |= _distribution(f"value.{sweep.name}.{o}", values, least)
        own = own[own["mechanism"] != NONE]
        if len(own) < least:
            continue
        means = drawn.groupby("user")[["privacy", "utility"]].mean()
        for how, table in (("model", own), ("measured", means)):
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = table["privacy"].to_numpy() / table["utility"].to_numpy()
            for what, of in (("privacy", table["privacy"]), ("utility", table["utility"]), ("ratio", ratios)):
                found |= _distribution(f"{how}.{what}.{o}", of, least)
                found |= _alike(how, what, o, np.asarray(of, float))
        by = own.set_index("user")["mechanism"].loc[means.index]
        for mechanism in by.unique():
            hers = means[(by == mechanism).to_numpy()]
            if len(hers) < least:
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                levels_of = hers.assign(ratio=hers["privacy"] / hers["utility"])
            for what in levels_of:
                found[f"of.{mechanism}.{what}.{o}"] = estimates.quantile(levels_of[what], 0.5)
        met = law.met(drawn["privacy"], drawn["utility"], *objective)
        found[f"met.model.{o}"] = estimates.rate(law.met(own["privacy"], own["utility"], *objective))
        found[f"met.measured.{o}"] = estimates.rate(met.groupby(drawn["user"]).mean())
        found[f"drawn.{o}"] = estimates.spread(met.groupby(drawn["repetition"]).mean())
    return found


def near_best(candidates: Sequence[Candidate], least: float, within: float = 0.01) -> Recommendation:
    """U-thld without its hunt for privacy that only a model has: levels are cut at 1, and of the settings whose privacy is at most
    ``within`` below the best that keeps ``least`` utility, that of the highest utility is taken."""
    asked, settings = utility_threshold(candidates, least), []
    for candidate, best in zip(candidates, asked.settings, strict=True):
        if best.value is not None:
            enough = privacy_threshold([candidate], min(max(min(best.privacy, 1.0) - within, 0.0), 1.0)).settings[0]
            settings.append(best if enough.value is None else enough)
    if not settings:
        return asked
    top = max(min(s.privacy, 1.0) for s in settings)
    chosen = max((s for s in settings if min(s.privacy, 1.0) >= top - within), key=lambda s: s.utility)
    return Recommendation(chosen.mechanism, chosen.value, chosen.privacy, chosen.utility, "", tuple(settings))


def check_pois(choice: Choice, metrics: Metrics = Metrics()) -> None:  # noqa: B008
    """ValueError where no user has a POI: nobody has a model then, and there is nothing to show."""
    if not len(metrics.centres(choice.traces).lat):
        raise ValueError(
            f"no user has a POI, a stay of {metrics.duration / 60:g} minutes within {metrics.diameter:g} m: choose other users or days"
        )


def _alike(how: str, what: str, o: str, of: np.ndarray) -> dict[str, Any]:
    """How many users have about the median of a level."""
    middle = np.median(of)
    with np.errstate(invalid="ignore"):  # two infinite ratios are the same, and infinitely far from a finite one
        near = (of == middle) | (np.abs(of - middle) <= SAME * np.abs(middle))
    near &= np.isfinite(of) == np.isfinite(middle)
    return {f"same.{how}.{what}.{o}": estimates.rate(near)}


def alone(found: pd.DataFrame, law: Law, mechanism: str = "Geo-I", least: int = 1) -> dict[str, Any]:
    """The law where one mechanism alone is on offer, by the models: what the other mechanisms change.

    ``alone.given.o``: users with a recommendation; ``alone.value.o``, ``alone.privacy.o``, ``alone.utility.o``, ``alone.ratio.o``: medians
    over these, where they are at least ``least``.
    """
    chosen, told = recommended(found[found["mechanism"] == mechanism], law), {}
    for objective in law.objectives:
        o = text(objective)
        own = chosen[chosen["objective"] == o]
        told[f"alone.given.{o}"] = estimates.rate(own["mechanism"] != NONE)
        own = own[own["mechanism"] != NONE]
        if len(own) >= least:
            for what in ("value", "privacy", "utility"):
                told[f"alone.{what}.{o}"] = estimates.quantile(own[what], 0.5)
            told[f"alone.ratio.{o}"] = estimates.quantile(own["privacy"] / own["utility"], 0.5)
    return told


def typical(found: pd.DataFrame, sweeps: Sequence[Sweep] = SWEEPS, least: int = 1) -> dict[str, Any]:
    """The models of the users who have both, at the settings of the profile: quartiles and median, ``path.mechanism.level.setting.q`` with
    q = 25, 50, 75."""
    kept: dict[str, Any] = {}
    for sweep in sweeps:
        own = found[found["mechanism"] == sweep.name]
        own = own[own["a"].notna().groupby(own["user"]).transform("all")]
        for metric, of in own.groupby("metric"):
            a, b, c, d = (of[name].to_numpy()[:, None] for name in "abcd")
            levels = a * np.arctan(b * (np.log(sweep.values) - c)) + d
            for value, at in zip(sweep.values, levels.T, strict=True) if len(of) >= least else ():
                name = f"path.{sweep.name}.{metric}.{float(f'{value:.3g}')}"
                kept |= dict(zip((f"{name}.{q}" for q in (25, 50, 75)), percentiles(at, (25, 50, 75), least), strict=True))
    return kept


def span(values, rng: np.random.Generator, times: int = 1000) -> estimates.Estimate:
    """By what factor the ninetieth percentile of n users' settings exceeds the tenth, with the interval of resampled users (percentile
    bootstrap). ValueError for fewer than ten: a tenth of them is nobody."""
    values = np.asarray(values, float)
    if len(values) < 10:
        raise ValueError(f"a factor between tenths needs at least 10 users (got {len(values)})")
    drawn = np.percentile(values[rng.integers(len(values), size=(times, len(values)))], [90, 10], axis=1)
    low, high = np.percentile(drawn[0] / drawn[1], [2.5, 97.5])
    upper, lower = np.percentile(values, [90, 10])
    return estimates.Estimate(float(upper / lower), float(low), float(high), len(values))


def percentiles(values, shares: Sequence[float], least: int = 1, method: str = "linear") -> list[float]:
    """Percentiles that are no single person's number: each is the mean of the ``least`` values nearest to it in order (:func:`fewest`).

    ValueError for fewer values than that.
    """
    values = np.sort(np.asarray(values, float))
    if len(values) < least:
        raise ValueError(f"a percentile is that of at least {least} users (got {len(values)})")
    if least == 1:
        return np.percentile(values, shares, method=method).tolist()
    begins = np.clip(np.ceil(np.asarray(shares) / 100 * len(values)).astype(int) - 1 - least // 2, 0, len(values) - least)
    return [float(values[i : i + least].mean()) for i in begins]


def _distribution(name: str, values, least: int) -> dict[str, Any]:
    """Percentiles of values, which may be infinite, and the median with its interval; nothing of fewer than ``least`` values."""
    values = np.asarray(values, float)
    if len(values) < max(least, 1):
        return {}
    places = percentiles(values, SHARES, least, "inverted_cdf")
    kept = {f"{name}.{q}": x for q, x in zip(SHARES, places, strict=True)}
    return kept | {f"median.{name}": estimates.quantile(values, 0.5)}


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
    """PU-ratio asked of the traces instead of their models: the setting at which mean privacy is ``w`` times mean utility.

    For each row of ``chosen`` (user, mechanism, value) the interval from value / ``reach`` to value · ``reach``, cut to the mechanism's
    range, is halved until its ends differ by a share of ``width``; each setting tried is protected once for each of ``seeds`` (once by a
    mechanism that draws nothing). Columns: user, mechanism, value (the last middle), bracketed (the sign differs at the ends: there is
    something to find), nearest (the least |mean privacy / (w · mean utility) − 1| of all settings tried).
    """
    by_name = {s.name: s for s in sweeps}
    found = chosen[["user", "mechanism", "value"]].reset_index(drop=True)
    range_low, range_high = (np.array([getattr(by_name[m], end) for m in found["mechanism"]], float) for end in ("low", "high"))
    low, high = (np.log(np.clip(found["value"] * factor, range_low, range_high)).to_numpy() for factor in (1 / reach, reach))
    nearest = np.full(len(found), np.inf)

    def apart(x: np.ndarray) -> np.ndarray:
        """Mean privacy less w times mean utility at ln settings, one a row."""
        asked = found.assign(value=np.exp(x))
        levels = achieved(choice.traces, asked, sweeps, seeds, metrics, workers)
        means = levels.groupby(["user", "mechanism"])[["privacy", "utility"]].mean()
        own = means.loc[pd.MultiIndex.from_frame(found[["user", "mechanism"]])].to_numpy().T
        with np.errstate(divide="ignore", invalid="ignore"):
            np.fmin(nearest, np.abs(own[0] / (w * own[1]) - 1), out=nearest)
        return own[0] - w * own[1]

    if len(found):
        left, right = apart(low), apart(high)
        found["bracketed"] = left * right <= 0
        while (high - low).max() > np.log1p(width):
            middle = (low + high) / 2
            value = apart(middle)
            same = left * value > 0
            low, high, left = np.where(same, middle, low), np.where(same, high, middle), np.where(same, value, left)
    return found.assign(value=np.exp((low + high) / 2), nearest=nearest)
