"""Whose protected records stand against whose original ones."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.traces import Traces, by_user


class Pairs(NamedTuple):
    """One row a user of the original traces: her original records are ``start[i]`` … ``start[i+1]−1``, her protected ones
    ``first[i]`` … ``last[i]−1``, none where the mechanism has erased the trace."""

    users: pd.Index
    start: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @property
    def records(self) -> np.ndarray:
        """How many protected records each user has."""
        return self.last - self.first

    @property
    def owner(self) -> np.ndarray:
        """The user, counted from 0, of each protected record."""
        return np.repeat(np.arange(len(self.users)), self.records)


def pairs(original: Traces, protected: Traces) -> Pairs:
    """Matches users by name; a protected user without original records is refused, for nothing can be compared."""
    users, start = by_user(original)
    others, offsets = by_user(protected)
    at = users.get_indexer(others)
    strange = others[at < 0]
    if len(strange):
        raise ValueError(
            f"protected traces must be of users who have original records ({len(strange)} are not, first: {strange[0]}): "
            "give the traces that went into the mechanism, and the users' own names in both"
        )
    first, last = np.zeros(len(users), np.int64), np.zeros(len(users), np.int64)
    first[at], last[at] = offsets[:-1], offsets[1:]
    return Pairs(users, start, first, last)


def means(values: np.ndarray, of: Pairs, name: str) -> pd.Series:
    """The mean of each user's ``values``, one a protected record; NaN for users who have none."""
    mean, some = np.full(len(of.users), np.nan), of.records > 0
    if some.any():
        mean[some] = np.add.reduceat(values, of.first[some]) / of.records[some]
    return pd.Series(mean, of.users, name=name)
