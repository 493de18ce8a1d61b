"""The linking attack on individual call profiles, and the risk of re-identification.

Source: Pratesi, Gabrielli, Cintia, Monreale, Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, Definition 1
(PRUDEnce), §5.

The adversary has built PB, the exact profile of a target U in the cells he knows; PB_ij = −1 in the others. The matching
profiles are C = {P ∈ 𝒫 | ∀ PB_ij ≥ 0. PB_ij = P_ij}, and the probability of re-identification is 1/|C|.

Departures from the paper: there PB_ij is a number of days and P_ij a share of days. Here both are values of profiles, and two
values are equal if they are the same number. Shares of :func:`mobpriv.icp.profiles.values` are equal if and only if the days are.
Published values are compared as they were published.
"""

from dataclasses import dataclass, field
from typing import Self

import numba
import numpy as np
import pandas as pd

from mobpriv.base.ranges import whole
from mobpriv.icp.profiles import Icps, cell_numbers, day_counts, key_mask

MAX_ENTRIES = 2e9  # most entries of a ranking, 16 GB of 64-bit numbers
UNKNOWN = -1


@dataclass(frozen=True)
class Linking:
    """§5: which published profiles match what is known of a target. ``rank`` is 0 for a match, infinite otherwise.

    ``h`` is what the adversary knows, as in §6 and §7: the first 1 to 4 weeks, or a list of cells by their numbers, or all
    (None). In ``fit`` and ``rank`` profiles are tables, a row a user and a column a cell. In those of ``fit`` −1 is a cell that
    is not known, whatever ``h`` says. For crowds use :func:`candidates` and :func:`risk`, which need no matrix.
    """

    h: int | tuple[int, ...] | None = None
    known_: pd.DataFrame | None = field(default=None, repr=False, compare=False)

    name = "linking"

    def __post_init__(self):
        if self.h is not None:
            object.__setattr__(self, "h", tuple(cell_numbers(self.h).tolist()))

    def fit(self, known: pd.DataFrame) -> Self:
        _table_values(known, "known", unknown=True)
        return type(self)(self.h, known)

    def rank(self, anonymous: pd.DataFrame) -> pd.DataFrame:
        published, pb = ranking_inputs(self.known_, anonymous, "candidates()")
        match = np.ones((len(published), len(pb)), bool)
        for cell in cell_numbers(self.h, pb.shape[1]):
            match &= (pb[:, cell] == UNKNOWN) | (published[:, cell, None] == pb[:, cell])
        return pd.DataFrame(np.where(match, 0.0, np.inf), anonymous.index, self.known_.index)


def ranking_inputs(known: pd.DataFrame | None, anonymous: pd.DataFrame, instead: str) -> tuple[np.ndarray, np.ndarray]:
    """The values of the published profiles and of those an attack was fitted on.

    Raises ValueError if they cannot be ranked or the ranking exceeds the memory: ``instead`` is the function to use then.
    """
    if known is None:
        raise ValueError("fit the attack on known profiles first")
    published, pb = _table_values(anonymous, "published"), known.to_numpy(float)
    if not anonymous.columns.equals(known.columns):
        raise ValueError(
            f"published profiles must have the cells of the known ones, in their order "
            f"(they have {len(anonymous.columns)}, the known ones {len(known.columns)})"
        )
    if published.shape[0] * pb.shape[0] > MAX_ENTRIES:
        raise ValueError(
            f"a ranking of {len(published):,} × {len(pb):,} profiles takes {8e-9 * len(published) * len(pb):,.0f} GB: "
            f"use {instead}, which holds none"
        )
    return published, pb


def anonymity_sets(profiles, h=None, within=None) -> np.ndarray:
    """The anonymity set of each profile for an adversary who knows ``h`` (§6): its number, int64 (n,), 0 … groups − 1.

    ``profiles``: keys, whole numbers (n,), or values (n, cells). ``within`` (n,): their municipalities, by any labels, if there
    are several; profiles of two municipalities are never in one group. The groups are numbered in the order of their first
    profiles.
    """
    profiles = np.asarray(profiles)
    if profiles.ndim == 1:
        columns = _masked(profiles, h)[:, None]
    else:
        values = checked_values(profiles, "profiles")
        columns = values[:, cell_numbers(h, values.shape[1])]
    return group_numbers(columns, place_codes(within, len(profiles)))


def _masked(profiles: np.ndarray, h) -> np.ndarray:
    """Keys restricted to the cells of ``h``."""
    day_counts(profiles)  # checks the keys
    return profiles.astype(np.int64, copy=False) & key_mask(cell_numbers(h))


