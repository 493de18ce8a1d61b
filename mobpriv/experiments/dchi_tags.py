"""Discard inconsistencies (Figure 13) over the whole grid of (τ, N), with the precision of Algorithm 12 and its ideal version.

Everything is in scenario 2.2, for booleans, with the sample first.

Source (extended here): Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized
sanitization mechanisms*.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mobpriv.attacks.visits.inconsistencies import consistent, inconsistencies
from mobpriv.attacks.visits.reidentification import guesses, reidentification_rate
from mobpriv.experiments.dchi import best_rate
from mobpriv.experiments.dchi_samples import Leaked, Protection, Samples, leaked, published


class Tags(NamedTuple):
    """Numbers of POIs of the attacked profiles, arrays (draws, τ); those without τ (draws,)."""

    invented: np.ndarray  # published though never visited
    true: np.ndarray  # published and visited
    invented_tagged: np.ndarray
    true_tagged: np.ndarray


def attacked(samples: Samples, protection: Protection, epsilon: float) -> Leaked:
    return leaked(samples, protection, published(samples, protection, epsilon), "2.2")


def rate(said: np.ndarray, known: np.ndarray, delta: float, most: int) -> np.ndarray:
    """Return r(δ, M, n) of Algorithm 11, (draws,)."""
    return reidentification_rate(guesses(said, known, [delta]), [most])[..., 0, 0]


def grid(
    leak: Leaked, affinity: np.ndarray, taus: Sequence[float], numbers: Sequence[int], delta: float = 2.0, most: int = 2
) -> np.ndarray:
    """Return r̄(δ, M, n, τ, N) of Algorithms 12 and 11 for every (τ, N), (draws, τ, N)."""
    kept = consistent(leak.published, affinity, taus, numbers)
    rates = [[rate(kept[t, k], leak.known, delta, most) for k in range(len(numbers))] for t in range(len(taus))]
    return np.moveaxis(np.array(rates), -1, 0)


def perfect(leak: Leaked) -> np.ndarray:
    """Remove exactly the invented POIs from the published profiles: the best that Algorithm 12 could do."""
    return leak.published & leak.known


def tags(leak: Leaked, affinity: np.ndarray, taus: Sequence[float], number: int = 8) -> Tags:
    """Count the POIs that Algorithm 12 marks as inconsistent, rightly and wrongly."""
    named = inconsistencies(leak.published, affinity, taus, [number])[:, 0]
    of = [leak.published & ~leak.known, leak.published & leak.known]
    counts = [each.sum(axis=(-2, -1)) for each in of]
    return Tags(*counts, *((named & each).sum(axis=(-2, -1)).T for each in of))


def chosen_elsewhere(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each sample the value of the choice that is best on average in the other half of the samples, and that choice.

    ``values``: (draws, choices). An adversary cannot choose by the sample he attacks, because he does not know whether he was
    right.
    """
    values = np.asarray(values, float)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(f"a choice is made on other draws: two draws or more by choices (got shape {values.shape})")
    half = np.arange(len(values)) % 2
    best = np.array([values[half != own].mean(axis=0).argmax() for own in (0, 1)])[half]
    return values[np.arange(len(values)), best], best


def with_best_delta(
    leak: Leaked, affinity: np.ndarray, taus: Sequence[float], numbers: Sequence[int], most: int = 2
) -> np.ndarray:
    """Return the same as :func:`grid` at the best δ of each sample, (draws, τ, N)."""
    kept = consistent(leak.published, affinity, taus, numbers)
    rates = [[best_rate(kept[t, k], leak.known, most) for k in range(len(numbers))] for t in range(len(taus))]
    return np.moveaxis(np.array(rates), -1, 0)
