"""Number-of-visits distortion: change in the number of visits to a place (thesis §4.7.2)."""

import numpy as np
import pandas as pd

from mobpriv.base.ranges import between, positive
from mobpriv.ground.geo import check_plane, distance
from mobpriv.metrics.pairs import row_ranges
from mobpriv.traces.table import Traces, by_user


def number_of_visits(
    traces: Traces,
    lat: float,  # degrees, latitude of the place x
    lng: float,
    radius: float = 100.0,  # m, α (§4.7.3)
    plane: str = "ground",
) -> pd.Series:
    """The number of each user's visits to the place x, Equation (4.20). A visit is a record within α of x after a record that
    is not::

        NV(T, x, α) = |{r_i ∈ T | d(r_i, x) ≤ α ∧ d(r_{i−1}, x) > α ∧ 1 < i ≤ |T|}|

    The start of a trace at the place is no visit, since i > 1. The second distance is printed as d(r_i, x), which no record
    satisfies; the sentence above the equation says r_{i−1}.
    """
    positive("radius", radius, "m")
    between("lat", lat, -90, 90, "is the place's latitude, in [-90, 90] degrees")
    between("lng", lng, -180, 180, "is the place's longitude, in [-180, 180] degrees")
    check_plane(plane)
    users, offsets = by_user(traces)
    inside = distance(traces["lat"].to_numpy(), traces["lng"].to_numpy(), lat, lng, plane) <= radius
    arrives = np.r_[False, inside[1:] & ~inside[:-1]] if len(inside) else inside
    arrives[offsets[:-1]] = False
    number = np.add.reduceat(arrives, offsets[:-1], dtype=np.int64) if len(users) else np.zeros(0, np.int64)
    return pd.Series(number, users, name="visits")


def visits_distortion(
    original: Traces,
    protected: Traces,
    lat: float,  # degrees, latitude of the place x
    lng: float,
    radius: float = 100.0,  # m, α (§4.7.3)
    plane: str = "ground",
) -> pd.DataFrame:
    """Number-of-visits distortion, Equation (4.21). One row per user: original and protected (NV of both traces) and
    distortion::

        NVD(T, T', x, α) = |NV(T, x, α) − NV(T', x, α)| / NV(T, x, α)

    The distortion is NaN for users who never visited the place, NV(T) = 0; there are ``(table["original"] == 0).sum()`` of
    them. An erased trace has no visits and distortion 1. The distortion exceeds 1 if the protected trace visits more than twice
    as often.

    Departures from the paper: distances are on the ground unless ``plane="mercator"`` (the author's).

    >>> import numpy as np
    >>> from mobpriv import GeoI, load
    >>> traces = load("city", max_users=3).traces
    >>> protected = GeoI().protect(traces, np.random.default_rng(1))
    >>> lat, lng = traces[["lat", "lng"]].iloc[0]
    >>> visits_distortion(traces, protected, lat, lng)[["original", "protected"]].sum().tolist()
    [34, 16]
    """
    ranges = row_ranges(original, protected)
    before = number_of_visits(original, lat, lng, radius, plane)
    after = number_of_visits(protected, lat, lng, radius, plane).reindex(ranges.users, fill_value=0)
    distortion = (before - after).abs() / before.where(before > 0)
    return pd.DataFrame({"original": before, "protected": after, "distortion": distortion}, index=ranges.users)
