"""Rates and differences with confidence intervals and sample sizes."""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri, stdtrit


@dataclass(frozen=True)
class Estimate:
    """An estimate with its interval, sample size n, and what the interval is, in words.

    It unpacks into a table row without these words: ``{"data": "city", **estimate}``.

    >>> rate([True, True, False, True]).interval
    'Wilson, 95 %'
    """

    value: float
    low: float
    high: float
    n: int
    interval: str = field(default="", compare=False)

    def keys(self) -> tuple[str, ...]:
        return ("value", "low", "high", "n")

    def stored(self) -> dict[str, float | str]:
        """All fields, for a file."""
        return {**self, **({"interval": self.interval} if self.interval else {})}

    def __getitem__(self, key: str) -> float | int:
        return getattr(self, key)


def _words(method: str, level: float) -> str:
    return f"{method}, {100 * level:g} %"


def rate(success, level: float = 0.95) -> Estimate:
    """The share of successes among n trials, with Wilson's score interval (Wilson 1927).

    A repeated trial may succeed in a share of its repetitions; the rate is then the mean of the shares. The interval for binary
    trials is conservative in this case, because shares vary less.
    """
    success = _shares(success)
    n, p = len(success), float(success.mean())
    z2 = ndtri(0.5 + level / 2) ** 2
    middle, half = p + z2 / (2 * n), np.sqrt(z2 * (p * (1 - p) + z2 / (4 * n)) / n)
    low, high = np.clip(np.array([middle - half, middle + half]) / (1 + z2 / n), 0, 1)
    # at 0 and 1 the bound equals the rate, up to rounding
    return Estimate(p, float(min(low, p)), float(max(high, p)), n, _words("Wilson", level))


def paired_difference(a, b, level: float = 0.95) -> Estimate:
    """The difference of two rates over the same trials, mean(a) − mean(b), with the interval of Agresti and Min (2005).

    The method adds half a trial to each of the four outcomes and uses the normal interval of the discordant trials. Repeated
    trials succeed in a share: their differences enter squared; without repetition the square is 0 or 1.
    """
    a, b = _shares(a), _shares(b)
    if a.shape != b.shape:
        raise ValueError(f"paired rates need the same trials (got {len(a)} and {len(b)})")
    n, differences = len(a), a - b
    total, gained = n + 2, float(differences.sum())
    squares = float(differences @ differences) + 1
    half = ndtri(0.5 + level / 2) * np.sqrt(max(squares - gained**2 / total, 0)) / total
    low, high = np.clip([gained / total - half, gained / total + half], -1, 1)
    return Estimate(gained / n, float(low), float(high), n, _words("paired difference, Agresti and Min", level))


def clustered_rate(success, users, level: float = 0.95) -> Estimate:
    """The share of successes among n trials of several users, with an interval that covers another sample of *users*.

    Trials of one user are correlated. The interval is Wilson's for the effective number of trials n / deff, where deff is
    Kish's design effect of the ratio Σ successes / Σ trials. It uses Student's quantile with m − 1 degrees of freedom for m
    users.

    Source: Dean and Pagano, Journal of Survey Statistics and Methodology 3, 2015.

    The interval is never narrower than for n independent trials. If all trials succeed, or none, the correlation within a user
    cannot be estimated; then each user counts once (worst case). One user alone has no interval.
    """
    success = _shares(success)
    n, p = len(success), float(success.mean())
    user_sums, sizes = _by_user(success - p, users)
    m = len(sizes)
    if m == 1:
        return Estimate(p, np.nan, np.nan, n)
    variance = m / (m - 1) * float(user_sums @ user_sums) / n**2
    effective = min(n, p * (1 - p) / variance) if variance > 0 and 0 < p < 1 else m
    z2 = stdtrit(m - 1, 0.5 + level / 2) ** 2
    middle, half = p + z2 / (2 * effective), np.sqrt(z2 * (p * (1 - p) + z2 / (4 * effective)) / effective)
    low, high = np.clip(np.array([middle - half, middle + half]) / (1 + z2 / effective), 0, 1)
    return Estimate(p, float(min(low, p)), float(max(high, p)), n, _words("over users, Wilson", level))


def clustered_difference(a, b, users, level: float = 0.95) -> Estimate:
    """mean(a) − mean(b) over the same trials of several users, with an interval that covers another sample of *users*.

    As in :func:`paired_difference`, half a trial is added to each of the four outcomes. The variance is that of the users' sums
    around the mean, with Student's quantile with m − 1 degrees of freedom. One user alone has no interval.
    """
    a, b = _shares(a), _shares(b)
    if a.shape != b.shape:
        raise ValueError(f"paired rates need the same trials (got {len(a)} and {len(b)})")
    n, value = len(a), float((a - b).mean())
    user_sums, sizes = _by_user(a - b - value, users)
    m = len(sizes)
    if m == 1:
        return Estimate(value, np.nan, np.nan, n)
    middle = n * value / (n + 2)
    half = stdtrit(m - 1, 0.5 + level / 2) * np.sqrt(m / (m - 1) * float(user_sums @ user_sums) + 1) / (n + 2)
    low, high = np.clip([middle - half, middle + half], -1, 1)
    return Estimate(value, float(low), float(high), n, _words("paired difference over users", level))


