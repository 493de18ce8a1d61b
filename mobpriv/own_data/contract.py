"""What every mechanism on traces promises: rules for this package's mechanisms and for a stranger's.

A rule is a function of a mechanism and an example table. It raises :class:`Broken` with the rule, what was found and what to do.
"""

import inspect
import traceback
from collections.abc import Callable

import numpy as np
import pandas as pd

from mobpriv.base.numbers import counted
from mobpriv.traces.table import COLUMNS, Traces, as_traces, by_user, from_blocks, problems


class Broken(ValueError):
    """A mechanism that breaks a rule."""


def walks(seed: int = 5, users=tuple(f"user {i}" for i in range(6)), n: int = 180) -> Traces:
    """A synthetic example: users who walk about the same square kilometres for an hour, one record every 20 s."""
    rng = np.random.default_rng(seed)
    lat = 45.0 + np.cumsum(rng.normal(0, 2e-4, (len(users), n)), axis=1)
    lng = 5.0 + np.cumsum(rng.normal(0, 3e-4, (len(users), n)), axis=1)
    time = np.tile(1_400_000_000_000 + 20_000 * np.arange(n), len(users))
    return from_blocks(pd.Index(users), [n] * len(users), time, lat.ravel(), lng.ravel())


def published_by(mechanism, traces: Traces, rng: np.random.Generator, quote: bool = True) -> Traces:
    """The traces under the mechanism, valid; :class:`Broken` if ``protect`` fails or returns something else.

    ``quote``: whether the message may quote the error of ``protect``, which may contain a person's record.
    """
    try:
        published = mechanism.protect(traces, rng)
    except Exception as error:  # a stranger's code may raise anything, and each error becomes one line
        text = f": {' '.join(str(error).split())[:200]}" if quote else ""
        raise Broken(f"protect must not fail (got {type(error).__name__}{text}{_line_of(error, mechanism)})") from error
    if not isinstance(published, pd.DataFrame):
        raise Broken(f"protect must return a table (got {type(published).__name__}): return as_traces(table)")
    if not set(COLUMNS) <= set(published) <= set(traces):
        raise Broken(f"the result must have the columns {', '.join(COLUMNS)} (got {', '.join(map(str, published))})")
    try:
        faults = problems(published)
        for fault in faults.itertuples():
            raise Broken(
                f"the result must be valid (got {fault.rule} in {counted(fault.records, 'record')} of {len(published)})"
            )
        in_order = as_traces(published)
    except (ValueError, TypeError, AttributeError) as error:
        raise error if isinstance(error, Broken) else Broken(f"the result must be valid ({error})") from error
    strangers = set(in_order["user"].cat.categories) - set(by_user(traces)[0])
    if strangers:
        raise Broken(f"no user may be invented (got {counted(len(strangers), 'user')} whom the given table has not)")
    if not published.equals(in_order):
        raise Broken(
            "the result must be typed, sorted by user and time, and without users who have no record: return as_traces(table)"
        )
    return published


def _line_of(error: Exception, mechanism) -> str:
    """The last line of the mechanism's file that the error went through."""
    file = inspect.getsourcefile(type(mechanism))
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f", line {lines[-1]} of its file" if lines else ""


def _run(mechanism, traces: Traces, seed: int = 1) -> Traces:
    return published_by(mechanism, traces.copy(deep=True), np.random.default_rng(seed))


def _refuses(error: Broken) -> bool:
    """Whether the mechanism itself refuses its table, which it may for a table that it cannot protect."""
    return type(error.__cause__) is ValueError and str(error).startswith("protect must not fail")


def _valid(mechanism, traces: Traces) -> None:
    if not len(_run(mechanism, traces)):
        raise Broken(f"some record must be published (got none of {len(traces)} records of an example)")


def _input_unchanged(mechanism, traces: Traces) -> None:
    before = traces.copy(deep=True)
    published = published_by(mechanism, traces, np.random.default_rng(1))
    published["lat"] = 0.0
    if not traces.equals(before):
        raise Broken("the given table must not be changed or returned itself: work on a copy")


def _same_seed(mechanism, traces: Traces) -> None:
    if not _run(mechanism, traces, 9).equals(_run(mechanism, traces, 9)):
        raise Broken("the same seed must give the same table: draw from rng alone")


def _draws(mechanism, traces: Traces) -> bool:
    """Whether another seed gives another table."""
    one, *others = (_run(mechanism, traces, seed) for seed in range(6))
    return not all(one.equals(other) for other in others)


