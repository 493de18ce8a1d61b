"""The setting that all experiments of the thesis's chapter 3 share (§3.4.2 to §3.4.4): days, halves, mechanisms, attacks.

Text and program of the thesis differ. Every experiment runs under one of two *readings*, named beside every rate:

=============  ===================================  ========================================================
\\             ``"text"``, the default              ``"program"``, what the author's published code does
=============  ===================================  ========================================================
halves         first 15 days, the rest              before and after the middle of each user's own time span
metres         on the ground                        of a Mercator plane (0.79 m on the ground in San Francisco)
POI-Attack     POIs                                 stays, so that a place weighs as often as it was visited
PIT-Attack     states by falling weight             by rising weight, scores in whole numbers
=============  ===================================  ========================================================
"""

from typing import NamedTuple

import pandas as pd

from mobpriv.attacks import APAttack, PITAttack, POIAttack
from mobpriv.datasets import Dataset, load
from mobpriv.mechanisms import W4M, GeoI, Nothing, Promesse
from mobpriv.traces import Traces, by_user, most_active_days, rows, same_person, split_in_half, within

READINGS = ("text", "program")


class Setting(NamedTuple):
    data: Dataset
    known: Traces  # the training half, KD
    secret: Traces  # the half to protect, publish and attack, UD
    users: pd.Index  # the attacked users: those with records in the second half
    person: dict[str, str]  # a second name of one person -> her first name
    selection: str  # all of this in words


class Choice(NamedTuple):
    data: Dataset
    traces: Traces  # of the chosen users and days
    first: pd.Timestamp  # where the days begin
    selection: str  # in words


def choose(
    dataset: str = "city",
    start: str = "",  # first day, ISO date or time; "" chooses the 30 most active successive days
    days: int = 30,
    leave_out: str = "",  # users to leave out, separated by commas
    most: int = 0,  # keep only so many users, the first by name; 0 keeps all
) -> Choice:
    """A data set and its ``days`` most active successive days (§3.4.3)."""
    data = load(dataset)
    traces = data.traces
    unwanted = [name.strip() for name in leave_out.split(",") if name.strip()]
    unknown = sorted(set(unwanted) - set(traces["user"].cat.categories))
    if unknown:
        raise ValueError(f"leave_out names users that the data set does not have: {', '.join(unknown)}")
    if unwanted:
        traces = rows(traces, ~traces["user"].isin(unwanted).to_numpy())
    if most:
        most = min(most, len(by_user(traces)[0]))
        traces = rows(traces, traces["user"].isin(by_user(traces)[0][:most]).to_numpy())
    try:
        first = pd.Timestamp(start) if start else most_active_days(traces, days)
    except ValueError as error:
        raise ValueError(f"start must be an ISO date or time (got {start!r})" if start else str(error)) from None
    first = first.tz_localize("UTC") if first.tzinfo is None else first.tz_convert("UTC")
    traces = within(traces, first, days)
    if not len(traces):
        raise ValueError(f"no records in the {days} days from {first}: choose another start")
    words = f"{len(by_user(traces)[0])} users, {len(traces):,} records in the {days} days from {first:%Y-%m-%d %H:%M} UTC"
    span = (traces["t"].max() - traces["t"].min()) / pd.Timedelta(days=1)
    words += f" (they span {span:.1f} days)" if span < days - 1 else ""
    words += f"; left out: {', '.join(unwanted)}" if unwanted else ""
    return Choice(data, traces, first, words + (f"; only the first {most} users" if most else ""))


def prepare(
    dataset: str = "city",
    reading: str = "text",
    halves: str = "",  # "" takes the reading's own rule
    start: str = "",
    days: int = 30,
    leave_out: str = "",
    most: int = 0,
) -> Setting:
    """The chosen days of a data set (see :func:`choose`) and their two halves."""
    check_reading(reading)
    data, traces, first, words = choose(dataset, start, days, leave_out, most)
    halves = halves or {"text": "calendar", "program": "user"}[reading]
    known, secret = split_in_half(traces, halves, first, days)
    users = by_user(secret)[0]
    if not len(users) or not len(known):
        span = (traces["t"].max() - traces["t"].min()) / pd.Timedelta(days=1)
        half = "training" if not len(known) else "attacked"
        raise ValueError(
            f"the {half} half is empty: the records span {span:.1f} days, days is {days}; set days to that, or another start"
        )
    if len(by_user(traces)[0]) < 2:
        raise ValueError(f"re-identification needs at least two users (got {', '.join(by_user(traces)[0])} alone)")
    in_words = {
        "calendar": f"the first {days / 2:g} days and the rest",
        "set": "before and after the middle of the set's time span",
        "user": "before and after the middle of each user's own time span",
    }
    strangers = len(users.difference(by_user(known)[0]))
    words += f"; halves: {in_words[halves]}; {len(users)} users attacked, {strangers} of them not in the training half"
    return Setting(data, known, secret, users, same_person(traces), words)


def check_reading(reading: str) -> str:
    if reading not in READINGS:
        raise ValueError(f'reading must be "text" or "program" (got {reading!r})')
    return reading


def attacks(reading: str = "text") -> list:
    """AP-, POI- and PIT-Attack as §3.4.2 configures them: cells of 800 m; stops of 200 m and 1 h."""
    if check_reading(reading) == "program":
        return [
            APAttack(800.0, plane="mercator", unit="bits"),
            POIAttack(200.0, 3600.0, plane="mercator", merged=False),
            PITAttack(200.0, 3600.0, plane="mercator", order="ascending", whole_scores=True),
        ]
    return [APAttack(800.0), POIAttack(200.0, 3600.0), PITAttack(200.0, 3600.0)]


def mechanisms(reading: str = "text") -> dict:
    """No protection, Geo-I, Promesse and W4M as §3.4.2 configures them, by the names that figures and results bear."""
    plane = {"text": "ground", "program": "mercator"}[check_reading(reading)]
    return {
        "none": Nothing(),
        "Geo-I": GeoI(epsilon=0.01, plane=plane),
        "Promesse": Promesse(alpha=200.0, plane=plane),
        "W4M": W4M(k=2, delta=600.0, plane=plane),
    }
