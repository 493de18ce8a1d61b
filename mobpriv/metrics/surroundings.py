"""Distortion in surrounding points of interest: what a search around a protected record still finds (thesis §4.7.2)."""

from typing import NamedTuple

import numba
import numpy as np
import pandas as pd

from mobpriv.geo import Points, metres_per_degree, metres_per_degree_at, to_plane
from mobpriv.metrics.pairs import means, pairs
from mobpriv.metrics.temporal import temporal_projection
from mobpriv.ranges import one_of, positive
from mobpriv.traces import Traces

EMPTY = ("unlike", "alike", "left out")
_BANDS = 1 << 16  # most bands that the points are sorted into


def surrounding_pois(
    original: Traces,
    protected: Traces,
    points: pd.DataFrame,  # lat, lng in degrees: one row a point of interest
    distance: float = 200.0,  # m, β: half the side of the square box around a record
    empty: str = "unlike",
    plane: str = "ground",
) -> pd.DataFrame:
    """Equations (4.17) to (4.19). With POI(x, β) the points in the box around x, and x̂ the temporal projection of x into T::

        precision = |POI(x̂, β) ∩ POI(x, β)| / |POI(x, β)|      recall = |POI(x̂, β) ∩ POI(x, β)| / |POI(x̂, β)|
        DSP(T, T', β) = 1/|T'| · Σ_x 2 · precision · recall / (precision + recall)

    One row a user: ``f_score`` is DSP (1 is no distortion, in spite of its name), ``records`` is |T'|, ``empty`` how many of them
    have no point in either box. Points at one place are different points, as rows of ``points``. An erased trace has no
    record to average over: NaN.

    The thesis is silent on two things:

    * §4.7.2 calls β the "size" of the box, §4.7.3 says it "is of distance 200 meters from the record": the box reaches
      ``distance`` north, south, east and west of the record, 400 m × 400 m.
    * The F-score of a record with nothing in either box is 0/0. ``empty="unlike"`` counts it as 0, as a program does that finds
      nothing in common; ``"alike"`` as 1, since both searches have one answer; ``"left out"`` averages over the other records
      (NaN where there is none). The published averages for Geo-I, 0.11 to 0.42, are those of the first: on Cabspotting the
      other two lie above all of them. Where only one box is empty nothing is common: the F-score is 0.

    Departures from the paper: distances are on the ground unless ``plane="mercator"``. The points are those of a table, not of a
    data base of OpenStreetMap.
    """
    positive("distance", distance, "m")
    one_of("empty", empty, EMPTY)
    of = pairs(original, protected)
    expected = temporal_projection(original, protected, plane)
    here, there = (Points(*map(np.array, to_plane(t["lat"], t["lng"], plane))) for t in (protected, expected))
    bands = _in_bands(points, float(distance), plane)
    found, hoped, common = _search(here, there, *bands, float(distance), plane == "ground")
    nothing = found + hoped == 0
    if len(nothing) and nothing.all():
        raise ValueError(_far_away(points, protected, distance))
    # 2 P R / (P + R) with the fractions resolved; 0/0 where both boxes are empty
    f = np.where(nothing, {"unlike": 0.0, "alike": 1.0, "left out": 0.0}[empty], 2 * common / np.maximum(found + hoped, 1))
    f_score, none = means(f, of, "f_score"), np.bincount(of.owner[nothing], minlength=len(of.users))
    if empty == "left out":
        f_score *= of.records / np.where(none < of.records, of.records - none, np.nan)
    return pd.DataFrame({"f_score": f_score, "records": of.records, "empty": none}, index=of.users)


class _Bands(NamedTuple):
    """Points sorted by bands from south to north, in each from west to east."""

    at: Points
    start: np.ndarray  # where each band begins; one more: the end
    south: float  # y of the first band's lower edge
    height: float  # of a band, in units of y


