"""The embedded city: what the files hold, that its truth and its records agree, and that it can be made again."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from mobpriv.datasets import city_truth, data_folder, load
from mobpriv.datasets.city import CABS, COMMUTERS, DAYS, START, make_city, write_city
from mobpriv.datasets.city.people import GAMMA, RHO, Preferences
from mobpriv.datasets.city.places import make_places
from mobpriv.datasets.city.recording import measured
from mobpriv.datasets.city.streets import AIRPORT, coast, degrees, make_streets, way
from mobpriv.ground.geo import distance
from mobpriv.traces.table import as_traces, by_user, milliseconds

FILES = ("city.parquet", "city_stays.parquet", "city_users.parquet", "city_streets.geojson")


@pytest.fixture(scope="module")
def city():
    return load("city")


@pytest.fixture(scope="module")
def truth():
    return city_truth()


@pytest.fixture(scope="module")
def streets():
    return make_streets(np.random.default_rng(1))


def test_it_is_small_valid_and_marked_synthetic(city):
    assert sum((data_folder() / name).stat().st_size for name in FILES) < 5e6
    assert city.synthetic
    assert not len(city.left_out)
    assert load(data_folder() / "city.parquet").synthetic
    assert as_traces(city.traces).equals(city.traces)
    assert city.traces["user"].nunique() == COMMUTERS + CABS
    assert city.traces["t"].between(START, START + pd.Timedelta(days=DAYS)).all()
    assert START.day_of_week == 0
    places = city.traces[["lat", "lng"]].to_numpy()
    assert np.array_equal(places, np.round(places, 5))
    kinds = [f["properties"]["kind"] for f in json.loads((data_folder() / "city_streets.geojson").read_text())["features"]]
    assert kinds == ["land", "park", "river", "airport", "street", "main street", "motorway"]


def test_some_users_are_made_again_exactly(city):
    some = make_city(only=["p001", "p119", "c001"])
    stored = city.traces[city.traces["user"].isin(["p001", "p119", "c001"])]
    again = some.traces.astype({"user": str})
    pd.testing.assert_frame_equal(again, stored.astype({"user": str}).reset_index(drop=True))
    stays, users = city_truth()
    theirs = stays[stays["user"].isin(some.users["user"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(some.stays.astype({"user": str, "role": str}), theirs)
    assert users.loc["p119", "home_lat"] == some.users.set_index("user").loc["p119", "home_lat"]
    assert (data_folder() / "city_streets.geojson").read_text() == some.streets


def test_a_small_city_is_written_alike_twice(tmp_path):
    for folder in ("a", "b"):
        write_city(tmp_path / folder, make_city(3, 2, 2, seed=4))
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert not make_city(3, 2, 2, seed=4).traces.equals(make_city(3, 2, 2, seed=5).traces)
    assert set(make_city(1, 1, 1, seed=4).traces["user"].cat.categories) <= {"c001", "p001"}


def test_records_during_a_true_stay_lie_near_its_place(city, truth):
    stays = truth[0].sort_values("start")
    records = city.traces.astype({"user": str}).sort_values("t")
    joined = pd.merge_asof(records, stays, left_on="t", right_on="start", by="user", suffixes=("", "_stay")).dropna()
    joined = joined[(joined["t"] > joined["start"] + pd.Timedelta("2s")) & (joined["t"] < joined["end"] - pd.Timedelta("2s"))]
    assert len(joined) > 200_000
    off = distance(joined["lat"], joined["lng"], joined["lat_stay"], joined["lng_stay"])
    # an error of at most 7·√1.09 m per axis: 95 % within 2.45 times that, and one record in a thousand is far off
    assert np.quantile(off, 0.95) < 2.45 * 7 * np.sqrt(1.09) + 1
    assert 0.0003 < (off > 50).mean() < 0.002


def test_stays_do_not_overlap_and_roles_fit_the_kind(truth):
    stays, users = truth
    assert (stays["end"] - stays["start"] >= pd.Timedelta(minutes=5)).all()
    same = (stays["user"] == stays["user"].shift()).to_numpy()
    assert (stays["start"] >= stays["end"].shift())[same].all()
    roles = stays.groupby(stays["user"].map(users["kind"]))["role"].unique()
    assert set(roles["commuter"]) == {"home", "work", "public"}
    assert set(roles["cab"]) == {"garage", "stand", "airport", "break"}
    at_home = stays[stays["role"].isin(["home", "garage"])].merge(users, left_on="user", right_index=True)
    assert distance(at_home["lat"], at_home["lng"], at_home["home_lat"], at_home["home_lng"]).max() < 1.1
    people = users.query("kind == 'commuter'")  # homes and offices are shared
    assert (people.groupby("home").size() > 1).sum() > 10
    assert people["work"].value_counts().iloc[0] > 10


def test_speeds_and_sampling_are_those_of_phones_and_cabs_in_a_city(city):
    traces = city.traces
    code, t = traces["user"].cat.codes.to_numpy(), milliseconds(traces) / 1000
    lat, lng = traces["lat"].to_numpy(), traces["lng"].to_numpy()
    same_user = code[1:] == code[:-1]
    gap, cab = np.diff(t)[same_user], traces["user"].str.startswith("c").to_numpy()[1:][same_user]
    assert 58 <= np.median(gap[cab]) <= 62
    assert 20 <= np.quantile(gap[~cab], 0.25) <= 60
    assert 200 <= np.quantile(gap[~cab], 0.9) <= 660
    speed = (distance(lat[:-1], lng[:-1], lat[1:], lng[1:])[same_user] / gap)[gap < 120]
    assert (speed < 30).mean() > 0.998  # 108 km/h; the rest are wild errors
    assert 3 < np.median(speed[speed > 1]) < 12


def test_phones_are_off_at_night_and_there_are_gaps(city, truth):
    users, traces = truth[1], city.traces
    off = users.index[(users["kind"] == "commuter") & ~users["on_at_night"]]
    assert traces["t"].dt.hour[traces["user"].isin(off)].between(2, 4).mean() < 0.001
    longest = [np.diff(milliseconds(traces)[a:b]).max() / 3_600_000 for a, b in pairwise(by_user(traces)[1])]
    assert min(longest) > 1  # hours: nobody is recorded without a break
    days = traces.groupby("user", observed=True)["t"].agg(lambda t: t.dt.floor("D").nunique())
    assert (days < 10).any()
    assert (days >= 25).sum() > 50


def test_errors_of_positions_are_as_stated():
    t = np.arange(0, 3_000_000, 30.0)
    x, y = measured(np.array([[0.0, 5.0, -3.0], [1e9, 5.0, -3.0]]), t, 4.0, np.random.default_rng(2))
    off = np.hypot(x - 5, y + 3)
    plain = off < 50
    # 4 m of slow error and 0.3 · 4 m of fast noise
    assert np.std(x[plain]) == pytest.approx(4 * np.sqrt(1.09), rel=0.05)
    # 30 s apart: exp(−30/90) of the slow part
    expected = np.exp(-1 / 3) / 1.09
    assert np.corrcoef(x[:-1][plain[1:] & plain[:-1]], x[1:][plain[1:] & plain[:-1]])[0, 1] == pytest.approx(expected, abs=0.02)
    assert (off > 50).mean() == pytest.approx(0.001, rel=0.35)


def test_streets_are_on_land_and_connected(streets):
    assert (streets.x > coast(streets.y)).all()
    assert (streets.x[streets.airport], streets.y[streets.airport]) == AIRPORT
    for a, b in ((0, len(streets.x) - 1), (streets.airport, 5), (7, 7)):
        nodes = way(streets, a, b)
        assert (nodes[0], nodes[-1]) == (a, b)
        assert (streets.kind[nodes[:-1], nodes[1:]] >= 0).all()
    lat, lng = degrees(np.array([0.0, 1_000.0]), np.zeros(2))
    assert distance(lat[0], lng[0], lat[1], lng[1]) == pytest.approx(1_000, rel=1e-5)


def test_exploration_follows_song_et_al(streets):
    """Of 4 000 choices by someone who knows S places, ρ·S^(−γ) lead to a new one."""
    rng = np.random.default_rng(3)
    public = make_places(streets, 20, rng).public
    for known in (5, 50):
        fresh = 0
        for _ in range(4_000):
            likes = Preferences(public)
            likes.visits[:known] = 1
            fresh += likes.choose(0.0, 0.0, rng) >= known
        expected = RHO * known**-GAMMA
        assert fresh / 4_000 == pytest.approx(expected, abs=4 * np.sqrt(expected / 4_000))
