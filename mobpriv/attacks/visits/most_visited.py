"""The most visited POI: Definition 15 and Algorithm 16; and the argmax of one sanitised profile, without any leak.

Source: Olivier, Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§V-D.
"""

from typing import NamedTuple

import numpy as np

from mobpriv.attacks.visits.distances import l1
from mobpriv.attacks.visits.tables import check_counts, check_numbers
from mobpriv.base.ranges import one_of

_EMPTY_ANSWERS = ("nothing", "everything")
MAX_DISTANCES = 1 << 25  # distances held at a time


class MostVisited(NamedTuple):
    """The POIs that the adversary predicts to be the most visited ones."""

    predicted: np.ndarray  # (…, n, m): the set P̄ of POIs
    candidates: np.ndarray  # (…, n): |profileGuess(i, δ_i)|


def poi_guess(profiles, chi=None) -> np.ndarray:
    """Definition 15: {j | c̃_ij = max_{j' ∈ χ_i} c̃_ij'} as a mask (…, n, m).

    As printed, it also contains a POI outside χ_i with the same count. Without ``chi`` the maximum is over all POIs. If all
    counts in χ_i are 0, the set is empty.
    """
    c = check_numbers(profiles, "count profiles")
    chi = np.ones(c.shape, bool) if chi is None else np.broadcast_to(np.asarray(chi, bool), c.shape)
    largest = np.where(chi, c, 0).max(axis=-1, keepdims=True)
    return (c == largest) & (largest > 0)


def relative_delta(delta: float, profiles) -> np.ndarray:
    """δ_i = δ · |c_i|₁, shape (…, n): our interpretation of "δ = 0.3" in the table of §VI-E.

    As a distance between counts 0.3 would mean equality.
    """
    return check_numbers(delta, "delta") * check_numbers(profiles, "count profiles").sum(axis=-1)


def most_visited(published, known, delta, guess, empty: str = "nothing") -> MostVisited:
    """Algorithm 16: P = {j | d(a_j, ã_i) ≤ δ}, P̄ = ∩_{j ∈ P} poiGuess(j); if P is empty, no POI is named.

    The intersection of no sets contains everything. Taken literally (``empty="everything"``) the algorithm names all POIs for a
    user it cannot guess, and counts a success.

    published (…, n, J) and known (…, k, J): at the POIs that leaked. ``delta``: an absolute distance, one number or one a
    sanitised profile (…, n), as :func:`relative_delta` makes it. ``guess`` (…, k, m): poiGuess(j) of each leaked user, by
    :func:`poi_guess`. As printed it is computed from her *sanitised* profile c̃_j, although π hides which of the published ones
    is hers. An adversary who has only the leak computes it from the true profile c_j.
    """
    one_of("empty", empty, _EMPTY_ANSWERS)
    published, known, guess = check_counts(published, "sanitised"), check_counts(known, "leaked"), np.asarray(guess, bool)
    if not published.shape[-1]:
        raise ValueError("J, the POIs that leaked, must not be empty")
    delta = np.broadcast_to(check_numbers(delta, "delta"), published.shape[:-1])
    shape, (n, k, m) = published.shape[:-2], (published.shape[-2], *guess.shape[-2:])
    if known.shape != (*shape, k, published.shape[-1]):
        raise ValueError(f"every leaked profile needs its guess (got {known.shape} profiles and {guess.shape} guesses)")
    draws = int(np.prod(shape))
    sides = [side.reshape(draws, *side.shape[-2:]) for side in (published, known, guess)]
    limit = delta.reshape(draws, n)
    predicted, candidates = np.empty((len(limit), n, m), bool), np.empty((len(limit), n), np.int64)
    block_size = max(1, MAX_DISTANCES // max(1, len(limit) * k))
    not_guessed = (~sides[2]).astype(np.float32)
    for start in range(0, n, block_size):
        block = slice(start, start + block_size)
        within_delta = l1(sides[0][:, block], sides[1]) <= limit[:, block, None]
        candidates[:, block] = within_delta.sum(axis=-1)
        predicted[:, block] = within_delta.astype(np.float32) @ not_guessed == 0
        if empty == "nothing":
            predicted[:, block] &= within_delta.any(axis=-1, keepdims=True)
    return MostVisited(predicted.reshape(*shape, n, m), candidates.reshape(*shape, n))


def random_pick_probability(predicted, true) -> np.ndarray:
    """The probability, (…, n), that one of the predicted POIs, picked at random, is a most visited one; 0 if none is predicted.

    Algorithm 16's success, "i ∈ P̄" as printed, compares a user with POIs; here it is a probability above 0. If several POIs are
    equally often visited, any of them is right. Raises ValueError for a user without a visit.
    """
    predicted, true = np.asarray(predicted, bool), np.asarray(true)
    without_visits = ~(true > 0).any(axis=-1)
    if without_visits.any():
        position = tuple(int(x) for x in np.argwhere(without_visits)[0])
        raise ValueError(
            f"a user without a visit has no most visited POI (profile {position}, one of {without_visits.sum()}): leave her out"
        )
    return (predicted & poi_guess(true)).sum(axis=-1) / np.maximum(predicted.sum(axis=-1), 1)


def noisy_argmax(published) -> np.ndarray:
    """The argmax of the sanitised profile, as a mask (…, n, m); it needs no leak."""
    return poi_guess(published)
