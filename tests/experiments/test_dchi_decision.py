"""What a setting costs and gives away, mechanisms at equal utility, the statistician who corrects, and crowds: against plain computations."""

import naive_dchi as naive
import numpy as np
import pytest
from dchi_making import halves

from mobpriv.base.estimates import over_draws
from mobpriv.base.noise import least_p, log_laplace
from mobpriv.experiments import dchi, dchi_choices
from mobpriv.experiments.dchi import draw, leaked, prepare, published
from mobpriv.experiments.dchi_choices import attacked, crowds, error_share, mean_share, sizes_up_to, sought
from mobpriv.visits.statistician import corrected_visitors

SAMPLES = draw(prepare(*halves(300)), np.random.default_rng(1), 4)


@pytest.mark.parametrize(("chi", "counts"), [("all", False), ("N5", False), ("F3", True)])
def test_each_number_is_that_of_its_figure(chi, counts):
    protection, epsilons = dchi.protection(chi, counts), (0.3, 2.0)
    found = dchi_choices.measured(SAMPLES, protection, epsilons)
    assert found.plain == pytest.approx(error_share(SAMPLES, protection, epsilons))
    ways = [error_share(SAMPLES, protection, epsilons, "corrected")]
    if chi == "N5":
        ways.append(error_share(SAMPLES, protection, epsilons, "as visited"))
    for k, e in enumerate(epsilons):
        best = min((way[:, k] for way in ways), key=np.mean)
        assert found.corrected[:, k] == pytest.approx(best)
        assert found.nearest[:, k] == pytest.approx(dchi.nearest_rate(SAMPLES, protection, e, "profileGuess"))
        assert found.likeliest[:, k] == pytest.approx(dchi.nearest_rate(SAMPLES, protection, e, "likelihood"))
        place = dchi.read_off_rate(SAMPLES, protection, e) if counts else np.zeros(4)
        assert found.place[:, k] == pytest.approx(place)
        assert found.best_way[:, k].mean() == min(found.plain[:, k].mean(), found.corrected[:, k].mean())
    assert (found.risk >= found.nearest).all()
    assert (found.risk == np.maximum(np.maximum(found.nearest, found.likeliest), found.place)).all()


def test_a_limit_is_kept_by_the_band():
    found = over_draws([0.1] * 18 + [0.5] * 2)
    assert found.value < 0.2
    assert not dchi_choices.keeps(found, 0.2)
    assert dchi_choices.keeps(found, 0.5)


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


COUNTS = np.add(*(half.to_numpy() for half in halves(120)))
SIZES = sizes_up_to((20, 60, 500), len(COUNTS))
DRAWS = list(crowds([COUNTS], SIZES, np.random.default_rng(1), 2))


def test_a_larger_crowd_holds_the_smaller_one():
    assert SIZES == (20, 60, 120)
    for crowd in DRAWS:
        for n in SIZES[:-1]:
            np.testing.assert_array_equal(crowd[n].day[0], crowd[120].day[0, :n])
            np.testing.assert_array_equal(crowd[n].u[0], crowd[120].u[0, :n])
        assert sorted(crowd[120].users[0]) == list(range(120))
    assert (DRAWS[0][20].users != DRAWS[1][20].users).any()


def test_layouts_take_turns():
    other = COUNTS[:80, ::-1]
    found = list(crowds([COUNTS, other], (20, 80), np.random.default_rng(1), 3))
    for crowd, counts in zip(found, (COUNTS, other, COUNTS), strict=True):
        np.testing.assert_array_equal(crowd[80].day[0], counts[crowd[80].users[0]])
    with pytest.raises(ValueError, match=r"sizes must be whole numbers in 2 … 80"):
        next(crowds([COUNTS, other], [81], np.random.default_rng(1), 1))


@pytest.mark.parametrize("protection", [dchi.BOOLEANS, dchi.NEAR_COUNTS], ids=str)
def test_attacks_by_hand(protection):
    crowd = DRAWS[1][60]
    of = published(crowd, protection, 1.0)
    said = of[0].astype(int).tolist()
    true = protection.of(crowd.day)[0].astype(int).tolist()
    for found, rows, candidates in (
        (attacked(crowd, protection, of, (1, 3)), said[:30], true[:30]),
        (sought(crowd, protection, of, (1, 3), 10), true[:10], said),
    ):
        d = [[naive.l1(a, b) for b in candidates] for a in rows]
        assert found.top == np.mean([sum(x <= row[i] for x in row) == 1 for i, row in enumerate(d)])
        for most, best in zip((1, 3), found.best, strict=True):
            alone = lambda delta: [row[i] <= delta and sum(x <= delta for x in row) <= most for i, row in enumerate(d)]  # noqa: E731, B023
            assert best == pytest.approx(max(sum(alone(delta)) for delta in range(200)) / len(rows))
    share = dchi.error(crowd, protection, [1.0])[0, 0] / dchi.level(crowd, protection)[0]  # as in the figures
    assert mean_share(crowd, protection, of) == pytest.approx(share)
    with pytest.raises(ValueError, match="leaked"):
        sought(crowd, protection, of, [1], 61)
