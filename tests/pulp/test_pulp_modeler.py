"""PULP's modeler: it finds the curve that is there, no worse one than a general search, and says where there is none."""

import math

import naive_pulp as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.mechanisms import GeoI
from mobpriv.pulp import GEO_I, PROMESSE, Arctan, Sweep, fit, models, privacy_threshold, recommend
from mobpriv.pulp.modeler import OUTLIER

VALUES = np.array(GEO_I.values)
CURVE = Arctan(0.9 / math.pi, 2.0, math.log(0.004), 0.5)  # between 0.05 and 0.95
DOWN = CURVE._replace(a=-CURVE.a)


def levels(model, values=VALUES):
    return np.array([model.at(math.log(value)) for value in values])


def noisy(model, seed, scale=0.03):
    return np.clip(levels(model) + np.random.default_rng(seed).normal(0, scale, len(VALUES)), 0, 1)


@pytest.mark.parametrize("method", ["robust", "paper"])
@pytest.mark.parametrize("model", [CURVE, DOWN], ids=["rising", "falling"])
def test_an_arctan_is_found(model, method):
    result = fit(VALUES, levels(model), 0.01, np.bool_(model.a > 0), method, left_out=True)
    assert np.array(result.model) == pytest.approx(np.array(model), abs=1e-3)
    assert (result.points, result.report, result.reversal) == (17, "", 0)
    assert result.variance < 1e-9
    assert result.left_out < 1e-7
    assert result.spread == pytest.approx(np.ptp(levels(model)))


@pytest.mark.parametrize("seed", range(5))
def test_the_expected_direction_decides_nothing(seed):
    first, second = (fit(VALUES, noisy(DOWN, seed), 0.01, rises).variance for rises in (True, False))
    assert first == pytest.approx(second, rel=1e-3)


responses = st.lists(st.sampled_from(list(np.linspace(0, 1, 11))), min_size=17, max_size=17)


def responses_of_users():
    """What a response may look like: clean and noisy transitions, of levels that move in thirds, a single spike."""
    for k in range(4):
        rng = np.random.default_rng(k)
        x, c, speed = np.log(VALUES), rng.uniform(-8, -1), 10 ** rng.uniform(-0.5, 0.7)
        clean = 0.5 + rng.choice([-1, 1]) * np.tanh(speed * (x - c) / 2) / 2
        yield clean
        yield np.clip(clean + rng.normal(0, 0.1, 17), 0, 1)
        yield np.round(3 * np.clip(clean + rng.normal(0, 0.05, 17), 0, 1)) / 3
        yield (np.arange(17) == rng.integers(17)).astype(float)


@pytest.mark.parametrize("response", list(responses_of_users()))
def test_no_curve_is_much_better(response):
    """The least cost is known by a search from many places; a tenth more is a deviation 5 % larger. What errors of a third of a point at
    every value cost matters to nobody."""
    model = fit(VALUES, response, 0.01, True).model
    cost = naive.soft_cost(naive.arctan(model, np.log(VALUES)) - response, OUTLIER)
    assert cost <= 1.1 * naive.least_soft_cost(VALUES, response, OUTLIER) + 17 / 2 * 0.003**2


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("model", [CURVE, DOWN], ids=["rising", "falling"])
def test_the_papers_method_ends_where_a_general_minimiser_does(model, seed):
    response = noisy(model, seed)
    result = fit(VALUES, response, 0.01, model.a > 0, "paper")
    assert result.variance * 17 == pytest.approx(naive.minimised(VALUES, response, 0.01, model.a > 0), rel=1e-3)


@given(responses)
def test_models_stay_within_their_bounds(response):
    """b > 0, and the saturation levels lie at most 0.5 beyond where levels do."""
    a, b, c, d = fit(VALUES, response, 0.01, True).model
    assert b > 0
    assert -0.5 - 1e-9 <= d - abs(a) * math.pi / 2 <= d + abs(a) * math.pi / 2 <= 1.5 + 1e-9
    assert 2 * math.log(1e-4) <= c <= -math.log(1e-4)


def test_a_curve_that_is_seen_only_in_part():
    """Half a transition, up to 0.7 of a curve that ends at 1.2: bounds at 0 and 1 would bend it."""
    model = Arctan(1.2 / math.pi, 0.5, 0.0, 0.6)
    result = fit(VALUES, levels(model), 0.01, True)
    assert max(levels(model)) < 0.61
    assert result.variance < 1e-6
    below = fit(VALUES, levels(model) - 1, 0.01, True)
    assert (below.model.d, below.model.a) == pytest.approx((result.model.d - 1, result.model.a), abs=0.05)


