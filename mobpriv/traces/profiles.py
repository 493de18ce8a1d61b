"""Profiles that an adversary builds from a trace: stays, POIs, heat maps, mobility Markov chains (thesis §3.2, §3.4.1).

Sources:

* stays: Hariharan and Toyama (2004), with a growing window;
* points of interest (POIs): density-joinable clustering of the stays, Zhou et al. (2004);
* heat maps: the thesis, §3.2;
* mobility Markov chains: Gambs et al. (2014).
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from inspect import signature
from typing import Any, NamedTuple

import numba
import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from mobpriv.base.ranges import not_negative, one_of, positive, true_or_false, whole
from mobpriv.ground.geo import across_the_date_line, displacement, to_degrees, to_plane
from mobpriv.traces.table import Traces, by_user, milliseconds

AT_A_TIME = 1 << 19  # records
BORDER = 0.001  # m, tolerance of a distance bound, so that rounding decides nothing
_STAY = ["user", "start", "end", "lat", "lng", "records", "first", "last"]


_computed: dict[int, dict[tuple, Any]] = {}  # identity of a table -> its profiles, inside :func:`computed_once`


@contextmanager
def computed_once(*tables: Traces) -> Iterator[None]:
    """Compute the POIs and heat maps of these tables once inside the block, because several attacks and metrics need them.

    The tables and the results must not be changed in the block.
    """
    new = {id(table) for table in tables} - _computed.keys()
    _computed.update((table, {}) for table in new)
    try:
        yield
    finally:
        for table in new:
            del _computed[table]


def _once(function: Callable) -> Callable:
    """Let a function of a table reuse its result inside :func:`computed_once`."""
    bind = cache(lambda: signature(function).bind)

    @wraps(function)
    def profiles(traces, *arguments, **named):
        results = _computed.get(id(traces))
        if results is None:
            return function(traces, *arguments, **named)
        bound = bind()(traces, *arguments, **named)
        bound.apply_defaults()
        key = (function.__name__, *bound.args[1:])
        if not all(isinstance(argument, Hashable) for argument in key):  # a grid of the caller's own
            return function(traces, *arguments, **named)
        if key not in results:
            results[key] = function(traces, *arguments, **named)
        return results[key]

    return profiles


def stays(
    traces: Traces,
    diameter: float = 200.0,  # m, largest distance between two records of a stay
    duration: float = 3600.0,  # s, least time from a stay's first record to its last
    max_gap: float | None = None,  # s, a longer pause between two records ends the stay; None: no limit
    plane: str = "ground",
    centroid: str = "records",
) -> pd.DataFrame:
    """The stops of users: maximal runs of records that fit into ``diameter`` and last at least ``duration``.

    A window grows by one record while the new record is within ``diameter`` of *every* record in it. If it is not, there are
    two cases:

    * The first and last record of the window are ``duration`` or more apart: the window is a stay, and a new window begins with
      the new record.
    * Otherwise the oldest records are dropped until the new one fits.

    A distance up to the diameter plus :data:`BORDER`, a millimetre, is within it. Promesse with α = ``diameter``, or a divisor
    of it, places points exactly that far apart, and rounding would decide. Use ``diameter - 2 * BORDER`` for less than the
    diameter.

    Returns one row per stay: user, start, end, lat, lng (the centroid), records (count), first and last (rows in ``traces``).
    ``centroid="distinct"`` averages the distinct positions, as the author's program does for POIs and PIT-Attack.

    Departures from the paper: none known; the thesis only names the method. It does not mention pauses: by default two records
    at one place are a stay whatever the gap between them, as in the author's program.
    """
    check_stay(diameter, duration, max_gap, centroid)
    if not len(traces):
        return pd.DataFrame({c: [] for c in _STAY})
    first, last, x, y = _in_plane(traces, diameter, duration, max_gap, plane, centroid == "distinct")
    lat, lng = to_degrees(x, y, plane)
    t = traces["t"]
    return pd.DataFrame(
        {
            "user": traces["user"].take(first).reset_index(drop=True),
            "start": t.take(first).reset_index(drop=True),
            "end": t.take(last).reset_index(drop=True),
            "lat": lat,
            "lng": lng,
            "records": last - first + 1,
            "first": first,
            "last": last,
        }
    )


def _in_plane(traces, diameter, duration, max_gap, plane, distinct=False):
    """The first and last row of each stay, and its centroid in the plane."""
    p = to_plane(traces["lat"].to_numpy(), across_the_date_line(traces["lng"].to_numpy()), plane)
    gap = np.iinfo(np.int64).max if max_gap is None else round(max_gap * 1000)
    end = _stay_ends(*p, milliseconds(traces), by_user(traces)[1], diameter + BORDER, round(duration * 1000), gap)
    first = np.flatnonzero(end)
    last = end[first] - 1
    return first, last, *_means(p.x, p.y, first, last, distinct)


def check_stay(diameter, duration, max_gap=None, centroid="records"):
    positive("diameter", diameter, "m")
    not_negative("duration", duration, "s")
    if max_gap is not None:
        positive("max_gap", max_gap, "s", hint=", or None")
    one_of("centroid", centroid, ("records", "distinct"))


@numba.njit(cache=True, parallel=True)
def _stay_ends(x, y, sx, sy, time, offsets, diameter, duration, max_gap):
    """For the first row of each stay the row after its last one, otherwise 0."""
    end = np.zeros(len(x), np.int64)
    limit = diameter * diameter
    for user in numba.prange(len(offsets) - 1):
        a = offsets[user]  # the window is [a, i)
        # bounds of the window: if the farthest corner is near enough, no comparison with each record is needed. After records
        # are dropped the bounds may be too wide, never too narrow.
        left, right, low, high, wide, tall = x[a], x[a], y[a], y[a], sx[a], sy[a]
        for i in range(a + 1, offsets[user + 1] + 1):
            fits, j = False, i
            if i < offsets[user + 1] and time[i] - time[i - 1] <= max_gap:
                wide, tall = max(wide, sx[i]), max(tall, sy[i])
                east = wide * max(x[i] - left, right - x[i])
                north = tall * max(y[i] - low, high - y[i])
                fits = east * east + north * north <= limit
                if not fits:
                    j = i - 1  # the latest record of the window that is too far away
                    while j >= a:
                        dx, dy = displacement(x, y, sx, sy, j, i)
                        if dx * dx + dy * dy > limit:
                            break
                        j -= 1
                    fits = j < a
            if not fits:
                if i - a >= 2 and time[i - 1] - time[a] >= duration:
                    end[a] = i
                    a = i
                else:
                    a = j + 1 if j < i else i
                if a < offsets[user + 1]:
                    left, right, low, high, wide, tall = x[a], x[a], y[a], y[a], sx[a], sy[a]
                for k in range(a + 1, i):
                    left, right, low, high = min(left, x[k]), max(right, x[k]), min(low, y[k]), max(high, y[k])
                    wide, tall = max(wide, sx[k]), max(tall, sy[k])
            if i < offsets[user + 1]:
                left, right, low, high = min(left, x[i]), max(right, x[i]), min(low, y[i]), max(high, y[i])
                wide, tall = max(wide, sx[i]), max(tall, sy[i])
    return end


@numba.njit(cache=True, parallel=True)
def _means(x, y, first, last, distinct):
    mx, my = np.empty(len(first)), np.empty(len(first))
    for k in numba.prange(len(first)):
        n, ax, ay = 0, 0.0, 0.0
        seen = set([(np.nan, np.nan)])
        for i in range(first[k], last[k] + 1):
            if distinct:
                if (x[i], y[i]) in seen:
                    continue
                seen.add((x[i], y[i]))
            n += 1
            # relative to the first record: sums of small numbers keep their digits
            ax += x[i] - x[first[k]]
            ay += y[i] - y[first[k]]
        mx[k], my[k] = x[first[k]] + ax / n, y[first[k]] + ay / n
    return mx, my


@_once
def pois(
    traces: Traces,
    diameter: float = 200.0,  # m, of a stay; stays within half of it are joined
    duration: float = 3600.0,  # s, least duration of a stay
    max_gap: float | None = None,  # s, see stays
    min_stays: int = 1,  # least number of stays within diameter/2 (itself included) of a dense place (minPts)
    plane: str = "ground",
    centroid: str = "records",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Points of interest: the stays of each user clustered by density (DJ-Cluster, Zhou et al. 2004).

    The neighbourhood of a stay consists of the user's stays within ``diameter``/2 of its centroid. Neighbourhoods of fewer than
    ``min_stays`` are noise; neighbourhoods that share a stay form one POI.

    Returns ``(pois, stays)``:

    * pois: user, poi (0, 1, … by falling number of records, then by first visit), lat, lng (mean of all its records), records,
      stays, seconds;
    * stays: as from :func:`stays`, with the column poi (-1: noise).
    """
    whole("min_stays", min_stays, 1)
    visits = stays(traces, diameter, duration, max_gap, plane, centroid)
    columns = ["user", "poi", "lat", "lng", "records", "stays", "seconds"]
    if not len(visits):
        return pd.DataFrame({c: [] for c in columns}), visits.assign(poi=[])
    p = to_plane(visits["lat"].to_numpy(), across_the_date_line(visits["lng"].to_numpy()), plane)
    _, offsets = by_user(visits)
    label = _join(*p, offsets, diameter / 2 + BORDER, min_stays)
    dense = label >= 0
    n = visits["records"].to_numpy()
    if centroid == "distinct" and dense.any():
        x, y = _distinct_means(traces, visits, label, plane)
    else:
        total = np.maximum(np.bincount(label[dense], n[dense], len(n)), 1)
        x, y = (np.bincount(label[dense], n[dense] * column[dense], len(n)) / total for column in (p.x, p.y))
    # the label of a cluster is the index of its first stay
    duration_of_stay = (visits["end"] - visits["start"]).dt.total_seconds()
    table = visits.assign(label=label, seconds=duration_of_stay)[dense].groupby("label", sort=True)
    clusters = pd.DataFrame(
        {
            "user": table["user"].first(),
            "records": table["records"].sum(),
            "stays": table.size(),
            "seconds": table["seconds"].sum(),
        }
    )
    clusters["lat"], clusters["lng"] = to_degrees(x[clusters.index], y[clusters.index], plane)
    order = {"by": ["user", "records", "label"], "ascending": [True, False, True]}
    clusters = clusters.reset_index().sort_values(**order, ignore_index=True)
    clusters["poi"] = clusters.groupby("user", observed=True).cumcount()
    number = pd.Series(clusters["poi"].to_numpy(), index=clusters["label"].to_numpy())
    poi = number.reindex(label).fillna(-1).astype(int).to_numpy()
    return clusters[columns], visits.assign(poi=poi)


