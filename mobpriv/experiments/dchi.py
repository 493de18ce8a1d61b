"""Compute the figures of §VI over many samples.

Each function returns an array whose first axis is the sample; :func:`band` turns it into a curve with its band.

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§VI.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.attacks.visits import denoising
from mobpriv.attacks.visits.distances import l1
from mobpriv.attacks.visits.inconsistencies import consistent
from mobpriv.attacks.visits.likelihood import unlikeliness
from mobpriv.attacks.visits.most_visited import most_visited, picked_rightly, poi_guess, read_off, relative
from mobpriv.attacks.visits.reidentification import fits, guesses, reidentification_rate
from mobpriv.base.estimates import Estimate, middle_of, over_draws
from mobpriv.base.ranges import one_of, true_or_false, whole
from mobpriv.experiments.dchi_samples import Protection, Samples, leaked, published
from mobpriv.mechanisms.visits.laplace_counts import SCALES
from mobpriv.metrics.audits import count_telling
from mobpriv.visits.affinity import Neighbourhood
from mobpriv.visits.statistician import corrected_visitors, mean_error, visitors, visits

BOOLEANS, COUNTS = Protection(counts=False), Protection(counts=True)
NEAR_BOOLEANS, NEAR_COUNTS = BOOLEANS._replace(neighbours=5), COUNTS._replace(neighbours=5)
EPSILONS = (0.1, 0.2, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 10)
"""Values of ε for the figures over ε: the paper's own (0.1, 1, 2, 3, 4, 6, 7) and others between and beyond."""
ANCHORS = (0.1, 1, 2, 3, 4, 5, 6, 7)  # the values at which claims are tested
ESTIMATORS = ("unbiased", "printed", "likeliest")
ADVERSARIES = ("profileGuess", "likelihood")
TIE = 1e-9


class Row(NamedTuple):
    """A row of the table of §VI-E."""

    scenario: str
    neighbours: int | None
    epsilon: float
    printed: float  # r̃(0.3, 100)


TABLE = (
    Row("1", None, 6.0, 0.76),
    Row("1", 5, 3.0, 0.70),
    Row("2.1", None, 4.0, 0.99),
    Row("2.1", 5, 2.0, 0.95),
    Row("2.2", None, 2.0, 1.0),
    Row("2.2", 3, 1.0, 0.85),
)


class Band(NamedTuple):
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def protection(chi: str, counts: bool = False, **options) -> Protection:
    """Return a mechanism by its χ: "all" POIs, "N5" for N(b, 5) as printed, "F5" for five additional, unvisited POIs."""
    if chi == "all":
        return Protection(counts, **options)
    if chi[:1] not in ("N", "F") or not chi[1:].isdecimal():
        raise ValueError(f'chi must be "all", or N or F and a number of POIs, as "N5" (got {chi!r})')
    return Protection(counts, int(chi[1:]), {"N": "printed", "F": "further"}[chi[0]], **options)


def over(name: str, at: Sequence, values: np.ndarray) -> dict[str, Estimate]:
    """Name the results of a family: ``name`` and each of ``at``, with the repetitions of ``values`` (draws, len(at)) there."""
    return {f"{name}.{x}": over_draws(values[:, k]) for k, x in enumerate(at)}


def band(values: np.ndarray, level: float = 0.9) -> Band:
    """Return the mean over samples and the ends of the middle ``level`` of them; infinite values count as such."""
    return Band(np.mean(values, axis=0), *middle_of(values, level))


def level(samples: Samples, protection: Protection) -> np.ndarray:
    """Return the reference of the mean error (§VI-B): the average of f_1 or of f_2 over the POIs, (draws,)."""
    of = visits(samples.day) if protection.counts else visitors(samples.day > 0)
    return of.mean(axis=-1)


def unique(profiles: np.ndarray) -> np.ndarray:
    """Return for each sample the share of the profiles (draws, n, m) that are unique, (draws,)."""
    found = []
    for one in profiles:
        _, whose, how_many = np.unique(one, axis=0, return_inverse=True, return_counts=True)
        found.append((how_many[np.ravel(whose)] == 1).mean())
    return np.array(found)


