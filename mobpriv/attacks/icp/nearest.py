"""The nearest-neighbour attack on published profiles, an adversary beyond the paper.

Source of the setting: Pratesi, Gabrielli, Cintia, Monreale, Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*.

The paper's adversary (§5) looks for a profile that equals what he knows of a target; this one looks for the profile that
differs least. A published profile that is a mean, or has noise, equals no original profile, so exact matching re-identifies
nobody. A nearest profile always exists; in case of ties the adversary takes one at random. The distance is Euclidean, over the
cells that he knows.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import pandas as pd

from mobpriv.attacks.icp.linking import UNKNOWN, Linking, checked_values, group_numbers, place_codes, ranking_inputs
from mobpriv.icp.profiles import cell_numbers

SQUARED_TIE = 1e-9  # squared distances in [0, 24] that differ by less count as equal


class Guess(NamedTuple):
    """The guesses, one entry a target."""

    distance: np.ndarray  # (n,): from the known profile to the nearest published one
    ties: np.ndarray  # (n,): how many published profiles are as near
    includes_target: np.ndarray  # (n,): is the target's among them?

    @property
    def chance(self) -> np.ndarray:
        """(n,): the probability that the guess is the target's own profile."""
        return np.divide(self.includes_target, self.ties, out=np.zeros(len(self.ties)), where=self.includes_target)


@dataclass(frozen=True)
class Nearest(Linking):
    """``rank``: the Euclidean distance of each published profile to the known profile of each target.

    ``h`` and tables as in :class:`Linking`.
    """

    name = "nearest profile"

    def rank(self, anonymous: pd.DataFrame) -> pd.DataFrame:
        published, pb = ranking_inputs(self.known_, anonymous, "guesses()")
        square = np.zeros((len(published), len(pb)))
        for cell in cell_numbers(self.h, pb.shape[1]):
            square += np.where(pb[:, cell] == UNKNOWN, 0, published[:, cell, None] - pb[:, cell]) ** 2
        return pd.DataFrame(np.sqrt(square), anonymous.index, self.known_.index)


def guesses(known, published, h=None, within=None, own=None) -> Guess:
    """The nearest published profiles of each target, without a matrix.

    ``known`` (m, cells): what is known of each target, −1 for an unknown cell. ``own`` (m,): the row of ``published`` (n,
    cells) that is the target's; by default row i is that of target i. ``h``: the first 1 to 4 weeks, a list of cells, or all.
    ``within`` (n,): the municipality of each published profile, if there are several; only those of the target's municipality
    are compared.
    """
    known, published = checked_values(known, "known profiles", unknown=True), checked_values(published, "published profiles")
    if known.shape[1] != published.shape[1] or (own is None and len(known) != len(published)):
        raise ValueError(
            f"row i of both must be the same person's, or own say which is hers (got {known.shape} and {published.shape})"
        )
    own = np.arange(len(known)) if own is None else np.asarray(own)
    if own.shape != (len(known),) or own.dtype.kind not in "iu" or not ((own >= 0) & (own < len(published))).all():
        raise ValueError(f"own must be a row of the {len(published)} published profiles for each of the {len(known)} targets")
    chosen = cell_numbers(h, known.shape[1])
    place = place_codes(within, len(published))
    if not len(known):
        return Guess(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, bool))
    group = group_numbers(published[:, chosen], place)  # equal profiles of a municipality are compared once
    first = np.unique(group, return_index=True)[1]
    order = np.argsort(place[first], kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    ends = np.r_[0, np.cumsum(np.bincount(place[first], minlength=place.max() + 1))]
    columns = np.ascontiguousarray(published[first[order]][:, chosen].T)
    sizes = np.bincount(number[group])
    pb, target_place, target_number = known[:, chosen], place[own], number[group[own]]
    query = group_numbers(pb, target_place)  # so are targets with equal known profiles
    first_of_query = np.unique(query, return_index=True)[1]
    square, ties = _nearest(np.ascontiguousarray(pb[first_of_query]), target_place[first_of_query], columns, sizes, ends)
    target_square = np.zeros(len(pb))
    for c, value in enumerate(pb.T):  # cell by cell, in the order of summation of the least
        target_square += np.where(value == UNKNOWN, 0, (value - columns[c, target_number]) ** 2)
    return Guess(np.sqrt(square)[query], ties[query], target_square <= square[query] + SQUARED_TIE)


@numba.njit(cache=True, parallel=True)
def _nearest(known, place, columns, sizes, ends):
    """The least squared distance to the profiles of the same place, and how many lie within ``SQUARED_TIE`` of it.

    ``columns``: (cells, profiles). The sums run over the cells, four at a time, for many profiles at once.
    """
    n = len(known)
    least, ties = np.zeros(n), np.zeros(n, np.int64)
    for i in numba.prange(n):
        low, high = ends[place[i]], ends[place[i] + 1]
        square, cells = np.zeros(high - low), np.flatnonzero(known[i] >= 0)
        fours = len(cells) // 4 * 4
        for c in range(0, fours, 4):
            a, b, d, e = cells[c], cells[c + 1], cells[c + 2], cells[c + 3]
            va, vb, vd, ve = known[i, a], known[i, b], known[i, d], known[i, e]
            ca, cb, cd, ce = columns[a, low:high], columns[b, low:high], columns[d, low:high], columns[e, low:high]
            for j in range(high - low):
                square[j] = square[j] + (va - ca[j]) ** 2 + (vb - cb[j]) ** 2 + (vd - cd[j]) ** 2 + (ve - ce[j]) ** 2
        for c in cells[fours:]:
            value, column = known[i, c], columns[c, low:high]
            for j in range(high - low):
                square[j] += (value - column[j]) ** 2
        least[i] = square.min()
        for j in range(high - low):
            if square[j] <= least[i] + SQUARED_TIE:
                ties[i] += sizes[low + j]
    return least, ties
