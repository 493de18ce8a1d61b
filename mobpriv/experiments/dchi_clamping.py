"""Measure how clamping at 0 changes the number of visits.

The paper takes the maximum with 0 "to provide consistent results for counts" (§III-C).

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mobpriv.base.noise import geometric, laplace
from mobpriv.experiments.dchi_samples import Protection, Samples, published
from mobpriv.visits.statistician import mean_error, visits


class Added(NamedTuple):
    """Visits that the mechanism adds, summed over users and averaged over POIs, arrays (draws,); negative if it removes visits."""

    visited: np.ndarray  # where the true count is above 0
    others: np.ndarray  # where it is 0


def unclamped(samples: Samples, protection: Protection, epsilon: float) -> np.ndarray:
    """Return [c_ij + d_ij] without the maximum, (draws, n, m): whole numbers, also negative, with the mechanism's own noise.

    The result is as private as the mechanism's: clamping is post-processing, which the adversary could do himself.
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
    """Return the mean error of f_2 from counts that are not clamped, (draws, ε)."""
    true = visits(samples.day)
    return np.stack([mean_error(true, visits(unclamped(samples, protection, e))) for e in epsilons], axis=-1)


def added(samples: Samples, protection: Protection, epsilon: float) -> Added:
    """Return the visits added at visited and at unvisited POIs; their sum over the POIs is the bias of f_2."""
    c = samples.day
    apart = published(samples, protection, epsilon) - c
    return Added(*(np.where(at, apart, 0).sum(axis=(1, 2)) / c.shape[-1] for at in (c > 0, c == 0)))


def moved(samples: Samples, protection: Protection, epsilon: float) -> np.ndarray:
    """Return the mechanism's mean change of a positive count in χ, as a share of the average of these counts, (draws,)."""
    c = samples.day
    there = (c > 0) & protection.chi(c, samples.affinity)
    apart = np.abs(published(samples, protection, epsilon) - c)
    return np.where(there, apart, 0).sum(axis=(1, 2)) / np.where(there, c, 0).sum(axis=(1, 2))
