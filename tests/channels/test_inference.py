"""Attacks on channels: the paper's equations against the twins, worked examples, optimality, refused input."""

import naive_inference as naive
import numpy as np
import pytest
from conftest import refusals, refuses
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.channels import checks, inference
from mobpriv.channels.distances import euclidean, hamming
from mobpriv.channels.programs.solvers import minmax

FEW = settings(max_examples=25)


@st.composite
def games(draw, secrets=4, observables=4, estimates=4):
    """(prior, channel, error): probabilities in steps, so that zeros, unseen observables and ties turn up."""
    s, o, e = (draw(st.integers(1, maximum)) for maximum in (secrets, observables, estimates))
    weights = st.integers(0, 4)
    prior = np.array(draw(st.lists(weights, min_size=s, max_size=s).filter(any)), float)
    channel = np.array(draw(st.lists(st.lists(weights, min_size=o, max_size=o).filter(any), min_size=s, max_size=s)), float)
    error = np.array(draw(st.lists(st.lists(st.integers(0, 9), min_size=e, max_size=e), min_size=s, max_size=s)), float)
    return prior / prior.sum(), channel / channel.sum(1, keepdims=True), error


# two places 10 m apart, π = (3/4, 1/4); the first is told truly with 2/3, the second always truly
PRIOR = np.array([0.75, 0.25])
CHANNEL = np.array([[2 / 3, 1 / 3], [0.0, 1.0]])
ERROR = np.array([[0.0, 10.0], [10.0, 0.0]])


def test_worked_example():
    """Joint probabilities: π p = (1/2, 1/4; 0, 1/4). On "2" both places are equally likely: the tie goes to place 0."""
    assert inference.optimal_attack(PRIOR, CHANNEL, ERROR).tolist() == [0, 0]
    assert inference.distortion_privacy(PRIOR, CHANNEL, ERROR, np.array([0, 0])) == pytest.approx(0.25 * 10)
    # Bayes draws from (1, 0) and from (1/2, 1/2): place 0 is mistaken in 1/3 · 1/2, place 1 in 1/2 of the cases
    q = inference.bayes(PRIOR, CHANNEL)
    assert q == pytest.approx(np.array([[1, 0], [0.5, 0.5]]))
    assert inference.conditional_error(CHANNEL, ERROR, q) == pytest.approx([10 / 6, 5])
    assert inference.distortion_privacy(PRIOR, CHANNEL, ERROR, q) == pytest.approx(0.75 * 10 / 6 + 0.25 * 5)
    # equal weights: on "2" place 1 weighs 1 against 1/3
    assert inference.unweighted_attack(CHANNEL, ERROR).tolist() == [0, 1]
    # (28): on "2" answer place 1 with probability a: errors 10 a / 3 and 10 (1 − a), equal at a = 3/4: y = 2.5
    result = inference.minmax_attack(CHANNEL, ERROR)
    assert result.y == pytest.approx(2.5)
    assert result.bound == pytest.approx(2.5)
    assert result.attack == pytest.approx(np.array([[1, 0], [0.25, 0.75]]))
    # (29): only two pairs have an error, so it is the same program
    assert inference.minmax_pair_attack(CHANNEL, ERROR).y == pytest.approx(2.5)
    # without seeing anything: always place 0, wrong with 1/4
    assert inference.prior_error(PRIOR, ERROR) == pytest.approx(2.5)


@FEW
@given(games())
def test_equations_equal_their_twins(game):
    prior, channel, error = game
    attack = inference.optimal_attack(prior, channel, error)
    q = np.eye(error.shape[1])[attack]
    for given_as in (attack, q):
        of_secrets = inference.conditional_error(channel, error, given_as)
        assert of_secrets == pytest.approx(naive.conditional_error(channel, error, q))
        expected = inference.distortion_privacy(prior, channel, error, given_as)
        assert expected == pytest.approx(naive.expected_error(prior, channel, error, q))
        assert expected == pytest.approx(naive.best_deterministic(prior, channel, error))
    assert inference.bayes(prior, channel) == pytest.approx(np.array(naive.bayes(prior, channel)))
    uniform = inference.optimal_attack(np.full(len(prior), 1 / len(prior)), channel, error)
    assert inference.unweighted_attack(channel, error).tolist() == uniform.tolist()


