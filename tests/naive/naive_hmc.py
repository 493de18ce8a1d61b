"""HMC word by word (thesis §4.4, §4.5), a record and a cell at a time: what the fast one is held against."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

from naive_profiles import topsoe


def shares(cells: list) -> dict:
    """The heat map of the cells that a trace's records lie in."""
    return {cell: n / len(cells) for cell, n in Counter(cells).items()}


def coverage(x: dict, y: dict) -> Fraction:
    """(4.11) to (4.13), without rounding: equals must be told from nearly equal."""
    both = len(x.keys() & y.keys())
    precision, recall = Fraction(both, len(y)), Fraction(both, len(x))
    return 2 * precision * recall / (precision + recall) if both else Fraction(0)


def whole_records(h: dict, n: float, rounding: str) -> dict:
    """How many of n records each cell gets, the cells in the order of ``h``."""
    if rounding == "up":
        return {cell: math.ceil(n * x - 1e-9) for cell, x in h.items()}
    if rounding == "nearest":
        return {cell: math.floor(n * x + 0.5 + 1e-9) for cell, x in h.items()}
    counts = {cell: math.floor(n * x + 1e-9) for cell, x in h.items()}
    left = round(n * sum(h.values()) - sum(counts.values()))
    for cell in sorted(h, key=lambda cell: round(counts[cell] - n * h[cell], 9))[:left]:
        counts[cell] += 1
    return counts


def rounded(h: dict, n: float, rounding: str) -> tuple[dict, float]:
    counts = whole_records(h, n, rounding)
    total = sum(counts.values())
    return ({cell: m / total for cell, m in counts.items()}, total) if total else (h, n)


def mean(maps: list) -> dict:
    return {cell: sum(m.get(cell, 0.0) for m in maps) / len(maps) for cell in sorted(set().union(*maps))}


def altered(
    h: dict,
    profiles: dict,
    owner: str,
    n: int,
    a: float,
    patience: int,
    margin=0.0,
    exclusion=False,
    k=1,
    target="users",
    rounding="up",
    rounded_at="end",
):
    """Algorithm 1, and what goes beyond it: (outcome, targets, H', records)."""
    if owner not in profiles:
        return "not known", [], h, n
    d = {user: topsoe(h, p) for user, p in profiles.items()}
    if sorted(sorted(d), key=d.get).index(owner) >= (k if target == "users" else 1):
        return "not needed", [], h, n
    others = sorted(user for user in profiles if user != owner)
    best = sorted(others, key=lambda user: (-coverage(h, profiles[user]), d[user]))[:k]
    U, goals = profiles[owner], [profiles[user] for user in best]
    if target == "population":
        there = {cell: sum(profiles[user].get(cell, 0.0) for user in others) for cell in h}
        if not sum(there.values()):
            there = dict.fromkeys(h, 1.0)
        best, goals = [], [{cell: x / sum(there.values()) for cell, x in there.items() if x}]
    V = mean(goals)
    if target == "mean":
        goals = [V]

    def lead(h):
        return topsoe(h, U) - max(topsoe(h, goal) for goal in goals)

    held, c, rounds, share = n, 0, 0, a / n
    while True:
        judged, records = rounded(h, held, rounding) if rounded_at == "rule" else (h, held)
        if lead(judged) > margin:
            return "confused", best, judged, records
        unlike = (lambda cell: float(cell not in U)) if exclusion else (lambda cell: 1 - U.get(cell, 0.0))
        W = {cell: x * V.get(cell, 0.0) * unlike(cell) for cell, x in h.items()}
        total = sum(W.values())
        if c >= patience or rounds >= 5 * patience or not total:
            return "replaced", best, V, n
        R = {cell: held * h[cell] + share * held / total * W[cell] for cell in h}
        new = {cell: r / sum(R.values()) for cell, r in R.items()}
        if rounded_at == "iteration":
            new, held = rounded(new, held, rounding)
        c, h, rounds = 0 if lead(new) > lead(h) else c + 1, new, rounds + 1


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
