"""W4M: (k, δ)-anonymity of the result, worked distances, the slow twin, outputs of the authors' program."""

import json
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from conftest import refusals, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_mechanisms import wait_for_me

from mobpriv.ground.geo import distance, metres_per_degree, to_degrees, to_plane
from mobpriv.mechanisms.w4m import W4M, SpaceTime, lstd, space_time
from mobpriv.traces.table import as_traces, by_user, from_blocks, milliseconds

START = 1_400_000_000_000  # ms


def walkers(seed, sizes, lat=45.0, spread=0.003, step=0.0005):
    """Random walks that begin near each other, one record every 10 to 60 s."""
    rng = np.random.default_rng(seed)
    near = [np.repeat(rng.normal(0, spread, len(sizes)), sizes) for _ in range(2)]
    place = [c + near[i] + np.concatenate([np.cumsum(rng.normal(0, step, s)) for s in sizes]) for i, c in enumerate((lat, 7.0))]
    time = START + np.concatenate([np.cumsum(rng.integers(10, 60, s)) for s in sizes]) * 1000
    return from_blocks(pd.Index([f"u{i:02d}" for i in range(len(sizes))]), sizes, time, *place)


def parallel_lanes(north, records=20, east_step=100.0, seconds=60):
    """Traces along the equator side by side: ``north`` in metres, all at the same times."""
    per_lng, per_lat = metres_per_degree(0.0)
    n = len(north)
    time = np.tile(START + 1000 * seconds * np.arange(records), n)
    lng = np.tile(east_step * np.arange(records), n) / per_lng
    return from_blocks(pd.Index([f"u{i}" for i in range(n)]), [records] * n, time, np.repeat(north, records) / per_lat, lng)


def pivots_in(order):
    """In place of a generator: pivots are tried in this order."""
    return SimpleNamespace(bit_generator=SimpleNamespace(state=None), permutation=lambda n: np.array(order[:n]))


@pytest.mark.parametrize("plane", ["ground", "mercator"])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_k_delta_anonymity(k, plane):
    """Every trace shares its times with k − 1 others at least, any two of them within δ; and the bound is reached."""
    traces = walkers(3, [60, 40, 80, 70, 30, 55, 66, 44, 10, 90, 35, 52])
    mechanism = W4M(k=k, delta=300, plane=plane)
    clusters = mechanism.clusters(traces, np.random.default_rng(0))
    published = mechanism.translate(traces, clusters)
    kept = clusters.members[clusters.members["cluster"] >= 0]
    assert list(published["user"].cat.categories) == list(kept.index)
    assert len(traces["user"].cat.categories) - len(kept) <= 0.1 * 12
    assert kept.groupby("cluster").size().min() >= k
    block = {user: trace for user, trace in published.groupby("user", observed=True)}
    widest = widest_to_pivot = 0.0
    for _, members in kept.groupby("cluster"):
        for member in members.index:
            assert milliseconds(block[member]).tolist() == milliseconds(block[members.index[0]]).tolist()
            for other in members.index:
                a, b = (block[u][["lat", "lng"]].to_numpy().T for u in (member, other))
                widest = max(widest, distance(*a, *b, plane).max())
            at_pivot = block[members["pivot"].iloc[0]][["lat", "lng"]].to_numpy().T
            to_pivot = distance(*at_pivot, *block[member][["lat", "lng"]].to_numpy().T, plane).max()
            widest_to_pivot = max(widest_to_pivot, to_pivot)
    assert widest <= 300 + 1e-5
    assert widest_to_pivot == pytest.approx(150, abs=1e-5)  # δ/2 holds and is reached: no trace is moved more than it must


