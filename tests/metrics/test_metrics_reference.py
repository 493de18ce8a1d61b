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
    found = area_coverage(original, protected, S2Grid(level), window)
    for column, key in (("precision", "precision"), ("recall", "recall"), ("f_score", "fscore")):
        theirs = program(expected[f"area_coverage_s2_{name}"][key])
        np.testing.assert_allclose(found[column][theirs.index], theirs, rtol=1e-12)
    erased = found.drop(index=theirs.index)  # the program has no row for them
    assert (erased == [1, 0, 0]).all(axis=None)


def test_area_coverage_on_the_grid_of_the_author(edge):
    """The program calls precision what is recall, and the other way round."""
    original, protected, expected = edge
    found = area_coverage(original, protected, SquareGrid(800, "mercator"))
    written = expected["area_coverage_grid_800m_precision=recall=fscore_written_order"]["written"]
    theirs = pd.DataFrame({user: map(float, text.split("=")) for user, text in written.items()}, index=["r", "p", "f"]).T
    np.testing.assert_allclose(found.loc[theirs.index, ["recall", "precision", "f_score"]], theirs, rtol=1e-12)


# Traces that end where they began or that stand still have no number in the program. Of the two stays with a walk between them it
# says that they are 0.2 m from their own path, on which each of their records lies: that is not the least distance.
NO_NUMBER = {"backForth", "exact60", "single", "still", "stayMoveStay"}


def test_spatial_distortion_of_the_author(edge):
    original, protected, expected = edge
    theirs = pd.DataFrame(expected["spatial_distortion_interpolated"]).astype(float)
    found = spatial_distortion(original, protected, "mercator")
    assert found[theirs.index].notna().all()
    plain = theirs.index.difference(sorted(NO_NUMBER))
    assert len(plain) >= 5
    metres = pd.Series(distances_to_path(original, protected, "mercator")).groupby(protected["user"].astype(str))
    for statistic, ours in {"avg": found, "min": metres.min(), "max": metres.max()}.items():
        np.testing.assert_allclose(ours[plain], theirs.loc[plain, statistic], rtol=0, atol=METRES)
    if protected is original:
        assert (found == 0).all()


def test_distance_to_the_nearest_record_of_the_author(edge):
    original, protected, expected = edge
    metres = pd.Series(distances_to_path(original, protected, "mercator", interpolate=False))
    metres = metres.groupby(protected["user"].astype(str))
    theirs = pd.DataFrame(expected["spatial_distortion_nearest_point"])
    for key, statistic in {"avg": "mean", "median": "median", "min": "min", "max": "max", "stddev": "std"}.items():
        found = metres.agg(statistic).fillna(0)  # the program's standard deviation of one number is 0
        np.testing.assert_allclose(found[theirs.index], theirs[key], rtol=0, atol=METRES)


def test_spatio_temporal_distortion_of_the_author(edge):
    original, protected, expected = edge
    theirs = program(expected["spatio_temporal_distortion"]["avg"])
    found = spatio_temporal_distortion(original, protected, "mercator")[theirs.index]
    np.testing.assert_allclose(found, theirs, rtol=0, atol=METRES)


def test_older_temporal_distortion_of_the_author(edge):
    """The smaller trace's records against the larger one, whichever is which: the same metric with the arguments exchanged."""
    original, protected, expected = edge
    theirs = program(expected["temporal_distortion_smaller_onto_larger"]["avg"])
    n, m = (traces["user"].astype(str).value_counts()[theirs.index] for traces in (original, protected))
    of_these = original[original["user"].astype(str).isin(theirs.index)]
    of_these = of_these.assign(user=of_these["user"].cat.remove_unused_categories()).reset_index(drop=True)
    pairs = (original, protected), (protected, of_these)
    onto, other = (spatio_temporal_distortion(*pair, "mercator") for pair in pairs)
    found = onto[theirs.index].where(m < n, other[theirs.index])
    np.testing.assert_allclose(found, theirs, rtol=0, atol=METRES)


@pytest.fixture(scope="module")
def cases(reference):
    every = json.loads((reference / "accio_unit_tests.json").read_text())["cases"]
    return {case["id"]: case for case in every}


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
        found = area_coverage(original, protected, S2Grid(level)).iloc[0]
        assert found.tolist() == pytest.approx(scores(case), rel=1e-12)


@pytest.mark.parametrize("window", [30, 300, 1800, 3600, 86_400])
def test_accio_area_coverage_time_buckets(cases, window):
    case, ms = cases["area_coverage_time_buckets"], 1000 * window
    offset = {0: 0, "+w+1ms": ms + 1, "-w-1ms": -ms - 1}
    original, protected = (
        at(of_cells(cell for cell, _ in pairs), [offset[bucket] for _, bucket in pairs])
        for pairs in (case["input"]["train_cell_bucket"], case["input"]["test_cell_bucket"])
    )
    found = area_coverage(original, protected, S2Grid(case["input"]["level"]), window).iloc[0]
    assert found.tolist() == pytest.approx(scores(case), rel=1e-12)


def test_accio_spatial_distortion_of_a_fixed_point(cases):
    case, rng = cases["spatial_distortion_no_interpolation"], np.random.default_rng(5)
    n, here = case["expected"]["n"], (48.858222, 2.2945)
    p = to_plane(np.full(n, here[0]), np.full(n, here[1]), "mercator")
    metres, angle = rng.integers(0, 5000, n), rng.uniform(0, 2 * np.pi, n)
    moved = to_degrees(p.x + metres * np.cos(angle), p.y + metres * np.sin(angle), "mercator")
    found = distances_to_path(at([here] * n), at(np.column_stack(moved)), "mercator", interpolate=False)
    np.testing.assert_allclose(found, metres, rtol=0, atol=case["expected"]["tolerance"])


@pytest.mark.parametrize("name", ["spatial_distortion_identical", "spatial_distortion_ignores_time"])
def test_accio_spatial_distortion_of_the_same_places(cases, name):
    places = random_places()
    later = None if name.endswith("identical") else 7_000_000 + 1000 * np.arange(len(places))
    for interpolate in (False, True):
        found = distances_to_path(at(places), at(places, later), "mercator", interpolate)
        assert len(found) == cases[name]["expected"]["n"]
        assert (found == cases[name]["expected"]["all_stats"]).all()