def clustered_change(
    a, users_a, b, users_b, repeats: int = 1, level: float = 0.95, bounds: tuple[float, float] = (-1.0, 1.0)
) -> Estimate:
    """mean(a) − mean(b) over different trials of the same users, with an interval that covers another sample of *users*.

    * The variance is the linearised variance of the difference of two ratios, with Student's quantile with m − 1 degrees of
      freedom for m users.
    * Half a trial of the smaller side is added, as in :func:`clustered_difference`; n is that side's number of trials.
    * The interval is cut to ``bounds``. ``a`` and ``b`` hold rates, differences of rates, or other values with their own
      ``bounds``.
    * Repeated trials occur once per repetition. With ``repeats`` repetitions, n and the half trial count a trial once.
    * One user alone has no interval.
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    if not len(a) or not len(b):
        raise ValueError(f"two rates need at least one trial each (got {len(a)} and {len(b)})")
    value, trials = float(a.mean() - b.mean()), min(len(a), len(b)) / repeats
    n = max(round(trials), 1)
    influences = np.r_[(a - a.mean()) / len(a), (b.mean() - b) / len(b)]
    user_sums, sizes = _by_user(influences, np.r_[np.asarray(users_a), np.asarray(users_b)])
    m = len(sizes)
    if m == 1:
        return Estimate(value, np.nan, np.nan, n)
    half = stdtrit(m - 1, 0.5 + level / 2) * np.sqrt(m / (m - 1) * float(user_sums @ user_sums) + 1 / trials**2)
    low, high = np.clip([value - half, value + half], *bounds)
    return Estimate(value, float(low), float(high), n, _words("difference over users", level))


def clustered_ratio(a, b, users, level: float = 0.95, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Estimate:
    """Σa / Σb over n trials of several users, with an interval that covers another sample of *users*, cut to ``bounds``.

    The variance is the linearised variance of a ratio (Cochran, Sampling Techniques, §6.4), with Student's quantile with m − 1
    degrees of freedom for m users. With ``b`` = 1 the ratio is the mean of ``a``.

    A share (``bounds`` 0 and 1) of exactly 0 or 1 has no variance; then each user with a trial counts once, as in
    :func:`clustered_rate`. One user alone has no interval. If Σb = 0 there is no value.
    """
    a = np.asarray(a, float)
    b = np.broadcast_to(np.asarray(b, float), a.shape)
    if not len(a):
        raise ValueError("a ratio needs at least one trial (got none)")
    denominator, n = float(b.sum()), len(a)
    if denominator == 0:
        return Estimate(np.nan, np.nan, np.nan, n)
    value = float(a.sum()) / denominator
    user_sums, sizes = _by_user(a - value * b, users)
    m = len(sizes)
    if m == 1:
        return Estimate(value, np.nan, np.nan, n)
    if bounds == (0, 1) and min(value, 1 - value) < 1e-12:
        counted = clustered_rate(np.full(n, round(value))[b != 0], np.asarray(users)[b != 0], level)
        return Estimate(value, counted.low, counted.high, n, _words("ratio over users", level))
    half = stdtrit(m - 1, 0.5 + level / 2) * np.sqrt(m / (m - 1) * float(user_sums @ user_sums)) / abs(denominator)
    low, high = np.clip([value - half, value + half], *bounds)
    return Estimate(value, float(low), float(high), n, _words("ratio over users", level))


def _by_user(values: np.ndarray, users) -> tuple[np.ndarray, np.ndarray]:
    """The sum and the number of the values of each user."""
    users = np.asarray(users)
    if users.shape != values.shape:
        raise ValueError(f"every trial needs a user (got {len(values)} trials and {len(users)} users' names)")
    code = np.unique(users, return_inverse=True)[1]
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
    """The mean of n random repetitions of one number, with their smallest and largest value as ``low`` and ``high``."""
    values = np.asarray(values, float)
    if not len(values):
        raise ValueError("a spread needs at least one draw (got none)")
    return Estimate(
        float(values.mean()), float(values.min()), float(values.max()), len(values), "least and largest of the repetitions"
    )


def over_draws(values, level: float = 0.95) -> Estimate:
    """The mean of n random repetitions of one number, with the interval of their middle ``level``; infinite values count.

    If each repetition has its own users, the interval covers another sample of users with other noise. It describes single
    repetitions and does not shrink with their number.
    """
    values = np.asarray(values, float)
    if not len(values):
        raise ValueError("draws need at least one (got none)")
    low, high = middle_of(values, level)
    return Estimate(float(values.mean()), float(low), float(high), len(values), _words("middle of the repetitions", level))


def middle_of(values, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """The interpolated bounds of the middle ``level`` of the values along the first axis; infinite values count."""
    at = [(1 - level) / 2, (1 + level) / 2]
    below, above = (np.quantile(values, at, axis=0, method=method) for method in ("lower", "higher"))
    with np.errstate(invalid="ignore"):  # numpy cannot interpolate between infinite values
        between = np.quantile(values, at, axis=0)
    return tuple(np.where((below == above) | np.isinf(above), above, between))


def mean(values, level: float = 0.95, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Estimate:
    """The mean of n independent values with Student's interval, cut to ``bounds``; NaN as interval if n = 1."""
    values = np.asarray(values, float)
    n = len(values)
    if not n:
        raise ValueError("a mean needs at least one value (got none)")
    half = stdtrit(n - 1, 0.5 + level / 2) * values.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    low, high = np.clip([values.mean() - half, values.mean() + half], *bounds)
    return Estimate(float(values.mean()), float(low), float(high), n, _words("Student", level))


