"""PULP's modeler: fit a level as a function of a mechanism's parameter.

Equations (3) and (4), for each user, mechanism and metric: F(ε) = a · arctan(b · (ln ε − c)) + d.

The two saturation levels are d ± a·π/2, b > 0 is the speed of the transition between them, c the ln ε at its middle.

Source: Cerf et al., TDSC 2018, §III-C, §VI-A, §VI-B.
"""

from collections.abc import Sequence
from math import atan, log, nan, pi
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from mobpriv.base.ranges import one_of, positive, true_or_false
from mobpriv.pulp.profiler import SWEEPS, Sweep

METRIC_NAMES = ("privacy", "utility")
_METHODS = ("robust", "paper")
COEFFICIENTS = 4
OUTLIER = 0.1
"""Ten points of a level, like one POI of ten.

Larger errors count by their size, not their square. A fit whose mean square error exceeds its square is poor.
A response that moves so far against its trend is not monotone.
"""
FLAT = 0.01
"""A response within this range is flat: the paper wants its ratios met within one per cent."""
# bounds of b: the slowest is a straight line over any range of settings, the fastest a step between two of them
_SPEEDS = (1e-2, 1e2)
_BEYOND = 0.5
"""How far a saturation level may exceed 0, 1 and the measured levels, because often only a part of the curve is measured.

Bounds at 0 and 1 make the left-out errors of Geo-I's utility eight times as large on three data sets; wider bounds change nothing.
"""
_LATTICE = 0.1, 0.3, 1, 3, 10, 30, 100  # speeds of the coarse search
_TOLERANCE, _ITERATIONS = 1e-6, 400  # §VI-B1


class Arctan(NamedTuple):
    """The coefficients of Equations (3) and (4); a is negative if the level falls, 0 if it is constant."""

    a: float
    b: float
    c: float
    d: float

    def at(self, x: float) -> float:
        """Return F at x = ln ε."""
        return self.a * atan(self.b * (x - self.c)) + self.d


class Fit(NamedTuple):
    """A model and its goodness of fit."""

    model: Arctan
    points: int
    variance: float  # of its errors, about 0
    left_out: float  # the same at values left out of the fit, each in turn; NaN if not requested
    spread: float  # largest less smallest of the values' mean levels
    reversal: float  # the largest move of these means against their trend
    report: str  # problems of the model in words; "" for none


def fit(
    values: Sequence[float],  # ε, one a point
    levels: Sequence[float],
    standard: float,  # of ε: c begins at its logarithm
    rises: bool,  # is the level expected to rise with ε? then a begins at 1/π, else at −1/π
    method: str = "robust",
    left_out: bool = False,
) -> Fit:
    """Fit the model of one user's level under one mechanism.

    §VI-A starts at a = ±1/π, b = 1, c = ln(standard), d = 0.5. ``method="paper"`` runs least squares from there with the
    paper's tolerance and number of iterations, without bounds (like fminunc). The default differs in three ways:

    * Bounds: saturation levels are at most 0.5 beyond 0, 1 and the measured levels ("as printed" privacy can fall below 0). So
      a level of the model may be slightly outside [0, 1]. c is at most the range of values away from it; b is in [0.01, 100].
    * An error beyond :data:`OUTLIER` counts by its size, not by its square (soft l1): one outlier does not turn the curve.
    * From the paper's start the search may miss the best curve. It starts at the best of some hundred curves, including the
      paper's start.

    A response of exactly one level is a constant: a = 0. ValueError for fewer than four different values, the number of
    coefficients.
    """
    x, y = log_points(values, levels)
    one_of("method", method, _METHODS)
    rises, left_out = true_or_false("rises", rises), true_or_false("left_out", left_out)
    start = log(positive("standard", standard))
    settings = np.unique(x)
    if len(settings) < COEFFICIENTS:
        raise ValueError(f"{COEFFICIENTS} coefficients need at least {COEFFICIENTS} different values (got {len(settings)})")
    model = _fitted(x, y, start, rises, method)
    errors = _curve(model, x) - y
    left_out_variance = nan
    if left_out:
        left_out_variance = float(np.mean(_errors_left_out(x, y, start, rises, method) ** 2))
    means = np.array([y[x == setting].mean() for setting in settings])
    # the largest fall of a response that rises overall, or the largest rise of one that falls
    fall, rise = (np.maximum.accumulate(means) - means).max(), (means - np.minimum.accumulate(means)).max()
    variance, spread, reversal = float(np.mean(errors**2)), float(np.ptp(means)), float(min(fall, rise))
    flat = f"flat: the level stays within {spread:.2g}" if spread < FLAT else ""
    turns = f"not monotone: the level moves {reversal:.2g} against its trend" if reversal > OUTLIER else ""
    poor = f"poor fit: error variance {variance:.2g}" if variance > OUTLIER**2 else ""
    return Fit(model, len(x), variance, left_out_variance, spread, reversal, _joined(flat, turns, poor))


