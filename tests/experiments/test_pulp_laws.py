"""The setting of PULP's pages: who is in it, what a law recommends to whom, and what becomes of who follows it."""

import numpy as np
import pandas as pd
import pytest
from conftest import refuses
from pulp_making import wanderers

from mobpriv.base import estimates
from mobpriv.experiments import pulp
from mobpriv.experiments.days import Choice
from mobpriv.experiments.pulp import NO_MECHANISM, P_THLD, PU_RATIO, PU_THLD, U_THLD
from mobpriv.ground.grid import S2Grid
from mobpriv.mechanisms import GeoI, Promesse
from mobpriv.metrics import area_coverage, poi_privacy
from mobpriv.pulp import Arctan, Candidate, Metrics, Sweep, achieved, candidates_of, utility_threshold
from mobpriv.pulp.levels import NO_POI
from mobpriv.traces.table import rows

SWEEPS = (
    Sweep(GeoI(), "epsilon", np.geomspace(1e-3, 0.5, 6), "utility"),
    Sweep(Promesse(), "alpha", np.geomspace(50, 2000, 5), "privacy"),
)
METRICS = Metrics(duration=600)
FRESH = (7, 8, 9)


@pytest.fixture(scope="module")
def choice() -> Choice:
    return Choice(None, wanderers([500, 40, 450, 1], 4), pd.Timestamp("2015-12-13", tz="UTC"), "four users")


@pytest.fixture(scope="module")
def models(choice):
    return pulp.profile_and_fit(choice, (1, 2), SWEEPS, METRICS)[1]


@pytest.fixture(scope="module")
def ratio(choice, models):
    chosen = pulp.recommended(models, PU_RATIO)
    return chosen, pulp.followed(choice, chosen, FRESH, SWEEPS, METRICS)


class TestWho:
    def test_a_sample_is_even_among_the_names(self):
        full, sampled = pulp.prepare("city"), pulp.prepare("city", sample=4)
        everyone, users = (sorted(c.traces["user"].unique()) for c in (full, sampled))
        assert [everyone.index(user) for user in users] == [round(i * (len(everyone) - 1) / 3) for i in range(4)]
        sampled_counts, full_counts = (c.traces["user"].value_counts()[users].tolist() for c in (sampled, full))
        assert sampled_counts == full_counts
        assert len(pulp.prepare("city", sample=10_000).traces) == len(full.traces)
        refuses(r"sample must be a whole number, at least 0 \(got -1\)", pulp.prepare, "city", sample=-1)


class TestLaws:
    def test_the_objectives_are_those_of_the_figures(self):
        assert PU_RATIO.objectives == ((0.5,), (1,), (2,), (3,))
        assert {(0.3, 0.5), (0.5, 0.9), (0.9, 0.4)} < set(PU_THLD.objectives)
        assert len(PU_THLD.objectives) == 5
        assert [pulp.objective_text(o) for o in ((0.5,), (3,), (0.3, 0.5))] == ["0.5", "3", "30 and 50"]
        assert P_THLD.objectives == U_THLD.objectives == ((0.3,), (0.5,), (0.7,), (0.8,), (0.9,))

    @pytest.mark.parametrize(
        ("law", "objective", "kept", "missed"),
        [
            (PU_RATIO, (2,), (0.808, 0.4), (0.809, 0.4)),
            (PU_RATIO, (2,), (0.792, 0.4), (0.791, 0.4)),
            (PU_RATIO, (2,), (0.8, 0.4), (0.4, 0.0)),
            (PU_THLD, (0.6, 0.7), (0.6, 0.7), (0.6, 0.699)),
            (PU_THLD, (0.6, 0.7), (0.6, 0.7), (0.599, 0.7)),
            (P_THLD, (0.7,), (0.7, 0), (0.699, 1)),
            (U_THLD, (0.5,), (0, 0.5), (1, 0.499)),
        ],
    )
    def test_an_objective_is_kept_up_to_its_border(self, law, objective, kept, missed):
        privacy, utility = np.transpose([kept, missed])
        assert law.met(privacy, utility, *objective).tolist() == [True, False]

    def test_every_user_has_a_row_an_objective(self, models, ratio):
        chosen, _ = ratio
        assert len(chosen) == 4 * models["user"].nunique()
        for row in chosen.itertuples():
            recommendation = PU_RATIO.recommendation(candidates_of(models)[row.user], float(row.objective))
            assert row.mechanism == (recommendation.mechanism or NO_MECHANISM)
            assert row.value == pytest.approx(recommendation.value if recommendation.value is not None else np.nan, nan_ok=True)


