"""Call records made of traces, so that real movement can be put through what was written for call records: dχ (§II-A) and PRIMULE
(§3.1) see a person only where and when she calls.

Two steps, both from one generator: antennas are placed where people are (:func:`place_antennas`), and calls happen at the times of
a Poisson process, each served by the nearest antenna (:func:`calls_from_traces`). The movement is real, the calls are not: they know
no hours of the day, no bursts, no two people who call each other.
"""

from typing import NamedTuple

import numba
import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from mobpriv import ranges
from mobpriv.calls import Calls, Cells, as_cells
from mobpriv.geo import across_the_date_line, cartesian, metres_per_degree
from mobpriv.traces import Traces, by_user, in_utc, milliseconds

SAMPLE = 100_000  # records that antennas are placed by
APART = 50.0  # m: sampled records nearer than this to each other count once
_DAY = 86_400_000  # ms


class Events(NamedTuple):
    calls: Calls
    cells: Cells
    drawn: int  # call times of all users, between each one's first and last record
    left_out: int  # of these, where no record is near enough in time to say where the user was
    silent: int  # users without a call


def place_antennas(traces: Traces, count: int, rng: np.random.Generator) -> Cells:
    """``count`` antennas where the records are, as networks are built where the traffic is: the centres of k-means (MacQueen 1967)
    of a random sample of the records, in metres.

    Each square of side :data:`APART` of the sample counts once, so that a cab's rank or a desk does not draw antennas about itself.
    Raises ``ValueError`` where the records stand in fewer squares than that.
    """
    count = ranges.whole("count", count, 1)
    if not len(traces):
        raise ValueError("there are no records to place antennas by")
    lat, lng = traces["lat"].to_numpy(), traces["lng"].to_numpy()
    chosen = np.sort(rng.choice(len(traces), min(SAMPLE, len(traces)), replace=False))
    lat, lng = lat[chosen], across_the_date_line(lng[chosen])
    east, north = _scales(lat)
    square = np.unique(np.round(np.column_stack([lng * east, lat * north]) / APART), axis=0) * APART
    if len(square) < count:
        raise ValueError(
            f"count must be at most the number of {APART:g} m squares with records, {len(square):,} (got {count}): place fewer antennas"
        )
    from sklearn.cluster import MiniBatchKMeans  # a second of imports that who does not place antennas need not pay

    seed = int(rng.integers(2**31))
    found = MiniBatchKMeans(count, random_state=seed, n_init=1, batch_size=8192, reassignment_ratio=0.0).fit(square)
    centre = found.cluster_centers_
    centre = centre[np.lexsort(centre.T)]
    digits = len(str(count))
    names = [f"A{k + 1:0{digits}d}" for k in range(count)]
    lat, lng = (centre[:, 1] / north).round(5), (centre[:, 0] / east).round(5)
    lng = np.where(lng > 180, lng - 360, lng)
    return as_cells(pd.DataFrame({"cell": names, "lat": lat, "lng": lng}))


def _scales(lat: np.ndarray) -> tuple[float, float]:
    """Metres in a degree, eastwards and northwards, at the median latitude: those of the plane that antennas are placed in."""
    east, north = metres_per_degree(np.array([np.median(lat)]))
    return float(east[0]), float(north[0])


def calls_from_traces(
    traces: Traces, antennas: Cells, rng: np.random.Generator, rate: float = 10.0, minutes: float = 10.0
) -> Events:
    """Calls at the times of a Poisson process with ``rate`` calls a day for each user, from her first record to her last.

    A call happens where the user's nearest record in time was, and is served by the antenna nearest to that record, in metres on the
    ground. Where no record lies within ``minutes`` the call is left out, and counted. A call has no duration and ends in the cell where
    it begins. Each user draws from a child of ``rng``, in sorted order: the records of others do not change her calls, only who stands
    before her in that order.
    """
    rate = ranges.positive("rate", rate, "calls a day")
    near = ranges.positive("minutes", minutes, "minutes")
    if antennas["lat"].isna().any():
        raise ValueError(
            f"antennas need coordinates (cell {antennas['cell'][antennas['lat'].isna()].iloc[0]} has none): give them some"
        )
    users, offsets = by_user(traces)
    ms = milliseconds(traces)
    times, counts = _times(ms, offsets, rate, rng)
    record = _nearest(ms, offsets, times, np.r_[0, np.cumsum(counts)], 60_000 * near)
    kept = record >= 0
    whose = np.repeat(np.arange(len(users)), counts)[kept]
    cell = _served(traces["lat"].to_numpy()[record[kept]], traces["lng"].to_numpy()[record[kept]], antennas)
    names = pd.Index(antennas["cell"])
    cells = pd.Categorical.from_codes(cell, names)
    calling, code = np.unique(whose, return_inverse=True)
    calls = pd.DataFrame(
        {
            "user": pd.Categorical.from_codes(code, pd.Index(users[calling], dtype="str")),
            "t": in_utc(times[kept]),
            "cell": cells,
            "end_cell": cells,
            "duration": np.nan,
        }
    )
    return Events(calls, antennas, len(times), int((~kept).sum()), len(users) - len(calling))


def _times(ms: np.ndarray, offsets: np.ndarray, rate: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The call times of every user, sorted, in ms; and how many each has."""
    drawn = []
    for start, end, child in zip(offsets[:-1], offsets[1:], rng.spawn(len(offsets) - 1), strict=True):
        first, last = ms[start], ms[end - 1]
        # given their number, the times of a Poisson process are uniform
        number = child.poisson(rate * (last - first) / _DAY)
        drawn.append(np.sort(child.integers(first, last, number, endpoint=True)))
    return np.concatenate(drawn) if drawn else np.zeros(0, np.int64), np.array([len(times) for times in drawn], np.int64)


@numba.njit(cache=True)
def _nearest(ms, offsets, times, starts, near):
    """The record of the same user that is nearest in time to each call, of several as near the first; −1 where none is near."""
    out = np.full(len(times), -1)
    for user in range(len(offsets) - 1):
        first, after, end = offsets[user], offsets[user], offsets[user + 1]
        for i in range(starts[user], starts[user + 1]):
            while (
                after < end and ms[after] <= times[i]
            ):  # first: of the last time up to the call; after: the record behind all of it
                if ms[after] != ms[first]:
                    first = after
                after += 1
            k = first
            if after < end and ms[after] - times[i] < abs(times[i] - ms[first]):
                k = after
            if abs(ms[k] - times[i]) <= near:
                out[i] = k
    return out


def _served(lat: np.ndarray, lng: np.ndarray, antennas: Cells) -> np.ndarray:
    """The row of the nearest antenna."""
    return cKDTree(cartesian(antennas["lat"], antennas["lng"])).query(cartesian(lat, lng))[1]
