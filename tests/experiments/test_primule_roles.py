"""The Sociometer's own noise, its labels drawn many times and against true roles, private profiles, municipalities of different sizes."""

import numpy as np
import pandas as pd
import pytest
from call_making import called_days as crowd
from conftest import refuses

from mobpriv.base.estimates import Estimate
from mobpriv.datasets import region_truth
from mobpriv.experiments import primule_sociometer as ps
from mobpriv.icp.archetypes import CATEGORIES, archetypes
from mobpriv.icp.sociometer import PROGRAM, Sociometer, labelled
from mobpriv.mechanisms.icp import NoisyProfiles
from mobpriv.metrics.classification import confusion_estimates

EXACT = Sociometer(prototypes=10_000)  # more than there are profiles: nothing is left to chance
HASTY = Sociometer(prototypes=10, restarts=1, iterations=2)
PEOPLE = crowd(400)


class TestControl:
    def test_without_chance_all_seeds_agree(self):
        control = ps.control(EXACT, PEOPLE, np.random.default_rng(1), 3)
        assert (control.agreement.value, control.agreement.low, control.agreement.n) == (1, 1, 6)
        assert control.kappa.value == pytest.approx(1)
        occurring = control.confusion[control.confusion["n"] > 0]
        assert (occurring["value"] == (occurring["true"] == occurring["found"])).all()
        labels = set(EXACT.fit(PEOPLE, None, np.random.default_rng(1)).label(PEOPLE))
        assert set(control.confusion.loc[control.confusion["n"] == 0, "true"]) == set(CATEGORIES) - labels
        refuses("seeds must be a whole number, at least 2", ps.control, EXACT, PEOPLE, np.random.default_rng(1), 1)

    def test_of_hasty_clusters_it_is_what_two_fits_disagree_on(self):
        rng = np.random.default_rng(2)
        control = ps.control(HASTY, PEOPLE, rng, 2)
        one, two = (HASTY.fit(PEOPLE, None, child).codes(PEOPLE) for child in np.random.default_rng(2).spawn(2))
        assert control.agreement.value == (one == two).mean() < 1
        assert (control.agreement.low, control.agreement.n) == (control.agreement.value, 2)
        both = [confusion_estimates(a, b, CATEGORIES)["value"] for a, b in ((one, two), (two, one))]
        known = ~np.isnan(both).any(axis=0)
        np.testing.assert_allclose(control.confusion["value"][known], np.mean(both, axis=0)[known])
        np.testing.assert_allclose(control.confusion["low"][known], np.min(both, axis=0)[known])
        assert control.sizes.sum() == len(PEOPLE)

    def test_the_first_seeds_of_many_are_those_of_few(self):
        few, many = (ps.control(HASTY, PEOPLE, np.random.default_rng(3), n) for n in (2, 4))
        np.testing.assert_array_equal(many.labels[:2], few.labels)

    def test_in_each_municipality_for_itself(self):
        where = np.repeat(["a", "b"], 200)
        control = ps.control(HASTY, PEOPLE, np.random.default_rng(4), 2, where)
        first = np.random.default_rng(4).spawn(2)[0]
        np.testing.assert_array_equal(control.labels[0], labelled(HASTY, PEOPLE, first, where))


class TestRoles:
    profiles = pd.DataFrame({"user": ["p1", "p1", "p2", "p3"], "municipality": ["A", "B", "A", "C"]})
    role = "visitor", "commuter", "resident", "visitor", "resident"
    roles = pd.DataFrame({"person": ["p2", "p1", "p1", "p1", "p4"], "municipality": list("ABACA"), "role": role})

    def test_by_hand(self):
        matched = ps.true_roles(self.profiles, self.roles)
        assert matched.role.tolist()[:3] == ["resident", "commuter", "visitor"]
        assert pd.isna(matched.role[3])
        left_out = matched.left_out.set_index(["rule", "role"])
        assert left_out.loc[("a profile, but no role", "")].tolist() == [1, 1]
        silent = left_out.loc["a role, but no call"]["pairs"]
        assert silent.to_dict() == {"resident": 1, "dynamic resident": 0, "commuter": 0, "visitor": 1, "passing by": 0}
        # numbers and categories name users, too
        numbered = self.profiles.assign(user=[1, 1, 2, 3], municipality=pd.Categorical(self.profiles["municipality"]))
        assert ps.true_roles(numbered, self.roles.assign(person=[2, 1, 1, 1, 4])).role.tolist()[:3] == matched.role.tolist()[:3]

    def test_of_the_region(self):
        roles, _ = region_truth()
        some = roles.iloc[::7].rename(columns={"person": "user"})
        matched = ps.true_roles(some[["user", "municipality"]], roles)
        assert matched.role.tolist() == some["role"].tolist()
        assert matched.left_out["pairs"].tolist()[0] == 0
        assert matched.left_out["pairs"].sum() == len(roles) - len(some)

    def test_refused(self):
        with pytest.raises(ValueError, match=r"profiles must have a user in a municipality once \(p1 occurs twice in A\)"):
            ps.true_roles(self.profiles.iloc[[0, 1, 0]], self.roles)
        with pytest.raises(ValueError, match=r"roles must have a user in a municipality once \(p2 occurs twice in A\)"):
            ps.true_roles(self.profiles, self.roles.iloc[[0, 0]])
        with pytest.raises(ValueError, match=r"roles must be among resident, .* \(1 are not, first: tourist\)"):
            ps.true_roles(self.profiles, self.roles.assign(role=["tourist", *self.roles["role"][1:]]))


