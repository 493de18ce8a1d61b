"""SQL for DuckDB that aggregates call records into individual call profiles (PRIMULE, §3.1), for :mod:`mobpriv.icp.files`.

A partial table has a row per (user, place) with the number of its records. The days with a call are bits of two masks, for
weekdays and for weekends (:meth:`mobpriv.icp.profiles.Window.bits`). A place is a municipality, or the code of a rule that the records
break.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from mobpriv.datasets import BLANK, Reading
from mobpriv.datasets.lines import REMEDIES
from mobpriv.datasets.times import DIGITS_CUT, DOUBTFUL, UNREADABLE, YEAR_1, YEAR_9999, ZONELESS
from mobpriv.datasets.wanted import MISSING
from mobpriv.icp.profiles import END_RULES, RULES, Window

_LINE_RULES = tuple(rule for rule in REMEDIES if rule != BLANK)  # rules for lines of a text that are no records
_FORM_RULES = (DIGITS_CUT, UNREADABLE, DOUBTFUL, ZONELESS)  # rules for the form of names and times
_RULE_NAMES = (*_LINE_RULES, *RULES[:2], *_FORM_RULES, *RULES[2:], *END_RULES)
"""The rules in the order of their application. The last two omit the end of a call that counts where it began."""
CODE = {rule: -1 - number for number, rule in enumerate(_RULE_NAMES)}  # codes are places below 0
_HOUR = 3_600_000  # ms
_LONGEST = 10**9  # s: 30 years, beyond any window
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_FLOATS = ("FLOAT", "DOUBLE")
_AWARE = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ", "TIMESTAMPTZ_NS", "TIMESTAMP_NS WITH TIME ZONE")
_NAIVE = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "DATE")


class Job(NamedTuple):
    """Everything that the work on a chunk needs: what to count and how to read the files."""

    window: Window
    reading: Reading
    places: pa.Table  # cell, place: the row of its municipality in ``towns``, or the code of a rule
    towns: tuple[str, ...]
    every_slot: bool
    both_cells: bool


def sql_can_read(job: Job, types: dict[str, str]) -> bool:
    """Whether :func:`partial_table_sql` reads columns of these types as :func:`mobpriv.datasets.read_calls` does.

    Names must be text or whole numbers, times whole numbers or moments, durations numbers.
    """
    columns = job.reading.columns
    time = (*_NUMBERS,) if job.reading.time in ("s", "ms") else (*_NAIVE, *_AWARE)
    names = dict.fromkeys(("user", "cell", "end_cell"), ("VARCHAR", *_NUMBERS))
    allowed = names | {"t": time, "duration": (*_NUMBERS, *_FLOATS)}
    return all(types.get(columns[role]) in kinds for role, kinds in allowed.items() if role in columns)


def partial_table_sql(job: Job, source: str, types: dict[str, str], faults: bool = False) -> str:
    """SQL for the partial table of the records of ``source``: their moments, rules, places, and the slots and days they count
    for.

    ``faults``: the column ``fault`` of ``source`` holds the code of a broken rule, or 0.

    The table ``hours`` gives the slot and day of a full hour of the window's clocks. DuckDB would evaluate an expression again
    wherever it is used.
    """
    columns, window = job.reading.columns, job.window
    timed, lasting, ends = "duration" in columns, job.every_slot or job.both_cells, job.both_cells
    utc, clock = _moment(_name(columns["t"]), types[columns["t"]], job.reading, window)
    lasts = f"case when isfinite(seconds) then greatest(ceil(greatest(least(seconds, {_LONGEST}), 0) * 1000)::bigint - 1, 0) else 0 end"
    rules = {
        "user missing": "who is null or who = ''",
        "time missing": "not timed",
        UNREADABLE: "ms is null",
        DOUBTFUL: _doubtful("clock", window),
        "before the window": "ms < 0",
        "after the window": f"ms >= {_HOUR * 24 * 7 * window.weeks}",
        "cell missing": f"site is null or site = '' or here.place = {CODE['cell missing']}",
        "cell unknown": "here.place is null",
        "cell without a municipality": f"here.place = {CODE['cell without a municipality']}",
    }
    if ends:
        rules["end cell unknown"] = "end_site <> '' and ending.place is null"
    if timed:
        rules["duration not a number"] = "isinf(seconds)"
        rules["duration negative"] = "seconds < 0"
    judged = f"case when fault < 0 then fault {_cases(rules)} else here.place end"
    final = f"case when ending.place is null or ending.place = {CODE['cell missing']} then here.place else ending.place end"
    records = f"""
        with records as (
            select {_text(columns["user"])} as who, {_cells_of(columns["cell"], types, faults)} as site,
                {_cells_of(columns["end_cell"], types, faults) if ends else "null"} as end_site,
                {"fault" if faults else "0"} as fault,
                {_name(columns["t"])} is not null as timed, {utc} as utc, {clock} as clock,
                {f"nullif({_name(columns['duration'])}::double, 'nan'::double)" if timed else "null"} as seconds
            from {source}),
        clocked as (
            select *, {_clocks("utc", "clock", window)} as ms,
                {_clocks(f"(utc + {lasts})", f"(clock + {lasts})", window) if lasting else "null"} as last_ms
            from records)"""
    if not lasting:
        return _of_named_users(f"""{records}
        select who as user, ({judged})::smallint as place,
            bit_or(begun.weekdays) as weekdays, bit_or(begun.weekend) as weekend, count(*) as records
        from clocked left join places here on here.cell = site {_ENDING if ends else ""}
            left join hours begun on begun.hour = ms // {_HOUR}
        group by 1, 2""")
    return _of_named_users(records + _events_by_slot(job, judged, final))


_ENDING = "left join places ending on ending.cell = end_site"


_WHITE = "".join(filter(str.isspace, map(chr, range(0x3001))))
_CUT = r"(contains(user, 'E+') and regexp_matches(user, '^[+-]?\d(\.\d*)?E\+\d+$'))"  # mobpriv.datasets.times.DIGITS_CUT


def _plain(name: str) -> str:
    """SQL for :func:`mobpriv.datasets.wanted.plain_names` of a text."""
    text = f"trim({name}, {sql_quoted(_WHITE)})"
    return rf"case when contains({name}, '.0') then regexp_replace({text}, '^([+-]?\d+)\.0+$', '\1') else {text} end"


def _doubtful(clock: str, window: Window) -> str:
    """SQL condition: a time without a zone lies in an hour that the window's clocks show twice or never."""
    begins, ahead = window.clock()
    turns = [(end + min(pair), end + max(pair)) for end, *pair in zip(begins[1:], ahead[:-1], ahead[1:], strict=True)]
    return " or ".join(f"({clock} >= {first} and {clock} < {end})" for first, end in turns) or "false"


