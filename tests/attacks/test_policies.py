import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.attacks import policies as po
from mobpriv.base import estimates


def ranking(rows):
    return pd.DataFrame(rows, index=list("abcd")[: len(rows)], columns=list("abcd"))


# Table 3.1 of the thesis: one trace, four users; the true one is the second
TABLE = pd.DataFrame([[0.5, 0.4, 0.07, 0.02]], index=["i2"], columns=["i1", "i2", "i3", "i4"])


def test_table_3_1():
    top3, over = po.top_k(TABLE, 3), po.threshold(TABLE, 0.25)
    assert po.answer(1 - TABLE).tolist() == ["i1"]
    assert po.min_k(1 - TABLE).tolist() == [2]
    assert over.columns[over.loc["i2"]].tolist() == ["i1", "i2"]
    assert po.precision(over).tolist() == [0.5]
    assert po.false_positives(over).tolist() == [0.5]
    assert po.precision(top3).tolist() == pytest.approx([1 / 3])
    assert po.false_positives(top3).tolist() == pytest.approx([2 / 3])
    for k in (0, 5):
        refuses(r"k must lie in 1 … 4", po.top_k, TABLE, k)
    refuses("alpha is a probability", po.threshold, TABLE, 1.5)


def test_probabilities_are_normalised_similarities():
    d = pd.DataFrame([[0.0, 0.5, 1.0, np.nan]], index=["a"], columns=list("abcd"))
    p = po.probabilities(d, largest=1.0)
    assert p.loc["a"].tolist() == pytest.approx([1 / 1.5, 0.5 / 1.5, 0, 0])
    nobody = po.probabilities(d * 0 + 1, largest=1.0)
    assert nobody.loc["a"].sum() == 0


def test_the_program_stretches_each_row():
    d = pd.DataFrame([[0.8, 0.9, 1.0], [0.2, 0.2, 0.2]], index=["a", "b"], columns=list("abc"))
    p = po.probabilities(d, None)
    assert p.loc["a"].tolist() == pytest.approx([1 / 1.5, 0.5 / 1.5, 0])
    assert p.loc["b"].tolist() == pytest.approx([1 / 3] * 3)
    refuses("must be positive", po.probabilities, d, 0)


def test_ties_are_settled_against_the_adversary():
    d = ranking([[0.1, 0.1 + 1e-16, 0.5, 0.6], [0.2 + 1e-15, 0.2, 0.5, 0.6]])  # rounding does not break a tie
    assert po.min_k(d).tolist() == [2, 2]
    d = ranking([[0.1, 0.1, 0.5, 0.6], [0.3, 0.2, 0.5, 0.6]])
    assert po.min_k(d).tolist() == [2, 1]
    assert po.reidentified(d).tolist() == [False, True]


def test_erased_unknown_and_empty_profiles_are_failures_not_ties():
    nan = np.nan
    d = ranking([[0.1, 0.2, 0.3, 0.4], [nan, nan, nan, nan]])
    d.loc["stranger"] = [0.1, 0.2, 0.3, 0.4]  # not among the known
    k = po.min_k(d, users=["a", "b", "stranger", "erased"])
    assert k.tolist() == [1, np.inf, np.inf, np.inf]
    assert po.reidentified(d, users=["a", "b", "stranger", "erased"]).mean() == 0.25
    assert po.answer(d).isna().tolist() == [False, True, False]
    p = po.probabilities(d, 1.0)
    assert po.precision(po.threshold(p, 0.1), users=["erased"]).tolist() == [0]
    assert po.false_positives(po.threshold(p, 0.1), users=["erased"]).tolist() == [0]  # Equation (3.11), not the sentence
    empty = pd.DataFrame(columns=list("ab"), index=pd.Index([], name="user"))
    assert po.min_k(empty, users=["a"]).tolist() == [np.inf]
    assert po.answer(empty).tolist() == []
    answers = po.threshold(pd.DataFrame(index=["a"]), 0.1)  # nobody is known
    assert po.precision(answers).tolist() == po.false_positives(answers).tolist() == [0]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_top_k_names_k_users_and_min_k_is_the_least_that_works(k):
    rng = np.random.default_rng(4)
    d = pd.DataFrame(rng.random((50, 4)), columns=list("abcd")).set_axis(rng.choice(list("abcd"), 50))
    answers = po.top_k(po.probabilities(d, 1.0), k)
    assert (answers.sum(axis=1) == k).all()
    hit = po.precision(answers) > 0
    assert (hit.to_numpy() == (po.min_k(d).to_numpy() <= k)).all()
    # the theoretical bounds of §3.4.8
    assert (po.precision(answers) <= 1 / k).all()
    assert (po.false_positives(answers) >= 1 - 1 / k).all()


def test_intervals_cover():
    rng = np.random.default_rng(5)
    covered = np.zeros(2)
    for _ in range(400):
        u, x, noise = rng.random(60), *rng.standard_normal((2, 60))
        mean, correlation = estimates.mean(u), estimates.rank_correlation(x, 0.6 * x + 0.8 * noise)
        checks = (mean, 0.5), (correlation, 6 / np.pi * np.arcsin(0.6 / 2))
        covered += [estimate.low <= truth <= estimate.high for estimate, truth in checks]
    assert ((covered >= 0.92 * 400) & (covered <= 0.99 * 400)).all(), covered


