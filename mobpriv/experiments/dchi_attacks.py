"""What the adversary of dχ's §V and §VI knows, estimates and chooses. Arrays have the sample first.

Source (extended here): Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mobpriv.attacks.visits.denoising import confident_delta, guess_bernoulli
from mobpriv.attacks.visits.distances import l1
from mobpriv.attacks.visits.inconsistencies import consistent, inconsistencies
from mobpriv.attacks.visits.reidentification import guesses, reidentification_rate
from mobpriv.base.noise import laplace, least_p
from mobpriv.base.ranges import one_of, positive, whole
from mobpriv.experiments.dchi import (
    BOOLEANS,
    Leaked,
    Protection,
    Samples,
    best_rate,
    best_rates,
    bisected,
    error,
    leaked,
    perturbed_profiles,
)
from mobpriv.visits.statistician import visitors_per_poi


# ------------------------------------------- Measure how well the adversary estimates the noise
# * How rounding and clamping change Algorithm 14 (Figure 14).
# * How well the binomial rule of §V-C chooses the δ of Algorithm 11.
def limit(epsilon) -> np.ndarray:
    """Return the limit of Algorithm 14's ε̃ for large counts: 2 sinh(ε/2).

    Laplace noise rounded to the nearest integer is k ≠ 0 with probability e^(−ε|k|) sinh(ε/2). Its mean size is 1/(2
    sinh(ε/2)), not 1/ε.
    """
    return 2 * np.sinh(np.asarray(epsilon, float) / 2)


def estimate_ratio(samples: Samples, epsilons: Sequence[float], rounded: bool = True, clamped: bool = True) -> np.ndarray:
    """Return ε̃/ε of Algorithm 14 (without √2), leaked users pooled, (draws, ε), with or without rounding and clamping."""
    counts, noise = samples.day.astype(float), laplace(samples.u)
    ratios = []
    for epsilon in epsilons:
        perturbed = counts + noise / epsilon
        perturbed = np.floor(perturbed + 0.5) if rounded else perturbed
        perturbed = np.maximum(perturbed, 0) if clamped else perturbed
        leak = leaked(samples, BOOLEANS._replace(counts=True), perturbed, "2.2")
        ratios.append(1 / (np.abs(leak.published - leak.known).mean(axis=(1, 2)) * epsilon))
    return np.stack(ratios, axis=-1)


def estimated_p(samples: Samples, epsilon: float, users: int) -> np.ndarray:
    """Return p̃ of Algorithm 13 from the first ``users`` leaked users, pooled, (draws,); χ = all POIs."""
    leak = leaked(samples, BOOLEANS, perturbed_profiles(samples, BOOLEANS, epsilon), "2.2", users)
    return guess_bernoulli(leak.published, leak.known, pooled=True)


def covered(samples: Samples, epsilon: float, confidence: float, users: int | None = None, left: int = 50) -> np.ndarray:
    """Return whether d(b_i, b̃_i) ≤ δ of the binomial rule, for the last ``left`` users in leaking order, (draws, left).

    ``users``: the adversary learns p from so many other users; None: he knows p.
    """
    draws, n, m = samples.u.shape
    whole("left", left, 1, n - (users or 0), "must leave the users aside from whom p is learnt")
    p = np.full(draws, least_p(epsilon)) if users is None else estimated_p(samples, epsilon, users)
    true = samples.day > 0
    distance = (perturbed_profiles(samples, BOOLEANS, epsilon) != true).sum(axis=-1)
    distance = np.take_along_axis(distance, samples.user_order[:, n - left :], axis=1)
    return distance <= confident_delta(p, m, confidence)[:, None]


def by_rule(
    samples: Samples, epsilon: float, confidences: Sequence[float], max_candidates: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return r(δ, M, n) of Algorithm 11 with the binomial rule's δ, (draws, confidences), and with each sample's best δ."""
    leak = leaked(samples, BOOLEANS, perturbed_profiles(samples, BOOLEANS, epsilon), "2.2")
    deltas = [float(confident_delta(least_p(epsilon), leak.known.shape[-1], confidence)) for confidence in confidences]
    rates = reidentification_rate(guesses(leak.published, leak.known, deltas), [max_candidates])[..., 0]
    return rates, best_rate(leak.published, leak.known, max_candidates)