def mean_difference(a, b, level: float = 0.95) -> Estimate:
    """mean(a) − mean(b) of independent values, with Welch's interval; n is the smaller number of values.

    A single value, or equal values, add no width: they count as known. The interval is NaN if both sides are single values.
    """
    return _of_means(a, b, lambda x, y: x - y, lambda x, y: (1.0, 1.0), level)


def ratio_of_means(a, b, level: float = 0.95) -> Estimate:
    """mean(a) / mean(b) of independent positive values, with the interval of the delta method and Welch's degrees of freedom."""
    return _of_means(a, b, lambda x, y: x / y, lambda x, y: (1 / y, x / y**2), level)


def _of_means(a, b, function, slopes, level: float) -> Estimate:
    a, b = np.asarray(a, float), np.asarray(b, float)
    if not len(a) or not len(b):
        raise ValueError(f"two means need at least one value each (got {len(a)} and {len(b)})")
    value = float(function(a.mean(), b.mean()))
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
    return Estimate(value, value - half, value + half, min(len(x) for x in (a, b) if len(x) > 1), _words("Welch", level))


def quantile(values, q: float, level: float = 0.95) -> Estimate:
    """The q-quantile of n independent values (infinite ones count) with the binomial interval of its order statistics.

    The interval runs from the r-th to the s-th smallest value; each lies beyond the quantile with a probability of at most (1 -
    level)/2. It is NaN if even the extremes lie beyond the quantile more often. At 95 % the interval of a median needs n ≥ 6,
    that of a quartile n ≥ 13.
    """
    values = np.sort(np.asarray(values, float))
    n = len(values)
    if not n:
        raise ValueError("a quantile needs at least one value (got none)")
    from scipy.stats import binom  # the import takes half a second, and few pages need it

    # the number of values below the quantile is binomial: P(fewer than r) ≤ (1 - level)/2 and P(more than `above`) ≤ (1 -
    # level)/2
    r, above = binom.ppf([(1 - level) / 2, 0.5 + level / 2], n, q).astype(int)
    ends = (values[r - 1], values[above]) if r >= 1 and above < n else (np.nan, np.nan)
    # averaging infinite neighbours would yield NaN: interpolate only between finite ones
    i = q * (n - 1)
    low, high = values[int(np.floor(i))], values[int(np.ceil(i))]
    value = low if low == high else low + (i - np.floor(i)) * (high - low)
    return Estimate(float(value), float(ends[0]), float(ends[1]), n, _words("order statistics", level))


def rank_correlation(a, b, level: float = 0.95) -> Estimate:
    """Spearman's correlation of n independent pairs, with the interval of Bonett and Wright (2000).

    The interval is normal for the inverse hyperbolic tangent, with variance (1 + r²/2) / (n - 3). It is NaN if n < 4 or the
    ranks agree completely. The value is NaN if one side is constant.
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    if a.shape != b.shape or len(a) < 2:
        raise ValueError(f"a correlation needs pairs, at least two (got {len(a)} and {len(b)})")
    n = len(a)
    if (a == a[0]).all() or (b == b[0]).all():
        return Estimate(np.nan, np.nan, np.nan, n)
    from scipy.stats import spearmanr  # the import takes half a second, and few pages need it

    r = float(np.clip(spearmanr(a, b).statistic, -1, 1))
    if n < 4 or abs(r) == 1:
        return Estimate(r, np.nan, np.nan, n)
    half = ndtri(0.5 + level / 2) * np.sqrt((1 + r**2 / 2) / (n - 3))
    low, high = np.tanh([np.arctanh(r) - half, np.arctanh(r) + half])
    return Estimate(r, float(low), float(high), n, _words("Bonett and Wright", level))
