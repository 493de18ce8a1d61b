"""A statistician who debiases the noisy profiles; the paper's statistician uses the raw values (§II-C, §VI-B).

For N(b, n) the statistician needs only n_j, the number of users whose χ contains POI j, because all visited POIs of a user are
in her χ. Arrays have the sample first; ε and p may be one number, or one per sample.

Source (extended here): Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized
sanitization mechanisms*.
"""

from collections.abc import Sequence

import numpy as np

from mobpriv.attacks.visits.denoising import guess_bernoulli, likeliest_epsilon
from mobpriv.base.noise import least_p
from mobpriv.base.ranges import one_of, whole
from mobpriv.experiments.dchi import level
from mobpriv.experiments.dchi_samples import Protection, Samples
from mobpriv.visits.statistician import corrected_visitors, mean_error, visitors, visits

WAYS = ("plain", "corrected", "cut", "panel", "as all", "as visited")


def steps(epsilon) -> tuple[np.ndarray, np.ndarray]:
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


def unbiased(said: np.ndarray, epsilon) -> np.ndarray:
    """Return g(c̃) for each count, (draws, users, m); ε is one number, or one per sample."""
    said = np.asarray(said, np.int64)
    a, r = (np.reshape(part, (-1, 1)) for part in steps(epsilon))
    k = np.arange(said.max(initial=0) + 1)
    table = k + a * r**k  # most counts are small: a table is short
    return table[0][said] if len(table) == 1 else np.stack([of[each] for of, each in zip(table, said, strict=True)])


def corrected_visits(said: np.ndarray, epsilon, holding: np.ndarray) -> np.ndarray:
    """Return the unbiased estimate of f_2(j): Σ_i g(c̃_ij) without the g(0) of users with j outside χ_i, who publish a true 0."""
    outside = said.shape[-2] - holding
    return unbiased(said, epsilon).sum(axis=-2) - outside * np.reshape(steps(epsilon)[0], (-1, 1))


def share(
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
    one_of("way", way, WAYS)
    if protection.counts and (
        way == "as visited"
        or protection.law != "laplace"
        or protection.rounding != "nearest"
        or protection.scale != "calibrated"
    ):
        raise ValueError("counts are corrected for calibrated Laplace noise, rounded to the nearest, and not as visited")
    true, chi = protection.of(samples.day), protection.chi(samples.day, samples.affinity)
    n = true.shape[-2]
    of = visits if protection.counts else visitors
    holding = chi.sum(axis=-2) if way != "as all" else np.full(chi.shape[::2], n)
    if way == "panel":
        first = samples.user_order[:, : whole("panel", panel, 1, n), None]
    found = []
    for epsilon in epsilons:
        said = protection.at(epsilon).noisy(true, chi, samples.u)
        believed = np.full(len(said), float(epsilon))
        if way == "panel":
            sides = [np.take_along_axis(side, first, axis=1) for side in (said, true, chi)]
            believed = likeliest_epsilon(*sides, pooled=True) if protection.counts else guess_bernoulli(*sides, pooled=True)
        elif not protection.counts:
            believed = least_p(believed)
        if way == "plain":
            guess = of(said)
        elif way == "as visited":
            guess = of(said) / (1 - believed[:, None])
        else:
            guess = _corrected(said, believed, holding, protection.counts)
        if way in ("cut", "panel"):
            guess = np.clip(guess, 0, None if protection.counts else n)
        found.append(mean_error(of(true), guess) / level(samples, protection))
    return np.stack(found, axis=-1)


def _corrected(said, believed, holding, counts: bool) -> np.ndarray:
    """Debias the values; use the raw ones if ε̃ is infinite (no noise) or if p̃ ≥ 1/2 or ε̃ = 0 (nothing but noise)."""
    nothing = ~((believed > 0) & np.isfinite(believed)) if counts else believed >= 0.5
    safe = np.where(nothing, 1.0 if counts else 0.0, believed)
    guess = corrected_visits(said, safe, holding) if counts else corrected_visitors(said, safe, holding)
    return np.where(nothing[:, None], said.sum(axis=-2), guess)


def enough(epsilons: Sequence[float], errors: np.ndarray, limit: float) -> float:
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
    part = (mean[k] - limit) / (mean[k] - mean[k + 1])
    return float(np.exp(np.log(epsilons[k]) + part * np.log(epsilons[k + 1] / epsilons[k])))