def test_pivots_stay_and_near_points_are_kept():
    traces = walkers(4, [30, 40, 50, 20])
    clusters = W4M(delta=100_000).clusters(traces, np.random.default_rng(0))
    published = W4M(delta=100_000).translate(traces, clusters)
    original_positions = set(map(tuple, traces[["lat", "lng"]].to_numpy()))
    assert (
        set(map(tuple, published[["lat", "lng"]].to_numpy())) <= original_positions
    )  # nothing is farther than δ/2: nothing moves
    for pivot in clusters.members["pivot"].unique():
        before, after = (t[t["user"] == pivot][["t", "lat", "lng"]].reset_index(drop=True) for t in (traces, published))
        pd.testing.assert_frame_equal(before, after, check_exact=True)


def test_distance_worked_out():
    """Two lanes 250 m apart, δ = 100 m: 20 pairs of floor(250/100) = 2, sum 40, reach 250 m.

    A lane 2000 m away costs the cap, 10, each: 200. So do lanes an hour apart: at 100/60 m/s that is 6000 m.
    """
    s = space_time(parallel_lanes([0, 250, 2000]))
    nothing = np.empty(0, np.int64)
    assert lstd(s, 0, 20, 20, 40, 100.0, 10, np.inf, nothing) == (40, pytest.approx(250, abs=1e-3))
    assert lstd(s, 0, 20, 40, 60, 100.0, 10, np.inf, nothing) == (200, pytest.approx(2000, abs=1e-2))
    # who only wants to know whether the reach is within 249 m is told no at the first pair
    assert lstd(s, 0, 20, 20, 40, 100.0, 10, 249.0, nothing) == (-1, pytest.approx(250, abs=1e-3))
    assert s.z[19] == pytest.approx(1900)  # 19 minutes at the mean speed of 100 m a minute
    late = s._replace(z=np.r_[s.z[:20], s.z[20:40] + 6000, s.z[40:]])
    assert lstd(late, 0, 20, 20, 40, 100.0, 10, np.inf, nothing)[0] == 200


def test_a_cost_next_to_a_whole_unit_is_that_of_the_definition():
    unit, cap, one = 300.0, 10, np.ones(2)
    for metres in [d for k in range(13) for d in (np.nextafter(k * unit, 0), k * unit, np.nextafter(k * unit, np.inf))]:
        for x, z in ((metres, 0.0), (0.0, metres)):
            s = SpaceTime(np.array([0.0, x]), np.zeros(2), one, one, np.array([0.0, z]))
            cost, reach = lstd(s, 0, 1, 1, 2, unit, cap, np.inf, np.empty(0, np.int64))
            assert (cost, reach) == (min(int(np.sqrt(metres**2) / unit), cap), np.sqrt(x**2))


def test_trash_and_growing_radius():
    """Lanes at 0, 100 and 5000 m, k = 2. With radius 100 the third is left over: trash, if a third may be; else radius grows.

    100·1.5ⁿ first reaches 5000 − 100 (pivot u1; from u0 it is 5000) at n = 10: 5766 m, in the eleventh round.
    """
    traces = parallel_lanes([0, 100, 5000])
    allowed = W4M(trash_max=0.34, radius=101).clusters(traces, pivots_in([0, 1, 2]))
    assert allowed.members["cluster"].tolist() == [0, 0, -1]
    assert (allowed.radius, allowed.rounds) == (101, 1)
    assert allowed.members.loc["u2", "reach"] == pytest.approx(5000, rel=1e-6)  # why it is left out: more than radius
    assert list(W4M(trash_max=0.34, radius=101).protect(traces, pivots_in([0, 1, 2]))["user"].cat.categories) == ["u0", "u1"]
    forced = W4M(trash_max=0, radius=100.01).clusters(traces, pivots_in([0, 1, 2]))
    assert forced.members["cluster"].tolist() == [0, 0, 0]
    assert forced.radius == pytest.approx(100.01 * 1.5**10)
    assert forced.rounds == 11


