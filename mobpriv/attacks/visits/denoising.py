"""Estimators of the noise: Algorithms 13 and 14 and the binomial rule for δ.

Source: Olivier, Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§V-C.

Arrays: published and known (…, users, J), the sanitised and the true profiles at the POIs J that leaked. ``chi`` is a mask of
the same shape, if the adversary knows χ_i; without it all of J counts as part of χ_i. Estimates are one a user. ``pooled=True``
pools the users of each (…), who have one ε.
"""

import numpy as np

from mobpriv.attacks.visits.tables import check_numbers
from mobpriv.base.noise import ROUNDING_RULES
from mobpriv.base.ranges import between, one_of, true_or_false

_FORMS = ("unbiased", "printed")
_GOLDEN_RATIO = (np.sqrt(5) - 1) / 2
_EPSILON_RANGE = (1e-4, 60.0)  # search range of the maximum-likelihood ε; at an end it is 0 or infinite


def guess_bernoulli(published, known, chi=None, form: str = "unbiased", pooled: bool = False) -> np.ndarray:
    """Algorithm 13: p̃_i = α_i, α_i = 1/|J| Σ_{j∈J} |b̃_ij − b_ij|, which is also the maximum-likelihood estimate.

    ``form="printed"`` divides α_i by |J| a second time, as the algorithm says: too small by the factor |J|. Without ``chi`` the
    estimate is right only if J ⊂ χ_i. Otherwise the POIs outside χ_i, which never flip, lower it by the factor |χ_i ∩ J| / |J|.
    """
    one_of("form", form, _FORMS)
    distance, size = _sums(published, known, chi, pooled)
    alpha = distance / size
    return alpha / size if form == "printed" else alpha


def epsilon_of(p) -> np.ndarray:
    """ε̃ = ln((1 − p)/p), the ε for which p is the least admissible one: infinite for p = 0, negative for p > 1/2."""
    with np.errstate(divide="ignore"):
        return np.log1p(-np.asarray(p, float)) - np.log(p)


def guess_laplacian(published, known, chi=None, form: str = "unbiased", pooled: bool = False) -> np.ndarray:
    """Algorithm 14: ε̃_i with 1/ε̃_i = 1/|J| Σ_{j∈J} |c̃_ij − c_ij|, for E|Laplace(1/ε)| = 1/ε; infinite if nothing differs.

    ``form="printed"`` has the algorithm's 1/√2 before the sum: ε̃ too large by √2. The estimate is unbiased only for noise that
    is neither rounded nor clamped. Both make |c̃ − c| smaller on average, and ε̃ too large; :func:`max_likelihood_epsilon` accounts
    for both.
    """
    one_of("form", form, _FORMS)
    distance, size = _sums(published, known, chi, pooled)
    with np.errstate(divide="ignore"):
        return (np.sqrt(2) if form == "printed" else 1.0) * size / distance


def max_likelihood_epsilon(published, known, chi=None, rounding: str = "nearest", pooled: bool = False) -> np.ndarray:
    """The maximum-likelihood ε̃_i of max(0, [c + Laplace(1/ε)]), given the true counts; infinite if no noise (ε = ∞) fits best.

    The log-likelihood is concave in ε, so golden-section search finds its maximum, to seven digits. It is a sum over few kinds
    of coordinates: how many are unchanged, at 0 and above; how many changed, and by how much in all
    (:func:`mobpriv.base.noise.log_laplace`).
    """
    one_of("rounding", rounding, ROUNDING_RULES)
    y, c, chi, axes, size = _prepared(published, known, chi, pooled)
    edge = 0.5 if rounding == "nearest" else 1.0

    def sum_where(values, mask):
        return np.where(mask & chi, values, 0.0).sum(axis=axes)

    at_0, both_zero, unchanged = y == 0, (y == 0) & (c == 0), (y == c) & (y > 0)
    shift = np.where(at_0, c - edge, np.abs(y - c) - np.where((rounding == "floor") & (y >= c), 0, edge))
    if rounding == "floor":  # unchanged coordinates moved by 0 … 1
        unchanged = np.zeros_like(unchanged)
    changed = ~at_0 & ~unchanged
    n_both_zero, n_unchanged, n_changed = sum_where(1.0, both_zero), sum_where(1.0, unchanged), sum_where(1.0, changed)
    total_shift = sum_where(shift, changed | (at_0 & ~both_zero))

    def log_likelihood(log_epsilon):
        epsilon = np.exp(log_epsilon)
        value = n_both_zero * np.log1p(-np.exp(-edge * epsilon) / 2) + n_unchanged * np.log(-np.expm1(-epsilon / 2))
        return value + n_changed * np.log(-np.expm1(-epsilon)) - epsilon * total_shift

    low, high = (np.full(size.shape, np.log(end)) for end in _EPSILON_RANGE)
    for _ in range(46):
        left, right = high - _GOLDEN_RATIO * (high - low), low + _GOLDEN_RATIO * (high - low)
        rising = log_likelihood(left) < log_likelihood(right)
        low, high = np.where(rising, left, low), np.where(rising, high, right)
    estimate = np.exp((low + high) / 2)
    no_shift = total_shift == 0  # with the integer part, one visit less may be due to no noise: every ε fits
    return np.where(
        no_shift | (estimate > 0.999 * _EPSILON_RANGE[1]), np.inf, np.where(estimate < 1.001 * _EPSILON_RANGE[0], 0.0, estimate)
    )


def confident_delta(p, size, confidence: float = 0.95) -> np.ndarray:
    """§V-C: the smallest δ with P(d(b_i, b̃_i) ≤ δ) ≥ ``confidence``; ``size``: |χ_i|.

    P(d(b_i, b̃_i) ≤ δ) = Σ_{k≤δ} C(|χ_i|, k) p^k (1 − p)^(|χ_i|−k).
    """
    from scipy.stats import binom  # takes half a second to import

    between("confidence", confidence, 0, 1, "must lie in [0, 1]")
    p, size = check_numbers(p, "p"), check_numbers(size, "size")
    if (p > 1).any():
        raise ValueError(f"p must lie in [0, 1] (got {p[p > 1].flat[0]})")
    if (size != np.floor(size)).any():
        raise ValueError(f"size must be a whole number of POIs (got {size[size != np.floor(size)].flat[0]})")
    return np.where(p == 0, 0, np.maximum(binom.ppf(confidence, size, p), 0)).astype(np.int64)


def _sums(published, known, chi, pooled):
    """Σ |ã − a| and |J|, one a user or for all users together."""
    y, c, chi, axes, size = _prepared(published, known, chi, pooled)
    return (np.abs(y - c) * chi).sum(axis=axes), size


def _prepared(published, known, chi, pooled):
    """The sides and χ in one shape; the axes over which an estimate sums, and |J| over them."""
    true_or_false("pooled", pooled)
    y, c = check_numbers(published, "sanitised profiles"), check_numbers(known, "leaked profiles")
    if y.shape != c.shape or y.ndim < 2:
        raise ValueError(f"sanitised and leaked profiles must have one shape, (…, users, J) (got {y.shape} and {c.shape})")
    chi = np.ones(y.shape, bool) if chi is None else np.broadcast_to(np.asarray(chi, bool), y.shape)
    axes = (-2, -1) if pooled else (-1,)
    size = chi.sum(axis=axes)
    if not size.size or (size == 0).any():
        raise ValueError("J, the POIs that leaked, must not be empty for any user (in χ_i, where that is known)")
    return y, c, chi, axes, size
