"""PULP beyond its paper: HMC as a mechanism with one parameter, its second half, bands and margins, and what tells it and ALP apart."""

import dataclasses
from math import pi

import numpy as np
import pandas as pd
import pytest
from conftest import refusals, refuses
from pulp_making import journey, wanderers

from mobpriv.attacks import ILLAttack
from mobpriv.experiments import pulp_beyond as pb
from mobpriv.experiments.days import days_spanned
from mobpriv.experiments.pulp import NO_MECHANISM, P_THLD, PU_RATIO, PU_THLD, U_THLD, recommended
from mobpriv.mechanisms import HMC, GeoI
from mobpriv.pulp import BOTH, SWEEPS, Arctan, Candidate, Metrics, Objective, Sweep, achieved, models
from mobpriv.traces.table import by_user, rows

KNOWN = wanderers([300, 200, 250], seed=1)
SECRET = wanderers([150, 100, 120], seed=2)


def trace_of(traces, user):
    return rows(traces, (traces["user"] == user).to_numpy())


def test_a_cell_is_that_of_hmc_itself():
    """A copy of HMC with another cell would keep the grid of the first."""
    mechanism = pb.hmc_sweep(KNOWN).at(300.0)
    published = mechanism.protect(SECRET, np.random.default_rng(1))
    pd.testing.assert_frame_equal(published, HMC(KNOWN, cell=300.0).protect(SECRET, np.random.default_rng(1)))
    assert not published.equals(HMC(KNOWN).protect(SECRET, np.random.default_rng(1)))
    not_erased = dataclasses.replace(pb.ConfigurableHMC(KNOWN), erased=None).protect(SECRET, np.random.default_rng(1))
    pd.testing.assert_frame_equal(not_erased, HMC(KNOWN, erased=None).protect(SECRET, np.random.default_rng(1)))


def test_hmc_is_made_once_for_a_cell():
    sweep = pb.hmc_sweep(KNOWN)
    for _ in range(2):
        for value in (300.0, 800.0):
            sweep.at(value).protect(trace_of(SECRET, "a"), np.random.default_rng(1))
    assert sorted(sweep.mechanism.by_cell) == [300.0, 800.0]


def test_levels_together_are_those_of_each_alone():
    original = pd.concat([journey([((0, 0), 30), ((3000, 0), 30)], user) for user in ("ann", "bob")], ignore_index=True)
    original["user"] = original["user"].astype("category")
    published = rows(original, (original["user"] == "bob").to_numpy())  # ann is left out
    levels = pb.levels_together(original, published, Metrics())
    assert levels.loc["ann"].tolist() == [1.0, 0.0]
    assert levels.loc["bob"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("law", "objective", "expected"),
    [("PU-ratio", (2,), 1.1), ("PU-thld", (0.6, 0.7), 0.51), ("P-thld", (0.7,), 0.3), ("U-thld", (0.5,), 0.5)],
)
def test_what_a_law_makes_large(law, objective, expected):
    assert pb.goodness(law, objective, 0.5, 0.3) == pytest.approx(expected)


test_a_law_that_is_none_is_refused = refusals(
    ("PU-law", (2,), r"^law must be \"PU-ratio\", .* or \"U-thld\" \(got 'PU-law'\)$"),
    ("PU-thld", (0.6,), r"^the objective of PU-thld must have 2 numbers \(got 1\)$"),
    call=lambda law, objective: pb.goodness(law, objective, 0.5, 0.3),
)


def test_a_set_shorter_than_the_days_is_cut_in_its_own_middle(tmp_path):
    """Cabspotting spans 24 days: a cut after 15 would leave 9, and a setting belongs to a length."""
    path, moments = tmp_path / "short.csv", pd.date_range("2024-01-01", periods=24 * 24, freq="h", tz="UTC")
    tables = [pd.DataFrame({"user": user, "lat": 45.0, "lng": x, "time": moments}) for user, x in (("a", 0.0), ("b", 1.0))]
    pd.concat(tables).to_csv(path, index=False)
    for days in (30, 24, 25, 40):
        setting, choice = pb.second_half(str(path), days=days)
        assert [days_spanned(setting.known), days_spanned(choice.traces)] == pytest.approx([12, 12], abs=0.1)
        assert "The halves span 12 days each" in choice.selection


