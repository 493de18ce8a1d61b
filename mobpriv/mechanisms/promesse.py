"""Promesse: speed smoothing.

Source: Primault, Ben Mokhtar, Lauradoux, Brunie, "Time distortion anonymization for the publication of mobility data with high
utility", TrustCom 2015; in the thesis: §2.3, §3.4.2.

A trace is published as points that are α metres apart and evenly spread over its time. The speed is constant, so no stop can be
detected, while the places visited stay nearly where they were.
"""

from dataclasses import dataclass
from itertools import pairwise

import numba
import numpy as np
import pandas as pd

from mobpriv.base.ranges import not_negative, positive
from mobpriv.ground.geo import Points, check_plane, to_degrees, to_plane, towards, unwrapped
from mobpriv.traces.table import Traces, by_user, from_blocks, milliseconds

AT_A_TIME = 1 << 22  # samples
_SIZE_LIMITS = 1_000_000, 100  # points that any walk may publish; points a record, beyond which a larger walk is refused


@dataclass(frozen=True)
class Promesse:
    """Resample every trace at equal distances and equal times.

    * Space: the first record is the first sample. Along the records, while the next record is at least ``alpha`` from the last
      sample (straight line), a sample is put exactly ``alpha`` towards it. The rest at the end is lost.
    * The first and the last sample are dropped: a trace begins and ends where people live.
    * Time: the samples are spread evenly from the time of the first to that of the last one kept. A sample's own time is that
      of the record towards which it was put. Times are rounded up to the millisecond.

    Records are invented, so further columns are dropped. A user without a record left (her trace leaves the disc of ``alpha``
    around a sample less than twice) is missing in the result.

    Departures from the paper: distances are on the ground unless ``plane="mercator"`` (the authors'). The paper fills pauses
    and jumps like movement. Here a pause longer than ``max_gap``, or a step longer than ``max_jump``, cuts the trace into
    pieces that are smoothed separately. A walk of more than a million points, and more than 100 a record, is refused: a record
    at 0°, 0° by mistake causes one. :meth:`steps` shows this beforehand.

    >>> from mobpriv import load
    >>> traces = load("city", max_users=3).traces
    >>> len(traces), len(Promesse(alpha=200).protect(traces))
    (46475, 81111)
    """

    alpha: float = 200.0  # m, distance between two samples
    plane: str = "ground"
    max_gap: float | None = None  # s, longest pause that is filled; None: all are (the paper)
    max_jump: float | None = None  # m, longest step between two records that is filled; None: all are (the paper)

    name = "Promesse"
    random = False

    def __post_init__(self):
        check_plane(self.plane)
        positive("alpha", self.alpha, "m", least=0.001)
        if self.max_gap is not None:
            object.__setattr__(self, "max_gap", not_negative("max_gap", self.max_gap, "s", "; None fills every pause"))
        if self.max_jump is not None:
            positive("max_jump", self.max_jump, "m", hint="; None fills every jump")

    def protect(self, traces: Traces, rng: np.random.Generator | None = None) -> Traces:
        """The smoothed traces; draws nothing from ``rng``."""
        users, offsets = by_user(traces)
        time, ground = milliseconds(traces), self.plane == "ground"
        p = self._positions(traces, offsets)
        filled = self._filled(p, time, offsets)
        metres = np.r_[np.nan_to_num(filled), 0.0][: len(time)]
        if metres.sum() / self.alpha > _SIZE_LIMITS[0]:
            _check_size(self._steps(p, filled, users, offsets))
        pieces = np.r_[0, 1 + np.flatnonzero(np.isnan(filled)), len(time)] if len(time) else offsets
        # initial buffer size: lines between samples are no longer than the walk, except for scale changes along a long step
        expected = (1.01 * np.add.reduceat(metres, pieces[:-1]) / self.alpha).astype(np.int64) + 2 if len(time) else pieces[:0]
        samples, x, y, t = _walked(p, time, pieces, expected, float(self.alpha), ground)
        lat, lng = to_degrees(x, y, self.plane)
        counts = np.diff(np.r_[0, np.cumsum(samples)][np.searchsorted(pieces, offsets)])
        return from_blocks(users, counts, t, lat, lng)

    def steps(self, traces: Traces) -> pd.DataFrame:
        """The steps to be filled, one row a user, with the columns:

        * records;
        * longest: m, the longest step between two records that is filled;
        * row: of ``traces``, where that step ends; -1: there is none;
        * points: about how many will be published.
        """
        users, offsets = by_user(traces)
        p = self._positions(traces, offsets)
        return self._steps(p, self._filled(p, milliseconds(traces), offsets), users, offsets)

    def _positions(self, traces: Traces, offsets) -> Points:
        p = to_plane(traces["lat"].to_numpy(), traces["lng"].to_numpy(), self.plane)
        if self.plane == "ground":
            p = p._replace(x=unwrapped(p.x, offsets))
        return Points(*map(np.array, p))  # one memory layout: compiled once

    def _filled(self, p: Points, time, offsets) -> np.ndarray:
        """Metres from each record to the next; NaN where the walk ends: at a user's last record, a pause, a jump."""
        metres = np.hypot((p.sx[1:] + p.sx[:-1]) / 2 * np.diff(p.x), (p.sy[1:] + p.sy[:-1]) / 2 * np.diff(p.y))
        metres[offsets[1:-1] - 1] = np.nan
        if self.max_gap is not None:
            metres[np.diff(time) > 1000 * self.max_gap] = np.nan
        if self.max_jump is not None:
            metres[metres > self.max_jump] = np.nan
        return metres

    def _steps(self, p: Points, filled, users, offsets) -> pd.DataFrame:
        if not len(users):
            return pd.DataFrame({"records": [], "longest": [], "row": [], "points": []}, index=users)
        metres = np.r_[np.nan_to_num(filled, nan=0.0), 0.0]
        longest = np.maximum.reduceat(metres, offsets[:-1])
        user = np.repeat(np.arange(len(users)), np.diff(offsets))
        row = np.full(len(users), -1)
        at_longest = np.flatnonzero((metres == longest[user]) & (metres > 0))[::-1]
        row[user[at_longest]] = at_longest + 1  # in case of ties the first
        points = np.add.reduceat(metres, offsets[:-1]) // self.alpha
        return pd.DataFrame({"records": np.diff(offsets), "longest": longest, "row": row, "points": points}, index=users)


