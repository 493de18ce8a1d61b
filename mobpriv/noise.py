"""The noise that sanitises profiles, and its exact law: randomised response, rounded clamped Laplace, clamped two-sided geometric.

Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*, §III-B and
§III-C. All of it is a function of uniform numbers u in [0, 1): the same u gives the noise of every ε, so curves over ε are smooth
and two settings differ by the setting alone. Arrays broadcast; counts and noise are whole numbers, ε is per visit.

The log-probabilities are in closed form: none is the difference of two nearly equal numbers, so they hold far in the tails. What is
drawn does not reach there: u has 53 bits, so the noise is at most 53 ln 2 / ε, and from about ε = 74 on (geometric: 37) a rounded count
goes out unchanged. :mod:`mobpriv.exact_noise` has no such end.
"""

import numpy as np
from scipy.special import expit

ROUNDING = ("nearest", "floor")
LEAST_U = 2.0**-53  # what a generator's numbers are multiples of: 0 would be infinite noise


def least_p(epsilon):
    """1/(1 + e^ε), the smallest p that Proposition 7 allows."""
    return expit(-np.asarray(epsilon, float))


def flips(u: np.ndarray, p) -> np.ndarray:
    """d_ij of §III-B: True with probability p."""
    return u < p


def laplace(u: np.ndarray) -> np.ndarray:
    """Laplace noise of scale 1, by the inverse of its distribution function: |d| = −ln(1 − |2u − 1|), with the sign of 2u − 1."""
    v = 2 * u - 1
    return np.copysign(-np.log(np.maximum(1 - np.abs(v), LEAST_U)), v)


def farthest(epsilon, rounding: str = "nearest") -> np.ndarray:
    """By how much a count can be published too high at most, rounded Laplace noise being made of a uniform number of 53 bits."""
    return rounded(np.zeros(np.shape(epsilon)), -np.log(LEAST_U) / np.asarray(epsilon, float), rounding)


def rounded(c: np.ndarray, d: np.ndarray, rounding: str = "nearest") -> np.ndarray:
    """max(0, [c + d]) of §III-C, whole numbers: [·] is the nearest one or, ``floor``, the integer part."""
    return np.maximum(0, np.floor(c + d + (0.5 if rounding == "nearest" else 0.0))).astype(np.int64)


def geometric(u: np.ndarray, epsilon) -> np.ndarray:
    """Two-sided geometric noise, P(d) = (1 − q)/(1 + q) · q^|d| with q = e^−ε: |d| ≥ k has probability 2q^k/(1 + q) for k ≥ 1."""
    v = 2 * u - 1
    tail = np.maximum(1 - np.abs(v), LEAST_U) * (1 + np.exp(-np.asarray(epsilon, float))) / 2
    return (np.sign(v) * np.floor(-np.log(tail) / epsilon)).astype(np.int64)


def log_flip(published, true, p) -> np.ndarray:
    """ln P(b̃ | b) of the addition modulo 2 (the appendix): p where they differ."""
    with np.errstate(divide="ignore"):
        return np.where(np.asarray(published) != np.asarray(true), np.log(p), np.log1p(-np.asarray(p, float)))


def log_added(published, true, p) -> np.ndarray:
    """ln P(b̃ | b) of the addition without modulo, as the body of §III-B writes it: b̃ is b or b + 1."""
    more = np.asarray(published, int) - np.asarray(true, int)
    with np.errstate(divide="ignore"):
        return np.where(more == 1, np.log(p), np.where(more == 0, np.log1p(-np.asarray(p, float)), -np.inf))


def log_laplace(published, true, epsilon, rounding: str = "nearest") -> np.ndarray:
    """ln P(c̃ | c) of max(0, [c + Laplace(1/ε)]).

    With d = c̃ − c and c̃ > 0, to the nearest: 1 − e^(−ε/2) for d = 0, else e^(−ε|d|) sinh(ε/2); with the integer part:
    e^(−εk) (1 − e^−ε)/2 with k = d for d ≥ 0, else |d| − 1. At c̃ = 0 all that would be below 0 is added, half the law for c ≥ 1.
    """
    y, c, epsilon = np.asarray(published, float), np.asarray(true, float), np.asarray(epsilon, float)
    apart = np.abs(y - c)
    with np.errstate(invalid="ignore"):
        if rounding == "nearest":
            edge = 0.5
            inside = np.where(
                y == c, np.log(-np.expm1(-epsilon / 2)), -epsilon * (apart - 0.5) + np.log(-np.expm1(-epsilon) / 2)
            )
        else:
            edge = 1.0
            steps = np.where(y >= c, apart, apart - 1)
            inside = -epsilon * steps + np.log(-np.expm1(-epsilon) / 2)
    at_0 = np.where(c == 0, np.log1p(-np.exp(-epsilon * edge) / 2), -epsilon * (c - edge) - np.log(2))
    return np.where(y == 0, at_0, inside)


def log_geometric(published, true, epsilon) -> np.ndarray:
    """ln P(c̃ | c) of max(0, c + d), d two-sided geometric: (1 − q)/(1 + q) · q^|c̃ − c|, and q^c/(1 + q) at c̃ = 0."""
    y, c, epsilon = np.asarray(published, float), np.asarray(true, float), np.asarray(epsilon, float)
    all_of_it = np.log1p(np.exp(-epsilon))
    inside = np.log(-np.expm1(-epsilon)) - all_of_it - epsilon * np.abs(y - c)
    return np.where(y == 0, -epsilon * c - all_of_it, inside)
