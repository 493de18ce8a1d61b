"""Promesse: samples at equal distances and times, worked examples, the author's outputs on the edge traces."""

import numpy as np
import pandas as pd
import pytest
from conftest import refusals, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_mechanisms import speed_smoothing
from trace_making import edge_traces

from mobpriv.ground.geo import distance, metres_per_degree, to_plane
from mobpriv.mechanisms import promesse
from mobpriv.mechanisms.promesse import Promesse
from mobpriv.traces.table import as_traces, by_user, from_blocks, milliseconds

START = 1_450_000_000_000  # ms


def eastwards(metres, seconds, user="a"):
    """A trace along the equator: positions in metres east of longitude 10, times in seconds after the start."""
    metres = np.asarray(metres, float)
    time = START + np.asarray(seconds) * 1000
    return from_blocks(pd.Index([user]), [len(metres)], time, np.zeros(len(metres)), 10 + metres / metres_per_degree(0.0)[0])


def in_metres(traces):
    """(metres east of longitude 10, seconds after the start) of each record."""
    return (traces["lng"].to_numpy() - 10) * metres_per_degree(0.0)[0], (milliseconds(traces) - START) / 1000


def test_a_stop_leaves_no_trace():
    """Ten records 100 m and 10 s apart, with an hour's stop after 500 m, α = 100: samples 0 … 900 m, 100 … 800 are kept.

    The first kept was heading to the record of 10 s, the last to that of 3680 s: 8 samples every 3670/7 s.
    """
    metres = np.r_[np.arange(0, 501, 100), np.full(60, 500), np.arange(600, 901, 100)]
    seconds = np.r_[np.arange(0, 51, 10), 50 + 60 * np.arange(1, 61), 3650 + 10 * np.arange(1, 5)]
    metres, seconds = in_metres(Promesse(100 - 1e-6).protect(eastwards(metres, seconds)))
    np.testing.assert_allclose(metres, np.arange(100, 801, 100), atol=1e-4)
    np.testing.assert_allclose(seconds, [10 + -(-3_670_000 * i // 7) / 1000 for i in range(8)], atol=1e-6)


TWO_WALKS = np.r_[np.arange(0, 1001, 100), 11_000 + np.arange(0, 1001, 100)]  # of 1000 m, 10 km apart


def test_max_gap_cuts_the_trace():
    """A night between them: filled like movement, or two pieces of 200 … 800 m each."""
    night = eastwards(TWO_WALKS, np.r_[np.arange(0, 101, 10), 36_000 + np.arange(0, 101, 10)])
    filled, _ = in_metres(Promesse(200 - 1e-6).protect(night))
    np.testing.assert_allclose(filled, np.arange(200, 11_801, 200), atol=1e-3)
    pieces, seconds = in_metres(Promesse(200 - 1e-6, max_gap=3600).protect(night))
    np.testing.assert_allclose(pieces, [200, 400, 600, 800, 11_200, 11_400, 11_600, 11_800], atol=1e-3)
    np.testing.assert_allclose(seconds, [20, 40, 60, 80, 36_020, 36_040, 36_060, 36_080])
    same, _ = in_metres(Promesse(200 - 1e-6, max_gap=36_000 - 100).protect(night))
    np.testing.assert_allclose(same, filled)  # a pause of exactly max_gap is filled


def test_crosses_the_date_line():
    """180 km eastwards from 179.5° to -178.88°: every step stays α long, none goes round the globe."""
    lng = np.r_[np.linspace(179.5, 179.99, 30), np.linspace(-179.99, -178.88, 60)]
    traces = from_blocks(pd.Index(["a"]), [90], START + 60_000 * np.arange(90), np.full(90, -17.0), lng)
    smooth = as_traces(Promesse(500).protect(traces))
    assert len(smooth) == int(distance(-17.0, 179.5, -17.0, -178.88) // 500) + 1 - 2
    lat, lng = smooth["lat"].to_numpy(), smooth["lng"].to_numpy()
    np.testing.assert_allclose(distance(lat[:-1], lng[:-1], lat[1:], lng[1:]), 500, atol=1e-4)


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.floats(100, 3000), st.sampled_from(["ground", "mercator"]), st.floats(-75, 75))
def test_equals_the_slow_twin(seed, alpha, plane, lat):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 20, 3)
    n = sizes.sum()
    place = lat + np.cumsum(rng.normal(0, 0.004, n)), 30 + np.cumsum(rng.normal(0, 0.004, n))
    time = START + np.concatenate([np.cumsum(rng.integers(0, 100_000, s)) for s in sizes])
    traces = from_blocks(pd.Index(["a", "b", "c"]), sizes, time, *place)
    smooth = Promesse(alpha, plane).protect(traces)
    pd.testing.assert_frame_equal(as_traces(smooth), smooth)
    ends = np.r_[0, np.cumsum(sizes)]
    for i, user in enumerate("abc"):
        block = slice(ends[i], ends[i + 1])
        twin = np.array(speed_smoothing(place[0][block], place[1][block], time[block], alpha, plane)).reshape(-1, 3)
        published = smooth[smooth["user"] == user]
        p = to_plane(published["lat"].to_numpy(), published["lng"].to_numpy(), plane)
        assert len(published) == len(twin)
        per_unit = 111_000 if plane == "ground" else 1
        np.testing.assert_allclose(np.column_stack([p.x, p.y]) * per_unit, twin[:, :2] * per_unit, atol=1e-4, rtol=0)
        np.testing.assert_array_equal(milliseconds(published), twin[:, 2])


@pytest.mark.parametrize("alpha", [50, 100, 200, 500])
def test_edge_traces_of_the_author(reference, alpha):
    """Positions within 1e-8 m of the author's plane, times to the millisecond, empty traces included."""
    traces, expected = edge_traces(reference), edge_traces(reference, f"expected/promesse_{alpha}")
    assert len(by_user(traces)[0]) == 12
    smooth = Promesse(alpha, plane="mercator").protect(traces)
    assert smooth["user"].tolist() == expected["user"].tolist()
    p, q = (to_plane(of["lat"], of["lng"], "mercator") for of in (smooth, expected))
    assert np.all(np.hypot(p.x - q.x, np.asarray(p.y) - q.y) <= 1e-8)
    np.testing.assert_array_equal(milliseconds(smooth), milliseconds(expected))


test_what_is_refused = refusals(
    ({"alpha": 0}, r"alpha must be positive, in m, at least 0.001 \(got 0\)"),
    ({"alpha": float("inf")}, r"alpha must be positive, in m, at least 0.001 \(got inf\)"),
    ({"alpha": 1e-9}, r"alpha must be positive, in m, at least 0.001 \(got 1e-09\)"),
    ({"max_gap": -1}, r"max_gap must not be negative, in s.*\(got -1\)"),
    ({"max_jump": 0}, r"max_jump must be positive, in m; None fills every jump \(got 0\)"),
    call=lambda given: Promesse(**given),
)


def test_max_jump_cuts_the_trace():
    """Only 10 s between them."""
    jump = eastwards(TWO_WALKS, 10 * np.arange(22))
    smooth = lambda **keywords: Promesse(200 - 1e-6, **keywords).protect(jump)  # noqa: E731
    filled, _ = in_metres(smooth())
    np.testing.assert_allclose(filled, np.arange(200, 11_801, 200), atol=1e-3)
    pieces, _ = in_metres(smooth(max_jump=9_999))
    np.testing.assert_allclose(pieces, [200, 400, 600, 800, 11_200, 11_400, 11_600, 11_800], atol=1e-3)
    step = Promesse(200).steps(jump).loc["a", "longest"]
    assert step == pytest.approx(10_000, rel=1e-9)
    pd.testing.assert_frame_equal(smooth(max_jump=step), smooth(), check_exact=True)  # a step of exactly max_jump is filled
    pd.testing.assert_frame_equal(smooth(max_jump=np.nextafter(step, 0)), smooth(max_jump=9_999), check_exact=True)


def astray(records=3600):
    """Two users of an hour at 1 Hz each, walking 1.4 m/s near 45° N 5° E; every 100th record of one stands at 0°, 0°."""
    rng = np.random.default_rng(3)
    lat, lng = (c + np.cumsum(rng.normal(0, 1e-5, (2, records)), axis=1) for c in (45.0, 5.0))
    lat[1, 50::100] = lng[1, 50::100] = 0.0
    time = np.tile(START + 1000 * np.arange(records), 2)
    return from_blocks(pd.Index(["a", "b"]), [records] * 2, time, lat.ravel(), lng.ravel())


def test_steps_tell_what_a_walk_publishes():
    traces = astray()
    for mechanism in (Promesse(100_000), Promesse(5000, "mercator"), Promesse(2, max_jump=1000), Promesse(50, max_gap=0.5)):
        steps, published = mechanism.steps(traces), mechanism.protect(traces)
        assert steps["records"].tolist() == [3600, 3600]
        counts = published["user"].value_counts().reindex(["a", "b"], fill_value=0)
        assert (counts <= steps["points"]).all()
    steps = Promesse(200).steps(traces)
    b = traces.iloc[3600:].reset_index(drop=True)
    distances = distance(b["lat"].to_numpy()[:-1], b["lng"].to_numpy()[:-1], b["lat"].to_numpy()[1:], b["lng"].to_numpy()[1:])
    assert steps.loc["b", "longest"] == pytest.approx(distances.max(), rel=1e-12)
    assert steps.loc["b", "row"] == 3600 + 1 + distances.argmax()
    assert steps.loc["b", "points"] == np.sum(distances) // 200
    assert Promesse(200, max_gap=0.5).steps(traces)["row"].tolist() == [-1, -1]
    # 36 times there and back over 5,000 km, a point every 100 km: as many as told, less one for every record at most
    few = Promesse(100_000).protect(traces)
    assert Promesse(100_000).steps(traces).loc["b", "points"] == pytest.approx((few["user"] == "b").sum(), abs=80)


def test_a_walk_of_insane_size_is_refused_before_it_is_filled():
    traces = astray()
    line = r"about 1,8\d\d,\d\d\d points from 7,200 records.*user b alone 1,8\d\d,\d\d\d, with a step of 5,\d\d\d.\d km to row \d+: .*max_jump"
    refuses(line, lambda: Promesse(200).protect(traces))
    with pytest.raises(ValueError, match="would publish about"):
        Promesse(0.001).protect(traces)  # 3.6e11 points: nothing is walked to find that out
    ended = Promesse(200, max_jump=10_000).protect(traces)
    assert ended["lat"].between(44.9, 45.1).all()
    # a sane walk may be dense where it is short: 250 points a record
    short = astray(600)
    assert 200 * len(short) < len(Promesse(200).protect(short)) < 1e6
    # and long where its records are many: 60 points a record, back and forth over 12 km
    many = Promesse(200).protect(eastwards(12_000.5 * (np.arange(20_000) % 2), np.arange(20_000)))
    assert 1e6 < len(many) < 61 * 20_000


def test_a_walk_that_needs_more_room_than_its_steps_told_is_walked_again(monkeypatch):
    """One step from the equator to 85° north: the mean of the scales at its ends is shorter than the way that the samples go."""
    far = from_blocks(pd.Index(["a"]), [2], START + np.array([0, 3_600_000]), np.array([0.0, 85.0]), np.array([0.0, 170.0]))
    expected_points, walks, walk = Promesse(20_000).steps(far).loc["a", "points"], [], promesse._walk_each
    monkeypatch.setattr(promesse, "_walk_each", lambda *given: walks.append(given[2][-1]) or walk(*given))
    published = Promesse(20_000).protect(far)
    assert len(walks) == 2
    assert walks[0] < len(published) + 2 == walks[1]
    assert len(published) > 1.01 * expected_points
    between = distance(*(published[c].to_numpy()[part] for part in (slice(-1), slice(1, None)) for c in ("lat", "lng")))
    np.testing.assert_allclose(between, 20_000, rtol=1e-6)


@pytest.mark.parametrize("at_a_time", [1, 10, 1000])
def test_pieces_walked_a_few_at_a_time_publish_the_same(monkeypatch, at_a_time):
    traces = astray()
    several = Promesse(100, max_gap=0.5), Promesse(100, max_jump=1000), Promesse(100_000)
    expected = [mechanism.protect(traces) for mechanism in several]
    monkeypatch.setattr(promesse, "AT_A_TIME", at_a_time)
    for mechanism, published in zip(several, expected, strict=True):
        pd.testing.assert_frame_equal(mechanism.protect(traces), published, check_exact=True)
