"""The adversary's choices: against the plain worst case and by hand; what leaks first, the noise estimated, what is discarded and clamped."""

import math

import naive_dchi as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from dchi_making import halves

from mobpriv.experiments import dchi, dchi_attacks
from mobpriv.experiments.dchi import BOOLEANS, Leaked, draw, leaked, perturbed_profiles, sample_setting
from mobpriv.experiments.dchi_attacks import naming_precision, reorder_pois, smallest_sufficient, twins
from mobpriv.visits.affinity import affinity

SAMPLES = draw(sample_setting(*halves(400)), np.random.default_rng(1), 8)


@pytest.mark.parametrize("chi", ["all", "N5"])
@pytest.mark.parametrize("counts", [False, True], ids=["booleans", "counts"])
def test_the_best_rate_is_that_over_all_deltas(chi, counts):
    leak = dchi_attacks.perturb_and_leak(SAMPLES, dchi.protection(chi, counts), 0.7, amount=30)
    result = dchi.best_rates(leak.published, leak.known, (1, 2, 5, 30))
    np.testing.assert_array_equal(result[:, 1], dchi.best_rate(leak.published, leak.known, 2))
    for d, at, max_candidates in ((0, 0, 1), (2, 1, 2), (3, 2, 5)):
        perturbed, known = (side[d].astype(int).tolist() for side in (leak.published, leak.known))
        deltas = {naive.l1(a, b) for a in perturbed for b in known}
        assert result[d, at] == pytest.approx(
            max(naive.algorithm_11(perturbed, known, delta, max_candidates) for delta in deltas)
        )
    assert (result[:, 3] == 1).all()  # δ may be as large as it likes where all may be in the guess


def test_the_worst_case_is_of_the_scenario():
    for scenario, amount in (("2.2", 40), ("2.1", 12)):
        result = dchi_attacks.worst_case_rates(SAMPLES, dchi.COUNTS, 2.0, [1, 3], scenario, amount)
        grid = dchi.surface(SAMPLES, dchi.COUNTS, 2.0, range(200), [1, 3], scenario, amount).max(axis=1)
        np.testing.assert_allclose(result, grid, rtol=0, atol=1e-12)


def test_distances_by_hand():
    true_distance, nearest_other = dchi_attacks.mean_distances(SAMPLES, dchi.BOOLEANS, 1.0)
    leak = dchi_attacks.perturb_and_leak(SAMPLES, dchi.BOOLEANS, 1.0)
    perturbed, known = (side[1].astype(int).tolist() for side in (leak.published, leak.known))
    assert true_distance[1] == pytest.approx(np.mean([naive.l1(a, b) for a, b in zip(perturbed, known, strict=True)]))
    nearest = [min(naive.l1(a, known[j]) for j in range(50) if j != i) for i, a in enumerate(perturbed)]
    assert nearest_other[1] == pytest.approx(np.mean(nearest))


def test_a_delta_that_is_chosen_elsewhere():
    rates = np.array([[0.9, 0.1, 0.0], [0.1, 0.7, 0.0], [0.0, 0.5, 0.0]])
    assert dchi_attacks.chosen_elsewhere(rates).tolist() == [0.1, 0.1, 0.0]
    refuses("at least two draws", dchi_attacks.chosen_elsewhere, rates[:1])


def test_the_epsilon_of_an_error():
    target = dchi.error(SAMPLES, dchi.COUNTS, [1.7]).mean()
    assert dchi_attacks.epsilon_of_error(SAMPLES, dchi.COUNTS, target * 1.0001) == pytest.approx(1.7, rel=0.02)
    refuses("target must be an error that some ε has", dchi_attacks.epsilon_of_error, SAMPLES, dchi.COUNTS, 1e9)


@pytest.mark.parametrize(("protection", "epsilon"), [(dchi.BOOLEANS, 2.0), (dchi.NEAR_COUNTS, 1.0)], ids=str)
def test_names_by_hand(protection, epsilon):
    result = naming_precision(SAMPLES, protection, epsilon, 12, 20)
    at, whose = sorted(SAMPLES.poi_order[1, :20]), sorted(SAMPLES.user_order[1, :12])
    perturbed = perturbed_profiles(SAMPLES, protection, epsilon)[1][:, at].astype(int).tolist()
    true = protection.true_profiles(SAMPLES.day)[1][:, at].astype(int).tolist()
    best = (-1, 0)
    for delta in range(100):
        guesses = [naive.profile_guess(row, [true[j] for j in whose], delta) for row in perturbed]
        named = {i: whose[next(iter(guess))] for i, guess in enumerate(guesses) if len(guess) == 1}
        right = sum(i == name for i, name in named.items())
        if right > best[0]:
            best = (right, len(named))
    assert result[1] == pytest.approx(best[0] / max(1, best[1]))


