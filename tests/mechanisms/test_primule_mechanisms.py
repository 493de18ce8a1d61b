"""What every mechanism on individual call profiles promises; PRIMULE, MDAV and noise against their definitions, and their losses."""

import re
from dataclasses import fields, replace
from fractions import Fraction
from itertools import pairwise

import naive_primule as naive
import numpy as np
import pandas as pd
import pytest
from call_making import crowd
from conftest import NOTHING_CAN_BE, refuses
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

import mobpriv.mechanisms.icp
from mobpriv.datasets import load_calls
from mobpriv.datasets.region import FIRST_MIDNIGHT, ZONE
from mobpriv.icp import profiles as icps
from mobpriv.icp.rows import distinct
from mobpriv.mechanisms.icp import Mdav, NoisyProfiles, Primule, nearest, per_group
from mobpriv.mechanisms.icp.noise import SENSITIVITIES
from mobpriv.mechanisms.icp.primule import _max_product
from mobpriv.metrics import icp_audits
from mobpriv.metrics.information_loss import SIMILARITIES, information_loss, mse, one_group, profile_distances, similarity

DAYS = icps.DAYS


def by_service(mean, means):
    """A distance of the reader's own: weekday slots count twice."""
    weight = np.where(np.arange(len(mean)) % 6 < 3, 2.0, 1.0)
    return np.sqrt((weight * (means - mean) ** 2).sum(axis=1))


PROFILES = crowd()
PARAMETERS = {"Primule": {"k": 5}, "Mdav": {"k": 5}, "NoisyProfiles": {"epsilon": 1.0}}
EVERY = [getattr(mobpriv.mechanisms.icp, name)(**given) for name, given in PARAMETERS.items()]
EVERY += [Primule(5, distance=d) for d in ("manhattan", "cosine", by_service)]
EVERY += [Primule(5, h=icps.known_cells(2)), Primule(5, unsafe="printed"), Mdav(5, h=icps.known_cells(2)), Mdav(5, h=(3, 1))]
EVERY += [NoisyProfiles(2.0, unit, calibrated=True) for unit in SENSITIVITIES]


def test_every_mechanism_is_tested_here():
    assert set(PARAMETERS) == set(mobpriv.mechanisms.icp.__all__) - {"Protected", "per_group"}


def protect(mechanism, profiles, seed=1):
    return mechanism.protect(profiles, np.random.default_rng(seed))


