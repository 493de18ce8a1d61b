"""Tables of individual call profiles, their checks, and equal profiles collapsed: the input of the mechanisms of this package.

A value of a profile is a share of days (PRIMULE, §3.1), a rational number. It is held as the whole number of 1/unit. So sums
are exact in any order of rows, and equal distances compare as equal.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

# tenths for shares of five and of two days; 60ths for incomplete weeks; the others for rounded means
UNITS = (10, 60, 1000, 10**6)
_NEAR = 1e-9  # distance from a whole number: far above the error of a division by 5


class Protected(NamedTuple):
    """The published version of a table of profiles."""

    values: pd.DataFrame  # as the table: same rows, same columns
    group: np.ndarray | None  # number of each row's group; None: the mechanism makes none
    anonymous: bool | None  # the flag of Algorithm 1: is every group of size k or more? None: not guaranteed by the mechanism


class Collapsed(NamedTuple):
    """The distinct profiles on h in lexicographic order: m of them, among n rows."""

    wholes: np.ndarray  # (m, |h|), int64: values times unit
    sizes: np.ndarray  # (m,), int64: how many rows each has
    of: np.ndarray  # (n,), int64: the distinct profile of each row


def as_profiles(profiles) -> pd.DataFrame:
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
    """The values as whole numbers of 1/unit, and the unit: the first of ``UNITS`` that holds them all."""
    for unit in UNITS:
        scaled = x * unit
        wholes = np.rint(scaled)
        if (np.abs(scaled - wholes) <= _NEAR * unit).all():
            return wholes.astype(np.int64), unit
    raise ValueError(
        "profiles must hold shares of days, or numbers of at most six decimals, so that equal distances are found equal: "
        f"astype(float).round(6) makes them so (got {x[np.abs(scaled - wholes) > _NEAR * unit][0]!r})"
    )


def collapse(wholes: np.ndarray, most: int, sizes: np.ndarray | None = None) -> Collapsed:
    """Merge equal rows of whole numbers 0 … ``most``, sorted lexicographically; ``sizes``: copies of each (1)."""
    words = _words(wholes, most)
    order = np.lexsort(words[::-1])
    new = np.zeros(len(order), bool)
    new[:1] = True
    for word in words:
        new[1:] |= word[order[1:]] != word[order[:-1]]
    place = np.cumsum(new) - 1
    of = np.empty(len(order), np.int64)
    of[order] = place
    weights = None if sizes is None else np.asarray(sizes, float)  # exact up to 2^53 rows
    count = np.bincount(of, weights, minlength=int(new.sum())).astype(np.int64)
    return Collapsed(wholes[order[new]].astype(np.int64), count, of)


def _words(wholes: np.ndarray, most: int) -> list[np.ndarray]:
    """Each row as a few 62-bit numbers of the same order: its digits in base most + 1, the first cell the highest."""
    base = most + 1
    digits = max(1, int(62 / np.log2(base)))
    words = []
    for start in range(0, wholes.shape[1], digits):
        word = np.zeros(len(wholes), np.int64)
        for j in range(start, min(start + digits, wholes.shape[1])):
            word = word * base + wholes[:, j]
        words.append(word)
    return words


def by_name(profiles: pd.DataFrame) -> np.ndarray:
    """The position of each row among the sorted names of the rows."""
    try:
        order = profiles.index.argsort()
    except TypeError:
        raise ValueError(
            "the rows of profiles must have names of one kind, which can be sorted (got numbers and texts)"
        ) from None
    place = np.empty(len(profiles), np.int64)
    place[order] = np.arange(len(profiles))
    return place