def test_set_across_the_date_line():
    """The same traces 3° either side of 180° give the same clusters as elsewhere."""
    traces = walkers(6, [30] * 6, lat=-17.0)
    shifted = traces.assign(lng=(traces["lng"] - 7 + 180 + 180) % 360 - 180)
    assert shifted["lng"].min() < -179
    assert shifted["lng"].max() > 179
    members = [W4M().clusters(t, np.random.default_rng(2)).members for t in (traces, shifted)]
    pd.testing.assert_frame_equal(*members)


@settings(max_examples=25)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(1, 12), min_size=4, max_size=7),
    st.integers(2, 3),
    st.floats(30, 2000),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from(["ground", "mercator"]),
)
def test_equals_the_slow_twin(seed, sizes, k, delta, trash_max, plane):
    traces = walkers(seed, sizes)
    users, offsets = by_user(traces)
    blocks = [traces.iloc[a:b] for a, b in pairwise(offsets)]
    slow = [{"ms": milliseconds(b).tolist(), "lat": b["lat"].tolist(), "lng": b["lng"].tolist()} for b in blocks]
    mechanism = W4M(k, delta, trash_max, radius=150.0, plane=plane)
    clusters, trash, radius, published = wait_for_me(slow, k, delta, trash_max, 150.0, 10, plane, np.random.default_rng(seed))
    result = mechanism.clusters(traces, np.random.default_rng(seed))
    assert result.radius == radius
    assert {users.get_loc(u) for u in result.members.index[result.members["cluster"] < 0]} == trash
    expected = {frozenset(users[c]): users[c[0]] for c in clusters}
    groups = {frozenset(m.index): m["pivot"].iloc[0] for c, m in result.members.groupby("cluster") if c >= 0}
    assert groups == expected
    protected = mechanism.translate(traces, result)
    twin = np.array([record for trace in published if trace is not None for record in trace])
    np.testing.assert_array_equal(milliseconds(protected), twin[:, 0].astype(np.int64))
    lat, lng = protected["lat"].to_numpy(), protected["lng"].to_numpy()
    assert np.max(distance(lat, lng, twin[:, 1], twin[:, 2])) < 0.1  # m


@pytest.mark.parametrize("run", ["A_k2_d100", "A_k2_d500", "A_k4_d100"])
def test_outputs_of_the_authors_program(reference, run):
    """Within its output rounding, 5e-4 m. Its generator always starts alike: the first pivot is trace 3, then the next free."""
    folder = reference / "w4m"
    setting = json.loads((folder / "runs.json").read_text())[run]
    given_, expected = (np.loadtxt(folder / name) for name in (setting["input"], f"{run}.out.txt"))

    def table(a):
        a = a[np.lexsort((a[:, 1], a[:, 0]))]
        return a, np.unique(a[:, 0], return_counts=True)

    rows, (ids, counts) = table(given_)
    lat, lng = to_degrees(rows[:, 2], rows[:, 3], "mercator")
    users = pd.Index([str(int(i)) for i in ids])
    traces = from_blocks(users, counts, START + 1000 * rows[:, 1].astype(np.int64), lat, lng)
    parameters = (setting[name] for name in ("K", "delta", "trash_max", "radius_max", "M"))
    k, delta, trash, radius, cap = parameters
    mechanism = W4M(k, delta, trash / len(ids), radius, cap, plane="mercator")
    published = mechanism.protect(traces, pivots_in([3, 0, 1, 2]))
    rows, (ids, counts) = table(expected)
    assert published.groupby("user", observed=True).size().tolist() == counts.tolist()
    assert published["user"].cat.categories.tolist() == [str(int(i)) for i in ids]
    np.testing.assert_array_equal(milliseconds(published) - START, 1000 * rows[:, 1].astype(np.int64))
    p = to_plane(published["lat"].to_numpy(), published["lng"].to_numpy(), "mercator")
    np.testing.assert_allclose(np.column_stack([p.x, p.y]), rows[:, 2:], atol=5e-4, rtol=0)


