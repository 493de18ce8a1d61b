"""Optimal channels where numbers are extreme: exponents beyond a double, nearly equal secrets, costs that never fall due."""

import naive_channels as naive
import numpy as np
import pytest

from mobpriv.channels import guarantees, optimal
from mobpriv.channels import nearby as approximation
from mobpriv.channels.distances import hamming
from mobpriv.channels.inference import prior_error
from mobpriv.channels.programs import certificate
from mobpriv.channels.programs.solvers import generation

LINE = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
PRIOR = np.array([0.1, 0.1, 0.4, 0.3, 0.1])
FEW = np.array([0.5, 0.0, 0.5, 0.0, 0.0])


@pytest.mark.parametrize("epsilon", [180.0, 720.0, 1e3, 1e6])
@pytest.mark.parametrize("prior", [PRIOR, FEW])
def test_no_probability_becomes_zero(epsilon, prior):
    """exp(-720) is subnormal and exp(-1000) is 0, but exp(B) p(o|s') >= p(o|s) asks for p(o|s') > 0 at every finite B."""
    result = optimal.differential(prior, hamming(5), LINE, epsilon)
    assert result.certificate.exact, str(result.certificate)
    used = result.channel.any(axis=0)
    assert (result.channel[:, used] > 0).all()
    assert result.certificate.epsilon <= epsilon * (1 + 1e-9)
    near = approximation.joint(prior, hamming(5), LINE, 0.2, LINE, epsilon, LINE, 9.0)
    assert near.certificate.epsilon <= epsilon * (1 + 1e-9)


def test_a_zero_is_a_violation_whatever_the_exponent():
    assert guarantees.violation(np.array([[0.75, 0.25], [0.0, 1.0]]), np.array([[0.0, 1e4], [1e4, 0.0]])) == 0.75
    assert guarantees.violation(np.eye(2), np.array([[0.0, np.inf], [np.inf, 0.0]])) == 0


@pytest.mark.parametrize("epsilon", [1e-300, 1e-17, 1e-12])
@pytest.mark.parametrize("worst_case", [False, True])
def test_epsilon_next_to_zero_tells_nothing(epsilon, worst_case):
    result = optimal.joint(PRIOR, hamming(5), LINE, 0.5, LINE, epsilon, worst_case)
    assert result.certificate.exact, str(result.certificate)
    assert result.certificate.cost == pytest.approx(0.8 if worst_case else 0.6)
    assert (result.channel == result.channel[0]).all()
    assert result.certificate.bound <= result.certificate.cost


def test_secrets_that_are_nearly_the_same():
    """The first two are 1e-13 apart: there is no room inside their constraint, and a channel all the same."""
    d = np.array([[0.0, 1e-13, 1.0], [1e-13, 0.0, 1.0], [1.0, 1.0, 0.0]])
    result = optimal.differential([0.5, 0.2, 0.3], hamming(3), d, 1.0).certificate
    expected = naive.optimum([0.5, 0.2, 0.3], hamming(3), naive.differential_pairs(d, 1.0))
    assert result.violation <= 1e-11
    assert result.cost == pytest.approx(expected, rel=1e-4)
    assert result.bound <= expected * (1 + 1e-8)
    # an unbound third secret, so that not every exponent is small
    assert optimal.within([0.5, 0.2, 0.3], hamming(3), d, 1e-17, 0.5).certificate.violation <= 1e-11


@pytest.mark.parametrize("order", ["C", "F"])
def test_within_takes_matrices_in_any_order(order):
    result = optimal.within(PRIOR, hamming(5), np.array(LINE, order=order), 1.0, 1.5).certificate
    assert result.exact
    assert result.cost == pytest.approx(naive.optimum(PRIOR, hamming(5), naive.within_pairs(LINE, 1.0, 1.5)), rel=1e-7)


@pytest.mark.parametrize("shift", [1.0, 2.0])
def test_the_rule_of_the_largest_distortion_minds_no_constant_in_the_cost(shift):
    """c - 1 has the same optimal channels as c, and negative costs: the largest AP among them is the same."""
    expected = optimal.differential(PRIOR, hamming(5), LINE, 1.0, error=LINE).certificate
    result = optimal.differential(PRIOR, hamming(5) - shift, LINE, 1.0, error=LINE).certificate
    assert result.exact
    assert result.cost == pytest.approx(expected.cost - shift, abs=1e-7)
    assert result.distortion == pytest.approx(expected.distortion, rel=1e-5)


def test_costs_that_never_fall_due_excuse_no_gap():
    """A secret that never occurs and an observable that is never given cost 1e12: 1e-14 of that is a hundredth."""
    cost = np.column_stack([hamming(5), np.full(5, 1e12)])
    cost[1] = 1e12
    result = optimal.differential(FEW, cost, LINE, 1.0).certificate
    assert result.exact
    assert result.unit <= 1
    assert result.cost == pytest.approx(optimal.differential(FEW, hamming(5), LINE, 1.0).certificate.cost, rel=1e-7)


