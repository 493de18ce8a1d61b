"""The statistician of §II-C: visitors and visits of each POI (Examples 3 and 4), and the error of sanitised profiles (§VI-B).

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*.

Profiles are arrays (…, users, m) or tables; results have the shape (…, m), a mean error (…).
"""

import numpy as np

from mobpriv.base.ranges import true_or_false


def visitors_per_poi(booleans) -> np.ndarray:
    """Number of visitors of POI j, f_1(j) = Σ_i b_ij (Example 3)."""
    return np.asarray(booleans).sum(axis=-2)


def visits_per_poi(counts, average: bool = False) -> np.ndarray:
    """Number of visits to POI j, f_2(j) = Σ_i c_ij (Example 4).

    Departures from the paper: Example 4 divides by n (``average=True``). However, "the average number of visits on a POI, which
    is 98" for n = 100 users is a sum. As an average per user and POI it would mean 2842 visits per user and day.
    """
    true_or_false("average", average)
    total = np.asarray(counts).sum(axis=-2)
    return total / np.shape(counts)[-2] if average else total


def mean_error(true, published) -> np.ndarray:
    """Mean error 1/m Σ_j |f(j) on true profiles − f(j) on sanitised ones| of §VI-B; the arguments are the f, shape (…, m)."""
    return np.abs(np.asarray(true, float) - np.asarray(published, float)).mean(axis=-1)


def corrected_visitors(published, p, holding=None) -> np.ndarray:
    """The unbiased estimate of f_1; beyond the paper, whose statistician uses the sanitised profiles directly.

    It is (Σ_i b̃_ij − n_j p)/(1 − 2p), for published (…, users, m) and ``p`` as one number or (…). ``holding`` (…, m) is n_j,
    the number of users with j in χ_i, by default all. For N(b_i, n_i) the statistician needs only this number, not the users: a
    POI outside of a user's χ is unvisited and published as 0. No estimate exists for p = 1/2.
    """
    b, p = np.asarray(published, float), np.asarray(p, float)
    if not ((p >= 0) & (p <= 1)).all() or (p == 0.5).any():
        wrong = p[~((p >= 0) & (p <= 1)) | (p == 0.5)].flat[0]
        raise ValueError(
            f"p must lie in [0, 1] and not be 1/2, where the sanitised profiles carry no information (got {wrong})"
        )
    holding = b.shape[-2] if holding is None else np.asarray(holding)
    return (b.sum(axis=-2) - holding * p[..., None]) / (1 - 2 * p[..., None])
