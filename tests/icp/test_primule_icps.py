"""Individual call profiles: the window and its clocks, the profiles against their definition, keys and values; and what is refused."""

from datetime import date

import naive_primule as naive
import numpy as np
import pandas as pd
from call_making import CELLS, ROME, calls_of
from conftest import refusals
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mobpriv.icp.profiles import (
    DAYS,
    WEEKDAY_SLOTS,
    Window,
    day_counts,
    icps,
    key_mask,
    keys,
    keys_of_masks,
    known_cells,
    values,
)

NOVEMBER = Window("2016-10-31", ROME)
TOWN = {"c1": "Pisa", "c2": "Pisa", "c3": "Lucca"}


def table_of(extraction, weeks=4):
    """{(municipality, user): values}"""
    rows = extraction.profiles
    shares = values(rows["key"].to_numpy(), weeks)
    return {(m, u): v for m, u, v in zip(rows["municipality"], rows["user"], shares.tolist(), strict=True)}


def omitted(extraction):
    return {rule: (records, users) for rule, records, users in extraction.left_out.itertuples(index=False)}


def test_the_example_of_the_paper():
    """§3.1, P4: one call on Monday, ten on Tuesday and two on Friday make (1 + 1 + 1) / 5 = 0.6."""
    days = ["2016-10-31"] + ["2016-11-01"] * 10 + ["2016-11-04"] * 2
    calls = calls_of([("a", f"{day}T10:{k:02}", "c1") for k, day in enumerate(days)], ROME)
    table = table_of(icps(calls, CELLS, NOVEMBER))
    assert table == {("Pisa", "a"): [0, 0.6, *[0] * 22]}


def test_the_order_of_cells_and_keys():
    assert DAYS.tolist() == [5, 5, 5, 2, 2, 2] * 4
    assert WEEKDAY_SLOTS.tolist() == [0, 1, 2, 6, 7, 8, 12, 13, 14, 18, 19, 20]
    assert known_cells(2).tolist() == list(range(12))
    # week 1, weekend, evening: cell 11; 15 bits of week 0, 9 of weekdays, 4 of the weekend before
    one = np.zeros((1, 24), int)
    one[0, 11] = 2
    assert keys(one).tolist() == [2 << (15 + 9 + 4)]
    assert values(keys(one))[0, 11] == 1
    assert keys(np.array([DAYS])).tolist() == [naive.key(DAYS)]
    assert naive.key(DAYS).bit_length() == 60
    assert keys(np.array([DAYS]))[0] & key_mask([0, 4]) == 5 | 2 << 11


@given(
    st.integers(1, 4).flatmap(
        lambda weeks: st.tuples(
            st.just(weeks), st.lists(st.tuples(*[st.integers(0, int(d)) for d in DAYS[: 6 * weeks]]), min_size=1, max_size=8)
        )
    )
)
def test_keys_are_profiles(drawn):
    weeks, rows = drawn
    days = np.array(rows)
    packed = keys(days, weeks)
    assert packed.tolist() == [naive.key(row) for row in rows]
    assert np.array_equal(day_counts(packed, weeks), days)
    assert np.array_equal(values(packed, weeks), days / DAYS[: 6 * weeks])


ZONES = [ROME, "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo", "America/St_Johns", "UTC"]
starts = st.dates(date(2010, 3, 1), date(2010, 3, 28)) | st.dates(date(2016, 10, 1), date(2016, 11, 6))


@st.composite
def windows(draw):
    slots = draw(st.just((0, 8, 19)) | st.tuples(st.just(0), st.integers(1, 11), st.integers(12, 23)))
    return Window(draw(starts), draw(st.sampled_from(ZONES)), draw(st.integers(1, 4)), slots)


@st.composite
def cases(draw):
    window = draw(windows())
    start, end = (int(t.timestamp()) * 1000 for t in window.period)
    hours = (end - start) // 3_600_000
    # on and about full hours: there slots and days begin, and clocks change
    moment = st.builds(
        lambda h, ms: start + h * 3_600_000 + ms, st.integers(-30, hours + 30), st.sampled_from([-1, 0, 1, 1_800_000])
    )
    seconds = st.sampled_from([0.0, 60.0, 0.001, 3600.0, 7 * 3600.0, 50_000.0, 200_000.0])
    cell = st.sampled_from(["c1", "c2", "c3", "nowhere"])
    return window, draw(st.lists(st.tuples(st.sampled_from("abc"), moment, cell, cell, seconds), max_size=25))


