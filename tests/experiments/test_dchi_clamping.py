"""What clamping adds, against plain computations for one draw."""

import numpy as np
import pytest
from dchi_making import halves

from mobpriv.experiments import dchi
from mobpriv.experiments.dchi import draw, prepare, published

SAMPLES = draw(prepare(*halves(400)), np.random.default_rng(1), 8)
HOW = {}, {"rounding": "floor"}, {"scale": "printed"}, {"law": "geometric"}
WAYS = [dchi.protection(chi, True, **how) for chi in ("all", "N5") for how in HOW]


@pytest.mark.parametrize("protection", WAYS, ids=str)
def test_clamping_is_all_that_is_left_out(protection):
    free = dchi.unclamped(SAMPLES, protection, 0.7)
    assert (free < 0).any()
    np.testing.assert_array_equal(np.maximum(free, 0), published(SAMPLES, protection, 0.7))


def test_the_error_without_clamping_by_hand():
    free = dchi.unclamped(SAMPLES, dchi.COUNTS, 0.7)
    found = dchi.unclamped_error(SAMPLES, dchi.COUNTS, [0.7])
    assert found.shape == (8, 1)
    by_hand = [abs(sum(int(free[3, i, j]) - int(SAMPLES.day[3, i, j]) for i in range(100))) for j in range(29)]
    assert found[3, 0] == pytest.approx(sum(by_hand) / 29)
    assert (found < dchi.error(SAMPLES, dchi.COUNTS, [0.7])).all()  # of few visits the zeros are most


def test_what_is_added_and_moved_by_hand():
    said, true = published(SAMPLES, dchi.NEAR_COUNTS, 0.7)[2].tolist(), SAMPLES.day[2].tolist()
    pairs = [(s, t) for rows in zip(said, true, strict=True) for s, t in zip(*rows, strict=True)]
    of = dchi.added(SAMPLES, dchi.NEAR_COUNTS, 0.7)
    assert of.visited[2] == pytest.approx(sum(s - t for s, t in pairs if t > 0) / 29)
    assert of.others[2] == pytest.approx(sum(s - t for s, t in pairs if t == 0) / 29)
    share = sum(abs(s - t) for s, t in pairs if t > 0) / sum(t for _, t in pairs if t > 0)
    assert dchi.moved(SAMPLES, dchi.NEAR_COUNTS, 0.7)[2] == pytest.approx(share)  # χ holds all visited POIs


def test_booleans_are_refused():
    with pytest.raises(ValueError, match="booleans are not clamped"):
        dchi.unclamped(SAMPLES, dchi.BOOLEANS, 1.0)
