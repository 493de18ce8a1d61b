"""Discarding inconsistencies: grids and tags against a plain computation."""

import numpy as np
import pytest

from mobpriv.experiments import dchi_attacks
from mobpriv.experiments.dchi import Leaked
from mobpriv.visits.affinity import affinity


@pytest.fixture
def leak():
    rng = np.random.default_rng(3)
    known = rng.random((3, 6, 7)) < 0.4
    said = known ^ (rng.random(known.shape) < 0.2)
    users, pois = np.broadcast_to(np.arange(6), (3, 6)), np.broadcast_to(np.arange(7), (3, 7))
    return Leaked(said, known, users, pois)


def plainly(profile, matrix, tau, number):
    """Algorithm 12 by its letter."""
    there = [j for j in range(len(profile)) if profile[j]]
    return [j for j in there if sum(matrix[j, k] < tau for k in there) >= number]


def test_grid_and_tags_against_plain(leak):
    matrix = affinity(leak.known)
    taus, numbers = [0.0, 0.2, 0.4], [1, 2]
    found = dchi_attacks.grid(leak, matrix, taus, numbers, 2, 2)
    best = dchi_attacks.with_best_delta(leak, matrix, taus, numbers, 2)
    counts = dchi_attacks.tags(leak, matrix, taus, 2)
    for d in range(3):
        for t, tau in enumerate(taus):
            named = [plainly(leak.published[d, i], matrix[d], tau, 2) for i in range(6)]
            right = sum(not leak.known[d, i, j] for i in range(6) for j in named[i])
            assert counts.invented_tagged[d, t] == right
            assert counts.true_tagged[d, t] == sum(map(len, named)) - right
            for k, number in enumerate(numbers):
                kept = leak.published[d].copy()
                for i in range(6):
                    kept[i, plainly(leak.published[d, i], matrix[d], tau, number)] = False
                apart = (kept[:, None] != leak.known[d][None]).sum(axis=-1)
                near = apart[None] <= np.arange(8)[:, None, None]  # at each δ
                shares = (near.diagonal(axis1=1, axis2=2) & (near.sum(axis=2) <= 2)).mean(axis=1)
                assert found[d, t, k] == pytest.approx(shares[2])
                assert best[d, t, k] == pytest.approx(max(shares))
    assert counts.invented.sum() == (leak.published & ~leak.known).sum()
    assert counts.true.sum() > 0
    assert (found[:, 0] == dchi_attacks.rate(leak.published, leak.known, 2, 2)[:, None]).all()  # τ = 0 discards nothing


def test_perfect_discards_what_was_invented_alone(leak):
    kept = dchi_attacks.perfect(leak)
    assert not (kept & ~leak.known).any()
    assert (kept[leak.known] == leak.published[leak.known]).all()


def test_choice_is_made_on_the_other_draws():
    values = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # what is best in one half is worst in the other
    got, best = dchi_attacks.chosen_on_other_half(values)
    assert (got == 0).all()
    assert best.tolist() == [1, 0, 1, 0]
    with pytest.raises(ValueError, match="two draws"):
        dchi_attacks.chosen_on_other_half(values[:1])