def test_a_gap_where_the_cost_is_zero():
    assert certificate.Certificate(0.0, -1e-3, 0.0, 1.0, None, unit=1.0).gap == np.inf
    assert certificate.Certificate(0.0, -1e-15, 0.0, 1.0, None, unit=1.0).gap == 0
    certain = optimal.differential(np.eye(5)[2], hamming(5), LINE, 1.0)
    assert certain.certificate.exact
    assert certain.certificate.cost == 0


def test_errors_too_uneven_for_generation():
    """d_max is 1e-28 of the errors: HiGHS refuses the rows, and (21) is solved otherwise."""
    prior = np.array([1.0, 1e-28, 0.0])
    error = hamming(3)
    d_m = 0.5 * prior_error(prior, error)
    none = np.empty(0, dtype=np.int64)
    unbound = certificate.PairConstraints(np.zeros(4, dtype=np.int64), none, none, np.empty(0))
    cost, F = np.ascontiguousarray(prior[:2] * hamming(3)[:, :2]), np.ascontiguousarray((prior * error.T)[:, :2])
    program = certificate.Program(cost, unbound, F, d_m)
    with pytest.raises(generation.Stopped):
        generation.solve(program, 1e-8)
    result = optimal.distortion(prior, hamming(3), error, d_m)
    assert result.channel.sum(1) == pytest.approx(np.ones(3))
    assert result.certificate.cost <= d_m * (1 + 1e-7)


@pytest.mark.parametrize("tiny", [1e-16, 1e-20, 1e-28])
@pytest.mark.parametrize("secrets", [3, 6])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_priors_below_any_tolerance_leave_the_distortion_privacy_asked_for(tiny, secrets, share):
    """All but one secret hardly ever occur: d_m is 1e-28 of a metre, and every solver's tolerance larger."""
    prior = np.append(1 - (secrets - 1) * tiny, np.full(secrets - 1, tiny))
    line = np.abs(np.subtract.outer(np.arange(float(secrets)), np.arange(float(secrets))))
    cost, d_m = hamming(secrets), share * prior_error(prior, line)
    for result in (
        optimal.distortion(prior, cost, line, d_m),
        optimal.joint(prior, cost, line, d_m, line, 40.0),
        optimal.joint(prior, cost, line, d_m, line, 40.0, worst_case=True),
    ):
        assert result.certificate.distortion >= d_m * (1 - 1e-9), str(result.certificate)
        assert result.certificate.bound <= result.certificate.cost * (1 + 1e-9), str(result.certificate)


def test_a_secret_that_would_have_to_answer_too_often():
    """Four cells 2 apart, each 1 from a fifth that never occurs, ε = 1, Hamming.

    Without the fifth p(right) = 1/(1 + 3 e^-2) = 0.711. It would have to give each of four answers with at least e^-1 · 0.711,
    in sum 1.046 > 1: it belongs into the program.
    """
    d = np.where(np.eye(5, dtype=bool), 0.0, 2.0)
    d[4, :4] = d[:4, 4] = 1.0
    prior = np.array([0.25, 0.25, 0.25, 0.25, 0.0])
    result = optimal.differential(prior, hamming(5), d, 1.0).certificate
    assert result.exact
    assert result.secrets == 5
    assert result.cost == pytest.approx(naive.optimum(prior, hamming(5), naive.differential_pairs(d, 1.0)), rel=1e-7)
    assert result.cost > 1 - 1 / (1 + 3 * np.exp(-2)) + 1e-3


def test_an_observable_that_is_cheaper_for_two_secrets():
    """Observable 0 saves 1 at secrets 0 and 1 and costs 3 more at secret 2, near 0 and far from 1: it is given at 1.

    Seen from 0, q(1) may be exp(2), q(2) is at least exp(-0.1): -1 - 7.39 + 2.71 < 0, so it stays.
    """
    d = np.array([[0.0, 2.0, 0.1], [2.0, 0.0, 2.0], [0.1, 2.0, 0.0]])
    prior, cost = np.full(3, 1 / 3), np.array([[0.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
    result = optimal.differential(prior, cost, d, 1.0).certificate
    expected = naive.optimum(prior, cost, naive.differential_pairs(d, 1.0))
    assert expected < 2 / 3 - 1e-2  # what always giving 1 costs
    assert result.cost == pytest.approx(expected, rel=1e-7)


def test_the_largest_distortion_there_is():
    """d_m = d_max, which the prior's sum and the program's may give in different last digits."""
    prior = np.array([1.0, 4.0, 4.0]) / 9
    a, b, c = np.sqrt(13) / 3, 4 / 3, np.sqrt(5) / 3
    d = np.array([[0.0, a, b], [a, 0.0, c], [b, c, 0.0]])
    d_m = prior_error(prior, d)
    result = optimal.distortion(prior, hamming(3), d, d_m).certificate
    assert result.exact, str(result)
    assert result.cost == pytest.approx(naive.optimum(prior, hamming(3), {}, d, d_m), rel=1e-7)