class TestAgainstRoles:
    def test_the_curve_of_the_day(self):
        values = np.zeros((2, 4, 2, 3))
        values[0, ..., 1], values[:, ..., 2] = 1, 0.25
        assert ps.daily_curve(values.reshape(2, 24)) == (0, 1, 0.5)
        refuses("a daily curve is relative to P2, where these profiles have no call", ps.daily_curve, np.zeros((3, 24)))

    def test_no_labels_of_groups_do_better_than_the_ceiling(self):
        role = pd.Categorical(["resident"] * 3 + ["visitor"] * 2 + [None], list(CATEGORIES))
        assert ps.ceiling(role, [0, 0, 1, 1, 1, 0]) == 4 / 5
        assert ps.ceiling(role, np.zeros(6)) == 3 / 5
        assert ps.ceiling(role, np.arange(6)) == 1
        fitted = HASTY.fit(PEOPLE, None, np.random.default_rng(1))
        true = np.random.default_rng(2).choice(CATEGORIES, 400)
        assert (np.asarray(fitted.label(PEOPLE)) == true).mean() <= ps.ceiling(true, fitted.nearest(PEOPLE))
        refuses("a ceiling needs a group for each role", ps.ceiling, role, [0, 1])


class TestSizes:
    def sampled(self, seed, odd=False):
        """Twelve municipalities of one law, the last of another one where ``odd``."""
        rng = np.random.default_rng(seed)
        where = np.repeat(np.arange(12), np.arange(1, 13) * 40)
        true = rng.integers(0, 5, len(where))
        stays = np.where(odd & (where == 11), 0.3, 0.7)
        predicted = np.where(rng.random(len(where)) < stays, true, 3)
        return true, predicted, where

    def test_municipalities_of_one_law_are_as_far_apart_as_chance_has_them(self):
        p, excess, correlations = [], [], []
        for seed in range(8):
            table = ps.by_size(*self.sampled(seed), np.random.default_rng(seed), 100)
            assert table["profiles"].tolist() == [40 * k for k in range(1, 13)]
            correlations.append(ps.size_and_structure(table)["distance"].value)
            p, excess = [*p, *table["p"]], [*excess, *table["excess"]]
        assert np.mean(correlations) < -0.6  # the small ones are farther by chance alone
        assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.05)
        assert np.mean(excess) == pytest.approx(0, abs=0.005)

    def grouped(self, seed, odd=False):
        """Groups of 25 alike, all of a group with one label: twelve municipalities of one law, the last of another one where ``odd``."""
        rng = np.random.default_rng(seed)
        home = np.repeat(np.arange(12), np.arange(1, 13) * 4)
        stays = rng.random(len(home)) < np.where(odd & (home == 11), 0.2, 0.7)
        group = np.repeat(np.arange(len(home)), 25)
        true = np.repeat(rng.integers(0, 3, len(home)), 25)
        return true, np.where(stays[group], true, 3), home[group], group

    def test_groups_with_one_label_each_are_dealt_as_groups(self):
        single, grouped, p = [], [], []
        for seed in range(6):
            true, predicted, where, group = self.grouped(seed)
            single += list(ps.by_size(true, predicted, where, np.random.default_rng(seed), 100)["excess"])
            table = ps.by_size(true, predicted, where, np.random.default_rng(seed), 100, group)
            grouped, p = [*grouped, *table["excess"]], [*p, *table["p"]]
        assert np.mean(single) > 0.1  # as single profiles all municipalities differ
        assert np.mean(grouped) == pytest.approx(0, abs=0.02)
        assert np.mean(np.array(p) <= 0.05) <= 0.1

    def test_another_law_is_seen_of_profiles_and_of_groups(self):
        true, predicted, where, group = self.grouped(1, odd=True)
        for given in (self.sampled(1, odd=True), (true, predicted, where)):
            table = ps.by_size(*given, np.random.default_rng(1), 100, group if len(given[0]) == len(group) else None)
            assert table["excess"].idxmax() == 11
            assert table["p"][11] == 0
        with pytest.raises(ValueError, match=r"a group lies in one municipality .group 0 lies in two."):
            ps.by_size(true, predicted, np.roll(where, 1), np.random.default_rng(1), 100, group)

    def test_by_hand(self):
        """a: 2 residents found, 1 lost; b: 1 found, 1 lost: shares 2/3 and 1/2. Only b has a visitor."""
        true, predicted = ["resident"] * 5 + ["visitor"], ["resident", "resident", "visitor"] * 2
        predicted[-2:] = ["visitor"] * 2
        table = ps.by_size(true, predicted, list("aaabbb"), np.random.default_rng(1), 50)
        assert table["distance"].tolist() == pytest.approx([1 / 6, 1 / 6])
        assert table["left_out"].tolist() == [0, 1]
        refuses(r"there must be two or more .got 1.", ps.by_size, ["visitor"], ["visitor"], ["a"], np.random.default_rng(1))

    def test_more_draws_do_not_tell_more_of_other_municipalities(self):
        assert ps.mean_of_draws([Estimate(0.1, -0.3, 0.4, 12), Estimate(0.3, -0.1, 0.6, 10)]) == Estimate(0.2, -0.2, 0.5, 10)
        tables = [ps.by_size(*self.sampled(seed), np.random.default_rng(seed), 50) for seed in range(5)]
        each = [ps.size_and_structure(table)["distance"] for table in tables]
        widths = [one.high - one.low for one in each]
        together = ps.mean_of_draws(each)
        assert min(widths) <= together.high - together.low <= max(widths)
        refuses("needs one draw or more", ps.mean_of_draws, [])