@numba.njit(cache=True)
def _join(x, y, sx, sy, offsets, radius, min_stays):
    """The first stay of each stay's cluster, -1 for noise; neighbourhoods that share a stay are joined (union-find)."""
    parent = np.arange(len(x))
    dense = np.zeros(len(x), np.bool_)
    for user in range(len(offsets) - 1):
        for i in range(offsets[user], offsets[user + 1]):
            near = 0
            for j in range(offsets[user], offsets[user + 1]):
                dx, dy = displacement(x, y, sx, sy, i, j)
                near += dx * dx + dy * dy <= radius * radius
            if near < min_stays:
                continue
            for j in range(offsets[user], offsets[user + 1]):
                dx, dy = displacement(x, y, sx, sy, i, j)
                if dx * dx + dy * dy <= radius * radius:
                    dense[j] = True
                    a, b = i, j
                    while parent[a] != a:
                        parent[a] = parent[parent[a]]
                        a = parent[a]
                    while parent[b] != b:
                        parent[b] = parent[parent[b]]
                        b = parent[b]
                    parent[max(a, b)] = min(a, b)
    label = np.empty(len(x), np.int64)
    for i in range(len(x)):
        a = i
        while parent[a] != a:
            a = parent[a]
        label[i] = a if dense[i] else -1
    return label


