"""What PULP's paper leaves open (Cerf et al., TDSC 2018), each choice moved alone: how far recommendations move, and the laws kept.

:func:`closed_form` is Equations (7) and (10) as they are printed; :func:`moved` and :func:`kept` hold one choice's recommendations against
another's, user by user.
"""

from collections.abc import Sequence
from math import exp, inf, isfinite, log, tan
from typing import Any

import numpy as np
import pandas as pd

from mobpriv import estimates
from mobpriv.pulp import Candidate, Recommendation, Setting
from mobpriv.ranges import between, one_of, whole

METRICS = ("privacy", "utility")


def closed_form(candidates: Sequence[Candidate], metric: str, least: float) -> Recommendation:
    """P-thld (``metric="privacy"``) and U-thld ("utility") with Equations (7) and (10) as printed, ε = exp(tan((least − d)/a)/b + c).

    A mechanism whose ε leaves its range is infeasible, the rule that §IV gives for the ratio. That the tangent means something between
    the saturation levels alone is not asked. Of two mechanisms that of the better other metric is taken, (9) and (12). ValueError
    without candidates, for a threshold outside [0, 1] and for a range that is none.
    """
    one_of("metric", metric, METRICS)
    between("least", least, 0, 1, "must lie in [0, 1]")
    if not candidates:
        raise ValueError("a law needs at least one candidate (got none)")
    settings = tuple(_of(c, metric, least) for c in candidates)
    feasible = [s for s in settings if s.value is not None]
    if not feasible:
        return Recommendation(None, None, None, None, "; ".join(f"{s.mechanism}: {s.reason}" for s in settings), settings)
    other = METRICS[1 - METRICS.index(metric)]
    best = max(feasible, key=lambda s: round(getattr(s, other), 9))
    return Recommendation(best.mechanism, best.value, best.privacy, best.utility, "", settings)


def _of(c: Candidate, metric: str, least: float) -> Setting:
    model, reason = getattr(c, metric), c.missing
    if not 0 < c.low <= c.high < inf:
        raise ValueError(f"the range of {c.mechanism} must be positive, its ends in order (got {c.low} to {c.high})")
    if not reason and not all(map(isfinite, (*c.privacy, *c.utility))):
        reason = "it has no model"
    if not reason and model.a * model.b == 0:
        reason = f"{metric} does not depend on the parameter: the formula divides by zero"
    if not reason:
        x = tan((least - model.d) / model.a) / model.b + model.c
        if log(c.low) <= x <= log(c.high):
            return Setting(c.mechanism, exp(x), c.privacy.at(x), c.utility.at(x), exp(x), exp(x), "")
        reason = f"the formula's value lies outside {c.low:g} to {c.high:g}"
    return Setting(c.mechanism, None, None, None, None, None, reason)


def moved(other: pd.DataFrame, base: pd.DataFrame, least: int = 1) -> dict[str, Any]:
    """Recommendations (user, mechanism, value; a row a user) against those of the base.

    ``changed``: users whose mechanism is another, or is one where there was none, or none where there was one. ``factor``: of the others
    with a mechanism the larger setting to the smaller, the median; missing where these are fewer than ``least``.
    """
    both = base[["user", "mechanism", "value"]].merge(other[["user", "mechanism", "value"]], on="user", suffixes=("", "_other"))
    if len(both) < len(base) or len(both) < len(other):
        raise ValueError(f"recommendations must be for the same users (got {len(base)} and {len(other)}, {len(both)} in both)")
    changed = both["mechanism"] != both["mechanism_other"]
    found: dict[str, Any] = {"changed": estimates.rate(changed)}
    same = both[~changed & both["value"].notna()]
    if len(same) >= whole("least", least, 1):
        found["factor"] = estimates.quantile(np.exp(np.abs(np.log(same["value_other"] / same["value"]))), 0.5)
    return found


def kept(met: pd.Series, levels: pd.DataFrame, users: Sequence[str]) -> pd.Series:
    """Of each of ``users`` the share of the draws in which her objective is ``met``, a truth value a row of ``levels``; 0 for a user without a
    recommendation, who has no row."""
    return met.groupby(levels["user"].astype(str)).mean().astype(float).reindex(users, fill_value=0.0)
