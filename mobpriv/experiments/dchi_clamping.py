"""What clamping at 0 does to the number of visits, beside the figures of Olivier and Quertier, *Towards an in-depth understanding of privacy
parameters for randomized sanitization mechanisms*: they take the maximum with 0 "to provide consistent results for counts" (§III-C).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mobpriv.experiments.dchi_samples import Protection, Samples, published
from mobpriv.noise import geometric, laplace
from mobpriv.statistician import mean_error, visits


class Added(NamedTuple):
    """Visits that the mechanism adds, summed over the users and averaged over the POIs, arrays (draws,); below 0 it takes some away."""

    visited: np.ndarray  # where the true count is above 0
    others: np.ndarray  # where it is 0


def unclamped(samples: Samples, protection: Protection, epsilon: float) -> np.ndarray:
    """[c_ij + d_ij] without the maximum, (draws, n, m): whole numbers, also negative ones, of the same noise as the mechanism's.

    As private as the mechanism: clamping is done to what is published, and costs the adversary nothing that he could not do himself.
    """
    if not protection.counts:
        raise ValueError("booleans are not clamped: take counts")
    c, mechanism = samples.day, protection.at(epsilon)
    if protection.law == "geometric":
        d = geometric(samples.u, epsilon)
    else:
        d = np.floor(laplace(samples.u) / mechanism.rate + (0.5 if protection.rounding == "nearest" else 0.0)).astype(np.int64)
    return c + np.where(protection.chi(c, samples.affinity), d, 0)


def unclamped_error(samples: Samples, protection: Protection, epsilons: Sequence[float]) -> np.ndarray:
    """The mean error of f_2 from counts that are not clamped, (draws, ε)."""
    true = visits(samples.day)
    return np.stack([mean_error(true, visits(unclamped(samples, protection, e))) for e in epsilons], axis=-1)


def added(samples: Samples, protection: Protection, epsilon: float) -> Added:
    """Which visits are added where somebody was, and where nobody was: their sum over the POIs is the bias of f_2."""
    c = samples.day
    apart = published(samples, protection, epsilon) - c
    return Added(*(np.where(at, apart, 0).sum(axis=(1, 2)) / c.shape[-1] for at in (c > 0, c == 0)))


def moved(samples: Samples, protection: Protection, epsilon: float) -> np.ndarray:
    """By how much the mechanism changes a count above 0 that is in χ, as a share of the average of these counts, (draws,)."""
    c = samples.day
    there = (c > 0) & protection.chi(c, samples.affinity)
    apart = np.abs(published(samples, protection, epsilon) - c)
    return np.where(there, apart, 0).sum(axis=(1, 2)) / np.where(there, c, 0).sum(axis=(1, 2))
