"""The nearest published profile: an adversary beyond Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation
for User Profiles*, who does not look for a profile that equals what she knows of a target (§5), but for the one that differs least.

A published profile that is a mean, or has noise, equals nobody's own: exact matching then finds nobody, whatever is published. The
nearest profile is always there; of several that are equally near she takes one at random. The distance is Euclid's, over the cells
that she knows.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numba
import numpy as np
import pandas as pd

from mobpriv.attacks.call_profiles import linking
from mobpriv.attacks.call_profiles.linking import UNKNOWN, Linking, alike, cells_of, places_of, profiles_of, values_of

TIE = 1e-9  # squared distances in [0, 24] that differ by less are equal but for rounding


class Guess(NamedTuple):
    """Of each target."""

    distance: np.ndarray  # (n,): of what is known to the nearest published profile; infinite where there is none
    many: np.ndarray  # (n,): how many published profiles are as near
    own: np.ndarray  # (n,): is the target's among them?

    @property
    def chance(self) -> np.ndarray:
        """(n,): with which probability the guess is the target's own profile."""
        return np.divide(self.own, self.many, out=np.zeros(len(self.many)), where=self.own)


@dataclass(frozen=True)
class Nearest:
    """``rank``: the Euclidean distance of each published profile to what is known of each target. ``h`` and tables as in :class:`Linking`."""

    h: int | tuple[int, ...] | None = None
    known_: pd.DataFrame | None = field(default=None, repr=False, compare=False)

    name = "nearest profile"

    def __post_init__(self):
        object.__setattr__(self, "h", Linking(self.h).h)

    def fit(self, known: pd.DataFrame) -> Self:
        profiles_of(known, "known", unknown=True)
        return type(self)(self.h, known)

    def rank(self, anonymous: pd.DataFrame) -> pd.DataFrame:
        if self.known_ is None:
            raise ValueError("fit the attack on known profiles first")
        published, pb = profiles_of(anonymous, "published"), self.known_.to_numpy(float)
        if not anonymous.columns.equals(self.known_.columns):
            raise ValueError(
                f"published profiles must have the cells of the known ones, in their order "
                f"(they have {len(anonymous.columns)}, the known ones {len(self.known_.columns)})"
            )
        if published.shape[0] * pb.shape[0] > linking.PAIRS:
            raise ValueError(
                f"a ranking of {len(published):,} × {len(pb):,} profiles takes {8e-9 * len(published) * len(pb):,.0f} GB: "
                "use guesses(), which holds none"
            )
        square = np.zeros((len(published), len(pb)))
        for cell in cells_of(self.h, pb.shape[1]):
            square += np.where(pb[:, cell] == UNKNOWN, 0, published[:, cell, None] - pb[:, cell]) ** 2
        return pd.DataFrame(np.sqrt(square), anonymous.index, self.known_.index)


def guesses(known, published, h=None, within=None) -> Guess:
    """The nearest published profiles of each target, without a matrix.

    ``known`` (n, cells): what is known of each target, −1 in a cell that is not known; row i of ``published`` is the profile that is published
    of her. ``h``: the first 1 to 4 weeks, a list of cells, or all. ``within`` (n,): the municipality of each profile, where there are
    several: only the published profiles of one's own are looked at.
    """
    known, published = values_of(known, "known profiles", unknown=True), values_of(published, "published profiles")
    if known.shape != published.shape:
        raise ValueError(f"row i of both must be the same person's (got {known.shape} and {published.shape})")
    chosen = cells_of(h, known.shape[1])
    place = places_of(within, len(known))
    if not len(known):
        return Guess(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, bool))
    group = alike(published[:, chosen], place)  # equal profiles of a municipality are looked at once
    first = np.unique(group, return_index=True)[1]
    order = np.argsort(place[first], kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    ends = np.cumsum(np.bincount(place[first], minlength=place.max() + 1))
    rows = np.ascontiguousarray(published[first[order]][:, chosen])
    sizes = np.bincount(number[group])
    square, many, own = _nearest(np.ascontiguousarray(known[:, chosen]), place, number[group], rows, sizes, np.r_[0, ends])
    return Guess(np.sqrt(square), many, own)


@numba.njit(cache=True, parallel=True)
def _nearest(known, place, own, rows, sizes, ends):
    """The least squared distance to the rows of one's place, how many profiles lie within ``TIE`` of it, and whether row ``own`` does."""
    n, cells = known.shape
    least, many, found = np.full(n, np.inf), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for i in numba.prange(n):
        best = np.inf
        for last in range(2):  # what is least, then who is as near
            for j in range(ends[place[i]], ends[place[i] + 1]):
                square = 0.0
                for c in range(cells):
                    if known[i, c] >= 0:
                        square += (known[i, c] - rows[j, c]) ** 2
                        if square > best + TIE:
                            break
                if last == 0:
                    best = min(best, square)
                elif square <= best + TIE:
                    many[i] += sizes[j]
                    found[i] |= j == own[i]
        least[i] = best
    return least, many, found
