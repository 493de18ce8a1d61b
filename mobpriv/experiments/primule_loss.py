"""Measure the information loss of merging, by PRIMULE and by alternatives, with the distances that §8 leaves for future work.

Everything is computed per municipality, as in §7, and row by row. ``values`` (n, cells) are the shares of days of all profiles,
``town`` (n,) their municipalities, ``h`` the places of the merged cells.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §6.4, §8.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mobpriv.base.ranges import whole
from mobpriv.mechanisms.icp.collapsed import collapse, in_units
from mobpriv.mechanisms.icp.mdav import microaggregate
from mobpriv.mechanisms.icp.primule import mitigate

PER_WEEK = 6  # cells
WEIGHT = 3  # of the sums over the weeks, relative to single cells, in a distance for the Sociometer


class Grouped(NamedTuple):
    group: np.ndarray  # (n,): the group of each profile, numbered through all municipalities
    members: np.ndarray  # (n,): number of profiles in its group
    means: np.ndarray  # (n, |h|): its published values


def by_primule(values, town, k: int, h: Sequence[int], distance: str = "euclidean") -> Grouped:
    """Group by Algorithm 2 with one of its distances."""
    return _in_each(values, town, k, h, lambda x, unit: _mitigated(x, x, unit, k, distance))


def for_service(values, town, k: int, h: Sequence[int], weight: int = WEIGHT) -> Grouped:
    """Group by Algorithm 2 with a distance for the Sociometer (§8: "a distance tailored to the service").

    d² is Σ (x_j − y_j)² over the cells, plus ``weight``² times the same over the six sums over weeks, for weekdays and weekends
    in each slot. Residents, dynamic residents and commuters differ only in these sums (§3.2): their labels do not depend on the
    week of a call. ``h`` must hold whole weeks. Only distances change; the published values are still the means of the cells.
    """
    weight = whole("weight", weight, 1)
    weeks, part = np.divmod(np.asarray(h), PER_WEEK)  # of each cell its week, and its place among the six
    if sorted(zip(weeks, part, strict=True)) != [(week, j) for week in np.unique(weeks) for j in range(PER_WEEK)]:
        raise ValueError(
            f"h must hold whole weeks, each of its {PER_WEEK} cells once, of which sums are made (got {', '.join(map(str, h))})"
        )

    def distinct_by_sums(x, unit):
        sums = np.stack([x[:, part == j].sum(axis=1) for j in range(PER_WEEK)], axis=1)
        return _mitigated(x, np.column_stack([x, weight * sums]), unit * weight * (len(h) // PER_WEEK), k, "euclidean")

    return _in_each(values, town, k, h, distinct_by_sums)


def by_mdav(values, town, k: int, h: Sequence[int]) -> Grouped:
    """Group by MDAV, which may split equal profiles: their first rows are in the first groups."""
    return _in_each(values, town, k, h, lambda x, unit: _parted(x, k))


def cut(values, found: Grouped, k: int, h: Sequence[int]) -> Grouped:
    """Split every group of 2 k profiles or more by MDAV into groups of k to 2 k − 1; leave the others."""
    return _in_each(values, found.group, k, h, lambda x, unit: _parted(x, k))


def squared(values, found: Grouped, h: Sequence[int]) -> np.ndarray:
    """Return ‖x_i − x'_i‖² on h for each profile (§6.4), (n,)."""
    return ((np.asarray(values)[:, h] - found.means) ** 2).sum(axis=1)


def single(values, town, h: Sequence[int]) -> Grouped:
    """Put each municipality into one group, the worst case of §6.4."""
    return _in_each(values, town, 2, h, lambda x, unit: np.zeros(len(x), np.int64), fewer=True)


def whole_profiles(values, found: Grouped, h: Sequence[int]) -> np.ndarray:
    """Return the published profiles, (n, cells); outside h the profiles' own values."""
    said = np.array(values, float)
    said[:, h] = found.means
    return said


def _in_each(values, town, k: int, h, grouping: Callable, fewer: bool = False) -> Grouped:
    """Apply ``grouping`` to the rows on h, whole numbers of units, per municipality; leave those with fewer than k profiles."""
    whole("k", k, 2)
    h = np.asarray(h)
    wholes, unit = in_units(np.asarray(values, float)[:, h])
    code, places = np.unique(np.asarray(town), return_inverse=True)
    group, start = np.empty(len(places), np.int64), 0
    order = np.argsort(places, kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(places, minlength=len(code)))[:-1]):
        own = grouping(wholes[rows], unit) if len(rows) >= k or fewer else collapse(wholes[rows], unit).of
        group[rows] = own + start
        start += int(own.max()) + 1
    members = np.bincount(group)
    totals = np.zeros((start, len(h)), np.int64)
    np.add.at(totals, group, wholes)
    return Grouped(group, members[group], (totals / members[:, None] / unit)[group])


def _mitigated(x, seen, unit, k, distance) -> np.ndarray:
    """Run Algorithm 2 on rows with the distances of their ``seen``, which are equal if the rows are."""
    distinct = collapse(seen, int(seen.max(initial=1)))
    return mitigate(distinct.wholes, distinct.sizes, unit, k, distance).group[distinct.of]


def _parted(x, k) -> np.ndarray:
    distinct = collapse(x, int(x.max(initial=1)))
    parts = microaggregate(distinct.wholes, distinct.sizes, k)
    group = np.empty(len(x), np.int64)
    group[np.argsort(distinct.of, kind="stable")] = np.repeat(parts.group, parts.rows)
    return group
