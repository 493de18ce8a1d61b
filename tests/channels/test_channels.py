"""Optimal channels: the paper's programs against the twin, recorded optima, closed forms, bounds from both sides, bad input."""

import json

import naive_channels as naive
import numpy as np
import pytest
from conftest import refusals
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_channels import cells

from mobpriv.channels import guarantees, inference, nearby, optimal
from mobpriv.channels.distances import euclidean, hamming
from mobpriv.channels.programs import certificate, relaxations
from mobpriv.channels.programs.problem import ChannelProblem
from mobpriv.channels.programs.solvers import highs, interior

FEW = settings(max_examples=25)


@st.composite
def problems(draw, max_secrets=5, square=False):
    """(prior, cost, d): places on a plane, priors with zeros, costs of every kind, observables fewer or more than secrets."""
    n = draw(st.integers(2, max_secrets))
    place = st.tuples(st.integers(0, 6), st.integers(0, 6))
    d = euclidean(np.array(draw(st.lists(place, min_size=n, max_size=n, unique=True)), float) / 3)
    weights = np.array(draw(st.lists(st.integers(0, 5), min_size=n, max_size=n).filter(any)), float)
    kind = draw(st.sampled_from(["hamming", "euclidean"] + ([] if square else ["any"])))
    if kind == "any":
        m = draw(st.integers(1, max_secrets))
        numbers = st.lists(st.integers(0, 9), min_size=m, max_size=m)
        cost = np.array(draw(st.lists(numbers, min_size=n, max_size=n)), float)
    else:
        cost = hamming(n) if kind == "hamming" else d.copy()
    return weights / weights.sum(), cost, d


epsilons = st.sampled_from([0.05, 0.5, 1.0, 3.0])  # larger ones leave costs near 0, of which no solver finds eight digits
shares = st.sampled_from([0.0, 0.3, 0.7, 0.95, 1.0])


def reached(optimum, expected):
    """The channel is said to be exact and costs what the twin says."""
    assert optimum.certificate.exact, str(optimum.certificate)
    assert optimum.certificate.cost == pytest.approx(expected, rel=1e-7, abs=1e-8)
    assert optimum.channel.sum(1) == pytest.approx(np.ones(len(optimum.channel)), abs=1e-12)
    assert optimum.channel.min() >= 0


# --- the recorded optima


def test_recorded_optima(reference):
    """120 problems (21), (22), (24) on 6 × 5 and 10 × 8 cells: inside the recorded bracket and within 1e-7 of its top; d_max, in km."""
    recorded = json.loads((reference / "channels" / "optima.json").read_text())["cases"]
    priors = np.load(reference / "channels" / "priors.npz")
    for case in recorded:
        d = cells(*map(int, case["grid"].split("x")), *case["area_km"])
        prior, cost, d_m, epsilon = priors[case["prior"]], hamming(len(d)), case["dm_km"], case["eps_per_km"]
        assert inference.prior_error(prior, d) == pytest.approx(case["dmax_km"], rel=1e-9)
        if case["problem"] == "LP21":
            result = optimal.distortion(prior, cost, d, d_m)
        elif case["problem"] == "LP22":
            result = optimal.differential(prior, cost, d, epsilon)
        else:
            result = optimal.joint(prior, cost, d, d_m, d, epsilon)
        assert result.certificate.exact, (case, str(result.certificate))
        assert result.certificate.cost == pytest.approx(case["optimum"], rel=1e-7), case
        assert result.certificate.cost >= case["certified_lower"] * (1 - 1e-8), case


