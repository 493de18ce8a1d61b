"""The table of GPS records, ``Traces``, and the time windows and halves of the thesis's experiments (§3.4.3).

``Traces`` is a pandas DataFrame, sorted by (user, t), with a plain RangeIndex and the columns:

* ``user`` (categorical of str, sorted): the user (or her pseudonym);
* ``t`` (datetime64[ms, UTC]): time;
* ``lat`` (float64): degrees, WGS 84, in [-90, 90];
* ``lng`` (float64): degrees, WGS 84, in [-180, 180].

Further columns are kept. :func:`as_traces` validates a table, rule by rule; :func:`by_user`, with which every mechanism, attack
and metric begins, refuses a table that is not in this form. A user's records may share a time; they keep their order.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numba
import numpy as np
import pandas as pd

COLUMNS = ("user", "t", "lat", "lng")
EARLIEST, LATEST = pd.Timestamp("1980-01-06", tz="UTC"), pd.Timestamp("2100-01-01", tz="UTC")  # GPS time began in 1980
_TIMES = tuple(int(t.timestamp()) * 1000 for t in (EARLIEST, LATEST))
_OUT = "leave the record out"
_FULL_CIRCLE = "longitudes seem to run from 0 to 360: subtract 360 from those above 180"
_LOAD = ": mobpriv.load(table).traces reads, sorts and checks a table"
HALVES = ("calendar", "set", "user")

Traces = pd.DataFrame


class InvalidTable(ValueError):
    """A table that is invalid; ``problems`` lists every rule that it breaks."""

    def __init__(self, problems: pd.DataFrame):
        self.problems = problems
        shown = (f"{p.rule}: {p.records} records, first at {p.place} ({p.value}). {p.remedy}" for p in problems.itertuples())
        super().__init__("; ".join(shown))


class InvalidTraces(InvalidTable):
    """A table that is not ``Traces``."""


class TableProblem(NamedTuple):
    """A rule that records break. ``value`` is one person's record: show it only to the user, never on a page."""

    rule: str
    records: int  # number of records that break the rule
    users: int  # number of their users
    row: int  # the first such record, counted from 0
    place: str  # the same in readable form: row, or file and line
    value: str  # content of that record
    remedy: str


def problem(
    rule: str, broken: np.ndarray, table: pd.DataFrame, remedy: str, columns: tuple[str, ...] = COLUMNS
) -> TableProblem:
    """Describe the problem of the records of ``table`` that the mask ``broken`` selects (at least one)."""
    row = int(broken.argmax())
    value = ", ".join(f"{c} {table[c].iloc[row]}" for c in columns)
    return TableProblem(rule, int(broken.sum()), table["user"][broken].nunique(), row, f"row {row}", value, remedy)


def problems(table: pd.DataFrame) -> pd.DataFrame:
    """List every rule of ``Traces`` that records of ``table`` break, one row per rule (columns as in :class:`TableProblem`).

    Order and exact repetitions are not checked: :func:`as_traces` sorts, and :func:`without` reports repetitions.
    """
    broken_rules = [problem(rule, broken, table, remedy) for rule, broken, remedy in _broken(table)]
    return pd.DataFrame(broken_rules, columns=TableProblem._fields)


def needed(what: str, columns: tuple[str, ...], table: pd.DataFrame, hint: str = "") -> None:
    """Refuse a table that lacks one of the columns."""
    missing = [c for c in columns if c not in table.columns]
    if missing:
        names, lacking = ", ".join(columns), ", ".join(missing)
        raise ValueError(f"{what} need the columns {names}; missing: {lacking} (got {list(table.columns)}){hint}")


