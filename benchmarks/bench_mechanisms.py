"""The mechanisms beside plain versions of the same (peers): ``python benchmarks/bench_mechanisms.py`` prints a table."""

import numpy as np
from measure import Case, table
from scipy.special import lambertw

from mobpriv.ground.geo import metres_per_degree
from mobpriv.mechanisms import W4M, GeoI, Promesse, TriLateration
from mobpriv.traces.table import Traces

EPSILON = 0.01  # 1/m


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


CASES = [
    Case("planar Laplace", "mobpriv GeoI", GeoI(EPSILON).protect, 500, 20_000),
    Case("planar Laplace", "mobpriv GeoI, Mercator", GeoI(EPSILON, "mercator").protect, 500, 20_000),
    Case("planar Laplace", "peer: NumPy, sum of two exponentials", numpy_sum_of_exponentials, 500, 20_000),
    Case("planar Laplace", "peer: NumPy and SciPy, Lambert W", numpy_lambert, 500, 20_000),
    Case("speed smoothing, 200 m", "mobpriv Promesse", Promesse(200.0).protect, 500, 20_000),
    Case("three points for one, 1 km", "mobpriv TriLateration", TriLateration().protect, 500, 6_000),
    Case("(2, 600 m)-anonymity", "mobpriv W4M", W4M().protect, 200, 5_000),
]

if __name__ == "__main__":
    print(table(__file__))
