"""dχ's days, samples and figures: the statistician, who leaks what, the attacks, against plain computations for one draw."""

from itertools import pairwise

import naive_dchi as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from dchi_making import halves

from mobpriv import datasets
from mobpriv.experiments import dchi
from mobpriv.experiments.dchi import choose_days, draw, join_settings, leaked, perturbed_profiles, sample_setting
from mobpriv.visits.affinity import neighbourhood
from mobpriv.visits.statistician import corrected_visitors, mean_error, visitors_per_poi, visits_per_poi

FIRST, SECOND = halves(400)
SETTING = sample_setting(FIRST, SECOND)
SAMPLES = draw(SETTING, np.random.default_rng(1), 12)
PROTECTIONS = (dchi.BOOLEANS, dchi.NEAR_BOOLEANS, dchi.COUNTS, dchi.NEAR_COUNTS)


class TestStatistician:
    def test_by_hand(self):
        counts = np.array([[2, 0], [3, 1]])
        assert visitors_per_poi(counts > 0).tolist() == [2, 1]
        assert visits_per_poi(counts).tolist() == [5, 1]
        assert visits_per_poi(counts, average=True).tolist() == [2.5, 0.5]
        assert mean_error(visits_per_poi(counts), [4, 3]) == 1.5

    def test_the_corrected_number_of_visitors_is_unbiased_and_the_plain_one_is_not(self):
        rng = np.random.default_rng(1)
        b, p = rng.random((50, 6)) < 0.2, 0.3
        chi = b | (rng.random(b.shape) < 0.6)
        for inside, holding in ((True, None), (chi, chi.sum(axis=0))):
            perturbed = b ^ ((rng.random((20_000, *b.shape)) < p) & inside)
            np.testing.assert_allclose(corrected_visitors(perturbed, p, holding).mean(axis=0), visitors_per_poi(b), atol=0.25)
            assert (visitors_per_poi(perturbed).mean(axis=0) > visitors_per_poi(b) + 1).all()

    @pytest.mark.parametrize("p", [0.5, np.nan, -0.1, 1.1])
    def test_where_no_estimate_exists(self, p):
        refuses(r"p must lie in \[0, 1\] and not be 1/2", corrected_visitors, np.ones((3, 2), bool), p)


class TestSamples:
    def test_users_are_the_papers(self):
        day = SAMPLES.day
        assert day.shape == (12, 100, 29)
        assert ((day > 0).sum(axis=-1) >= 6).all()
        assert all(len(set(row)) == 100 for row in SAMPLES.users)
        assert SETTING.total_users == 400
        assert len(SETTING.users) == ((FIRST + SECOND > 0).sum(axis="columns") >= 6).sum()

    def test_the_first_draws_of_many_are_those_of_few(self):
        few = draw(SETTING, np.random.default_rng(1), 3)
        for one, two in zip(few, SAMPLES, strict=True):
            np.testing.assert_array_equal(one, two[:3])

    def test_refused(self):
        with pytest.raises(ValueError, match=r"a sample of 500 users needs 500 users with 6 distinct POIs .* of 400"):
            draw(SETTING, np.random.default_rng(1), n=500)
        refuses("draws must be a whole number", draw, SETTING, np.random.default_rng(1), 0)
        refuses("of the same users, in one order", sample_setting, FIRST, SECOND.iloc[::-1])
        refuses("whole numbers", sample_setting, FIRST.astype(float), SECOND)
        refuses("scenario must be", perturbed_profiles, SAMPLES, dchi.COUNTS, 1.0, "3")

    def test_who_leaks_what_of_which_period(self):
        for protection in (dchi.BOOLEANS, dchi.COUNTS):
            day = protection.true_profiles(SAMPLES.day)
            known = {
                s: leaked(SAMPLES, protection, perturbed_profiles(SAMPLES, protection, 1.0, s), s) for s in ("1", "2.1", "2.2")
            }
            np.testing.assert_array_equal(known["1"].known, protection.true_profiles(SAMPLES.first))
            assert (known["1"].known != day).any()
            for d in (0, 7):
                pois, users = known["2.1"].pois[d], known["2.2"].users[d]
                assert (len(set(pois)), len(set(users))) == (15, 50)
                np.testing.assert_array_equal(known["2.1"].known[d], day[d][:, pois])
                np.testing.assert_array_equal(known["2.2"].known[d], day[d][users])
            perturbed = perturbed_profiles(SAMPLES, protection, 1.0)
            np.testing.assert_array_equal(known["2.2"].published[7], perturbed[7][users])
            fewer = leaked(SAMPLES, protection, perturbed, "2.2", 20)  # who leaks first also leaks when more do
            assert all(set(a) < set(b) for a, b in zip(fewer.users, known["2.2"].users, strict=True))
            refuses("amount must be a whole number", leaked, SAMPLES, protection, perturbed, "2.1", 30)

    @pytest.mark.parametrize("protection", PROTECTIONS, ids=str)
    def test_profiles_are_what_the_mechanism_publishes(self, protection):
        """The same uniform numbers through ``protect``'s parts, draw by draw."""
        perturbed = perturbed_profiles(SAMPLES, protection, 0.7, "1")
        for d in (0, 11):
            b = SAMPLES.second[d] > 0
            all_pois = np.ones(b.shape, bool)
            chi = all_pois if protection.neighbours is None else neighbourhood(b, SAMPLES.affinity[d], protection.neighbours)
            true = SAMPLES.second[d] if protection.counts else b
            np.testing.assert_array_equal(perturbed[d], protection.mechanism(0.7).noisy(true, chi, SAMPLES.u[d]))


