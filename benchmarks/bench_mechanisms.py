"""Seconds, records a second and memory of the mechanisms, beside plain versions of the same (peers).

``python benchmarks/bench_mechanisms.py`` prints a Markdown table. Each line is measured in a process of its own: the best of
several runs after a first one that compiles; memory is the largest resident size of that process, input included.
"""

import multiprocessing
import resource
import sys
import time

import numpy as np
import pandas as pd
from scipy.special import lambertw

from mobpriv.geo import metres_per_degree
from mobpriv.mechanisms import W4M, GeoI, Promesse, TriLateration
from mobpriv.traces import Traces, from_blocks
from mobpriv.traces import rows as some_rows

EPSILON = 0.01  # 1/m
SEED = 20190


def fleet(users: int, records: int) -> Traces:
    """Cab-like random walks about San Francisco: a record a minute, steps of 300 m, half of the records at a standstill."""
    rng = np.random.default_rng(SEED)
    n = users * records
    moves = rng.normal(0, 0.002, (2, users, records)) * (rng.random((users, records)) < 0.5)
    # the walks are pulled home, so that they stay in the town
    angle = np.cumsum(moves, axis=2) * 10
    lat, lng = 37.75 + 0.04 * np.sin(angle[0]), -122.42 + 0.05 * np.sin(angle[1])
    minute = np.tile(60_000 * np.arange(records), users) + 1_200_000_000_000
    names = pd.Index([f"cab {i:04d}" for i in range(users)])
    return from_blocks(names, np.full(users, n // users), minute, lat.ravel(), lng.ravel())


def numpy_sum_of_exponentials(traces: Traces, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Planar Laplace in three lines of NumPy, with the scale at the record."""
    n = len(traces)
    return _noise(traces, (rng.standard_exponential(n) + rng.standard_exponential(n)) / EPSILON, rng)


def numpy_lambert(traces: Traces, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same with the paper's inverse of the distribution function, as most published code does it."""
    return _noise(traces, -(lambertw((rng.random(len(traces)) - 1) / np.e, -1).real + 1) / EPSILON, rng)


def _noise(traces, radius, rng):
    angle = rng.uniform(0, 2 * np.pi, len(traces))
    lat, lng = traces["lat"].to_numpy(), traces["lng"].to_numpy()
    east, north = metres_per_degree(lat)
    return lat + radius * np.sin(angle) / north, lng + radius * np.cos(angle) / east


CASES = [  # task, version, what is called, users, records of each
    ("planar Laplace", "mobpriv GeoI", GeoI(EPSILON).protect, 500, 20_000),
    ("planar Laplace", "mobpriv GeoI, Mercator", GeoI(EPSILON, "mercator").protect, 500, 20_000),
    ("planar Laplace", "peer: NumPy, sum of two exponentials", numpy_sum_of_exponentials, 500, 20_000),
    ("planar Laplace", "peer: NumPy and SciPy, Lambert W", numpy_lambert, 500, 20_000),
    ("speed smoothing, 200 m", "mobpriv Promesse", Promesse(200.0).protect, 500, 20_000),
    ("three points for one, 1 km", "mobpriv TriLateration", TriLateration().protect, 500, 6_000),
    ("(2, 600 m)-anonymity", "mobpriv W4M", W4M().protect, 200, 5_000),
]


def measure(case: int, runs: int = 3) -> dict:
    """One line of the table; to be called in a fresh process."""
    task, version, protect, users, records = CASES[case]
    traces = fleet(users, records)
    protect(some_rows(traces, np.arange(0, len(traces), 200)), np.random.default_rng(SEED))
    seconds = []
    for _ in range(runs):
        rng = np.random.default_rng(SEED)
        start = time.perf_counter()
        protect(traces, rng)
        seconds.append(time.perf_counter() - start)
    unit = 1024**2 if sys.platform != "darwin" else 1024**3  # ru_maxrss is in KB, on a Mac in bytes
    return {
        "task": task,
        "version": version,
        "records": len(traces),
        "seconds": round(min(seconds), 3),
        "records_per_second": round(len(traces) / min(seconds)),
        "memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 2),
    }


def rows() -> list[dict]:
    """Every line of the table."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return pool.map(measure, range(len(CASES)), chunksize=1)


def markdown(lines: list[dict]) -> str:
    text = ["| task | version | records | seconds | records/s | memory (GB) |", "|---|---|---:|---:|---:|---:|"]
    for r in lines:
        text.append(
            f"| {r['task']} | {r['version']} | {r['records']:,} | {r['seconds']:.2f} | {r['records_per_second']:,} "
            f"| {r['memory_gb']:.2f} |"
        )
    return "\n".join(text)


if __name__ == "__main__":
    print(markdown(rows()))
