"""The metrics beside what the programs of the thesis's author and of Accio gave out: edge traces, and Accio's own cases."""

import json

import numpy as np
import pandas as pd
import pytest
from trace_making import edge_traces

from mobpriv.ground.geo import to_degrees, to_plane
from mobpriv.ground.grid import S2Grid, SquareGrid
from mobpriv.metrics import area_coverage, distances_to_path, spatial_distortion, spatio_temporal_distortion
from mobpriv.traces.table import by_user, from_blocks

PROTECTED = ["raw", "geoi_eps0.01_seed7", "promesse_100", "promesse_200"]
METRES = 1e-8  # degrees written with 16 digits are exact to so much
START = 1_450_000_000_000  # ms


@pytest.fixture(scope="module", params=PROTECTED)
def edge(request, reference):
    """The edge traces, one protected version of them, and what the author's program says of it."""
    original = edge_traces(reference)
    protected = original if request.param == "raw" else edge_traces(reference, f"expected/{request.param}")
    assert len(by_user(original)[0]) == 12
    return original, protected, json.loads((reference / "edge_traces/expected/metrics.json").read_text())[request.param]


def program(values):
    return pd.Series(values, dtype=float)


@pytest.mark.parametrize(("name", "level", "window"), [("level13", 13, None), ("level15", 15, None), ("level15_1h", 15, 3600)])
def test_area_coverage_of_the_author(edge, name, level, window):
    original, protected, expected = edge
    coverage = area_coverage(original, protected, S2Grid(level), window)
    for column, key in (("precision", "precision"), ("recall", "recall"), ("f_score", "fscore")):
        authors = program(expected[f"area_coverage_s2_{name}"][key])
        np.testing.assert_allclose(coverage[column][authors.index], authors, rtol=1e-12)
    erased = coverage.drop(index=authors.index)  # the program has no row for them
    assert (erased == [1, 0, 0]).all(axis=None)


def test_area_coverage_on_the_grid_of_the_author(edge):
    """The program calls precision what is recall, and the other way round."""
    original, protected, expected = edge
    coverage = area_coverage(original, protected, SquareGrid(800, "mercator"))
    written = expected["area_coverage_grid_800m_precision=recall=fscore_written_order"]["written"]
    authors = pd.DataFrame({user: map(float, text.split("=")) for user, text in written.items()}, index=["r", "p", "f"]).T
    np.testing.assert_allclose(coverage.loc[authors.index, ["recall", "precision", "f_score"]], authors, rtol=1e-12)


# Traces that end where they began or that stand still have no number in the program. Of the two stays with a walk between them it
# says that they are 0.2 m from their own path, on which each of their records lies: that is not the least distance.
NO_NUMBER = {"backForth", "exact60", "single", "still", "stayMoveStay"}


def test_spatial_distortion_of_the_author(edge):
    original, protected, expected = edge
    authors = pd.DataFrame(expected["spatial_distortion_interpolated"]).astype(float)
    distortion = spatial_distortion(original, protected, "mercator")
    assert distortion[authors.index].notna().all()
    plain = authors.index.difference(sorted(NO_NUMBER))
    assert len(plain) >= 5
    metres = pd.Series(distances_to_path(original, protected, "mercator")).groupby(protected["user"].astype(str))
    for statistic, ours in {"avg": distortion, "min": metres.min(), "max": metres.max()}.items():
        np.testing.assert_allclose(ours[plain], authors.loc[plain, statistic], rtol=0, atol=METRES)
    if protected is original:
        assert (distortion == 0).all()


def test_distance_to_the_nearest_record_of_the_author(edge):
    original, protected, expected = edge
    metres = pd.Series(distances_to_path(original, protected, "mercator", interpolate=False))
    metres = metres.groupby(protected["user"].astype(str))
    authors = pd.DataFrame(expected["spatial_distortion_nearest_point"])
    for key, statistic in {"avg": "mean", "median": "median", "min": "min", "max": "max", "stddev": "std"}.items():
        values = metres.agg(statistic).fillna(0)  # the program's standard deviation of one number is 0
        np.testing.assert_allclose(values[authors.index], authors[key], rtol=0, atol=METRES)


def test_spatio_temporal_distortion_of_the_author(edge):
    original, protected, expected = edge
    authors = program(expected["spatio_temporal_distortion"]["avg"])
    distortion = spatio_temporal_distortion(original, protected, "mercator")[authors.index]
    np.testing.assert_allclose(distortion, authors, rtol=0, atol=METRES)


