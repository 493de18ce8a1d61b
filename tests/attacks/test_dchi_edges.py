"""The ends of what the dχ chapter's core takes: empty tables, own ε, large and fractional numbers, days that are none, infinite values."""

import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from dchi_making import day as made_day
from dchi_making import halves

from mobpriv.attacks.visits import Likelihood, ProfileGuess
from mobpriv.attacks.visits.denoising import confident_delta, max_likelihood_epsilon
from mobpriv.attacks.visits.distances import count_within
from mobpriv.attacks.visits.most_visited import most_visited
from mobpriv.attacks.visits.reidentification import guesses, reidentification_rate
from mobpriv.calls.table import as_calls, as_cells
from mobpriv.datasets.call_statistics import describe_calls
from mobpriv.experiments import dchi
from mobpriv.experiments.dchi import draw, sample_setting
from mobpriv.mechanisms.visits import Geometric, LaplaceCounts, RandomisedResponse
from mobpriv.metrics import visits_audits
from mobpriv.visits.affinity import Neighbourhood, affinity, neighbourhood
from mobpriv.visits.profiles import day, pois_of

COUNTS = made_day(40)
BOOLEANS = COUNTS > 0
NEAR = Neighbourhood(2, affinity(BOOLEANS), "further", "first")


def rng():
    return np.random.default_rng(1)


class TestMechanisms:
    @pytest.mark.parametrize("kind", ["uint64", "int8", "uint8"])
    @pytest.mark.parametrize("mechanism", [LaplaceCounts(0.5), Geometric(0.5)], ids=repr)
    def test_whole_numbers_stay_whole_whatever_their_kind(self, mechanism, kind):
        perturbed = mechanism.protect(COUNTS.astype(kind), rng())
        pd.testing.assert_frame_equal(perturbed, mechanism.protect(COUNTS, rng()))

    @pytest.mark.parametrize("mechanism", [LaplaceCounts, Geometric, RandomisedResponse])
    def test_an_empty_chunk_of_users_with_their_own_epsilon(self, mechanism):
        epsilons = pd.Series(np.linspace(0.1, 5, 40), COUNTS.index)
        true = BOOLEANS if mechanism is RandomisedResponse else COUNTS
        pd.testing.assert_frame_equal(mechanism(epsilons).protect(true.iloc[:0], rng()), true.iloc[:0])

    def test_a_mask_that_is_empty_at_the_pois_of_the_table(self):
        mask = pd.Series(BOOLEANS.columns == "p00", BOOLEANS.columns)
        with pytest.raises(ValueError, match=r"chi is empty for 40 of 40 users, .*: none of these POIs is in it"):
            RandomisedResponse(1.0, mask).protect(BOOLEANS.iloc[:, 1:], rng())


class TestAffinity:
    @pytest.mark.parametrize("unit", [1e-12, 1e-300, 3e15])
    def test_its_unit_makes_no_neighbours(self, unit):
        b = BOOLEANS.to_numpy()
        result = neighbourhood(b, affinity(b) * unit, 3, "further")
        np.testing.assert_array_equal(result, neighbourhood(b, affinity(b), 3, "further"))
        assert result.sum(axis=1).mean() < 15
        assert neighbourhood(b, np.zeros((29, 29)), 1).all()  # without any affinity all tie

    def test_numbers_a_user_stay_what_they_were(self):
        n = np.array([1, 2])
        chosen = Neighbourhood(n, np.eye(3))
        n[:] = 3
        assert chosen.n.tolist() == [1, 2]

    @pytest.mark.parametrize("wrong", [np.nan, np.inf])
    def test_it_is_not_made_of_what_is_no_number(self, wrong):
        values = COUNTS.astype(float)
        np.testing.assert_array_equal(affinity(values), affinity(BOOLEANS))
        values.iloc[3, 4] = wrong
        refuses(rf"profiles must hold finite numbers or truth values \(got {wrong}\)", affinity, values)


