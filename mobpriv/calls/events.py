"""Simulated call records from traces: real movement as input to methods written for call records.

dχ (§II-A) and PRIMULE (§3.1) observe a user only where and when she calls. Two steps, with one generator:

1. :func:`place_antennas` places antennas where people are;
2. :func:`calls_from_traces` draws calls at the times of a Poisson process; the nearest antenna serves each call.

The movement is real, the calls are not. They have no daily rhythm, no bursts and no pairs of users who call each other.
"""

from typing import NamedTuple

import numba
import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from mobpriv.base import ranges
from mobpriv.calls.table import Calls, Cells, as_cells
from mobpriv.ground.geo import across_the_date_line, cartesian, metres_per_degree
from mobpriv.traces.table import Traces, by_user, in_utc, milliseconds

_SAMPLE_SIZE = 100_000  # records in the sample that determines the antennas
_SQUARE_SIDE = 50.0  # m: sampled records that are nearer than this to each other count once
_DAY = 86_400_000  # ms


class Events(NamedTuple):
    calls: Calls
    cells: Cells
    drawn: int  # call times of all users, each between the user's first and last record
    left_out: int  # call times without a record near enough in time to locate the user
    silent: int  # users without a call


def place_antennas(traces: Traces, count: int, rng: np.random.Generator) -> Cells:
    """Place ``count`` antennas where the records are, as networks are built where the traffic is.

    The antennas are the centres of k-means (MacQueen 1967) of a random sample of the records, in metres. Each square of side
    :data:`_SQUARE_SIDE` counts once in the sample, so that a taxi rank or an office does not attract several antennas. Raises
    ``ValueError`` if the records occupy fewer squares than ``count``.
    """
    count = ranges.whole("count", count, 1)
    if not len(traces):
        raise ValueError("there are no records to place antennas by")
    lat, lng = traces["lat"].to_numpy(), traces["lng"].to_numpy()
    chosen = np.sort(rng.choice(len(traces), min(_SAMPLE_SIZE, len(traces)), replace=False))
    lat, lng = lat[chosen], across_the_date_line(lng[chosen])
    # scales of the plane for the antennas: metres per degree at the median latitude
    east, north = (float(scale[0]) for scale in metres_per_degree(np.array([np.median(lat)])))
    square = np.unique(np.round(np.column_stack([lng * east, lat * north]) / _SQUARE_SIDE), axis=0) * _SQUARE_SIDE
    if len(square) < count:
        raise ValueError(
            f"count must be at most the number of {_SQUARE_SIDE:g} m squares with records, {len(square):,} (got {count}): place fewer antennas"
        )
    from sklearn.cluster import MiniBatchKMeans  # the import takes a second, so only this function pays for it

    seed = int(rng.integers(2**31))
    clusters = MiniBatchKMeans(count, random_state=seed, n_init=1, batch_size=8192, reassignment_ratio=0.0).fit(square)
    centre = clusters.cluster_centers_
    centre = centre[np.lexsort(centre.T)]
    digits = len(str(count))
    names = [f"A{k + 1:0{digits}d}" for k in range(count)]
    lat, lng = (centre[:, 1] / north).round(5), (centre[:, 0] / east).round(5)
    lng = np.where(lng > 180, lng - 360, lng)
    return as_cells(pd.DataFrame({"cell": names, "lat": lat, "lng": lng}))


def calls_from_traces(
    traces: Traces, antennas: Cells, rng: np.random.Generator, rate: float = 10.0, minutes: float = 10.0
) -> Events:
    """Simulate calls at the times of a Poisson process, ``rate`` per day, from each user's first record to her last.

    A call takes place at the user's nearest record in time. The antenna nearest to that record serves it, in metres on the
    ground. If no record lies within ``minutes``, the call is omitted and counted. A call has no duration and ends in the cell
    where it begins.

    Each user has a child of ``rng``, in sorted order. The records of other users do not change her calls; only the number of
    users before her does.
    """
    rate = ranges.positive("rate", rate, "calls a day")
    max_gap = ranges.positive("minutes", minutes, "minutes")
    if antennas["lat"].isna().any():
        nowhere = antennas["cell"][antennas["lat"].isna()].iloc[0]
        raise ValueError(f"antennas need coordinates (cell {nowhere} has none): give them some")
    users, offsets = by_user(traces)
    ms = milliseconds(traces)
    times, counts = _times(ms, offsets, rate, rng)
    record = _nearest(ms, offsets, times, np.r_[0, np.cumsum(counts)], 60_000 * max_gap)
    kept = record >= 0
    user_index = np.repeat(np.arange(len(users)), counts)[kept]
    lat, lng = (traces[c].to_numpy()[record[kept]] for c in ("lat", "lng"))
    nearest = cKDTree(cartesian(antennas["lat"], antennas["lng"])).query(cartesian(lat, lng))[1]
    cells = pd.Categorical.from_codes(nearest, pd.Index(antennas["cell"]))
    calling, code = np.unique(user_index, return_inverse=True)
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
    """The sorted call times of every user in ms, and the number of calls of each user."""
    drawn = []
    for start, end, child in zip(offsets[:-1], offsets[1:], rng.spawn(len(offsets) - 1), strict=True):
        first, last = ms[start], ms[end - 1]
        # given their number, the event times of a Poisson process are uniform
        number = child.poisson(rate * (last - first) / _DAY)
        drawn.append(np.sort(child.integers(first, last, number, endpoint=True)))
    return np.concatenate(drawn) if drawn else np.zeros(0, np.int64), np.array([len(times) for times in drawn], np.int64)


@numba.njit(cache=True)
def _nearest(ms, offsets, times, starts, near):
    """Index of the user's record nearest in time to each call, the first in case of ties; −1 if none is near enough."""
    out = np.full(len(times), -1)
    for user in range(len(offsets) - 1):
        first, after, end = offsets[user], offsets[user], offsets[user + 1]
        for i in range(starts[user], starts[user + 1]):
            # first: first record at the latest time up to the call; after: the next record
            while after < end and ms[after] <= times[i]:
                if ms[after] != ms[first]:
                    first = after
                after += 1
            k = first
            if after < end and ms[after] - times[i] < abs(times[i] - ms[first]):
                k = after
            if abs(ms[k] - times[i]) <= near:
                out[i] = k
    return out
