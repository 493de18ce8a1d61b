"""Values per decade, settings between, and the errors of models at both."""

import math

import numpy as np
import pandas as pd
import pytest
from pulp_making import wanderers

from mobpriv.experiments.pulp_models import (
    FAMILIES,
    METRIC,
    every_metric,
    judged,
    name_of,
    per_decade,
    scattered,
    underdetermined,
)
from mobpriv.mechanisms import GeoI
from mobpriv.pulp import GEO_I, PROMESSE, Arctan, Metrics, Sweep, fit, profile


def test_values_per_decade_are_the_paper_s():
    assert [len(per_decade(GEO_I, k)) for k in (1, 2, 3, 4)] == [5, 9, 13, 17]
    assert [len(per_decade(PROMESSE, k)) for k in (1, 2, 3, 4)] == [3, 6, 8, 10]
    assert per_decade(GEO_I, 4) == GEO_I.values
    assert per_decade(PROMESSE, 4) == PROMESSE.values
    assert per_decade(GEO_I, 1) == GEO_I.values[::4]
    for sweep in (GEO_I, PROMESSE):
        for k in (1, 2, 3):
            values = per_decade(sweep, k)
            assert (values[0], values[-1]) == (sweep.low, sweep.high)
            assert np.diff(np.log(values)) == pytest.approx(np.log(values[1] / values[0]))
    with pytest.raises(ValueError, match="count"):
        per_decade(GEO_I, 0)
    with pytest.raises(ValueError, match="two values"):
        per_decade(Sweep(GeoI(), "epsilon", [0.01, 0.011], "utility"), 1)


@pytest.mark.parametrize("count", [3, 5, 8, 13])
def test_where_curves_are_judged_is_spread_over_the_range_and_new(count):
    for sweep in (GEO_I, PROMESSE):
        values = scattered(sweep, count)
        assert len(set(values)) == count
        places = np.log(np.array(values) / sweep.low) / np.log(sweep.high / sweep.low)
        gaps = np.diff([0, *places, 1])
        assert gaps.min() > 0.25 / count
        assert gaps.max() < 1.75 / count
        for k in (1, 2, 3, 4):
            off = np.abs(np.log(np.array(values)[:, None] / np.array(per_decade(sweep, k))))
            assert off.min() > 1e-3, "none that a curve is fitted to"


def test_each_family_moves_one_thing():
    base = Metrics()
    for family, of in FAMILIES.items():
        assert sum(metrics == base for metrics in of.values()) == 1, "the values of §VI-A among them"
        for metrics in of.values():
            changed = [f for f in ("diameter", "duration", "near", "level") if getattr(metrics, f) != getattr(base, f)]
            assert len(changed) == (metrics != base)
            assert METRIC[family] == ("utility" if family == "cells" else "privacy")
    assert FAMILIES["distance"][250].near == 500.0
    assert every_metric()[name_of("duration", 5)].duration == 300.0


def made(model, at, users=("a",), noise=0.0):
    rng = np.random.default_rng(3)
    levels = [[model.at(math.log(v)) + noise * rng.normal() for v in at] for _ in users]
    same = {"mechanism": "Geo-I", "value": at, "privacy": math.nan}
    return pd.concat([pd.DataFrame(same | {"user": u, "utility": x}) for u, x in zip(users, levels, strict=True)])


def test_the_errors_are_those_of_the_fit():
    model = Arctan(0.3, 1.5, math.log(0.01), 0.5)
    inside, outside = GEO_I.values[::2], scattered(GEO_I, 6)
    table = made(model, [*inside, *outside], ("a", "b"), 0.05)
    found = judged(table, "utility", {"Geo-I": inside}, {"Geo-I": outside}, (GEO_I,)).set_index("user")
    for user in "ab":
        own = table[(table["user"] == user)].set_index("value")["utility"]
        fitted = fit(inside, own[list(inside)], 0.01, True)
        assert found.loc[user, "fitted"] == pytest.approx(fitted.variance)
        by_hand = np.mean([(fitted.model.at(math.log(v)) - own[v]) ** 2 for v in outside])
        assert found.loc[user, "between"] == pytest.approx(by_hand)
        assert found.loc[user, "values"] == 9
    assert judged(table, "privacy", {"Geo-I": inside}, {"Geo-I": outside}, (GEO_I,)).empty, "levels that are unknown"

    # without noise the curve is found between its settings
    table = made(model, [*per_decade(GEO_I, 1), *scattered(GEO_I, 16)])
    found = judged(table, "utility", {"Geo-I": per_decade(GEO_I, 1)}, {"Geo-I": scattered(GEO_I, 16)}, (GEO_I,))
    assert found["between"].iloc[0] < 1e-4


def test_three_values_are_met_exactly_and_say_little_between():
    values = (50.0, 700.0, 1e4)
    model = underdetermined(values, [0.9, 0.5, 0.1], 200.0, False)
    assert [model.at(math.log(v)) for v in values] == pytest.approx([0.9, 0.5, 0.1], abs=1e-3)
    assert model.b > 0
    table = made(Arctan(-0.3, 2.0, math.log(300), 0.5), [*values, 120.0, 2000.0]).assign(mechanism="Promesse")
    found = judged(table, "utility", {"Promesse": values}, {"Promesse": [120.0, 2000.0]}, (PROMESSE,))
    assert found["fitted"].iloc[0] < 1e-6
    assert found["between"].iloc[0] > 1e-5


def test_real_levels_and_what_is_refused():
    sweep = Sweep(GeoI(), "epsilon", GEO_I.values[4:12], rises="utility")
    measured = profile(wanderers([400, 1, 350], 5), [sweep], (1, 2))
    inside, outside = sweep.values[::2] + sweep.values[-1:], sweep.values[1:-1:2]
    found = judged(measured, "privacy", {"Geo-I": inside}, {"Geo-I": outside}, (sweep,))
    assert found["user"].tolist() == ["a", "c"], "b has no POI"
    with pytest.raises(ValueError, match="the profile lacks"):
        judged(measured, "privacy", {"Geo-I": inside}, {"Geo-I": [0.5]}, (sweep,))
    with pytest.raises(ValueError, match="metric"):
        judged(measured, "usefulness", {"Geo-I": inside}, {"Geo-I": outside}, (sweep,))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (([], [], 200.0, True), r"^a curve needs at least one value with its level \(got none\)$"),
        (([50.0, 0.0], [0.1, 0.2], 200.0, True), r"^values must be positive and finite \(got 0.0 at place 1\)$"),
        (([50.0], [0.1, 0.2], 200.0, True), r"^each value needs one level \(got 1 values, 2 levels\)$"),
        (([50.0], [math.inf], 200.0, True), r"^levels must be numbers \(got inf at place 0\): leave that point out$"),
        (([50.0], [0.1], 0, True), r"^standard must be positive \(got 0\)$"),
        (([50.0], [0.1], 200.0, "yes"), r"^rises must be True or False \(got 'yes'\)$"),
    ],
)
def test_points_that_no_curve_goes_through(given, line):
    with pytest.raises(ValueError, match=line):
        underdetermined(*given)
