"""Aggregate statistics of a set of traces, for its data card.

Every number is a mean, a quantile or a count over users; none shows a single user's track.
"""

import numba
import numpy as np
import pandas as pd

from mobpriv.ground.geo import distance, metres_per_degree, unwrapped
from mobpriv.ground.grid import SquareGrid
from mobpriv.traces.table import Traces, by_user, milliseconds

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
RANKS = 20
POINTS = 5
PLACE = 200.0  # m, side of the cells that define places; nearer successive stays are no jump
JUMP_EDGES = PLACE * 10 ** (np.arange(12) / 4)  # m: four bins a decade, from 200 m to 112 km


def describe(
    traces: Traces, stays: pd.DataFrame, rng: np.random.Generator, cell: float = 800.0, trials: int = 20_000
) -> pd.DataFrame:
    """Aggregates of a set: one row a number, with the columns ``quantity``, ``at``, ``value``, ``low``, ``high``, ``unit``.

    * ``at`` is the quantile over users (or user-days, pairs of records, jumps), the lower edge of a bin in metres, the rank, or
      the number of points.
    * ``low`` and ``high`` bound a 95 % interval if ``value`` is estimated from a sample.
    * ``stays`` is a table with the columns user, start, end, lat, lng, sorted by user and start, as from
      :func:`mobpriv.traces.profiles.stays`.
    * Days are UTC days. ``cell`` (m) and ``trials`` are parameters of :func:`uniqueness`.
    """
    users, offsets = by_user(traces)
    sizes = np.diff(offsets)
    code = np.repeat(np.arange(len(users)), sizes)
    ms = milliseconds(traces)
    day = ms // 86_400_000
    new = np.flatnonzero(np.r_[True, (code[1:] != code[:-1]) | (day[1:] != day[:-1])]) if len(ms) else np.zeros(0, np.int64)
    per_day = np.diff(np.r_[new, len(ms)])
    days = np.bincount(code[new], minlength=len(users))
    gaps = np.diff(ms)[code[1:] == code[:-1]] / 1000
    owner = users.get_indexer(stays["user"].astype(str))
    place = SquareGrid(PLACE).cells(stays["lat"].to_numpy(float), stays["lng"].to_numpy(float))
    visited, visits = np.unique(np.column_stack([owner, place]), axis=0, return_counts=True)
    jump, unique = jumps(stays), uniqueness(traces, rng, cell, trials)
    parts = [
        number("records", len(traces), "records"),
        number("users", len(users), "users"),
        number("span", (ms.max() - ms.min()) / 86_400_000 if len(ms) else np.nan, "days"),
        quantiles("days with records per user", days, "days"),
        quantiles("records per user-day", per_day, "records"),
        quantiles("time between records", gaps, "s"),
        quantiles("radius of gyration", radius_of_gyration(traces), "m"),
        quantiles("stays per user-day", np.bincount(owner, minlength=len(users)) / np.maximum(days, 1), "stays"),
        quantiles("places visited per user", np.bincount(visited[:, 0], minlength=len(users)), "places"),
        quantiles("jump length", jump, "m"),
        _rows("share of jumps", JUMP_EDGES[:-1], np.histogram(jump, JUMP_EDGES)[0] / max(len(jump), 1), "share"),
        _rows("share of visits by rank", np.arange(1, RANKS + 1), _by_rank(visited[:, 0], visits), "share"),
        unique.assign(quantity="uniqueness", unit="share of users").rename(columns={"points": "at"}),
    ]
    return pd.concat(parts, ignore_index=True)[["quantity", "at", "value", "low", "high", "unit"]]


def _rows(quantity: str, at, value, unit: str) -> pd.DataFrame:
    columns = {"quantity": quantity, "at": np.asarray(at, float), "value": value, "low": np.nan, "high": np.nan, "unit": unit}
    return pd.DataFrame(columns)


def number(quantity: str, value: float, unit: str) -> pd.DataFrame:
    return _rows(quantity, [np.nan], [float(value)], unit)


def quantiles(quantity: str, values, unit: str) -> pd.DataFrame:
    return _rows(quantity, QUANTILES, np.quantile(values, QUANTILES) if len(values) else np.nan, unit)


def radius_of_gyration(traces: Traces) -> pd.Series:
    """Root mean square distance of a user's records from their mean position, in m, per user.

    Source: González et al. 2008, Nature 453.
    """
    users, offsets = by_user(traces)
    if not len(users):
        return pd.Series(np.zeros(0), users, name="radius_of_gyration")
    n = np.diff(offsets)
    lat, lng = traces["lat"].to_numpy(), unwrapped(traces["lng"].to_numpy(), offsets)

    def mean(column):
        return np.add.reduceat(column, offsets[:-1]) / n

    centre_lat, centre_lng = mean(lat), mean(lng)
    east, north = metres_per_degree(centre_lat)
    dx = (lng - np.repeat(centre_lng, n)) * np.repeat(east, n)
    dy = (lat - np.repeat(centre_lat, n)) * np.repeat(north, n)
    return pd.Series(np.sqrt(mean(dx**2 + dy**2)), users, name="radius_of_gyration")


