"""The crowd of the synthetic city: nested, reproducible, on the city's ground, and with a daily rhythm."""

import numpy as np
import pandas as pd
import pytest

from mobpriv.datasets.city.crowd import DAYS, LARGEST, START, Crowd
from mobpriv.datasets.city.streets import AIRPORT, degrees
from mobpriv.ground.geo import distance
from mobpriv.traces.table import as_traces, by_user


@pytest.fixture(scope="module")
def crowd():
    return Crowd(seed=3)


@pytest.fixture(scope="module")
def halves(crowd):
    return crowd.halves(0, 200)


def test_the_halves_are_traces_of_two_weeks_each(halves):
    middle = START + pd.Timedelta(days=DAYS) / 2
    for traces, begin in zip(halves, (START, middle), strict=True):
        pd.testing.assert_frame_equal(as_traces(traces), traces)
        assert traces["t"].between(begin, begin + pd.Timedelta(days=DAYS) / 2, inclusive="left").all()
        assert traces["t"].dt.hour.between(7, 22).all()
        assert distance(*degrees(0, 0), traces["lat"], traces["lng"]).max() < np.hypot(*AIRPORT) + 1_000
    assert START.day_of_week == 0


def test_a_user_is_the_same_in_any_crowd(crowd, halves):
    for traces, again in zip(halves, Crowd(seed=3).halves(150, 300), strict=True):
        shared = [f"u{k:07d}" for k in range(150, 200)]
        one, other = (t[t["user"].isin(shared)].astype({"user": str}).reset_index(drop=True) for t in (traces, again))
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert not crowd.halves(0, 1)[0].equals(Crowd(seed=4).halves(0, 1)[0])


def test_people_sleep_at_home_and_workers_are_elsewhere_at_eleven(halves):
    """The first record of a day is at home: it is in one place on nearly all days. At eleven on workdays most are elsewhere."""
    known = halves[0]
    places = known.assign(user=known["user"].astype(str), day=known["t"].dt.floor("D"), workday=known["t"].dt.day_of_week < 5)
    first = places.groupby(["user", "day"]).first()
    home = first.groupby("user")[["lat", "lng"]].median()
    away = distance(first["lat"], first["lng"], *(home[c].reindex(first.index, level="user") for c in home))
    assert (away < 50).mean() > 0.9
    noon = places[(places["t"].dt.hour == 11) & places["workday"]].groupby(["user", "day"]).first()
    away = distance(noon["lat"], noon["lng"], *(home[c].reindex(noon.index, level="user") for c in home))
    assert 0.6 < (away > 300).mean() < 0.9  # 90 % work or study, on 92 % of the days


def test_its_size_has_a_limit(crowd):
    with pytest.raises(ValueError, match="end, the number of users, must"):
        crowd.halves(0, LARGEST + 1)
    assert len(by_user(crowd.halves(LARGEST - 1, LARGEST)[0])[0]) <= 1