@pytest.mark.parametrize("protection", PROTECTIONS, ids=str)
class TestFigures:
    def test_errors_fall_as_epsilon_grows(self, protection):
        result = dchi.error(SAMPLES, protection, [0.1, 1, 3, 9])
        assert result.shape == (12, 4)
        assert all(after < before for before, after in pairwise(result.mean(axis=0)))
        perturbed, true = perturbed_profiles(SAMPLES, protection, 3.0)[5], protection.true_profiles(SAMPLES.day)[5]
        plain = np.mean([abs(int(perturbed[:, j].sum()) - int(true[:, j].sum())) for j in range(29)])
        assert result[5, 2] == pytest.approx(plain)

    def test_the_surface_is_algorithm_11(self, protection):
        for scenario in ("1", "2.1", "2.2"):
            result = dchi.surface(SAMPLES, protection, 2.0, [0, 3, 9], [1, 4], scenario)
            assert result.shape == (12, 3, 2)
            leak = leaked(SAMPLES, protection, perturbed_profiles(SAMPLES, protection, 2.0, scenario), scenario)
            sides = leak.published[3].tolist(), leak.known[3].tolist()
            expected = [[naive.algorithm_11(*sides, delta, max_candidates) for max_candidates in (1, 4)] for delta in (0, 3, 9)]
            np.testing.assert_allclose(result[3], expected)

    def test_estimates_of_epsilon(self, protection):
        for estimator in dchi.ESTIMATORS:
            for pooled, shape in ((False, (12, 2, 50)), (True, (12, 2))):
                result = dchi.epsilon_error(SAMPLES, protection, [0.5, 1.0], estimator=estimator, pooled=pooled)
                assert result.shape == shape
                assert (result >= 0).all()
        near = dchi.estimated_epsilon(SAMPLES, protection, [0.5], "likeliest", pooled=True, chi_known=True)
        assert np.median(near) == pytest.approx(0.5, rel=0.1)

    def test_who_knows_chi_takes_the_published_periods(self, protection):
        result = dchi.estimated_epsilon(SAMPLES, protection, [0.5], scenario="1", chi_known=True)[2, 0]
        chi = protection.chi(SAMPLES.second, SAMPLES.affinity)[2]
        distance = np.abs(
            perturbed_profiles(SAMPLES, protection, 0.5, "1")[2] * 1 - protection.true_profiles(SAMPLES.first)[2] * 1
        )
        mean = [row[mask].mean() for row, mask in zip(distance, chi, strict=True)]
        with np.errstate(divide="ignore"):
            expected = 1 / np.array(mean) if protection.counts else np.log1p(-np.array(mean)) - np.log(mean)
        np.testing.assert_allclose(result, expected)

    def test_the_nearest_is_the_best_that_algorithm_11_does_with_one_name(self, protection):
        for scenario in ("2.1", "2.2"):
            best = dchi.surface(SAMPLES, protection, 1.0, range(200), [1], scenario).max(axis=(1, 2))
            assert (best <= dchi.nearest_rate(SAMPLES, protection, 1.0, "profileGuess", scenario)).all()
        likelihood = dchi.nearest_rate(SAMPLES, protection, 0.1, "likelihood").mean()
        plain = dchi.nearest_rate(SAMPLES, protection, 0.1, "profileGuess").mean()
        assert likelihood > plain + 0.1 if protection.neighbours else likelihood >= plain - 0.01

    def test_more_that_leaks_helps(self, protection):
        result = dchi.side_information(SAMPLES, protection, 2.0, [10, 50], [5, 29]).mean(axis=0)
        assert (result[:, 1] > result[:, 0]).all()
        assert (result[0] > result[1]).all()  # of fewer candidates one is sooner the only one
        for max_candidates in (1, 3, 50):
            grid = dchi.surface(SAMPLES, protection, 2.0, range(300), [max_candidates]).max(axis=(1, 2))
            np.testing.assert_allclose(
                dchi.side_information(SAMPLES, protection, 2.0, [50], [29], max_candidates)[:, 0, 0], grid
            )


