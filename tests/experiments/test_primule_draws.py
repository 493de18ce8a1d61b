"""The Sociometer drawn many times: prototypes shared by settings, confusion over draws with a slow twin."""

import numpy as np
import pandas as pd
import pytest
from call_making import called_days as crowd

from mobpriv.base.estimates import clustered_rate
from mobpriv.experiments.primule_sociometer import confused, f_score, labels, noisy, prototypes, relabelled, shares, stream
from mobpriv.icp.archetypes import CATEGORIES, archetypes
from mobpriv.icp.sociometer import PROGRAM, Sociometer
from mobpriv.mechanisms.icp import NoisyProfiles, Primule
from mobpriv.metrics.information_loss import similarity

HASTY = Sociometer(prototypes=10, restarts=1, iterations=2)
HASTY_PROGRAM = Sociometer(10, 1, 2, archetypes=archetypes("program"), passing="rule")


CROWD = crowd(300)
SETTINGS = {"words": HASTY, "program": HASTY_PROGRAM}


def test_a_setting_has_the_labels_that_it_would_have_alone():
    found = labels(prototypes(CROWD, np.random.default_rng(3), 3, HASTY), CROWD, SETTINGS)
    for name, sociometer in SETTINGS.items():
        alone = [sociometer.fit(CROWD, None, child).codes(CROWD) for child in np.random.default_rng(3).spawn(3)]
        np.testing.assert_array_equal(found[name], alone)


@pytest.mark.parametrize("noise", [False, True])
def test_published_profiles_have_the_labels_that_each_draw_would_give_alone(noise):
    """Also where most profiles are equal, and are looked at once for all draws."""
    many = np.repeat(CROWD[:100], 3, axis=0)
    said = noisy(many, NoisyProfiles(3.0), np.random.default_rng(2), 3) if noise else np.round(many * 0.5, 1)
    fits = prototypes(many, np.random.default_rng(3), 3, HASTY)
    drawn = relabelled(fits, SETTINGS, said, np.random.default_rng(4), HASTY)
    for i, child in enumerate(np.random.default_rng(4).spawn(3)):
        of = said[i] if noise else said
        alone = np.random.default_rng(3).spawn(3)[i]
        again, frozen = HASTY_PROGRAM.fit(of, None, child), HASTY_PROGRAM.fit(many, None, alone)
        np.testing.assert_array_equal(drawn.again["program"][i], again.codes(of))
        np.testing.assert_array_equal(drawn.frozen["program"][i], frozen.codes(of))
        np.testing.assert_array_equal(again.own, again.nearest(of))
        np.testing.assert_array_equal(fits[i].own, frozen.own)


def test_the_first_draws_of_many_are_those_of_few():
    many, few = (labels(prototypes(CROWD, np.random.default_rng(3), n, HASTY), CROWD, SETTINGS)["words"] for n in (4, 2))
    np.testing.assert_array_equal(many[:2], few)
    drawn = [noisy(CROWD, NoisyProfiles(3.0), np.random.default_rng(5), n) for n in (4, 2)]
    np.testing.assert_array_equal(drawn[0][:2], drawn[1])


def test_published_as_they_are_frozen_prototypes_change_no_label():
    fits = prototypes(CROWD, np.random.default_rng(3), 2, HASTY)
    drawn = relabelled(fits, SETTINGS, np.array([CROWD, CROWD]), np.random.default_rng(4), HASTY)
    original = labels(fits, CROWD, SETTINGS)
    np.testing.assert_array_equal(drawn.frozen["program"], original["program"])
    assert (drawn.again["words"] != original["words"]).any()  # another seed


def test_the_program_is_one_of_the_settings():
    found = labels(prototypes(CROWD, np.random.default_rng(1), 1), CROWD, {"program": PROGRAM})
    alone = PROGRAM.fit(CROWD, None, np.random.default_rng(1).spawn(1)[0])
    np.testing.assert_array_equal(found["program"][0], alone.codes(CROWD))