@pytest.mark.parametrize("solver", [interior, highs])
@pytest.mark.parametrize(("kind", "expected"), [("euclid", 1.53699432973749), ("hamming", 0.823231764821295)])
def test_optima_of_another_program(reference, solver, kind, expected):
    """6 × 5 unit cells, ε = ln 2, a uniform prior: costs that the qif library found, and what its own channels cost and keep."""
    d, prior = cells(6, 5, 6.0, 5.0), np.full(30, 1 / 30)
    cost = hamming(30) if kind == "hamming" else d
    channel, bound, _ = relaxations.solve(ChannelProblem(prior, cost, np.log(2) * d), solver)
    assert prior @ (channel * cost).sum(1) == pytest.approx(expected, rel=1e-8)
    assert bound == pytest.approx(expected, rel=1e-8)
    recorded = np.load(reference / "channels" / f"qif_geoind_6x5_{kind}_uniform.npz")
    assert recorded["D"] == pytest.approx(d)
    assert prior @ (recorded["C"] * cost).sum(1) == pytest.approx(expected, rel=1e-8)
    assert guarantees.violation(recorded["C"], np.log(2) * d) <= 1e-7


# --- the twin


@FEW
@given(problems(), epsilons, st.booleans())
def test_differential_equals_the_twin(problem, epsilon, worst_case):
    prior, cost, d = problem
    result = optimal.differential(prior, cost, d, epsilon, worst_case=worst_case)
    reached(result, naive.optimum(prior, cost, naive.differential_pairs(d, epsilon), None, None, worst_case))
    assert result.certificate.epsilon <= epsilon * (1 + 1e-9)


@FEW
@given(problems(), shares)
def test_distortion_equals_the_twin(problem, share):
    prior, cost, d = problem
    d_m = share * inference.prior_error(prior, d)
    result = optimal.distortion(prior, cost, d, d_m)
    reached(result, naive.optimum(prior, cost, {}, d, d_m))
    assert result.certificate.distortion >= d_m * (1 - 1e-9)


@FEW
@given(problems(), epsilons, shares, st.booleans())
def test_joint_equals_the_twin(problem, epsilon, share, worst_case):
    prior, cost, d = problem
    d_m = share * inference.prior_error(prior, d)
    result = optimal.joint(prior, cost, d, d_m, d, epsilon, worst_case)
    reached(result, naive.optimum(prior, cost, naive.differential_pairs(d, epsilon), d, d_m, worst_case))
    assert result.certificate.distortion >= d_m * (1 - 1e-9)
    assert result.certificate.epsilon <= epsilon * (1 + 1e-9)


@FEW
@given(problems(), epsilons, st.sampled_from([0.4, 0.7, 1.0, 1.5, 3.0]), st.booleans())
def test_within_equals_the_twin(problem, epsilon, threshold, worst_case):
    """Also where the threshold leaves secrets or whole groups of them unbound."""
    prior, cost, d = problem
    result = optimal.within(prior, cost, d, epsilon, threshold, worst_case)
    reached(result, naive.optimum(prior, cost, naive.within_pairs(d, epsilon, threshold), None, None, worst_case))


@FEW
@given(problems(square=True), st.sampled_from([0.5, 1.0, 3.0]))
def test_the_rule_of_the_largest_distortion(problem, epsilon):
    """Of all channels of least cost the one of largest AP, and the bound that no other has more."""
    prior, cost, d = problem
    result = optimal.differential(prior, cost, d, epsilon, error=d).certificate
    pairs = naive.differential_pairs(d, epsilon)
    least = naive.optimum(prior, cost, pairs)
    largest = naive.largest_distortion(prior, cost, pairs, d, least * (1 + 1e-9))
    assert result.exact
    assert result.cost == pytest.approx(least, rel=1e-7, abs=1e-8)
    assert result.distortion == pytest.approx(largest, rel=1e-5, abs=1e-6)
    assert result.distortion_bound is None or result.distortion_bound >= result.distortion - 1e-9


# --- closed forms and properties


def test_the_bound_on_privacy_is_tight_from_both_sides():
    """Every cell likely, Hamming cost: ε binds. The channel keeps ε and breaks 0.999 ε, in the certificate and in the audit."""
    d, rng = cells(4, 3, 4000.0, 3000.0), np.random.default_rng(3)
    prior = rng.dirichlet(np.full(12, 5.0))
    epsilon = 0.6e-3
    result = optimal.differential(prior, hamming(12), d, epsilon)
    assert result.certificate.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert guarantees.violation(result.channel, epsilon * d) == result.certificate.violation <= 1e-9
    assert guarantees.violation(result.channel, 0.999 * epsilon * d) > 1e-5


