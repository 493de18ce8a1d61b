"""Slow twins of mobpriv.metrics, one record at a time, written from the definitions."""

import itertools
import math

import numpy as np
from naive_traces import records_of
from scipy.optimize import brentq, minimize_scalar

from mobpriv.ground.geo import distance, metres_per_degree, to_degrees, to_plane


def area_coverage(original, protected, grid, window):
    """user -> (precision, recall, F-score) of Equations (4.11) to (4.13)."""
    before, after = ({u: _cells(r, grid, window) for u, r in records_of(t).items()} for t in (original, protected))
    found = {}
    for user, c in before.items():
        published = after.get(user, set())
        p = len(c & published) / len(published) if published else 1.0
        r = len(c & published) / len(c)
        found[user] = p, r, 2 * p * r / (p + r) if p + r else 0.0
    return found


def _cells(records, grid, window):
    """C(T), Equation (4.10); with the window of the record's time, if there are windows."""
    cells = set()
    for t, lat, lng in records:
        cell = int(grid.cells(np.array([lat]), np.array([lng]))[0])
        cells.add((cell, None if window is None else math.floor(t.timestamp() * 1000 / (window * 1000))))
    return cells


def on_the_way(a, b, share, plane):
    """The position (lat, lng) so far from a to b, straight in the plane and the short way round the globe."""
    p = to_plane(np.array([a[0], b[0]]), np.array([a[1], b[1]]), plane)
    dx = p.x[1] - p.x[0]
    if plane == "ground":
        dx -= 360 * round(dx / 360)
    if share == 1:
        return b
    lat, lng = to_degrees(p.x[0] + share * dx, p.y[0] + share * (p.y[1] - p.y[0]), plane)
    return float(lat), float(lng)


def to_segment(x, a, b, plane):
    """Metres from x to its projection on the segment a b: where the line is perpendicular to the way there by the scales at x, or
    the nearer end."""
    if a == b:
        return metres(x, a, plane)

    def along(share):
        """How far the segment still leads towards x: the scalar product of the segment and the way from the foot to x, in m²."""
        foot = on_the_way(a, b, share, plane)
        p = to_plane(np.array([foot[0], x[0], a[0], b[0]]), np.array([foot[1], x[1], a[1], b[1]]), plane)
        way, line = p.x[1] - p.x[0], p.x[3] - p.x[2]
        if plane == "ground":
            way, line = way - 360 * round(way / 360), line - 360 * round(line / 360)
        sx, sy = p.sx[1], p.sy[1]  # at x
        return sx * way * sx * line + sy * (p.y[1] - p.y[0]) * sy * (p.y[3] - p.y[2])

    if along(0) <= 0:
        return metres(x, a, plane)
    if along(1) >= 0:
        return metres(x, b, plane)
    return metres(x, on_the_way(a, b, brentq(along, 0, 1, xtol=1e-15), plane), plane)


def least_to_segment(x, a, b, plane):
    """Metres from x to the nearest position of the segment a b, found by trial."""
    squared = lambda share: metres(x, on_the_way(a, b, share, plane), plane) ** 2  # noqa: E731
    best = minimize_scalar(squared, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
    return math.sqrt(min(best.fun, squared(0), squared(1)))


def metres(a, b, plane):
    return float(distance(a[0], a[1], b[0], b[1], plane))


def distances_to_path(original, protected, plane, interpolate):
    """user -> metres of each protected record to the nearest of all segments, or of all records."""
    before, found = records_of(original), {}
    for user, records in records_of(protected).items():
        path = [r[1:] for r in before[user]]
        ends = list(itertools.pairwise(path)) if interpolate and len(path) > 1 else [(r, r) for r in path]
        found[user] = [min(to_segment(x, a, b, plane) for a, b in ends) for _, *x in records]
    return found


def temporal_projection(trace, t, plane):
    """Equation (4.15) for one time: the expected (lat, lng)."""
    if t <= trace[0][0]:
        return trace[0][1:]
    for (t1, *a), (t2, *b) in itertools.pairwise(trace):
        if t1 < t <= t2:
            return on_the_way(tuple(a), tuple(b), (t - t1) / (t2 - t1), plane)
    return trace[-1][1:]


def spatio_temporal_distortion(original, protected, plane):
    """user -> Equation (4.16)."""
    before, found = records_of(original), {}
    for user, records in records_of(protected).items():
        d = [metres(x, temporal_projection(before[user], t, plane), plane) for t, *x in records]
        found[user] = sum(d) / len(d)
    return found


def in_box(points, x, half):
    """The rows of the points that lie no more than ``half`` metres east or west, and north or south, of x."""
    inside = set()
    for row, (lat, lng) in enumerate(points):
        east, north = (float(np.mean(scale)) for scale in metres_per_degree(np.array([lat, x[0]])))
        dx = lng - x[1] - 360 * round((lng - x[1]) / 360)
        if abs(east * dx) <= half and abs(north * (lat - x[0])) <= half:
            inside.add(row)
    return inside


def surrounding_pois(original, protected, points, half, empty):
    """user -> (Equation (4.19), records without a point in either box), on the ground."""
    before, found = records_of(original), {}
    for user, records in records_of(protected).items():
        scores, nothing = [], 0
        for t, *x in records:
            here, there = in_box(points, x, half), in_box(points, temporal_projection(before[user], t, "ground"), half)
            if not here and not there:
                nothing += 1
                scores += {"unlike": [0.0], "alike": [1.0], "left out": []}[empty]
                continue
            p = len(here & there) / len(here) if here else 0.0
            r = len(here & there) / len(there) if there else 0.0
            scores.append(2 * p * r / (p + r) if p + r else 0.0)
        found[user] = sum(scores) / len(scores) if scores else math.nan, nothing
    return found


def visits(traces, place, radius, plane):
    """user -> Equation (4.20)."""
    found = {}
    for user, records in records_of(traces).items():
        near = [metres(place, r[1:], plane) <= radius for r in records]
        found[user] = sum(near[i] and not near[i - 1] for i in range(1, len(near)))
    return found
