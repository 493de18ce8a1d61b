"""Risk and use on one plane: who beats whom."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.experiments.primule import Beaten, Measured, beaten


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
