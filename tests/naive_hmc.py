"""HMC word by word (thesis §4.4, §4.5), a record and a cell at a time: what the fast one is held against."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise


def shares(cells: list) -> dict:
    """The heat map of the cells that a trace's records lie in."""
    return {cell: n / len(cells) for cell, n in Counter(cells).items()}


def topsoe(x: dict, y: dict) -> float:
    """Equation (3.3), every cell of either map, 0 ln 0 = 0."""
    total = 0.0
    for cell in x.keys() | y.keys():
        a, b = x.get(cell, 0.0), y.get(cell, 0.0)
        total += (a * math.log(2 * a / (a + b)) if a else 0.0) + (b * math.log(2 * b / (a + b)) if b else 0.0)
    return total


def coverage(x: dict, y: dict) -> Fraction:
    """(4.11) to (4.13), without rounding: equals must be told from nearly equal."""
    both = len(x.keys() & y.keys())
    precision, recall = Fraction(both, len(y)), Fraction(both, len(x))
    return 2 * precision * recall / (precision + recall) if both else Fraction(0)


def altered(h: dict, profiles: dict, owner: str, n: int, a: float, patience: int, margin=0.0, exclusion=False):
    """Algorithm 1: (outcome, target, H')."""
    if owner not in profiles:
        return "not known", None, h
    d = {user: topsoe(h, p) for user, p in profiles.items()}
    u = min(sorted(d), key=d.get)
    if u != owner:
        return "not needed", None, h
    others = sorted(user for user in profiles if user != u)
    most = max(coverage(h, profiles[user]) for user in others)
    v = min((user for user in others if coverage(h, profiles[user]) == most), key=d.get)
    U, V, c, rounds = profiles[u], profiles[v], 0, 0
    while topsoe(h, U) - topsoe(h, V) <= margin and c < patience and rounds < 5 * patience:
        R = {cell: n * share for cell, share in h.items()}
        unlike = (lambda cell: float(cell not in U)) if exclusion else (lambda cell: 1 - U.get(cell, 0.0))
        W = {cell: share * V.get(cell, 0.0) * unlike(cell) for cell, share in h.items()}
        total = sum(W.values())
        if not total:
            break
        R = {cell: R[cell] + a / total * W[cell] for cell in R}
        new = {cell: r / sum(R.values()) for cell, r in R.items()}
        closer = topsoe(new, U) - topsoe(new, V) > topsoe(h, U) - topsoe(h, V)
        c, h, rounds = 0 if closer else c + 1, new, rounds + 1
    if topsoe(h, U) - topsoe(h, V) <= margin:
        return "replaced", v, V
    return "confused", v, h


def candidates(records: list, n: int) -> list:
    """Algorithm 2 without its last line: records (t, lat, lng) and midpoints until there are n."""
    P = [tuple(Fraction(x) for x in r) for r in records]
    if len(P) == 1:
        return P * n  # the algorithm as printed would not end
    while len(P) < n:
        longer = []
        for before, after in pairwise(P):
            longer += [before, tuple((x + y) / 2 for x, y in zip(before, after, strict=True))]
        P = [*longer, P[-1]]
    return P


def best_gap(gaps: list, sets: list, centre, speed: float, distance) -> tuple | None:
    """Algorithm 3: the pair (gap, set, time the set begins) with the least way; gaps (a, b), sets lists of (t ms, lat, lng)."""
    best = None
    for a, b in gaps:
        begins = math.ceil(a[0] + distance(a[1:], centre) / speed * 1000)
        ends = b[0] - distance(b[1:], centre) / speed * 1000
        for records in sets:
            if records[-1][0] - records[0][0] > ends - begins:
                continue
            way = distance(a[1:], records[0][1:]) + distance(records[-1][1:], b[1:])
            if best is None or way < best[0]:
                best = way, (a, b), records, begins
    return best and best[1:]
