"""The setting of chapter 4: who is accused, and an adversary who gives nobody two traces."""

from itertools import permutations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mobpriv.experiments.thesis_4 import accusations, found_among, one_to_one


def ranking(rows, columns="abc"):
    return pd.DataFrame([values for _, values in rows], [who for who, _ in rows], list(columns), dtype=float)


def test_accusations_are_those_of_others_traces():
    named = ranking([("a", [0, 1, 2]), ("b", [0, 1, 2]), ("c", [0, 1, 2]), ("z", [2, 0, 1])])
    assert accusations(named).to_dict() == {"a": 2, "b": 1, "c": 0}


def test_a_second_name_of_one_person_is_no_false_accusation():
    named = ranking([("a", [1, 0, 2]), ("c", [1, 0, 2])])
    assert accusations(named, {"b": "a"}).to_dict() == {"a": 0, "b": 1, "c": 0}


def test_who_cannot_be_compared_is_not_accused():
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