@FEW
@given(games(3, 3, 3), st.booleans())
def test_minmax_equals_the_program_written_out(game, by_pair):
    _, channel, error = game
    result = (inference.minmax_pair_attack if by_pair else inference.minmax_attack)(channel, error)
    y = naive.minmax(channel, error, by_pair)
    assert result.y == pytest.approx(y, rel=1e-6, abs=1e-9)
    assert result.bound <= y + 1e-6
    errors = (channel @ result.attack) * error if by_pair else inference.conditional_error(channel, error, result.attack)
    assert errors.max() == pytest.approx(result.y, rel=1e-9, abs=1e-12)
    assert result.attack.sum(1) == pytest.approx(np.ones(channel.shape[1]))


@FEW
@given(games())
def test_remapping_is_optimal_post_processing(game):
    prior, channel, cost = game
    remapped = inference.remap(prior, channel, cost)
    paid = (prior[:, None] * remapped * cost).sum()
    # the cost after remapping is the error of the optimal attack with the cost as its error
    assert paid == pytest.approx(naive.best_deterministic(prior, channel, cost))
    assert remapped.sum(1) == pytest.approx(np.ones(len(prior)))
    for other in (np.array(naive.remap(prior, channel, cost)), inference.remap(prior, remapped, cost)):
        assert (prior[:, None] * other * cost).sum() == pytest.approx(paid)  # a second remapping gains nothing


def test_a_peers_optimal_channels(reference):
    """Channels that qif found optimal for (22): for Euclidean cost their cost is the error of the optimal attack (c = d)."""
    case = np.load(reference / "channels" / "qif_geoind_6x5_euclid_uniform.npz")
    prior, channel, d = (case[name] for name in ("prior", "C", "D"))
    channel = channel.clip(0) / channel.clip(0).sum(1, keepdims=True)
    attack = inference.optimal_attack(prior, channel, d)
    assert inference.distortion_privacy(prior, channel, d, attack) == pytest.approx(float(case["objective"]), rel=1e-7)
    # under the uniform prior (19) and (27) are one attack
    mean = inference.conditional_error(channel, d, inference.unweighted_attack(channel, d)).mean()
    assert mean == pytest.approx(float(case["objective"]), rel=1e-7)


def test_one_secret_and_unseen_observables():
    assert inference.prior_error([1.0], [[0.0]]) == 0
    assert inference.optimal_attack([1.0], [[1.0]], [[0.0]]).tolist() == [0]
    assert inference.minmax_attack([[1.0]], [[0.0]]).y == 0
    # observable 1 never occurs: the best guess from the prior (place 1), which is not the first column
    prior, channel = np.array([0.2, 0.8]), np.array([[1.0, 0.0], [1.0, 0.0]])
    assert inference.optimal_attack(prior, channel, ERROR).tolist() == [1, 1]
    assert inference.bayes(prior, channel)[1] == pytest.approx(prior)
    for result in (inference.minmax_attack(channel, ERROR), inference.minmax_pair_attack(channel, ERROR)):
        assert result.y == pytest.approx(5)
        assert result.attack[1].sum() == pytest.approx(1)


@pytest.mark.parametrize("by_pair", [False, True])
def test_a_solver_that_stops_early_is_an_error(by_pair, monkeypatch):
    """Without steps it finds nothing, and nothing is passed off as an optimum."""
    monkeypatch.setattr(minmax, "MAX_STEPS", 0)
    monkeypatch.setattr(minmax, "PIVOTS", 0)
    d = euclidean(np.random.default_rng(0).uniform(0, 9, (12, 2)))
    channel = np.exp(-d) / np.exp(-d).sum(1, keepdims=True)
    with pytest.raises(RuntimeError, match="the solver stopped early"):
        minmax.solve(channel, d, by_pair)


