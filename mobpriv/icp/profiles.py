"""Individual call profiles (ICPs) from call records.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §3.1.

A profile describes one user in one municipality. It has 4 weeks × {weekdays, weekend} × 3 slots of the day = 24 cells. Its cell
(week · 2 + part) · 3 + slot has part 0 for weekdays and 1 for the weekend. Its value is a share of days, 0 … 5 of 5 or 0 … 2 of
2. The paper defines it as "the number of days when call events occurred (i.e., independently by the total number of calls),
normalized with the number of days composing that slot".

A profile is therefore a whole number, its key. It has 3 bits per weekday cell and 2 per weekend cell: 15 bits per week, 60 in
all. The bits follow the order of the cells, cell 0 lowest.

``Icps`` is a pandas DataFrame with a row per profile, sorted by (municipality, user), with a plain RangeIndex and the columns:

* ``user`` (categorical of str, sorted): the caller (or her pseudonym); whole numbers are allowed;
* ``municipality`` (categorical of str, sorted): where;
* ``key`` (int64): the profile.

For calls that do not fit into memory: :mod:`mobpriv.icp.files`.
"""

from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import numba
import numpy as np
import pandas as pd

from mobpriv.base.ranges import true_or_false, whole
from mobpriv.calls.table import Calls, Cells
from mobpriv.traces.table import milliseconds
from mobpriv.visits.profiles import user_positions

Icps = pd.DataFrame

WEEKS = 4
SLOT_STARTS = (0, 8, 19)  # hours at which the slots begin: [00:00, 08:00), [08:00, 19:00), [19:00, 24:00)
_WEEKDAY_DAYS, _WEEKEND_DAYS = 5, 2
WEEKDAY_SLOTS = np.arange(24).reshape(4, 2, 3)[:, 0].ravel()  # the cells of weekdays
DAYS = np.tile(np.repeat([_WEEKDAY_DAYS, _WEEKEND_DAYS], 3), WEEKS)  # days of each cell
DAYS.flags.writeable = WEEKDAY_SLOTS.flags.writeable = False

_WEEK = np.array([0, 3, 6, 9, 11, 13])  # first bit of each cell within the 15 bits of a week
_SHIFTS = (15 * np.arange(WEEKS)[:, None] + _WEEK).ravel()
_BITS = np.where(DAYS == _WEEKDAY_DAYS, 7, 3)

_DAY, _HOUR, _QUARTER = 86_400_000, 3_600_000, 900_000  # ms
RULES = (  # a record counts under the first rule that it breaks
    "user missing",
    "time missing",
    "before the window",
    "after the window",
    "cell missing",
    "cell unknown",
    "cell without a municipality",
    "end cell unknown",
    "duration not a number",
    "duration negative",
)
END_RULES = (  # rules that omit the end of a call, not its beginning
    "end cell without a municipality",
    "end after the window",
)


class Extraction(NamedTuple):
    """Profiles and the count of omitted records.

    Every record is kept or counts under one rule of :data:`RULES` or of a reader; ends of calls count under :data:`END_RULES`.
    """

    profiles: Icps
    left_out: pd.DataFrame  # rule, records, users: what is in no profile, and the number of its users
    kept: int  # records that are in the profiles

    @property
    def read(self) -> int:
        """Number of records read."""
        is_record = ~self.left_out["rule"].isin(END_RULES)
        return self.kept + int(self.left_out["records"][is_record].sum())