def models(
    profile: pd.DataFrame,
    sweeps: Sequence[Sweep] | None = None,  # None: the start and the trend of the profile's own sweeps
    method: str = "robust",
    left_out: bool = False,
) -> pd.DataFrame:
    """Fit the models of a table of :func:`mobpriv.pulp.profile`: one row per user, mechanism and metric.

    Columns:

    * user, mechanism, metric ("privacy" or "utility"), a, b, c, d.
    * low, high: the range of the mechanism's values with a known level; no law recommends a value outside it.
    * the fields of :class:`Fit`, and pois, of the original trace.

    If too few levels are known for a model, its coefficients are NaN and the report says why.
    """
    profile = _with_sweeps(profile, sweeps)
    rows = []
    for (user, mechanism), table in profile.groupby(["user", "mechanism"], sort=True):
        values, reasons = table["value"].to_numpy(float), table["reason"].to_numpy(object)
        standard, rises, pois = table[["standard", "rises", "pois"]].iloc[0]
        for metric in METRIC_NAMES:
            fitted = _fit_known(values, table[metric].to_numpy(float), reasons, standard, metric == rises, method, left_out)
            row = {"user": user, "mechanism": mechanism, "metric": metric} | fitted.model._asdict()
            known = table[metric].notna().to_numpy()
            known_values = values[known] if known.any() else values
            row |= {"low": known_values.min(), "high": known_values.max()} | fitted._asdict() | {"pois": pois}
            if metric == "privacy":
                row["report"] = _joined(fitted.report, _coarse_privacy(pois))
            del row["model"]
            rows.append(row)
    columns = ["user", "mechanism", "metric", *Arctan._fields, "low", "high", *Fit._fields[1:], "pois"]
    return pd.DataFrame(rows, columns=columns)


def _with_sweeps(profile: pd.DataFrame, sweeps: Sequence[Sweep] | None) -> pd.DataFrame:
    """Add the columns standard and rises to the profile: its own, or those of ``sweeps``.

    A table made by hand is assumed to have the paper's sweeps.
    """
    if "pois" not in profile:
        profile = profile.assign(pois=nan)
    if sweeps is None and {"standard", "rises"} <= set(profile):
        return profile
    by_name = {sweep.name: sweep for sweep in SWEEPS if sweeps is None} | {sweep.name: sweep for sweep in sweeps or ()}
    unknown = sorted(set(profile["mechanism"]) - set(by_name))
    if unknown:
        raise ValueError(f"the profile has mechanisms that sweeps do not have: {', '.join(unknown)}")
    columns = {column: [getattr(by_name[name], column) for name in profile["mechanism"]] for column in ("standard", "rises")}
    return profile.assign(**columns)


def _coarse_privacy(pois: float) -> str:
    """Report the number of POIs if one POI changes privacy by more than an outlier."""
    if not 0 < pois < 1 / OUTLIER:
        return ""
    return (
        "coarse: 1 POI, privacy is about 0 or 1"
        if pois == 1
        else f"coarse: {pois:g} POIs, each about {1 / pois:.2g} of privacy"
    )


def _fit_known(values, levels, reasons, standard: float, rises: bool, method: str, left_out: bool) -> Fit:
    """Fit the levels that are numbers; the report names those left out."""
    known = np.isfinite(levels)
    missing = ""
    if not known.all():
        why = next((reason for reason in reasons[~known] if reason), "not a number")
        missing = f"{(~known).sum()} of {len(known)} levels are unknown ({why})"
    if len(np.unique(values[known])) < COEFFICIENTS:
        few = f"no model: {COEFFICIENTS} coefficients need at least {COEFFICIENTS} different values"
        return Fit(Arctan(nan, nan, nan, nan), int(known.sum()), nan, nan, nan, nan, _joined(few, missing))
    result = fit(values[known], levels[known], standard, rises, method, left_out)
    return result._replace(report=_joined(result.report, missing))


def log_points(values, levels) -> tuple[np.ndarray, np.ndarray]:
    """Return ln ε and the level of every point; ValueError, one line, for invalid ones."""
    values, levels = np.asarray(values, float), np.asarray(levels, float)
    if values.ndim != 1 or values.shape != levels.shape:
        raise ValueError(f"each value needs one level (got {values.size} values, {levels.size} levels)")
    invalid = ~(np.isfinite(values) & (values > 0))
    if invalid.any():
        raise ValueError(f"values must be positive and finite (got {values[invalid][0]} at place {invalid.argmax()})")
    invalid = ~np.isfinite(levels)
    if invalid.any():
        raise ValueError(f"levels must be numbers (got {levels[invalid][0]} at place {invalid.argmax()}): leave that point out")
    return np.log(values), levels


