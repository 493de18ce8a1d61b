"""PULP's models judged: errors on fresh levels, values per decade, curves of several shapes, Equations (7) and (10) as printed."""

import math
from dataclasses import replace
from math import nan, pi

import numpy as np
import pandas as pd
import pytest
from conftest import refusals, refuses
from hypothesis import given
from hypothesis import strategies as st
from pulp_making import journey, wanderers

from mobpriv.experiments import pulp_models as pm
from mobpriv.mechanisms import GeoI, Promesse
from mobpriv.metrics import poi_privacy
from mobpriv.pulp import (
    GEO_I,
    PROMESSE,
    Arctan,
    Candidate,
    Metrics,
    Sweep,
    fit,
    models,
    privacy_threshold,
    profile,
    utility_threshold,
)
from mobpriv.pulp.modeler import OUTLIER

STEPS = np.geomspace(1e-3, 1, 8)


def made(levels):
    """A profile whose privacy is ``levels[repetition][setting]`` and whose utility is half of it."""
    same = {"user": "ann", "mechanism": "Geo-I", "value": STEPS, "reason": ""}
    draws = [pd.DataFrame(same | {"repetition": r, "privacy": row}) for r, row in enumerate(levels, 1)]
    return pd.concat(draws, ignore_index=True).assign(utility=lambda of: of["privacy"] / 2)


def test_the_error_on_the_own_profile_is_the_fit_s():
    sweep = Sweep(GeoI(), "epsilon", STEPS, rises="utility")
    people = wanderers([400, 1, 350], 5)
    measured = profile(people, [sweep], (1, 2))
    fits = models(measured, [sweep])
    variances = pm.variance_on(fits, measured)
    expected = fits.dropna(subset="a").set_index(["user", "mechanism", "metric"])["variance"]
    assert variances.to_dict() == pytest.approx(expected.to_dict())
    assert ("b", "Geo-I", "privacy") not in variances.index, "she has no POI, and no model of it"


def test_the_error_on_other_levels_by_hand():
    model = Arctan(0.3, 2.0, math.log(0.05), 0.4)
    truth = [model.at(math.log(v)) for v in STEPS]
    fits = pd.DataFrame([{"user": "ann", "mechanism": "Geo-I", "metric": "privacy"} | model._asdict()])
    assert pm.variance_on(fits, made([truth])).tolist() == pytest.approx([0])
    shifted = pm.variance_on(fits, made([[x + 0.1 for x in truth], [x - 0.2 for x in truth]]))
    assert shifted.tolist() == pytest.approx([(0.01 + 0.04) / 2])
    assert len(pm.long_format(made([[np.nan, *truth[1:]]]))) == 2 * 8 - 2


def test_a_straight_line_is_that_of_least_squares():
    straight, bent = np.linspace(0.2, 0.9, 8), np.array([0, 0, 0, 0, 1, 1, 1, 1.0])
    assert pm.line_variance(made([straight])).tolist() == pytest.approx([0, 0], abs=1e-20)
    x = np.log(STEPS)
    residual = bent - np.polyval(np.polyfit(x, bent, 1), x)
    assert pm.line_variance(made([bent])).loc["ann", "Geo-I", "privacy"] == pytest.approx(np.mean(residual**2))


def test_the_noise_is_the_variance_between_draws():
    noise = pm.noise_of(made([[0.1] * 8, [0.3] * 8])).loc["ann", "Geo-I"]
    assert noise.to_dict() == pytest.approx({"privacy": 0.02, "utility": 0.005})


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
    row = pm.reversals(made([levels])).loc[("ann", "Geo-I", "privacy")]
    assert row["reversal"] == pytest.approx(reversal)
    assert row["errors"] == (np.inf if reversal else 0)


