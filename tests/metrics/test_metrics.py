"""The utility metrics of the thesis: what all promise, worked examples, slow twins."""

import itertools

import naive_metrics as naive
import numba
import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.ground.geo import distance, metres_per_degree
from mobpriv.ground.grid import AreaGrid, S2Grid, SquareGrid
from mobpriv.mechanisms import GeoI
from mobpriv.metrics import (
    EMPTY_BOXES,
    area_coverage,
    distances_to_path,
    number_of_visits,
    spatial_distortion,
    spatio_temporal_distortion,
    surrounding_pois,
    temporal_projection,
    visits_distortion,
)
from mobpriv.traces.table import as_traces, from_blocks, milliseconds, rows

START = 1_450_000_000_000  # ms
EAST, NORTH = (float(scale) for scale in metres_per_degree(np.array(0.0)))  # metres per degree on the equator
PLANES = ("ground", "mercator")


def walks(counts, seed=0, lat=45.0, lng=5.0, step=0.003):
    """Users a, b, … who walk about at random, one record every half minute to two minutes; counts of 0 leave users out."""
    rng = np.random.default_rng(seed)
    n = sum(counts)
    users = pd.Index([chr(97 + i) for i in range(len(counts))])
    time = START + np.cumsum(rng.integers(30_000, 120_000, n))
    north, east = (np.cumsum(rng.normal(0, step, n)) for _ in range(2))
    return from_blocks(users, counts, time, lat + north, (lng + east + 180) % 360 - 180)


def on_the_equator(metres, seconds):
    """A trace along the equator: positions in metres east of longitude 10, times in seconds."""
    n, lng = len(metres), 10 + np.array(metres) / EAST
    return from_blocks(pd.Index(["a"]), [n], START + 1000 * np.array(seconds), np.zeros(n), lng)


STEPS = np.linspace(-0.1, 0.1, 60)
POINTS = pd.DataFrame({"lat": 45 + np.repeat(STEPS, 60), "lng": 5 + np.tile(STEPS, 60)})
# each metric as (original, protected) -> a table; and what it says of an original trace against itself
EVERY = {
    "area coverage": (lambda o, p, plane: area_coverage(o, p, SquareGrid(800, plane)), [1, 1, 1]),
    "spatial distortion": (lambda o, p, plane: spatial_distortion(o, p, plane).to_frame(), [0]),
    "distance to records": (lambda o, p, plane: spatial_distortion(o, p, plane, interpolate=False).to_frame(), [0]),
    "spatio-temporal distortion": (lambda o, p, plane: spatio_temporal_distortion(o, p, plane).to_frame(), [0]),
    "surrounding POIs": (lambda o, p, plane: surrounding_pois(o, p, POINTS, 600.0, plane=plane)[["f_score"]], [1]),
    "visits distortion": (lambda o, p, plane: visits_distortion(o, p, 45, 5, 500, plane)[["distortion"]], [0]),
}
ERASED = {"precision": 1, "recall": 0, "distortion": 1}  # first column of a metric -> its value for an erased trace, else NaN


