import json

import naive_profiles as naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_making import edge_traces, strolls, traces_of, walks

from mobpriv.ground import geo
from mobpriv.ground.grid import SquareGrid
from mobpriv.mechanisms import Promesse
from mobpriv.traces import profiles
from mobpriv.traces.table import as_traces, milliseconds


@given(st.lists(walks, min_size=1, max_size=3), st.sampled_from([0, 900, 3600]), st.sampled_from([None, 300, 600]))
def test_stays_equal_their_definition(user_walks, duration, max_gap):
    traces = traces_of(user_walks)
    stays = profiles.stays(traces, 200, duration, max_gap)
    expected, start = [], 0
    for _, user_traces in traces.groupby("user", observed=True):
        rows = list(zip(milliseconds(user_traces) / 1000, user_traces["lat"], user_traces["lng"], strict=True))
        expected += [(start + a, start + b) for a, b in naive.stays(rows, 200, duration, max_gap)]
        start += len(user_traces)
    assert list(zip(stays["first"], stays["last"], strict=True)) == expected
    for stay in stays.itertuples():
        stay_records = traces.iloc[stay.first : stay.last + 1]
        assert geo.distance(stay_records["lat"].mean(), stay_records["lng"].mean(), stay.lat, stay.lng) < 1e-6


@given(st.lists(walks, min_size=1, max_size=2), st.sampled_from([1, 2, 3]))
def test_pois_equal_their_definition(user_walks, min_stays):
    places, visits = profiles.pois(traces_of(user_walks), 200, 0, min_stays=min_stays)
    for user, user_visits in visits.groupby("user", observed=True):
        expected = naive.clusters(list(zip(user_visits["lat"], user_visits["lng"], strict=True)), 100, min_stays)
        clusters = [set(np.flatnonzero(user_visits["poi"] == p)) for p in sorted(set(user_visits["poi"]) - {-1})]
        assert sorted(map(sorted, expected)) == sorted(map(sorted, clusters))
        user_places = places[places["user"] == user]
        assert user_places["poi"].tolist() == list(range(len(expected)))
        assert user_places["records"].is_monotonic_decreasing
        for p in user_places.itertuples():
            members = user_visits[user_visits["poi"] == p.poi]
            weighted = np.average(members["lat"], weights=members["records"])
            assert p.records == members["records"].sum()
            assert p.lat == pytest.approx(weighted, abs=1e-10)


@pytest.mark.parametrize(
    ("walk", "max_gap", "expected"),
    [
        ([(0, 0, 0), (60, 0, 0), (7260, 0, 0)], None, 1),  # two hours without a record, at one place
        ([(0, 0, 0), (60, 0, 0), (7260, 0, 0)], 3600, 0),
        ([(0, 0, 0), (3600, 0, 0)], None, 1),  # the duration is inclusive
        ([(0, 0, 0), (3599, 0, 0)], None, 0),
        ([(0, 0, 0), (1800, 120, 0), (3600, 240, 0)], None, 0),  # a radius of 200 m would accept it, a diameter does not
    ],
)
def test_pauses_durations_and_diameters(walk, max_gap, expected):
    assert len(profiles.stays(traces_of([walk]), max_gap=max_gap)) == expected


def test_empty_and_single():
    nobody = traces_of([[(0, 0, 0)]]).iloc[:0]
    for traces in (nobody, traces_of([[(0, 0, 0)]])):
        assert len(profiles.stays(traces)) == 0
        assert len(profiles.pois(traces)[0]) == 0
        chains = profiles.markov_chains(traces)
        assert len(chains.states) == len(chains.transitions) == 0
    assert profiles.heat_maps(nobody, SquareGrid()).counts.shape == (0, 0)


@settings(max_examples=30)
@given(st.lists(walks, min_size=1, max_size=3))
@pytest.mark.parametrize("at_a_time", [1, 20, 10_000])
def test_heat_maps_count_records(at_a_time, user_walks):
    traces, grid = traces_of(user_walks), SquareGrid(100)
    with pytest.MonkeyPatch.context() as patch:  # users together or one by one
        patch.setattr(profiles, "AT_A_TIME", at_a_time)
        maps = profiles.heat_maps(traces, grid)
    expected = traces.assign(cell=grid.cells(traces["lat"], traces["lng"])).groupby(["user", "cell"], observed=True).size()
    counts = maps.counts.tocoo()
    cells = zip(maps.users[counts.coords[0]], maps.cells[counts.coords[1]], strict=True)
    assert dict(zip(cells, counts.data, strict=True)) == expected.to_dict()
    np.testing.assert_allclose(maps.shares.sum(axis=1), 1)