def _of_named_users(parts: str) -> str:
    """Omit users whose name means a missing value. The test runs once per row of the partial table, not per record."""
    nobody = f"user in ({', '.join(map(sql_quoted, sorted(MISSING | {''})))})"
    again = f"({nobody} or {_CUT}) and place in ({', '.join(str(CODE[rule]) for rule in END_RULES)})"  # ends of calls whose beginning counts already
    return f"""
        select case when {nobody} then null else user end as user,
            (case when {nobody} then {CODE["user missing"]} when {_CUT} then {CODE[DIGITS_CUT]} else place end)::smallint as place,
            weekdays, weekend, case when {again} then 0 else records end as records
        from (select {_plain("user")} as user, * exclude (user) from ({parts}))"""


def _events_by_slot(job: Job, judged: str, final: str) -> str:
    """SQL for the events of a record by slot, if a call counts in every slot that it touches or also where it ended."""
    slots = 21 * job.window.weeks
    end_rules = {
        "end cell without a municipality": "final < 0",
        "end after the window": f"last >= {slots} and not {job.every_slot}",
    }
    events = [f"select who, place, first, {'last' if job.every_slot else 'first'} as last, 1 as record from judged"]
    if job.both_cells:
        end = f"""select who, case {_cases(end_rules)} else final end as place,
            {"first" if job.every_slot else "last"} as first, last from judged where place >= 0"""
        events.append(f"select who, place, first, last, (place < 0)::integer as record from ({end})")
    each = f"unnest(case when place < 0 then [first] else range(first, least(last, {slots - 1}) + 1) end)"
    return f""",
        judged as (
            select who, {judged} as place, coalesce(begun.slot, 0) as first,
                greatest(coalesce(ended.slot, {slots}), coalesce(begun.slot, 0)) as last,
                {final if job.both_cells else "null"} as final
            from clocked left join places here on here.cell = site {_ENDING if job.both_cells else ""}
                left join hours begun on begun.hour = ms // {_HOUR} left join hours ended on ended.hour = last_ms // {_HOUR}),
        events as ({" union all ".join(events)}),
        spread as (select who, place, first, {each} as slot, record from events),
        unfolded as (select who, place, slot, record * (slot = first)::integer as record from spread)
        select who as user, place::smallint as place,
            bit_or(weekdays) as weekdays, bit_or(weekend) as weekend, sum(record)::bigint as records
        from unfolded left join slots using (slot)
        group by 1, 2"""