@dataclass(frozen=True)
class Window:
    """The days and slots of the profiles: ``weeks`` weeks from the day ``first``, by the clocks of ``zone``.

    A week is 7 days from ``first``. Any 7 successive days have 5 weekdays and 2 weekend days (Saturday, Sunday), so every cell
    has its days. If ``first`` is a Sunday, a weekend is this Sunday and the Saturday six days later.

    The clocks of ``zone`` give the date and the hour of a call. A day on which clocks are put back has 25 hours and is one day.
    An hour that they show twice belongs to one slot. Days are counted by date, also where clocks skip a slot.

    ``slots`` are the full hours at which the three slots begin, the first at 0. Departures from the paper: it gives neither
    slots nor zone; the slots are those of the Sociometer's papers.
    """

    first: date
    zone: str
    weeks: int = WEEKS
    slots: tuple[int, int, int] = SLOT_STARTS

    def __post_init__(self):
        weeks = whole("weeks", self.weeks, 1, WEEKS, f"must be a whole number from 1 to {WEEKS}")
        object.__setattr__(self, "weeks", weeks)
        try:
            slots = tuple(whole("slots", hour, 0, 23) for hour in self.slots)
        except (TypeError, ValueError):
            slots = ()
        if len(slots) != 3 or slots[0] != 0 or not slots[0] < slots[1] < slots[2]:
            raise ValueError(f"slots must be three full hours of a day, rising, the first 0 (got {self.slots!r})")
        object.__setattr__(self, "slots", slots)
        if not isinstance(self.zone, str):
            raise ValueError(f"zone must be the name of a time zone, such as Europe/Rome (got {self.zone!r})")
        try:
            at = pd.Timestamp(self.first)
            if at is pd.NaT:
                raise ValueError(f"no day: {self.first!r}")
            at = at.tz_convert(self.zone).tz_localize(None) if at.tz is not None else at
            midnights = pd.date_range(at.normalize(), periods=7 * weeks + 1)
            moments = midnights.tz_localize(self.zone, ambiguous=np.ones(len(midnights), bool), nonexistent="shift_forward")
        except (ValueError, TypeError, LookupError, OverflowError, OSError) as error:  # an unknown zone raises KeyError
            raise ValueError(
                f"first and zone must be a day and a time zone, such as 2016-11-01 and Europe/Rome ({error})"
            ) from None
        if at != at.normalize():
            raise ValueError(f"first must be a day, not a time of day (got {self.first})")
        skipped = ~np.asarray(moments[1:] > moments[:-1])
        if skipped.any():
            raise ValueError(
                f"every day of the window must exist by the clocks of {self.zone} (they skip {midnights[skipped.argmax()]:%Y-%m-%d})"
            )
        object.__setattr__(self, "first", at.date())

    @property
    def weekday(self) -> int:
        """The day of the week of the first day, 0 for a Monday."""
        return self.first.weekday()

    @property
    def origin(self) -> int:
        """The clock time at which the window begins, in ms since 1970-01-01 00:00 by the same clocks."""
        return int(pd.Timestamp(self.first).as_unit("ms").value // 1_000_000)

    @property
    def period(self) -> tuple[pd.Timestamp, pd.Timestamp]:
        """The window as [start, end)."""
        ends = (pd.Timestamp(self.first) + pd.Timedelta(days=days) for days in (0, 7 * self.weeks))
        return tuple(t.tz_localize(self.zone, ambiguous=True, nonexistent="shift_forward") for t in ends)

    def clock(self) -> tuple[np.ndarray, np.ndarray]:
        """Clock changes: the moments (ms since 1970 UTC, rising) and the offset from UTC (ms) from each on; the first holds
        before.
        """
        start, end = (int(t.timestamp()) * 1000 for t in self.period)
        grid = np.arange(start - 2 * _DAY, end + 2 * _DAY, _QUARTER)
        ahead = self._ahead(grid)
        low = grid[:-1][ahead[1:] != ahead[:-1]]
        high, before = low + _QUARTER, self._ahead(low)
        while (high - low > 1).any():  # bisect the quarter of an hour in which the clocks change
            middle = (low + high) // 2
            same = self._ahead(middle) == before
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return np.r_[grid[0], high], np.r_[ahead[0], self._ahead(high)]

    def _ahead(self, t: np.ndarray) -> np.ndarray:
        moments = pd.DatetimeIndex(np.asarray(t, np.int64).view("datetime64[ms]"))
        return moments.tz_localize("UTC").tz_convert(self.zone).tz_localize(None).as_unit("ms").asi8 - t

    def slot_of(self, t: np.ndarray) -> np.ndarray:
        """The slot of each moment (ms since 1970 UTC): day · 3 + slot of the day, 0 … 21 · weeks − 1; −1 before, 21 · weeks
        after.
        """
        begins, ahead = self.clock()
        t = np.asarray(t, np.int64)
        local = t + ahead[np.maximum(np.searchsorted(begins, t, side="right") - 1, 0)] - self.origin
        day, hour = local // _DAY, local % _DAY // _HOUR
        slot = day * 3 + (hour >= self.slots[1]) + (hour >= self.slots[2])
        return np.clip(slot, -1, 21 * self.weeks).astype(np.int32)

    def bits(self) -> tuple[np.ndarray, np.ndarray]:
        """The bit of each slot of the window.

        For weekdays it is (week · 3 + slot) · 5 + day, for weekends (week · 3 + slot) · 2 + day.
        """
        number = np.arange(21 * self.weeks)
        of_day, day = number % 3, number // 3
        group, weekday = day // 7 * 3 + of_day, (day + self.weekday) % 7
        one = np.int64(1)
        weekdays = np.where(weekday < 5, one << (group * _WEEKDAY_DAYS + np.minimum(weekday, 4)), 0)
        weekend = np.where(weekday >= 5, one << (group * _WEEKEND_DAYS + np.maximum(weekday - 5, 0)), 0)
        return weekdays, weekend


def icps(calls: Calls, cells: Cells, window: Window, *, every_slot: bool = False, both_cells: bool = False) -> Extraction:
    """Compute the profiles of §3.1: one per user and municipality where a call of hers began in the window.

    ``calls`` comes from :func:`mobpriv.calls.table.as_calls`, with a named user for each call; ``cells`` lists their municipalities.
    A call counts at the moment when it begins, even if it ends after midnight.

    * ``every_slot``: a call counts in every slot that it touches, from t until t + ``duration`` (exclusive; within the window;
      NaN is 0 s).
    * ``both_cells``: a call also counts in the municipality where it ended, in the slot of its last millisecond.
    * both: every slot counts in both municipalities, because no record shows when the caller moved.

    Omitted records count under the first rule that holds:

    * calls that begin before or after the window, at a cell that ``cells`` does not list, or at a cell without a municipality;
    * with ``both_cells``, calls that end at an unlisted cell;
    * ends of calls at a cell without a municipality or after the window (the call still counts where it began).
    """
    true_or_false("every_slot", every_slot)
    true_or_false("both_cells", both_cells)
    _check(calls, ("end_cell",) * both_cells + ("duration",) * (every_slot or both_cells))
    town_of, towns = towns_of(cells)
    begins = milliseconds(calls)
    first = window.slot_of(begins)
    place = _places(calls["cell"], town_of)
    outside = [("before the window", first < 0), ("after the window", first >= 21 * window.weeks)]
    rules = [*outside, ("cell unknown", place == -2), ("cell without a municipality", place == -1)]
    if both_cells:
        end = _places(calls["end_cell"], town_of)
        rules.append(("end cell unknown", (end == -2) & calls["end_cell"].notna().to_numpy()))
    user, names = user_positions(calls["user"])
    counted, omitted = np.ones(len(calls), bool), []
    for rule, broken in rules:
        omitted.append((rule, broken & counted))
        counted &= ~broken
    last = _last(calls, begins, window) if every_slot or both_cells else first
    events = [(counted, place, first, last if every_slot else first)]
    if both_cells:
        counts_end = counted.copy()
        late = (last >= 21 * window.weeks) & (not every_slot)
        for rule, broken in zip(END_RULES, (end == -1, late), strict=True):
            omitted.append((rule, broken & counts_end))
            counts_end &= ~broken
        events.append((counts_end, end, first if every_slot else last, last))
    masks = _masks([(user[mask], town[mask], low[mask], high[mask]) for mask, town, low, high in events], len(names), window)
    left_out = [(rule, int(broken.sum()), len(np.unique(user[broken]))) for rule, broken in omitted if broken.any()]
    *pair, weekdays, weekend = masks
    profiles = as_icps(*pair, keys_of_masks(weekdays, weekend, window.weeks), names, towns)
    return Extraction(profiles, pd.DataFrame(left_out, columns=["rule", "records", "users"]), int(counted.sum()))


def as_icps(user, town, key, names: pd.Index, towns: pd.Index) -> Icps:
    """``Icps`` from rows of ``names`` and ``towns`` and keys. Each pair occurs once; the order is (town, user)."""
    occurs = np.zeros(len(names), bool)
    occurs[user] = True
    code = (np.cumsum(occurs) - 1)[user] if not occurs.all() else user
    return pd.DataFrame(
        {
            "user": pd.Categorical.from_codes(code, names[occurs] if not occurs.all() else names, validate=False),
            "municipality": pd.Categorical.from_codes(town, towns, validate=False),
            "key": key,
        },
        copy=False,
    )


def towns_of(cells: Cells) -> tuple[pd.Series, pd.Index]:
    """The row of each cell's municipality among the sorted names, −1 if unknown; and these names."""
    missing = {"cell", "municipality"} - set(getattr(cells, "columns", ()))
    if missing:
        raise ValueError(f"cells must be a table with the columns cell, municipality (missing: {', '.join(sorted(missing))})")
    twice = cells["cell"].duplicated()
    if twice.any():
        raise ValueError(f"every cell must occur once in cells ({cells['cell'][twice].iloc[0]} occurs twice)")
    town = cells["municipality"].astype("object").where(cells["municipality"].notna(), None)
    towns = pd.Index(sorted({str(name) for name in town.dropna()}), dtype="str", name="municipality")
    row = np.array([-1 if name is None else towns.get_loc(str(name)) for name in town], np.int32)
    return pd.Series(row, pd.Index(cells["cell"].astype(str), name="cell")), towns


def _places(column: pd.Series, town_of: pd.Series) -> np.ndarray:
    """The municipality of each cell of a column: −1 if it has none, −2 if the cell is unknown."""
    cell = column.astype("category").cat
    row = town_of.index.get_indexer(cell.categories.astype(str))
    place = np.where(row < 0, -2, town_of.to_numpy()[row]) if len(town_of) else np.full(len(row), -2)
    return np.r_[place, -2].astype(np.int32)[cell.codes.to_numpy()]


def _last(calls: Calls, begins: np.ndarray, window: Window) -> np.ndarray:
    """The slot of each call's last millisecond."""
    lasts = np.minimum(np.nan_to_num(calls["duration"].to_numpy(float)), 1e9) * 1000  # 30 years, beyond any window
    return np.maximum(window.slot_of(begins + np.maximum(np.ceil(lasts).astype(np.int64) - 1, 0)), window.slot_of(begins))


def _masks(events, users: int, window: Window) -> tuple[np.ndarray, ...]:
    """For each occurring (town, user), sorted: user, town, and the days with a call as bits (:meth:`Window.bits`)."""
    bits = window.bits()
    group, masks = [], ([], [])
    for user, town, low, high in events:
        high = np.minimum(high, 21 * window.weeks - 1)
        lengths = high - low + 1
        slot = np.repeat(low, lengths) + np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        group.append(np.repeat(town.astype(np.int64) * users + user, lengths))
        for mask, bit in zip(masks, bits, strict=True):
            mask.append(bit[slot])
    group = np.concatenate(group)
    order = np.argsort(group, kind="stable")
    group = group[order]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    if not len(starts):
        return tuple(np.zeros(0, np.int64) for _ in range(4))
    joined = (np.bitwise_or.reduceat(np.concatenate(mask)[order], starts) for mask in masks)
    town, user = np.divmod(group[starts], users)
    return user, town, *joined


def keys_of_masks(weekdays: np.ndarray, weekend: np.ndarray, weeks: int = WEEKS) -> np.ndarray:
    """The keys of masks of days (:meth:`Window.bits`): the number of bits set in each cell."""
    weekdays, weekend = np.asarray(weekdays, np.int64), np.asarray(weekend, np.int64)
    if weekdays.ndim != 1 or weekdays.shape != weekend.shape:
        raise ValueError(
            f"masks of days must be two rows of whole numbers of equal length (got {weekdays.shape} and {weekend.shape})"
        )
    return _keys_of_masks(weekdays, weekend, _SHIFTS[: 6 * weeks])


_SET_BITS = np.array([days.bit_count() for days in range(32)])


@numba.njit(cache=True)
def _keys_of_masks(weekdays, weekend, shifts):
    keys = np.zeros(len(weekdays), np.int64)
    for i in range(len(keys)):
        for cell in range(len(shifts)):
            group = cell // 6 * 3 + cell % 3
            days = (weekdays[i] >> (5 * group)) & 31 if cell // 3 % 2 == 0 else (weekend[i] >> (2 * group)) & 3
            keys[i] += _SET_BITS[days] << shifts[cell]
    return keys


def day_counts(keys, weeks: int = WEEKS) -> np.ndarray:
    """The days with a call in each cell, uint8 (n, 6 · weeks), for keys (n,).

    Raises ValueError for an invalid key: negative, of more weeks, or with more days in a cell than it has.
    """
    weeks = whole("weeks", weeks, 1, WEEKS, f"must be a whole number from 1 to {WEEKS}")
    keys = np.asarray(keys)
    if keys.ndim != 1 or keys.dtype.kind not in "iu":
        raise ValueError(f"keys must be whole numbers, one per profile (got {keys.dtype} of shape {keys.shape})")
    keys = keys.astype(np.int64, copy=False)
    cells = 6 * weeks
    days = np.empty((len(keys), cells), np.uint8)
    wrong = (keys < 0) | (keys >> (15 * weeks) != 0)
    for cell in range(cells):
        days[:, cell] = (keys >> int(_SHIFTS[cell])) & int(_BITS[cell])
        wrong |= days[:, cell] > DAYS[cell]
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"a key must be that of a profile of {weeks} weeks (got {keys[row]} in row {row})")
    return days