@given(cases(), st.booleans(), st.booleans())
# in Newfoundland clocks were put back at a minute past midnight: the day begins twice
@example((Window("2010-11-07", "America/St_Johns"), [("a", 1_289_097_030_000, "c1", "c1", 60.0)]), False, False)
def test_profiles_equal_the_definition(case, every_slot, both_cells):
    window, records = case
    calls = calls_of(records)
    before = calls.copy(deep=True)
    extraction = icps(calls, CELLS, window, every_slot=every_slot, both_cells=both_cells)
    pd.testing.assert_frame_equal(calls, before, check_exact=True)
    rows = [(u, naive.at(t), TOWN.get(c), s, TOWN.get(e)) for u, t, c, e, s in records]
    expected = naive.profiles(rows, window.first, window.weeks, window.zone, window.slots, every_slot, both_cells)
    assert table_of(extraction, window.weeks) == expected
    profiles = extraction.profiles
    assert list(profiles.columns) == ["user", "municipality", "key"]
    assert list(zip(profiles["municipality"], profiles["user"], strict=True)) == sorted(expected)
    # every record begins in a profile or is told
    inside = [r for r in rows if naive.cell_of(r[1], window.first, window.weeks, window.zone, window.slots)]
    outside = sum(n for rule, (n, _) in omitted(extraction).items() if "the window" in rule and not rule.startswith("end"))
    assert outside == len(rows) - len(inside)
    nowhere = [r for r in inside if r[2] is None]
    assert omitted(extraction).get("cell without a municipality", (0, 0)) == (len(nowhere), len({r[0] for r in nowhere}))


def test_the_day_with_25_hours_is_one_day():
    window = Window("2016-10-24", ROME, 1)  # clocks are put back on Sunday the 30th, 03:00 to 02:00
    assert window.period[1] - window.period[0] == pd.Timedelta(hours=169)
    twice = [1_477_785_600_000 + k * 3_600_000 for k in (0, 1)]  # 02:00 and 02:00
    table = table_of(icps(calls_of([("a", t, "c1") for t in twice]), CELLS, window), 1)
    assert table == {("Pisa", "a"): [0, 0, 0, 0.5, 0, 0]}
    assert window.slot_of(np.array(twice)).tolist() == [18, 18]
    # 07:59 and 08:00 by the clocks: eight hours behind a midnight nine hours ago
    assert window.slot_of(np.array([twice[0] + 7 * 3_600_000 - 1, twice[0] + 7 * 3_600_000])).tolist() == [18, 19]


def test_the_millisecond_at_which_clocks_go_back():
    """São Paulo put its clocks back on 2017-02-19 at 00:00, to 23:00 of the Saturday: this moment is Saturday's, by the clocks' new time."""
    window = Window("2017-02-13", "America/Sao_Paulo")
    back = pd.Timestamp("2017-02-19T02:00", tz="UTC").value // 1_000_000
    assert window.slot_of(np.array([back - 1, back, back + 3_600_000])).tolist() == [17, 17, 18]
    zoned = pd.Timestamp("2017-02-19T02:00", tz="UTC").tz_convert(window.zone)
    assert (zoned.weekday(), zoned.hour) == (5, 23)


def test_a_call_over_midnight():
    calls = calls_of([("a", "2016-11-01T23:59", "c1", "c3", 120.0)], ROME)
    evening, night = [0, 0, 0.2], [0.2, 0, 0]
    rest = [0] * 21
    assert table_of(icps(calls, CELLS, NOVEMBER)) == {("Pisa", "a"): evening + rest}
    assert table_of(icps(calls, CELLS, NOVEMBER, every_slot=True)) == {("Pisa", "a"): [0.2, 0, 0.2, *rest]}
    both = table_of(icps(calls, CELLS, NOVEMBER, both_cells=True))
    assert both == {("Pisa", "a"): evening + rest, ("Lucca", "a"): night + rest}
    # it ends on the stroke of midnight: before it
    calls = calls_of([("a", "2016-11-01T23:59", "c1", "c3", 60.0)], ROME)
    assert table_of(icps(calls, CELLS, NOVEMBER, every_slot=True)) == {("Pisa", "a"): evening + rest}


