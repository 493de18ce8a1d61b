"""The statistician who corrects for the noise, beyond Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for
randomized sanitization mechanisms*: theirs takes sanitised profiles for true ones (§II-C, §VI-B).

Of N(b, n) he need not know whose χ holds a POI j, only how many do, n_j: nobody has visited a POI outside of her χ.
Arrays have the draw first; ε and p may be one number, or one a draw.
"""

from collections.abc import Sequence

import numpy as np

from mobpriv.attacks.profiles.denoising import guess_bernoulli, likeliest_epsilon
from mobpriv.experiments.dchi import level
from mobpriv.experiments.dchi_samples import Protection, Samples
from mobpriv.noise import least_p
from mobpriv.ranges import one_of, whole
from mobpriv.statistician import corrected_visitors, mean_error, visitors, visits

WAYS = ("plain", "corrected", "cut", "panel", "as all", "as visited")


def steps(epsilon) -> tuple[np.ndarray, np.ndarray]:
    """(A, r): g(k) = k + A r^k is the unbiased estimate of a count c ≥ 0 that max(0, [c + Laplace(1/ε)]), to the nearest, turned into k.

    The law of the rounded noise is a point at 0, of negative weight, and a two-sided geometric one; its inverse is a second difference, of
    which r^k solves what is left, and A makes the expectation at c = 0 vanish. So E g(c̃) = c for every c: see the test.
    """
    x = np.exp(-np.asarray(epsilon, float) / 2)
    q = x * x
    a = -((1 - x) ** 2) / (2 * x)  # weight at 0 beside that of the geometric law, 1 − a
    half = (a * (1 + q * q) + (1 - a) * (1 - q) ** 2) / (2 * a * q)  # (r + 1/r)/2, below −1
    r = half + np.sqrt(half * half - 1)
    side = (1 - q) / (1 + q) * (1 - a)  # probability of k ≠ 0 is side · q^|k|
    # at c = 0: Σ_{k≤0} P(k) g(0) + Σ_{k≥1} P(k) g(k) = 0
    zero = (1 - x / 2) + side * q * r / (1 - q * r)
    return -side * q / (1 - q) ** 2 / zero, r


def unbiased(said: np.ndarray, epsilon) -> np.ndarray:
    """g(c̃) for each count, (draws, users, m); ε is one number, or one a draw."""
    said = np.asarray(said, np.int64)
    a, r = (np.reshape(part, (-1, 1)) for part in steps(epsilon))
    k = np.arange(said.max(initial=0) + 1)
    table = k + a * r**k  # few counts are many
    return table[0][said] if len(table) == 1 else np.stack([of[each] for of, each in zip(table, said, strict=True)])


def corrected_visits(said: np.ndarray, epsilon, holding: np.ndarray) -> np.ndarray:
    """The unbiased estimate of f_2(j), Σ_i g(c̃_ij) without what g says of those who have j outside of χ_i, and publish a true 0."""
    outside = said.shape[-2] - holding
    return unbiased(said, epsilon).sum(axis=-2) - outside * np.reshape(steps(epsilon)[0], (-1, 1))


def share(
    samples: Samples, protection: Protection, epsilons: Sequence[float], way: str = "plain", panel: int | None = None
) -> np.ndarray:
    """The mean error of §VI-B as a share of the average, (draws, ε), for a statistician who does so:

    ``plain``: takes what is published; ``corrected``: by the unbiased estimate, knowing ε and n_j; ``cut``: and cuts it to what is possible;
    ``panel``: the same with ε̃ learnt from the first ``panel`` users, who showed him their true profiles and χ; ``as all``: as corrected,
    but takes χ for all POIs; ``as visited``: takes χ for the visited POIs alone, of which he need know nothing: Σ_i b̃_ij/(1 − p).
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
    """Where the panel says that there is no noise (infinite ε̃), or nothing but noise (p̃ ≥ 1/2, ε̃ = 0), what is published is taken."""
    nothing = ~((believed > 0) & np.isfinite(believed)) if counts else believed >= 0.5
    safe = np.where(nothing, 1.0 if counts else 0.0, believed)
    guess = corrected_visits(said, safe, holding) if counts else corrected_visitors(said, safe, holding)
    return np.where(nothing[:, None], said.sum(axis=-2), guess)


def enough(epsilons: Sequence[float], errors: np.ndarray, limit: float) -> float:
    """From which ε on the mean of ``errors`` (draws, ε) is at most ``limit``, interpolated in ln ε between those computed.

    The smallest of them where that one is already; infinite where the largest is not.
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
