"""From an altered heat map back to a trace, Algorithms 2 and 3 of HMC.

Source: Maouche, thesis, §4.5.

A cell that the trace visited keeps, loses or gains records. A cell that it never visited is filled with other users' records
there, moved in time into a gap of the trace. Times are int64 milliseconds.
"""

from typing import NamedTuple

import numba
import numpy as np
import pandas as pd

from mobpriv.ground.geo import Points, to_plane
from mobpriv.traces.profiles import stays
from mobpriv.traces.table import Traces, rows


class Track(NamedTuple):
    """Records of one user in the order of time."""

    t: np.ndarray
    lat: np.ndarray
    lng: np.ndarray

    def part(self, chosen) -> "Track":
        return Track(self.t[chosen], self.lat[chosen], self.lng[chosen])


def joined(tracks: list[Track]) -> Track:
    """The records of several tracks, one after the other."""
    return Track(*(np.concatenate(columns) for columns in zip(*tracks, strict=True)))


def adapted(track: Track, place: np.ndarray, want: np.ndarray, rng: np.random.Generator) -> Track:
    """``want[c]`` records in every cell c that the trace visited, Algorithm 2; ``place`` is the cell of each record.

    While a cell has too few records, a midpoint (place and time) is put between each two successive ones, which makes 2 R − 1
    of R. So after k rounds they lie at the multiples of 2^−k between the old ones. From these, and from a cell with too many
    records, the number wanted is drawn, each subset with the same probability. With fewer than two records Algorithm 2 finds no
    midpoint and never ends; here a single record is repeated.
    """
    order = np.argsort(place.astype(np.min_scalar_type(len(want))), kind="stable")  # short numbers: numpy sorts by radix
    starts = np.zeros(len(want) + 1, np.int64)
    np.cumsum(np.bincount(place, minlength=len(want)), out=starts[1:])
    visited = np.diff(starts) > 0
    total = int(want[visited].sum())
    out = np.empty(total, np.int64), np.empty(total), np.empty(total)
    _adapt(rng, *track, order, starts, np.where(visited, want, 0), *out)
    return Track(*out).part(np.argsort(out[0], kind="stable"))


@numba.njit(cache=True, nogil=True)
def _adapt(rng, t, lat, lng, order, starts, want, out_t, out_lat, out_lng):
    k = 0
    for c in range(len(want)):
        first, size, rounds, need = starts[c], starts[c + 1] - starts[c], 0, want[c]
        while 1 < size < need:
            size, rounds = 2 * size - 1, rounds + 1
        if size == 1:
            size = need
        lone = starts[c + 1] - first == 1
        for j in range(size):
            if need == 0:
                break
            if size - j > need and rng.random() * (size - j) >= need:
                continue
            need -= 1
            a = order[first] if lone else order[first + (j >> rounds)]
            share = 0.0 if lone else (j & ((1 << rounds) - 1)) / (1 << rounds)
            out_t[k], out_lat[k], out_lng[k] = t[a], lat[a], lng[a]
            if share > 0:
                b = order[first + (j >> rounds) + 1]
                out_t[k] += np.int64(np.floor((t[b] - t[a]) * share))
                out_lat[k] += (lat[b] - lat[a]) * share
                out_lng[k] += (lng[b] - lng[a]) * share
            k += 1


class Sets(NamedTuple):
    """Sets of successive records in one cell, of known users, that may be copied: rows first … last of the columns."""

    track: Track
    first: np.ndarray
    last: np.ndarray
    duration: np.ndarray  # ms, from the first record to the last
    begin: Points  # the first records in the plane
    end: Points  # the last records


def sets_of(track: Track, user: np.ndarray, pause: float, limit: float, plane: str) -> Sets:
    """Split the records of one cell, sorted by user, at pauses longer than ``pause``, and into sets of ``limit`` s at most."""
    first = _beginnings(track.t, user, round(pause * 1000), round(limit * 1000)) if len(track.t) else np.zeros(0, np.int64)
    last = np.append(first[1:], len(track.t))[: len(first)] - 1
    begin, end = (to_plane(track.lat[ends], track.lng[ends], plane) for ends in (first, last))
    return Sets(track, first, last, track.t[last] - track.t[first], begin, end)


@numba.njit(cache=True)
def _beginnings(t, user, pause, limit):
    begins = [0]
    for i in range(1, len(t)):
        if user[i] != user[i - 1] or t[i] - t[i - 1] > pause or t[i] - t[begins[-1]] > limit:
            begins.append(i)
    return np.array(begins)


