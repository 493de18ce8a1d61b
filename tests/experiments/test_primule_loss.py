"""Groups of profiles by PRIMULE, by a distance for the Sociometer, by MDAV, by Algorithm 2 to the letter, and the least loss of all."""

from fractions import Fraction

import naive_primule as naive
import numpy as np
import pandas as pd
import pytest
from call_making import crowd
from conftest import refuses
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.experiments import primule_merging as pm
from mobpriv.experiments.primule_scale import over_municipalities, published_values
from mobpriv.icp.profiles import keys as keys_of
from mobpriv.icp.profiles import known_cells
from mobpriv.icp.rows import distinct
from mobpriv.mechanisms.icp import Mdav, Primule
from mobpriv.mechanisms.icp.primule import mitigate
from mobpriv.metrics.information_loss import mse, one_group, same_time

X = crowd(300).to_numpy()
TOWN = np.repeat(["A", "B", "C"], [150, 145, 5])
ALL = np.arange(24)


def same(one, other):
    parts = [{frozenset(np.flatnonzero(of == g)) for g in np.unique(of)} for of in (one, other)]
    return parts[0] == parts[1]


@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("weeks", [2, 4])
def test_by_primule_is_primule(distance, weeks):
    days = np.rint(X * np.tile([5, 5, 5, 2, 2, 2], 4)).astype(int)
    table = pd.DataFrame({"user": range(300), "municipality": TOWN, "key": keys_of(days)})
    over = over_municipalities(table, 10, known_cells(weeks), distance)
    grouped = pm.by_primule(X, TOWN, 10, known_cells(weeks), distance)
    assert same(grouped.group, over.group)
    np.testing.assert_allclose(pm.published_profiles(X, grouped, known_cells(weeks)), published_values(table, over), atol=1e-12)
    assert (grouped.members[:295] >= 10).all()


def test_a_municipality_of_fewer_than_k_stays():
    for grouped in (pm.by_primule(X, TOWN, 10, ALL), pm.by_mdav(X, TOWN, 10, ALL), pm.for_service(X, TOWN, 10, ALL)):
        np.testing.assert_allclose(grouped.means[TOWN == "C"], X[TOWN == "C"])


def test_by_mdav_loses_what_mdav_loses():
    grouped, expected = pm.by_mdav(X, TOWN, 10, ALL), np.array(X)
    for one in "AB":
        table = pd.DataFrame(X[one == TOWN])
        expected[one == TOWN] = Mdav(10).protect(table, np.random.default_rng(1)).values
    assert pm.squared_errors(X, grouped, ALL).mean() == pytest.approx(mse(X, expected))
    assert (grouped.members[:295] >= 10).all()
    assert (grouped.members[:295] < 20).all()


def test_for_service_is_primule_by_that_distance():
    def tailored(mean, means):
        difference = means - mean
        sums = difference.reshape(len(means), -1, 6).sum(axis=1)
        return np.sqrt((difference**2).sum(axis=1) + 9 * (sums**2).sum(axis=1))

    rows = TOWN == "A"
    grouped = pm.for_service(X[rows], TOWN[rows], 7, ALL)
    slow = Primule(7, distance=tailored).protect(pd.DataFrame(X[rows]), np.random.default_rng(1))
    assert same(grouped.group, slow.group)


@pytest.mark.parametrize("h", [range(5), range(1, 7), [0, 1, 2, 3, 4, 4], [*range(6), *range(6)], range(3, 15)])
def test_for_service_knows_whole_weeks_from_as_many_cells(h):
    refuses(r"h must hold whole weeks, each of its 6 cells once.*got \d", pm.for_service, X, TOWN, 7, list(h))


def test_for_service_takes_the_cells_of_its_weeks_in_any_order():
    weeks, mixed = [0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17], [17, 3, 12, 0, 5, 14, 1, 4, 13, 2, 16, 15]
    one, other = (pm.for_service(X, TOWN, 7, h) for h in (weeks, mixed))
    assert same(one.group, other.group)
    np.testing.assert_allclose(pm.published_profiles(X, one, weeks), pm.published_profiles(X, other, mixed))