def values(keys, weeks: int = WEEKS) -> np.ndarray:
    """The profiles of keys (n,) as in the paper: shares of days in [0, 1], float64 (n, 6 · weeks)."""
    days = day_counts(keys, weeks)
    return days / DAYS[: days.shape[1]]


def keys(counts, weeks: int = WEEKS) -> np.ndarray:
    """The keys, int64 (n,), for days with a call, whole numbers (n, 6 · weeks): the inverse of :func:`day_counts`."""
    weeks = whole("weeks", weeks, 1, WEEKS, f"must be a whole number from 1 to {WEEKS}")
    counts = np.asarray(counts)
    cells = 6 * weeks
    if counts.ndim != 2 or counts.shape[1] != cells or counts.dtype.kind not in "iu":
        raise ValueError(
            f"counts must be whole numbers, one row of {cells} cells per profile (got {counts.dtype} of shape {counts.shape})"
        )
    wrong = (counts < 0) | (counts > DAYS[:cells])
    if wrong.any():
        row, cell = np.argwhere(wrong)[0]
        raise ValueError(
            f"a cell must count from 0 to its {DAYS[cell]} days (got {counts[row, cell]} in row {row}, cell {cell})"
        )
    packed = np.zeros(len(counts), np.int64)
    for cell in range(cells):
        packed |= counts[:, cell].astype(np.int64) << int(_SHIFTS[cell])
    return packed


