"""Geo-I: the law of the noise on the ground, the bound of geo-indistinguishability, the author's quantiles."""

import json

import numpy as np
import pandas as pd
import pytest
from conftest import refusals
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_mechanisms import WGS84, planar_laplace
from scipy.special import lambertw
from scipy.stats import gamma, kstest

from mobpriv.mechanisms.geo_i import GeoI, density, radius_quantile
from mobpriv.traces.table import as_traces, by_user, from_blocks


def test_epsilon_bounds_the_density_and_is_tight():
    """|ln D(x)(z) − ln D(x')(z)| ≤ ε d(x, x') for all z, and more than 0.99 ε d(x, x') for some."""
    epsilon, distance = 0.01, 300.0
    z = np.random.default_rng(0).uniform(-2000, 2000, (5000, 2))
    to_x, to_other = np.hypot(z[:, 0], z[:, 1]), np.hypot(z[:, 0] - distance, z[:, 1])
    ratio = np.abs(np.log(density(to_x, epsilon) / density(to_other, epsilon)))
    assert ratio.max() <= epsilon * distance * (1 + 1e-9)
    assert ratio.max() > 0.99 * epsilon * distance


def test_density_integrates_to_the_quantiles():
    """The share within r is ∫ 2πr D(r) dr: 1 − (1 + εr) e^(−εr), whose median is 167.83 m at ε = 0.01."""
    assert radius_quantile(0.5, 0.01) == pytest.approx(167.8346990016661, abs=1e-9)
    r = np.linspace(0, 400, 40_001)
    share = np.trapezoid(2 * np.pi * r * density(r, 0.01), r)
    assert radius_quantile(share, 0.01) == pytest.approx(400, abs=1e-3)
    z = np.array([0.0, 1e-3, 0.3, 0.999])
    r = radius_quantile(z, 0.01)
    np.testing.assert_allclose(-np.expm1(-0.01 * r) - 0.01 * r * np.exp(-0.01 * r), z, atol=1e-15)
    lambert = -(lambertw((z[1:] - 1) / np.e, -1).real + 1) / 0.01
    np.testing.assert_allclose(r[1:], lambert, rtol=1e-6)


def test_quantiles_of_the_author(reference):
    recorded = json.loads((reference / "edge_traces/expected/geoi_quantile.json").read_text())
    z, r = np.array(recorded["z_to_r_m"]).T
    np.testing.assert_allclose(radius_quantile(z, recorded["epsilon_per_m"]), r, rtol=1e-7, atol=1e-6)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.floats(0.002, 1), st.floats(-75, 75), st.floats(-180, 180))
def test_equals_the_slow_twin(seed, epsilon, lat, lng):
    rng = np.random.default_rng(seed)
    place = np.column_stack([lat + rng.normal(0, 0.01, 9), (lng + rng.normal(0, 0.01, 9) + 180) % 360 - 180])
    traces = from_blocks(pd.Index(["a", "b"]), [4, 5], np.arange(9) + 10**12, *place.T)
    published = GeoI(epsilon).protect(traces, np.random.default_rng(seed))
    children = np.random.default_rng(seed).spawn(2)
    twin = planar_laplace(place[:4].tolist(), epsilon, children[0]) + planar_laplace(place[4:].tolist(), epsilon, children[1])
    twin = np.array(twin)
    _, _, off = WGS84.inv(published["lng"], published["lat"], twin[:, 1], twin[:, 0])
    _, _, radius = WGS84.inv(traces["lng"], traces["lat"], twin[:, 1], twin[:, 0])
    _, _, published_radius = WGS84.inv(traces["lng"], traces["lat"], published["lng"], published["lat"])
    np.testing.assert_allclose(published_radius, radius, rtol=1e-5, atol=1e-4)
    # the geodesic leaves the straight line in degrees by an angle of about r tan φ / 2R: the noise is isotropic, so be it
    turn = np.asarray(radius) * np.tan(np.radians(np.abs(traces["lat"]))) / 6.37e6
    assert np.all(off < np.asarray(radius) * (turn + 1e-5) + 1e-4)


def test_same_numbers_with_one_thread_and_with_many(monkeypatch):
    n = 150_000
    traces = from_blocks(pd.Index(["a", "b", "c"]), [n // 3] * 3, np.arange(n) + 10**12, np.full(n, 40.0), np.full(n, 3.0))
    monkeypatch.setattr("mobpriv.base.draws.numba.get_num_threads", lambda: 3)
    many = GeoI().protect(traces, np.random.default_rng(3))
    monkeypatch.setattr("mobpriv.base.draws.numba.get_num_threads", lambda: 1)
    one = GeoI().protect(traces, np.random.default_rng(3))
    pd.testing.assert_frame_equal(one, many, check_exact=True)


@pytest.mark.parametrize(("lat", "lng"), [(90.0, 0.0), (-90.0, 30.0), (89.9999, -179.9), (0.0, 180.0), (10.0, -180.0)])
def test_poles_and_date_line_stay_on_the_globe(lat, lng):
    traces = from_blocks(pd.Index(["a"]), [2000], 10**12 + np.arange(2000), np.full(2000, lat), np.full(2000, lng))
    published = GeoI(0.01).protect(traces, np.random.default_rng(0))
    as_traces(published)  # raises outside [-90, 90] x [-180, 180]
    _, _, radius = WGS84.inv(traces["lng"], traces["lat"], published["lng"], published["lat"])
    assert kstest(radius, gamma(2, scale=100).cdf).pvalue > 0.01
    assert len(by_user(published)[0]) == 1


test_what_is_refused = refusals(
    (lambda: GeoI(epsilon=0), r"epsilon must be positive, in 1/m \(got 0\)"),
    (lambda: GeoI(epsilon=float("inf")), r"epsilon must be positive, in 1/m \(got inf\)"),
    (lambda: radius_quantile(0.5, 0), "epsilon must be positive"),
    (lambda: GeoI(plane="moon"), "plane must be"),
    (lambda: radius_quantile([0.5, 1.0], 0.01), r"a share must lie in \[0, 1\) \(got 1.0\)"),
)
