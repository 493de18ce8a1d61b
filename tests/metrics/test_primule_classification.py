"""Confusion matrices, F-scores and how many of each class: against the definitions, a peer and a simulation; and what is refused."""

import naive_sociometer as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from mobpriv.base.estimates import clustered_rate, quantile, rate
from mobpriv.icp.archetypes import CATEGORIES, categories_of
from mobpriv.icp.rows import factorize_places
from mobpriv.metrics import classification as mc

ABC = ("a", "b", "c")
pairs = st.lists(st.tuples(st.sampled_from(ABC), st.sampled_from(ABC), st.sampled_from(["x", "y"])), min_size=1, max_size=30)
TRUE, PREDICTED = list("aaaabbc"), list("aabcbac")


@given(pairs)
def test_equal_the_definitions(records):
    true, predicted, where = map(list, zip(*records, strict=True))
    expected = naive.confused(true, predicted, ABC)
    table = mc.confusion_estimates(true, predicted, ABC, whose=where)
    for row in table.itertuples():
        assert (row.count, pytest.approx(row.value, nan_ok=True)) == expected[row.true, row.found]
        assert row.n == true.count(row.true)
    by_place = mc.scores_by_place(true, predicted, ABC, where).set_index(["municipality", "category"])
    for category in ABC:
        for at, measure in enumerate(("precision", "recall", "f_score")):
            for place in set(where):
                town_pairs = [(t, f) for t, f, w in records if w == place]
                town_score = naive.scored(*zip(*town_pairs, strict=True), category)[at]
                expected = np.nan if town_score is None else town_score
                assert by_place.loc[(place, category), measure] == pytest.approx(expected, nan_ok=True)


def test_the_intervals_are_wilsons():
    table = mc.confusion_estimates(TRUE, PREDICTED, ABC).set_index(["true", "found"])
    assert table.loc[("a", "a"), ["low", "high", "n"]].tolist() == [rate([1, 1, 0, 0]).low, rate([1, 1, 0, 0]).high, 4]
    assert mc.agreement(TRUE, PREDICTED, ABC) == rate([1, 1, 0, 0, 1, 0, 1])


def test_kappa_is_the_peers():
    rng = np.random.default_rng(1)
    true, predicted = rng.choice(ABC, 500, p=[0.6, 0.3, 0.1]), rng.choice(ABC, 500)
    predicted[:200] = true[:200]
    counts = mc.confusion_counts(true, predicted, ABC)
    assert mc.kappa(counts) == pytest.approx(cohen_kappa_score(true, predicted))
    assert np.isnan(mc.kappa([[5, 0], [0, 0]]))


def test_what_is_0_by_0():
    """a is there and never found; b is found and never there; c is neither."""
    by_place = mc.scores_by_place(["a", "a"], ["b", "b"], ABC, ["x", "x"])
    scores = by_place[["precision", "recall", "f_score"]]
    np.testing.assert_array_equal(scores, [[np.nan, 0, 0], [0, np.nan, 0], [np.nan] * 3])
    assert mc.medians(by_place)["undefined"].tolist() == [0, 0, 1]
    assert mc.medians(by_place)["n"].tolist() == [1, 1, 0]


def test_intervals_are_those_of_the_owners():
    rng = np.random.default_rng(3)
    whose = np.repeat(np.arange(40), 25)
    is_a = np.repeat(rng.random(40), 25) < 0.5  # somebody's profiles are all of one kind
    true, predicted = np.full(1000, "a"), np.where(is_a, "a", "b")
    wide, narrow = (mc.confusion_estimates(true, predicted, ABC, w).iloc[0] for w in (whose, None))
    known = clustered_rate(is_a, whose)
    assert (wide["low"], wide["high"], wide["n"]) == (known.low, known.high, 1000)
    assert wide["high"] - wide["low"] > 4 * (narrow["high"] - narrow["low"])
    assert mc.agreement(true, predicted, ABC, whose) == known


