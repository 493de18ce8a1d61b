"""POI-Attack: compare the sets of points of interest by the median distance to the nearest one (thesis §3.4.1).

Source: Primault, Ben Mokhtar, Lauradoux, Brunie, *Differentially Private Location Privacy in Practice*, MoST 2014.
"""

from dataclasses import dataclass, field, replace
from typing import Self

import numba
import numpy as np
import pandas as pd

from mobpriv.base.ranges import true_or_false
from mobpriv.ground.geo import check_plane, to_plane
from mobpriv.traces.profiles import check_stay, pois, stays
from mobpriv.traces.table import Traces, by_user


@dataclass(frozen=True)
class POIAttack:
    """The nearest set of POIs, Equation (3.12)::

        d(X, Y) = median( {min_t d(X_r, Y_t) | r} ∪ {min_r d(X_r, Y_t) | t} )      in metres

    Users without a POI have no profile. ``merged=False`` compares stays instead of clusters of stays, as the author's program
    does: a place then counts as often as it was visited.

    >>> from mobpriv import load
    >>> from mobpriv.traces.table import split_in_half
    >>> known, secret = split_in_half(load("city", max_users=3).traces, "set")
    >>> POIAttack().fit(known).rank(secret).round()
    user    c001    c002    c003
    user
    c001    43.0    70.0  4627.0
    c002  2884.0  1704.0  4651.0
    c003  1860.0  1346.0   415.0
    """

    diameter: float = 200.0  # m, of the area of a stop
    duration: float = 3600.0  # s, least time of a stop
    max_gap: float | None = None  # s, see profiles.stays
    plane: str = "ground"
    merged: bool = True
    known_: tuple[pd.DataFrame, pd.Index] | None = field(default=None, repr=False, compare=False)

    name = "POI-Attack"

    def __post_init__(self):
        check_plane(self.plane)
        check_stay(self.diameter, self.duration, self.max_gap)
        true_or_false("merged", self.merged)

    def _profiles(self, traces: Traces) -> pd.DataFrame:
        extract = pois if self.merged else stays
        places = extract(traces, diameter=self.diameter, duration=self.duration, max_gap=self.max_gap, plane=self.plane)
        return places[0] if self.merged else places

    def fit(self, known: Traces) -> Self:
        """The attack with the known users' POIs."""
        return replace(self, known_=(self._profiles(known), by_user(known)[0]))

    def rank(self, anonymous: Traces) -> pd.DataFrame:
        """Equation (3.12) in metres, one row an anonymous trace, one column a known user; NaN: one of the two has no POI."""
        if self.known_ is None:
            raise ValueError("fit the attack on known traces first")
        known, users = self.known_
        d = median_nearest(self._profiles(anonymous), known, self.plane)
        return d.reindex(index=by_user(anonymous)[0], columns=users)


def median_nearest(a: pd.DataFrame, b: pd.DataFrame, plane: str = "ground") -> pd.DataFrame:
    """Equation (3.12) between all users of ``a`` and of ``b``: tables of places (user, lat, lng), sorted by user."""
    if not len(a) or not len(b):
        return pd.DataFrame()
    (rows, a_start), (columns, b_start) = by_user(a), by_user(b)
    p, q = to_plane(a["lat"], a["lng"], plane), to_plane(b["lat"], b["lng"], plane)
    d = _median_nearest(*p, a_start, *q, b_start, plane == "ground")
    return pd.DataFrame(d, index=rows, columns=columns)


@numba.njit(cache=True, parallel=True)
def _median_nearest(ax, ay, asx, asy, a_start, bx, by, bsx, bsy, b_start, wraps):
    rows, columns = len(a_start) - 1, len(b_start) - 1
    out = np.empty((rows, columns))
    for row in numba.prange(rows):
        for column in range(columns):
            n, m = a_start[row + 1] - a_start[row], b_start[column + 1] - b_start[column]
            nearest = np.full(n + m, np.inf)
            for r in range(n):
                for t in range(m):
                    i, j = a_start[row] + r, b_start[column] + t
                    dx = bx[j] - ax[i]
                    if wraps and abs(dx) > 180:
                        dx = 360 - abs(dx)
                    dx, dy = 0.5 * (asx[i] + bsx[j]) * dx, 0.5 * (asy[i] + bsy[j]) * (by[j] - ay[i])
                    d = dx * dx + dy * dy
                    nearest[r] = min(nearest[r], d)
                    nearest[n + t] = min(nearest[n + t], d)
            out[row, column] = np.median(np.sqrt(nearest))
    return out
