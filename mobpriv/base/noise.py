"""Noise that sanitises profiles of visits, and its exact law.

The mechanisms are randomised response, rounded clamped Laplace noise and clamped two-sided geometric noise.

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§III-B and §III-C.

All noise is a function of uniform numbers u in [0, 1). The same u gives the noise for every ε, so curves over ε are smooth and
two settings differ only in the setting. Arrays broadcast; counts and noise are whole numbers; ε is per visit.

The log-probabilities have closed forms. None is a difference of two nearly equal numbers, so they are accurate far in the
tails. Drawn noise does not reach the tails: u has 53 bits, so the noise is at most 53 ln 2 / ε. From about ε = 74 (geometric:
37) a rounded count is published unchanged. :mod:`mobpriv.base.exact_noise` has no such limit.
"""

import numpy as np
from scipy.special import expit

ROUNDING_RULES = ("nearest", "floor")
_MIN_U = 2.0**-53  # the generator's numbers are multiples of it; 0 would yield infinite noise


def least_p(epsilon):
    """1/(1 + e^ε), the smallest p that Proposition 7 allows."""
    return expit(-np.asarray(epsilon, float))


def flips(u: np.ndarray, p) -> np.ndarray:
    """Flips d_ij of §III-B: True with probability p."""
    return u < p


def laplace(u: np.ndarray) -> np.ndarray:
    """Laplace noise of scale 1 by inversion of its distribution function: |d| = −ln(1 − |2u − 1|), with the sign of 2u − 1."""
    v = 2 * u - 1
    return np.copysign(-np.log(np.maximum(1 - np.abs(v), _MIN_U)), v)


def largest_error(epsilon, rounding: str = "nearest") -> np.ndarray:
    """The largest upward error of a published count with rounded Laplace noise from a uniform number of 53 bits."""
    return rounded_and_clamped(np.zeros(np.shape(epsilon)), -np.log(_MIN_U) / np.asarray(epsilon, float), rounding)


def rounded_and_clamped(c: np.ndarray, d: np.ndarray, rounding: str = "nearest") -> np.ndarray:
    """max(0, [c + d]) of §III-C, whole numbers; [·] rounds to the nearest one or, with ``floor``, to the integer part."""
    return np.maximum(0, np.floor(c + d + (0.5 if rounding == "nearest" else 0.0))).astype(np.int64)


def geometric(u: np.ndarray, epsilon) -> np.ndarray:
    """Two-sided geometric noise, P(d) = (1 − q)/(1 + q) · q^|d| with q = e^−ε: |d| ≥ k has probability 2q^k/(1 + q) for k ≥ 1."""
    v = 2 * u - 1
    tail = np.maximum(1 - np.abs(v), _MIN_U) * (1 + np.exp(-np.asarray(epsilon, float))) / 2
    return (np.sign(v) * np.floor(-np.log(tail) / epsilon)).astype(np.int64)


def log_flip(published, true, p) -> np.ndarray:
    """ln P(b̃ | b) for addition modulo 2 (the appendix): ln p where they differ."""
    with np.errstate(divide="ignore"):
        return np.where(np.asarray(published) != np.asarray(true), np.log(p), np.log1p(-np.asarray(p, float)))


def log_added(published, true, p) -> np.ndarray:
    """ln P(b̃ | b) for addition without modulo, as in the body of §III-B: b̃ is b or b + 1."""
    difference = np.asarray(published, int) - np.asarray(true, int)
    with np.errstate(divide="ignore"):
        return np.where(difference == 1, np.log(p), np.where(difference == 0, np.log1p(-np.asarray(p, float)), -np.inf))


def log_laplace(published, true, epsilon, rounding: str = "nearest") -> np.ndarray:
    """ln P(c̃ | c) of max(0, [c + Laplace(1/ε)]).

    With d = c̃ − c and c̃ > 0 the probability is:

    * nearest: 1 − e^(−ε/2) for d = 0, else e^(−ε|d|) sinh(ε/2);
    * integer part: e^(−εk) (1 − e^−ε)/2 with k = d for d ≥ 0, else |d| − 1.

    At c̃ = 0 all mass below 0 is added: for c ≥ 1 the probability is e^(−ε(c − 1/2))/2 (integer part: e^(−ε(c − 1))/2).
    """
    y, c, epsilon = np.asarray(published, float), np.asarray(true, float), np.asarray(epsilon, float)
    distance = np.abs(y - c)
    with np.errstate(invalid="ignore"):
        if rounding == "nearest":
            edge, elsewhere = 0.5, -epsilon * (distance - 0.5) + np.log(-np.expm1(-epsilon) / 2)
            inside = np.where(y == c, np.log(-np.expm1(-epsilon / 2)), elsewhere)
        else:
            edge = 1.0
            steps = np.where(y >= c, distance, distance - 1)
            inside = -epsilon * steps + np.log(-np.expm1(-epsilon) / 2)
    at_0 = np.where(c == 0, np.log1p(-np.exp(-epsilon * edge) / 2), -epsilon * (c - edge) - np.log(2))
    return np.where(y == 0, at_0, inside)


def log_geometric(published, true, epsilon) -> np.ndarray:
    """ln P(c̃ | c) of max(0, c + d), d two-sided geometric: (1 − q)/(1 + q) · q^|c̃ − c|, and q^c/(1 + q) at c̃ = 0."""
    y, c, epsilon = np.asarray(published, float), np.asarray(true, float), np.asarray(epsilon, float)
    log_one_plus_q = np.log1p(np.exp(-epsilon))
    inside = np.log(-np.expm1(-epsilon)) - log_one_plus_q - epsilon * np.abs(y - c)
    return np.where(y == 0, -epsilon * c - log_one_plus_q, inside)
