"""Slow twins of mobpriv.traces.profiles and mobpriv.attacks, written from the definitions: the truth the fast routines must equal."""

import itertools
import math
import statistics

import numpy as np

from mobpriv.ground.geo import distance, meridian_arc, metres_per_degree
from mobpriv.ground.grid import latitude_of_arc


def square_cell(grid, lat, lng):
    """Row and column of one position on the ground, by the definition of ``SquareGrid``."""
    row = math.floor(meridian_arc(np.array([lat]))[0] / grid.cell - grid.shift[0])
    middle = latitude_of_arc((row + grid.shift[0] + 0.5) * grid.cell)  # of the band
    east = metres_per_degree(np.clip([middle], -89.99, 89.99))[0][0]
    return row, lng * east / grid.cell - grid.shift[1]


def stays(rows, diameter, duration, max_gap=None):
    """``rows``: (time in s, lat, lng) of one user in order. Returns (first, last) of each stay."""
    far = lambda i, j: distance(rows[i][1], rows[i][2], rows[j][1], rows[j][2]) > diameter  # noqa: E731
    found, window = [], []
    for i in range(len(rows)):
        if window and max_gap is not None and rows[i][0] - rows[i - 1][0] > max_gap:
            if len(window) >= 2 and rows[window[-1]][0] - rows[window[0]][0] >= duration:
                found.append((window[0], window[-1]))
            window = []
        while window and any(far(j, i) for j in window):
            if len(window) >= 2 and rows[window[-1]][0] - rows[window[0]][0] >= duration:
                found.append((window[0], window[-1]))
                window = []
            else:
                window = window[1:]
        window.append(i)
    if len(window) >= 2 and rows[window[-1]][0] - rows[window[0]][0] >= duration:
        found.append((window[0], window[-1]))
    return found


def clusters(places, radius, min_stays):
    """``places``: (lat, lng) of one user's stays. Returns the sets of stays that are one POI."""
    near = [{j for j, q in enumerate(places) if distance(*p, *q) <= radius} for p in places]
    found = []
    for hood in near:
        if len(hood) < min_stays:
            continue
        shared = [c for c in found if c & hood]
        found = [c for c in found if not c & hood] + [hood.union(*shared)]
    return found


def topsoe(p, q):
    """Equation (3.3) of two dicts cell -> share, term by term."""
    total = 0.0
    for cell in p.keys() | q.keys():
        x, y = p.get(cell, 0.0), q.get(cell, 0.0)
        total += (x * math.log(2 * x / (x + y)) if x else 0.0) + (y * math.log(2 * y / (x + y)) if y else 0.0)
    return total


def median_nearest(x, y):
    """Equation (3.12) of two lists of (lat, lng)."""
    there = [min(distance(*p, *q) for q in y) for p in x]
    back = [min(distance(*p, *q) for p in x) for q in y]
    return statistics.median([float(d) for d in there + back])


def stats_prox(p, q, near=100.0, far=2000.0, score=10.0):
    """Equations (3.13) to (3.15) of two lists of (lat, lng, weight) by falling weight."""
    stationary = sum(w * min(float(distance(a, b, c, d)) for c, d, _ in q) for a, b, w in p)
    total, r = 0.0, score
    for (a, b, _), (c, d, _) in itertools.islice(zip(p, q, strict=False), None):
        total += r if distance(a, b, c, d) < near else 0.0
        r /= 2
    return 1 / total if total and stationary > far else stationary