@FEW
@given(problems(), epsilons, st.integers(0, 2**32))
def test_any_multipliers_bound_the_cost_from_below(problem, epsilon, seed):
    """Weak duality: whatever the weights, as the definition sums them up and as the package does."""
    prior, cost, d = problem
    rng = np.random.default_rng(seed)
    n, m = cost.shape
    weights = rng.exponential(0.1, (m, n, n)) * (rng.random((m, n, n)) < 0.5)
    source, target = np.nonzero(~np.eye(n, dtype=bool))
    of_each = (np.tile(column, m) for column in (source, target, np.exp(-epsilon * d[source, target])))
    pairs = certificate.PairConstraints(np.arange(m + 1) * len(source), *of_each)
    program = certificate.Program(np.ascontiguousarray((prior[:, None] * cost).T), pairs, np.zeros((0, n)))
    bound = certificate.lower_bound(program, certificate.Multipliers(weights[:, source, target].ravel(), np.zeros((m, 0)), 0.0))
    assert bound == pytest.approx(naive.bound_of(prior, cost, d, epsilon, weights), abs=1e-12)
    assert bound <= naive.optimum(prior, cost, naive.differential_pairs(d, epsilon)) + 1e-9


# --- the approximation of Appendix C


@FEW
@given(problems(square=True), epsilons, shares, st.sampled_from([0.4, 0.7, 1.0, 1.5, 9.0]))
def test_nearby_equals_the_twin(problem, epsilon, share, threshold):
    prior, cost, d = problem
    d_m = share * inference.prior_error(prior, d)
    result = nearby.joint(prior, cost, d, d_m, d, epsilon, d, threshold)
    pairs = {(s, t): e for (s, t), e in naive.differential_pairs(d, epsilon).items() if d[s, t] < threshold}
    expected = naive.optimum(prior, cost, pairs, d, d_m, kept=lambda s, t, o: d[o, s] < threshold)
    assert result.certificate.cost == pytest.approx(expected, rel=1e-7, abs=1e-8)
    assert result.certificate.gap <= 1e-8
    assert result.certificate.distortion >= d_m * (1 - 1e-9)
    assert result.channel.sum(1) == pytest.approx(np.ones(len(d)), abs=1e-12)
    assert result.constraints == sum(d[o, s] < threshold for s, _ in pairs for o in range(len(d)))
    for (s, t), exponent in pairs.items():
        allowed = result.channel[s] - np.exp(exponent) * result.channel[t]
        assert (allowed[d[s] < threshold] <= 1e-9).all()
    worst = max(
        np.maximum(result.channel[s] - np.exp(e) * result.channel[t], 0).sum()
        for (s, t), e in naive.differential_pairs(d, epsilon).items()
    )
    assert result.delta == pytest.approx(worst, abs=1e-12)


def test_nearby_takes_the_optimum_of_largest_distortion_privacy():
    """With all constraints it is the channel that the rule takes for (22); both are held against the program written out."""
    prior, d = np.array([5, 1, 5, 4]) / 15, np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    rule = optimal.differential(prior, hamming(4), d, 1.5, error=d)
    result = nearby.joint(prior, hamming(4), d, 0.3, d, 1.5, d, 9.0)
    assert result.certificate.cost == pytest.approx(rule.certificate.cost, rel=1e-8)
    assert result.certificate.distortion == pytest.approx(rule.certificate.distortion, rel=1e-6)
    assert result.certificate.distortion <= result.certificate.distortion_bound * (1 + 1e-9)
    assert result.certificate.distortion_bound == pytest.approx(result.certificate.distortion, rel=1e-4)  # far below d_max
    pairs, least = naive.differential_pairs(d, 1.5), result.certificate.cost * (1 + 1e-9)
    largest = naive.largest_distortion(prior, hamming(4), pairs, d, least)
    assert result.certificate.distortion == pytest.approx(largest, rel=1e-5)
    assert optimal.joint(prior, hamming(4), d, 0.3, d, 1.5).certificate.distortion < 0.95 * result.certificate.distortion


