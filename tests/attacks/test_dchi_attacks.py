"""Attacks on profiles: the contract of those that rank; Definition 10, Algorithms 11 to 14 and 16 against their definitions; the binomial rule."""

import naive_dchi as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refusals, refuses
from dchi_making import day
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mobpriv.attacks.visits
from mobpriv.attacks import policies
from mobpriv.attacks.visits import Likelihood, ProfileGuess
from mobpriv.attacks.visits.denoising import (
    confident_delta,
    guess_bernoulli,
    guess_laplacian,
    max_likelihood_epsilon,
)
from mobpriv.attacks.visits.distances import PROFILES_PER_BLOCK, count_within, l1
from mobpriv.attacks.visits.inconsistencies import consistent, inconsistencies
from mobpriv.attacks.visits.most_visited import (
    most_visited,
    noisy_argmax,
    poi_guess,
    random_pick_probability,
    relative_delta,
)
from mobpriv.attacks.visits.reidentification import guesses, reidentification_rate, successes
from mobpriv.base import noise
from mobpriv.mechanisms.visits import Geometric, LaplaceCounts, RandomisedResponse
from mobpriv.visits.affinity import Neighbourhood, affinity

COUNTS = day(40)
BOOLEANS = COUNTS > 0
NEAR = Neighbourhood(5, affinity(BOOLEANS))
EVERY = [ProfileGuess(), Likelihood(LaplaceCounts(1.0)), Likelihood(LaplaceCounts(1.0, NEAR)), Likelihood(Geometric(1.0))]


def test_every_attack_is_tested():
    assert {type(attack).__name__ for attack in EVERY} == set(mobpriv.attacks.visits.__all__)


@pytest.mark.parametrize("attack", EVERY, ids=repr)
class TestEveryAttack:
    def test_arguments_and_the_attack_itself_stay_as_they_are(self, attack):
        before = COUNTS.copy(deep=True)
        fitted = attack.fit(COUNTS)
        ranking = fitted.rank(COUNTS)
        pd.testing.assert_frame_equal(COUNTS, before, check_exact=True)
        assert attack.known_ is None
        pd.testing.assert_frame_equal(fitted.fit(COUNTS).rank(COUNTS), ranking, check_exact=True)

    def test_rank_has_a_row_a_profile_and_a_column_a_leaked_user(self, attack):
        ranking = attack.fit(COUNTS.iloc[:7]).rank(COUNTS)
        assert ranking.index.equals(COUNTS.index)
        assert ranking.columns.tolist() == COUNTS.index[:7].tolist()
        assert (ranking.dtypes == "float64").all()
        assert attack.fit(COUNTS).rank(COUNTS.iloc[:0]).shape == (0, 40)
        assert attack.fit(COUNTS.iloc[:0]).rank(COUNTS).shape == (40, 0)
        refuses("fit the attack", attack.rank, COUNTS)

    def test_names_and_their_order_do_not_matter(self, attack):
        ranking = attack.fit(COUNTS).rank(COUNTS)
        again = attack.fit(COUNTS.iloc[::-1].rename("x{}".format)).rank(COUNTS.rename("y{}".format))
        np.testing.assert_array_equal(again.to_numpy()[:, ::-1], ranking)

    def test_others_do_not_matter(self, attack):
        full = attack.fit(COUNTS).rank(COUNTS)
        np.testing.assert_allclose(attack.fit(COUNTS.iloc[3:9]).rank(COUNTS.iloc[5:]), full.iloc[5:, 3:9])

    def test_everybody_is_nearest_to_herself_and_of_equal_profiles_the_tie_is_the_users(self, attack):
        assert policies.min_k(attack.fit(COUNTS).rank(COUNTS)).eq(1).all()
        twins = COUNTS.iloc[[0, 0]].set_axis(["ann", "bob"])
        assert policies.min_k(attack.fit(twins).rank(twins)).tolist() == [2, 2]

    def test_what_is_no_profile_is_refused(self, attack):
        for wrong in (COUNTS.astype(float), "x", pd.concat([COUNTS, COUNTS]), COUNTS.iloc[:, :0]):
            refuses("leaked profiles", attack.fit, wrong)
            with pytest.raises(ValueError, match="sanitised profiles"):
                attack.fit(COUNTS).rank(wrong)
        refuses("no sanitised profile says anything about POI p00", lambda: attack.fit(COUNTS).rank(COUNTS.iloc[:, 1:]))


