"""Choose the days, the users and the halves of a data set (thesis §3.4.3), and simulate calls on traces."""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.numbers import counted, shown
from mobpriv.base.ranges import positive, whole
from mobpriv.calls.events import calls_from_traces, place_antennas
from mobpriv.calls.table import Cells, as_cells
from mobpriv.datasets import DATASETS, CallSet, Dataset, data_folder, load
from mobpriv.datasets.times import known_zone
from mobpriv.ground.geo import across_the_date_line, metres_per_degree
from mobpriv.traces.table import (
    EARLIEST,
    LATEST,
    Traces,
    by_user,
    most_active_days,
    rows,
    same_person,
    split_in_half,
    within_days,
)

_CENTURY_DAYS = 36_525


class Choice(NamedTuple):
    data: Dataset
    traces: Traces  # of the chosen users and days
    first: pd.Timestamp  # beginning of the days
    selection: str  # in words, without a full stop at the end


class AttackSetting(NamedTuple):
    data: Dataset
    known: Traces  # the training half, KD
    secret: Traces  # the half to protect, publish and attack, UD
    users: pd.Index  # the attacked users: those with records in the second half
    person: dict[str, str]  # a second name of one person -> her first name
    selection: str  # all of this in words, without a full stop at the end


def chosen_users(dataset: str, leave_out: str = "", max_users: int = 0, begins: str = "") -> tuple[Dataset, Traces, str]:
    """Load a data set and the records of some of its users.

    The third value is a description of how the file was read and of the chosen users; "" for all users. ``leave_out`` names
    users, separated by commas. ``max_users`` keeps the first so many of the other users by name whose name begins with ``begins``; 0
    keeps all, whatever their names. A part of a large table is read in seconds.
    """
    unwanted = tuple(name.strip() for name in leave_out.split(",") if name.strip())
    data = _read_once(dataset, max_users, unwanted if max_users else (), begins if max_users else "", _stamp(dataset))
    names = data.names or tuple(data.traces["user"].cat.categories)
    unknown = sorted(set(unwanted) - set(names))
    if unknown:
        raise ValueError(f"leave_out names users that the data set does not have: {', '.join(unknown)}")
    traces = data.traces
    if unwanted and not max_users:
        traces = rows(traces, ~traces["user"].isin(unwanted).to_numpy())
    words = [data.reading, f"We leave out the user{'s' if len(unwanted) > 1 else ''} {', '.join(unwanted)}" if unwanted else ""]
    if max_users:
        kept = len(by_user(traces)[0])
        words.append(f"We use only the {kept} users (of {shown(len(names))}) whose names come first in alphabetical order")
    return data, traces, "".join(f". {part[0].upper()}{part[1:]}" for part in words if part)


@lru_cache(maxsize=1)  # a notebook makes several settings of one table
def _read_once(dataset: str, max_users: int, leave_out: tuple[str, ...], begins: str, stamp) -> Dataset:
    return load(dataset, max_users=max_users, leave_out=leave_out, begins=begins)


