"""Algorithm 2 line by line, and the information loss of merging.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §4, §7 and §8.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.ranges import one_of, true_or_false, whole
from mobpriv.icp.rows import distinct, rows_by_group
from mobpriv.mechanisms.icp.mdav import microaggregate
from mobpriv.mechanisms.icp.primule import mitigate
from mobpriv.mechanisms.icp.tables import in_units

# --------------------------------------- Run Algorithm 2 literally, line by line, with each of its doubtful lines as a switch
# :class:`mobpriv.mechanisms.icp.Primule` is the corrected version, and fast. Here the printed version runs in plain
# steps, for up to a few hundred groups: switching a line shows its effect.
_LINE_17 = ("both", "g2")
_LINE_27 = ("below k", "at most k")
_STUCK = 60  # rounds without a merge after which the run is given up
_DECIMALS = 12  # of squared distances: smaller differences count as equal


class LiteralRun(NamedTuple):
    group: np.ndarray  # (m,): for each initial group the number of the final group into which it was merged last
    cardinality: np.ndarray  # (groups,): as the algorithm counts, perhaps not the true number of profiles
    means: np.ndarray  # (groups, cells), as the algorithm computes them
    rounds: pd.DataFrame  # round, groups, unsafe (before it), merges, tied: unsafe groups with several nearest groups
    merges: pd.DataFrame  # round, first, second, distance; nearest: whether no group was nearer at that moment
    ended: bool  # False: unsafe groups remain, and no round changes them


def literal_algorithm_2(
    sizes,
    places,
    k: int,
    line_17: str = "both",
    line_27: str = "below k",
    own: bool = False,
    at_once: bool = True,
    ties: np.random.Generator | None = None,
) -> LiteralRun:
    """Run Algorithm 2 on groups with ``sizes`` (m,) at ``places`` (m, cells), all different, with the Euclidean distance.

    * ``line_17``: "g2" checks only whether the second group was merged in this round, as printed; the first may have been.
      "both" checks both.
    * ``line_27``: "at most k" keeps a merged group of exactly k unsafe, as printed.
    * ``own``: lines 9 and 10 search the nearest group among all, including the group itself, as printed.
    * ``at_once`` False: merge only the first pair of each round, then recompute the distances.
    * ``ties``: break ties at random; None: like :class:`mobpriv.mechanisms.icp.Primule`.
    """
    one_of("line_17", line_17, _LINE_17)
    one_of("line_27", line_27, _LINE_27)
    whole("k", k, 2)
    for name, value in (("own", own), ("at_once", at_once)):
        true_or_false(name, value)
    size, at = np.array(sizes, np.int64), np.array(places, float)
    least = np.arange(len(size))  # the smallest profile of each group, in lexicographic order
    least[np.lexsort(at.T[::-1])] = np.arange(len(size))
    alive, unsafe, into = np.ones(len(size), bool), size < k, np.arange(len(size))
    rounds, merges, idle = [], [], 0
    while unsafe.any() and idle < _STUCK:
        before = int(alive.sum())
        pairs, tied = _pairs(size, at, least, alive, unsafe, own, ties)
        rounds.append([len(rounds) + 1, before, int(unsafe.sum()), 0, tied])
        if not pairs:  # a single group has no nearest group
            break
        touched = set()
        for distance, g1, g2 in pairs if at_once else pairs[:1]:  # lines 15 to 30
            if g2 in touched or (line_17 == "both" and g1 in touched):
                continue
            merges.append((len(rounds), g1, g2, distance, _is_nearest(at, alive, g1, g2, own)))
            alive[[g1, g2]] = unsafe[[g1, g2]] = False
            n = size[g1] + size[g2]
            at[g2] = (size[g1] * at[g1] + size[g2] * at[g2]) / n
            size[g2], least[g2] = n, min(least[g1], least[g2])
            into[g1] = g2
            unsafe[g2] = n < k or (line_27 == "at most k" and n == k)
            alive[g2] = True
            into[g2] = g2
            touched |= {g1, g2} if line_17 == "both" else {g2}
            rounds[-1][3] += 1
        idle = idle + 1 if alive.sum() >= before else 0
    live = np.flatnonzero(alive)
    return LiteralRun(
        _roots(into, live),
        size[live],
        at[live],
        pd.DataFrame(rounds, columns=["round", "groups", "unsafe", "merges", "tied"]),
        pd.DataFrame(merges, columns=["round", "first", "second", "distance", "nearest"]),
        not unsafe.any(),
    )


def _pairs(size, at, least, alive, unsafe, include_self, ties) -> tuple[list, int]:
    """Lines 5 to 12: return (squared distance, g1, g2) by increasing distance, and the number of groups with ties."""
    live, asking = np.flatnonzero(alive), np.flatnonzero(unsafe)
    distance = np.array([((at[live] - at[g]) ** 2).sum(axis=1) for g in asking]).round(_DECIMALS)
    if not include_self:
        distance[asking[:, None] == live] = np.inf
    best = distance.min(axis=1)
    if np.isinf(best).any():
        return [], 0
    means = at.round(_DECIMALS)
    order = live[np.lexsort((least[live], *means[live].T[::-1], -size[live]))] if ties is None else ties.permutation(live)
    rank = np.empty(len(size), np.int64)
    rank[order] = np.arange(len(order))
    equal = distance == best[:, None]
    second = live[np.where(equal, rank[live], len(size)).argmin(axis=1)]
    sort = np.lexsort((rank[asking], rank[second], best))
    return [(best[i], int(asking[i]), int(second[i])) for i in sort], int((equal.sum(axis=1) > 1).sum())


def _is_nearest(at, alive, g1, g2, include_self) -> bool:
    """Return whether no group present at this moment is nearer to g1 than g2."""
    others = alive.copy()
    others[g1] = include_self
    return bool(((at[g2] - at[g1]) ** 2).sum() <= ((at[others] - at[g1]) ** 2).sum(axis=1).min(initial=np.inf) + 10**-_DECIMALS)


def _roots(into, live) -> np.ndarray:
    """Return for each group the place among ``live`` of its final group; a circular chain ends where it is alive."""
    root = np.arange(len(into))
    number = np.full(len(into), -1)
    number[live] = np.arange(len(live))
    for _ in range(len(into)):
        moving = number[root] < 0
        if not moving.any():
            break
        root[moving] = into[root[moving]]
    return number[root]


def least_loss(sizes, places, k: int) -> float:
    """Return the least information loss (§6.4, times the number of profiles) over *all* partitions into parts of ≥ k profiles.

    Exhaustive search for up to 12 groups; the loss is the sum of squared distances to the means.
    """
    size, at = np.asarray(sizes, np.int64), np.asarray(places, float)
    whole("the number of groups", len(size), 1, 12)
    cost = {}
    for n_groups in range(1, len(size) + 1):
        for part in combinations(range(len(size)), n_groups):
            rows = list(part)
            if size[rows].sum() >= k:
                mean = np.average(at[rows], axis=0, weights=size[rows])
                cost[sum(1 << row for row in rows)] = float((size[rows, None] * (at[rows] - mean) ** 2).sum())
    best = {0: 0.0}

    def least(rest: int) -> float:
        """Return the least loss of the groups in ``rest``: the part with its first group, plus the remainder."""
        if rest not in best:
            first = rest & -rest
            candidates = (part for part in cost if part & first and part & rest == part)
            best[rest] = min((cost[part] + least(rest ^ part) for part in candidates), default=np.inf)
        return best[rest]

    return least((1 << len(size)) - 1)


def loss_of(sizes, places, group) -> float:
    """Return the same loss for one partition: ``group`` (m,) is the final group of each."""
    size, at = np.asarray(sizes, np.int64), np.asarray(places, float)
    total = 0.0
    for one in np.unique(group):
        rows = np.asarray(group) == one
        mean = np.average(at[rows], axis=0, weights=size[rows])
        total += float((size[rows, None] * (at[rows] - mean) ** 2).sum())
    return total


class Tied(NamedTuple):
    """For each search of Algorithm 2's first round, lines 7 to 11: does it find several nearest groups?"""

    several: np.ndarray  # (unsafe,)
    of_larger: np.ndarray  # (unsafe,): several remain if larger groups are preferred
    of_smaller: np.ndarray  # (unsafe,): several remain if smaller groups are preferred