@pytest.mark.parametrize("plane", PLANES)
@pytest.mark.parametrize(("metric", "of_itself"), EVERY.values(), ids=list(EVERY))
class TestEveryMetric:
    def test_a_trace_against_itself(self, metric, of_itself, plane):
        """Exact on the ground; degrees that went through the Mercator plane come back to 1e-8 m."""
        traces = walks([40, 25, 33])
        known = metric(traces, traces, plane).dropna()
        assert len(known)
        np.testing.assert_allclose(known, [of_itself] * len(known), rtol=0, atol=1e-8 if plane == "mercator" else 0)

    def test_one_thread_and_all_give_the_same_and_nothing_given_is_changed(self, metric, of_itself, plane, threads):
        traces, points = walks([40, 25, 33]), POINTS.copy()
        protected = GeoI(0.005).protect(traces, np.random.default_rng(1))
        copies = traces.copy(deep=True), protected.copy(deep=True)
        shared = metric(traces, protected, plane)
        for given_, before in zip((traces, protected, POINTS), (*copies, points), strict=True):
            pd.testing.assert_frame_equal(given_, before, check_exact=True)
        numba.set_num_threads(1)
        pd.testing.assert_frame_equal(metric(traces, protected, plane), shared, check_exact=True)

    def test_one_row_a_user_of_the_original(self, metric, of_itself, plane):
        traces = walks([40, 25, 33])
        protected = GeoI(0.01).protect(rows(traces, (traces["user"] != "b").to_numpy()), np.random.default_rng(1))
        values = metric(traces, protected, plane)
        assert values.index.tolist() == ["a", "b", "c"]
        assert values.index.name == "user"
        assert set(values.dtypes) == {np.dtype(float)}

    def test_users_do_not_matter_to_one_another(self, metric, of_itself, plane):
        """Alone, or under names that turn the order round, everybody's values are the same."""
        traces = walks([40, 25, 33])
        protected = GeoI(0.005).protect(traces, np.random.default_rng(1))
        values = metric(traces, protected, plane)
        new_names = {"a": "z", "b": "y", "c": "x"}
        renamed = [as_traces(t.assign(user=t["user"].astype(str).map(new_names))) for t in (traces, protected)]
        turned = metric(*renamed, plane).loc[["z", "y", "x"]].set_axis(values.index)
        pd.testing.assert_frame_equal(turned, values, check_exact=True)
        alone = [rows(t, (t["user"] == "b").to_numpy()) for t in (traces, protected)]
        pd.testing.assert_frame_equal(metric(*alone, plane), values.loc[["b"]], check_exact=True)

    def test_everybody_erased(self, metric, of_itself, plane):
        """Nothing to average over is NaN; what counts common cells and visits knows that there are none."""
        traces = walks([40, 25])
        values = metric(traces, as_traces(traces.head(0)), plane)
        assert values.index.tolist() == ["a", "b"]
        expected = ERASED.get(values.columns[0], np.nan)
        came = number_of_visits(traces, 45, 5, 500, plane).to_numpy() > 0 if "distortion" in values else [True, True]
        wanted = np.where(came, expected, np.nan)
        np.testing.assert_array_equal(values.iloc[:, 0], wanted, "what an erased trace has stands in ERASED")

    def test_one_record_and_none(self, metric, of_itself, plane):
        one = as_traces(walks([1]))
        assert len(metric(one.head(0), one.head(0), plane)) == 0
        values = metric(one, one, plane)
        assert values.iloc[0].dropna().tolist() == pytest.approx([v for v in of_itself if "distortion" not in values], abs=1e-8)

    def test_a_stranger_is_refused(self, metric, of_itself, plane):
        traces = walks([10, 10])
        with pytest.raises(ValueError, match=r"belong to users with original records \(1 are not, first: b\)"):
            metric(rows(traces, (traces["user"] == "a").to_numpy()), traces, plane)


GRIDS = [SquareGrid(800), SquareGrid(800, "mercator"), S2Grid(15), AreaGrid.around(45.0, 5.0)]


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from(GRIDS), st.none() | st.sampled_from([0.5, 60.0, 600.0]))
def test_area_coverage_equals_the_slow_twin(seed, grid, window):
    original, protected = some_traces(seed)
    coverage, twin = area_coverage(original, protected, grid, window), naive.area_coverage(original, protected, grid, window)
    np.testing.assert_allclose(coverage, [twin[user] for user in coverage.index], rtol=1e-12)


@pytest.mark.parametrize("plane", PLANES)
@settings(max_examples=20)
@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([-75.0, 0.0, 60.0]), st.sampled_from([5.0, 179.999, -180.0]))
def test_distances_to_path_equal_the_slow_twin(plane, seed, interpolate, lat, lng):
    original, protected = some_traces(seed, lat, 5.0 if plane == "mercator" else lng)
    twin = naive.distances_to_path(original, protected, plane, interpolate)
    distances = distances_to_path(original, protected, plane, interpolate)
    # degrees and the root of the twin are exact to 1e-8 m; 1e-6 m is what a reader is promised
    np.testing.assert_allclose(distances, np.concatenate(list(twin.values())), rtol=1e-9, atol=1e-6)
    means = spatial_distortion(original, protected, plane, interpolate)
    expected = pd.Series({user: np.mean(d) for user, d in twin.items()}).reindex(means.index)
    np.testing.assert_allclose(means, expected, rtol=1e-9, atol=1e-6)


@given(st.integers(0, 2**32), st.floats(-60, 60), st.floats(1, 3000))
def test_the_projection_is_the_nearest_position(seed, lat, extent):
    """Below 60° within D³/R² of the least distance D along the segment: the scale's own change along it is left aside."""
    rng = np.random.default_rng(seed)
    a, b, x = (tuple(place) for place in np.array([lat, 5.0]) + rng.normal(0, extent / NORTH, (3, 2)))

    def trace(*places):
        return from_blocks(pd.Index(["u"]), [len(places)], START + np.arange(len(places)), *np.array(places).T)

    metres, least = distances_to_path(trace(a, b), trace(x))[0], naive.least_to_segment(x, a, b, "ground")
    assert least - 1e-6 <= metres <= least + least**3 / 6.3e6**2 + 1e-6


