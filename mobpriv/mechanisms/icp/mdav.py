"""MDAV micro-aggregation, here MDAV-generic: the classical alternative to PRIMULE, whose paper does not compare with it.

Sources: Domingo-Ferrer, Mateo-Sanz, *Practical data-oriented microaggregation for statistical disclosure control*, IEEE TKDE
2002; MDAV-generic: Domingo-Ferrer, Torra, *Ordinal, continuous and heterogeneous k-anonymity through microaggregation*, Data
Mining and Knowledge Discovery 2005.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import pandas as pd

from mobpriv.icp.rows import Distinct, distinct
from mobpriv.mechanisms.icp.tables import Grouping, in_units, name_ranks


class Assignment(NamedTuple):
    """The assignment to groups: how many rows of a distinct profile go to a group, sorted by profile, then by group."""

    profile: np.ndarray
    group: np.ndarray
    rows: np.ndarray
    totals: np.ndarray  # (groups, |h|), int64: the sums of their rows, in units
    members: np.ndarray  # (groups,)


@dataclass(frozen=True)
class Mdav(Grouping):
    """Groups of k (the last ones: up to 2k − 1) around the profiles that are farthest out; on h each becomes its group's mean.

    * While 3k rows or more are left: x_r is the farthest from their mean, x_s the farthest from x_r. Then x_r and its k − 1
      nearest are a group, x_s and its k − 1 nearest of the rest another.
    * With 2k or more left, x_r and its k − 1 nearest are a group and the rest is one; fewer are one group.

    Distances are Euclidean, on h. The protected values are the means, so the sum of squared errors is that of the algorithm.

    Departures from the papers: they standardise the variables. The cells of profiles are all shares of days, in one unit, and
    are not standardised, so that loss has the same unit as for PRIMULE. The papers do not define ties: the lexicographically
    smallest profile goes first.

    Equal profiles are handled as one with their number. This changes no result: copies of a profile have the same distance to
    everything, so a choice among them is free. Rows that are equal on h may therefore go to different groups. The rows that
    come first by all of their cells, then by their names, go to the group that was made first. No result depends on the order
    of rows.
    """

    name = "MDAV"

    def groups(self, profiles: pd.DataFrame, on_h: Distinct, unit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        parts = microaggregate(on_h.values, on_h.sizes, self.k)
        all_cells = distinct(in_units(profiles.to_numpy(float))[0])
        group = np.empty(len(profiles), np.int64)
        group[np.lexsort((name_ranks(profiles), all_cells.inverse, on_h.inverse))] = np.repeat(parts.group, parts.rows)
        return group, parts.totals, parts.members


def microaggregate(integers: np.ndarray, sizes: np.ndarray, k: int) -> Assignment:
    """MDAV-generic on distinct profiles in lexicographic order.

    ``integers``: whole numbers (m, |h|), and how many rows each has; at least one row.
    """
    x = np.ascontiguousarray(integers, np.int32)  # differences and squares are computed in 64 bits
    profile, group, rows = _mdav(x, np.array(sizes, np.int64), k)
    order = np.lexsort((group, profile))
    profile, group, rows = profile[order], group[order], rows[order]
    totals = np.zeros((group.max() + 1, x.shape[1]), np.int64)
    np.add.at(totals, group, integers[profile] * rows[:, None])
    return Assignment(profile, group, rows, totals, np.bincount(group, rows).astype(np.int64))


@numba.njit(nogil=True, cache=True)
def _mdav(x, remaining, k):
    m, cells = x.shape
    live, d = np.arange(m), np.empty(m, np.int64)
    total = np.zeros(cells, np.int64)
    for i in range(m):
        for c in range(cells):
            total[c] += remaining[i] * x[i, c]
    rows, capacity = remaining.sum(), remaining.sum() + m
    profile, group, counts = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    near_d, near = np.empty(k + 1, np.int64), np.empty(k + 1, np.int64)
    parts, groups = 0, 0
    while rows >= 2 * k:
        r = _farthest_from_mean(x, live, total, rows)
        _distances(x, live, r, d)
        two = rows >= 3 * k
        s = _farthest(live, d)
        if two:
            remaining[s] -= 1  # kept for its own group
        parts = _take(x, live, d, r, remaining, k, near_d, near, profile, group, counts, parts, groups, total)
        groups, rows = groups + 1, rows - k
        if two:
            remaining[s] += 1
            live = _remaining(live, remaining)
            _distances(x, live, s, d)
            parts = _take(x, live, d, s, remaining, k, near_d, near, profile, group, counts, parts, groups, total)
            groups, rows = groups + 1, rows - k
        live = _remaining(live, remaining)
        if not two:
            break
    for i in live:
        profile[parts], group[parts], counts[parts] = i, groups, remaining[i]
        parts += 1
    return profile[:parts], group[:parts], counts[:parts]


@numba.njit(nogil=True, cache=True)
def _farthest_from_mean(x, live, total, rows):
    """The profile of largest |x − total/rows|², compared as whole numbers: times rows, without the terms equal for all."""
    largest, farthest = np.int64(0), np.int64(-1)
    for i in live:
        distance = np.int64(0)
        for c in range(x.shape[1]):
            distance += x[i, c] * (rows * x[i, c] - 2 * total[c])
        if farthest < 0 or distance > largest:
            largest, farthest = distance, i
    return farthest


@numba.njit(nogil=True, cache=True)
def _farthest(live, d):
    best = 0
    for j in range(len(live)):
        if d[j] > d[best]:
            best = j
    return live[best]


@numba.njit(nogil=True, cache=True)
def _remaining(live, remaining):
    """The profiles with rows left; shortens the array itself."""
    count = 0
    for i in live:
        if remaining[i] > 0:
            live[count] = i
            count += 1
    return live[:count]


@numba.njit(nogil=True, cache=True)
def _distances(x, live, centre, d):
    for j in range(len(live)):
        i = live[j]
        distance = np.int64(0)
        for c in range(x.shape[1]):
            step = x[i, c] - x[centre, c]
            distance += step * step
        d[j] = distance


@numba.njit(nogil=True, cache=True)
def _take(x, live, d, centre, remaining, k, near_d, near, profile, group, counts, parts, number, total):
    """Move the k rows nearest to ``centre``, including itself, to group ``number``, sorted by distance, then profile."""
    count, held = 0, np.int64(0)
    for j in range(len(live)):
        i = live[j]
        if remaining[i] == 0 or (held >= k and d[j] >= near_d[count - 1]):
            continue
        place = count
        while place > 0 and near_d[place - 1] > d[j]:
            near_d[place], near[place] = near_d[place - 1], near[place - 1]
            place -= 1
        near_d[place], near[place] = d[j], i
        count, held = count + 1, held + remaining[i]
        while held - remaining[near[count - 1]] >= k:
            count -= 1
            held -= remaining[near[count]]
    need = k
    for j in range(count):
        i = near[j]
        taken = min(need, remaining[i])
        profile[parts], group[parts], counts[parts] = i, number, taken
        for c in range(x.shape[1]):
            total[c] -= taken * x[i, c]
        remaining[i] -= taken
        need -= taken
        parts += 1
    return parts
