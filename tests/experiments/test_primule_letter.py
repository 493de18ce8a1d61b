"""Algorithm 2 by the letter against the fast one and against its slow twin, and the least loss against all partitions."""

from fractions import Fraction

import naive_primule as naive
import numpy as np
import pytest
from call_making import crowd
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.experiments.primule_merging import by_letter, first_round, least_loss, loss_of
from mobpriv.icp.rows import distinct
from mobpriv.mechanisms.icp.primule import mitigate


def distinct_of(seed, n=150, cells=24):
    return distinct(np.rint(crowd(n, seed, cells).to_numpy() * 10).astype(np.int64))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 20), st.booleans())
def test_repaired_it_is_primule(seed, k, printed):
    different = distinct_of(seed)
    fast = mitigate(different.values, different.sizes, 10, k, unsafe="printed" if printed else "below k")
    slow = by_letter(different.sizes, different.values / 10, k, line_27="at most k" if printed else "below k")
    assert slow.ended
    assert {frozenset(np.flatnonzero(slow.group == g)) for g in np.unique(slow.group)} == {
        frozenset(np.flatnonzero(fast.group == g)) for g in np.unique(fast.group)
    }
    assert slow.rounds["groups"].tolist() == fast.rounds[:-1].tolist()
    assert (slow.rounds["merges"] == -np.diff(fast.rounds)).all()
    assert slow.cardinality.sum() == 150


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_line_17_as_printed_counts_nobody_less(seed, k):
    rng = np.random.default_rng(seed)
    at, sizes = np.unique(rng.integers(0, 10**6, (9, 2)), axis=0) / 1e6, rng.integers(1, k + 1, 9)
    found = by_letter(sizes, at, k, line_17="g2")
    assert found.ended
    assert found.cardinality.sum() >= sizes.sum()
    assert found.cardinality.min() >= k


def test_line_17_by_hand():
    """A and B are each other's nearest: merged twice, 8 profiles out of 7."""
    found = by_letter([1, 1, 5], [[0.2], [0.4], [1.0]], 3, line_17="g2", line_27="at most k")
    assert found.cardinality.sum() == 8
    assert sum(naive.line_17([1, 1, 5], [[Fraction(1, 5)], [Fraction(2, 5)], [Fraction(1)]], 3)[0]) == 8
    assert by_letter([1, 1, 5], [[0.2], [0.4], [1.0]], 3).cardinality.sum() == 7


def test_the_own_group_is_the_nearest():
    """Lines 9 and 10 as printed: each doubles until it counts enough, and is what it was."""
    found = by_letter([1, 2, 9], [[0.0], [0.5], [1.0]], 5, own=True)
    assert found.ended
    assert found.cardinality.tolist() == [8, 8, 9]
    np.testing.assert_array_equal(found.means, [[0.0], [0.5], [1.0]])
    assert found.group.tolist() == [0, 1, 2]


def test_as_many_profiles_as_k():
    """Line 27: the last group of k stays unsafe and has no other to join."""
    assert not by_letter([1, 1, 2], [[0.0], [0.1], [1.0]], 4, line_27="at most k").ended
    assert by_letter([1, 1, 2], [[0.0], [0.1], [1.0]], 4).ended
    assert not by_letter([1, 1], [[0.0], [1.0]], 4).ended  # fewer than k


def test_pairs_one_by_one_are_nearest():
    different = distinct_of(3)
    one = by_letter(different.sizes, different.values / 10, 8, at_once=False)
    assert one.merges["nearest"].all()
    assert (one.rounds["merges"] == 1).all()
    assert not by_letter(different.sizes, different.values / 10, 8).merges["nearest"].all()


def test_ties_at_random():
    at, sizes = [[0.2], [0.4], [0.6]], [3, 1, 3]
    found = {tuple(by_letter(sizes, at, 3, ties=np.random.default_rng(seed)).group) for seed in range(20)}
    assert len(found) == 2
    assert by_letter(sizes, at, 3).rounds["tied"].tolist() == [1]


def partitions(rows):
    if not rows:
        yield []
        return
    first, *rest = rows
    for split in range(2 ** len(rest)):
        own = [first] + [row for i, row in enumerate(rest) if split >> i & 1]
        for other in partitions([row for i, row in enumerate(rest) if not split >> i & 1]):
            yield [own, *other]


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
            wanted = min(wanted, loss_of(sizes, at, group))
    assert least_loss(sizes, at, 3) == pytest.approx(wanted)
    assert loss_of(sizes, at, by_letter(sizes, at, 3).group) >= wanted - 1e-12


def test_too_few_for_one_group():
    assert least_loss([1, 1], [[0.0], [1.0]], 3) == np.inf


def test_ties_of_the_first_round_by_hand():
    """1 is as far from 0, which three have, as from 2, which two have; 2 as far from 1, which one has, as from 3, which one has."""
    found = first_round(np.array([[0], [1], [2], [3]]), np.array([3, 1, 2, 1]), 3)
    assert found.several.tolist() == [True, True, False]  # 1, 2 and 3 are unsafe, 0 is safe
    assert found.of_larger.tolist() == found.of_smaller.tolist() == [False, True, False]
    alone = first_round(np.array([[0]]), np.array([1]), 3)
    assert [of.tolist() for of in alone] == [[False]] * 3


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 12), st.sampled_from([1, 2, 24]))
def test_ties_of_the_first_round(seed, k, cells):
    """As Algorithm 2 by the letter counts them; and pair by pair for the larger and the smaller."""
    different = distinct_of(seed, 60, cells)
    x, sizes = different.values.tolist(), different.sizes.tolist()
    found = first_round(different.values, different.sizes, k)
    played = by_letter(different.sizes, different.values / 10, k)
    if len(x) > 1 and len(played.rounds):
        assert found.several.sum() == played.rounds["tied"].iloc[0]
    unsafe = [g for g, n in enumerate(sizes) if n < k]
    assert len(found.several) == len(unsafe)
    for sign, of in ((-1, found.of_larger), (1, found.of_smaller)):
        for g, tied in zip(unsafe, of, strict=True):
            ranks = sorted((naive.euclidean(x[g], x[o]), sign * sizes[o]) for o in range(len(x)) if o != g)
            assert tied == (ranks[1:] != [] and ranks[0] == ranks[1])
