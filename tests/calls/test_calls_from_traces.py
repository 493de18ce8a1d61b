"""Calls made of traces: antennas where people are, calls at Poisson times, nothing that the trace does not say."""

import naive_calls as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.calls.events import _nearest, calls_from_traces, place_antennas
from mobpriv.calls.table import as_calls, as_cells
from mobpriv.ground.geo import cartesian, distance
from mobpriv.traces.table import as_traces, milliseconds, rows

START = pd.Timestamp("2024-09-02", tz="UTC")


def walks(users: int = 4, days: int = 20) -> pd.DataFrame:
    """A record every five minutes, about two towns."""
    rng = np.random.default_rng(1)
    n = users * days * 288
    town, moments = rng.integers(2, size=n), START + pd.to_timedelta(np.arange(days * 288) * 5, unit="min")
    table = pd.DataFrame({"user": np.repeat([f"u{k}" for k in range(users)], days * 288), "t": np.tile(moments, users)})
    return as_traces(table.assign(lat=45 + 0.3 * town + rng.normal(0, 0.02, n), lng=1 + rng.normal(0, 0.02, n)))


@pytest.fixture(scope="module")
def traces():
    return walks()


@pytest.fixture(scope="module")
def antennas(traces):
    return place_antennas(traces, 12, np.random.default_rng(2))


def test_antennas_stand_where_records_are(traces, antennas):
    assert as_cells(antennas).equals(antennas)
    assert len(antennas) == 12
    north = antennas["lat"] > 45.15
    assert 3 <= north.sum() <= 9  # two towns of one size
    assert (np.minimum(np.abs(antennas["lat"] - 45), np.abs(antennas["lat"] - 45.3)) < 0.08).all()
    pd.testing.assert_frame_equal(antennas, place_antennas(traces, 12, np.random.default_rng(2)))
    assert not antennas.equals(place_antennas(traces, 12, np.random.default_rng(3)))


def test_more_antennas_than_places_are_refused(traces):
    still, rule = traces.assign(lat=45.0, lng=1.0), "count must be a whole number, at least 1"
    at_most = r"count must be at most the number of 50 m squares with records, 1 \(got 2\)"
    none = "there are no records to place antennas by"
    for source, count, words in ((still, 2, at_most), (still, 0, rule), (still, 1.5, rule), (traces[:0], 2, none)):
        refuses(words, place_antennas, source, count, np.random.default_rng(1))


def test_calls_are_valid_and_at_the_rate(traces, antennas):
    events = calls_from_traces(traces, antennas, np.random.default_rng(3), rate=40)
    assert as_calls(events.calls, antennas).equals(events.calls)
    expected = 4 * 40 * (20 - 5 / 1440)
    assert len(events.calls) == events.drawn == pytest.approx(expected, abs=5 * np.sqrt(expected))
    assert (events.left_out, events.silent) == (0, 0)
    assert (events.calls["end_cell"] == events.calls["cell"]).all()
    gap = np.diff(milliseconds(events.calls))[np.diff(events.calls["user"].cat.codes) == 0]
    assert np.std(gap) / np.mean(gap) == pytest.approx(1, abs=0.08)  # a Poisson process: as much spread as mean


def test_a_call_is_served_by_the_antenna_nearest_to_the_nearest_record(traces, antennas):
    some = rows(traces, (traces["user"] == "u1").to_numpy())
    events = calls_from_traces(some, antennas, np.random.default_rng(4), rate=5)
    times, at = milliseconds(some).tolist(), antennas.set_index("cell")
    for call, ms in zip(events.calls.itertuples(), milliseconds(events.calls), strict=True):
        k = naive.nearest_record(times, int(ms), 600_000)
        lat, lng = some["lat"].iloc[k], some["lng"].iloc[k]
        far = distance(lat, lng, at.loc[call.cell, "lat"], at.loc[call.cell, "lng"])
        assert far == pytest.approx(naive.nearest_antenna(lat, lng, antennas), rel=1e-5)