def first_round_ties(integers: np.ndarray, sizes: np.ndarray, k: int) -> Tied:
    """Count ties for distinct profiles (m, cells), in whole numbers to find equal distances, with multiplicities (m,)."""
    x, sizes = np.asarray(integers, np.int64), np.asarray(sizes, np.int64)
    ties = []
    for g in np.flatnonzero(sizes < k):
        distance = ((x - x[g]) ** 2).sum(axis=1)
        distance[g] = np.iinfo(np.int64).max
        nearest_sizes = sizes[distance == distance.min()] if len(x) > 1 else sizes[:0]
        ends = nearest_sizes.max(initial=0), nearest_sizes.min(initial=k)
        ties.append([len(nearest_sizes) > 1, *((nearest_sizes == size).sum() > 1 for size in ends)])
    return Tied(*np.array(ties, bool).reshape(-1, 3).T)


# --- Measure the information loss of merging, by PRIMULE and by alternatives, with the distances that §8 leaves for future work
# Everything is computed per municipality, as in §7, and row by row. ``values`` (n, cells) are the shares of days of all profiles,
# ``town`` (n,) their municipalities, ``h`` the places of the merged cells.
_CELLS_PER_WEEK = 6  # cells
_WEIGHT = 3  # of the sums over the weeks, relative to single cells, in a distance for the Sociometer