def place_codes(within, n: int) -> np.ndarray:
    """The municipalities as numbers."""
    if within is None:
        return np.zeros(n, np.int64)
    code = pd.factorize(np.asarray(within))[0].astype(np.int64)
    if len(code) != n or (code < 0).any():
        raise ValueError(
            f"within must name the municipality of each of the {n} profiles (got {(code >= 0).sum()} of {len(code)})"
        )
    return code


def group_numbers(rows: np.ndarray, code: np.ndarray) -> np.ndarray:
    """The number of each row's group: rows with equal values and the same ``code``, numbered in the order of first rows."""
    code, uniques = pd.factorize(code)
    for column in rows.T:
        if len(uniques) == len(rows):  # all differ: with noise this happens after a few cells
            break
        digit, digits = pd.factorize(column)
        if len(digits) > 1:
            code, uniques = pd.factorize(code.astype(np.int64) * len(digits) + digit)
    return code.astype(np.int64)


def candidates(profiles, published=None, h=None, within=None, published_within=None) -> np.ndarray:
    """|C| (§5): for each known profile PB, how many of the published profiles match, int64 (n,).

    Both are keys (n,), or values (n, cells) with −1 in PB for a cell that is not known, whatever ``h`` says. Without
    ``published`` the known profiles are the published ones: |C| is the size of a profile's group, at least 1. ``within`` and
    ``published_within`` (by default the same) are their municipalities, if there are several; profiles match only within one
    municipality.
    """
    if published is None:
        code = anonymity_sets(profiles, h, within)
        return np.bincount(code, minlength=1)[code]
    pb, published = np.asarray(profiles), np.asarray(published)
    if pb.ndim != published.ndim:
        raise ValueError("known and published profiles must both be keys, or both be values")
    published_within = within if published_within is None else published_within
    places = [None, None] if within is None else [np.asarray(within), np.asarray(published_within)]
    place = place_codes(None if within is None else np.concatenate(places), len(pb) + len(published))
    if within is not None and len(places[0]) != len(pb):
        raise ValueError(f"within must name the municipality of each of the {len(pb)} profiles (got {len(places[0])})")
    place, published_place = place[: len(pb)], place[len(pb) :]
    if pb.ndim == 1:
        return _matching(_masked(pb, h)[:, None], place, _masked(published, h)[:, None], published_place)
    pb, published = checked_values(pb, "known profiles", unknown=True), checked_values(published, "published profiles")
    if pb.shape[1] != published.shape[1]:
        raise ValueError(f"known and published profiles must have the same cells (got {pb.shape[1]} and {published.shape[1]})")
    chosen = cell_numbers(h, pb.shape[1])
    is_known = pb[:, chosen] != UNKNOWN
    matches = np.empty(len(pb), np.int64)
    pattern = group_numbers(is_known, np.zeros(len(pb)))
    for number in range(pattern.max(initial=-1) + 1):
        rows = np.flatnonzero(pattern == number)
        cells = chosen[is_known[rows[0]]]
        matches[rows] = _matching(pb[np.ix_(rows, cells)], place[rows], published[:, cells], published_place)
    return matches


def _matching(pb, place, published, published_place) -> np.ndarray:
    """For each row of ``pb``, how many rows of ``published`` in the same place equal it."""
    code = group_numbers(np.concatenate([published, pb]), np.concatenate([published_place, place]))
    return np.bincount(code[: len(published)], minlength=code.max(initial=0) + 1)[code[len(published) :]]


def risk(profiles, h=None, published=None, within=None) -> np.ndarray:
    """Definition 1 and §5: the probability of re-identification of each profile's owner, 1/|C|, float64 (n,).

    ``profiles``: keys (n,) or values (n, cells). Without ``published`` they are those that are published. With it, they are PB,
    −1 in cells that the adversary does not know, and row i of ``published`` is the profile published of the owner of row i. If
    it does not match PB, the owner is not in C and the probability is 0, as in Definition 1 for a user who is not in D.

    ``h``: the first 1 to 4 weeks, a list of cells, or all. ``within`` (n,): their municipalities, if there are several.
    """
    if published is None:
        return 1 / candidates(profiles, h=h, within=within)
    profiles, published = np.asarray(profiles), np.asarray(published)
    if profiles.shape != published.shape:
        raise ValueError(f"row i of both must be the same person's (got {profiles.shape} and {published.shape})")
    matches = candidates(profiles, published, h, within)
    if profiles.ndim == 1:
        is_match = _masked(profiles, h) == _masked(published, h)
    else:
        chosen = cell_numbers(h, profiles.shape[1])
        is_match = ((profiles[:, chosen] == UNKNOWN) | (profiles[:, chosen] == published[:, chosen])).all(axis=1)
    return np.divide(1, matches, out=np.zeros(len(matches)), where=is_match)


