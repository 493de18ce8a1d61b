"""Discard inconsistent visits: Algorithm 12. Before Algorithm 11 it is the paper's "re-identification on consistent profiles".

Source: Olivier, Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§V-B.
"""

import numpy as np

from mobpriv.attacks.visits.tables import check_numbers
from mobpriv.base.ranges import whole


def inconsistencies(published, affinity, taus, numbers_of_pois) -> np.ndarray:
    """Which j with ã_ij ≠ 0 are inconsistent: Aff_jj' < τ for at least N of the j' with ã_ij' ≠ 0.

    For every τ and N: shape (number of τ, number of N, …, n, m). ``published`` (…, n, m), ``affinity`` (…, m, m). As printed,
    j' may be j itself, whose affinity is the share of users who visit it.
    """
    present = np.asarray(published) != 0
    affinity = check_numbers(affinity, "affinity")
    taus = check_numbers(taus, "tau").reshape(-1)
    min_inconsistent = np.array([whole("N", n, 1) for n in np.atleast_1d(numbers_of_pois)])
    if affinity.shape[-2:] != (present.shape[-1],) * 2:
        raise ValueError(f"affinity must be a matrix of {present.shape[-1]} × {present.shape[-1]} POIs (got {affinity.shape})")
    s = present.astype(np.float32)
    out = np.empty((len(taus), len(min_inconsistent), *present.shape), bool)
    for t, tau in enumerate(taus):
        counts = s @ np.swapaxes(affinity < tau, -1, -2).astype(np.float32)  # with how many of the others j is inconsistent
        for k, n in enumerate(min_inconsistent):
            out[t, k] = present & (counts >= n)
    return out


def consistent(published, affinity, taus, numbers_of_pois) -> np.ndarray:
    """Algorithm 12: the profiles ā_i without their inconsistencies, for every τ and N.

    Shape (number of τ, number of N, …, n, m).
    """
    published = np.asarray(published)
    return np.where(inconsistencies(published, affinity, taus, numbers_of_pois), published.dtype.type(0), published)
