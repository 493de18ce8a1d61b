"""AP-Attack's answers for crowds that are too large for the matrix of all divergences (thesis §3.2, Equation (3.3)).

:func:`mobpriv.attacks.ap.topsoe` computes every divergence: a million users against a million are 10¹² of them. The single-output
policy needs only the least divergence of each trace. With the gain g of two heat maps, summed over their common cells,

    d(X, Y) = 2 ln 2 − g,   g = Σ (X_i + Y_i) H(X_i / (X_i + Y_i)),   H the entropy in nats,

and H(p) ≤ 2 ln 2 √(p (1 − p)), no gain exceeds 2 ln 2 Σ √(X_i Y_i). By Cauchy and Schwarz this sum over any set of cells is at
most √(Σ X_i · Σ Y_i). :func:`nearest` looks up a trace's cells in an index from cell to users. It stops when a user who has none of the cells looked up cannot be as near as a user already found. It computes only the divergences
that these bounds leave. The result is exact.
"""

from typing import NamedTuple

import numba
import numpy as np
from tqdm import tqdm

from mobpriv.attacks.policies import TIE
from mobpriv.traces.profiles import HeatMaps

_LARGEST = 2 * np.log(2)
_ROUNDING = 1e-5  # of the bounds, which are in single precision
_AT_A_TIME = 2_000  # traces between two steps of the progress bar


class Nearest(NamedTuple):
    """The nearest known user of each trace. A trace is re-identified if ``index`` is its own user and ``ties`` is 1."""

    index: np.ndarray  # (traces,) int64: the nearest user's row in the known heat maps; the first of equals
    divergence: np.ndarray  # (traces,) nats, in [0, 2 ln 2]
    ties: np.ndarray  # (traces,) int64: number of known users as near, to within policies.TIE


def nearest(a: HeatMaps, b: HeatMaps) -> Nearest:
    """For each trace of ``a`` the least divergence of :func:`mobpriv.attacks.ap.topsoe` to the users of ``b``; memory: linear.

    Divergences equal those of the matrix to the last digit. A trace without a common cell is 2 ln 2 from everybody.
    """
    if not len(b.users):
        raise ValueError("nearest needs the heat map of one known user or more (got none)")
    cells = np.union1d(a.cells, b.cells)
    x, x_cell, x_start = _rows(a, cells)
    y, y_cell, y_start = _rows(b, cells)
    root = np.sqrt(y).astype(np.float32)
    lists = _lists(y_cell, y_start, root, len(cells))
    own = b.users.get_indexer(a.users)  # a bound only: the right user is often near
    found = Nearest(*(np.empty(len(a.users), kind) for kind in (np.int64, float, np.int64)))
    with tqdm(total=len(own), desc="nearest heat maps", unit="trace", disable=None) as bar:
        for first in range(0, len(own), _AT_A_TIME):
            end = min(first + _AT_A_TIME, len(own))
            part = x_start[first : end + 1]
            results = _nearest(x, x_cell, part, own[first:end], y, y_cell, y_start, root, *lists, numba.get_num_threads())
            for column, result in zip(found, results, strict=True):
                column[first:end] = result
            bar.update(end - first)
    return found


