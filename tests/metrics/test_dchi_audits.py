"""Privacy audited: Propositions 7 and 9 hold at ε and fail just below it; what leaks, leaks."""

from itertools import product

import naive_dchi as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from dchi_making import day
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.mechanisms.visits import Geometric, LaplaceCounts, RandomisedResponse
from mobpriv.metrics import visits_audits
from mobpriv.visits.affinity import Neighbourhood, affinity

NEAR = Neighbourhood(5, affinity(day(60) > 0))
PRIVATE = [RandomisedResponse(0.7, p=p) for p in (None, 1 / (1 + np.exp(-0.7)))]  # both ends of Proposition 7's interval
PRIVATE += [LaplaceCounts(0.7, rounding="floor"), *map(LaplaceCounts, (0.05, 0.7, 5.0)), *map(Geometric, (0.7, 5.0))]


def holds(mechanism, epsilon) -> bool:
    """Definition 5 with the metric of Definition 6, for one coordinate: P(y|a) ≤ e^(ε|a − a'|) P(y|a'), over every pair and output."""
    values = np.array(getattr(mechanism, "values", range(9)))
    outputs = np.array(getattr(mechanism, "outputs", range(30)))
    log_p = mechanism.log_probability(outputs[None], values[:, None])
    distance = np.abs(values[:, None] - values)[..., None]
    return bool((log_p[:, None] <= epsilon * distance + log_p[None] + 1e-11).all())


@pytest.mark.parametrize("mechanism", PRIVATE, ids=repr)
def test_the_bound_holds_at_epsilon_and_fails_just_below(mechanism):
    assert holds(mechanism, mechanism.epsilon)
    assert not holds(mechanism, 0.999 * mechanism.epsilon)
    assert visits_audits.privacy_loss(mechanism).epsilon == pytest.approx(mechanism.epsilon, rel=1e-9)


def test_a_p_inside_its_interval_gives_more_than_asked_for():
    loss = visits_audits.privacy_loss(RandomisedResponse(2.0, p=0.4))
    assert loss.epsilon == pytest.approx(np.log(0.6 / 0.4))
    assert visits_audits.privacy_loss(RandomisedResponse(2.0, p=0.5)).epsilon == 0
    assert visits_audits.privacy_loss(RandomisedResponse(0.01, modulo=False)) == (np.inf, 0, 1, 0)  # is not private at all


@pytest.mark.parametrize("rounding", ["nearest", "floor"])
def test_the_printed_scale_is_only_twice_epsilon_private(rounding):
    """§III-C's standard deviation 1/(√2·ε) against Proposition 9."""
    printed = LaplaceCounts(0.7, rounding=rounding, scale="printed")
    assert not holds(printed, 0.7)
    assert not holds(printed, 0.999 * 1.4)
    assert holds(printed, 1.4)
    assert visits_audits.privacy_loss(printed).epsilon == pytest.approx(1.4, rel=1e-9)


@pytest.mark.parametrize(
    ("mechanism", "probability"),
    [
        (RandomisedResponse(0.9), lambda y, b: naive.flip_probability(y, b, 1 / (1 + np.exp(0.9)))),
        (Geometric(0.9), lambda y, c: naive.geometric_probability(y, c, 0.9)),
        (LaplaceCounts(0.9), lambda y, c: naive.laplace_probability(y, c, 1 / 0.9, "nearest")),
    ],
    ids=["randomised response", "geometric", "Laplace counts"],
)
def test_whole_profiles_lose_as_much_a_unit_of_distance(mechanism, probability):
    """Every pair of profiles of two POIs and every output, χ the first POI or both."""
    boolean = isinstance(mechanism, RandomisedResponse)
    profiles = list(product(range(2 if boolean else 3), repeat=2))
    outputs = list(product(range(2 if boolean else 6), repeat=2))
    for chi in ({0}, {0, 1}):
        pairs = [((a, chi), (b, chi)) for a in profiles for b in profiles if a != b and (1 in chi or a[1] == b[1])]
        assert naive.worst_ratio(pairs, outputs, probability) == pytest.approx(visits_audits.privacy_loss(mechanism).epsilon)


def test_releases_compose():
    loss = visits_audits.privacy_loss(RandomisedResponse(0.9))
    p = 1 / (1 + np.exp(0.9))
    # two releases, two POIs: the worst output shows the one profile four times
    worst = np.log(((1 - p) / p) ** 4)
    assert visits_audits.composed(loss, releases=2, distance=2) == pytest.approx(worst) == pytest.approx(3.6)
    assert visits_audits.composed(loss, 29, 0) == 0
    assert visits_audits.composed(np.inf, 3, 0) == 0
    assert visits_audits.composed(0.1, 1, 29) == pytest.approx(2.9)


