"""Choices that dχ's paper leaves open: samples, crowds, mechanisms at equal utility, a statistician who debiases, settings.

Source (extended here): Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from mobpriv.attacks.visits.denoising import guess_bernoulli, max_likelihood_epsilon
from mobpriv.attacks.visits.distances import l1
from mobpriv.attacks.visits.likelihood import negative_log_likelihood
from mobpriv.attacks.visits.most_visited import noisy_argmax, random_pick_probability
from mobpriv.attacks.visits.reidentification import check_ranking_size
from mobpriv.base.estimates import Estimate, middle_of
from mobpriv.base.noise import least_p
from mobpriv.base.ranges import one_of, positive, whole
from mobpriv.experiments.dchi import (
    Days,
    Protection,
    Samples,
    SampleSetting,
    best_share,
    bisected,
    leaked,
    level,
    likeliest_rate,
    perturbed_profiles,
)
from mobpriv.experiments.dchi_attacks import worst_case_rates
from mobpriv.ground.geo import cartesian
from mobpriv.visits.affinity import affinity
from mobpriv.visits.profiles import MIN_POIS, count_profiles, day, eligible
from mobpriv.visits.statistician import corrected_visitors, mean_error, visitors_per_poi, visits_per_poi


# ----- Vary what the paper leaves open about its sample, one choice at a time, and split the variance between users and noise
class VarianceParts(NamedTuple):
    """The standard deviation over samples, and the share of the variance due to the users; the rest is due to the noise."""

    deviation: Estimate
    users: Estimate


def with_population_affinity(samples: Samples, setting: SampleSetting) -> Samples:
    """Replace the affinity of each sample's n users by that of all eligible users, on all days of the sample's layout."""
    layouts, of_row = np.unique(np.repeat(setting.layouts, setting.per_day), return_inverse=True)
    visited = setting.first + setting.second > 0
    matrices = np.stack([affinity(visited[of_row == k]) for k in range(len(layouts))])
    return samples._replace(affinity=matrices[np.searchsorted(layouts, samples.layout)])


def with_location_affinity(samples: Samples, places: np.ndarray) -> Samples:
    """Replace the users' affinity by §III-B's *location* affinity 1/(1 + d) for POIs d km apart; the paper gives no formula.

    ``places``: latitude and longitude of the POIs in each layout, (layouts, m, 2).
    """
    return samples._replace(affinity=(1 / (1 + _poi_distances(places)))[samples.layout])


def closeness(samples: Samples, places: np.ndarray) -> np.ndarray:
    """Correlate (Spearman) the distance of two POIs with the share of the one's visitors who visited the other, (draws,)."""
    m = samples.affinity.shape[-1]
    pairs = ~np.eye(m, dtype=bool)
    # a POI without visitors: 0 of 1
    visitor_share = np.maximum(np.diagonal(samples.affinity, axis1=1, axis2=2), 1 / samples.day.shape[1])
    matrices = zip(_poi_distances(places)[samples.layout], samples.affinity / visitor_share[..., None], strict=True)
    return np.array([spearmanr(distance[pairs], shared[pairs]).statistic for distance, shared in matrices])


def _poi_distances(places: np.ndarray) -> np.ndarray:
    """Return the distances between the POIs of each layout in km, (layouts, m, m)."""
    at = np.stack([cartesian(*layout.T) for layout in places])
    return np.linalg.norm(at[:, :, None] - at[:, None], axis=-1) / 1000


def _select_user_days(setting: SampleSetting, mask: np.ndarray, least: int | None = None) -> SampleSetting:
    """Keep only the user-days of the setting that ``mask`` selects."""
    days = np.repeat(np.arange(len(setting.per_day)), setting.per_day)
    sizes = np.bincount(days[mask], minlength=len(setting.per_day))
    return setting._replace(
        users=setting.users[mask],
        first=setting.first[mask],
        second=setting.second[mask],
        least=setting.least if least is None else least,
        offsets=np.r_[0, np.cumsum(sizes)],
    )


