import json
from functools import partial

import naive_profiles as naive
import numba
import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_making import edge_traces, traces_of, walks

from mobpriv import attacks
from mobpriv.attacks import policies
from mobpriv.attacks.ap import topsoe
from mobpriv.attacks.pit import NOTHING_NEAR, PITAttack
from mobpriv.attacks.poi import median_nearest
from mobpriv.ground import geo
from mobpriv.ground.grid import S2Grid, SquareGrid
from mobpriv.traces import profiles
from mobpriv.traces.table import as_traces

EVERY = [getattr(attacks, name) for name in attacks.__all__]
COMPARING = [attack for attack in EVERY if attack is not attacks.ILLAttack]  # pairs of profiles; the other one learns classes
HOURS = [(h * 600, x, y) for h, (x, y) in enumerate([(0, 0)] * 8 + [(3000, 0)] * 8 + [(0, 0)] * 8)]
ELSEWHERE = [(t, x + 20_000, y + 500) for t, x, y in HOURS]


def places(table):
    """A table of places per user, from metres of the Mercator plane."""
    user, x, y = zip(*[(user, *spot) for user, at in table.items() for spot in at], strict=True)
    lat, lng = geo.to_degrees(np.array(x, float), np.array(y, float), "mercator")
    return pd.DataFrame({"user": pd.Categorical(user), "lat": lat, "lng": lng})


@pytest.fixture
def known():
    """Three users: two with stays, the third with one record."""
    return traces_of([HOURS, ELSEWHERE, [(0, 50_000, 0)]])


def renamed(traces, names):
    """The same traces under other names; sorted again, as ``Traces`` are."""
    return as_traces(traces.assign(user=traces["user"].astype(str).map(names)))


@pytest.mark.parametrize("attack", EVERY)
class TestEveryAttack:
    def test_arguments_and_the_attack_itself_stay_as_they_are(self, attack, known):
        before, blank = known.copy(deep=True), attack()
        fitted = blank.fit(known)
        ranking = fitted.rank(known)
        pd.testing.assert_frame_equal(known, before, check_exact=True)
        assert blank.known_ is None
        pd.testing.assert_frame_equal(fitted.rank(known), ranking, check_exact=True)
        refitted = fitted.fit(known)  # forgets whom it knew, keeps its parameters
        pd.testing.assert_frame_equal(refitted.rank(known), ranking, check_exact=True)
        ranking[:] = 0.0
        assert (fitted.rank(known).to_numpy()[:2, :2] > 0).any()

    def test_one_thread_and_all_of_them_give_the_same(self, attack, known, threads):
        shared = attack().fit(known).rank(known)
        numba.set_num_threads(1)
        pd.testing.assert_frame_equal(attack().fit(known).rank(known), shared, check_exact=True)

    def test_rank_has_a_row_a_trace_and_a_column_a_known_user(self, attack, known):
        fitted = attack().fit(known)
        ranking = fitted.rank(known)
        assert ranking.index.tolist() == ranking.columns.tolist() == ["u0", "u1", "u2"]
        assert (ranking.dtypes == "float64").all()
        assert not (ranking.to_numpy() < 0).any()
        assert fitted.rank(known.iloc[:0]).shape == (0, 3)
        assert attack().fit(known.iloc[:0]).rank(known).shape == (3, 0)
        assert fitted.rank(as_traces(known[known["user"] == "u1"])).shape == (1, 3)
        with pytest.raises(ValueError, match="fit the attack"):
            attack().rank(known)

    def test_everybody_is_nearest_to_herself(self, attack, known):
        d = attack().fit(known).rank(known).to_numpy()[:2, :2]
        assert (np.diag(d) < 1e-9).all() or attack not in COMPARING
        assert (np.diag(d) < d[~np.eye(2, dtype=bool)] - 1e-3).all()

    def test_who_has_no_profile_is_like_nobody(self, attack, known):
        """Not a number means no profile: in the whole row and the whole column of a user, never of a pair."""
        ranking = attack().fit(known).rank(known)
        missing = ranking.isna().to_numpy()
        without = missing.all(axis=1)
        assert (missing == (without[:, None] | without[None, :])).all()
        assert without.tolist() == [False, False, attack in (attacks.POIAttack, attacks.PITAttack)]

    def test_names_and_their_order_do_not_matter(self, attack, known):
        ranking = attack().fit(known).rank(known)
        backwards, new = {"u0": "z", "u1": "y", "u2": "x"}, {"u0": "m", "u1": "k", "u2": "l"}
        renamed_ranking = attack().fit(renamed(known, backwards)).rank(renamed(known, new))
        assert renamed_ranking.index.tolist() == ["k", "l", "m"]
        assert renamed_ranking.columns.tolist() == ["x", "y", "z"]
        renamed_ranking = renamed_ranking.loc[ranking.index.map(new), ranking.columns.map(backwards)]
        np.testing.assert_array_equal(renamed_ranking.to_numpy(), ranking.to_numpy())

    def test_others_do_not_matter(self, attack, known):
        """A pair is as alike whoever else is attacked; and whoever else is known, but for an attack that tells classes apart."""
        fitted = attack().fit(known)
        full_ranking = fitted.rank(known)
        subset = as_traces(known[known["user"] != "u0"])
        np.testing.assert_array_equal(fitted.rank(subset), full_ranking.loc["u1":])
        if attack in COMPARING:
            np.testing.assert_array_equal(attack().fit(subset).rank(subset), full_ranking.loc["u1":, "u1":])

    def test_equal_traces_are_equally_alike(self, attack):
        """And the tie is settled against the adversary."""
        twins = attack().fit(traces_of([HOURS, HOURS, ELSEWHERE])).rank(traces_of([HOURS]))
        assert twins.loc["u0", "u0"] == twins.loc["u0", "u1"] < twins.loc["u0", "u2"]
        assert policies.min_k(twins).tolist() == [2]