def called(mechanism) -> str:
    """Without the address of a function, which differs from process to process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(mechanism))


@pytest.mark.parametrize("mechanism", EVERY, ids=called)
class TestEveryMechanism:
    def test_every_profile_stays_and_is_one(self, mechanism):
        protected = protect(mechanism, PROFILES)
        pd.testing.assert_index_equal(protected.values.index, PROFILES.index)
        pd.testing.assert_index_equal(protected.values.columns, PROFILES.columns)
        assert ((protected.values.to_numpy() >= 0) & (protected.values.to_numpy() <= 1)).all()
        assert not protected.values.equals(PROFILES)

    def test_input_is_untouched_and_the_same_seed_gives_the_same_result(self, mechanism):
        one, two, other = (protect(mechanism, PROFILES, seed).values for seed in (9, 9, 8))
        pd.testing.assert_frame_equal(one, two, check_exact=True)
        assert mechanism.random == (not one.equals(other))
        for given_ in (PROFILES, PROFILES.iloc[:3], PROFILES.iloc[:0]):
            before = given_.copy(deep=True)
            protected = protect(mechanism, given_)
            assert protected.values.shape == given_.shape
            protected.values.iloc[:, :] = 0.5
            pd.testing.assert_frame_equal(given_, before, check_exact=True)

    def test_order_of_rows_does_not_matter(self, mechanism):
        order = np.random.default_rng(3).permutation(len(PROFILES))
        one, other = protect(mechanism, PROFILES), protect(mechanism, PROFILES.iloc[order])
        pd.testing.assert_frame_equal(one.values.iloc[order], other.values, check_exact=True)
        if one.group is not None:
            np.testing.assert_array_equal(one.group[order], other.group)

    def test_outside_h_nothing_changes(self, mechanism):
        if getattr(mechanism, "h", None) is not None:
            outside = np.setdiff1d(np.arange(24), mechanism.h)
            protected = protect(mechanism, PROFILES).values
            pd.testing.assert_frame_equal(protected[outside], PROFILES[outside], check_exact=True)

    def test_parameters_cannot_be_changed(self, mechanism):
        with pytest.raises(AttributeError):
            mechanism.k = 5

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            ("x", "a table, a row a profile"),
            (None, "a table, a row a profile"),
            (PROFILES.to_numpy(), "a table, a row a profile"),
            (PROFILES.iloc[:, :0], "a table, a row a profile"),
            (PROFILES.mask(np.eye(150, 24, k=-7, dtype=bool)), "0 … 1 .24 of 3600 values are none, .* nan in row u007, cell 0"),
            (PROFILES + 0.5, "0 … 1"),
            (PROFILES - 0.2, "0 … 1"),
            (PROFILES.astype(str), "numbers"),
            (PROFILES > 0, "numbers"),
            (PROFILES.rename(index={"u001": "u000"}), "every row once .u000"),
            (PROFILES.rename(columns={1: 0}), "every cell once .0"),
        ],
    )
    def test_what_is_no_profile_is_refused(self, mechanism, wrong, words):
        refuses(f"profiles must .*{words}", protect, mechanism, wrong)


WRONG = {  # field -> its rule, and what breaks it besides what no parameter can be
    "k": ("must be a whole number of profiles, at least 2 .got", [1, 0, -3, 2.5, "5", None]),
    "h": (
        "must be the first 1 to 4 weeks, or a list of cells .*, each once .got",
        [(), "weeks", 5, 0, 2.5, [0, 0], [-1], [0.5], [True], [[0]], np.array([]), [np.nan], {0: 1}],
    ),
    "distance": ("must be", ["Euclid", None, 2, np.nan, b"euclidean"]),
    "unsafe": ("must be", ["<= k"]),
    "epsilon": ("must be positive", [0, -1, "1", None, [1.0]]),
    "sensitivity": ('must be "cell", "call", "day" or "profile"', ["user"]),
    "calibrated": ("must be True or False", [1]),
}


@pytest.mark.parametrize(
    ("name", "field"), [(name, f.name) for name in PARAMETERS for f in fields(getattr(mobpriv.mechanisms.icp, name))]
)
def test_what_no_parameter_can_be(name, field):
    rule, wrong = WRONG[field]
    for value in (*NOTHING_CAN_BE, *[True] * (field != "calibrated"), np.inf, 10**400, *wrong):
        with pytest.raises(ValueError, match=rf"^{field} {rule}") as refused:
            getattr(mobpriv.mechanisms.icp, name)(**{**PARAMETERS[name], field: value})
        assert "\n" not in str(refused.value)


GROUPING = [m for m in EVERY if hasattr(m, "k")]


@pytest.mark.parametrize("mechanism", GROUPING, ids=called)
class TestEveryGrouping:
    def test_theorem_6_2_and_the_means(self, mechanism):
        """Every group ends with k rows or more, equal on h; the sum of each cell stays."""
        protected = protect(mechanism, PROFILES)
        assert protected.anonymous is True
        assert np.bincount(protected.group).min() >= mechanism.k
        h = list(range(24) if mechanism.h is None else mechanism.h)
        assert (protected.values[h] == protected.values[h].groupby(protected.group).transform("first")).all(axis=None)
        expected = PROFILES[h].groupby(protected.group).transform("mean")
        np.testing.assert_allclose(protected.values[h], expected, atol=1e-12)
        np.testing.assert_allclose(protected.values.sum(), PROFILES.sum(), rtol=1e-12)

    def test_fewer_than_k_come_back_flagged(self, mechanism):
        for n in (0, 1, 4):
            protected = protect(mechanism, PROFILES.iloc[:n])
            assert protected.anonymous is False
            pd.testing.assert_frame_equal(protected.values, PROFILES.iloc[:n])
        assert protect(mechanism, PROFILES.iloc[:5]).anonymous is True

    def test_whoever_is_alike_already_is_left_alone(self, mechanism):
        equal = pd.DataFrame(np.tile(PROFILES.iloc[[0]], (7, 1)))
        np.testing.assert_array_equal(protect(mechanism, equal).values, equal)

    def test_weeks_are_their_cells(self, mechanism):
        assert replace(mechanism, h=2) == replace(mechanism, h=2.0) == replace(mechanism, h=icps.known_cells(2))
        assert replace(mechanism, h=[3, 1]) == replace(mechanism, h=np.array([1, 3]))

    def test_a_cell_that_there_is_not(self, mechanism):
        refuses(r"cells from 0 to 23, each once \(got 24\)", replace, mechanism, h=[0, 24])
        refuses(r"cells from 0 to 5, each once \(got 6\)", protect, replace(mechanism, h=2), PROFILES.iloc[:, :6])

    def test_numbers_that_are_no_shares_of_days(self, mechanism):
        odd = PROFILES + 0.0
        odd.iloc[3, 3] = np.pi / 4
        refuses(r"six decimals.*astype\(float\)\.round\(6\).*0\.785", protect, mechanism, odd)
        assert protect(mechanism, odd.round(6)).anonymous
        short = odd.astype("float32").round(6)  # 0.2 is no six decimals there: 0.20000000298
        refuses("astype", protect, mechanism, short)
        protected = [protect(mechanism, of).values for of in (short.astype(float).round(6), odd.round(6))]
        pd.testing.assert_frame_equal(*protected)
        thirds = PROFILES + 0.0
        thirds.iloc[:, 0] = np.arange(150) % 4 / 3  # a week of three working days
        assert protect(mechanism, thirds).anonymous


class TestPrimule:
    def test_equal_distances_are_equal_numbers(self):
        """0.6 − 0.4 is no 0.2 in binary numbers; nor is the distance of a mean of thirds the same from both sides."""
        x = pd.DataFrame({"a": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]})
        assert protect(Primule(2), x).group.tolist() == [0, 0, 1, 1, 2, 2]
        totals, members = np.array([[1], [2], [1], [3], [5]]), np.array([3, 6, 1, 3, 3])
        means = totals / members[:, None]
        near = [nearest.exact(0, totals, members, means, a, b, 10**6) for a, b in ((0, 2), (1, 2), (2, 4), (3, 4))]
        assert near == [4 / 9] * 4
        assert 2 / 3 - 1 / 3 != 1 - 2 / 3

    def test_at_most_k_as_printed_merges_more(self):
        """Line 27: a merged group of exactly k stays unsafe; and with |P| = k the printed loop has no other group to take."""
        x = pd.DataFrame({"cell": [0.0, 0.2, 0.8, 1.0]})
        assert protect(Primule(2), x).group.tolist() == [0, 0, 1, 1]
        assert protect(Primule(2, unsafe="printed"), x).group.tolist() == [0, 0, 0, 0]
        protected = protect(Primule(4, unsafe="printed"), x)
        assert (protected.anonymous, protected.group.tolist()) == (True, [0] * 4)
        twice = pd.DataFrame({"cell": [0.0, 0.0, 1.0, 1.0]})  # groups of k that nobody has merged are safe in Algorithm 1
        assert protect(Primule(2, unsafe="printed"), twice).group.tolist() == [0, 0, 1, 1]

    @given(st.data())
    def test_equals_the_algorithm(self, data):
        cells = data.draw(st.sampled_from([1, 3, 6, 24]))
        profiles = st.lists(st.tuples(*[st.integers(0, int(DAYS[j]) if j < 6 else 0) for j in range(cells)]), max_size=22)
        rows = data.draw(profiles)
        k, printed = data.draw(st.integers(2, 7)), data.draw(st.booleans())
        h = data.draw(st.sets(st.integers(0, cells - 1), min_size=1))
        dist = data.draw(st.sampled_from(["euclidean", "manhattan", "cosine"]))
        exact = [[Fraction(n, int(d)) for n, d in zip(row, DAYS, strict=False)] for row in rows]
        expected, groups, rounds = naive.primule(exact, sorted(h), k, getattr(naive, dist), printed)
        x = pd.DataFrame(np.array(rows, float).reshape(len(rows), cells) / DAYS[:cells])
        protected = protect(Primule(k, sorted(h), dist, "printed" if printed else "below k"), x)
        np.testing.assert_allclose(protected.values, np.array(expected, float).reshape(x.shape), atol=1e-12)
        assert protected.anonymous == (len(rows) >= k)
        protected_groups = [np.flatnonzero(protected.group == g).tolist() for g in np.unique(protected.group)]
        assert sorted(map(sorted, groups)) == sorted(protected_groups)
        assert all(later < earlier for earlier, later in pairwise(rounds))  # Theorem 6.1

    @pytest.mark.parametrize("dist", ["euclidean", "manhattan", "cosine"])
    def test_ties_are_decided_as_the_docstring_says(self, dist):
        """Few cells with few values: many pairs are as near as others, and of groups as large; which of them goes first decides the groups."""
        rng = np.random.default_rng(4)
        for _ in range(60):
            n, cells, k = rng.integers((8, 1, 3), (31, 4, 9))
            days = rng.integers(0, rng.choice([2, 6]), (n, cells))
            exact = [[Fraction(int(d), 5) for d in row] for row in days]
            _, groups, _ = naive.primule(exact, range(cells), k, getattr(naive, dist))
            group = protect(Primule(int(k), distance=dist), pd.DataFrame(days / 5)).group
            assert sorted(map(sorted, groups)) == sorted(np.flatnonzero(group == g).tolist() for g in np.unique(group))

    @pytest.mark.parametrize("name", nearest.METRICS)
    def test_a_function_gives_what_the_names_give(self, name):
        def plain(mean, means):
            if name == "euclidean":
                return np.linalg.norm(means - mean, axis=1)
            if name == "manhattan":
                return np.abs(means - mean).sum(axis=1)
            length = np.linalg.norm(means, axis=1) * np.linalg.norm(mean)
            return np.where(length > 0, 1 - means @ mean / np.where(length > 0, length, 1), 1.0 * (means != mean).any(axis=1))

        one, other = (protect(Primule(7, distance=d), PROFILES) for d in (name, plain))
        np.testing.assert_array_equal(one.group, other.group)

    @pytest.mark.parametrize(
        "d", [lambda m, o: 1.0, lambda m, o: o[:, 0] - 1, lambda m, o: o[:, 0] * np.nan, lambda m, o: o[:, 0] + np.inf]
    )
    def test_functions_that_are_no_distance(self, d):
        refuses("distance must return a finite number, 0 or above, for each of", protect, Primule(3, distance=d), PROFILES)


class TestNearest:
    @pytest.mark.parametrize("metric", nearest.METRICS.values())
    @pytest.mark.parametrize("leaf_and_more", [False, True])
    def test_the_tree_finds_what_a_search_through_all_finds(self, metric, leaf_and_more, region):
        """On profiles of the region, single ones and means of large groups."""
        rng = np.random.default_rng(2)
        integers = distinct(np.rint(region[:1500] * 10).astype(np.int64)).values
        members = rng.integers(1, 9, len(integers)) if leaf_and_more else np.ones(len(integers), np.int64)
        totals = integers * members[:, None]
        if leaf_and_more:
            totals[::3] += integers[rng.integers(0, len(integers), len(totals[::3]))]
            members[::3] += 1
        means = totals / members[:, None]
        axes, ids = nearest.axes(metric, means), np.arange(len(means))
        places = nearest.places(metric, means, axes)
        distance, neighbour = np.full(len(means), nearest.FAR), np.full(len(means), nearest.NOBODY)
        max_product = _max_product(metric, 24, 10)
        t = nearest.tree(places, ids)
        nearest.search(ids, places, metric, 10, max_product, *t, totals, members, means, distance, neighbour)
        for g in ids[::17]:
            best = min(nearest.exact(metric, totals, members, means, g, o, max_product) for o in ids if o != g)
            equal = [o for o in ids if o != g and nearest.exact(metric, totals, members, means, g, o, max_product) == best]
            assert distance[g] == best
            assert neighbour[g] == min(equal, key=lambda o: (-members[o], means[o].tolist(), o))

    def test_groups_too_large_for_whole_numbers_are_compared_as_means(self):
        totals, members = np.array([[10**9], [3 * 10**9]]), np.array([10**9, 10**9])
        assert nearest.exact(0, totals, members, totals / members[:, None], 0, 1, _max_product(0, 24, 10)) == 4
        assert _max_product(0, 24, 10) > 6e7 - 1

    @given(st.integers(1, 7000), st.integers(1, 7000), st.integers(1, 5), st.integers(0, 2**32))
    def test_exact_is_the_rational_number(self, a, b, factor, seed):
        """A group and the same one many times over are at the same distance to the last bit, which is the correct one."""
        rng = np.random.default_rng(seed)
        one, other = rng.integers(0, 10 * a + 1, 24), rng.integers(0, 10 * b + 1, 24)
        totals, members = np.array([one, other, factor * other]), np.array([a, b, factor * b])
        near = [nearest.exact(0, totals, members, totals / members[:, None], 0, j, _max_product(0, 24, 10)) for j in (1, 2)]
        true = sum((Fraction(int(x), a) - Fraction(int(y), b)) ** 2 for x, y in zip(one, other, strict=True))
        if factor * a * b <= _max_product(0, 24, 10):
            assert near[0] == near[1]
            assert abs(Fraction(near[0]) - true) <= Fraction(1, 2**40)


@pytest.fixture(scope="module")
def region():
    """The profiles of the region's largest municipality."""
    data = load_calls("region")
    cells = data.cells[data.cells["municipality"] == "M001"]
    calls = data.calls[data.calls["cell"].isin(cells["cell"])]
    profiles = icps.icps(calls, cells, icps.Window(FIRST_MIDNIGHT.date(), ZONE)).profiles
    return icps.values(profiles["key"].to_numpy())


