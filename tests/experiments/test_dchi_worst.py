"""The adversary's choices: against the plain worst case, and by hand."""

import naive_dchi as naive
import numpy as np
import pytest
from dchi_making import halves

from mobpriv.experiments import dchi, dchi_attacks
from mobpriv.experiments.dchi import draw, prepare

SAMPLES = draw(prepare(*halves(400)), np.random.default_rng(1), 6)


@pytest.mark.parametrize("chi", ["all", "N5"])
@pytest.mark.parametrize("counts", [False, True], ids=["booleans", "counts"])
def test_the_best_rate_is_that_over_all_deltas(chi, counts):
    leak = dchi_attacks.held(SAMPLES, dchi.protection(chi, counts), 0.7, amount=30)
    found = dchi.best_rates(leak.published, leak.known, (1, 2, 5, 30))
    np.testing.assert_array_equal(found[:, 1], dchi.best_rate(leak.published, leak.known, 2))
    for d, at, most in ((0, 0, 1), (2, 1, 2), (3, 2, 5)):
        said, known = (side[d].astype(int).tolist() for side in (leak.published, leak.known))
        deltas = {naive.l1(a, b) for a in said for b in known}
        assert found[d, at] == pytest.approx(max(naive.algorithm_11(said, known, delta, most) for delta in deltas))
    assert (found[:, 3] == 1).all()  # δ may be as large as it likes where all may be in the guess


def test_the_worst_case_is_of_the_scenario():
    for scenario, amount in (("2.2", 40), ("2.1", 12)):
        found = dchi_attacks.worst(SAMPLES, dchi.COUNTS, 2.0, [1, 3], scenario, amount)
        grid = dchi.surface(SAMPLES, dchi.COUNTS, 2.0, range(200), [1, 3], scenario, amount).max(axis=1)
        np.testing.assert_allclose(found, grid, rtol=0, atol=1e-12)


def test_distances_by_hand():
    own, others = dchi_attacks.distances(SAMPLES, dchi.BOOLEANS, 1.0)
    leak = dchi_attacks.held(SAMPLES, dchi.BOOLEANS, 1.0)
    said, known = (side[1].astype(int).tolist() for side in (leak.published, leak.known))
    assert own[1] == pytest.approx(np.mean([naive.l1(a, b) for a, b in zip(said, known, strict=True)]))
    nearest = [min(naive.l1(a, known[j]) for j in range(50) if j != i) for i, a in enumerate(said)]
    assert others[1] == pytest.approx(np.mean(nearest))


def test_a_delta_that_is_chosen_elsewhere():
    rates = np.array([[0.9, 0.1, 0.0], [0.1, 0.7, 0.0], [0.0, 0.5, 0.0]])
    assert dchi_attacks.chosen_elsewhere(rates).tolist() == [0.1, 0.1, 0.0]
    with pytest.raises(ValueError, match="at least two draws"):
        dchi_attacks.chosen_elsewhere(rates[:1])


def test_the_epsilon_of_an_error():
    target = dchi.error(SAMPLES, dchi.COUNTS, [1.7]).mean()
    assert dchi_attacks.epsilon_of_error(SAMPLES, dchi.COUNTS, target * 1.0001) == pytest.approx(1.7, rel=0.02)
    with pytest.raises(ValueError, match="target must be an error that some ε has"):
        dchi_attacks.epsilon_of_error(SAMPLES, dchi.COUNTS, 1e9)