def stricter(setting: SampleSetting, least: int) -> SampleSetting:
    """Keep only the user-days with visits at ``least`` distinct POIs or more; ``least`` is at least the setting's own."""
    whole("least", least, setting.least)
    return _select_user_days(setting, (setting.first + setting.second > 0).sum(axis=1) >= least, least)


def of_day(setting: SampleSetting, day: int) -> SampleSetting:
    """Keep a single day of the setting, in each layout."""
    place = np.arange(len(setting.layouts)) - np.searchsorted(setting.layouts, setting.layouts)
    return _select_user_days(setting, np.repeat(place == whole("day", day, 0, place.max()), setting.per_day))


def pooled(setting: SampleSetting) -> SampleSetting:
    """Pool all days of a layout; each user-day counts as a user, so a user may be drawn on two of her days."""
    layouts, first = np.unique(setting.layouts, return_index=True)
    return setting._replace(offsets=np.append(setting.offsets[first], len(setting.users)), layouts=layouts)


def with_fresh_noise(samples: Samples, rng: np.random.Generator, times: int) -> Samples:
    """Repeat each sample of users ``times`` times with fresh noise; sample d is at d · times … d · times + times − 1."""
    whole("times", times, 2)
    again = type(samples)(*(np.repeat(part, times, axis=0) for part in samples))
    return again._replace(u=rng.random(again.u.shape))


def parts_of_variance(values: np.ndarray, rng: np.random.Generator, resampled: int = 1000) -> VarianceParts:
    """Split the variance of values (samples of users, times) into a part between users and a part due to the noise.

    The variance between users' means is reduced by what the noise adds to it. The intervals cover other sets of samples:
    percentiles of ``resampled`` sets of as many, drawn with replacement.
    """
    values = np.asarray(values, float)
    if values.ndim != 2 or min(values.shape) < 2:
        raise ValueError(f"values must be at least 2 draws of users, each at least twice (got {values.shape})")
    moments = values.var(axis=1, ddof=1), values.mean(axis=1)
    draws = rng.integers(len(values), size=(resampled, len(values)))
    estimates, resamples = _parts(*moments, values.shape[1]), _parts(*(moment[draws] for moment in moments), values.shape[1])
    parts = zip(estimates, map(middle_of, resamples), strict=True)
    words = "bootstrap over users, 95 %"
    return VarianceParts(*(Estimate(float(part), *map(float, ends), len(values), words) for part, ends in parts))


def _parts(within: np.ndarray, means: np.ndarray, times: int) -> tuple[np.ndarray, np.ndarray]:
    within = within.mean(axis=-1)
    between = np.maximum(0.0, means.var(axis=-1, ddof=1) - within / times)
    total = within + between
    return np.sqrt(total), np.divide(between, total, out=np.zeros_like(total), where=total > 0)


def halfway(epsilon: float) -> float:
    """Return the ε whose least p is halfway from the least p of ``epsilon`` to 1/2, which Proposition 7 allows as well."""
    p = (least_p(epsilon) + 0.5) / 2
    return float(np.log((1 - p) / p))


def worst_case_rate(
    samples: Samples, protection: Protection, epsilon: float, scenario: str = "2.2", amount: int | None = None
) -> np.ndarray:
    """Return the best re-identification rate over δ at M = 1, (draws,)."""
    return worst_case_rates(samples, protection, epsilon, [1], scenario, amount)[:, 0]


# ---------------------- Draw samples of any size, up to all users, to test whether a larger sample protects its users (§VI-A)
# A repetition is an order of all users. Its sample of size n is the first n, so a larger sample contains the smaller one with the
# same noise.
class AttackRates(NamedTuple):
    """Success rates of the attack, as shares of the attacked users."""

    top: float  # the right profile is nearer than all others
    best: tuple[float, ...]  # r(δ, M, n) at the best δ, for each M


def all_user_counts(chosen: Days, first: str, last: str, least: int = MIN_POIS) -> list[np.ndarray]:
    """Return in each layout the counts, (users, m), of all users with visits at ``least`` POIs or more between two days.

    ``first`` and ``last`` are the first and the last day. ValueError if no user qualifies.
    """
    period, counts = (day(first, chosen.zone).full[0], day(last, chosen.zone).full[1]), []
    for layout in chosen.layouts:
        calls = layout.data.calls
        calls = calls[calls["cell"].isin(layout.pois.index)]
        counts.append(eligible(count_profiles(calls, layout.pois, period).counts, least).to_numpy())
        if not len(counts[-1]):
            raise ValueError(f"from {first} to {last} no user has visits at {least} distinct POIs or more: choose other days")
    return counts


