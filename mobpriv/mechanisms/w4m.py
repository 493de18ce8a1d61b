"""W4M, "Wait for Me": (k, δ)-anonymity of traces; the variant with the linear distance, W4M-LST.

Source: Abul, Bonchi, Nanni, "Anonymization of moving objects databases by clustering and perturbation", Information Systems
35(8), 2010; in the thesis: §2.3, §3.4.2.

(k, δ)-anonymity: every published trace moves together with at least k − 1 others inside a cylinder of diameter δ. Traces are
grouped by their similarity in space and time. Then each is moved, as little as needed, into the cylinder around the group's
pivot. Traces that fit into no group are left out ("trash").
"""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import pandas as pd

from mobpriv.base.draws import generator
from mobpriv.base.ranges import between, one_of, positive, whole
from mobpriv.base.sharing import once
from mobpriv.ground.geo import Points, across_the_date_line, check_plane, displacement, to_degrees, to_plane, towards
from mobpriv.traces.table import Traces, by_user, from_blocks, milliseconds


class Clusters(NamedTuple):
    """The result of :meth:`W4M.clusters`.

    ``members`` has one row per user (the index) and the columns:

    * ``cluster``: 0, 1, …; −1: left out, because ``reach`` exceeds ``radius``;
    * ``pivot``: the user whose times and path the cluster takes; for a user left out the most similar pivot;
    * ``cost``: LSTD to the pivot, a count;
    * ``reach``: the largest distance between matched points, in m.
    """

    members: pd.DataFrame
    radius: float  # m, radius_max after the last round
    rounds: int  # clustering rounds (1: the first radius was enough)


