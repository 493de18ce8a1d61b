"""Measure how well the adversary estimates the noise. Arrays have the sample first.

* How rounding and clamping change Algorithm 14 (Figure 14).
* How well the binomial rule of §V-C chooses the δ of Algorithm 11.

Source (extended here): Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized
sanitization mechanisms*.
"""

from collections.abc import Sequence

import numpy as np

from mobpriv.attacks.visits.denoising import confident_delta, guess_bernoulli
from mobpriv.attacks.visits.reidentification import guesses, reidentification_rate
from mobpriv.base.noise import laplace, least_p
from mobpriv.base.ranges import whole
from mobpriv.experiments.dchi import BOOLEANS, best_rate
from mobpriv.experiments.dchi_samples import Samples, leaked, published


def limit(epsilon) -> np.ndarray:
    """Return the limit of Algorithm 14's ε̃ for large counts: 2 sinh(ε/2).

    Laplace noise rounded to the nearest integer is k ≠ 0 with probability e^(−ε|k|) sinh(ε/2). Its mean size is 1/(2
    sinh(ε/2)), not 1/ε.
    """
    return 2 * np.sinh(np.asarray(epsilon, float) / 2)


def ratio(samples: Samples, epsilons: Sequence[float], rounded: bool = True, clamped: bool = True) -> np.ndarray:
    """Return ε̃/ε of Algorithm 14 (without √2), leaked users pooled, (draws, ε), with or without rounding and clamping."""
    counts, noise = samples.day.astype(float), laplace(samples.u)
    found = []
    for epsilon in epsilons:
        said = counts + noise / epsilon
        said = np.floor(said + 0.5) if rounded else said
        said = np.maximum(said, 0) if clamped else said
        leak = leaked(samples, BOOLEANS._replace(counts=True), said, "2.2")
        found.append(1 / (np.abs(leak.published - leak.known).mean(axis=(1, 2)) * epsilon))
    return np.stack(found, axis=-1)


def estimated_p(samples: Samples, epsilon: float, users: int) -> np.ndarray:
    """Return p̃ of Algorithm 13 from the first ``users`` leaked users, pooled, (draws,); χ = all POIs."""
    leak = leaked(samples, BOOLEANS, published(samples, BOOLEANS, epsilon), "2.2", users)
    return guess_bernoulli(leak.published, leak.known, pooled=True)


def covered(samples: Samples, epsilon: float, confidence: float, users: int | None = None, left: int = 50) -> np.ndarray:
    """Return whether d(b_i, b̃_i) ≤ δ of the binomial rule, for the last ``left`` users in leaking order, (draws, left).

    ``users``: the adversary learns p from so many other users; None: he knows p.
    """
    draws, n, m = samples.u.shape
    whole("left", left, 1, n - (users or 0), "must leave the users aside from whom p is learnt")
    p = np.full(draws, least_p(epsilon)) if users is None else estimated_p(samples, epsilon, users)
    true = samples.day > 0
    apart = (published(samples, BOOLEANS, epsilon) != true).sum(axis=-1)
    apart = np.take_along_axis(apart, samples.user_order[:, n - left :], axis=1)
    return apart <= confident_delta(p, m, confidence)[:, None]


def by_rule(samples: Samples, epsilon: float, confidences: Sequence[float], most: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return r(δ, M, n) of Algorithm 11 with the binomial rule's δ, (draws, confidences), and with each sample's best δ."""
    leak = leaked(samples, BOOLEANS, published(samples, BOOLEANS, epsilon), "2.2")
    deltas = [float(confident_delta(least_p(epsilon), leak.known.shape[-1], confidence)) for confidence in confidences]
    rates = reidentification_rate(guesses(leak.published, leak.known, deltas), [most])[..., 0]
    return rates, best_rate(leak.published, leak.known, most)
