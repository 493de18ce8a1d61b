"""HMC: its promise, its algorithms beside plain ones, and everything that can be wrong with what it is given."""

from functools import cache
from itertools import combinations, pairwise

import naive_hmc as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.attacks import APAttack
from mobpriv.attacks.policies import answer
from mobpriv.ground.geo import PLANES, distance, to_plane
from mobpriv.ground.grid import SquareGrid
from mobpriv.mechanisms import HMC
from mobpriv.mechanisms.alteration import heat_map_coverage
from mobpriv.mechanisms.reconstruction import Gaps, Sets, Track, adapted, sets_of, without_stays
from mobpriv.traces.profiles import heat_maps, stays
from mobpriv.traces.table import as_traces, by_user

GRID = SquareGrid(800.0)
NORTH, EAST = 0.0072, 0.0102  # degrees, about 800 m at 45° north
MINUTE, HOUR = 60_000, 3_600_000  # ms
START = 1_400_000_000_000


@cache
def centre(cell: int) -> tuple[float, float]:
    """The centre of a square cell near 45° N 5° E: numbers 0 … 8 are three rows of three."""
    south, west, north, east = GRID.bounds(GRID.cells([45 + NORTH * (cell // 3)], [5 + EAST * (cell % 3)]))[0]
    return (south + north) / 2, (west + east) / 2


def traces_of(users: dict, step: int = MINUTE) -> pd.DataFrame:
    """Users as lists of cells, a record a minute at the cell's centre."""
    table = [(user, START + step * i, *centre(cell)) for user, cells in users.items() for i, cell in enumerate(cells)]
    table = pd.DataFrame(table, columns=["user", "t", "lat", "lng"])
    return as_traces(table.assign(t=pd.to_datetime(table["t"], unit="ms", utc=True)))


walks = st.dictionaries(st.sampled_from("abcdef"), st.lists(st.integers(0, 8), min_size=1, max_size=30), min_size=2, max_size=6)


class TestAlteration:
    @given(
        known=walks,
        secret=walks,
        exclusion=st.booleans(),
        margin=st.sampled_from([1e-9, 0.05]),  # with 0 a tie of two maps of a few records is a matter of rounding
        k=st.integers(1, 3),
        target=st.sampled_from(["users", "mean", "population"]),
        rounding=st.sampled_from(["up", "nearest", "remainder"]),
        rounded_at=st.sampled_from(["end", "rule", "iteration"]),
    )
    @settings(max_examples=150)
    def test_as_algorithm_1_step_by_step(self, known, secret, exclusion, margin, k, target, rounding, rounded_at):
        k = 1 if target == "population" else min(k, len(known) - 1)
        options = {"k": k, "target": target, "rounding": rounding, "rounded_at": rounded_at}
        options |= {"margin": margin, "unlike": "exclusion" if exclusion else "weight"}
        alteration = HMC(traces_of(known), step=0.2, patience=6, erased=None, **options).alter(traces_of(secret))
        # the plain twin meets the cells in the grid's order, in which equal remainders are rounded up
        ids = GRID.cells(*np.transpose([centre(c) for c in range(9)]))
        in_order = {c: x for x, c in enumerate(sorted(range(9), key=lambda c: ids[c]))}
        known, secret = ({user: [in_order[c] for c in cells] for user, cells in table.items()} for table in (known, secret))
        ids = np.sort(ids)
        profiles = {user: naive.shares(cells) for user, cells in known.items()}
        for i, user in enumerate(sorted(secret)):
            n, h = len(secret[user]), naive.shares(sorted(secret[user]))
            d = {name: naive.topsoe(h, p) for name, p in profiles.items()}
            if any(abs(x - y) < 1e-9 for x, y in combinations(d.values(), 2)):
                continue  # who is nearer, and of equal coverage the target, is a matter of rounding
            rules = margin, exclusion, k, target, rounding, rounded_at
            outcome, targets, expected, records = naive.altered(h, profiles, user, n, 0.2 * n, 6, *rules)
            row = alteration.users.loc[user]
            assert row["outcome"] == outcome
            assert alteration.targets["target"][alteration.targets["trace"] == user].tolist() == targets
            assert (row["target"] == targets[0]) if targets else pd.isna(row["target"])
            assert row["held"] == pytest.approx(records, abs=0.5)
            ours = alteration.shares[[i]].toarray()[0]
            at = {c: ours[np.searchsorted(alteration.cells, ids[c])] for c in range(9) if ids[c] in alteration.cells}
            assert {c: x for c, x in at.items() if x} == pytest.approx({c: x for c, x in expected.items() if x}, abs=1e-9)

    @given(known=walks, secret=walks, k=st.integers(1, 3), rounding=st.sampled_from(["up", "nearest", "remainder"]))
    def test_the_rule_in_whole_records_holds_for_the_published_trace(self, known, secret, k, rounding):
        """Whoever is confused is published with k others nearer than her own profile, counted in the trace itself."""
        k = min(k, len(known) - 1)
        mechanism = HMC(traces_of(known), k=k, rounding=rounding, rounded_at="rule", erased=None, margin=1e-9)  # no ties
        rebuilt_from = mechanism.alter(traces_of(secret))
        published = mechanism.rebuild(traces_of(secret), rebuilt_from, np.random.default_rng(1)).traces
        if not len(published):
            return
        ranking = APAttack(grid=GRID).fit(traces_of(known)).rank(published)
        for user, row in rebuilt_from.users.iterrows():
            if row["outcome"] == "confused" and user in ranking.index:
                assert (ranking.loc[user] < ranking.loc[user, user]).sum() >= k
                assert row["nearer"] >= k

    def test_a_synthetic_target_is_nobody_and_promises_nothing(self):
        """The population is nearer than ann's own profile, and yet ann's is the nearest of all that somebody has."""
        known = traces_of({"ann": [0] * 6 + [1] * 4, "bob": [0] * 5 + [2] * 20, "eve": [1] * 5 + [3] * 20})
        secret = traces_of({"ann": [0] * 7 + [1] * 3})
        alteration = HMC(known, target="population", erased=None).alter(secret)
        row = alteration.users.loc["ann"]
        assert (row["outcome"], row["nearer"], len(alteration.targets)) == ("confused", 0, 0)
        assert pd.isna(row["target"])
        assert row["own"] > row["target_after"]
        assert alteration.cells[alteration.shares.indices].tolist() == sorted(
            GRID.cells(*np.transpose([centre(0), centre(1)])).tolist()
        )

    @given(known=walks, secret=walks)
    def test_whoever_is_confused_is_nearest_to_somebody_else(self, known, secret):
        """The promise, held against AP-Attack: the nearest profile of the altered map is not the user's own."""
        mechanism = HMC(traces_of(known), erased=None)
        alteration = mechanism.alter(traces_of(secret))
        profiles = {user: naive.shares(cells) for user, cells in known.items()}
        ids = {cell: c for c, cell in enumerate(GRID.cells(*np.transpose([centre(c) for c in range(9)])))}
        for i, (user, row) in enumerate(alteration.users.iterrows()):
            if row["outcome"] in ("confused", "replaced"):
                h = {ids[cell]: x for cell, x in zip(alteration.cells, alteration.shares[[i]].toarray()[0], strict=True) if x}
                nearest = min(profiles, key=lambda name: naive.topsoe(h, profiles[name]))
                same = profiles[row["target"]] == profiles[user]  # nobody can tell two equal profiles apart
                assert nearest != user or same

    def test_who_is_like_somebody_else_already_is_left_as_she_is(self):
        known = traces_of({"ann": [0, 0, 0], "bob": [1, 1, 1]})
        secret = traces_of({"ann": [1, 1, 0], "zoe": [0, 2, 2]})
        mechanism = HMC(known, erased=None)
        assert mechanism.alter(secret).users["outcome"].tolist() == ["not needed", "not known"]
        pd.testing.assert_frame_equal(mechanism.protect(secret, np.random.default_rng(1)), secret)

    def test_no_common_cell_and_so_the_target_itself(self):
        """(4.7) is 0 everywhere: nothing can be reinforced."""
        row = HMC(traces_of({"ann": [0, 1], "bob": [7, 8]}), erased=None).alter(traces_of({"ann": [0, 1, 1]})).users.loc["ann"]
        assert (row["outcome"], row["target"], row["iterations"], row["coverage"]) == ("replaced", "bob", 0, 0.0)


class TestMidpoints:
    @given(
        times=st.lists(st.integers(0, 10_000_000), min_size=1, max_size=7),
        n=st.integers(1, 40),
        seed=st.integers(0, 9),
    )
    @settings(max_examples=200)
    def test_as_algorithm_2(self, times, n, seed):
        """All that comes out is a record or midpoint of the algorithm's, as often as it has it at most; and there are n."""
        t = np.sort(np.array(times, np.int64))
        track = Track(t, 45 + t / 1e9, 5 + t / 3e9)
        out = adapted(track, np.zeros(len(t), np.int64), np.array([n]), np.random.default_rng(seed))
        assert len(out.t) == n
        assert (np.diff(out.t) >= 0).all()
        allowed = [tuple(map(float, r)) for r in naive.candidates(list(zip(t.tolist(), *track[1:], strict=True)), n)]
        for t_, lat, lng in zip(*out, strict=True):
            near = [c for c in allowed if abs(np.floor(c[0]) - t_) <= 1 and abs(c[1] - lat) < 1e-12 and abs(c[2] - lng) < 1e-12]
            assert near
            allowed.remove(near[0])

    def test_midpoints_stay_in_their_cell(self):
        rng = np.random.default_rng(3)
        lat, lng = 45 + rng.uniform(0, 0.02, 50), 5 + rng.uniform(0, 0.03, 50)
        cell, place = np.unique(GRID.cells(lat, lng), return_inverse=True)
        out = adapted(Track(np.arange(50), lat, lng), place, np.full(len(cell), 37), rng)
        assert dict(zip(*np.unique(GRID.cells(out.lat, out.lng), return_counts=True), strict=True)) == dict.fromkeys(cell, 37)
        # records that suffice stay as they are
        t = np.array([3, 5, 9], np.int64)
        out = adapted(Track(t, t / 1.0, t / 2.0), np.array([1, 0, 1]), np.array([1, 2]), rng)
        assert (out.t.tolist(), out.lat.tolist()) == ([3, 5, 9], [3.0, 5.0, 9.0])


def filled_from_all(gaps: Gaps, sets: Sets, spot) -> Track | None:
    """The set of all in one cell, with its centre at ``spot``, that fills a gap."""
    return gaps.filled(sets, np.arange(len(sets.first)), to_plane(*spot, gaps.plane))


class TestFilling:
    @given(
        times=st.lists(st.integers(0, 40 * HOUR), min_size=2, max_size=6, unique=True),
        others=st.lists(st.integers(0, 20 * HOUR), min_size=1, max_size=8, unique=True),
        cell=st.integers(0, 8),
        plane=st.sampled_from(PLANES),
        west=st.sampled_from([0.0, -185.01]),  # the second one puts the date line between the cells
    )
    @settings(max_examples=150)
    def test_as_algorithm_3(self, times, others, cell, plane, west):
        t, donor = np.sort(times), np.sort(others)
        places = np.array([centre(i) for i in range(9)])
        places[:, 1] = (places[:, 1] + west + 180) % 360 - 180
        (lat, lng), spot = places[np.arange(len(t)) % 9].T, places[cell]
        place = spot[:, None] + np.arange(len(donor)) * 1e-5  # a set's ends differ, so that no two ways are equal
        gaps = Gaps(Track(t, lat, lng), 3600.0, 10.0, plane)
        sets = sets_of(Track(donor, *place), np.zeros(len(donor)), 3600.0, 7200.0, plane)
        plain_gaps = [(a, b) for a, b in pairwise(zip(t, lat, lng, strict=True)) if b[0] - a[0] > HOUR]
        rows = list(zip(donor.tolist(), *place.tolist(), strict=True))
        plain_sets = [rows[a : b + 1] for a, b in zip(sets.first, sets.last, strict=True)]
        assert [r for s in plain_sets for r in s] == rows  # split, none lost
        for records in plain_sets:
            assert records[-1][0] - records[0][0] <= 2 * HOUR
            assert all(np.diff([r[0] for r in records]) <= HOUR)
        metres = lambda p, q: float(distance(*(np.array([x]) for x in (*p, *q)), plane)[0])  # noqa: E731
        expected = naive.best_gap(plain_gaps, plain_sets, tuple(spot), 10.0, metres)
        filled = filled_from_all(gaps, sets, spot)
        assert (filled is None) == (expected is None)
        if expected:
            _, records, begins = expected
            assert filled.t.tolist() == [r[0] - records[0][0] + begins for r in records]
            assert filled.lat.tolist() == [r[1] for r in records]

    def test_the_way_there_and_back_keeps_the_speed_limit(self):
        t = np.array([0, 2 * HOUR])
        (a, b), spot = (centre(0), centre(2)), centre(8)
        donor = Track(np.array([0, 30 * MINUTE]), np.full(2, spot[0]), np.full(2, spot[1]))
        far = float(distance(*a, *spot)), float(distance(*b, *spot))
        for speed in (0.4, 5.0):
            gaps = Gaps(Track(t, *np.transpose([a, b])), 3600.0, speed, "ground")
            filled = filled_from_all(gaps, sets_of(donor, np.zeros(2), 3600.0, 3600.0, "ground"), spot)
            if sum(far) / speed > 1.5 * 3600:
                assert filled is None
            else:
                assert filled.t[0] * speed >= far[0] * 1000
                assert (2 * HOUR - filled.t[-1]) * speed >= far[1] * 1000

    def test_a_gap_is_used_up(self):
        """Two hours' gap takes one set of an hour and a half; the next finds no room."""
        t = np.array([0, 2 * HOUR])
        spot = centre(4)
        gaps = Gaps(Track(t, *np.transpose([spot, spot])), 3600.0, 10.0, "ground")
        donor = Track(np.array([0, HOUR, 3 * HOUR // 2]), np.full(3, spot[0]), np.full(3, spot[1]))
        sets = sets_of(donor, np.zeros(3), 3600.0, 7200.0, "ground")
        assert filled_from_all(gaps, sets, spot) is not None
        assert filled_from_all(gaps, sets, spot) is None

    @pytest.mark.parametrize(("order", "first"), [("most", 8), ("least", 7), ("number", 7)])
    def test_which_cell_comes_first_gets_the_gap(self, order, first):
        """ann becomes bob's map: cell 8 is to have twice the records of cell 7, and her one gap takes one of them."""
        known = traces_of({"ann": [0, 1], "bob": [7, 8, 8], "eve": [7] * 12 + [8] * 12 + [6] * 30}, step=10 * MINUTE)
        secret = traces_of({"ann": [0, 1]}, step=5 * HOUR)
        mechanism = HMC(known, erased=None, filled_first=order, gap=4 * 3600.0, speed=0.3)
        alteration = mechanism.alter(secret)
        assert alteration.users["target"].tolist() == ["bob"]
        rebuilt = mechanism.rebuild(secret, alteration, np.random.default_rng(1))
        assert rebuilt.users[["filled_cells", "no_gap"]].to_numpy().tolist() == [[1, 1]]
        assert set(GRID.cells(rebuilt.traces["lat"], rebuilt.traces["lng"])) == {int(GRID.cells(*centre(first)))}

    def test_no_donor_no_gap_and_filled_are_told(self):
        """ann becomes bob's map, whose cells 7 and 8 she never passed; only cell 8 has a donor beside herself."""
        known = traces_of({"ann": [0, 1], "bob": [7, 8]})
        secret = traces_of({"ann": [0, 1, 1]})
        mechanism = HMC(known, erased=None)
        counts = mechanism.rebuild(secret, mechanism.alter(secret), np.random.default_rng(1)).users.loc["ann"]
        assert counts[["kept_cells", "dropped_cells", "filled_cells", "no_donor", "no_gap"]].tolist() == [0, 2, 0, 0, 2]
        slow = traces_of({"ann": [0, 1, 1]}, step=6 * HOUR)
        rebuilt = mechanism.rebuild(slow, mechanism.alter(slow), np.random.default_rng(1))
        counts = rebuilt.users.loc["ann"]
        assert counts[["filled_cells", "no_donor", "no_gap", "published"]].tolist() == [2, 0, 0, 4]  # ceil(3 / 2) in both
        assert answer(APAttack(grid=GRID).fit(known).rank(rebuilt.traces)).tolist() == ["bob"]
        assert slow["t"].min() < rebuilt.traces["t"].min()
        assert rebuilt.traces["t"].max() < slow["t"].max()

    def test_what_is_copied_was_left_by_somebody_else(self):
        """ann's own past in cell 7 lies nearer to her gap than bob's; his is copied all the same."""
        known = traces_of({"ann": [0, 1, 7], "bob": [7, 8]})
        anns_records = (known["user"] == "ann") & (known["lat"] == centre(7)[0])
        known.loc[anns_records, "lat"] -= 0.001
        secret = traces_of({"ann": [0, 1, 1]}, step=6 * HOUR)
        published = HMC(known, erased=None).protect(secret, np.random.default_rng(1))
        in_7 = published[GRID.cells(published["lat"], published["lng"]) == GRID.cells(*centre(7))]
        assert len(in_7)
        assert in_7["lat"].tolist() == pytest.approx([centre(7)[0]] * len(in_7), abs=1e-12)


def crowd(seed: int, users: int = 8, n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    home = np.random.default_rng(99).integers(0, 9, users)
    cells = {f"user {u}": np.where(rng.random(n) < 0.4, home[u], rng.integers(0, 9, n)).tolist() for u in range(users)}
    return traces_of(cells)


class TestReconstruction:
    def test_without_erasing_the_published_map_is_the_altered_one(self):
        """Up to whole records: every cell has n H' records, rounded up."""
        mechanism, secret = HMC(crowd(1), erased=None), crowd(2)
        alteration = mechanism.alter(secret)
        rebuilt = mechanism.rebuild(secret, alteration, np.random.default_rng(1))
        maps = heat_maps(rebuilt.traces, GRID)
        assert (alteration.users["outcome"] == "confused").sum() >= 3
        wanted = np.ceil(alteration.shares.toarray() * 300 - 1e-9)
        np.testing.assert_array_equal(maps.counts.toarray(), wanted[:, np.isin(alteration.cells, maps.cells)])

    def test_no_stay_that_should_be_erased_is_left_as_it_was(self):
        mechanism, secret = HMC(crowd(1), erased=1200.0), traces_of({f"user {u}": [u] * 90 + [0, 1, 2] * 5 for u in range(8)})
        rebuilt = mechanism.rebuild(secret, mechanism.alter(secret), np.random.default_rng(1))
        assert (rebuilt.users["erased"] > 0).all()
        assert rebuilt.users["published"].tolist() == np.diff(by_user(rebuilt.traces)[1]).tolist()
        kept = HMC(crowd(1), erased=None).protect(secret, np.random.default_rng(1))
        assert len(stays(kept, 200.0, 1200.0))
        assert len(rebuilt.traces) == len(kept) - rebuilt.users["erased"].sum()

    def test_erasing_once_leaves_new_stays_and_erasing_until_none_is_left_none(self):
        """Half an hour at one place, a short way and back, half an hour: the way that is left is a pause within 200 m, a stay."""
        home, away = centre(0), centre(1)
        spots = [home] * 31 + [away] + [home] * 31 + [away] + [home] * 2 + [away] * 3
        time = pd.to_datetime(START + MINUTE * np.arange(len(spots)), unit="ms", utc=True)
        trace = as_traces(pd.DataFrame(spots, columns=["lat", "lng"]).assign(user="ann", t=time))
        remaining = {passes: without_stays(trace, 200.0, 1200.0, passes=passes)[0] for passes in (1, 2, None)}
        assert len(stays(remaining[1], 200.0, 1200.0)) == 1  # the two records away, half an hour apart
        assert len(stays(remaining[2], 200.0, 1200.0)) == len(stays(remaining[None], 200.0, 1200.0)) == 0
        without_pauses, erased = without_stays(trace, 200.0, 1200.0, passes=None, max_gap=600.0)
        assert len(without_pauses) == len(remaining[1])  # a pause of more than ten minutes ends a stay
        assert erased.to_dict() == {"ann": 62}

    def test_rounding_at_each_iteration_adds_at_most_a_record_a_cell(self):
        """The program's counts are the shares after the addition times the records before it, rounded up."""
        known, secret = crowd(1), crowd(2)
        users = HMC(known, erased=None, rounded_at="iteration").alter(secret).users
        altered = users[users["iterations"] > 0]
        cells = np.diff(heat_maps(secret, GRID).counts.indptr).max()
        assert len(altered) >= 3
        assert (altered["held"] >= 300).all()
        assert (altered["held"] <= 300 + cells * altered["iterations"]).all()
        longest = altered["iterations"].max()
        assert altered["held"].max() < 300 * 1.002**longest + cells  # records that are added do not stay

    def test_sub_traces_of_one_owner(self):
        known = crowd(1)
        secret = crowd(2)
        owners = {f"user {u}-{k}": f"user {u}" for u in range(8) for k in range(2)}
        sub_traces = pd.concat([secret.assign(user=secret["user"].astype(str) + f"-{k}") for k in range(2)])
        mechanism = HMC(known, owners)
        users = mechanism.alter(as_traces(sub_traces)).users
        alone = HMC(known).alter(secret).users
        for k in range(2):
            part = users[users.index.str.endswith(f"-{k}")].set_axis(alone.index)
            pd.testing.assert_frame_equal(part, alone)

    def test_a_user_who_is_erased_is_missing_and_counted(self):
        """One place for two hours: all of it is a small point of interest."""
        mechanism = HMC(crowd(1))
        secret = traces_of({"zoe": [4] * 120, "user 1": [0, 1, 2] * 20})
        rebuilt = mechanism.rebuild(secret, mechanism.alter(secret), np.random.default_rng(1))
        assert rebuilt.users.loc["zoe", ["records", "erased", "published"]].tolist() == [120, 120, 0]
        assert "zoe" not in by_user(rebuilt.traces)[0]
        with pytest.raises(
            ValueError, match=r"alteration must be of the traces that are rebuilt, in their order \(it differs in"
        ):
            mechanism.rebuild(secret, mechanism.alter(secret[secret["user"] == "zoe"]), np.random.default_rng(1))

    def test_only_the_traces_of_one_user_need_no_more_than_hers(self):
        """What happens to a user depends on her own trace and on what is known, not on who else is protected."""
        mechanism, secret = HMC(crowd(1)), crowd(2)
        two_users = as_traces(secret[secret["user"].isin(["user 0", "user 1"])])
        one, all_ = (mechanism.protect(t, np.random.default_rng(4)).query("user == 'user 0'") for t in (two_users, secret))
        pd.testing.assert_frame_equal(one.drop(columns="user"), all_.drop(columns="user"))


test_parameters_that_make_no_sense = refusals(
    ({"step": 0}, "step must"),
    ({"patience": 0}, "patience must"),
    ({"margin": -1}, "margin must"),
    ({"unlike": "no"}, r'unlike must be "weight" or "exclusion"'),
    ({"speed": 0}, "speed must"),
    ({"erased": 0}, "erased must"),
    ({"gap": -5}, "gap must"),
    ({"k": 8}, r"k must be a whole number in 1 … 7, the number of other known users \(got 8\)"),
    ({"k": 2, "target": "population"}, r'k must be 1 with target="population"'),
    ({"target": "user"}, r'target must be "users", "mean" or "population"'),
    ({"rounding": "down"}, "rounding must"),
    ({"rounded_at": "start"}, "rounded_at must"),
    ({"filled_first": "all"}, "filled_first must"),
    ({"known": traces_of({"ann": [0, 1]})}, r"known must have records of at least 2 users \(got 1\)"),
    call=lambda parameters: HMC(**{"known": crowd(1)} | parameters),
)


def test_coverage_is_the_f_score():
    a, b = (heat_maps(traces_of(t), GRID) for t in ({"ann": [0, 1, 1]}, {"bob": [1, 2, 3], "eve": [8]}))
    assert heat_map_coverage(a, b).tolist() == [[2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2), 0.0]]