def _in_bands(points: pd.DataFrame, distance: float, plane: str) -> _Bands:
    lat, lng = _positions(points)
    p = to_plane(lat, lng, plane)
    unit = 1.0 if plane == "mercator" else float(metres_per_degree(np.array(0.0))[1])
    south, extent = p.y.min(), np.ptp(p.y)
    height = max(distance / unit, extent / _BANDS)
    band = ((p.y - south) / height).astype(np.int64)
    order = np.lexsort((p.x, band))
    start = np.searchsorted(band[order], np.arange(band.max() + 2))
    return _Bands(Points(*(np.array(column)[order] for column in p)), start, float(south), float(height))


def _positions(points: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    missing = [c for c in ("lat", "lng") if c not in points.columns]
    if missing:
        raise ValueError(f"points need the columns lat and lng; missing: {', '.join(missing)} (got {list(points.columns)})")
    if not len(points):
        raise ValueError("points must hold at least one point of interest (got none)")
    lat, lng = (points[c].to_numpy(float) for c in ("lat", "lng"))
    wrong = ~((np.abs(lat) <= 90) & (np.abs(lng) <= 180))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"points must lie in [-90, 90] and [-180, 180] degrees ({wrong.sum()} do not, first in row {row}: "
            f"lat {lat[row]}, lng {lng[row]}): leave them out"
        )
    return lat, lng


def _far_away(points: pd.DataFrame, traces: Traces, distance: float) -> str:
    extent = lambda t: " × ".join(f"{t[c].min():.3f} … {t[c].max():.3f}" for c in ("lat", "lng"))  # noqa: E731
    return (
        f"no point of interest lies within {distance:g} m of any record (points: {extent(points)} degrees, "
        f"protected records: {extent(traces)}): give points of the place where the traces are"
    )


@numba.njit(cache=True, parallel=True)
def _search(here, there, at, start, south, height, distance, ground):
    """For each record how many points lie in its own box, in that of its projection, and in both."""
    n = len(here.x)
    found, hoped, common = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for k in numba.prange(n):
        found[k], common[k] = _count(here, there, k, at, start, south, height, distance, ground)
        hoped[k], _ = _count(there, here, k, at, start, south, height, distance, ground)
    return found, hoped, common


@numba.njit(cache=True)
def _count(a, b, k, at, start, south, height, distance, ground):
    """How many points lie in the box around record k of ``a``, and how many of them in the box around record k of ``b`` too."""
    x, y = a.x[k], a.y[k]
    # generous bounds in units of the plane: the boxes decide
    tall = wide = 1.01 * distance
    if ground:
        tall /= metres_per_degree_at(0.0)[1]
        wide /= max(metres_per_degree_at(min(abs(y) + tall, 90.0))[0], 1e-9)
    lowest = max(int(np.floor((y - tall - south) / height)), 0)
    highest = min(int(np.floor((y + tall - south) / height)), len(start) - 2)
    inside = both = 0
    for band in range(lowest, highest + 1):
        first, last = start[band], start[band + 1]
        if first == last:
            continue
        wraps = ground and (x - wide < -180 or x + wide > 180)
        i = first if wraps else first + np.searchsorted(at.x[first:last], x - wide)
        while i < last and (wraps or at.x[i] <= x + wide):
            if _in_box(a, k, at, i, distance, ground):
                inside += 1
                both += _in_box(b, k, at, i, distance, ground)
            i += 1
    return inside, both


@numba.njit(inline="always")
def _in_box(a, k, points, i, distance, ground):
    """Whether point i lies in the box around record k of ``a``, borders included."""
    dx = abs(points.x[i] - a.x[k])
    if ground and dx > 180:
        dx = 360 - dx
    return (
        0.5 * (a.sx[k] + points.sx[i]) * dx <= distance
        and 0.5 * (a.sy[k] + points.sy[i]) * abs(points.y[i] - a.y[k]) <= distance
    )
