"""Other samples, parts of a variance, what a setting costs and gives away, equal utility, the statistician who corrects, and crowds."""

import naive_dchi as naive
import numpy as np
import pytest
from conftest import refuses
from dchi_making import halves
from scipy.stats import spearmanr

from mobpriv.base.estimates import over_draws
from mobpriv.base.noise import least_p, log_laplace
from mobpriv.experiments import dchi, dchi_choices
from mobpriv.experiments.dchi import draw, join_settings, leaked, perturbed_profiles, sample_setting
from mobpriv.experiments.dchi_choices import attack_perturbed, crowds, error_share, mean_share, search_leaked, sizes_up_to
from mobpriv.visits.affinity import affinity
from mobpriv.visits.statistician import corrected_visitors

FIRST, SECOND = halves(300)
SETTING = join_settings([sample_setting(FIRST, SECOND), sample_setting(SECOND[::2], FIRST[::2])])
SAMPLES = draw(SETTING, np.random.default_rng(1), 5, 40)
DISTINCT = (SETTING.first + SETTING.second > 0).sum(axis=1)


def test_settings_by_hand():
    strict = dchi_choices.stricter(SETTING, 9)
    a, b = SETTING.offsets[1:]
    assert strict.per_day.tolist() == [(DISTINCT[:a] >= 9).sum(), (DISTINCT[a:b] >= 9).sum()]
    assert ((strict.first + strict.second > 0).sum(axis=1) >= 9).all()
    assert strict.least == 9
    second = dchi_choices.of_day(SETTING, 1)
    np.testing.assert_array_equal(second.first, SETTING.first[a:])
    assert second.per_day.tolist() == [0, b - a]
    assert dchi_choices.pooled(SETTING).per_day.tolist() == [b]
    refuses("least must be", dchi_choices.stricter, SETTING, 3)


def in_layouts():
    """Two layouts: the days of SETTING, and the first of them in another placing, where the POIs are in another order."""
    turned = sample_setting(*(half.iloc[:, ::-1].set_axis(half.columns, axis=1) for half in (FIRST, SECOND)))
    days = sample_setting(FIRST, SECOND), sample_setting(SECOND[::2], FIRST[::2])
    return join_settings([*days, turned._replace(layouts=np.array([1]))])


def test_layouts_are_kept_apart():
    setting = in_layouts()
    assert setting.layouts.tolist() == [0, 0, 1]
    samples = draw(setting, np.random.default_rng(1), 12, 40)
    assert set(samples.layout) == {0, 1}
    day = np.searchsorted(setting.offsets, samples.users[:, 0], side="right") - 1
    np.testing.assert_array_equal(samples.layout, setting.layouts[day])
    result = dchi_choices.with_population_affinity(samples, setting).affinity
    of_first = dchi_choices.with_population_affinity(SAMPLES, SETTING).affinity[0]
    for d in range(12):
        first, last = setting.offsets[[2, 3] if samples.layout[d] else [0, 2]]
        visited = (setting.first + setting.second > 0)[first:last]
        assert result[d, 2, 7] == pytest.approx((visited[:, 2] & visited[:, 7]).mean())
        assert (result[d] == of_first).all() == (samples.layout[d] == 0)
    assert dchi_choices.pooled(setting).per_day.tolist() == [setting.offsets[2], setting.per_day[2]]
    assert dchi_choices.of_day(setting, 0).per_day.tolist() == [setting.per_day[0], 0, setting.per_day[2]]


def test_affinity_by_place():
    """Three POIs on a meridian, 1 km and 3 km apart in one layout, farther in the other."""
    degree = 1000 / 110_574.3  # of latitude at the equator
    places = np.array([[[0, 0], [degree, 0], [4 * degree, 0]], [[0, 0], [2 * degree, 0], [8 * degree, 0]]])
    b = np.zeros((2, 5, 3), np.int64)
    b[:, :4, 0], b[:, :3, 1], b[:, 3:, 2] = 1, 1, 1
    at = np.array([0, 1])
    samples = SAMPLES._replace(first=b, second=b, affinity=np.stack([affinity(b[0])] * 2), layout=at)
    result = dchi_choices.with_location_affinity(samples, places).affinity
    np.testing.assert_allclose(result[0], [[1, 1 / 2, 1 / 5], [1 / 2, 1, 1 / 4], [1 / 5, 1 / 4, 1]], rtol=1e-3)
    assert result[1, 0, 1] == pytest.approx(1 / 3, rel=1e-3)
    # shares of a POI's visitors: near (0, 1) 3 of 4 and 3 of 3, (1, 2) none, far (0, 2) 1 of 4 and 1 of 2
    expected = spearmanr([1, 1, 3, 3, 4, 4], [0.75, 1, 0, 0, 0.25, 0.5]).statistic
    np.testing.assert_allclose(dchi_choices.closeness(samples, places), expected)


