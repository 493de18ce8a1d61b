"""PULP's configurator: each law beside a search over all settings, its closed forms, and what cannot be asked."""

import math

import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive_pulp import OnLattice
from pulp_making import wanderers

from mobpriv.mechanisms import GeoI
from mobpriv.pulp import (
    Arctan,
    Candidate,
    Metrics,
    Sweep,
    achieved,
    both_thresholds,
    candidates_of,
    models,
    privacy_threshold,
    profile,
    pu_ratio,
    recommend,
    utility_threshold,
)

NAN = float("nan")
FALLS = Arctan(-1 / math.pi, 1.0, math.log(0.01), 0.5)
RISES = FALLS._replace(a=1 / math.pi)
GEO_I = Candidate("Geo-I", FALLS, RISES, 1e-4, 1.0)
CONSTANT = Arctan(0.0, 1.0, math.log(200), 1.0)
PROMESSE = Candidate("Promesse", CONSTANT, Arctan(-1 / math.pi, 1.0, math.log(200), 0.5), 50.0, 1e4)

arctans = st.builds(
    lambda left, right, b, c: Arctan((right - left) / math.pi, b, c, (left + right) / 2),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.05, 20),
    st.floats(-14, 5),
)
flat = st.builds(lambda d: Arctan(0.0, 1.0, 0.0, d), st.floats(0, 1))
candidates = st.builds(lambda p, u: Candidate("one", p, u, 1e-4, 1.0), arctans | flat, arctans | flat)
thresholds = st.floats(0, 1)
FAR = 1e-3  # levels on a lattice of 40 000 settings are known so well


def test_thresholds_of_one_arctan():
    """(7) and (10) by hand: at c the level is d; a quarter of the way up tan is ±1."""
    assert privacy_threshold([GEO_I], 0.5).value == pytest.approx(0.01, rel=1e-12)
    assert privacy_threshold([GEO_I], 0.75).value == pytest.approx(0.01 / math.e, rel=1e-12)
    result = utility_threshold([GEO_I], 0.25)
    assert (result.mechanism, result.value) == ("Geo-I", pytest.approx(0.01 / math.e, rel=1e-12))
    assert (result.privacy, result.utility) == (pytest.approx(0.75), pytest.approx(0.25))
    assert pu_ratio([GEO_I], 1).value == pytest.approx(0.01, rel=1e-9)
    assert pu_ratio([GEO_I], 3).value == pytest.approx(0.01 / math.e, rel=1e-9)  # 0.75 = 3 · 0.25


def test_the_highest_value_is_the_wrong_end_for_geo_i():
    """U-thld's prose: the highest value keeps the utility too, and almost no privacy."""
    result = utility_threshold([GEO_I], 0.7).settings[0]
    assert (result.value, result.high) == (result.low, 1.0)
    assert GEO_I.utility.at(0.0) >= 0.7
    assert result.privacy == pytest.approx(0.3)
    assert GEO_I.privacy.at(0.0) < 0.1


@pytest.mark.parametrize("law", [privacy_threshold, utility_threshold])
def test_a_threshold_outside_the_saturation_levels(law):
    """(7) and (10) have no solution there: the threshold is kept everywhere, or nowhere."""
    half = Arctan(0.2 / math.pi, 1.0, math.log(0.01), 0.5)  # from 0.4 to 0.6
    one = Candidate("half", half, half, 1e-4, 1.0)
    result = law([one], 0.39)
    assert (result.settings[0].low, result.settings[0].high, result.value) == (1e-4, 1.0, 1.0)
    assert law([one], 0.61).value is None
    # (7) as it is printed gives a setting all the same
    assert 0 < math.exp(math.tan((0.61 - half.d) / half.a) / half.b + half.c) < math.inf


@settings(max_examples=200)
@given(candidates, thresholds)
def test_threshold_laws_beside_a_search(one, least):
    tried = OnLattice(one)
    for law, metric, other, kept in (
        (privacy_threshold, "privacy", "utility", tried.kept(least, -1)),
        (utility_threshold, "utility", "privacy", tried.kept(-1, least)),
    ):
        result = law([one], least)
        if result.value is None:
            assert not kept.any()
            assert result.reason == f"one: {metric} stays below {least:g} throughout 0.0001 to 1"
            continue
        assert one.low <= result.value <= one.high
        assert getattr(result, metric) >= least - 1e-9
        if kept.any():
            assert getattr(result, other) >= getattr(tried, other)[kept].max() - 1e-9


