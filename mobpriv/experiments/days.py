"""Which days of a data set, whose, and where the halves meet: decided once for all experiments on traces (thesis §3.4.3)."""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from mobpriv.datasets import DATASETS, Dataset, data_folder, load
from mobpriv.datasets.times import known_zone
from mobpriv.numbers import counted, shown
from mobpriv.traces import EARLIEST, LATEST, Traces, by_user, most_active_days, rows, same_person, split_in_half, within

CENTURY = 36_525  # days


class Choice(NamedTuple):
    data: Dataset
    traces: Traces  # of the chosen users and days
    first: pd.Timestamp  # where the days begin
    selection: str  # in words


class Setting(NamedTuple):
    data: Dataset
    known: Traces  # the training half, KD
    secret: Traces  # the half to protect, publish and attack, UD
    users: pd.Index  # the attacked users: those with records in the second half
    person: dict[str, str]  # a second name of one person -> her first name
    selection: str  # all of this in words


def chosen_users(dataset: str, leave_out: str = "", most: int = 0, begins: str = "") -> tuple[Dataset, Traces, str]:
    """A data set, the records of some of its users, and how it was read and who they are in words ("" for everybody).

    ``leave_out`` names users, separated by commas. ``most`` keeps the first so many by name of the others, whose name begins with
    ``begins``; 0 keeps all, however they are called. A part of a large table is read in seconds.
    """
    unwanted = tuple(name.strip() for name in leave_out.split(",") if name.strip())
    data = _read_once(dataset, most, unwanted if most else (), begins if most else "", _stamp(dataset))
    names = data.names or tuple(data.traces["user"].cat.categories)
    unknown = sorted(set(unwanted) - set(names))
    if unknown:
        raise ValueError(f"leave_out names users that the data set does not have: {', '.join(unknown)}")
    traces = data.traces
    if unwanted and not most:
        traces = rows(traces, ~traces["user"].isin(unwanted).to_numpy())
    words = [data.reading, f"left out: {', '.join(unwanted)}" if unwanted else ""]
    if most:
        words.append(f"only the first {len(by_user(traces)[0])} of {shown(len(names))} users, by name")
    return data, traces, "".join(f"; {part}" for part in words if part)


@lru_cache(maxsize=1)  # several settings of a notebook are made of one table
def _read_once(dataset: str, most: int, leave_out: tuple[str, ...], begins: str, stamp) -> Dataset:
    return load(dataset, most=most, leave_out=leave_out, begins=begins)


def _stamp(dataset: str) -> tuple:
    """What changes when the file of a data set does."""
    path = data_folder() / f"{dataset}.parquet" if dataset in DATASETS else Path(dataset)
    return (path, path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else (path,)


def choose(
    dataset: str = "city",
    start: str = "",  # first day, ISO date or time; "" chooses the 30 most active successive days
    days: int = 30,
    leave_out: str = "",  # users to leave out, separated by commas
    most: int = 0,  # keep only so many users, the first by name; 0 keeps all
    begins: str = "",  # these begin so
) -> Choice:
    """A data set and its ``days`` most active successive days (§3.4.3)."""
    if days > CENTURY:
        raise ValueError(f"days must be at most {CENTURY:,}, a century (got {days:,})")
    data, traces, whose = chosen_users(dataset, leave_out, most, begins)
    try:
        first = pd.Timestamp(start) if start else most_active_days(traces, days)
    except ValueError as error:
        raise ValueError(f"start must be an ISO date or time (got {start!r})" if start else str(error)) from None
    first = first.tz_localize("UTC") if first.tzinfo is None else first.tz_convert("UTC")
    traces = within(traces, first, days)
    if not len(traces):
        raise ValueError(f"no records in the {days} days from {first}: choose another start")
    words = f"{len(by_user(traces)[0])} users, {shown(len(traces))} records in the {days} days from {first:%Y-%m-%d %H:%M} UTC"
    words += f" (they span {_span(traces):.1f} days)" if _span(traces) < days - 1 else ""
    return Choice(data, traces, first, words + whose)


def in_halves(choice: Choice, rule: str, days: int, remedy: str = "choose fewer days or another start") -> Setting:
    """The chosen records cut in two by a ``rule`` of :func:`mobpriv.traces.split_in_half`: a known half and one to attack.

    ``remedy``: what a reader of the page can do where a half is empty.
    """
    data, traces, first, words = choice
    known, secret = split_in_half(traces, rule, first, days)
    users = by_user(secret)[0]
    if not len(users) or not len(known):
        half = "training" if not len(known) else "attacked"
        raise ValueError(f"the {half} half is empty: the records span {_span(traces):.1f} days, days is {days}: {remedy}")
    if len(by_user(traces)[0]) < 2:
        raise ValueError(f"re-identification needs at least two users (got {', '.join(by_user(traces)[0])} alone)")
    in_words = {
        "calendar": f"the first {days / 2:g} days and the rest",
        "set": "before and after the middle of the set's time span",
        "user": "before and after the middle of each user's own time span",
    }
    there = len(users.intersection(by_user(known)[0]))
    if not there:
        raise ValueError(
            f"nobody can be re-identified: none of the {counted(len(users), 'attacked user')} has a record in the training half "
            f"({in_words[rule]}). Do the names of users change with time?"
        )
    words += (
        f"; halves: {in_words[rule]}; {len(users)} users attacked, {there} of whom can be found: they are in the training half"
    )
    return Setting(data, known, secret, users, same_person(traces), words)


def _span(traces: Traces) -> float:
    """Days from the first record to the last."""
    return (traces["t"].max() - traces["t"].min()) / pd.Timedelta(days=1)


def clocks(dataset: str, zone: str = "") -> str:
    """By whose clocks days begin: ``zone``, or of a known data set its own. ValueError where nobody says it: a guess would shift days."""
    zone = zone or (DATASETS[dataset].zone if dataset in DATASETS else "")
    if not zone:
        raise ValueError(
            f"by whose clocks do the days of {Path(dataset).name} begin? Say the time zone, for instance zone=Europe/Paris"
        )
    known_zone(zone)
    return zone


def first_day(start: str, t: pd.Series, zone: str) -> pd.Timestamp:
    """The day ``start``, or that of the first of the times ``t`` by the clocks of ``zone``, without a zone."""
    if not start:
        return t.min().tz_convert(zone).tz_localize(None).normalize()
    try:
        first = pd.Timestamp(start)
    except ValueError:
        first = pd.NaT
    if first is pd.NaT or not EARLIEST.year <= first.year < LATEST.year:
        raise ValueError(f"start must be a date in 1980 … 2099, as 2024-10-07 (got {start!r})")
    return first.tz_convert(zone).tz_localize(None) if first.tzinfo else first


def for_traces(dataset: str, **given) -> None:
    """ValueError where a parameter that only traces need, whose users are let call, is given beside call records: it would do nothing."""
    for name, value in given.items():
        if value:
            raise ValueError(f"{name} is for traces, whose users are let call: {dataset} holds calls already (got {value!r})")
