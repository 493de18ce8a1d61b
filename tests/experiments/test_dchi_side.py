"""How many names are right, written out for one draw."""

import naive_dchi as naive
import numpy as np
import pytest
from dchi_making import halves

from mobpriv.experiments import dchi
from mobpriv.experiments.dchi import draw, prepare, published
from mobpriv.experiments.dchi_attacks import fewest, names_right

SAMPLES = draw(prepare(*halves(400)), np.random.default_rng(1), 3)


@pytest.mark.parametrize(("protection", "epsilon"), [(dchi.BOOLEANS, 2.0), (dchi.NEAR_COUNTS, 1.0)], ids=str)
def test_names_by_hand(protection, epsilon):
    found = names_right(SAMPLES, protection, epsilon, 12, 20)
    at, whose = sorted(SAMPLES.poi_order[1, :20]), sorted(SAMPLES.user_order[1, :12])
    said = published(SAMPLES, protection, epsilon)[1][:, at].astype(int).tolist()
    true = protection.of(SAMPLES.day)[1][:, at].astype(int).tolist()
    best = (-1, 0)
    for delta in range(100):
        guesses = [naive.profile_guess(row, [true[j] for j in whose], delta) for row in said]
        named = {i: whose[next(iter(guess))] for i, guess in enumerate(guesses) if len(guess) == 1}
        right = sum(i == name for i, name in named.items())
        if right > best[0]:
            best = (right, len(named))
    assert found[1] == pytest.approx(best[0] / max(1, best[1]))


def test_the_fewest_that_suffice():
    rates = np.array([[0.1, 0.4, 0.9], [0.2, 0.6, 0.8]])
    assert fewest([1, 5, 10], rates) == 5
    assert fewest([1, 5, 10], rates, 0.9) == np.inf