def _distinct_means(traces, visits, label, plane):
    """Plane centroid of each cluster over the distinct positions of its records (the author's program)."""
    p = to_plane(traces["lat"].to_numpy(), across_the_date_line(traces["lng"].to_numpy()), plane)
    span = [np.arange(a, b + 1) for a, b in zip(visits["first"], visits["last"], strict=True)]
    rows = np.concatenate(span)
    table = pd.DataFrame({"label": np.repeat(label, [len(s) for s in span]), "x": p.x[rows], "y": p.y[rows]})
    mean = table[table["label"] >= 0].drop_duplicates().groupby("label").mean().reindex(range(len(visits)))
    return mean["x"].to_numpy(), mean["y"].to_numpy()


class Centres(NamedTuple):
    """Places of several users: user i of :func:`mobpriv.traces.table.by_user` owns rows start[i] … start[i+1]−1."""

    lat: np.ndarray
    lng: np.ndarray
    start: np.ndarray


@_once
def poi_centres(
    traces: Traces,
    diameter: float = 200.0,  # m, of a stay; stays within half of it are joined
    duration: float = 3600.0,  # s, least duration of a stay
    max_gap: float | None = None,  # s, see stays
    merged: bool = True,
    plane: str = "ground",
) -> Centres:
    """Only the centres of all users' POIs, as :func:`pois` finds them: several times as fast.

    With ``merged=False`` these are the centres of stays, one per visit to a place. A user without any has an empty block. The
    places of a user are in the order of their first visits.
    """
    true_or_false("merged", merged)
    check_stay(diameter, duration, max_gap)
    first, last, x, y = _in_plane(traces, diameter, duration, max_gap, plane)
    start = np.searchsorted(first, by_user(traces)[1])
    if merged and len(first):
        lat, lng = to_degrees(x, y, plane)
        q = to_plane(lat, across_the_date_line(lng), plane)  # with the scales at the stays
        label = _join(*q, start, diameter / 2 + BORDER, 1)
        n = last - first + 1
        cluster = np.flatnonzero(label == np.arange(len(label)))  # the label of a cluster is the index of its first stay
        total = np.bincount(label, n, len(n))[cluster]
        x, y = (np.bincount(label, n * column, len(n))[cluster] / total for column in (q.x, q.y))
        start = np.searchsorted(cluster, start)
    return Centres(*to_degrees(x, y, plane), start)


