"""Mechanisms at equal utility, and what the support of a neighbourhood gives away."""

import numpy as np
import pytest
from dchi_making import halves

from mobpriv.experiments import dchi, dchi_choices
from mobpriv.experiments.dchi import draw, leaked, prepare, published

SAMPLES = draw(prepare(*halves(300)), np.random.default_rng(1), 4)


@pytest.mark.parametrize("protection", [dchi.BOOLEANS, dchi.NEAR_BOOLEANS, dchi.COUNTS])
def test_error_is_that_asked_for(protection):
    epsilon, error = dchi_choices.epsilon_at(SAMPLES, protection, 0.2), dchi_choices.relative_error(SAMPLES, protection)
    assert error(epsilon) <= 0.2
    assert error(epsilon * 0.98) > 0.2
    found = dchi.error(SAMPLES, protection, [epsilon])[:, 0] / dchi.level(SAMPLES, protection)
    assert error(epsilon) == pytest.approx(found.mean())


def test_ends():
    assert dchi_choices.epsilon_at(SAMPLES, dchi.BOOLEANS, 10) == dchi_choices.LEAST_EPSILON
    assert (
        dchi_choices.epsilon_at(SAMPLES, dchi.COUNTS._replace(rounding="floor"), 1e-4) == np.inf
    )  # half a visit is always lost
    with pytest.raises(ValueError, match="share"):
        dchi_choices.epsilon_at(SAMPLES, dchi.BOOLEANS, 0)


def test_likeliest_is_that_of_the_figures():
    for protection in (dchi.NEAR_BOOLEANS, dchi.COUNTS):
        found = dchi_choices.likeliest(dchi_choices.scores(SAMPLES, protection, 1.0))
        assert found == pytest.approx(dchi.nearest_rate(SAMPLES, protection, 1.0, "likelihood"))


def test_support_against_plain():
    protection = dchi.NEAR_BOOLEANS
    possible, share = dchi_choices.by_support(dchi_choices.scores(SAMPLES, protection, 0.5))
    leak = leaked(SAMPLES, protection, published(SAMPLES, protection, 0.5), "2.2")
    chi = protection.chi(leak.known.astype(int), SAMPLES.affinity)
    counts = [
        [sum(not (y ^ b)[~x].any() for b, x in zip(leak.known[d], chi[d], strict=True)) for y in leak.published[d]]
        for d in range(4)
    ]
    assert possible == pytest.approx(np.mean(counts, axis=1))
    assert share == pytest.approx((1 / np.array(counts)).mean(axis=1))
    assert (possible < 50).all()
    assert (
        dchi_choices.by_support(dchi_choices.scores(SAMPLES, dchi.BOOLEANS, 0.5))[0] == 50
    ).all()  # with all POIs all are possible
