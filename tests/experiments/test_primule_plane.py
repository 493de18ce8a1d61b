"""Risk and use on one plane: who beats whom, and MDAV in each municipality."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.experiments.primule import Beaten, Measured, beaten, mdav_over_municipalities
from mobpriv.mechanisms.icp import Mdav


def setting(risk, use, draws=3, apart=0.0, groups=1000):
    """1 000 targets in so many groups, of whom the first ones are found, and keep their label."""
    risk, use = (np.arange(1000) < 1000 * share for share in (risk, use))
    around = apart * np.linspace(-1, 1, draws)
    of = np.arange(1000) * groups // 1000
    return Measured(risk.astype(float), use.astype(float), risk.mean() + around, use.mean() + around, of, of)


def judged(point, *others):
    return beaten(point, dict(enumerate(others)))


def test_beaten_by_less_risk_and_more_use():
    point = setting(0.3, 0.6)
    assert judged(point, setting(0.2, 0.7)) is Beaten.YES
    assert judged(point, setting(0.9, 0.1), setting(0.2, 0.7)) is Beaten.YES
    assert judged(point, setting(0.4, 0.9), setting(0.1, 0.2)) is Beaten.NO  # each costs something
    assert judged(point, setting(0.4, 0.9), setting(0.3, 0.9)) is Beaten.OPEN  # no more risk, but no less
    assert judged(point) is Beaten.NO


def test_what_chance_may_have_made_is_open():
    point = setting(0.3, 0.6)
    assert judged(point, setting(0.299, 0.7)) is Beaten.OPEN  # one target of a thousand
    assert judged(point, setting(0.25, 0.7, apart=0.1)) is Beaten.OPEN  # one draw says otherwise
    assert judged(point, setting(0.2, 0.7, groups=2)) is Beaten.OPEN  # of two groups nothing is sure
    assert judged(setting(0.3, 0.6, groups=2), setting(0.2, 0.7)) is Beaten.OPEN  # whosever they are


@given(st.tuples(*[st.integers(0, 10)] * 4))
def test_nobody_beats_a_setting_that_it_is_beaten_by(shares):
    one, other = (setting(a / 10, b / 10) for a, b in (shares[:2], shares[2:]))
    assert not (judged(one, other) is Beaten.YES and judged(other, one) is not Beaten.NO)
    assert judged(one, one) is Beaten.OPEN


def test_each_municipality_is_aggregated_by_itself():
    rng = np.random.default_rng(1)
    values, town = rng.integers(0, 3, (40, 6)) / 2, np.array(list("PL") * 18 + list("MMPL"))
    said, group = mdav_over_municipalities(values, town, 3)
    for name in "PL":
        rows = np.flatnonzero(town == name)
        alone = Mdav(3).protect(pd.DataFrame(values[rows], rows), rng)
        assert np.array_equal(said[rows], alone.values)
        assert np.bincount(group)[group[rows]].min() >= 3
    assert np.array_equal(said[town == "M"], values[town == "M"])
    assert not set(group[town == "P"]) & set(group[town == "L"])
    order = rng.permutation(40)
    assert np.allclose(
        mdav_over_municipalities(values, town, 3)[0].sum(axis=0),
        mdav_over_municipalities(values[order], town[order], 3)[0].sum(axis=0),
    )