@pytest.mark.parametrize("row", dchi.TABLE, ids=str)
def test_the_table_is_algorithm_16(row):
    protection = dchi.COUNTS._replace(neighbours=row.neighbours)
    rate, users = dchi.most_visited_rate(SAMPLES, protection, row.epsilon, row.scenario)
    d, perturbed = 2, perturbed_profiles(SAMPLES, protection, row.epsilon, row.scenario)
    leak, counts = leaked(SAMPLES, protection, perturbed, row.scenario), SAMPLES.period(row.scenario)
    chi = protection.chi(counts, SAMPLES.affinity)
    sets = [naive.poi_guess(perturbed[d, u].tolist(), set(np.flatnonzero(chi[d, u]))) for u in leak.users[d]]
    right = alone = with_visits = 0
    for i, user in enumerate(leak.users[d]):
        true_counts = counts[d, user]
        if not true_counts.any():
            continue
        with_visits += 1
        delta = 0.3 * true_counts[leak.pois[d]].sum()
        predicted = naive.algorithm_16(leak.published[d, i].tolist(), leak.known[d].tolist(), sets, delta)
        right += bool(predicted & naive.poi_guess(true_counts.tolist(), range(29)))
        alone_predicted = naive.algorithm_16(leak.published[d, i].tolist(), [leak.known[d, i].tolist()], [sets[i]], delta)
        alone += bool(alone_predicted & naive.poi_guess(true_counts.tolist(), range(29)))
    assert (rate[d], users[d]) == (pytest.approx(right / with_visits), with_visits)
    own_profile_only = dchi.most_visited_rate(SAMPLES, protection, row.epsilon, row.scenario, others=False)[0]
    assert own_profile_only[d] == pytest.approx(alone / with_visits)


def test_readings_of_the_table():
    rate = lambda **how: dchi.most_visited_rate(SAMPLES, dchi.COUNTS, 2.0, "2.2", **how)[0].mean()  # noqa: E731
    # 0.3 as a distance between counts is equality; an empty guess taken by its letter is a success
    assert rate(absolute=True) < 0.05 < rate() < rate(empty="everything")
    part = lambda guess: dchi.most_visited_rate(SAMPLES, dchi.COUNTS, 4.0, "2.1", guess=guess)[0].mean()  # noqa: E731
    assert part("leaked") < part("sanitised")  # 15 of 29 POIs do not hold everybody's most visited one


def test_without_any_leak_the_most_visited_poi_is_read_off():
    rates = [dchi.noisy_argmax_rate(SAMPLES, dchi.COUNTS, epsilon).mean() for epsilon in (0.05, 0.5, 2, 20)]
    assert all(before < after for before, after in pairwise(rates))
    assert rates[-1] == 1.0
    assert 0 < dchi.noisy_argmax_rate(SAMPLES, dchi.COUNTS, 6.0, "1").min() <= 1


def test_the_correction_that_the_paper_lacks():
    plain, corrected = (dchi.error(SAMPLES, dchi.BOOLEANS, [1.0, 2.0], c).mean(axis=0) for c in (False, True))
    assert (corrected < 0.7 * plain).all()
    assert dchi.level(SAMPLES, dchi.BOOLEANS)[0] == pytest.approx((SAMPLES.day[0] > 0).sum() / 29)
    assert dchi.level(SAMPLES, dchi.COUNTS)[0] == pytest.approx(SAMPLES.day[0].sum() / 29)
    assert np.ravel(dchi.band(np.arange(101.0)[:, None])).tolist() == pytest.approx([50, 5, 95])
    refuses("corrected is for booleans", dchi.error, SAMPLES, dchi.COUNTS, [1.0], True)


