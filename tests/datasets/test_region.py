"""The synthetic region: what the files hold, that truth and records agree, and that it can be made again in any blocks."""

import errno

import geopandas
import naive_calls as naive
import numpy as np
import pandas as pd
import pytest
import shapely

from mobpriv.calls.table import as_calls, as_cells
from mobpriv.datasets import data_folder, load_calls, region_truth
from mobpriv.datasets.region import (
    FIRST_MIDNIGHT,
    PEOPLE,
    PERIOD_DAYS,
    ZONE,
    _clock,
    calling,
    files,
    ground_of,
    make_region,
    people_blocks,
    period,
    write_region,
)
from mobpriv.datasets.region.ground import AREA, MIN_ANTENNAS, PIXEL, plane_to_degrees
from mobpriv.datasets.region.people import AT_WORKPLACE, GAMMA, PLACES, RHO, _place_to_go, life, person_of, world_of
from mobpriv.datasets.region.streams import above, exponential, person_stream, philox_key, standard_normal, uniform

FILES = ("region.parquet", "region_cells.parquet", "region_people.parquet", "region_municipalities.geojson")
SMALL = {"people": 60, "municipalities": 4, "antennas": 20, "calls": 2.0, "seed": 3}


@pytest.fixture(scope="module")
def region():
    return load_calls("region", period=period())


@pytest.fixture(scope="module")
def truth():
    return region_truth()


@pytest.fixture(scope="module")
def ground():
    return ground_of(4, 20, 3)


@pytest.fixture(scope="module")
def world(ground):
    return world_of(ground)


def test_it_is_small_valid_and_marked_synthetic(region):
    calls = region.calls
    assert sum((data_folder() / name).stat().st_size for name in FILES) < 5e6
    assert region.synthetic
    assert not len(region.left_out)
    assert as_calls(calls, region.cells, period()).equals(calls)
    assert 900_000 < len(calls) < 1_300_000
    assert calls["user"].nunique() > 0.9 * PEOPLE
    assert (calls["duration"] >= 1).all()
    assert FIRST_MIDNIGHT.day_of_week == 0
    # calls end elsewhere and cross midnight
    assert 0.02 < (calls["cell"] != calls["end_cell"]).mean() < 0.15
    begin = calls["t"].dt.tz_convert(ZONE)
    end = begin + pd.to_timedelta(calls["duration"], unit="s")
    assert (begin.dt.day_of_year != end.dt.day_of_year).sum() > 100
    after = calls.groupby("user", observed=True)["t"].shift(-1)
    assert not ((after - calls["t"]).dt.total_seconds() < calls["duration"]).any()  # one phone makes one call at a time


def test_the_embedded_files_are_what_the_program_makes(tmp_path):
    for file in write_region(tmp_path):
        assert file.read_bytes() == (data_folder() / file.name).read_bytes()


@pytest.mark.parametrize("block", [1, 7, 60])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_bytes_in_whatever_blocks(tmp_path, monkeypatch, block, workers):
    monkeypatch.setattr(files, "_ROWS_PER_GROUP", 1000)  # several groups of rows
    in_one = [file.read_bytes() for file in write_region(tmp_path / "whole", **SMALL)]
    parts = [file.read_bytes() for file in write_region(tmp_path / "parts", **SMALL, block=block, workers=workers)]
    assert parts == in_one


def test_on_a_full_disk_the_files_that_are_there_stay(tmp_path, ground):
    old = [file.read_bytes() for file in write_region(tmp_path, **SMALL)]

    def filling():
        yield from people_blocks(ground, 60, block=30)
        raise OSError(errno.ENOSPC, "no space left on device")

    for folder, left in ((tmp_path, old), (tmp_path / "new", [])):
        with pytest.raises(OSError, match="no space left"):
            files.write(folder, ground, filling(), 1)
        assert [file.read_bytes() for name in FILES if (file := folder / name).exists()] == left
        assert {file.name for file in folder.iterdir()} - {"new"} <= {*FILES}


def test_a_person_depends_on_the_seed_and_her_number_alone():
    few, many = make_region(**SMALL), make_region(**(SMALL | {"people": 90}))
    kept = many.calls[many.calls["user"].astype(str) < "p0000060"]
    pd.testing.assert_frame_equal(kept.astype({"user": str}), few.calls.astype({"user": str}))
    assert not make_region(**(SMALL | {"seed": 4})).calls.equals(few.calls)


