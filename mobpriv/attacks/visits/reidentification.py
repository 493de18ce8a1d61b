"""Re-identification of sanitised profiles: Definition 10 and Algorithm 11.

Source: Olivier, Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§V-A.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from mobpriv.attacks.visits.distances import count_within, l1, l1_to_true
from mobpriv.attacks.visits.tables import at_known_pois, check_counts, check_numbers, check_profiles
from mobpriv.base.ranges import whole

_MAX_RANKING_ENTRIES = 2e9  # most entries of a ranking, 16 GB of 64-bit numbers


@dataclass(frozen=True)
class ProfileGuess:
    """Definition 10: the distance of each leaked true profile a_j to a sanitised one ã_i, d(a_j, ã_i) = Σ_j |a_j − ã_i|.

    ``rank`` returns all distances; profileGuess(i, δ) is where they are at most δ. If only some POIs leaked, the sanitised
    profiles are restricted to them. For a grid of (δ, M), and for crowds, :func:`guesses` needs no matrix.
    """

    known_: pd.DataFrame | None = field(default=None, repr=False, compare=False)

    name = "profileGuess"

    def fit(self, known: pd.DataFrame) -> Self:
        return type(self)(check_profiles(known, "leaked"))

    def rank(self, anonymous: pd.DataFrame) -> pd.DataFrame:
        if self.known_ is None:
            raise ValueError("fit the attack on known profiles first")
        published = at_known_pois(check_profiles(anonymous, "sanitised"), self.known_)
        check_ranking_size(len(published), len(self.known_))
        d = l1(published.to_numpy()[None], self.known_.to_numpy()[None])[0]
        return pd.DataFrame(d.astype(float), published.index, self.known_.index)


def check_ranking_size(rows: int, columns: int) -> None:
    """Refuse a ranking that exceeds the memory."""
    if rows * columns > _MAX_RANKING_ENTRIES:
        raise ValueError(
            f"a ranking of {rows:,} × {columns:,} profiles takes {8e-9 * rows * columns:,.0f} GB: use guesses(), which holds none"
        )


class Guesses(NamedTuple):
    """Properties of profileGuess(i, δ), arrays (…, n): all that Algorithm 11 needs, for every M at once."""

    true_distances: np.ndarray  # d(a_i, ã_i); infinite where a_i did not leak
    sizes: np.ndarray  # (…, n, number of δ): |profileGuess(i, δ)|
    deltas: np.ndarray


def guesses(published, known, deltas, owner=None) -> Guesses:
    """The sets profileGuess(i, δ) of all sanitised profiles, for every δ: published (…, n, m), known (…, k, m).

    ``owner`` (n,): the row of ``known`` that is the true profile of each sanitised one, −1 if it did not leak. By default row i
    of both is the same user's.
    """
    published, known = check_counts(published, "sanitised"), check_counts(known, "leaked")
    deltas = check_numbers(deltas, "deltas").reshape(-1)
    if published.ndim < 2 or known.shape[:-2] != published.shape[:-2] or known.shape[-1] != published.shape[-1]:
        raise ValueError(f"profiles must have the shapes (…, n, m) and (…, k, m) (got {published.shape} and {known.shape})")
    if not published.shape[-1]:
        raise ValueError("J, the POIs that leaked, must not be empty")
    if not published.shape[-2]:
        raise ValueError("n, the number of sanitised profiles, must be at least 1 (got 0)")
    owner = np.arange(published.shape[-2]) if owner is None else np.asarray(owner, np.int64)
    if owner.shape != published.shape[-2:-1] or (owner >= known.shape[-2]).any():
        raise ValueError(f"owner must name a row of the {known.shape[-2]} known profiles for each of the {published.shape[-2]}")
    sides = [side.reshape(int(np.prod(side.shape[:-2])), *side.shape[-2:]) for side in (published, known)]
    true_distances, sizes = l1_to_true(*sides, owner), count_within(*sides, deltas)
    return Guesses(true_distances.reshape(published.shape[:-1]), sizes.reshape(*published.shape[:-1], len(deltas)), deltas)


def successes(sets: Guesses, max_candidates) -> np.ndarray:
    """Definition 10: is the attack on ã_i a (δ, M)-success, i ∈ profileGuess(i, δ) and |profileGuess(i, δ)| ≤ M?

    Shape (…, n, number of δ, number of M); ``max_candidates``: the M, whole numbers, at least 1.
    """
    max_candidates = np.array([whole("M", m, 1) for m in np.atleast_1d(max_candidates)])
    inside = sets.true_distances[..., None] <= sets.deltas
    return inside[..., None] & (sets.sizes[..., None] <= max_candidates)


def reidentification_rate(sets: Guesses, max_candidates) -> np.ndarray:
    """Algorithm 11: r(δ, M, n), the share of the n attacked profiles with a (δ, M)-success.

    Shape (…, number of δ, number of M). A success depends on two numbers. With D_i the distance of the (M+1)-th nearest leaked
    profile, δ succeeds if and only if d(a_i, ã_i) ≤ δ < D_i. So r increases with M; as δ grows, r first rises and then falls.
    """
    max_candidates = np.array([whole("M", m, 1) for m in np.atleast_1d(max_candidates)])
    inside = sets.true_distances[..., None] <= sets.deltas
    # one M at a time: for a crowd the full grid would exceed the memory
    return np.stack([(inside & (sets.sizes <= m)).mean(axis=-2) for m in max_candidates], axis=-1)
