"""Mechanisms at equal utility, and who knows how χ was made, beyond Olivier and Quertier, *Towards an in-depth understanding of privacy
parameters for randomized sanitization mechanisms*: whether a neighbourhood protects better than all POIs is asked where both mislead
the statistician alike.
"""

from collections.abc import Callable

import numpy as np

from mobpriv.attacks.profiles.likelihood import unlikeliness
from mobpriv.experiments.dchi import TIE, level
from mobpriv.experiments.dchi_samples import Protection, Samples, leaked, published
from mobpriv.ranges import positive
from mobpriv.statistician import mean_error, visitors, visits

LEAST, LARGEST = 0.01, 30.0  # the ε that are looked at
STEPS = 14


def relative_error(samples: Samples, protection: Protection) -> Callable[[float], float]:
    """ε -> the mean error of §VI-B as a share of the average of f_1 or f_2, on average over the draws."""
    chi, true, average = protection.chi(samples.day, samples.affinity), protection.of(samples.day), level(samples, protection)
    of = visits if protection.counts else visitors
    said = of(true)

    def error(epsilon: float) -> float:
        return float((mean_error(said, of(protection.at(epsilon).noisy(true, chi, samples.u))) / average).mean())

    return error


def epsilon_at(samples: Samples, protection: Protection, share: float) -> float:
    """The ε at which the mean error is ``share`` of the average, on average over the draws: the smallest admissible one.

    Found by bisection of ln ε in 0.01 … 30, for the error falls as ε grows. 0.01 where even that ε keeps within ``share``, infinite where
    no ε does.
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
    """−ln P(ã_i | a_j) of the leaked profiles in scenario 2.2, (draws, attacked, leaked); infinite where a_j cannot have become ã_i.

    ``believed``: the ε that the adversary takes it for.
    """
    leak = leaked(samples, protection, published(samples, protection, epsilon), "2.2")
    known = leak.known.astype(np.int64)
    mechanism = protection.at(epsilon if believed is None else believed)
    return unlikeliness(mechanism, leak.published, known, protection.chi(known, samples.affinity))


def likeliest(unlikely: np.ndarray) -> np.ndarray:
    """How often one's own profile is the likeliest of all, ties against the adversary, (draws,)."""
    own = np.diagonal(unlikely, axis1=1, axis2=2)
    return ((unlikely <= own[..., None] + TIE).sum(axis=-1) == 1).mean(axis=-1)


def by_support(unlikely: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many leaked profiles are possible at all, and how often one of them, picked at random, is one's own, (draws,) each."""
    possible = np.isfinite(unlikely).sum(axis=-1)
    return possible.mean(axis=-1), (1 / possible).mean(axis=-1)