def sizes_up_to(wanted: Sequence[int], total: int) -> tuple[int, ...]:
    """Return the sizes below the number of all users, and that number."""
    return (*(n for n in wanted if n < total), total)


def crowds(
    counts: Sequence[np.ndarray], sizes: Sequence[int], rng: np.random.Generator, draws: int
) -> Iterator[dict[int, Samples]]:
    """Yield for each repetition: size -> its sample, a :class:`Samples` with one draw and all visits in the first half.

    ``counts``: one array per layout; the repetitions take the layouts in turn. ValueError for a size above the number of users
    in a layout.
    """
    whole("draws", draws, 1)
    max_size = min(map(len, counts))
    for n in sizes:
        whole("sizes", n, 2, max_size, f"must be whole numbers in 2 … {max_size}, the number of users")
    for d, child in enumerate(rng.spawn(draws)):
        layout_counts = counts[d % len(counts)]
        users, m = layout_counts.shape
        order, u, pois = child.permutation(users), child.random((users, m)), child.permutation(m)
        samples = {}
        for n in sizes:
            first, rest = layout_counts[order[:n]][None], (u[None, :n], order[None, :n], np.arange(n)[None], pois[None])
            samples[n] = Samples(first, np.zeros_like(first), affinity(first > 0), *rest, np.zeros(1, int))
        yield samples


def attack_perturbed(
    crowd: Samples, protection: Protection, perturbed: np.ndarray, max_candidates: Sequence[int], share: float = 0.5
) -> AttackRates:
    """Attack scenario 2.2 with a fixed share of leaked users: compare each of their sanitised profiles with all leaked ones.

    ``perturbed``: the published profiles, from :func:`mobpriv.experiments.dchi.perturbed_profiles`.
    """
    perturbed, true = _sides(crowd, protection, perturbed)
    known = max(1, int(share * len(true)))
    return _attack_rates(perturbed[:known], true[:known], max_candidates)


def search_leaked(
    crowd: Samples, protection: Protection, perturbed: np.ndarray, max_candidates: Sequence[int], leaked: int
) -> AttackRates:
    """Attack in the other direction: search for each leaked profile, of ``leaked`` users, among *all* sanitised ones."""
    perturbed, true = _sides(crowd, protection, perturbed)
    return _attack_rates(true[: whole("leaked", leaked, 1, len(true))], perturbed, max_candidates)


def mean_share(crowd: Samples, protection: Protection, perturbed: np.ndarray) -> float:
    """Return the mean error of f_1 or f_2 as a share of its average over the POIs."""
    statistic = visits_per_poi if protection.counts else visitors_per_poi
    true = statistic(protection.true_profiles(crowd.day))
    return float((mean_error(true, statistic(perturbed)) / true.mean(axis=-1))[0])


def _sides(crowd, protection, perturbed):
    return np.asarray(perturbed)[0].astype(np.int64), protection.true_profiles(crowd.day)[0].astype(np.int64)


def _attack_rates(rows: np.ndarray, candidates: np.ndarray, max_candidates: Sequence[int]) -> AttackRates:
    """Evaluate the attack; candidate i is the right one for row i."""
    check_ranking_size(len(rows), len(candidates))
    d = l1(rows[None], candidates[None])[0]
    true_distance = np.diagonal(d).astype(np.int64)
    beyond = {m: np.full(len(true_distance), np.iinfo(np.int64).max) for m in {1, *max_candidates}}
    beyond |= {m: np.partition(d, m, axis=-1)[:, m].astype(np.int64) for m in beyond if m < d.shape[1]}
    best = tuple(best_share(true_distance, beyond[m]) for m in max_candidates)
    return AttackRates(float((true_distance < beyond[1]).mean()), best)


