"""Compare mechanisms at equal utility, also against an adversary who knows the rule for χ.

Does a neighbourhood protect better than all POIs if both have the same mean error?

Source (extended here): Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized
sanitization mechanisms*.
"""

from collections.abc import Callable

import numpy as np

from mobpriv.attacks.visits.likelihood import unlikeliness
from mobpriv.base.ranges import positive
from mobpriv.experiments.dchi import TIE, level
from mobpriv.experiments.dchi_samples import Protection, Samples, leaked, published
from mobpriv.visits.statistician import mean_error, visitors, visits

LEAST, LARGEST = 0.01, 30.0  # the range of ε that is searched
STEPS = 14


def relative_error(samples: Samples, protection: Protection) -> Callable[[float], float]:
    """Return the function ε -> mean error of §VI-B as a share of the average of f_1 or f_2, averaged over the samples."""
    chi, true, average = protection.chi(samples.day, samples.affinity), protection.of(samples.day), level(samples, protection)
    of = visits if protection.counts else visitors
    said = of(true)

    def error(epsilon: float) -> float:
        return float((mean_error(said, of(protection.at(epsilon).noisy(true, chi, samples.u))) / average).mean())

    return error


def epsilon_at(samples: Samples, protection: Protection, share: float) -> float:
    """Return the smallest ε whose mean error is at most ``share`` of the average, averaged over the samples.

    Bisection of ln ε in 0.01 … 30; the error falls as ε grows. Returns 0.01 if even that ε is within ``share``, infinity if no
    ε is.
    """
    positive("share", share)
    error = relative_error(samples, protection)
    if error(LEAST) <= share:
        return LEAST
    if error(LARGEST) > share:
        return np.inf
    low, high = np.log(LEAST), np.log(LARGEST)
    for _ in range(STEPS):
        middle = (low + high) / 2
        if error(np.exp(middle)) > share:
            low = middle
        else:
            high = middle
    return float(np.exp(high))


def scores(samples: Samples, protection: Protection, epsilon: float, believed: float | None = None) -> np.ndarray:
    """Return −ln P(ã_i | a_j) in scenario 2.2, (draws, attacked, leaked); infinite if a_j cannot become ã_i.

    ``believed``: the ε that the adversary assumes.
    """
    leak = leaked(samples, protection, published(samples, protection, epsilon), "2.2")
    known = leak.known.astype(np.int64)
    mechanism = protection.at(epsilon if believed is None else believed)
    return unlikeliness(mechanism, leak.published, known, protection.chi(known, samples.affinity))


def likeliest(unlikely: np.ndarray) -> np.ndarray:
    """Return how often a user's own profile is the likeliest of all (ties against the adversary), (draws,)."""
    own = np.diagonal(unlikely, axis1=1, axis2=2)
    return ((unlikely <= own[..., None] + TIE).sum(axis=-1) == 1).mean(axis=-1)


def by_support(unlikely: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of possible leaked profiles and the chance that a random one of them is the user's own, (draws,) each."""
    possible = np.isfinite(unlikely).sum(axis=-1)
    return possible.mean(axis=-1), (1 / possible).mean(axis=-1)