def test_what_is_left_out_is_told():
    calls = calls_of(
        [
            ("a", "2016-10-30T23:59", "c1"),
            ("a", "2016-10-30T23:58", "nowhere"),
            ("b", "2016-11-28T00:00", "c1"),
            ("b", "2016-11-01T00:00", "mars"),
            ("c", "2016-11-01T00:00", "nowhere"),
            ("c", "2016-11-01T00:00", "c3"),
            ("d", "2016-11-01T00:00", "c3", "nowhere", 60.0),
            ("d", "2016-11-27T23:59", "c3", "c1", 600.0),
        ],
        ROME,
    )
    extraction = icps(calls, CELLS, NOVEMBER)
    assert omitted(extraction) == {
        "before the window": (2, 1),
        "after the window": (1, 1),
        "cell unknown": (1, 1),
        "cell without a municipality": (1, 1),
    }
    assert extraction.profiles["user"].tolist() == ["c", "d"]
    assert extraction.profiles["user"].cat.categories.tolist() == ["c", "d"]
    assert extraction.profiles["municipality"].cat.categories.tolist() == ["Lucca", "Pisa"]
    ends = omitted(icps(calls, CELLS, NOVEMBER, both_cells=True))
    assert (ends["end cell without a municipality"], ends["end after the window"]) == ((1, 1), (1, 1))
    nobody = icps(calls.iloc[:0], CELLS, NOVEMBER)
    assert (len(nobody.profiles), len(nobody.left_out)) == (0, 0)
    assert nobody.profiles.dtypes["key"] == np.int64
    assert day_counts(nobody.profiles["key"]).shape == (0, 24)


@settings(max_examples=15)
@given(cases(), st.randoms())
def test_the_order_of_records_does_not_matter(case, random):
    window, records = case
    calls = calls_of(records)
    shuffled = calls.sample(frac=1, random_state=random.randrange(1000))
    as_text = shuffled.assign(user=shuffled["user"].astype(str), cell=shuffled["cell"].astype(str))
    first = icps(calls, CELLS, window)
    for other in (icps(shuffled, CELLS, window), icps(as_text, CELLS.iloc[::-1], window)):
        pd.testing.assert_frame_equal(first.profiles, other.profiles)
        pd.testing.assert_frame_equal(first.left_out, other.left_out)


def test_the_window():
    assert Window(pd.Timestamp("2016-11-01"), ROME).first == date(2016, 11, 1)
    assert Window(pd.Timestamp("2016-10-31T23:00", tz="UTC"), ROME).first == date(2016, 11, 1)
    assert Window("2016-11-01", ROME) == Window(date(2016, 11, 1), ROME, 4.0, [0, 8, 19])
    assert Window("2016-11-01", ROME).period[1] == pd.Timestamp("2016-11-29", tz=ROME)


WINDOWS = [
    (lambda: Window("soon", ROME), "first and zone must be a day and a time zone"),
    (lambda: Window(None, ROME), "first and zone must be a day"),
    (lambda: Window("2016-11-01T10:00", ROME), "first must be a day, not a time of day"),
    (lambda: Window("2016-11-01", "Mars/Olympus"), "a day and a time zone"),
    (lambda: Window("2016-11-01", 3), "zone must be the name of a time zone"),
    (lambda: Window("2016-11-01", ROME, 5), "weeks must be a whole number from 1 to 4 .got 5"),
    (lambda: Window("2016-11-01", ROME, 0), "weeks must be"),
    (lambda: Window("2016-11-01", ROME, 4, (8, 19)), "slots must be three full hours"),
    (lambda: Window("2016-11-01", ROME, 4, (1, 8, 19)), "slots must be"),
    (lambda: Window("2016-11-01", ROME, 4, (0, 19, 8)), "slots must be"),
    (lambda: Window("2016-11-01", ROME, 4, (0, 8, 24)), "slots must be"),
    (lambda: Window("2016-11-01", ROME, 4, (0, 8.5, 19)), "slots must be"),
    (lambda: Window("2016-11-01", ROME, 4, 8), "slots must be"),
    (lambda: Window("2011-12-28", "Pacific/Apia"), "they skip 2011-12-30"),
]
CALL = calls_of([("a", "2016-11-01T10:00", "c1")], ROME)