def test_a_reversal_in_standard_errors():
    one, other = [0, 0.3, 0.1, 0.4, 0.5, 0.7, 0.9, 1], [0, 0.5, 0.1, 0.4, 0.5, 0.7, 0.9, 1]
    row = pm.reversals(made([one, other])).loc[("ann", "Geo-I", "privacy")]
    assert row["reversal"] == pytest.approx(0.3)
    assert row["errors"] == pytest.approx(0.3 / math.sqrt(0.02 / 2))


# 3 km in a straight line within a day: 200 m take more than an hour and a half
SLOW = journey([((0, 0), 5), ((1500, 0), 1400), ((3000, 0), 5)])


def test_promesse_of_a_slow_walk_stops_everywhere_and_hurried_it_does_not():
    slow, fast = Promesse(50.0).protect(SLOW), pm.PromesseAtSpeed(50.0, 1.0).protect(SLOW)
    assert pm.walking_speed(SLOW, 50.0).tolist() == pytest.approx([2900 / (1401 * 60)], rel=0.05)
    assert pm.walking_speed(SLOW, 50.0).iloc[0] < 200 / 900
    assert poi_privacy(SLOW, slow)["found"].iloc[0] > 5
    assert poi_privacy(SLOW, fast)["found"].iloc[0] == 0
    pd.testing.assert_frame_equal(fast[["lat", "lng"]], slow[["lat", "lng"]])
    steps = fast["t"].diff().dropna().dt.total_seconds()
    assert (steps == 50).all()
    assert fast["t"].iloc[0] == slow["t"].iloc[0]


def test_hurried_keeps_users_apart():
    people = wanderers([400, 1, 350], 5)
    hurried, plain = pm.PromesseAtSpeed(60.0).protect(people), Promesse(60.0).protect(people)
    assert hurried["user"].tolist() == plain["user"].tolist()
    assert (hurried.groupby("user", observed=True)["t"].first() == plain.groupby("user", observed=True)["t"].first()).all()
    assert pm.walking_speed(people, 60.0).isna().tolist() == [False, True, False], "of one record nothing is left"


test_what_hurried_refuses = refusals(
    ({"alpha": 0}, "alpha"),
    ({"speed": -1}, "speed"),
    call=lambda wrong: pm.PromesseAtSpeed(**wrong),
)


def test_values_per_decade_are_the_paper_s():
    assert [len(pm.per_decade(GEO_I, k)) for k in (1, 2, 3, 4)] == [5, 9, 13, 17]
    assert [len(pm.per_decade(PROMESSE, k)) for k in (1, 2, 3, 4)] == [3, 6, 8, 10]
    assert pm.per_decade(GEO_I, 4) == GEO_I.values
    assert pm.per_decade(PROMESSE, 4) == PROMESSE.values
    assert pm.per_decade(GEO_I, 1) == GEO_I.values[::4]
    for sweep in (GEO_I, PROMESSE):
        for k in (1, 2, 3):
            values = pm.per_decade(sweep, k)
            assert (values[0], values[-1]) == (sweep.low, sweep.high)
            assert replace(sweep, values=values).values == values  # a profile under these has exactly these
            assert np.diff(np.log(values)) == pytest.approx(np.log(values[1] / values[0]))
    refuses("count", pm.per_decade, GEO_I, 0)
    refuses("two values", pm.per_decade, Sweep(GeoI(), "epsilon", [0.01, 0.011], "utility"), 1)


@pytest.mark.parametrize("count", [3, 5, 8, 13])
def test_where_curves_are_judged_is_spread_over_the_range_and_new(count):
    for sweep in (GEO_I, PROMESSE):
        values = pm.scattered(sweep, count)
        assert len(set(values)) == count
        assert replace(sweep, values=values).values == values
        places = np.log(np.array(values) / sweep.low) / np.log(sweep.high / sweep.low)
        gaps = np.diff([0, *places, 1])
        assert gaps.min() > 0.25 / count
        assert gaps.max() < 1.75 / count
        for k in (1, 2, 3, 4):
            off = np.abs(np.log(np.array(values)[:, None] / np.array(pm.per_decade(sweep, k))))
            assert off.min() > 1e-3, "none that a curve is fitted to"