def test_the_first_days_of_each_user_are_those_with_records():
    traces = journey([((0, 0), 3 * 1440), ((500, 0), 60)], "ann")
    day = traces["t"].dt.floor("D")
    traces = rows(traces, (day != day.unique()[1]).to_numpy())  # a day without records
    assert pb.days_with_records(traces).to_dict() == {"ann": 3}
    two = pb.first_days(traces, pd.Series({"ann": 2}))
    assert sorted(two["t"].dt.floor("D").unique()) == sorted(day.unique()[[0, 2]])
    assert pb.days_with_records(pb.first_days(SECRET, pb.days_with_records(SECRET))).equals(pb.days_with_records(SECRET))
    assert len(pb.first_days(SECRET, pb.days_with_records(SECRET))) == len(SECRET)


def test_the_second_half_holds_users_of_the_first():
    setting, choice = pb.second_half("city", sample=5)
    users = by_user(choice.traces)[0]
    assert len(users) == 5
    assert not len(users.difference(by_user(setting.known)[0]))
    assert choice.traces["t"].min() >= setting.known["t"].max()
    pd.testing.assert_frame_equal(trace_of(choice.traces, users[2]), trace_of(setting.secret, users[2]))
    setting, choice = pb.second_half("city", sample=10**6)
    assert len(by_user(choice.traces)[0]) == len(by_user(setting.secret)[0].intersection(by_user(setting.known)[0]))


def test_who_follows_a_setting_has_the_levels_that_achieved_has():
    chosen = pd.DataFrame({"user": ["a", "b", "c"], "mechanism": ["Geo-I", None, "Promesse"], "value": [0.01, np.nan, 200.0]})
    published, levels = pb.protected_with_settings(SECRET, chosen, SWEEPS, Metrics(), 7)
    expected = achieved(SECRET, chosen, seeds=[7]).set_index("user")
    assert levels["user"].tolist() == ["a", "c"]
    for row in levels.itertuples():
        np.testing.assert_equal([row.privacy, row.utility], expected.loc[row.user, ["privacy", "utility"]].tolist())
        assert len(trace_of(published, row.user)) == expected.loc[row.user, "records"]
    assert not len(trace_of(published, "b"))
    fixed = {}
    for seed in (6, 7):
        again, _ = pb.protected_with_settings(SECRET, chosen, SWEEPS, None, seed, fixed)
    pd.testing.assert_frame_equal(again, published)
    assert list(fixed) == [("c", "Promesse", 200.0)]
    published, levels = pb.protected_with_settings(SECRET, chosen.iloc[[1]], SWEEPS, Metrics(), 7)
    assert not len(published)
    assert not len(levels)


test_settings_that_nobody_can_follow = refusals(
    ([("a", "Geo-I", 0.01), ("a", "Geo-I", 0.02)], 7, r"^a user follows one setting \(a has several\)$"),
    ([("zoe", "Geo-I", 0.01)], 7, r"^settings must be those of users who have records \(zoe has none\)$"),
    ([("a", "HMC", 0.01)], 7, r"^a chosen mechanism must be \"Geo-I\" or \"Promesse\" \(got 'HMC'\)$"),
    ([("a", "Geo-I", 0.0)], 7, r"^the value chosen for a must be positive \(got 0.0\)$"),
    ([("a", "Geo-I", 0.1)], -1, r"^seed must be a whole number, at least 0 \(got -1\)$"),
    call=lambda chosen, seed: pb.protected_with_settings(
        SECRET, pd.DataFrame(chosen, columns=["user", "mechanism", "value"]), SWEEPS, Metrics(), seed
    ),
)


