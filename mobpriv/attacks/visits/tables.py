"""Checks of the tables of attacks on profiles of visits, a row a user and a column a POI; each error states rule, value and place."""

import numpy as np
import pandas as pd


def check_profiles(table, what: str) -> pd.DataFrame:
    """The table, if it holds whole numbers or truth values, each user and each POI once."""
    if not isinstance(table, pd.DataFrame) or not table.shape[1]:
        raise ValueError(f"{what} profiles must be a table, a row a user and a column a POI (got {type(table).__name__})")
    for kind, names in (("user", table.index), ("POI", table.columns)):
        if not names.is_unique:
            raise ValueError(
                f"every {kind} must occur once in the {what} profiles ({names[names.duplicated()][0]} occurs twice)"
            )
    if table.to_numpy().dtype.kind not in "biu":
        raise ValueError(f"{what} profiles must hold whole numbers or truth values (they hold {table.to_numpy().dtype})")
    check_counts(table, what)
    return table


def check_counts(values, what: str) -> np.ndarray:
    """An array of whole numbers, none negative, whose distances fit 64 bits."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        valid = array >= 0
    else:
        array = check_numbers(array, f"{what} profiles")
        valid = array == np.floor(array)
    if not valid.all():
        raise ValueError(f"{what} profiles must hold whole numbers, none negative (got {array[~valid].flat[0]})")
    if array.size and array.ndim and int(array.max()) * array.shape[-1] > np.iinfo(np.int64).max:
        raise ValueError(f"{what} profiles hold counts that are too large to add (got {array.max()})")
    return array


def at_known_pois(published: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """The sanitised profiles at the POIs that leaked (§VI-C: "𝒜 restricts also the sanitized profiles to these 15 POIs")."""
    missing = known.columns.difference(published.columns)
    if len(missing):
        raise ValueError(f"no sanitised profile says anything about POI {missing[0]}, of which true profiles leaked")
    return published[known.columns]


def check_numbers(values, what: str) -> np.ndarray:
    """An array of finite numbers, none negative."""
    try:
        array = np.asarray(values, float)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be numbers (got {values!r})") from None
    invalid = ~(np.isfinite(array) & (array >= 0))
    if invalid.any():
        raise ValueError(f"{what} must be finite and not negative (got {array[invalid].flat[0]})")
    return array
