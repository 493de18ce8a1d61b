"""Across the papers: crowds without draws, dominated settings, and one table of values for all attacks and metrics."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from mobpriv import metrics
from mobpriv.attacks import APAttack
from mobpriv.attacks.policies import reidentified
from mobpriv.base import estimates
from mobpriv.channels.distances import euclidean
from mobpriv.channels.guarantees import effective_epsilon
from mobpriv.channels.priors import priors
from mobpriv.experiments import across
from mobpriv.experiments.joint import laplace_channel
from mobpriv.experiments.pulp_beyond import protected_with_settings
from mobpriv.experiments.thesis_3 import attacks, prepare
from mobpriv.experiments.thesis_6 import coverage
from mobpriv.mechanisms import HMC, W4M, GeoI, Hybrid, Nothing, Promesse, TriLateration
from mobpriv.pulp import SWEEPS, Metrics, models, profile, pu_ratio, recommend
from mobpriv.traces.table import rows, share_of_records


@pytest.mark.parametrize("person", [{}, {"f": "b"}])
def test_the_chance_in_a_crowd_is_the_mean_over_all_crowds(person):
    rng = np.random.default_rng(3)
    names = list("abcdef")
    ranking = pd.DataFrame(rng.integers(0, 4, (5, 6)).astype(float), names[:5], names)  # with ties
    users = pd.Index([*names[:5], "unknown"])
    chances = across.in_crowds(ranking, users, person, [2, 3, 4])
    for n, chance in chances.items():
        for user, exact in zip(users, chance, strict=True):
            own = [name for name in names if person.get(name, name) == person.get(user, user)]
            others = [name for name in names if name not in own]
            crowds = (
                [
                    reidentified(ranking.loc[[user], [*own, *crowd]], None, person).iloc[0]
                    for crowd in combinations(others, n - 1)
                ]
                if user in ranking.index
                else [0.0]
            )
            assert exact == pytest.approx(np.mean(crowds), abs=1e-12)


def test_the_largest_crowd_is_the_attack_itself():
    ranking = pd.DataFrame(np.random.default_rng(1).random((40, 40)))
    chance = across.in_crowds(ranking, ranking.index, {}, [40])[40]
    assert chance == pytest.approx(reidentified(ranking).to_numpy(float), abs=1e-12)


def measured(either, coverage, time, n=200):
    noise = np.random.default_rng(round(1000 * coverage)).normal(0, 0.01, n)
    return {"either": (np.arange(n) < either * n).astype(float), "coverage": coverage + noise, "time": time * (1 + noise)}


@pytest.mark.parametrize("n", [1, 12, 35, 191])
@pytest.mark.parametrize("level", [0.95, 1 - 2 * 0.05 / 78])  # of one number, and of 26 settings and three goals
def test_an_interval_of_a_verdict_misses_at_most_as_often_as_it_says(n, level):
    def missed(interval, p):
        ends = [interval(np.repeat([1.0, 0.0], [k, n - k]), level) for k in range(n + 1)]
        out = np.array([[p < end.low, p > end.high] for end in ends])
        return binom.pmf(np.arange(n + 1), n, p) @ out  # below and above

    for p in (0.001, 0.01, 0.05, 0.3, 0.5, 0.9, 0.95, 0.999):
        assert (missed(across.mean_within, p) <= (1 - level) / 2 + 1e-12).all()
    if n == 35 and level > 0.95:
        assert (missed(estimates.rate, 0.05) > (1 - level) * 5).any()  # Wilson's interval is no proof


def test_a_setting_is_dominated_only_if_another_is_better_in_all_measures():
    values = {
        "bad": measured(0.9, 0.5, 500),
        "good": measured(0.2, 0.8, 100),
        "far": measured(0.2, 0.8, 1000),
        "as bad": measured(0.89, 0.8, 100),
    }
    pairs = across.dominating(values)
    assert ("bad", "good") in pairs
    assert not {("bad", "far"), ("bad", "as bad"), ("good", "bad")} & set(pairs)


def test_an_erased_user_is_left_out_of_the_comparison_of_distances():
    good = measured(0.2, 0.8, 100)
    good["time"][:10] = np.nan
    assert across.dominating({"bad": measured(0.9, 0.5, 500), "good": good}) == [("bad", "good")]
    good["time"][:] = np.nan
    assert not across.dominating({"bad": measured(0.9, 0.5, 500), "good": good})


@pytest.fixture(scope="module")
def setting():
    return prepare("city", halves="set", max_users=12)


def test_the_papers_settings_are_among_those_that_we_try(setting):
    tried = across.settings(setting.known)
    for mechanism in (Nothing(), GeoI(), Promesse(), W4M(), TriLateration()):
        assert mechanism in tried.values()
    assert {across.mechanism_in(name) for name in tried} == {mechanism.name for mechanism in tried.values()}


@pytest.mark.parametrize("length", [1000.0, 2000.0])
def test_the_optimal_channel_has_the_epsilon_of_geo_i_and_costs_less(setting, length):
    mechanism, geo_i = across.settings(setting.known)[f"Optimal channel at {length:g} m"], GeoI(2 / length)
    d = euclidean(mechanism.grid.centres())
    assert effective_epsilon(mechanism.channel, d) <= geo_i.epsilon * (1 + 1e-6)
    inside = rows(setting.known, mechanism.grid.cells(setting.known["lat"].to_numpy(), setting.known["lng"].to_numpy()) >= 0)
    prior = priors(inside, mechanism.grid).shares.mean().to_numpy()
    noise = laplace_channel(mechanism.grid, geo_i.epsilon)
    assert prior @ np.diag(mechanism.channel) > prior @ np.diag(noise)
    assert len(mechanism.protect(setting.known, np.random.default_rng(1))) == len(inside)


def test_without_noise_the_optimal_channel_reports_each_records_own_cell(setting):
    mechanism = across.settings(setting.known)["Optimal channel at 0 m"]
    published, cells_of = mechanism.protect(setting.known, np.random.default_rng(1)), mechanism.grid.cells
    before, after = (cells_of(t["lat"].to_numpy(), t["lng"].to_numpy()) for t in (setting.known, published))
    assert not mechanism.random
    assert (before[before >= 0] == after).all()


def test_a_channel_that_is_not_proven_to_be_optimal_is_named(setting, monkeypatch):
    def without_bound(area, epsilon, exact=across.Area.differential):
        optimum = exact(area, epsilon)
        return replace(optimum, certificate=replace(optimum.certificate, bound=-1.0)) if epsilon == 2 / 1000 else optimum

    monkeypatch.setattr(across.Area, "differential", without_bound)
    with pytest.warns(UserWarning, match=r"Optimal channel at 1000 m is not proven to be optimal: NOT exact"):
        across.settings(setting.known)


@pytest.mark.parametrize("mechanism", [Promesse(), GeoI(0.002), W4M()])
def test_a_trial_has_what_attacks_and_metrics_say(setting, mechanism):
    seeds = [5, 6] if mechanism.random else [5]
    got = across.Trial(setting, [5, 6]).measure(mechanism)
    recorded, protected, coverage, used = [], [], [], [*attacks(), APAttack(400.0)]
    for seed in seeds:
        published = mechanism.protect(setting.secret, np.random.default_rng(seed))
        training = mechanism.protect(setting.known, np.random.default_rng(seed + 1000))
        recorded.append([reidentified(a.fit(setting.known).rank(published), setting.users) for a in used])
        protected.append([reidentified(a.fit(training).rank(published), setting.users) for a in used])
        coverage.append(metrics.area_coverage(setting.secret, published)["f_score"].reindex(setting.users))
    for i, name in enumerate(["AP-Attack", "POI-Attack", "PIT-Attack", "AP-Attack on 400 m"]):
        assert got[f"recorded.{name}"] == pytest.approx(np.mean([hits[i] for hits in recorded], axis=0))
    assert got["protected"] == pytest.approx(np.mean([np.any(hits, axis=0) for hits in protected], axis=0))
    either = [np.any([*one, *other], axis=0) for one, other in zip(recorded, protected, strict=True)]
    assert got["either"] == pytest.approx(np.mean(either, axis=0))
    assert got["coverage"] == pytest.approx(np.mean(coverage, axis=0))


@pytest.mark.parametrize("choice", [across.OwnSetting(1.0), across.OwnMechanism(), GeoI(0.002)])
def test_processes_change_no_number(setting, choice, monkeypatch):
    monkeypatch.setattr(across.numba, "get_num_threads", lambda: 2)
    with across.Trial(setting, [5, 6]) as trial:
        together = trial.measure(choice)
    monkeypatch.setattr(across.numba, "get_num_threads", lambda: 1)
    with across.Trial(setting, [5, 6]) as trial:
        assert str(trial.measure(choice)) == str(together)


def test_a_choice_for_each_user_is_what_pulp_and_the_hybrid_say(setting):
    trial = across.Trial(setting, [5])
    fits = models(profile(setting.secret))
    advised = recommend(fits, lambda candidates: pu_ratio(candidates, 2.0))
    got = trial.measure(across.OwnSetting(2.0))
    published, _ = protected_with_settings(setting.secret, advised, SWEEPS, Metrics(), 5)
    expected = metrics.area_coverage(setting.secret, published)["f_score"].reindex(setting.users)
    assert got["coverage"] == pytest.approx(expected.to_numpy(), nan_ok=True)
    assert got["erased"] == (~setting.users.isin(published["user"].unique())).astype(float).tolist()
    known = {attack.name: attack.fit(setting.known) for attack in attacks()}
    tried = [GeoI(), Promesse(), TriLateration(), HMC(setting.known)]
    hybrid = Hybrid(tried, [known[n] for n in ("AP-Attack", "POI-Attack", "PIT-Attack")], coverage)
    kept = []
    for seed in (5, 6, 7):
        chosen = hybrid.protect(setting.secret, np.random.default_rng(seed))
        kept.append(metrics.area_coverage(setting.secret, chosen)["f_score"].reindex(setting.users))
    trial = across.Trial(setting, [5, 6, 7])
    assert trial.measure(across.OwnMechanism())["coverage"] == pytest.approx(np.mean(kept, axis=0))


def test_the_best_single_setting_keeps_as_much_and_re_identifies_the_fewest():
    values = {
        "useless": measured(0.0, 0.1, 500),
        "good": measured(0.3, 0.8, 100),
        "weak": measured(0.9, 0.9, 100),
        "Hybrid-LPPM": measured(0.4, 0.7, 100),
    }
    best, difference = across.best_single(values, "Hybrid-LPPM")
    assert (best, round(difference.value, 3)) == ("good", -0.1)
    assert across.best_single({**values, "Hybrid-LPPM": measured(0.4, 0.99, 100)}, "Hybrid-LPPM") is None


def test_a_share_of_the_records_is_a_share_of_each_users_records(setting):
    kept = share_of_records(setting.secret, 0.1, np.random.default_rng(1))
    sizes = pd.DataFrame({"all": setting.secret["user"].value_counts(), "kept": kept["user"].value_counts()}).query("all > 0")
    assert (sizes["kept"] == np.ceil(0.1 * sizes["all"])).all()
    everything = across.with_share_of_records(setting, 1.0, np.random.default_rng(1))
    attack = attacks()[0]
    assert (everything == reidentified(attack.fit(setting.known).rank(setting.secret), setting.users)).all()


def test_a_utility_that_is_not_significantly_better_does_not_dominate():
    bad, good = measured(0.9, 0.5, 500), measured(0.2, 0.8, 100)
    good["coverage"] = bad["coverage"] + np.random.default_rng(4).normal(0, 0.01, 200)
    assert not across.dominating({"bad": bad, "good": good})


def test_only_fixed_tables_are_computed_once():
    fixed, drawn, calls = [], [], []
    computed = across._once_for({id(fixed)}, lambda original, published: calls.append(published) or len(calls))
    assert [computed(drawn, table) for table in (fixed, fixed, drawn, drawn)] == [1, 1, 2, 3]


def test_overheard_records_are_the_same_in_processes(setting, monkeypatch):
    shares = {}
    for threads in (1, 2):
        monkeypatch.setattr(across.numba, "get_num_threads", lambda threads=threads: threads)
        with across.Trial(setting, [5, 6]) as trial:
            shares[threads] = trial.overheard(0.2, [[1, 200, i] for i in range(3)])
    alone = [across.with_share_of_records(setting, 0.2, np.random.default_rng([1, 200, i])) for i in range(3)]
    assert shares[1] == shares[2] == np.mean(alone, axis=0).tolist()
