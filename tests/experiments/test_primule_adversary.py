"""Other adversaries than PRIMULE's: errors of a day, what a group gives away, one more call."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.experiments.primule_adversary import (
    days_wrong,
    group_homogeneity,
    infer_cells,
    one_more_call,
    same_in_group,
    shuffled,
)
from mobpriv.icp.profiles import DAYS

GROUPS = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 2)), min_size=1, max_size=15)
GROUPS = GROUPS.filter(lambda rows: any(t >= 0 for _, t in rows))


@pytest.mark.parametrize("wrong", [0, 1, 3, 24])
def test_who_is_wrong_is_wrong_by_a_day_in_so_many_cells(wrong):
    rng = np.random.default_rng(1)
    counts = rng.integers(0, DAYS + 1, (200, 24))
    seen = days_wrong(counts, wrong, rng)
    assert ((seen >= 0) & (seen <= DAYS)).all()
    assert (np.abs(seen - counts).sum(axis=1) == wrong).all()
    assert (np.abs(seen - counts) <= 1).all()
    middle = (counts > 0) & (counts < DAYS) & (seen != counts)
    if wrong > 1:
        assert 0.4 < (seen > counts)[middle].mean() < 0.6
    with pytest.raises(ValueError, match="wrong must be a whole number of cells, 0 to 24"):
        days_wrong(counts, 25, rng)


@given(GROUPS)
def test_what_a_group_gives_away_equals_the_definition(rows):
    group, trait = map(np.array, zip(*rows, strict=True))
    homogeneity = group_homogeneity(group, trait)
    known = [(g, t) for g, t in rows if t >= 0]
    for i, (g, t) in enumerate(known):
        those = [other for of, other in known if of == g]
        largest = max(map(those.count, those))
        commonest = {o for o in those if those.count(o) == largest}
        assert homogeneity.kinds[i] == len(set(those))
        assert homogeneity.guess[i] == largest / len(those)
        assert homogeneity.right[i] == (t in commonest) / len(commonest)
    assert homogeneity.right.mean() == pytest.approx(homogeneity.guess.mean())  # two ways to the same number


def test_shuffling_keeps_the_traits_of_each_municipality():
    trait, where = np.arange(60) % 7, np.repeat(["P", "L", "M"], 20)
    mixed = shuffled(trait, where, np.random.default_rng(1))
    for town in "PLM":
        assert sorted(mixed[where == town]) == sorted(trait[where == town])
    assert (mixed != trait).any()


def test_one_more_call_by_hand():
    """Three are equal in cell 0; of the calls in cells 1 and 2 some are shared, one is nobody else's."""
    counts = np.array([[1, 1, 1], [1, 2, 0], [1, 0, 0], [0, 1, 0]])
    further = one_more_call(np.array([0, 0, 0, 1]), counts, np.array([0]), 2)
    assert further.rows.tolist() == [0, 1, 3]
    assert further.alone.tolist() == [0.5, 0, 1]
    assert further.below.tolist() == [0.5, 0, 1]
    assert one_more_call(np.array([0, 0, 0, 1]), counts, np.array([0]), 3).below.tolist() == [1, 1, 1]


def test_cells_that_a_whole_group_shares():
    counts = np.array([[1, 1], [1, 2], [0, 3]])
    assert same_in_group(np.array([5, 5, 2]), counts).tolist() == [[True, False], [True, False], [True, True]]


def test_who_knows_one_week_reads_the_rest_off_the_nearest():
    """Each target for itself, every published row looked at; of a week of days with many ties."""
    rng = np.random.default_rng(3)
    days, town, h = rng.integers(0, 2, (60, 24)), np.repeat(["P", "L"], 30), np.arange(6)
    published = days / DAYS
    for rows in np.arange(60).reshape(20, 3):
        published[rows] = published[rows].mean(axis=0)  # groups of three
    probability = infer_cells(days / DAYS, days, published, town, h)
    for i in range(60):
        here = np.flatnonzero(town == town[i])
        distance = ((days[i, h] / DAYS[h] - published[here][:, h]) ** 2).sum(axis=1)
        near = here[distance <= distance.min() + 1e-9]
        assert probability[i] == pytest.approx((np.rint(published[near] * DAYS) == days[i]).mean(axis=0))


def test_of_profiles_as_near_each_counts_as_often_as_it_is_published():
    """Of three alike in the week that he knows two are published alike, with a call in cell 8; the third has none."""
    days = np.zeros((3, 24), int)
    days[:2, 8] = 1
    probability = infer_cells(days / DAYS, days, days / DAYS, np.array(["P"] * 3), np.arange(6))
    assert probability[:, 8] == pytest.approx([2 / 3, 2 / 3, 1 / 3])
