"""Aggregates of a set of traces, against their definitions."""

import naive_statistics as naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.datasets.statistics import (
    JUMP_EDGES,
    PLACE,
    RANKS,
    describe,
    jumps,
    radius_of_gyration,
    uniqueness,
    wilson,
)
from mobpriv.traces.profiles import stays
from mobpriv.traces.table import as_traces

START = pd.Timestamp("2024-09-02", tz="UTC")


def table(rows):
    """Traces of (user, minutes, metres north, metres east) around 45° N 12° W."""
    user, minute, north, east = (pd.Series(of) for of in zip(*rows, strict=True)) if rows else (pd.Series([], dtype=float),) * 4
    places = {"lat": 45 + north / 111_131.8, "lng": -12 + east / 78_846.8}  # m in a degree at 45°
    return as_traces(pd.DataFrame({"user": user.astype(str), "t": START + pd.to_timedelta(minute, unit="min"), **places}))


ROWS = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.integers(0, 3000), st.sampled_from([0, 50, 900, 5000]), st.sampled_from([0, 90, 2000])
    ),
    min_size=1,
    max_size=60,
    unique_by=lambda row: row[:2],
)


@given(ROWS)
def test_radius_of_gyration_equals_its_definition(rows):
    traces = table(rows)
    fast, slow = radius_of_gyration(traces), naive.radius_of_gyration(traces)
    assert fast.index.tolist() == sorted(slow)
    # one scale per user against one per record: 5 km north the degree of longitude is shorter by less than one in a thousand
    np.testing.assert_allclose(fast, [slow[u] for u in fast.index], rtol=2e-3, atol=1e-6)


@given(ROWS)
@settings(max_examples=20)
def test_uniqueness_lies_around_its_definition(rows):
    traces = table(rows)
    points = naive.points_of(traces, 800.0)
    taking_part = [u for u in points if len(points[u]) >= 2]
    computed = uniqueness(traces, np.random.default_rng(1), 800.0, trials=3_000, points=2)
    assert (computed["n"] == len(taking_part)).all()
    for k in (1, 2) if taking_part else ():
        exact = np.mean([naive.share_unique(points, u, k) for u in taking_part])
        # at least 1 000 draws a user: five standard errors
        assert computed["value"][k - 1] == pytest.approx(exact, abs=5 * 0.5 / np.sqrt(1_000 * len(taking_part)))


def test_uniqueness_of_twins_and_of_loners():
    def of(rows):
        return uniqueness(table(rows), np.random.default_rng(1))

    same = [(u, 60 * h, 0, 0) for u in "ab" for h in range(6)]
    distant = of([(u, 60 * h, 5000 * (u == "b"), 0) for u, h, *_ in ((u, h) for u in "ab" for h in range(6))])
    assert of(same)["value"].tolist() == [0] * 5
    assert distant["value"].tolist() == [1] * 5
    assert (distant["low"] < 1).all()
    assert of(same[:4])["n"].tolist() == [0] * 5  # nobody with five points takes part


def test_uniqueness_needs_the_seed_only():
    rows = [(u, 60 * h, 900 * (h * k % 5), 0) for k, u in enumerate("abcd", 1) for h in range(12)]
    first, again = (uniqueness(table(rows), np.random.default_rng(7), trials=50) for _ in range(2))
    assert first.equals(again)
    assert (np.diff(first["value"]) >= 0).all()  # the first p of one draw: more points single out no fewer


def test_by_hand_radius_of_gyration_and_jumps_without_one_place_seen_twice():
    # 300 m and 300 m from their middle, as far to the north as to the south
    assert radius_of_gyration(table([("a", 0, 0, 0), ("a", 1, 600, 0)]))["a"] == pytest.approx(300, rel=1e-4)
    stays = table([("a", 0, 0, 0), ("a", 60, 150, 0), ("a", 120, 1150, 0), ("b", 0, 0, 0)])
    assert jumps(stays) == pytest.approx([1000], rel=1e-4)
    assert JUMP_EDGES[0] == PLACE


def test_describe_counts_what_is_there():
    rows = [("a", 10 * k, 0, 0) for k in range(7)]  # an hour at home, 7 records
    rows += [("a", 100 + 10 * k, 3000, 0) for k in range(3)]  # 20 minutes away
    rows += [("a", 1500, 0, 0), ("a", 1520, 0, 0)]  # home, the next day
    rows += [("b", 0, 0, 0), ("b", 1, 0, 0)]
    traces = table(rows)
    visits = stays(traces, 200.0, 900.0)
    card = describe(traces, visits, np.random.default_rng(1)).set_index(["quantity", "at"])["value"]
    assert card["records"].item() == 14
    assert card["users"].item() == 2
    assert card["span"].item() == pytest.approx(1520 / 1440)
    assert card["days with records per user", 0.5] == 1.5  # 2 and 1
    assert card["records per user-day", 0.5] == 2  # 10, 2, 2
    assert card["time between records", 0.5] == 600
    assert card["stays per user-day", 0.9] == pytest.approx(0.9 * 3 / 2)  # 3 stays in 2 days, and none
    assert card["places visited per user", 0.9] == pytest.approx(0.9 * 2)
    assert card["jump length", 0.5] == pytest.approx(3000, rel=1e-3)
    assert card["share of jumps"].sum() == pytest.approx(1)
    assert card["share of visits by rank"].iloc[:3].tolist() == pytest.approx([2 / 3, 1 / 3, 0])
    np.testing.assert_allclose(card["share of visits by rank"], naive.share_by_rank(visits, PLACE, RANKS))


@pytest.mark.parametrize("rows", [[], [("a", 0, 0, 0)]])
def test_describe_an_empty_table_and_one_record(rows):
    card = describe(table(rows), stays(table(rows)), np.random.default_rng(1)).set_index(["quantity", "at"])["value"]
    assert card["records"].item() == len(rows)
    assert np.isnan(card["uniqueness", 1])


def test_wilson_by_hand():
    # 0 of 10: z²/(n + z²) with z = 1.96
    low, high = wilson(np.array([0.0, 0.5]), 10)
    assert (low[0], high[0]) == (0, pytest.approx(3.8415 / 13.8415, rel=1e-4))
    assert low[1] + high[1] == pytest.approx(1)
