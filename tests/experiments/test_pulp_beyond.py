"""PULP beyond its paper: HMC as a mechanism with one parameter, the half that PULP protects, users who are protected together."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from pulp_making import journey, wanderers

from mobpriv.attacks import ILLAttack
from mobpriv.experiments.pulp_beyond import (
    Confusion,
    confusion,
    days_found,
    days_of,
    first_days,
    goodness,
    levels_together,
    protected_as_told,
    second_half,
    span,
)
from mobpriv.mechanisms import HMC, W4M
from mobpriv.pulp import SWEEPS, Metrics, Sweep, achieved, profile
from mobpriv.traces.table import by_user, rows

KNOWN = wanderers([300, 200, 250], seed=1)
SECRET = wanderers([150, 100, 120], seed=2)


def own(traces, user):
    return rows(traces, (traces["user"] == user).to_numpy())


def test_a_cell_is_that_of_hmc_itself():
    """A copy of HMC with another cell would keep the grid of the first."""
    at = confusion(KNOWN).at(300.0)
    published = at.protect(SECRET, np.random.default_rng(1))
    pd.testing.assert_frame_equal(published, HMC(KNOWN, cell=300.0).protect(SECRET, np.random.default_rng(1)))
    assert not published.equals(HMC(KNOWN).protect(SECRET, np.random.default_rng(1)))
    kept = dataclasses.replace(Confusion(KNOWN), erased=None).protect(SECRET, np.random.default_rng(1))
    pd.testing.assert_frame_equal(kept, HMC(KNOWN, erased=None).protect(SECRET, np.random.default_rng(1)))


def test_hmc_is_made_once_for_a_cell():
    sweep = confusion(KNOWN)
    for _ in range(2):
        for value in (300.0, 800.0):
            sweep.at(value).protect(own(SECRET, "a"), np.random.default_rng(1))
    assert sorted(sweep.mechanism.made) == [300.0, 800.0]


def test_an_alteration_does_not_depend_on_who_else_is_protected():
    """PULP's condition, as far as the other protected traces go."""
    hmc = HMC(KNOWN)
    together = hmc.alter(SECRET)
    for i, user in enumerate(by_user(SECRET)[0]):
        alone = hmc.alter(own(SECRET, user))
        a, b = together.shares[[i]], alone.shares[[0]]
        assert together.cells[a.indices].tolist() == alone.cells[b.indices].tolist()
        assert a.data.tolist() == b.data.tolist()
    # what is known of the others does decide: with other known users the trace of a is altered otherwise
    few, many = (HMC(known).alter(own(SECRET, "a")).users for known in (rows(KNOWN, (KNOWN["user"] != "c").to_numpy()), KNOWN))
    assert not few.equals(many)


def test_w4m_refuses_one_users_trace_and_says_why():
    found = profile(own(SECRET, "a"), [Sweep(W4M(), "delta", (100.0, 600.0), rises="privacy")])
    assert found["reason"].str.contains("k must not exceed the number of users").all()
    assert found["privacy"].isna().all()


def test_levels_together_are_those_of_each_alone():
    original = pd.concat([journey([((0, 0), 30), ((3000, 0), 30)], user) for user in ("ann", "bob")], ignore_index=True)
    original["user"] = original["user"].astype("category")
    published = rows(original, (original["user"] == "bob").to_numpy())  # ann is left out
    found = levels_together(original, published, Metrics())
    assert found.loc["ann"].tolist() == [1.0, 0.0]
    assert found.loc["bob"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("law", "objective", "expected"),
    [("PU-ratio", (2,), 1.1), ("PU-thld", (0.6, 0.7), 0.51), ("P-thld", (0.7,), 0.3), ("U-thld", (0.5,), 0.5)],
)
def test_what_a_law_makes_large(law, objective, expected):
    assert goodness(law, objective, 0.5, 0.3) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("law", "objective", "line"),
    [
        ("PU-law", (2,), r"^law must be \"PU-ratio\", .* or \"U-thld\" \(got 'PU-law'\)$"),
        ("PU-thld", (0.6,), r"^the objective of PU-thld must have 2 numbers \(got 1\)$"),
    ],
)
def test_a_law_that_is_none_is_refused(law, objective, line):
    with pytest.raises(ValueError, match=line):
        goodness(law, objective, 0.5, 0.3)