# ------------------------------------ Compare mechanisms at equal utility, also against an adversary who knows the rule for χ
# Does a neighbourhood protect better than all POIs if both have the same mean error?
MIN_SEARCHED_EPSILON, _MAX_SEARCHED_EPSILON = 0.01, 30.0  # the range of ε that is searched
_BISECTION_STEPS = 14


def relative_error(samples: Samples, protection: Protection) -> Callable[[float], float]:
    """Return the function ε -> mean error of §VI-B as a share of the average of f_1 or f_2, averaged over the samples."""
    chi, true = protection.chi(samples.day, samples.affinity), protection.true_profiles(samples.day)
    statistic = visits_per_poi if protection.counts else visitors_per_poi
    true_statistic, average = statistic(true), level(samples, protection)

    def error(epsilon: float) -> float:
        perturbed = protection.mechanism(epsilon).noisy(true, chi, samples.u)
        return float((mean_error(true_statistic, statistic(perturbed)) / average).mean())

    return error


def epsilon_at(samples: Samples, protection: Protection, share: float) -> float:
    """Return the smallest ε whose mean error is at most ``share`` of the average, averaged over the samples.

    Bisection of ln ε in 0.01 … 30; the error falls as ε grows. Returns 0.01 if even that ε is within ``share``, infinity if no
    ε is.
    """
    positive("share", share)
    error = relative_error(samples, protection)
    if error(MIN_SEARCHED_EPSILON) <= share:
        return MIN_SEARCHED_EPSILON
    if error(_MAX_SEARCHED_EPSILON) > share:
        return np.inf
    return bisected(lambda epsilon: error(epsilon) > share, MIN_SEARCHED_EPSILON, _MAX_SEARCHED_EPSILON, _BISECTION_STEPS)


def likelihood_scores(samples: Samples, protection: Protection, epsilon: float, believed: float | None = None) -> np.ndarray:
    """Return −ln P(ã_i | a_j) in scenario 2.2, (draws, attacked, leaked); infinite if a_j cannot become ã_i.

    ``believed``: the ε that the adversary assumes.
    """
    leak = leaked(samples, protection, perturbed_profiles(samples, protection, epsilon), "2.2")
    known = leak.known.astype(np.int64)
    mechanism = protection.mechanism(epsilon if believed is None else believed)
    return negative_log_likelihood(mechanism, leak.published, known, protection.chi(known, samples.affinity))