def test_the_fewest_that_suffice():
    rates = np.array([[0.1, 0.4, 0.9], [0.2, 0.6, 0.8]])
    assert smallest_sufficient([1, 5, 10], rates) == 5
    assert smallest_sufficient([1, 5, 10], rates, 0.9) == np.inf


def test_the_most_visited_leak_first():
    number = (SAMPLES.day[2] > 0).sum(axis=0)
    most_visited, least_visited = (reorder_pois(SAMPLES, which).poi_order[2] for which in ("most visited", "least visited"))
    assert sorted(most_visited) == sorted(least_visited) == list(range(29))
    assert number[most_visited].tolist() == sorted(number, reverse=True)
    assert number[least_visited].tolist() == sorted(number)
    assert reorder_pois(SAMPLES, "drawn") is SAMPLES


def test_twins_by_hand():
    known = np.array([[[1, 0], [0, 1], [1, 0]], [[1, 0], [0, 1], [1, 1]]])
    assert twins(known).tolist() == [2 / 3, 0]
    some = SAMPLES.day[:, :, :3] > 0
    rows = [tuple(row) for row in some[1].tolist()]
    assert twins(some)[1] == sum(rows.count(row) > 1 for row in rows) / 100


@pytest.fixture(scope="module")
def few():
    rng = np.random.default_rng(5)
    tables = [pd.DataFrame(rng.poisson(2.0, (80, 9))) for _ in range(2)]
    return draw(sample_setting(*tables, least=1), np.random.default_rng(1), draws=4, n=60)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_what_the_estimate_tends_to(epsilon):
    d = np.random.default_rng(2).laplace(0, 1 / epsilon, 400_000)
    distance = np.abs(np.floor(1000 + d + 0.5) - 1000)
    error = distance.std() / distance.mean() / math.sqrt(distance.size)
    assert 1 / distance.mean() == pytest.approx(float(dchi_attacks.limit(epsilon)), rel=4 * error)
    assert abs(1 / distance.mean() / epsilon - 1) > 4 * error  # and not to ε


def test_ratio_is_that_of_the_mechanism(few):
    leak = leaked(few, BOOLEANS._replace(counts=True), perturbed_profiles(few, BOOLEANS._replace(counts=True), 1.5), "2.2")
    plain = [1 / (np.mean(np.abs(a.astype(float) - b)) * 1.5) for a, b in zip(leak.published, leak.known, strict=True)]
    assert dchi_attacks.estimate_ratio(few, [1.5])[:, 0] == pytest.approx(plain)
    # noise that is neither rounded nor clamped is the same at every ε, but for its scale
    free = dchi_attacks.estimate_ratio(few, [0.5, 4.0], rounded=False, clamped=False)
    assert free[:, 0] == pytest.approx(free[:, 1])


def test_rule_against_plain(few):
    epsilon, m = 1.0, 9
    p = 1 / (1 + math.e)
    below, delta = 0.0, -1
    while below < 0.8:
        delta += 1
        below += math.comb(m, delta) * p**delta * (1 - p) ** (m - delta)
    perturbed, true = perturbed_profiles(few, BOOLEANS, epsilon), few.day > 0
    distance = (perturbed != true).sum(axis=-1)
    for d in range(4):
        last = few.user_order[d, -10:]
        assert dchi_attacks.covered(few, epsilon, 0.8, left=10)[d].tolist() == [bool(distance[d, i] <= delta) for i in last]
        first = few.user_order[d, :5]
        assert dchi_attacks.estimated_p(few, epsilon, 5)[d] == pytest.approx(distance[d, first].mean() / m)
    refuses("left", dchi_attacks.covered, few, epsilon, 0.8, 20, left=50)


def test_no_rule_beats_the_best(few):
    confidences = np.linspace(0.05, 0.95, 19)
    rates, best = dchi_attacks.by_rule(few, 1.0, confidences)
    assert rates.shape == (4, 19)
    assert (rates <= best[:, None]).all()
    assert np.ptp(rates) > 0


@pytest.fixture
def leak():
    rng = np.random.default_rng(3)
    known = rng.random((3, 6, 7)) < 0.4
    perturbed = known ^ (rng.random(known.shape) < 0.2)
    users, pois = np.broadcast_to(np.arange(6), (3, 6)), np.broadcast_to(np.arange(7), (3, 7))
    return Leaked(perturbed, known, users, pois)


