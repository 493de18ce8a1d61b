"""What Algorithms 13 and 14 tend to, and the binomial rule, against plain computations."""

import math

import numpy as np
import pandas as pd
import pytest

from mobpriv.experiments import dchi_attacks
from mobpriv.experiments.dchi import BOOLEANS, draw, leaked, prepare, published


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(5)
    tables = [pd.DataFrame(rng.poisson(2.0, (80, 9))) for _ in range(2)]
    return draw(prepare(*tables, least=1), np.random.default_rng(1), draws=4, n=60)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_what_the_estimate_tends_to(epsilon):
    d = np.random.default_rng(2).laplace(0, 1 / epsilon, 400_000)
    apart = np.abs(np.floor(1000 + d + 0.5) - 1000)
    error = apart.std() / apart.mean() / math.sqrt(apart.size)
    assert 1 / apart.mean() == pytest.approx(float(dchi_attacks.limit(epsilon)), rel=4 * error)
    assert abs(1 / apart.mean() / epsilon - 1) > 4 * error  # and not to ε


def test_ratio_is_that_of_the_mechanism(samples):
    leak = leaked(samples, BOOLEANS._replace(counts=True), published(samples, BOOLEANS._replace(counts=True), 1.5), "2.2")
    plain = [1 / (np.mean(np.abs(a.astype(float) - b)) * 1.5) for a, b in zip(leak.published, leak.known, strict=True)]
    assert dchi_attacks.ratio(samples, [1.5])[:, 0] == pytest.approx(plain)
    # noise that is neither rounded nor clamped is the same at every ε, but for its scale
    free = dchi_attacks.ratio(samples, [0.5, 4.0], rounded=False, clamped=False)
    assert free[:, 0] == pytest.approx(free[:, 1])


def test_rule_against_plain(samples):
    epsilon, m = 1.0, 9
    p = 1 / (1 + math.e)
    below, delta = 0.0, -1
    while below < 0.8:
        delta += 1
        below += math.comb(m, delta) * p**delta * (1 - p) ** (m - delta)
    said, true = published(samples, BOOLEANS, epsilon), samples.day > 0
    apart = (said != true).sum(axis=-1)
    for d in range(4):
        last = samples.user_order[d, -10:]
        assert dchi_attacks.covered(samples, epsilon, 0.8, left=10)[d].tolist() == [bool(apart[d, i] <= delta) for i in last]
        first = samples.user_order[d, :5]
        assert dchi_attacks.estimated_p(samples, epsilon, 5)[d] == pytest.approx(apart[d, first].mean() / m)
    with pytest.raises(ValueError, match="left"):
        dchi_attacks.covered(samples, epsilon, 0.8, 20, left=50)


def test_no_rule_beats_the_best(samples):
    confidences = np.linspace(0.05, 0.95, 19)
    rates, best = dchi_attacks.by_rule(samples, 1.0, confidences)
    assert rates.shape == (4, 19)
    assert (rates <= best[:, None]).all()
    assert np.ptp(rates) > 0
