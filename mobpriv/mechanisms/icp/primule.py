"""PRIMULE: k-anonymity of individual call profiles by merging groups, Algorithms 1 and 2.

Source: Pratesi, Gabrielli, Cintia, Monreale, Giannotti, *PRIMULE: Privacy risk mitigation for user profiles*, §6.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numba
import numpy as np
import pandas as pd

from mobpriv.base.ranges import one_of
from mobpriv.icp.rows import Distinct
from mobpriv.mechanisms.icp import nearest as near
from mobpriv.mechanisms.icp.tables import Grouping

_UNSAFE = ("below k", "printed")
_ROUNDED = 12  # decimals to which a user-defined distance is rounded


class Mitigated(NamedTuple):
    """The groups of Algorithm 2, numbered in the order of their lexicographically smallest profiles."""

    group: np.ndarray  # (m,): group of each distinct profile
    totals: np.ndarray  # (groups, |h|), int64: the sums of their rows, in units
    members: np.ndarray  # (groups,), int64: how many rows each has
    rounds: np.ndarray  # how many groups there were before the first round and after each


@dataclass(frozen=True)
class Primule(Grouping):
    """Algorithms 1 and 2: equal profiles on h form a group; groups of less than k are merged with their nearest, in rounds.

    ``h``: the cells that the adversary knows, the first 1 to 4 weeks or a list (None: all); only they are changed, to the mean
    of the group. The distance is that of the groups' means on h: Euclidean as in §7, Manhattan, or one minus the cosine. It may
    also be a function ``distance(mean, means) -> distances`` of arrays (|h|,) and (groups, |h|), in shares of days.

    Departures from the paper:

    * Algorithm 2 keeps a merged group of exactly k unsafe (line 27, "≤ k"). The definition of safe, Algorithm 1 and Theorem 6.2
      need less than k, which is the default.
    * With ``unsafe="printed"`` and |P| = k a last group stays unsafe without another to join, so the printed loop never ends;
      here it ends at one group.
    * Line 17 tests g2 only. Here a pair is skipped if either of its groups was merged in this round, because otherwise the
      mutually nearest groups of §6.2 are merged twice.
    * §6.2 does not define ties. Here the nearer pair goes first, then that of the larger second group, then of its
      lexicographically smaller mean, then the same of the first group. The last criterion is the group whose smallest profile
      comes first.

    No result depends on the order of rows.
    """

    distance: Literal["euclidean", "manhattan", "cosine"] | Callable = "euclidean"
    unsafe: Literal["below k", "printed"] = "below k"

    name = "PRIMULE"

    def __post_init__(self):
        super().__post_init__()
        if not callable(self.distance):
            one_of("distance", self.distance, tuple(near.METRICS))
        one_of("unsafe", self.unsafe, _UNSAFE)

    def groups(self, profiles: pd.DataFrame, on_h: Distinct, unit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Algorithm 1."""
        mitigated = mitigate(on_h.values, on_h.sizes, unit, self.k, self.distance, self.unsafe)
        return mitigated.group[on_h.inverse], mitigated.totals, mitigated.members


def mitigate(
    integers: np.ndarray,  # (m, |h|), int64: distinct profiles in lexicographic order, in units
    sizes: np.ndarray,  # (m,): rows of each
    unit: int,
    k: int,
    distance: str | Callable = "euclidean",
    unsafe: str = "below k",
) -> Mitigated:
    """Algorithm 2, ProfileMitigation. A group has the number of its lexicographically smallest profile until it is merged."""
    state = _State(integers, sizes, unit, distance)
    rounds = [len(integers)]
    while True:
        small = state.members < k
        if unsafe == "printed":  # line 27 looks at merged groups only
            small |= (state.members == k) & state.merged
        threatened = np.flatnonzero(state.alive & small)
        if not len(threatened) or rounds[-1] < 2:
            break
        state.find(threatened)
        first, second = _ordered(state, threatened, state.nearest[threatened])
        state.merge(first, second)
        rounds.append(int(state.alive.sum()))
    return _numbered(state, rounds)