def plainly(profile, matrix, tau, number):
    """Algorithm 12 by its letter."""
    visited = [j for j in range(len(profile)) if profile[j]]
    return [j for j in visited if sum(matrix[j, k] < tau for k in visited) >= number]


def test_grid_and_tags_against_plain(leak):
    matrix = affinity(leak.known)
    taus, numbers = [0.0, 0.2, 0.4], [1, 2]
    result = dchi_attacks.grid(leak, matrix, taus, numbers, 2, 2)
    best = dchi_attacks.with_best_delta(leak, matrix, taus, numbers, 2)
    counts = dchi_attacks.tags(leak, matrix, taus, 2)
    for d in range(3):
        for t, tau in enumerate(taus):
            tagged = [plainly(leak.published[d, i], matrix[d], tau, 2) for i in range(6)]
            right = sum(not leak.known[d, i, j] for i in range(6) for j in tagged[i])
            assert counts.invented_tagged[d, t] == right
            assert counts.true_tagged[d, t] == sum(map(len, tagged)) - right
            for k, number in enumerate(numbers):
                kept = leak.published[d].copy()
                for i in range(6):
                    kept[i, plainly(leak.published[d, i], matrix[d], tau, number)] = False
                distance = (kept[:, None] != leak.known[d][None]).sum(axis=-1)
                near = distance[None] <= np.arange(8)[:, None, None]  # at each δ
                shares = (near.diagonal(axis1=1, axis2=2) & (near.sum(axis=2) <= 2)).mean(axis=1)
                assert result[d, t, k] == pytest.approx(shares[2])
                assert best[d, t, k] == pytest.approx(max(shares))
    assert counts.invented.sum() == (leak.published & ~leak.known).sum()
    assert counts.true.sum() > 0
    # τ = 0 discards nothing
    assert (result[:, 0] == dchi_attacks.rate_at_delta(leak.published, leak.known, 2, 2)[:, None]).all()


def test_perfect_discards_what_was_invented_alone(leak):
    kept = dchi_attacks.oracle_profiles(leak)
    assert not (kept & ~leak.known).any()
    assert (kept[leak.known] == leak.published[leak.known]).all()


def test_choice_is_made_on_the_other_draws():
    values = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # what is best in one half is worst in the other
    got, best = dchi_attacks.chosen_on_other_half(values)
    assert (got == 0).all()
    assert best.tolist() == [1, 0, 1, 0]
    refuses("two draws", dchi_attacks.chosen_on_other_half, values[:1])


HOW = {}, {"rounding": "floor"}, {"scale": "printed"}, {"law": "geometric"}
WAYS = [dchi.protection(chi, True, **how) for chi in ("all", "N5") for how in HOW]


@pytest.mark.parametrize("protection", WAYS, ids=str)
def test_clamping_is_all_that_is_left_out(protection):
    free = dchi.unclamped(SAMPLES, protection, 0.7)
    assert (free < 0).any()
    np.testing.assert_array_equal(np.maximum(free, 0), perturbed_profiles(SAMPLES, protection, 0.7))


def test_the_error_without_clamping_by_hand():
    free = dchi.unclamped(SAMPLES, dchi.COUNTS, 0.7)
    result = dchi.unclamped_error(SAMPLES, dchi.COUNTS, [0.7])
    assert result.shape == (8, 1)
    by_hand = [abs(sum(int(free[3, i, j]) - int(SAMPLES.day[3, i, j]) for i in range(100))) for j in range(29)]
    assert result[3, 0] == pytest.approx(sum(by_hand) / 29)
    assert (result < dchi.error(SAMPLES, dchi.COUNTS, [0.7])).all()  # of few visits the zeros are most


def test_what_is_added_and_moved_by_hand():
    perturbed, true = perturbed_profiles(SAMPLES, dchi.NEAR_COUNTS, 0.7)[2].tolist(), SAMPLES.day[2].tolist()
    pairs = [(s, t) for rows in zip(perturbed, true, strict=True) for s, t in zip(*rows, strict=True)]
    added = dchi.added(SAMPLES, dchi.NEAR_COUNTS, 0.7)
    assert added.visited[2] == pytest.approx(sum(s - t for s, t in pairs if t > 0) / 29)
    assert added.others[2] == pytest.approx(sum(s - t for s, t in pairs if t == 0) / 29)
    share = sum(abs(s - t) for s, t in pairs if t > 0) / sum(t for _, t in pairs if t > 0)
    assert dchi.mean_change(SAMPLES, dchi.NEAR_COUNTS, 0.7)[2] == pytest.approx(share)  # χ holds all visited POIs


def test_booleans_are_refused():
    refuses("booleans are not clamped", dchi.unclamped, SAMPLES, dchi.BOOLEANS, 1.0)