class TestFollowing:
    def test_levels_are_those_of_a_new_protection(self, choice, ratio):
        _, levels = ratio
        row = levels[(levels["repetition"] == 2) & (levels["mechanism"] == "Geo-I")].iloc[0]
        one = pd.DataFrame([row[["user", "mechanism", "value"]]])
        again = achieved(choice.traces, one, SWEEPS, (FRESH[1],), METRICS).iloc[0]
        assert (row["privacy"], row["utility"]) == (again["privacy"], again["utility"])

    def test_each_recommendation_is_followed_as_often_as_asked(self, ratio):
        chosen, levels = ratio
        advised = chosen[chosen["mechanism"] != NO_MECHANISM]
        assert len(levels) == len(FRESH) * len(advised)
        assert set(levels.groupby(["objective", "user"])["repetition"].apply(lambda of: tuple(sorted(of)))) == {(1, 2, 3)}
        calm = levels[levels["mechanism"] == "Promesse"].groupby(["objective", "user"])[["privacy", "utility"]].nunique()
        assert (calm == 1).all(axis=None), "what draws nothing is the same in every repetition"

    def test_two_objectives_may_share_a_setting(self, choice, models):
        chosen = pulp.recommended(models, P_THLD).assign(mechanism="Promesse", value=200.0)
        assert len(pulp.followed(choice, chosen, FRESH, SWEEPS, METRICS)) == len(FRESH) * len(chosen)


