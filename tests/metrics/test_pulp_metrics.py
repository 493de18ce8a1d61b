"""PULP §II-C: POI privacy and cell coverage on Figure 1's example, in the cases of 0/0, and beside a slow twin."""

import naive_pulp as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from hypothesis import given, settings
from hypothesis import strategies as st
from pulp_making import journey, wanderers

from mobpriv.ground.grid import S2Grid
from mobpriv.mechanisms import GeoI, Promesse
from mobpriv.metrics import MATCHED, area_coverage, poi_privacy
from mobpriv.traces.profiles import poi_centres, pois, stays
from mobpriv.traces.table import as_traces, by_user, rows

CELLS = S2Grid(15)


def way(stopping, places):
    """Past so many places, 600 m apart, each in a cell of its own, with stops of 20 minutes at some of them."""
    return journey([((600 * k, 0), 20 if k in stopping else 0) for k in range(places)])


def together(*traces):
    return as_traces(pd.concat([t.astype({"user": str}) for t in traces]))


RAW = way({0, 3, 6}, 7)
FIGURE_1 = {  # three stops and seven cells; what is published, its privacy, its utility
    "Geo-I": (way({0, 3, 8}, 9), 1 / 3, 0.875),  # the paper prints 0.86
    "Promesse": (way({0}, 6), 1 / 2, 12 / 13),  # 0.92
}


@pytest.mark.parametrize(("published", "privacy", "utility"), FIGURE_1.values(), ids=list(FIGURE_1))
@pytest.mark.parametrize("matched", MATCHED)
@pytest.mark.parametrize("merged", [True, False])
def test_figure_1(published, privacy, utility, merged, matched):
    result = poi_privacy(RAW, published, merged=merged, matched=matched).loc["ann"]
    assert result["privacy"] == pytest.approx(privacy, abs=1e-12)
    assert result["matched"] == result["rediscovered"] == pytest.approx((1 - privacy) * (3 + result["found"]) / 2)
    assert area_coverage(RAW, published, CELLS).loc["ann", "f_score"] == pytest.approx(utility, abs=1e-12)


def test_nothing_found_is_full_privacy_and_nothing_to_hide_is_no_number():
    ann, bob, cat, dan = (RAW.assign(user=pd.Categorical([u] * len(RAW))) for u in ("ann", "bob", "cat", "dan"))
    moving = way(set(), 7)
    cat, one = moving.assign(user=pd.Categorical(["cat"] * len(moving))), rows(dan, np.array([0]))
    elsewhere = journey([((0, 9000), 60)], "bob")
    result = poi_privacy(together(ann, bob, cat, one), together(elsewhere, journey([((0, 0), 60)], "cat")))
    assert result.index.tolist() == ["ann", "bob", "cat", "dan"]
    np.testing.assert_array_equal(result["privacy"], [1, 1, np.nan, np.nan])  # erased; a stop, but none of hers
    assert result["recall"].isna().tolist() == [False, False, True, True]
    assert result["precision"].isna().tolist() == [True, False, False, True]
    assert result["found"].tolist() == [0, 1, 1, 0]
    assert area_coverage(one, one.iloc[:0], CELLS)["f_score"].tolist() == [0]


def test_a_match_ends_at_its_distance_also_across_the_date_line():
    there = journey([((100, 0), 30)])
    assert poi_privacy(journey([((0, 0), 30)]), there, near=100.01)["privacy"].tolist() == [0]
    assert poi_privacy(journey([((0, 0), 30)]), there, near=99.99)["privacy"].tolist() == [1]
    east, west = (rows(RAW, np.arange(30)).assign(lng=lng) for lng in (179.9999, -179.9999))
    assert poi_privacy(east, west)["privacy"].tolist() == [0]


@pytest.mark.parametrize("plane", ["ground", "mercator"])
@pytest.mark.parametrize("matched", MATCHED)
@pytest.mark.parametrize("merged", [True, False])
@settings(max_examples=15)
@given(
    counts=st.lists(st.integers(1, 250), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
    epsilon=st.sampled_from([0.002, 0.02, 0.2]),
    erased=st.booleans(),
)
def test_poi_privacy_is_its_definition(plane, matched, merged, counts, seed, epsilon, erased):
    raw = wanderers(counts, seed)
    published = GeoI(epsilon).protect(raw, np.random.default_rng(seed))
    if erased:
        published = rows(published, (published["user"] != published["user"].iloc[-1]).to_numpy())
    result = poi_privacy(raw, published, 200, 600, 120, merged, matched, plane=plane)
    expected = naive.poi_privacy(raw, published, 200, 600, 120, merged, matched, plane)
    assert list(expected) == result.index.tolist()
    np.testing.assert_allclose(result[["precision", "recall", "privacy"]], list(expected.values()), rtol=0, atol=1e-12)


@pytest.mark.parametrize("merged", [True, False])
def test_centres_are_those_of_the_pois(merged):
    raw = wanderers([900, 3, 700], 4)
    published = Promesse(100).protect(raw)
    abroad = raw.assign(lng=(raw["lng"] - 5 + 180 + 180) % 360 - 180)  # across the date line
    for traces in (raw, published, abroad, raw.iloc[:0], rows(raw, (raw["user"] == "b").to_numpy())):
        centres = poi_centres(traces, 200, 600, merged=merged)
        table = pois(traces, 200, 600)[0] if merged else stays(traces, 200, 600)
        users = by_user(traces)[0]
        assert len(centres.start) == len(users) + 1
        for i, user in enumerate(users):
            block = slice(centres.start[i], centres.start[i + 1])
            expected = table.loc[table["user"] == user, ["lat", "lng"]].to_numpy(float)
            user_centres = np.column_stack([centres.lat[block], centres.lng[block]])
            assert len(user_centres) == len(expected)
            np.testing.assert_allclose(
                user_centres[np.lexsort(user_centres.T)], expected[np.lexsort(expected.T)], rtol=0, atol=1e-12
            )
    assert len(poi_centres(raw, 200, 600, merged=merged).lat) > 3


test_what_is_refused = refusals(
    ({"near": 0}, r"near must be positive, in m \(got 0\)"),
    ({"diameter": -1}, r"diameter must be positive, in m \(got -1\)"),
    ({"duration": -1}, r"duration must not be negative, in s \(got -1\)"),
    ({"matched": "one"}, r'matched must be "protected" or "both" \(got \'one\'\)'),
    ({"merged": 1}, r"merged must be True or False \(got 1\)"),
    ({"plane": "moon"}, "plane must be"),
    call=lambda wrong: poi_privacy(RAW, RAW, **wrong),
)
