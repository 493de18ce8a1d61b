"""ALP, with which §VI-D compares PULP: one mechanism's setting by simulated annealing.

The paper says little more than "simulated annealing"; this follows its authors' program (Accio's optimizer) step by step. Every
step protects the trace and measures it ``runs`` times; PULP's models avoid this cost.

Source: Primault, Boutet, Ben Mokhtar, Brunie, "Adaptive location privacy with ALP", SRDS 2016.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, isnan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.ranges import one_of, positive, whole
from mobpriv.mechanisms import GeoI, Promesse
from mobpriv.pulp.levels import Metrics
from mobpriv.pulp.profiler import Sweep
from mobpriv.pulp.users import each_user, noise
from mobpriv.traces.table import Traces, by_user

_GOALS = ("minimise", "maximise", "at most", "at least", "equal")
_HOTTEST, _COLDEST, _COOLING = 1.0, 1e-5, 0.9
_WINDOW = 0.5  # share of the values among which a neighbour is drawn

# the values of the SRDS 2016 experiments; for Promesse without 0, which is no protection
_GEO_I_VALUES = tuple(np.unique(np.round(np.r_[np.arange(10, 1001) * 1e-3, np.arange(100, 1001) * 1e-5], 5)).tolist())
_PROMESSE_VALUES = tuple(range(50, 501))
ALP_GEO_I = Sweep(GeoI(), "epsilon", _GEO_I_VALUES, rises="utility")
ALP_PROMESSE = Sweep(Promesse(), "alpha", _PROMESSE_VALUES, rises="privacy")


@dataclass(frozen=True)
class Objective:
    """The goal for a metric m, with its cost.

    * minimise: min(m, bound)/bound; maximise: 1 minus that.
    * at most, at least, equal: how far m is on the wrong side of the bound, as a share of it.

    A metric that is undefined for a protected trace costs 1.
    """

    goal: str
    metric: str
    bound: float = 1.0

    def __post_init__(self):
        one_of("goal", self.goal, _GOALS)
        positive("bound", self.bound)

    def cost(self, m: float) -> float:
        if isnan(m):
            return 1.0
        share = m / self.bound
        if self.goal == "minimise":
            return min(share, 1.0)
        if self.goal == "maximise":
            return 1 - min(share, 1.0)
        return {"at most": max(share - 1, 0.0), "at least": max(1 - share, 0.0), "equal": abs(share - 1)}[self.goal]


# "maximize both utility and privacy" (§VI-D): minimise the F-score of the POIs and maximise the F-score of the cells
BOTH = (Objective("maximise", "privacy"), Objective("maximise", "utility"))


class Annealed(NamedTuple):
    best: int  # of the places 0 … size − 1
    cost: float
    evaluations: int
    worse: int  # accepted steps to a higher cost, which a greedy search never accepts


def anneal(cost: Callable[[int], float], size: int, scale: float, rng: np.random.Generator) -> Annealed:
    """Minimise a cost over ``size`` places in a row by simulated annealing; ``scale``: the number of objectives.

    * The start is random.
    * The temperature T is 1, 0.9, 0.81, … down to 1e-5.
    * At each T a neighbour is drawn from the window of half the places around the current one, cut off at the ends.
    * The neighbour is accepted if its cost is lower, else with probability 1/(1 + exp(ΔC/(0.5 · T · scale))).
    * The search ends early at cost 0. The result is the place of least cost seen, in case of ties the first.
    """
    whole("size", size, 1)
    half_window = max(1, int(_WINDOW * size) // 2)  # an odd window: equally many places on both sides
    place = int(rng.integers(size))
    current_cost = cost(place)
    best, best_cost, evaluations, worse, temperature = place, current_cost, 1, 0, _HOTTEST
    while temperature >= _COLDEST and best_cost > 0 and size > 1:
        neighbours = [i for i in range(max(0, place - half_window), min(size, place + half_window + 1)) if i != place]
        neighbour = neighbours[rng.integers(len(neighbours))]
        neighbour_cost = cost(neighbour)
        evaluations += 1
        if neighbour_cost < best_cost:
            best, best_cost = neighbour, neighbour_cost
        if neighbour_cost < current_cost or rng.random() < 1 / (
            1 + exp(min((neighbour_cost - current_cost) / (0.5 * temperature * scale), 700.0))
        ):
            worse += neighbour_cost > current_cost
            place, current_cost = neighbour, neighbour_cost
        temperature *= _COOLING
    return Annealed(best, best_cost, evaluations, worse)


_ALP_COLUMNS = ["user", "mechanism", "parameter", "value", "cost", "evaluations", "worse", "protections", "reason"]


def alp(
    traces: Traces,
    sweep: Sweep = ALP_GEO_I,
    objectives: Sequence[Objective] = BOTH,
    runs: int = 3,  # runs of a random mechanism at each step: the median of a metric counts
    metrics=Metrics(),  # noqa: B008 - it cannot be changed
    seed: int = 1,
    workers: int = 1,
    keep: Callable[[str, Callable], list[dict]] = lambda name, compute: compute(),
) -> pd.DataFrame:
    """Find a setting for each user with ALP: one row per user, with the columns user, mechanism, value that ``achieved`` takes.

    Further columns:

    * parameter, cost.
    * evaluations: settings tried; repeated ones count again. worse: steps to a higher cost.
    * protections: how often her trace was protected.
    * reason: why there is no setting (privacy is asked for and she has no POI), or where the mechanism refused her trace, which
      costs 1 per objective.

    ``keep`` is that of :func:`mobpriv.pulp.profile`. Differences from the program:

    * Promesse's α = 0, no protection, is not among its values.
    * The trace is not cut into days nor thinned to one record per 30 s.
    * For Geo-I the program's own experiments minimise spatial distortion; PULP's comparison uses utility.
    * The program counts every matching stay of the protected trace; POIs are merged here.
    """
    whole("runs", runs, 1)
    whole("seed", seed, 0)
    if not objectives:
        raise ValueError("objectives must hold at least one (got none)")
    for objective in objectives:
        one_of("an objective's metric", objective.metric, ("privacy", "utility"))
    rows = each_user(_search_user, traces, lambda user: (sweep, tuple(objectives), runs, metrics, seed), "alp", workers, keep)
    return pd.DataFrame(rows, columns=_ALP_COLUMNS).astype(
        {"value": float, "cost": float, "evaluations": int, "worse": int, "protections": int}
    )


def _search_user(trace: Traces, sweep: Sweep, objectives: tuple, runs: int, metrics, seed: int) -> list[dict]:
    user, original = by_user(trace)[0][0], metrics.of(trace)
    row: dict[str, Any] = {"user": user, "mechanism": sweep.name, "parameter": sweep.parameter}
    unprotected = original.levels(trace)
    if any(isnan(getattr(unprotected, o.metric)) for o in objectives):
        return [
            row | {"value": None, "cost": None, "evaluations": 0, "worse": 0, "protections": 0, "reason": unprotected.reason}
        ]
    rng, refusals = noise(seed, f"{user}, ALP, {sweep.name}"), []
    repetitions = runs if getattr(sweep.mechanism, "random", True) else 1

    def cost(place: int) -> float:
        mechanism = sweep.at(sweep.values[place])
        try:
            published = [mechanism.protect(trace, rng) for _ in range(repetitions)]
        except ValueError as error:
            refusals.append(f"{sweep.parameter} = {sweep.values[place]:g}: {error}")
            return float(len(objectives))
        levels = [original.levels(p) for p in published]
        return sum(o.cost(float(np.median([getattr(m, o.metric) for m in levels]))) for o in objectives)

    result = anneal(cost, len(sweep.values), len(objectives), rng)
    row |= {"value": sweep.values[result.best], "cost": result.cost}
    reason = f"{sweep.name} refused the trace {len(refusals)} times, first at {refusals[0]}" if refusals else ""
    if len(refusals) == result.evaluations:
        row |= {"value": None, "cost": None}
    row |= {"evaluations": result.evaluations, "worse": result.worse, "protections": repetitions * result.evaluations}
    return [row | {"reason": reason}]