def test_crossed_draws_keep_their_users():
    again = dchi_choices.with_fresh_noise(SAMPLES, np.random.default_rng(2), 3)
    np.testing.assert_array_equal(again.day, np.repeat(SAMPLES.day, 3, axis=0))
    assert len(np.unique(again.u)) == again.u.size


def test_parts_of_a_variance_that_are_known():
    rng = np.random.default_rng(1)
    values = rng.normal(0, 3, (4000, 1)) + rng.normal(0, 4, (4000, 5))
    result = dchi_choices.parts_of_variance(values, np.random.default_rng(2), 50)
    assert result.deviation.value == pytest.approx(5, rel=0.03)
    assert result.users.value == pytest.approx(9 / 25, abs=0.03)
    assert all(part.low < part.value < part.high for part in result)
    assert dchi_choices.parts_of_variance(rng.normal(0, 1, (4000, 5)), np.random.default_rng(2), 50).users.value < 0.03
    same = dchi_choices.parts_of_variance(np.ones((5, 3)), np.random.default_rng(2), 50)
    assert (same.deviation.value, same.users.value) == (0, 0)
    refuses("at least 2 draws", dchi_choices.parts_of_variance, values[:1], np.random.default_rng(2))


def test_the_interval_of_a_part_holds_it():
    rng, inside = np.random.default_rng(3), 0
    for _ in range(200):
        values = rng.normal(0, 3, (60, 1)) + rng.normal(0, 4, (60, 5))
        users = dchi_choices.parts_of_variance(values, rng, 200).users
        inside += users.low <= 9 / 25 <= users.high
    assert inside > 170  # of 190; a percentile interval of few draws is somewhat narrow


def test_measures_are_those_of_the_figures():
    for epsilon in (0.1, 6.0):
        assert least_p(dchi_choices.halfway(epsilon)) == pytest.approx((least_p(epsilon) + 0.5) / 2)
    for protection in (dchi.NEAR_BOOLEANS, dchi.COUNTS):
        share = dchi.error(SAMPLES, protection, [2.0])[:, 0] / dchi.level(SAMPLES, protection)
        np.testing.assert_allclose(dchi_choices.error_share(SAMPLES, protection, [2.0])[:, 0], share)
        grid = dchi.surface(SAMPLES, protection, 2.0, range(300), [1], "2.2", 20).max(axis=1)[:, 0]
        np.testing.assert_allclose(dchi_choices.worst_case_rate(SAMPLES, protection, 2.0, amount=20), grid)


FOUR = draw(sample_setting(*halves(300)), np.random.default_rng(1), 4)


@pytest.mark.parametrize(("chi", "counts"), [("all", False), ("N5", False), ("F3", True)])
def test_each_number_is_that_of_its_figure(chi, counts):
    protection, epsilons = dchi.protection(chi, counts), (0.3, 2.0)
    result = dchi_choices.error_and_risk(FOUR, protection, epsilons)
    assert result.plain == pytest.approx(error_share(FOUR, protection, epsilons))
    ways = [error_share(FOUR, protection, epsilons, "corrected")]
    if chi == "N5":
        ways.append(error_share(FOUR, protection, epsilons, "as visited"))
    for k, e in enumerate(epsilons):
        best = min((way[:, k] for way in ways), key=np.mean)
        assert result.corrected[:, k] == pytest.approx(best)
        assert result.nearest[:, k] == pytest.approx(dchi.nearest_rate(FOUR, protection, e, "profileGuess"))
        assert result.likeliest[:, k] == pytest.approx(dchi.nearest_rate(FOUR, protection, e, "likelihood"))
        place = dchi.noisy_argmax_rate(FOUR, protection, e) if counts else np.zeros(4)
        assert result.place[:, k] == pytest.approx(place)
        assert result.best_way[:, k].mean() == min(result.plain[:, k].mean(), result.corrected[:, k].mean())
    assert (result.risk >= result.nearest).all()
    assert (result.risk == np.maximum(np.maximum(result.nearest, result.likeliest), result.place)).all()


