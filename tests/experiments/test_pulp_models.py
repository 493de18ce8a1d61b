"""Errors on fresh levels, moves against the trend, and Promesse without its slowness."""

import math

import numpy as np
import pandas as pd
import pytest
from pulp_making import journey, wanderers

from mobpriv.experiments.pulp_models import Hurried, line_variance, long, noise_of, turns, variance_on, walking_speed
from mobpriv.mechanisms import GeoI, Promesse
from mobpriv.metrics import poi_privacy
from mobpriv.pulp import Arctan, Sweep, models, profile

VALUES = np.geomspace(1e-3, 1, 8)


def made(levels):
    """A profile whose privacy is ``levels[repetition][setting]`` and whose utility is half of it."""
    same = {"user": "ann", "mechanism": "Geo-I", "value": VALUES, "reason": ""}
    draws = [pd.DataFrame(same | {"repetition": r, "privacy": row}) for r, row in enumerate(levels, 1)]
    return pd.concat(draws, ignore_index=True).assign(utility=lambda of: of["privacy"] / 2)


def test_the_error_on_the_own_profile_is_the_fit_s():
    sweep = Sweep(GeoI(), "epsilon", VALUES, rises="utility")
    people = wanderers([400, 1, 350], 5)
    measured = profile(people, [sweep], (1, 2))
    found = models(measured, [sweep])
    own = variance_on(found, measured)
    known = found.dropna(subset="a").set_index(["user", "mechanism", "metric"])["variance"]
    assert own.to_dict() == pytest.approx(known.to_dict())
    assert ("b", "Geo-I", "privacy") not in own.index, "she has no POI, and no model of it"


def test_the_error_on_other_levels_by_hand():
    model = Arctan(0.3, 2.0, math.log(0.05), 0.4)
    truth = [model.at(math.log(v)) for v in VALUES]
    found = pd.DataFrame([{"user": "ann", "mechanism": "Geo-I", "metric": "privacy"} | model._asdict()])
    assert variance_on(found, made([truth])).tolist() == pytest.approx([0])
    shifted = variance_on(found, made([[x + 0.1 for x in truth], [x - 0.2 for x in truth]]))
    assert shifted.tolist() == pytest.approx([(0.01 + 0.04) / 2])
    assert len(long(made([[np.nan, *truth[1:]]]))) == 2 * 8 - 2


def test_a_straight_line_is_that_of_least_squares():
    straight, bent = np.linspace(0.2, 0.9, 8), np.array([0, 0, 0, 0, 1, 1, 1, 1.0])
    assert line_variance(made([straight])).tolist() == pytest.approx([0, 0], abs=1e-20)
    x = np.log(VALUES)
    residual = bent - np.polyval(np.polyfit(x, bent, 1), x)
    assert line_variance(made([bent])).loc["ann", "Geo-I", "privacy"] == pytest.approx(np.mean(residual**2))


def test_the_noise_is_the_variance_between_draws():
    assert noise_of(made([[0.1] * 8, [0.3] * 8])).loc["ann", "Geo-I"].to_dict() == pytest.approx(
        {"privacy": 0.02, "utility": 0.005}
    )


@pytest.mark.parametrize(
    ("levels", "reversal"),
    [
        ([0, 0.1, 0.2, 0.2, 0.5, 0.7, 0.9, 1], 0),
        ([1, 0.9, 0.8, 0.5, 0.5, 0.2, 0.1, 0], 0),
        ([0, 0.3, 0.1, 0.4, 0.5, 0.7, 0.9, 1], 0.2),
        ([1, 0.7, 0.8, 0.5, 0.9, 0.2, 0.1, 0], 0.4),  # from 0.5 up to 0.9, over nothing between
        ([0.5] * 8, 0),
    ],
)
def test_how_far_a_level_turns(levels, reversal):
    found = turns(made([levels])).loc[("ann", "Geo-I", "privacy")]
    assert found["reversal"] == pytest.approx(reversal)
    assert found["errors"] == (np.inf if reversal else 0)


def test_a_reversal_in_standard_errors():
    one, other = [0, 0.3, 0.1, 0.4, 0.5, 0.7, 0.9, 1], [0, 0.5, 0.1, 0.4, 0.5, 0.7, 0.9, 1]
    found = turns(made([one, other])).loc[("ann", "Geo-I", "privacy")]
    assert found["reversal"] == pytest.approx(0.3)
    assert found["errors"] == pytest.approx(0.3 / math.sqrt(0.02 / 2))


def test_the_reversal_of_one_draw_is_the_modeler_s():
    sweep = Sweep(GeoI(), "epsilon", VALUES, rises="utility")
    measured = profile(wanderers([400, 350], 5), [sweep], (1,))
    known = models(measured, [sweep]).set_index(["user", "mechanism", "metric"])["reversal"]
    assert turns(measured)["reversal"].to_dict() == pytest.approx(known.to_dict())


# 3 km in a straight line within a day: 200 m take more than an hour and a half
SLOW = journey([((0, 0), 5), ((1500, 0), 1400), ((3000, 0), 5)])


def test_promesse_of_a_slow_walk_stops_everywhere_and_hurried_it_does_not():
    slow, fast = Promesse(50.0).protect(SLOW), Hurried(50.0, 1.0).protect(SLOW)
    assert walking_speed(SLOW, 50.0).tolist() == pytest.approx([2900 / (1401 * 60)], rel=0.05)
    assert walking_speed(SLOW, 50.0).iloc[0] < 200 / 900
    assert poi_privacy(SLOW, slow)["found"].iloc[0] > 5
    assert poi_privacy(SLOW, fast)["found"].iloc[0] == 0
    pd.testing.assert_frame_equal(fast[["lat", "lng"]], slow[["lat", "lng"]])
    steps = fast["t"].diff().dropna().dt.total_seconds()
    assert (steps == 50).all()
    assert fast["t"].iloc[0] == slow["t"].iloc[0]


def test_hurried_keeps_users_apart():
    people = wanderers([400, 1, 350], 5)
    found, known = Hurried(60.0).protect(people), Promesse(60.0).protect(people)
    assert found["user"].tolist() == known["user"].tolist()
    assert (found.groupby("user", observed=True)["t"].first() == known.groupby("user", observed=True)["t"].first()).all()
    assert walking_speed(people, 60.0).isna().tolist() == [False, True, False], "of one record nothing is left"


@pytest.mark.parametrize(("wrong", "words"), [({"alpha": 0}, "alpha"), ({"speed": -1}, "speed")])
def test_what_hurried_refuses(wrong, words):
    with pytest.raises(ValueError, match=words):
        Hurried(**wrong)
