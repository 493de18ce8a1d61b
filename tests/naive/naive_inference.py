"""Slow twins of channels/: sums over single secrets, observables and estimates, as the paper writes them."""

import math
from itertools import combinations, permutations, product

import numpy as np
from scipy.optimize import linprog


def expected_error(prior, channel, error, q) -> float:
    """Equation (7), q a matrix."""
    secrets, observables, estimates = range(len(prior)), range(len(channel[0])), range(len(error[0]))
    return math.fsum(prior[s] * channel[s][o] * q[o][h] * error[s][h] for s, o, h in product(secrets, observables, estimates))


def conditional_error(channel, error, q) -> list[float]:
    """Equation (26)."""
    observables, estimates = range(len(channel[0])), range(len(error[0]))
    return [
        math.fsum(channel[s][o] * q[o][h] * error[s][h] for o, h in product(observables, estimates))
        for s in range(len(channel))
    ]


def best_deterministic(prior, channel, error) -> float:
    """(19) by trying every function from observables to estimates."""
    attacks = product(range(len(error[0])), repeat=len(channel[0]))
    return min(
        math.fsum(prior[s] * channel[s][o] * error[s][attack[o]] for s in range(len(prior)) for o in range(len(attack)))
        for attack in attacks
    )


def bayes(prior, channel) -> list[list[float]]:
    """Equation (25)."""
    rows = []
    for o in range(len(channel[0])):
        joint = [prior[s] * channel[s][o] for s in range(len(prior))]
        rows.append([j / sum(joint) for j in joint] if sum(joint) > 0 else list(prior))
    return rows


def minmax(channel, error, by_pair: bool) -> float:
    """y of (28) or (29): every row written out, solved by scipy."""
    observables, estimates = range(len(channel[0])), range(len(error[0]))
    width = len(observables) * len(estimates) + 1
    rows = []
    for s in range(len(channel)):
        terms = [[h] for h in estimates] if by_pair else [list(estimates)]
        for chosen in terms:
            row = [0.0] * width
            for o, h in product(observables, chosen):
                row[o * len(estimates) + h] = channel[s][o] * error[s][h]
            row[-1] = -1.0
            rows.append(row)
    simplices = [[float(k // len(estimates) == o) for k in range(width - 1)] + [0.0] for o in observables]
    cost = [0.0] * (width - 1) + [1.0]
    found = linprog(cost, rows, np.zeros(len(rows)), simplices, np.ones(len(simplices)), method="highs")
    assert found.status == 0
    return found.fun


def remap(prior, channel, cost) -> list[list[float]]:
    """Every observable moved to the new one of least posterior expected cost."""
    moved = [[0.0] * len(cost[0]) for _ in prior]
    for o in range(len(channel[0])):
        expected = [
            math.fsum(prior[s] * channel[s][o] * cost[s][new] for s in range(len(prior))) for new in range(len(cost[0]))
        ]
        new = expected.index(min(expected))
        for s in range(len(prior)):
            moved[s][new] += channel[s][o]
    return moved


def is_metric(d) -> bool:
    n = range(len(d))
    return (
        all(d[i][i] == 0 for i in n)
        and all(d[i][j] > 0 and d[i][j] == d[j][i] for i, j in permutations(n, 2))
        and all(d[i][j] <= (d[i][k] + d[k][j]) * (1 + 1e-9) for i, j, k in permutations(n, 3))
    )


def spanner_pairs(d, stretch) -> list[tuple[int, int]]:
    """The greedy spanner: shortest paths anew (Bellman-Ford) for every pair."""
    n = len(d)
    pairs = []
    for i, j in sorted(combinations(range(n), 2), key=lambda pair: d[pair[0]][pair[1]]):
        reach = [0.0 if k == i else math.inf for k in range(n)]
        for _ in range(n):
            for a, b in pairs:
                reach[b], reach[a] = min(reach[b], reach[a] + d[a][b]), min(reach[a], reach[b] + d[a][b])
        if reach[j] > stretch * d[i][j] * (1 + 1e-12):
            pairs.append((i, j))
    return pairs


def privacy_mass(d, mass, place, length) -> float:
    """The mass in the ball of ``d`` around a place."""
    return math.fsum(m for m, away in zip(mass, d[place], strict=True) if away <= length)


def effective_epsilon(channel, d) -> float:
    """Largest |ln p(o|s) − ln p(o|s')| / d(s, s')."""
    worst = 0.0
    for s, t in permutations(range(len(channel)), 2):
        for p, q in zip(channel[s], channel[t], strict=True):
            if p > 0 or q > 0:
                worst = max(worst, math.log(p / q) / d[s][t] if p > 0 and q > 0 else math.inf)
    return worst
