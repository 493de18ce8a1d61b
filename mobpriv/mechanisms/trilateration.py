"""TriLateration: three assisted places instead of each true one (thesis §5.5 and §6.4; Khalfoun et al., MooD 2019).

Instead of its place a user asks about three places drawn uniformly in the disc of radius r around it, and solves for the
answer himself; what the service sees is the three.
"""

from dataclasses import dataclass

import numba
import numpy as np

from mobpriv.draws import per_user
from mobpriv.geo import check_plane, move
from mobpriv.traces import Traces, by_user, rows


@dataclass(frozen=True)
class TriLateration:
    """Each record becomes three, uniform in the disc around it, at its own time, in the order drawn; further columns repeat.

    Departures: the author's program works on a spherical Mercator plane with R = 6 378 137 m; ``plane="mercator"`` is the
    plane of his other programs (R = 6 367 000 m), so the same ``radius`` is 0.2 % smaller on the ground here than there.
    His second radius, (1 + k)·r, is computed and never used: it is no parameter here.
    """

    radius: float = 1000.0  # m
    plane: str = "ground"

    def __post_init__(self):
        check_plane(self.plane)
        if not 0 < self.radius < np.inf:
            raise ValueError(f"radius must be positive, in m (got {self.radius})")

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        _, offsets = by_user(traces)
        thrice = rows(traces, np.repeat(np.arange(len(traces)), 3))
        east, north = np.empty(len(thrice)), np.empty(len(thrice))
        per_user(_uniform_in_disc, rng, 3 * offsets, east, north)
        lat, lng = thrice["lat"].to_numpy(), thrice["lng"].to_numpy()
        lat, lng = move(lat, lng, self.radius * east, self.radius * north, self.plane)
        return thrice.assign(lat=lat, lng=lng)


@numba.njit(cache=True, nogil=True)
def _uniform_in_disc(rng, east, north):
    """Fills two columns with points of the unit disc; the area within r grows as r², hence the root."""
    for i in range(len(east)):
        radius, angle = np.sqrt(rng.random()), 2 * np.pi * rng.random()
        east[i], north[i] = radius * np.cos(angle), radius * np.sin(angle)