@settings(max_examples=200)
@given(candidates, thresholds, thresholds)
def test_both_thresholds_beside_a_search(one, least_privacy, least_utility):
    result, tried = both_thresholds([one], least_privacy, least_utility), OnLattice(one)
    kept = tried.kept(least_privacy, least_utility)
    if result.value is None:
        assert not kept.any()
        assert result.reason.startswith("one: ")
        return
    assert result.privacy >= least_privacy - 1e-9
    assert result.utility >= least_utility - 1e-9
    if kept.any():
        ends = tried.value[kept][[0, -1]]
        assert result.value == pytest.approx(ends.mean(), rel=1e-3)
        middle = both_thresholds([one], least_privacy, least_utility, "geometric").value
        assert middle == pytest.approx(math.sqrt(ends.prod()), rel=1e-3)


@settings(max_examples=200)
@given(candidates, st.floats(0.05, 20))
def test_the_ratio_beside_a_search(one, w):
    result, tried = pu_ratio([one], w), OnLattice(one)
    best = tried.crossings(w)
    if result.value is None:
        distance = np.abs(tried.privacy - w * tried.utility)
        assert best is None or distance.min() < 1e-9  # a touch that rounding decides
        nearest = pu_ratio([one], w, solve="argmin")
        assert abs(nearest.privacy - w * nearest.utility) <= distance.min() + 1e-9
        return
    assert result.privacy == pytest.approx(w * result.utility, abs=1e-9)
    assert pu_ratio([one], w, solve="argmin") == result
    if best is not None:
        assert result.privacy + w * result.utility >= best - FAR * (1 + w)


def test_a_ratio_that_is_met_thrice_is_met_where_levels_are_higher():
    levels = (Arctan(0.8 / math.pi, b, 0.0, d) for b, d in ((0.8, 0.5), (3.0, 0.55)))
    one = Candidate("both rise", *levels, math.exp(-6), math.exp(6))
    result, tried = pu_ratio([one], 1), OnLattice(one)
    assert (np.diff(np.sign(tried.privacy - tried.utility)) != 0).sum() >= 2
    assert result.privacy + result.utility == pytest.approx(tried.crossings(1), abs=FAR)


def test_equation_5_hands_out_an_infeasible_mechanism():
    """Privacy is 1 throughout, utility never above 1/2: no setting has the ratio 1; the argmin is an end of the range."""
    one = PROMESSE._replace(utility=Arctan(-0.5 / math.pi, 1.0, math.log(200), 0.25))
    result = pu_ratio([one], 1)
    assert (result.value, result.reason) == (None, "Promesse: privacy stays above 1 × utility throughout 50 to 10000")
    given_out = pu_ratio([one], 1, solve="argmin")
    assert given_out.value == 50
    assert given_out.privacy / given_out.utility > 2
    assert pu_ratio([GEO_I], 1000).reason == "Geo-I: privacy stays below 1000 × utility throughout 0.0001 to 1"


def test_the_mechanism_that_is_best_for_the_other_metric():
    """Promesse hides everything at any α: for P-thld its smallest α has the most utility."""
    assert PROMESSE.utility.at(math.log(50)) == pytest.approx(0.8011, abs=1e-4)
    result = privacy_threshold([GEO_I, PROMESSE], 0.6)
    assert (result.mechanism, result.value, result.privacy) == ("Promesse", 50, 1)
    assert [s.mechanism for s in result.settings] == ["Geo-I", "Promesse"]
    assert privacy_threshold([GEO_I, PROMESSE], 0.1).mechanism == "Geo-I"  # utility 0.9
    assert utility_threshold([GEO_I, PROMESSE], 0.6).mechanism == "Promesse"
    assert utility_threshold([GEO_I, PROMESSE], 0.85).mechanism == "Geo-I"
    assert pu_ratio([GEO_I, PROMESSE], 2).mechanism == "Promesse"  # 1 and 1/2 against less
    assert both_thresholds([GEO_I, PROMESSE], 0.5, 0.5).mechanism == "Promesse"
    assert both_thresholds([GEO_I, PROMESSE], 0.1, 0.85).mechanism == "Geo-I"


def test_ties_go_to_the_better_other_metric_and_then_to_the_first():
    level = lambda d: Arctan(0.0, 1.0, 0.0, d)  # noqa: E731
    less, more = (Candidate(name, level(p), level(0.5), 1.0, 2.0) for name, p in (("less", 0.6), ("more", 0.9)))
    for order in ([less, more], [more, less]):
        assert privacy_threshold(order, 0.5).mechanism == "more"
    rivals = [PROMESSE, PROMESSE._replace(mechanism="twin")]
    assert utility_threshold(rivals, 0.5).mechanism == "Promesse"
    # utility is flat: the end of more privacy
    one = GEO_I._replace(utility=Arctan(0.0, 1.0, 0.0, 0.7))
    assert privacy_threshold([one], 0.2).value == one.low
    # thresholds of 0 and 1
    assert both_thresholds([PROMESSE], 1, 0).privacy == 1
    assert privacy_threshold([GEO_I], 1).value is None  # an arctan comes to its saturation level nowhere
    assert privacy_threshold([GEO_I], 0).value == 1.0