@pytest.mark.parametrize("kind", [LaplaceCounts, Geometric])
def test_counts_that_noise_is_lost_on_are_refused(kind):
    large = COUNTS.copy()
    large.iloc[2, 5] = 2**53 - 1
    assert kind(1.0).protect(large, rng()).iloc[2, 5] > 2**52
    large.iloc[2, 5] = 2**53
    with pytest.raises(ValueError, match=r"must be below 2\^53, .* \(got 9007199254740992 of user u000002, POI p05\)"):
        kind(1.0).protect(large, rng())


class TestAudits:
    def test_every_user_is_told_by_her_own_epsilon_whatever_their_order(self):
        epsilons = pd.Series(np.linspace(0.1, 5, 40), BOOLEANS.index)
        result = visits_audits.count_telling(RandomisedResponse(epsilons[::-1], NEAR), BOOLEANS)
        pd.testing.assert_frame_equal(
            result, visits_audits.count_telling(RandomisedResponse(epsilons.to_numpy(), NEAR), BOOLEANS)
        )
        one = visits_audits.count_telling(RandomisedResponse(float(epsilons.iloc[7]), NEAR), BOOLEANS)
        assert result["probability"].iloc[7] == one["probability"].iloc[7] > 0
        part = visits_audits.count_telling(RandomisedResponse(epsilons, NEAR), BOOLEANS.iloc[5:9])
        pd.testing.assert_frame_equal(part, result.iloc[5:9])

    def test_what_has_another_law_is_refused(self):
        few = Neighbourhood(1, np.eye(3))
        for function in (visits_audits.counterexamples, lambda m: visits_audits.count_telling(m, BOOLEANS.iloc[:, :3])):
            refuses("a Neighbourhood, booleans modulo 2", function, RandomisedResponse(1.0, few, modulo=False))
        refuses("epsilon must be one number here", visits_audits.counterexamples, RandomisedResponse(np.ones(8), few))


class TestAttacks:
    def test_counts_are_no_outputs_of_randomised_response(self):
        attack = Likelihood(RandomisedResponse(1.0))
        refuses(r"leaked profiles must hold 0 … 1 for randomised response \(got \d+\)", attack.fit, COUNTS)
        refuses("sanitised profiles must hold 0 … 1", lambda: attack.fit(BOOLEANS).rank(COUNTS))
        three = RandomisedResponse(1.0, modulo=False)
        assert Likelihood(three).fit(BOOLEANS).rank(three.protect(BOOLEANS, rng())).shape == (40, 40)

    def test_the_order_of_the_leaked_pois_does_not_matter(self):
        m = RandomisedResponse(0.1, NEAR)
        perturbed = m.protect(BOOLEANS, rng())
        one, two = (Likelihood(m).fit(known).rank(perturbed) for known in (BOOLEANS, BOOLEANS.iloc[:, ::-1]))
        pd.testing.assert_frame_equal(one, two)
        assert np.isfinite(np.diag(one)).all()

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [(-40_000, "none negative .got -40000"), (0.9, "whole numbers.* .got 0.9"), (np.nan, "finite"), (10**18, "too large")],
    )
    def test_what_is_no_count_has_no_distance(self, wrong, words):
        for function in (guesses, lambda a, b, delta: most_visited(a, b, delta[0], np.ones((1, 29), bool))):
            for sides in ((np.full((1, 29), wrong), np.zeros((1, 29))), (np.zeros((1, 29)), np.full((1, 29), wrong))):
                refuses(words, function, *sides, [1])
        if isinstance(wrong, int):
            refuses(words, lambda: ProfileGuess().fit(pd.DataFrame(np.full((1, 29), wrong))))

    def test_far_deltas_are_counted_without_a_tally(self):
        """With one, 5 GB a sanitised profile."""
        far, near = rng().integers(0, 8_000_000, (2, 3, 29)), rng().integers(0, 9, (2, 40, 29))
        d = np.abs(far[:, :, None] - near[:, None]).sum(axis=-1)
        deltas = [0, 5, *d[0, 0, :3], np.median(d), 1.5e8]
        result = count_within(far, near, deltas)
        np.testing.assert_array_equal(result, (d[..., None] <= np.array(deltas)).sum(axis=2))
        assert 0 < result[..., 5].mean() < 40

    def test_nobody_leaked_and_nobody_is_attacked(self):
        perturbed, nobody = np.ones((2, 3), int), np.zeros((0, 3), int)
        assert reidentification_rate(guesses(perturbed, nobody, [1], owner=[-1, -1]), [1]).tolist() == [[0.0]]
        result = most_visited(perturbed, nobody, 1, np.zeros((0, 3), bool))
        assert (result.predicted.any(), result.candidates.tolist()) == (False, [0, 0])
        refuses(r"must be at least 1 \(got 0\)", guesses, nobody, perturbed, [1])


