"""Spatio-temporal distortion: distance of protected records from the user's true position at that time (thesis §4.7.2)."""

import numba
import numpy as np
import pandas as pd

from mobpriv.ground.geo import check_plane, distance, to_degrees, to_plane, unwrapped
from mobpriv.metrics.pairs import means, row_ranges
from mobpriv.traces.table import Traces, milliseconds


def spatio_temporal_distortion(original: Traces, protected: Traces, plane: str = "ground") -> pd.Series:
    """Spatio-temporal distortion, Equation (4.16): the mean distance (m) of the records x of T' from their temporal projection
    into T::

        STD(T, T') = 1/|T'| · Σ_x d(x, temporal_projection(x, T))

    One value per user; NaN for an erased trace, which has no record. If several records of T share a time, the trace is at
    several places at once and its distortion from itself is not 0.

    Departures from the paper: distances are on the ground unless ``plane="mercator"`` (the author's).

    >>> import numpy as np
    >>> from mobpriv import GeoI, load
    >>> traces = load("city", max_users=3).traces
    >>> protected = GeoI().protect(traces, np.random.default_rng(1))
    >>> spatio_temporal_distortion(traces, protected).round().tolist()
    [198.0, 202.0, 200.0]
    """
    expected = temporal_projection(original, protected, plane)
    metres = distance(*(table[c].to_numpy() for table in (protected, expected) for c in ("lat", "lng")), plane)
    return means(metres, row_ranges(original, protected), "spatio-temporal distortion")


def temporal_projection(original: Traces, protected: Traces, plane: str = "ground") -> Traces:
    """Temporal projection, Equation (4.15): the user's position at the time of each protected record, from her original
    records::

        r_1                                                   if t ≤ t_1
        r_i + (t − t_i)/(t_{i+1} − t_i) · (r_{i+1} − r_i)     if t_i < t ≤ t_{i+1}
        r_|T|                                                 if t > t_|T|

    One row per protected record, in their order: its user, its t, and the expected lat and lng. The interpolation is linear in
    the plane (in degrees on the ground) and takes the short way across the date line; the Mercator plane has no such way. If
    several records of T have the time t, the first counts, as in the author's program. The position of the thesis's ≤ affects
    nothing else.

    >>> import numpy as np
    >>> from mobpriv import GeoI, load
    >>> traces = load("city", max_users=3).traces
    >>> protected = GeoI().protect(traces, np.random.default_rng(1))
    >>> len(temporal_projection(traces, protected)) == len(traces)
    True
    """
    check_plane(plane)
    ranges = row_ranges(original, protected)
    x, y = original["lng"].to_numpy(), original["lat"].to_numpy()
    x, y = (unwrapped(x, ranges.start), y) if plane == "ground" else to_plane(y, x, plane)[:2]
    x, y, before, after = map(np.array, (x, y, milliseconds(original), milliseconds(protected)))
    position = _project(x, y, before, ranges.start, after, ranges.first, ranges.last)
    lat, lng = to_degrees(*position, plane)
    return pd.DataFrame({"user": protected["user"], "t": protected["t"], "lat": lat, "lng": lng})


@numba.njit(cache=True, parallel=True)
def _project(x, y, time, start, when, first, last):
    """Plane coordinates at the times ``when``. Both traces are sorted by time, so a single pass suffices."""
    px, py = np.empty(len(when)), np.empty(len(when))
    for user in numba.prange(len(first)):
        i, end = start[user], start[user + 1] - 1
        for k in range(first[user], last[user]):
            while i < end and time[i + 1] < when[k]:
                i += 1
            j = i + 1 if i < end and when[k] == time[i + 1] and when[k] > time[i] else i
            px[k], py[k] = x[j], y[j]
            if i == j and i < end and when[k] > time[i]:
                share = (when[k] - time[i]) / (time[i + 1] - time[i])
                px[k] += share * (x[i + 1] - x[i])
                py[k] += share * (y[i + 1] - y[i])
    return px, py