NOBODY = "every call must have a user, a time and a cell .1 do not, the first in row 0"
PROFILES = [
    (lambda: icps(3, CELLS, NOVEMBER), "calls must be a table"),
    (lambda: icps(CALL.drop(columns="cell"), CELLS, NOVEMBER), "missing: cell"),
    (lambda: icps(CALL.drop(columns="duration"), CELLS, NOVEMBER, every_slot=True), "missing: duration"),
    (lambda: icps(CALL.drop(columns="end_cell"), CELLS, NOVEMBER, both_cells=True), "missing: end_cell"),
    (lambda: icps(CALL.assign(t=pd.Timestamp("2016-11-01")), CELLS, NOVEMBER), "must hold times with a zone"),
    (lambda: icps(CALL.assign(user=None), CELLS, NOVEMBER), NOBODY),
    (lambda: icps(CALL.assign(user=""), CELLS, NOVEMBER), NOBODY),
    (lambda: icps(CALL.assign(cell=pd.Categorical([""])), CELLS, NOVEMBER), NOBODY),
    (lambda: icps(CALL.assign(duration=-5.0), CELLS, NOVEMBER), "durations must be seconds, not negative .got -5.0 in row 0"),
    (lambda: icps(CALL.assign(duration=np.inf), CELLS, NOVEMBER, both_cells=True), "durations must be seconds"),
    (lambda: icps(CALL, CELLS.drop(columns="municipality"), NOVEMBER), "missing: municipality"),
    (lambda: icps(CALL, pd.concat([CELLS, CELLS]), NOVEMBER), "every cell must occur once in cells .c1"),
    (lambda: icps(CALL, CELLS, NOVEMBER, every_slot=1), "every_slot must be True or False"),
    (
        lambda: icps(pd.concat([CALL, CALL]).assign(user=pd.Categorical([1, "1"])), CELLS, NOVEMBER),
        "users must have distinct names",
    ),
]


test_what_is_refused = refusals(
    (lambda: day_counts([-1]), r"a key must be that of a profile of 4 weeks .got -1 in row 0"),
    (lambda: day_counts([0, 1 << 60]), "in row 1"),
    (lambda: day_counts([6]), "got 6 in row 0"),  # 6 of 5 days
    (lambda: day_counts([1 << 15], 1), "of 1 weeks"),
    (lambda: day_counts([0.5]), "keys must be whole numbers"),
    (lambda: day_counts([[1]]), "one per profile"),
    (lambda: values([1], 5), "weeks must be a whole number from 1 to 4"),
    (lambda: keys(np.full((1, 24), 3)), r"from 0 to its 2 days .got 3 in row 0, cell 3"),
    (lambda: keys(np.full((1, 24), -1)), "got -1"),
    (lambda: keys(np.ones((1, 6), int)), "one row of 24 cells per profile"),
    (lambda: keys(np.ones((1, 24))), "counts must be whole numbers"),
    (lambda: known_cells(0), "weeks must be"),
    (lambda: keys_of_masks([1, 2, 3], [1]), r"masks of days must be two rows .* \(got \(3,\) and \(1,\)\)"),
    *WINDOWS,
    *PROFILES,
)


def test_clocks_change_where_they_do():
    begins, ahead = NOVEMBER.clock()
    assert ahead.tolist() == [7_200_000, 3_600_000]
    assert begins[1] == 1_477_789_200_000  # 2016-10-30 01:00 UTC
    begins, _ = Window("2010-10-20", "America/St_Johns").clock()
    assert begins[1] == 1_289_097_060_000  # a minute past midnight
