"""Match protected records with the original records of the same user."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.traces.table import Traces, by_user


class RowRanges(NamedTuple):
    """The row ranges of each user of the original traces.

    Her original records are ``start[i]`` … ``start[i+1]−1``, her protected ones ``first[i]`` … ``last[i]−1`` (none if the
    mechanism has erased the trace).
    """

    users: pd.Index
    start: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @property
    def records(self) -> np.ndarray:
        """Number of protected records of each user."""
        return self.last - self.first

    @property
    def owner(self) -> np.ndarray:
        """The index of each protected record's user."""
        return np.repeat(np.arange(len(self.users)), self.records)


def row_ranges(original: Traces, protected: Traces) -> RowRanges:
    """Match users by name. A protected user without original records raises ValueError, because there is nothing to compare."""
    users, start = by_user(original)
    protected_users, offsets = by_user(protected)
    position = users.get_indexer(protected_users)
    unknown = protected_users[position < 0]
    if len(unknown):
        raise ValueError(
            f"protected traces must belong to users with original records ({len(unknown)} are not, first: {unknown[0]}): "
            "give the traces that went into the mechanism, and the users' own names in both"
        )
    first, last = np.zeros(len(users), np.int64), np.zeros(len(users), np.int64)
    first[position], last[position] = offsets[:-1], offsets[1:]
    return RowRanges(users, start, first, last)


def means(values: np.ndarray, ranges: RowRanges, name: str) -> pd.Series:
    """The mean of each user's ``values`` (one per protected record); NaN for users without protected records."""
    mean, has_records = np.full(len(ranges.users), np.nan), ranges.records > 0
    if has_records.any():
        mean[has_records] = np.add.reduceat(values, ranges.first[has_records]) / ranges.records[has_records]
    return pd.Series(mean, ranges.users, name=name)
