"""The days that the chapter on dχ draws its samples from: of call records, or of traces whose users are let call.

§VI-A of Olivier and Quertier has m = 29 POIs "in some region around some big city" and one day. Here every day with enough users serves,
and a draw is of one day: what a figure shows does not rest on the weather of a Tuesday.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv import datasets
from mobpriv.call_events import calls_from_traces, place_antennas
from mobpriv.call_profiles import LEAST, POIS, USERS, count_profiles, day, pois_of
from mobpriv.datasets import CallSet
from mobpriv.experiments.days import chosen_users, clocks, first_day, for_traces
from mobpriv.experiments.dchi_samples import Setting, prepare, together
from mobpriv.numbers import counted, shown
from mobpriv.ranges import positive, whole

MINUTES = 10.0  # how far from a call in time a record of a trace may lie that says where the caller is


class Days(NamedTuple):
    data: CallSet
    setting: Setting  # of all days with enough users
    pois: pd.Series  # cell -> POI
    dates: tuple[str, ...]  # of the setting's days
    zone: str  # by whose clocks they begin
    callers: np.ndarray  # who calls at all on each of them, at these POIs or not
    selection: str


def choose(
    dataset: str,
    start: str = "",
    days: int = 28,
    zone: str = "",
    m: int = POIS,
    region: str = "densest",
    n: int = USERS,
    least: int = LEAST,
    rate: float = 0.0,
    seed: int = 1,
    leave_out: str = "",
) -> Days:
    """The days from ``start`` on (empty: from the first with a call) with ``n`` users or more at ``least`` distinct POIs or more.

    ``region``: "densest" takes the m sites that stand closest together, "used" those with most calls. Traces are made calls first: m
    antennas are placed where their records are, and every user calls ``rate`` times a day, a Poisson process; with ``rate`` = 0 traces are
    refused; a ``rate`` or a ``leave_out`` beside call records is, too, for it would do nothing. Days begin at midnight by the clocks of ``zone``
    (empty: of the data set, see :func:`mobpriv.experiments.days.clocks`).
    """
    whole("days", days, 1)
    zone = clocks(dataset, zone)
    if datasets.kind_of(dataset) == "traces":
        data = _calling(dataset, m, rate, seed, leave_out)
    else:
        for_traces(dataset, rate=rate, leave_out=leave_out)
        data = datasets.load_calls(dataset)
    use = data.calls["cell"].value_counts() if region == "used" else None
    pois = pois_of(data.cells, m, region, use)
    if not len(data.calls):
        raise ValueError(f"{data.name} holds no calls")
    first = first_day(start, data.calls["t"], zone)
    wanted = [f"{date:%Y-%m-%d}" for date in pd.date_range(first, periods=days)]
    t, there, callers = data.calls["t"], {}, {}
    for date in wanted:
        of = day(date, zone)
        own = data.calls[(t >= of.whole[0]) & (t < of.whole[1])]
        if not len(own):
            continue
        callers[date] = own["user"].nunique()
        own = own[own["cell"].isin(pois.index)]
        halves = (count_profiles(own, pois, half).counts for half in (of.first, of.second))
        there[date] = prepare(*halves, least)
    enough = {date: setting for date, setting in there.items() if len(setting.users) >= n}
    if not enough:
        most = max((len(setting.users) for setting in there.values()), default=0)
        raise ValueError(
            f"no day of {data.name} has {n} users at {least} distinct POIs or more (the most on one of {len(there)} days with calls: {most}): "
            "take fewer users, or let users of traces call more often"
        )
    setting = together(list(enough.values()))
    per_day = setting.per_day
    users = f"{per_day.min()}" if per_day.min() == per_day.max() else f"{per_day.min()} to {per_day.max()}"
    selection = (
        f"{data.reading + '; ' if data.reading else ''}{m} POIs ({'those that stand closest together' if region == 'densest' else 'those with most calls'}, of "
        f"{counted(_sites(data), 'site')}); {counted(len(enough), 'day')} of {len(wanted)} from {wanted[0]} on with {n} users or more at {least} "
        f"distinct POIs or more: {users} users a day, {counted(setting.users.nunique(), 'user')} in all"
    )
    return Days(data, setting, pois, tuple(enough), zone, np.array([callers[date] for date in enough]), selection)


def _sites(data: CallSet) -> int:
    return len(data.cells[["lat", "lng"]].drop_duplicates())


def _calling(dataset: str, m: int, rate: float, seed: int, leave_out: str) -> CallSet:
    """A data set of traces whose users call: see :func:`mobpriv.call_events.calls_from_traces`."""
    if not rate:
        raise ValueError(f"{dataset} holds traces, and call records are needed: rate=30 lets each user call 30 times a day")
    positive("rate", rate, "calls a day")
    data, traces, whose = chosen_users(dataset, leave_out)
    place, call = np.random.default_rng(seed).spawn(2)
    made = calls_from_traces(traces, place_antennas(traces, m, place), call, rate, MINUTES)
    left_out = pd.DataFrame(
        [("drawn where no record lies within ten minutes", made.left_out, made.silent)], columns=["rule", "records", "users"]
    )
    how = f"calls made of traces: {m} antennas placed, {shown(rate)} calls a day and user{whose}"
    return CallSet(made.calls, made.cells, left_out, data.name, data.sha256, data.synthetic, data.source, how)
