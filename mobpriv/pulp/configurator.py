"""PULP's configurator: the mechanism and the setting that keep what a user asks for (Cerf et al., TDSC 2018, §III-D, §IV, §V).

Four laws, one function each: :func:`ratio`, :func:`both_thresholds`, :func:`privacy_threshold`, :func:`utility_threshold`. All work on models,
:class:`Candidate`: what they promise holds for the models. What a user gets is measured by :func:`mobpriv.pulp.achieved`.

The paper's equations leave three things open, which all laws decide alike:

* A setting must lie in the range of the parameter. A threshold that the model keeps nowhere there is infeasible; one that it keeps
  everywhere leaves the whole range to choose from, though Equations (7) and (10) have no solution then: their tangent means something
  only for a threshold between the model's saturation levels.
* The end of the feasible interval that is best for the other metric is taken, whichever metric rises with the parameter.
* Of several settings or mechanisms that are equally good, that of the better other metric is taken, and of equal ones the first.
"""

from collections.abc import Callable, Sequence
from math import exp, inf, isfinite, log, nan, pi, sqrt, tan
from typing import NamedTuple

import pandas as pd
from scipy.optimize import brentq

from mobpriv.pulp.modeler import METRICS, Arctan
from mobpriv.ranges import between, one_of, positive

MIDDLES = ("arithmetic", "geometric")
SOLVED = ("root", "argmin")
_EQUAL = 9  # decimals: models that differ by less are equally good


class Candidate(NamedTuple):
    """A mechanism with its models for one user, and the range of its parameter."""

    mechanism: str
    privacy: Arctan
    utility: Arctan
    low: float
    high: float
    missing: str = ""  # why there is no model, where a coefficient is NaN
    doubts: str = ""  # what speaks against the models, where there are some
    pois: float = nan  # of the original trace


class Setting(NamedTuple):
    """What a law makes of one candidate."""

    mechanism: str
    value: float | None  # of the parameter; None: the mechanism cannot keep the law
    privacy: float | None  # as the models have them at this value
    utility: float | None
    low: float | None  # the feasible interval
    high: float | None
    reason: str  # why the mechanism cannot keep the law, or what speaks against its models


class Recommendation(NamedTuple):
    """What a law recommends; ``mechanism`` and ``value`` are None where no candidate can keep it, and ``reason`` says why. Of what is
    recommended it says what speaks against the models: a poor fit, levels that are not monotone, a privacy of few POIs."""

    mechanism: str | None
    value: float | None
    privacy: float | None
    utility: float | None
    reason: str
    settings: tuple[Setting, ...]  # of every candidate, in their order


def ratio(candidates: Sequence[Candidate], w: float, solve: str = "root") -> Recommendation:
    """PU-ratio (§IV): privacy is ``w`` times utility, and both are as high as possible.

    Equation (5), argmin |F_pr(ε) − w · F_ut(ε)|, has a value also where the ratio is met nowhere in the range: the mechanism is
    infeasible then. ``solve="argmin"`` takes that value, as the equation is written. Where the ratio is met at several settings, as it may
    be when both levels rise with the parameter (the function is not convex), that of the highest levels is taken. Equation (6) chooses
    the mechanism: the largest F_pr + w · F_ut.
    """
    positive("w, the ratio of privacy to utility,", w)
    one_of("solve", solve, SOLVED)
    return _recommended(candidates, lambda c: _ratio_of(c, w, solve), lambda s: (s.privacy + w * s.utility,))


def privacy_threshold(candidates: Sequence[Candidate], least: float) -> Recommendation:
    """P-thld (§V-A): privacy is at least ``least``, utility as high as possible, (7) to (9)."""
    _check_threshold("privacy", least)
    goodness = lambda s: (s.utility, s.privacy)  # noqa: E731
    return _recommended(candidates, lambda c: _best_end(c, _kept(c, least, None), goodness), goodness)


def utility_threshold(candidates: Sequence[Candidate], least: float) -> Recommendation:
    """U-thld (§V-B): utility is at least ``least``, privacy as high as possible, (10) to (12).

    "The highest value that guarantees F_ut ≥ Ut_min" is right where privacy rises with the parameter; for Geo-I it is the lowest.
    """
    _check_threshold("utility", least)
    goodness = lambda s: (s.privacy, s.utility)  # noqa: E731
    return _recommended(candidates, lambda c: _best_end(c, _kept(c, None, least), goodness), goodness)


