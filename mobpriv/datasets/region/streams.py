"""A stream of random numbers for each person: Philox4x64-10.

Source: Salmon et al. 2011, ``doi:10.1145/2063384.2063405``.

Philox has no state to carry: it maps a counter to numbers, under a key. The key comes from the seed, and a person's number is a
word of the counter. So any person's numbers are available at once, independent of the other people. The numbers equal those of
numpy's ``Philox(key=key, counter=[0, 0, person, 0])``, which a test checks. This version is compiled code, because setting up a
million bit generators of numpy takes longer than making a region.
"""

import numba
import numpy as np

_MULTIPLY = (np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157))
_WEYL = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B))
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_WORDS = 10  # of a stream: key (2), counter (3; its last word is 0), four numbers in stock, how many of them are used


def philox_key(seed: int) -> np.ndarray:
    """The key of a region: two words of 64 bits."""
    return np.random.SeedSequence(seed).generate_state(2, np.uint64)


@numba.njit(inline="always")
def _high(a, b):
    """The upper 64 bits of a product."""
    a0, a1, b0, b1 = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    middle = a1 * b0 + ((a0 * b0) >> _HALF)
    other = a0 * b1 + (middle & _LOW)
    return a1 * b1 + (middle >> _HALF) + (other >> _HALF)


@numba.njit(cache=True)
def person_stream(key, person):
    """The stream of a person, at its start."""
    s = np.zeros(_WORDS, np.uint64)
    s[0], s[1], s[4] = key[0], key[1], np.uint64(person)
    s[9] = np.uint64(4)
    return s


@numba.njit(cache=True)
def _turn(s):
    """The next four numbers."""
    s[2] += np.uint64(1)  # a person needs fewer than 2^64
    k0, k1 = s[0], s[1]
    c0, c1, c2, c3 = s[2], s[3], s[4], np.uint64(0)
    for _ in range(10):
        high0, high1 = _high(_MULTIPLY[0], c0), _high(_MULTIPLY[1], c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, _MULTIPLY[1] * c2, high0 ^ c3 ^ k1, _MULTIPLY[0] * c0
        k0, k1 = k0 + _WEYL[0], k1 + _WEYL[1]
    s[5], s[6], s[7], s[8] = c0, c1, c2, c3
    s[9] = np.uint64(0)


@numba.njit(cache=True)
def raw(s):
    """64 random bits."""
    if s[9] == np.uint64(4):
        _turn(s)
    out = s[5 + np.int64(s[9])]
    s[9] += np.uint64(1)
    return out


@numba.njit(cache=True)
def uniform(s):
    """A uniform number in [0, 1), 53 bits."""
    return np.float64(raw(s) >> np.uint64(11)) * 2.0**-53


@numba.njit(cache=True)
def exponential(s):
    """An exponential number of mean 1."""
    return -np.log(1.0 - uniform(s))


@numba.njit(cache=True)
def standard_normal(s):
    """A normal number of mean 0 and variance 1 (Box and Muller 1958)."""
    return np.sqrt(2 * exponential(s)) * np.cos(2 * np.pi * uniform(s))


@numba.njit(cache=True)
def chosen(s, cumulative):
    """A random position in a table, by its cumulative weights."""
    return above(cumulative, uniform(s) * cumulative[-1])


@numba.njit(cache=True)
def above(cumulative, value):
    """The first position whose cumulative weight exceeds a value; the last if none does."""
    low, high = 0, len(cumulative) - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low
