"""Profiles out of call records: the counts, the day and its halves, the sample, the choice of POIs; and what is refused."""

import naive_dchi as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from dchi_making import day as made_day
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.visits.profiles import as_booleans, as_counts, booleans, count_profiles, day, eligible, pois_of, sample

START = pd.Timestamp("2026-03-02", tz="UTC")
POIS = {"c1": "p1", "c2": "p1", "c3": "p2"}


def calls_of(records):
    """Calls from (user, minutes after START, cell)."""
    users, minutes, cells = zip(*records, strict=True) if records else ((), (), ())
    t = (START + pd.to_timedelta(list(minutes), unit="min")).as_unit("ms")
    return pd.DataFrame({"user": pd.Categorical(users), "t": t, "cell": pd.Categorical(cells)})


events = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-30, 90), st.sampled_from(["c1", "c2", "c3", "far"])), max_size=40
)


@given(events)
def test_counts_equal_the_definition(records):
    calls, period = calls_of(records), (START, START + pd.Timedelta(hours=1))
    before = calls.copy(deep=True)
    counts, left_out = count_profiles(calls, POIS, period)
    pd.testing.assert_frame_equal(calls, before, check_exact=True)
    assert counts.columns.tolist() == ["p1", "p2"]
    assert counts.index.tolist() == sorted({u for u, _, _ in records})
    expected = naive.counts(records, POIS, counts.index, counts.columns, 0, 60)
    assert {(u, p): counts.loc[u, p] for u in counts.index for p in counts.columns} == expected
    # every call is counted, in a profile or in what was left out
    assert counts.to_numpy().sum() + left_out["records"].sum() == len(records)
    outside = [r for r in records if not 0 <= r[1] < 60]
    far = [r for r in records if 0 <= r[1] < 60 and r[2] == "far"]
    counted = {rule: (records, users) for rule, records, users in left_out.itertuples(index=False)}
    for rule, those in (("outside the period", outside), ("outside the region", far)):
        assert counted.get(rule, (0, 0)) == (len(those), len({u for u, _, _ in those}))


def test_users_are_sorted_whatever_the_order_of_their_categories():
    calls = calls_of([("b", 0, "c1"), ("c", 0, "c1"), ("c", 1, "c1"), ("a", 1, "c3")])
    turned = calls.assign(user=calls["user"].cat.set_categories(["nobody", "c", "a", "b"]))
    for table in (calls, turned, calls.assign(user=calls["user"].astype(str))):
        counts = count_profiles(table, POIS).counts
        assert counts.index.tolist() == ["a", "b", "c"]
        assert counts["p1"].tolist() == [0, 1, 2]


def test_calls_without_a_time_or_a_cell_are_told():
    calls = calls_of([("a", 0, "c1"), ("b", 1, "c1"), ("b", 2, "c3")])
    calls.loc[0, "t"], calls.loc[1, "cell"] = pd.NaT, None
    counts, left_out = count_profiles(calls, pd.Series(POIS))
    assert left_out.values.tolist() == [["no time", 1, 1], ["no cell", 1, 1]]
    assert counts.to_numpy().tolist() == [[0, 0], [0, 1]]
    assert booleans(counts).to_numpy().tolist() == [[False, False], [False, True]]


def test_the_day_is_cut_at_noon_by_the_clocks_of_the_zone():
    full, first, second = day("2026-03-02 17:00", "Asia/Tokyo")
    assert full == (pd.Timestamp("2026-03-01 15:00", tz="UTC"), pd.Timestamp("2026-03-02 15:00", tz="UTC"))
    assert first[1] == second[0] == pd.Timestamp("2026-03-02 03:00", tz="UTC")
    assert (first[0], second[1]) == full
    # the day on which clocks are put forward has 23 hours, 11 of them in the morning
    full, first, _ = day("2026-03-29", "Europe/Paris")
    assert (full[1] - full[0], first[1] - first[0]) == (pd.Timedelta(hours=23), pd.Timedelta(hours=11))
    # in Beirut they are put forward at midnight: the day begins at one
    assert str(day("2026-03-29", "Asia/Beirut").full[0]) == "2026-03-29 01:00:00+03:00"


def test_the_sample():
    counts = made_day(300)
    enough = (counts > 0).sum(axis="columns") >= 6
    assert 0 < enough.sum() < 300
    pd.testing.assert_frame_equal(eligible(counts), counts[enough])
    drawn = sample(counts, np.random.default_rng(1))
    assert len(drawn) == 100
    assert drawn.index.is_monotonic_increasing
    assert drawn.index.is_unique
    assert enough[drawn.index].all()
    pd.testing.assert_frame_equal(drawn, sample(counts, np.random.default_rng(1)))
    assert not drawn.index.equals(sample(counts, np.random.default_rng(2)).index)
    with pytest.raises(ValueError, match=r"a sample of 301 users needs as many with 6 distinct POIs .* of 300"):
        sample(counts, np.random.default_rng(1), 301)
    with pytest.raises(ValueError, match="least must be a whole number, at least 1"):
        eligible(counts, 0)
    # who has no visit is never drawn
    assert len(eligible(counts * 0, 1)) == 0


