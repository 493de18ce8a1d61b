"""AP-Attack's answer for a crowd that is too large for the matrix of all divergences (thesis §3.2, Equation (3.3)).

:func:`mobpriv.attacks.ap.topsoe` computes every divergence; for a million traces and a million users there are 10¹². The
single-output policy needs only the least divergence of each trace, and most users can be excluded by a bound. With the entropy H
in nats where H(p) ≤ 2 ln 2 √(p (1 − p))::

    d(X, Y) = 2 ln 2 − Σ_i (X_i + Y_i) H(X_i / (X_i + Y_i)) ≥ 2 ln 2 (1 − Σ_i √(X_i Y_i))

By Cauchy and Schwarz the last sum over some of the cells is at most √(Σ X_i · Σ Y_i) over these cells.

:func:`nearest` has an index from each cell to its users, sorted by their share Y_i. It looks up the cells of a trace, first those
with few users for their share X_i of the trace. A bound gives the shares Y_i with which a user of the cell may still be the nearest;
only these users are compared. The search stops when the cells that are left are too small a part of the trace. The result is exact.
"""

from typing import NamedTuple

import numba
import numpy as np
from tqdm import tqdm

from mobpriv.attacks.policies import TIE
from mobpriv.base.logarithm import log
from mobpriv.traces.profiles import HeatMaps

_ROUNDING = 1e-5  # more than single precision loses in a bound
_FIRST = 8  # cells of a user in one line of the processor's cache
_AT_A_TIME = 2_000  # traces between two steps of the progress bar


class Nearest(NamedTuple):
    """The nearest known user of each trace. A trace is re-identified if ``index`` is its own user and ``ties`` is 1."""

    index: np.ndarray  # (traces,) int64: the nearest user's row in the known heat maps; the first of equals
    divergence: np.ndarray  # (traces,) nats, in [0, 2 ln 2]
    ties: np.ndarray  # (traces,) int64: number of known users as near, to within policies.TIE


def nearest(a: HeatMaps, b: HeatMaps) -> Nearest:
    """The nearest user of ``b`` to each trace of ``a`` by :func:`mobpriv.attacks.ap.topsoe`, with memory linear in their cells.

    Divergences equal those of the matrix to the last digit. A trace without a common cell is 2 ln 2 from everybody.

    >>> import pandas as pd
    >>> from scipy.sparse import csr_array
    >>> known = HeatMaps(pd.Index(["ann", "eve"]), np.array([7, 8]), csr_array([[3, 1], [1, 3]]))
    >>> trace = HeatMaps(pd.Index(["eve"]), np.array([8, 9]), csr_array([[4, 1]]))
    >>> result = nearest(trace, known)
    >>> known.users[result.index].tolist(), result.divergence.round(3).tolist(), result.ties.tolist()
    (['eve'], [0.313], [1])
    """
    if not len(b.users):
        raise ValueError("nearest needs the heat map of one known user or more (got none)")
    cells = np.union1d(a.cells, b.cells)
    x, x_cell, x_start = _rows(a, cells)
    y, y_cell, y_start = _rows(b, cells)
    user = np.repeat(np.arange(len(b.users), dtype=np.int32), np.diff(y_start))
    rows, lists = _pairs(y_cell, y, np.lexsort((-y, user))), _pairs(user, y, np.lexsort((y, y_cell)))
    list_start = np.r_[0, np.cumsum(np.bincount(y_cell, minlength=len(cells)))]
    own = b.users.get_indexer(a.users)  # a bound only: the right user is often near
    found = Nearest(*(np.empty(len(a.users), kind) for kind in (np.int64, float, np.int64)))
    with tqdm(total=len(own), desc="nearest heat maps", unit="trace", disable=None) as bar:
        for first in range(0, len(own), _AT_A_TIME):
            end = min(first + _AT_A_TIME, len(own))
            part = x_start[first : end + 1]
            results = _nearest(
                x, x_cell, part, own[first:end], y, y_cell, y_start, rows, lists, list_start, numba.get_num_threads()
            )
            for column, result in zip(found, results, strict=True):
                column[first:end] = result
            bar.update(end - first)
    return found