def test_days_found_counts_days():
    """Two people who keep apart, each for several days: every day of theirs is told, and one of none is not."""
    home = {user: [((place, 0), 600)] * 10 for user, place in (("ann", 0), ("bob", 30_000))}
    traces = pd.concat([journey(stops, user) for user, stops in home.items()], ignore_index=True)
    traces["user"] = traces["user"].astype("category")
    attack = ILLAttack(86_400.0, trees=5, seed=1).fit(traces)
    assert pb.days_reidentified(attack, traces, ["ann", "bob", "eve"]).tolist() == [1.0, 1.0, 0.0]
    # bob goes where ann is: his days are taken for hers
    moved_traces = traces.assign(lng=np.where(traces["user"] == "bob", traces["lng"].min(), traces["lng"]))
    assert pb.days_reidentified(attack, moved_traces, ["ann", "bob"]).tolist() == [1.0, 0.0]
    assert pb.days_reidentified(attack, traces.iloc[:0], ["ann"]).tolist() == [0.0]


GEO = Sweep(GeoI(), "epsilon", np.geomspace(1e-4, 1, 9), "utility")
FALLING, RISING = Arctan(-0.32, 2.0, np.log(0.01), 0.5), Arctan(0.32, 1.5, np.log(0.02), 0.5)
LAW = P_THLD._replace(objectives=((0.7,),))


def made(noise: float, users=("a", "b"), repetitions=4, seed=1) -> pd.DataFrame:
    """A profile that two curves give, with noise."""
    rng = np.random.default_rng(seed)
    rows = [
        {"user": u, "mechanism": "Geo-I", "parameter": "epsilon", "value": v, "repetition": r + 1}
        | {"privacy": FALLING.at(np.log(v)) + noise * rng.normal(), "utility": RISING.at(np.log(v)) + noise * rng.normal()}
        | {"records": 9, "reason": ""}
        for u in users
        for v in GEO.values
        for r in range(repetitions)
    ]
    return pd.DataFrame(rows)


def drawn(levels: dict[str, list[float]], metric="privacy") -> pd.DataFrame:
    """Measured levels of users, a draw a number."""
    rows = [{"user": u, "repetition": i, metric: x} for u, of in levels.items() for i, x in enumerate(of, 1)]
    return pd.DataFrame(rows).reindex(columns=["user", "repetition", "privacy", "utility"]).fillna(1.0)


class TestResampling:
    def test_levels_stay_with_their_user_and_setting(self):
        profile = made(0.1)
        again = pb.resample(profile, np.random.default_rng(1))
        keys = ["user", "value"]
        there = {key: set(of) for key, of in profile.groupby(keys)["privacy"]}
        assert all(set(of) <= there[key] for key, of in again.groupby(keys)["privacy"])
        pairs = set(zip(profile["privacy"], profile["utility"], strict=True))
        assert set(zip(again["privacy"], again["utility"], strict=True)) <= pairs, "both levels of one protection stay together"
        assert (again["privacy"] != profile["privacy"]).any()
        once = made(0.1, repetitions=1)
        pd.testing.assert_frame_equal(pb.resample(once, np.random.default_rng(1)), once)

    def test_each_repetition_is_drawn_as_often(self):
        profile = made(0.1, users=("a",), repetitions=3)
        rng = np.random.default_rng(2)
        first = np.mean([pb.resample(profile, rng)["privacy"].isin(profile["privacy"][::3]).mean() for _ in range(120)])
        assert first == pytest.approx(1 / 3, abs=0.03)  # 120 × 27 draws: three standard deviations are 0.025

    def test_errors_are_put_on_the_model(self):
        profile = made(0.05, users=("a",))
        fits = models(profile, [GEO])
        again = pb.resample_errors(profile, fits, np.random.default_rng(1))
        row = fits[fits["metric"] == "privacy"].iloc[0]
        curve = np.array([Arctan(row.a, row.b, row.c, row.d).at(np.log(v)) for v in profile["value"]])
        old, new = ((t["privacy"] - curve).to_numpy() for t in (profile, again))
        assert np.abs(new[:, None] - old).min(axis=1).max() < 1e-12
        assert not np.allclose(old, new)