class HeatMaps(NamedTuple):
    """Counts of records per user and cell."""

    users: pd.Index  # one row of counts per user
    cells: np.ndarray  # the grid's ids, one column of counts per cell
    counts: csr_array  # (users, cells), int64

    @property
    def shares(self) -> csr_array:
        """P_AP of the thesis (§3.2): the probability of each cell, rows sum to 1."""
        totals = self.counts.sum(axis=1)
        data = self.counts.data / np.repeat(totals, np.diff(self.counts.indptr))
        return csr_array((data, self.counts.indices, self.counts.indptr), shape=self.counts.shape)


@_once
def heat_maps(traces: Traces, grid) -> HeatMaps:
    """The number of each user's records in each cell of ``grid`` (thesis §3.2, Figure 3.2)."""
    users, offsets = by_user(traces)
    lat, lng = traces["lat"].to_numpy(), traces["lng"].to_numpy()
    cell_ids, cell_counts, cells_per_user = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(1, np.int64)]
    # a few users at a time: a short column of cells stays in the cache; allocating a long one costs more than filling it
    ends = np.unique(np.searchsorted(offsets, [*range(AT_A_TIME, len(lat), AT_A_TIME), len(lat)])) if len(lat) else []
    for first, last in zip([0, *ends], ends, strict=False):
        part = slice(offsets[first], offsets[last])
        cell = np.asarray(grid.cells(lat[part], lng[part]), np.int64)
        borders = offsets[first : last + 1] - offsets[first]
        *tallied, of_each = _tally(cell, borders)
        packed = _packed(*tallied, borders, np.r_[0, np.cumsum(of_each)])
        for parts, values in zip((cell_ids, cell_counts, cells_per_user), (*packed, of_each), strict=True):
            parts.append(values)
    cells, indices = np.unique(np.concatenate(cell_ids), return_inverse=True)
    indptr = np.cumsum(np.concatenate(cells_per_user))
    counts = csr_array((np.concatenate(cell_counts), indices.astype(np.int64), indptr), shape=(len(users), len(cells)))
    return HeatMaps(users, cells, counts)


@numba.njit(cache=True, parallel=True)
def _tally(cell, offsets):
    """Each user's cells in rising order and their counts, at the beginning of her rows, and the number of her cells."""
    cells, counts = np.empty(len(cell), np.int64), np.empty(len(cell), np.int64)
    cells_per_user = np.zeros(len(offsets) - 1, np.int64)
    for user in numba.prange(len(offsets) - 1):
        a, b = offsets[user], offsets[user + 1]
        cells_per_user[user] = _tally_one(cell[a:b], cells[a:b], counts[a:b])
    return cells, counts, cells_per_user


