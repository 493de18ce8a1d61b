"""A lower bound of ε: right claims are not refuted, claims that are slightly too strong and usual mistakes are."""

from dataclasses import dataclass

import numpy as np
import pytest
from conftest import refuses
from scipy.stats import binom

from mobpriv.ground.geo import move
from mobpriv.mechanisms import GeoI, TriLateration
from mobpriv.metrics import location_audits
from mobpriv.metrics.location_audits import _lower_bound, epsilon_bound
from mobpriv.traces.table import as_traces


@dataclass(frozen=True)
class Mistaken:
    """Planar Laplace noise with a mistake in its radius, its units or its rounding."""

    mistake: str
    epsilon: float = 0.01

    def protect(self, traces, rng):
        n = len(traces)
        angle, radius = rng.uniform(0, 2 * np.pi, n), rng.gamma(2, 1 / self.epsilon, n)
        if self.mistake == "exponential radius":
            radius = rng.exponential(2 / self.epsilon, n)
        if self.mistake == "cut at 3/ε":
            radius = np.minimum(radius, 3 / self.epsilon)
        if self.mistake == "one draw for all users":
            angle[:], radius[:] = angle[:1], radius[:1]
        east, north = radius * np.cos(angle), radius * np.sin(angle)
        lat, lng = (traces[name].to_numpy() for name in ("lat", "lng"))
        if self.mistake == "degrees of the equator":
            return as_traces(traces.assign(lat=lat + north / 111_320, lng=lng + east / 111_320))
        if self.mistake == "rounded noise":
            return as_traces(traces.assign(lat=lat + np.round(north / 111_320, 4), lng=lng + np.round(east / 111_320, 4)))
        lat, lng = move(lat, lng, east, north)
        if self.mistake == "rounded output":  # none: a function of the noisy position is as private
            lat, lng = lat.round(3), lng.round(3)
        published = as_traces(traces.assign(lat=lat, lng=lng))
        if self.mistake == "left out far away":
            return as_traces(published[radius < 2 / self.epsilon])  # a published position shows that she is near it
        return published


@pytest.mark.parametrize("epsilon", [1e-4, 10.0])
def test_the_true_epsilon_is_not_refuted_and_a_claim_a_fifth_too_strong_is(epsilon):
    bound = epsilon_bound(Mistaken("none", epsilon), epsilon, np.random.default_rng(1)).epsilon
    assert 0.8 * epsilon < bound <= epsilon
    assert epsilon_bound(Mistaken("none", 1.2 * epsilon), epsilon, np.random.default_rng(1)).epsilon > epsilon


def test_true_claims_are_refuted_no_more_often_than_the_level_says(monkeypatch):
    """At a level of 0.2 a correct test refutes more than 9 of 20 with a probability below 0.003; the table is left out."""

    def published(epsilon, place, records, rng):
        angle, radius = rng.uniform(0, 2 * np.pi, records), rng.gamma(2, 1 / epsilon, records)
        here = (np.full(records, degrees) for degrees in place)
        return np.column_stack(move(*here, radius * np.cos(angle), radius * np.sin(angle)))

    monkeypatch.setattr(location_audits, "_published", published)
    monkeypatch.setattr(location_audits, "_CHOOSING", 400)
    bounds = [epsilon_bound(0.01, 0.01, np.random.default_rng(seed), records=1_000, level=0.2).epsilon for seed in range(20)]
    assert binom.sf(9, 20, 0.2) < 0.003
    assert sum(bound > 0.01 for bound in bounds) <= 9


@pytest.mark.parametrize(
    "mistake", ["exponential radius", "cut at 3/ε", "degrees of the equator", "rounded noise", "left out far away"]
)
def test_a_usual_mistake_is_refuted(mistake):
    assert epsilon_bound(Mistaken(mistake), 0.01, np.random.default_rng(1)).epsilon > 0.01


def test_uniform_noise_has_no_epsilon_and_the_noise_in_map_metres_a_larger_one(monkeypatch):
    monkeypatch.setattr(location_audits, "_CHOOSING", 1_000)
    assert epsilon_bound(TriLateration(1000), 0.01, np.random.default_rng(1), records=5_000).epsilon > 0.012
    bound = epsilon_bound(GeoI(0.01, "mercator"), 0.01, np.random.default_rng(1), records=5_000)
    assert (bound.latitude, bound.epsilon > 0.012) == (60.0, True)  # where a map metre is half a metre


def test_a_function_of_the_noisy_position_is_not_refuted():
    assert epsilon_bound(Mistaken("rounded output"), 0.01, np.random.default_rng(1)).epsilon <= 0.01


def test_the_bound_of_a_ratio_covers_it():
    """Shares 0.3 and 0.1 of 200: the bound exceeds ln 3 in at most 10 % of 2000 samples."""
    a, b = np.random.default_rng(1).binomial(200, [[0.3], [0.1]], (2, 2000))
    above = np.mean(_lower_bound(a, b, 200, 0.1) > np.log(3))
    assert above <= 0.1
    assert _lower_bound(0, 5, 10, 0.1) == -np.inf
    assert _lower_bound(10, 10, 10, 0.1) < 0


def test_refused():
    rng = np.random.default_rng(1)
    refuses("users must get independent noise", epsilon_bound, Mistaken("one draw for all users"), 0.01, rng)
    refuses(r"epsilon can be tested from 0.00001 to 1000 per metre \(got 0\)", epsilon_bound, GeoI(), 0, rng)