class TestMdav:
    @given(st.data())
    def test_on_collapsed_profiles_equals_it_on_single_ones(self, data):
        cells = data.draw(st.sampled_from([1, 2, 6]))
        rows = data.draw(st.lists(st.tuples(*[st.integers(0, int(DAYS[j])) for j in range(cells)]), min_size=2, max_size=25))
        k = data.draw(st.integers(2, 6))
        x = pd.DataFrame(np.array(rows, float) / DAYS[:cells])
        protected = protect(Mdav(k), x)
        if len(rows) < k:
            return
        groups = naive.mdav([[Fraction(n, int(d)) for n, d in zip(row, DAYS, strict=False)] for row in rows], k)
        wanted = sorted([float(v) for v in row + naive.mean(rows)] for rows in groups for row in rows)
        actual = sorted(np.column_stack([x, protected.values]).tolist())
        np.testing.assert_allclose(actual, wanted, atol=1e-12)
        sizes = np.bincount(protected.group)
        assert sizes.min() >= k
        assert sizes.max() < 2 * k

    def test_names_decide_between_equal_rows(self):
        x = pd.DataFrame({"cell": [0.0, 0.0, 0.0, 1.0]}, index=list("cabd"))
        protected = protect(Mdav(2), x)
        assert protected.values["cell"].tolist() == protect(Mdav(2), x.sort_index()).values.loc[list("cabd"), "cell"].tolist()
        refuses("names of one kind", protect, Mdav(2), x.rename(index={"a": 1}))

    @pytest.mark.parametrize(("k", "most"), [(10, 1.15), (100, 1.25)])
    def test_primule_loses_little_more(self, region, k, most):
        """On the region's largest municipality. Where there are few times k profiles it loses more."""
        x = pd.DataFrame(region)
        ours, theirs = (mse(x, protect(kind(k), x).values) for kind in (Primule, Mdav))
        assert 0 < ours <= most * theirs


