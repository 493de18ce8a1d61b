"""Geo-I: the planar Laplace mechanism.

Source: Andrés, Bordenabe, Chatzikokolakis, Palamidessi, "Geo-indistinguishability: differential privacy for location-based
systems", CCS 2013, §4; in the thesis: §2.3, §3.4.2.

Every record x is published at z with the density (Eq. 1 there)

    D(x)(z) = ε² / (2π) · exp(−ε d(x, z)),

so that for two places x, x' the densities of any z differ at most by the factor exp(ε d(x, x')). In polar coordinates around x
the angle is uniform. The radius has the density ε² r exp(−ε r), a Gamma(2, 1/ε): the sum of two independent exponentials of
mean 1/ε. The paper inverts the distribution function, C(r) = 1 − (1 + εr) exp(−εr), with Lambert's W. We draw the sum of two
exponentials, which has the same distribution and needs no iteration.
"""

from dataclasses import dataclass
from functools import partial

import numba
import numpy as np
from scipy.special import gammaincinv

from mobpriv.base.draws import per_user
from mobpriv.base.ranges import positive
from mobpriv.ground.geo import check_plane, move
from mobpriv.traces.table import Traces, by_user, rows


@dataclass(frozen=True)
class GeoI:
    """Add planar Laplace noise to every record, independently; times and further columns stay.

    Departures from the paper: no truncation to a region and no rounding to a grid (its §5); positions are doubles, with steps
    below 1e-8 m. The guarantee is per record: n records of a user together have n·ε. With ``plane="mercator"`` the noise is
    drawn in Mercator metres, as in the author's program: on the ground it is smaller by the factor cos(latitude) than the noise
    for ``epsilon``.

    >>> import numpy as np
    >>> from mobpriv import load
    >>> traces = load("city", max_users=3).traces
    >>> GeoI(epsilon=0.01).protect(traces, np.random.default_rng(1))["lat"].head(2).round(4).tolist()
    [44.9866, 44.9889]
    """

    epsilon: float = 0.01  # 1/m; the mean displacement is 2/epsilon
    plane: str = "ground"

    name = "Geo-I"
    random = True

    def __post_init__(self):
        check_plane(self.plane)
        positive("epsilon", self.epsilon, "1/m")

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        users, offsets = by_user(traces)
        east, north = np.empty(len(traces)), np.empty(len(traces))
        per_user(partial(_planar_laplace, float(self.epsilon)), rng, offsets, east, north)
        lat, lng = move(traces["lat"].to_numpy(), traces["lng"].to_numpy(), east, north, self.plane)
        published = traces.assign(lat=lat, lng=lng)
        if len(users) == len(traces["user"].cat.categories):
            return published
        return rows(published, np.ones(len(traces), bool))


@numba.njit(cache=True, nogil=True)
def _planar_laplace(epsilon, rng, east, north):
    """Fill two columns with displacements in m."""
    for i in range(len(east)):
        radius = (rng.standard_exponential() + rng.standard_exponential()) / epsilon
        angle = 2 * np.pi * rng.random()
        east[i], north[i] = radius * np.cos(angle), radius * np.sin(angle)


def density(distance, epsilon: float) -> np.ndarray:
    """D(x)(z) in 1/m² at ``distance`` = d(x, z) in metres (the paper's Eq. 1)."""
    positive("epsilon", epsilon, "1/m")
    return epsilon**2 / (2 * np.pi) * np.exp(-epsilon * np.asarray(distance, float))


def radius_quantile(z, epsilon: float) -> np.ndarray:
    """The radius in metres that a share ``z`` in [0, 1) of the draws does not exceed (§4.1 there).

    C⁻¹(z) = −(W₋₁((z − 1)/e) + 1)/ε. It is computed as the inverse of the incomplete gamma function, which has the same value
    and stays exact where Lambert's W has its branch point (z near 0).
    """
    positive("epsilon", epsilon, "1/m")
    z = np.asarray(z, float)
    outside = ~((z >= 0) & (z < 1))
    if outside.any():
        raise ValueError(f"a share must lie in [0, 1) (got {z[outside].flat[0]})")
    return gammaincinv(2, z) / epsilon
