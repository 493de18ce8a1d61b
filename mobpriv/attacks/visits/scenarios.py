"""The leaks of the scenarios.

Source: Olivier, Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§IV, §VI-A.

Tables have a row a user and a column a POI. Both sides of a :class:`Leak` carry the users' names. The adversary does not see
those of the sanitised side, which the permutation π hides.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.ranges import whole

LEAKED_POIS, LEAKED_USERS = 15, 50  # §VI-C: "restricted to 15 POIs"; §VI-A: "a subsample of |J| = 50 users"


class Leak(NamedTuple):
    known: pd.DataFrame  # the true profiles that the adversary holds
    published: pd.DataFrame  # the sanitised profiles that he attacks, at the POIs that he knows


def earlier_period(first: pd.DataFrame, published: pd.DataFrame) -> Leak:
    """Scenario 1: the true profiles of T1 leak, those of T2 are published sanitised. Both of the same users."""
    _same_users(first, published)
    return Leak(first, published)


def some_pois(true: pd.DataFrame, published: pd.DataFrame, rng: np.random.Generator, count: int = LEAKED_POIS) -> Leak:
    """Scenario 2.1: every user's true profile leaks at the same ``count`` POIs J; the sanitised ones are restricted to J.

    Departures from the paper: it does not say which POIs; here they are drawn.
    """
    _same_users(true, published)
    pois = _leaked_positions(true.shape[1], count, rng, "POIs")
    return Leak(true.iloc[:, pois], published[true.columns[pois]])


def some_users(true: pd.DataFrame, published: pd.DataFrame, rng: np.random.Generator, count: int = LEAKED_USERS) -> Leak:
    """Scenario 2.2: the true profiles of ``count`` of the users, I, leak; the sanitised profiles of the same users are
    attacked.

    Departures from the paper: it divides by n = 100, though only 50 profiles leak, and an attack can succeed for those alone.
    Rates of 0.9 and of 1.0 (§VI-C, §VI-E) are shares of those 50. The rate among all n is |I|/n times that. The other users'
    sanitised profiles, which are also published, change no rate: each is compared with the leaked ones by itself.
    """
    _same_users(true, published)
    users = _leaked_positions(len(true), count, rng, "users")
    return Leak(true.iloc[users], published.loc[true.index[users]])


def _leaked_positions(size: int, count: int, rng: np.random.Generator, what: str = "users") -> np.ndarray:
    """Positions of the ``count`` of ``size`` that leak, drawn without replacement, in order."""
    whole("count", count, 1, size, f"of {what} that leak must be a whole number in 1 … {size}")
    return np.sort(rng.choice(size, count, replace=False))


def _same_users(true, published):
    for name, table in (("true", true), ("sanitised", published)):
        if not isinstance(table, pd.DataFrame):
            raise ValueError(f"{name} profiles must be a table, a row a user and a column a POI (got {type(table).__name__})")
    unmatched = true.index.symmetric_difference(published.index)
    if len(unmatched):
        raise ValueError(f"true and sanitised profiles must be of the same users ({unmatched[0]} is in one of the two only)")