class TestNoise:
    @pytest.mark.parametrize("value", [0.0, 0.2, 0.5, 1.0])
    @pytest.mark.parametrize("mechanism", [NoisyProfiles(2.0), NoisyProfiles(3.0, "day", True)], ids=repr)
    def test_draws_follow_the_law(self, mechanism, value):
        """A scale 5 % off is told apart."""
        perturbed = protect(mechanism, pd.DataFrame(np.full((20_000, 24), value))).values.to_numpy()
        for cells in (icps.WEEKDAY_SLOTS, np.setdiff1d(np.arange(24), icps.WEEKDAY_SLOTS)):
            drawn, b = perturbed[:, cells], mechanism.scale(24)[cells[0]]
            p_value = [self.least_p_value(drawn, value, scale) for scale in (b, b / 1.05, b * 1.05)]
            assert p_value[0] > 1e-5 > max(p_value[1:])
        assert abs(np.corrcoef(perturbed[:, 0], perturbed[:, 1])[0, 1]) < 0.03
        assert abs(np.corrcoef(perturbed[1:, 0], perturbed[:-1, 0])[0, 1]) < 0.03

    @staticmethod
    def least_p_value(drawn, value, scale):
        at = (0.0, 0.1, 0.45, 0.8, 0.999)
        below = [(int((drawn <= y).sum()), drawn.size, naive.clamped_laplace_cdf(y, value, scale)) for y in at]
        return min(binomtest(*of).pvalue for of in below)

    @pytest.mark.parametrize("mechanism", [m for m in EVERY if isinstance(m, NoisyProfiles)], ids=repr)
    def test_log_law_is_the_law(self, mechanism):
        y = np.array([0.0, 0.3, 0.7, 1.0])
        for b in mechanism.scale(24)[[0, 5]]:
            for x in (0.0, 0.4, 1.0):
                cdf = lambda at, x=x, b=b: naive.clamped_laplace_cdf(at, x, b)  # noqa: E731
                slope = [(cdf(at + 1e-6) - cdf(at - 1e-6)) / 2e-6 for at in (0.3, 0.7)]
                wanted = [cdf(0.0), *slope, 1 - cdf(1 - 1e-12)]
                np.testing.assert_allclose(np.exp(mechanism.log_law(y, x, b)), wanted, rtol=1e-6)

    @pytest.mark.parametrize("unit", SENSITIVITIES)
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
    def test_calibrated_noise_holds_at_its_epsilon_and_fails_just_below(self, unit, epsilon):
        mechanism = NoisyProfiles(epsilon, unit, calibrated=True)
        loss = icp_audits.release_loss(mechanism, unit)
        assert loss.epsilon <= epsilon * (1 + 1e-9)
        assert loss.epsilon > epsilon * (1 - 1e-9)
        # the pair is one, and its output does tell so much
        change = np.abs(loss.true - loss.neighbour)
        assert {"cell": 1, "call": 1, "day": 3, "profile": 24}[unit] == (change > 0).sum()
        law = [mechanism.log_law(loss.published, side, mechanism.scale(24)) for side in (loss.true, loss.neighbour)]
        log_ratio = (law[0] - law[1])[change > 0].sum()
        assert log_ratio == pytest.approx(epsilon)
        less = replace(mechanism, epsilon=epsilon * 1.001)
        assert icp_audits.release_loss(less, unit).epsilon > epsilon

    def test_what_the_printed_noise_protects(self):
        """Lap(1/ε) on each cell: ε for a cell, half of it for a call, 1.5 for a day, 24 for the profile."""
        losses = {unit: icp_audits.release_loss(NoisyProfiles(2.0), unit).epsilon for unit in SENSITIVITIES}
        assert losses == pytest.approx({"cell": 2.0, "call": 1.0, "day": 3.0, "profile": 48.0})

    def test_what_has_no_noise(self):
        refuses("one to four weeks of 6 cells", protect, NoisyProfiles(1.0, "day", True), PROFILES.iloc[:, :5])
        refuses("sensitivity must be", icp_audits.release_loss, NoisyProfiles(1.0), "user")