tables = st.tuples(st.integers(1, 6), st.integers(1, 7), st.integers(1, 5)).flatmap(
    lambda s: st.tuples(*(arrays(np.int64, (k, s[2]), elements=st.integers(0, 6)) for k in s[:2]))
)


@given(tables, st.lists(st.floats(0, 20), min_size=1, max_size=4))
def test_distances_and_their_counts_equal_the_definitions(sides, deltas):
    published, known = sides
    d = l1(published[None], known[None])[0]
    assert d.tolist() == [[naive.l1(a, b) for b in known] for a in published]
    counts = count_within(published[None], known[None], deltas)[0]
    assert counts.tolist() == [[len(naive.profile_guess(a, known, delta)) for delta in deltas] for a in published]


@pytest.mark.parametrize("largest", [1_129, 1_130, 8_000_000, (2**63 - 1) // 29])
def test_distances_of_large_counts_are_exact(largest):
    """At 29 POIs 1,129 is the largest count whose distances fit 16 bits, the last one the largest whose distances fit 64."""
    published, known = np.full((1, 1, 29), largest), np.zeros((1, 3, 29), int)
    known[0, 1] = 1
    assert l1(published, known).tolist() == [[[29 * largest, 29 * (largest - 1), 29 * largest]]]
    assert count_within(published, known, [5]).tolist() == [[[0]]]
    if largest < 2000:
        assert count_within(published, known, [29 * largest - 1, 29 * largest, 1e12]).tolist() == [[[1, 3, 3]]]


@pytest.mark.parametrize("k", [PROFILES_PER_BLOCK - 1, PROFILES_PER_BLOCK, 2 * PROFILES_PER_BLOCK + 3])
def test_blocks_have_no_seams(k):
    rng = np.random.default_rng(k)
    published, known = rng.integers(0, 9, (2, 3, 6)), rng.integers(0, 9, (2, k, 6))
    d = np.abs(published[:, :, None] - known[:, None]).sum(axis=-1)
    np.testing.assert_array_equal(count_within(published, known, range(60)), (d[..., None] <= np.arange(60)).sum(axis=2))


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 10_000))
def test_the_whole_grid_equals_algorithm_11(n, m, seed):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 4, (n, m))
    perturbed = np.maximum(true + rng.integers(-1, 2, true.shape), 0)
    deltas, max_candidates = [0, 1, 2.5, 7], [1, 2, 6]
    sets = guesses(perturbed, true, deltas)
    rates = reidentification_rate(sets, max_candidates)
    for a, delta in enumerate(deltas):
        for b, size in enumerate(max_candidates):
            assert rates[a, b] == pytest.approx(naive.algorithm_11(perturbed, true, delta, size))
    np.testing.assert_allclose(successes(sets, max_candidates).mean(axis=0), rates)


def test_who_did_not_leak_is_no_success_and_draws_stand_side_by_side():
    rng = np.random.default_rng(1)
    perturbed, known = rng.integers(0, 3, (2, 5, 4)), rng.integers(0, 3, (2, 3, 4))
    owner = np.array([2, -1, 0, -1, -1])
    sets = guesses(perturbed, known, range(30), owner)
    assert np.isinf(sets.true_distances[:, [1, 3, 4]]).all()
    rates = reidentification_rate(sets, [3])[..., 0]
    assert rates.shape == (2, 30)
    assert rates[:, -1].tolist() == [0.4, 0.4]
    alone = guesses(perturbed[0], known[0], range(30), owner)
    np.testing.assert_array_equal(alone.sizes, sets.sizes[0])


def test_a_ranking_that_no_memory_holds_is_refused():
    crowd = pd.DataFrame(np.zeros((50_000, 1), np.int8), columns=["p"])
    refuses(r"a ranking of 50,000 × 50,000 profiles takes 20 GB: use guesses", lambda: ProfileGuess().fit(crowd).rank(crowd))


