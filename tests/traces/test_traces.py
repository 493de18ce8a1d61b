import re

import naive_traces as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from hypothesis import given, settings
from hypothesis import strategies as st

import mobpriv
from mobpriv.traces import table as tr


def table(rows, zone="UTC"):
    out = pd.DataFrame(rows, columns=["user", "t", "lat", "lng"])
    t = pd.to_datetime(out["t"], unit="s")
    return out.assign(t=t.dt.tz_localize(zone) if zone else t)


DAY = 86_400
GOOD = [("b", 1_450_000_000, 45.0, 4.0), ("a", 1_450_000_060, 45.1, 4.0), ("a", 1_450_000_000, 45.2, 4.0)]


def test_rows_are_sorted_and_typed_and_the_table_is_left_alone():
    given = table(GOOD)
    before = given.copy()
    out = tr.as_traces(given)
    assert out["user"].tolist() == ["a", "a", "b"]
    assert out["lat"].tolist() == [45.2, 45.1, 45.0]
    assert str(out["t"].dtype) == "datetime64[ms, UTC]"
    pd.testing.assert_frame_equal(given, before)
    pd.testing.assert_frame_equal(tr.as_traces(out), out)
    users, offsets = tr.by_user(out)
    assert (users.tolist(), offsets.tolist()) == (["a", "b"], [0, 2, 3])
    # equal times keep their order
    out = tr.as_traces(table([("a", 1_450_000_060, 1.0, 4.0), ("a", 1_450_000_000, 3.0, 4.0), ("a", 1_450_000_000, 2.0, 4.0)]))
    assert out["lat"].tolist() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda t: t.iloc[::-1], "must be sorted by user and time (row 1 is not)"),  # the users
        (lambda t: t.iloc[[1, 0, 2]], "must be sorted by user and time (row 1 is not)"),  # the times of one user
        (lambda t: t.assign(lat=[45.0, np.nan, 45.0]), "lat must be a number in every record (row 1 holds nan)"),
        (lambda t: t.assign(user=t["user"].astype(str)), "the column user must be categorical (it holds str)"),
        (lambda t: t.assign(t=t["t"].dt.tz_localize(None)), "times carry no time zone"),
        (lambda t: t.drop(columns="user"), "must have a column user (got t, lat, lng)"),
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda t: mobpriv.W4M(k=2).protect(t, np.random.default_rng(1)),
        lambda t: mobpriv.GeoI().protect(t, np.random.default_rng(1)),
        lambda t: mobpriv.Promesse().protect(t, None),
        lambda t: mobpriv.APAttack().fit(t),
        lambda t: mobpriv.POIAttack().fit(t),
        lambda t: mobpriv.area_coverage(t, t),
    ],
)
def test_a_table_that_is_not_traces_is_refused_by_every_user_of_traces(use, change, rule):
    traces = tr.as_traces(table(GOOD))
    use(traces)
    with pytest.raises(ValueError, match=re.escape(rule)):
        use(change(traces))


@pytest.mark.parametrize("mechanism", [mobpriv.GeoI(), mobpriv.TriLateration(), mobpriv.W4M(k=2)])
def test_a_number_instead_of_a_generator_is_refused(mechanism):
    with pytest.raises(ValueError, match=r"rng must be a generator of NumPy, such as np.random.default_rng\(1\) \(got 7\)"):
        mechanism.protect(tr.as_traces(table(GOOD)), 7)


def test_an_empty_table_is_valid():
    out = tr.as_traces(table([]))
    assert len(out) == 0
    assert list(tr.by_user(out)[0]) == []
    assert all(len(half) == 0 for half in tr.split_in_half(out))


@pytest.mark.parametrize(
    ("row", "rule", "remedy"),
    [
        (("a", 1_450_000_000, 400.17, 4.0), "latitude outside", "leave the record out"),
        (("a", 1_450_000_000, 45.0, 180.5), "longitude outside", "leave the record out"),
        (("a", 1_450_000_000, float("nan"), 4.0), "not a number", "leave the record out"),
        (("a", 1_450_000, 45.0, 4.0), "time before 1980", "were seconds read as milliseconds"),
        (("a", 1_450_000_000_0, 45.0, 4.0), "time after 2099", "were milliseconds read as seconds"),
        ((None, 1_450_000_000, 45.0, 4.0), "user missing", "give every record a user"),
    ],
)
def test_a_broken_rule_is_named_with_its_first_row(row, rule, remedy):
    given = table([*GOOD, row])
    with pytest.raises(tr.InvalidTraces, match=rule) as error:
        tr.as_traces(given)
    problem = error.value.problems.iloc[0]
    assert (problem["records"], problem["row"]) == (1, 3)
    assert remedy in str(error.value)
    kept, left_out = tr.without(given)
    assert len(kept) == 3
    assert left_out["records"].tolist() == [1]


