"""Areas, users and priors of the games of obfuscation."""

import math

import naive_priors as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.channels.priors import better_informed, densest_area, entropy, most_active, priors, smoothed
from mobpriv.ground.geo import meridian_arc
from mobpriv.ground.grid import AreaGrid, latitude_of_arc
from mobpriv.traces.table import as_traces

DAY = pd.Timestamp("2020-01-01", tz="UTC")
GRID = AreaGrid(45.0, 5.0, 400.0, 200.0, 4, 2)  # cells 0 1 2 3 below 4 5 6 7, each of 100 × 100 m


def traces_of(visits: dict[str, list[int]], grid=GRID):
    """Per user the cells in which the records lie, one a minute; -1 lies a kilometre south of the area."""
    lat, lng = grid.centres_in_degrees().T
    rows = [
        (user, 60 * i, lat[cell] if cell >= 0 else grid.south - 0.01, lng[cell] if cell >= 0 else grid.west)
        for user, cells in visits.items()
        for i, cell in enumerate(cells)
    ]
    table = pd.DataFrame(rows, columns=["user", "t", "lat", "lng"]).astype({"lat": float, "lng": float})
    return as_traces(table.assign(t=pd.to_datetime(table["t"] + 1_450_000_000, unit="s", utc=True)))


walks = st.dictionaries(
    st.sampled_from(["ann", "bob", "cat", "dan"]), st.lists(st.integers(-1, 7), min_size=1, max_size=12), min_size=1
)
shares = st.lists(st.integers(0, 6), min_size=2, max_size=8).filter(sum).map(lambda n: np.array(n) / sum(n))


class TestPriors:
    def test_by_hand(self):
        """ann: cells 0, 0, 1, outside, 1, 1, 0: of six records inside three in either cell; visits 0, 1, 1, 0."""
        traces = traces_of({"ann": [0, 0, 1, -1, 1, 1, 0], "bob": [0, 7, 7, 7, 7, 7, 7, 7]})
        result = priors(traces, GRID)
        assert result.shares.loc["ann"].tolist() == [0.5, 0.5, 0, 0, 0, 0, 0, 0]
        assert result.shares.loc["bob"].tolist() == [0.125, 0, 0, 0, 0, 0, 0, 0.875]
        assert result.records.loc["ann"].to_dict() == {"inside": 6, "outside": 1, "counted": 6, "cells": 2}
        result = priors(traces, GRID, ["bob", "ann"], "visits")
        assert result.shares.index.tolist() == ["bob", "ann"]
        assert result.shares.loc["ann"].tolist() == [0.5, 0.5, 0, 0, 0, 0, 0, 0]
        # his first record lies where her last one does, and is a visit of its own
        assert result.shares.loc["bob"].tolist() == [0.5, 0, 0, 0, 0, 0, 0, 0.5]
        assert result.records["counted"].tolist() == [2, 4]
        assert result.records["outside"].tolist() == [0, 1]

    @given(walks, st.sampled_from(["records", "visits"]))
    def test_equal_their_definition(self, visits, count):
        visits = {user: cells for user, cells in visits.items() if max(cells) >= 0}
        if not visits:
            return
        traces = traces_of(visits)
        before = traces.copy(deep=True)
        result = priors(traces, GRID, count=count)
        pd.testing.assert_frame_equal(traces, before, check_exact=True)
        for user, user_traces in traces.groupby("user", observed=True):
            rows = list(zip(user_traces["lat"], user_traces["lng"], strict=True))
            assert result.shares.loc[user].to_numpy() == pytest.approx(naive.prior(rows, GRID, count == "visits"), abs=1e-15)
            assert result.records.loc[user, "inside"] + result.records.loc[user, "outside"] == len(user_traces)
            assert result.records.loc[user, "counted"] == sum(naive.counts(rows, GRID, count == "visits").values())

    def test_nobody(self):
        result = priors(traces_of({"ann": [0]}).head(0), GRID)
        assert result.shares.shape == (0, 8)


ACTIVE = traces_of({"cab": [0] * 9, "pat": [1, 2, -1, -1, -1, -1], "pen": [3, 3, 3], "pia": [7, 7, 7], "pot": [-1] * 20})