class TestLoss:
    def test_by_hand(self):
        x, y = np.array([[0.0, 0.2], [1.0, 0.0]]), np.array([[0.3, 0.2], [1.0, 0.4]])
        assert mse(x, y) == pytest.approx((0.09 + 0.16) / 2)
        assert one_group(x) == pytest.approx(0.26)
        assert mse(x, y, [3, 1]) == pytest.approx((3 * 0.09 + 0.16) / 4)
        assert information_loss(x, y).share == pytest.approx(0.125 / 0.26)
        assert information_loss(x[:1], x[:1]) == (0.0, 0.0, 0.0)
        np.testing.assert_allclose(profile_distances(x, y), [0.3, 0.4])
        np.testing.assert_allclose(similarity(x, y), [1 / 1.3, 1 / 1.4])
        np.testing.assert_allclose(similarity(x, y, "linear"), 1 - np.array([0.3, 0.4]) / np.sqrt(2))
        np.testing.assert_allclose(similarity(x, y, "exponential"), np.exp([-0.3, -0.4]))

    def test_only_the_inverse_gives_the_similarities_of_7_1(self, region):
        """ε = 1: 0.2 to 0.3; ε = 2: 0.25 to 0.4; ε = 10: 80 % up to 0.7, less than 10 % reach 0.8."""
        x = pd.DataFrame(region)
        perturbed = {epsilon: protect(NoisyProfiles(epsilon), x).values for epsilon in (1.0, 2.0, 10.0)}

        def fits(form):
            one, two, ten = (similarity(x, perturbed[epsilon], form) for epsilon in (1.0, 2.0, 10.0))
            criteria = [0.2 < np.median(one) < 0.3, 0.25 < np.median(two) < 0.4]
            return [*criteria, np.quantile(ten, 0.8) < 0.75, (ten >= 0.8).mean() < 0.1]

        assert {form: all(fits(form)) for form in SIMILARITIES} == {"inverse": True, "linear": False, "exponential": False}
        assert sum(fits("linear")) == 0

    def test_refused(self):
        x = np.zeros((3, 2))
        for wrong in (x[:2], x[:, :1], x[0], x[:0]):
            refuses("two tables of the same shape", mse, wrong, x if wrong.size else wrong)
        refuses(r"protected profiles must hold numbers \(NaN in row 1, cell 0", mse, x, [[0, 0], [np.nan, 0], [0, 0]])
        refuses("sizes must", mse, x, x, [1, 2])
        refuses("form must be", similarity, x, x, "cosine")