# ------------------------------ Count wrong names too, which the paper's r(δ, M, n) does not, if the adversary knows some users
def naming_precision(samples: Samples, protection: Protection, epsilon: float, users: int, pois: int) -> np.ndarray:
    """Return the share of right names among the sanitised profiles to which Algorithm 11 gives exactly one name, (draws,).

    * ``users`` users leaked at ``pois`` POIs; *all* n sanitised profiles are attacked, at M = 1.
    * δ is the smallest one that names most leaked users correctly.
    * A profile whose owner did not leak can only get a wrong name.

    The share is 0 if no profile gets a name.
    """
    perturbed = perturbed_profiles(samples, protection, epsilon, "2.2")
    whole("pois", pois, 1, perturbed.shape[-1])
    leak = leaked(samples, protection, perturbed, "2.2", users)
    precision = np.empty(len(perturbed))
    for draw in range(len(perturbed)):
        columns = np.sort(samples.poi_order[draw, :pois])
        d = l1(perturbed[draw : draw + 1][..., columns], leak.known[draw : draw + 1][..., columns])[0]
        true_distance = d[leak.users[draw], np.arange(users)]
        deltas = np.unique(true_distance)
        single_match = np.stack([(d <= delta).sum(axis=-1) == 1 for delta in deltas])  # (δ, n): is there exactly one name?
        right = single_match[:, leak.users[draw]] & (true_distance <= deltas[:, None])
        best = right.sum(axis=-1).argmax()
        precision[draw] = right[best].sum() / max(1, single_match[best].sum())
    return precision


def smallest_sufficient(amounts, rates: np.ndarray, least: float = 0.5) -> float:
    """Return the smallest amount with a mean rate of at least ``least``, rates (draws, amounts); infinity if none."""
    enough = np.flatnonzero(np.asarray(rates).mean(axis=0) >= least)
    return float(amounts[enough[0]]) if len(enough) else np.inf


# ---- Compare partial with whole profiles: which POIs leak, and which users have the same partial profile (Figures 11 and 12)
WHICH = ("drawn", "most visited", "least visited")


def reorder_pois(samples: Samples, which: str) -> Samples:
    """Reorder the POIs that leak first: ``drawn`` as they are, or by the most or the fewest visitors of the sample.

    POIs with equal numbers of visitors keep the order in which they were drawn.
    """
    if one_of("which", which, WHICH) == "drawn":
        return samples
    visitors = np.take_along_axis(visitors_per_poi(samples.day > 0), samples.poi_order, axis=1)
    order = np.argsort(-visitors if which == "most visited" else visitors, axis=1, kind="stable")
    return samples._replace(poi_order=np.take_along_axis(samples.poi_order, order, axis=1))


def twins(known: np.ndarray) -> np.ndarray:
    """Return the share of users whose true profile another user has as well, (draws,): known (draws, n, J)."""
    whole("users", known.shape[1], 2)
    return ((l1(known, known) == 0).sum(axis=-1) > 1).mean(axis=-1)


# ----------------------------------------------------------------- The adversary's choices in Algorithm 11, over many samples
# * The worst case over δ, which the paper asks for (§VI-C).
# * The rate if δ must be chosen without the sample's true profiles.
_HALVINGS = 40
_SEARCH_RANGE = (1e-3, 20.0)  # the range of ε that is searched


def perturb_and_leak(
    samples: Samples, protection: Protection, epsilon: float, scenario: str = "2.2", amount: int | None = None
) -> Leaked:
    """Return what the adversary knows in each sample."""
    return leaked(samples, protection, perturbed_profiles(samples, protection, epsilon, scenario), scenario, amount)


def worst_case_rates(
    samples: Samples,
    protection: Protection,
    epsilon: float,
    max_candidates: Sequence[int],
    scenario: str = "2.2",
    amount: int | None = None,
) -> np.ndarray:
    """Return the best rate over δ, (draws, M): "the worst case should be considered" (§VI-C)."""
    leak = perturb_and_leak(samples, protection, epsilon, scenario, amount)
    return best_rates(leak.published, leak.known, max_candidates)