def test_cut_groups_are_parts_and_lose_no_more():
    grouped = pm.by_primule(X, TOWN, 5, ALL)
    less = pm.split_groups(X, grouped, 5, ALL)
    assert (less.members[TOWN != "C"] < 10).all()
    assert all(len(np.unique(grouped.group[less.group == g])) == 1 for g in np.unique(less.group))
    assert pm.squared_errors(X, less, ALL).sum() < pm.squared_errors(X, grouped, ALL).sum()


def test_single_is_the_bound():
    rows = TOWN == "B"
    assert pm.squared_errors(X, pm.single_group(X, TOWN, ALL), ALL)[rows].mean() == pytest.approx(one_group(X[rows]))
    for k in (5, 60, 145):
        assert pm.squared_errors(X, pm.by_primule(X, TOWN, k, ALL), ALL)[rows].mean() <= one_group(X[rows]) + 1e-12
    assert pm.squared_errors(X, pm.by_primule(X, TOWN, 145, ALL), ALL)[rows].mean() == pytest.approx(one_group(X[rows]))


def test_the_fullest_part_of_the_week_stays():
    """Weekdays from 8 to 19 in the first week; published a little less there, then more in the evening; then both alike."""
    x = np.zeros((1, 12))
    x[0, 1] = x[0, 7] = 0.4
    less, evening = x * 0.9, x.copy()
    evening[0, 2] = 1
    both = x.copy()
    both[0, 2], both[0, 8] = 0.6, 0.2
    assert [same_time(x, release).tolist() for release in (x, less, evening, both)] == [[1], [1], [0], [0.5]]
    assert same_time(np.zeros((1, 6)), x[:, :6]).tolist() == [1]  # who calls at no time calls at all of them alike
    refuses(r"whole weeks of 6 cells \(got 5 cells\)", same_time, np.zeros((1, 5)), np.zeros((1, 5)))


def distinct_of(seed, n=150, cells=24):
    return distinct(np.rint(crowd(n, seed, cells).to_numpy() * 10).astype(np.int64))


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 20), st.booleans())
def test_repaired_it_is_primule(seed, k, printed):
    distinct_rows = distinct_of(seed)
    fast = mitigate(distinct_rows.values, distinct_rows.sizes, 10, k, unsafe="printed" if printed else "below k")
    slow = pm.literal_algorithm_2(
        distinct_rows.sizes, distinct_rows.values / 10, k, line_27="at most k" if printed else "below k"
    )
    assert slow.ended
    assert same(slow.group, fast.group)
    assert slow.rounds["groups"].tolist() == fast.rounds[:-1].tolist()
    assert (slow.rounds["merges"] == -np.diff(fast.rounds)).all()
    assert slow.cardinality.sum() == 150


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_line_17_as_printed_counts_nobody_less(seed, k):
    rng = np.random.default_rng(seed)
    at, sizes = np.unique(rng.integers(0, 10**6, (9, 2)), axis=0) / 1e6, rng.integers(1, k + 1, 9)
    run = pm.literal_algorithm_2(sizes, at, k, line_17="g2")
    assert run.ended
    assert run.cardinality.sum() >= sizes.sum()
    assert run.cardinality.min() >= k


def test_line_17_by_hand():
    """A and B are each other's nearest: merged twice, 8 profiles out of 7."""
    run = pm.literal_algorithm_2([1, 1, 5], [[0.2], [0.4], [1.0]], 3, line_17="g2", line_27="at most k")
    assert run.cardinality.sum() == 8
    assert sum(naive.line_17([1, 1, 5], [[Fraction(1, 5)], [Fraction(2, 5)], [Fraction(1)]], 3)[0]) == 8
    assert pm.literal_algorithm_2([1, 1, 5], [[0.2], [0.4], [1.0]], 3).cardinality.sum() == 7


def test_the_own_group_is_the_nearest():
    """Lines 9 and 10 as printed: each doubles until it counts enough, and is what it was."""
    run = pm.literal_algorithm_2([1, 2, 9], [[0.0], [0.5], [1.0]], 5, own=True)
    assert run.ended
    assert run.cardinality.tolist() == [8, 8, 9]
    np.testing.assert_array_equal(run.means, [[0.0], [0.5], [1.0]])
    assert run.group.tolist() == [0, 1, 2]