def test_arguments_stay():
    arrays = PRIOR.copy(), CHANNEL.copy(), ERROR.copy()
    for array in arrays:
        array.flags.writeable = False
    inference.optimal_attack(*arrays), inference.bayes(*arrays[:2]), inference.remap(*arrays)
    inference.minmax_attack(*arrays[1:]), inference.minmax_pair_attack(*arrays[1:])


def bayes(channel):
    return inference.bayes(PRIOR, channel)


def privacy(attack):
    return inference.distortion_privacy(PRIOR, CHANNEL, ERROR, np.array(attack))


test_bad_input_is_refused = refusals(
    (lambda: inference.optimal_attack([], CHANNEL, ERROR), r"shape \(S,\), S ≥ 1 \(got shape \(0,\)\)"),
    (lambda: inference.optimal_attack(PRIOR, CHANNEL, hamming(3)), "error must have 2 rows"),
    (lambda: inference.minmax_attack(CHANNEL, [[0, 1], [-1, 0]]), r"error must not be negative \(got -1.0 at \[1, 0\]\)"),
    (lambda: bayes([[1.0, 0.0], [0.5, 0.4]]), "row 1 of the channel must sum to 1"),
    (lambda: bayes([[1.0, 0.0], [-1.0, 2.0]]), r"must be not negative \(got -1.0 at secret 1, observable 0\)"),
    (lambda: bayes([[1.0, np.inf], [0.0, 1.0]]), r"channel must be finite \(got inf at \[0, 1\]\)"),
    (lambda: bayes([[], []]), r"channel must be a matrix with at least one row and one column \(got shape \(2, 0\)\)"),
    (lambda: bayes([[1.0, 0.0]]), r"channel must have 2 rows \(got shape \(1, 2\)\)"),
    (lambda: privacy([0, 2]), r"estimate for observable 1 must lie in 0 … 1 \(got 2\)"),
    (lambda: privacy([-1, 0]), r"estimate for observable 0 must lie in 0 … 1 \(got -1\)"),
    (lambda: privacy([0, 1, 1]), r"2 columns of error \(integers\) or a matrix of shape \(2, 2\) \(got shape \(3,"),
    (lambda: privacy([0.0, 1.0]), r"got shape \(2,\) of float64"),
    (lambda: privacy([[1.0, 0.0], [0.5, 0.0]]), r"row 1 of the attack must be probabilities that sum to 1 \(got the sum 0.5\)"),
)


@FEW
@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_metrics_are_told_from_others(n, seed):
    d = np.random.default_rng(seed).integers(1, 4, (n, n)).astype(float)
    d = np.triu(d, 1) + np.triu(d, 1).T
    if naive.is_metric(d):
        assert checks.metric(d) is d
    else:
        refuses("triangle inequality", checks.metric, d)


def test_the_triple_is_named():
    d = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 2.0], [5.0, 2.0, 0.0]])
    refuses(r"at \(2, 1, 0\): d\[2, 0\] = 5 is longer than d\[2, 1\] \+ d\[1, 0\] = 2 \+ 1", checks.metric, d)
    for (i, j), value, message in [
        ((0, 0), 1.0, "to itself must be 0"),
        ((0, 1), 0.0, "between two secrets must be positive"),
        ((0, 1), 1.5, r"symmetric \(d\[0, 1\] = 1.5, d\[1, 0\] = 1\)"),
        ((0, 1), np.nan, "must be finite"),
    ]:
        wrong = hamming(3)
        wrong[i, j] = value
        refuses(message, checks.metric, wrong)
    refuses("must be square", checks.metric, np.ones((2, 3)))