test_refuses_wrong_parameters = refusals(
    ({"k": 1}, r"k must be a whole number of users, at least 2 \(got 1\)"),
    ({"k": float("nan")}, "k must be a whole number"),
    ({"delta": 0}, r"delta must be positive, in m \(got 0\)"),
    ({"trash_max": 1.0}, r"trash_max is a share of the traces, in \[0, 1\) \(got 1.0\)"),
    ({"radius": -5}, "radius must be positive, in m"),
    ({"cap": 0}, "cap must be a whole number, at least 1"),
    ({"plane": "moon"}, "plane must be"),
    call=lambda parameters: W4M(**parameters),
)


def test_refuses_a_k_larger_than_the_number_of_users_and_clusters_of_other_traces():
    few, more, rng = walkers(0, [5, 5]), walkers(0, [5, 5, 5]), np.random.default_rng(0)
    refuses(r"k must not exceed the number of users \(k is 5, there are 2 users\)", lambda: W4M(k=5).protect(few, rng))
    refuses("the clusters belong to other traces: user u02", lambda: W4M().translate(more, W4M().clusters(few, rng)))


def test_a_radius_of_nothing_grows():
    t = pd.to_datetime([1_450_000_000, 1_450_000_600] * 3, unit="s", utc=True)
    lng = np.repeat([180.0, 0.0, -180.0], 2)
    traces = as_traces(pd.DataFrame({"user": np.repeat(list("abc"), 2), "t": t, "lat": 10.0, "lng": lng}))
    clusters = W4M(k=2, trash_max=0.4).clusters(traces, np.random.default_rng(1))
    assert clusters.radius >= 1
    assert len(W4M(k=2, radius=1e-9).clusters(traces, np.random.default_rng(1)).members) == 3


def test_the_first_radius_is_half_a_percent_of_half_the_diagonal():
    """Lanes 0, 3 and 800 m north, 1900 m long: √(1900² + 800²) · 0.005 / 2 = 5.15 m, enough for the first two."""
    traces = parallel_lanes([0, 3, 800])
    clusters = W4M(trash_max=0.4).clusters(traces, np.random.default_rng(0))
    assert (clusters.radius, clusters.rounds) == (pytest.approx(0.005 * np.hypot(1900, 800) / 2, rel=1e-6), 1)
    assert clusters.members["cluster"].tolist() == [0, 0, -1]
    # with 6 m between the lanes, more than that, it has to grow by half
    wider = W4M(trash_max=0.4).clusters(parallel_lanes([0, 6, 800]), np.random.default_rng(0))
    assert (wider.radius, wider.rounds) == (pytest.approx(1.5 * 0.005 * np.hypot(1900, 800) / 2, rel=1e-6), 2)


def test_several_draws_share_their_distances():
    traces = walkers(3, [20] * 9)
    pairs = W4M().pairs(traces)
    for seed in range(4):
        alone, shared = (W4M().protect(traces, np.random.default_rng(seed), p) for p in (None, pairs))
        pd.testing.assert_frame_equal(alone, shared, check_exact=True)
    for mechanism, others in ((W4M(delta=300.0), traces), (W4M(), walkers(4, [20] * 9))):
        refuses("pairs must hold the distances of these traces", mechanism.protect, others, np.random.default_rng(1), pairs)


def test_times_of_the_wrapper():
    """Its seconds are read back as milliseconds: an hour lasts 3.6 s, in January 1970; places are the same."""
    traces = walkers(3, [20] * 9)
    right, wrapper = (W4M(times=times).protect(traces, np.random.default_rng(1)) for times in ("right", "wrapper"))
    assert (milliseconds(wrapper) == milliseconds(right) // 1000).all()
    pd.testing.assert_frame_equal(right[["user", "lat", "lng"]], wrapper[["user", "lat", "lng"]])
    assert wrapper["t"].max() < pd.Timestamp("1970-02-01", tz="UTC")
