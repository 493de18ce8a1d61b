"""Distortion of surrounding points of interest: results of a search around protected records (thesis §4.7.2)."""

from typing import NamedTuple

import numba
import numpy as np
import pandas as pd

from mobpriv.base.ranges import one_of, positive
from mobpriv.ground.geo import Points, metres_per_degree, to_plane
from mobpriv.metrics.pairs import means, row_ranges
from mobpriv.metrics.temporal import temporal_projection
from mobpriv.traces.table import Traces

EMPTY_BOXES = ("unlike", "alike", "left out")
_BANDS = 1 << 16  # largest number of bands for the points


def surrounding_pois(
    original: Traces,
    protected: Traces,
    points: pd.DataFrame,  # lat, lng in degrees: one row per point of interest
    distance: float = 200.0,  # m, β: half the side of the square box around a record
    empty: str = "unlike",
    plane: str = "ground",
) -> pd.DataFrame:
    """Distortion in surrounding POIs, Equations (4.17) to (4.19).

    POI(x, β) are the points in the box around x, and x̂ is the temporal projection of x into T::

        precision = |POI(x̂, β) ∩ POI(x, β)| / |POI(x, β)|      recall = |POI(x̂, β) ∩ POI(x, β)| / |POI(x̂, β)|

        DSP(T, T', β) = 1/|T'| · Σ_x 2 · precision · recall / (precision + recall)

    One row per user: ``f_score`` is DSP (despite its name, 1 means no distortion), ``records`` is |T'|, ``empty`` counts
    records without a point in either box. Each row of ``points`` is a separate point, even at the same place. An erased trace
    has no record and gets NaN.

    The thesis leaves two points open:

    * Size of the box. §4.7.2 calls β its "size"; §4.7.3 says it "is of distance 200 meters from the record". The box extends
      ``distance`` north, south, east and west of the record, 400 m × 400 m.
    * The F-score of a record with two empty boxes, 0/0. ``empty="unlike"`` counts it as 0, because nothing is common.
      ``"alike"`` counts it as 1, because both searches have the same result. ``"left out"`` averages over the other records
      (NaN if there are none). The published averages for Geo-I, 0.11 to 0.42, fit the first: on Cabspotting the other two
      exceed all of them. If only one box is empty, nothing is common and the F-score is 0.

    Departures from the paper: distances are on the ground unless ``plane="mercator"``. The points come from a table, not from
    an OpenStreetMap database.

    >>> import numpy as np
    >>> from mobpriv import GeoI, load
    >>> traces = load("city", max_users=3).traces
    >>> protected = GeoI().protect(traces, np.random.default_rng(1))
    >>> points = traces[["lat", "lng"]].sample(500, random_state=1)  # stands for points of a map
    >>> surrounding_pois(traces, protected, points)["f_score"].round(2).tolist()
    [0.46, 0.45, 0.46]
    """
    positive("distance", distance, "m")
    one_of("empty", empty, EMPTY_BOXES)
    ranges = row_ranges(original, protected)
    expected = temporal_projection(original, protected, plane)
    records, projections = (Points(*map(np.array, to_plane(t["lat"], t["lng"], plane))) for t in (protected, expected))
    bands = _in_bands(points, float(distance), plane)
    turn = 360.0 if plane == "ground" else np.inf  # the Mercator plane does not close
    retrieved, relevant, common = _search(records, projections, *bands, float(distance), turn)
    both_empty = retrieved + relevant == 0
    if len(both_empty) and both_empty.all():
        raise ValueError(_far_away(points, protected, distance))
    # 2 P R / (P + R) simplified; 0/0 if both boxes are empty
    f = np.where(
        both_empty, {"unlike": 0.0, "alike": 1.0, "left out": 0.0}[empty], 2 * common / np.maximum(retrieved + relevant, 1)
    )
    f_score, empty_records = means(f, ranges, "f_score"), np.bincount(ranges.owner[both_empty], minlength=len(ranges.users))
    if empty == "left out":
        f_score *= ranges.records / np.where(empty_records < ranges.records, ranges.records - empty_records, np.nan)
    return pd.DataFrame({"f_score": f_score, "records": ranges.records, "empty": empty_records}, index=ranges.users)


class _Bands(NamedTuple):
    """Points sorted into bands from south to north, and from west to east within a band."""

    at: Points
    start: np.ndarray  # index of each band's first point; the last entry is the end
    least: np.ndarray  # least metres per unit of x of the points of each band; infinite without points
    south: float  # y of the first band's lower edge
    height: float  # height of a band in units of y
    unit: float  # least metres per unit of y anywhere


def _in_bands(points: pd.DataFrame, distance: float, plane: str) -> _Bands:
    lat, lng = _positions(points)
    p = to_plane(lat, lng, plane)
    unit = 1.0 if plane == "mercator" else float(metres_per_degree(np.array(0.0))[1])
    south, extent = p.y.min(), np.ptp(p.y)
    height = max(distance / unit, extent / _BANDS)
    band = ((p.y - south) / height).astype(np.int64)
    order = np.lexsort((p.x, band))
    start, least = np.searchsorted(band[order], np.arange(band.max() + 2)), np.full(band.max() + 1, np.inf)
    np.minimum.at(least, band, p.sx)
    return _Bands(Points(*(np.array(column)[order] for column in p)), start, least, float(south), float(height), unit)


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
def _search(records, projections, at, start, least, south, height, unit, distance, turn):
    """The number of points in each record's box, in the box of its projection, and in both."""
    n, tall = len(records.x), 1.01 * distance / unit  # generous, as all bounds: the comparison of each point is exact
    retrieved, relevant, common = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for k in numba.prange(n):
        retrieved[k], common[k] = _count(records, projections, k, at, start, least, south, height, tall, distance, turn)
        if records.x[k] == projections.x[k] and records.y[k] == projections.y[k]:
            relevant[k] = retrieved[k]
        else:
            relevant[k], _ = _count(projections, records, k, at, start, least, south, height, tall, distance, turn)
    return retrieved, relevant, common


@numba.njit(cache=True)
def _count(a, b, k, at, start, least, south, height, tall, distance, turn):
    """The number of points in the box around record k of ``a``, and of those also in the box around record k of ``b``."""
    x, y = a.x[k], a.y[k]
    lowest = max(int(np.floor((y - tall - south) / height)), 0)
    highest = min(int(np.floor((y + tall - south) / height)), len(start) - 2)
    inside = both = 0
    for band in range(lowest, highest + 1):
        first, last = start[band], start[band + 1]
        wide = 2.02 * distance / max(a.sx[k] + least[band], 1e-9)
        if 2 * (abs(x) + wide) <= turn:  # else the box reaches across the date line
            last = first + np.searchsorted(at.x[first:last], x + wide, side="right")
            first += np.searchsorted(at.x[first:last], x - wide)
        for i in range(first, last):  # without a branch, so that the compiler compares several points at a time
            in_a, in_b = _in_box(a, k, at, i, distance, turn), _in_box(b, k, at, i, distance, turn)
            inside += in_a
            both += in_a & in_b
    return inside, both


@numba.njit(inline="always")
def _in_box(a, k, points, i, distance, turn):
    """Whether point i lies in the box around record k of ``a``, borders included."""
    dx, dy = abs(points.x[i] - a.x[k]), abs(points.y[i] - a.y[k])
    dx = min(dx, turn - dx)  # the short way round
    return (0.5 * (a.sx[k] + points.sx[i]) * dx <= distance) & (0.5 * (a.sy[k] + points.sy[i]) * dy <= distance)