def _broken(table: pd.DataFrame) -> list[tuple[str, np.ndarray, str]]:
    """The broken rules, the records that break them, and the remedies."""
    needed("traces", COLUMNS, table)
    check_zone(table["t"])
    lat, lng = table["lat"].to_numpy(float), table["lng"].to_numpy(float)
    if not table["user"].isna().any() and _all_valid(milliseconds(table), lat, lng, *_TIMES):
        return []
    outside, beyond = np.abs(lat) > 90, (lng > 180) & (lng <= 360)
    remedy = _other_positions(lat[outside], lng[outside]) if len(lat) and outside.mean() > 0.5 else _OUT
    rules = [
        *user_and_time_rules(table),
        ("latitude or longitude not a number", ~(np.isfinite(lat) & np.isfinite(lng)), _OUT),
        ("latitude outside [-90, 90]", outside, remedy),
        ("longitude outside [-180, 180]", np.abs(lng) > 180, _FULL_CIRCLE if len(lng) and beyond.mean() > 0.5 else _OUT),
    ]
    return [rule for rule in rules if rule[1].any()]


def _other_positions(lat: np.ndarray, lng: np.ndarray) -> str:
    """A remedy for invalid latitudes, from what they seem to be."""
    million = (np.abs(lat) > 2.1e7) & (np.abs(lat) <= 9e8) & (np.abs(lng) <= 1.8e9)  # too large for metres
    if million.mean() > 0.5:
        return "these look like degrees times ten million (E7): divide latitudes and longitudes by 10,000,000"
    if (np.abs(lng) > 180).mean() > 0.5:
        return "these look like metres of a projection: reproject them to degrees of WGS 84"
    return "lat and lng look swapped"


def check_zone(t: pd.Series) -> None:
    """Raise a ValueError for a column without times, or with times without a zone."""
    if isinstance(t.dtype, pd.DatetimeTZDtype):
        return
    if isinstance(t.dtype, np.dtype) and t.dtype.kind == "M":
        first = t.iloc[0] if len(t) else "none"
        raise ValueError(f"times carry no time zone (first: {first}): say which, as t.dt.tz_localize('UTC')")
    raise ValueError(f"column t must hold times with a zone (it holds {t.dtype}): read numbers with time='s' or time='ms'")


def user_and_time_rules(table: pd.DataFrame) -> list[tuple[str, np.ndarray, str]]:
    """The rules for the columns user and t, the masks of the records that break them, and the remedies."""
    time, known = milliseconds(table), table["t"].notna().to_numpy()
    return [
        ("user missing", table["user"].isna().to_numpy(), "give every record a user"),
        ("time missing", ~known, "leave the record out"),
        ("time before 1980", known & (time < _TIMES[0]), "leave it out; were seconds read as milliseconds?"),
        ("time after 2099", time >= _TIMES[1], "leave it out; were milliseconds read as seconds?"),
    ]


@numba.njit(cache=True)
def _all_valid(time, lat, lng, earliest, latest):
    """Whether every record has a possible time and position, in one pass that stops at the first fault."""
    for i in range(len(time)):  # noqa: SIM110
        if not (earliest <= time[i] < latest and -90 <= lat[i] <= 90 and -180 <= lng[i] <= 180):
            return False
    return True


def as_traces(table: pd.DataFrame) -> Traces:
    """Validate records and return them as ``Traces``: typed, sorted by (user, t), equal times in the given order.

    Raises :class:`InvalidTraces` with every broken rule, its count and its first record. The argument is not changed.
    """
    broken = problems(table)
    if len(broken):
        raise InvalidTraces(broken)
    return _in_order(table)


def _in_order(table: pd.DataFrame) -> Traces:
    """Type and sort a table that breaks no rule."""
    rest = [c for c in table.columns if c not in COLUMNS]
    out = pd.DataFrame(
        {
            "user": sorted_categories(table["user"]),
            "t": table["t"].dt.tz_convert("UTC").dt.as_unit("ms"),
            "lat": table["lat"].astype("float64"),
            "lng": table["lng"].astype("float64"),
            **{c: table[c] for c in rest},
        },
        copy=False,
    )
    return sorted_rows(out)