HASTY_PROGRAM = Sociometer(10, 1, 2, archetypes=archetypes("program"), passing="rule")


CROWD = crowd(300)
SETTINGS = {"words": HASTY, "program": HASTY_PROGRAM}


def test_a_setting_has_the_labels_that_it_would_have_alone():
    labels = ps.labels(ps.prototypes(CROWD, np.random.default_rng(3), 3, HASTY), CROWD, SETTINGS)
    for name, sociometer in SETTINGS.items():
        alone = [sociometer.fit(CROWD, None, child).codes(CROWD) for child in np.random.default_rng(3).spawn(3)]
        np.testing.assert_array_equal(labels[name], alone)


@pytest.mark.parametrize("noise", [False, True])
def test_published_profiles_have_the_labels_that_each_draw_would_give_alone(noise):
    """Also where most profiles are equal, and are looked at once for all draws."""
    many = np.repeat(CROWD[:100], 3, axis=0)
    published = ps.noisy(many, NoisyProfiles(3.0), np.random.default_rng(2), 3) if noise else np.round(many * 0.5, 1)
    fits = ps.prototypes(many, np.random.default_rng(3), 3, HASTY)
    drawn = ps.relabelled(fits, SETTINGS, published, np.random.default_rng(4), HASTY)
    for i, child in enumerate(np.random.default_rng(4).spawn(3)):
        profiles = published[i] if noise else published
        alone = np.random.default_rng(3).spawn(3)[i]
        reclustered, fixed = HASTY_PROGRAM.fit(profiles, None, child), HASTY_PROGRAM.fit(many, None, alone)
        np.testing.assert_array_equal(drawn.reclustered["program"][i], reclustered.codes(profiles))
        np.testing.assert_array_equal(drawn.fixed["program"][i], fixed.codes(profiles))
        np.testing.assert_array_equal(reclustered.nearest_in_training, reclustered.nearest(profiles))
        np.testing.assert_array_equal(fits[i].nearest_in_training, fixed.nearest_in_training)


