"""ALP: the annealing's steps and law, its objectives, and what it finds for users."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from pulp_making import Moody, StepStore, wanderers

from mobpriv.mechanisms import GeoI, Promesse
from mobpriv.pulp import ALP_GEO_I, ALP_PROMESSE, Metrics, Objective, Sweep, achieved, alp
from mobpriv.pulp.annealing import anneal
from mobpriv.traces.table import rows

PEOPLE = wanderers([400, 1, 350], 5)
QUICK = Metrics(duration=600)
GEO_I = replace(ALP_GEO_I, values=np.geomspace(0.001, 1, 30))
PROMESSE = replace(ALP_PROMESSE, values=range(50, 501, 50))


def visited(cost, size, scale=1.0, seed=1):
    """The places that an annealing tries, in order, and what it answers."""
    places = []

    def watched(place):
        places.append(place)
        return cost(place)

    return places, anneal(watched, size, scale, np.random.default_rng(seed))


def test_a_hundred_and_ten_temperatures():
    """1, 0.9, … 0.9¹⁰⁹ = 1.03e-5, and the beginning."""
    places, result = visited(lambda place: 1.0, 50)
    assert len(places) == result.evaluations == 111
    assert (result.best, result.cost) == (places[0], 1.0)


def test_it_ends_where_nothing_is_left_to_gain():
    places, result = visited(lambda place: float(place != 7), 20)
    assert (places[-1], result.best, result.cost) == (7, 7, 0.0)
    assert len(places) < 111
    assert visited(lambda place: 0.0, 20)[1].evaluations == 1
    assert visited(lambda place: 1.0, 1)[1].evaluations == 1


@pytest.mark.parametrize("seed", range(20))
def test_the_answer_is_the_best_that_was_tried(seed):
    cost = lambda place: 0.1 + abs(place - 130) / 200  # noqa: E731
    places, result = visited(cost, 200, seed=seed)
    assert result.cost == min(map(cost, places)) == cost(result.best)
    assert abs(result.best - 130) <= 10


def test_neighbours_are_uniform_in_a_window_of_half_the_places():
    """At place 0 of 41, where every other place is so dear that it stays: 1 … 10 alike; from the middle 10 either way."""
    steps, sides = [], []
    for begin, seen in ((0, steps), (20, sides)):
        for seed in range(300):
            places, _ = visited(lambda place, begin=begin: 1.0 if place == begin else 1e6, 41, seed=seed)
            seen += places[1:] if places[0] == begin else []
    assert set(steps) == set(range(1, 11))
    assert set(sides) == {*range(10, 20), *range(21, 31)}
    counts = np.bincount(steps)[1:]
    assert len(steps) >= 220
    expected = len(steps) / 10
    assert ((counts - expected) ** 2 / expected).sum() < 33.7  # χ² of 9 degrees of freedom, 1e-4


@pytest.mark.parametrize(("step", "scale"), [(0.4, 1.0), (0.4, 2.0), (0.0, 1.0)])
def test_the_law_by_which_a_dearer_place_is_taken(step, scale):
    """Of two places the one not taken is tried next. At T = 1: 1/(1 + exp(ΔC/(0.5 · scale))), which is not Metropolis's exp(…)."""
    taken = tried = 0
    for seed in range(6000):
        places, _ = visited(lambda place: 1.0 + step * place, 2, scale, seed)
        if places[0] == 0:
            tried += 1
            taken += places[2] == 0
    expected = 1 / (1 + math.exp(step / (0.5 * scale)))
    assert abs(taken / tried - expected) < 4 * math.sqrt(expected * (1 - expected) / tried)
    assert abs(taken / tried - math.exp(-step / (0.5 * scale))) > 4 * math.sqrt(expected * (1 - expected) / tried)


def test_dearer_steps_are_taken_and_counted():
    """Of two places the one not taken is tried next: the dear one was taken where the cheap one follows; of the last try nothing is seen."""
    taken = 0
    for seed in range(20):
        places, result = visited(lambda place: 1.0 + 0.1 * place, 2, seed=seed)
        seen = sum(a == 1 and b == 0 for a, b in itertools.pairwise(places[1:]))
        assert result.worse in (seen, seen + 1)
        taken += seen
    assert taken > 40, "a greedy search takes none"
    assert visited(lambda place: 1.0, 50)[1].worse == 0, "places alike are not dearer"


@pytest.mark.parametrize(
    ("goal", "bound", "m", "cost"),
    [
        ("minimise", 500, 100, 0.2),
        ("minimise", 500, 900, 1),
        ("maximise", 1, 0.8, 0.2),
        ("maximise", 1, 3, 0),
        ("at most", 200, 300, 0.5),
        ("at most", 200, 100, 0),
        ("at least", 0.8, 0.6, 0.25),
        ("at least", 0.8, 0.9, 0),
        ("equal", 2, 3, 0.5),
        ("equal", 2, 1, 0.5),
        ("maximise", 1, math.nan, 1),
        ("at most", 200, math.nan, 1),
    ],
)
def test_costs(goal, bound, m, cost):
    assert Objective(goal, "m", bound).cost(m) == pytest.approx(cost)