class Grouped(NamedTuple):
    group: np.ndarray  # (n,): the group of each profile, numbered through all municipalities
    members: np.ndarray  # (n,): number of profiles in its group
    means: np.ndarray  # (n, |h|): its published values


def by_primule(values, town, k: int, h: Sequence[int], distance: str = "euclidean") -> Grouped:
    """Group by Algorithm 2 with one of its distances."""
    return _in_each(values, town, k, h, lambda x, unit: _mitigated(x, x, unit, k, distance))


def for_service(values, town, k: int, h: Sequence[int], weight: int = _WEIGHT) -> Grouped:
    """Group by Algorithm 2 with a distance for the Sociometer (§8: "a distance tailored to the service").

    d² is Σ (x_j − y_j)² over the cells, plus ``weight``² times the same over the six sums over weeks, for weekdays and weekends
    in each slot. Residents, dynamic residents and commuters differ only in these sums (§3.2): their labels do not depend on the
    week of a call. ``h`` must hold whole weeks. Only distances change; the published values are still the means of the cells.
    """
    weight = whole("weight", weight, 1)
    weeks, part = np.divmod(np.asarray(h), _CELLS_PER_WEEK)  # of each cell its week, and its place among the six
    if sorted(zip(weeks, part, strict=True)) != [(week, j) for week in np.unique(weeks) for j in range(_CELLS_PER_WEEK)]:
        raise ValueError(
            f"h must hold whole weeks, each of its {_CELLS_PER_WEEK} cells once, of which sums are made (got {', '.join(map(str, h))})"
        )

    def distinct_by_sums(x, unit):
        sums = np.stack([x[:, part == j].sum(axis=1) for j in range(_CELLS_PER_WEEK)], axis=1)
        return _mitigated(x, np.column_stack([x, weight * sums]), unit * weight * (len(h) // _CELLS_PER_WEEK), k, "euclidean")

    return _in_each(values, town, k, h, distinct_by_sums)


def by_mdav(values, town, k: int, h: Sequence[int]) -> Grouped:
    """Group by MDAV, which may split equal profiles: their first rows are in the first groups."""
    return _in_each(values, town, k, h, lambda x, unit: _parted(x, k))


def split_groups(values, grouped: Grouped, k: int, h: Sequence[int]) -> Grouped:
    """Split every group of 2 k profiles or more by MDAV into groups of k to 2 k − 1; leave the others."""
    return _in_each(values, grouped.group, k, h, lambda x, unit: _parted(x, k))


def squared_errors(values, grouped: Grouped, h: Sequence[int]) -> np.ndarray:
    """Return ‖x_i − x'_i‖² on h for each profile (§6.4), (n,)."""
    return ((np.asarray(values)[:, h] - grouped.means) ** 2).sum(axis=1)


def single_group(values, town, h: Sequence[int]) -> Grouped:
    """Put each municipality into one group, the worst case of §6.4."""
    return _in_each(values, town, 2, h, lambda x, unit: np.zeros(len(x), np.int64), fewer=True)


def published_profiles(values, grouped: Grouped, h: Sequence[int]) -> np.ndarray:
    """Return the published profiles, (n, cells); outside h the profiles' own values."""
    published = np.array(values, float)
    published[:, h] = grouped.means
    return published


def _in_each(values, town, k: int, h, grouping: Callable, fewer: bool = False) -> Grouped:
    """Apply ``grouping`` to the rows on h, whole numbers of units, per municipality; leave those with fewer than k profiles."""
    whole("k", k, 2)
    h = np.asarray(h)
    integers, unit = in_units(np.asarray(values, float)[:, h])
    group, start = np.empty(len(integers), np.int64), 0
    for rows in rows_by_group(town, len(integers)):
        groups = grouping(integers[rows], unit) if len(rows) >= k or fewer else distinct(integers[rows]).inverse
        group[rows] = groups + start
        start += int(groups.max()) + 1
    members = np.bincount(group)
    totals = np.zeros((start, len(h)), np.int64)
    np.add.at(totals, group, integers)
    return Grouped(group, members[group], (totals / members[:, None] / unit)[group])


def _mitigated(x, features, unit, k, distance) -> np.ndarray:
    """Run Algorithm 2 on rows with the distances of their ``features``, which are equal if the rows are."""
    distinct_rows = distinct(features)
    return mitigate(distinct_rows.values, distinct_rows.sizes, unit, k, distance).group[distinct_rows.inverse]


def _parted(x, k) -> np.ndarray:
    distinct_rows = distinct(x)
    split = microaggregate(distinct_rows.values, distinct_rows.sizes, k)
    group = np.empty(len(x), np.int64)
    group[np.argsort(distinct_rows.inverse, kind="stable")] = np.repeat(split.group, split.rows)
    return group