def _check_size(steps: pd.DataFrame) -> None:
    """Refuse a walk that would publish too many points; for steps that long the number is nearly exact."""
    points, records = steps["points"].sum(), steps["records"].sum()
    max_points, per_record = _SIZE_LIMITS
    if points > max_points and points > per_record * records:
        user = steps["points"].idxmax()
        largest = steps.loc[user]
        raise ValueError(
            f"Promesse would publish about {points:,.0f} points from {records:,} records, at most {per_record} a record or {max_points:,} "
            f"are sane; user {user} alone {largest.points:,.0f}, with a step of {largest.longest / 1000:,.1f} km to row {largest.row:.0f}: "
            "is that position wrong? leave it out, end the walk at jumps with max_jump, or raise alpha"
        )


def _walked(p, time, pieces, expected, alpha, ground):
    """How many samples each piece keeps, and the kept samples of all pieces in order: x, y and t in ms.

    ``expected``: the expected number of samples of each piece; a piece with more is walked again.
    """
    samples, parts = np.zeros(len(expected), np.int64), [(np.empty(0), np.empty(0), np.empty(0, np.int64))]
    # some pieces at a time, because buffers for all of them would double the memory
    borders = np.unique(np.r_[np.searchsorted(np.cumsum(expected), np.arange(0, expected.sum(), AT_A_TIME)), len(expected)])
    for a, b in pairwise(borders):
        sizes = expected[a:b].copy()
        while True:
            starts = np.r_[0, np.cumsum(sizes)]
            sample_counts, *scratch = _walk_each(p, pieces[a : b + 1], starts, alpha, ground)
            if (sample_counts <= sizes).all():
                break
            sizes = np.maximum(sizes, sample_counts)
        samples[a:b] = np.maximum(sample_counts - 2, 0)  # all but the first and the last
        parts.append(_kept(time, *scratch, starts, np.r_[0, np.cumsum(samples[a:b])]))
    return samples, *map(np.concatenate, zip(*parts, strict=True))


@numba.njit(cache=True)
def _walk(p, start, end, alpha, ground, x, y, head):
    """Sample the records start … end−1; return the number of samples, and write as many as there is room for.

    ``head[s]`` is the record towards which sample s was put.
    """
    px, py, sx, sy = p.x[start], p.y[start], p.sx[start], p.sy[start]  # the last sample
    x[0], y[0], head[0] = px, py, start
    n = 1
    for i in range(start + 1, end):
        while True:
            dx, dy = p.x[i] - px, p.y[i] - py
            d = np.sqrt((0.5 * (sx + p.sx[i]) * dx) ** 2 + (0.5 * (sy + p.sy[i]) * dy) ** 2)
            if d < alpha:
                break
            px, py, sx, sy = towards(px, py, sx, sy, dx, dy, alpha, d, ground)
            if n < len(x):
                x[n], y[n], head[n] = px, py, i
            n += 1
    return n


@numba.njit(cache=True, parallel=True)
def _walk_each(p, pieces, starts, alpha, ground):
    """The samples of each piece, in the columns from its start on, and their number, even if there is no room for all."""
    sample_counts, size = np.zeros(len(pieces) - 1, np.int64), starts[-1]
    x, y, head = np.empty(size), np.empty(size), np.empty(size, np.int64)
    for k in numba.prange(len(sample_counts)):
        a, b = starts[k], starts[k + 1]
        sample_counts[k] = _walk(p, pieces[k], pieces[k + 1], alpha, ground, x[a:b], y[a:b], head[a:b])
    return sample_counts, x, y, head


@numba.njit(cache=True, parallel=True)
def _kept(time, wx, wy, head, starts, ends):
    """The samples without each piece's first and last, in order, and their times in ms."""
    x, y, t = np.empty(ends[-1]), np.empty(ends[-1]), np.empty(ends[-1], np.int64)
    for k in numba.prange(len(ends) - 1):
        n, a = ends[k + 1] - ends[k], starts[k] + 1
        if n == 0:
            continue
        first, last = time[head[a]], time[head[a + n - 1]]
        for s in range(n):
            x[ends[k] + s], y[ends[k] + s] = wx[a + s], wy[a + s]
            # in whole numbers, rounded up: −((−a) // b) is the ceiling of a / b
            t[ends[k] + s] = first - (-s * (last - first)) // max(n - 1, 1)
    return x, y, t