def test_the_values_are_those_of_the_experiments():
    values = ALP_GEO_I.values
    assert (len(values), values[0], values[-1]) == (1891, 0.001, 1)
    assert np.diff(values)[[0, -1]] == pytest.approx([1e-5, 1e-3])
    assert (len(ALP_PROMESSE.values), *ALP_PROMESSE.values[::450]) == (451, 50, 500)
    assert (ALP_GEO_I.mechanism, ALP_PROMESSE.mechanism) == (GeoI(), Promesse())


@pytest.fixture(scope="module")
def settings():
    return alp(PEOPLE, GEO_I, runs=1, metrics=QUICK)


def test_every_user_gets_a_setting_or_a_reason(settings):
    assert settings["user"].tolist() == ["a", "b", "c"]
    assert settings["value"].isna().tolist() == [False, True, False]
    assert settings["reason"].tolist() == ["", "no POI in the original trace: there is nothing to hide", ""]
    assert set(settings["value"].dropna()) <= set(GEO_I.values)
    assert settings["evaluations"].tolist() == [111, 0, 111]
    assert settings["protections"].tolist() == [111, 0, 111]
    assert settings["worse"].gt(0).tolist() == [True, False, True]


def test_processes_and_what_was_kept_change_nothing(settings):
    store = StepStore()
    pd.testing.assert_frame_equal(alp(PEOPLE, GEO_I, runs=1, metrics=QUICK, workers=2, keep=store), settings)
    assert set(store) == {"alp-1", "alp-2", "alp-3"}
    pd.testing.assert_frame_equal(alp(PEOPLE, GEO_I, runs=1, metrics=QUICK, keep=store), settings)
    ann = rows(PEOPLE, (PEOPLE["user"] == "a").to_numpy())
    pd.testing.assert_frame_equal(alp(ann, GEO_I, runs=1, metrics=QUICK), settings.iloc[:1])


def test_the_cost_is_that_of_the_levels_achieved():
    """Promesse draws nothing: once at each step, and the levels at the answer are those that were seen."""
    settings = alp(PEOPLE, PROMESSE, metrics=QUICK)
    assert (settings["protections"] == settings["evaluations"]).all()
    again = achieved(PEOPLE, settings, [PROMESSE], metrics=QUICK)
    costs = (2 - again["privacy"] - again["utility"]).tolist()
    assert costs == pytest.approx(settings["cost"].dropna().tolist(), abs=1e-12)
    advised = settings.dropna(subset="value")
    every = pd.concat(achieved(PEOPLE, advised.assign(value=float(v)), [PROMESSE], metrics=QUICK) for v in PROMESSE.values)
    least = (2 - every["privacy"] - every["utility"]).groupby(every["user"]).min()
    assert costs == pytest.approx(least.tolist(), abs=1e-12)  # 111 tries at ten values


def test_other_objectives():
    """Without a wish for privacy everybody has an answer."""
    assert alp(PEOPLE, GEO_I, [Objective("at least", "utility", 0.5)], 1, QUICK)["value"].notna().all()
    private = alp(PEOPLE, GEO_I, [Objective("maximise", "privacy")], 3, QUICK)
    assert private["cost"].dropna().tolist() == [0, 0]
    assert (private["evaluations"] < 111).all()
    assert (private["protections"] == 3 * private["evaluations"]).all()


def test_a_mechanism_that_refuses():
    ann = rows(PEOPLE, (PEOPLE["user"] == "a").to_numpy())
    setting = alp(ann, Sweep(Moody(), "most", [10, 20], "utility"), metrics=QUICK).iloc[0]
    assert math.isnan(setting["value"])
    assert setting["reason"].startswith("Moody refused the trace 111 times, first at most = ")


test_what_is_refused = refusals(
    (lambda: alp(PEOPLE, objectives=[]), r"objectives must hold at least one \(got none\)"),
    (lambda: alp(PEOPLE, objectives=[Objective("minimise", "speed")]), r"an objective's metric must be .* \(got 'speed'\)"),
    (lambda: Objective("improve", "privacy"), r'goal must be "minimise", .* or "equal" \(got \'improve\'\)'),
    (lambda: Objective("minimise", "privacy", 0), r"bound must be positive \(got 0\)"),
    (lambda: alp(PEOPLE, runs=0), r"runs must be a whole number, at least 1 \(got 0\)"),
    (lambda: alp(PEOPLE, seed=-1), r"seed must be a whole number, at least 0 \(got -1\)"),
    (lambda: alp(PEOPLE, workers=0), r"workers must be a whole number, at least 1 \(got 0\)"),
    (lambda: anneal(abs, 0, 1, np.random.default_rng(1)), r"size must be a whole number, at least 1 \(got 0\)"),
)
