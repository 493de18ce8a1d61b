"""The programs as the paper writes them, against a twin that writes them row by row in plain Python."""

from itertools import product

import naive_channels as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.channels import inference, optimal
from mobpriv.channels.distances import euclidean, hamming
from mobpriv.channels.programs import written


@st.composite
def problems(draw, max_places=4):
    """Prior, cost, distances of a few places in the plane; some cells may never occur."""
    n = draw(st.integers(2, max_places))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    prior = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.8)
    prior = prior / prior.sum() if prior.sum() else np.full(n, 1 / n)
    return prior, rng.random((n, n)), euclidean(rng.random((n, 2)))


@settings(max_examples=25)
@given(problems(), st.floats(0.2, 3), st.floats(0.1, 0.95))
def test_it_equals_the_twin(problem, epsilon, share):
    prior, cost, d = problem
    d_m, pairs, n = share * inference.prior_error(prior, d), naive.differential_pairs(d, epsilon), len(prior)
    both = written.optimum(prior, cost, d, d_m, d, epsilon)
    assert both.cost == pytest.approx(naive.optimum(prior, cost, pairs, d, d_m), abs=1e-8)
    assert both.inequalities == n * n * (n - 1) + n * n + 1  # (24d), (24b), (24c)
    private, private_rows = written.optimum(prior, cost, d_epsilon=d, epsilon=epsilon)
    assert (private, private_rows) == (pytest.approx(naive.optimum(prior, cost, pairs), abs=1e-8), n * n * (n - 1))
    hidden, hidden_rows = written.optimum(prior, cost, d, d_m)
    assert (hidden, hidden_rows) == (pytest.approx(naive.optimum(prior, cost, {}, d, d_m), abs=1e-8), n * n + 1)


def test_what_is_left_out_is_left_out():
    """Two ends of a line on which the middle is never visited: 1/(2e) with its row, 1/(1 + e²) without, and the pairs as given."""
    half, line = np.array([0.5, 0.0, 0.5]), euclidean(np.column_stack([np.arange(3.0), np.zeros(3)]))
    full = written.optimum(half, hamming(3), d_epsilon=line, epsilon=1.0)
    assert full == (pytest.approx(1 / (2 * np.e)), 18)
    ends = written.optimum(half, hamming(3), d_epsilon=line, epsilon=1.0, secrets=[0, 2])
    assert ends == (pytest.approx(1 / (1 + np.e**2)), 6)
    assert written.optimum(half, hamming(3), d_epsilon=line, epsilon=1.0, observables=[0, 2]) == (full.cost, 12)
    neighbours = (np.array([0, 1, 1, 2]), np.array([1, 0, 2, 1]))
    assert written.optimum(half, hamming(3), d_epsilon=line, epsilon=1.0, pairs=neighbours) == (pytest.approx(full.cost), 12)
    result = written.optimum(half, hamming(3), line, 0.5, estimates=[1])  # the middle is no wrong guess: 1 from both ends
    assert result == (pytest.approx(0.0, abs=1e-9), 4)


@settings(max_examples=25)
@given(problems(max_places=3), st.floats(0.1, 0.95))
def test_the_game_has_the_value_of_the_program(problem, share):
    """Theorem 1: the least cost over all attacks that can be best responses is that of (21)."""
    prior, cost, d = problem
    d_m, n = share * inference.prior_error(prior, d), len(prior)
    answers = product(range(n), repeat=n)
    game = min(written.with_best_response(prior, cost, d, d_m, answer) for answer in answers)
    assert game == pytest.approx(optimal.distortion(prior, cost, d, d_m).certificate.cost, abs=1e-7)


def test_who_answers_wrongly_is_no_best_response():
    """Two places of which one is far likelier: naming the other whatever is said is best for no channel that keeps d_m."""
    prior, d = np.array([0.9, 0.1]), hamming(2)
    assert written.with_best_response(prior, hamming(2), d, 0.05, [1, 1]) == np.inf
    # half of the rare place's truth
    assert written.with_best_response(prior, hamming(2), d, 0.05, [0, 1]) == pytest.approx(0.05)


@pytest.mark.parametrize("given", [{}, {"epsilon": 1.0}, {"d_m": 0.1}, {"error": hamming(2), "d_m": 0.1, "epsilon": 1.0}])
def test_half_a_program_is_refused(given):
    with pytest.raises(ValueError, match="error goes with d_m, d_epsilon with epsilon"):
        written.optimum([0.5, 0.5], hamming(2), **given)


def test_a_program_without_a_solution_says_so():
    with pytest.raises(RuntimeError, match="HiGHS found no optimum of the program as written"):
        written.optimum([0.5, 0.5], hamming(2), hamming(2), 0.9)