@dataclass(frozen=True)
class W4M:
    """(k, δ)-anonymity by greedy clustering around pivots, and translation into the pivot's cylinder.

    * Distance (LSTD): time is a third axis, z = (t − first t)·v, v the mean speed of the traces. Two pointers walk through both
      traces. Each step advances both, the second or the first, whichever next pair costs least (ties in this order). A pair
      costs its 3-D distance in whole ``delta``, at most ``cap``; LSTD is the sum. It takes linear time.
    * Clustering: pivots are drawn at random from the traces still free. A pivot and its k − 1 nearest free traces become a
      cluster if none of them has a matched point farther than radius_max; else the pivot is no longer free. Each trace left at
      the end joins its nearest pivot if within radius_max, else it is trash. With more than ``trash_max`` trash, radius_max
      grows by half and the clustering restarts.
    * Translation: each member takes the pivot's times. At each time the member's matched point is kept if it is within delta/2
      of the pivot's, else moved towards it to delta/2. The pivot is unchanged.

    So all members of a cluster have the same times, and any two are within ``delta`` at each. Records are invented, so further
    columns are dropped; users left out are missing in the result, and :meth:`clusters` names them.

    Departures: the program in general use exists as a binary only, and the details above are its behaviour. It matches in units
    of delta/2 for the translation, and takes the first of several matched points, as here. We do not know whether it lets a
    rejected pivot become a member when another pivot is tried: neither variant reproduces recorded clusterings of 48 traces.
    Here a rejected pivot can only join at the end. The program cuts radius_max to whole metres, draws pivots from an unseeded
    generator that always starts alike, and refuses traces of more than 10 000 records. None of this is copied. The first
    ``radius`` is that of Accio.

    ``times="wrapper"`` copies a mistake of the wrapper in the thesis author's published code. It reads the program's seconds as
    milliseconds, so that everything happens in January 1970, a thousand times too fast.

    >>> import numpy as np
    >>> from mobpriv import load
    >>> traces = load("city", max_users=3).traces
    >>> W4M(k=2).protect(traces, np.random.default_rng(1))["user"].nunique()
    3
    """

    k: int = 2  # users per cluster, at least
    delta: float = 600.0  # m, diameter of the cylinder
    trash_max: float = 0.1  # share of the traces that may be left out
    radius: float | None = None  # m, first radius_max; None: 0.5 % of half the diagonal of the bounding box
    cap: int = 10  # largest cost of one pair
    plane: str = "ground"
    times: str = "right"

    name = "W4M"
    random = True

    def __post_init__(self):
        check_plane(self.plane)
        one_of("times", self.times, ("right", "wrapper"))
        object.__setattr__(self, "k", whole("k", self.k, 2, rule="must be a whole number of users, at least 2"))
        positive("delta", self.delta, "m")
        between("trash_max", self.trash_max, 0, np.nextafter(1, 0), "is a share of the traces, in [0, 1)")
        if self.radius is not None:
            positive("radius", self.radius, "m", hint="; None takes it from the bounding box")
        # a cost is summed up in 32 bits
        whole("cap", self.cap, 1, 10_000, "must be a whole number, at least 1, at most 10000")

    def protect(self, traces: Traces, rng: np.random.Generator, pairs: "PairDistances | None" = None) -> Traces:
        """The published traces. Distances take nearly all the time: for several repetitions pass the same ``pairs`` to each."""
        if not len(traces):
            return from_blocks(pd.Index([]), [], np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        return self.translate(traces, self.clusters(traces, rng, pairs))

    def pairs(self, traces: Traces) -> "PairDistances":
        """The distances between the traces, each computed when first needed."""
        return PairDistances(space_time(traces, self.plane), by_user(traces)[1], float(self.delta), int(self.cap))

    def clusters(self, traces: Traces, rng: np.random.Generator, pairs: "PairDistances | None" = None) -> Clusters:
        """The clusters, their pivots and the users left out; raises ValueError if there are fewer than k users."""
        users, _ = by_user(traces)
        n = len(users)
        if n < self.k:
            are = "there is 1 user" if n == 1 else f"there are {n} users"
            raise ValueError(f"k must not exceed the number of users (k is {self.k}, {are}): lower k or add users")
        if pairs is not None and not pairs.belong_to(traces, self):
            raise ValueError("pairs must hold the distances of these traces under this mechanism: pass mechanism.pairs(traces)")
        result, rng.bit_generator.state = once(W4M._clusters)(self, traces, generator(rng), pairs=pairs)
        return result

    def _clusters(self, traces: Traces, rng: np.random.Generator, pairs: "PairDistances | None") -> tuple[Clusters, dict]:
        """The clusters, and the generator's state after the draws."""
        users, _ = by_user(traces)
        n = len(users)
        pairs = self.pairs(traces) if pairs is None else pairs
        radius = self._first_radius(traces) if self.radius is None else self.radius
        rounds = 1
        while True:
            cluster, pivots = _greedy_clusters(pairs, self.k, radius, rng.permutation(n))
            if np.sum(cluster < 0) <= self.trash_max * n:
                break
            radius, rounds = max(1.5 * radius, 1.0), rounds + 1  # at least 1 m: a radius of 0 would never grow
        assigned = cluster.copy()
        assigned[cluster < 0] = pairs.nearest(pivots, np.flatnonzero(cluster < 0))
        pivot = pivots[assigned]
        cost, reach = pairs.between(pivot, np.arange(n))
        columns = {"cluster": cluster, "pivot": users[pivot], "cost": cost, "reach": reach}
        return Clusters(pd.DataFrame(columns, index=users), radius, rounds), rng.bit_generator.state

    def translate(self, traces: Traces, clusters: Clusters) -> Traces:
        """The traces of all clusters, each moved into its pivot's cylinder."""
        users, offsets = by_user(traces)
        members = clusters.members.reindex(users)
        if members["cluster"].isna().any():
            unknown = members.index[members["cluster"].isna()][0]
            raise ValueError(f"the clusters belong to other traces: user {unknown} is not among their members")
        clustered = np.flatnonzero(members["cluster"] >= 0)
        pivot = users.get_indexer(members["pivot"].iloc[clustered])
        counts = np.diff(offsets)[pivot]
        ends = np.r_[0, np.cumsum(counts)]
        s = space_time(traces, self.plane)
        x, y, record = _translate(s, offsets, clustered, pivot, ends, float(self.delta), int(self.cap), self.plane == "ground")
        lat, lng = to_degrees(x, y, self.plane)
        # points that need no move keep their exact coordinates, without conversion to the plane and back
        kept = record >= 0
        lat[kept], lng[kept] = (traces[c].to_numpy()[record[kept]] for c in ("lat", "lng"))
        first = np.repeat(offsets[pivot] - ends[:-1], counts)
        time = milliseconds(traces)[np.arange(ends[-1]) + first]
        return from_blocks(users[clustered], counts, time // 1000 if self.times == "wrapper" else time, lat, lng)

    def _first_radius(self, traces: Traces) -> float:
        lat, lng = traces["lat"], across_the_date_line(traces["lng"].to_numpy())
        # unwrapped longitudes: half the globe must not count as distance 0
        p = to_plane(np.array([lat.min(), lat.max()]), np.array([lng.min(), lng.max()]), self.plane)
        east, north = 0.5 * p.sx.sum() * np.diff(p.x)[0], 0.5 * p.sy.sum() * np.diff(p.y)[0]
        return 0.005 * float(np.hypot(east, north)) / 2


class SpaceTime(NamedTuple):
    """Columns of a set of traces: plane coordinates with their scales, and time in metres."""

    x: np.ndarray
    y: np.ndarray
    sx: np.ndarray
    sy: np.ndarray
    z: np.ndarray  # m


def space_time(traces: Traces, plane: str = "ground") -> SpaceTime:
    """z = (t − first t of the set)·v, v = the mean over the traces of length / duration, without traces of duration 0."""
    _, offsets = by_user(traces)
    lng = traces["lng"].to_numpy()
    p = to_plane(traces["lat"].to_numpy(), across_the_date_line(lng), plane)
    p = Points(*map(np.array, p))  # one memory layout: compiled once
    time = milliseconds(traces)
    length = _lengths(p, offsets)
    duration = (time[offsets[1:] - 1] - time[offsets[:-1]]) / 1000
    lasting = duration > 0
    v = np.mean(length[lasting] / duration[lasting]) if lasting.any() else 0.0
    z = (time - time.min()) / 1000 * v
    return SpaceTime(*p, z)


class PairDistances:
    """LSTD and reach between traces, computed when first needed and stored for the next rounds of the clustering.

    Most pairs are farther apart than radius_max, and the computation stops as soon as this is known. Until ``cost`` of a pair
    is known (−1: not yet), ``reach`` holds a lower bound.
    """

    def __init__(self, s: SpaceTime, offsets: np.ndarray, delta: float, cap: int):
        n = len(offsets) - 1
        self.s, self.offsets, self.delta, self.cap = s, offsets, delta, cap
        self.cost, self.reach = np.full((n, n), -1, np.int32), np.zeros((n, n))
        # the outermost point is matched inside the other's bounding box; with the smallest scale this is a lower bound
        for coordinate, metres in ((s.x, s.sx.min()), (s.y, s.sy.min())):
            for outermost in (np.minimum, np.maximum):
                side = outermost.reduceat(coordinate, offsets[:-1]) * metres
                distance = np.abs(side[:, None] - side[None, :]) - 1e-6  # m, for rounding
                np.maximum(self.reach, distance, out=self.reach)

    def belong_to(self, traces: Traces, mechanism: "W4M") -> bool:
        """Whether these are the distances of ``mechanism`` between ``traces``."""
        s, offsets = space_time(traces, mechanism.plane), by_user(traces)[1]
        same = (self.delta, self.cap) == (float(mechanism.delta), int(mechanism.cap)) and np.array_equal(self.offsets, offsets)
        return same and all(map(np.array_equal, self.s, s))

    def between(self, first, second) -> tuple[np.ndarray, np.ndarray]:
        """LSTD (a count) and reach (m) of the pairs (first[i], second[i])."""
        first, second = np.broadcast_arrays(first, second)
        self._walk(first, second, self.cost[first, second] < 0, np.inf)
        return self.cost[first, second], self.reach[first, second]

    def within(self, radius: float, first, second) -> np.ndarray:
        """Whether the reach of the pairs (first[i], second[i]) is at most ``radius``."""
        first, second = np.broadcast_arrays(first, second)
        self._walk(first, second, (self.cost[first, second] < 0) & (self.reach[first, second] <= radius), radius)
        return self.reach[first, second] <= radius

    def nearest(self, pivots: np.ndarray, traces: np.ndarray) -> np.ndarray:
        """For each trace the position of its nearest pivot by LSTD, in case of ties the first."""
        cost, _ = self.between(pivots[None, :], traces[:, None])
        return cost.argmin(axis=1)

    def _walk(self, first, second, chosen, limit: float) -> None:
        if chosen.any():
            a, b = np.ascontiguousarray(first[chosen]), np.ascontiguousarray(second[chosen])
            self.cost[a, b], self.reach[a, b] = _lstd_of_pairs(self.s, self.offsets, a, b, self.delta, self.cap, limit)


def _greedy_clusters(pairs: PairDistances, k: int, radius: float, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One round of the clustering: the cluster of each trace (−1: trash) and the pivots, which are tried in ``order``."""
    cluster, pivots = _around_pivots(pairs.s, pairs.offsets, pairs.delta, pairs.cap, pairs.cost, pairs.reach, k, radius, order)
    unassigned = np.flatnonzero(cluster < 0)
    if len(pivots):
        unassigned = unassigned[pairs.within(radius, pivots[None, :], unassigned[:, None]).any(axis=1)]
        nearest = pairs.nearest(pivots, unassigned)
        _, reach = pairs.between(pivots[nearest], unassigned)
        cluster[unassigned[reach <= radius]] = nearest[reach <= radius]
    return cluster, pivots


@numba.njit(cache=True)
def _around_pivots(s, offsets, delta, cap, cost, reach, k, radius, order):
    """The clusters of a pivot and its k − 1 nearest free traces, all within ``radius``, and the pivots."""
    n = len(order)
    free, cluster = np.ones(n, np.bool_), np.full(n, -1)
    pivots, found = np.empty(n, np.int64), 0
    for p in order:
        if not free[p]:
            continue
        free[p] = False
        others = np.flatnonzero(free)
        if len(others) < k - 1:
            break
        _complete(s, offsets, delta, cap, cost[p], reach[p], p, others[reach[p][others] <= radius], radius)
        if np.sum(reach[p][others] <= radius) < k - 1:
            continue  # fewer than k − 1 are near enough
        _complete(s, offsets, delta, cap, cost[p], reach[p], p, others, np.inf)
        # in case of ties the later trace
        near = others[np.argsort(cost[p][others].astype(np.int64) * n - others)[: k - 1]]
        if reach[p][near].max() <= radius:
            free[near] = False
            cluster[p] = cluster[near] = found
            pivots[found] = p
            found += 1
    return cluster, pivots[:found]


@numba.njit(cache=True)
def _complete(s, offsets, delta, cap, cost, reach, pivot, others, limit):
    """Fill in what is not known yet of a pivot's rows of costs and reaches."""
    unknown = others[cost[others] < 0]
    if len(unknown):
        cost[unknown], reach[unknown] = _lstd_of_pairs(s, offsets, np.full(len(unknown), pivot), unknown, delta, cap, limit)


@numba.njit(cache=True)
def _lengths(p, offsets):
    """Metres along each trace."""
    length = np.zeros(len(offsets) - 1)
    for k in range(len(length)):
        for i in range(offsets[k] + 1, offsets[k + 1]):
            east, north = displacement(p.x, p.y, p.sx, p.sy, i - 1, i)
            length[k] += np.sqrt(east * east + north * north)
    return length


@numba.njit(inline="always")
def _pair(s, i, j, unit, cap):
    """Cost of matching record i with record j, and the square of their distance in the plane."""
    east, north = displacement(s.x, s.y, s.sx, s.sy, i, j)
    flat = east * east + north * north
    dz = s.z[j] - s.z[i]
    square = flat + dz * dz
    # most pairs are clearly nearer than one unit or farther than the cap, which needs no root; the margin is for rounding
    if square > 1.000001 * (cap * unit) ** 2:
        return cap, flat
    if square < 0.999999 * unit**2:
        return 0, flat
    units = np.sqrt(square) / unit
    return (cap if units >= cap else int(units)), flat


@numba.njit(cache=True)
def lstd(s, a, a_end, b, b_end, unit, cap, limit, match):
    """LSTD and reach between the records a … a_end−1 and b … b_end−1; if the reach exceeds ``limit``, −1 and a lower bound.

    ``match``, if it has room, receives for each record of the first trace the first record matched with it.
    """
    i, j = a, b
    total, farthest = _pair(s, i, j, unit, cap)
    if np.sqrt(farthest) > limit:
        return -1, np.sqrt(farthest)
    if len(match):
        match[0] = j
    while i < a_end - 1 or j < b_end - 1:
        previous = i
        if i == a_end - 1:
            j += 1
            cost, flat = _pair(s, i, j, unit, cap)
        elif j == b_end - 1:
            i += 1
            cost, flat = _pair(s, i, j, unit, cap)
        else:
            cost, flat = _pair(s, i + 1, j + 1, unit, cap)
            to_i, to_j = i + 1, j + 1
            if cost > 0:
                cost2, flat2 = _pair(s, i, j + 1, unit, cap)
                if cost2 < cost:
                    cost, flat, to_i, to_j = cost2, flat2, i, j + 1
                cost1, flat1 = _pair(s, i + 1, j, unit, cap)
                if cost1 < cost:
                    cost, flat, to_i, to_j = cost1, flat1, i + 1, j
            i, j = to_i, to_j
        total += cost
        if flat > farthest:
            farthest = flat
            if np.sqrt(farthest) > limit:
                return -1, np.sqrt(farthest)
        if len(match) and i > previous:
            match[i - a] = j
    return total, np.sqrt(farthest)


@numba.njit(cache=True, parallel=True)
def _lstd_of_pairs(s, offsets, first, second, unit, cap, limit):
    cost, reach = np.empty(len(first), np.int32), np.empty(len(first))
    for q in numba.prange(len(first)):
        a, b = first[q], second[q]
        no_match = np.empty(0, np.int64)
        cost[q], reach[q] = lstd(s, offsets[a], offsets[a + 1], offsets[b], offsets[b + 1], unit, cap, limit, no_match)
    return cost, reach


@numba.njit(cache=True, parallel=True)
def _translate(s, offsets, clustered, pivot, ends, delta, cap, ground):
    """Plane coordinates of the members' new records, and the record each was taken from (−1: it had to move)."""
    x, y, record = np.empty(ends[-1]), np.empty(ends[-1]), np.empty(ends[-1], np.int64)
    for m in numba.prange(len(clustered)):
        a, b = pivot[m], clustered[m]
        n = ends[m + 1] - ends[m]
        match = np.empty(n, np.int64)
        lstd(s, offsets[a], offsets[a + 1], offsets[b], offsets[b + 1], delta / 2, cap, np.inf, match)
        for r in range(n):
            i, j, at = offsets[a] + r, match[r], ends[m] + r
            if a == b:
                j = i
            x[at], y[at], record[at] = s.x[j], s.y[j], j
            east, north = displacement(s.x, s.y, s.sx, s.sy, i, j)
            d = np.sqrt(east * east + north * north)
            if d > delta / 2:
                dx, dy = s.x[j] - s.x[i], s.y[j] - s.y[i]
                x[at], y[at], _, _ = towards(s.x[i], s.y[i], s.sx[i], s.sy[i], dx, dy, delta / 2, d, ground)
                record[at] = -1
    return x, y, record