def test_what_is_written_is_what_is_made(tmp_path):
    region = make_region(**SMALL)
    calls, cells, people, towns = write_region(tmp_path, **SMALL)
    loaded, table = load_calls(calls), pd.read_parquet(cells)
    pd.testing.assert_frame_equal(loaded.calls, region.calls)
    pd.testing.assert_frame_equal(loaded.cells, region.cells, check_dtype=False)
    pd.testing.assert_frame_equal(pd.read_parquet(people).astype("str"), region.people)
    assert loaded.synthetic
    assert geopandas.read_file(towns)["municipality"].tolist() == region.municipalities["municipality"].tolist()
    assert as_cells(table).equals(as_cells(table[::-1]))


def test_polygons_cover_the_island_and_do_not_overlap(truth):
    assert set(truth[1].columns) - {"geometry"} == {"municipality", "share", "antennas"}  # nothing about people
    shapes = truth[1].geometry
    assert shapes.is_valid.all()
    assert set(shapes.geom_type) == {"Polygon"}
    assert shapely.coverage_is_valid(shapes.to_numpy())
    island = shapely.union_all(shapes.to_numpy())
    assert (island.geom_type, len(island.interiors)) == ("Polygon", 0)  # without a hole in it
    assert shapes.to_crs(shapes.estimate_utm_crs()).area.mean() == pytest.approx(AREA, rel=0.01)


def test_every_cell_lies_in_its_municipality(region, truth):
    towns = truth[1].set_index("municipality")
    assert all(towns.geometry[c.municipality].contains(shapely.Point(c.lng, c.lat)) for c in region.cells.itertuples())
    counts = region.cells["municipality"].value_counts()
    assert counts.min() >= MIN_ANTENNAS
    assert counts.sort_index().to_dict() == towns["antennas"].to_dict()
    assert counts.index[0] == "M001"
    assert counts.iloc[0] > 29  # dχ's 29 antennas of one big city


def test_municipalities_are_of_very_different_size(truth):
    roles, towns = truth
    lives = roles[roles["role"].isin(["resident", "dynamic resident"])]["municipality"].value_counts()
    assert lives.sum() == PEOPLE
    share = towns.set_index("municipality")["share"]
    expected = PEOPLE * share
    assert (np.abs(lives - expected) < 5 * np.sqrt(expected)).all()
    assert share.iloc[0] / share.iloc[-1] == pytest.approx(len(towns), rel=0.01)  # Zipf


def test_roles_are_consistent(truth):
    roles = truth[0].astype("str")
    assert not roles.duplicated(["person", "municipality"]).any()
    count = roles.groupby(["person", "role"]).size().unstack(fill_value=0)
    assert (count["resident"] + count["dynamic resident"] == 1).all()  # everybody lives somewhere
    assert (count["commuter"] == count["dynamic resident"]).all()  # who works elsewhere works in one place
    assert set(roles["role"]) == set(files.PERSON_ROLES)


@pytest.fixture(scope="module")
def calls_with_roles(region, truth):
    calls, cells = region.calls, region.cells["municipality"].to_numpy()
    local = calls["t"].dt.tz_convert(ZONE)
    table = pd.DataFrame({"person": calls["user"].astype("str"), "hour": local.dt.hour, "day": local.dt.day_of_year})
    table["municipality"], table["end"] = (cells[calls[of].cat.codes] for of in ("cell", "end_cell"))
    table["weekend"] = local.dt.day_of_week >= 5
    return table.merge(truth[0].astype("str"), "left", ["person", "municipality"])


def test_every_call_is_made_where_its_person_has_a_role(calls_with_roles, truth):
    assert calls_with_roles["role"].notna().all()
    ends = calls_with_roles[["person", "end"]].drop_duplicates().rename(columns={"end": "municipality"})
    assert ends.merge(truth[0].astype("str"), "left", ["person", "municipality"])["role"].notna().all()