def test_a_limit_is_kept_by_the_band():
    result = over_draws([0.1] * 18 + [0.5] * 2)
    assert result.value < 0.2
    assert not dchi_choices.within_limit(result, 0.2)
    assert dchi_choices.within_limit(result, 0.5)


@pytest.mark.parametrize("protection", [dchi.BOOLEANS, dchi.NEAR_BOOLEANS, dchi.COUNTS])
def test_error_is_that_asked_for(protection):
    epsilon, error = dchi_choices.epsilon_at(FOUR, protection, 0.2), dchi_choices.relative_error(FOUR, protection)
    assert error(epsilon) <= 0.2
    assert error(epsilon * 0.98) > 0.2
    result = dchi.error(FOUR, protection, [epsilon])[:, 0] / dchi.level(FOUR, protection)
    assert error(epsilon) == pytest.approx(result.mean())


def test_ends():
    assert dchi_choices.epsilon_at(FOUR, dchi.BOOLEANS, 10) == dchi_choices.MIN_SEARCHED_EPSILON
    # half a visit is always lost
    assert dchi_choices.epsilon_at(FOUR, dchi.COUNTS._replace(rounding="floor"), 1e-4) == np.inf
    refuses("share", dchi_choices.epsilon_at, FOUR, dchi.BOOLEANS, 0)


def test_support_against_plain():
    protection = dchi.NEAR_BOOLEANS
    possible, share = dchi_choices.by_support(dchi_choices.likelihood_scores(FOUR, protection, 0.5))
    leak = leaked(FOUR, protection, perturbed_profiles(FOUR, protection, 0.5), "2.2")
    chi = protection.chi(leak.known.astype(int), FOUR.affinity)
    differ = leak.published[:, :, None] ^ leak.known[:, None]  # outside of χ of the known one: impossible
    counts = (~(differ & ~chi[:, None]).any(axis=-1)).sum(axis=-1)
    assert possible == pytest.approx(counts.mean(axis=1))
    assert share == pytest.approx((1 / counts).mean(axis=1))
    assert (possible < 50).all()
    every = dchi_choices.by_support(dchi_choices.likelihood_scores(FOUR, dchi.BOOLEANS, 0.5))[0]
    assert (every == 50).all()  # with all POIs all are possible


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0, 6.0])
def test_counts_are_estimated_without_bias(epsilon):
    k, c = np.arange(int(60 + 60 / epsilon)), np.arange(12)
    law = np.exp(log_laplace(k[None, :], c[:, None], epsilon))
    assert law.sum(axis=1) == pytest.approx(1)
    g = dchi_choices.unbiased_counts(k[None, None, :], epsilon)[0, 0]
    assert law @ g == pytest.approx(c, abs=1e-9)
    assert abs((law @ k)[0]) > 1e-4  # as it is published, a count of 0 is too large


def test_how_many_hold_a_poi_is_all_that_is_needed():
    protection = dchi.NEAR_BOOLEANS
    chi, true = protection.chi(FOUR.day, FOUR.affinity), FOUR.day > 0
    mechanism = protection.mechanism(1.0)
    perturbed = mechanism.noisy(true, chi, FOUR.u)
    p = mechanism.flip
    whose = np.where(chi, (perturbed - p) / (1 - 2 * p), perturbed).sum(axis=-2)  # of each user, whose χ is known
    assert corrected_visitors(perturbed, p, chi.sum(axis=-2)) == pytest.approx(whose)
    for how, corrected in ((["corrected"], True), ([], False)):
        share = dchi.error(FOUR, protection, [1.0], corrected=corrected) / dchi.level(FOUR, protection)[:, None]
        assert dchi_choices.error_share(FOUR, protection, [1.0], *how) == pytest.approx(share)


