"""Slow twin of mobpriv.traces.areas: a point in a polygon in exact fractions, written from the definition."""

from fractions import Fraction
from itertools import pairwise

import shapely


def in_ring(x: float, y: float, ring) -> int:
    """1 inside, 0 on the ring, −1 outside: a ray to the east crosses the ring an odd number of times."""
    x, y = Fraction(x), Fraction(y)
    corners = [(Fraction(a), Fraction(b)) for a, b in ring.coords]
    within = False
    for (ax, ay), (bx, by) in pairwise(corners):
        side = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        if side == 0 and min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by):
            return 0
        if (ay > y) != (by > y) and (side > 0) == (by > ay):
            within = not within
    return 1 if within else -1


def holds(shape, x: float, y: float) -> bool:
    """Whether a polygon or one of several parts holds the point; its border and those of its holes belong to it."""
    for part in shapely.get_parts(shape):
        if in_ring(x, y, part.exterior) >= 0 and all(in_ring(x, y, hole) <= 0 for hole in part.interiors):
            return True
    return False


def cell(shapes, lat: float, lng: float) -> int:
    """The first of the shapes that holds the position, −1 if none does."""
    return next((i for i, shape in enumerate(shapes) if holds(shape, lng, lat)), -1)
