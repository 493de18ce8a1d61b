"""Slow twins of the mechanisms: one record at a time, written from the definitions."""

import math

import numpy as np
from pyproj import Geod
from scipy.optimize import brentq

from mobpriv.geo import distance, to_plane

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
            share = brentq(lambda s: metres(last, towards(last, record, s)) - alpha, 0, 1, xtol=1e-15)  # noqa: B023
            samples.append(towards(last, record, share))
            times.append(int(time))
    samples, times = samples[1:-1], times[1:-1]
    n = len(samples)
    return [
        (x, y, times[0] + (math.ceil(i * (times[-1] - times[0]) / (n - 1)) if n > 1 else 0)) for i, (x, y) in enumerate(samples)
    ]
