"""The choices of the PRIMULE chapter: other cells, slots and extractions, moved alone; risk and use on one plane: who beats whom."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.datasets import load_calls
from mobpriv.datasets.region import FIRST_MIDNIGHT, ZONE
from mobpriv.experiments.primule import (
    Dominance,
    PlanePoint,
    cells_in_order,
    choices,
    compare_profiles,
    dominance,
    prepare,
    thinned,
    with_slots,
)
from mobpriv.icp.profiles import SLOT_STARTS, Window, icps
from mobpriv.mechanisms.icp import Primule


@pytest.fixture(scope="module")
def small():
    return prepare("region", max_municipalities=1)


def test_cells_in_their_own_order_are_primule():
    rng = np.random.default_rng(1)
    values, town = rng.integers(0, 3, (60, 6)) / 2, np.repeat(["P", "L"], 30)
    in_order = cells_in_order(values, town, 4, np.arange(6))
    for name in "PL":
        expected = Primule(4).protect(pd.DataFrame(values[town == name]), rng).values
        assert np.array_equal(in_order[town == name], expected)
    other = cells_in_order(values, town, 4, np.arange(6)[::-1])
    assert np.allclose(other.sum(axis=0), values.sum(axis=0))
    assert not np.allclose(in_order, other)


def test_without_ties_the_order_of_cells_is_no_matter():
    rng = np.random.default_rng(2)
    values, town = np.round(rng.random((40, 6)), 6), np.repeat("P", 40)
    assert np.allclose(cells_in_order(values, town, 5, rng.permutation(6)), cells_in_order(values, town, 5, np.arange(6)))


def test_other_slots_hold_the_same_people(small):
    same = with_slots(small, SLOT_STARTS)
    pd.testing.assert_frame_equal(*(of.profiles.astype({"municipality": str, "user": str}) for of in (same, small)))
    other_slots = with_slots(small, (0, 6, 18))
    assert other_slots.profiles["user"].astype(str).tolist() == small.profiles["user"].astype(str).tolist()
    assert not np.array_equal(other_slots.values, small.values)
    assert other_slots.window.slots == (0, 6, 18)


def profiles(rows):
    user, town, key = zip(*rows, strict=True)
    return pd.DataFrame({"user": user, "municipality": town, "key": np.array(key, np.int64)})


def test_moved_by_hand():
    """a keeps her profile, b's changes, c's is gone; d is new and counts for the share of all, not for the paired shift."""
    before = profiles([("a", "X", 1), ("b", "X", 1), ("c", "X", 2)])
    after = profiles([("a", "X", 1), ("b", "X", 3), ("d", "X", 3)])
    change = compare_profiles(before, after, k=2)
    assert change.profiles == 3
    assert change.changed.value == pytest.approx(2 / 3)
    assert change.unsafe.value == pytest.approx(1 / 3)  # a alone
    assert (change.shift.value, change.shift.n) == (0.5, 2)  # a was one of two, b stays so with d
    same = compare_profiles(before, before, k=2)
    assert (same.changed.value, same.shift.value) == (0, 0)
    assert np.isnan(compare_profiles(before.iloc[:1], before.iloc[1:2]).shift.value)  # no profile in both


def test_the_choices_of_the_region():
    data = load_calls("region")
    data = data._replace(calls=data.calls[data.calls["user"].cat.codes < 300])
    window = Window(FIRST_MIDNIGHT.date(), ZONE)
    base = icps(data.calls, data.cells, window).profiles
    variants = choices(data, window)
    assert len(variants) == 9
    for name, varied in variants.items():
        assert compare_profiles(base, varied).changed.value > 0, name
    fewer = variants["users of 28 calls or more"]
    calls = data.calls["user"].value_counts()
    assert set(fewer["user"]) == set(calls.index[calls >= 28])
    kept = base[base["user"].isin(fewer["user"])]
    assert compare_profiles(kept, fewer).changed.value == 0  # who stays keeps her profile


def test_thinned_keeps_so_many():
    calls = pd.DataFrame({"user": range(20_000)})
    kept = thinned(calls, 0.3, np.random.default_rng(1))
    assert abs(len(kept) - 6000) < 5 * np.sqrt(20_000 * 0.3 * 0.7)
    assert thinned(calls, 1.0, np.random.default_rng(1)).equals(calls)


def setting(risk, utility, draws=3, spread=0.0, groups=1000):
    """1 000 targets in so many groups, of whom the first ones are found, and keep their label."""
    risk, utility = (np.arange(1000) < 1000 * share for share in (risk, utility))
    around = spread * np.linspace(-1, 1, draws)
    cluster = np.arange(1000) * groups // 1000
    return PlanePoint(
        risk.astype(float), utility.astype(float), risk.mean() + around, utility.mean() + around, cluster, cluster
    )


def judged(point, *others):
    return dominance(point, dict(enumerate(others)))


def test_beaten_by_less_risk_and_more_use():
    point = setting(0.3, 0.6)
    assert judged(point, setting(0.2, 0.7)) is Dominance.YES
    assert judged(point, setting(0.9, 0.1), setting(0.2, 0.7)) is Dominance.YES
    assert judged(point, setting(0.4, 0.9), setting(0.1, 0.2)) is Dominance.NO  # each costs something
    assert judged(point, setting(0.4, 0.9), setting(0.3, 0.9)) is Dominance.INCONCLUSIVE  # no more risk, but no less
    assert judged(point) is Dominance.NO


def test_what_chance_may_have_made_is_open():
    point = setting(0.3, 0.6)
    assert judged(point, setting(0.299, 0.7)) is Dominance.INCONCLUSIVE  # one target of a thousand
    assert judged(point, setting(0.25, 0.7, spread=0.1)) is Dominance.INCONCLUSIVE  # one draw says otherwise
    assert judged(point, setting(0.2, 0.7, groups=2)) is Dominance.INCONCLUSIVE  # of two groups nothing is sure
    assert judged(setting(0.3, 0.6, groups=2), setting(0.2, 0.7)) is Dominance.INCONCLUSIVE  # whosever they are


@given(st.tuples(*[st.integers(0, 10)] * 4))
def test_nobody_beats_a_setting_that_it_is_beaten_by(shares):
    one, other = (setting(a / 10, b / 10) for a, b in (shares[:2], shares[2:]))
    assert not (judged(one, other) is Dominance.YES and judged(other, one) is not Dominance.NO)
    assert judged(one, one) is Dominance.INCONCLUSIVE