def test_nearby_breaks_what_it_promises():
    """Cells 1 apart on a line, ε = 1, threshold 1: no constraint is left, everybody tells the truth, and ε is gone."""
    d, prior = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0))), np.full(3, 1 / 3)
    result = nearby.joint(prior, hamming(3), d, 0.0, d, 1.0, d, 1.0)
    assert result.constraints == 0
    assert result.certificate.cost == pytest.approx(0, abs=1e-8)
    assert result.delta == pytest.approx(1)
    assert not result.certificate.exact
    # all constraints: the optimum itself
    full = nearby.joint(prior, hamming(3), d, 0.5, d, 1.0, d, 9.0)
    assert full.constraints == 3 * 3 * 2
    assert full.certificate.exact
    assert full.certificate.cost == pytest.approx(optimal.joint(prior, hamming(3), d, 0.5, d, 1.0).certificate.cost, rel=1e-8)
    assert full.epsilon_seen == pytest.approx(1.0)
    assert full.delta <= 1e-9


# --- corners


D3 = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
UNIFORM = np.full(3, 1 / 3)


def test_epsilon_zero_tells_nothing():
    """The least costly observable for everybody: column sums of d are 7, 8, 9."""
    result = optimal.differential(UNIFORM, D3, D3, 0.0)
    reached(result, 7 / 3)
    assert (result.channel == [1, 0, 0]).all()
    assert result.certificate.epsilon == 0
    # in the worst case a lottery is better than any one observable: for Hamming any of three, each with 1/3
    worst = optimal.differential(UNIFORM, hamming(3), D3, 0.0, worst_case=True)
    reached(worst, 2 / 3)
    assert worst.channel == pytest.approx(np.full((3, 3), 1 / 3))


@pytest.mark.parametrize(
    ("epsilon", "worst_case"), [(10.0, False), (100.0, False), (1000.0, False), (1e6, False), (1000.0, True), (1e6, True)]
)
def test_epsilon_so_large_that_its_powers_overflow(epsilon, worst_case):
    """exp(1e6 · 5) is beyond any double; the channel tells the truth and costs, up to rounding, nothing."""
    result = optimal.differential(UNIFORM, D3, D3, epsilon, worst_case=worst_case)
    assert result.certificate.exact, str(result.certificate)
    assert result.certificate.cost == pytest.approx(0, abs=1e-9)
    assert result.channel == pytest.approx(np.eye(3), abs=1e-9)


def test_one_cell():
    for result in (
        optimal.differential([1.0], [[2.0]], [[0.0]], 1.0),
        optimal.differential([1.0], [[3.0, 2.0]], [[0.0]], 1.0),
        optimal.joint([1.0], [[2.0]], [[0.0]], 0.0, [[0.0]], 1.0),
        optimal.joint([1.0], [[2.0, 3.0]], [[0.0]], 0.0, [[0.0]], 1.0),
        optimal.distortion([1.0], [[3.0, 2.0]], [[0.0]], 0.0, worst_case=True),
        optimal.within([1.0], [[3.0, 2.0]], [[0.0]], 1.0, 5.0),
    ):
        reached(result, 2.0)


def test_one_observable():
    reached(optimal.joint(UNIFORM, [[1.0], [2.0], [3.0]], D3, 1.0, D3, 1.0), 2.0)
    reached(optimal.joint(UNIFORM, [[1.0], [2.0], [3.0]], D3, 1.0, D3, 1.0, worst_case=True), 3.0)


