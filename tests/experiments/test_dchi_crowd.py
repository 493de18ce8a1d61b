"""Crowds: nested, and attacked as Algorithm 11 written out attacks them."""

import naive_dchi as naive
import numpy as np
import pytest
from dchi_making import halves

from mobpriv.experiments import dchi
from mobpriv.experiments.dchi import published
from mobpriv.experiments.dchi_choices import attacked, crowds, mean_share, sizes_up_to, sought

COUNTS = np.add(*(half.to_numpy() for half in halves(120)))
SIZES = sizes_up_to((20, 60, 500), len(COUNTS))
DRAWS = list(crowds([COUNTS], SIZES, np.random.default_rng(1), 2))


def test_a_larger_crowd_holds_the_smaller_one():
    assert SIZES == (20, 60, 120)
    for crowd in DRAWS:
        for n in SIZES[:-1]:
            np.testing.assert_array_equal(crowd[n].day[0], crowd[120].day[0, :n])
            np.testing.assert_array_equal(crowd[n].u[0], crowd[120].u[0, :n])
        assert sorted(crowd[120].users[0]) == list(range(120))
    assert (DRAWS[0][20].users != DRAWS[1][20].users).any()


def test_layouts_take_turns():
    other = COUNTS[:80, ::-1]
    found = list(crowds([COUNTS, other], (20, 80), np.random.default_rng(1), 3))
    for crowd, counts in zip(found, (COUNTS, other, COUNTS), strict=True):
        np.testing.assert_array_equal(crowd[80].day[0], counts[crowd[80].users[0]])
    with pytest.raises(ValueError, match=r"sizes must be whole numbers in 2 … 80"):
        next(crowds([COUNTS, other], [81], np.random.default_rng(1), 1))


@pytest.mark.parametrize("protection", [dchi.BOOLEANS, dchi.NEAR_COUNTS], ids=str)
def test_attacks_by_hand(protection):
    crowd = DRAWS[1][60]
    of = published(crowd, protection, 1.0)
    said = of[0].astype(int).tolist()
    true = protection.of(crowd.day)[0].astype(int).tolist()
    for found, rows, candidates in (
        (attacked(crowd, protection, of, (1, 3)), said[:30], true[:30]),
        (sought(crowd, protection, of, (1, 3), 10), true[:10], said),
    ):
        d = [[naive.l1(a, b) for b in candidates] for a in rows]
        assert found.top == np.mean([sum(x <= row[i] for x in row) == 1 for i, row in enumerate(d)])
        for most, best in zip((1, 3), found.best, strict=True):
            alone = lambda delta: [row[i] <= delta and sum(x <= delta for x in row) <= most for i, row in enumerate(d)]  # noqa: E731, B023
            assert best == pytest.approx(max(sum(alone(delta)) for delta in range(200)) / len(rows))
    share = dchi.error(crowd, protection, [1.0])[0, 0] / dchi.level(crowd, protection)[0]  # as in the figures
    assert mean_share(crowd, protection, of) == pytest.approx(share)
    with pytest.raises(ValueError, match="leaked"):
        sought(crowd, protection, of, [1], 61)
