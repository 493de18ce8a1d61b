"""PULP's profiler: every row is what the metrics say of what the mechanism publishes, whoever computes it, in whatever order."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from pulp_making import Moody, journey, wanderers

from mobpriv.ground.grid import S2Grid
from mobpriv.mechanisms import GeoI, Promesse, TriLateration
from mobpriv.metrics import area_coverage, poi_privacy
from mobpriv.pulp import GEO_I, PROMESSE, Metrics, Sweep, achieved, profile
from mobpriv.traces.table import as_traces, rows

PEOPLE = wanderers([400, 1, 350], 5)
FEW = [Sweep(GeoI(), "epsilon", [0.003, 0.1], "utility"), Sweep(Promesse(), "alpha", [100, 400], "privacy")]
QUICK = Metrics(duration=600)


@pytest.fixture(scope="module")
def table():
    return profile(PEOPLE, FEW, seeds=[3, 8], metrics=QUICK)


def only(traces, *users):
    return rows(traces, traces["user"].isin(users).to_numpy())


def test_the_settings_are_those_of_the_paper():
    assert (len(GEO_I.values), GEO_I.low, GEO_I.high) == (17, pytest.approx(1e-4), pytest.approx(1))
    assert (len(PROMESSE.values), PROMESSE.low, PROMESSE.high) == (10, pytest.approx(50), pytest.approx(1e4))
    steps = [np.diff(np.log10(s.values)) for s in (GEO_I, PROMESSE)]
    assert steps[0] == pytest.approx(np.full(16, 0.25))
    assert steps[1] == pytest.approx(np.full(9, np.log10(200) / 9))
    assert (GEO_I.standard, PROMESSE.standard) == (0.01, 200)
    assert (GEO_I.rises, PROMESSE.rises) == ("utility", "privacy")
    m = Metrics()
    assert (m.diameter, m.duration, m.near, m.level) == (200, 15 * 60, 100, 15)


def test_every_row_is_what_the_metrics_say_of_what_is_published(table):
    assert len(table) == 3 * (2 * 2 + 2)  # Promesse draws nothing: one repetition
    mechanisms = {"Geo-I": GeoI, "Promesse": Promesse}
    for row in table.itertuples():
        original = only(PEOPLE, row.user)
        rng = np.random.default_rng([[3, 8][row.repetition - 1], *f"{row.user}, {row.mechanism}, {row.value:.9g}".encode()])
        published = mechanisms[row.mechanism](row.value).protect(original, rng)
        privacy = poi_privacy(original, published, duration=600)["privacy"].iloc[0]
        utility = area_coverage(original, published, S2Grid(15))["f_score"].iloc[0]
        assert (row.privacy, row.utility) == (pytest.approx(privacy, abs=1e-12, nan_ok=True), pytest.approx(utility, abs=1e-12))
        assert row.records == len(published)
    assert table["privacy"].dropna().nunique() > 4


def test_the_last_digits_of_a_value_which_depend_on_the_processor_change_nothing():
    values = np.geomspace(1e-4, 1, 17)
    assert Sweep(GeoI(), "epsilon", values, "utility") == Sweep(GeoI(), "epsilon", np.nextafter(values, 2), "utility")
    one, other = (
        achieved(PEOPLE, pd.DataFrame([{"user": "a", "mechanism": "Geo-I", "value": value}]), seeds=(3,), metrics=QUICK)
        for value in (0.0123, np.nextafter(0.0123, 1))
    )
    pd.testing.assert_frame_equal(one, other, rtol=1e-9)


def test_a_user_without_a_poi_is_reported(table):
    one = table[table["user"] == "b"]
    assert one["privacy"].isna().all()
    assert set(one["reason"]) == {"no POI in the original trace: there is nothing to hide"}
    assert one["utility"].notna().all()
    assert (one.loc[one["mechanism"] == "Promesse", ["records", "utility"]] == 0).all(axis=None)
    assert (table.loc[table["user"] != "b", "reason"] == "").all()


def test_an_erased_trace_is_private_and_useless():
    home = journey([((0, 0), 60)])
    row = profile(home, [Sweep(Promesse(), "alpha", [1000], "privacy")]).iloc[0]
    assert (row["privacy"], row["utility"], row["records"], row["reason"]) == (1, 0, 0, "")


def test_numbers_depend_on_nobody_else_and_on_no_other_value(table):
    sweeps = [Sweep(GeoI(), "epsilon", [0.1, 0.4, 0.9], "utility")]
    alone = profile(only(PEOPLE, "c"), sweeps, [3], QUICK).iloc[[0]].reset_index(drop=True)
    same = table[(table["user"] == "c") & (table["value"] == 0.1) & (table["repetition"] == 1)].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, same)
    no_users = profile(PEOPLE.iloc[:0], FEW)
    assert (len(no_users), no_users.columns[0]) == (0, "user")


def test_processes_give_the_same_numbers(table):
    pd.testing.assert_frame_equal(profile(PEOPLE, FEW, [3, 8], QUICK, workers=2), table)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_profile_goes_on(table, workers):
    stored, computed = {}, []

    def keep(name, compute):
        if name not in stored:
            if len(computed) == 2:
                raise KeyboardInterrupt
            computed.append(name)
            stored[name] = compute()
        return stored[name]

    with pytest.raises(KeyboardInterrupt):
        profile(PEOPLE, FEW, [3, 8], QUICK, workers, keep)
    assert 1 <= len(stored) <= 2
    before, computed[:] = set(stored), []
    pd.testing.assert_frame_equal(profile(PEOPLE, FEW, [3, 8], QUICK, workers, keep), table)
    assert set(stored) == {"profile-1", "profile-2", "profile-3"}
    assert not before & set(computed)


def test_any_mechanism_with_one_parameter():
    sweeps = [
        Sweep(TriLateration(), "radius", [100, 3000], "privacy"),
        Sweep(GeoI(plane="mercator"), "epsilon", [0.1], "utility", "Geo-I in Mercator metres"),
        Sweep(GeoI(), "epsilon", [0.1], "utility"),
    ]
    measured = profile(only(PEOPLE, "a"), sweeps, metrics=QUICK)
    assert measured["mechanism"].tolist() == ["TriLateration"] * 2 + ["Geo-I in Mercator metres", "Geo-I"]
    assert measured["parameter"].tolist() == ["radius", "radius", "epsilon", "epsilon"]
    assert measured["utility"].iloc[0] > measured["utility"].iloc[1]


def test_achieved_levels_are_those_of_a_profile_with_these_seeds(table):
    chosen = pd.DataFrame({"user": ["a", "b", "c"], "mechanism": ["Geo-I", None, "Promesse"], "value": [0.1, np.nan, 400.0]})
    measured = achieved(PEOPLE, chosen, FEW, [8], QUICK)
    assert measured[["user", "mechanism", "value"]].to_numpy().tolist() == [["a", "Geo-I", 0.1], ["c", "Promesse", 400.0]]
    same = table[(table["user"] == "a") & (table["value"] == 0.1) & (table["repetition"] == 2)]
    assert measured[["privacy", "utility"]].iloc[0].tolist() == same[["privacy", "utility"]].iloc[0].tolist()
    fresh = achieved(PEOPLE, chosen, FEW, metrics=QUICK)
    assert fresh.groupby("mechanism").size().to_dict() == {"Geo-I": 10, "Promesse": 1}
    assert len(set(fresh.loc[fresh["mechanism"] == "Geo-I", "utility"])) > 1


test_what_cannot_be_achieved = refusals(
    (("z", "Geo-I", 0.1), r"settings must be those of users who have records \(z has none\)"),
    (("a", "W4M", 0.1), r'a chosen mechanism must be "Geo-I" or "Promesse" \(got \'W4M\'\)'),
    (("a", "Geo-I", 0.0), r"the value chosen for a must be positive \(got 0.0\)"),
    call=lambda row: achieved(PEOPLE, pd.DataFrame([row], columns=["user", "mechanism", "value"]), FEW, metrics=QUICK),
)


def test_a_trace_that_a_mechanism_refuses_is_reported():
    row = profile(only(PEOPLE, "a"), [Sweep(Moody(), "most", [10], "utility")]).iloc[0]
    assert np.isnan([row["privacy"], row["utility"]]).all()
    assert row["reason"] == "Moody refused the trace: at most 10 records are taken"
    with pytest.raises(ValueError, match=r"the protected trace of a must have only her records \(it has records of zoe\)"):
        profile(only(PEOPLE, "a"), [Sweep(Moody(renames=True), "most", [1], "utility")])


test_what_is_refused = refusals(
    (lambda: Sweep(GeoI(), "alpha", [1], "utility"), r'parameter must be "epsilon" or "plane" \(got \'alpha\'\)'),
    (lambda: Sweep(GeoI(), "epsilon", [1], "speed"), r'rises must be "privacy" or "utility" \(got \'speed\'\)'),
    (lambda: Sweep(GeoI(), "epsilon", [], "utility"), r"values of epsilon must hold at least one number \(got none\)"),
    (lambda: Sweep(GeoI(), "epsilon", [1, np.nan], "utility"), r"a value of epsilon must be positive \(got nan\)"),
    (lambda: Sweep(GeoI(), "epsilon", [1, 1.0], "utility"), r"values of epsilon must differ \(1 occurs twice\)"),
    (lambda: Sweep(Promesse(), "alpha", [1e-5], "privacy"), "alpha must be positive, in m, at least 0.001"),
    (lambda: Sweep(Promesse(), "max_gap", [100], "privacy"), r"max_gap must be positive \(got None\)"),
    (lambda: profile(PEOPLE, []), r"sweeps must hold at least one mechanism \(got none\)"),
    (lambda: profile(PEOPLE, [GEO_I, GEO_I]), r"sweeps must have different names \(got Geo-I, Geo-I\): name them"),
    (lambda: profile(PEOPLE, FEW, seeds=[]), r"seeds must hold at least one, all different \(got \[\]\)"),
    (lambda: profile(PEOPLE, FEW, seeds=[1, 1]), r"seeds must hold at least one, all different \(got \[1, 1\]\)"),
    (lambda: profile(PEOPLE, FEW, seeds=[-1]), r"a seed must be a whole number, at least 0 \(got -1\)"),
    (lambda: profile(PEOPLE, FEW, workers=0), r"workers must be a whole number, at least 1 \(got 0\)"),
    (lambda: Metrics(level=31), r"level of an S2 cell must be a whole number in 0 … 30 \(got 31\)"),
    (lambda: Metrics(near=0), r"near must be positive, in m \(got 0\)"),
    (lambda: Metrics(matched="one"), "matched must be"),
    (lambda: replace(Metrics(), duration=-1), r"duration must not be negative, in s \(got -1\)"),
    (lambda: Metrics().of(PEOPLE), r"levels need the trace of one user \(got records of 3 users\)"),
)


def test_names_that_are_no_names_of_files():
    people = as_traces(PEOPLE.assign(user=PEOPLE["user"].astype(str).replace({"a": "a/b", "c": "a_b"})))
    names = []

    def keep(name, compute):
        names.append(name)
        return compute()

    measured = profile(people, [Sweep(GeoI(), "epsilon", [0.1], "utility")], keep=keep)
    assert sorted(measured["user"]) == ["a/b", "a_b", "b"]
    assert len(set(names)) == 3