def test_each_group_is_protected_by_itself():
    rng = np.random.default_rng(1)
    table, town = pd.DataFrame(rng.integers(0, 3, (40, 6)) / 2), np.array(list("PL") * 18 + list("MMPL"))
    protected = per_group(Mdav(3), table, town, rng)
    for name in "PL":
        rows = np.flatnonzero(town == name)
        pd.testing.assert_frame_equal(protected.values.iloc[rows], protect(Mdav(3), table.iloc[rows]).values, check_exact=True)
        assert np.bincount(protected.group)[protected.group[rows]].min() >= 3
    assert np.array_equal(protected.values[town == "M"], table[town == "M"])
    assert not protected.anonymous
    assert per_group(Mdav(2), table, town, rng).anonymous
    ends = [end for name in "LMP" for end in (protected.group[town == name].min(), protected.group[town == name].max())]
    assert ends == sorted(ends)
    assert len(np.unique(protected.group)) == sum(len(np.unique(protected.group[town == name])) for name in "LMP")
    order = rng.permutation(40)
    other = per_group(Mdav(3), table.iloc[order], town[order], rng)
    pd.testing.assert_frame_equal(other.values.sort_index(), protected.values, check_exact=True)
    noisy = per_group(NoisyProfiles(1.0), table, town, np.random.default_rng(2))
    assert (noisy.group, noisy.anonymous) == (None, None)
    assert per_group(NoisyProfiles(1.0), table.iloc[:0], [], rng).anonymous is None
    child = np.random.default_rng(2).spawn(3)["LMP".index("M")]
    assert noisy.values[town == "M"].equals(NoisyProfiles(1.0).protect(table[town == "M"], child).values)
    refuses(r"of each of the 40 profiles .got 40, 1 missing", per_group, Mdav(3), table, [None, *town[1:]], rng)
