"""Slow twins of mobpriv.datasets.statistics, written from the definitions with loops, sets and dictionaries."""

from collections import Counter, defaultdict
from itertools import combinations

import numpy as np

from mobpriv.ground.geo import distance
from mobpriv.ground.grid import SquareGrid


def records_of(traces):
    """user -> [(t in s, lat, lng)], in order."""
    out = defaultdict(list)
    for user, t, lat, lng in zip(traces["user"].astype(str), traces["t"], traces["lat"], traces["lng"], strict=True):
        out[user].append((t.timestamp(), lat, lng))
    return dict(out)


def radius_of_gyration(traces):
    out = {}
    for user, records in records_of(traces).items():
        lat, lng = np.mean([r[1] for r in records]), np.mean([r[2] for r in records])
        out[user] = np.sqrt(np.mean([float(distance(lat, lng, r[1], r[2])) ** 2 for r in records]))
    return out


def cell_of(lat, lng, side):
    return int(SquareGrid(side).cells(np.array([lat]), np.array([lng]))[0])


def share_by_rank(stays, side, ranks):
    """Mean over users of the share of their visits that the place of each rank gets."""
    visits = defaultdict(Counter)
    for user, lat, lng in zip(stays["user"], stays["lat"], stays["lng"], strict=True):
        visits[user][cell_of(lat, lng, side)] += 1
    total = np.zeros(ranks)
    for places in visits.values():
        counts = sorted(places.values(), reverse=True)[:ranks]
        total[: len(counts)] += np.array(counts) / places.total()
    return total / len(visits)


def points_of(traces, side):
    """user -> set of (hour, cell)."""
    out = defaultdict(set)
    for user, records in records_of(traces).items():
        for t, lat, lng in records:
            out[user].add((t // 3600, cell_of(lat, lng, side)))
    return out


def share_unique(points, user, size):
    """Of all ordered choices of ``size`` distinct points of a user, the share that no other user's points contain."""
    chosen = list(combinations(sorted(points[user]), size))
    return np.mean([not any(set(c) <= other for name, other in points.items() if name != user) for c in chosen])
