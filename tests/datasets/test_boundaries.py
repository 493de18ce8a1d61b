"""Synthetic people on boundaries that are given: who is large, where antennas stand, by whose clocks they live, what is refused."""

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

from mobpriv.datasets.region import make_on, period
from mobpriv.datasets.region.boundaries import ground_on, in_order, read_boundaries
from mobpriv.experiments.primule import prepare, simulated_truth
from mobpriv.ground.geo import distance

NAMES = ["Arno", "Bisenzio", "Cecina", "Elba"]
SIDE = 0.1  # degrees


def square(west: float, south: float, side: float = SIDE) -> shapely.Polygon:
    return shapely.box(west, south, west + side, south + side)


def boundaries(shapes=None, names=NAMES, column: str = "name") -> geopandas.GeoDataFrame:
    """Three squares in a row and a fourth of two parts, the larger one on an island."""
    islands = shapely.MultiPolygon([square(11.25, 43.0, 0.01), square(10.0, 42.5)])
    shapes = shapes or [square(11.0, 43.0), square(11.1, 43.0), square(11.0, 43.1), islands]
    return geopandas.GeoDataFrame({column: names}, geometry=shapes, crs="EPSG:4326")


@pytest.fixture
def file(tmp_path):
    boundaries().to_file(path := tmp_path / "towns.geojson")
    return path


@pytest.fixture
def ground(file):
    return ground_on(read_boundaries(file), 40, {}, np.random.default_rng(1))


def test_antennas_stand_in_their_municipality_in_its_largest_part(ground):
    towns = ground.municipalities.set_index("municipality")
    for cell in ground.cells.itertuples():
        part = max(shapely.get_parts(towns.geometry[cell.municipality]), key=shapely.area)
        assert part.contains(shapely.Point(cell.lng, cell.lat))
    assert ground.cells["municipality"].value_counts().to_dict() == towns["antennas"].to_dict()


def test_a_kilometre_of_the_plane_is_one_on_the_ground(ground):
    plane_distance = np.hypot(ground.x[0] - ground.x, ground.y[0] - ground.y)
    lat, lng = ground.cells["lat"].to_numpy(), ground.cells["lng"].to_numpy()
    far = plane_distance > 5000
    assert far.any()
    assert plane_distance[far] == pytest.approx(distance(lat[0], lng[0], lat, lng)[far], rel=0.01)


def test_ranks_say_who_is_large_and_the_others_are_drawn():
    orders = {tuple(in_order(NAMES, {"Elba": 1, "Arno": 3}, np.random.default_rng(seed))) for seed in range(20)}
    assert orders == {("Elba", "Bisenzio", "Arno", "Cecina"), ("Elba", "Cecina", "Arno", "Bisenzio")}
    ground = ground_on(boundaries(column="municipality"), 20, {"Cecina": 1}, np.random.default_rng(1))
    assert ground.municipalities["municipality"].iloc[0] == "Cecina"
    assert ground.municipalities["share"].iloc[0] == pytest.approx(1 / (1 + 1 / 2 + 1 / 3 + 1 / 4), abs=1e-6)


def test_people_live_by_the_clocks_of_the_zone(file):
    here, there = (make_on(read_boundaries(file), 200, 20, zone=zone, calls=3.0) for zone in ("Europe/Rome", "Europe/Lisbon"))
    assert period("Europe/Rome")[0] == pd.Timestamp("2024-10-07", tz="Europe/Rome")
    assert here.calls["t"].dt.tz_convert("Europe/Rome").dt.hour.between(8, 21).mean() > 0.8
    # in the night that summer time ends clocks differ in more
    before = here.calls["t"] < pd.Timestamp("2024-10-27", tz="Europe/Rome")
    assert (there.calls["t"] - here.calls["t"])[before].unique().tolist() == [pd.Timedelta(hours=1)]


def test_a_setting_of_people_who_are_made_up(file):
    setting, again = (prepare(str(file), zone="Europe/Rome", people=300, antennas=20, ranks="Elba 1, Arno 2") for _ in range(2))
    assert "300 people with 20 antennas on the real boundaries of 4 municipalities" in setting.selection
    assert setting.data.synthetic
    truth = simulated_truth(setting)
    assert truth.roles.columns.tolist() == ["person", "municipality", "role"]
    assert set(setting.town) == set(truth.borders["municipality"]) == set(NAMES)
    pd.testing.assert_frame_equal(setting.profiles, again.profiles)


def test_of_whom_the_truth_is_known():
    assert simulated_truth(prepare("region", max_municipalities=2)) is not None
    assert simulated_truth(prepare("city", rate=5, antennas=6, towns=2)) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ranks": "Elba"}, "ranks are written as Firenze 1, Pisa 2"),
        ({"ranks": "Prato 1"}, "no municipality of the file: Prato"),
        ({"ranks": "Elba 5"}, "rank of Elba must be"),
        ({"ranks": "Elba 2, Arno 2"}, "two municipalities cannot have one rank"),
        ({"antennas": 7}, "at least 2 antennas"),
        ({"zone": "Europe/Atlantis"}, "there is no time zone 'Europe/Atlantis'"),
        ({"people": -1}, "people must be"),
        ({"dataset": "gone.geojson"}, "people are simulated in the municipalities of a file"),
        ("nothing", "is no file of boundaries"),
        (boundaries(column="town"), "lacks the names of its municipalities"),
        (boundaries(names=["Arno", "Arno", "Cecina", "Elba"]), "needs a name of its own"),
        (boundaries([shapely.Point(11, 43)] * 4), "Arno is no valid polygon"),
        (boundaries([square(11, 43, 0.0005), *boundaries().geometry[1:]]), "Arno is too small for an antenna"),
    ],
)
def test_what_is_refused_in_one_line(file, given, message):
    """Parameters, or what the file holds."""
    if isinstance(given, str):
        file.write_text(given)
    elif isinstance(given, geopandas.GeoDataFrame):
        given.to_file(file)
    parameters = {"dataset": str(file), "zone": "Europe/Rome", "people": 50, "antennas": 20}
    with pytest.raises((ValueError, FileNotFoundError), match=message) as refused:
        prepare(**(parameters | (given if isinstance(given, dict) else {})))
    assert "\n" not in str(refused.value)
