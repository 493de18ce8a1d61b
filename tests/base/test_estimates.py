"""Estimates with intervals, against formulae written out and their coverage counted out."""

from math import comb, sqrt

import numpy as np
import pytest
from conftest import refusals
from scipy import stats

from mobpriv.base import estimates


@pytest.mark.parametrize("q", [0.5, 0.25, 0.75, 0.9])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_a_quantile_has_an_interval_where_the_extremes_cover_it_and_no_wider_one_than_needed(q, level):
    """The r-th to the s-th of n values miss the quantile where fewer than r, or at least s, of n lie below it: binomial, exactly."""
    tail = (1 - level) / 2
    for n in range(1, 61):
        estimate = estimates.quantile(np.arange(1, n + 1), q, level)  # the k-th smallest value is k
        below = [sum(comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(r)) for r in range(n + 2)]  # fewer than r
        if below[1] > tail or 1 - below[n] > tail:  # even the least or the largest value lies beyond it too often
            assert np.isnan([estimate.low, estimate.high]).all(), n
            assert estimate.value == np.quantile(np.arange(1, n + 1), q)  # it has a value all the same
            continue
        r, s = int(estimate.low), int(estimate.high)
        assert below[r] <= tail < below[r + 1], n
        assert 1 - below[s] <= tail < 1 - below[s - 1], n


def trials(both, first, second, neither):
    """Paired trials: how many succeed on both sides, on the first alone, on the second alone, on neither."""
    a = np.repeat([1, 1, 0, 0], [both, first, second, neither])
    b = np.repeat([1, 0, 1, 0], [both, first, second, neither])
    return a, b