class TestBands:
    def test_without_noise_a_band_is_a_point(self):
        for resampled in ("repetitions", "errors"):
            band_table = pb.bands(made(0.0), [LAW], 3, np.random.default_rng(1), [GEO], resampled)
            assert band_table["same"].eq(1).all()
            assert band_table["low"].to_numpy() == pytest.approx(band_table["value"], rel=1e-3)
            assert band_table["high"].to_numpy() == pytest.approx(band_table["value"], rel=1e-3)
        with pytest.raises(ValueError, match='resampled must be "repetitions" or "errors"'):
            pb.bands(made(0.0), [LAW], 3, np.random.default_rng(1), [GEO], "users")

    def test_more_noise_is_a_wider_band(self):
        band_tables = [pb.bands(made(noise), [LAW], 20, np.random.default_rng(1), [GEO]) for noise in (0.01, 0.05)]
        width = [np.log(table["high"] / table["low"]).mean() for table in band_tables]
        assert width[1] > 2 * width[0] > 0

    def test_each_law_has_its_rows_and_what_nobody_keeps_has_no_band(self):
        high = PU_THLD._replace(objectives=((0.95, 0.95),))
        band_table = pb.bands(made(0.01), [LAW, high], 3, np.random.default_rng(1), [GEO])
        assert band_table.groupby("law")["user"].apply(list).to_dict() == {"P-thld": ["a", "b"], "PU-thld": ["a", "b"]}
        none = band_table[band_table["law"] == "PU-thld"]
        assert (none["mechanism"] == NO_MECHANISM).all()
        assert none[["low", "high"]].isna().all(axis=None)
        assert (none["same"] == 1).all()


class TestMargin:
    def test_shortfall_is_that_of_the_threshold_missed_by_more(self):
        law = PU_THLD._replace(objectives=((0.6, 0.7),))
        levels = pd.DataFrame({"user": "a", "privacy": [0.5, 0.7, 0.9], "utility": [0.7, 0.5, 0.9]})
        assert pb.shortfall(law, levels).to_numpy() == pytest.approx([0.1, 0.2, -0.2])
        assert pb.shortfall(U_THLD._replace(objectives=((0.7,),)), levels).to_numpy() == pytest.approx([0, 0.2, -0.2])
        refuses("a law with thresholds must be", pb.shortfall, PU_RATIO, levels)

    @pytest.mark.parametrize(
        ("levels", "share", "expected"),
        [
            # nine users of one draw: the 0.8 · 10 / 9 quantile is the eighth smallest shortfall
            ({f"u{i}": [0.7 - s] for i, s in enumerate((0.01, 0.05, 0.02, 0.09, 0.03, 0.08, 0.04, 0.07, 0.06))}, 0.8, 0.08),
            ({"a": [0.6], "b": [0.65], "c": [0.5]}, 0.5, 0.1),
            ({"a": [0.6], "b": [0.65] * 20, "c": [0.5]}, 0.5, 0.1),  # a user counts once, however often she was drawn
            ({"a": [0.6], "b": [0.6]}, 0.9, np.inf),  # too few users promise nothing
            ({f"u{i}": [0.6] for i in range(9)}, 0.9, 0.1),
            ({f"u{i}": [0.9] for i in range(20)}, 0.9, 0),  # who never falls short needs none
        ],
    )
    def test_its_rank_is_that_of_split_conformal_prediction(self, levels, share, expected):
        assert pb.margin(LAW, drawn(levels), share) == pytest.approx(expected)

    def test_raised_thresholds_are_asked_for_user_by_user(self):
        fits = models(made(0.0), [GEO])
        raised = pb.with_margin(fits, LAW, {"a": 0.0, "b": 0.1}).set_index("user")
        plain, higher = (recommended(fits, P_THLD._replace(objectives=((t,),))).set_index("user") for t in (0.7, 0.8))
        assert raised.loc["a", "value"] == plain.loc["a", "value"]
        assert raised.loc["b", "value"] == pytest.approx(higher.loc["b", "value"])
        assert set(raised["objective"]) == {"0.7"}
        assert pb.with_margin(fits, LAW, {"a": np.inf, "b": 0.0})["mechanism"].tolist() == [NO_MECHANISM, "Geo-I"]

    def test_no_unknown_level_passes_for_a_number(self):
        profile = made(0.05)
        profile.loc[3, "privacy"] = np.nan
        again = pb.resample_errors(profile, models(profile, [GEO]), np.random.default_rng(1))
        assert again["privacy"].isna().sum() == 1
        with pytest.raises(ValueError, match=r"a margin needs levels that are numbers \(got NaN for a\)"):
            pb.margin(LAW, drawn({"a": [np.nan, 0.5], "b": [0.6]}).assign(privacy=[np.nan, 0.5, 0.6]), 0.5)
        for given in ({"a": np.nan, "b": 0.1}, {"b": 0.1}):
            refuses(r"every user needs a margin \(a has none\)", pb.with_margin, models(made(0.0), [GEO]), LAW, given)

    def test_one_unknown_error_does_not_hide_the_other(self):
        errors = pb.left_out_errors(made(0.05), [GEO])
        errors.loc["a", ("Geo-I", "privacy")] = np.nan
        law = PU_THLD._replace(objectives=((0.3, 0.3),))
        chosen = recommended(models(made(0.05), [GEO]), law)
        assert pb.personal_margin(law, chosen, errors, 1.0)["a"] == pytest.approx(errors.loc["a", ("Geo-I", "utility")])

    def test_ones_own_is_the_spread_of_her_errors(self):
        profile = made(0.05)
        errors = pb.left_out_errors(profile, [GEO])
        table = models(profile, [GEO], left_out=True).set_index(["user", "metric"])
        chosen = recommended(models(profile, [GEO]), LAW)
        spread = np.sqrt(table.loc[("a", "privacy"), "left_out"])
        assert pb.personal_margin(LAW, chosen, errors, 2.0)["a"] == pytest.approx(2 * spread)
        law = PU_THLD._replace(objectives=((0.3, 0.3),))
        both = pb.personal_margin(law, recommended(models(profile, [GEO]), law), errors, 1.0)["a"]
        assert both == pytest.approx(np.sqrt(table.loc["a", "left_out"].max()))
        assert pb.personal_margin(LAW, chosen.assign(mechanism=NO_MECHANISM), errors, 2.0) == {"a": 0.0, "b": 0.0}