@pytest.mark.parametrize("attack", [attacks.POIAttack, attacks.PITAttack, partial(attacks.POIAttack, merged=False)])
@pytest.mark.parametrize("lng", [180.0, -180.0])
def test_places_across_the_date_line_are_near(attack, lng):
    """Homes 160 m apart with 180° between them are as alike as anywhere else."""
    known, anonymous = traces_of([HOURS, ELSEWHERE]), traces_of([[(t, x + 160, y) for t, x, y in HOURS]])
    ranking = attack().fit(known).rank(anonymous)
    shift = lambda t: as_traces(t.assign(lng=(t["lng"] - 4.831 + lng + 180) % 360 - 180))  # noqa: E731
    shifted_ranking = attack().fit(shift(known)).rank(shift(anonymous))
    assert np.sign(shift(known)["lng"]).iloc[0] != np.sign(shift(anonymous)["lng"]).iloc[0]
    assert shifted_ranking.iloc[0, 0] == pytest.approx(160, abs=1)
    np.testing.assert_allclose(shifted_ranking, ranking, rtol=1e-6)


def test_states_of_equal_weight_keep_their_order():
    """The first visited of equally frequent places comes first, by falling and by rising weight."""
    a, b = chain((0, 0, 0.5), (10_000, 0, 0.5)), chain((0, 0, 0.5), (9_000, 3_000, 0.5))
    for order in ("descending", "ascending"):
        assert PITAttack(far=-1, order=order).stats_prox(a, b).iloc[0, 0] == pytest.approx(1 / 10)


@settings(max_examples=30)
@given(st.lists(walks, min_size=2, max_size=4))
def test_topsoe_equals_its_definition(user_walks):
    traces, grid = traces_of(user_walks), SquareGrid(100)
    known, anonymous = traces_of(user_walks[:1]), traces
    a, b = profiles.heat_maps(anonymous, grid), profiles.heat_maps(known, grid)
    fast = topsoe(a, b)
    for i in range(len(a.users)):
        p = dict(zip(a.cells[a.shares[[i]].indices], a.shares[[i]].data, strict=True))
        q = dict(zip(b.cells[b.shares[[0]].indices], b.shares[[0]].data, strict=True))
        assert fast[i, 0] == pytest.approx(naive.topsoe(p, q), abs=1e-12)
    assert (fast >= 0).all()
    assert (fast <= 2 * np.log(2) + 1e-12).all()


def test_strangers_are_two_ln_two_apart_and_bits_rank_alike():
    known = traces_of([HOURS, ELSEWHERE])
    for attack, expected in (({}, 2 * np.log(2)), ({"unit": "bits"}, 1), ({"grid": S2Grid(13)}, 2 * np.log(2))):
        assert attacks.APAttack(**attack).fit(known).rank(known).loc["u0", "u1"] == pytest.approx(expected)


def points(table):
    return {u: list(zip(g["lat"], g["lng"], strict=True)) for u, g in table.groupby("user", observed=True)}


spots = st.lists(st.tuples(st.floats(-3000, 3000), st.floats(-3000, 3000)), min_size=1, max_size=6)


@settings(max_examples=30)
@given(spots, spots, spots)
def test_median_nearest_equals_its_definition(x, y, z):
    a, b = places({"a": x, "b": y}), places({"c": z})
    fast = median_nearest(a, b)
    for user, at in points(a).items():
        assert fast.loc[user, "c"] == pytest.approx(naive.median_nearest(at, points(b)["c"]), abs=1e-6)