def test_the_first_draws_of_many_are_those_of_few():
    many, few = (ps.labels(ps.prototypes(CROWD, np.random.default_rng(3), n, HASTY), CROWD, SETTINGS)["words"] for n in (4, 2))
    np.testing.assert_array_equal(many[:2], few)
    drawn = [ps.noisy(CROWD, NoisyProfiles(3.0), np.random.default_rng(5), n) for n in (4, 2)]
    np.testing.assert_array_equal(drawn[0][:2], drawn[1])


def test_published_as_they_are_frozen_prototypes_change_no_label():
    fits = ps.prototypes(CROWD, np.random.default_rng(3), 2, HASTY)
    drawn = ps.relabelled(fits, SETTINGS, np.array([CROWD, CROWD]), np.random.default_rng(4), HASTY)
    original = ps.labels(fits, CROWD, SETTINGS)
    np.testing.assert_array_equal(drawn.fixed["program"], original["program"])
    assert (drawn.reclustered["words"] != original["words"]).any()  # another seed


def test_the_program_is_one_of_the_settings():
    labels = ps.labels(ps.prototypes(CROWD, np.random.default_rng(1), 1), CROWD, {"program": PROGRAM})
    alone = PROGRAM.fit(CROWD, None, np.random.default_rng(1).spawn(1)[0])
    np.testing.assert_array_equal(labels["program"][0], alone.codes(CROWD))


def test_confusion_and_scores_are_those_of_the_definition():
    rng = np.random.default_rng(7)
    true, predicted = rng.integers(0, 4, (3, 40)), rng.integers(0, 5, (3, 40))
    true[0][true[0] == 3] = 2  # in the first draw nobody is a visitor
    whose = np.repeat([f"u{i}" for i in range(20)], 2)
    table = ps.confused(true, predicted, whose).set_index(["true", "found"])
    for i, one in enumerate(CATEGORIES):
        for j, other in enumerate(CATEGORIES):
            pairs = [(t, f) for d in range(3) for t, f in zip(true[d], predicted[d], strict=True)]
            n_true = sum(t == i for t, _ in pairs)
            row = table.loc[(one, other)]
            if not n_true:
                assert row["n"] == 0
                assert row[["value", "least"]].isna().all()
                continue
            assert row["value"] == pytest.approx(sum(t == i and f == j for t, f in pairs) / n_true)
            single = [np.mean(predicted[d][true[d] == i] == j) for d in range(3) if (true[d] == i).any()]
            assert (row["least"], row["largest"]) == (min(single), max(single))
            assert row["low"] <= row["value"] <= row["high"]
        n_predicted = sum(f == i for _, f in pairs)
        score = ps.f_score(true, predicted, one, whose)
        assert score.value == pytest.approx(2 * sum(t == f == i for t, f in pairs) / (n_true + n_predicted))
        assert ps.label_share(predicted, one, whose).value == pytest.approx(n_predicted / len(pairs))
    nobody = np.zeros((2, 5), int)
    assert ps.f_score(nobody, nobody, "visitor", list("abcde")).n == 0


def test_a_user_with_many_profiles_counts_as_one():
    true = np.zeros((1, 60), int)
    predicted = np.repeat(np.arange(6) % 2, 10)[None]
    few, many = np.repeat(np.arange(6), 10), np.arange(60)
    wide, narrow = (ps.confused(true, predicted, whose).iloc[0] for whose in (few, many))
    assert wide["high"] - wide["low"] > 2 * (narrow["high"] - narrow["low"])


def test_refusals():
    with pytest.raises(ValueError, match=r"as many sets of profiles as draws, or one for all \(got 2 for 3\)"):
        ps.prototypes(np.array([CROWD, CROWD]), np.random.default_rng(1), 3)
    refuses("draws", ps.prototypes, CROWD, np.random.default_rng(1), 0)
    with pytest.raises(ValueError, match=r"labels must be \(draws, n\) of the same profiles"):
        ps.confused(np.zeros((2, 3), int), np.zeros((2, 4), int), list("abc"))


def test_what_has_the_same_name_has_the_same_draws_on_every_page():
    first, again = ps.named_rng(1, "noise", "ε = 1"), ps.named_rng(1, "noise", "ε = 1")
    drawn = first.random(5)
    np.testing.assert_array_equal(again.random(5), drawn)
    for other in (ps.named_rng(2, "noise", "ε = 1"), ps.named_rng(1, "again", "ε = 1"), ps.named_rng(1, "noise", "ε = 10")):
        assert (other.random(5) != drawn).all()
