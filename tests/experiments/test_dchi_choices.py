"""Other samples, and the parts of a variance."""

import numpy as np
import pytest
from dchi_making import halves
from scipy.stats import spearmanr

from mobpriv.base.noise import least_p
from mobpriv.experiments import dchi, dchi_choices
from mobpriv.experiments.dchi import draw, prepare, together
from mobpriv.visits.affinity import affinity

FIRST, SECOND = halves(300)
SETTING = together([prepare(FIRST, SECOND), prepare(SECOND[::2], FIRST[::2])])
SAMPLES = draw(SETTING, np.random.default_rng(1), 5, 40)
DISTINCT = (SETTING.first + SETTING.second > 0).sum(axis=1)


def test_settings_by_hand():
    strict = dchi_choices.stricter(SETTING, 9)
    a, b = SETTING.offsets[1:]
    assert strict.per_day.tolist() == [(DISTINCT[:a] >= 9).sum(), (DISTINCT[a:b] >= 9).sum()]
    assert ((strict.first + strict.second > 0).sum(axis=1) >= 9).all()
    assert strict.least == 9
    second = dchi_choices.of_day(SETTING, 1)
    np.testing.assert_array_equal(second.first, SETTING.first[a:])
    assert second.per_day.tolist() == [0, b - a]
    assert dchi_choices.pooled(SETTING).per_day.tolist() == [b]
    with pytest.raises(ValueError, match="least must be"):
        dchi_choices.stricter(SETTING, 3)


def test_everybodys_affinity():
    found = dchi_choices.known_to_everybody(SAMPLES, SETTING).affinity
    visited = SETTING.first + SETTING.second > 0
    assert found[3, 2, 7] == pytest.approx((visited[:, 2] & visited[:, 7]).mean())
    assert found.shape == SAMPLES.affinity.shape


def in_layouts():
    """Two layouts: the days of SETTING, and the first of them in another placing, where the POIs are in another order."""
    turned = prepare(*(half.iloc[:, ::-1].set_axis(half.columns, axis=1) for half in (FIRST, SECOND)))
    days = prepare(FIRST, SECOND), prepare(SECOND[::2], FIRST[::2])
    return together([*days, turned._replace(layouts=np.array([1]))])


def test_layouts_are_kept_apart():
    setting = in_layouts()
    assert setting.layouts.tolist() == [0, 0, 1]
    samples = draw(setting, np.random.default_rng(1), 12, 40)
    assert set(samples.layout) == {0, 1}
    day = np.searchsorted(setting.offsets, samples.users[:, 0], side="right") - 1
    np.testing.assert_array_equal(samples.layout, setting.layouts[day])
    found = dchi_choices.known_to_everybody(samples, setting).affinity
    of_first = dchi_choices.known_to_everybody(SAMPLES, SETTING).affinity[0]
    for d in range(12):
        first, last = setting.offsets[[2, 3] if samples.layout[d] else [0, 2]]
        visited = (setting.first + setting.second > 0)[first:last]
        assert found[d, 2, 7] == pytest.approx((visited[:, 2] & visited[:, 7]).mean())
        assert (found[d] == of_first).all() == (samples.layout[d] == 0)
    assert dchi_choices.pooled(setting).per_day.tolist() == [setting.offsets[2], setting.per_day[2]]
    assert dchi_choices.of_day(setting, 0).per_day.tolist() == [setting.per_day[0], 0, setting.per_day[2]]


def test_affinity_by_place():
    """Three POIs on a meridian, 1 km and 3 km apart in one layout, farther in the other."""
    degree = 1000 / 110_574.3  # of latitude at the equator
    places = np.array([[[0, 0], [degree, 0], [4 * degree, 0]], [[0, 0], [2 * degree, 0], [8 * degree, 0]]])
    b = np.zeros((2, 5, 3), np.int64)
    b[:, :4, 0], b[:, :3, 1], b[:, 3:, 2] = 1, 1, 1
    at = np.array([0, 1])
    samples = SAMPLES._replace(first=b, second=b, affinity=np.stack([affinity(b[0])] * 2), layout=at)
    found = dchi_choices.by_place(samples, places).affinity
    np.testing.assert_allclose(found[0], [[1, 1 / 2, 1 / 5], [1 / 2, 1, 1 / 4], [1 / 5, 1 / 4, 1]], rtol=1e-3)
    assert found[1, 0, 1] == pytest.approx(1 / 3, rel=1e-3)
    # shares of a POI's visitors: near (0, 1) 3 of 4 and 3 of 3, (1, 2) none, far (0, 2) 1 of 4 and 1 of 2
    expected = spearmanr([1, 1, 3, 3, 4, 4], [0.75, 1, 0, 0, 0.25, 0.5]).statistic
    np.testing.assert_allclose(dchi_choices.closeness(samples, places), expected)


def test_crossed_draws_keep_their_users():
    again = dchi_choices.crossed(SAMPLES, np.random.default_rng(2), 3)
    np.testing.assert_array_equal(again.day, np.repeat(SAMPLES.day, 3, axis=0))
    assert len(np.unique(again.u)) == again.u.size


def test_parts_of_a_variance_that_are_known():
    rng = np.random.default_rng(1)
    values = rng.normal(0, 3, (4000, 1)) + rng.normal(0, 4, (4000, 5))
    found = dchi_choices.parts_of_variance(values, np.random.default_rng(2), 50)
    assert found.deviation.value == pytest.approx(5, rel=0.03)
    assert found.users.value == pytest.approx(9 / 25, abs=0.03)
    assert all(of.low < of.value < of.high for of in found)
    assert dchi_choices.parts_of_variance(rng.normal(0, 1, (4000, 5)), np.random.default_rng(2), 50).users.value < 0.03
    same = dchi_choices.parts_of_variance(np.ones((5, 3)), np.random.default_rng(2), 50)
    assert (same.deviation.value, same.users.value) == (0, 0)
    with pytest.raises(ValueError, match="at least 2 draws"):
        dchi_choices.parts_of_variance(values[:1], np.random.default_rng(2))


def test_the_interval_of_a_part_holds_it():
    rng, inside = np.random.default_rng(3), 0
    for _ in range(200):
        values = rng.normal(0, 3, (60, 1)) + rng.normal(0, 4, (60, 5))
        of = dchi_choices.parts_of_variance(values, rng, 200).users
        inside += of.low <= 9 / 25 <= of.high
    assert inside > 170  # of 190; a percentile interval of few draws is somewhat narrow


def test_measures_are_those_of_the_figures():
    for epsilon in (0.1, 6.0):
        assert least_p(dchi_choices.halfway(epsilon)) == pytest.approx((least_p(epsilon) + 0.5) / 2)
    for protection in (dchi.NEAR_BOOLEANS, dchi.COUNTS):
        of = dchi.error(SAMPLES, protection, [2.0])[:, 0] / dchi.level(SAMPLES, protection)
        np.testing.assert_allclose(dchi_choices.error_share(SAMPLES, protection, [2.0])[:, 0], of)
        grid = dchi.surface(SAMPLES, protection, 2.0, range(300), [1], "2.2", 20).max(axis=1)[:, 0]
        np.testing.assert_allclose(dchi_choices.rate(SAMPLES, protection, 2.0, amount=20), grid)