class Gaps:
    """Parts of a trace without a record that last longer than ``least`` s: records of other cells can be put there."""

    def __init__(self, track: Track, least: float, speed: float, plane: str):
        self.least, self.speed, self.plane = round(least * 1000), speed, plane
        before = np.flatnonzero(np.diff(track.t) > self.least)
        begin, end = ((track.t[i], *to_plane(track.lat[i], track.lng[i], plane)) for i in (before, before + 1))
        self.ends = np.column_stack([*begin, *end]).astype(float)  # one row a gap: time, x, y, sx and sy of both ends

    def filled(self, sets: Sets, candidates: np.ndarray, centre: Points) -> Track | None:
        """The set and the gap of shortest path from the gap's start to the set and on to the gap's end, Algorithm 3.

        ``candidates`` are the rows of the sets in the cell, ``centre`` is the cell's centre. The set is moved in time to the
        beginning of the gap; None if no set fits into a gap. The time available is the gap less the travel from its start to
        the cell's centre, and from there to its end, at ``speed`` m/s.
        """
        places = sets.duration, sets.begin, sets.end
        gap, chosen, begins = _shortest_path(self.ends, candidates, *places, centre, self.speed, self.plane == "ground")
        if gap < 0:
            return None
        copied = sets.track.part(slice(sets.first[chosen], sets.last[chosen] + 1))
        copied = copied._replace(t=copied.t - copied.t[0] + np.int64(begins))
        # split the gap around the set; a remaining part that is too short is no longer a gap
        begin, end = ((t, *(c[chosen] for c in points)) for t, points in ((copied.t[0], sets.begin), (copied.t[-1], sets.end)))
        parts = np.array([[*self.ends[gap, :5], *begin], [*end, *self.ends[gap, 5:]]])
        self.ends = np.concatenate([np.delete(self.ends, gap, axis=0), parts[parts[:, 5] - parts[:, 0] > self.least]])
        return copied


@numba.njit(cache=True, nogil=True)
def _shortest_path(ends, candidates, duration, begin, end, centre, speed, ground):
    """The gap, the set and the time at which the set begins; the first of equal paths; gap -1 if no set fits into a gap."""
    best, best_length, limit = (-1, -1, 0.0), np.inf, np.inf
    for gap in range(len(ends)):
        t0, x0, y0, sx0, sy0, t1, x1, y1, sx1, sy1 = ends[gap]
        dx, dy = _offset(x0, y0, sx0, sy0, centre.x, centre.y, centre.sx, centre.sy, ground)
        begins = np.ceil(t0 + np.hypot(dx, dy) / speed * 1000)
        dx, dy = _offset(x1, y1, sx1, sy1, centre.x, centre.y, centre.sx, centre.sy, ground)
        available = t1 - np.hypot(dx, dy) / speed * 1000 - begins
        for k in candidates:
            if duration[k] > available:
                continue
            dx, dy = _offset(x0, y0, sx0, sy0, begin.x[k], begin.y[k], begin.sx[k], begin.sy[k], ground)
            if dx * dx + dy * dy > limit:  # the first way alone is too long: saves two roots
                continue
            last_dx, last_dy = _offset(end.x[k], end.y[k], end.sx[k], end.sy[k], x1, y1, sx1, sy1, ground)
            length = np.hypot(dx, dy) + np.hypot(last_dx, last_dy)
            if length < best_length:
                best, best_length, limit = (gap, k, begins), length, length * length * (1 + 1e-9)  # 1e-9: rounding error
    return best


@numba.njit(inline="always")
def _offset(x0, y0, sx0, sy0, x1, y1, sx1, sy1, ground):
    """Metres (east, north), the legs of :func:`mobpriv.ground.geo.distance` to the last bit."""
    dx = x1 - x0
    if ground:
        turned = dx + 180
        dx = (turned if 0 <= turned < 360 else turned % 360) - 180
    return (sx0 + sx1) / 2 * dx, (sy0 + sy1) / 2 * (y1 - y0)


def without_stays(
    traces: Traces,
    diameter: float,
    duration: float,
    plane: str = "ground",
    passes: int | None = 1,  # passes of erasing stays; None: until none is left
    max_gap: float | None = None,  # s, a longer pause ends a stay; None: pauses do not matter
) -> tuple[Traces, pd.Series]:
    """Erase small points of interest (§4.5): the records outside stays of ``duration`` s, and how many each affected user lost.

    One pass makes new stays: the records on both sides of an erased one may lie within ``diameter``, with the pause between
    them.
    """
    user = traces["user"].array
    part, candidates, erased, done = traces, np.arange(len(traces)), np.zeros(len(traces), bool), 0
    while len(candidates) and (passes is None or done < passes):
        if done:
            part = rows(traces, candidates)
        stay_table = stays(part, diameter, duration, max_gap, plane)
        small = np.zeros(len(candidates) + 1, np.int64)
        np.add.at(small, stay_table["first"].to_numpy(int), 1)
        np.add.at(small, stay_table["last"].to_numpy(int) + 1, -1)
        small = np.cumsum(small)[:-1] > 0
        erased[candidates[small]] = True
        # only a trace that lost records can have new stays
        lost = np.bincount(user.codes[candidates[small]], minlength=len(user.categories)) > 0
        candidates, done = candidates[lost[user.codes[candidates]] & ~small], done + 1
    lost = pd.Series(user.codes[erased], name="user").value_counts()
    return rows(traces, ~erased), lost.set_axis(user.categories[lost.index].rename("user"))