test_what_are_no_traces = refusals(
    (table([("a", 1_450_000_000 + i, -122.4, 37.7) for i in range(3)]), "look swapped"),
    (table(GOOD, zone=None), "no time zone"),
    (table(GOOD).assign(t=[1, 2, 3]), "time='s'"),
    (table(GOOD).drop(columns="lng"), "missing: lng"),
    call=tr.as_traces,
)


def test_repeated_records_are_counted_not_lost_in_silence():
    given = table([*GOOD, GOOD[0], ("b", GOOD[0][1], 45.5, 4.0), GOOD[0]])
    kept, left_out = tr.without(given)
    assert len(kept) == 4  # the other position at the same time stays
    assert left_out[["rule", "records", "users"]].to_numpy().tolist() == [["record repeated", 2, 1]]


def days(counts):
    start = 1_451_606_400  # 2016-01-01 00:00 UTC
    return tr.as_traces(table([("a", start + d * DAY + i, 45.0, 4.0) for d, n in counts.items() for i in range(n)]))


def test_most_active_days():
    traces = days({0: 5, 1: 1, 2: 1, 5: 4, 6: 3})
    assert tr.most_active_days(traces, 2) == pd.Timestamp("2016-01-06", tz="UTC")  # 4 + 3 beats 5 + 1
    assert tr.most_active_days(traces, 1) == pd.Timestamp("2016-01-01", tz="UTC")
    assert tr.most_active_days(traces, 30) == pd.Timestamp("2016-01-01", tz="UTC")  # the whole set
    assert tr.most_active_days(traces, 1, "Etc/GMT+1") == pd.Timestamp("2015-12-31", tz="Etc/GMT+1")
    assert len(tr.within_days(traces, pd.Timestamp("2016-01-01", tz="UTC"), 1)) == 5  # half-open


def test_three_rules_cut_at_three_places():
    start = pd.Timestamp("2016-01-01", tz="UTC")
    rows = [("a", 1_451_606_400 + d * DAY, 45.0, 4.0) for d in range(0, 25)]  # 24 days, as Cabspotting
    rows += [("b", 1_451_606_400 + d * DAY, 45.0, 4.0) for d in range(0, 5)]
    traces = tr.as_traces(table(rows))
    n = lambda half: half.groupby("user", observed=True).size().to_dict()  # noqa: E731
    assert [n(h) for h in tr.split_in_half(traces, "calendar", start)] == [{"a": 15, "b": 5}, {"a": 10}]
    assert [n(h) for h in tr.split_in_half(traces, "set")] == [{"a": 12, "b": 5}, {"a": 13}]
    assert [n(h) for h in tr.split_in_half(traces, "user")] == [{"a": 12, "b": 2}, {"a": 13, "b": 3}]
    for rule in tr.HALVES:
        known, secret = tr.split_in_half(traces, rule, start)
        assert len(known) + len(secret) == len(traces)
        pd.testing.assert_frame_equal(tr.as_traces(known), known)
    with pytest.raises(ValueError, match="rule must be"):
        tr.split_in_half(traces, "thirds")


def test_cabspotting_as_its_card_says(real_data):
    raw = pd.read_parquet(real_data / "cabspotting.parquet")
    traces = tr.as_traces(raw.assign(t=pd.to_datetime(raw["t"], unit="s", utc=True)))
    assert len(traces) == 11_220_058
    in_both = lambda halves: len(set(tr.by_user(halves.known)[0]) & set(tr.by_user(halves.secret)[0]))  # noqa: E731
    assert in_both(tr.split_in_half(traces, "set")) == 509
    assert in_both(tr.split_in_half(traces, "calendar")) == 507


def test_the_share_is_of_the_smaller_name():
    rows = [("a", 1_450_000_000 + i, 45.0, 4.0) for i in range(100)] + [("b", 1_450_000_000 + i, 45.0, 4.0) for i in range(4)]
    assert tr.same_person(tr.as_traces(table(rows))) == {"b": "a"}  # all of b, but 4 % of a
    rows += [("b", 1_460_000_000 + i, 45.0, 4.0) for i in range(76)]
    assert tr.same_person(tr.as_traces(table(rows))) == {"b": "a"}  # 5 % of b's 80
    rows += [("b", 1_470_000_000, 45.0, 4.0)]
    assert tr.same_person(tr.as_traces(table(rows))) == {}


