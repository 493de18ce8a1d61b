"""Exact two-sided geometric noise, without floating-point rounding.

Source: Canonne, Kamath and Steinke, *The Discrete Gaussian for Differential Privacy*, NeurIPS 2020, Algorithms 1 and 2.

A uniform number of 53 bits has a smallest positive value, so the noise of :mod:`mobpriv.base.noise` has a largest value. A count
farther from the truth is impossible under one profile but possible under its neighbour. Here every step compares whole numbers,
ε is the exact fraction of the float, and every whole number can occur. The law is exact if the generator's bits are random. A
seeded generator is for experiments, not for a release.
"""

from fractions import Fraction

import numpy as np


def _bernoulli_exp(numerator: int, denominator: int, rng: np.random.Generator) -> bool:
    """Return True with probability e^−γ for γ = numerator/denominator in [0, 1] (Algorithm 1).

    The result is whether an even number of the trials γ/1, γ/2, γ/3, … succeed in a row.
    """
    k = 1
    while below(denominator * k, rng) < numerator:
        k += 1
    return k % 2 == 1


def below(n: int, rng: np.random.Generator) -> int:
    """A uniform whole number in 0 … n − 1, for n of any size."""
    bits = (n - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        number = int.from_bytes(rng.bytes(size), "little") >> (8 * size - bits)
        if number < n:
            return number


def geometric(shape: tuple[int, ...], epsilon, rng: np.random.Generator) -> np.ndarray:
    """Whole numbers d with P(d) = (1 − q)/(1 + q) · q^|d|, q = e^−ε; ε broadcasts to the shape (Algorithm 2, s/t = ε).

    >>> geometric((2, 3), 1.0, np.random.default_rng(1)).shape
    (2, 3)
    """
    epsilons = np.broadcast_to(epsilon, shape)
    fractions = {value: Fraction(value) for value in np.unique(epsilons).tolist()}
    return np.array([_one(fractions[value], rng) for value in epsilons.ravel().tolist()], np.int64).reshape(shape)


def _one(epsilon: Fraction, rng: np.random.Generator) -> int:
    s, t = epsilon.numerator, epsilon.denominator
    while True:
        u = below(t, rng)
        if not _bernoulli_exp(u, t, rng):
            continue
        v = 0
        while _bernoulli_exp(1, 1, rng):
            v += 1
        size, negative = (u + t * v) // s, below(2, rng)
        if size or not negative:
            return -size if negative else size