def test_the_counterexample_by_hand():
    """Three POIs, A and B going together: who was at A alone has χ = {A, B}, who was at A and C has χ = {A, C}. N(b, 2) as printed.

    The output that flips B is possible for the first and impossible for the second, though they differ at one POI.
    """
    matrix = np.array([[4.0, 3, 1], [3, 4, 0], [1, 0, 5]])
    m = RandomisedResponse(0.1, Neighbourhood(2, matrix))
    chi = m.chi.masks(np.array([[True, False, False], [True, False, True]]))
    assert chi.tolist() == [[True, True, False], [True, False, True]]
    result = visits_audits.counterexamples(m).set_index(["profile", "neighbour"])
    row = result.loc[("100", "101")]
    assert (row["chi"], row["neighbours_chi"], row["published"]) == ("110", "101", "110")
    assert row["probability"] == pytest.approx(m.flip)  # B flips
    # and C is outside χ of the first: the second tells it is not her whenever C stays
    assert result.loc[("101", "100"), "probability"] == pytest.approx(1 - m.flip)


small = st.integers(2, 4).flatmap(lambda m: st.tuples(st.just(m), st.integers(0, m), st.integers(0, 1000)))


@settings(max_examples=30)
@given(small, st.sampled_from(["printed", "further"]), st.sampled_from(["all", "first"]))
def test_counterexamples_equal_the_definition(case, variant, ties):
    """Every pair of neighbours, every output: the probability of what the neighbour cannot publish."""
    m, n, seed = case
    aff = affinity(np.random.default_rng(seed).random((6, m)) < 0.5)
    mechanism = RandomisedResponse(0.5, Neighbourhood(n, aff, variant, ties))
    p = float(mechanism.flip)
    probability = lambda y, b: naive.flip_probability(y, b, p)  # noqa: E731
    result = visits_audits.counterexamples(mechanism)
    rows_by_pair = {(row.profile, row.neighbour): row for row in result.itertuples()}
    every = naive.boolean_profiles(m)
    for b in every:
        for other in (o for o in every if naive.l1(b, o) == 1):
            chi, others = (naive.neighbourhood(row, aff, n, variant, ties) for row in (b, other))
            possible = {y: naive.profile_probability(y, b, chi, probability) for y in every}
            mine = {y: q for y, q in possible.items() if q > 0 and not naive.profile_probability(y, other, others, probability)}
            name = tuple("".join(str(int(x)) for x in row) for row in (b, other))
            assert (name in rows_by_pair) == bool(mine)
            if mine:
                assert rows_by_pair[name].probability == pytest.approx(sum(mine.values()))
                assert tuple(c == "1" for c in rows_by_pair[name].published) in mine
    # the same profiles as a table of users
    table = pd.DataFrame(every, columns=[f"p{j}" for j in range(m)])
    counted = visits_audits.count_telling(mechanism, table)
    assert counted["neighbours"].sum() == len(result)
    expected = result.groupby("profile")["probability"].max()
    np.testing.assert_allclose(counted["probability"].max(), expected.max() if len(expected) else 0)


@pytest.mark.parametrize("kind", [LaplaceCounts, Geometric])
def test_counterexamples_of_counts_equal_the_definition(kind):
    """Every pair of count profiles of 0 to 2 visits that are 1 apart, every output up to 40 visits a POI."""
    m, n = 2, 1
    aff = np.array([[0.6, 0.1], [0.1, 0.3]])
    mechanism = kind(0.9, Neighbourhood(n, aff))
    probability = {
        LaplaceCounts: lambda y, c: naive.laplace_probability(y, c, 1 / 0.9, "nearest"),
        Geometric: lambda y, c: naive.geometric_probability(y, c, 0.9),
    }[kind]
    result = visits_audits.counterexamples(mechanism).set_index(["profile", "neighbour"])["probability"]
    outputs, n_telling, largest = list(product(range(40), repeat=m)), 0, {}
    for c in product(range(3), repeat=m):
        for other in (o for o in product(range(4), repeat=m) if naive.l1(c, o) == 1):
            chi, others = (naive.neighbourhood([x > 0 for x in row], aff, n) for row in (c, other))
            possible = {y: naive.profile_probability(y, c, chi, probability) for y in outputs}
            mine = sum(q for y, q in possible.items() if q > 0 and not naive.profile_probability(y, other, others, probability))
            names = tuple("".join(str(x) for x in row) for row in (c, other))
            if max(*c, *other) < 2:
                assert result.get(names, 0.0) == pytest.approx(mine, abs=1e-12)
            n_telling, largest[c] = n_telling + (mine > 0), max(mine, largest.get(c, 0.0))
    assert n_telling
    table = pd.DataFrame(list(largest), columns=["p0", "p1"])
    counted = visits_audits.count_telling(mechanism, table)
    assert counted["neighbours"].sum() == n_telling
    np.testing.assert_allclose(counted["probability"], list(largest.values()), atol=1e-12)