def test_rank_correlations_without_an_interval():
    assert estimates.rank_correlation([1, 2, 3, 4], [2, 4, 8, 16]).value == 1
    assert np.isnan(estimates.rank_correlation([1, 2, 3, 4], [2, 4, 8, 16]).low)
    assert np.isnan(estimates.rank_correlation([1, 2, 3], [1, 3, 2]).low)
    assert np.isnan(estimates.rank_correlation([1, 2, 3, 4], [5, 5, 5, 5]).value)
    refuses("needs pairs", estimates.rank_correlation, [1, 2], [1, 2, 3])


def test_naming_the_same_person_under_another_name_is_a_hit():
    d = ranking([[0.2, 0.1, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4]])
    assert po.min_k(d).tolist() == [2, 2]
    assert po.min_k(d, person={"b": "a"}).tolist() == [1, 1]


def test_estimates_stay_possible():
    assert estimates.paired_difference([1, 1, 1], [0, 0, 0]).high <= 1
    for values, q, expected in (
        ([1, 2, 3, np.inf], 0.5, 2.5),
        ([1, 2, np.inf, np.inf], 0.75, np.inf),
        ([1, 2, 3, 4], 0.25, 1.75),
    ):
        assert estimates.quantile(values, q).value == expected
    cut = estimates.mean([0, 0, 1], bounds=(0, 1))
    assert (cut.low, cut.high) == (0, 1)
    for trials, line in (([np.nan, 1.0], "succeeds, fails"), ([], "at least one trial")):
        refuses(line, estimates.rate, trials)


def test_who_has_probability_0_is_never_named():
    """α = 0 is met by everybody; l_0 = 0 would then name users who cannot be compared or are like nobody."""
    p = pd.DataFrame([[0.6, 0.4, 0.0], [0.0, 0.0, 0.0]], index=["a", "b"], columns=list("abc"))
    assert po.threshold(p, 0).to_numpy().tolist() == [[True, True, False], [False, False, False]]
    assert po.precision(po.threshold(p, 0)).tolist() == [0.5, 0]
    assert po.false_positives(po.threshold(p, 0)).tolist() == [0.5, 0]


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 6), st.booleans(), st.integers(0, 3))
def test_threshold_curve_is_the_definition_at_every_probability(seed, traces, known, ties, erased):
    """Against Equations (3.9) to (3.11) at each α; between two neighbours and beyond the ends no answer is another one."""
    rng = np.random.default_rng(seed)
    d = rng.choice([0.1, 0.3, 0.7], (traces, known)) if ties else rng.uniform(0, 1, (traces, known))
    d[rng.random(d.shape) < 0.1] = np.nan
    ranking = pd.DataFrame(d, [f"u{i}" for i in range(traces)], [f"u{i}" for i in rng.permutation(known + 1)[:known]])
    p, users = po.probabilities(ranking, 1.0), [f"u{i}" for i in range(traces + erased)]
    curve = po.threshold_curve(p, users)
    assert curve["alpha"].tolist() == sorted({v for v in p.to_numpy().ravel() if v > 0}, reverse=True)
    for row in curve.itertuples():
        answers = po.threshold(p, row.alpha)
        assert row.precision == pytest.approx(po.precision(answers, users).mean(), abs=1e-12)
        assert row.fp == pytest.approx(po.false_positives(answers, users).mean(), abs=1e-12)
    between = (curve["alpha"].to_numpy()[:-1] + curve["alpha"].to_numpy()[1:]) / 2
    for alpha, above, below, precision in zip(between, curve["alpha"], curve["alpha"][1:], curve["precision"], strict=False):
        if not below < alpha < above:  # two neighbours in double precision have nothing between them
            continue
        assert po.precision(po.threshold(p, alpha), users).mean() == pytest.approx(precision, abs=1e-12)


def test_threshold_curve_needs_every_traces_user():
    p = po.probabilities(pd.DataFrame([[0.2, 0.5]], ["a"], ["a", "b"]), 1.0)
    assert po.threshold_curve(p)["precision"].tolist() == [1.0, 0.5]
    refuses("trace a is not among them", po.threshold_curve, p, ["b"])


def test_successful_attacks_are_counted_for_each_user():
    """Of three attacks all name a, one names b, none c; d was erased and is in no ranking."""
    one = pd.DataFrame([[0, 1, 2], [1, 0, 2], [0, 1, 2]], index=list("abc"), columns=list("abc"))
    two = pd.DataFrame([[0, 1, 2], [0, 1, 2], [0, 0, 0]], index=list("abc"), columns=list("abc"))  # a tie is no hit
    three = pd.DataFrame([[0.0, 1, 2], [np.nan] * 3], index=list("ab"), columns=list("abc"))
    successes = po.successful_attacks([one, two, three], users=list("abcd"))
    assert successes.to_dict() == {"a": 3, "b": 1, "c": 0, "d": 0}
    assert successes.dtype == int
    assert po.successful_attacks([], users=["a"]).to_dict() == {"a": 0}
    assert po.successful_attacks([one], users=list("abc"), person={"c": "a"}).to_dict() == {"a": 1, "b": 1, "c": 1}
    refuses("one table an attack, in a list", po.successful_attacks, one, users=list("abc"))
