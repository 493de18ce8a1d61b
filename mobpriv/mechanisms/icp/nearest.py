"""The nearest group of a group: the search of Algorithm 2, lines 7 to 11, exact including its ties.

A group is a whole number of rows and their exact sum on h, in units of 1/unit. The search has two stages:

* A tree of boxes compares the means as 32-bit numbers, eight cells at a time. It leaves out groups farther than the best by
  more than the rounding error.
* The remaining groups are compared exactly. Let x_j = A_j·b − B_j·a for the sums A, B of a and b rows, all whole numbers. The
  squared Euclidean distance is p/q with p = Σ x_j² and q = (a·b)².

Written as ⌊p/q⌋ + (p mod q)/q the distance depends on the rational number alone as long as p < 2^63 and q < 2^53 (division is
rounded correctly). So equal distances are equal numbers. With tenths of 24 cells that holds up to a·b = 61 millions, groups of
99 and 600 000 rows. Beyond that the means are subtracted as 64-bit numbers. The result still does not depend on the order of
rows, but equal distances may differ in their last digit.
"""

from typing import NamedTuple

import numba
import numpy as np

_EUCLIDEAN, MANHATTAN, _COSINE = range(3)
METRICS = {"euclidean": _EUCLIDEAN, "manhattan": MANHATTAN, "cosine": _COSINE}
_LEAF = 16  # groups in a leaf of the tree
_LANES = 8  # 32-bit numbers that are subtracted at once
FAR = 1e30
NOBODY = -1


class Tree(NamedTuple):
    """A balanced tree of boxes in an array: the children of node i are 2i + 1 and 2i + 2, the leaves its last level."""

    points: np.ndarray  # (groups, cells), float32, leaf by leaf
    ids: np.ndarray  # (groups,): which group each point is
    low: np.ndarray  # (nodes, cells), float32: the corners of the boxes
    high: np.ndarray
    start: np.ndarray  # (nodes + 1 of a level, …): the points of node i are start[i] … end[i]
    end: np.ndarray


def axes(metric: int, means: np.ndarray) -> np.ndarray:
    """The axes of the tree, (coordinates, coordinates), sorted by the variance of the means, which halves the search.

    Rotation changes Manhattan distances, so there the cells are the axes. Slightly different axes on another machine change the
    order of the search, not its result.
    """
    x = _placed(metric, means)
    if metric == MANHATTAN:
        return np.eye(x.shape[1])
    x = x - x.mean(axis=0)
    return np.linalg.eigh(x.T @ x)[1][:, ::-1]