def _stamp(dataset: str) -> tuple:
    """Identify the file's state: the value changes when the file does."""
    path = data_folder() / f"{dataset}.parquet" if dataset in DATASETS else Path(dataset)
    return (path, path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else (path,)


def choose(
    dataset: str = "city",
    start: str = "",  # first day, ISO date or time; "" chooses the 30 most active successive days
    days: int = 30,
    leave_out: str = "",  # users to leave out, separated by commas
    max_users: int = 0,  # keep only the first so many users by name; 0 keeps all
    begins: str = "",  # with ``max_users``: only users whose name begins so
) -> Choice:
    """Choose the ``days`` most active successive days of a data set (§3.4.3)."""
    if days > _CENTURY_DAYS:
        raise ValueError(f"days must be at most {_CENTURY_DAYS:,}, a century (got {days:,})")
    data, traces, description = chosen_users(dataset, leave_out, max_users, begins)
    try:
        first = pd.Timestamp(start) if start else most_active_days(traces, days)
    except ValueError as error:
        raise ValueError(f"start must be an ISO date or time (got {start!r})" if start else str(error)) from None
    first = first.tz_localize("UTC") if first.tzinfo is None else first.tz_convert("UTC")
    traces = within_days(traces, first, days)
    if not len(traces):
        raise ValueError(f"no records in the {days} days from {first}: choose another start")
    words = f"The data have {counted(len(by_user(traces)[0]), 'user')} with {shown(len(traces))} records in the {days} days from {first:%Y-%m-%d %H:%M} UTC"
    words += f" (the records span {days_spanned(traces):.1f} days)" if days_spanned(traces) < days - 1 else ""
    return Choice(data, traces, first, words + description)


def in_halves(choice: Choice, rule: str, days: int, remedy: str = "choose fewer days or another start") -> AttackSetting:
    """Cut the chosen records into a training half and an attacked half, by a ``rule`` of :func:`mobpriv.traces.table.split_in_half`.

    ``remedy``: what the reader of the page can do if a half is empty.
    """
    data, traces, first, words = choice
    known, secret = split_in_half(traces, rule, first, days)
    users = by_user(secret)[0]
    if not len(users) or not len(known):
        half = "training" if not len(known) else "attacked"
        raise ValueError(
            f"the {half} half is empty: the records span {days_spanned(traces):.1f} days, days is {days}: {remedy}"
        )
    if len(by_user(traces)[0]) < 2:
        raise ValueError(f"re-identification needs at least two users (got only {', '.join(by_user(traces)[0])})")
    in_words = {
        "calendar": f"The first {days / 2:g} days are the training half; the remaining days are the test half, which we attack",
        "set": "The records before the middle of the data set's time span are the training half; the remaining records are the test half, which we attack",
        "user": "Each user's records before the middle of her own time span are the training half; the remaining records are the test half, which we attack",
    }
    n_known = len(users.intersection(by_user(known)[0]))
    if not n_known:
        raise ValueError(
            f"nobody can be re-identified: none of the {counted(len(users), 'attacked user')} has a record in the training half. "
            f"{in_words[rule]}. Do the names of users change with time?"
        )
    of_all = "all" if n_known == len(users) else f"{n_known} of the"
    words += f". {in_words[rule]}. The training half has records of {of_all} {counted(len(users), 'attacked user')}"
    return AttackSetting(data, known, secret, users, same_person(traces), words)


def days_spanned(traces: Traces) -> float:
    """Return the days from the first record to the last."""
    return (traces["t"].max() - traces["t"].min()) / pd.Timedelta(days=1)


def day_zone(dataset: str, zone: str = "") -> str:
    """Return the time zone in which days begin: ``zone``, or the own zone of a known data set.

    ValueError if neither is given, because a guess would shift days.
    """
    zone = zone or (DATASETS[dataset].zone if dataset in DATASETS else "")
    if not zone:
        raise ValueError(
            f"the time zone of {Path(dataset).name} is unknown, so it is unclear when its days begin: give it, for instance zone=Europe/Paris"
        )
    known_zone(zone)
    return zone


def first_day(start: str, t: pd.Series, zone: str) -> pd.Timestamp:
    """Return the day ``start``, or the day of the earliest of the times ``t`` in ``zone``; the result has no zone."""
    if not start:
        return t.min().tz_convert(zone).tz_localize(None).normalize()
    try:
        first = pd.Timestamp(start)
    except ValueError:
        first = pd.NaT
    if first is pd.NaT or not EARLIEST.year <= first.year < LATEST.year:
        raise ValueError(f"start must be a date in 1980 … 2099, as 2024-10-07 (got {start!r})")
    return first.tz_convert(zone).tz_localize(None) if first.tzinfo else first


def check_no_trace_parameters(dataset: str, **parameters) -> None:
    """Raise ValueError if a parameter for simulated calls on traces is given for call records, where it would do nothing."""
    for name, value in parameters.items():
        if value:
            raise ValueError(
                f"{name} is for traces, on which calls are simulated: {dataset} already holds calls (got {value!r})"
            )


_LOCATED_WITHIN_MINUTES = 10.0  # a record of the trace locates a call at most so far from it in time


def simulated_calls(
    dataset: str, rate: float, antennas: int, seed: int, leave_out: str = "", layouts: int = 1, towns: int = 0
) -> list[CallSet]:
    """Simulate calls on a data set of traces, once per random layout of the antennas: see :func:`mobpriv.calls.events.calls_from_traces`.

    ``towns`` > 0: the antennas are assigned to so many municipalities.
    """
    positive("rate", rate, "calls a day")
    data, traces, description = chosen_users(dataset, leave_out)
    placed = counted(antennas, "antenna") + (f", which we place at random {layouts} times" if layouts > 1 else "")
    location = f"{placed} in {counted(towns, 'municipality', 'municipalities')}" if towns else placed
    call_description = f"From the traces we simulate {shown(rate)} calls per user and day, at {location}{description}"
    call_sets, (*rngs, join) = [], np.random.default_rng(seed).spawn(2 * layouts + 1)
    for place, call in zip(rngs[::2], rngs[1::2], strict=True):
        cells = place_antennas(traces, antennas, place)
        cells = with_municipalities(cells, towns, join) if towns else cells
        simulated = calls_from_traces(traces, cells, call, rate, _LOCATED_WITHIN_MINUTES)
        left_out = pd.DataFrame(
            [("calls drawn where the user has no record within ten minutes", simulated.left_out, simulated.silent)],
            columns=["rule", "records", "users"],
        )
        source = data.name, data.sha256, data.synthetic, data.source
        call_sets.append(CallSet(simulated.calls, simulated.cells, left_out, *source, call_description))
    return call_sets


def with_municipalities(antennas: Cells, towns: int, rng: np.random.Generator) -> Cells:
    """Assign antennas without a map to municipalities, by k-means of their places in metres.

    They are named T1, T2, … from south to north. ValueError for more municipalities than antennas.
    """
    from sklearn.cluster import KMeans  # imported here: takes a second that call records do not need

    whole("towns", towns, 1, len(antennas), f"must be a whole number from 1 to the {len(antennas)} antennas")
    east, north = (float(scale[0]) for scale in metres_per_degree(np.array([antennas["lat"].median()])))
    metres = np.column_stack([antennas["lat"], across_the_date_line(antennas["lng"].to_numpy())]) * [north, east]
    clusters = KMeans(towns, n_init=10, random_state=int(rng.integers(2**31 - 1))).fit(metres)
    place = np.empty(towns, np.int64)
    place[np.lexsort(clusters.cluster_centers_.T[::-1])] = np.arange(towns)
    return as_cells(
        antennas.assign(municipality=[f"T{place[cluster] + 1:0{len(str(towns))}d}" for cluster in clusters.labels_])
    )