@settings(max_examples=30)
@given(spots, spots)
def test_stats_prox_equals_its_definition(x, y):
    weigh = lambda t: t.assign(weight=np.linspace(2, 1, len(t)) / np.linspace(2, 1, len(t)).sum())  # noqa: E731
    a, b = weigh(places({"a": x})), weigh(places({"b": y}))
    rows = [list(zip(t["lat"], t["lng"], t["weight"], strict=True)) for t in (a, b)]
    assert PITAttack().stats_prox(a, b).iloc[0, 0] == pytest.approx(naive.stats_prox(*rows), rel=1e-9, abs=1e-6)


def chain(*states):
    table = places({"u": [s[:2] for s in states]})
    return table.assign(weight=[s[2] for s in states])


def test_stats_prox_by_hand():
    # home 0.9 at the origin, a café 0.1 at 10 km; the other chain shares only the café, as its second place
    a = chain((0, 0, 0.9), (10_000, 0, 0.1))
    b = chain((5_000, 0, 0.8), (10_000, 50, 0.2))
    d = lambda **keywords: PITAttack(plane="mercator", **keywords).stats_prox(a, b).iloc[0, 0]  # noqa: E731
    # stationary: 0.9 · 5000 + 0.1 · 50 = 4505 m > 2000 m, and the second places are 50 m apart: score 10/2
    assert d() == pytest.approx(1 / 5)
    assert d(order="ascending") == pytest.approx(1 / 10)  # the least visited first: the café scores 10
    assert d(far=5_000) == pytest.approx(4_505)
    assert d(near=40) == pytest.approx(4_505)
    assert d(stationary="printed") == pytest.approx(0.1 * 50)  # (3.14) as printed: far pairs add nothing
    # and so strangers are equal
    assert PITAttack(stationary="printed").stats_prox(chain((0, 0, 1.0)), chain((50_000, 0, 1.0))).iloc[0, 0] == 0


def test_scores_halve_in_whole_numbers_with_a_floor():
    many = chain(*[(i * 1000, 0, 0.2) for i in range(5)])
    # far=-1: take the proximity distance always
    d = lambda **keywords: PITAttack(far=-1, **keywords).stats_prox(many, many).iloc[0, 0]  # noqa: E731
    assert 1 / d(whole_scores=True) == pytest.approx(10 + 5 + 2 + 1 + 1)
    assert 1 / d() == pytest.approx(10 + 5 + 2.5 + 1.25 + 0.625)


def test_poi_distances_of_the_authors_program(reference):
    cases = {c["id"]: c for c in json.loads((reference / "accio_unit_tests.json").read_text())["cases"]}
    for name in ("poi_attack_self", "poi_attack_mixed"):
        case = cases[name]
        known, anonymous = (places(case["input"][k]) for k in ("train_pois_m", "test_pois_m"))
        d = median_nearest(anonymous, known, "mercator")
        assert d.idxmin(axis=1).to_dict() == case["expected"]["match"]
        for user, row in case["expected"].get("all_distances_from_SFERA_run", {}).items():
            for other, value in row.items():
                assert d.loc[user, other] == pytest.approx(value, abs=1e-7)  # plane -> degrees -> plane


def test_heat_map_distances_of_the_authors_program(reference):
    expected = json.loads((reference / "edge_traces/expected/metrics.json").read_text())
    raw = edge_traces(reference)
    fitted = attacks.APAttack(plane="mercator", unit="bits").fit(raw)
    checked = 0
    for mechanism in ("geoi_eps0.01_seed7", "promesse_100", "promesse_200"):
        protected = edge_traces(reference, f"expected/{mechanism}")
        ranking = fitted.rank(protected)
        for user, value in expected[mechanism]["heatmap_distortion_800m"]["per_user"].items():
            if value != "NaN":
                assert ranking.loc[user, user] == pytest.approx(value, abs=2e-15)
                checked += 1
    assert checked == 26  # Promesse erases five of the twelve traces


def test_readings_of_equation_3_13():
    """Chains that share no place near, farther apart than d_0: the printed condition leaves them all at 10⁵ km."""
    home = chain((0, 0, 1.0))
    near, far = chain((0, 1500, 1.0)), chain((0, 2500, 1.0))
    program, printed = PITAttack(), PITAttack(combined="printed")
    assert program.stats_prox(home, far).iloc[0, 0] == pytest.approx(2500, rel=1e-2)
    assert printed.stats_prox(home, far).iloc[0, 0] == NOTHING_NEAR
    assert program.stats_prox(home, near).iloc[0, 0] == printed.stats_prox(home, near).iloc[0, 0] < 2000


test_bad_parameters = refusals(
    (attacks.APAttack, {"cell": 0}, "cell must be positive"),
    (attacks.APAttack, {"unit": "hartley"}, "unit must be"),
    (PITAttack, {"order": "random"}, "order must be"),
    (PITAttack, {"combined": "read"}, "combined"),
    call=lambda attack, given: attack(**given),
)