def telling(samples: Samples, protection: Protection, epsilon: float = 1.0) -> dict[str, np.ndarray]:
    """Measure in each sample what χ = N(b, n) reveals by itself, see :func:`mobpriv.metrics.audits.count_telling`.

    * ``users``: the share of users with a neighbouring profile that some output of theirs excludes.
    * ``neighbours``: the mean share of such neighbours among m.
    * ``probability``: the mean over users of their largest probability of such an output.
    """
    draws, n, m = samples.day.shape
    users, pois = (pd.RangeIndex(size) for size in (n, m))
    found = {name: np.empty(draws) for name in ("users", "neighbours", "probability")}
    for k, matrix in enumerate(samples.affinity):
        chi = Neighbourhood(protection.neighbours, matrix, protection.reading, protection.ties)
        of = count_telling(replace(protection.at(epsilon), chi=chi), pd.DataFrame(samples.day[k], users, pois))
        found["users"][k], found["neighbours"][k] = (of["neighbours"] > 0).mean(), of["neighbours"].mean() / m
        found["probability"][k] = of["probability"].mean()
    return found


def error(samples: Samples, protection: Protection, epsilons: Sequence[float], corrected: bool = False) -> np.ndarray:
    """Figures 4 to 7: return the mean error of f_1 (visitors) or f_2 (visits, a sum) for each ε, (draws, ε).

    ``corrected``: debias booleans with the unbiased estimate of f_1; the statistician knows how many users have each POI in
    χ_i.
    """
    true_or_false("corrected", corrected)
    if corrected and protection.counts:
        raise ValueError("corrected is for booleans: the estimate of visits is not corrected")
    true, found = protection.of(samples.day), []
    chi = protection.chi(samples.day, samples.affinity)
    of = visits if protection.counts else visitors
    for epsilon in epsilons:
        mechanism = protection.at(epsilon)
        said = mechanism.noisy(true, chi, samples.u)
        found.append(
            mean_error(of(true), corrected_visitors(said, mechanism.flip, chi.sum(axis=-2)) if corrected else of(said))
        )
    return np.stack(found, axis=-1)


def surface(
    samples: Samples,
    protection: Protection,
    epsilon: float,
    deltas: Sequence[float],
    most: Sequence[int],
    scenario: str = "2.2",
    amount: int | None = None,
) -> np.ndarray:
    """Figures 8 to 12: return the re-identification rate r(δ, M, n) of Algorithm 11, (draws, δ, M)."""
    leak = leaked(samples, protection, published(samples, protection, epsilon, scenario), scenario, amount)
    return reidentification_rate(guesses(leak.published, leak.known, deltas), most)


def without_inconsistencies(
    samples: Samples,
    protection: Protection,
    epsilon: float,
    taus: Sequence[float],
    number: int = 8,  # N
    delta: float = 2.0,
    most: int = 2,  # M
    scenario: str = "2.2",
) -> np.ndarray:
    """Figure 13: return r̄(δ, M, n, τ, N) of Algorithms 12 and 11, (draws, τ); τ = 0 discards nothing: Algorithm 11 alone."""
    said = published(samples, protection, epsilon, scenario)
    found = []
    for tau in taus:
        kept = consistent(said, samples.affinity, [tau], [number])[0, 0]
        leak = leaked(samples, protection, kept, scenario)
        found.append(reidentification_rate(guesses(leak.published, leak.known, [delta]), [most])[..., 0, 0])
    return np.stack(found, axis=-1)


def estimated_epsilon(
    samples: Samples,
    protection: Protection,
    epsilons: Sequence[float],
    estimator: str = "unbiased",
    scenario: str = "2.2",
    pooled: bool = False,
    chi_known: bool = False,
) -> np.ndarray:
    """Estimate ε with Algorithms 13 and 14 or by maximum likelihood: ε̃ of every leaked user, (draws, ε, users).

    * ``pooled``: one ε̃ of all leaked users, (draws, ε).
    * ``chi_known``: the adversary uses only the POIs in χ_i. The paper does not mention this, so by default he uses all that
      leaked.

    The maximum-likelihood ε̃ uses the mechanism's own rounding and scale, and is for Laplace noise only.
    """
    one_of("estimator", estimator, ESTIMATORS)
    if protection.counts and estimator == "likeliest" and protection.law != "laplace":
        raise ValueError(
            f"the likeliest ε is that of Laplace noise, not of {protection.law}: take the unbiased or printed estimator"
        )
    chi, found = protection.chi(samples.period(scenario), samples.affinity), []
    for epsilon in epsilons:
        leak = leaked(samples, protection, published(samples, protection, epsilon, scenario), scenario)
        mask = chi[np.arange(len(chi))[:, None, None], leak.users[:, :, None], leak.pois[:, None, :]] if chi_known else None
        sides = (leak.published, leak.known, mask)
        if not protection.counts:
            form = "printed" if estimator == "printed" else "unbiased"
            found.append(denoising.epsilon_of(denoising.guess_bernoulli(*sides, form, pooled)))
        elif estimator == "likeliest":
            found.append(SCALES[protection.scale] * denoising.likeliest_epsilon(*sides, protection.rounding, pooled))
        else:
            found.append(denoising.guess_laplacian(*sides, estimator, pooled))
    return np.stack(found, axis=1)


