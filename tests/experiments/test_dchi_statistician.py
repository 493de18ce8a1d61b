"""The statistician who corrects: unbiased, against exact laws and a plain computation."""

import numpy as np
import pytest
from dchi_making import halves

from mobpriv.base.noise import least_p, log_laplace
from mobpriv.experiments import dchi, dchi_choices
from mobpriv.experiments.dchi import draw, prepare
from mobpriv.visits.statistician import corrected_visitors

SAMPLES = draw(prepare(*halves(300)), np.random.default_rng(1), 4)


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0, 6.0])
def test_counts_are_estimated_without_bias(epsilon):
    k, c = np.arange(int(60 + 60 / epsilon)), np.arange(12)
    law = np.exp(log_laplace(k[None, :], c[:, None], epsilon))
    assert law.sum(axis=1) == pytest.approx(1)
    g = dchi_choices.unbiased(k[None, None, :], epsilon)[0, 0]
    assert law @ g == pytest.approx(c, abs=1e-9)
    assert abs((law @ k)[0]) > 1e-4  # as it is published, a count of 0 is too large


def test_how_many_hold_a_poi_is_all_that_is_needed():
    protection = dchi.NEAR_BOOLEANS
    chi, true = protection.chi(SAMPLES.day, SAMPLES.affinity), SAMPLES.day > 0
    mechanism = protection.at(1.0)
    said = mechanism.noisy(true, chi, SAMPLES.u)
    p = mechanism.flip
    whose = np.where(chi, (said - p) / (1 - 2 * p), said).sum(axis=-2)  # of each user, whose χ is known
    assert corrected_visitors(said, p, chi.sum(axis=-2)) == pytest.approx(whose)
    for how, corrected in ((["corrected"], True), ([], False)):
        share = dchi.error(SAMPLES, protection, [1.0], corrected=corrected) / dchi.level(SAMPLES, protection)[:, None]
        assert dchi_choices.error_share(SAMPLES, protection, [1.0], *how) == pytest.approx(share)


def test_visits_outside_of_chi_are_not_corrected():
    protection = dchi.NEAR_COUNTS
    chi = protection.chi(SAMPLES.day, SAMPLES.affinity)
    said = protection.at(1.0).noisy(SAMPLES.day, chi, SAMPLES.u)
    a, r = dchi_choices.steps(1.0)
    plain = np.where(chi, said + a * r**said, said).sum(axis=-2)
    assert dchi_choices.corrected_visits(said, 1.0, chi.sum(axis=-2)) == pytest.approx(plain)


def test_panel_of_everybody_knows_the_noise():
    """p̃ of all 100 users, by hand."""
    true = SAMPLES.day > 0
    said = dchi.BOOLEANS.at(2.0).noisy(true, np.ones(true.shape, bool), SAMPLES.u)
    p = (said != true).mean(axis=(1, 2))
    guess = np.clip((said.sum(axis=1) - 100 * p[:, None]) / (1 - 2 * p[:, None]), 0, 100)
    by_hand = np.abs(guess - true.sum(axis=1)).mean(axis=-1) / dchi.level(SAMPLES, dchi.BOOLEANS)
    assert dchi_choices.error_share(SAMPLES, dchi.BOOLEANS, [2.0], "panel", 100)[:, 0] == pytest.approx(by_hand)
    assert abs(p - least_p(2.0)).max() > 0


def test_what_is_refused():
    with pytest.raises(ValueError, match="as visited"):
        dchi_choices.error_share(SAMPLES, dchi.COUNTS, [1.0], "as visited")
    with pytest.raises(ValueError, match="panel"):
        dchi_choices.error_share(SAMPLES, dchi.BOOLEANS, [1.0], "panel", 101)


def test_from_which_epsilon_on():
    errors = np.array([[0.8, 0.4, 0.2], [0.4, 0.4, 0.2]])
    assert dchi_choices.enough([1, 2, 4], errors, 0.3) == pytest.approx(2 * np.sqrt(2))
    assert dchi_choices.enough([1, 2, 4], errors, 0.7) == 1
    assert dchi_choices.enough([1, 2, 4], errors, 0.1) == np.inf
