"""POI privacy: how many of a user's stops an adversary still finds in her protected trace.

Source: Cerf et al., "Automatic privacy and utility preservation for mobility data: a nonlinear model-based approach" (PULP,
TDSC 2018), §II-C.
"""

import numba
import numpy as np
import pandas as pd

from mobpriv.base.ranges import one_of, positive
from mobpriv.ground.geo import Points, check_plane, to_plane
from mobpriv.metrics.pairs import row_ranges
from mobpriv.traces.profiles import Centres, poi_centres
from mobpriv.traces.table import Traces

MATCHED = ("protected", "both")


def poi_privacy(
    original: Traces,
    protected: Traces,
    diameter: float = 200.0,  # m, d: diameter of a POI
    duration: float = 900.0,  # s, t: least duration of a stop
    near: float = 100.0,  # m, d_max: largest distance between the centroids of two matching POIs
    merged: bool = True,
    matched: str = "protected",
    max_gap: float | None = None,  # s, see profiles.stays
    plane: str = "ground",
) -> pd.DataFrame:
    """POI privacy of Equation (1), one row per user, with M the POIs of T' that match a POI of T::

        P_pr = |M| / |poi(T')|      R_pr = |M| / |poi(T)|      privacy = 1 − 2 · P_pr · R_pr / (P_pr + R_pr)

    Columns:

    * precision, recall, privacy;
    * real, found: number of POIs of T and of T';
    * matched: |M|;
    * rediscovered: number of POIs of T that match one of T'.

    The paper leaves three points open and contradicts itself on a fourth:

    * 0/0. Without a POI in T', or without a match, nothing is revealed and privacy is 1 (precision is NaN without a POI in T').
      Without a POI in T there is nothing to protect; privacy and recall are NaN.
    * Definition of a POI. "A meaningful geographical area where a user made a significant stop" is the cluster of her stays
      there, :func:`mobpriv.traces.profiles.pois`. With ``merged=False`` every stay is a POI, as in ALP and Accio.
    * Pauses: ``max_gap``.
    * "Defined in range of [0, 1]": M counts POIs of T' in both fractions. If several of them surround one POI of T, recall
      exceeds 1 and privacy falls below 0. ``matched="both"`` uses the POIs of T that match one of T' for the recall, which
      keeps both in [0, 1].

    Departures from the paper: distances are on the ground unless ``plane="mercator"``.

    >>> import numpy as np
    >>> from mobpriv import GeoI, load
    >>> traces = load("city", max_users=3).traces
    >>> protected = GeoI().protect(traces, np.random.default_rng(1))
    >>> poi_privacy(traces, protected)["privacy"].round(2).tolist()
    [0.88, 1.0, 1.0]
    """
    check_matching(near, matched)
    ranges = row_ranges(original, protected)
    original_pois, protected_pois = (poi_centres(t, diameter, duration, max_gap, merged, plane) for t in (original, protected))
    start = np.zeros(len(ranges.users) + 1, np.int64)  # of the protected POIs, also for users whose trace was erased
    start[1:][ranges.records > 0] = np.diff(protected_pois.start)
    return pd.DataFrame(
        matching_scores(original_pois, protected_pois._replace(start=np.cumsum(start)), near, matched, plane),
        index=ranges.users,
    )


def check_matching(near: float, matched: str) -> None:
    positive("near", near, "m")
    one_of("matched", matched, MATCHED)


def matching_scores(
    original_pois: Centres, protected_pois: Centres, near: float, matched: str, plane: str
) -> dict[str, np.ndarray]:
    """The columns of :func:`poi_privacy` for given POIs of T and T'; block i of both belongs to user i."""
    check_plane(plane)
    a, b = (Points(*map(np.array, to_plane(c.lat, c.lng, plane))) for c in (original_pois, protected_pois))
    rediscovered, matches = _matches(a, original_pois.start, b, protected_pois.start, float(near), plane == "ground")
    n, m = np.diff(original_pois.start), np.diff(protected_pois.start)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = matches / m, (matches if matched == "protected" else rediscovered) / n
        f_score = np.where(matches > 0, 2 * precision * recall / (precision + recall), 0.0)
    privacy = np.where(n > 0, 1 - f_score, np.nan)
    recall = np.where(n > 0, recall, np.nan)
    columns = {"precision": precision, "recall": recall, "privacy": privacy, "real": n, "found": m}
    return columns | {"matched": matches, "rediscovered": rediscovered}


@numba.njit(cache=True)
def _matches(a, a_start, b, b_start, near, wraps):
    """Number of places of each user in ``a`` with one of hers in ``b`` nearby, and the reverse."""
    users = len(a_start) - 1
    in_a, in_b = np.zeros(users, np.int64), np.zeros(users, np.int64)
    for user in range(users):
        matched = np.zeros(b_start[user + 1] - b_start[user], np.bool_)
        for i in range(a_start[user], a_start[user + 1]):
            any_near = False
            for k in range(len(matched)):
                j = b_start[user] + k
                dx = abs(b.x[j] - a.x[i])
                if wraps and dx > 180:
                    dx = 360 - dx
                if np.hypot(0.5 * (a.sx[i] + b.sx[j]) * dx, 0.5 * (a.sy[i] + b.sy[j]) * (b.y[j] - a.y[i])) <= near:
                    any_near = matched[k] = True
            in_a[user] += any_near
        in_b[user] = matched.sum()
    return in_a, in_b