def test_a_set_shorter_than_the_days_is_cut_in_its_own_middle(tmp_path):
    """Cabspotting spans 24 days: a cut after 15 would leave 9, and a setting belongs to a length."""
    path, moments = tmp_path / "short.csv", pd.date_range("2024-01-01", periods=24 * 24, freq="h", tz="UTC")
    table = pd.concat(
        [pd.DataFrame({"user": user, "lat": 45.0, "lng": x, "time": moments}) for user, x in (("a", 0.0), ("b", 1.0))]
    )
    table.to_csv(path, index=False)
    for days in (30, 24, 25, 40):
        setting, choice = second_half(str(path), days=days)
        assert [span(setting.known), span(choice.traces)] == pytest.approx([12, 12], abs=0.1)
        assert "and 12.0 days" in choice.selection


def test_the_first_days_of_each_user_are_those_with_records():
    traces = journey([((0, 0), 3 * 1440), ((500, 0), 60)], "ann")
    day = traces["t"].dt.floor("D")
    traces = rows(traces, (day != day.unique()[1]).to_numpy())  # a day without records
    assert days_of(traces).to_dict() == {"ann": 3}
    two = first_days(traces, pd.Series({"ann": 2}))
    assert sorted(two["t"].dt.floor("D").unique()) == sorted(day.unique()[[0, 2]])
    assert days_of(first_days(SECRET, days_of(SECRET))).equals(days_of(SECRET))
    assert len(first_days(SECRET, days_of(SECRET))) == len(SECRET)


def test_the_second_half_holds_users_of_the_first():
    setting, choice = second_half("city", sample=5)
    users = by_user(choice.traces)[0]
    assert len(users) == 5
    assert not len(users.difference(by_user(setting.known)[0]))
    assert choice.traces["t"].min() >= setting.known["t"].max()
    pd.testing.assert_frame_equal(own(choice.traces, users[2]), own(setting.secret, users[2]))
    setting, choice = second_half("city", sample=10**6)
    assert len(by_user(choice.traces)[0]) == len(by_user(setting.secret)[0].intersection(by_user(setting.known)[0]))


def test_who_follows_a_setting_has_the_levels_that_achieved_has():
    chosen = pd.DataFrame({"user": ["a", "b", "c"], "mechanism": ["Geo-I", None, "Promesse"], "value": [0.01, np.nan, 200.0]})
    published, levels = protected_as_told(SECRET, chosen, SWEEPS, Metrics(), 7)
    expected = achieved(SECRET, chosen, seeds=[7]).set_index("user")
    assert levels["user"].tolist() == ["a", "c"]
    for row in levels.itertuples():
        np.testing.assert_equal([row.privacy, row.utility], expected.loc[row.user, ["privacy", "utility"]].tolist())
        assert len(own(published, row.user)) == expected.loc[row.user, "records"]
    assert not len(own(published, "b"))
    published, levels = protected_as_told(SECRET, chosen.iloc[[1]], SWEEPS, Metrics(), 7)
    assert not len(published)
    assert not len(levels)


@pytest.mark.parametrize(
    ("chosen", "seed", "line"),
    [
        ([("a", "Geo-I", 0.01), ("a", "Geo-I", 0.02)], 7, r"^a user follows one setting \(a has several\)$"),
        ([("zoe", "Geo-I", 0.01)], 7, r"^settings must be those of users who have records \(zoe has none\)$"),
        ([("a", "HMC", 0.01)], 7, r"^a chosen mechanism must be \"Geo-I\" or \"Promesse\" \(got 'HMC'\)$"),
        ([("a", "Geo-I", 0.0)], 7, r"^the value chosen for a must be positive \(got 0.0\)$"),
        ([("a", "Geo-I", 0.1)], -1, r"^seed must be a whole number, at least 0 \(got -1\)$"),
    ],
)
def test_settings_that_nobody_can_follow(chosen, seed, line):
    with pytest.raises(ValueError, match=line):
        protected_as_told(SECRET, pd.DataFrame(chosen, columns=["user", "mechanism", "value"]), SWEEPS, Metrics(), seed)


def test_days_found_counts_days():
    """Two people who keep apart, each for several days: every day of theirs is told, and one of none is not."""
    home = {user: [((place, 0), 600)] * 10 for user, place in (("ann", 0), ("bob", 30_000))}
    traces = pd.concat([journey(stops, user) for user, stops in home.items()], ignore_index=True)
    traces["user"] = traces["user"].astype("category")
    learned = ILLAttack(86_400.0, trees=5, seed=1).fit(traces)
    assert days_found(learned, traces, ["ann", "bob", "eve"]).tolist() == [1.0, 1.0, 0.0]
    # bob goes where ann is: his days are taken for hers
    moved = traces.assign(lng=np.where(traces["user"] == "bob", traces["lng"].min(), traces["lng"]))
    assert days_found(learned, moved, ["ann", "bob"]).tolist() == [1.0, 0.0]
    assert days_found(learned, traces.iloc[:0], ["ann"]).tolist() == [0.0]