def test_the_most_active_by_records_inside_then_by_name():
    assert most_active(ACTIVE, GRID, 4) == ["cab", "pen", "pia", "pat"]
    assert most_active(ACTIVE, GRID, 3, start="p") == ["pen", "pia", "pat"]


class TestDensestArea:
    def test_by_hand(self):
        """Six records fill three cells in a row; an area of two cells holds at most four of them, in the western two."""
        lattice = AreaGrid(float(latitude_of_arc(50_000 * 100.0)), 0.0, 400.0, 100.0, 4, 1)
        result = densest_area(traces_of({"ann": [0, 0, 1, 1, 2, 2]}, lattice), 200.0, 100.0, 2, 1)
        assert result.south == pytest.approx(lattice.south, abs=1e-9)
        assert result.west == pytest.approx(0.0, abs=1e-9)
        assert (result.width, result.height, result.columns, result.rows) == (200.0, 100.0, 2, 1)

    def test_ties_go_south_first(self):
        grid = AreaGrid(float(latitude_of_arc(50_000 * 100.0)), 0.0, 400.0, 400.0, 4, 4)
        result = densest_area(traces_of({"ann": [1, 13]}, grid), 100.0, 100.0, 1, 1)
        assert result.cells(*grid.centres_in_degrees()[[1]].T).tolist() == [0]

    @given(
        st.lists(st.tuples(st.integers(-900, 900), st.integers(-900, 900)), min_size=1, max_size=12),
        st.sampled_from([(46.0, 6.0), (-33.0, 151.0), (0.0, 0.0), (60.0, 179.9999)]),
        st.integers(1, 3),
        st.integers(1, 3),
    )
    def test_no_candidate_holds_more(self, offsets, home, columns, rows):
        lat, lng = home[0] + np.array(offsets)[:, 1] / 111e3, home[1] + np.array(offsets)[:, 0] / 111e3
        width, height = 333.3 * columns, 251.7 * rows
        table = pd.DataFrame({"user": "u", "t": DAY, "lat": lat, "lng": (lng + 180) % 360 - 180})
        result = densest_area(as_traces(table), width, height, columns, rows)
        inside = (result.cells(lat, lng) >= 0).sum()
        first, last = (int(np.floor(meridian_arc(x) / 251.7)) for x in (lat.min(), lat.max()))
        edges = latitude_of_arc(np.arange(first - rows + 1, last + 1) * 251.7)

        def steps(degrees):
            return range(math.floor(lng.min() / degrees) - columns + 1, math.floor(lng.max() / degrees) + 1)

        if home[1] < 179:
            places = list(zip(lat, lng, strict=True))
            assert inside == naive.most_records(places, width, height, columns, rows, edges, steps)
        assert inside >= 1

    def test_the_whole_world_is_searched(self):
        """Three records in Sydney against two in Paris and one at either end of the globe."""
        table = pd.DataFrame(
            {"lat": [48.85, 48.85, -33.86, -33.86, -33.861, 89.9999, -89.9999], "lng": [2.35] * 2 + [151.2] * 3 + [0, 9]}
        )
        traces = as_traces(table.astype(float).assign(user="u", t=DAY))
        assert (densest_area(traces).cells(traces["lat"], traces["lng"]) >= 0).sum() == 3


class TestSmoothed:
    def test_stops_at_three_widths(self):
        grid = AreaGrid(45.0, 5.0, 500.0, 100.0, 5, 1)
        result = smoothed([1, 0, 0, 0, 0], grid, 100.0, 1.0)
        assert (result > 0).tolist() == [True, True, True, True, False]

    @settings(max_examples=30)
    @given(st.lists(st.integers(0, 5), min_size=8, max_size=8).filter(sum), st.floats(20, 500), st.floats(0, 1))
    def test_equals_its_definition(self, counts, width, weight):
        prior = np.array(counts) / sum(counts)
        result = smoothed(prior, GRID, width, weight)
        assert result == pytest.approx(naive.smoothed(prior, GRID, width, weight), abs=1e-12)
        assert result.sum() == pytest.approx(1)
        assert smoothed(np.array([prior, prior]), GRID, width, weight)[1] == pytest.approx(result)