def by_support(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of possible leaked profiles and the chance that a random one of them is the user's own, (draws,) each."""
    possible = np.isfinite(scores).sum(axis=-1)
    return possible.mean(axis=-1), (1 / possible).mean(axis=-1)


# ---------------- A statistician who debiases the noisy profiles; the paper's statistician uses the raw values (§II-C, §VI-B)
# For N(b, n) the statistician needs only n_j, the number of users whose χ contains POI j, because all visited POIs of a user are
# in her χ. Arrays have the sample first; ε and p may be one number, or one per sample.
_WAYS = ("plain", "corrected", "cut", "panel", "as all", "as visited")


def unbiased_coefficients(epsilon) -> tuple[np.ndarray, np.ndarray]:
    """Return (A, r) of g(k) = k + A r^k, the unbiased estimate of a count c ≥ 0 from k = max(0, [c + Laplace(1/ε)]).

    The noise is rounded to nearest. It is a mixture of a point at 0, with negative weight, and a two-sided geometric law. The inverse of this law
    is a second difference. r^k solves the remaining equation, and A makes the expectation at c = 0 vanish. Hence E g(c̃) = c
    for every c, which a test checks.
    """
    x = np.exp(-np.asarray(epsilon, float) / 2)
    q = x * x
    a = -((1 - x) ** 2) / (2 * x)  # weight at 0; the geometric law has 1 − a
    half = (a * (1 + q * q) + (1 - a) * (1 - q) ** 2) / (2 * a * q)  # (r + 1/r)/2, below −1
    r = half + np.sqrt(half * half - 1)
    side = (1 - q) / (1 + q) * (1 - a)  # probability of k ≠ 0 is side · q^|k|
    # at c = 0: Σ_{k≤0} P(k) g(0) + Σ_{k≥1} P(k) g(k) = 0
    zero = (1 - x / 2) + side * q * r / (1 - q * r)
    return -side * q / (1 - q) ** 2 / zero, r


def unbiased_counts(perturbed: np.ndarray, epsilon) -> np.ndarray:
    """Return g(c̃) for each count, (draws, users, m); ε is one number, or one per sample."""
    perturbed = np.asarray(perturbed, np.int64)
    a, r = (np.reshape(part, (-1, 1)) for part in unbiased_coefficients(epsilon))
    k = np.arange(perturbed.max(initial=0) + 1)
    table = k + a * r**k  # most counts are small: a table is short
    if len(table) == 1:
        return table[0][perturbed]
    return np.stack([estimates[sample] for estimates, sample in zip(table, perturbed, strict=True)])


def corrected_visits(perturbed: np.ndarray, epsilon, holding: np.ndarray) -> np.ndarray:
    """Return the unbiased estimate of f_2(j): Σ_i g(c̃_ij) without the g(0) of users with j outside χ_i, who publish a true 0."""
    outside = perturbed.shape[-2] - holding
    return unbiased_counts(perturbed, epsilon).sum(axis=-2) - outside * np.reshape(unbiased_coefficients(epsilon)[0], (-1, 1))


def error_share(
    samples: Samples, protection: Protection, epsilons: Sequence[float], way: str = "plain", panel: int | None = None
) -> np.ndarray:
    """Return the mean error of §VI-B as a share of the average, (draws, ε), for one ``way`` of estimating:

    * ``plain``: the published values.
    * ``corrected``: the unbiased estimate, with ε and n_j known.
    * ``cut``: the unbiased estimate, clamped to the possible range.
    * ``panel``: like ``cut``, with ε̃ learned from the first ``panel`` users, who disclosed their true profiles and χ.
    * ``as all``: like ``corrected``, assuming that χ is all POIs.
    * ``as visited``: assumes that χ is the visited POIs, Σ_i b̃_ij/(1 − p), and needs no knowledge of χ.
    """
    one_of("way", way, _WAYS)
    invertible = (protection.law, protection.rounding, protection.scale) == ("laplace", "nearest", "calibrated")
    if protection.counts and way != "plain" and (way == "as visited" or not invertible):
        raise ValueError("counts are corrected for calibrated Laplace noise, rounded to the nearest, and not as visited")
    true, chi = protection.true_profiles(samples.day), protection.chi(samples.day, samples.affinity)
    n = true.shape[-2]
    statistic = visits_per_poi if protection.counts else visitors_per_poi
    holding = chi.sum(axis=-2) if way != "as all" else np.full(chi.shape[::2], n)
    if way == "panel":
        panel_users = samples.user_order[:, : whole("panel", panel, 1, n), None]
    errors = []
    for epsilon in epsilons:
        perturbed = protection.mechanism(epsilon).noisy(true, chi, samples.u)
        believed = np.full(len(perturbed), float(epsilon))
        if way == "panel":
            sides = [np.take_along_axis(side, panel_users, axis=1) for side in (perturbed, true, chi)]
            believed = (
                max_likelihood_epsilon(*sides, pooled=True) if protection.counts else guess_bernoulli(*sides, pooled=True)
            )
        elif not protection.counts:
            believed = least_p(believed)
        if way == "plain":
            estimate = statistic(perturbed)
        elif way == "as visited":
            estimate = statistic(perturbed) / (1 - believed[:, None])
        else:
            estimate = _corrected(perturbed, believed, holding, protection.counts)
        if way in ("cut", "panel"):
            estimate = np.clip(estimate, 0, None if protection.counts else n)
        errors.append(mean_error(statistic(true), estimate) / level(samples, protection))
    return np.stack(errors, axis=-1)


def _corrected(perturbed, believed, holding, counts: bool) -> np.ndarray:
    """Debias the values; use the raw ones if ε̃ is infinite (no noise) or if p̃ ≥ 1/2 or ε̃ = 0 (nothing but noise)."""
    no_estimate = ~((believed > 0) & np.isfinite(believed)) if counts else believed >= 0.5
    safe = np.where(no_estimate, 1.0 if counts else 0.0, believed)
    estimate = corrected_visits(perturbed, safe, holding) if counts else corrected_visitors(perturbed, safe, holding)
    return np.where(no_estimate[:, None], perturbed.sum(axis=-2), estimate)


def sufficient_epsilon(epsilons: Sequence[float], errors: np.ndarray, limit: float) -> float:
    """Return the ε from which the mean of ``errors`` (draws, ε) is at most ``limit``, interpolated in ln ε.

    The smallest ε computed if its mean already is; infinity if that of the largest is not.
    """
    mean = np.asarray(errors, float).mean(axis=0)
    above = np.flatnonzero(mean > limit)
    if not len(above):
        return float(epsilons[0])
    k = above[-1]
    if k == len(mean) - 1:
        return np.inf
    fraction = (mean[k] - limit) / (mean[k] - mean[k + 1])
    return float(np.exp(np.log(epsilons[k]) + fraction * np.log(epsilons[k + 1] / epsilons[k])))


# ------------ Find settings that are both useful and safe: mean error and best attack of every ε and χ, over the same samples
CHIS = ("all", *(f"N{n}" for n in range(1, 11)), *(f"F{n}" for n in range(1, 11)))


class ErrorAndRisk(NamedTuple):
    """The error of a χ and the success of the attacks at each ε, arrays (draws, ε)."""

    plain: np.ndarray  # mean error of the published values, as a share of the average
    corrected: np.ndarray  # of the unbiased estimate, ε and n_j known; booleans with N(b, n): or as if χ were the visited POIs
    nearest: np.ndarray  # share re-identified by the nearest profile, scenario 2.2
    likeliest: np.ndarray
    place: np.ndarray  # share of users whose most visited POI is the argmax of the counts; 0 for booleans

    @property
    def best_way(self) -> np.ndarray:
        """The error of a statistician who knows which of the two estimates has the smaller mean error at this ε."""
        return np.where(self.corrected.mean(axis=0) < self.plain.mean(axis=0), self.corrected, self.plain)

    @property
    def reidentified(self) -> np.ndarray:
        return np.maximum(self.nearest, self.likeliest)

    @property
    def risk(self) -> np.ndarray:
        """The best attack in each sample: "the worst case should be considered" (§VI-C)."""
        return np.maximum(self.reidentified, self.place)


def error_and_risk(samples: Samples, protection: Protection, epsilons: Sequence[float]) -> ErrorAndRisk:
    counts, true = samples.day, protection.true_profiles(samples.day)
    chi, average = protection.chi(counts, samples.affinity), level(samples, protection)
    holding = chi.sum(axis=-2)
    statistic = visits_per_poi if protection.counts else visitors_per_poi
    rows = []
    for epsilon in epsilons:
        mechanism = protection.mechanism(epsilon)
        perturbed = mechanism.noisy(true, chi, samples.u)
        if protection.counts:
            ways = [corrected_visits(perturbed, epsilon, holding)]
            place = random_pick_probability(noisy_argmax(perturbed), counts).mean(axis=-1)
        else:
            p = least_p(epsilon)
            ways = [corrected_visitors(perturbed, p, holding)] + (
                [statistic(perturbed) / (1 - p)] if protection.neighbours is not None else []
            )
            place = np.zeros(len(perturbed))
        errors = [mean_error(statistic(true), way) / average for way in (statistic(perturbed), *ways)]
        leak = leaked(samples, protection, perturbed, "2.2")
        leaked_chi = np.take_along_axis(chi, leak.users[:, :, None], axis=1)
        attacks = [
            likeliest_rate(l1(leak.published, leak.known).astype(float)),
            likeliest_rate(negative_log_likelihood(mechanism, leak.published, leak.known.astype(np.int64), leaked_chi)),
        ]
        rows.append((errors[0], min(errors[1:], key=lambda error: error.mean()), *attacks, place))
    return ErrorAndRisk(*(np.stack(column, axis=-1) for column in zip(*rows, strict=True)))


def within_limit(estimate: Estimate, limit: float) -> bool:
    """Return whether 95 % of the samples are within the limit: compares the upper end of the band, not the mean."""
    return bool(estimate.high <= limit)