VALUES = np.array([0.001, 0.01, 0.1, 1.0])


def response(privacy, utility, noise=0.0) -> pb.Response:
    """Two draws around the given means."""
    spread = np.array([-noise, noise])
    return pb.Response(VALUES, np.asarray(privacy, float)[:, None] + spread, np.asarray(utility, float)[:, None] + spread)


@pytest.mark.parametrize(("privacy", "utility"), [(0.7, 0.4), (1.0, 0.0), (0.2, 0.9), (0.5, 0.5), (-0.1, 0.5)])
def test_the_costs_of_the_sum_and_of_the_ratio_are_those_of_alps_objectives(privacy, utility):
    of = {"privacy": privacy, "utility": utility}
    assert pb.costs("sum", privacy, utility) == pytest.approx(sum(o.cost(of[o.metric]) for o in BOTH))
    half = Objective("equal", "privacy", 0.5)
    assert pb.costs("ratio", abs(privacy), utility) == pytest.approx(half.cost(abs(privacy) / (abs(privacy) + utility)))
    assert pb.costs("ratio", 0.0, 0.0) == 1
    refuses("objective", pb.costs, "product", privacy, utility)


def test_the_best_ratio_is_where_the_levels_cross():
    # privacy 1 - s, utility s/2 at the share s of the way in ln ε: equal at s = 2/3
    thirds = np.arange(4) / 3
    assert response(1 - thirds, thirds / 2).best("ratio") == pytest.approx(0.1)
    # between two values: 0.8 and 0.3 at 0.01, 0.2 and 0.5 at 0.1 meet 5/8 of the way
    assert response([1, 0.8, 0.2, 0], [0, 0.3, 0.5, 1]).best("ratio") == pytest.approx(0.01 * 10 ** (5 / 8))
    # of three crossings, at 0.15, 0.5 and 0.45, that of the highest levels
    assert response([0.2, 0.1, 0.9, 0.0], [0.1, 0.2, 0.8, 0.1]).best("ratio") == pytest.approx(10**-1.5)
    # levels that never cross are nearest at an end
    assert response([0.9, 0.8, 0.7, 0.6], [0.1, 0.2, 0.3, 0.4]).best("ratio") == 1.0