def mean_distances(
    samples: Samples, protection: Protection, epsilon: float, scenario: str = "2.2"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances of ã_i to a_i and to the nearest other leaked profile: means over the users, each (draws,)."""
    leak = perturb_and_leak(samples, protection, epsilon, scenario)
    d = l1(leak.published, leak.known).astype(float)
    true_distance = np.diagonal(d, axis1=1, axis2=2)
    nearest_other = np.where(np.eye(d.shape[1], d.shape[2], dtype=bool), np.inf, d).min(axis=-1)
    return true_distance.mean(axis=-1), nearest_other.mean(axis=-1)


def chosen_elsewhere(rates: np.ndarray) -> np.ndarray:
    """Return each sample's rate at the δ that is best on average in all other samples, (draws,); ``rates`` (draws, δ)."""
    if len(rates) < 2:
        raise ValueError("a δ chosen on other draws needs at least two draws")
    others = rates.sum(axis=0) - rates
    return rates[np.arange(len(rates)), others.argmax(axis=1)]


def epsilon_of_error(samples: Samples, protection: Protection, target: float) -> float:
    """Return the ε at which the mean of :func:`mobpriv.experiments.dchi.error` over the samples is ``target``, by bisection.

    ValueError if the target is outside the errors at the ends of ``_SEARCH_RANGE``.
    """
    positive("target", target, "of the mean error")
    at_ends = error(samples, protection, _SEARCH_RANGE).mean(axis=0)
    if not at_ends[1] <= target <= at_ends[0]:
        raise ValueError(f"target must be an error that some ε has, {at_ends[1]:.4g} … {at_ends[0]:.4g} (got {target:.4g})")
    return bisected(lambda epsilon: error(samples, protection, [epsilon]).mean() > target, *_SEARCH_RANGE, _HALVINGS)


# ------------------------------------------------------------ Discard inconsistencies (Figure 13) over the grid of (τ, N)
# Everything is in scenario 2.2, for booleans, with the sample first.
class Tags(NamedTuple):
    """Numbers of POIs of the attacked profiles, arrays (draws, τ); those without τ (draws,)."""

    invented: np.ndarray  # published though never visited
    true: np.ndarray  # published and visited
    invented_tagged: np.ndarray
    true_tagged: np.ndarray


def rate_at_delta(perturbed: np.ndarray, known: np.ndarray, delta: float, max_candidates: int) -> np.ndarray:
    """Return r(δ, M, n) of Algorithm 11, (draws,)."""
    return reidentification_rate(guesses(perturbed, known, [delta]), [max_candidates])[..., 0, 0]


def grid(
    leak: Leaked,
    affinity: np.ndarray,
    taus: Sequence[float],
    numbers: Sequence[int],
    delta: float = 2.0,
    max_candidates: int = 2,
) -> np.ndarray:
    """Return r̄(δ, M, n, τ, N) of Algorithms 12 and 11 for every (τ, N), (draws, τ, N)."""
    kept = consistent(leak.published, affinity, taus, numbers)
    rates = [
        [rate_at_delta(kept[t, k], leak.known, delta, max_candidates) for k in range(len(numbers))] for t in range(len(taus))
    ]
    return np.moveaxis(np.array(rates), -1, 0)


def oracle_profiles(leak: Leaked) -> np.ndarray:
    """Remove exactly the invented POIs from the published profiles: the best that Algorithm 12 could do."""
    return leak.published & leak.known


def tags(leak: Leaked, affinity: np.ndarray, taus: Sequence[float], number: int = 8) -> Tags:
    """Count the POIs that Algorithm 12 marks as inconsistent, rightly and wrongly."""
    tagged = inconsistencies(leak.published, affinity, taus, [number])[:, 0]
    groups = [leak.published & ~leak.known, leak.published & leak.known]
    counts = [group.sum(axis=(-2, -1)) for group in groups]
    return Tags(*counts, *((tagged & group).sum(axis=(-2, -1)).T for group in groups))


def chosen_on_other_half(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each sample the value of the choice that is best on average in the other half of the samples, and that choice.

    ``values``: (draws, choices). An adversary cannot choose by the sample he attacks, because he does not know whether he was
    right.
    """
    values = np.asarray(values, float)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(f"a choice is made on other draws: two draws or more by choices (got shape {values.shape})")
    half = np.arange(len(values)) % 2
    best = np.array([values[half != this_half].mean(axis=0).argmax() for this_half in (0, 1)])[half]
    return values[np.arange(len(values)), best], best


def with_best_delta(
    leak: Leaked, affinity: np.ndarray, taus: Sequence[float], numbers: Sequence[int], max_candidates: int = 2
) -> np.ndarray:
    """Return the same as :func:`grid` at the best δ of each sample, (draws, τ, N)."""
    kept = consistent(leak.published, affinity, taus, numbers)
    rates = [[best_rate(kept[t, k], leak.known, max_candidates) for k in range(len(numbers))] for t in range(len(taus))]
    return np.moveaxis(np.array(rates), -1, 0)
