"""The nearest-neighbour attack on published profiles, an adversary beyond the paper.

Source of the setting: Pratesi, Gabrielli, Cintia, Monreale, Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*.

The paper's adversary (§5) looks for a profile that equals what he knows of a target; this one looks for the profile that
differs least. A published profile that is a mean, or has noise, equals no original profile, so exact matching re-identifies
nobody. A nearest profile always exists; in case of ties the adversary takes one at random. The distance is Euclidean, over the
cells that he knows.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numba
import numpy as np
import pandas as pd

from mobpriv.attacks.icp.linking import UNKNOWN, Linking, alike, places_of, profiles_of, to_rank, values_of
from mobpriv.icp.profiles import cells_of

TIE = 1e-9  # squared distances in [0, 24] that differ by less count as equal


class Guess(NamedTuple):
    """The guesses, one entry a target."""

    distance: np.ndarray  # (n,): from the known profile to the nearest published one
    many: np.ndarray  # (n,): how many published profiles are as near
    own: np.ndarray  # (n,): is the target's among them?

    @property
    def chance(self) -> np.ndarray:
        """(n,): the probability that the guess is the target's own profile."""
        return np.divide(self.own, self.many, out=np.zeros(len(self.many)), where=self.own)


@dataclass(frozen=True)
class Nearest:
    """``rank``: the Euclidean distance of each published profile to the known profile of each target.

    ``h`` and tables as in :class:`Linking`.
    """

    h: int | tuple[int, ...] | None = None
    known_: pd.DataFrame | None = field(default=None, repr=False, compare=False)

    name = "nearest profile"

    def __post_init__(self):
        object.__setattr__(self, "h", Linking(self.h).h)

    def fit(self, known: pd.DataFrame) -> Self:
        profiles_of(known, "known", unknown=True)
        return type(self)(self.h, known)

    def rank(self, anonymous: pd.DataFrame) -> pd.DataFrame:
        published, pb = to_rank(self.known_, anonymous, "guesses()")
        square = np.zeros((len(published), len(pb)))
        for cell in cells_of(self.h, pb.shape[1]):
            square += np.where(pb[:, cell] == UNKNOWN, 0, published[:, cell, None] - pb[:, cell]) ** 2
        return pd.DataFrame(np.sqrt(square), anonymous.index, self.known_.index)


def guesses(known, published, h=None, within=None, own=None) -> Guess:
    """The nearest published profiles of each target, without a matrix.

    ``known`` (m, cells): what is known of each target, −1 for an unknown cell. ``own`` (m,): the row of ``published`` (n,
    cells) that is the target's; by default row i is that of target i. ``h``: the first 1 to 4 weeks, a list of cells, or all.
    ``within`` (n,): the municipality of each published profile, if there are several; only those of the target's municipality
    are compared.
    """
    known, published = values_of(known, "known profiles", unknown=True), values_of(published, "published profiles")
    if known.shape[1] != published.shape[1] or (own is None and len(known) != len(published)):
        raise ValueError(
            f"row i of both must be the same person's, or own say which is hers (got {known.shape} and {published.shape})"
        )
    own = np.arange(len(known)) if own is None else np.asarray(own)
    if own.shape != (len(known),) or own.dtype.kind not in "iu" or not ((own >= 0) & (own < len(published))).all():
        raise ValueError(f"own must be a row of the {len(published)} published profiles for each of the {len(known)} targets")
    chosen = cells_of(h, known.shape[1])
    place = places_of(within, len(published))
    if not len(known):
        return Guess(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, bool))
    group = alike(published[:, chosen], place)  # equal profiles of a municipality are compared once
    first = np.unique(group, return_index=True)[1]
    order = np.argsort(place[first], kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    ends = np.r_[0, np.cumsum(np.bincount(place[first], minlength=place.max() + 1))]
    columns = np.ascontiguousarray(published[first[order]][:, chosen].T)
    sizes = np.bincount(number[group])
    pb, there, hers = known[:, chosen], place[own], number[group[own]]
    asked = alike(pb, there)  # so are targets with equal known profiles
    one = np.unique(asked, return_index=True)[1]
    square, many = _nearest(np.ascontiguousarray(pb[one]), there[one], columns, sizes, ends)
    apart = np.zeros(len(pb))
    for c, value in enumerate(pb.T):  # cell by cell, in the order of summation of the least
        apart += np.where(value == UNKNOWN, 0, (value - columns[c, hers]) ** 2)
    return Guess(np.sqrt(square)[asked], many[asked], apart <= square[asked] + TIE)


@numba.njit(cache=True, parallel=True)
def _nearest(known, place, columns, sizes, ends):
    """The least squared distance to the profiles of the same place, and how many lie within ``TIE`` of it.

    ``columns``: (cells, profiles). The sums run over the cells, four at a time, for many profiles at once.
    """
    n = len(known)
    least, many = np.zeros(n), np.zeros(n, np.int64)
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
            if square[j] <= least[i] + TIE:
                many[i] += sizes[low + j]
    return least, many