def test_roles_and_a_rhythm_of_day_and_week_show_in_the_records(calls_with_roles):
    """§3.2: who is there when."""
    by_role, weekends = calls_with_roles.groupby("role"), calls_with_roles["weekend"]
    at_work = calls_with_roles["hour"].between(10, 15) & ~weekends
    share, weekend = at_work.groupby(calls_with_roles["role"]).mean(), by_role["weekend"].mean()
    assert share["commuter"] > 0.5
    assert share["commuter"] > 1.4 * share["resident"] > 1.4 * 1.2 * share["dynamic resident"]
    assert weekend["commuter"] < 0.12 < weekend["dynamic resident"]
    days = calls_with_roles.groupby(["person", "municipality", "role"])["day"].nunique().groupby("role").mean()
    assert days["passing by"] < days["visitor"] < days["commuter"] < days["resident"]
    assert days["visitor"] < 3  # "only a few times in the period"
    hours = [calls_with_roles["hour"].between(*span, inclusive="left").mean() for span in ((0, 8), (19, 24), (8, 19))]
    assert hours[0] < 0.1 < hours[1] < hours[2]  # at night, in the evening, by day
    assert weekends.sum() / 8 == pytest.approx(calling.WEEKEND * (~weekends).sum() / 20, rel=0.05)
    late = calls_with_roles["hour"] >= 12
    assert late[weekends].mean() != pytest.approx(late[~weekends].mean(), abs=0.005)


def test_some_call_much_and_many_move(region):
    """What dχ's sample needs: several hundred people who see at least 6 antennas in a day; most make about one call a day."""
    calls = region.calls
    a_day = calls["user"].value_counts() / PERIOD_DAYS
    assert 0.7 < a_day.median() < 1.3
    assert 0.01 < (a_day >= 25).mean() < 0.05
    day = calls["t"].dt.tz_convert(ZONE).dt.day_of_year.to_numpy()
    city = region.cells["municipality"].to_numpy()[calls["cell"].cat.codes] == "M001"
    pairs = pd.DataFrame({"user": calls["user"].cat.codes, "day": day, "cell": calls["cell"].cat.codes})
    for part, fewest in ((pairs, 1500), (pairs[city], 500)):
        distinct = part.drop_duplicates().groupby(["user", "day"]).size()
        assert distinct[distinct >= 6].index.get_level_values("user").nunique() > fewest
    per_person = pairs.drop_duplicates(["user", "cell"]).groupby("user").size()
    assert per_person.quantile(0.1) <= 3 < 20 < per_person.quantile(0.95)  # stay-at-homes and rovers