def _cases(rules: dict[str, str]) -> str:
    return " ".join(f"when {broken} then {CODE[rule]}" for rule, broken in rules.items())


def lookups(window: Window) -> tuple[pa.Table, pa.Table]:
    """Two tables for the window's clocks: slot and bit of the day for each full hour, and the same for each slot."""
    hour = np.arange(24 * 7 * window.weeks, dtype=np.int64)
    slot = (hour // 24 * 3 + np.searchsorted(window.slots, hour % 24, side="right") - 1).astype(np.int64)
    weekdays, weekend = window.bits()
    slots = {"slot": np.arange(len(weekdays)), "weekdays": weekdays, "weekend": weekend.astype(np.int32)}
    return pa.table({"hour": hour, "slot": slot, "weekdays": weekdays[slot], "weekend": slots["weekend"][slot]}), pa.table(
        slots
    )


def _clocks(utc: str, clock: str, window: Window) -> str:
    """SQL for the time on the window's clocks in ms since its beginning, for moments in UTC or times without a zone."""
    begins, ahead = window.clock()
    pieces = [f"when {utc} < {end} then {value}" for end, value in zip(begins[1:], ahead[:-1], strict=True)]
    shift = f"case {' '.join(pieces)} else {ahead[-1]} end" if pieces else str(ahead[-1])
    shown = f"{utc} + {shift}" if clock == "null" else f"coalesce({clock}, {utc} + {shift})"
    return f"({shown} - {window.origin})"


def _moment(column: str, kind: str, reading: Reading, window: Window) -> tuple[str, str]:
    """SQL for the times of a column, in ms: in UTC since 1970, and, for times without a zone, on the window's clocks.

    "null" replaces the one that does not exist.
    """
    if kind in _NUMBERS:
        unit = 1000 if reading.time == "s" else 1
        return f"case when {column} between {YEAR_1 // unit} and {YEAR_9999 // unit} then {column}::bigint * {unit} end", "null"
    # pandas truncates to whole milliseconds; epoch_ms would round
    ms = (
        f"epoch_ns({column}) // 1000000"
        if "_NS" in kind
        else f"epoch_us({column}::{kind if kind in _AWARE else 'timestamp'}) // 1000"
    )
    return (f"({ms})", "null") if kind in _AWARE or reading.zone == "UTC" else ("null::bigint", f"({ms})")


def _cells_of(column: str, types: dict[str, str], plain: bool) -> str:
    """SQL for a column of cells as text; ``plain``: they are plain already. User names are made plain once each, after
    counting.
    """
    return _plain(_text(column)) if not plain and types[column] == "VARCHAR" else _text(column)


def _text(column: str) -> str:
    return f"{_name(column)}::varchar"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def sql_quoted(text) -> str:
    return "'" + str(text).replace("'", "''") + "'"