@given(tables, st.lists(st.sampled_from([0, 0.2, 0.34, 0.5, 1]), min_size=1, max_size=3), st.integers(1, 4))
def test_inconsistencies_equal_algorithm_12(sides, taus, number):
    published, known = sides
    aff = affinity(known > 0)
    result = consistent(published, aff, taus, [number, number + 1])
    for t, tau in enumerate(taus):
        for k in range(2):
            expected = [naive.algorithm_12(row.tolist(), aff, tau, number + k) for row in published]
            assert result[t, k].tolist() == expected
    assert result.dtype == published.dtype


def test_inconsistencies_of_many_samples():
    rng = np.random.default_rng(1)
    b = rng.random((3, 20, 6)) < 0.5
    aff = affinity(b)
    result = inconsistencies(b, aff, [0.2, 0.3], [1, 2, 3])
    assert result.shape == (2, 3, 3, 20, 6)
    np.testing.assert_array_equal(result[1, 2, 1], inconsistencies(b[1], aff[1], [0.3], [3])[0, 0])
    assert not inconsistencies(b, aff, [0], [1]).any()
    one_way = np.array([[1.0, 0.0], [1.0, 1.0]])  # Aff_jj' < τ is asked of j, by its own row
    assert consistent(np.array([[1, 1]]), one_way, [0.5], [1]).tolist() == [[[[0, 1]]]]


@given(tables, st.floats(0, 12), st.data())
def test_the_most_visited_poi_equals_algorithm_16(sides, delta, data):
    published, known = sides
    chi = data.draw(arrays(bool, known.shape))
    guess = poi_guess(known, chi)
    sets = [naive.poi_guess(row, set(np.flatnonzero(c))) for row, c in zip(known.tolist(), chi, strict=True)]
    assert [set(np.flatnonzero(row)) for row in guess] == sets
    result = most_visited(published, known, delta, guess)
    for i, row in enumerate(published.tolist()):
        assert set(np.flatnonzero(result.predicted[i])) == naive.algorithm_16(row, known.tolist(), sets, delta)
        assert result.candidates[i] == len(naive.profile_guess(row, known.tolist(), delta))
    literal = most_visited(published, known, delta, guess, "everything").predicted
    np.testing.assert_array_equal(literal, result.predicted | (result.candidates == 0)[:, None])


def test_blocks_of_algorithm_16_have_no_seams(monkeypatch):
    rng = np.random.default_rng(1)
    published, known = rng.integers(0, 5, (2, 31, 4)), rng.integers(0, 5, (2, 9, 4))
    full = most_visited(published, known, 4, poi_guess(known))
    monkeypatch.setattr("mobpriv.attacks.visits.most_visited.MAX_DISTANCES", 100)
    parts = most_visited(published, known, 4, poi_guess(known))
    np.testing.assert_array_equal(full.predicted, parts.predicted)
    np.testing.assert_array_equal(full.candidates, parts.candidates)


def test_success_in_guessing_the_most_visited_poi():
    true = np.array([[3, 3, 1], [0, 2, 0], [1, 0, 0]])
    predicted = np.array([[True, False, True], [False, False, False], [True, True, False]])
    assert random_pick_probability(predicted, true).tolist() == [0.5, 0, 0.5]
    assert noisy_argmax(true).tolist() == [[True, True, False], [False, True, False], [True, False, False]]
    assert relative_delta(0.3, true).tolist() == pytest.approx([2.1, 0.6, 0.3])
    with pytest.raises(ValueError, match=r"a user without a visit has no most visited POI \(profile \(1,\), one of 1\)"):
        random_pick_probability(predicted, true * [[1], [0], [1]])


