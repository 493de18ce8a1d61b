"""PULP's configurator: choose the mechanism and the setting that satisfy a user's objective.

The four laws are :func:`pu_ratio`, :func:`both_thresholds`, :func:`privacy_threshold` and :func:`utility_threshold`. They use
models, :class:`Candidate`, so their recommendations hold for the models. :func:`mobpriv.pulp.achieved` measures the actual
levels.

The paper's equations leave three things open, which all laws decide alike:

* A setting must be in the range of the parameter. A threshold that the model satisfies nowhere there is infeasible. One that it
  satisfies everywhere allows the whole range. Equations (7) and (10) have no solution then: their tangent is meaningful only
  for a threshold between the model's saturation levels.
* The end of the feasible interval that is best for the other metric is taken, whichever metric rises with the parameter.
* Between equally good settings or mechanisms, the better other metric decides, in case of ties the first.

Source: Cerf et al., TDSC 2018, §III-D, §IV, §V.
"""

from collections.abc import Callable, Sequence
from math import exp, inf, isfinite, log, nan, pi, sqrt, tan
from typing import NamedTuple

import pandas as pd
from scipy.optimize import brentq

from mobpriv.base.ranges import between, one_of, positive
from mobpriv.pulp.modeler import METRIC_NAMES, Arctan

_MIDDLES = ("arithmetic", "geometric")
_SOLVED = ("root", "argmin")
_EQUAL = 9  # decimals: models that differ by less are equally good


class Candidate(NamedTuple):
    """A mechanism with its models for one user, and the range of its parameter."""

    mechanism: str
    privacy: Arctan
    utility: Arctan
    low: float
    high: float
    missing: str = ""  # why there is no model, where a coefficient is NaN
    doubts: str = ""  # problems of the models, if any
    pois: float = nan  # of the original trace


class CandidateSetting(NamedTuple):
    """The result of a law for one candidate."""

    mechanism: str
    value: float | None  # of the parameter; None: the mechanism cannot satisfy the law
    privacy: float | None  # levels of the models at this value
    utility: float | None
    low: float | None  # the feasible interval
    high: float | None
    reason: str  # why the mechanism cannot satisfy the law, or problems of its models


class Recommendation(NamedTuple):
    """The recommendation of a law; ``mechanism`` and ``value`` are None if no candidate satisfies it.

    ``reason`` says why there is none, or names problems of the models: a poor fit, levels that are not monotone, a privacy of
    few POIs.
    """

    mechanism: str | None
    value: float | None
    privacy: float | None
    utility: float | None
    reason: str
    settings: tuple[CandidateSetting, ...]  # of every candidate, in their order


def pu_ratio(candidates: Sequence[Candidate], w: float, solve: str = "root") -> Recommendation:
    """PU-ratio (§IV): privacy is ``w`` times utility, and both are as high as possible.

    Equation (5), argmin |F_pr(ε) − w · F_ut(ε)|, has a value even if the ratio is met nowhere in the range; then the mechanism
    is infeasible. ``solve="argmin"`` takes that value, as the equation is written. The ratio may be met at several settings if
    both levels rise with the parameter (the function is not convex); then the setting of highest levels is taken. Equation (6)
    chooses the mechanism: the largest F_pr + w · F_ut.
    """
    positive("w, the ratio of privacy to utility,", w)
    one_of("solve", solve, _SOLVED)
    return best_candidate(candidates, lambda c: _ratio_of(c, w, solve), lambda s: (s.privacy + w * s.utility,))


def privacy_threshold(candidates: Sequence[Candidate], least: float) -> Recommendation:
    """P-thld (§V-A): privacy is at least ``least``, utility as high as possible, (7) to (9)."""
    _check_threshold("privacy", least)
    goodness = lambda s: (s.utility, s.privacy)  # noqa: E731
    return best_candidate(candidates, lambda c: _best_end(c, _feasible_interval(c, least, None), goodness), goodness)


def utility_threshold(candidates: Sequence[Candidate], least: float) -> Recommendation:
    """U-thld (§V-B): utility is at least ``least``, privacy as high as possible, (10) to (12).

    "The highest value that guarantees F_ut ≥ Ut_min" is right if privacy rises with the parameter; for Geo-I it is the lowest.
    """
    _check_threshold("utility", least)
    goodness = lambda s: (s.privacy, s.utility)  # noqa: E731
    return best_candidate(candidates, lambda c: _best_end(c, _feasible_interval(c, None, least), goodness), goodness)


