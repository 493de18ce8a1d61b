"""TriLateration: three records for one, uniform in the disc."""

import numpy as np
import pandas as pd
import pytest
from naive_mechanisms import WGS84

from mobpriv.mechanisms.trilateration import TriLateration
from mobpriv.traces.table import as_traces, from_blocks


def crowd(lat, records=6000):
    time = 1_400_000_000_000 + 1000 * np.arange(records)
    return from_blocks(pd.Index(["a", "b"]), [records // 2] * 2, time, np.full(records, lat), np.full(records, 20.0))


def test_nothing_lies_outside_the_disc():
    traces = crowd(60.0)
    published = TriLateration(radius=1000).protect(traces, np.random.default_rng(2))
    _, _, away = WGS84.inv(np.repeat(traces["lng"], 3), np.repeat(traces["lat"], 3), published["lng"], published["lat"])
    assert 990 < np.max(away) <= 1000 * (1 + 1e-6)


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