class TestLikelihood:
    @settings(max_examples=30)
    @given(st.integers(0, 10_000), st.integers(0, 5), st.sampled_from(["printed", "further"]))
    def test_it_equals_the_definition(self, seed, n, variant):
        rng = np.random.default_rng(seed)
        b = pd.DataFrame(rng.random((5, 5)) < 0.5)
        aff = affinity(b)
        m = RandomisedResponse(0.5, Neighbourhood(n, aff, variant))
        perturbed = pd.DataFrame(rng.random((4, 5)) < 0.5)
        result = Likelihood(m).fit(b).rank(perturbed).to_numpy()
        for i in range(4):
            for a in range(5):
                chi = naive.neighbourhood(b.to_numpy()[a].tolist(), aff, n, variant)
                probability = lambda y, x: naive.flip_probability(y, x, float(m.flip))  # noqa: E731
                p = naive.profile_probability(perturbed.to_numpy()[i], b.to_numpy()[a], chi, probability)
                assert result[i, a] == pytest.approx(-np.log(p) if p else np.inf)

    def test_what_he_cannot_know_is_refused(self):
        for mechanism, words in [
            (3, "mechanism must be one on profiles"),
            (RandomisedResponse(np.ones(4)), "must have one epsilon"),
            (RandomisedResponse(1.0, np.ones(29, bool)), "chi=None or a Neighbourhood"),
        ]:
            refuses(words, Likelihood, mechanism)
        with pytest.raises(ValueError, match=r"only 15 of 29 POIs leaked"):
            Likelihood(RandomisedResponse(1.0, NEAR)).fit(BOOLEANS.iloc[:, :15]).rank(BOOLEANS)
        part = Likelihood(RandomisedResponse(1.0)).fit(BOOLEANS.iloc[:, :15]).rank(BOOLEANS)
        assert part.shape == (40, 40)


pairs = st.tuples(st.integers(1, 4), st.integers(1, 6)).flatmap(
    lambda shape: st.tuples(*(arrays(np.int64, shape, elements=st.integers(0, 7)) for _ in range(2)))
)


@given(pairs)
def test_they_equal_algorithms_13_and_14(sides):
    perturbed, true = sides
    for form in ("unbiased", "printed"):
        flips = guess_bernoulli(perturbed > 2, true > 2, form=form)
        np.testing.assert_allclose(
            flips, [naive.algorithm_13(a > 2, b > 2, form) for a, b in zip(perturbed, true, strict=True)]
        )
        result = guess_laplacian(perturbed, true, form=form)
        np.testing.assert_allclose(result, [naive.algorithm_14(a, b, form) for a, b in zip(perturbed, true, strict=True)])
    pooled = guess_laplacian(perturbed, true, pooled=True)
    assert pooled == pytest.approx(naive.algorithm_14(perturbed.ravel(), true.ravel()))


def test_who_knows_chi_takes_no_other_poi():
    perturbed, true = np.array([[3, 1, 0, 9]]), np.array([[1, 1, 0, 4]])
    chi = np.array([[True, True, False, False]])
    assert guess_laplacian(perturbed, true, chi)[0] == 1.0
    assert guess_bernoulli(perturbed > 1, true > 1, chi)[0] == 0.5
    refuses("J, the POIs that leaked, must not be empty", guess_laplacian, perturbed, true, chi & False)
    refuses("J, the POIs that leaked, must not be empty", guess_bernoulli, perturbed[:, :0], true[:, :0])


@settings(max_examples=50)
@given(pairs, st.sampled_from(noise.ROUNDING_RULES), st.booleans())
def test_no_epsilon_is_likelier(sides, rounding, pooled):
    """The sum of the coordinates' exact log-probabilities is nowhere larger than where it is found."""
    perturbed, true = sides
    estimates = np.atleast_1d(max_likelihood_epsilon(perturbed, true, rounding=rounding, pooled=pooled))
    grid = np.geomspace(1e-3, 50, 400)
    log_p = noise.log_laplace(perturbed[..., None], true[..., None], grid, rounding)
    every = log_p.sum(axis=(0, 1))[None] if pooled else log_p.sum(axis=1)
    for i, epsilon in enumerate(estimates):
        at = float(np.clip(epsilon, 1e-3, 50))
        log_p_at = noise.log_laplace(perturbed, true, at, rounding)
        here = log_p_at.sum() if pooled else log_p_at[i].sum()
        assert here >= every[i].max() - 1e-6 * abs(every[i].max())


def test_an_epsilon_a_draw_side_by_side():
    rng = np.random.default_rng(1)
    true = rng.poisson(2.0, (3, 20, 29))
    perturbed = noise.rounded_and_clamped(true, noise.laplace(rng.random(true.shape)))
    for pooled in (False, True):
        full = max_likelihood_epsilon(perturbed, true, pooled=pooled)
        assert full.shape == ((3,) if pooled else (3, 20))
        np.testing.assert_allclose(full[1], max_likelihood_epsilon(perturbed[1], true[1], pooled=pooled))
    assert np.isinf(max_likelihood_epsilon(true, true)).all()


