"""Slow twins of PULP, written from the paper's definitions, one user and one place at a time."""

import math

import numpy as np
from scipy.optimize import minimize

from mobpriv.ground.geo import distance
from mobpriv.traces.profiles import pois, stays


def poi_privacy(original, protected, diameter, duration, near, merged, matched, plane):
    """user -> (precision, recall, privacy) of Equation (1), NaN where it is 0/0."""
    real, published = (_places(t, diameter, duration, merged, plane) for t in (original, protected))
    scores = {}
    for user in sorted(set(original["user"])):
        a, b = real.get(user, []), published.get(user, [])
        close = [[float(distance(*x, *y, plane)) <= near for y in b] for x in a]
        hit = sum(any(row[j] for row in close) for j in range(len(b)))
        again = sum(any(row) for row in close)
        precision = hit / len(b) if b else math.nan
        recall = (hit if matched == "protected" else again) / len(a) if a else math.nan
        if not a:
            privacy = math.nan
        elif hit == 0:
            privacy = 1.0
        else:
            privacy = 1 - 2 * precision * recall / (precision + recall)
        scores[user] = precision, recall, privacy
    return scores


def _places(traces, diameter, duration, merged, plane):
    table = pois(traces, diameter, duration, plane=plane)[0] if merged else stays(traces, diameter, duration, plane=plane)
    places = {}
    for user, lat, lng in zip(table["user"], table["lat"], table["lng"], strict=True):
        places.setdefault(user, []).append((lat, lng))
    return places


def arctan(p, x):
    """Equation (3)."""
    a, b, c, d = p
    return a * np.arctan(b * (x - c)) + d


def minimised(values, levels, standard, rises):
    """The sum of squares that a general minimiser without bounds, as fminunc is, ends at from the start values of §VI-A."""
    x, y = np.log(values), np.asarray(levels)
    start = [(1 if rises else -1) / math.pi, 1.0, math.log(standard), 0.5]
    return minimize(lambda p: ((arctan(p, x) - y) ** 2).sum(), start, method="BFGS", options={"gtol": 1e-6, "maxiter": 400}).fun


def least_soft_cost(values, levels, scale):
    """The least soft-l1 cost that Nelder and Mead's simplex comes to from 72 places, saturation levels kept in [-0.5, 1.5]."""
    x, y = np.log(values), np.asarray(levels)

    def cost(p):
        left, right, speed, middle = np.clip(
            p, [-0.5, -0.5, math.log(0.01), 2 * x[0] - x[-1]], [1.5, 1.5, math.log(100), 2 * x[-1] - x[0]]
        )
        return soft_cost(left + (right - left) * (0.5 + np.arctan(np.exp(speed) * (x - middle)) / math.pi) - y, scale)

    starts = [(left, 1 - left, speed, c) for left in (0.1, 0.9) for speed in (-1, 0, 1, 3) for c in np.linspace(x[0], x[-1], 9)]
    return min(minimize(cost, start, method="Nelder-Mead").fun for start in starts)


def soft_cost(errors, scale):
    return (scale**2 * (np.sqrt(1 + (errors / scale) ** 2) - 1)).sum(axis=-1)


class OnLattice:
    """The four laws by trying a fine lattice of settings of one candidate."""

    def __init__(self, candidate, places=40_001):
        x = np.linspace(math.log(candidate.low), math.log(candidate.high), places)
        self.value = np.exp(x)
        self.privacy, self.utility = (arctan(model, x) for model in (candidate.privacy, candidate.utility))

    def kept(self, privacy, utility):
        return (self.privacy >= privacy) & (self.utility >= utility)

    def crossings(self, w):
        """Where F_pr − w F_ut changes its sign: the greatest level of F_pr + w F_ut there, or None."""
        sign = np.sign(self.privacy - w * self.utility)
        at = np.flatnonzero(sign[1:] * sign[:-1] <= 0)
        return (self.privacy + w * self.utility)[at].max() if len(at) else None