def jumps(stays: pd.DataFrame) -> np.ndarray:
    """Distances in m between successive stays of a user more than ``PLACE`` apart: nearer ones count as one stay."""
    user, lat, lng = stays["user"].to_numpy(), stays["lat"].to_numpy(float), stays["lng"].to_numpy(float)
    lengths = distance(lat[:-1], lng[:-1], lat[1:], lng[1:])
    return lengths[(user[1:] == user[:-1]) & (lengths > PLACE)]


def _by_rank(owner: np.ndarray, visits: np.ndarray) -> np.ndarray:
    """Mean over users of the share of visits that go to the place of rank 1, 2, …"""
    if not len(owner):
        return np.full(RANKS, np.nan)
    order = np.lexsort((-visits, owner))
    owner, visits = owner[order], visits[order]
    first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    count = np.diff(np.r_[first, len(owner)])
    rank = np.arange(len(owner)) - np.repeat(first, count)
    share = visits / np.repeat(np.add.reduceat(visits, first), count)
    seen = rank < RANKS
    return np.bincount(rank[seen], share[seen], minlength=RANKS) / len(first)


def uniqueness(
    traces: Traces, rng: np.random.Generator, cell: float = 800.0, trials: int = 20_000, points: int = POINTS
) -> pd.DataFrame:
    """How often ``p`` random points of a user, p = 1 … ``points``, occur in no other user's trace.

    Source: de Montjoye, Hidalgo, Verleysen, Blondel 2013 ("Unique in the Crowd", Scientific Reports 3, 1376).

    A point is an hour (UTC) and a cell, here a square of side ``cell`` m instead of an antenna's. Users with fewer than
    ``points`` distinct points are left out. About ``trials`` draws are divided evenly among the users; every p uses the first p
    points of the same draws. Columns points, value (mean over users), low, high (95 % Wilson interval with n = users), n.
    """
    point, owner = _points(traces, cell)
    users, start, count = np.unique(owner, return_index=True, return_counts=True)
    enough = count >= points
    draws = max(1, trials // max(int(enough.sum()), 1))
    order = np.lexsort((owner, point))  # the same pairs sorted by point, to find other users there
    by_point = np.searchsorted(point[order], np.arange(point.max(initial=-1) + 2))
    users_by_point = owner[order]
    unique = np.zeros((enough.sum(), points))
    for k, user in enumerate(np.flatnonzero(enough)):
        user_points = point[start[user] : start[user] + count[user]]
        others = _others(user_points[_drawn(len(user_points), draws, points, rng)], users[user], users_by_point, by_point)
        unique[k] = (others == 0).mean(axis=0)
    value = unique.mean(axis=0) if len(unique) else np.full(points, np.nan)
    low, high = wilson(value, len(unique))
    return pd.DataFrame({"points": np.arange(1, points + 1), "value": value, "low": low, "high": high, "n": len(unique)})


def _drawn(n: int, draws: int, points: int, rng: np.random.Generator) -> np.ndarray:
    """Positions below ``n``, ``points`` different ones a row; rows with a repetition are drawn again."""
    out = rng.integers(n, size=(draws, points))
    while (again := (np.diff(np.sort(out, axis=1), axis=1) == 0).any(axis=1)).any():
        out[again] = rng.integers(n, size=(again.sum(), points))
    return out


def _points(traces: Traces, cell: float) -> tuple[np.ndarray, np.ndarray]:
    """The distinct (hour, cell) points of each user as numbers 0, 1, …, and their users; sorted by user."""
    code = traces["user"].cat.codes.to_numpy().astype(np.int64)
    hour = milliseconds(traces) // 3_600_000
    cells = SquareGrid(cell).cells(traces["lat"].to_numpy(), traces["lng"].to_numpy())
    if not len(code):
        return code, code
    # most records repeat the point before them: remove those before sorting
    new = np.flatnonzero(np.r_[True, (np.diff(code) != 0) | (np.diff(hour) != 0) | (np.diff(cells) != 0)])
    code, hour, cells = code[new], hour[new], np.unique(cells[new], return_inverse=True)[1]
    point = np.unique((hour - hour.min()) * (cells.max() + 1) + cells, return_inverse=True)[1]
    pair = np.unique(code * (point.max() + 1) + point)
    return pair % (point.max() + 1), pair // (point.max() + 1)


@numba.njit(cache=True)
def _others(drawn, user, owner, by_point):
    """For each draw and each p, how many other users have its first p points; ``owner`` is sorted within each point."""
    out = np.zeros(drawn.shape, np.int64)
    for d in range(drawn.shape[0]):
        first = drawn[d, 0]
        for k in range(by_point[first], by_point[first + 1]):
            other = owner[k]
            if other == user:
                continue
            for p in range(drawn.shape[1]):
                users_there = owner[by_point[drawn[d, p]] : by_point[drawn[d, p] + 1]]
                place = np.searchsorted(users_there, other)
                if place == len(users_there) or users_there[place] != other:
                    break
                out[d, p] += 1
    return out


def wilson(share, n: int, z: float = 1.959964) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's 95 % interval of a share observed in ``n`` trials."""
    share = np.asarray(share, float)
    if n < 1:
        return np.zeros_like(share), np.ones_like(share)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return np.maximum(middle - half, 0), np.minimum(middle + half, 1)