def test_what_the_likelihood_cannot_know_is_refused():
    for scenario, protection in (("1", dchi.COUNTS), ("2.1", dchi.NEAR_COUNTS)):
        with pytest.raises(ValueError, match="the likelihood needs true profiles of the published period"):
            dchi.nearest_rate(SAMPLES, protection, 1.0, "likelihood", scenario)
    assert dchi.nearest_rate(SAMPLES, dchi.COUNTS, 4.0, "likelihood", "2.1").mean() > 0.5


ZONE = "Europe/Lisbon"


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """The first 900 callers of the region in its first four days, as a table of their own."""
    region = datasets.load_calls("region")
    users = set(sorted(region.calls["user"].cat.categories)[:900])
    calls = region.calls[region.calls["user"].isin(users) & (region.calls["t"] < pd.Timestamp("2024-10-11", tz="UTC"))]
    folder = tmp_path_factory.mktemp("calls")
    plain = calls.assign(user=calls["user"].astype(str), cell=calls["cell"].astype(str))[["user", "t", "cell"]]
    plain.to_csv(folder / "few.csv", index=False)
    region.cells.assign(cell=region.cells["cell"].astype(str)).to_csv(folder / "few_cells.csv", index=False)
    return folder / "few.csv", plain, region.cells


def counted(plain, pois, start, end):
    """Count profiles by a plain group: who called how often at which POI."""
    rows = plain[(plain["t"] >= start) & (plain["t"] < end) & plain["cell"].isin(pois.index)]
    return rows.assign(poi=rows["cell"].map(pois)).groupby(["user", "poi"]).size().unstack(fill_value=0)


def test_a_days_profiles_are_those_of_a_plain_count(few):
    path, plain, _ = few
    result = choose_days(path, days=4, n=5, least=3, m=40, zone=ZONE)
    d = result.dates.index("2024-10-08")
    start, noon, end = (pd.Timestamp(f"2024-10-{moment}:00", tz=ZONE) for moment in ("08 00", "08 12", "09 00"))
    full_day = counted(plain, result.pois, start, end)
    wanted = full_day[(full_day > 0).sum(axis="columns") >= 3]
    at = slice(result.setting.offsets[d], result.setting.offsets[d + 1])
    assert list(result.setting.users[at]) == list(wanted.index)
    morning = counted(plain, result.pois, start, noon).reindex(index=wanted.index, columns=result.setting.pois, fill_value=0)
    np.testing.assert_array_equal(result.setting.first[at], morning.to_numpy())
    both = result.setting.first[at] + result.setting.second[at]
    np.testing.assert_array_equal(both, wanted.reindex(columns=result.setting.pois, fill_value=0).to_numpy())
    assert f"On {len(result.dates)} of the 4 days from" in result.selection
    assert len(result.dates) == len(result.callers) == len(result.setting.per_day)
    assert result.callers[d] == plain[(plain["t"] >= start) & (plain["t"] < end)]["user"].nunique()


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"days": 4, "n": 900, "zone": ZONE}, r"no day of few has 900 users at .* \(the most on one of 4 days .*: \d+\)"),
        ({"data": "city"}, "city holds traces, and call records are needed: rate=30 simulates 30 calls a day"),
        ({"data": "city", "rate": -1.0}, "rate must be positive"),
        ({"data": "region", "rate": 30.0}, r"rate is for traces, .*: region already holds calls \(got 30.0\)"),
        ({"data": "region", "leave_out": "a"}, r"leave_out is for traces.*got 'a'"),
    ],
)
def test_what_is_refused(few, given, line):
    given = {"data": few[0]} | given
    refuses(line, choose_days, given.pop("data"), **given)