def _fitted(x: np.ndarray, y: np.ndarray, start: float, rises: bool, method: str) -> Arctan:
    if (y == y[0]).all():
        return Arctan(0.0, 1.0, start, float(y[0]))
    if method == "paper":
        return _least_squares(x, y, start, rises)
    low, high = min(0.0, y.min()) - _BEYOND, max(1.0, y.max()) + _BEYOND
    width = np.ptp(x)
    bounds = np.array([[low, low, log(_SPEEDS[0]), x.min() - width], [high, high, log(_SPEEDS[1]), x.max() + width]])
    starts = np.clip([1.0 - rises, rises, 0.0, start], *bounds), coarse_search(x, y, bounds)
    return _arctan(_bounded(x, y, min(starts, key=lambda p: _cost(p, x, y)), bounds).x)


def _curve(model: Arctan, x: np.ndarray) -> np.ndarray:
    return model.a * np.arctan(model.b * (x - model.c)) + model.d


def _least_squares(x, y, start: float, rises: bool) -> Arctan:
    """Minimise what fminunc minimises, from its start: four coefficients, no bounds.

    The algorithm differs (Levenberg and Marquardt's, 400 evaluations); it ends at another curve for about one user in forty.
    """

    def errors(p):
        return p[0] * np.arctan(p[1] * (x - p[2])) + p[3] - y

    def slopes(p):
        u = p[1] * (x - p[2])
        g = p[0] / (1 + u * u)
        return np.column_stack([np.arctan(u), g * (x - p[2]), -g * p[1], np.ones(len(x))])

    sign = 1 if rises else -1
    result = least_squares(
        errors, [sign / pi, 1.0, start, 0.5], slopes, method="lm", xtol=_TOLERANCE, ftol=_TOLERANCE, max_nfev=_ITERATIONS
    )
    a, b, c, d = result.x.tolist()
    return Arctan(a, b, c, d) if b >= 0 else Arctan(-a, -b, c, d)  # the same curve with b > 0


def _bounded(x, y, start: np.ndarray, bounds: np.ndarray):
    """Robust least squares of p = (level far left, level far right, ln b, c), from a start within the bounds."""

    def errors(p):
        return _between(p, x) - y

    def slopes(p):
        b = np.exp(p[2])
        u = b * (x - p[3])
        share = 0.5 + np.arctan(u) / pi
        g = (p[1] - p[0]) / pi / (1 + u * u)
        return np.column_stack([1 - share, share, g * u, -g * b])

    kind = {"loss": "soft_l1", "f_scale": OUTLIER, "bounds": bounds}
    return least_squares(errors, start, slopes, xtol=_TOLERANCE, ftol=_TOLERANCE, max_nfev=_ITERATIONS, **kind)


def _between(p: np.ndarray, x: np.ndarray) -> np.ndarray:
    return p[0] + (p[1] - p[0]) * (0.5 + np.arctan(np.exp(p[2]) * (x - p[3])) / pi)


def _cost(p: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Return the objective of :func:`_bounded` (soft l1)."""
    return float(OUTLIER**2 * (np.sqrt(1 + ((_between(p, x) - y) / OUTLIER) ** 2) - 1).sum())


def _arctan_share(u):
    """Return the arctan rescaled to rise from 0 to 1."""
    return 0.5 + np.arctan(u) / pi


def coarse_search(
    x: np.ndarray,
    y: np.ndarray,
    bounds: np.ndarray,
    sigmoid=_arctan_share,
    speeds: Sequence[float] = _LATTICE,
    middles: int = 49,
) -> np.ndarray:
    """Return the best of some hundred curves: a lattice of (b, c) with levels of least squares, clamped to the bounds.

    ``sigmoid`` rises from 0 to 1 in b · (x − c); ``speeds`` are the values of b, ``middles`` the number of c tried.
    """
    speed, middle = (axis.ravel() for axis in np.meshgrid(np.log(speeds), np.linspace(*bounds[:, 3], middles)))
    share = sigmoid(np.exp(speed)[:, None] * (x - middle[:, None]))
    centred_share, centred_level = share - share.mean(axis=1, keepdims=True), y - y.mean()
    slope = centred_share @ centred_level / np.maximum((centred_share**2).sum(axis=1), 1e-12)
    left = y.mean() - slope * share.mean(axis=1)
    left, right = (np.clip(level, *bounds[:, 0]) for level in (left, left + slope))
    errors = left[:, None] + (right - left)[:, None] * share - y
    best = np.sqrt(1 + (errors / OUTLIER) ** 2).sum(axis=1).argmin()
    return np.array([left[best], right[best], speed[best], middle[best]])


def _arctan(p: np.ndarray) -> Arctan:
    left, right, speed, c = p.tolist()
    return Arctan((right - left) / pi, float(np.exp(speed)), c, (left + right) / 2)


def _errors_left_out(x, y, start: float, rises: bool, method: str) -> np.ndarray:
    """Return each value's errors of the model fitted to the others; NaN with only four values."""
    errors = np.full(len(y), nan)
    settings = np.unique(x)
    for setting in settings if len(settings) > COEFFICIENTS else ():
        out = x == setting
        errors[out] = _curve(_fitted(x[~out], y[~out], start, rises, method), x[out]) - y[out]
    return errors


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
