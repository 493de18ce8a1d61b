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
    # half a visit is always lost
    assert dchi_choices.epsilon_at(SAMPLES, dchi.COUNTS._replace(rounding="floor"), 1e-4) == np.inf
    with pytest.raises(ValueError, match="share"):
        dchi_choices.epsilon_at(SAMPLES, dchi.BOOLEANS, 0)


def test_support_against_plain():
    protection = dchi.NEAR_BOOLEANS
    possible, share = dchi_choices.by_support(dchi_choices.scores(SAMPLES, protection, 0.5))
    leak = leaked(SAMPLES, protection, published(SAMPLES, protection, 0.5), "2.2")
    chi = protection.chi(leak.known.astype(int), SAMPLES.affinity)
    differ = leak.published[:, :, None] ^ leak.known[:, None]  # outside of χ of the known one: impossible
    counts = (~(differ & ~chi[:, None]).any(axis=-1)).sum(axis=-1)
    assert possible == pytest.approx(counts.mean(axis=1))
    assert share == pytest.approx((1 / counts).mean(axis=1))
    assert (possible < 50).all()
    every = dchi_choices.by_support(dchi_choices.scores(SAMPLES, dchi.BOOLEANS, 0.5))[0]
    assert (every == 50).all()  # with all POIs all are possible