def test_one_strange_repetition_does_not_turn_the_curve():
    values, response = np.tile(VALUES, 3), np.tile(levels(CURVE), 3)
    strange = response.copy()
    strange[2] = 1.0  # the level there is 0.1
    deviation = {}
    for method in ("robust", "paper"):
        model = fit(values, strange, 0.01, True, method).model
        deviation[method] = np.abs(naive.arctan(model, np.log(VALUES)) - levels(CURVE)).max()
    assert deviation["robust"] < 0.03
    assert deviation["robust"] < 0.5 * deviation["paper"]


def test_errors_at_values_left_out_are_those_of_models_made_without_them():
    values, response = np.tile(VALUES, 2), np.r_[noisy(CURVE, 1), noisy(CURVE, 2)]
    errors = []
    for value in VALUES:
        out = values == value
        model = fit(values[~out], response[~out], 0.01, True).model
        errors += [model.at(math.log(value)) - level for level in response[out]]
    result = fit(values, response, 0.01, True, left_out=True)
    assert result.left_out == pytest.approx(np.mean(np.square(errors)), rel=1e-9)
    assert result.left_out > result.variance
    assert math.isnan(fit(values, response, 0.01, True).left_out)


def test_four_values_leave_none_to_leave_out():
    result = fit(VALUES[::5], levels(CURVE)[::5], 0.01, True, left_out=True)
    assert math.isnan(result.left_out)
    assert result.variance < 1e-4


def test_a_flat_response_is_a_constant():
    for level in (0.0, 0.3, 1.0):
        result = fit(VALUES, [level] * 17, 0.01, True)
        assert result.model == Arctan(0.0, 1.0, math.log(0.01), level)
        assert (result.variance, result.report) == (0, "flat: the level stays within 0")
    nearly = fit(VALUES, 0.5 + 0.009 * (VALUES > 0.01), 0.01, True)
    assert nearly.report == "flat: the level stays within 0.009"
    assert nearly.variance < 1e-5


def test_a_response_that_turns_is_said_to():
    hill = 0.2 + 0.6 * np.exp(-((np.arange(17) - 8) ** 2) / 8)
    result = fit(VALUES, hill, 0.01, True)
    assert result.reversal == pytest.approx(np.ptp(hill), abs=0.01)
    assert result.report.startswith("not monotone: the level moves 0.6 against its trend; poor fit: error variance ")
    small = levels(CURVE)
    small[8] += 0.08 + small[9] - small[8]
    result = fit(VALUES, small, 0.01, True)
    assert result.reversal == pytest.approx(0.08)
    assert result.report == ""


def profiled(user="ann", mechanism="Geo-I", values=VALUES, privacy=None, utility=None, reason=""):
    table = pd.DataFrame({"user": user, "mechanism": mechanism, "value": values, "repetition": 1})
    table["privacy"] = levels(DOWN, values) if privacy is None else privacy
    table["utility"] = levels(CURVE, values) if utility is None else utility
    return table.assign(reason=reason)


def test_a_table_has_a_model_for_every_user_mechanism_and_metric():
    alpha = np.array(PROMESSE.values)
    shift = math.log(200) - CURVE.c
    promesse = [levels(m._replace(c=m.c + shift), alpha) for m in (CURVE, DOWN)]
    table = pd.concat([profiled("bob"), profiled("ann"), profiled("ann", "Promesse", alpha, *promesse)])
    model_table = models(table)
    pairs = ("ann", "Geo-I"), ("ann", "Promesse"), ("bob", "Geo-I")
    rows = [[*pair, metric] for pair in pairs for metric in ("privacy", "utility")]
    assert model_table[["user", "mechanism", "metric"]].to_numpy().tolist() == rows
    assert len(models(table.iloc[:0])) == 0
    with pytest.raises(ValueError, match="the profile has mechanisms that sweeps do not have: Geo-I"):
        models(profiled(), [PROMESSE])
    assert model_table["a"].to_numpy() == pytest.approx(np.array([-1, 1, 1, -1, -1, 1]) * CURVE.a, abs=1e-3)
    assert np.exp(model_table["c"].to_numpy()) == pytest.approx([0.004, 0.004, 200, 200, 0.004, 0.004], rel=1e-2)
    assert model_table["high"].tolist() == pytest.approx([1, 1, 1e4, 1e4, 1, 1])
    assert set(model_table["report"]) == {""}