def _other_seed(mechanism, traces: Traces) -> None:
    draws = _draws(mechanism, traces)
    if not draws and getattr(mechanism, "epsilon", None) is not None:
        raise Broken("a mechanism with epsilon must draw its noise from rng (six seeds gave the same table)")
    if draws != getattr(mechanism, "random", draws):
        raise Broken(
            f"random must say whether other seeds give other tables (got {mechanism.random}, and they {'do' if draws else 'do not'})"
        )


def _no_records(mechanism, traces: Traces) -> None:
    wider = traces.assign(user=traces["user"].cat.set_categories(["nobody", *traces["user"].cat.categories]))
    if not _run(mechanism, wider).equals(_run(mechanism, traces)):
        raise Broken("users without records must not matter: take the users from by_user(traces)")


def _names(mechanism, traces: Traces) -> None:
    names = {old: f"x{old}" for old in traces["user"].cat.categories}
    expected = _run(mechanism, traces)
    expected = expected.assign(user=expected["user"].cat.rename_categories(names))
    if not _run(mechanism, traces.assign(user=traces["user"].cat.rename_categories(names))).equals(expected):
        raise Broken("the users' names must not matter: other names gave other records")


def _order(mechanism, traces: Traces) -> None:
    """Seeds give draws to users in their order, so only a mechanism that draws nothing is tested."""
    if _draws(mechanism, traces):
        return
    users = traces["user"].cat.categories
    reversed_names = dict(zip(users, users[::-1], strict=True))

    def reverse(table: Traces) -> Traces:
        return as_traces(table.assign(user=table["user"].astype(str).map(reversed_names)))

    if not _run(mechanism, reverse(traces)).equals(reverse(_run(mechanism, traces))):
        raise Broken("the order of the users must not matter: the reverse order gave other records")


def _few(mechanism, traces: Traces) -> None:
    if len(_run(mechanism, as_traces(traces.head(0)))):
        raise Broken("nothing can be published of an empty table: return it empty")
    for table in (traces.head(1), traces[traces["user"] == traces["user"].iloc[0]]):
        try:
            _run(mechanism, as_traces(table))
        except Broken as error:
            if not _refuses(error):
                raise Broken(f"{counted(len(table), 'record')} of one user: {error}") from error


def _equal_times(mechanism, traces: Traces) -> None:
    try:
        _run(mechanism, as_traces(traces.assign(t=traces["t"].min())))
    except Broken as error:
        raise Broken(f"all records at one time: {error}") from error


def _date_line(mechanism, traces: Traces) -> None:
    there = as_traces(traces.assign(lng=(traces["lng"] - traces["lng"].mean()) % 360 - 180))  # from ±0 to 180 and −180
    try:
        published = _run(mechanism, there)
    except Broken as error:
        if _refuses(error):
            return
        raise Broken(f"at the date line: {error}") from error
    if (published["lng"].abs() < 90).any():
        raise Broken("at the date line: records must stay on their side of the Earth: longitudes 180 and −180 are one place")


RULES: dict[str, Callable] = {
    "the result is a valid table": _valid,
    "the given table is not changed": _input_unchanged,
    "the same seed gives the same table": _same_seed,
    "another seed may give another table": _other_seed,
    "users without records do not matter": _no_records,
    "names do not matter": _names,
    "the order of users does not matter": _order,
    "an empty table, one record, one user": _few,
    "records at one time": _equal_times,
    "records at the date line": _date_line,
}


def broken_rules(mechanism, watch: Callable[[str], None] = lambda rule: None) -> list[str]:
    """A line for each rule that the mechanism breaks, the first alone if it breaks that. ``watch`` gets each rule before its test.

    >>> from mobpriv.mechanisms import Nothing, W4M
    >>> broken_rules(Nothing())
    []
    """
    lines = []
    for rule, test in RULES.items():
        watch(rule)
        try:
            test(mechanism, walks())
        except Broken as error:
            lines.append(str(error))
            if test is _valid:
                break
    return lines


def depends_on_others(mechanism, traces: Traces) -> bool:
    """Whether a user's published records change when another user moves by 0.01°."""
    last = traces["user"].cat.categories[-1]
    moved = traces.assign(lat=traces["lat"] + 0.01 * (traces["user"] == last))
    one, other = (as_traces(table[table["user"] != last]) for table in (_run(mechanism, t) for t in (traces, moved)))
    return not one.equals(other)
