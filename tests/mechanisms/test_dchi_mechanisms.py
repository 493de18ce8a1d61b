"""What every mechanism on profiles promises: a new one in ``mobpriv.mechanisms.visits.__all__`` is tested here at once.

All of them draw: each names its law in ``LAWS``, and one harness draws from it and tests what comes out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import naive_dchi as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from dchi_making import day
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import mobpriv.mechanisms
import mobpriv.mechanisms.visits
from mobpriv.base import exact_noise, noise
from mobpriv.mechanisms.visits import Geometric, LaplaceCounts, RandomisedResponse
from mobpriv.visits.affinity import Neighbourhood, affinity
from mobpriv.visits.profiles import booleans

COUNTS = day(60)
NEAR = Neighbourhood(5, affinity(COUNTS > 0))
KINDS = [getattr(mobpriv.mechanisms.visits, name) for name in mobpriv.mechanisms.visits.__all__]
EVERY = [kind(0.8, chi) for kind in KINDS for chi in (None, NEAR, np.arange(29) % 2 == 0)]
EVERY += [Geometric(0.8, exact=True), RandomisedResponse(0.8, p=0.4)]
EVERY += [LaplaceCounts(0.8, rounding="floor"), LaplaceCounts(0.8, scale="printed")]


def takes(mechanism) -> pd.DataFrame:
    return booleans(COUNTS) if isinstance(mechanism, RandomisedResponse) else COUNTS


def chi_of(mechanism, profiles):
    fixed = NEAR.masks(profiles > 0) if mechanism.chi is NEAR else True if mechanism.chi is None else mechanism.chi
    return np.broadcast_to(fixed, profiles.shape)


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
class TestEveryMechanism:
    def test_result_is_a_profile_of_the_same_kind(self, mechanism):
        true = takes(mechanism)
        perturbed = mechanism.protect(true, np.random.default_rng(1))
        pd.testing.assert_index_equal(perturbed.index, true.index)
        pd.testing.assert_index_equal(perturbed.columns, true.columns)
        assert perturbed.dtypes.tolist() == true.dtypes.tolist()
        assert (perturbed.to_numpy() >= 0).all()

    def test_outside_chi_nothing_changes_and_inside_something_does(self, mechanism):
        true = takes(mechanism)
        perturbed, chi = mechanism.protect(true, np.random.default_rng(1)), chi_of(mechanism, true)
        changed = perturbed.to_numpy() != true.to_numpy()
        assert not (changed & ~chi).any()
        assert (changed & chi).sum() > 0.05 * chi.sum()

    def test_input_is_untouched_and_the_same_seed_gives_the_same_result(self, mechanism):
        true = takes(mechanism)
        before = true.copy(deep=True)
        one, two, other = (mechanism.protect(true, np.random.default_rng(seed)) for seed in (9, 9, 8))
        pd.testing.assert_frame_equal(one, two, check_exact=True)
        assert mechanism.random == (not one.equals(other))
        one.iloc[:, :] = one.iloc[0, 0]
        pd.testing.assert_frame_equal(true, before, check_exact=True)

    def test_chunks_give_the_same_and_empty_stays_empty(self, mechanism):
        true, rng = takes(mechanism), np.random.default_rng(3)
        parts = [mechanism.protect(true.iloc[a : a + 25], rng) for a in (0, 25, 50)]
        pd.testing.assert_frame_equal(pd.concat(parts), mechanism.protect(true, np.random.default_rng(3)))
        pd.testing.assert_frame_equal(mechanism.protect(true.iloc[:0], rng), true.iloc[:0])

    def test_names_do_not_matter(self, mechanism):
        true = takes(mechanism)
        renamed = true.rename(index="x{}".format, columns="y{}".format)
        perturbed = mechanism.protect(renamed, np.random.default_rng(1))
        np.testing.assert_array_equal(perturbed, mechanism.protect(true, np.random.default_rng(1)))

    def test_an_epsilon_a_user(self, mechanism):
        """§III-B: ε_i. By name, whatever the order; and by place."""
        if mechanism.name == "randomised response" and mechanism.p is not None:
            return
        true = takes(mechanism)
        epsilons = pd.Series(np.where(np.arange(60) < 30, 0.8, 40.0), true.index)
        perturbed = replace(mechanism, epsilon=epsilons[::-1]).protect(true, np.random.default_rng(1))
        pd.testing.assert_frame_equal(
            perturbed, replace(mechanism, epsilon=epsilons.to_numpy()).protect(true, np.random.default_rng(1))
        )
        pd.testing.assert_frame_equal(perturbed.iloc[:30], mechanism.protect(true, np.random.default_rng(1)).iloc[:30])
        if getattr(mechanism, "rounding", "") != "floor":  # whose integer part moves counts without noise, too
            pd.testing.assert_frame_equal(perturbed.iloc[30:], true.iloc[30:])
        for wrong in (epsilons.iloc[1:], epsilons.to_numpy()[1:]):
            with pytest.raises(ValueError, match="epsilon"):
                replace(mechanism, epsilon=wrong).protect(true, np.random.default_rng(1))

    def test_probabilities_sum_to_one(self, mechanism):
        values = np.arange(2 if mechanism.name == "randomised response" else 9)
        outputs = np.array(getattr(mechanism, "outputs", range(120)))
        p = np.exp(mechanism.log_probability(outputs[None, :], values[:, None]))
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)

    def test_parameters_cannot_be_changed(self, mechanism):
        with pytest.raises(AttributeError):
            mechanism.epsilon = 5.0

    @pytest.mark.parametrize("wrong", ["x", None, COUNTS.astype(float), COUNTS.astype(float).replace(1.0, np.nan), COUNTS - 3])
    def test_what_is_no_profile_is_refused(self, mechanism, wrong):
        refuses("profiles must", mechanism.protect, wrong, np.random.default_rng(1))


@dataclass(frozen=True)
class Law:
    """The exact law of a coordinate: ``probability(mechanism, published, true)`` from the definition; wrong ones by a few percent."""

    values: tuple
    probability: Callable
    wrong: dict  # in words -> what makes the wrong mechanism of a right one


def laplace_law(m, y, c):
    return naive.laplace_probability(y, c, (1 if m.scale == "calibrated" else 0.5) / m.epsilon, m.rounding)


LAWS = {
    "RandomisedResponse": Law(
        (0, 1),
        lambda m, y, b: naive.flip_probability(y, b, 1 / (1 + np.exp(m.epsilon)) if m.p is None else m.p),
        {"flips 5 % too seldom": lambda m: replace(m, epsilon=1.08 * m.epsilon, p=None if m.p is None else 0.95 * m.p)},
    ),
    "LaplaceCounts": Law(
        (0, 1, 3),
        laplace_law,
        {
            "5 % too much noise": lambda m: replace(m, epsilon=m.epsilon / 1.05),
            "too little": lambda m: replace(m, epsilon=m.epsilon * 1.05),
            "the other rounding": lambda m: replace(m, rounding={"floor": "nearest", "nearest": "floor"}[m.rounding]),
            "the other scale": lambda m: replace(m, scale="printed" if m.scale == "calibrated" else "calibrated"),
        },
    ),
    "Geometric": Law(
        (0, 1, 3),
        lambda m, y, c: naive.geometric_probability(y, c, m.epsilon),
        {
            "5 % too much noise": lambda m: replace(m, epsilon=m.epsilon / 1.05),
            "Laplace": lambda m: LaplaceCounts(m.epsilon),
        },
    ),
}
DRAWS, LEVEL = 40_000, 1e-4
LAWFUL = [m for m in EVERY if m.chi is None and not getattr(m, "exact", False)]  # whose law has a test of its own


def drawn(mechanism, value, seed):
    """What becomes of DRAWS coordinates that hold ``value``: users × 4 POIs."""
    kind = bool if isinstance(mechanism, RandomisedResponse) else np.int64
    true = pd.DataFrame(np.full((DRAWS // 4, 4), value, kind), columns=list("abcd"))
    return mechanism.protect(true, np.random.default_rng(seed)).to_numpy().astype(int)


def p_value(outputs, law):
    """Chi-square, what is rarer than ten in all draws in one class."""
    tally = np.bincount(outputs.ravel(), minlength=len(law))
    tally, rest = tally[: len(law)], tally[len(law) :].sum()
    often = law * outputs.size >= 10
    expected = np.append(law[often], 1 - law[often].sum()) * outputs.size
    seen = np.append(tally[often], tally[~often].sum() + rest)
    if expected[-1] < 1e-6:
        expected, seen = expected[:-1], seen[:-1]
    return stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue


def law_of(mechanism, value):
    probability = LAWS[type(mechanism).__name__].probability
    return np.array([probability(mechanism, y, value) for y in getattr(mechanism, "outputs", range(60))])


@pytest.mark.parametrize("mechanism", LAWFUL, ids=repr)
class TestLaw:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_draws_follow_it(self, mechanism, seed):
        for value in LAWS[type(mechanism).__name__].values:
            assert p_value(drawn(mechanism, value, seed), law_of(mechanism, value)) > LEVEL, value

    def test_a_slightly_wrong_one_is_told_apart(self, mechanism):
        law = LAWS[type(mechanism).__name__]
        for words, make in law.wrong.items():
            least = min(p_value(drawn(make(mechanism), value, 1), law_of(mechanism, value)) for value in law.values)
            assert least < LEVEL / 100, words

    def test_draws_are_independent(self, mechanism):
        """Of the other POIs of the same user, and of the user before."""
        result = np.minimum(drawn(mechanism, LAWS[type(mechanism).__name__].values[-1], 3), 4)
        pairs = [(result[:, a], result[:, b]) for a in range(4) for b in range(a)] + [(result[1:, 0], result[:-1, 0])]
        for one, other in pairs:
            assert stats.chi2_contingency(pd.crosstab(one, other)).pvalue > LEVEL

    def test_log_probability_is_the_law(self, mechanism):
        for value in LAWS[type(mechanism).__name__].values:
            outputs = np.array(getattr(mechanism, "outputs", range(30)))
            result = np.exp(mechanism.log_probability(outputs, value))
            np.testing.assert_allclose(result, law_of(mechanism, value)[: len(outputs)], atol=1e-12)


@given(st.floats(0.05, 8), st.integers(0, 12), st.integers(0, 12), st.sampled_from(noise.ROUNDING_RULES))
def test_closed_forms_equal_the_definitions(epsilon, y, c, rounding):
    result = np.exp(noise.log_laplace(y, c, epsilon, rounding)), np.exp(noise.log_geometric(y, c, epsilon))
    wanted = naive.laplace_probability(y, c, 1 / epsilon, rounding), naive.geometric_probability(y, c, epsilon)
    assert result == pytest.approx(wanted, rel=1e-6, abs=1e-14)


def test_noise_is_finite_at_both_ends_of_u():
    ends = np.array([0.0, 0.5, 1 - 2.0**-53])
    assert np.isfinite(noise.laplace(ends)).all()
    assert noise.geometric(ends, 0.5).tolist() == [-73, 0, 72]
    assert (noise.laplace(ends)[0] < -36, noise.laplace(ends)[1]) == (True, 0)


@pytest.mark.parametrize("epsilon", [0.25, 1.5])
def test_exact_noise_follows_its_law_far_out_too(epsilon):
    d, k = exact_noise.geometric((20_000,), epsilon, np.random.default_rng(1)), np.arange(-60, 61)
    q = np.exp(-epsilon)
    assert p_value(d + 60, (1 - q) / (1 + q) * q ** np.abs(k)) > LEVEL
    assert p_value(d + 60, (1 - q**1.08) / (1 + q**1.08) * q ** (1.08 * np.abs(k))) < LEVEL / 100
    far = int(5 / epsilon)  # |d| ≥ k has probability 2q^k/(1 + q): about 130 and 110 of the draws
    assert stats.binomtest(int((np.abs(d) >= far).sum()), len(d), 2 * q**far / (1 + q)).pvalue > LEVEL


def test_exact_noise_has_no_end(monkeypatch):
    """ε = 7: of 53 bits no noise is above 5. Here trials of e^−1 succeed 700 times, which gives 100."""
    success, failure = [0, 0, 1], [0, 1]  # two trials of 1/k in a row succeed, the third fails; one and no more
    numbers = iter([0, 0, *success * 700, *failure, 0])
    monkeypatch.setattr(exact_noise, "below", lambda n, rng: next(numbers))
    assert exact_noise.geometric((1,), 7.0, np.random.default_rng(1)).tolist() == [100]
    assert next(numbers, None) is None
    assert np.abs(noise.geometric(np.array([0.0, 1 - 2.0**-53]), 7.0)).max() == 5


def test_the_end_of_noise_of_53_bits():
    largest = 1 - 2.0**-53
    for epsilon in (0.1, 1.0, 7.0, 73.0, 74.0):
        drawn = noise.rounded_and_clamped(np.array(10), noise.laplace(np.array([0.0, largest])) / epsilon) - 10
        assert -10 <= drawn[0] <= 0 <= drawn[1] <= noise.largest_error(epsilon)
        below = noise.rounded_and_clamped(np.array(1000), noise.laplace(np.array(0.0)) / epsilon) - 1000
        assert abs(below) in (noise.largest_error(epsilon), noise.largest_error(epsilon) - 1)
    assert noise.largest_error(np.array([7, 73, 74])).tolist() == [5, 1, 0]


def test_more_epsilon_less_noise_for_the_same_numbers():
    u = np.random.default_rng(1).random(1000)
    for noise_at in (lambda e: noise.flips(u, noise.least_p(e)) * 1, lambda e: noise.geometric(u, e)):
        steps = [np.abs(noise_at(e)) for e in (0.1, 1, 3, 9)]
        assert all((b <= a).all() and (b < a).any() for a, b in pairwise(steps))


class TestRefused:
    @pytest.mark.parametrize("kind", [RandomisedResponse, LaplaceCounts, Geometric])
    @pytest.mark.parametrize(
        "epsilon", [0, -1, np.nan, np.inf, "1", None, True, [], [1.0, -1.0], [1.0, "x"], np.ones((2, 2)), pd.Series([np.nan])]
    )
    def test_epsilon(self, kind, epsilon):
        refuses("epsilon", kind, epsilon)

    @pytest.mark.parametrize("p", [0.0, 0.26, 0.74, 1.0, np.nan, "0.3"])
    def test_p_outside_its_interval(self, p):
        refuses(r"p must lie in 1/\(1 \+ e\^ε\) … e\^ε/\(1 \+ e\^ε\), 0.268941 … 0.731059", RandomisedResponse, 1.0, p=p)
        least = 1 / (1 + np.e)
        assert [RandomisedResponse(1.0, p=end).flip for end in (least, 1 - least)] == [least, 1 - least]

    @pytest.mark.parametrize(
        "chi", ["all", 3, np.nan, np.ones(3), np.zeros(3, bool), np.ones((2, 2, 2), bool), [True], np.array([[True], [False]])]
    )
    def test_chi(self, chi):
        refuses("chi must", RandomisedResponse, 1.0, chi)

    def test_chi_of_other_users_or_pois(self):
        b = booleans(COUNTS)
        for chi, words in [
            (np.ones(28, bool), "chi must have a column a POI"),
            (np.ones((59, 29), bool), "chi must have a column a POI"),
            (pd.Series(True, b.columns[1:]), "no POI p00 is given"),
            (pd.DataFrame(True, b.index[1:], b.columns), "no user u000000 is given"),
        ]:
            with pytest.raises(ValueError, match=words):
                RandomisedResponse(1.0, chi).protect(b, np.random.default_rng(1))

    def test_an_empty_neighbourhood(self):
        b = booleans(COUNTS)
        b.iloc[7] = False
        with pytest.raises(ValueError, match="chi is empty for 1 of 60 users, the first is u000007: she has visited no POI"):
            RandomisedResponse(1.0, Neighbourhood(0, affinity(b))).protect(b, np.random.default_rng(1))
        RandomisedResponse(1.0, Neighbourhood(1, affinity(b))).protect(b, np.random.default_rng(1))


def test_masks_by_name_may_stand_in_any_order():
    b = booleans(COUNTS)
    mask = pd.DataFrame(np.random.default_rng(1).random(b.shape) < 0.5, b.index, b.columns)
    mask["p00"] = True
    perturbed = lambda chi: RandomisedResponse(1.0, chi).protect(b, np.random.default_rng(1))  # noqa: E731
    row = mask.iloc[0]
    for one, two in ((mask, mask.iloc[::-1, ::-1]), (mask, mask.to_numpy()), (row, row.iloc[::-1])):
        pd.testing.assert_frame_equal(perturbed(one), perturbed(two))


def test_without_modulo_a_zero_and_a_two_tell():
    b = booleans(COUNTS)
    perturbed = RandomisedResponse(0.01, modulo=False).protect(b, np.random.default_rng(1)).to_numpy()
    assert set(np.unique(perturbed)) == {0, 1, 2}
    assert not b.to_numpy()[perturbed == 0].any()
    assert b.to_numpy()[perturbed == 2].all()
    p = 1 / (1 + np.e)
    law = np.exp(RandomisedResponse(1.0, modulo=False).log_probability(np.arange(3)[None], np.arange(2)[:, None]))
    np.testing.assert_allclose(law, [[1 - p, p, 0], [0, 1 - p, p]])