@numba.njit(cache=True)
def _tally_one(cell, cells, record_counts):
    """Write the distinct cells in rising order to ``cells`` and their counts to ``record_counts``; return their number."""
    keys, counts = np.zeros(1024, np.int64), np.zeros(1024, np.int64)  # a hash table; slots with count 0 are free
    ones, done = np.ones(1, np.int64), 0
    while done < len(cell):
        done += _add(cell[done:], ones, keys, counts)
        if done < len(cell):  # half full
            old, n = keys, counts
            keys, counts = np.zeros(4 * len(old), np.int64), np.zeros(4 * len(old), np.int64)
            used = np.flatnonzero(n)
            _add(old[used], n[used], keys, counts)
    used = np.flatnonzero(counts)
    order = used[np.argsort(keys[used])]
    n = len(order)
    cells[:n], record_counts[:n] = keys[order], counts[order]
    return n


@numba.njit(cache=True)
def _add(cell, times, keys, counts):
    """Add cells to the hash table, ``times`` each (its last entry repeats), until it is half full; return how many.

    There is no shortcut for a cell that repeats the previous one: a branch that is hard to predict costs more.
    """
    free, last = len(keys) // 2 - np.count_nonzero(counts), len(times) - 1
    for i in range(len(cell)):
        at = _slot(keys, counts, cell[i])
        if counts[at] == 0:
            if free == 0:
                return i
            free -= 1
            keys[at] = cell[i]
        counts[at] += times[min(i, last)]
    return len(cell)


@numba.njit(inline="always")
def _slot(keys, counts, key):
    """The slot of ``key`` in the hash table, whose length is a power of two, or the free slot for it."""
    mask = np.uint64(len(keys) - 1)
    at = ((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while counts[at] != 0 and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@numba.njit(cache=True)
def _packed(tallied_cells, tallied_counts, offsets, indptr):
    """Pack the beginnings of the users' rows end to end."""
    cells, counts = np.empty(indptr[-1], np.int64), np.empty(indptr[-1], np.int64)
    for user in range(len(offsets) - 1):
        n = indptr[user + 1] - indptr[user]
        cells[indptr[user] : indptr[user + 1]] = tallied_cells[offsets[user] : offsets[user] + n]
        counts[indptr[user] : indptr[user + 1]] = tallied_counts[offsets[user] : offsets[user] + n]
    return cells, counts


class MarkovChains(NamedTuple):
    """One mobility Markov chain per user, in long tables."""

    states: pd.DataFrame  # user, state, lat, lng, weight: POIs by falling weight; weights sum to 1 per user
    transitions: pd.DataFrame  # user, source, target, probability: rows from one source sum to 1


def markov_chains(
    traces: Traces,
    diameter: float = 200.0,  # m, of a stay
    duration: float = 3600.0,  # s, least length of a stay
    max_gap: float | None = None,  # s, see stays
    min_stays: int = 1,
    plane: str = "ground",
    centroid: str = "records",
) -> MarkovChains:
    """Mobility Markov chains (thesis §3.4.1; Gambs et al. 2014).

    The states are the POIs, ordered by number of records; the weight of a state is its share of the user's in-POI records. Each
    stay counts a transition from its POI to that of the next stay if they differ; the last stay has none.
    """
    places, visits = pois(traces, diameter, duration, max_gap, min_stays, plane, centroid)
    states = places.rename(columns={"poi": "state"})
    total = states.groupby("user", observed=True)["records"].transform("sum")
    states = states.assign(weight=states["records"] / total)[["user", "state", "lat", "lng", "weight"]]
    visits = visits[visits["poi"] >= 0]
    following = visits.groupby("user", observed=True)["poi"].shift(-1)
    moves = pd.DataFrame({"user": visits["user"], "source": visits["poi"], "target": following}).dropna()
    moves = moves[moves["source"] != moves["target"]].astype({"target": int})
    moves = moves.groupby(["user", "source", "target"], observed=True).size().rename("n").reset_index()
    leaving = moves.groupby(["user", "source"], observed=True)["n"].transform("sum")
    return MarkovChains(states.reset_index(drop=True), moves.assign(probability=moves["n"] / leaving).drop(columns="n"))