class TestSummary:
    def test_what_a_page_shows_is_counted_by_hand(self, ratio):
        chosen, levels = ratio
        results = pulp.summary(PU_RATIO, chosen, levels, SWEEPS)
        for o in ("0.5", "1", "2", "3"):
            recommendations, measured = chosen[chosen["objective"] == o], levels[levels["objective"] == o]
            for mechanism in ("Geo-I", "Promesse", NO_MECHANISM):
                assert results[f"share.{o}.{mechanism}"].value == (recommendations["mechanism"] == mechanism).mean()
            if measured.empty:
                continue
            w, shares = float(o), []
            for _, user_levels in measured.groupby("user"):
                met = [
                    u and abs(p / (w * u) - 1) <= 0.01 for p, u in zip(user_levels.privacy, user_levels.utility, strict=True)
                ]
                shares.append(np.mean(np.array(met, bool)))
            assert results[f"met.measured.{o}"].value == pytest.approx(np.mean(shares))
            assert results[f"met.model.{o}"].value == 1, "the setting was computed to have the ratio"
            means = measured.groupby("user")[["privacy", "utility"]].mean()
            for level in ("privacy", "utility"):
                in_order = np.sort(means[level])
                for q in (5, 50, 95):
                    assert results[f"measured.{level}.{o}.{q}"] == in_order[int(np.ceil(q / 100 * len(in_order))) - 1]
                assert not {f"measured.{level}.{o}.{q}" for q in (0, 100)} & set(results), "the ends are two users' own"

    def test_users_without_a_poi_are_counted_apart(self, ratio):
        chosen, levels = ratio
        assert pulp.summary(PU_RATIO, chosen, levels)["no_poi"].value == 1 / 4
        nowhere = chosen["user"] == chosen["user"].iloc[0]
        reason = f"Geo-I: privacy: no model; 17 of 17 levels are unknown ({NO_POI})"
        results = pulp.summary(PU_RATIO, chosen.assign(reason=chosen["reason"].mask(nowhere, reason)), levels)
        assert results["no_poi"].value == 2 / 4

    def test_no_percentile_is_a_single_persons_number(self):
        values = np.arange(1.0, 31)
        # of the five lowest, the five in the middle, the five highest
        assert pulp.averaged_percentiles(values, (5, 50, 95), 5) == [3, 15, 28]
        assert pulp.averaged_percentiles(values, (5, 50), 1, "inverted_cdf") == [2, 15]
        refuses(r"at least 5 users \(got 4\)", pulp.averaged_percentiles, values[:4], (50,), 5)

    def test_of_too_few_users_no_level_is_kept(self, ratio):
        chosen, levels = ratio
        few = {o: (chosen[chosen["objective"] == o]["mechanism"] != NO_MECHANISM).sum() for o in ("0.5", "1", "2", "3")}
        least = max(few.values()) + 1
        results = pulp.summary(PU_RATIO, chosen, levels, SWEEPS, least)
        kinds = {name.split(".")[0] for name in results}
        assert kinds == {"users", "no_model", "no_poi", "share"}, "shares of all users tell of no single one"
        refuses(r"^least must be a whole number, at least 1 \(got 0\)$", pulp.summary, PU_RATIO, chosen, levels, SWEEPS, 0)

    def test_who_has_no_model_is_told_from_whom_no_mechanism_helps(self, ratio):
        chosen, levels = ratio
        results = pulp.summary(PU_RATIO, chosen, levels, SWEEPS)
        without = chosen[chosen["reason"].str.contains("no model")]["user"].nunique()
        assert without >= 1, "a user of one record has no POI"
        assert results["no_model"].value == without / 4

    def test_a_mechanism_without_either_model_is_not_all_mechanisms(self):
        """Promesse lacks both its models, Geo-I has models and cannot keep the objective: the user is not without a model."""
        few = "no model: 4 coefficients need at least 4 different values"
        reason = f"Geo-I: privacy stays above 0.5 × utility throughout 0.0001 to 1; Promesse: privacy: {few}; utility: {few}"
        chosen = self.advised("a", NO_MECHANISM, np.nan).assign(reason=reason)
        law = PU_RATIO._replace(objectives=((0.5,),))
        none = pd.DataFrame(columns=["objective", "user", "mechanism", "value", "repetition", "privacy", "utility"])
        assert pulp.summary(law, chosen, none, SWEEPS)["no_model"].value == 0
        both = chosen.assign(reason=f"Geo-I: privacy: {few}; Promesse: privacy: {few}")
        assert pulp.summary(law, both, none, SWEEPS)["no_model"].value == 1

    def advised(self, users, mechanism="Geo-I", level=0.5):
        same = {"mechanism": mechanism, "value": level / 5, "privacy": level, "utility": level, "reason": ""}
        return pd.DataFrame({"objective": "0.5", "user": list(users)} | same)

    def test_the_same_level_is_about_the_median(self):
        chosen = self.advised("abcde")
        levels = chosen.assign(repetition=1, privacy=[0.5, 0.54, 0.56, 0.46, 0.44], utility=1.0)
        law = P_THLD._replace(objectives=((0.5,),))
        results = pulp.summary(law, chosen, levels, SWEEPS)
        assert results["same.measured.privacy.0.5"].value == 3 / 5
        assert results["same.measured.utility.0.5"].value == 1
        assert results["met.measured.0.5"].value == 3 / 5, "privacy is what P-thld asks for"

    def test_infinite_ratios_stand_at_the_end(self):
        chosen = self.advised("abc")
        levels = chosen.assign(repetition=1, privacy=1.0, utility=[0.0, 0.5, 0.25])
        results = pulp.summary(P_THLD._replace(objectives=((0.5,),)), chosen, levels, SWEEPS)
        assert [results[f"measured.ratio.0.5.{q}"] for q in (5, 50, 95)] == [2, 4, np.inf]