def test_as_many_profiles_as_k():
    """Line 27: the last group of k stays unsafe and has no other to join."""
    assert not pm.literal_algorithm_2([1, 1, 2], [[0.0], [0.1], [1.0]], 4, line_27="at most k").ended
    assert pm.literal_algorithm_2([1, 1, 2], [[0.0], [0.1], [1.0]], 4).ended
    assert not pm.literal_algorithm_2([1, 1], [[0.0], [1.0]], 4).ended  # fewer than k


def test_pairs_one_by_one_are_nearest():
    distinct_rows = distinct_of(3)
    one = pm.literal_algorithm_2(distinct_rows.sizes, distinct_rows.values / 10, 8, at_once=False)
    assert one.merges["nearest"].all()
    assert (one.rounds["merges"] == 1).all()
    assert not pm.literal_algorithm_2(distinct_rows.sizes, distinct_rows.values / 10, 8).merges["nearest"].all()


def test_ties_at_random():
    at, sizes = [[0.2], [0.4], [0.6]], [3, 1, 3]
    groups = {tuple(pm.literal_algorithm_2(sizes, at, 3, ties=np.random.default_rng(seed)).group) for seed in range(20)}
    assert len(groups) == 2
    assert pm.literal_algorithm_2(sizes, at, 3).rounds["tied"].tolist() == [1]


def partitions(rows):
    if not rows:
        yield []
        return
    first, *rest = rows
    for split in range(2 ** len(rest)):
        part = [first] + [row for i, row in enumerate(rest) if split >> i & 1]
        for other in partitions([row for i, row in enumerate(rest) if not split >> i & 1]):
            yield [part, *other]


@pytest.mark.parametrize("seed", range(5))
def test_the_least_loss_of_all_partitions(seed):
    rng = np.random.default_rng(seed)
    sizes, at = rng.integers(1, 3, 6), rng.random((6, 3))
    wanted = np.inf
    for parts in partitions(list(range(6))):
        if min(sizes[part].sum() for part in parts) >= 3:
            group = np.empty(6, int)
            for number, part in enumerate(parts):
                group[part] = number
            wanted = min(wanted, pm.loss_of(sizes, at, group))
    assert pm.least_loss(sizes, at, 3) == pytest.approx(wanted)
    assert pm.least_loss(sizes[:1], at[:1], 3) == np.inf  # too few for one group
    assert pm.loss_of(sizes, at, pm.literal_algorithm_2(sizes, at, 3).group) >= wanted - 1e-12


def test_ties_of_the_first_round_by_hand():
    """1 is as far from 0, which three have, as from 2, which two have; 2 as far from 1, which one has, as from 3, which one has."""
    ties = pm.first_round_ties(np.array([[0], [1], [2], [3]]), np.array([3, 1, 2, 1]), 3)
    assert ties.several.tolist() == [True, True, False]  # 1, 2 and 3 are unsafe, 0 is safe
    assert ties.of_larger.tolist() == ties.of_smaller.tolist() == [False, True, False]
    single = pm.first_round_ties(np.array([[0]]), np.array([1]), 3)
    assert [of.tolist() for of in single] == [[False]] * 3


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 12), st.sampled_from([1, 2, 24]))
def test_ties_of_the_first_round(seed, k, cells):
    """As Algorithm 2 by the letter counts them; and pair by pair for the larger and the smaller."""
    distinct_rows = distinct_of(seed, 60, cells)
    x, sizes = distinct_rows.values.tolist(), distinct_rows.sizes.tolist()
    ties = pm.first_round_ties(distinct_rows.values, distinct_rows.sizes, k)
    played = pm.literal_algorithm_2(distinct_rows.sizes, distinct_rows.values / 10, k)
    if len(x) > 1 and len(played.rounds):
        assert ties.several.sum() == played.rounds["tied"].iloc[0]
    unsafe = [g for g, n in enumerate(sizes) if n < k]
    assert len(ties.several) == len(unsafe)
    for sign, of in ((-1, ties.of_larger), (1, ties.of_smaller)):
        for g, tied in zip(unsafe, of, strict=True):
            ranks = sorted((naive.euclidean(x[g], x[o]), sign * sizes[o]) for o in range(len(x)) if o != g)
            assert tied == (ranks[1:] != [] and ranks[0] == ranks[1])