def test_each_family_moves_one_thing():
    base = Metrics()
    for family, of in pm.FAMILIES.items():
        assert sum(metrics == base for metrics in of.values()) == 1, "the values of §VI-A among them"
        for metrics in of.values():
            changed = [f for f in ("diameter", "duration", "near", "level") if getattr(metrics, f) != getattr(base, f)]
            assert len(changed) == (metrics != base)
            assert pm.FAMILY_METRIC[family] == ("utility" if family == "cells" else "privacy")
    assert pm.FAMILIES["distance"][250].near == 500.0
    assert pm.every_metric()[pm.metrics_name("duration", 5)].duration == 300.0


def on_curve(model, at, users=("a",), noise=0.0):
    rng = np.random.default_rng(3)
    levels = [[model.at(math.log(v)) + noise * rng.normal() for v in at] for _ in users]
    same = {"mechanism": "Geo-I", "value": at, "privacy": math.nan}
    return pd.concat([pd.DataFrame(same | {"user": u, "utility": x}) for u, x in zip(users, levels, strict=True)])


def test_the_errors_are_those_of_the_fit():
    model = Arctan(0.3, 1.5, math.log(0.01), 0.5)
    inside, outside = GEO_I.values[::2], pm.scattered(GEO_I, 6)
    table = on_curve(model, [*inside, *outside], ("a", "b"), 0.05)
    variances = pm.error_variances(table, "utility", {"Geo-I": inside}, {"Geo-I": outside}, (GEO_I,)).set_index("user")
    for user in "ab":
        user_levels = table[(table["user"] == user)].set_index("value")["utility"]
        fitted = fit(inside, user_levels[list(inside)], 0.01, True)
        assert variances.loc[user, "fitted"] == pytest.approx(fitted.variance)
        by_hand = np.mean([(fitted.model.at(math.log(v)) - user_levels[v]) ** 2 for v in outside])
        assert variances.loc[user, "between"] == pytest.approx(by_hand)
        assert variances.loc[user, "values"] == 9
    assert pm.error_variances(table, "privacy", {"Geo-I": inside}, {"Geo-I": outside}, (GEO_I,)).empty, (
        "levels that are unknown"
    )
    # without noise the curve is found between its settings
    table = on_curve(model, [*pm.per_decade(GEO_I, 1), *pm.scattered(GEO_I, 16)])
    variances = pm.error_variances(
        table, "utility", {"Geo-I": pm.per_decade(GEO_I, 1)}, {"Geo-I": pm.scattered(GEO_I, 16)}, (GEO_I,)
    )
    assert variances["between"].iloc[0] < 1e-4


def test_three_values_are_met_exactly_and_say_little_between():
    values = (50.0, 700.0, 1e4)
    model = pm.underdetermined(values, [0.9, 0.5, 0.1], 200.0, False)
    assert [model.at(math.log(v)) for v in values] == pytest.approx([0.9, 0.5, 0.1], abs=1e-3)
    assert model.b > 0
    table = on_curve(Arctan(-0.3, 2.0, math.log(300), 0.5), [*values, 120.0, 2000.0]).assign(mechanism="Promesse")
    variances = pm.error_variances(table, "utility", {"Promesse": values}, {"Promesse": [120.0, 2000.0]}, (PROMESSE,))
    assert variances["fitted"].iloc[0] < 1e-6
    assert variances["between"].iloc[0] > 1e-5


def test_real_levels_and_what_is_refused():
    sweep = Sweep(GeoI(), "epsilon", GEO_I.values[4:12], rises="utility")
    measured = profile(wanderers([400, 1, 350], 5), [sweep], (1, 2))
    inside, outside = sweep.values[::2] + sweep.values[-1:], sweep.values[1:-1:2]
    variances = pm.error_variances(measured, "privacy", {"Geo-I": inside}, {"Geo-I": outside}, (sweep,))
    assert variances["user"].tolist() == ["a", "c"], "b has no POI"
    refuses("the profile lacks", pm.error_variances, measured, "privacy", {"Geo-I": inside}, {"Geo-I": [0.5]}, (sweep,))
    refuses("metric", pm.error_variances, measured, "usefulness", {"Geo-I": inside}, {"Geo-I": outside}, (sweep,))