def test_how_many_there_are():
    where = list("xxyyxyy")
    table = mc.quantification(TRUE, PREDICTED, ABC, joined={"b or c": ("b", "c")}).set_index("category")
    assert table["true"].tolist() == [4, 2, 1, 3]
    assert table["found"].tolist() == [3, 2, 2, 4]
    assert table["error"].tolist() == [-1, 0, 1, 1]
    assert table["relative"].tolist() == pytest.approx([-1 / 4, 0, 1, 1 / 3])
    parts = mc.quantification(TRUE, PREDICTED, ABC, where, joined={"b or c": ("b", "c")})
    assert parts["municipality"].tolist() == ["x"] * 4 + ["y"] * 4
    for column in ("true", "found", "error"):
        assert parts.groupby("category", observed=True)[column].sum().to_dict() == table[column].to_dict()
    nobody = parts.query("municipality == 'x' and category == 'c'").iloc[0]
    assert nobody["true"] == 0
    assert np.isnan(nobody["relative"])


def test_medians_over_municipalities():
    rng = np.random.default_rng(5)
    true, predicted, where = rng.choice(ABC, 900), rng.choice(ABC, 900), rng.integers(0, 9, 900)
    table = mc.scores_by_place(true, predicted, ABC, where)
    assert table["municipality"].tolist() == np.repeat(np.arange(9), 3).tolist()
    for row in mc.medians(table).itertuples():
        known = quantile(table.loc[table["category"] == row.category, "f_score"], 0.5)
        assert (row.value, row.low, row.high, row.n) == (known.value, known.low, known.high, 9)


def test_labels_in_every_form():
    codes = np.array([0, 4, 2, 2], np.int8)
    names = [CATEGORIES[c] for c in codes]
    other_order = pd.Categorical(names, list(CATEGORIES)[::-1])
    wanted = mc.confusion_counts(codes, codes, CATEGORIES)
    for form in (names, np.array(names), pd.Series(names), other_order, pd.Series(other_order), categories_of(codes)):
        np.testing.assert_array_equal(mc.confusion_counts(form, codes, CATEGORIES), wanted)
    np.testing.assert_array_equal(mc.confusion_counts(codes, codes, CATEGORIES, sizes=[2, 1, 1, 5]).diagonal(), [2, 0, 6, 0, 1])
    parts = mc.confusion_counts(codes, codes, CATEGORIES, where=[10, 9, 9, 10])
    assert factorize_places([10, 9, 9, 10], 4)[1].tolist() == [9, 10]
    np.testing.assert_array_equal(parts.sum(axis=0), wanted)
    assert parts[1, 0, 0] == 1


test_refused = refusals(
    (
        lambda: mc.confusion_estimates(["a", "z"], ["a", "a"], ABC),
        r"labels must be among a, b, c \(1 of true .*, first: z in row 1\)",
    ),
    (lambda: mc.confusion_estimates(["a"], [None], ABC), "1 of found are not, first: None in row 0.: leave those profiles out"),
    (lambda: mc.confusion_estimates([0], [3], ABC), "1 of found are not, first: 3 in row 0"),
    (lambda: mc.confusion_estimates([0], [-1], ABC), "first: -1 in row 0"),
    (lambda: mc.confusion_counts(pd.Categorical(["a", None]), ["a", "b"], ABC), "1 of true are not, first: nan in row 1"),
    (lambda: mc.confusion_counts(["a"], ["a", "b"], ABC), r"labels of the same profiles \(got 1 and 2\)"),
    (lambda: mc.confusion_counts(["a"], ["a"], ABC, ["x", "y"]), "where must name the municipality of each of the 1 profiles"),
    (lambda: mc.scores_by_place(["a"], ["a"], ABC, [None]), r"where must name .* \(got 1, 1 missing\)"),
    (lambda: mc.confusion_estimates(["a", "a"], ["a", "a"], ABC, ["u"]), "whose must name the owner of each of the 2 profiles"),
    (lambda: mc.confusion_counts(["a"], ["a"], ABC, sizes=[1, 2]), "sizes must be a number for each of the 1 rows"),
    (lambda: mc.quantification(["a"], ["a"], ABC, joined={"a": ("b", "c")}), "joined must give a new name"),
    (lambda: mc.quantification(["a"], ["a"], ABC, joined={"d": ("b", "z")}), r"to some of a, b, c \(got d: b, z\)"),
    (lambda: mc.agreement([], [], ABC), "an agreement needs one profile or more"),
)