def test_users_of_traces_call_and_who_is_left_out_does_not():
    result = choose_days("city", days=2, n=20, least=2, rate=20.0, zone="UTC", leave_out="c001, p001")
    assert result.data.synthetic
    assert result.data.name == "city"
    assert not {"c001", "p001"} & set(result.data.calls["user"].cat.categories)
    again = choose_days("city", days=2, n=20, least=2, rate=20.0, zone="UTC", leave_out="c001, p001")
    np.testing.assert_array_equal(result.setting.first, again.setting.first)
    (row,) = result.data.left_out.itertuples()
    assert row.records > 0
    # each layout has antennas and calls of its own, and the first of them does not depend on how many there are
    places = result.places()
    assert places.shape == (5, 29, 2)
    assert len({row.tobytes() for row in places}) == 5
    assert sorted(set(result.setting.layouts)) == list(range(5))
    one = choose_days("city", days=2, n=20, least=2, rate=20.0, zone="UTC", leave_out="c001, p001", layouts=1)
    np.testing.assert_array_equal(one.setting.first, result.setting.first[: len(one.setting.first)])
    # the same seed makes other noise than on calls
    assert (result.seed, choose_days("region", days=1, n=5, seed=1).seed) == ((1, 1), (1,))
    assert (np.random.default_rng(result.seed).random(9) != np.random.default_rng((1,)).random(9)).all()


class TestTogether:
    days = tuple(sample_setting(*halves(150 + 50 * k, seed=k), least=4) for k in range(3))

    def test_rows_stand_day_by_day(self):
        joined = join_settings(self.days)
        assert list(joined.per_day) == [len(day.users) for day in self.days]
        for d, day in enumerate(self.days):
            at = slice(joined.offsets[d], joined.offsets[d + 1])
            np.testing.assert_array_equal(joined.first[at], day.first)
            assert list(joined.users[at]) == list(day.users)

    def test_a_draw_is_of_one_day_with_enough_users_and_all_such_days_serve(self):
        joined = join_settings(self.days)
        n = int(np.sort(joined.per_day)[1])  # what two of the three days have
        drawn = draw(joined, np.random.default_rng(1), 60, n)
        day = np.searchsorted(joined.offsets, drawn.users, side="right") - 1
        assert (day == day[:, :1]).all()
        assert set(day[:, 0]) == set(np.flatnonzero(joined.per_day >= n))
        with pytest.raises(ValueError, match=f"there are {joined.per_day.max()} of .* on the best day"):
            draw(joined, np.random.default_rng(1), 1, int(joined.per_day.max()) + 1)
        refuses("no day to draw from", join_settings, [])
        refuses("the same POIs and the same least", join_settings, [self.days[0], sample_setting(*halves(150), least=5)])


class TestSmallParts:
    def test_a_protection_by_its_short_name(self):
        assert dchi.protection("all", True) == dchi.COUNTS
        assert dchi.protection("N5") == dchi.NEAR_BOOLEANS
        assert dchi.protection("F3", True, rounding="floor") == dchi.Protection(True, 3, "further", rounding="floor")
        for wrong in ("", "five", "N", "N-1", "M5"):
            refuses(r'chi must be "all", or N or F', dchi.protection, wrong)

    def test_who_is_like_no_other(self):
        profiles = np.array([[[1, 0], [1, 0], [0, 1]], [[1, 0], [2, 0], [0, 1]]])
        np.testing.assert_allclose(dchi.unique(profiles), [1 / 3, 1])

    def test_a_family_over_draws(self):
        values = np.arange(200.0).reshape(100, 2)
        estimates = dchi.estimates_over("error.all", (0.1, 2), values)
        assert list(estimates) == ["error.all.0.1", "error.all.2"]
        assert estimates["error.all.2"].value == values[:, 1].mean()
        ends = estimates["error.all.2"].low, estimates["error.all.2"].high
        assert ends == pytest.approx(tuple(np.quantile(values[:, 1], [0.025, 0.975])))

    def test_a_neighbourhood_of_all_tells_nothing_and_one_of_none_something(self):
        setting = sample_setting(*halves(150))
        samples = draw(setting, np.random.default_rng(1), 2, 20)
        assert all((values == 0).all() for values in dchi.telling(samples, dchi.protection("N29")).values())
        of_booleans = dchi.telling(samples, dchi.protection("N3"))
        of_counts = dchi.telling(samples, dchi.protection("N3", counts=True))
        assert (of_counts["neighbours"] < of_booleans["neighbours"]).all()  # where she was twice, one visit less tells nothing
        # a profile's own visits are its χ: without one of them the neighbour's χ is another
        assert (of_booleans["users"] > 0).all()
        assert (of_booleans["probability"] <= 1).all()
        assert (of_booleans["neighbours"] <= of_booleans["users"]).all()
