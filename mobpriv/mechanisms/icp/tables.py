"""Tables of individual call profiles: the input and the output of the mechanisms of this package.

A value of a profile is a share of days (PRIMULE, §3.1), a rational number. It is held as the whole number of 1/unit. So sums
are exact in any order of rows, and equal distances compare as equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.draws import generator
from mobpriv.base.ranges import whole
from mobpriv.icp.profiles import cell_numbers
from mobpriv.icp.rows import distinct, rows_by_group

# tenths for shares of five and of two days; 60ths for incomplete weeks; the others for rounded means
_DENOMINATORS = (10, 60, 1000, 10**6)
_NEAR = 1e-9  # distance from a whole number: far above the error of a division by 5


class Protected(NamedTuple):
    """The published version of a table of profiles."""

    values: pd.DataFrame  # as the table: same rows, same columns
    group: np.ndarray | None  # number of each row's group; None: the mechanism makes none
    anonymous: bool | None  # the flag of Algorithm 1: is every group of size k or more? None: not guaranteed by the mechanism


@dataclass(frozen=True)
class Grouping:
    """What the mechanisms share that form groups of k rows or more, and publish on ``h`` the mean of each group.

    ``groups(profiles, on_h, unit)`` of each gives the group of each row; the sums (groups, |h|) of a group's rows, in units; and
    the number of its rows. ``on_h``: the distinct rows on ``h``.
    """

    k: int
    h: int | Sequence[int] | None = None  # the cells that the adversary knows: the first weeks, or a list; None: all

    random = False

    def __post_init__(self):
        object.__setattr__(self, "k", whole("k", self.k, 2, rule="must be a whole number of profiles, at least 2"))
        if self.h is not None:
            object.__setattr__(self, "h", tuple(cell_numbers(self.h).tolist()))

    def protect(self, profiles: pd.DataFrame, rng: np.random.Generator) -> Protected:
        """Fewer profiles than k are returned unchanged, each distinct one a group, with the flag False. Draws nothing."""
        x = profile_table(profiles).to_numpy(float)
        h = cell_numbers(self.h, x.shape[1])
        integers, unit = in_units(x[:, h])
        distinct_rows = distinct(integers)
        if len(x) < self.k:
            return Protected(profiles.copy(), distinct_rows.inverse, False)
        group, totals, members = self.groups(profiles, distinct_rows, unit)
        protected = x.copy()
        protected[:, h] = (totals / members[:, None] / unit)[group]
        return Protected(pd.DataFrame(protected, profiles.index, profiles.columns), group, True)


def profile_table(profiles) -> pd.DataFrame:
    """Check a table of profiles: a row a profile and a column a cell, shares in [0, 1], each row and each column once."""
    if not isinstance(profiles, pd.DataFrame) or not profiles.shape[1]:
        raise ValueError(f"profiles must be a table, a row a profile and a column a cell (got {type(profiles).__name__})")
    for what, names in (("row", profiles.index), ("cell", profiles.columns)):
        if not names.is_unique:
            raise ValueError(f"profiles must have every {what} once ({names[names.duplicated()][0]} occurs twice)")
    x = profiles.to_numpy()
    if x.dtype.kind not in "fiu":
        raise ValueError(f"profiles must hold numbers, shares of days (they hold {x.dtype})")
    wrong = ~((x >= 0) & (x <= 1))  # NaN too
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        at = f"row {profiles.index[i]}, cell {profiles.columns[j]}"
        raise ValueError(
            f"profiles must hold shares of days, 0 … 1 ({wrong.sum()} of {wrong.size} values are none, the first is {x[i, j]} in {at})"
        )
    return profiles


def in_units(x: np.ndarray) -> tuple[np.ndarray, int]:
    """The values as whole numbers of 1/unit, and the unit: the first of ``_DENOMINATORS`` that holds them all."""
    for unit in _DENOMINATORS:
        scaled = x * unit
        integers = np.rint(scaled)
        if (np.abs(scaled - integers) <= _NEAR * unit).all():
            return integers.astype(np.int64), unit
    raise ValueError(
        "profiles must hold shares of days, or numbers of at most six decimals, so that equal distances are found equal: "
        f"astype(float).round(6) makes them so (got {x[np.abs(scaled - integers) > _NEAR * unit][0]!r})"
    )


def name_ranks(profiles: pd.DataFrame) -> np.ndarray:
    """The position of each row among the sorted names of the rows."""
    try:
        order = profiles.index.argsort()
    except TypeError:
        raise ValueError(
            "the rows of profiles must have names of one kind, which can be sorted (got numbers and texts)"
        ) from None
    rank = np.empty(len(profiles), np.int64)
    rank[order] = np.arange(len(profiles))
    return rank


def per_group(mechanism, profiles: pd.DataFrame, groups, rng: np.random.Generator) -> Protected:
    """Protect the rows of each group by themselves, as §7 does with municipalities; ``groups``: the label of each row.

    The groups of the result are numbered through all of these, in the order of their labels, each with a child of ``rng``. A
    mechanism that forms none (NoisyProfiles) gives none.
    """
    rows = rows_by_group(groups, len(profiles))
    if not len(rows):
        return mechanism.protect(profiles, rng)
    values, group, anonymous, start = np.empty(profiles.shape), np.empty(len(profiles), np.int64), [], 0
    for group_rows, child in zip(rows, generator(rng).spawn(len(rows)), strict=True):
        protected = mechanism.protect(profiles.iloc[group_rows], child)
        values[group_rows] = protected.values
        if protected.group is not None:
            group[group_rows] = protected.group + start
            start += int(protected.group.max()) + 1
        anonymous.append(protected.anonymous)
    table = pd.DataFrame(values, profiles.index, profiles.columns, copy=False)
    return Protected(table, None, None) if None in anonymous else Protected(table, group, all(anonymous))