def places(metric: int, means: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Positions of the means in the tree, (groups, coordinates rounded up to whole lanes), float32."""
    rotated = _placed(metric, means) @ axes
    positions = np.zeros((len(rotated), -(-rotated.shape[1] // _LANES) * _LANES), np.float32)
    positions[:, : rotated.shape[1]] = rotated
    return positions


def _placed(metric, means):
    """Positions for the cosine distance: on the unit sphere, where the squared Euclidean distance is twice that distance.

    A mean of zeros has an axis of its own, so that it is at 0 from other zeros and at 1 from all others.
    """
    if metric != _COSINE:
        return means
    length = np.linalg.norm(means, axis=1)
    return np.column_stack([means / np.where(length == 0, 1, length)[:, None], length == 0])


def tree(points: np.ndarray, ids: np.ndarray) -> Tree:
    """The tree of these points (positions of the groups ``ids``)."""
    levels = max(0, int(np.ceil(np.log2(max(1, len(ids)) / _LEAF))))
    nodes = 2 ** (levels + 1) - 1
    start, end = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    low, high = np.empty((nodes, points.shape[1]), np.float32), np.empty((nodes, points.shape[1]), np.float32)
    order = np.arange(len(ids))
    _build(points, order, start, end, low, high)
    return Tree(points[order], ids[order], low, high, start, end)


@numba.njit(nogil=True, cache=True)
def _build(points, order, start, end, low, high):
    nodes, cells = low.shape
    start[0], end[0] = 0, len(order)
    key = np.empty(len(order), np.float32)
    for node in range(nodes):
        a, b = start[node], end[node]
        for c in range(cells):
            low[node, c], high[node, c] = np.float32(FAR), np.float32(-FAR)
        for j in range(a, b):
            for c in range(cells):
                value = points[order[j], c]
                if value < low[node, c]:
                    low[node, c] = value
                if value > high[node, c]:
                    high[node, c] = value
        if 2 * node + 2 >= nodes:
            continue
        widest = 0
        for c in range(cells):
            if high[node, c] - low[node, c] > high[node, widest] - low[node, widest]:
                widest = c
        for j in range(a, b):
            key[j] = points[order[j], widest]
        middle = (a + b) // 2
        _halve(key, order, a, b - 1, middle)
        start[2 * node + 1], end[2 * node + 1] = a, middle
        start[2 * node + 2], end[2 * node + 2] = middle, b


@numba.njit(nogil=True, cache=True)
def _halve(key, order, left, right, middle):
    """Hoare's selection: elements below position ``middle`` have no larger key than those above."""
    while left < right:
        pivot = key[(left + right) // 2]
        i, j = left, right
        while i <= j:
            while key[i] < pivot:
                i += 1
            while key[j] > pivot:
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@numba.njit(nogil=True, cache=True)
def exact(metric, totals, members, means, one, other, max_product):
    """The distance that orders the pairs, in units: squared Euclidean, Manhattan, or 1 − cosine of two groups' means.

    ``max_product``: a·b up to which p fits into 63 bits, and q into 53. Cosines, which are not rational, are rounded to 2^−40:
    cosines that agree so far count as equal.
    """
    a, b = members[one], members[other]
    cells = totals.shape[1]
    if metric == _COSINE:
        dot, left, right = 0.0, 0.0, 0.0
        for c in range(cells):
            dot += float(totals[one, c]) * float(totals[other, c])
            left += float(totals[one, c]) * float(totals[one, c])
            right += float(totals[other, c]) * float(totals[other, c])
        if left == 0 or right == 0:
            return 0.0 if left == right else 1.0
        return np.floor((1 - dot / np.sqrt(left) / np.sqrt(right)) * 2.0**40 + 0.5) / 2.0**40
    if a * b > max_product:
        distance = 0.0
        for c in range(cells):
            step = abs(means[one, c] - means[other, c])
            distance += step * step if metric == _EUCLIDEAN else step
        return distance
    p = np.int64(0)
    for c in range(cells):
        x = totals[one, c] * b - totals[other, c] * a
        p += x * x if metric == _EUCLIDEAN else abs(x)
    q = (a * b) * (a * b) if metric == _EUCLIDEAN else a * b
    return float(p // q) + float(p % q) / float(q)


@numba.njit(nogil=True, cache=True)
def before(members, means, one, other):
    """Whether one of two equally near groups goes first.

    That is the larger, then the one of lexicographically smaller mean, then the one whose smallest profile comes first.
    """
    if members[one] != members[other]:
        return members[one] > members[other]
    for c in range(means.shape[1]):
        if means[one, c] != means[other, c]:
            return means[one, c] < means[other, c]
    return one < other


@numba.njit(nogil=True, cache=True, fastmath=True)
def _squared(points, j, position):
    distance = np.float32(0)
    for c in range(position.shape[0]):
        step = points[j, c] - position[c]
        distance += step * step
    return distance


@numba.njit(nogil=True, cache=True, fastmath=True)
def _absolute(points, j, position):
    distance = np.float32(0)
    for c in range(position.shape[0]):
        distance += abs(points[j, c] - position[c])
    return distance


@numba.njit(nogil=True, cache=True, fastmath=True)
def _outside(metric, low, high, node, position):
    """The least distance of a point from a box."""
    distance = np.float32(0)
    for c in range(position.shape[0]):
        step = max(low[node, c] - position[c], position[c] - high[node, c])
        step = max(step, np.float32(0))
        distance += step if metric == MANHATTAN else step * step
    return distance


@numba.njit(nogil=True, cache=True)
def _limit(metric, best, unit):
    """The largest 32-bit distance that may be ``best`` or less: means up to ``unit`` err by 6e-8 of it, sums by as little."""
    if metric == MANHATTAN:
        return best + 1e-5 * (best + unit)
    if metric == _COSINE:
        best, unit = 2 * best, 1.0
    return best + 1e-5 * (best + unit * np.sqrt(best)) + 1e-9 * unit * unit


@numba.njit(nogil=True, cache=True)
def follow(groups, into, metric, max_product, totals, members, means, distance, nearest):
    """Set the nearest of each group to the group that it has been merged into, and the distance to the new one."""
    for g in groups:
        nearest[g] = into[nearest[g]]
        distance[g] = exact(metric, totals, members, means, g, nearest[g], max_product)


@numba.njit(nogil=True, cache=True)
def search(
    groups, positions, metric, unit, max_product, points, ids, low, high, start, end, totals, members, means, distance, nearest
):
    """For each group of ``groups`` (rows ``positions`` of the tree), find the nearest other one of the tree.

    Changes ``nearest`` and ``distance`` in place if that one is nearer.
    """
    nodes = len(start)
    waiting, bounds = np.empty(128, np.int64), np.empty(128, np.float32)
    for row in range(len(groups)):
        g, position = groups[row], positions[row]
        best, which = distance[g], nearest[g]
        limit = _limit(metric, best, unit)
        waiting[0], bounds[0], count = 0, _outside(metric, low, high, 0, position), 1
        while count:
            count -= 1
            node = waiting[count]
            if bounds[count] > limit:
                continue
            if 2 * node + 2 < nodes:
                left, right = 2 * node + 1, 2 * node + 2
                d_left, d_right = _outside(metric, low, high, left, position), _outside(metric, low, high, right, position)
                if d_left < d_right:
                    left, right, d_left, d_right = right, left, d_right, d_left
                if d_left <= limit:  # push the farther one first
                    waiting[count], bounds[count] = left, d_left
                    count += 1
                if d_right <= limit:
                    waiting[count], bounds[count] = right, d_right
                    count += 1
                continue
            for j in range(start[node], end[node]):
                approximate = _absolute(points, j, position) if metric == MANHATTAN else _squared(points, j, position)
                if approximate > limit:
                    continue
                other = ids[j]
                if other == g:
                    continue
                d = exact(metric, totals, members, means, g, other, max_product)
                if d < best or (d == best and (which == NOBODY or before(members, means, other, which))):
                    best, which = d, other
                    limit = _limit(metric, best, unit)
        distance[g], nearest[g] = best, which
