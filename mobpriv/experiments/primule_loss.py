"""What merging costs, by PRIMULE and by its rivals: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation
for User Profiles*, §6.4, and the distances that §8 leaves for later.

Everything here is of one municipality after the other, as §7 has it, and row for row: ``values`` (n, cells) are the shares of days of all
profiles, ``town`` (n,) their municipalities, ``h`` the places of the cells that are merged.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mobpriv.mechanisms.call_profiles.collapsed import collapse, in_units
from mobpriv.mechanisms.call_profiles.mdav import microaggregate
from mobpriv.mechanisms.call_profiles.primule import mitigate
from mobpriv.ranges import whole

PER_WEEK = 6  # cells
WEIGHT = 3  # of the sums over the weeks beside single cells, in a distance for the Sociometer


class Grouped(NamedTuple):
    group: np.ndarray  # (n,): of each profile its group, numbered through all municipalities
    members: np.ndarray  # (n,): how many profiles its group holds
    means: np.ndarray  # (n, |h|): what is published of it


def by_primule(values, town, k: int, h: Sequence[int], distance: str = "euclidean") -> Grouped:
    """Algorithm 2 by one of its distances."""
    return _in_each(values, town, k, h, lambda x, unit: _mitigated(x, x, unit, k, distance))


def for_service(values, town, k: int, h: Sequence[int], weight: int = WEIGHT) -> Grouped:
    """Algorithm 2 by a distance that is tailored to the Sociometer (§8: "a distance tailored to the service"): d² = Σ (x_j − y_j)² over
    the cells and ``weight``² times the same over the six sums over the weeks, of weekdays and weekends in each slot.

    Residents, dynamic residents and commuters differ in these sums only (§3.2): in which week somebody called does not matter to their labels.
    ``h`` must hold whole weeks. Distances change; what is published stays the mean of the cells.
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
    """MDAV, which may part equal profiles: of these the first rows are in the first groups."""
    return _in_each(values, town, k, h, lambda x, unit: _parted(x, k))


def cut(values, found: Grouped, k: int, h: Sequence[int]) -> Grouped:
    """Every group of 2 k profiles or more cut up by MDAV into groups of k to 2 k − 1; the others stay."""
    return _in_each(values, found.group, k, h, lambda x, unit: _parted(x, k))


def squared(values, found: Grouped, h: Sequence[int]) -> np.ndarray:
    """‖x_i − x'_i‖² on h of each profile (§6.4), (n,)."""
    return ((np.asarray(values)[:, h] - found.means) ** 2).sum(axis=1)


def single(values, town, h: Sequence[int]) -> Grouped:
    """One group in each municipality, the worst case of §6.4."""
    return _in_each(values, town, 2, h, lambda x, unit: np.zeros(len(x), np.int64), fewer=True)


def whole_profiles(values, found: Grouped, h: Sequence[int]) -> np.ndarray:
    """What is published, (n, cells): outside h the profiles' own values."""
    said = np.array(values, float)
    said[:, h] = found.means
    return said


def _in_each(values, town, k: int, h, grouping: Callable, fewer: bool = False) -> Grouped:
    """``grouping`` of the rows on h, whole numbers of units, in each municipality; those of fewer than k profiles stay as they are."""
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
    """Algorithm 2 on rows that are as far from each other as their ``seen`` are; these are equal where the rows are."""
    distinct = collapse(seen, int(seen.max(initial=1)))
    return mitigate(distinct.wholes, distinct.sizes, unit, k, distance).group[distinct.of]


def _parted(x, k) -> np.ndarray:
    distinct = collapse(x, int(x.max(initial=1)))
    parts = microaggregate(distinct.wholes, distinct.sizes, k)
    group = np.empty(len(x), np.int64)
    group[np.argsort(distinct.of, kind="stable")] = np.repeat(parts.group, parts.rows)
    return group