@pytest.mark.parametrize("counts", [(30, 12, 5, 53), (0, 3, 0, 1), (7, 0, 0, 7), (1, 20, 18, 1)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_paired_difference_has_the_interval_of_agresti_and_min(counts, level):
    """Agresti and Min (2005), §2: half a trial added to each outcome, n* = n + 2, and Wald's interval

    (p12 − p21) ± z √{[p12 + p21 − (p12 − p21)²] / n*}, p12 and p21 the shares of the discordant trials.
    """
    n = sum(counts) + 2
    p12, p21 = (counts[1] + 0.5) / n, (counts[2] + 0.5) / n
    z = stats.norm.isf((1 - level) / 2)
    half = z * sqrt((p12 + p21 - (p12 - p21) ** 2) / n)
    estimate = estimates.paired_difference(*trials(*counts), level)
    assert estimate.value == pytest.approx((counts[1] - counts[2]) / sum(counts))
    assert (estimate.low, estimate.high) == pytest.approx((max(-1, p12 - p21 - half), min(1, p12 - p21 + half)), abs=1e-12)
    assert estimate.n == sum(counts)


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (0, 522), (7, 35), (201, 522), (522, 522)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_rate_has_wilsons_interval(hits, n, level):
    estimate, expected = (
        estimates.rate([1] * hits + [0] * (n - hits), level),
        stats.binomtest(hits, n).proportion_ci(level, "wilson"),
    )
    assert (estimate.value, estimate.n) == (hits / n, n)
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert estimate.low <= estimate.value <= estimate.high


def test_repeated_trials():
    """Ten draws of each case: the mean of the shares; as wide as of cases that only succeed or fail, so never too narrow."""
    rng = np.random.default_rng(1)
    truth = rng.beta(0.5, 0.5, 4000)
    estimate = [estimates.rate(rng.binomial(10, rng.choice(truth, 60)) / 10) for _ in range(2000)]
    assert np.mean([e.low <= truth.mean() <= e.high for e in estimate]) > 0.95
    shares = rng.binomial(10, truth) / 10
    other = rng.binomial(10, truth[::-1]) / 10
    estimate, differences = estimates.paired_difference(shares, other), shares - other
    assert estimate.value == pytest.approx(differences.mean())
    assert (estimate.high - estimate.low) / 2 == pytest.approx(1.959964 * differences.std() / sqrt(len(differences)), rel=1e-2)


def test_difference_of_means_is_welchs():
    rng = np.random.default_rng(2)
    a, b = rng.normal(3, 1, 9), rng.normal(1, 4, 14)
    estimate, expected = estimates.mean_difference(a, b), stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert dict(estimate) == pytest.approx({"value": a.mean() - b.mean(), "low": expected.low, "high": expected.high, "n": 9})
    # against something known it is Student's interval of the other mean
    known, equal, mean = estimates.mean_difference(a, [1.0]), estimates.mean_difference(a, [1.0] * 5), estimates.mean(a)
    assert (known.low + 1, known.high + 1) == pytest.approx((mean.low, mean.high))
    assert (known.low, known.high) == (equal.low, equal.high)
    assert np.isnan(estimates.mean_difference([1], [2]).low)


def test_ratio_of_means_covers_the_truth():
    rng = np.random.default_rng(3)
    ratios = [estimates.ratio_of_means(rng.normal(0.4, 0.03, 10), rng.normal(0.5, 0.02, 10)) for _ in range(4000)]
    assert np.mean([e.low <= 0.8 <= e.high for e in ratios]) == pytest.approx(0.95, abs=0.012)


# ------------------------------------------------------------------------------------------------------ trials of several users
def test_a_user_whose_trials_are_all_alike_counts_once():
    """Ten trials each, all alike: the interval is that of the users' single trials, with Student's quantile for Wilson's normal one."""
    estimate = estimates.clustered_rate(np.repeat([1, 0], [50, 70]), np.repeat(np.arange(12), 10))
    p, effective = 5 / 12, 11  # m/(m-1) in the variance takes one user off
    z2 = stats.t.ppf(0.975, 11) ** 2
    half = sqrt(z2 * (p * (1 - p) + z2 / (4 * effective)) / effective)
    ends = [(p + z2 / (2 * effective) + sign * half) / (1 + z2 / effective) for sign in (-1, 1)]
    assert dict(estimate) == pytest.approx({"value": p, "low": ends[0], "high": ends[1], "n": 120})


def test_clustered_intervals_of_users_with_one_trial_are_those_of_trials():
    """Many users of one trial each: Wilson's, and Agresti and Min's interval, but for Student's quantile and m / (m - 1)."""
    a, b = trials(800, 400, 250, 550)
    users = np.arange(len(a))
    assert dict(estimates.clustered_rate(a, users)) == pytest.approx(dict(estimates.rate(a)), abs=2e-4)
    clustered, known = estimates.clustered_difference(a, b, users), estimates.paired_difference(a, b)
    assert dict(clustered) == pytest.approx(dict(known), abs=2e-4)


def test_names_and_the_order_of_trials_do_not_matter():
    rng = np.random.default_rng(3)
    a, b, users = rng.integers(0, 2, 60), rng.integers(0, 2, 60), rng.integers(0, 7, 60)
    order, names = rng.permutation(60), np.array([f"u{9 - i}" for i in range(7)])
    for estimated in (
        lambda k, w: estimates.clustered_rate(a[k], w),
        lambda k, w: estimates.clustered_difference(a[k], b[k], w),
    ):
        one, other = estimated(np.arange(60), users), estimated(order, names[users[order]])
        assert [*dict(one).values()] == pytest.approx([*dict(other).values()])


@pytest.mark.parametrize("success", [0, 1])
def test_where_nothing_varies_each_user_counts_once(success):
    estimate = estimates.clustered_rate(np.full(90, success), np.repeat(np.arange(9), 10))
    t2 = stats.t.ppf(0.975, 8) ** 2
    assert abs(success - (estimate.low if success else estimate.high)) == pytest.approx(t2 / (9 + t2))
    nothing = estimates.clustered_difference(np.full(90, success), np.full(90, success), np.repeat(np.arange(9), 10))
    assert nothing.low < 0 < nothing.high


def test_one_user_has_no_interval_and_a_ratio_to_nothing_no_value():
    for estimate in (
        estimates.clustered_rate([1, 0], ["a", "a"]),
        estimates.clustered_difference([1, 0], [0, 0], ["a", "a"]),
        estimates.clustered_ratio([1, 0], 1, ["x", "x"]),
    ):
        assert estimate.value == 0.5
        assert np.isnan([estimate.low, estimate.high]).all()
    assert np.isnan(estimates.clustered_ratio([1, 0], 0, ["x", "y"]).value)


@pytest.mark.parametrize("middle", [0.1, 0.4])
def test_clustered_intervals_cover_the_truth_and_those_of_trials_do_not(middle):
    """30 users with 5 to 60 trials each, whose own rates vary (beta, correlation 0.2): counted over 1000 samples."""
    rng = np.random.default_rng(11)
    covered = dict.fromkeys(("users", "trials", "difference"), 0)
    for _ in range(1000):
        sizes = rng.integers(5, 61, 30)
        users = np.repeat(np.arange(30), sizes)
        user_rate = rng.beta(4 * middle, 4 * (1 - middle), 30)[users]  # correlation 1 / (4 + 1)
        a, b = (
            rng.random(len(user_rate)) < user_rate,
            rng.random(len(user_rate)) < np.repeat(rng.beta(4 * middle, 4 * (1 - middle), 30), sizes),
        )
        of_users, of_trials = estimates.clustered_rate(a, users), estimates.rate(a)
        difference = estimates.clustered_difference(a, b, users)
        covered["users"] += of_users.low <= middle <= of_users.high
        covered["trials"] += of_trials.low <= middle <= of_trials.high
        covered["difference"] += difference.low <= 0 <= difference.high
    # three standard errors of a share of 0.95 in 1000 are 0.02; with 30 users of unequal sizes a ratio falls a little short
    assert covered["users"] > 920
    assert covered["difference"] > 920
    assert covered["trials"] < 700


def test_a_change_over_the_same_trials_is_their_difference():
    rng = np.random.default_rng(5)
    users, a, b = rng.integers(0, 40, 900), rng.integers(0, 2, 900), rng.integers(0, 2, 900)
    one, other = estimates.clustered_change(a, users, b, users), estimates.clustered_difference(a, b, users)
    assert one.value == pytest.approx(other.value)
    assert dict(one) == pytest.approx(dict(other), abs=4e-4)  # 2 of 902 trials are added there


def test_a_change_of_the_same_users_covers_the_truth():
    """Long and short trials of 30 users whose own rates vary: easy users are easy in both, which makes the change steadier."""
    rng = np.random.default_rng(7)
    covered, narrower = 0, 0
    for _ in range(1000):
        user_rate = rng.beta(2, 3, 30)
        many, few = np.repeat(np.arange(30), rng.integers(20, 61, 30)), np.repeat(np.arange(30), rng.integers(3, 7, 30))
        a, b = rng.random(len(many)) < user_rate[many], rng.random(len(few)) < user_rate[few]
        estimate = estimates.clustered_change(a, many, b, few)
        covered += estimate.low <= 0 <= estimate.high
        strangers = estimates.clustered_change(a, many, b, few + 30)
        narrower += estimate.high - estimate.low < strangers.high - strangers.low
    assert covered > 920  # as above
    assert narrower > 950


def test_repeated_trials_count_once():
    """Ten repetitions of the same trials: the change, its interval and its n are those of one."""
    rng = np.random.default_rng(8)
    a, b, long, short = rng.random(60) < 0.6, rng.random(20) < 0.4, np.repeat(np.arange(20), 3), np.arange(20)
    once = estimates.clustered_change(a, long, b, short)
    again = estimates.clustered_change(*(np.tile(of, 10) for of in (a, long, b, short)), repeats=10)
    assert dict(again) == pytest.approx(dict(once))


def test_a_change_of_rates_stays_between_minus_one_and_one():
    estimate = estimates.clustered_change(np.ones(8), list("abcdefgh"), np.zeros(8), list("abcdefgh"))
    assert (estimate.value, estimate.high) == (1, 1)
    assert 0 < estimate.low < 1


def test_a_share_of_all_or_none_has_an_interval():
    """Nobody's variance is no certainty: Wilson's for as many trials as there are users with a trial (user "z" has none)."""
    users, b = ["x", "x", "y", "z"], np.array([2, 1, 3, 0.0])
    for value, a in ((0, 0 * b), (1, b)):
        estimate = estimates.clustered_ratio(a, b, users, bounds=(0, 1))
        counted = estimates.clustered_rate([value] * 3, users[:3])
        assert (estimate.value, estimate.low, estimate.high, estimate.n) == (value, counted.low, counted.high, 4)
    assert estimates.clustered_ratio(b, b, users).low == 1  # a ratio that may be anything, as measured


def test_a_ratio_of_totals_by_hand():
    """Users (a, b): (1, 2), (3, 4), (0, 1): ratio 4/7, residuals −1/7, 5/7, −4/7."""
    estimate = estimates.clustered_ratio(
        np.array([1, 1, 2, 0.0]), np.array([2, 1, 3, 1.0]), ["x", "y", "y", "z"], bounds=(0, 1)
    )
    half = stats.t.ppf(0.975, 2) * sqrt(3 / 2 * (1 + 25 + 16) / 49) / 7
    by_hand = {"value": 4 / 7, "low": max(0, 4 / 7 - half), "high": min(1, 4 / 7 + half), "n": 4}
    assert dict(estimate) == pytest.approx(by_hand)


@pytest.mark.parametrize("copies", [1, 7])
def test_the_mean_of_trials_that_go_alike_is_that_of_their_users(copies):
    """Copies of a trial add nothing: the interval is Student's, over the users."""
    users = np.array([1.0, 0, 0.3, 1, 2.5, -1])
    estimate = estimates.clustered_ratio(np.repeat(users, copies), 1, np.repeat(np.arange(6), copies))
    assert dict(estimate) == pytest.approx(dict(estimates.mean(users)) | {"n": 6 * copies})


test_what_has_no_estimate = refusals(
    (estimates.clustered_rate, ([1, 0, 1], ["a", "b"]), "every trial needs a user"),
    (estimates.clustered_ratio, ([1, 0], 1, ["x"]), "every trial needs a user"),
    (estimates.clustered_ratio, ([], 1, []), "at least one trial"),
    (estimates.rate, ([1, 1.5],), r"succeeds, fails, or does so in a share of its repetitions \(got 1.5\)"),
    (estimates.spread, ([],), "at least one draw"),
    (estimates.over_draws, ([],), "at least one"),
    call=lambda estimate, given: estimate(*given),
)


def test_an_estimate_says_what_its_interval_is_in_a_file_but_not_in_a_row_of_a_table():
    hits, users = [1, 0, 1, 1], ["a", "a", "b", "c"]
    words = {
        "Wilson, 90 %": estimates.rate(hits, 0.9),
        "over users, Wilson, 95 %": estimates.clustered_rate(hits, users),
        "ratio over users, 95 %": estimates.clustered_ratio(hits, 1, users),
        "least and largest of the repetitions": estimates.spread(hits),
        "order statistics, 95 %": estimates.quantile(range(9), 0.5),
    }
    for interval, estimate in words.items():
        assert estimate.stored() == {**estimate, "interval": interval}
        assert set(estimate.keys()) == {"value", "low", "high", "n"}
    assert "interval" not in estimates.Estimate(1, 0, 2, 3).stored()


def test_over_draws_it_is_the_middle_of_the_draws_and_their_spread_the_least_and_largest():
    assert estimates.spread([3, 1, 2]) == estimates.Estimate(2, 1, 3, 3)
    assert dict(estimates.over_draws(np.arange(101.0))) == pytest.approx({"value": 50.0, "low": 2.5, "high": 97.5, "n": 101})
    estimate = estimates.over_draws([1.0] * 90 + [np.inf] * 10)  # infinite draws count
    assert (estimate.value, estimate.low, estimate.high) == (np.inf, 1.0, np.inf)
    assert estimates.over_draws([1.0] * 999 + [np.inf]).high == 1.0
    rng = np.random.default_rng(1)
    few, many = (estimates.over_draws(rng.normal(size=n)) for n in (1_000, 100_000))
    assert abs((many.high - many.low) - (few.high - few.low)) < 0.3  # it does not shrink with their number