def test_a_profile_carries_its_sweeps():
    """Profiled at ε .02 to .2 only, she is advised within that range, and the fit begins at the sweep's own standard and trend."""
    values = np.geomspace(0.02, 0.2, 6)
    measured = profiled(values=values).assign(standard=0.05, rises="utility", pois=3.0)
    model_table = models(measured)
    assert model_table[["low", "high"]].drop_duplicates().to_numpy().tolist() == [[pytest.approx(0.02), pytest.approx(0.2)]]
    advice = recommend(model_table, lambda candidates: privacy_threshold(candidates, 0))
    assert 0.02 <= advice["value"].iloc[0] <= 0.2 + 1e-9
    wide = profiled(values=VALUES).assign(standard=0.05, rises="utility", pois=3.0, user="wide")
    both_users = models(pd.concat([measured, wide]))  # another user's sweep does not widen hers
    assert both_users[both_users["user"] == measured["user"].iloc[0]]["high"].unique() == pytest.approx([0.2])
    named = measured.assign(mechanism="another")
    assert models(named)["a"].tolist() == model_table["a"].tolist()  # no sweep of the paper has this name
    sweep = Sweep(GeoI(0.05), "epsilon", values, "utility")
    pd.testing.assert_frame_equal(models(measured.drop(columns=["standard", "rises"]), [sweep]), model_table)


@pytest.mark.parametrize(
    ("pois", "report"),
    [(1, "coarse: 1 POI, privacy is about 0 or 1"), (3, "coarse: 3 POIs, each about 0.33 of privacy"), (10, ""), (0, "")],
)
def test_a_privacy_of_few_pois_is_coarse(pois, report):
    model_table = models(profiled().assign(pois=float(pois))).set_index("metric")
    assert model_table["report"].to_dict() == {"privacy": report, "utility": ""}
    advice = recommend(models(profiled().assign(pois=float(pois))), lambda candidates: privacy_threshold(candidates, 0.5))
    assert advice[["reason", "pois"]].to_numpy().tolist() == [[f"privacy: {report}" if report else "", pois]]


def test_what_speaks_against_a_model_stands_with_its_advice():
    turning = levels(DOWN)
    turning[2] -= 0.4
    advice = recommend(models(profiled(privacy=turning)), lambda candidates: privacy_threshold(candidates, 0.5)).iloc[0]
    assert advice["value"] > 0
    assert "privacy: not monotone: the level moves 0.38 against its trend" in advice["reason"]


def test_unknown_levels_are_left_out_and_counted():
    privacy = levels(DOWN)
    privacy[3] = np.nan
    table = profiled(privacy=privacy)
    table.loc[3, "reason"] = "refused"
    model_table = models(table).set_index("metric")
    assert model_table["points"].to_dict() == {"privacy": 16, "utility": 17}
    assert model_table.loc["privacy", "report"] == "1 of 17 levels are unknown (refused)"
    assert model_table.loc["privacy", "c"] == pytest.approx(DOWN.c, abs=1e-3)


def test_a_user_without_a_poi_has_no_model_of_privacy():
    model_table = models(profiled(privacy=np.nan, reason="no POI")).set_index("metric")
    assert model_table.loc["privacy", ["a", "b", "c", "d", "variance"]].isna().all()
    few = "no model: 4 coefficients need at least 4 different values"
    assert model_table["report"].to_dict() == {"privacy": f"{few}; 17 of 17 levels are unknown (no POI)", "utility": ""}


test_what_is_refused = refusals(
    ((np.repeat(VALUES[:3], 5), np.arange(15) / 15, 0.01, True), r"4 coefficients need at least 4 .* \(got 3\)"),
    ((VALUES, [0.5], 0.01, True), r"each value needs one level \(got 17 values, 1 levels\)"),
    (([0, 1, 2, 3], [0, 0, 1, 1], 1, True), r"values must be positive and finite \(got 0.0 at place 0\)"),
    (([1, 2, 3, 4], [0, np.nan, 1, 1], 1, True), r"levels must be numbers \(got nan at place 1\): leave that point out"),
    ((VALUES, levels(CURVE), 0, True), r"standard must be positive \(got 0\)"),
    ((VALUES, levels(CURVE), 0.01, 1), r"rises must be True or False \(got 1\)"),
    ((VALUES, levels(CURVE), 0.01, True, "best"), r'method must be "robust" or "paper" \(got \'best\'\)'),
    call=lambda given: fit(*given),
)


def test_no_setting_is_in_range_whose_level_is_unknown():
    """The mechanism refused the largest ε: no law may recommend it."""
    values = np.geomspace(0.02, 0.2, 8)
    unknown = [np.where(values < 0.15, levels(curve, values), np.nan) for curve in (DOWN, CURVE)]
    model_table = models(profiled(values=values, privacy=unknown[0], utility=unknown[1], reason="refused"))
    assert model_table["high"].tolist() == pytest.approx([values[6]] * 2)
    assert model_table["low"].tolist() == pytest.approx([0.02] * 2)
