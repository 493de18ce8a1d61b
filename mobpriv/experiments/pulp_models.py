"""PULP's models: references, other curves, fewer settings, and choices that the paper leaves open.

Source (extended here): Cerf et al., TDSC 2018, §III and §VI-B.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, log10, pi, tan
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares, minimize
from scipy.special import erf, expit
from sklearn.isotonic import IsotonicRegression

from mobpriv.base import estimates
from mobpriv.base.ranges import between, one_of, positive, true_or_false, whole
from mobpriv.mechanisms import Promesse
from mobpriv.pulp import SWEEPS, Arctan, Candidate, CandidateSetting, Metrics, Recommendation, Sweep, fit
from mobpriv.pulp.configurator import best_candidate, infeasible
from mobpriv.pulp.modeler import COEFFICIENTS, METRIC_NAMES, OUTLIER, coarse_search, log_points
from mobpriv.traces.table import Traces, by_user, from_blocks, milliseconds

# ---- References for PULP's models: fresh noise, the monotone trend that the paper assumes, and Promesse without its slowness
MODEL_KEYS = ["user", "mechanism", "metric"]


def long_format(profile: pd.DataFrame) -> pd.DataFrame:
    """Reshape a profile to one row per level: user, mechanism, metric, value, repetition, level; unknown levels are left out."""
    id_columns = ["user", "mechanism", "value", "repetition"]
    table = profile.melt(id_columns, list(METRIC_NAMES), "metric", "level")
    return table.dropna(subset="level", ignore_index=True)


def variance_on(models: pd.DataFrame, profile: pd.DataFrame) -> pd.Series:
    """Return the models' mean square error at the levels of a profile, by user, mechanism and metric.

    ``models``: from :func:`mobpriv.pulp.models`; one without coefficients has no error. A profile other than the fitted one
    gives the error at fresh noise, or at other settings.
    """
    table = long_format(profile).merge(models[[*MODEL_KEYS, "a", "b", "c", "d"]], on=MODEL_KEYS)
    error = table["a"] * np.arctan(table["b"] * (np.log(table["value"]) - table["c"])) + table["d"] - table["level"]
    return (error**2).groupby([table[key] for key in MODEL_KEYS]).mean().dropna().rename("variance")


def line_variance(profile: pd.DataFrame) -> pd.Series:
    """Return the mean square error of the least-squares line in ln ε, by user, mechanism and metric.

    A curve with a larger error has not modelled anything.
    """

    def variance(table: pd.DataFrame) -> float:
        x, y = np.log(table["value"].to_numpy()), table["level"].to_numpy()
        x = x - x.mean()
        slope = x @ y / max(x @ x, 1e-300)
        return float(np.mean((y - y.mean() - slope * x) ** 2))

    return long_format(profile).groupby(MODEL_KEYS)[["value", "level"]].apply(variance).rename("variance")


def noise_of(profile: pd.DataFrame) -> pd.Series:
    """Return the variance of a level between repetitions of one setting, averaged over settings, by user, mechanism and metric."""
    table = long_format(profile)
    each = table.groupby([*MODEL_KEYS, "value"])["level"].var(ddof=1)
    return each.groupby(level=MODEL_KEYS).mean().rename("noise")


def reversals(profile: pd.DataFrame) -> pd.DataFrame:
    """Return how far a level, averaged over its repetitions, moves against its trend, by user, mechanism and metric.

    * ``reversal``: the largest fall of a level that rises overall, or the largest rise of one that falls.
    * ``errors``: the reversal in standard errors of the difference of these two means (infinite without noise, 0 without a
      reversal).
    """
    table = long_format(profile).groupby([*MODEL_KEYS, "value"])["level"].agg(["mean", "var", "size"]).reset_index("value")
    rows = []
    for key, settings in table.groupby(level=MODEL_KEYS):
        m, error = settings["mean"].to_numpy(), (settings["var"].fillna(0.0) / settings["size"]).to_numpy()
        moves = np.triu(m[None, :] - m[:, None], 1)  # [i, j]: the move from setting i to the later j
        against = -moves if -moves.min() <= moves.max() else moves  # the smaller of the fall and the rise
        i, j = np.unravel_index(against.argmax(), against.shape)
        reversal = float(max(against[i, j], 0.0))
        with np.errstate(divide="ignore"):
            errors = float(reversal / np.sqrt(error[i] + error[j])) if reversal > 0 else 0.0
        rows.append((*key, reversal, errors))
    return pd.DataFrame(rows, columns=[*MODEL_KEYS, "reversal", "errors"]).set_index(MODEL_KEYS)


@dataclass(frozen=True)
class PromesseAtSpeed:
    """Promesse with its points published as if the user had walked at ``speed``: the same places in fewer days.

    Promesse spreads its points evenly over the time of the trace. The speed is then the length of the walk over the whole time,
    pauses included. A user who moves little is slow throughout: if 200 m take 15 minutes, every place is a stop.
    """

    alpha: float = 200.0  # m
    speed: float = 1.0  # m/s
    name = "Promesse, hurried"
    random = False

    def __post_init__(self):
        positive("alpha", self.alpha, "m")
        positive("speed", self.speed, "m/s")

    def protect(self, traces: Traces, rng: np.random.Generator | None = None) -> Traces:
        published = Promesse(self.alpha).protect(traces, rng)
        users, offsets = by_user(published)
        place = np.arange(len(published)) - np.repeat(offsets[:-1], np.diff(offsets))
        begins = milliseconds(published)[np.repeat(offsets[:-1], np.diff(offsets))]
        time = begins + np.ceil(1000 * self.alpha / self.speed * place).astype(np.int64)
        return from_blocks(users, np.diff(offsets), time, published["lat"].to_numpy(), published["lng"].to_numpy())


def walking_speed(traces: Traces, alpha: float = 200.0) -> pd.Series:
    """Return the speed in m/s between successive points that Promesse publishes for each user; NaN for fewer than two points."""
    published = Promesse(alpha).protect(traces)
    users, offsets = by_user(published)
    time = milliseconds(published)
    n = np.diff(offsets)
    seconds = (time[offsets[1:] - 1] - time[offsets[:-1]]) / 1000
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.where(n > 1, alpha * (n - 1) / seconds, np.nan)
    return pd.Series(speed, users).reindex(by_user(traces)[0])


# ------------------------------------------------------------------------------------ Compare simple curves for PULP's levels
# The paper chooses the arctan of ln ε "instead of general polynomial functions". Here others are fitted to the same points:
#
# * sigmoids of four coefficients with the robust loss, bounds and search of :func:`mobpriv.pulp.fit`;
# * polynomials with this loss;
# * an isotonic regression, which assumes only a trend.
_EXPONENT_BOUND = 50.0  # bound of |u| in exp(u): beyond it nothing changes
# as in mobpriv.pulp.modeler; a test compares them
_SPEEDS, _BEYOND, _LATTICE = (1e-2, 1e2), 0.5, ((0.1, 0.3, 1, 3, 10, 30, 100), 49)
_FINE = (np.geomspace(0.05, 100, 34), 481)  # for the broken line: without a setting on its slope, a search has no gradient

Curve = Callable[[np.ndarray], np.ndarray]  # ε -> levels

# the curve from 0 to 1, and its slope; u = b (ln ε − c)
SIGMOIDS: dict[str, tuple[Callable, Callable]] = {
    "arctan": (lambda u: 0.5 + np.arctan(u) / np.pi, lambda u: 1 / (np.pi * (1 + u * u))),
    "logistic": (expit, lambda u: expit(u) * expit(-u)),
    "error function": (lambda u: 0.5 * (1 + erf(u)), lambda u: np.exp(-np.minimum(u * u, _EXPONENT_BOUND)) / np.sqrt(np.pi)),
    "Gompertz": (lambda u: np.exp(-np.exp(-_cut(u))), lambda u: np.exp(-_cut(u) - np.exp(-_cut(u)))),
    "Gompertz, mirrored": (lambda u: -np.expm1(-np.exp(_cut(u))), lambda u: np.exp(_cut(u) - np.exp(_cut(u)))),
    "broken line": (lambda u: np.clip(0.5 + u, 0, 1), lambda u: (np.abs(u) < 0.5).astype(float)),
}
POLYNOMIALS = {"constant": 0, "straight line": 1, "cubic": 3}
IN_EPSILON, ISOTONIC = "arctan of ε", "isotonic"
# saturation levels within the range of the metrics
BOUNDED_SHAPES = {"arctan in [0, 1]": "arctan", "logistic in [0, 1]": "logistic"}
SHAPES = (*SIGMOIDS, *BOUNDED_SHAPES, IN_EPSILON, *POLYNOMIALS, ISOTONIC)


def _cut(u):
    return np.clip(u, -_EXPONENT_BOUND, _EXPONENT_BOUND)


def curve(shape: str, values, levels, rises: bool) -> Curve:
    """Fit a curve of a shape to levels at ``values`` of ε; ``rises``: whether the level is expected to rise with ε.

    :data:`IN_EPSILON` is the arctan of ε itself, without the logarithm, with the same bounds as shares of the range. The
    isotonic curve is linear between the settings and constant beyond them. ValueError for fewer than four different values, the
    number of coefficients, and for invalid values and levels.
    """
    one_of("shape", shape, SHAPES)
    true_or_false("rises", rises)
    x, y = log_points(values, levels)
    values = np.asarray(values, float)
    if len(np.unique(x)) < COEFFICIENTS:
        raise ValueError(f"a curve needs at least {COEFFICIENTS} different values (got {len(np.unique(x))})")
    if shape == ISOTONIC:
        isotonic = IsotonicRegression(increasing=rises, out_of_bounds="clip").fit(x, y)
        return lambda at: isotonic.predict(np.log(np.asarray(at, float)))
    if shape in POLYNOMIALS:
        return _polynomial(x, y, POLYNOMIALS[shape])
    if (y == y[0]).all():
        return lambda at: np.full(np.shape(at), y[0])
    if shape != IN_EPSILON:
        sigmoid = SIGMOIDS[BOUNDED_SHAPES.get(shape, shape)]
        p = _sigmoid(x, y, *sigmoid, beyond=0.0 if shape in BOUNDED_SHAPES else _BEYOND)
        return lambda at: _between(p, np.log(np.asarray(at, float)), sigmoid[0])
    low, high = values.min(), values.max()
    scaled = lambda at: np.ptp(x) * (np.asarray(at, float) - low) / (high - low)  # noqa: E731
    p = _sigmoid(scaled(values), y, *SIGMOIDS["arctan"])
    return lambda at: _between(p, scaled(at), SIGMOIDS["arctan"][0])


def _polynomial(x: np.ndarray, y: np.ndarray, degree: int) -> Curve:
    middle, half = (x.min() + x.max()) / 2, max(np.ptp(x) / 2, 1e-9)
    powers = lambda at: np.vander((at - middle) / half, degree + 1)  # noqa: E731
    start = np.linalg.lstsq(powers(x), y, rcond=None)[0]
    slopes = powers(x)
    coefficients = least_squares(lambda p: slopes @ p - y, start, lambda p: slopes, loss="soft_l1", f_scale=OUTLIER).x
    return lambda at: powers(np.log(np.asarray(at, float))) @ coefficients


def _between(p: np.ndarray, x: np.ndarray, sigmoid: Callable) -> np.ndarray:
    """Evaluate the curve; p: level far left, level far right, ln b, c."""
    return p[0] + (p[1] - p[0]) * sigmoid(np.exp(p[2]) * (x - p[3]))


def _sigmoid(x: np.ndarray, y: np.ndarray, sigmoid: Callable, slope: Callable, beyond: float = _BEYOND) -> np.ndarray:
    low, high = min(0.0, y.min()) - beyond, max(1.0, y.max()) + beyond
    width = np.ptp(x)
    bounds = np.array([[low, low, log(_SPEEDS[0]), x.min() - width], [high, high, log(_SPEEDS[1]), x.max() + width]])

    def errors(p):
        return _between(p, x, sigmoid) - y

    def slopes(p):
        b = np.exp(p[2])
        u = b * (x - p[3])
        share, g = sigmoid(u), (p[1] - p[0]) * slope(u)
        return np.column_stack([1 - share, share, g * u, -g * b])

    kind = {"loss": "soft_l1", "f_scale": OUTLIER, "bounds": bounds, "xtol": 1e-6, "ftol": 1e-6, "max_nfev": 400}
    lattice = _FINE if sigmoid is SIGMOIDS["broken line"][0] else _LATTICE
    return least_squares(errors, coarse_search(x, y, bounds, sigmoid, *lattice), slopes, **kind).x


# ------------ Test how robust PULP's models are: against fewer settings, and against other definitions of privacy and utility
# A curve of four coefficients fits few points better than many, so errors at fitted points do not show how many are needed. Every
# curve is also evaluated *between* its settings, at the same values for all curves, to which none was fitted.

# one at a time, from the values of §VI-A: minutes, metres, per cent of the diameter, level of the S2 cells
FAMILIES: dict[str, dict[float, Metrics]] = {
    "duration": {minutes: Metrics(duration=60.0 * minutes) for minutes in (5, 15, 30, 60, 120)},
    "diameter": {metres: Metrics(diameter=float(metres)) for metres in (100, 200, 500, 1000)},
    "distance": {percent: Metrics(near=2.0 * percent) for percent in (25, 50, 100, 250)},
    "cells": {level: Metrics(level=level) for level in (11, 13, 15, 17, 19)},
}
FAMILY_METRIC = dict.fromkeys(FAMILIES, "privacy") | {"cells": "utility"}  # the metric that a family changes


def metrics_name(family: str, value: float) -> str:
    """Name the metrics of a family at a value."""
    return f"{family} {value:g}"


def every_metric() -> dict[str, Metrics]:
    """Return all metrics by name; those of §VI-A occur once per family, at no extra cost."""
    return {
        metrics_name(family, value): metrics for family, variants in FAMILIES.items() for value, metrics in variants.items()
    }


def per_decade(sweep: Sweep, count: int) -> tuple[float, ...]:
    """Return ``count`` values a decade from a sweep's first to its last value, uniform in the logarithm (§VI-A).

    A value that the sweep contains is returned as exactly that number, so that both have the same noise.
    """
    whole("count", count, 1)
    size = round(count * log10(sweep.high / sweep.low)) + 1
    if size < 2:
        raise ValueError(f"count must be large enough for two values from {sweep.low:g} to {sweep.high:g} (got {count})")
    sweep_values = np.array(sweep.values)
    values = np.geomspace(sweep.low, sweep.high, size)
    nearest = sweep_values[np.abs(np.log(sweep_values[None, :] / values[:, None])).argmin(axis=1)]
    found = np.where(np.isclose(nearest, values, rtol=1e-9), nearest, values)
    return replace(sweep, values=found.tolist()).values  # to the digits of a sweep


def scattered(sweep: Sweep, count: int) -> tuple[float, ...]:
    """Return ``count`` values in a sweep's range, spread by the golden ratio, at which curves of any settings are evaluated.

    The middles of a sweep's steps would be far from its own values, but not from those of a coarser or finer sweep.
    """
    share = np.arange(1, 1 + whole("count", count, 1)) * (5**0.5 - 1) / 2 % 1
    return replace(sweep, values=(sweep.low * (sweep.high / sweep.low) ** share).tolist()).values  # to its digits, rising


def error_variances(
    profile: pd.DataFrame,
    metric: str,
    fitted_at: Mapping[str, Sequence[float]],
    judged_at: Mapping[str, Sequence[float]],
    sweeps: Sequence[Sweep] = SWEEPS,
) -> pd.DataFrame:
    """Return the error variances (about 0) of the models of one metric, user by user.

    ``fitted_at``, ``judged_at``: mechanism -> values, all in the profile. Columns: user, mechanism, values (number fitted),
    fitted (variance at these), between (at the others). Fewer than four values are fitted by :func:`underdetermined`. A user
    with unknown levels has no row.
    """
    one_of("metric", metric, METRIC_NAMES)
    rows = []
    for sweep in sweeps:
        mechanism_profile = profile[profile["mechanism"] == sweep.name]
        for what, at in (("fitted_at", fitted_at), ("judged_at", judged_at)):
            missing = set(at[sweep.name]) - set(mechanism_profile["value"])
            if missing:
                raise ValueError(f"{what} has values of {sweep.name} that the profile lacks, as {min(missing):g}")
        for user, table in mechanism_profile.dropna(subset=metric).groupby("user"):
            x, y = table["value"].to_numpy(), table[metric].to_numpy()
            inside, outside = (np.isin(x, at[sweep.name]) for at in (fitted_at, judged_at))
            count = len(np.unique(x[inside]))
            if not count or not outside.any():
                continue
            rises = metric == sweep.rises
            points = x[inside], y[inside], sweep.standard, rises
            model = underdetermined(*points) if count < COEFFICIENTS else fit(*points).model
            error = model.a * np.arctan(model.b * (np.log(x) - model.c)) + model.d - y
            variances = {"fitted": float(np.mean(error[inside] ** 2)), "between": float(np.mean(error[outside] ** 2))}
            rows.append({"user": user, "mechanism": sweep.name, "values": count, **variances})
    return pd.DataFrame(rows, columns=["user", "mechanism", "values", "fitted", "between"])


def underdetermined(values: Sequence[float], levels: Sequence[float], standard: float, rises: bool) -> Arctan:
    """Fit fewer values than coefficients by an unbounded minimiser from the start of §VI-A.

    Many curves pass through so few points; which one is found depends on the start more than on the points. The paper's fminunc
    accepts such points, :func:`mobpriv.pulp.fit` does not. ValueError without a point, and for invalid values and levels.
    """
    x, y = log_points(values, levels)
    if not len(x):
        raise ValueError("a curve needs at least one value with its level (got none)")
    positive("standard", standard)
    true_or_false("rises", rises)

    def squares(p):
        u = p[1] * (x - p[2])
        error = p[0] * np.arctan(u) + p[3] - y
        g = p[0] / (1 + u * u)
        slopes = np.column_stack([np.arctan(u), g * (x - p[2]), -g * p[1], np.ones(len(x))])
        return float(error @ error), 2 * error @ slopes

    start = [(1 if rises else -1) / pi, 1.0, log(standard), 0.5]
    a, b, c, d = minimize(squares, start, jac=True, method="BFGS", options={"gtol": 1e-6, "maxiter": 400}).x.tolist()
    return Arctan(a, b, c, d) if b >= 0 else Arctan(-a, -b, c, d)


# ---------- Vary what PULP's paper leaves open, one choice at a time: the effect on recommendations and on the laws satisfied
# :func:`closed_form` is Equations (7) and (10) as printed; :func:`recommendation_changes` and :func:`objective_met_share`
# compare the recommendations of two choices user by user.
def closed_form(candidates: Sequence[Candidate], metric: str, least: float) -> Recommendation:
    """Solve P-thld (``metric="privacy"``) and U-thld ("utility") by Equations (7) and (10) as printed.

    ε = exp(tan((least − d)/a)/b + c).

    A mechanism whose ε is outside its range is infeasible, the rule of §IV for the ratio. Whether the threshold is between the
    saturation levels, where alone the tangent is meaningful, is not checked. Between two mechanisms the better other metric
    decides, (9) and (12). ValueError without candidates, for a threshold outside [0, 1] and for an empty range.
    """
    one_of("metric", metric, METRIC_NAMES)
    between("least", least, 0, 1, "must lie in [0, 1]")
    other = METRIC_NAMES[1 - METRIC_NAMES.index(metric)]
    return best_candidate(candidates, lambda c: _closed_form_setting(c, metric, least), lambda s: (getattr(s, other),))


def _closed_form_setting(c: Candidate, metric: str, least: float) -> CandidateSetting:
    model = getattr(c, metric)
    if model.a * model.b == 0:
        return infeasible(c, f"{metric} does not depend on the parameter: the formula divides by zero")
    x = tan((least - model.d) / model.a) / model.b + model.c
    if log(c.low) <= x <= log(c.high):
        return CandidateSetting(c.mechanism, exp(x), c.privacy.at(x), c.utility.at(x), exp(x), exp(x), "")
    return infeasible(c, f"the formula's value lies outside {c.low:g} to {c.high:g}")


def recommendation_changes(other: pd.DataFrame, base: pd.DataFrame, least: int = 1) -> dict[str, Any]:
    """Compare recommendations (user, mechanism, value; one row per user) with those of the base.

    * ``changed``: users whose mechanism differs, including a mechanism instead of none or none instead of one.
    * ``factor``: for the other users with a mechanism, the median ratio of the larger to the smaller setting; missing for fewer
      than ``least``.
    """
    merged = base[["user", "mechanism", "value"]].merge(
        other[["user", "mechanism", "value"]], on="user", suffixes=("", "_other")
    )
    if len(merged) < len(base) or len(merged) < len(other):
        raise ValueError(
            f"recommendations must be for the same users (got {len(base)} and {len(other)}, {len(merged)} in both)"
        )
    changed = merged["mechanism"] != merged["mechanism_other"]
    results: dict[str, Any] = {"changed": estimates.rate(changed)}
    same_mechanism = merged[~changed & merged["value"].notna()]
    if len(same_mechanism) >= whole("least", least, 1):
        results["factor"] = estimates.quantile(
            np.exp(np.abs(np.log(same_mechanism["value_other"] / same_mechanism["value"]))), 0.5
        )
    return results


def objective_met_share(met: pd.Series, levels: pd.DataFrame, users: Sequence[str]) -> pd.Series:
    """Return for each user the share of repetitions in which her objective is ``met`` (one truth value per row of ``levels``).

    A user without a recommendation has no row and gets 0.
    """
    return met.groupby(levels["user"].astype(str)).mean().astype(float).reindex(users, fill_value=0.0)
