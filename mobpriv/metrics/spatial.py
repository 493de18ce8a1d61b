"""Spatial distortion: distance of protected records from the path of the original trace (thesis §4.7.2)."""

import numba
import numpy as np
import pandas as pd

from mobpriv.base.ranges import true_or_false
from mobpriv.base.sharing import once
from mobpriv.ground.geo import Points, displacement, metres_per_degree_at, to_plane, unwrapped
from mobpriv.metrics.pairs import means, row_ranges
from mobpriv.traces.table import Traces

_LEAF = 4  # pieces of the path per leaf of the tree
_MORTON = tuple((1 << k, (2**64 - 1) // ((1 << (1 << k)) + 1)) for k in (4, 3, 2, 1, 0))


def spatial_distortion(
    original: Traces,
    protected: Traces,
    plane: str = "ground",
    interpolate: bool = True,  # False: distance to the nearest original record, not to the lines between them
) -> pd.Series:
    """Spatial distortion of Equation (4.14): the mean distance (m) of the records x of T' from the polyline of T::

        SD(T, T') = 1/|T'| · Σ_x min_{0 < i < |T|} d(x, projection of x on the segment r_i r_{i+1})

    One value per user; NaN for an erased trace, which has no record. The polyline of a single record is that point.

    Departures from the paper: distances are on the ground unless ``plane="mercator"`` (the author's). The author's program
    returns NaN if two successive records share a position, since their segment has no length; here it is a point.
    :func:`distances_to_path` defines the projection.

    >>> import numpy as np
    >>> from mobpriv import GeoI, load
    >>> traces = load("city", max_users=3).traces
    >>> protected = GeoI().protect(traces, np.random.default_rng(1))
    >>> spatial_distortion(traces, protected).round().tolist()
    [42.0, 35.0, 36.0]
    """
    return means(
        distances_to_path(original, protected, plane, interpolate), row_ranges(original, protected), "spatial distortion"
    )


def distances_to_path(original: Traces, protected: Traces, plane: str = "ground", interpolate: bool = True) -> np.ndarray:
    """Metres from each protected record to the polyline of the same user's original records.

    Segments are straight in the plane (in degrees on the ground) and take the short way across the date line; the Mercator
    plane has no such way. The projection is the foot of the perpendicular (in metres, with the scales at the record), or the
    nearer end. :func:`mobpriv.ground.geo.distance` measures the distance to it. On the ground this equals the least distance D along
    the segment up to D³/R², where R is the Earth's radius (1e-6 m at 300 m). This bound holds for latitudes below 60°.

    >>> import numpy as np
    >>> from mobpriv import GeoI, load
    >>> traces = load("city", max_users=3).traces
    >>> protected = GeoI().protect(traces, np.random.default_rng(1))
    >>> distances_to_path(traces, protected)[:3].round()
    array([172.,   5.,   9.])
    """
    true_or_false("interpolate", interpolate)
    ranges = row_ranges(original, protected)
    p, q = (to_plane(t["lat"].to_numpy(), t["lng"].to_numpy(), plane) for t in (original, protected))
    ground = plane == "ground"
    if ground:
        p = p._replace(x=unwrapped(p.x, ranges.start))
    p, q = (Points(*map(np.array, columns)) for columns in (p, q))  # one memory layout, so that numba compiles once
    return once(_distances)(p, ranges.start, q, ranges.first, ranges.last, interpolate, ground)


@numba.njit(cache=True, parallel=True)
def _distances(p, start, q, first, last, interpolate, ground):
    metres = np.empty(len(q.x))
    for user in numba.prange(len(start) - 1):
        if first[user] == last[user]:
            continue
        a, b = start[user], start[user + 1]
        path = Points(p.x[a:b], p.y[a:b], p.sx[a:b], p.sy[a:b])
        segment, box = _near_together(*_pieces(path, interpolate))
        tree = _tree(box)
        nearest, stack, bound = segment[0], np.empty(64, np.int64), np.empty(64)
        _, south, _, north = tree[1]
        least = min(metres_per_degree_at(south)[0], metres_per_degree_at(north)[0]), metres_per_degree_at(0.0)[1]
        for k in range(first[user], last[user]):
            # neighbours in a trace are close on the path: the previous record's segment bounds the search
            metres[k], nearest = _nearest(path, interpolate, segment, tree, least, q, k, nearest, ground, stack, bound)
    return metres


@numba.njit(cache=True)
def _pieces(p, interpolate):
    """Cut the segments of a path into short pieces; return the segment and the box (west, south, east, north) of each.

    Segment i runs from record i to the next. It is record i alone if that is the last one or ``interpolate`` is False.
    """
    n = len(p.x)
    length = np.zeros(n)
    for i in range(n - 1 if interpolate else 0):
        length[i] = np.hypot(*displacement(p.x, p.y, p.sx, p.sy, i, i + 1))
    limit = max(length.mean(), 1e-9)  # m; at most two pieces per record
    segment, box = np.empty(2 * n + 1, np.int64), np.empty((2 * n + 1, 4))
    m = 0
    for i in range(n):
        if interpolate and length[i] == 0.0 and m > 0:  # the end of the previous segment
            continue
        j = i + 1 if length[i] > 0 else i
        cuts = 1 + int(length[i] / limit)
        for k in range(cuts):
            x0, x1 = p.x[i] + k / cuts * (p.x[j] - p.x[i]), p.x[i] + (k + 1) / cuts * (p.x[j] - p.x[i])
            y0, y1 = p.y[i] + k / cuts * (p.y[j] - p.y[i]), p.y[i] + (k + 1) / cuts * (p.y[j] - p.y[i])
            segment[m] = i
            box[m, 0], box[m, 1], box[m, 2], box[m, 3] = min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)
            m += 1
    return segment[:m], box[:m]


@numba.njit(cache=True)
def _near_together(segment, box):
    """Sort the pieces in Morton order of their middles; 32 bits an axis are fine enough for any outlier."""
    code = np.zeros(len(segment), np.uint64)
    for axis in range(2):
        middle = box[:, axis] + box[:, axis + 2]
        least = middle.min()
        scale = 4_294_967_295 / max(middle.max() - least, 1e-300)
        for i in range(len(code)):
            code[i] |= _spread(np.uint64((middle[i] - least) * scale)) << np.uint64(axis)
    order = np.argsort(code)
    return segment[order], box[order]


@numba.njit(inline="always")
def _spread(bits):
    """The 32 lower bits, each followed by a 0."""
    for shift, mask in _MORTON:
        bits = (bits | (bits << np.uint64(shift))) & np.uint64(mask)
    return bits


@numba.njit(cache=True)
def _tree(box):
    """Boxes of a binary tree as a heap: node 1 is the root, nodes 2 i and 2 i + 1 lie in node i; each leaf has LEAF pieces."""
    leaves = 1
    while leaves * _LEAF < len(box):
        leaves *= 2
    tree = np.empty((2 * leaves, 4))
    tree[:, :2], tree[:, 2:] = np.inf, -np.inf
    for i in range(len(box)):
        _widen(tree[leaves + i // _LEAF], box[i])
    for node in range(leaves - 1, 0, -1):
        _widen(tree[node], tree[2 * node])
        _widen(tree[node], tree[2 * node + 1])
    return tree


@numba.njit(inline="always")
def _widen(box, other):
    box[0], box[1] = min(box[0], other[0]), min(box[1], other[1])
    box[2], box[3] = max(box[2], other[2]), max(box[3], other[3])


@numba.njit(cache=True)
def _nearest(p, interpolate, segment, tree, least, q, k, nearest, ground, stack, bound):
    """Metres from record k of q to the path, and its nearest segment; a good initial ``nearest`` shortens the search.

    ``least`` are scales that the path nowhere falls below; ``stack`` and ``bound`` are buffers for the open nodes and their distances.
    """
    sx, sy = q.sx[k], q.sy[k]
    if ground:  # these distances never exceed the true ones
        sx, sy = 0.5 * (sx + least[0]), 0.5 * (sy + least[1])
    best, leaves = np.inf, len(tree) // 2
    turn, turns = (
        (np.ceil((tree[1, 0] - 180 - q.x[k]) / 360), np.floor((tree[1, 2] + 180 - q.x[k]) / 360)) if ground else (0.0, 0.0)
    )
    while turn <= turns:  # a record near 180° may be near the path on either side
        x, y = q.x[k] + 360.0 * turn, q.y[k]
        for i in range(nearest, min(nearest + 2, len(p.x))):
            d = _to_segment(p, i, interpolate, x, y, q.sx[k], q.sy[k], ground)
            if d < best:
                best, nearest = d, i
        stack[0], bound[0], top = 1, 0.0, 1
        while top > 0:
            top -= 1
            node = stack[top]
            if bound[top] >= best:
                continue
            while node < leaves:  # to the leaf, always into the nearer child
                left, right = _to_box(tree[2 * node], x, y, sx, sy), _to_box(tree[2 * node + 1], x, y, sx, sy)
                farther = int(left < right)
                if max(left, right) < best:
                    stack[top], bound[top] = 2 * node + farther, max(left, right)
                    top += 1
                if min(left, right) >= best:
                    break
                node = 2 * node + 1 - farther
            else:
                for i in range((node - leaves) * _LEAF, min((node - leaves + 1) * _LEAF, len(segment))):
                    if _to_segment(p, segment[i], interpolate, x, y, sx, sy, False) < best:
                        d = _to_segment(p, segment[i], interpolate, x, y, q.sx[k], q.sy[k], ground)
                        if d < best:
                            best, nearest = d, segment[i]
        turn += 1
    return np.sqrt(best), nearest


@numba.njit(inline="always")
def _to_box(box, x, y, sx, sy):
    """Squared metres from a point to a box, with constant scales."""
    dx, dy = sx * max(box[0] - x, x - box[2], 0.0), sy * max(box[1] - y, y - box[3], 0.0)
    return dx * dx + dy * dy


@numba.njit
def _to_segment(p, i, interpolate, x, y, sx, sy, ground):
    """Squared metres from a point to segment i; ``sx`` and ``sy`` are the scales at the point (Mercator: everywhere)."""
    j = i + 1 if interpolate and i + 1 < len(p.x) else i
    dx, dy = p.x[j] - p.x[i], p.y[j] - p.y[i]
    east, north = sx * dx, sy * dy
    length, share = east * east + north * north, 0.0
    if length > 0:
        share = min(max((sx * (x - p.x[i]) * east + sy * (y - p.y[i]) * north) / length, 0.0), 1.0)
    if share < 0.5:  # from the nearer end, so that an end is exact
        fx, fy = p.x[i] + share * dx, p.y[i] + share * dy
    else:
        fx, fy = p.x[j] - (1 - share) * dx, p.y[j] - (1 - share) * dy
    if ground:
        foot_x, foot_y = metres_per_degree_at(fy)
        sx, sy = 0.5 * (sx + foot_x), 0.5 * (sy + foot_y)
    return (sx * (x - fx)) ** 2 + (sy * (y - fy)) ** 2