def test_confusion_and_scores_are_those_of_the_definition():
    rng = np.random.default_rng(7)
    true, found = rng.integers(0, 4, (3, 40)), rng.integers(0, 5, (3, 40))
    true[0][true[0] == 3] = 2  # in the first draw nobody is a visitor
    whose = np.repeat([f"u{i}" for i in range(20)], 2)
    table = confused(true, found, whose).set_index(["true", "found"])
    for i, one in enumerate(CATEGORIES):
        for j, other in enumerate(CATEGORIES):
            pairs = [(t, f) for d in range(3) for t, f in zip(true[d], found[d], strict=True)]
            of = sum(t == i for t, _ in pairs)
            row = table.loc[(one, other)]
            if not of:
                assert row["n"] == 0
                assert row[["value", "least"]].isna().all()
                continue
            assert row["value"] == pytest.approx(sum(t == i and f == j for t, f in pairs) / of)
            single = [np.mean(found[d][true[d] == i] == j) for d in range(3) if (true[d] == i).any()]
            assert (row["least"], row["largest"]) == (min(single), max(single))
            assert row["low"] <= row["value"] <= row["high"]
        said = sum(f == i for _, f in pairs)
        score = f_score(true, found, one, whose)
        assert score.value == pytest.approx(2 * sum(t == f == i for t, f in pairs) / (of + said))
        assert shares(found, one, whose).value == pytest.approx(said / len(pairs))
    nobody = np.zeros((2, 5), int)
    assert f_score(nobody, nobody, "visitor", list("abcde")).n == 0


def test_a_user_with_many_profiles_counts_as_one():
    true = np.zeros((1, 60), int)
    found = np.repeat(np.arange(6) % 2, 10)[None]
    few, many = np.repeat(np.arange(6), 10), np.arange(60)
    wide, narrow = (confused(true, found, whose).iloc[0] for whose in (few, many))
    assert wide["high"] - wide["low"] > 2 * (narrow["high"] - narrow["low"])


def test_refusals():
    with pytest.raises(ValueError, match=r"as many sets of profiles as draws, or one for all \(got 2 for 3\)"):
        prototypes(np.array([CROWD, CROWD]), np.random.default_rng(1), 3)
    with pytest.raises(ValueError, match="draws"):
        prototypes(CROWD, np.random.default_rng(1), 0)
    with pytest.raises(ValueError, match=r"labels must be \(draws, n\) of the same profiles"):
        confused(np.zeros((2, 3), int), np.zeros((2, 4), int), list("abc"))


def test_what_has_the_same_name_has_the_same_draws_on_every_page():
    first, again = stream(1, "noise", "ε = 1"), stream(1, "noise", "ε = 1")
    drawn = first.random(5)
    np.testing.assert_array_equal(again.random(5), drawn)
    for other in (stream(2, "noise", "ε = 1"), stream(1, "again", "ε = 1"), stream(1, "noise", "ε = 10")):
        assert (other.random(5) != drawn).all()


def test_of_what_groups_publish_intervals_over_users_are_too_narrow_and_those_over_groups_are_not():
    """Who is in one group has one published profile, and other users make other groups: 40 draws of who they are, k = 25."""
    rows = []
    for seed in range(40):
        values = crowd(500, seed)
        found = Primule(25).protect(pd.DataFrame(values), np.random.default_rng())  # it draws nothing
        near = similarity(values, found.values.to_numpy()) > 0.8
        each = [clustered_rate(near, whose) for whose in (np.arange(500), np.asarray(found.group))]
        rows.append([each[0].value, *((of.high - of.low) / 2 / 1.96 for of in each)])
    of_draws, (over_users, over_groups) = np.std(rows, axis=0, ddof=1)[0], np.mean(rows, axis=0)[1:]
    assert over_users < 0.85 * of_draws  # three quarters of it; 40 draws know it to a ninth
    assert over_groups > of_draws