@settings(max_examples=200)
@given(
    st.floats(-90, 90),
    st.floats(-180, 180),
    st.sampled_from([3.0, 37.5, 800.0, 90_000.0]),
    st.tuples(st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.7])),
    st.sampled_from([None, 0, 1e-13, -1e-13, 1e-9]),
)
def test_square_cells_equal_their_definition_at_borders_too(lat, lng, cell, shift, off):
    grid = SquareGrid(cell, shift=shift)
    if off is not None:  # just beside the southern border of the cell
        lat = min(90.0, max(-90.0, grid.bounds(grid.cells([lat], [lng]))[0, 0] + off))
    row, column = grid.rows_and_columns(grid.cells([lat], [lng]))
    expected_row, expected_column = naive.square_cell(grid, lat, lng)
    assert row.item() == expected_row
    assert column.item() <= expected_column + 1e-6
    assert column.item() >= expected_column - 1 - 1e-6


def test_square_cells_do_not_depend_on_their_company():
    rng = np.random.default_rng(2)
    lat, lng = rng.uniform(-90, 90, 500), rng.uniform(-180, 180, 500)
    for cell in (0.5, 800.0):  # few bands, and more bands than can be listed
        grid = SquareGrid(cell)
        together = grid.cells(lat, lng)
        assert together.tolist() == [grid.cells([a], [b]).item() for a, b in zip(lat, lng, strict=True)]


def test_heat_maps_of_many_cells_and_of_any_numbers():
    class Numbered:  # cells of any sign and size, and more of them than a first hash table holds
        def cells(self, lat, lng):
            return (np.round(lng * 1000).astype(np.int64) - 5_000) * (1 << 40)

    rng = np.random.default_rng(4)
    t = pd.to_datetime(1.45e9 + np.arange(6_000), unit="s", utc=True)
    lng = rng.integers(0, 10_000, 6_000) / 1000
    traces = as_traces(pd.DataFrame({"user": rng.choice(list("abc"), 6_000), "t": t, "lat": 0.0, "lng": lng}))
    maps = profiles.heat_maps(traces, Numbered())
    expected = traces.assign(cell=Numbered().cells(traces["lat"], traces["lng"].to_numpy()))
    expected = expected.groupby(["user", "cell"], observed=True).size().unstack(fill_value=0)
    assert maps.cells.tolist() == expected.columns.tolist()
    np.testing.assert_array_equal(maps.counts.toarray(), expected.to_numpy())
    assert maps.counts.has_sorted_indices


def test_markov_chain_of_a_week():
    home, work, gym = (0, 0), (5000, 0), (0, 5000)
    visits = [(home, 4), (work, 3), (home, 4), (gym, 2), (home, 4), (home, 4)]
    walk, hour = [], 0
    for (x, y), hours in visits:
        walk += [((hour + h) * 3600, x, y) for h in range(hours)]
        hour += hours
    chains = profiles.markov_chains(traces_of([walk]))
    # 16 of 21 records at home (the two last stays are one), 3 at work, 2 at the gym
    assert chains.states["weight"].tolist() == pytest.approx([16 / 21, 3 / 21, 2 / 21])
    assert chains.transitions.drop(columns="user").to_numpy().tolist() == [[0, 1, 0.5], [0, 2, 0.5], [1, 0, 1.0], [2, 0, 1.0]]


def test_stays_and_pois_of_the_authors_program(reference):
    traces = edge_traces(reference)
    checked = 0
    for case in json.loads((reference / "edge_traces/expected/pois.json").read_text()):
        keywords = {"diameter": case["diameter_m"], "duration": case["duration_min"] * 60}
        keywords |= {"plane": "mercator", "centroid": "distinct"}
        stays = profiles.stays(traces, **keywords)
        places, _ = profiles.pois(traces, **keywords)
        for user, expected in case["stays_DTClusterer"].items():
            user_stays = stays[stays["user"] == user]
            starts, ends = (milliseconds(user_stays.rename(columns={c: "t"})) for c in ("start", "end"))
            times = [(e["start_ms"], e["end_ms"], e["n"]) for e in expected]
            assert list(zip(starts, ends, user_stays["records"], strict=True)) == times
            for c in ("lat", "lng"):
                np.testing.assert_allclose(user_stays[c], [e[c] for e in expected], atol=1e-12)
            checked += len(expected)
        for user, expected in case["pois_PoisClusterer_minPts1"].items():
            key = lambda p: (p["n"], round(p["lat"], 9), round(p["lng"], 9))  # noqa: E731
            user_places = places[places["user"] == user].rename(columns={"records": "n"}).to_dict("records")
            assert sorted(map(key, user_places)) == sorted(map(key, expected))
            checked += len(expected)
    assert checked > 20