def _rows(maps: HeatMaps, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shares = maps.shares
    cell = np.searchsorted(cells, maps.cells).astype(np.int32)[shares.indices]
    return shares.data, cell, shares.indptr.astype(np.int64)


def _pairs(other: np.ndarray, y: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Each cell of a user, or user of a cell, and the root of the share, in this order."""
    pairs = np.empty(len(y), [("other", np.int32), ("root", np.float32)])
    pairs["other"], pairs["root"] = other[order], np.sqrt(y[order])
    return pairs


@numba.njit(inline="always")
def _divergence(dense, y, y_cell, start, end):
    """As :func:`mobpriv.attacks.ap.topsoe` adds it up, to the last digit."""
    d = 2 * np.log(2.0)
    for j in range(start, end):
        p = dense[y_cell[j]]
        if p > 0:
            d += p * log(p) + y[j] * log(y[j]) - (p + y[j]) * log(p + y[j])
    return max(d, 0.0)


@numba.njit(inline="always")
def _needed(d):
    """The least bound, as a share of 2 ln 2, with which a user may be as near as ``d``."""
    return 1 - d / (2 * np.log(2.0)) - _ROUNDING


@numba.njit(cache=True, parallel=True)
def _nearest(x, x_cell, x_start, own, y, y_cell, y_start, rows, lists, list_start, threads):
    users, cells, largest = len(y_start) - 1, len(list_start) - 1, 2 * np.log(2.0)
    index, least, ties = np.empty(len(own), np.int64), np.empty(len(own)), np.empty(len(own), np.int64)
    for thread in numba.prange(threads):
        dense, dense_root = np.zeros(cells), np.zeros(cells, np.float32)  # one trace's map, reset after it
        met_by = np.full(users, -1, np.int32)  # the last trace for which a user was compared
        near_user, near = np.empty(users, np.int32), np.empty(users)
        for row in range(thread, len(own), threads):
            a, b = x_start[row], x_start[row + 1]
            cost, rest = np.empty(b - a), 0.0  # rest: the share of X in cells of known users not yet looked up
            for i in range(a, b):
                c = x_cell[i]
                dense[c], dense_root[c] = x[i], np.sqrt(x[i])
                cost[i - a] = (list_start[c + 1] - list_start[c]) / x[i]
                if cost[i - a] > 0:
                    rest += x[i]
            best, met, found = largest, 0, 0
            if own[row] >= 0:
                best = _divergence(dense, y, y_cell, y_start[own[row]], y_start[own[row] + 1])
            for k in np.argsort(cost):
                c, needed = x_cell[a + k], _needed(best)
                if np.sqrt(max(rest, 0.0)) < needed:
                    break
                if cost[k] == 0:
                    continue
                rest = max(rest, x[a + k])  # despite rounding
                listed = lists[list_start[c] : list_start[c + 1]]
                users_of, roots = listed["other"], listed["root"]
                low, high = _range(roots, x[a + k], rest, needed)
                # from the share of X upwards, then downwards: near users are met early and narrow the range
                middle = min(max(np.searchsorted(roots, dense_root[c]), low), high)
                at, step = middle, 1
                while True:
                    if step > 0 and at >= high:
                        at, step = middle - 1, -1
                    if step < 0 and at < low:
                        break
                    user = users_of[at]
                    at += step
                    if met_by[user] == row:
                        continue
                    met_by[user] = row
                    met += 1
                    if not _may_be(dense_root, rows, y_start[user], y_start[user + 1], needed):
                        continue
                    d = _divergence(dense, y, y_cell, y_start[user], y_start[user + 1])
                    if d <= best + TIE:
                        near_user[found], near[found] = user, d
                        found += 1
                    if d < best:
                        best, needed = d, _needed(d)
                        low, high = _range(roots, x[a + k], rest, needed)
                rest -= x[a + k]
            first = users
            ties[row] = users - met if largest <= best + TIE else 0  # those without a common cell
            for n in range(found):
                ties[row] += near[n] <= best + TIE
                if near[n] == best:
                    first = min(first, near_user[n])
            index[row] = 0 if best == largest else first
            least[row] = best
            for i in range(a, b):
                dense[x_cell[i]] = dense_root[x_cell[i]] = 0
    return index, least, ties


@numba.njit(inline="always")
def _range(roots, share, rest, needed):
    """The part of a cell's list, sorted by root, whose bound √(x y) + √((rest − x) (1 − y)) reaches ``needed``.

    With √(x / rest) = sin φ and √y = sin ψ the bound is √rest cos(φ − ψ).
    """
    angle, most = np.arcsin(np.sqrt(min(share / rest, 1.0))), np.arccos(min(max(needed / np.sqrt(rest), -1.0), 1.0))
    low, high = np.sin(max(angle - most, 0.0)) - _ROUNDING, np.sin(min(angle + most, np.pi / 2)) + _ROUNDING
    return np.searchsorted(roots, np.float32(low)), np.searchsorted(roots, np.float32(high))


@numba.njit(inline="always")
def _may_be(dense_root, rows, start, end, needed):
    """Whether the bound of a user reaches ``needed``; her first cells, the largest, decide mostly."""
    bound, x, y = 0.0, 1.0, 1.0  # x, y: the shares not yet compared
    for j in range(start, min(start + _FIRST, end)):
        own, other = dense_root[rows[j].other], rows[j].root
        bound += own * other
        x -= own * own
        y -= other * other
    short = needed - bound
    if short > 0 and short * short > (max(x, 0.0) + _ROUNDING) * (max(y, 0.0) + _ROUNDING):
        return False
    for j in range(start + _FIRST, end):
        bound += dense_root[rows[j].other] * rows[j].root
    return bound >= needed
