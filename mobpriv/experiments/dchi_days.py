"""Choose the days of the dχ samples, from call records or from calls simulated on traces.

§VI-A has m = 29 POIs "in some region around some big city" and one day. We use every day with enough users, and a sample is of
one day, so that no figure depends on a single day.

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§VI-A.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv import datasets
from mobpriv.base.numbers import counted, shown
from mobpriv.base.ranges import positive, whole
from mobpriv.calls.events import calls_from_traces, place_antennas
from mobpriv.datasets import CallSet
from mobpriv.experiments.days import chosen_users, clocks, first_day, for_traces
from mobpriv.experiments.dchi_samples import Setting, prepare, together
from mobpriv.visits.profiles import LEAST, POIS, USERS, count_profiles, day, pois_of

MINUTES = 10.0  # a record of the trace locates a call at most so far from it in time
LAYOUTS = 5  # random layouts of antennas for calls simulated on traces


class Layout(NamedTuple):
    """Antennas and the calls at them: one layout for call records, several random ones for calls simulated on traces."""

    data: CallSet
    pois: pd.Series  # cell -> POI


class Days(NamedTuple):
    layouts: tuple[Layout, ...]
    setting: Setting  # of all days with enough users, in every layout
    dates: tuple[str, ...]  # of the setting's days
    zone: str  # time zone in which they begin
    callers: np.ndarray  # number of users with a call on each day of the setting, at these POIs or elsewhere
    selection: str
    seed: tuple[int, ...]  # of the samples; traces and calls have different seeds, so that two runs do not share their noise

    @property
    def data(self) -> CallSet:
        return self.layouts[0].data

    @property
    def pois(self) -> pd.Series:
        return self.layouts[0].pois

    def places(self) -> np.ndarray:
        """Return latitude and longitude of each POI in each layout, (layouts, m, 2); a POI has the name of a cell."""
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
    """Choose the days from ``start`` on with ``n`` users or more at ``least`` POIs or more (empty: from the first call on).

    * ``region``: "densest" takes the m sites that are closest together, "used" the sites with most calls.
    * ``rate``: calls a day of each user of traces, a Poisson process, at m antennas placed where their records are. With 0,
      traces are refused.
    * ``layouts``: how often antennas are placed and calls simulated, because the placement is random as well.
    * ``zone``: days begin at midnight there; empty: of the data set, see :func:`mobpriv.experiments.days.clocks`.

    A ``rate`` or a ``leave_out`` for call records is refused, because it would do nothing.
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
            f"with calls: {most}): take fewer users, or simulate more calls on traces"
        )
    setting = together([of._replace(layouts=np.array([k])) for (k, _), (of, _) in enough.items()])
    dates = tuple(sorted({date for _, date in enough}))
    per_day = setting.per_day
    users = f"{per_day.min()}" if per_day.min() == per_day.max() else f"{per_day.min()} to {per_day.max()}"
    selection = (
        f"{data.reading + '. ' if data.reading else ''}The POIs are {'all' if m == _sites(data) else f'{m} of'} {counted(_sites(data), 'site')}"
        f"{'' if m == _sites(data) else ', those closest together' if region == 'densest' else ', those with most calls'}. Samples are drawn from the {counted(len(dates), 'day')} of {len(wanted)} from {wanted[0]} on with {n} users or more "
        f"at {least} distinct POIs or more. These days have {users} such users each, {counted(setting.users.nunique(), 'user')} in all"
    )
    callers = np.array([calling for _, calling in enough.values()])
    return Days(tuple(found), setting, dates, zone, callers, selection, (seed, 1) if of_traces else (seed,))


def _by_day(layout: Layout, wanted: list[str], zone: str, least: int) -> dict[str, tuple[Setting, int]]:
    """Return for each day with calls its eligible users and the number of callers."""
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
    """Simulate calls on a data set of traces, once per layout: see :func:`mobpriv.calls.events.calls_from_traces`."""
    if not rate:
        raise ValueError(f"{dataset} holds traces, and call records are needed: rate=30 simulates 30 calls a day for each user")
    positive("rate", rate, "calls a day")
    data, traces, whose = chosen_users(dataset, leave_out)
    placed = f"{m} antennas{f', placed in {layouts} random ways' if layouts > 1 else ''}"
    how = f"We simulate {shown(rate)} calls per user and day on these traces, at {placed}{whose}"
    found, rngs = [], np.random.default_rng(seed).spawn(2 * layouts)
    for place, call in zip(rngs[::2], rngs[1::2], strict=True):
        made = calls_from_traces(traces, place_antennas(traces, m, place), call, rate, MINUTES)
        left_out = pd.DataFrame(
            [("drawn where no record lies within ten minutes", made.left_out, made.silent)],
            columns=["rule", "records", "users"],
        )
        found.append(CallSet(made.calls, made.cells, left_out, data.name, data.sha256, data.synthetic, data.source, how))
    return found