test_points_that_no_curve_goes_through = refusals(
    (([], [], 200.0, True), r"^a curve needs at least one value with its level \(got none\)$"),
    (([50.0], [math.inf], 200.0, True), r"^levels must be numbers \(got inf at place 0\): leave that point out$"),
    (([50.0], [0.1], 0, True), r"^standard must be positive \(got 0\)$"),
    (([50.0], [0.1], 200.0, "yes"), r"^rises must be True or False \(got 'yes'\)$"),
    call=lambda given: pm.underdetermined(*given),
)


VALUES = np.array(GEO_I.values)
X = np.log(VALUES)


@pytest.mark.parametrize("shape", pm.SIGMOIDS)
def test_a_sigmoid_runs_from_0_to_1_and_its_slope_is_its_derivative(shape):
    sigmoid, slope = pm.SIGMOIDS[shape]
    u = np.linspace(-4, 4, 81)
    assert sigmoid(np.array([-1e6, 1e6])) == pytest.approx([0, 1], abs=1e-5)
    assert (np.diff(sigmoid(u)) >= 0).all()
    by_hand = (sigmoid(u + 1e-6) - sigmoid(u - 1e-6)) / 2e-6
    inside = np.abs(np.abs(u) - 0.5) > 1e-3  # where a broken line bends it has no slope
    assert slope(u)[inside] == pytest.approx(by_hand[inside], abs=1e-5)


@pytest.mark.parametrize("shape", pm.SIGMOIDS)
@pytest.mark.parametrize(("left", "right"), [(0.1, 0.9), (1.0, 0.2)])
def test_each_shape_finds_its_own(shape, left, right):
    sigmoid, _ = pm.SIGMOIDS[shape]
    levels = left + (right - left) * sigmoid(0.7 * (X - math.log(0.013)))
    fitted = pm.curve(shape, VALUES, levels, right > left)
    x = np.linspace(math.log(2e-4), math.log(0.7), 50)
    assert fitted(np.exp(x)) == pytest.approx(left + (right - left) * sigmoid(0.7 * (x - math.log(0.013))), abs=2e-3)


@pytest.mark.parametrize("seed", range(12))
def test_the_arctan_is_the_modeler_s(seed):
    """The same loss, bounds and search: no worse than the modeler, and no better."""
    rng = np.random.default_rng(seed)
    levels = np.clip(1 / (1 + np.exp(-rng.uniform(0.3, 3) * (X + rng.uniform(2, 7)))) + rng.normal(0, 0.08, len(X)), 0, 1)
    model = fit(VALUES, levels, 0.01, True).model
    fitted = pm.curve("arctan", VALUES, levels, True)

    def cost(error):
        return (OUTLIER**2 * (np.sqrt(1 + (error / OUTLIER) ** 2) - 1)).sum()

    expected = np.array([model.at(x) for x in X])
    assert cost(fitted(VALUES) - levels) == pytest.approx(cost(expected - levels), rel=1e-3, abs=1e-7)