def test_annealing_without_noise_comes_near_the_best():
    """The best sum is the highest corner."""
    one, values = response([1, 0.9, 0.2, 0], [0, 0.4, 0.8, 0.9]), np.geomspace(0.001, 1, 200)
    results = [one.annealed("sum", values, np.random.default_rng(seed)) for seed in range(10)]
    assert set(results) <= set(values.tolist())
    assert one.best("sum") == pytest.approx(0.01, rel=0.01)
    best = pb.costs("sum", *one.means(one.best("sum")))
    assert np.median([pb.costs("sum", *one.means(value)) for value in results]) - best < 0.05


def test_annealing_sees_the_noise_of_one_draw_in_both_levels():
    # the noise takes from privacy what it gives to utility: their sum never moves, and neither does what annealing finds
    calm, noise = response([1, 0.9, 0.2, 0], [0, 0.4, 0.8, 0.9]), np.array([-0.05, 0.05])
    noisy = pb.Response(VALUES, calm.privacy + noise, calm.utility - noise)
    values = np.geomspace(0.011, 0.09, 50)  # where no level is cut at 1
    for seed in range(5):
        a, b = (r.annealed("sum", values, np.random.default_rng(seed), runs=1) for r in (calm, noisy))
        assert a == b


ONE = Candidate("Geo-I", Arctan(-1 / pi, 2.0, np.log(0.02), 0.5), Arctan(1 / pi, 1.0, np.log(0.005), 0.5), 1e-4, 1.0)


def test_the_largest_sum_of_models_is_that_of_a_search():
    x = np.linspace(np.log(1e-4), 0, 20_001)
    sums = [ONE.privacy.at(v) + ONE.utility.at(v) for v in x]
    assert np.log(pb.largest_sum(ONE)) == pytest.approx(x[np.argmax(sums)], abs=0.01)


def profiled(**changed) -> pd.DataFrame:
    rows = [
        {"user": user, "mechanism": "Geo-I", "value": value, "repetition": r, "privacy": 0.5 + value, "utility": r / 10}
        for user in "ab"
        for value in (0.1, 0.2)
        for r in (1, 2, 3)
    ]
    return pd.DataFrame(rows).assign(**changed)


def test_responses_hold_a_row_a_value_and_a_column_a_draw():
    user_responses = pb.responses(profiled())
    assert list(user_responses) == ["a", "b"]
    assert user_responses["a"].values.tolist() == [0.1, 0.2]
    assert user_responses["a"].utility.tolist() == [[0.1, 0.2, 0.3]] * 2
    assert user_responses["b"].privacy.tolist() == [[0.6] * 3, [0.7] * 3]
    table = profiled()
    table.loc[table["user"] == "a", "privacy"] = np.nan
    assert list(pb.responses(table)) == ["b"]
    refuses("one mechanism", pb.responses, profiled(mechanism=["Geo-I", "Promesse"] * 6))


def test_halves_have_each_draw_once():
    full = pb.responses(profiled())["a"]
    first, second = full.halves()
    assert first.utility.tolist() == [[0.1]] * 2
    assert second.utility.tolist() == [[0.2, 0.3]] * 2
    assert np.hstack([first.privacy, second.privacy]).tolist() == full.privacy.tolist()
    refuses(r"^draws must be a whole number, at least 2 \(got 1\)$", first.halves)


test_a_candidate_without_models_has_no_largest_sum = refusals(
    ({"missing": "privacy: no POI"}, r"^the largest sum needs models of both levels \(Geo-I has privacy: no POI\)$"),
    ({"utility": Arctan(np.nan, 1, 0, 0)}, r"^the largest sum needs models of both levels \(Geo-I has none\)$"),
    ({"low": 2.0}, r"^the range of Geo-I must be positive, its ends in order \(got 2.0 to 1.0\)$"),
    call=lambda changed: pb.largest_sum(ONE._replace(**changed)),
)