def test_arguments_are_left_as_they_are():
    given_ = UNIFORM.copy(), hamming(3), D3.copy(), D3.copy()
    optimal.joint(given_[0], given_[1], given_[2], 2.0, given_[3], 0.1)
    for one, was in zip(given_, (UNIFORM, hamming(3), D3, D3), strict=True):
        assert (one == was).all()


BENT = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]])


test_bad_input_is_refused_with_the_rule_and_the_value = refusals(
    (lambda: optimal.differential([0.5, 0.4, 0.0], D3, D3, 1.0), r"sum to 1 within 1e-09 \(got 0\.9\)"),
    (lambda: optimal.differential(UNIFORM, D3, BENT, 1.0), r"d_epsilon breaks the triangle inequality at \(2, 1, 0\)"),
    (lambda: optimal.joint(UNIFORM, D3, D3, 1.0, BENT, 1.0), r"triangle inequality at \(2, 1, 0\)"),
    (lambda: optimal.within(UNIFORM, D3, BENT, 1.0, 1.0), r"triangle inequality at \(2, 1, 0\)"),
    (lambda: optimal.differential(UNIFORM, D3, D3[:2, :2], 1.0), r"d_epsilon .* 3 \(got shape \(2, 2\)\)"),
    (lambda: optimal.differential(UNIFORM, D3, D3, -1.0), r"epsilon .* \(got -1\.0\)"),
    (lambda: optimal.differential(UNIFORM, D3, D3, np.nan), r"epsilon .* \(got nan\)"),
    (lambda: optimal.differential(UNIFORM, D3, D3, np.inf), r"epsilon .* \(got inf\)"),
    (lambda: optimal.within(UNIFORM, D3, D3, 1.0, 0.0), r"threshold must be positive.*\(got 0\.0\)"),
    (lambda: optimal.within(UNIFORM, D3, D3, 0.0, 1.0), r"epsilon must be positive.*\(got 0\.0\)"),
    # d_max: guessing cell 0 errs by (3 + 4)/3
    (lambda: optimal.joint(UNIFORM, D3, D3, 2.4, D3, 1.0), r"d_m = 2\.4.*d_max = 2\.33333333 .*choose"),
    (lambda: optimal.distortion(UNIFORM, D3, D3, 2.4), r"d_max = 2\.33333333"),
    (lambda: optimal.distortion(UNIFORM, D3, D3, -1.0), r"d_m = -1.*0 <= d_m <= d_max"),
    (lambda: optimal.distortion(UNIFORM, D3, D3, np.nan), r"d_m = nan"),
    (lambda: optimal.distortion(UNIFORM, D3, -D3, 1.0), r"error must not be negative"),
    (lambda: optimal.distortion(UNIFORM, D3, D3[:2], 1.0), r"error must have 3 rows"),
    (lambda: optimal.differential(UNIFORM, np.zeros((3, 0)), D3, 1.0), r"cost .* at least one row and one column"),
    (lambda: optimal.differential(UNIFORM, D3[:2], D3, 1.0), r"cost must have 3 rows"),
    (lambda: optimal.differential(UNIFORM, D3 * np.nan, D3, 1.0), r"cost must be finite \(got nan at \[0, 0\]\)"),
    (lambda: optimal.differential([], np.zeros((0, 0)), np.zeros((0, 0)), 1.0), r"prior|d_epsilon"),
    (lambda: optimal.differential(UNIFORM, D3, D3, 1.0, error=D3, worst_case=True), r"average cost"),
    (lambda: nearby.joint(UNIFORM, D3, D3, 1.0, D3, 1.0, D3, 0), r"threshold must be positive.*\(got 0\)"),
    (
        lambda: nearby.joint(UNIFORM, D3[:, :2], D3, 1.0, D3, 1.0, D3, 1.0),
        r"cost .* a column a secret, 3 \(got shape \(3, 2\)\)",
    ),
    (lambda: nearby.joint(UNIFORM, D3, D3, 5.0, D3, 1.0, D3, 1.0), "d_max"),
)
