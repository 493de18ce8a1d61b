"""The utility metrics beside plain versions of the same (peers): ``python benchmarks/bench_metrics.py`` prints a table.

``python benchmarks/bench_metrics.py DATA POINTS`` measures all metrics of Geo-I and of Promesse instead, on the second half of a
data set about San Francisco, with a file of points of interest (see :func:`mobpriv.datasets.points`).
"""

import sys
import time
from itertools import pairwise

import numpy as np
import pandas as pd
import shapely
from measure import SEED, Case, table
from scipy.spatial import cKDTree

from mobpriv.datasets import points
from mobpriv.experiments.days import choose, in_halves
from mobpriv.ground.geo import metres_per_degree
from mobpriv.ground.grid import SquareGrid
from mobpriv.mechanisms import GeoI, Promesse
from mobpriv.metrics import (
    area_coverage,
    spatial_distortion,
    spatio_temporal_distortion,
    surrounding_pois,
    temporal_projection,
    visits_distortion,
)
from mobpriv.traces.table import Traces, by_user

EAST, NORTH = (float(scale) for scale in metres_per_degree(np.array(37.75)))
PLACE = (37.7879, -122.4075)  # Union Square, San Francisco


def moved(traces: Traces) -> Traces:
    """A protected version that costs no time: everything 111 m northwards."""
    return traces.assign(lat=traces["lat"] + 0.001)


def town() -> pd.DataFrame:
    """Five thousand points about San Francisco, most in its middle."""
    rng = np.random.default_rng(SEED)
    return pd.DataFrame({"lat": rng.normal(37.77, 0.02, 5000), "lng": rng.normal(-122.42, 0.03, 5000)})


def against(metric, *more):
    return lambda traces, rng: metric(traces, moved(traces), *more)


def shapely_tree(traces: Traces, rng: np.random.Generator) -> np.ndarray:
    """Spatial distortion with shapely's STRtree of segments, in a plane with the scales of one latitude."""
    _, start = by_user(traces)
    x, y = traces["lng"].to_numpy() * EAST, traces["lat"].to_numpy() * NORTH
    means = []
    for a, b in pairwise(start):
        at = np.column_stack([x[a:b], y[a:b]])
        tree = shapely.STRtree(shapely.linestrings(np.stack([at[:-1], at[1:]], axis=1)))
        places = shapely.points(at + np.array([0, 0.001 * NORTH]))
        (whose, _), metres = tree.query_nearest(places, return_distance=True, all_matches=False)
        means.append(np.bincount(whose, metres).sum() / (b - a))
    return np.array(means)


def scipy_tree(traces: Traces, rng: np.random.Generator) -> float:
    """Surrounding POIs with SciPy's kd-tree and Python's sets, in a plane with the scales of one latitude."""
    protected, of = moved(traces), town()
    expected = temporal_projection(traces, protected)
    tree = cKDTree(np.column_stack([of["lng"] * EAST, of["lat"] * NORTH]))
    here, there = (
        tree.query_ball_point(np.column_stack([t["lng"] * EAST, t["lat"] * NORTH]), 200, p=np.inf)
        for t in (protected, expected)
    )
    scores = [2 * len(set(a) & set(b)) / (len(a) + len(b)) if a or b else 0.0 for a, b in zip(here, there, strict=True)]
    return float(np.mean(scores))


CASES = [
    Case("area coverage, 800 m", "mobpriv area_coverage", against(area_coverage), 100, 20_000),
    Case("spatial distortion", "mobpriv spatial_distortion", against(spatial_distortion), 100, 20_000),
    Case("spatial distortion", "mobpriv, to the nearest record", against(spatial_distortion, "ground", False), 100, 20_000),
    Case("spatial distortion", "peer: shapely, STRtree of segments", shapely_tree, 10, 20_000),
    Case("spatio-temporal distortion", "mobpriv spatio_temporal_distortion", against(spatio_temporal_distortion), 100, 20_000),
    Case("surrounding POIs, 5000 points", "mobpriv surrounding_pois", against(surrounding_pois, town()), 100, 20_000),
    Case("surrounding POIs, 5000 points", "peer: SciPy, kd-tree and sets", scipy_tree, 10, 20_000),
    Case("number of visits", "mobpriv visits_distortion", against(visits_distortion, *PLACE), 100, 20_000),
]


def all_metrics(data: str, file: str) -> str:
    """The Markdown table of all metrics of two mechanisms on a data set; processor seconds: of all threads."""
    original, of = in_halves(choose(data), "set", 30).secret, points(file)
    calls = {
        "area coverage": lambda p: area_coverage(original, p, SquareGrid(800)),
        "spatial distortion": lambda p: spatial_distortion(original, p),
        "spatio-temporal distortion": lambda p: spatio_temporal_distortion(original, p),
        "surrounding POIs": lambda p: surrounding_pois(original, p, of),
        "number of visits": lambda p: visits_distortion(original, p, *PLACE),
    }
    lines = ["| mechanism | metric | records | seconds | processor seconds |", "|---|---|---:|---:|---:|"]
    for mechanism in (GeoI(), Promesse()):
        protected, total = mechanism.protect(original, np.random.default_rng(SEED)), np.zeros(2)
        for name, call in calls.items():
            if isinstance(mechanism, GeoI):
                call(protected[protected["user"] == protected["user"].iloc[0]])  # compiles
            start = np.array([time.perf_counter(), time.process_time()])
            call(protected)
            spent = np.array([time.perf_counter(), time.process_time()]) - start
            total += spent
            lines.append(f"| {mechanism.name} | {name} | {len(protected):,} | {spent[0]:.2f} | {spent[1]:.2f} |")
        lines.append(f"| {mechanism.name} | all | {len(protected):,} | {total[0]:.2f} | {total[1]:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(all_metrics(*sys.argv[1:3]) if len(sys.argv) == 3 else table(__file__))