def sorted_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Sort the rows by user and time; equal times keep the given order."""
    code, time = table["user"].cat.codes.to_numpy(), milliseconds(table)
    if not _sorted(code, time):
        table = table.take(np.lexsort((time, code)))  # lexsort is stable: equal times keep their order
    return table.reset_index(drop=True)


def sorted_categories(user: pd.Series) -> pd.Series:
    """Users as a categorical of text with sorted categories, all of which occur."""
    if not isinstance(user.dtype, pd.CategoricalDtype):
        user = user.astype(str).astype("category")
    given, code = user.cat.categories, user.cat.codes.to_numpy()
    occurs = _occurring(code, len(given))
    names, number = np.unique(np.array([str(name) for name in given[occurs]], dtype=object), return_inverse=True)
    new = np.zeros(len(given), np.int64)
    new[occurs] = number
    if given.dtype != "str" or len(names) < len(given) or not np.array_equal(new, np.arange(len(new))):
        code = new[code]
    return pd.Series(pd.Categorical.from_codes(code, pd.Index(names, dtype="str"), validate=False), user.index)


@numba.njit(cache=True)
def _occurring(code, categories):
    """Mask of the categories that occur."""
    occurs = np.zeros(categories, np.bool_)
    for c in code:
        if c >= 0:
            occurs[c] = True
    return occurs


@numba.njit(cache=True)
def _sorted(code, time):
    for i in range(1, len(code)):  # noqa: SIM110
        if code[i] < code[i - 1] or (code[i] == code[i - 1] and time[i] < time[i - 1]):
            return False
    return True


def without(table: pd.DataFrame) -> tuple[Traces, pd.DataFrame]:
    """Remove the records that break a rule or repeat another exactly; return the ``Traces`` and a table of what was left out.

    The second table has the columns of :class:`TableProblem`. A record that breaks two rules counts under the first.
    """
    return kept_and_left_out(table, _broken(table), _in_order, list(COLUMNS), problem)


def kept_and_left_out(
    table: pd.DataFrame, broken_rules: list, in_order: Callable, columns: list[str], problem: Callable
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """:func:`without` for a table of any kind: ``in_order`` types and sorts it, ``problem`` describes a broken rule.

    A record is a repetition if it equals an earlier one in ``columns``.
    """
    left_out, bad = [], np.zeros(len(table), bool)
    for rule, broken, remedy in broken_rules:
        newly_broken = broken & ~bad
        bad |= broken
        if newly_broken.any():
            left_out.append(problem(rule, newly_broken, table, remedy))
    kept = in_order(table[~bad] if bad.any() else table)
    repeated, shared = np.zeros(len(kept), bool), _at_one_time(kept["user"].cat.codes.to_numpy(), milliseconds(kept))
    repeated[shared] = kept.loc[shared, columns].duplicated().to_numpy()
    if repeated.any():
        of_kept = problem("record repeated", repeated, kept, "one copy is kept")
        row = _row_before_sorting(table, kept, of_kept.row, bad)
        left_out.append(of_kept._replace(row=row, place=f"row {row}"))
        kept = rows(kept, ~repeated)
    return kept, pd.DataFrame(left_out, columns=TableProblem._fields)


def _row_before_sorting(table: pd.DataFrame, kept: pd.DataFrame, row: int, bad: np.ndarray) -> int:
    """The row of ``table`` that is this row of ``kept``: its rows that are not ``bad``, sorted."""
    time, of_kept = milliseconds(kept), kept["user"].cat.codes.to_numpy()
    before = int(((time[:row] == time[row]) & (of_kept[:row] == of_kept[row])).sum())  # equal times keep their order
    same = np.flatnonzero((milliseconds(table) == time[row]) & ~bad)
    of_user = table["user"].iloc[same].astype(str) == kept["user"].iloc[row]
    return int(same[of_user.to_numpy()][before])


@numba.njit(cache=True)
def _at_one_time(code, time):
    """The records that share user and time with a neighbour."""
    records = np.empty(len(code), np.int64)
    n = 0
    for i in range(len(code)):
        preceding = i > 0 and code[i] == code[i - 1] and time[i] == time[i - 1]
        following = i + 1 < len(code) and code[i] == code[i + 1] and time[i] == time[i + 1]
        if preceding or following:
            records[n] = i
            n += 1
    return records[:n]


def milliseconds(traces: Traces) -> np.ndarray:
    """The times as int64 milliseconds since 1970-01-01 UTC."""
    t = traces["t"].array
    return (t if t.unit == "ms" else t.as_unit("ms")).asi8


def in_utc(time: np.ndarray) -> pd.Series:
    """Times from int64 milliseconds since 1970-01-01 UTC: the inverse of :func:`milliseconds`."""
    return pd.Series(pd.DatetimeIndex(np.ascontiguousarray(time, np.int64).view("datetime64[ms]"), tz="UTC"))


def by_user(traces: Traces) -> tuple[pd.Index, np.ndarray]:
    """The users that have records, sorted, and the offsets of their blocks: user i owns rows offsets[i] … offsets[i+1]−1.

    Also for calls, and for tables of stays. Every mechanism, attack and metric begins here. So rows in another order, times without
    a zone and positions that are not numbers are refused here.
    """
    user = _categories_of_users(traces)
    if "t" in traces:
        check_zone(traces["t"])
    time = milliseconds(traces) if "t" in traces else np.zeros(0, np.int64)
    starts, misplaced = _blocks(user.codes, time, len(user.categories))
    if misplaced >= 0:
        raise ValueError(f"records must be sorted by user and time (row {misplaced} is not){_LOAD}")
    for position in [c for c in ("lat", "lng") if c in traces]:
        degrees = traces[position].to_numpy(float)
        if not np.isfinite(degrees.sum()):  # one NaN makes the sum NaN
            row = np.isfinite(degrees).argmin()
            raise ValueError(f"{position} must be a number in every record (row {row} holds {degrees[row]}){_LOAD}")
    users = user.categories
    if len(starts) < len(users):  # some have no record
        users = users[user.codes[starts]]
    if users.dtype != "str":
        users = users.astype("str")
    return users.rename("user"), np.r_[starts, len(traces)].astype(np.int64)


def _categories_of_users(table: pd.DataFrame) -> pd.Categorical:
    if not isinstance(table, pd.DataFrame):
        raise ValueError(f"records must be a data frame (got {type(table).__name__}){_LOAD}")
    if "user" not in table:
        raise ValueError(f"records must have a column user (got {', '.join(map(str, table.columns))}){_LOAD}")
    user = table["user"].array
    if not isinstance(user, pd.Categorical):
        raise ValueError(f"the column user must be categorical (it holds {user.dtype}){_LOAD}")
    return user


@numba.njit(cache=True)
def _blocks(code, time, categories):
    """The first row of each user, and the first row not sorted by user and, if there are times, by time (−1: none)."""
    starts, n = np.empty(categories, np.int64), 0
    for i in range(len(code)):
        if i == 0 or code[i] != code[i - 1]:
            if code[i] < 0 or (i > 0 and code[i] < code[i - 1]):
                return starts[:n], i
            starts[n] = i
            n += 1
        elif len(time) and time[i] < time[i - 1]:
            return starts[:n], i
    return starts[:n], -1


def rows(traces: Traces, chosen: np.ndarray) -> Traces:
    """The ``Traces`` of the records that a mask or sorted positions select; they are not checked again."""
    if chosen.dtype == bool and chosen.all():
        part = traces.copy(deep=False)
    else:
        part = traces.take(np.flatnonzero(chosen) if chosen.dtype == bool else chosen)
    user = part["user"].cat
    occurs = _occurring(user.codes.to_numpy(), len(user.categories))
    number = np.cumsum(occurs) - 1
    code = user.codes.to_numpy() if occurs.all() else number[user.codes.to_numpy()]
    user = pd.Categorical.from_codes(code, user.categories[occurs], validate=False)
    return part.assign(user=user).reset_index(drop=True)


def from_blocks(users: pd.Index, counts: np.ndarray, time: np.ndarray, lat: np.ndarray, lng: np.ndarray) -> Traces:
    """``Traces`` from columns in blocks by user, each block in order of time; ``time`` is int64 ms since 1970 UTC.

    This is the inverse of :func:`by_user`: ``users`` are sorted, and ``counts`` is the number of records of each. Users without
    records are omitted.
    """
    counts = np.asarray(counts, np.int64)
    has_records = counts > 0
    user = pd.Categorical.from_codes(
        np.repeat(np.arange(has_records.sum()), counts[has_records]),
        pd.Index(users, dtype="str").rename(None)[has_records],
        validate=False,
    )
    return pd.DataFrame({"user": user, "t": in_utc(time), "lat": lat, "lng": lng}, copy=False)


def together(tables: Sequence[Traces]) -> Traces:
    """The records of tables that have no user in common, as one table of the four columns."""
    blocks = [by_user(table) for table in tables]
    users, counts = np.concatenate([users for users, _ in blocks]), np.concatenate([np.diff(offsets) for _, offsets in blocks])
    order = np.argsort(users)
    first = (np.cumsum(counts) - counts)[order]
    counts = counts[order]
    row = np.arange(counts.sum()) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    columns = [
        [milliseconds(table) for table in tables],
        *([table[name].to_numpy() for table in tables] for name in ("lat", "lng")),
    ]
    return from_blocks(users[order], counts, *(np.concatenate(column)[row] for column in columns))


def most_active_days(traces: Traces, days: int = 30, zone: str = "UTC") -> pd.Timestamp:
    """The midnight (in ``zone``) at the start of the ``days`` successive days with the most records; ties: the earliest."""
    if days < 1:
        raise ValueError(f"days must be at least 1 (got {days})")
    if not len(traces):
        raise ValueError("there are no records to choose days from")
    per_day = traces["t"].dt.tz_convert(zone).dt.floor("D", ambiguous=True, nonexistent="shift_forward").value_counts()
    calendar = pd.date_range(per_day.index.min(), per_day.index.max(), freq="D")
    per_day = per_day.reindex(calendar, fill_value=0).to_numpy()
    # windows may extend beyond the last day: a set shorter than the window is taken completely
    total = np.r_[0, np.cumsum(per_day)]
    end = np.minimum(np.arange(len(per_day)) + days, len(per_day))
    return calendar[int(np.argmax(total[end] - total[:-1]))]


def within_days(traces: Traces, start: pd.Timestamp, days: float) -> Traces:
    """The records in [start, start + days)."""
    return rows(traces, ((traces["t"] >= start) & (traces["t"] < start + pd.Timedelta(days=days))).to_numpy())


def same_person(traces: Traces, share: float = 0.05) -> dict[str, str]:
    """Users who are one person under several names: they share at least ``share`` of the smaller user's records.

    Records are shared if time and position agree. Returns user -> the first of her names; users with one name are omitted.
    """
    code, time = traces["user"].cat.codes.to_numpy(), milliseconds(traces)
    lat, lng = traces["lat"].to_numpy(), traces["lng"].to_numpy()
    # most records occur once: two rounds of hashes remove them before the exact comparison
    key = _hashes(time, lat.view("int64"), lng.view("int64"))
    candidates = np.flatnonzero(_seen_twice(key))
    candidates = candidates[pd.Series(key[candidates]).duplicated(keep=False).to_numpy()]
    columns = {"user": code, "t": time, "lat": lat, "lng": lng}
    common = pd.DataFrame({name: column[candidates] for name, column in columns.items()}).drop_duplicates()
    common = common.assign(record=common.groupby(["t", "lat", "lng"]).ngroup())[["record", "user"]]
    pairs = common.merge(common, on="record").query("user_x < user_y").groupby(["user_x", "user_y"]).size()
    offsets = by_user(traces)[1]
    size = np.zeros(len(traces["user"].cat.categories), np.int64)
    size[code[offsets[:-1]]] = np.diff(offsets)
    duplicates = [(a, b) for (a, b), n in pairs.items() if n >= share * min(size[a], size[b])]
    first = np.arange(len(size))
    for a, b in duplicates:  # the relation is transitive
        first[np.isin(first, (first[a], first[b]))] = min(first[a], first[b])
    names = traces["user"].cat.categories
    return {names[user]: names[group] for user, group in enumerate(first) if user != group}


_MINUS_ZERO = np.array([-0.0]).view(np.int64)[0]


@numba.njit(cache=True)
def _hashes(time, lat, lng):
    """A hash of 64 bits for each record (the finalizer of SplitMix64, Steele et al. 2014)."""
    out = np.empty(len(time), np.uint64)
    for i in range(len(time)):
        h = np.uint64(0)
        for part in (time[i], lat[i], lng[i]):
            if part == _MINUS_ZERO:  # 0.0 and -0.0 have different bits but are the same place
                part = np.int64(0)
            h = (h ^ np.uint64(part)) + np.uint64(0x9E3779B97F4A7C15)
            h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            h ^= h >> np.uint64(31)
        out[i] = h
    return out


@numba.njit(cache=True, parallel=True)
def _seen_twice(key):
    """Mask of the records whose hash prefix occurs more than once: all equal records, and a few per cent by chance."""
    ends = np.zeros(257, np.int64)
    for k in key:
        ends[np.int64(k >> np.uint64(56)) + 1] += 1
    ends = np.cumsum(ends)
    # distributed by the first byte, so that the bits of each part fit into the processor's cache
    at, grouped_keys, records = ends[:-1].copy(), np.empty(len(key), np.uint64), np.empty(len(key), np.int64)
    for i in range(len(key)):
        part = np.int64(key[i] >> np.uint64(56))
        grouped_keys[at[part]], records[at[part]] = key[i], i
        at[part] += 1
    repeated = np.zeros(len(key), np.bool_)
    for part in numba.prange(256):
        _seen_twice_in_part(grouped_keys[ends[part] : ends[part + 1]], records[ends[part] : ends[part + 1]], repeated)
    return repeated


@numba.njit(cache=True)
def _seen_twice_in_part(key, records, repeated):
    bits = 6
    while (1 << bits) < 16 * len(key):
        bits += 1
    shift, mask = np.uint64(56 - bits), np.uint64((1 << bits) - 1)
    once, twice = np.zeros(1 << (bits - 3), np.uint8), np.zeros(1 << (bits - 3), np.uint8)
    for k in key:
        place = (k >> shift) & mask
        byte, bit = np.int64(place >> np.uint64(3)), np.uint8(1 << (place & np.uint64(7)))
        if once[byte] & bit:
            twice[byte] |= bit
        else:
            once[byte] |= bit
    for i in range(len(key)):
        place = (key[i] >> shift) & mask
        if twice[np.int64(place >> np.uint64(3))] & np.uint8(1 << (place & np.uint64(7))):
            repeated[records[i]] = True


class TraceHalves(NamedTuple):
    known: Traces  # the training half, under the users' names (KD in the thesis)
    secret: Traces  # the attacked half: protected and published (UD)


def share_of_records(traces: Traces, share: float, rng: np.random.Generator) -> Traces:
    """A random ``share`` of each user's records, rounded up."""
    key = rng.random(len(traces))
    kept = np.zeros(len(key), bool)
    for first, end in pairwise(by_user(traces)[1]):
        n = int(np.ceil(share * (end - first)))
        kept[first + np.argpartition(key[first:end], n - 1)[:n]] = True
    return rows(traces, kept)


