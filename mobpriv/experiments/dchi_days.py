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
LAYOUTS = 5  # placings of antennas, where users of traces are let call


class Layout(NamedTuple):
    """Antennas and the calls at them. Call records have one layout; users of traces call at several, each placed by chance."""

    data: CallSet
    pois: pd.Series  # cell -> POI


class Days(NamedTuple):
    layouts: tuple[Layout, ...]
    setting: Setting  # of all days with enough users, in every layout
    dates: tuple[str, ...]  # of the setting's days
    zone: str  # by whose clocks they begin
    callers: np.ndarray  # who calls at all on each day of the setting, at these POIs or not
    selection: str
    seed: tuple[int, ...]  # of the samples: on traces other numbers than on calls, so that two runs do not share their noise

    @property
    def data(self) -> CallSet:
        return self.layouts[0].data

    @property
    def pois(self) -> pd.Series:
        return self.layouts[0].pois

    def places(self) -> np.ndarray:
        """Latitude and longitude of each POI in each layout, (layouts, m, 2); a POI bears the name of a cell."""
        cells = (layout.data.cells.set_index(layout.data.cells["cell"].astype(str)) for layout in self.layouts)
        return np.stack([of.loc[self.setting.pois.astype(str), ["lat", "lng"]].to_numpy() for of in cells])


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
    layouts: int = LAYOUTS,
) -> Days:
    """The days from ``start`` on (empty: from the first with a call) with ``n`` users or more at ``least`` distinct POIs or more.

    ``region``: "densest" takes the m sites that stand closest together, "used" those with most calls. Traces are made calls first: m
    antennas are placed where their records are, and every user calls ``rate`` times a day, a Poisson process; so many ``layouts`` times, for
    where antennas stand is chance as well. With ``rate`` = 0 traces are refused; a ``rate`` or a ``leave_out`` beside call records is, too,
    for it would do nothing. Days begin at midnight by the clocks of ``zone`` (empty: of the data set, see
    :func:`mobpriv.experiments.days.clocks`).
    """
    whole("days", days, 1)
    whole("layouts", layouts, 1)
    zone, of_traces = clocks(dataset, zone), datasets.kind_of(dataset) == "traces"
    if of_traces:
        made = _calling(dataset, m, rate, seed, leave_out, layouts)
    else:
        for_traces(dataset, rate=rate, leave_out=leave_out)
        made = [datasets.load_calls(dataset)]
    data = made[0]
    if not len(data.calls):
        raise ValueError(f"{data.name} holds no calls")
    first = first_day(start, data.calls["t"], zone)
    wanted = [f"{date:%Y-%m-%d}" for date in pd.date_range(first, periods=days)]
    found, there = [], {}
    for k, calls in enumerate(made):
        use = calls.calls["cell"].value_counts() if region == "used" else None
        found.append(Layout(calls, pois_of(calls.cells, m, region, use)))
        there |= {(k, date): of for date, of in _by_day(found[-1], wanted, zone, least).items()}
    enough = {at: of for at, of in there.items() if len(of[0].users) >= n}
    if not there:
        raise ValueError(f"no call of {data.name} begins in the chosen days: choose another start")
    if not enough:
        most = max((len(setting.users) for setting, _ in there.values()), default=0)
        raise ValueError(
            f"no day of {data.name} has {n} users at {least} distinct POIs or more (the most on one of {len({date for _, date in there})} days "
            f"with calls: {most}): take fewer users, or let users of traces call more often"
        )
    setting = together([of._replace(layouts=np.array([k])) for (k, _), (of, _) in enough.items()])
    dates = tuple(sorted({date for _, date in enough}))
    per_day = setting.per_day
    users = f"{per_day.min()}" if per_day.min() == per_day.max() else f"{per_day.min()} to {per_day.max()}"
    selection = (
        f"{data.reading + '; ' if data.reading else ''}{m} POIs ({'those that stand closest together' if region == 'densest' else 'those with most calls'}, of "
        f"{counted(_sites(data), 'site')}); {counted(len(dates), 'day')} of {len(wanted)} from {wanted[0]} on with {n} users or more at {least} "
        f"distinct POIs or more: {users} users a day, {counted(setting.users.nunique(), 'user')} in all"
    )
    callers = np.array([calling for _, calling in enough.values()])
    return Days(tuple(found), setting, dates, zone, callers, selection, (seed, 1) if of_traces else (seed,))


def _by_day(layout: Layout, wanted: list[str], zone: str, least: int) -> dict[str, tuple[Setting, int]]:
    """Of each day with calls: who may be drawn, and how many call."""
    calls, found = layout.data.calls, {}
    t = calls["t"]
    for date in wanted:
        of = day(date, zone)
        own = calls[(t >= of.whole[0]) & (t < of.whole[1])]
        if not len(own):
            continue
        here = own[own["cell"].isin(layout.pois.index)]
        halves = (count_profiles(here, layout.pois, half).counts for half in (of.first, of.second))
        found[date] = prepare(*halves, least), own["user"].nunique()
    return found


def _sites(data: CallSet) -> int:
    return len(data.cells[["lat", "lng"]].drop_duplicates())


def _calling(dataset: str, m: int, rate: float, seed: int, leave_out: str, layouts: int) -> list[CallSet]:
    """A data set of traces whose users call, once for each layout: see :func:`mobpriv.call_events.calls_from_traces`."""
    if not rate:
        raise ValueError(f"{dataset} holds traces, and call records are needed: rate=30 lets each user call 30 times a day")
    positive("rate", rate, "calls a day")
    data, traces, whose = chosen_users(dataset, leave_out)
    placed = f"{m} antennas placed{f' in {layouts} ways' if layouts > 1 else ''}"
    how = f"calls made of traces: {placed}, {shown(rate)} calls a day and user{whose}"
    found, rngs = [], np.random.default_rng(seed).spawn(2 * layouts)
    for place, call in zip(rngs[::2], rngs[1::2], strict=True):
        made = calls_from_traces(traces, place_antennas(traces, m, place), call, rate, MINUTES)
        left_out = pd.DataFrame(
            [("drawn where no record lies within ten minutes", made.left_out, made.silent)],
            columns=["rule", "records", "users"],
        )
        found.append(CallSet(made.calls, made.cells, left_out, data.name, data.sha256, data.synthetic, data.source, how))
    return found