class TestEstimates:
    def test_one_visit_less_by_the_integer_part_speaks_against_no_epsilon(self):
        true = np.array([[3, 5, 2, 1]])
        assert np.isinf(max_likelihood_epsilon(true - 1, true, rounding="floor"))
        assert np.isfinite(max_likelihood_epsilon(true - 1, true))

    def test_the_binomial_rule_at_its_ends(self):
        assert confident_delta([0, 0.2, 1], 12, 1.0).tolist() == [0, 12, 12]


class TestProfiles:
    def test_a_moment_lies_in_a_day_of_the_zone(self):
        assert day(pd.Timestamp("2024-03-01 23:30", tz="UTC"), "Europe/Paris") == day("2024-03-02", "Europe/Paris")

    def test_the_use_of_other_cells(self):
        cells = pd.DataFrame({"cell": [1, 2], "lat": [45.0, 46.0], "lng": [5.0, 5.0]})
        assert set(pois_of(cells, 1, "used", pd.Series({2: 7}))) == {"2"}


def test_who_calls_at_one_moment_only_has_no_burstiness_and_hides_nobodys():
    t = pd.Timestamp("2024-03-01", tz="UTC") + pd.to_timedelta([*[0] * 14, *np.arange(14) ** 3], unit="s")
    cells = as_cells(pd.DataFrame({"cell": ["c", "d"], "lat": [1.0, 2.0], "lng": [3.0, 4.0]}))
    calls = as_calls(pd.DataFrame({"user": ["a"] * 14 + ["b"] * 14, "t": t, "cell": ["c", "d"] * 14}), cells)
    result = describe_calls(calls, cells)
    assert result.loc[result["quantity"] == "burstiness per user", "value"].between(-1, 1).all()


class TestExperiments:
    samples = draw(sample_setting(*halves(300)), rng(), 4)

    def test_a_band_of_infinite_values(self):
        assert dchi.band(np.array([1, 2, np.inf, np.inf, np.inf])) == pytest.approx((np.inf, 1.2, np.inf))
        assert dchi.band(np.array([1.0, 2, np.inf]), 0.0)[1:] == (2, 2)
        assert dchi.band(np.array([1.0, 2, 4, np.inf]), 0.8).high == np.inf

    def test_the_likeliest_epsilon_is_that_of_the_scale(self):
        printed = dchi.COUNTS._replace(scale="printed")
        result = dchi.estimated_epsilon(self.samples, printed, [1.0], "likeliest", pooled=True)
        np.testing.assert_allclose(result, 1.0, rtol=0.15)
        with pytest.raises(ValueError, match="of Laplace noise, not of geometric"):
            dchi.estimated_epsilon(self.samples, dchi.COUNTS._replace(law="geometric"), [1.0], "likeliest")

    def test_amounts_that_there_are_not(self):
        for pois in (0, 30):
            refuses("pois must be whole numbers in 1 … 29", dchi.side_information, self.samples, dchi.COUNTS, 1.0, [10], [pois])
        refuses("max_candidates must be a whole number", dchi.side_information, self.samples, dchi.COUNTS, 1.0, [10], [5], 0)


def test_an_epsilon_that_perturbs_nothing_is_refused():
    assert visits_audits.privacy_loss(RandomisedResponse(700.0)).epsilon == pytest.approx(700)
    for mechanism in (RandomisedResponse, LaplaceCounts, Geometric):
        refuses("epsilon must be at most 700: above it nothing is perturbed", mechanism, 701.0)
        refuses("epsilon of user 1 must be at most 700", mechanism, np.array([1.0, 1e5]))