def test_a_long_trace_equals_a_few_of_all_pairs():
    """3000 records with jumps across the town, standstills, and one record on another continent: the index finds the nearest."""
    original = walks([3000], step=0.001)
    lat, lng = original["lat"].to_numpy().copy(), original["lng"].to_numpy().copy()
    rng = np.random.default_rng(2)
    still = rng.random(3000) < 0.3
    lat[1:][still[1:]], lng[1:][still[1:]] = lat[:-1][still[1:]], lng[:-1][still[1:]]
    lat[::100] += rng.normal(0, 0.05, 30)
    lat[1234], lng[1234] = -33.0, 151.0
    original = original.assign(lat=lat, lng=lng)
    protected = GeoI(0.002).protect(original, rng)
    few = rows(protected, np.sort(rng.choice(3000, 12, replace=False)))
    twin = naive.distances_to_path(original, few, "ground", True)["a"]
    np.testing.assert_allclose(distances_to_path(original, few), twin, rtol=1e-9, atol=1e-6)
    at = np.searchsorted(milliseconds(protected), milliseconds(few))
    np.testing.assert_array_equal(distances_to_path(original, protected)[at], distances_to_path(original, few))


def test_worked_temporal_projection():
    """Records at 0 m (100 s), 600 m (160 s), 600 m (200 s): before, at, between, behind."""
    original = on_the_equator([0, 600, 600], [100, 160, 200])
    protected = on_the_equator([0] * 7, [0, 100, 115, 130, 160, 180, 999])
    expected = temporal_projection(original, protected)
    np.testing.assert_allclose((expected["lng"] - 10) * EAST, [0, 0, 150, 300, 600, 600, 600], atol=1e-6)
    pd.testing.assert_frame_equal(expected[["user", "t"]], protected[["user", "t"]], check_exact=True)
    pd.testing.assert_frame_equal(as_traces(expected), expected)
    assert spatio_temporal_distortion(original, protected)["a"] == pytest.approx(2250 / 7, abs=1e-6)


@pytest.mark.parametrize("plane", PLANES)
@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([5.0, 179.999, -180.0]))
def test_spatio_temporal_distortion_equals_the_slow_twin(plane, seed, lng):
    original, protected = some_traces(seed, lng=5.0 if plane == "mercator" else lng)
    twin = pd.Series(naive.spatio_temporal_distortion(original, protected, plane))
    distortion = spatio_temporal_distortion(original, protected, plane)
    np.testing.assert_allclose(distortion, twin.reindex(distortion.index), rtol=1e-10, atol=1e-6)


def test_a_point_on_the_border_of_the_box_belongs_to_it():
    """On the equator, due north and due east: exactly ``distance`` away, and one billionth less."""
    points = pd.DataFrame({"lat": [0.0, 0.001], "lng": [10.001, 10.0]})
    one = on_the_equator([0], [0])
    for row in range(2):
        d = float(distance(0.0, 10.0, points["lat"][row], points["lng"][row]))
        only = points.iloc[[row]]
        assert surrounding_pois(one, one, only, d)["f_score"].tolist() == [1]
        with pytest.raises(ValueError, match="no point of interest lies within"):
            surrounding_pois(one, one, only, d * (1 - 1e-9))


@settings(max_examples=25)
@given(
    st.integers(0, 2**32), st.sampled_from(EMPTY_BOXES), st.sampled_from([50.0, 300.0, 5000.0]), st.sampled_from([5.0, 180.0])
)
def test_surroundings_equal_the_slow_twin(seed, empty, half, lng):
    original, protected = some_traces(seed, lng=lng)
    rng = np.random.default_rng(seed)
    positions = np.column_stack([45 + rng.normal(0, 0.01, 80), (lng + rng.normal(0, 0.01, 80) + 180) % 360 - 180])
    points = pd.DataFrame(np.repeat(positions, 2, axis=0), columns=["lat", "lng"])  # each twice: two points
    points.loc[len(points)] = original[["lat", "lng"]].iloc[0]
    points.loc[len(points)] = protected[["lat", "lng"]].iloc[0]  # one at least is near
    twin = naive.surrounding_pois(original, protected, points.to_numpy().tolist(), half, empty)
    table = surrounding_pois(original, protected, points, half, empty)
    expected = pd.DataFrame(twin, index=["f_score", "empty"]).T.reindex(table.index)
    np.testing.assert_allclose(table["f_score"], expected["f_score"], rtol=1e-12)
    assert table["empty"].tolist() == expected["empty"].fillna(0).tolist()
    assert table["records"].sum() == len(protected)