def test_stays_of_the_peer(reference):
    cases = {c["id"]: c for c in json.loads((reference / "accio_unit_tests.json").read_text())["cases"]}
    case = cases["dt_clusterer_two_stays"]
    x, y, t = np.array(case["input"]["events_x_m_y_m_t_s"], float).T
    lat, lng = geo.to_degrees(x, y, "mercator")
    table = pd.DataFrame({"user": "u", "t": pd.to_datetime(t + 1e9, unit="s", utc=True), "lat": lat, "lng": lng})
    stays = profiles.stays(as_traces(table), 15, 60, plane="mercator")
    rows = list(map(list, zip(x, y, t, strict=True)))
    assert [rows[a : b + 1] for a, b in zip(stays["first"], stays["last"], strict=True)] == case["expected"]["clusters"]


def test_stays_of_one_cab_of_the_peer(reference, real_data):
    file = min((real_data / "raw/cabspotting").glob("new_*.txt"))
    raw = pd.read_csv(file, sep=" ", names=["lat", "lng", "occ", "t"])
    traces = as_traces(raw.assign(user="a cab", t=pd.to_datetime(raw["t"], unit="s", utc=True)))
    counts = [len(profiles.stays(traces, d, m * 60, plane="mercator")) for d, m in [(100, 15), (200, 15), (200, 60)]]
    assert counts == [59, 79, 31]


def on_the_equator(*metres, step=600):
    """Records on the equator, at these metres of the Mercator plane, whose distances are exact."""
    lng = np.degrees(np.array(metres) / geo.AUTHORS_RADIUS)
    time = pd.to_datetime(1.45e9 + step * np.arange(len(lng)), unit="s", utc=True)
    return as_traces(pd.DataFrame({"user": "u", "t": time, "lat": 0.0, "lng": lng}))


def width(places):
    x = geo.to_plane(places["lat"], places["lng"], "mercator").x
    return float(x.max() - x.min())


def test_the_diameter_is_inclusive():
    walk = on_the_equator(0, 0, 0, 150, 150, 150, 0)
    assert len(profiles.stays(walk, width(walk), 3600, plane="mercator")) == 1
    assert len(profiles.stays(walk, width(walk) - 2 * profiles.BORDER, 3600, plane="mercator")) == 0
    # the box around (0, 0) and (100, 50) has a corner 158 m from (150, 0), but no record there: the farthest is at 150 m
    walk = on_the_equator(0, 100, 150, 150, 0)
    walk.loc[1, "lat"] = np.degrees(50 / geo.AUTHORS_RADIUS)
    assert profiles.stays(walk, width(walk), 2400, plane="mercator")["records"].tolist() == [5]
    assert len(profiles.stays(walk, width(walk) - 2 * profiles.BORDER, 2400, plane="mercator")) == 0


@pytest.mark.parametrize("alpha", [200.0, 100.0, 50.0])
@pytest.mark.parametrize("plane", ["ground", "mercator"])
def test_rounding_does_not_decide_whether_points_of_promesse_are_a_stay(alpha, plane):
    """Points α m apart on a straight line, α the diameter or a divisor: the first and the last of 200 m lie exactly 200 m apart."""
    east = np.cumsum(np.full(400, 8.6)) / 78_000  # degrees, about 9 m each
    time = pd.to_datetime(1.45e9 + 120 * np.arange(400), unit="s", utc=True)
    walks = [pd.DataFrame({"user": f"u{k}", "t": time, "lat": 45 + k / 7, "lng": k + east}) for k in range(9)]
    published = Promesse(alpha, plane=plane).protect(as_traces(pd.concat(walks)))
    within, smaller = (
        profiles.stays(published, d, 900.0, plane=plane).groupby("user", observed=True).head(5)  # the walk's end may be shorter
        for d in (200.0, 200.0 - 2 * profiles.BORDER)
    )
    assert within["records"].tolist() == [round(200 / alpha) + 1] * 45
    assert smaller["records"].tolist() == ([] if alpha == 200 else [round(200 / alpha)] * 45)