def key_mask(cells) -> int:
    """Mask of the key bits of these cells: profiles agree in them if and only if ``keys & key_mask(cells)`` agree."""
    return int(np.bitwise_or.reduce(_BITS[cells] << _SHIFTS[cells], initial=0))


def known_cells(weeks: int) -> np.ndarray:
    """h: the cells known to an adversary who knows the first ``weeks`` weeks, 1 to 4 (§6, §7)."""
    return np.arange(6 * whole("weeks", weeks, 1, WEEKS, f"must be a whole number from 1 to {WEEKS}"))


def cell_numbers(h, cells: int = 6 * WEEKS) -> np.ndarray:
    """h as rising numbers of cells, of ``cells`` in all: all (None), the first weeks (a whole number), or a list of cells."""
    if h is None:
        return np.arange(cells)
    rule = f"must be the first 1 to {WEEKS} weeks, or a list of cells from 0 to {cells - 1}, each once"
    if np.ndim(h) == 0:
        h = known_cells(whole("h", h, 1, WEEKS, rule))
    chosen = sorted(whole("h", cell, 0, cells - 1, rule) for cell in h)
    if not 0 < len(set(chosen)) == len(chosen):
        raise ValueError(f"h {rule} (got {chosen})")
    return np.array(chosen)


def _check(calls, needed: tuple[str, ...]) -> None:
    missing = [c for c in ("user", "t", "cell", *needed) if c not in getattr(calls, "columns", ())]
    if not isinstance(calls, pd.DataFrame) or missing:
        raise ValueError(f"calls must be a table from as_calls() (missing: {', '.join(missing)})")
    if not isinstance(calls["t"].dtype, pd.DatetimeTZDtype):
        raise ValueError(f"column t of calls must hold times with a zone (it holds {calls['t'].dtype})")
    incomplete = calls["t"].isna()
    for name in ("user", "cell"):
        incomplete |= calls[name].isna() | (calls[name] == "")
    if incomplete.any():
        raise ValueError(
            f"every call must have a user, a time and a cell ({incomplete.sum()} do not, the first in row {incomplete.argmax()}): without() leaves them out"
        )
    if "duration" in calls.columns:  # checked for every call, as in mobpriv.icp.files, even if no profile depends on it
        duration = calls["duration"].to_numpy(float)
        wrong = (duration < 0) | np.isinf(duration)
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"durations must be seconds, not negative (got {duration[row]} in row {row}): without() leaves such calls out"
            )