def near(points=POINTS, *arguments, **options):
    return lambda traces: surrounding_pois(traces, traces, points, *arguments, **options)


test_what_is_refused = refusals(
    (near(POINTS[["lat"]]), r"points need the columns lat and lng; missing: lng \(got \['lat'\]\)"),
    (near(POINTS.head(0)), r"at least one point of interest \(got none\)"),
    (near(pd.DataFrame({"lat": [45, np.nan], "lng": 5.0})), r"1 do not, first in row 1: lat nan, lng 5.0"),
    (near(pd.DataFrame({"lat": [1.0], "lng": 5.0})), r"no point of interest lies within 200 m of any .* 1.000 … 1.000"),
    (near(empty=0), r'empty must be "unlike", "alike" or "left out" \(got 0\)'),
    (near(POINTS, -1), r"distance must be positive, in m \(got -1\)"),
    (lambda t: area_coverage(t, t, 800), r"grid must have a method cells\(lat, lng\), as SquareGrid has \(got 800\)"),
    (lambda t: area_coverage(t, t, window=0), r"window must be positive, in s.*\(got 0\)"),
    (lambda t: number_of_visits(t, 91.0, 5.0), "lat is the place's"),
    (lambda t: number_of_visits(t, 45.0, 181.0), "lng is the place's"),
    (lambda t: number_of_visits(t, 45.0, 5.0, 0), "radius must"),
    (lambda t: spatial_distortion(t, t, "globe"), r'plane must be "ground" or "mercator" \(got \'globe\'\)'),
    (lambda t: spatio_temporal_distortion(t, t, "globe"), "plane must"),
    (lambda t: distances_to_path(t, t, "globe"), "plane must"),
    (lambda t: temporal_projection(t, t, "globe"), "plane must"),
    call=lambda metric: metric(walks([5])),
)


def test_the_border_of_the_radius_belongs_to_it():
    trace = on_the_equator([500, 100], [0, 60])
    d = float(distance(0.0, 10.0, 0.0, trace["lng"].iloc[1]))
    assert number_of_visits(trace, 0.0, 10.0, d).tolist() == [1]
    assert number_of_visits(trace, 0.0, 10.0, np.nextafter(d, 0)).tolist() == [0]


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from(PLANES), st.sampled_from([50.0, 400.0, 2000.0]))
def test_visits_equal_the_slow_twin(seed, plane, radius):
    original, protected = some_traces(seed)
    before, after = (naive.visits(t, (45.0, 5.0), radius, plane) for t in (original, protected))
    table = visits_distortion(original, protected, 45.0, 5.0, radius, plane)
    assert table["original"].to_dict() == before
    assert table["protected"].to_dict() == {user: after.get(user, 0) for user in before}
    expected = [abs(n - after.get(user, 0)) / n if n else np.nan for user, n in before.items()]
    np.testing.assert_allclose(table["distortion"], expected)


def some_traces(seed, lat=45.0, lng=5.0):
    """An original of three users with records of one time, standstills and jumps; and a protected version of it, which has noise,
    other times, fewer records, and may have lost a user."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 14, 3)
    n = counts.sum()
    # every third record stands where the one before stood, every tenth step is ten times as long
    steps = rng.normal(0, 0.003, (2, n)) * (rng.random(n) < 0.67) * np.where(rng.random(n) < 0.1, 10, 1)
    waits = rng.integers(0, 5, n) * 30_000  # some are 0
    users = pd.Index(list("abc"))
    ends = np.r_[0, np.cumsum(counts)]
    time = START + np.concatenate([np.cumsum(waits[a:b]) for a, b in itertools.pairwise(ends)])
    north, east = np.cumsum(steps, axis=1)
    original = as_traces(from_blocks(users, counts, time, lat + north, (lng + east + 180) % 360 - 180))
    erased = rng.choice(["a", "b", "c", ""])
    kept = (original["user"] != erased).to_numpy() & (rng.random(n) < 0.8)
    protected = GeoI(0.004).protect(rows(original, kept), rng)
    same = rng.random(len(protected)) < 0.3  # some stay where they were
    for c in ("lat", "lng"):
        protected[c] = np.where(same, rows(original, kept)[c], protected[c])
    shift = pd.to_timedelta(rng.choice([0, 0, -45_000, 45_000], len(protected)), unit="ms")
    protected = as_traces(protected.assign(t=protected["t"] + shift))
    return original, protected if len(protected) else original