def both_thresholds(
    candidates: Sequence[Candidate], least_privacy: float, least_utility: float, middle: str = "arithmetic"
) -> Recommendation:
    """PU-thld (§V-C): privacy and utility reach their thresholds, (13) and (14).

    The chosen setting is the middle of those that satisfy both thresholds: the arithmetic mean of the ends, (13), or the
    geometric one, for a model in ln ε. The ends are those in the parameter's range. The mechanism has the largest Pr_min · F_pr
    + Ut_min · F_ut.
    """
    _check_threshold("privacy", least_privacy)
    _check_threshold("utility", least_utility)
    one_of("middle", middle, _MIDDLES)

    def goodness(s: CandidateSetting) -> tuple:
        return least_privacy * s.privacy + least_utility * s.utility, s.privacy + s.utility

    return best_candidate(
        candidates, lambda c: _middle(c, _feasible_interval(c, least_privacy, least_utility), middle), goodness
    )


def candidates_of(models: pd.DataFrame) -> dict[str, list[Candidate]]:
    """Return user -> her candidates, from a table of :func:`mobpriv.pulp.models`."""
    candidates: dict[str, list[Candidate]] = {}
    columns = ["user", "mechanism", "metric", "a", "b", "c", "d", "low", "high", "pois", "report"]
    model_rows = {row[:3]: row[3:] for row in models[columns].itertuples(index=False, name=None)}
    for user, mechanism in dict.fromkeys(key[:2] for key in model_rows):
        privacy, utility = (model_rows[user, mechanism, metric] for metric in METRIC_NAMES)
        metric_rows = list(zip(METRIC_NAMES, (privacy, utility), strict=True))
        missing = "; ".join(f"{m}: {row[-1]}" for m, row in metric_rows if not isfinite(row[0]))
        doubts = "" if missing else "; ".join(f"{m}: {row[-1]}" for m, row in metric_rows if row[-1])
        candidate = Candidate(mechanism, Arctan(*privacy[:4]), Arctan(*utility[:4]), *privacy[4:6], missing, doubts, privacy[6])
        candidates.setdefault(user, []).append(candidate)
    return candidates


def recommend(models: pd.DataFrame, law: Callable[[list[Candidate]], Recommendation]) -> pd.DataFrame:
    """Return a law's recommendation to every user: ``recommend(models, lambda c: pu_ratio(c, 2))``.

    Columns: user, mechanism, value, privacy, utility, reason, pois; NaN, and the reason, if no mechanism satisfies the law.
    Users without a POI have 0 ``pois`` and no model of privacy: count them separately.
    """
    rows = [(user, *law(candidates)[:5], candidates[0].pois) for user, candidates in candidates_of(models).items()]
    table = pd.DataFrame(rows, columns=["user", "mechanism", "value", "privacy", "utility", "reason", "pois"])
    return table.astype({"value": float, "privacy": float, "utility": float, "pois": float})


def _check_threshold(metric: str, least: float) -> None:
    between(f"the least {metric}", least, 0, 1, "must lie in [0, 1]")


def best_candidate(candidates: Sequence[Candidate], setting_of: Callable, goodness: Callable) -> Recommendation:
    """Return the best of a law's results for the candidates."""
    if not candidates:
        raise ValueError("a law needs at least one candidate (got none)")
    settings = tuple(setting_of(c) if known(c) else infeasible(c, c.missing or "it has no model") for c in candidates)
    settings = tuple(s if s.reason else s._replace(reason=c.doubts) for c, s in zip(candidates, settings, strict=True))
    feasible = [s for s in settings if s.value is not None]
    if not feasible:
        return Recommendation(None, None, None, None, "; ".join(f"{s.mechanism}: {s.reason}" for s in settings), settings)
    best = max(feasible, key=lambda s: tuple(round(level, _EQUAL) for level in goodness(s)))
    return Recommendation(best.mechanism, best.value, best.privacy, best.utility, best.reason, settings)


def known(c: Candidate) -> bool:
    """Whether a candidate has models; ValueError for an empty range."""
    if not 0 < c.low <= c.high < inf:
        raise ValueError(f"the range of {c.mechanism} must be positive, its ends in order (got {c.low} to {c.high})")
    return all(isfinite(number) for number in (*c.privacy, *c.utility))


def infeasible(c: Candidate, reason: str) -> CandidateSetting:
    return CandidateSetting(c.mechanism, None, None, None, None, None, reason)


def _at(c: Candidate, x: float, low: float | None = None, high: float | None = None) -> CandidateSetting:
    """Return the setting at x = ln ε; ``low``, ``high``: the feasible interval, also as logarithms."""
    value, low, high = (_value(c, end) for end in (x, x if low is None else low, x if high is None else high))
    return CandidateSetting(c.mechanism, value, c.privacy.at(x), c.utility.at(x), low, high, "")