def split_in_half(traces: Traces, rule: str = "calendar", start: pd.Timestamp | None = None, days: float = 30) -> TraceHalves:
    """Known (training) and attacked half.

    Thesis §3.4.3: 15 days "used for the training phase and 15 days used for the re-identification phase". ``rule`` is one of:

    * ``"calendar"``: the first ``days``/2 days from ``start`` (by default midnight UTC before the first record), and the rest;
    * ``"set"``: before and after the middle of the set's time span;
    * ``"user"``: before and after the middle of each user's own time span, as in the author's program. The program also drops
      each user's first and last record and any on the border; here all are kept.

    A record on the border belongs to the second half. A user may occur in one half only: the attacks count and report such
    users.
    """
    if rule not in HALVES:
        raise ValueError(f'rule must be "calendar", "set" or "user" (got {rule!r})')
    if not len(traces):
        return TraceHalves(traces, traces)
    t = traces["t"]
    if rule == "user":
        time, (_, offsets) = milliseconds(traces), by_user(traces)
        first, last = time[offsets[:-1]], time[offsets[1:] - 1]
        late = time >= np.repeat((first + last) / 2, np.diff(offsets))
    else:
        start = t.min().floor("D") if start is None else start
        middle = start + pd.Timedelta(days=days) / 2 if rule == "calendar" else t.min() + (t.max() - t.min()) / 2
        late = (t >= middle).to_numpy()
    return TraceHalves(rows(traces, ~late), rows(traces, late))