FEW = st.tuples(st.sampled_from("abcd"), st.integers(0, 8), *[st.sampled_from([0.0, -0.0, 1.5])] * 2)


@given(st.lists(FEW, max_size=40), st.sampled_from([0.05, 0.3, 0.5, 1.0]))
def test_same_person_equals_its_definition(rows, share):
    traces = tr.as_traces(table([(u, 1_450_000_000 + t, lat, lng) for u, t, lat, lng in rows]))
    assert tr.same_person(traces, share) == naive.same_person(traces, share)


def test_same_person_among_many_records():
    rng = np.random.default_rng(3)
    n = 20_000
    rows = pd.DataFrame({"user": rng.integers(0, 40, n).astype(str), "t": 1_450_000_000 + rng.integers(0, 2_000, n)})
    rows["lat"], rows["lng"] = rng.integers(0, 30, n) / 10, rng.integers(0, 30, n) / 10
    traces = tr.as_traces(rows.assign(t=pd.to_datetime(rows["t"], unit="s", utc=True)))
    for share in (0.002, 0.02, 0.03):
        assert tr.same_person(traces, share) == naive.same_person(traces, share)


FAULTY = st.tuples(
    st.sampled_from(["a", "b", "10", "9", None]),
    st.sampled_from([pd.NaT, *pd.to_datetime(["1979-12-31", "1980-01-06", "2099-12-31", "2100-01-01"], utc=True)]),
    st.sampled_from([0.0, 90.0, -90.0, 90.5, -91.0, float("nan"), float("inf")]),
    st.sampled_from([0.0, 180.0, -180.0, 180.5, float("nan")]),
)
MAY = st.just(pd.Timestamp("2008-05-17", tz="UTC"))
SOUND = st.tuples(st.sampled_from(["a", "b"]), MAY, st.just(1.0), st.sampled_from([2.0, 3.0]))


@settings(max_examples=100)
@given(st.lists(FAULTY | SOUND, max_size=25), st.sampled_from(["UTC", "Asia/Tokyo"]))
def test_what_is_left_out_equals_its_definition(rows, zone):
    given = pd.DataFrame(rows, columns=["user", "t", "lat", "lng"]).astype({"lat": float, "lng": float})
    given["t"] = pd.to_datetime(given["t"], utc=True).dt.tz_convert(zone)
    traces, left_out = tr.without(given)
    expected, removed = naive.without(rows)
    kept = list(traces[["user", "t", "lat", "lng"]].itertuples(index=False, name=None))
    assert kept == expected
    assert left_out["records"].sum() == removed
    pd.testing.assert_frame_equal(tr.as_traces(traces), traces)


def test_an_odd_number_of_days_is_halved_at_noon():
    hours = [(f"{h:03d}", 1_451_606_400 + h * 3600, 45.0, 4.0) for h in range(5 * 24)]  # from 2016-01-01 00:00 UTC
    start = pd.Timestamp("2016-01-01", tz="UTC")
    for days, sizes in ((5, [60, 60]), (1, [12, 108])):
        assert [len(half) for half in tr.split_in_half(tr.as_traces(table(hours)), "calendar", start, days)] == sizes


def test_a_problem_tells_its_place_apart_from_the_record():
    _, left_out = tr.without(table([*GOOD, ("ann", 1_450_000_000, 400.17, 4.0)]))
    shown = left_out.drop(columns=["row", "value"])
    assert list(shown) == ["rule", "records", "users", "place", "remedy"]
    assert shown["place"].item() == "row 3"
    assert not any(secret in str(shown.to_dict()) for secret in ("ann", "400.17", "2015"))
    assert "ann" in left_out["value"].item()


@pytest.mark.parametrize("seed", range(5))
def test_tables_without_a_common_user_are_put_together_as_one_table_is_sorted(seed):
    rng = np.random.default_rng(seed)
    names = np.array(["b", "B", "ä", "z9", "z10", "a", ""])
    records = [(rng.choice(names), int(rng.integers(0, 50)) + 1_450_000_000, *rng.uniform(-80, 80, 2)) for _ in range(200)]
    whole = tr.as_traces(table([r for r in records if r[0]]))
    part_of = dict(zip(names, rng.integers(0, 3, len(names)), strict=True))
    part = whole["user"].map(part_of).to_numpy()
    parts = [tr.rows(whole, part == i) for i in range(3)] + [tr.rows(whole, part > 3)]
    pd.testing.assert_frame_equal(tr.together(parts), whole)
    assert not len(tr.together(parts[3:]))
