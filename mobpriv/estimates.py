"""Rates and differences with their intervals: no number stands in the book without its n."""

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval and its n; a row of a table takes it as it is: ``{"data": "city", **estimate}``."""

    value: float
    low: float
    high: float
    n: int

    def keys(self) -> tuple[str, ...]:
        return ("value", "low", "high", "n")

    def __getitem__(self, key: str) -> float | int:
        return getattr(self, key)


def rate(success, level: float = 0.95) -> Estimate:
    """The share of successes among n trials, with Wilson's score interval (Wilson 1927)."""
    success = np.asarray(success)
    if success.dtype.kind == "f" and np.isnan(success).any():
        raise ValueError("a trial either succeeds or fails (got not-a-number)")
    success = success.astype(bool)
    n, hits = len(success), int(success.sum())
    if not n:
        raise ValueError("a rate needs at least one trial (got none)")
    interval = stats.binomtest(hits, n).proportion_ci(level, method="wilson")
    return Estimate(hits / n, float(interval.low), float(interval.high), n)


def paired_difference(a, b, level: float = 0.95) -> Estimate:
    """The difference of two rates over the same trials, mean(a) − mean(b), with the interval of Agresti and Min (2005).

    Half a trial is added to each of the four outcomes; the interval then is the normal one of the discordant trials.
    """
    a, b = np.asarray(a, bool), np.asarray(b, bool)
    if a.shape != b.shape or not len(a):
        raise ValueError(f"paired rates need the same trials, at least one (got {len(a)} and {len(b)})")
    n = len(a)
    gained, lost = (a & ~b).sum() + 0.5, (b & ~a).sum() + 0.5
    total = n + 2
    middle = (gained - lost) / total
    half = stats.norm.ppf(0.5 + level / 2) * np.sqrt(max(gained + lost - (gained - lost) ** 2 / total, 0)) / total
    low, high = np.clip([middle - half, middle + half], -1, 1)
    return Estimate(float(a.mean() - b.mean()), float(low), float(high), n)


def mean(values, level: float = 0.95, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Estimate:
    """The mean of n independent values with Student's interval, cut to ``bounds``; without an interval (NaN) when n is 1."""
    values = np.asarray(values, float)
    n = len(values)
    if not n:
        raise ValueError("a mean needs at least one value (got none)")
    half = stats.t.ppf(0.5 + level / 2, n - 1) * values.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    low, high = np.clip([values.mean() - half, values.mean() + half], *bounds)
    return Estimate(float(values.mean()), float(low), float(high), n)


def quantile(values, q: float, level: float = 0.95) -> Estimate:
    """The q-quantile of n independent values (infinite ones count) with the binomial interval of its order statistics.

    The interval runs from the r-th to the s-th smallest value, each beyond the quantile with a probability of at most (1 - level)/2.
    It is none (NaN) where even the extremes lie beyond it more often: at 95 % that of a median needs n ≥ 6, of a quartile n ≥ 13.
    """
    values = np.sort(np.asarray(values, float))
    n = len(values)
    if not n:
        raise ValueError("a quantile needs at least one value (got none)")
    # how many of n lie below the quantile is binomial: fewer than r with probability ≤ (1 - level)/2, and more than `above` as rarely
    r, above = stats.binom.ppf([(1 - level) / 2, 0.5 + level / 2], n, q).astype(int)
    ends = (values[r - 1], values[above]) if r >= 1 and above < n else (np.nan, np.nan)
    # "higher" and "lower" average would turn infinite neighbours into NaN: interpolate only between finite ones
    i = q * (n - 1)
    low, high = values[int(np.floor(i))], values[int(np.ceil(i))]
    value = low if low == high else low + (i - np.floor(i)) * (high - low)
    return Estimate(float(value), float(ends[0]), float(ends[1]), n)


def rank_correlation(a, b, level: float = 0.95) -> Estimate:
    """Spearman's correlation of n independent pairs, with the interval of Bonett and Wright (2000).

    Normal for the inverse hyperbolic tangent, of variance (1 + r²/2) / (n - 3); without an interval (NaN) when n is below 4 or
    the ranks agree throughout, without a value when one side never varies.
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    if a.shape != b.shape or len(a) < 2:
        raise ValueError(f"a correlation needs pairs, at least two (got {len(a)} and {len(b)})")
    n = len(a)
    if (a == a[0]).all() or (b == b[0]).all():
        return Estimate(np.nan, np.nan, np.nan, n)
    r = float(np.clip(stats.spearmanr(a, b).statistic, -1, 1))
    if n < 4 or abs(r) == 1:
        return Estimate(r, np.nan, np.nan, n)
    half = stats.norm.ppf(0.5 + level / 2) * np.sqrt((1 + r**2 / 2) / (n - 3))
    low, high = np.tanh([np.arctanh(r) - half, np.arctanh(r) + half])
    return Estimate(r, float(low), float(high), n)