class TestNearBest:
    FLAT = Arctan(0.002, 3.0, np.log(500), 1.0)  # a privacy of about 1, by thousandths higher where α is large
    FALLING = Arctan(-0.35, 1.0, np.log(400), 0.5)

    def test_thousandths_do_not_decide(self):
        candidates = [Candidate("Promesse", self.FLAT, self.FALLING, 50, 10_000)]
        law, near = utility_threshold(candidates, 0.5), pulp.near_best(candidates, 0.5)
        assert law.utility == pytest.approx(0.5), "the law goes to the far end"
        assert near.value == 50, "the best utility there is"
        assert near.privacy > law.privacy - 0.01
        assert pulp.near_best(candidates, 0.99).mechanism is None, "what nobody keeps stays so"

    def test_a_hundredth_is_the_border(self):
        """By a fine walk over the feasible settings."""
        steep = Arctan(0.1, 1.0, np.log(300), 0.85)
        candidates = [Candidate("Promesse", steep, self.FALLING, 50, 10_000)]
        x = np.linspace(np.log(50), np.log(10_000), 200_001)
        privacy, utility = (np.array([m.at(v) for v in x]) for m in (steep, self.FALLING))
        feasible = utility >= 0.5
        enough = feasible & (np.minimum(privacy, 1) >= np.minimum(privacy, 1)[feasible].max() - 0.01)
        assert np.log(pulp.near_best(candidates, 0.5).value) == pytest.approx(x[enough][utility[enough].argmax()], abs=1e-4)

    def test_of_two_mechanisms_a_hundredth_of_privacy_decides_too(self):
        constant = [Arctan(0.0, 1.0, 0.0, level) for level in (1.0, 0.9, 0.98, 0.6, 0.995)]
        full, useful, lower, less, near = constant
        candidates = [Candidate("Promesse", full, less, 50, 100), Candidate("Geo-I", lower, useful, 0.1, 1)]
        assert pulp.near_best(candidates, 0.5).mechanism == "Promesse", "0.98 is more than a hundredth below"
        candidates[1] = candidates[1]._replace(privacy=near)
        assert pulp.near_best(candidates, 0.5).mechanism == "Geo-I"


def test_nobody_with_a_poi_is_refused(choice):
    pulp.check_pois(choice, METRICS)
    lone = choice._replace(traces=rows(choice.traces, (choice.traces["user"] == "d").to_numpy()))
    with pytest.raises(ValueError, match=r"^no user has a POI, a stay of 10 minutes within 200 m: choose other users or days$"):
        pulp.check_pois(lone, METRICS)


class TestAlone:
    def test_it_is_the_law_with_one_candidate(self, models):
        results = pulp.single_mechanism(models, U_THLD)
        geo_i = [[c for c in user_candidates if c.mechanism == "Geo-I"] for user_candidates in candidates_of(models).values()]
        for objective in U_THLD.objectives:
            advice = [U_THLD.recommendation(user_candidates, *objective) for user_candidates in geo_i]
            o, settings = pulp.objective_text(objective), np.array([a.value if a.mechanism else np.nan for a in advice])
            assert results[f"alone.given.{o}"].value == np.isfinite(settings).mean()
            if np.isfinite(settings).any():
                assert results[f"alone.value.{o}"].value == pytest.approx(np.nanmedian(settings))
        # medians of too few are not kept
        assert {name.split(".")[1] for name in pulp.single_mechanism(models, U_THLD, least=5)} == {"given"}


