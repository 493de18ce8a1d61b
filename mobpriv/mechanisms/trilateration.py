"""TriLateration: three random places instead of each true one.

Source: Huang et al., as the thesis describes it, §2.3.3: "each record is transformed into three random records in a region
surrounding the correct one"; used in §5.5 and §6.4.

Users query a service about three places drawn uniformly in the disc of radius r around their own. They compute the answer for
their own place by trilateration; the service only sees the three.
"""

from dataclasses import dataclass
from functools import partial

import numba
import numpy as np

from mobpriv.base.draws import per_user
from mobpriv.base.ranges import positive
from mobpriv.ground.geo import check_plane, move
from mobpriv.traces.table import COLUMNS, Traces, by_user, from_blocks, milliseconds


@dataclass(frozen=True)
class TriLateration:
    """Replace each record by three, uniform in the disc around it, at its own time, in the order drawn; further columns repeat.

    Departures: the author's program works on a spherical Mercator plane with R = 6 378 137 m. ``plane="mercator"`` is the plane
    of the other programs (R = 6 367 000 m), so the same ``radius`` is 0.2 % larger on the ground here than there. Its second
    radius, (1 + k)·r, is computed but never used, so it is no parameter here.

    >>> import numpy as np
    >>> from mobpriv import load
    >>> traces = load("city", max_users=3).traces
    >>> len(TriLateration(radius=1000).protect(traces, np.random.default_rng(1))) / len(traces)
    3.0
    """

    radius: float = 1000.0  # m
    plane: str = "ground"

    name = "TriLateration"
    random = True

    def __post_init__(self):
        check_plane(self.plane)
        positive("radius", self.radius, "m")

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        users, offsets = by_user(traces)
        time, lat, lng = (np.repeat(c, 3) for c in (milliseconds(traces), traces["lat"].to_numpy(), traces["lng"].to_numpy()))
        east, north = np.empty(len(time)), np.empty(len(time))
        per_user(partial(_uniform_in_disc, float(self.radius)), rng, 3 * offsets, east, north)
        lat, lng = move(lat, lng, east, north, self.plane)
        further = {c: traces[c].repeat(3).array for c in traces.columns.difference(COLUMNS, sort=False)}
        return from_blocks(users, 3 * np.diff(offsets), time, lat, lng).assign(**further)


@numba.njit(cache=True, nogil=True)
def _uniform_in_disc(radius, rng, east, north):
    """Fill two columns with points of the disc, in m; the area within r grows as r², hence the root."""
    for i in range(len(east)):
        r, angle = radius * np.sqrt(rng.random()), 2 * np.pi * rng.random()
        east[i], north[i] = r * np.cos(angle), r * np.sin(angle)