def anonymity_across_municipalities(icps: Icps, max_known: int, h=None, values=None) -> pd.Series:
    """The anonymity set size k of each user for an adversary who knows her profiles in her ``max_known`` most used municipalities.

    The paper proposes this in §8: "considering more than one municipality at the same time". The result, indexed by user, is
    the number of users who have the same profiles, in the cells of ``h``, in all of these municipalities.

    A municipality is used more than another if she called on more days and slots in it, Σ over the cells; ties go to the first
    by name. A user with fewer than ``max_known`` municipalities is known by all of hers. A user who matches may also have been
    elsewhere, because the adversary cannot exclude anyone by what he does not know. The function assumes that profiles of one
    person are published under one name in all municipalities. ``values`` (n, cells) are the published profiles if they are not
    those of the keys, a row each.
    """
    max_known = whole("max_known", max_known, 1)
    activity = day_counts(icps["key"].to_numpy()).sum(axis=1, dtype=np.int64)
    if values is not None and len(values) != len(icps):
        raise ValueError(f"values must have a row for each of the {len(icps)} profiles (got {len(values)})")
    user, names = pd.factorize(icps["user"], sort=True)
    town = icps["municipality"].astype("category").cat.codes.to_numpy()
    if (user < 0).any() or (town < 0).any():
        raise ValueError(f"every profile must have a user and a municipality ({((user < 0) | (town < 0)).sum()} have not)")
    group = anonymity_sets(icps["key"].to_numpy() if values is None else values, h, town)
    order = np.lexsort((town, -activity, user))
    starts = np.flatnonzero(np.diff(user[order], prepend=-1))
    ends = np.r_[starts[1:], len(order)]
    known_groups = np.full((len(names), max_known), -1, np.int64)
    for j in range(max_known):
        exists = starts + j < ends
        known_groups[exists, j] = group[order[(starts + j)[exists]]]
    known_groups.sort(axis=1)
    query = group_numbers(known_groups, np.zeros(len(known_groups)))
    first = np.unique(query, return_index=True)[1]
    user_groups = group[np.lexsort((group, user))]  # each user's groups, ascending
    members = np.lexsort((user, group))
    begins = np.r_[0, np.cumsum(np.bincount(group))] if len(group) else np.zeros(1, np.int64)
    sizes = _users_in_all_groups(known_groups[first], user[members], begins, user_groups, np.r_[starts, len(order)])
    return pd.Series(sizes[query], pd.Index(names, name="user"), name="k")


@numba.njit(cache=True)
def _users_in_all_groups(queries, members, begins, user_groups, starts):
    """For each query of some groups (−1: none), how many users are in all of them; only members of the smallest are tested."""
    counts = np.zeros(len(queries), np.int64)
    for q in range(len(queries)):
        query = queries[q][queries[q] >= 0]
        smallest = query[0]
        for g in query:
            if begins[g + 1] - begins[g] < begins[smallest + 1] - begins[smallest]:
                smallest = g
        for u in members[begins[smallest] : begins[smallest + 1]]:
            groups = user_groups[starts[u] : starts[u + 1]]
            in_all = True
            for g in query:
                position = np.searchsorted(groups, g)
                if position == len(groups) or groups[position] != g:
                    in_all = False
                    break
            counts[q] += in_all
    return counts


def _table_values(table, what: str, unknown: bool = False) -> np.ndarray:
    """The values of a table, a row a user and a column a cell."""
    if not isinstance(table, pd.DataFrame) or not table.shape[1]:
        raise ValueError(f"{what} profiles must be a table, a row a user and a column a cell (got {type(table).__name__})")
    for kind, names in (("user", table.index), ("cell", table.columns)):
        if not names.is_unique:
            raise ValueError(
                f"every {kind} must occur once in the {what} profiles ({names[names.duplicated()][0]} occurs twice)"
            )
    return checked_values(table.to_numpy(), f"{what} profiles", unknown)


def checked_values(profiles, what: str, unknown: bool = False) -> np.ndarray:
    """Profiles as finite numbers, not negative except −1 for an unknown value."""
    try:
        values = np.asarray(profiles, float)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be numbers (got {type(profiles).__name__})") from None
    if values.ndim != 2 or not values.shape[1]:
        raise ValueError(f"{what} must have a row a profile and a column a cell (got the shape {values.shape})")
    wrong = ~(np.isfinite(values) & ((values >= 0) | (unknown & (values == UNKNOWN))))
    if wrong.any():
        row, cell = np.argwhere(wrong)[0]
        also = ", or −1 where a cell is not known" if unknown else ""
        raise ValueError(f"{what} must be finite and not negative{also} (got {values[row, cell]} in row {row}, cell {cell})")
    return values