def _value(c: Candidate, x: float) -> float:
    """Return ε from ln ε; the ends of the range are returned exactly."""
    return c.low if x <= log(c.low) else c.high if x >= log(c.high) else exp(x)


# ------------------------------------------------------------------------------------------------------ thresholds
def _feasible_interval(c: Candidate, privacy: float | None, utility: float | None) -> tuple[float, float] | str:
    """Return the interval of ln ε in which the models meet the thresholds (None: no threshold), or why it is empty."""
    interval = log(c.low), log(c.high)
    for metric, model, least in (("privacy", c.privacy, privacy), ("utility", c.utility, utility)):
        if least is None:
            continue
        low, high = _at_least(model, least, *interval)
        if low > high:
            both = metric == "utility" and privacy is not None
            return f"{metric} stays below {least:g} " + (
                f"where privacy reaches {privacy:g}" if both else f"throughout {c.low:g} to {c.high:g}"
            )
        interval = low, high
    return interval


def _at_least(model: Arctan, least: float, low: float, high: float) -> tuple[float, float]:
    """Return the part of [low, high] where F ≥ least: (7) and (10) as intervals; the ends cross if it is empty."""
    a, b, c, d = model
    nowhere, half = (inf, -inf), abs(a) * pi / 2
    if a * b == 0 or abs(least - d) >= half:  # a constant, or outside the tangent's values
        return (low, high) if (d >= least if a * b == 0 else d > least) else nowhere
    x = c + tan((least - d) / a) / b
    return (max(low, x), high) if a * b > 0 else (low, min(high, x))


def _best_end(c: Candidate, interval: tuple[float, float] | str, goodness: Callable) -> CandidateSetting:
    """Return the better end of the interval: both levels are monotone."""
    if isinstance(interval, str):
        return infeasible(c, interval)
    ends = [_at(c, end, *interval) for end in interval]
    return max(ends, key=lambda s: tuple(round(level, _EQUAL) for level in goodness(s)))


def _middle(c: Candidate, interval: tuple[float, float] | str, middle: str) -> CandidateSetting:
    if isinstance(interval, str):
        return infeasible(c, interval)
    low, high = interval
    x = (low + high) / 2 if middle == "geometric" else log((exp(low) + exp(high)) / 2)
    return _at(c, x, low, high)


# ------------------------------------------------------------------------------------------------------ the ratio
def _ratio_of(c: Candidate, w: float, solve: str) -> CandidateSetting:
    def difference(x: float) -> float:
        return c.privacy.at(x) - w * c.utility.at(x)

    low, high = log(c.low), log(c.high)
    borders = [low, *(x for x in _turning_points(c, w) if low < x < high), high]
    values = [difference(x) for x in borders]
    roots = [x for x, value in zip(borders, values, strict=True) if value == 0]
    for a, b, left, right in zip(borders, borders[1:], values, values[1:], strict=False):
        if left * right < 0:
            roots.append(brentq(difference, a, b, xtol=1e-12))
    if roots:
        return _at(c, max(roots, key=lambda x: (round(c.privacy.at(x) + w * c.utility.at(x), _EQUAL), -x)))
    if solve == "argmin":
        return _at(c, min(zip(map(abs, values), borders, strict=True))[1])
    side = "above" if values[0] > 0 else "below"
    return infeasible(c, f"privacy stays {side} {w:g} × utility throughout {c.low:g} to {c.high:g}")


def _turning_points(c: Candidate, w: float) -> list[float]:
    """Return the ln ε, at most two, where F_pr − w F_ut turns; between them it is monotone.

    The slope is A / (1 + p²(x − m)²) − B / (1 + q²(x − n)²). It is 0 where A (1 + q²(x − n)²) = B (1 + p²(x − m)²), a quadratic
    equation.

    * A = a_pr b_pr, p = b_pr, m = c_pr.
    * B = w a_ut b_ut, q = b_ut, n = c_ut.
    """
    (a1, p, m, _), (a2, q, n, _) = c.privacy, c.utility
    left, right = a1 * p, w * a2 * q
    if left * right <= 0:  # the levels move in opposite directions: no turn
        return []
    shift = n - m  # x relative to m keeps the numbers small
    quadratic, linear = left * q * q - right * p * p, -2 * left * q * q * shift
    constant = left * (1 + q * q * shift * shift) - right
    if quadratic == 0:
        return [m - constant / linear] if linear else []
    discriminant = linear * linear - 4 * quadratic * constant
    if discriminant < 0:
        return []
    # the form of the solution without cancellation
    half = -(linear + (sqrt(discriminant) if linear >= 0 else -sqrt(discriminant))) / 2
    return sorted({m + half / quadratic, m + (constant / half if half else 0.0)})
