import json

import numpy as np
import pytest
from conftest import refuses
from pyproj import Geod

from mobpriv.ground import geo

EARTH = Geod(ellps="WGS84")


@pytest.mark.parametrize(("metres", "error"), [(1.0, 1e-6), (1e3, 1e-6), (5e5, 1e-3)])
def test_ground_distance_is_the_geodesic(metres, error):
    rng = np.random.default_rng(1)
    lat, lng, azimuth = rng.uniform(-60, 60, 500), rng.uniform(-180, 180, 500), rng.uniform(0, 360, 500)
    lng2, lat2, _ = EARTH.fwd(lng, lat, azimuth, np.full(500, metres))
    kept = np.abs(lat2) < 60
    assert np.abs(geo.distance(lat, lng, lat2, lng2) / metres - 1)[kept].max() < error


def test_distance_crosses_the_date_line():
    assert geo.distance(10.0, 179.9995, 10.0, -179.9995) == pytest.approx(geo.distance(10.0, 0.0, 10.0, 0.001), rel=1e-9)


def test_mercator_metres_are_longer_than_the_ground_by_one_over_cos_latitude():
    ratio = geo.distance(45.76, 4.83, 45.76, 4.84, "mercator") / geo.distance(45.76, 4.83, 45.76, 4.84)
    assert ratio == pytest.approx(1 / np.cos(np.radians(45.76)), rel=4e-3)  # the sphere's radius differs from the ellipsoid's


def test_there_and_back():
    rng = np.random.default_rng(2)
    lat, lng = rng.uniform(-85, 85, 100), rng.uniform(-180, 180, 100)
    for plane in geo.PLANES:
        p = geo.to_plane(lat, lng, plane)
        degrees = geo.to_degrees(p.x, p.y, plane)
        np.testing.assert_allclose(degrees, (lat, lng), atol=1e-12)
    assert geo.to_degrees(np.array([185.0]), np.array([3.0]))[1] == -175


def test_unknown_plane():
    refuses(r"plane must be .* \(got 'utm'\)", geo.to_plane, [1.0], [1.0], "utm")


def test_meridian_arc():
    lat = np.array([-70.0, 12.0, 45.0, 90.0])
    expected = [np.sign(a) * EARTH.inv(0, 0, 0, a)[2] for a in lat]
    np.testing.assert_allclose(geo.meridian_arc(lat), expected, atol=1e-5)


def test_mercator_plane_of_the_authors(reference):
    points = json.loads((reference / "edge_traces/expected/geometry.json").read_text())["points"]
    p = geo.to_plane([q["lat"] for q in points], [q["lng"] for q in points], "mercator")
    np.testing.assert_allclose(p.x, [q["x"] for q in points], atol=1e-8)
    np.testing.assert_allclose(p.y, [q["y"] for q in points], atol=1e-8)
    d = geo.distance(points[0]["lat"], points[0]["lng"], [q["lat"] for q in points], [q["lng"] for q in points], "mercator")
    np.testing.assert_allclose(d, [q["plane_distance_to_first_m"] for q in points], atol=1e-8)


def test_cases_of_the_peer(reference):
    cases = {c["id"]: c for c in json.loads((reference / "accio_unit_tests.json").read_text())["cases"]}
    trip = cases["mercator_round_trip"]["input"] | cases["mercator_round_trip"]["expected"]
    p = geo.to_plane([trip["lat"]], [trip["lng"]], "mercator")
    np.testing.assert_allclose([p.x[0], p.y[0]], trip["plane_point_from_SFERA_run"], atol=1e-8)
    np.testing.assert_allclose(np.ravel(geo.to_degrees(p.x, p.y, "mercator")), [50, -120], atol=1e-13)


@pytest.mark.parametrize(
    ("latitudes", "metres", "error"), [((-89, 89), 1000.0, 1e-5), ((89, 90), 1000.0, 1e-4), ((-90, -89), 3e4, 1e-4)]
)
def test_a_move_is_as_long_as_it_says(latitudes, metres, error):
    """By the geodesic: on the ground at every latitude, over the poles and across the date line."""
    rng = np.random.default_rng(3)
    lat, lng, angle = rng.uniform(*latitudes, 2000), rng.uniform(-180, 180, 2000), rng.uniform(0, 2 * np.pi, 2000)
    moved = geo.move(lat, lng, metres * np.cos(angle), metres * np.sin(angle))
    assert np.abs(moved[0]).max() <= 90
    assert ((moved[1] >= -180) & (moved[1] < 180)).all()
    away = EARTH.inv(lng, lat, moved[1], moved[0])[2]
    np.testing.assert_allclose(away, metres, rtol=error)


@pytest.mark.parametrize("lat", [90.0, -90.0])
def test_the_mercator_plane_has_no_poles(lat):
    refuses(rf'no poles \(got latitude {lat} at position 1\).*plane="ground"', geo.to_plane, [0.0, lat], [0.0, 0.0], "mercator")
