"""Slow twins of channels/optimal.py: the programs (21) to (24) as the paper writes them, no row left out, solved by scipy."""

import math
from itertools import permutations, product

import numpy as np
from scipy.optimize import linprog

from mobpriv.channels.distances import euclidean


def cells(x: int, y: int, width: float, height: float) -> np.ndarray:
    """Distances between the cells' centres; cell = row · x + column."""
    i = np.arange(x * y)
    return euclidean(np.column_stack([(i % x + 0.5) * width / x, (i // x + 0.5) * height / y]))


def differential_pairs(d, epsilon) -> dict:
    """(22b): ln of the factor for every ordered pair of secrets."""
    return {(s, t): epsilon * d[s][t] for s, t in permutations(range(len(d)), 2)}


def within_pairs(d, epsilon, threshold) -> dict:
    """(23b): the same factor for all pairs within the threshold."""
    return {(s, t): epsilon for s, t in permutations(range(len(d)), 2) if d[s][t] <= threshold}


def optimum(prior, cost, pairs, error=None, d_m=None, worst_case=False, kept=lambda s, t, o: True) -> float:
    """The least (11), or (12), over channels that keep p(o|s) <= exp(pairs[s, t]) p(o|t) and, if asked for, (24b, c).

    `kept` chooses the observables for which a pair is a constraint: all, but for Appendix C.
    """
    return _solved(*_program(prior, cost, pairs, error, d_m, worst_case, kept)).fun


def largest_distortion(prior, cost, pairs, error, at_most) -> float:
    """The largest sum_o x(o), which is AP, among the channels whose cost (11) is at most `at_most`."""
    objective, rows, right, simplices = _program(prior, cost, pairs, error, 0.0, False)
    rewards = np.array([0.0] * np.size(cost) + [-1.0] * len(cost[0]) + [0.0])
    return -_solved(rewards, np.vstack([rows, objective]), np.append(right, at_most), simplices).fun


def _program(prior, cost, pairs, error, d_m, worst_case, kept=lambda s, t, o: True):
    """Variables: p(o|s), secret after secret; x(o); z. Rows mean "at most" the right side; the simplices sum to 1."""
    n, m = len(cost), len(cost[0])
    rows, right = [], []

    def at_most(limit, terms):
        row = np.zeros(n * m + m + 1)
        for place, value in terms:
            row[place] += value
        rows.append(row)
        right.append(limit)

    for ((s, t), exponent), o in product(pairs.items(), range(m)):
        if kept(s, t, o):
            at_most(0.0, [(s * m + o, math.exp(-exponent)), (t * m + o, -1.0)])
    for s in range(n if worst_case else 0):  # (12)
        at_most(0.0, [(s * m + o, cost[s][o]) for o in range(m)] + [(n * m + m, -1.0)])
    if error is not None:
        for o, h in product(range(m), range(len(error[0]))):  # (24b)
            at_most(0.0, [(n * m + o, 1.0)] + [(s * m + o, -prior[s] * error[s][h]) for s in range(n)])
        at_most(-d_m, [(n * m + o, -1.0) for o in range(m)])  # (24c)
    average = [prior[s] * cost[s][o] for s, o in product(range(n), range(m))] + [0.0] * (m + 1)
    objective = np.array([0.0] * (n * m + m) + [1.0]) if worst_case else np.array(average)
    simplices = np.array([[float(k // m == s) if k < n * m else 0.0 for k in range(n * m + m + 1)] for s in range(n)])
    return objective, np.array(rows).reshape(-1, n * m + m + 1), np.array(right), simplices


def _solved(objective, rows, right, simplices):
    probabilities = simplices.any(axis=0)
    bounds = [(0, None) if is_p else (None, None) for is_p in probabilities]
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(objective, rows, right, simplices, np.ones(len(simplices)), bounds, method="highs", options=tight)
    assert found.status == 0, found.message
    return found


def bound_of(prior, cost, d, epsilon, weights) -> float:
    """Weak duality of (22) for any weights[o][s, t] >= 0 of the rows p(o|t) - exp(-eps d(s, t)) p(o|s) >= 0."""
    total = 0.0
    for s in range(len(cost)):
        reduced = []
        for o in range(len(cost[0])):
            into = math.fsum(weights[o][t][s] for t in range(len(cost)) if t != s)
            out = math.fsum(math.exp(-epsilon * d[s][t]) * weights[o][s][t] for t in range(len(cost)) if t != s)
            reduced.append(prior[s] * cost[s][o] - into + out)
        total += min(reduced)
    return total