def test_polynomials_isotonic_and_the_parameter_itself():
    cubic = lambda x: 0.2 + 0.05 * (x - X.mean()) + 0.01 * (x - X.mean()) ** 3 / 9  # noqa: E731
    at = np.geomspace(2e-4, 0.7, 20)
    assert pm.curve("cubic", VALUES, cubic(X), True)(at) == pytest.approx(cubic(np.log(at)))
    line = 0.3 + 0.02 * X
    assert pm.curve("straight line", VALUES, line, True)(at) == pytest.approx(0.3 + 0.02 * np.log(at))
    outlier = np.r_[np.full(16, 0.4), 1.0]
    assert pm.curve("constant", VALUES, outlier, True)(at)[0] == pytest.approx(0.4, abs=0.02), "one strange level hardly counts"
    steps = np.repeat([0.1, 0.5, 0.9], [5, 6, 6])
    isotonic = pm.curve(pm.ISOTONIC, VALUES, steps, True)
    assert isotonic(VALUES) == pytest.approx(steps)
    assert isotonic(np.array([1e-6, 10.0])) == pytest.approx([0.1, 0.9])
    assert pm.curve(pm.ISOTONIC, VALUES, steps, False)(VALUES) == pytest.approx(np.full(17, steps.mean()))
    values, at = np.linspace(0.01, 1, 20), np.array([0.25, 0.5, 0.8])
    itself = lambda value: 0.5 + 0.4 * np.arctan(8 * (value - 0.5)) / (math.pi / 2)  # noqa: E731
    assert pm.curve(pm.IN_EPSILON, values, itself(values), True)(at) == pytest.approx(itself(at), abs=2e-3)


@pytest.mark.parametrize("shape", pm.SHAPES)
def test_a_level_that_never_changes_is_met(shape):
    assert pm.curve(shape, VALUES, np.ones(17), True)(np.array([1e-3, 0.3])) == pytest.approx([1, 1])
    assert set(pm.POLYNOMIALS) < set(pm.SHAPES)


test_what_is_refused = refusals(
    (lambda: pm.curve("spline", VALUES, np.ones(17), True), r"^shape must be .* \(got 'spline'\)$"),
    (lambda: pm.curve("arctan", VALUES, np.ones(17), 1), r"^rises must be True or False \(got 1\)$"),
    (lambda: pm.curve("arctan", [0.1] * 5, [0, 0.5, 1, 1, 1], True), r"^a curve needs at least 4 different values \(got 1\)$"),
    (lambda: pm.curve("isotonic", VALUES, np.ones(16), True), r"^each value needs one level \(got 17 values, 16 levels\)$"),
)


def test_saturation_levels_within_the_metrics_range():
    """A level that is seen in part, far from saturation: only curves that may saturate outside of [0, 1] follow it."""
    levels = 0.9 + 0.5 * np.arctan(0.3 * (X - X.max())) / math.pi * 2
    levels = np.clip(levels, 0, 1)
    free, bound = (pm.curve(shape, VALUES, levels, True)(VALUES) - levels for shape in ("arctan", "arctan in [0, 1]"))
    assert np.abs(free).max() < 0.01 < np.abs(bound).max()
    assert set(pm.BOUNDED_SHAPES.values()) <= set(pm.SIGMOIDS)


FALLING, RISING = Arctan(-1 / pi, 1.0, np.log(0.01), 0.5), Arctan(1 / pi, 1.0, np.log(0.01), 0.5)
ONE = Candidate("Geo-I", FALLING, RISING, 1e-4, 1.0)


@given(st.floats(0.05, 0.95))
def test_inside_the_range_the_formula_is_the_law(least):
    """Where Equation (7) has a solution in the range both take it: the levels move against one another."""
    wide = ONE._replace(low=1e-12, high=1e8)
    for metric, law in (("privacy", privacy_threshold), ("utility", utility_threshold)):
        printed, ours = pm.closed_form([wide], metric, least), law([wide], least)
        assert printed.value == pytest.approx(ours.value, rel=1e-9)
        assert getattr(printed, metric) == pytest.approx(least)


def test_a_threshold_kept_throughout_has_no_value_in_the_range():
    always = ONE._replace(privacy=Arctan(-0.05, 1.0, np.log(0.01), 0.9))  # from 0.82 to 0.98
    printed = pm.closed_form([always], "privacy", 0.3)
    assert printed.value is None or always.privacy.at(np.log(printed.value)) != pytest.approx(0.3)
    assert privacy_threshold([always], 0.3).value == 1.0


