"""Slow twins of the mechanisms: one record at a time, written from the definitions."""

import math
from itertools import pairwise

import numpy as np
from pyproj import Geod
from scipy.optimize import brentq

from mobpriv.ground.geo import distance, to_plane

WGS84 = Geod(ellps="WGS84")


def planar_laplace(trace: list[tuple[float, float]], epsilon: float, child: np.random.Generator) -> list[tuple[float, float]]:
    """(lat, lng) of one user's records after Geo-I, each moved along the geodesic."""
    moved = []
    for lat, lng in trace:
        radius = (child.standard_exponential() + child.standard_exponential()) / epsilon
        angle = 2 * math.pi * child.random()  # from east, anticlockwise
        to_lng, to_lat, _ = WGS84.fwd(lng, lat, 90 - math.degrees(angle), radius)
        moved.append((to_lat, to_lng))
    return moved


def speed_smoothing(lat, lng, ms, alpha: float, plane: str) -> list[tuple[float, float, int]]:
    """(x, y in the plane's coordinates, ms) of one trace after Promesse."""
    p = to_plane(np.asarray(lat), np.asarray(lng), plane)
    records = [(float(x), float(y)) for x, y in zip(p.x, p.y, strict=True)]

    def metres(a, b):
        if plane == "mercator":
            return math.dist(a, b)
        return float(distance(a[1], a[0], b[1], b[0]))

    def towards(a, b, share):
        return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])

    samples, times = [records[0]], [int(ms[0])]
    for record, time in zip(records[1:], ms[1:], strict=True):
        while metres(samples[-1], record) >= alpha:
            last = samples[-1]
            share = brentq(lambda s: metres(last, towards(last, record, s)) - alpha, 0, 1, xtol=1e-14)  # noqa: B023
            samples.append(towards(last, record, share))
            times.append(int(time))
    samples, times = samples[1:-1], times[1:-1]
    n = len(samples)
    return [
        (x, y, times[0] + (math.ceil(i * (times[-1] - times[0]) / (n - 1)) if n > 1 else 0)) for i, (x, y) in enumerate(samples)
    ]


def lst_walk(a: list[int], b: list[int], apart, unit: float, cap: int) -> list[tuple[int, int, int]]:
    """The pairs (i, j, cost) that the two pointers of W4M's linear distance pass; ``apart(i, j)`` is the 3-D distance in m."""

    def cost(i, j):
        return min(math.floor(apart(i, j) / unit), cap)

    i = j = 0
    walk = [(a[0], b[0], cost(a[0], b[0]))]
    while (i, j) != (len(a) - 1, len(b) - 1):
        steps = [(i + 1, j + 1), (i, j + 1), (i + 1, j)]
        if i == len(a) - 1:
            steps = [(i, j + 1)]
        elif j == len(b) - 1:
            steps = [(i + 1, j)]
        i, j = min(steps, key=lambda s: cost(a[s[0]], b[s[1]]))  # the first of equals
        walk.append((a[i], b[j], cost(a[i], b[j])))
    return walk


def wait_for_me(traces: list[dict], k, delta, trash_max, radius, cap, plane, rng):
    """Clusters [(pivot, member, …)], trash and the published traces [(ms, lat, lng)] by trace, or None where left out.

    ``traces``: one dictionary of lists ``ms``, ``lat``, ``lng`` each.
    """
    flat_list = [
        (t, ms, la, ln) for t, tr in enumerate(traces) for ms, la, ln in zip(tr["ms"], tr["lat"], tr["lng"], strict=True)
    ]
    blocks = [[r for r, record in enumerate(flat_list) if record[0] == t] for t in range(len(traces))]
    p = to_plane(np.array([r[2] for r in flat_list]), np.array([r[3] for r in flat_list]), plane)

    def flat(i, j):
        east, north = (p.sx[i] + p.sx[j]) / 2 * (p.x[j] - p.x[i]), (p.sy[i] + p.sy[j]) / 2 * (p.y[j] - p.y[i])
        return math.hypot(east, north)

    def seconds(block):
        return (flat_list[block[-1]][1] - flat_list[block[0]][1]) / 1000

    speeds = [sum(flat(i, j) for i, j in pairwise(b)) / seconds(b) for b in blocks if seconds(b) > 0]
    v = sum(speeds) / len(speeds) if speeds else 0

    def apart(i, j):
        return math.hypot(flat(i, j), (flat_list[j][1] - flat_list[i][1]) / 1000 * v)

    def likeness(pivot, other):
        walk = lst_walk(blocks[pivot], blocks[other], apart, delta, cap)
        return sum(cost for _, _, cost in walk), max(flat(i, j) for i, j, _ in walk)

    n = len(traces)
    while True:
        free, clusters = set(range(n)), []
        for pivot in rng.permutation(n).tolist():
            if pivot not in free:
                continue
            free.remove(pivot)
            near = sorted(free, key=lambda other: (likeness(pivot, other)[0], -other))[: k - 1]
            if len(near) == k - 1 and all(likeness(pivot, other)[1] <= radius for other in near):
                clusters.append([pivot, *near])
                free -= set(near)
        alone = set(range(n)) - {member for cluster in clusters for member in cluster}
        pivots, trash = [cluster[0] for cluster in clusters], set()
        for trace in sorted(alone):
            c = min(range(len(pivots)), key=lambda c: likeness(pivots[c], trace)[0], default=None)
            if c is not None and likeness(pivots[c], trace)[1] <= radius:
                clusters[c].append(trace)
            else:
                trash.add(trace)
        if len(trash) <= trash_max * n:
            break
        radius *= 1.5

    published = [None] * n
    for pivot, *members in clusters:
        for member in (pivot, *members):
            walk = lst_walk(blocks[pivot], blocks[member], apart, delta / 2, cap)
            published[member] = []
            for i in blocks[pivot]:
                j = i if member == pivot else next(j for a, j, _ in walk if a == i)
                lat, lng = flat_list[j][2:]
                d = flat(i, j)
                if d > delta / 2:  # in degrees: within a few hundred metres the two planes are as good as linear
                    lat0, lng0 = flat_list[i][2:]
                    share = delta / 2 / d
                    lat, lng = lat0 + share * (lat - lat0), lng0 + share * (lng - lng0)
                published[member].append((flat_list[i][1], lat, lng))
    return clusters, trash, radius, published