def test_the_radius_of_a_neighbourhood_is_inclusive():
    stops = on_the_equator(0, 0, 5000, 100, 100, 5000)
    distance = width(profiles.stays(stops, 50, 600, plane="mercator"))
    for min_stays in (1, 2):
        near = profiles.pois(stops, 2 * distance, 600, plane="mercator", min_stays=min_stays)[0]
        assert near["stays"].tolist() == [2]
    # less, and they are two places (or noise, where a place needs two stays); the pauses keep the stays apart
    less = 2 * (distance - 2 * profiles.BORDER)
    assert profiles.pois(stops, less, 600, plane="mercator")[0]["stays"].tolist() == [1, 1]
    assert len(profiles.pois(stops, less, 600, plane="mercator", min_stays=2)[0]) == 0


def test_stays_cross_the_date_line():
    t = pd.to_datetime(1.45e9 + 60 * np.arange(100), unit="s", utc=True)
    lng = np.where(np.arange(100) % 2, 179.9999, -179.9999)  # 21 m apart
    walk = as_traces(pd.DataFrame({"user": "u", "t": t, "lat": 10.0, "lng": lng}))
    places, visits = profiles.pois(walk)
    assert (len(visits), len(places)) == (1, 1)
    assert abs(places["lng"].iloc[0]) == pytest.approx(180, abs=1e-3)


def day(*visits):
    """A walk with stays: (metres east, metres north, records), a record every hour; one record alone is no stay."""
    walk = [(x, y) for x, y, records in visits for _ in range(records)]
    return [(3600 * hour, x, y) for hour, (x, y) in enumerate(walk)]


def test_coming_back_is_no_transition():
    """Home, a quick errand, home, work, home: two stays at home follow each other, and that is no move from home to home."""
    walk = day((0, 0, 3), (3000, 0, 1), (0, 0, 2), (9000, 0, 2), (0, 0, 2))
    assert len(profiles.stays(traces_of([walk]))) == 4
    moves = profiles.markov_chains(traces_of([walk])).transitions
    assert moves[["source", "target", "probability"]].to_numpy().tolist() == [[0, 1, 1], [1, 0, 1]]


def test_of_equally_frequent_places_the_first_visited_comes_first():
    """Work, home, gym with 3, 3 and 4 records; the other user sees them the other way round. Visits stay in the order of time."""
    work, home, gym = (9000, 0, 3), (0, 0, 3), (0, 7000, 4)
    traces = traces_of([day(work, home, gym), day(home, work, gym)])
    places, visits = profiles.pois(traces)
    pd.testing.assert_frame_equal(visits.sort_values(["user", "start"], kind="stable"), visits)
    assert visits["poi"].tolist() == [1, 2, 0] * 2
    assert places["poi"].tolist() == [0, 1, 2] * 2
    assert places["records"].tolist() == [4, 3, 3] * 2
    east = geo.distance(places["lat"], 4.83, places["lat"], places["lng"])
    assert east.tolist() == pytest.approx([0, 9000, 0, 0, 0, 9000], abs=1)
    states = profiles.markov_chains(traces).states
    assert states["lng"].tolist() == places["lng"].tolist()


class TestComputedOnce:
    def test_a_table_has_one_result_for_each_set_of_arguments_until_the_block_ends(self):
        traces, other = strolls(2), strolls(2)
        with profiles.computed_once(traces):
            first = profiles.pois(traces, 200, duration=600)
            with profiles.computed_once(traces, other):  # the inner block does not end the outer one
                assert profiles.pois(traces, diameter=200.0, duration=600, min_stays=1) is first
                assert profiles.pois(other, 200, 600) is profiles.pois(other, 200, 600) is not first
            assert profiles.pois(traces, 200, 600) is first
            assert profiles.pois(traces, 200, 900) is not first
            assert profiles.poi_centres(traces, 200, 600) is not first
            assert profiles.pois(other, 200, 600) is not profiles.pois(other, 200, 600)
        assert profiles.pois(traces, 200, 600) is not first

    def test_grids_that_cannot_be_compared_are_not_kept(self):
        class Grid(SquareGrid):
            __hash__ = None

        traces = strolls(2)
        with profiles.computed_once(traces):
            one, again = profiles.heat_maps(traces, Grid(800.0)), profiles.heat_maps(traces, Grid(800.0))
        assert one is not again
        np.testing.assert_array_equal(one.counts.toarray(), again.counts.toarray())
