"""TriLateration: three records for one, uniform in the disc."""

import numpy as np
import pandas as pd
import pytest
from naive_mechanisms import WGS84
from scipy.stats import kstest

from mobpriv.geo import to_plane
from mobpriv.mechanisms.trilateration import TriLateration
from mobpriv.traces import as_traces, from_blocks


def crowd(lat, records=6000):
    time = 1_400_000_000_000 + 1000 * np.arange(records)
    return from_blocks(pd.Index(["a", "b"]), [records // 2] * 2, time, np.full(records, lat), np.full(records, 20.0))


@pytest.mark.parametrize("lat", [0.0, 60.0, -37.0])
def test_uniform_in_the_disc_on_the_ground(lat):
    """Uniform in the disc: (distance / r)² is uniform on [0, 1], so is the direction."""
    traces = crowd(lat)
    published = TriLateration(radius=1000).protect(traces, np.random.default_rng(2))
    lng0, lat0 = np.repeat(traces["lng"], 3), np.repeat(traces["lat"], 3)
    azimuth, _, away = WGS84.inv(lng0, lat0, published["lng"], published["lat"])
    assert np.max(away) <= 1000 * (1 + 1e-6)
    assert kstest((np.asarray(away) / 1000) ** 2, "uniform").pvalue > 0.01
    assert kstest((np.asarray(azimuth) + 180) / 360, "uniform").pvalue > 0.01


def test_mercator_disc():
    traces = crowd(60.0)
    published = TriLateration(1000, "mercator").protect(traces, np.random.default_rng(2))
    p, q = to_plane(traces["lat"], traces["lng"], "mercator"), to_plane(published["lat"], published["lng"], "mercator")
    away = np.hypot(q.x - np.repeat(p.x, 3), q.y - np.repeat(p.y, 3))
    assert away.max() <= 1000 + 1e-6
    assert kstest((away / 1000) ** 2, "uniform").pvalue > 0.01


def test_three_records_at_each_time_and_columns_ride_along():
    traces = crowd(10.0, 4).assign(speed=[1.0, 2.0, 3.0, 4.0])
    published = TriLateration().protect(traces, np.random.default_rng(0))
    assert list(published["speed"]) == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    assert list(published["t"]) == list(traces["t"].repeat(3))
    assert len(published[["lat", "lng"]].drop_duplicates()) == 12
    assert as_traces(published).equals(published)


@pytest.mark.parametrize("radius", [0, -1, float("nan"), float("inf")])
def test_refuses_a_wrong_radius(radius):
    with pytest.raises(ValueError, match=r"radius must be positive, in m \(got"):
        TriLateration(radius=radius)