def both_thresholds(
    candidates: Sequence[Candidate], least_privacy: float, least_utility: float, middle: str = "arithmetic"
) -> Recommendation:
    """PU-thld (§V-C): privacy and utility are at least so high, (13) and (14).

    Of the settings that keep both thresholds the middle is taken: the arithmetic mean of the ends, (13), or, on a model in ln ε,
    the geometric one. The ends are those in the parameter's range. The mechanism is that of the largest Pr_min · F_pr + Ut_min · F_ut.
    """
    _check_threshold("privacy", least_privacy)
    _check_threshold("utility", least_utility)
    one_of("middle", middle, MIDDLES)

    def goodness(s: Setting) -> tuple:
        return least_privacy * s.privacy + least_utility * s.utility, s.privacy + s.utility

    return _recommended(candidates, lambda c: _middle(c, _kept(c, least_privacy, least_utility), middle), goodness)


def candidates_of(models: pd.DataFrame) -> dict[str, list[Candidate]]:
    """User -> her candidates, from a table of :func:`mobpriv.pulp.models`."""
    found: dict[str, list[Candidate]] = {}
    fields = ["user", "mechanism", "metric", "a", "b", "c", "d", "low", "high", "pois", "report"]
    of = {row[:3]: row[3:] for row in models[fields].itertuples(index=False, name=None)}
    for user, mechanism in dict.fromkeys(key[:2] for key in of):
        privacy, utility = (of[user, mechanism, metric] for metric in METRICS)
        both = list(zip(METRICS, (privacy, utility), strict=True))
        missing = "; ".join(f"{m}: {row[-1]}" for m, row in both if not isfinite(row[0]))
        doubts = "" if missing else "; ".join(f"{m}: {row[-1]}" for m, row in both if row[-1])
        one = Candidate(mechanism, Arctan(*privacy[:4]), Arctan(*utility[:4]), *privacy[4:6], missing, doubts, privacy[6])
        found.setdefault(user, []).append(one)
    return found


def recommend(models: pd.DataFrame, law: Callable[[list[Candidate]], Recommendation]) -> pd.DataFrame:
    """What a law recommends to every user: ``recommend(models, lambda c: ratio(c, 2))``.

    Columns: user, mechanism, value, privacy, utility, reason, pois; NaN, and the reason, where no mechanism keeps the law. Users without a
    POI, for whom no law has a model of privacy, have 0 ``pois``: count them apart.
    """
    rows = [(user, *law(own)[:5], own[0].pois) for user, own in candidates_of(models).items()]
    table = pd.DataFrame(rows, columns=["user", "mechanism", "value", "privacy", "utility", "reason", "pois"])
    return table.astype({"value": float, "privacy": float, "utility": float, "pois": float})


def _check_threshold(metric: str, least: float) -> None:
    between(f"the least {metric}", least, 0, 1, "must lie in [0, 1]")


def _recommended(candidates: Sequence[Candidate], of: Callable, goodness: Callable) -> Recommendation:
    """The best of what a law makes of the candidates."""
    if not candidates:
        raise ValueError("a law needs at least one candidate (got none)")
    settings = tuple(of(c) if _known(c) else _infeasible(c, c.missing or "it has no model") for c in candidates)
    settings = tuple(s if s.reason else s._replace(reason=c.doubts) for c, s in zip(candidates, settings, strict=True))
    feasible = [s for s in settings if s.value is not None]
    if not feasible:
        return Recommendation(None, None, None, None, "; ".join(f"{s.mechanism}: {s.reason}" for s in settings), settings)
    best = max(feasible, key=lambda s: tuple(round(level, _EQUAL) for level in goodness(s)))
    return Recommendation(best.mechanism, best.value, best.privacy, best.utility, best.reason, settings)


def _known(c: Candidate) -> bool:
    if not 0 < c.low <= c.high < inf:
        raise ValueError(f"the range of {c.mechanism} must be positive, its ends in order (got {c.low} to {c.high})")
    return all(isfinite(number) for number in (*c.privacy, *c.utility))


def _infeasible(c: Candidate, reason: str) -> Setting:
    return Setting(c.mechanism, None, None, None, None, None, reason)