@given(st.floats(0, 1), st.integers(0, 29), st.floats(0, 0.999))
def test_the_binomial_rule(p, size, confidence):
    delta = int(confident_delta(p, size, confidence))
    assert naive.within(delta, size, p) >= confidence - 1e-9
    assert delta == 0 or naive.within(delta - 1, size, p) < confidence + 1e-9


def test_the_binomial_rule_for_several_sizes():
    assert confident_delta([0.1, 0.2], [29, 12]).tolist() == [6, 5]


ONES = np.ones((3, 4))
SIDES, EMPTY = ({"published": side, "known": side} for side in (ONES, ONES[:, :0]))
GUESSES = {"guess": ONES > 0, "delta": 1}
TABLES = {"published": ONES, "affinity": np.eye(4), "taus": [0.1], "numbers_of_pois": [1]}
NO_PROFILES = [
    (np.ones((2, 3)), "must have one shape"),
    (np.full((3, 4), np.nan), "sanitised profiles must be finite"),
    (-ONES, "sanitised profiles must be finite and not negative"),
    (["x"], "sanitised profiles must be numbers"),
]


test_what_is_refused = refusals(
    (guesses, SIDES | {"deltas": [-1]}, "deltas must be finite and not negative .got -1"),
    (guesses, SIDES | {"deltas": ["x"]}, "deltas must be numbers"),
    (guesses, {"published": ONES, "known": np.zeros((3, 2)), "deltas": [1]}, "profiles must have the shapes"),
    (guesses, EMPTY | {"deltas": [1]}, "J, the POIs that leaked, must not be empty"),
    (guesses, SIDES | {"deltas": [1], "owner": [0, 1, 7]}, "owner must name a row of the 3 known"),
    (guesses, SIDES | {"deltas": [1], "owner": [0, 1]}, "owner must name a row of the 3 known"),
    *(
        (rate, {"sets": guesses(ONES, ONES, [1]), "max_candidates": most}, "M must be a whole number, at least 1")
        for most in (0, 1.5, np.nan, "x")
        for rate in (successes, reidentification_rate)
    ),
    (most_visited, SIDES | GUESSES | {"delta": -0.5}, "delta must be finite and not negative .got -0.5"),
    (most_visited, EMPTY | GUESSES, "J, the POIs that leaked, must not be empty"),
    (most_visited, SIDES | GUESSES | {"guess": np.ones((2, 4), bool)}, "every leaked profile needs its guess"),
    (most_visited, SIDES | GUESSES | {"empty": "some"}, "empty must be"),
    *(
        (guess, {"published": wrong, "known": ONES}, words)
        for guess in (guess_bernoulli, guess_laplacian, max_likelihood_epsilon)
        for wrong, words in NO_PROFILES
    ),
    (guess_bernoulli, SIDES | {"form": "corrected"}, 'form must be "unbiased" or "printed"'),
    (guess_laplacian, SIDES | {"form": "corrected"}, "form must be"),
    (max_likelihood_epsilon, SIDES | {"rounding": "up"}, "rounding must be"),
    (max_likelihood_epsilon, SIDES | {"pooled": 3}, "pooled must be"),
    (inconsistencies, TABLES | {"taus": [-0.1]}, "tau must"),
    (inconsistencies, TABLES | {"numbers_of_pois": [0]}, "N must"),
    (inconsistencies, TABLES | {"affinity": np.eye(5)}, "4 × 4 POIs"),
    *((confident_delta, {"p": p, "size": 12}, "p must") for p in (1.2, -0.1, np.nan)),
    (confident_delta, {"p": 0.1, "size": -1}, "size must"),
    (confident_delta, {"p": 0.1, "size": 12.5}, r"size must be a whole number of POIs .got 12.5"),
    (confident_delta, {"p": 0.1, "size": 12, "confidence": 1.5}, "confidence must"),
    call=lambda function, given: function(**given),
)