def test_beyond_the_branch_the_formula_has_a_value_that_means_nothing():
    # (0.3 − 0.9)/−0.2 = 3: tan(3) = −0.14 is near the middle of the range, where privacy is not 0.3 but 0.93
    c = ONE._replace(privacy=Arctan(-0.2, 1.0, np.log(0.01), 0.9))
    printed = pm.closed_form([c], "privacy", 0.3)
    assert printed.value == pytest.approx(0.01 * np.exp(np.tan(3)))
    assert printed.privacy > 0.9


def test_a_value_outside_the_range_and_a_constant_are_refused_with_a_reason():
    assert "outside" in pm.closed_form([ONE], "privacy", 0.999).reason
    assert "does not depend" in pm.closed_form([ONE._replace(privacy=Arctan(0.0, 1.0, 0.0, 1.0))], "privacy", 0.5).reason
    missing = ONE._replace(privacy=Arctan(nan, nan, nan, nan), missing="privacy: no POI")
    assert pm.closed_form([missing], "privacy", 0.5).reason.endswith("no POI")
    result = pm.closed_form([ONE._replace(utility=Arctan(nan, 1.0, 0.0, 0.5))], "privacy", 0.5)
    assert result.reason == "Geo-I: it has no model"
    assert "divides by zero" in pm.closed_form([ONE._replace(privacy=FALLING._replace(b=0.0))], "privacy", 0.5).reason


def test_the_mechanism_with_the_better_other_metric_is_taken():
    better = ONE._replace(mechanism="better", utility=RISING._replace(d=0.6))
    assert pm.closed_form([ONE, better], "privacy", 0.7).mechanism == "better"
    more = ONE._replace(mechanism="more", privacy=FALLING._replace(d=0.6))
    assert pm.closed_form([ONE, more], "utility", 0.5).mechanism == "more"


test_what_the_formula_refuses = refusals(
    (([ONE], "speed", 0.5), r'^metric must be "privacy" or "utility" \(got \'speed\'\)$'),
    (([ONE], "privacy", 1.5), r"^least must lie in \[0, 1\] \(got 1.5\)$"),
    (([], "privacy", 0.5), r"^a law needs at least one candidate \(got none\)$"),
    (([ONE._replace(low=0.0)], "privacy", 0.5), r"^the range of Geo-I must be positive, .* \(got 0.0 to 1.0\)$"),
    call=lambda given: pm.closed_form(*given),
)


def recommendations(*rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["user", "mechanism", "value"])


def test_moved_tells_changes_from_factors():
    base = recommendations(("a", "Geo-I", 0.01), ("b", "Geo-I", 0.02), ("c", "Promesse", 100.0), ("d", "none", nan))
    other = recommendations(("d", "none", nan), ("a", "Geo-I", 0.02), ("b", "Promesse", 50.0), ("c", "Promesse", 25.0))
    changes = pm.recommendation_changes(other, base)
    assert changes["changed"].value == 0.25  # b; d had nobody and has nobody
    assert changes["factor"].value == pytest.approx(3.0)  # 2 and 4
    assert changes["factor"].n == 2
    one, none = recommendations(("a", "Geo-I", 0.01)), recommendations(("a", "none", nan))
    assert set(pm.recommendation_changes(none, one)) == {"changed"}, "nobody keeps a mechanism"
    assert set(pm.recommendation_changes(one, one)) == {"changed", "factor"}
    assert set(pm.recommendation_changes(one, one, 2)) == {"changed"}, "no factor of too few"
    refuses("same users", pm.recommendation_changes, one, base)


def test_kept_counts_draws_and_users_without_a_recommendation():
    levels = pd.DataFrame({"user": ["a", "a", "b", "b"]})
    share = pm.objective_met_share(pd.Series([True, False, True, True]), levels, ["a", "b", "c"])
    assert share.tolist() == [0.5, 1.0, 0.0]
