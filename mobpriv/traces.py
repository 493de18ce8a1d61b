"""The table of GPS records, ``Traces``, and the time windows and halves that the thesis's experiments use (§3.4.3).

``Traces`` is a pandas DataFrame with the columns

=======  ==========================  =====================================
user     categorical of str, sorted  whose record it is (or the pseudonym)
t        datetime64[ms, UTC]         time
lat      float64                     degrees, WGS 84, in [-90, 90]
lng      float64                     degrees, WGS 84, in [-180, 180]
=======  ==========================  =====================================

sorted by (user, t), with a plain RangeIndex; further columns ride along. :func:`as_traces` is the one validator: it stands
at the border, the code behind it trusts. A user's records may share a time: they keep their order.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

COLUMNS = ("user", "t", "lat", "lng")
EARLIEST, LATEST = pd.Timestamp("1980-01-06", tz="UTC"), pd.Timestamp("2100-01-01", tz="UTC")  # GPS time began in 1980
HALVES = ("calendar", "set", "user")

Traces = pd.DataFrame


class InvalidTraces(ValueError):
    """A table that is not ``Traces``; ``problems`` lists every rule it breaks."""

    def __init__(self, problems: pd.DataFrame):
        self.problems = problems
        super().__init__(
            "; ".join(
                f"{p.rule}: {p.records} records, first at row {p.row} ({p.value}). {p.remedy}" for p in problems.itertuples()
            )
        )


class Problem(NamedTuple):
    rule: str
    records: int  # how many records break the rule
    users: int  # of how many users
    row: int  # the first such record, counted from 0
    value: str  # and what stands there
    remedy: str


def problems(table: pd.DataFrame) -> pd.DataFrame:
    """Every rule of ``Traces`` that the records of ``table`` break, one row a rule (columns as in :class:`Problem`).

    Order and exact repetitions are not among them: :func:`as_traces` sorts, and :func:`without` reports repetitions.
    """
    return pd.DataFrame([problem for problem, _ in _broken(table)], columns=Problem._fields)


def _broken(table: pd.DataFrame) -> list[tuple[Problem, np.ndarray]]:
    missing = [c for c in COLUMNS if c not in table.columns]
    if missing:
        raise ValueError(
            f"traces need the columns {', '.join(COLUMNS)}; missing: {', '.join(missing)} (got {list(table.columns)})"
        )
    t = table["t"]
    if not isinstance(t.dtype, pd.DatetimeTZDtype):
        if isinstance(t.dtype, np.dtype) and t.dtype.kind == "M":
            raise ValueError(
                f"times carry no time zone (first: {t.iloc[0] if len(t) else 'none'}): say which, as t.dt.tz_localize('UTC')"
            )
        raise ValueError(f"column t must hold times with a zone (it holds {t.dtype}): read numbers with time='s' or time='ms'")
    found = []

    def rule(text, broken, remedy):
        broken = np.asarray(broken)
        if broken.any():
            row = int(broken.argmax())
            value = ", ".join(f"{c} {table[c].iloc[row]}" for c in COLUMNS)
            problem = Problem(text, int(broken.sum()), table["user"][broken].nunique(), row, value, remedy)
            found.append((problem, broken))

    lat, lng = table["lat"].to_numpy(float), table["lng"].to_numpy(float)
    swapped = np.abs(lat) > 90
    swap = swapped.mean() > 0.5 if len(lat) else False
    rule("user missing", table["user"].isna(), "give every record a user")
    rule("time missing", t.isna(), "leave the record out")
    utc = t.dt.tz_convert("UTC")
    rule("time before 1980", (utc < EARLIEST).to_numpy(), "seconds read as milliseconds? read with time='s'")
    rule("time after 2099", (utc >= LATEST).to_numpy(), "milliseconds read as seconds? read with time='ms'")
    rule("latitude or longitude not a number", ~(np.isfinite(lat) & np.isfinite(lng)), "leave the record out")
    hint = "lat and lng look swapped" if swap else "leave the record out"
    rule("latitude outside [-90, 90]", swapped, hint)
    rule("longitude outside [-180, 180]", np.abs(lng) > 180, "leave the record out")
    return found


def as_traces(table: pd.DataFrame) -> Traces:
    """``table`` as ``Traces``: columns typed, rows sorted by (user, t), equal times in the order given.

    Raises :class:`InvalidTraces` with every broken rule, its count and its first record. The table itself is not changed.
    """
    broken = problems(table)
    if len(broken):
        raise InvalidTraces(broken)
    rest = [c for c in table.columns if c not in COLUMNS]
    user = table["user"]
    if not isinstance(user.dtype, pd.CategoricalDtype):
        user = user.astype(str).astype("category")
    names = user.cat.remove_unused_categories().cat.categories
    if len(names) and not all(isinstance(name, str) for name in names):
        user = user.cat.rename_categories([str(name) for name in user.cat.categories])
    user = user.cat.set_categories(pd.Index(sorted(user.cat.remove_unused_categories().cat.categories), dtype="str"))
    out = pd.DataFrame(
        {
            "user": user,
            "t": table["t"].dt.tz_convert("UTC").dt.as_unit("ms"),
            "lat": table["lat"].astype("float64"),
            "lng": table["lng"].astype("float64"),
            **{c: table[c] for c in rest},
        }
    )
    code, time = out["user"].cat.codes.to_numpy(), milliseconds(out)
    later, same = code[1:] > code[:-1], code[1:] == code[:-1]
    if not (later | (same & (time[1:] >= time[:-1]))).all():
        out = out.take(np.lexsort((time, code)))  # lexsort is stable: equal times keep their order
    return out.reset_index(drop=True)


def without(table: pd.DataFrame) -> tuple[Traces, pd.DataFrame]:
    """``table`` as ``Traces`` without records that break a rule or repeat another exactly, and what was left out.

    The second table has the columns of :class:`Problem`; a record that breaks two rules counts under the first.
    """
    left_out, bad = [], np.zeros(len(table), bool)
    for problem, broken in _broken(table):
        fresh = broken & ~bad
        bad |= broken
        if fresh.any():
            row = int(fresh.argmax())
            value = ", ".join(f"{c} {table[c].iloc[row]}" for c in COLUMNS)
            left_out.append(
                problem._replace(records=int(fresh.sum()), users=table["user"][fresh].nunique(), row=row, value=value)
            )
    kept = table[~bad] if bad.any() else table
    traces = as_traces(kept)
    again = _repeats(traces)
    if again.any():
        row = int(again.argmax())
        value = ", ".join(f"{c} {traces[c].iloc[row]}" for c in COLUMNS)
        left_out.append(
            Problem("record repeated", int(again.sum()), traces["user"][again].nunique(), row, value, "one copy is kept")
        )
        traces = rows(traces, ~again)
    return traces, pd.DataFrame(left_out, columns=Problem._fields)


def _repeats(traces: Traces) -> np.ndarray:
    """True for a record whose user, time and position stood in an earlier record."""
    code, time = traces["user"].cat.codes.to_numpy(), milliseconds(traces)
    shared = np.zeros(len(traces), bool)
    same = (code[1:] == code[:-1]) & (time[1:] == time[:-1])
    shared[1:] |= same
    shared[:-1] |= same
    again = np.zeros(len(traces), bool)
    again[shared] = traces.loc[shared, list(COLUMNS)].duplicated().to_numpy()
    return again


def milliseconds(traces: Traces) -> np.ndarray:
    """The times as int64 milliseconds since 1970-01-01 UTC."""
    return traces["t"].dt.as_unit("ms").dt.tz_localize(None).to_numpy().view("int64")


def by_user(traces: Traces) -> tuple[pd.Index, np.ndarray]:
    """The users that have records, sorted, and the offsets of their blocks: user i owns rows offsets[i] … offsets[i+1]−1."""
    code = traces["user"].cat.codes.to_numpy()
    starts = np.flatnonzero(np.r_[True, code[1:] != code[:-1]]) if len(code) else np.zeros(0, np.int64)
    users = traces["user"].cat.categories[code[starts]].astype(str)
    return pd.Index(users, name="user"), np.r_[starts, len(code)].astype(np.int64)


def rows(traces: Traces, chosen: np.ndarray) -> Traces:
    """The records that the mask or the sorted positions ``chosen`` pick: ``Traces`` again, not checked again."""
    part = traces[chosen] if chosen.dtype == bool else traces.take(chosen)
    return part.assign(user=part["user"].cat.remove_unused_categories()).reset_index(drop=True)


def from_blocks(users: pd.Index, counts: np.ndarray, time: np.ndarray, lat: np.ndarray, lng: np.ndarray) -> Traces:
    """``Traces`` from columns that lie user by user, each block in the order of time; ``time`` is int64 ms since 1970 UTC.

    The inverse of :func:`by_user`: ``users`` are sorted, ``counts`` says how many records each has; who has none is left out.
    """
    counts = np.asarray(counts, np.int64)
    some = counts > 0
    user = pd.Categorical.from_codes(
        np.repeat(np.arange(some.sum()), counts[some]), categories=pd.Index(np.asarray(users, dtype=object)[some], dtype="str")
    )
    t = pd.Series(np.ascontiguousarray(time, np.int64).view("datetime64[ms]")).dt.tz_localize("UTC")
    return pd.DataFrame({"user": user, "t": t, "lat": lat, "lng": lng})


def most_active_days(traces: Traces, days: int = 30, zone: str = "UTC") -> pd.Timestamp:
    """The midnight (in ``zone``) that begins the ``days`` successive days with the most records; of several the earliest."""
    if days < 1:
        raise ValueError(f"days must be at least 1 (got {days})")
    if not len(traces):
        raise ValueError("there are no records to choose days from")
    per_day = traces["t"].dt.tz_convert(zone).dt.floor("D", ambiguous=True, nonexistent="shift_forward").value_counts()
    calendar = pd.date_range(per_day.index.min(), per_day.index.max(), freq="D")
    per_day = per_day.reindex(calendar, fill_value=0).to_numpy()
    # windows may reach beyond the last day: where the set is shorter than the window, the whole set is chosen
    total = np.r_[0, np.cumsum(per_day)]
    end = np.minimum(np.arange(len(per_day)) + days, len(per_day))
    return calendar[int(np.argmax(total[end] - total[:-1]))]


def within(traces: Traces, start: pd.Timestamp, days: float) -> Traces:
    """The records in [start, start + days)."""
    return rows(traces, ((traces["t"] >= start) & (traces["t"] < start + pd.Timedelta(days=days))).to_numpy())


def same_person(traces: Traces, share: float = 0.05) -> dict[str, str]:
    """Users who are one person under several names: pairs that share at least ``share`` of the smaller one's records
    (time and position alike). Returns user -> the first of her names; users with one name are left out.
    """
    columns = {"user": traces["user"].cat.codes, "t": milliseconds(traces), "lat": traces["lat"], "lng": traces["lng"]}
    # most records are nobody else's: a hash of time and position sorts them out before the exact comparison
    key = columns["t"] * 1_000_003 ^ traces["lat"].to_numpy().view("int64") * 31 ^ traces["lng"].to_numpy().view("int64")
    common = pd.DataFrame(columns)[pd.Series(key).duplicated(keep=False).to_numpy()].drop_duplicates()
    size = traces["user"].cat.codes.value_counts()
    pairs = common.merge(common, on=["t", "lat", "lng"]).query("user_x < user_y").groupby(["user_x", "user_y"]).size()
    alike = [pair for pair, n in pairs.items() if n >= share * min(size[pair[0]], size[pair[1]])]
    first = np.arange(len(traces["user"].cat.categories))
    for a, b in alike:  # whoever is one with one of them is one with both
        first[np.isin(first, (first[a], first[b]))] = min(first[a], first[b])
    names = traces["user"].cat.categories
    return {names[user]: names[group] for user, group in enumerate(first) if user != group}


class Halves(NamedTuple):
    known: Traces  # the training half, under the users' names (KD in the thesis)
    secret: Traces  # the half that is protected, published and attacked (UD)


def split_in_half(traces: Traces, rule: str = "calendar", start: pd.Timestamp | None = None, days: float = 30) -> Halves:
    """Training and attack half (thesis §3.4.3: 15 days "used for the training phase and 15 days used for the
    re-identification phase").

    * ``"calendar"``: the first ``days``/2 days from ``start`` (by default midnight UTC before the first record), and the rest;
    * ``"set"``: before and after the middle of the set's time span;
    * ``"user"``: before and after the middle of each user's own time span, as the author's program does. It drops each
      user's first and last record and any on the border; here none is lost.

    A record on the border belongs to the second half. Users may be in one half only: the attacks count and report them.
    """
    if rule not in HALVES:
        raise ValueError(f'rule must be "calendar", "set" or "user" (got {rule!r})')
    if not len(traces):
        return Halves(traces, traces)
    t = traces["t"]
    if rule == "calendar":
        start = t.min().floor("D") if start is None else start
        middle = start + pd.Timedelta(days=days) / 2
    elif rule == "set":
        middle = t.min() + (t.max() - t.min()) / 2
    else:
        time, (_, offsets) = milliseconds(traces), by_user(traces)
        first, last = time[offsets[:-1]], time[offsets[1:] - 1]
        middle = np.repeat((first + last) / 2, np.diff(offsets))
        late = time >= middle
        return Halves(rows(traces, ~late), rows(traces, late))
    late = (t >= middle).to_numpy()
    return Halves(rows(traces, ~late), rows(traces, late))