def test_visits_outside_of_chi_are_not_corrected():
    protection = dchi.NEAR_COUNTS
    chi = protection.chi(FOUR.day, FOUR.affinity)
    perturbed = protection.mechanism(1.0).noisy(FOUR.day, chi, FOUR.u)
    a, r = dchi_choices.unbiased_coefficients(1.0)
    plain = np.where(chi, perturbed + a * r**perturbed, perturbed).sum(axis=-2)
    assert dchi_choices.corrected_visits(perturbed, 1.0, chi.sum(axis=-2)) == pytest.approx(plain)


def test_panel_of_everybody_knows_the_noise():
    """p̃ of all 100 users, by hand."""
    true = FOUR.day > 0
    perturbed = dchi.BOOLEANS.mechanism(2.0).noisy(true, np.ones(true.shape, bool), FOUR.u)
    p = (perturbed != true).mean(axis=(1, 2))
    guess = np.clip((perturbed.sum(axis=1) - 100 * p[:, None]) / (1 - 2 * p[:, None]), 0, 100)
    by_hand = np.abs(guess - true.sum(axis=1)).mean(axis=-1) / dchi.level(FOUR, dchi.BOOLEANS)
    assert dchi_choices.error_share(FOUR, dchi.BOOLEANS, [2.0], "panel", 100)[:, 0] == pytest.approx(by_hand)
    assert abs(p - least_p(2.0)).max() > 0


def test_what_is_refused():
    refuses("as visited", dchi_choices.error_share, FOUR, dchi.COUNTS, [1.0], "as visited")
    refuses("panel", dchi_choices.error_share, FOUR, dchi.BOOLEANS, [1.0], "panel", 101)


def test_from_which_epsilon_on():
    errors = np.array([[0.8, 0.4, 0.2], [0.4, 0.4, 0.2]])
    assert dchi_choices.sufficient_epsilon([1, 2, 4], errors, 0.3) == pytest.approx(2 * np.sqrt(2))
    assert dchi_choices.sufficient_epsilon([1, 2, 4], errors, 0.7) == 1
    assert dchi_choices.sufficient_epsilon([1, 2, 4], errors, 0.1) == np.inf


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
    result = list(crowds([COUNTS, other], (20, 80), np.random.default_rng(1), 3))
    for crowd, counts in zip(result, (COUNTS, other, COUNTS), strict=True):
        np.testing.assert_array_equal(crowd[80].day[0], counts[crowd[80].users[0]])
    refuses(r"sizes must be whole numbers in 2 … 80", next, crowds([COUNTS, other], [81], np.random.default_rng(1), 1))


@pytest.mark.parametrize("protection", [dchi.BOOLEANS, dchi.NEAR_COUNTS], ids=str)
def test_attacks_by_hand(protection):
    crowd = DRAWS[1][60]
    profiles = perturbed_profiles(crowd, protection, 1.0)
    perturbed = profiles[0].astype(int).tolist()
    true = protection.true_profiles(crowd.day)[0].astype(int).tolist()
    for result, rows, candidates in (
        (attack_perturbed(crowd, protection, profiles, (1, 3)), perturbed[:30], true[:30]),
        (search_leaked(crowd, protection, profiles, (1, 3), 10), true[:10], perturbed),
    ):
        d = [[naive.l1(a, b) for b in candidates] for a in rows]
        assert result.top == np.mean([sum(x <= row[i] for x in row) == 1 for i, row in enumerate(d)])
        for m, best in zip((1, 3), result.best, strict=True):
            alone = lambda delta: [row[i] <= delta and sum(x <= delta for x in row) <= m for i, row in enumerate(d)]  # noqa: E731, B023
            assert best == pytest.approx(max(sum(alone(delta)) for delta in range(200)) / len(rows))
    share = dchi.error(crowd, protection, [1.0])[0, 0] / dchi.level(crowd, protection)[0]  # as in the figures
    assert mean_share(crowd, protection, profiles) == pytest.approx(share)
    refuses("leaked", search_leaked, crowd, protection, profiles, [1], 61)
