"""Test how robust PULP's models are: against fewer settings, and against other definitions of privacy and utility.

A curve of four coefficients fits few points better than many, so errors at fitted points do not show how many are needed. Every
curve is also evaluated *between* its settings, at the same values for all curves, to which none was fitted.

Source: Cerf et al., TDSC 2018, §VI-B3.
"""

from collections.abc import Mapping, Sequence
from math import log, log10, pi

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from mobpriv.base.ranges import one_of, positive, true_or_false, whole
from mobpriv.pulp import SWEEPS, Arctan, Metrics, Sweep, fit
from mobpriv.pulp.modeler import COEFFICIENTS, METRICS, points

# one at a time, from the values of §VI-A: minutes, metres, per cent of the diameter, level of the S2 cells
FAMILIES: dict[str, dict[float, Metrics]] = {
    "duration": {minutes: Metrics(duration=60.0 * minutes) for minutes in (5, 15, 30, 60, 120)},
    "diameter": {metres: Metrics(diameter=float(metres)) for metres in (100, 200, 500, 1000)},
    "distance": {percent: Metrics(near=2.0 * percent) for percent in (25, 50, 100, 250)},
    "cells": {level: Metrics(level=level) for level in (11, 13, 15, 17, 19)},
}
METRIC = {
    "duration": "privacy",
    "diameter": "privacy",
    "distance": "privacy",
    "cells": "utility",
}  # the metric that a family changes


def name_of(family: str, value: float) -> str:
    """Name the metrics of a family at a value."""
    return f"{family} {value:g}"


def every_metric() -> dict[str, Metrics]:
    """Return all metrics by name; those of §VI-A occur once per family, at no extra cost."""
    return {name_of(family, value): metrics for family, of in FAMILIES.items() for value, metrics in of.items()}


def per_decade(sweep: Sweep, count: int) -> tuple[float, ...]:
    """Return ``count`` values a decade from a sweep's first to its last value, uniform in the logarithm (§VI-A).

    A value that the sweep contains is returned as exactly that number, so that both have the same noise.
    """
    whole("count", count, 1)
    size = round(count * log10(sweep.high / sweep.low)) + 1
    if size < 2:
        raise ValueError(f"count must be large enough for two values from {sweep.low:g} to {sweep.high:g} (got {count})")
    own = np.array(sweep.values)
    values = np.geomspace(sweep.low, sweep.high, size)
    nearest = own[np.abs(np.log(own[None, :] / values[:, None])).argmin(axis=1)]
    return tuple(np.where(np.isclose(nearest, values, rtol=1e-9), nearest, values).tolist())


def scattered(sweep: Sweep, count: int) -> tuple[float, ...]:
    """Return ``count`` values in a sweep's range, spread by the golden ratio, at which curves of any settings are evaluated.

    The middles of a sweep's steps would be far from its own values, but not from those of a coarser or finer sweep.
    """
    share = np.arange(1, 1 + whole("count", count, 1)) * (5**0.5 - 1) / 2 % 1
    return tuple(sorted((sweep.low * (sweep.high / sweep.low) ** share).tolist()))


def judged(
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
    one_of("metric", metric, METRICS)
    found = []
    for sweep in sweeps:
        own = profile[profile["mechanism"] == sweep.name]
        for what, at in (("fitted_at", fitted_at), ("judged_at", judged_at)):
            missing = set(at[sweep.name]) - set(own["value"])
            if missing:
                raise ValueError(f"{what} has values of {sweep.name} that the profile lacks, as {min(missing):g}")
        for user, table in own.dropna(subset=metric).groupby("user"):
            x, y = table["value"].to_numpy(), table[metric].to_numpy()
            inside, outside = (np.isin(x, at[sweep.name]) for at in (fitted_at, judged_at))
            count = len(np.unique(x[inside]))
            if not count or not outside.any():
                continue
            rises = metric == sweep.rises
            few = count < COEFFICIENTS
            model = (underdetermined if few else _fit)(x[inside], y[inside], sweep.standard, rises)
            error = model.a * np.arctan(model.b * (np.log(x) - model.c)) + model.d - y
            variances = {"fitted": float(np.mean(error[inside] ** 2)), "between": float(np.mean(error[outside] ** 2))}
            found.append({"user": user, "mechanism": sweep.name, "values": count, **variances})
    return pd.DataFrame(found, columns=["user", "mechanism", "values", "fitted", "between"])


def _fit(values, levels, standard: float, rises: bool) -> Arctan:
    return fit(values, levels, standard, rises).model


def underdetermined(values: Sequence[float], levels: Sequence[float], standard: float, rises: bool) -> Arctan:
    """Fit fewer values than coefficients by an unbounded minimiser from the start of §VI-A.

    Many curves pass through so few points; which one is found depends on the start more than on the points. The paper's fminunc
    accepts such points, :func:`mobpriv.pulp.fit` does not. ValueError without a point, and for invalid values and levels.
    """
    x, y = points(values, levels)
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
