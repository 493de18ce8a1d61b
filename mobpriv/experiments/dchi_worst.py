"""The adversary's choices in Algorithm 11, over many samples.

* The worst case over δ, which the paper asks for (§VI-C).
* The rate if δ must be chosen without the sample's true profiles.

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§VI-C.
"""

from collections.abc import Sequence

import numpy as np

from mobpriv.attacks.visits.distances import l1
from mobpriv.base.ranges import positive
from mobpriv.experiments.dchi import best_rates, error
from mobpriv.experiments.dchi_samples import Leaked, Protection, Samples, leaked, published

HALVINGS = 40
WIDEST = (1e-3, 20.0)  # the range of ε that is searched


def held(samples: Samples, protection: Protection, epsilon: float, scenario: str = "2.2", amount: int | None = None) -> Leaked:
    """Return what the adversary knows in each sample."""
    return leaked(samples, protection, published(samples, protection, epsilon, scenario), scenario, amount)


def worst(
    samples: Samples,
    protection: Protection,
    epsilon: float,
    most: Sequence[int],
    scenario: str = "2.2",
    amount: int | None = None,
) -> np.ndarray:
    """Return the best rate over δ, (draws, M): "the worst case should be considered" (§VI-C)."""
    leak = held(samples, protection, epsilon, scenario, amount)
    return best_rates(leak.published, leak.known, most)


def distances(samples: Samples, protection: Protection, epsilon: float, scenario: str = "2.2") -> tuple[np.ndarray, np.ndarray]:
    """Return the distances of ã_i to a_i and to the nearest other leaked profile: means over the users, each (draws,)."""
    leak = held(samples, protection, epsilon, scenario)
    d = l1(leak.published, leak.known).astype(float)
    own = np.diagonal(d, axis1=1, axis2=2)
    others = np.where(np.eye(d.shape[1], d.shape[2], dtype=bool), np.inf, d).min(axis=-1)
    return own.mean(axis=-1), others.mean(axis=-1)


def chosen_elsewhere(rates: np.ndarray) -> np.ndarray:
    """Return each sample's rate at the δ that is best on average in all other samples, (draws,); ``rates`` (draws, δ)."""
    if len(rates) < 2:
        raise ValueError("a δ chosen on other draws needs at least two draws")
    others = rates.sum(axis=0) - rates
    return rates[np.arange(len(rates)), others.argmax(axis=1)]


def epsilon_of_error(samples: Samples, protection: Protection, target: float) -> float:
    """Return the ε at which the mean of :func:`mobpriv.experiments.dchi.error` over the samples is ``target``, by bisection.

    ValueError if the target is outside the errors at the ends of ``WIDEST``.
    """
    positive("target", target, "of the mean error")
    low, high = np.log(WIDEST)
    at_ends = error(samples, protection, WIDEST).mean(axis=0)
    if not at_ends[1] <= target <= at_ends[0]:
        raise ValueError(f"target must be an error that some ε has, {at_ends[1]:.4g} … {at_ends[0]:.4g} (got {target:.4g})")
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if error(samples, protection, [np.exp(middle)]).mean() > target:
            low = middle
        else:
            high = middle
    return float(np.exp(high))