class TestOfSeveralUsers:
    def test_real_data_need_five(self):
        data = pulp.prepare("city").data
        assert pulp.fewest_users(data) == 1
        assert pulp.fewest_users(data._replace(synthetic=False)) == 5

    def test_a_path_has_the_quartiles_of_the_models(self, models):
        results = pulp.model_quartiles(models, SWEEPS)
        candidates = [c for of in candidates_of(models).values() for c in of if c.mechanism == "Promesse" and not c.missing]
        last = [c.privacy.at(np.log(2000)) for c in candidates]
        quartiles = [results[f"path.Promesse.privacy.2000.0.{q}"] for q in (25, 50, 75)]
        assert quartiles == pytest.approx(np.percentile(last, [25, 50, 75]))
        assert len(results) == 2 * 3 * (6 + 5)
        assert pulp.model_quartiles(models, SWEEPS, len(candidates) + 1) == {}

    def test_the_factor_between_tenths(self):
        values = np.exp(np.random.default_rng(5).normal(0, 0.4, 400))
        estimate = pulp.percentile_ratio(values, np.random.default_rng(1))
        assert estimate.value == pytest.approx(np.divide(*np.percentile(values, [90, 10])))
        assert estimate.low < np.exp(2 * 1.2816 * 0.4) < estimate.high, "the factor of the law it was drawn from"
        assert estimate.high / estimate.low < 1.5
        assert pulp.percentile_ratio(values, np.random.default_rng(1)) == estimate
        assert pulp.percentile_ratio(np.full(10, 3.0), np.random.default_rng(1)) == estimates.Estimate(1.0, 1.0, 1.0, 10)
        with pytest.raises(ValueError, match=r"^a ratio of the 90th to the 10th percentile needs at least 10 users \(got 9\)$"):
            pulp.percentile_ratio(values[:9], np.random.default_rng(1))


class TestSearch:
    @pytest.mark.parametrize("w", [0.5, 1.0, 1.5])
    def test_it_is_halving_user_by_user(self, choice, w):
        """Against a plain loop over one user's trace, with the published metrics."""

        def difference(trace, alpha):
            published = Promesse(alpha).protect(trace, np.random.default_rng(1))
            privacy = poi_privacy(trace, published, duration=600)["privacy"].iloc[0]
            return privacy - w * area_coverage(trace, published, S2Grid(15))["f_score"].iloc[0]

        start = pd.DataFrame({"user": ["a", "c"], "mechanism": "Promesse", "value": [30.0, 900.0]})
        searched = pulp.search_ratio(choice, start, w, (1,), SWEEPS, METRICS).set_index("user")
        # the widest interval, user c's cut to the range at 2 000 m, decides how often all are halved
        ends = {"a": (50.0, 120.0), "c": (225.0, 2000.0)}
        halvings = int(np.ceil(np.log2(np.log(2000 / 225) / np.log(1.02))))
        for user, (low, high) in ends.items():
            trace = rows(choice.traces, (choice.traces["user"] == user).to_numpy())
            left = difference(trace, low)
            assert searched.loc[user, "bracketed"] == (left * difference(trace, high) <= 0)
            for _ in range(halvings):
                middle = np.sqrt(low * high)
                value = difference(trace, middle)
                low, high, left = (middle, high, value) if left * value > 0 else (low, middle, left)
            assert searched.loc[user, "value"] == pytest.approx(np.sqrt(low * high), rel=1e-9)

    def test_the_nearest_is_over_all_that_was_tried(self, choice):
        start = pd.DataFrame({"user": ["a"], "mechanism": "Promesse", "value": 300.0})
        searched = pulp.search_ratio(choice, start, 1.0, (1,), SWEEPS, METRICS).iloc[0]
        ends = achieved(choice.traces, pd.concat([start.assign(value=v) for v in (75.0, 1200.0)]), SWEEPS, (1,), METRICS)
        assert searched["nearest"] <= (ends["privacy"] / ends["utility"] - 1).abs().min() + 1e-12
        assert pulp.search_ratio(choice, start.iloc[:0], 1.0, (1,), SWEEPS, METRICS).empty