class TestEntropy:
    def test_by_hand(self):
        assert entropy([0.5, 0.25, 0.25, 0]) == pytest.approx(0.5 * 1 + 0.25 * 2 + 0.25 * 2)
        assert entropy(np.full(300, 1 / 300)) == pytest.approx(math.log2(300))
        assert entropy([[1, 0], [0.5, 0.5]]).tolist() == [0, 1]
        assert math.copysign(1, entropy([0.0, 1.0])) == 1

    @given(shares)
    def test_equals_its_definition(self, prior):
        assert entropy(prior) == pytest.approx(naive.entropy(prior), abs=1e-12)


class TestBetterInformed:
    @given(shares, st.integers(1, 3), st.floats(0, 1), st.floats(0, 1))
    def test_entropy_falls_with_the_weight(self, prior, places, one, two):
        places = min(places, len(prior))
        low, high = sorted((one, two))
        less, more = better_informed(prior, low, places), better_informed(prior, high, places)
        assert less == pytest.approx(naive.better_informed(prior, low, places), abs=1e-12)
        assert entropy(more) <= entropy(less) + 1e-12
        if (prior > 0).sum() <= places:
            assert more == pytest.approx(prior)
        elif high - low > 1e-3:
            assert entropy(more) < entropy(less)

    def test_rows_are_users(self):
        table = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
        result = better_informed(table, 1.0)
        assert result == pytest.approx(np.array([[0.625, 0.375, 0], [0, 0.375, 0.625]]))


EVEN, ANN, POLE = np.full(8, 0.125), traces_of({"ann": [0], "bob": [-1, -1]}), {"user": "u", "lat": 90.0, "lng": 0.0}


test_bad_input_is_refused = refusals(
    (lambda: priors(ANN, GRID, ["ann", "bob", "eve"]), "no prior without a record inside the area: bob, eve"),
    (lambda: priors(ANN, GRID, ["ann"], "days"), r'count must be "records" or "visits" \(got \'days\'\)'),
    (lambda: most_active(ACTIVE, GRID, 5), "5 users are requested, the area has records of 4: request fewer"),
    (lambda: most_active(ACTIVE, GRID, 1, start="x"), "records of 0 whose name begins with 'x'"),
    (lambda: most_active(ACTIVE, GRID, 0), r"at least 1 \(got 0\)"),
    (lambda: densest_area(as_traces(pd.DataFrame(POLE | {"t": [DAY]}))), "they all lie at a pole"),
    (lambda: densest_area(ANN.head(0)), "no records to choose an area from"),
    (lambda: densest_area(ANN, columns=0), "columns must be a whole number"),
    (lambda: smoothed(EVEN, GRID, width=0.0), "width must be positive, in m"),
    (lambda: smoothed(EVEN, GRID, weight=1.5), r"weight must lie in \[0, 1\] \(got 1.5\)"),
    (lambda: smoothed(EVEN, GRID, weight=float("nan")), "weight must lie in"),
    (lambda: smoothed(np.full(9, 1 / 9), GRID), "the prior has 9 cells, the area 8"),
    (lambda: better_informed([0.5, 0.5], 0.5, 3), r"places must .* of cells, 2, and be whole \(got 3\)"),
    (lambda: better_informed([0.5, 0.5], -0.1), "weight must lie in"),
)


test_what_is_no_prior = refusals(
    ([0.5, 0.4], r"must sum to 1 within 1e-09 \(got 0.9\)"),
    ([[0.5, 0.5], [0.5, 0.4]], r"row 1 of the priors must sum to 1 within 1e-09 \(got 0.9\)"),
    ([1.5, -0.5], r"must be not negative \(got -0.5 of secret 1\)"),
    ([np.nan, 1], r"must be finite \(got nan of secret 0\)"),
    ([[0.5, 0.5], [np.nan, 1]], r"must be finite \(got nan in row 1, of secret 0\)"),
    ([], r"none empty \(got shape \(0,\)\)"),
    (1.0, r"a prior is one probability a secret"),
    call=entropy,
)


def test_the_reading_of_a_prior_changes_nothing():
    prior = np.array([0.5, 0.5])
    entropy(prior)
    better_informed(prior, 1.0, 1)
    assert prior.tolist() == [0.5, 0.5]
