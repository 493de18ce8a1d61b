"""Aggregate statistics of a set of call records, for its data card, with published values for comparison.

Every number is a mean, a quantile or a count over users; none shows a single user's calls.
"""

import numpy as np
import pandas as pd

from mobpriv.calls.table import Calls, Cells
from mobpriv.datasets.statistics import number, quantiles, radius_of_gyration
from mobpriv.traces.table import by_user, from_blocks, milliseconds

_NIGHT = 8  # o'clock: end of the night, which begins at midnight: the first slot of PRIMULE's day
_MANY = 6  # distinct cells of a day: the criterion of dχ's sample (§VI-A)
GAPS = 10  # least number of times between calls for a burstiness


def describe_calls(calls: Calls, cells: Cells, zone: str = "UTC") -> pd.DataFrame:
    """Aggregates of call records: one row a number, with the columns ``quantity``, ``at``, ``value``, ``unit``.

    * ``at`` is the quantile over users (or user-days, or pairs of successive calls of a user), missing for other numbers.
    * Days and hours are those of ``zone``. The days of a user are all days from the set's first call to its last; user-days are
      days with a call. The night ends at :data:`_NIGHT`.
    * A user's burstiness is (σ − μ)/(σ + μ) of the times between successive calls, for users with at least :data:`GAPS` of
      them. It is −1 for a clock, 0 for a Poisson process, towards 1 for bursts.
    * The radius of gyration is over a user's calls.

    Sources: Goh & Barabási 2008 (``doi:10.1209/0295-5075/81/48002``) for the burstiness; González et al. 2008
    (``doi:10.1038/nature06958``) for the radius of gyration.
    """
    users, offsets = by_user(calls)
    count, ms = np.diff(offsets), milliseconds(calls)
    code, cell = np.repeat(np.arange(len(users)), count), calls["cell"].cat.codes.to_numpy().astype(np.int64)
    local = calls["t"].dt.tz_convert(zone).dt.tz_localize(None).to_numpy().astype("datetime64[s]").astype(np.int64)
    day = local // 86_400
    days = int(day.max() - day.min()) + 1 if len(day) else 0
    per_day, cells_a_day = _user_days(code, day, cell)
    many = cells_a_day >= _MANY
    gap = np.diff(ms)[code[1:] == code[:-1]] / 1000
    mean = len(calls) / (len(users) * days) if days else np.nan
    parts = [
        number("records", len(calls), "calls"),
        number("users", len(users), "users"),
        number("cells with calls", len(np.unique(cell)), "cells"),
        number("municipalities with calls", cells["municipality"].iloc[np.unique(cell)].nunique(), "municipalities"),
        number("days", days, "days"),
        number("calls per user and day, mean", mean, "calls"),
        quantiles("calls per user and day", count / max(days, 1), "calls"),
        quantiles("calls per user-day", per_day, "calls"),
        quantiles("distinct cells per user-day", cells_a_day, "cells"),
        number(f"share of user-days with at least {_MANY} cells", _mean(many), "share"),
        number(f"calls of a user-day with at least {_MANY} cells, mean", _mean(per_day[many]), "calls"),
        number(f"cells of a user-day with at least {_MANY} cells, mean", _mean(cells_a_day[many]), "cells"),
        quantiles("time between calls", gap, "s"),
        number("burstiness of all calls", _burstiness(gap, np.zeros(len(gap), np.int64), 1)[0] if len(gap) else np.nan, "B"),
        quantiles("burstiness per user", burstiness(calls).dropna().to_numpy(), "B"),
        number("share of night calls", _mean(local % 86_400 < 3_600 * _NIGHT), "share"),
        number("share of calls on weekends", _mean((day + 3) % 7 >= 5), "share"),  # 1970-01-01 was a Thursday
        number("share of calls that end in another cell", _mean((calls["end_cell"].cat.codes != cell).to_numpy()), "share"),
        quantiles("radius of gyration", radius_of_gyration(_at_cells(calls, cells)).to_numpy(), "m"),
        quantiles("share of the most used cell", _top_share(code, cell, count), "share"),
    ]
    return pd.concat(parts, ignore_index=True)[["quantity", "at", "value", "unit"]]


def burstiness(calls: Calls) -> pd.Series:
    """(σ − μ)/(σ + μ) of the times between calls, Equation (1) of Goh & Barabási 2008, per user with at least :data:`GAPS`.

    NaN if all times are 0.
    """
    users, offsets = by_user(calls)
    code = np.repeat(np.arange(len(users)), np.diff(offsets))
    same = code[1:] == code[:-1]
    b = _burstiness(np.diff(milliseconds(calls))[same] / 1000, code[1:][same], len(users))
    enough = np.diff(offsets) > GAPS
    return pd.Series(b[enough], users[enough], name="burstiness")


def _burstiness(gap: np.ndarray, owner: np.ndarray, owners: int) -> np.ndarray:
    n = np.maximum(np.bincount(owner, minlength=owners), 1)
    mean = np.bincount(owner, gap, owners) / n
    spread = np.sqrt(np.bincount(owner, (gap - mean[owner]) ** 2, owners) / n)
    total = spread + mean
    return np.divide(spread - mean, total, out=np.full(owners, np.nan), where=total > 0)


def _user_days(code: np.ndarray, day: np.ndarray, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The calls and the distinct cells of each user-day with a call."""
    if not len(code):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    first = np.flatnonzero(np.r_[True, (code[1:] != code[:-1]) | (day[1:] != day[:-1])])
    number = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(code)]))
    pairs = np.unique(number * (cell.max() + 1) + cell) // (cell.max() + 1)
    return np.diff(np.r_[first, len(code)]), np.bincount(pairs, minlength=len(first))


def _top_share(code: np.ndarray, cell: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Per user the share of the calls in her most used cell."""
    if not len(code):
        return np.zeros(0)
    pair, calls = np.unique(code * (cell.max() + 1) + cell, return_counts=True)
    owner = pair // (cell.max() + 1)
    return np.maximum.reduceat(calls, np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])) / count


def _at_cells(calls: Calls, cells: Cells) -> pd.DataFrame:
    """The calls as traces of the cells that serve them."""
    users, offsets = by_user(calls)
    row = calls["cell"].cat.codes.to_numpy()
    lat, lng = cells["lat"].to_numpy()[row], cells["lng"].to_numpy()[row]
    return from_blocks(users, np.diff(offsets), milliseconds(calls), lat, lng)


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else np.nan
