"""Which days of a data set, whose, and where the halves meet: decided once for all experiments on traces (thesis §3.4.3)."""

from typing import NamedTuple

import pandas as pd

from mobpriv.datasets import Dataset, load
from mobpriv.numbers import shown
from mobpriv.traces import Traces, by_user, most_active_days, rows, same_person, split_in_half, within

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


def without_users(traces: Traces, leave_out: str) -> tuple[Traces, str]:
    """The records of everybody but the users named in ``leave_out``, separated by commas; and that in words ("" for nobody)."""
    unwanted = [name.strip() for name in leave_out.split(",") if name.strip()]
    unknown = sorted(set(unwanted) - set(traces["user"].cat.categories))
    if unknown:
        raise ValueError(f"leave_out names users that the data set does not have: {', '.join(unknown)}")
    if not unwanted:
        return traces, ""
    return rows(traces, ~traces["user"].isin(unwanted).to_numpy()), f"; left out: {', '.join(unwanted)}"


def choose(
    dataset: str = "city",
    start: str = "",  # first day, ISO date or time; "" chooses the 30 most active successive days
    days: int = 30,
    leave_out: str = "",  # users to leave out, separated by commas
    most: int = 0,  # keep only so many users, the first by name; 0 keeps all
) -> Choice:
    """A data set and its ``days`` most active successive days (§3.4.3)."""
    if days > CENTURY:
        raise ValueError(f"days must be at most {CENTURY:,}, a century (got {days:,})")
    data = load(dataset)
    traces, left_out = without_users(data.traces, leave_out)
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
    words = f"{len(by_user(traces)[0])} users, {shown(len(traces))} records in the {days} days from {first:%Y-%m-%d %H:%M} UTC"
    words += f" (they span {_span(traces):.1f} days)" if _span(traces) < days - 1 else ""
    return Choice(data, traces, first, words + left_out + (f"; only the first {most} users" if most else ""))


def in_halves(choice: Choice, rule: str, days: int) -> Setting:
    """The chosen records cut in two by a ``rule`` of :func:`mobpriv.traces.split_in_half`: a known half and one to attack."""
    data, traces, first, words = choice
    known, secret = split_in_half(traces, rule, first, days)
    users = by_user(secret)[0]
    if not len(users) or not len(known):
        half = "training" if not len(known) else "attacked"
        raise ValueError(
            f"the {half} half is empty: the records span {_span(traces):.1f} days, days is {days}: choose fewer days, another start, or halves 'set' or 'user'"
        )
    if len(by_user(traces)[0]) < 2:
        raise ValueError(f"re-identification needs at least two users (got {', '.join(by_user(traces)[0])} alone)")
    in_words = {
        "calendar": f"the first {days / 2:g} days and the rest",
        "set": "before and after the middle of the set's time span",
        "user": "before and after the middle of each user's own time span",
    }
    strangers = len(users.difference(by_user(known)[0]))
    words += f"; halves: {in_words[rule]}; {len(users)} users attacked, {strangers} of them not in the training half"
    return Setting(data, known, secret, users, same_person(traces), words)


def _span(traces: Traces) -> float:
    """Days from the first record to the last."""
    return (traces["t"].max() - traces["t"].min()) / pd.Timedelta(days=1)
