"""Starting points for the interior-point method of `interior`: a constant channel, or a point on the path to the last optimum.

The notation is that of `interior`. The next program has more pairs and more secrets than the last one. The old points are moved
towards a constant channel until they lie strictly inside the new constraints, too.
"""

from copy import deepcopy
from dataclasses import dataclass, replace

import numba
import numpy as np

from mobpriv.channels.programs.certificate import Program

WAYPOINTS, _ROOM = (1e-2, 1e-4, 1e-6), 0.7
"""Relative gaps at which points are kept for a warm start; share of a violated pair's room that a restart leaves free."""
_FIT, _CENTRED = 0.05, 4.0
"""Share of a new secret's room between its pairs that a restart keeps free on either side; largest ratio of new to old
multipliers. A point near the boundary at the wrong place once cost 50 steps.
"""


@dataclass
class Point:
    """A point strictly inside every constraint, with its multipliers; also a step between two points."""

    P: np.ndarray  # p(o|s), shape (m, n)
    x: np.ndarray  # (m,)
    slack: float
    pairs: np.ndarray  # multipliers of g
    attacks: np.ndarray  # multipliers of f, (m, estimates)
    y: np.ndarray  # multipliers of the rows' sums, (n,)
    nu: float  # multiplier of (24c)
    g: np.ndarray  # slacks, updated step by step: near the optimum they are far smaller than the rounding of their differences
    f: np.ndarray
    numbers: np.ndarray  # of the constraints g


def _numbers(pairs) -> np.ndarray:
    """One number for every constraint: observable, source, target."""
    o = np.repeat(np.arange(len(pairs.first) - 1), np.diff(pairs.first))
    return ((o << 20) + pairs.source << 20) + pairs.target


class Warm:
    """Points on the path to the last optimum, from which the same program with more pairs or secrets may start."""

    def __init__(self):
        self.points: dict[float, Point] = {}  # by the relative gap below which they lie

    def for_reward(self) -> "Warm":
        """The same points for (22) with another reward, without their values of the distortion privacy."""
        warm = Warm()
        for waypoint, point in self.points.items():
            none = np.zeros((len(point.P), 0))
            warm.points[waypoint] = replace(point, x=np.zeros(len(point.P)), attacks=none, f=none.copy())
        return warm


def start(program: Program) -> Point:
    """The constant channel p(o|s) = 1/m, which lies inside every constraint; all products with multipliers equal."""
    m, n = program.kappa.shape
    product = 30 / len(program.pairs.source)  # a first gap of about 30, well above any cost
    P = np.full((m, n), 1 / m)
    d_max = float(program.F.sum(axis=1).min()) if len(program.F) else 0.0  # error of the best guess without an observation
    limited = program.d_m is not None
    x = np.full(m, (d_max + (program.d_m if limited else 0.0)) / 2 / m)
    slack = float(x.sum() - program.d_m) if limited else 0.0
    g, f = slacks(P, *program.pairs), P @ program.F.T - x[:, None]
    nu = product / slack if limited else 0.0
    return Point(P, x, slack, product / g, product / f, np.zeros(n), nu, g, f, _numbers(program.pairs))


def restart(program: Program, warm: Warm) -> Point | None:
    """A point strictly inside the new program; None if no old one can be used.

    Old points are moved towards a constant channel until the new pairs hold and the new secrets fit in; the farthest that can
    be moved is returned. The share of the move is about its cost, which should not exceed the gap there. New secrets come after
    the old ones.
    """
    m, n = program.kappa.shape
    constants = np.repeat(np.arange(m), np.diff(program.pairs.first))
    for waypoint, old in sorted(warm.points.items()):
        attacks = old.attacks.shape[1]
        if len(old.P) != m or (attacks != len(program.F) and (attacks or not program.reward)):
            continue
        const, known = old.P.mean(axis=1), old.P.shape[1]
        inside = np.maximum(program.pairs.source, program.pairs.target) < known
        P = np.full((m, n), const[:, None])
        P[:, :known] = old.P
        short = np.maximum(-slacks(P, *program.pairs), 0.0)[inside]
        room = (_ROOM * const[constants] * (1 - program.pairs.ratio))[inside]
        share = max(float((short / (short + room)).max()), waypoint / 10)
        largest_share = waypoint if waypoint < WAYPOINTS[0] else 0.5
        while share <= largest_share:
            P[:, :known] = (1 - share) * old.P + share * const[:, None]
            if fill_strictly(P, known, const, *program.pairs):
                point = _drawn(program, old, P, share, const)
                if point.pairs.max() <= _CENTRED * old.pairs.max():
                    return point
            share *= 2
    return None


@numba.njit(cache=True, error_model="numpy")
def fill_strictly(P, known, const, first, source, target, ratio):
    """Fill in the columns of P (m, n) from `known` on, in place, strictly within the listed pairs; False if there is no room.

    A secret without a pair to an earlier one gets the answers of `const` (m,).
    """
    m, n = P.shape
    low, high = np.empty(m), np.empty(m)
    for s in range(known, n):
        low[:], high[:] = 0.0, np.inf
        for o in range(m):
            for i in range(first[o], first[o + 1]):
                if target[i] == s and source[i] < s:
                    low[o] = max(low[o], ratio[i] * P[o, source[i]])
                elif source[i] == s and target[i] < s:
                    high[o] = min(high[o], P[o, target[i]] / ratio[i])
        low_sum, high_sum = low.sum(), high.sum()
        share = 0.0 if high_sum == np.inf else (1 - low_sum) / (high_sum - low_sum)
        if low_sum == 0.0 and high_sum == np.inf:  # no pair with a secret before it
            P[:, s] = const
        elif _FIT < share < 1 - _FIT and (low < high).all():
            P[:, s] = low + share * (high - low)
        else:
            return False
    return True


def _drawn(program: Program, old: Point, P: np.ndarray, share: float, const: np.ndarray) -> Point:
    point, n = deepcopy(old), P.shape[1]
    point.P = P
    if len(program.F) and not point.attacks.shape[1]:  # for_reward: multipliers sum to the reward and fit the slacks
        point.x = 0.9 * (P @ program.F.T).min(axis=1)
        point.attacks = 1 / (P @ program.F.T - point.x[:, None])
        point.attacks *= program.reward / point.attacks.sum(axis=1, keepdims=True)
    elif len(program.F):
        d_max = float(program.F.sum(axis=1).min())
        limited = program.d_m is not None
        point.x = (1 - share) * point.x + share * const * (d_max + (program.d_m if limited else 0.0)) / 2
        point.slack = float(point.x.sum() - program.d_m) if limited else 0.0
    point.g, point.f = slacks(point.P, *program.pairs), point.P @ program.F.T - point.x[:, None]
    numbers = _numbers(program.pairs)
    _, new, kept = np.intersect1d(numbers, old.numbers, assume_unique=True, return_indices=True)
    product = float((old.pairs[kept] * point.g[new]).mean())
    point.pairs = product / point.g
    point.pairs[new] = old.pairs[kept]
    point.numbers = numbers
    point.y = np.concatenate([point.y, np.zeros(n - len(point.y))])
    return point


@numba.njit(cache=True, error_model="numpy")
def slacks(P, first, source, target, ratio):
    """G p for every listed constraint: p_o(target) - ratio * p_o(source)."""
    g = np.empty(len(source))
    for o in range(len(P)):
        for i in range(first[o], first[o + 1]):
            g[i] = P[o, target[i]] - ratio[i] * P[o, source[i]]
    return g
