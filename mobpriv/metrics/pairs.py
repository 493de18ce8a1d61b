"""Match protected records with the original records of the same user."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.traces.table import Traces, by_user


class Pairs(NamedTuple):
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


def pairs(original: Traces, protected: Traces) -> Pairs:
    """Match users by name. A protected user without original records raises ValueError, because there is nothing to compare."""
    users, start = by_user(original)
    others, offsets = by_user(protected)
    at = users.get_indexer(others)
    strange = others[at < 0]
    if len(strange):
        raise ValueError(
            f"protected traces must belong to users with original records ({len(strange)} are not, first: {strange[0]}): "
            "give the traces that went into the mechanism, and the users' own names in both"
        )
    first, last = np.zeros(len(users), np.int64), np.zeros(len(users), np.int64)
    first[at], last[at] = offsets[:-1], offsets[1:]
    return Pairs(users, start, first, last)


def means(values: np.ndarray, of: Pairs, name: str) -> pd.Series:
    """The mean of each user's ``values`` (one per protected record); NaN for users without protected records."""
    mean, some = np.full(len(of.users), np.nan), of.records > 0
    if some.any():
        mean[some] = np.add.reduceat(values, of.first[some]) / of.records[some]
    return pd.Series(mean, of.users, name=name)