def epsilon_error(samples: Samples, protection: Protection, epsilons: Sequence[float], **how) -> np.ndarray:
    """Figure 14: return the relative error |ε̃ − ε|/ε, arguments and shape of :func:`estimated_epsilon`; infinite if ε̃ is."""
    found = estimated_epsilon(samples, protection, epsilons, **how)
    true = np.reshape(np.asarray(epsilons, float), (1, -1) + (1,) * (found.ndim - 2))
    return np.abs(found - true) / true


def most_visited_rate(
    samples: Samples,
    protection: Protection,
    epsilon: float,
    scenario: str,
    delta: float = 0.3,
    absolute: bool = False,
    guess: str = "sanitised",
    empty: str = "nothing",
    others: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """The table of §VI-E: return r̃(δ, n) of Algorithm 16 and the number of users it is a share of, each (draws,).

    * δ is a share of the true |c_i|₁ at the leaked POIs, or ``absolute``. The share favours an adversary who does not know it
      (scenarios 1 and 2.2).
    * ``guess``: poiGuess(j) is the argmax of the ``sanitised`` profile, as printed, or of the ``leaked`` one.
    * ``empty``: the answer if no profile is near enough, see :func:`most_visited`.
    * ``others=False``: only the user's own profile leaked.

    Users without a call in the published period have no most visited POI and are left out (scenario 1).
    """
    one_of("guess", guess, ("sanitised", "leaked"))
    counts = samples.period(scenario)
    said = published(samples, protection, epsilon, scenario)
    leak = leaked(samples, protection, said, scenario)
    draws = np.arange(len(counts))[:, None, None]
    own = counts[draws, leak.users[:, :, None], leak.pois[:, None, :]]  # true counts of the published period at the leaked POIs
    whole_own, whole_said = counts[draws[:, :, 0], leak.users], said[draws[:, :, 0], leak.users]
    if guess == "sanitised":
        of = poi_guess(whole_said, protection.chi(counts, samples.affinity)[draws[:, :, 0], leak.users])
    else:
        of = np.zeros(whole_said.shape, bool)
        np.put_along_axis(of, np.broadcast_to(leak.pois[:, None, :], leak.known.shape), poi_guess(leak.known), axis=-1)
    limit = np.full(own.shape[:2], float(delta)) if absolute else relative(delta, own)
    sides = (leak.published, leak.known, limit, of)
    if not others:  # each user is a sample of her own
        sides = (side.reshape(-1, 1, *side.shape[2:]) for side in sides)
    named = most_visited(*sides, empty).named.reshape(of.shape)
    there = whole_own.any(axis=-1)
    right = (named & poi_guess(whole_own)).any(axis=-1) & there
    return right.sum(axis=-1) / there.sum(axis=-1), there.sum(axis=-1)


def read_off_rate(samples: Samples, protection: Protection, epsilon: float, scenario: str = "2.2") -> np.ndarray:
    """Return how often a random argmax of the sanitised counts is a most visited POI, without a leak, (draws,)."""
    counts = samples.period(scenario)
    there = counts.any(axis=-1)
    right = picked_rightly(read_off(published(samples, protection, epsilon, scenario)), np.where(there[..., None], counts, 1))
    return np.where(there, right, 0).sum(axis=-1) / there.sum(axis=-1)


def nearest_rate(
    samples: Samples, protection: Protection, epsilon: float, adversary: str, scenario: str = "2.2", amount: int | None = None
) -> np.ndarray:
    """Return how often the nearest or likeliest leaked profile is the user's own (top-1; ties against the adversary), (draws,).

    * ``profileGuess`` takes the nearest profile; no (δ, M) of Algorithm 11 does better at M = 1.
    * ``likelihood`` takes the likeliest profile, with ε and the rule for χ known.

    ``likelihood`` is undefined in scenario 1, whose true profiles are of another period. It is undefined for N(b, n) in 2.1,
    where a candidate's neighbourhood is unknown.
    """
    one_of("adversary", adversary, ADVERSARIES)
    leak = leaked(samples, protection, published(samples, protection, epsilon, scenario), scenario, amount)
    fits(leak.published.shape[0] * leak.published.shape[1], leak.known.shape[1])
    if adversary == "profileGuess":
        d = l1(leak.published, leak.known).astype(float)
    else:
        if scenario == "1" or (scenario == "2.1" and protection.neighbours is not None):
            raise ValueError("the likelihood needs true profiles of the published period, and with N(b, n) of all POIs")
        known = leak.known.astype(np.int64)
        d = unlikeliness(
            protection.at(epsilon),
            leak.published,
            known,
            protection.chi(known, samples.affinity) if scenario == "2.2" else np.ones(known.shape, bool),
        )
    own = np.diagonal(d, axis1=1, axis2=2)
    return ((d <= own[..., None] + TIE).sum(axis=-1) == 1).mean(axis=-1)


def side_information(
    samples: Samples, protection: Protection, epsilon: float, users: Sequence[int], pois: Sequence[int], most: int = 1
) -> np.ndarray:
    """Beyond the paper, its open question: return the best r(δ, M, n) over δ if so many users leak at so many POIs.

    Shape: (draws, users, POIs).
    """
    said = published(samples, protection, epsilon, "2.2")
    pois = [whole("pois", some, 1, said.shape[-1], f"must be whole numbers in 1 … {said.shape[-1]}") for some in pois]
    found = np.empty((len(said), len(users), len(pois)))
    for a, count in enumerate(users):
        whole_ones = leaked(samples, protection, said, "2.2", count)
        for b, some in enumerate(pois):
            at = np.broadcast_to(np.sort(samples.poi_order[:, :some], axis=1)[:, None, :], (*whole_ones.known.shape[:2], some))
            sides = (np.take_along_axis(side, at, axis=-1) for side in (whole_ones.published, whole_ones.known))
            found[:, a, b] = best_rate(*sides, most)
    return found


def best_rate(said: np.ndarray, known: np.ndarray, most: int = 1) -> np.ndarray:
    """Return max over δ of r(δ, M, n), (draws,).

    §VI-C: "the attacker's strategy is not known a priori, the worst case should be considered".
    """
    return best_rates(said, known, [most])[:, 0]


def best_rates(said: np.ndarray, known: np.ndarray, most: Sequence[int]) -> np.ndarray:
    """Return max over δ of r(δ, M, n) for each sample and M, (draws, M), also for large samples.

    Profiles (draws, n, J); row i of both belongs to one user. User i is a success from her own distance up to the distance of
    the (M+1)-th nearest profile. The most intervals that share a δ are counted along the sorted ends, one sample at a time, to
    save memory.
    """
    most = [whole("most", m, 1) for m in most]
    n, k = said.shape[1], known.shape[1]
    fits(n, k)
    found = np.empty((len(said), len(most)))
    far = np.iinfo(np.int64).max
    for d in range(len(said)):
        apart = l1(said[d : d + 1], known[d : d + 1])[0]
        own = np.diagonal(apart).astype(np.int64)
        nearest = np.partition(apart, [m for m in most if m < k], axis=-1) if min(most) < k else apart
        for at, m in enumerate(most):
            beyond = nearest[:, m].astype(np.int64) if m < k else np.full(n, far)
            found[d, at] = at_best(own, beyond)
    return found


def at_best(own: np.ndarray, beyond: np.ndarray) -> float:
    """Return the largest share of users who succeed at one δ; user i succeeds for δ from ``own`` to below ``beyond``."""
    there = own < beyond
    starts, ends = np.sort(own[there]), np.sort(beyond[there])
    inside = np.searchsorted(starts, starts, side="right") - np.searchsorted(ends, starts, side="right")
    return float(inside.max(initial=0) / len(own))
