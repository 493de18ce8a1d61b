"""Rates and differences with their intervals: no number stands in the book without its n."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit


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
    """The share of successes among n trials, with Wilson's score interval (Wilson 1927).

    A trial that was repeated may succeed in a share of its repetitions: the rate is the mean of the shares. Its interval, that of
    trials which only succeed or fail, is then wider than it must be, for shares vary less.
    """
    success = _shares(success)
    n, p = len(success), float(success.mean())
    z2 = ndtri(0.5 + level / 2) ** 2
    middle, half = p + z2 / (2 * n), np.sqrt(z2 * (p * (1 - p) + z2 / (4 * n)) / n)
    low, high = np.clip(np.array([middle - half, middle + half]) / (1 + z2 / n), 0, 1)
    # at 0 and 1 the formula's end is the rate itself, but for rounding
    return Estimate(p, float(min(low, p)), float(max(high, p)), n)


def paired_difference(a, b, level: float = 0.95) -> Estimate:
    """The difference of two rates over the same trials, mean(a) − mean(b), with the interval of Agresti and Min (2005).

    Half a trial is added to each of the four outcomes; the interval then is the normal one of the discordant trials. Trials that
    were repeated succeed in a share: their differences enter with their squares, which are 0 or 1 for trials that were not.
    """
    a, b = _shares(a), _shares(b)
    if a.shape != b.shape:
        raise ValueError(f"paired rates need the same trials (got {len(a)} and {len(b)})")
    n, apart = len(a), a - b
    total, gained = n + 2, float(apart.sum())
    squares = float(apart @ apart) + 1
    half = ndtri(0.5 + level / 2) * np.sqrt(max(squares - gained**2 / total, 0)) / total
    low, high = np.clip([gained / total - half, gained / total + half], -1, 1)
    return Estimate(gained / n, float(low), float(high), n)


def clustered_rate(success, whose, level: float = 0.95) -> Estimate:
    """The share of successes among n trials of several users, with an interval that covers another sample of *users*.

    Trials of one user are alike. Wilson's interval for the effective number of trials n / deff, deff being Kish's design effect of the
    ratio Σ successes / Σ trials, and Student's quantile of m − 1 degrees of freedom for m users (Dean and Pagano, Journal of Survey
    Statistics and Methodology 3, 2015). It is never narrower than that of n independent trials. Where every trial succeeds, or none,
    nothing tells how alike a user's trials are: the worst is taken, that each user counts once. Without an interval for one user.
    """
    success = _shares(success)
    n, p = len(success), float(success.mean())
    apart, sizes = _by_user(success - p, whose)
    m = len(sizes)
    if m == 1:
        return Estimate(p, np.nan, np.nan, n)
    variance = m / (m - 1) * float(apart @ apart) / n**2
    effective = min(n, p * (1 - p) / variance) if variance > 0 and 0 < p < 1 else m
    z2 = stdtrit(m - 1, 0.5 + level / 2) ** 2
    middle, half = p + z2 / (2 * effective), np.sqrt(z2 * (p * (1 - p) + z2 / (4 * effective)) / effective)
    low, high = np.clip(np.array([middle - half, middle + half]) / (1 + z2 / effective), 0, 1)
    return Estimate(p, float(min(low, p)), float(max(high, p)), n)


def clustered_difference(a, b, whose, level: float = 0.95) -> Estimate:
    """mean(a) − mean(b) over the same trials of several users, with an interval that covers another sample of *users*.

    As in :func:`paired_difference` half a trial is added to each of the four outcomes; the variance is that of the users' sums around
    the mean, with Student's quantile of m − 1 degrees of freedom. Without an interval for one user.
    """
    a, b = _shares(a), _shares(b)
    if a.shape != b.shape:
        raise ValueError(f"paired rates need the same trials (got {len(a)} and {len(b)})")
    n, value = len(a), float((a - b).mean())
    apart, sizes = _by_user(a - b - value, whose)
    m = len(sizes)
    if m == 1:
        return Estimate(value, np.nan, np.nan, n)
    middle = n * value / (n + 2)
    half = stdtrit(m - 1, 0.5 + level / 2) * np.sqrt(m / (m - 1) * float(apart @ apart) + 1) / (n + 2)
    low, high = np.clip([middle - half, middle + half], -1, 1)
    return Estimate(value, float(low), float(high), n)


def clustered_change(
    a, whose_a, b, whose_b, repeats: int = 1, level: float = 0.95, bounds: tuple[float, float] = (-1.0, 1.0)
) -> Estimate:
    """mean(a) − mean(b) over different trials of the same users, with an interval that covers another sample of *users*.

    The variance is that of the difference of two ratios (linearised), m users in all, with Student's quantile of m − 1 degrees of
    freedom, and half a trial of the smaller side as in :func:`clustered_difference`; n is that side's number of trials. The interval is
    cut to ``bounds``. ``a`` and ``b`` hold rates, differences of rates, or other values with ``bounds`` of their own. Trials that were
    repeated come as often as they were: of ``repeats`` repetitions n and the half trial count one. Without an interval for one user.
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    if not len(a) or not len(b):
        raise ValueError(f"two rates need at least one trial each (got {len(a)} and {len(b)})")
    value, trials = float(a.mean() - b.mean()), min(len(a), len(b)) / repeats
    n = max(round(trials), 1)
    both = np.r_[(a - a.mean()) / len(a), (b.mean() - b) / len(b)]
    apart, sizes = _by_user(both, np.r_[np.asarray(whose_a), np.asarray(whose_b)])
    m = len(sizes)
    if m == 1:
        return Estimate(value, np.nan, np.nan, n)
    half = stdtrit(m - 1, 0.5 + level / 2) * np.sqrt(m / (m - 1) * float(apart @ apart) + 1 / trials**2)
    low, high = np.clip([value - half, value + half], *bounds)
    return Estimate(value, float(low), float(high), n)


