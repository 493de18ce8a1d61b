"""Rows of a table of profiles: equal ones merged, and those of each group, such as a municipality."""

from typing import NamedTuple

import numpy as np
import pandas as pd

_KEYS = 2**62


class Distinct(NamedTuple):
    """Distinct profiles in lexicographic order, each with its multiplicity."""

    values: np.ndarray  # (d, cells)
    sizes: np.ndarray  # (d,): multiplicity of each
    inverse: np.ndarray  # (n,): the row of each original profile


def distinct(values: np.ndarray, sizes=None) -> Distinct:
    """Merge equal profiles; ``sizes`` (n,): the multiplicity of each row."""
    n = len(values)
    weight = np.ones(n, np.int64) if sizes is None else np.asarray(sizes)
    if weight.shape != (n,) or not (
        np.issubdtype(weight.dtype, np.number) and (weight >= 1).all() and (weight == np.floor(weight)).all()
    ):
        raise ValueError(f"sizes must be a whole number, at least 1, for each of the {n} profiles (got {sizes!r:.60})")
    key, number = np.zeros(n, np.int64), 1
    for column in values.T:  # numbers the rows in lexicographic order; renumbered densely before it exceeds 62 bits
        digit, digits = pd.factorize(column, sort=True)
        if number * len(digits) > _KEYS:
            dense, key = np.unique(key, return_inverse=True)
            number = len(dense)
            if number == n:  # all rows differ already and are in order; with noise this happens after a few cells
                break
        key, number = key * len(digits) + digit, number * len(digits)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return Distinct(np.ascontiguousarray(values[first]), np.bincount(inverse, weight).astype(np.int64), inverse)


def factorize_places(where, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The index of each profile's municipality among the sorted names; and these names."""
    place, names = pd.factorize(pd.Series(where), sort=True)
    if len(place) != n or (place < 0).any():
        raise ValueError(
            f"where must name the municipality of each of the {n} profiles (got {len(place)}, {int((place < 0).sum())} missing)"
        )
    return place.astype(np.int64), np.asarray(names)


def rows_by_group(where, n: int) -> list[np.ndarray]:
    """The rows of each municipality, or of other groups, in the order of their names; ``where``: that of each of the rows."""
    place = factorize_places(where, n)[0]
    return np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place)))[:-1]