def test_straight_lines_through_the_earth_are_as_long_as_ways_on_the_ground():
    rng = np.random.default_rng(5)
    lat, lng = rng.uniform(-70, 70, 200), rng.uniform(-180, 180, 200)
    lat2, lng2 = lat + rng.normal(0, 0.03, 200), lng + rng.normal(0, 0.03, 200)
    straight = np.linalg.norm(cartesian(lat, lng) - cartesian(lat2, lng2), axis=1)
    np.testing.assert_allclose(straight, distance(lat, lng, lat2, lng2), rtol=2e-5)


def test_where_the_trace_is_silent_there_is_no_call(traces, antennas):
    night = traces["t"].dt.hour < 12
    half = rows(traces, night.to_numpy())
    events = calls_from_traces(half, antennas, np.random.default_rng(6), rate=40, minutes=10)
    assert len(events.calls) + events.left_out == events.drawn
    share = events.left_out / events.drawn  # twelve hours less five and twice ten minutes, of every day but the last
    assert share == pytest.approx(19 * (12 - 15 / 60) / (19 * 24 + 12), abs=0.03)
    since = (events.calls["t"] - events.calls["t"].dt.floor("D")).dt.total_seconds() / 3600
    assert ((since <= 11 + 55 / 60 + 1 / 6 + 1e-9) | (since >= 24 - 1 / 6 - 1e-9)).all()


def test_nobody_is_lost_in_silence(antennas):
    one = pd.DataFrame({"user": ["u", "v"], "t": START, "lat": 45.0, "lng": 1.0})
    events = calls_from_traces(as_traces(one), antennas, np.random.default_rng(7))
    assert (len(events.calls), events.drawn, events.left_out, events.silent) == (0, 0, 0, 2)
    nothing = calls_from_traces(as_traces(one[:0]), antennas, np.random.default_rng(7))
    assert (len(nothing.calls), nothing.silent) == (0, 0)
    as_calls(nothing.calls, antennas)


def test_the_same_seed_gives_the_same_calls_and_a_user_her_own(traces, antennas):
    first, again = (calls_from_traces(traces, antennas, np.random.default_rng(8)) for _ in range(2))
    pd.testing.assert_frame_equal(first.calls, again.calls)
    fewer = rows(traces, traces["user"].isin(["u0", "u1"]).to_numpy())
    alone = calls_from_traces(fewer, antennas, np.random.default_rng(8)).calls.astype({"user": str})
    both = first.calls.astype({"user": str}).query("user < 'u2'").reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, both)


NOWHERE = as_cells(pd.DataFrame({"cell": ["a"], "lat": [None], "lng": [None]}))


@pytest.mark.parametrize("given", [{"rate": 0}, {"rate": -1}, {"minutes": 0}, {"minutes": np.nan}, {"antennas": NOWHERE}])
def test_parameters_are_checked(traces, antennas, given):
    words = r"antennas need coordinates \(cell a has none\)" if "antennas" in given else f"{next(iter(given))} must be positive"
    refuses(words, calls_from_traces, traces, **({"antennas": antennas, "rng": np.random.default_rng(1)} | given))


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=8).map(sorted), min_size=1, max_size=3),
    st.lists(st.lists(st.integers(0, 30), max_size=6).map(sorted), min_size=3, max_size=3),
    st.integers(1, 12),
)
def test_the_nearest_record_is_that_of_the_twin(records, wanted, near):
    wanted = wanted[: len(records)]
    offsets = np.r_[0, np.cumsum([len(r) for r in records])]
    starts = np.r_[0, np.cumsum([len(w) for w in wanted])]
    times = np.array([t for w in wanted for t in w], np.int64)
    nearest = _nearest(np.concatenate(records).astype(np.int64), offsets, times, starts, float(near))
    expected = [naive.nearest_record(r, t, near) for r, w in zip(records, wanted, strict=True) for t in w]
    first_of_user = np.repeat(offsets[:-1], np.diff(starts))
    assert np.where(nearest < 0, -1, nearest - first_of_user).tolist() == expected
