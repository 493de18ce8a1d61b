"""The choices of the PRIMULE chapter: another order of cells, other slots."""

import numpy as np
import pandas as pd
import pytest

from mobpriv.experiments.primule import cells_in_order, prepare, with_slots
from mobpriv.icp.profiles import SLOTS
from mobpriv.mechanisms.icp import Primule


@pytest.fixture(scope="module")
def small():
    return prepare("region", most=1)


def test_cells_in_their_own_order_are_primule():
    rng = np.random.default_rng(1)
    values, town = rng.integers(0, 3, (60, 6)) / 2, np.repeat(["P", "L"], 30)
    own = cells_in_order(values, town, 4, np.arange(6))
    for name in "PL":
        expected = Primule(4).protect(pd.DataFrame(values[town == name]), rng).values
        assert np.array_equal(own[town == name], expected)
    other = cells_in_order(values, town, 4, np.arange(6)[::-1])
    assert np.allclose(other.sum(axis=0), values.sum(axis=0))
    assert not np.allclose(own, other)


def test_without_ties_the_order_of_cells_is_no_matter():
    rng = np.random.default_rng(2)
    values, town = np.round(rng.random((40, 6)), 6), np.repeat("P", 40)
    assert np.allclose(cells_in_order(values, town, 5, rng.permutation(6)), cells_in_order(values, town, 5, np.arange(6)))


def test_other_slots_hold_the_same_people(small):
    same = with_slots(small, SLOTS)
    pd.testing.assert_frame_equal(*(of.profiles.astype({"municipality": str, "user": str}) for of in (same, small)))
    moved = with_slots(small, (0, 6, 18))
    assert moved.profiles["user"].astype(str).tolist() == small.profiles["user"].astype(str).tolist()
    assert not np.array_equal(moved.values, small.values)
    assert moved.window.slots == (0, 6, 18)