def test_the_clock_is_that_of_a_zone_with_summer_time():
    clock = _clock()
    hours = pd.to_datetime(clock, unit="s", utc=True).tz_convert(ZONE)
    assert (hours.hour == np.arange(24 * PERIOD_DAYS) % 24).all()
    assert (hours.day_of_year - FIRST_MIDNIGHT.day_of_year == np.arange(24 * PERIOD_DAYS) // 24).all()
    (doubled,) = np.flatnonzero(np.diff(clock) != 3_600)
    assert np.diff(clock)[doubled] == 7_200
    assert hours[doubled] == pd.Timestamp("2024-10-27 01:00", tz="UTC").tz_convert(ZONE) - pd.Timedelta("1h")
    first, end = period()
    assert end - first == pd.Timedelta(days=28, hours=1)
    assert (end.hour, end.day_of_week, clock[0]) == (0, 0, first.timestamp())


def test_the_streams_are_numpys_philox():
    key = philox_key(5)
    for number in (0, 1, 123_456_789):
        mine, numpys = person_stream(key, number), naive.someone(key, number)
        assert [uniform(mine) for _ in range(41)] == [next(numpys) for _ in range(41)]
    s = person_stream(key, 7)
    drawn = np.array([[exponential(s), standard_normal(s)] for _ in range(20_000)])
    np.testing.assert_allclose(drawn.mean(axis=0), [1, 0], atol=0.03)
    np.testing.assert_allclose(drawn.std(axis=0), [1, 1], atol=0.04)
    weights = np.array([0.0, 1.0, 0.0, 3.0])
    assert [int(above(np.cumsum(weights), v)) for v in (0.0, 0.99, 1.0, 3.9, 4.0)] == [1, 1, 3, 3, 3]


def test_calls_are_served_where_their_people_are(ground, world):
    """Against a twin that looks every call up in its person's life: at a place its antenna or a neighbour's, on the way the map's."""
    key, moved = philox_key(9), 0
    (callers, t, cell, end_cell, duration), (person_number, municipality, does) = calling.block(world, key, 0, 40, 28, 5.0)
    does = dict(zip(zip(person_number.tolist(), municipality.tolist(), strict=True), does.tolist(), strict=True))
    for number in range(40):
        s = person_stream(key, number)
        person = person_of(world, s)
        arrive, leave, place, n = (part if np.isscalar(part) else part.tolist() for part in life(world, person, 28, s))
        arrive, leave, place = arrive[:n], leave[:n], place[:n]
        assert place[0] == place[-1] == person.home
        assert all(a <= b < c for a, b, c in zip(arrive, leave, arrive[1:], strict=False))
        of_caller = np.flatnonzero(callers == number)
        assert (np.diff(t[of_caller]) > duration[of_caller][:-1]).all()
        for k in of_caller:
            for moment, served in ((t[k], cell[k]), (t[k] + duration[k], end_cell[k])):
                at, to, share = naive.whereabouts(arrive, leave, place, float(moment))
                bits = does[number, int(ground.owner[served])]
                if at == to:
                    # a neighbour of this place, or of the antenna that served the beginning and handed over
                    assert served in {at, *ground.neighbours[at], *ground.neighbours[cell[k]]}
                    assert bits & (calling.VISITING | calling.WORKING_THERE | calling.LIVING_THERE)
                else:
                    x, y = (c[at] + share * (c[to] - c[at]) for c in (ground.x, ground.y))
                    row, column = int((y - ground.corner[1]) // PIXEL), int((x - ground.corner[0]) // PIXEL)
                    assert served == ground.serving[row, column]
                    assert bits & calling.PASSING
                    moved += 1
    assert moved > 50


def test_the_map_names_the_nearest_antenna_of_the_municipality(ground):
    """Against a twin that measures all antennas, at random places on land."""
    rng, shapes = np.random.default_rng(1), ground.municipalities.geometry.to_numpy()
    rows, columns = ground.serving.shape
    seen = 0
    for row, column in zip(rng.integers(rows, size=300), rng.integers(columns, size=300), strict=True):
        x, y = ground.corner[0] + PIXEL * (column + 0.5), ground.corner[1] + PIXEL * (row + 0.5)
        lat, lng = plane_to_degrees(x, y)
        inside = [k for k, shape in enumerate(shapes) if shape.contains(shapely.Point(lng, lat))]
        if inside:
            antennas = np.flatnonzero(ground.owner == inside[0])
            distances = np.hypot(ground.x[antennas] - x, ground.y[antennas] - y)
            assert ground.serving[row, column] == antennas[distances.argmin()]
            seen += 1
    assert seen > 100


def test_exploration_follows_song_et_al(world):
    """Of many choices by someone who knows S places, ρ·S^(−γ) lead to a new one (or to one that chance finds again)."""
    s = person_stream(philox_key(6), 0)
    for size in (3, 12):
        fresh = 0
        for _ in range(4_000):
            known, visits = np.full(PLACES, -1, np.int32), np.zeros(PLACES)
            visits[:size] = 1  # places that no choice can find again
            before = visits.copy()
            _place_to_go(world, 0, known, visits, s)
            fresh += bool((visits > before)[size])
        expected = RHO * size**-GAMMA
        assert fresh / 4_000 == pytest.approx(expected, abs=4 * np.sqrt(expected / 4_000))


def test_work_follows_gravity_and_shares_are_those_stated(world):
    key = philox_key(8)
    people = [person_of(world, person_stream(key, number)) for number in range(6_000)]
    kind = np.array([person.kind for person in people])
    assert (kind == AT_WORKPLACE).mean() == pytest.approx(0.55, abs=0.025)
    assert (kind == 1).mean() == pytest.approx(0.1, abs=0.015)
    works = [(person.home, person.work) for person in people if person.work >= 0]
    far = np.array([np.hypot(world.x[a] - world.x[b], world.y[a] - world.y[b]) for a, b in works])
    everywhere = np.hypot(world.x[:, None] - world.x, world.y[:, None] - world.y)
    assert far.mean() < 0.7 * everywhere.mean()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"municipalities": 1}, "a region has at least 2 municipalities"),
        ({"municipalities": 5, "antennas": 9}, "each with at least 2 antennas"),
        ({"people": 0}, "people must be a whole number, at least 1"),
        ({"people": 10_000_001}, "people must be a whole number"),
        ({"calls": 0}, "calls must be positive"),
        ({"block": 0}, "block must be a whole number, at least 1"),
    ],
)
def test_what_cannot_be_made_is_refused(tmp_path, given, words):
    with pytest.raises(ValueError, match=words):
        make_region(**(SMALL | given))
