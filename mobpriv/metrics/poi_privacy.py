"""POI privacy: how many of the places where a user stopped are still found in her protected trace.

Cerf et al., "Automatic privacy and utility preservation for mobility data: a nonlinear model-based approach" (PULP, TDSC 2018), §II-C.
"""

import numba
import numpy as np
import pandas as pd

from mobpriv.geo import Points, check_plane, to_plane
from mobpriv.metrics.pairs import pairs
from mobpriv.profiles import Centres, poi_centres
from mobpriv.ranges import one_of, positive
from mobpriv.traces import Traces

MATCHED = ("protected", "both")


def poi_privacy(
    original: Traces,
    protected: Traces,
    diameter: float = 200.0,  # m, d: of a POI
    duration: float = 900.0,  # s, t: least time of a stop
    near: float = 100.0,  # m, d_max: two POIs whose centroids are at most so far apart match
    merged: bool = True,
    matched: str = "protected",
    max_gap: float | None = None,  # s, see profiles.stays
    plane: str = "ground",
) -> pd.DataFrame:
    """Equation (1). With M the POIs of T' that match a POI of T, one row a user::

        P_pr = |M| / |poi(T')|      R_pr = |M| / |poi(T)|      privacy = 1 − 2 · P_pr · R_pr / (P_pr + R_pr)

    Columns: precision, recall, privacy; real, found (how many POIs T and T' have), matched (|M|), rediscovered (how many POIs
    of T match one of T').

    The paper is silent on three things, and on one it contradicts itself:

    * 0/0. No POI in T', or none that matches: nothing is betrayed, privacy is 1 (precision is NaN without a POI in T'). No POI
      in T: there is nothing to hide, privacy and recall are NaN.
    * What a POI is: "a meaningful geographical area where a user made a significant stop" is the cluster of her stays there,
      :func:`mobpriv.profiles.pois`. ``merged=False`` takes every stay for a POI, as ALP and Accio do.
    * Pauses: ``max_gap``.
    * "Defined in range of [0, 1]": M counts POIs of T' in both fractions. Where several lie around one of T the recall exceeds 1
      and privacy falls below 0. ``matched="both"`` counts in the recall those of T that match one of T', which keeps both in [0, 1].

    Departures from the paper: distances are on the ground unless ``plane="mercator"``.
    """
    check_matching(near, matched)
    of = pairs(original, protected)
    real, found = (poi_centres(t, diameter, duration, max_gap, merged, plane) for t in (original, protected))
    start = np.zeros(len(of.users) + 1, np.int64)  # of the found ones, also for users whose trace was erased
    start[1:][of.records > 0] = np.diff(found.start)
    return pd.DataFrame(scores(real, found._replace(start=np.cumsum(start)), near, matched, plane), index=of.users)


def check_matching(near: float, matched: str) -> None:
    positive("near", near, "m")
    one_of("matched", matched, MATCHED)


def scores(real: Centres, found: Centres, near: float, matched: str, plane: str) -> dict[str, np.ndarray]:
    """The columns of :func:`poi_privacy` for POIs that are known: those of T and of T', block i of both is that of user i."""
    check_plane(plane)
    a, b = (Points(*map(np.array, to_plane(c.lat, c.lng, plane))) for c in (real, found))
    again, hit = _matches(a, real.start, b, found.start, float(near), plane == "ground")
    n, m = np.diff(real.start), np.diff(found.start)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = hit / m, (hit if matched == "protected" else again) / n
        f_score = np.where(hit > 0, 2 * precision * recall / (precision + recall), 0.0)
    privacy = np.where(n > 0, 1 - f_score, np.nan)
    recall = np.where(n > 0, recall, np.nan)
    columns = {"precision": precision, "recall": recall, "privacy": privacy, "real": n, "found": m}
    return columns | {"matched": hit, "rediscovered": again}


@numba.njit(cache=True)
def _matches(a, a_start, b, b_start, near, wraps):
    """How many places of each user in ``a`` have one of hers in ``b`` near them, and the other way round."""
    users = len(a_start) - 1
    in_a, in_b = np.zeros(users, np.int64), np.zeros(users, np.int64)
    for user in range(users):
        met = np.zeros(b_start[user + 1] - b_start[user], np.bool_)
        for i in range(a_start[user], a_start[user + 1]):
            some = False
            for k in range(len(met)):
                j = b_start[user] + k
                dx = abs(b.x[j] - a.x[i])
                if wraps and dx > 180:
                    dx = 360 - dx
                if np.hypot(0.5 * (a.sx[i] + b.sx[j]) * dx, 0.5 * (a.sy[i] + b.sy[j]) * (b.y[j] - a.y[i])) <= near:
                    some = met[k] = True
            in_a[user] += some
        in_b[user] = met.sum()
    return in_a, in_b