def _at(c: Candidate, x: float, low: float | None = None, high: float | None = None) -> Setting:
    """The setting at x = ln ε; ``low``, ``high``: the feasible interval, also as logarithms."""
    value, low, high = (_value(c, end) for end in (x, x if low is None else low, x if high is None else high))
    return Setting(c.mechanism, value, c.privacy.at(x), c.utility.at(x), low, high, "")


def _value(c: Candidate, x: float) -> float:
    """ε of ln ε; the ends of the range come back as they are."""
    return c.low if x <= log(c.low) else c.high if x >= log(c.high) else exp(x)


# ------------------------------------------------------------------------------------------------------ thresholds
def _kept(c: Candidate, privacy: float | None, utility: float | None) -> tuple[float, float] | str:
    """The ln ε in the range at which the models keep the thresholds (None: there is none), or why there is no such setting."""
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
    """The part of [low, high] where F ≥ least: (7) and (10) as intervals; its ends cross where there is none."""
    a, b, c, d = model
    nowhere, half = (inf, -inf), abs(a) * pi / 2
    if a * b == 0 or abs(least - d) >= half:  # a constant, or no value of the tangent
        return (low, high) if (d >= least if a * b == 0 else d > least) else nowhere
    x = c + tan((least - d) / a) / b
    return (max(low, x), high) if a * b > 0 else (low, min(high, x))


def _best_end(c: Candidate, interval: tuple[float, float] | str, goodness: Callable) -> Setting:
    """Both levels are monotone: one of the ends is best."""
    if isinstance(interval, str):
        return _infeasible(c, interval)
    ends = [_at(c, end, *interval) for end in interval]
    return max(ends, key=lambda s: tuple(round(level, _EQUAL) for level in goodness(s)))


def _middle(c: Candidate, interval: tuple[float, float] | str, middle: str) -> Setting:
    if isinstance(interval, str):
        return _infeasible(c, interval)
    low, high = interval
    x = (low + high) / 2 if middle == "geometric" else log((exp(low) + exp(high)) / 2)
    return _at(c, x, low, high)


# ------------------------------------------------------------------------------------------------------ the ratio
def _ratio_of(c: Candidate, w: float, solve: str) -> Setting:
    def apart(x: float) -> float:
        return c.privacy.at(x) - w * c.utility.at(x)

    low, high = log(c.low), log(c.high)
    borders = [low, *(x for x in _turns(c, w) if low < x < high), high]
    values = [apart(x) for x in borders]
    roots = [x for x, value in zip(borders, values, strict=True) if value == 0]
    for a, b, left, right in zip(borders, borders[1:], values, values[1:], strict=False):
        if left * right < 0:
            roots.append(brentq(apart, a, b, xtol=1e-12))
    if roots:
        return _at(c, max(roots, key=lambda x: (round(c.privacy.at(x) + w * c.utility.at(x), _EQUAL), -x)))
    if solve == "argmin":
        return _at(c, min(zip(map(abs, values), borders, strict=True))[1])
    side = "above" if values[0] > 0 else "below"
    return _infeasible(c, f"privacy stays {side} {w:g} × utility throughout {c.low:g} to {c.high:g}")


def _turns(c: Candidate, w: float) -> list[float]:
    """The ln ε, at most two, where F_pr − w F_ut turns: between them it is monotone.

    The slope is A / (1 + p²(x − m)²) − B / (1 + q²(x − n)²) with A = a_pr b_pr, p = b_pr, m = c_pr and B = w a_ut b_ut, q = b_ut,
    n = c_ut; it is 0 where A (1 + q²(x − n)²) = B (1 + p²(x − m)²), a quadratic equation.
    """
    (a1, p, m, _), (a2, q, n, _) = c.privacy, c.utility
    left, right = a1 * p, w * a2 * q
    if left * right <= 0:  # the levels move against one another: nothing turns
        return []
    shift = n - m  # around m, where the numbers are small
    square, line = left * q * q - right * p * p, -2 * left * q * q * shift
    constant = left * (1 + q * q * shift * shift) - right
    if square == 0:
        return [m - constant / line] if line else []
    under = line * line - 4 * square * constant
    if under < 0:
        return []
    # the form that does not subtract what is nearly equal
    half = -(line + (sqrt(under) if line >= 0 else -sqrt(under))) / 2
    return sorted({m + half / square, m + (constant / half if half else 0.0)})