def clustered_ratio(a, b, whose, level: float = 0.95, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Estimate:
    """Σa / Σb over n trials of several users, with an interval that covers another sample of *users*, cut to ``bounds``.

    The variance is the linearised one of a ratio (Cochran, Sampling Techniques, §6.4), with Student's quantile of m − 1 degrees of freedom
    for m users; with ``b`` = 1 the ratio is the mean of ``a``. A share (``bounds`` 0 and 1) of exactly 0 or 1 has no variance: there each
    user with a trial counts once, as in :func:`clustered_rate`. Without an interval for one user, without a value where Σb = 0.
    """
    a = np.asarray(a, float)
    b = np.broadcast_to(np.asarray(b, float), a.shape)
    if not len(a):
        raise ValueError("a ratio needs at least one trial (got none)")
    below, n = float(b.sum()), len(a)
    if below == 0:
        return Estimate(np.nan, np.nan, np.nan, n)
    value = float(a.sum()) / below
    apart, sizes = _by_user(a - value * b, whose)
    m = len(sizes)
    if m == 1:
        return Estimate(value, np.nan, np.nan, n)
    if bounds == (0, 1) and min(value, 1 - value) < 1e-12:
        counted = clustered_rate(np.full(n, round(value))[b != 0], np.asarray(whose)[b != 0], level)
        return Estimate(value, counted.low, counted.high, n)
    half = stdtrit(m - 1, 0.5 + level / 2) * np.sqrt(m / (m - 1) * float(apart @ apart)) / abs(below)
    low, high = np.clip([value - half, value + half], *bounds)
    return Estimate(value, float(low), float(high), n)


def _by_user(values: np.ndarray, whose) -> tuple[np.ndarray, np.ndarray]:
    """The sum of the values of each user, and how many they are."""
    whose = np.asarray(whose)
    if whose.shape != values.shape:
        raise ValueError(f"every trial is somebody's (got {len(values)} trials of {len(whose)} users' names)")
    code = np.unique(whose, return_inverse=True)[1]
    return np.bincount(code, values), np.bincount(code)


def _shares(success) -> np.ndarray:
    success = np.asarray(success, float)
    if not len(success):
        raise ValueError("a rate needs at least one trial (got none)")
    outside = ~((success >= 0) & (success <= 1))
    if outside.any():
        raise ValueError(f"a trial succeeds, fails, or does so in a share of its repetitions (got {success[outside][0]})")
    return success


def spread(values) -> Estimate:
    """The mean of n random draws of one number, with the least and the largest in the place of an interval."""
    values = np.asarray(values, float)
    if not len(values):
        raise ValueError("a spread needs at least one draw (got none)")
    return Estimate(float(values.mean()), float(values.min()), float(values.max()), len(values))


def over_draws(values, level: float = 0.95) -> Estimate:
    """The mean of n random draws of one number, and between which values the middle ``level`` of the draws lie; infinite ones count.

    Where each draw has users of its own the interval covers another sample of users with other noise: it is of single draws, and does
    not shrink with their number.
    """
    values = np.asarray(values, float)
    if not len(values):
        raise ValueError("draws need at least one (got none)")
    low, high = middle_of(values, level)
    return Estimate(float(values.mean()), float(low), float(high), len(values))


def middle_of(values, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Between which values the middle ``level`` of the first axis lie, interpolated; infinite values count as such."""
    at = [(1 - level) / 2, (1 + level) / 2]
    below, above = (np.quantile(values, at, axis=0, method=method) for method in ("lower", "higher"))
    with np.errstate(invalid="ignore"):  # between infinite values numpy finds none
        between = np.quantile(values, at, axis=0)
    return tuple(np.where((below == above) | np.isinf(above), above, between))


def mean(values, level: float = 0.95, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Estimate:
    """The mean of n independent values with Student's interval, cut to ``bounds``; without an interval (NaN) when n is 1."""
    values = np.asarray(values, float)
    n = len(values)
    if not n:
        raise ValueError("a mean needs at least one value (got none)")
    half = stdtrit(n - 1, 0.5 + level / 2) * values.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    low, high = np.clip([values.mean() - half, values.mean() + half], *bounds)
    return Estimate(float(values.mean()), float(low), float(high), n)


def mean_difference(a, b, level: float = 0.95) -> Estimate:
    """mean(a) − mean(b) of independent values, with Welch's interval; n is the smaller number of values.

    A single value, or values that are all equal, add nothing to the width: they count as known. Without an interval (NaN) when both
    are single.
    """
    return _of_means(a, b, lambda x, y: x - y, lambda x, y: (1.0, 1.0), level)


def ratio_of_means(a, b, level: float = 0.95) -> Estimate:
    """mean(a) / mean(b) of independent positive values, with the interval of the delta method and Welch's degrees of freedom."""
    return _of_means(a, b, lambda x, y: x / y, lambda x, y: (1 / y, x / y**2), level)


def _of_means(a, b, of, slopes, level: float) -> Estimate:
    a, b = np.asarray(a, float), np.asarray(b, float)
    if not len(a) or not len(b):
        raise ValueError(f"two means need at least one value each (got {len(a)} and {len(b)})")
    value = float(of(a.mean(), b.mean()))
    if len(a) == len(b) == 1:
        return Estimate(value, np.nan, np.nan, 1)
    parts = [
        (slope**2 * x.var(ddof=1) / len(x), len(x) - 1)
        for slope, x in zip(slopes(a.mean(), b.mean()), (a, b), strict=True)
        if len(x) > 1
    ]
    variance = sum(v for v, _ in parts)
    freedom = variance**2 / sum(v**2 / n for v, n in parts) if variance > 0 else 1.0
    half = float(stdtrit(freedom, 0.5 + level / 2) * np.sqrt(variance))
    return Estimate(value, value - half, value + half, min(len(x) for x in (a, b) if len(x) > 1))


def quantile(values, q: float, level: float = 0.95) -> Estimate:
    """The q-quantile of n independent values (infinite ones count) with the binomial interval of its order statistics.

    The interval runs from the r-th to the s-th smallest value, each beyond the quantile with a probability of at most (1 - level)/2.
    It is none (NaN) where even the extremes lie beyond it more often: at 95 % that of a median needs n ≥ 6, of a quartile n ≥ 13.
    """
    values = np.sort(np.asarray(values, float))
    n = len(values)
    if not n:
        raise ValueError("a quantile needs at least one value (got none)")
    from scipy.stats import binom  # half a second of imports that few pages need

    # how many of n lie below the quantile is binomial: fewer than r with probability ≤ (1 - level)/2, and more than `above` as rarely
    r, above = binom.ppf([(1 - level) / 2, 0.5 + level / 2], n, q).astype(int)
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
    from scipy.stats import spearmanr  # half a second of imports that few pages need

    r = float(np.clip(spearmanr(a, b).statistic, -1, 1))
    if n < 4 or abs(r) == 1:
        return Estimate(r, np.nan, np.nan, n)
    half = ndtri(0.5 + level / 2) * np.sqrt((1 + r**2 / 2) / (n - 3))
    low, high = np.tanh([np.arctanh(r) - half, np.arctanh(r) + half])
    return Estimate(r, float(low), float(high), n)