def table(**privacy):
    values = np.geomspace(1e-4, 1, 17)
    same = {"mechanism": "Geo-I", "value": values, "utility": [RISES.at(x) for x in np.log(values)], "reason": "no POI"}
    return models(pd.concat(pd.DataFrame(same | {"user": user, "privacy": levels}) for user, levels in privacy.items()))


def test_every_user_is_answered():
    falling = np.array([FALLS.at(x) for x in np.log(np.geomspace(1e-4, 1, 17))])
    model_table = table(ann=falling, bob=np.nan)
    assert list(candidates_of(model_table)) == ["ann", "bob"]
    recommendations = recommend(model_table, lambda user_candidates: pu_ratio(user_candidates, 1)).set_index("user")
    assert recommendations.loc["ann", "value"] == pytest.approx(0.01, rel=1e-3)
    assert recommendations.loc["bob", ["mechanism", "value", "privacy", "utility"]].isna().all()
    assert recommendations.loc["bob", "reason"].startswith(
        "Geo-I: privacy: no model: 4 coefficients need at least 4 different values"
    )
    assert recommendations.loc["bob", "reason"].endswith("(no POI)")


def test_from_traces_to_what_is_achieved():
    """The table of a law is what ``achieved`` takes; who has no POI gets no recommendation and is passed over."""
    people = wanderers([1500, 1, 1200], 5)
    sweeps = [Sweep(GeoI(), "epsilon", np.geomspace(1e-3, 1, 7), "utility")]
    measured = profile(people, sweeps, seeds=[1, 2], metrics=Metrics(duration=600))
    chosen = recommend(models(measured, sweeps), lambda user_candidates: pu_ratio(user_candidates, 1))
    assert chosen["mechanism"].notna().tolist() == [True, False, True]
    assert chosen["privacy"].dropna().to_numpy() == pytest.approx(chosen["utility"].dropna().to_numpy(), abs=1e-9)
    again = achieved(people, chosen, sweeps, metrics=Metrics(duration=600))
    assert again.groupby("user")["repetition"].max().to_dict() == {"a": 10, "c": 10}
    assert again.groupby("user")["value"].first().to_dict() == chosen.set_index("user")["value"].dropna().to_dict()
    assert np.isfinite(again["privacy"]).all()


def test_one_mechanism_without_a_model_does_not_stop_the_others():
    unknown = PROMESSE._replace(utility=Arctan(NAN, NAN, NAN, NAN))
    result = pu_ratio([unknown, GEO_I], 1)
    assert result.mechanism == "Geo-I"
    assert result.settings[0].reason == "it has no model"
    assert pu_ratio([unknown], 1).reason == "Promesse: it has no model"


test_what_is_refused = refusals(
    (lambda: pu_ratio([GEO_I], 0), r"w, the ratio of privacy to utility, must be positive \(got 0\)"),
    (lambda: pu_ratio([GEO_I], NAN), r"must be positive \(got nan\)"),
    (lambda: pu_ratio([GEO_I], 1, "newton"), r'solve must be "root" or "argmin" \(got \'newton\'\)'),
    (lambda: privacy_threshold([GEO_I], 1.1), r"the least privacy must lie in \[0, 1\] \(got 1.1\)"),
    (lambda: utility_threshold([GEO_I], -0.1), r"the least utility must lie in \[0, 1\] \(got -0.1\)"),
    (lambda: both_thresholds([GEO_I], 0.5, NAN), r"the least utility must lie in \[0, 1\] \(got nan\)"),
    (lambda: both_thresholds([GEO_I], 0.5, 0.5, "mean"), r'middle must be "arithmetic" or "geometric" \(got \'mean\'\)'),
    (lambda: pu_ratio([], 1), r"a law needs at least one candidate \(got none\)"),
    (lambda: pu_ratio([GEO_I._replace(low=0.0)], 1), r"the range of Geo-I must be positive, .* \(got 0.0 to 1.0\)"),
    (lambda: pu_ratio([GEO_I._replace(high=1e-9)], 1), r"its ends in order \(got 0.0001 to 1e-09\)"),
)


@settings(max_examples=100)
@given(candidates, candidates, thresholds)
def test_of_two_mechanisms_none_that_is_not_taken_would_have_been_better(one, two, least):
    alone = [utility_threshold([c], least) for c in (one, two)]
    assume(any(a.value is not None for a in alone))
    result = utility_threshold([one, two._replace(mechanism="two")], least)
    assert result.privacy == pytest.approx(max(a.privacy for a in alone if a.value is not None), abs=1e-8)