CELLS = pd.DataFrame(
    {
        "cell": ["b", "a", "c", "d", "e", "f"],
        "lat": [45.0, 45.0, 45.001, 45.002, 46.0, 47.0],
        "lng": [5.0, 5.0, 5.001, 5.0, 179.9999, -179.9999],
    }
)


def test_pois_are_sites_where_they_stand_densest():
    poi = pois_of(CELLS, 3)
    assert poi.to_dict() == {"b": "a", "a": "a", "c": "c", "d": "d"}  # two cells at one site are one POI, named by the first
    assert list(dict.fromkeys(poi)) == ["a", "c", "d"]
    assert pois_of(CELLS, 5).nunique() == 5
    # a degree of latitude apart, across the date line
    assert set(pois_of(CELLS.iloc[[0, 4, 5]], 2)) == {"e", "f"}
    used = pois_of(CELLS, 2, "used", pd.Series({"b": 5, "a": 5, "e": 9, "f": 10}))
    assert set(used) == {"a", "f"}


CALL = calls_of([("a", 0, "c1")])
TRACES = pd.DataFrame({"user": ["a"], "t": [START], "lat": [1.0], "lng": [2.0]})
HALF_PLACED = CELLS.assign(lat=[45, np.nan, 45, 45, 45, np.inf])
TWO_USES = pd.DataFrame({"cell": [1, 2], "lat": [45.0, 46.0], "lng": [5.0, 5.0]}), 1, "used"
NO_DAYS = [(None, "UTC"), ("x", "UTC"), ([1], "UTC"), ("2026-03-02", "No/Where"), ("2026-03-02", "Europe"), ("2026-03-02", "")]


test_what_is_refused = refusals(
    (count_profiles, (TRACES, POIS), "these are traces, not call records"),
    (count_profiles, (3, POIS), "calls must be a table with the columns user, t, cell"),
    (count_profiles, (CALL.assign(t=pd.Timestamp("2026-03-02")), POIS), "must hold times with a zone"),
    (count_profiles, (CALL.assign(user=None), POIS), "every call must have a user .1 of 1 have none"),
    (
        count_profiles,
        (calls_of([("a", 0, "c1")] * 2).assign(user=pd.Series([10, "10"], dtype=object)), POIS),
        "10 occurs twice",
    ),
    (count_profiles, (CALL, {}), "pois must map one cell or more"),
    (count_profiles, (CALL, pd.Series(["p", "q"], ["c", "c"])), "every cell must occur once in pois .c occurs twice"),
    (count_profiles, (CALL, POIS, (START, START)), "the first before the second"),
    (count_profiles, (CALL, POIS, (START.tz_localize(None), START)), "two times with a zone"),
    (count_profiles, (CALL, POIS, 5), "a period must be two times"),
    (pois_of, (CELLS, 6), r"6 POIs need as many sites \(the 6 cells are at 5\)"),
    (pois_of, (CELLS, 0), "m must be a whole number"),
    (pois_of, (CELLS, 2, "near"), 'choose must be "densest" or "used"'),
    (pois_of, (CELLS, 2, "used"), "needs use"),
    (pois_of, (*TWO_USES, pd.Series({"2": 7})), r"use must hold calls of these cells .it has none of them; its first is '2'"),
    (pois_of, (HALF_PLACED, 2), r"every cell must have coordinates \(2 of 6 have none, the first is a\)"),
    (pois_of, (CELLS.assign(cell="x"), 2), "every cell must occur once in cells"),
    (pois_of, (CELLS.drop(columns="lat"), 2), "missing: lat"),
    (as_counts, (pd.DataFrame({"p": [1, -2]}, ["a", "b"]),), "must not be negative .got -2 of user b, POI p"),
    (as_counts, (pd.DataFrame({"p": [1.0, np.nan]}, ["a", "b"]),), "whole numbers .got nan of user b, POI p"),
    (as_counts, (pd.DataFrame({"p": [1, 2]}, ["a", "a"]),), "every user must occur once"),
    (as_counts, (pd.DataFrame([[1, 2]], ["a"], ["p", "p"]),), "every POI must occur once"),
    (as_counts, (pd.DataFrame({"p": [True]}),), "whole numbers .they hold bool"),
    (as_counts, ([[1]],), "must be a table"),
    (as_booleans, (pd.DataFrame({"p": [0, 1]}),), "must hold truth values"),
    (day, ("2011-12-30", "Pacific/Apia"), r"a day that exists by the clocks of Pacific/Apia .got 2011-12-30"),
    (day, ("2026-03-02", 3), "zone must be the name of a time zone"),
    *((day, given, r"^date and zone must be a day and a time zone") for given in NO_DAYS),
    call=lambda function, given: function(*given),
)
