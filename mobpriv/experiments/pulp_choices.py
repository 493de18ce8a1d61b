"""Vary what PULP's paper leaves open, one choice at a time: the effect on recommendations and on the laws satisfied.

:func:`closed_form` is Equations (7) and (10) as printed; :func:`moved` and :func:`kept` compare the recommendations of two
choices user by user.

Source: Cerf et al., TDSC 2018.
"""

from collections.abc import Sequence
from math import exp, inf, isfinite, log, tan
from typing import Any

import numpy as np
import pandas as pd

from mobpriv.base import estimates
from mobpriv.base.ranges import between, one_of, whole
from mobpriv.pulp import Candidate, Recommendation, Setting

METRICS = ("privacy", "utility")


def closed_form(candidates: Sequence[Candidate], metric: str, least: float) -> Recommendation:
    """Solve P-thld (``metric="privacy"``) and U-thld ("utility") by Equations (7) and (10) as printed.

    ε = exp(tan((least − d)/a)/b + c).

    A mechanism whose ε is outside its range is infeasible, the rule of §IV for the ratio. Whether the threshold is between the
    saturation levels, where alone the tangent is meaningful, is not checked. Between two mechanisms the better other metric
    decides, (9) and (12). ValueError without candidates, for a threshold outside [0, 1] and for an empty range.
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
    """Compare recommendations (user, mechanism, value; one row per user) with those of the base.

    * ``changed``: users whose mechanism differs, including a mechanism instead of none or none instead of one.
    * ``factor``: for the other users with a mechanism, the median ratio of the larger to the smaller setting; missing for fewer
      than ``least``.
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
    """Return for each user the share of repetitions in which her objective is ``met`` (one truth value per row of ``levels``).

    A user without a recommendation has no row and gets 0.
    """
    return met.groupby(levels["user"].astype(str)).mean().astype(float).reindex(users, fill_value=0.0)