def _rows(maps: HeatMaps, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shares = maps.shares
    cell = np.searchsorted(cells, maps.cells).astype(np.int32)[shares.indices]
    return shares.data, cell, shares.indptr.astype(np.int64)


@numba.njit(cache=True)
def _lists(cell, start, root, cells):
    """The index: the users of each cell, one list after another, and the roots of their shares of it."""
    list_start = np.zeros(cells + 1, np.int64)
    for c in cell:
        list_start[c + 1] += 1
    list_start = np.cumsum(list_start)
    following = list_start[:-1].copy()
    users, roots = np.empty(len(cell), np.int32), np.empty(len(cell), np.float32)
    for user in range(len(start) - 1):
        for j in range(start[user], start[user + 1]):
            users[following[cell[j]]], roots[following[cell[j]]] = user, root[j]
            following[cell[j]] += 1
    return list_start, users, roots


@numba.njit(inline="always")
def _divergence(dense, y, y_cell, start, end):
    """As :func:`mobpriv.attacks.ap.topsoe` adds it up, to the last digit."""
    d = 2 * np.log(2.0)
    for j in range(start, end):
        p = dense[y_cell[j]]
        if p > 0:
            d += p * np.log(p) + y[j] * np.log(y[j]) - (p + y[j]) * np.log(p + y[j])
    return max(d, 0.0)


@numba.njit(cache=True, parallel=True)
def _nearest(x, x_cell, x_start, own, y, y_cell, y_start, root, list_start, list_user, list_root, threads):
    users, cells = len(y_start) - 1, len(list_start) - 1
    index, least, ties = np.empty(len(own), np.int64), np.empty(len(own)), np.empty(len(own), np.int64)
    work = np.zeros((threads,3),np.int64)
    for thread in numba.prange(threads):
        dense, dense_root = np.zeros(cells), np.zeros(cells, np.float32)
        seen = np.zeros((users, 2), np.float32)  # over the cells looked up: the sum of roots, the user's share
        touched = np.empty(users, np.int32)
        near_user, near = np.empty(users, np.int32), np.empty(users)
        for row in range(thread, len(own), threads):
            a, b = x_start[row], x_start[row + 1]
            cost, rest = np.empty(b - a), 0.0
            for i in range(a, b):
                c = x_cell[i]
                dense[c], dense_root[c] = x[i], np.sqrt(x[i])
                cost[i - a] = (list_start[c + 1] - list_start[c]) / x[i]
                if cost[i - a] > 0:
                    rest += x[i]
            best = 2 * np.log(2.0)
            if own[row] >= 0:
                best = _divergence(dense, y, y_cell, y_start[own[row]], y_start[own[row] + 1])
            known, top, top_user = 0, np.float32(0), -1
            needed = 1 - best / _LARGEST - _ROUNDING
            for k in np.argsort(cost):
                c = x_cell[a + k]
                if np.sqrt(max(rest, 0.0)) < needed:
                    break
                part = dense_root[c]
                work[thread,0]+=list_start[c+1]-list_start[c]
                for j in range(list_start[c], list_start[c + 1]):
                    user, other = list_user[j], list_root[j]
                    if seen[user, 0] == 0:
                        touched[known] = user
                        known += 1
                    total = seen[user, 0] + part * other
                    seen[user, 0] = total
                    seen[user, 1] += other * other
                    if total > top:
                        top, top_user = total, user
                rest -= dense[c]
                if top_user >= 0:
                    best = min(best, _divergence(dense, y, y_cell, y_start[top_user], y_start[top_user + 1]))
                    needed = 1 - best / _LARGEST - _ROUNDING
            rest = max(rest, 0.0)
            found = 0
            for t in range(known):
                user = touched[t]
                bound = seen[user, 0] + np.sqrt(rest * max(1 - seen[user, 1], 0.0))
                seen[user, 0] = seen[user, 1] = 0
                if bound < needed:
                    continue
                work[thread,1]+=1
                roots = np.float32(0)
                for j in range(y_start[user], y_start[user + 1]):
                    roots += dense_root[y_cell[j]] * root[j]
                if roots < needed:
                    continue
                work[thread,2]+=1
                d = _divergence(dense, y, y_cell, y_start[user], y_start[user + 1])
                if d <= best + TIE:
                    near_user[found], near[found] = user, d
                    found += 1
                    best = min(best, d)
                    needed = 1 - best / _LARGEST - _ROUNDING
            index[row] = 0
            least[row], ties[row] = best, 0
            for t in range(found):
                if near[t] <= best + TIE:
                    ties[row] += 1
                    if near[t] == best and (index[row]==0 or near_user[t] < index[row]):
                        index[row] = near_user[t]
            if best + TIE >= 2 * np.log(2.0):
                ties[row] += users - known
            for i in range(a, b):
                dense[x_cell[i]] = dense_root[x_cell[i]] = 0
    print(work.sum(0)/len(own))
    return index, least, ties
