"""The choices behind PULP: Equations (7) and (10) as printed, and recommendations held against one another."""

from math import nan, pi

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.experiments.pulp_models import closed_form, kept, moved
from mobpriv.pulp import Arctan, Candidate, privacy_threshold, utility_threshold

FALLING, RISING = Arctan(-1 / pi, 1.0, np.log(0.01), 0.5), Arctan(1 / pi, 1.0, np.log(0.01), 0.5)
GEO_I = Candidate("Geo-I", FALLING, RISING, 1e-4, 1.0)


@given(st.floats(0.05, 0.95))
def test_inside_the_range_the_formula_is_the_law(least):
    """Where Equation (7) has a solution in the range both take it: the levels move against one another."""
    wide = GEO_I._replace(low=1e-12, high=1e8)
    for metric, law in (("privacy", privacy_threshold), ("utility", utility_threshold)):
        printed, ours = closed_form([wide], metric, least), law([wide], least)
        assert printed.value == pytest.approx(ours.value, rel=1e-9)
        assert getattr(printed, metric) == pytest.approx(least)


def test_a_threshold_kept_throughout_has_no_value_in_the_range():
    always = GEO_I._replace(privacy=Arctan(-0.05, 1.0, np.log(0.01), 0.9))  # from 0.82 to 0.98
    printed = closed_form([always], "privacy", 0.3)
    assert printed.value is None or always.privacy.at(np.log(printed.value)) != pytest.approx(0.3)
    assert privacy_threshold([always], 0.3).value == 1.0


def test_beyond_the_branch_the_formula_has_a_value_that_means_nothing():
    # (0.3 − 0.9)/−0.2 = 3: tan(3) = −0.14 is near the middle of the range, where privacy is not 0.3 but 0.93
    c = GEO_I._replace(privacy=Arctan(-0.2, 1.0, np.log(0.01), 0.9))
    printed = closed_form([c], "privacy", 0.3)
    assert printed.value == pytest.approx(0.01 * np.exp(np.tan(3)))
    assert printed.privacy > 0.9


def test_a_value_outside_the_range_and_a_constant_are_refused_with_a_reason():
    assert "outside" in closed_form([GEO_I], "privacy", 0.999).reason
    assert "does not depend" in closed_form([GEO_I._replace(privacy=Arctan(0.0, 1.0, 0.0, 1.0))], "privacy", 0.5).reason
    missing = GEO_I._replace(privacy=Arctan(nan, nan, nan, nan), missing="privacy: no POI")
    assert closed_form([missing], "privacy", 0.5).reason.endswith("no POI")
    found = closed_form([GEO_I._replace(utility=Arctan(nan, 1.0, 0.0, 0.5))], "privacy", 0.5)
    assert found.reason == "Geo-I: it has no model"
    assert "divides by zero" in closed_form([GEO_I._replace(privacy=FALLING._replace(b=0.0))], "privacy", 0.5).reason


def test_the_mechanism_with_the_better_other_metric_is_taken():
    better = GEO_I._replace(mechanism="better", utility=RISING._replace(d=0.6))
    assert closed_form([GEO_I, better], "privacy", 0.7).mechanism == "better"
    more = GEO_I._replace(mechanism="more", privacy=FALLING._replace(d=0.6))
    assert closed_form([GEO_I, more], "utility", 0.5).mechanism == "more"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (([GEO_I], "speed", 0.5), r'^metric must be "privacy" or "utility" \(got \'speed\'\)$'),
        (([GEO_I], "privacy", 1.5), r"^least must lie in \[0, 1\] \(got 1.5\)$"),
        (([], "privacy", 0.5), r"^a law needs at least one candidate \(got none\)$"),
        (([GEO_I._replace(low=0.0)], "privacy", 0.5), r"^the range of Geo-I must be positive, .* \(got 0.0 to 1.0\)$"),
    ],
)
def test_what_the_formula_refuses(given, line):
    with pytest.raises(ValueError, match=line):
        closed_form(*given)


def recommendations(*rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["user", "mechanism", "value"])


def test_moved_tells_changes_from_factors():
    base = recommendations(("a", "Geo-I", 0.01), ("b", "Geo-I", 0.02), ("c", "Promesse", 100.0), ("d", "none", nan))
    other = recommendations(("d", "none", nan), ("a", "Geo-I", 0.02), ("b", "Promesse", 50.0), ("c", "Promesse", 25.0))
    found = moved(other, base)
    assert found["changed"].value == 0.25  # b; d had nobody and has nobody
    assert found["factor"].value == pytest.approx(3.0)  # 2 and 4
    assert found["factor"].n == 2
    one, none = recommendations(("a", "Geo-I", 0.01)), recommendations(("a", "none", nan))
    assert set(moved(none, one)) == {"changed"}, "nobody keeps a mechanism"
    assert set(moved(one, one)) == {"changed", "factor"}
    assert set(moved(one, one, 2)) == {"changed"}, "no factor of too few"
    with pytest.raises(ValueError, match="same users"):
        moved(one, base)


def test_kept_counts_draws_and_users_without_a_recommendation():
    levels = pd.DataFrame({"user": ["a", "a", "b", "b"]})
    share = kept(pd.Series([True, False, True, True]), levels, ["a", "b", "c"])
    assert share.tolist() == [0.5, 1.0, 0.0]