@pytest.mark.parametrize("kind", [RandomisedResponse, LaplaceCounts, Geometric])
class TestNeighbourhood:
    def test_no_epsilon_is_kept_where_chi_follows_the_profile(self, kind):
        assert visits_audits.privacy_loss(kind(1.0, Neighbourhood(2, np.eye(4)))) == (np.inf, 1, 0, 1)
        assert visits_audits.privacy_loss(kind(1.0, NEAR)).epsilon == np.inf
        assert visits_audits.privacy_loss(kind(1.0, Neighbourhood(np.array([4, 2]), np.eye(4)))).epsilon == np.inf

    def test_epsilon_is_kept_where_it_is_everything(self, kind):
        for chi in (Neighbourhood(4, np.eye(4)), Neighbourhood(1, np.ones((20, 20))), np.array([True, False])):
            assert visits_audits.privacy_loss(kind(1.0, chi)).epsilon == pytest.approx(1)

    def test_the_counterexamples_say_the_same(self, kind):
        for n, matrix in product(range(4), (np.eye(3), np.ones((3, 3)), np.array([[4.0, 3, 1], [3, 4, 0], [1, 0, 5]]))):
            m = kind(1.0, Neighbourhood(n, matrix))
            assert np.isinf(visits_audits.privacy_loss(m).epsilon) == bool(len(visits_audits.counterexamples(m)))


def law(b, p):
    """ln P(y | b) of bits that flip each with a probability of its own."""
    with np.errstate(divide="ignore"):
        return np.where(b[None] != b[:, None], np.log(p), np.log1p(-np.asarray(p))).sum(axis=-1)


def test_proposition_7_is_about_profiles_that_agree_outside_of_chi():
    """By hand: χ = {1} of two POIs, b = (0, 0) and b' = (0, 1). Their distance over χ is 0, and they have no output in common."""
    b, p = np.array(list(product((False, True), repeat=2))), 1 / (1 + np.e)
    first, both = np.array([True, False]), np.array([True, True])
    assert visits_audits.profile_loss(law(b, [p, 0]), b, first) == pytest.approx(1)
    assert visits_audits.profile_loss(law(b[:2], [p, 0]), b[:2], first, agreeing=False) == np.inf
    # χ everything: all pairs agree outside of it
    assert visits_audits.profile_loss(law(b, [p, p]), b, both, agreeing=False) == pytest.approx(1)
    # a coordinate outside of χ that is a fair coin keeps the guarantee for all pairs
    assert visits_audits.profile_loss(law(b, [p, 0.5]), b, first, agreeing=False) == pytest.approx(1)


def test_in_data_nearly_every_profile_betrays_itself():
    counts = day(500)
    m = RandomisedResponse(0.1, Neighbourhood(5, affinity(counts > 0)))
    result = visits_audits.count_telling(m, counts)
    assert result.index.equals(counts.index)
    pd.testing.assert_frame_equal(result, visits_audits.count_telling(m, counts > 0))
    assert (result["neighbours"] > 0).mean() > 0.9


test_what_is_refused = refusals(
    # with a fixed χ there is nothing to tell: no neighbourhood, no counterexample
    (lambda: visits_audits.count_telling(RandomisedResponse(0.1), day(9)), "must perturb a Neighbourhood"),
    (lambda: visits_audits.counterexamples(RandomisedResponse(0.1, Neighbourhood(4, np.eye(13)))), r"at most 12 POIs .got 13"),
    (lambda: visits_audits.privacy_loss(Geometric(np.array([1.0, 2.0]))), "epsilon must be one number here"),
    (lambda: visits_audits.privacy_loss(Geometric(1.0), 1), "largest"),
    (lambda: visits_audits.composed(0.1, 0), "releases"),
)
