"""The setting of chapter 4: who is accused, and an adversary who gives nobody two traces; pages that measure the same agree."""

import json
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mobpriv.book import running
from mobpriv.experiments.thesis_4 import accusations, found_among, one_to_one


def ranking(rows, columns="abc"):
    return pd.DataFrame([values for _, values in rows], [who for who, _ in rows], list(columns), dtype=float)


def test_accusations_are_those_of_others_traces():
    named = ranking([("a", [0, 1, 2]), ("b", [0, 1, 2]), ("c", [0, 1, 2]), ("z", [2, 0, 1])])
    assert accusations(named).to_dict() == {"a": 2, "b": 1, "c": 0}


def test_neither_a_second_name_nor_who_cannot_be_compared_is_a_false_accusation():
    named = ranking([("a", [1, 0, 2]), ("c", [1, 0, 2])])
    assert accusations(named, {"b": "a"}).to_dict() == {"a": 0, "b": 1, "c": 0}
    named = ranking([("a", [np.nan, np.nan, np.nan]), ("b", [np.nan, np.nan, 1])])
    assert accusations(named).to_dict() == {"a": 0, "b": 0, "c": 1}


@given(d=st.integers(1, 4).flatmap(lambda n: arrays(float, (n, 4), elements=st.integers(0, 50).map(float))))
def test_one_to_one_is_the_best_of_all_ways(d):
    table = ranking(list(zip("abcd", d, strict=False)), "abcd")
    named = one_to_one(table)
    assert named.is_unique
    best = min(sum(row[j] for row, j in zip(d, way, strict=False)) for way in permutations(range(4), len(d)))
    assert sum(table.loc[trace, who] for trace, who in named.items()) == best


def test_one_to_one_with_more_traces_than_users_and_with_nobody_to_compare():
    table = ranking([("a", [0, 5]), ("b", [1, 5]), ("c", [9, 9])], "ab")
    assert one_to_one(table).isna().tolist() == [False, False, True]
    table = ranking([("a", [np.nan, 1]), ("b", [np.nan, 50])], "ab")
    assert one_to_one(table).notna().all()


def test_a_user_is_found_among_traces_of_another_kind():
    """bob's protected trace looks like ann: it takes her name where hers does not fit better."""
    recorded = ranking([("ann", [1, 9]), ("bob", [9, 1])], ["ann", "bob"])
    protected = ranking([("ann", [3, 4]), ("bob", [1, 9])], ["ann", "bob"])
    assert found_among(protected, recorded, ["ann"]).tolist() == [True]
    assert found_among(protected, protected, ["ann"]).tolist() == [False]
    assert found_among(protected.drop(index="ann"), recorded, ["ann"]).tolist() == [False]


# ------------------------------------------------------------------------------------------------------ the pages' results
MECHANISMS = ("none", "Geo-I", "Promesse", "W4M", "HMC")


@pytest.fixture(params=["cabspotting", "geolife"])
def published(request):
    return lambda notebook: json.loads((ROOT / "book" / "results" / request.param / f"{notebook}.json").read_text())["results"]


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
def test_the_ranges_of_the_protected_and_the_levels_of_all_tell_of_the_same_users(published, mechanism):
    """Who is protected and within 200 m, counted once among the protected of a draw and once among all users."""
    found = published("thesis_4_utility")
    within = sum(found[f"bin.SD.{range_}.{mechanism}"]["value"] for range_ in ("below 1 m", "1 to 10 m", "10 to 200 m"))
    level = sum(found[f"level.{text}.{mechanism}"]["value"] for text in ("AC and SD high", "SD high only"))
    of_a_draw, users = (found[f"{name}.{mechanism}"]["n"] for name in ("bin.SD.below 1 m", "level.both low"))
    # the n of a draw is a whole number, the middle one of the draws
    assert of_a_draw <= users * (1 - found[f"level.not protected.{mechanism}"]["value"]) + 1
    assert within * of_a_draw == pytest.approx(level * users, abs=1)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_attacks_on_recorded_traces_find_the_same_users_on_both_pages(published, mechanism):
    informed, privacy = published("thesis_4_informed"), published("thesis_4_privacy")
    for attack in ("AP-Attack", "POI-Attack", "PIT-Attack"):
        assert informed[f"trained.recorded.{attack}.{mechanism}"] == privacy[f"rate.{attack}.{mechanism}"]
    assert informed[f"safe.recorded.{mechanism}"] == privacy[f"successes.0.{mechanism}"]


def test_who_smooths_his_half_finds_as_many_as_on_the_page_of_the_causes(published):
    """Promesse draws no random numbers: two pages, one rate."""
    informed, causes = published("thesis_4_informed"), published("thesis_3_causes")
    assert informed["trained.protected.AP-Attack.Promesse"] == causes["trained.protected.Promesse"]


def test_a_choice_to_pass_over_must_be_one_of_the_page(tmp_path):
    target = {"output": tmp_path / "out.ipynb", "results": tmp_path / "out.json"}
    with pytest.raises(ValueError, match=r"untried must name choices of this page: .*got 'rounded up'"):
        running.run("thesis_4_choices", {"quick": True, "untried": ["rounded up"]}, **target)