def test_older_temporal_distortion_of_the_author(edge):
    """The smaller trace's records against the larger one, whichever is which: the same metric with the arguments exchanged."""
    original, protected, expected = edge
    authors = program(expected["temporal_distortion_smaller_onto_larger"]["avg"])
    n, m = (traces["user"].astype(str).value_counts()[authors.index] for traces in (original, protected))
    of_these = original[original["user"].astype(str).isin(authors.index)]
    of_these = of_these.assign(user=of_these["user"].cat.remove_unused_categories()).reset_index(drop=True)
    pairs = (original, protected), (protected, of_these)
    onto, reverse = (spatio_temporal_distortion(*pair, "mercator") for pair in pairs)
    distortion = onto[authors.index].where(m < n, reverse[authors.index])
    np.testing.assert_allclose(distortion, authors, rtol=0, atol=METRES)


@pytest.fixture(scope="module")
def cases(reference):
    listed = json.loads((reference / "accio_unit_tests.json").read_text())["cases"]
    return {case["id"]: case for case in listed}


def at(places, time=None):
    """One user's trace of (lat, lng) places; one record a minute if no times are given."""
    lat, lng = np.array(places, float).T
    time = START + (60_000 * np.arange(len(lat)) if time is None else np.asarray(time))
    order = np.argsort(time, kind="stable")
    return from_blocks(pd.Index(["me"]), [len(lat)], time[order], lat[order], lng[order])


def of_cells(labels):
    """Places in cells that are far apart: no two in one cell on any level but the faces'."""
    return [(10.0 * label - 30, 25.0 * label - 60) for label in labels]


def random_places(n=120):
    rng = np.random.default_rng(120)
    return np.column_stack([48 + rng.normal(0, 0.1, n), 2 + rng.normal(0, 0.1, n)])


def scores(case):
    return [case["expected"][key] for key in ("precision", "recall", "fscore")]


def test_accio_area_coverage_identical(cases):
    case, trace = cases["area_coverage_identical"], at(random_places())
    for window in (None, 1800):
        assert area_coverage(trace, trace, S2Grid(case["input"]["level"]), window).iloc[0].tolist() == scores(case)


def test_accio_area_coverage_levels(cases):
    case = cases["area_coverage_levels"]
    original, protected = (at(of_cells(case["input"][f"{part}_cells"])) for part in ("train", "test"))
    for level in range(3, 30):  # the places above are in cells of their own from level 3 on
        coverage = area_coverage(original, protected, S2Grid(level)).iloc[0]
        assert coverage.tolist() == pytest.approx(scores(case), rel=1e-12)


@pytest.mark.parametrize("window", [30, 300, 1800, 3600, 86_400])
def test_accio_area_coverage_time_buckets(cases, window):
    case, ms = cases["area_coverage_time_buckets"], 1000 * window
    offset = {0: 0, "+w+1ms": ms + 1, "-w-1ms": -ms - 1}
    original, protected = (
        at(of_cells(cell for cell, _ in pairs), [offset[bucket] for _, bucket in pairs])
        for pairs in (case["input"]["train_cell_bucket"], case["input"]["test_cell_bucket"])
    )
    coverage = area_coverage(original, protected, S2Grid(case["input"]["level"]), window).iloc[0]
    assert coverage.tolist() == pytest.approx(scores(case), rel=1e-12)


def test_accio_spatial_distortion_of_a_fixed_point(cases):
    case, rng = cases["spatial_distortion_no_interpolation"], np.random.default_rng(5)
    n, point = case["expected"]["n"], (48.858222, 2.2945)
    p = to_plane(np.full(n, point[0]), np.full(n, point[1]), "mercator")
    metres, angle = rng.integers(0, 5000, n), rng.uniform(0, 2 * np.pi, n)
    moved = to_degrees(p.x + metres * np.cos(angle), p.y + metres * np.sin(angle), "mercator")
    distances = distances_to_path(at([point] * n), at(np.column_stack(moved)), "mercator", interpolate=False)
    np.testing.assert_allclose(distances, metres, rtol=0, atol=case["expected"]["tolerance"])


@pytest.mark.parametrize("name", ["spatial_distortion_identical", "spatial_distortion_ignores_time"])
def test_accio_spatial_distortion_of_the_same_places(cases, name):
    places = random_places()
    later = None if name.endswith("identical") else 7_000_000 + 1000 * np.arange(len(places))
    for interpolate in (False, True):
        distances = distances_to_path(at(places), at(places, later), "mercator", interpolate)
        assert len(distances) == cases[name]["expected"]["n"]
        assert (distances == cases[name]["expected"]["all_stats"]).all()