class _State:
    """The groups between rounds, and the nearest group of each unsafe one."""

    def __init__(self, integers, sizes, unit, distance):
        self.unit, self.distance = unit, distance
        self.metric = near.METRICS.get(distance) if isinstance(distance, str) else None
        self.members = np.array(sizes, np.int64)
        self.totals = integers * self.members[:, None]
        self.means = integers.astype(float)
        self.alive = np.ones(len(integers), bool)
        self.into = np.arange(len(integers))
        self.merged = np.zeros(len(integers), bool)  # in any round
        self.touched = np.ones(len(integers), bool)  # in the last round
        self.nearest = np.full(len(integers), near.NOBODY)
        self.nearest_distance = np.full(len(integers), near.FAR)
        if self.metric is not None:
            self.axes = near.axes(self.metric, self.means)
            self.places = near.places(self.metric, self.means, self.axes)
            self.max_product = _max_product(self.metric, integers.shape[1], unit)

    def find(self, threatened):
        """Lines 7 to 11. Every nearest group of the last round is gone: a group was skipped because its nearest was merged."""
        live = np.flatnonzero(self.alive)
        self.nearest_distance[threatened], skipped = near.FAR, threatened[~self.touched[threatened]]
        self.nearest[threatened[self.touched[threatened]]] = near.NOBODY
        if self.metric is None:
            return self._by_function(threatened, live)
        groups = self.totals, self.members, self.means
        # the group into which the nearest was merged is often still near, which shortens the search
        near.follow(skipped, self.into, self.metric, self.max_product, *groups, self.nearest_distance, self.nearest)
        t = near.tree(self.places[live], live)
        # in the order of the tree: neighbours follow each other
        queries = t.ids[np.isin(t.ids, threatened, assume_unique=True)]
        near.search(
            queries,
            self.places[queries],
            self.metric,
            self.unit,
            self.max_product,
            *t,
            *groups,
            self.nearest_distance,
            self.nearest,
        )

    def _by_function(self, threatened, live):
        others = self.means[live] / self.unit
        for g in threatened:
            d = _checked(self.distance(self.means[g] / self.unit, others), len(live))
            d[live == g] = np.inf
            self.nearest_distance[g], (self.nearest[g], *ties) = d.min(), live[d == d.min()]
            for other in ties:
                if near.before(self.members, self.means, other, self.nearest[g]):
                    self.nearest[g] = other

    def merge(self, first, second):
        self.touched[:] = False
        merged = _merge(first, second, self.touched, self.alive, self.into, self.totals, self.members)
        self.merged[merged] = True
        self.means[merged] = self.totals[merged] / self.members[merged, None]
        if self.metric is not None:
            self.places[merged] = near.places(self.metric, self.means[merged], self.axes)


def _max_product(metric: int, cells: int, unit: int) -> int:
    """a·b up to which the exact distance fits: its numerator below 2^63, its denominator below 2^53."""
    if metric == near.MANHATTAN:
        return min(2**63 // (cells * unit), 2**53) - 1
    return int(min((2**63 / cells) ** 0.5 / unit, 2**26.5)) - 1


def _checked(d, n) -> np.ndarray:
    d = np.round(np.asarray(d, float), _ROUNDED)
    valid = (d >= 0) & np.isfinite(d)
    if d.shape != (n,) or not valid.all():
        got = f"an array of shape {d.shape}" if d.shape != (n,) else f"{d[~valid][0]}"
        raise ValueError(f"distance must return a finite number, 0 or above, for each of {n} means (got {got})")
    return d


def _ordered(state: _State, first, second):
    """Line 12: the pairs by increasing distance, ties as in :class:`Primule`."""
    place = np.empty(len(state.alive), np.int64)
    groups = np.union1d(first, second)
    # non-negative big-endian numbers sort like their bytes
    text = np.ascontiguousarray(state.means[groups].astype(">f8")).view(f"S{8 * state.means.shape[1]}")[:, 0]
    groups = groups[np.argsort(text, kind="stable")]
    place[groups[np.argsort(-state.members[groups], kind="stable")]] = np.arange(len(groups))
    order = np.lexsort((place[first], place[second], state.nearest_distance[first]))
    return first[order], second[order]


@numba.njit(nogil=True, cache=True)
def _merge(first, second, touched, alive, into, totals, members):
    """Lines 13 to 30."""
    merged = np.empty(len(first), np.int64)
    count = 0
    for pair in range(len(first)):
        g1, g2 = first[pair], second[pair]
        if touched[g1] or touched[g2]:
            continue
        touched[g1] = touched[g2] = True
        stays, goes = min(g1, g2), max(g1, g2)
        totals[stays] += totals[goes]
        members[stays] += members[goes]
        alive[goes] = False
        into[goes] = stays
        merged[count] = stays
        count += 1
    return merged[:count]


def _numbered(state: _State, rounds) -> Mitigated:
    live = np.flatnonzero(state.alive)
    number = np.full(len(state.alive), -1)
    number[live] = np.arange(len(live))
    root = state.into.copy()
    while (root != root[root]).any():
        root = root[root]
    return Mitigated(number[root], state.totals[live], state.members[live], np.array(rounds))
