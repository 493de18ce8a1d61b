"""Areas of any shape in, GeoDataFrames out."""

import geopandas as gpd
import naive_areas as naive
import numpy as np
import pandas as pd
import pytest
import shapely
from conftest import refusals, refuses
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyproj import Geod
from shapely import LineString, MultiPolygon, Point, Polygon, box

from mobpriv.attacks import APAttack
from mobpriv.channels import priors
from mobpriv.ground.grid import AreaGrid, S2Grid, SquareGrid
from mobpriv.traces.areas import Areas, around, as_points, as_polygons, records_inside
from mobpriv.traces.profiles import heat_maps, markov_chains, pois, stays
from mobpriv.traces.table import as_traces

EARTH = Geod(ellps="WGS84")
RING = Polygon([(0, 0), (10, 0), (10, 10), (0, 10)], holes=[[(4, 4), (6, 4), (6, 6), (4, 6)]])


def traces_at(lat, lng, user="u"):
    t = pd.to_datetime(1.45e9 + 600 * np.arange(len(lat)), unit="s", utc=True)
    return as_traces(pd.DataFrame({"user": user, "t": t, "lat": lat, "lng": lng}))


# whole numbers: points then lie on borders and corners often
corner = st.tuples(st.integers(-4, 4), st.integers(-4, 4))
triangles = st.lists(corner, min_size=3, max_size=7, unique=True).map(lambda corners: shapely.make_valid(Polygon(corners)))
# GEOS decides with 106 binary digits: exact for degrees like these, not for 0 beside a border at 1e-247
degrees = st.floats(-5, 5).filter(lambda x: x == 0 or abs(x) > 1e-9)
positions = st.lists(st.tuples(*[st.integers(-10, 10).map(lambda i: i / 2) | degrees] * 2), min_size=1, max_size=40)


@settings(max_examples=100)
@given(st.lists(triangles, min_size=1, max_size=4), st.booleans(), positions)
def test_cells_equal_their_definition(shapes, pierced, where):
    shapes = [s for s in shapes if s.geom_type in ("Polygon", "MultiPolygon")]
    if pierced:
        shapes.append(Polygon([(-4, -4), (4, -4), (4, 4), (-4, 4)], holes=[[(-1, -1), (2, -1), (1, 2)]]))
    assume(shapes)
    lat, lng = np.array(where, float).T
    cells = Areas(gpd.GeoSeries(shapes, crs=4326)).cells(lat, lng)
    assert cells.dtype == np.int64
    assert cells.tolist() == [naive.cell(shapes, *position) for position in where]


def test_borders_belong_holes_do_not_and_the_first_wins():
    two = Areas(gpd.GeoSeries([RING, box(10, 0, 20, 10), box(5, 5, 15, 9)], crs="EPSG:4326"))
    lat, lng = np.array([[5, 5, 5, 4.5, 0, 5, 8, 5.5], [0, 2, 10, 5, 20, 4, 12, 5.5]], float)
    #                    edge, within, shared edge, hole, corner, edge of the hole, overlap, hole under the third
    assert two.cells(lat, lng).tolist() == [0, 0, 0, -1, 1, 0, 1, 2]
    assert two.cells([np.nan, 5], [5, np.nan]).tolist() == [-1, -1]
    assert two.cells([], []).tolist() == []
    assert two.bounds([1, 0]).tolist() == [[0, 10, 10, 20], [0, 0, 10, 10]]
    refuses(r"areas run from 0 to 2 \(got 3\)", two.bounds, [0, 3])


def test_long_columns_are_looked_up_in_blocks():
    rng = np.random.default_rng(6)
    lat, lng = rng.uniform(-1, 11, (2, 120_001))
    two = Areas(gpd.GeoSeries([box(5, 5, 15, 9), RING], crs=4326))
    expected = np.where((lat >= 5) & (lat <= 9) & (lng >= 5), 0, np.where(shapely.intersects_xy(RING, lng, lat), 1, -1))
    assert (two.cells(lat, lng) == expected).all()


def test_records_inside():
    traces = traces_at([5.0, 5.0, 11.0, 1.0], [1.0, 5.0, 1.0, 1.0])
    chosen = records_inside(traces, RING)
    assert chosen["lat"].tolist() == [5, 1]
    pd.testing.assert_frame_equal(as_traces(chosen), chosen)
    for same in (Areas(RING), gpd.GeoSeries([RING], crs=4326), gpd.GeoDataFrame(geometry=[RING], crs=4326)):
        pd.testing.assert_frame_equal(records_inside(traces, same), chosen)
    assert len(records_inside(traces, box(50, 50, 51, 51))) == 0
    assert len(records_inside(traces.head(0), RING)) == 0


@pytest.mark.parametrize("crs", ["EPSG:32632", "EPSG:3035", "EPSG:3857", "EPSG:4258"])
def test_other_reference_systems_are_reprojected(crs):
    """A square kilometre or so around 45° N 11° E, drawn there: a point is inside when it is so in that system."""
    middle = gpd.GeoSeries([Point(11.0, 45.0)], crs=4326).to_crs(crs).iloc[0]
    half = 0.005 if crs == "EPSG:4258" else 500
    shape = middle.buffer(half, cap_style="square")
    rng = np.random.default_rng(1)
    lat, lng = rng.uniform(44.98, 45.02, 4000), rng.uniform(10.98, 11.02, 4000)
    projected = gpd.GeoSeries(gpd.points_from_xy(lng, lat), crs=4326).to_crs(crs)
    expected = shapely.intersects(shape, projected.to_numpy())
    inside = Areas(gpd.GeoSeries([shape], crs=crs)).cells(lat, lng) == 0
    assert 100 < expected.sum() < 2000
    assert (inside != expected).sum() == 0


def test_long_edges_are_straight_in_their_own_system():
    """400 km along a parallel of the Mercator plane and of UTM: the latter bends by kilometres in degrees."""
    shape = box(300_000, 5_000_000, 700_000, 5_400_000)
    edge = gpd.GeoSeries([Point(500_000, 5_000_000 + d) for d in (-30, 30)], crs=32632).to_crs(4326)
    assert Areas(gpd.GeoSeries([shape], crs=32632)).cells(edge.y, edge.x).tolist() == [-1, 0]


def test_the_date_line():
    lat, lng = np.full(5, -17.0), np.array([178.0, 179.5, 180.0, -180.0, -179.5])
    running = box(179, -18, 181, -16)
    cut = MultiPolygon([box(179, -18, 180, -16), box(-180, -18, -179, -16)])
    # Fiji's own map grid goes across
    fiji = gpd.GeoSeries([running], crs=4326).segmentize(0.1).to_crs("EPSG:3460")
    assert fiji.total_bounds[2] - fiji.total_bounds[0] < 250_000
    for shape in (running, cut, shapely.transform(running, lambda xy: xy - [360, 0]), fiji):
        areas = Areas(shape)
        assert areas.cells(lat, lng).tolist() == [-1, 0, 0, 0, 0]
        assert areas.to_geodataframe().total_bounds.tolist() == pytest.approx([-180, -18, 180, -16], abs=1e-3)
    eastern = Areas(gpd.GeoSeries([box(-180, -18, -179, -16), box(179, -18, 180, -16)], crs=4326))
    assert eastern.cells(lat, lng).tolist() == [-1, 1, 0, 0, 0]
    assert Areas(box(-180, -18, -179, -16)).cells(lat, lng).tolist() == [-1, -1, 0, 0, 0]
    assert Areas(box(180, -18, 181, -16)).cells(lat, lng).tolist() == [-1, -1, 0, 0, 0]  # all of it is beyond
    assert Areas(box(-170, -80, 170, 80)).cells([0, 0], [0, 175]).tolist() == [0, -1]  # an edge of 340° is one


def test_a_hole_across_the_date_line():
    island = box(178, -19, 182, -15).difference(box(179.8, -17.2, 180.2, -16.8))
    for shape in (island, gpd.GeoSeries([island], crs=4326).segmentize(0.05).to_crs("EPSG:3832")):
        assert Areas(shape).cells([-17, -17, -17, -17], [179.9, -179.9, 179, -179]).tolist() == [-1, -1, 0, 0]


BOW = Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])


test_what_no_area_can_be = refusals(
    (gpd.GeoSeries([RING, BOW], index=["a", "b"], crs=4326), r"valid borders \(row 'b' is not: Self-intersection"),
    (gpd.GeoSeries([RING, None], crs=4326), r"not be missing or empty \(row 1 is so\)"),
    (gpd.GeoSeries([Polygon(), RING], crs=4326), r"not be missing or empty \(row 0 is so\)"),
    (gpd.GeoSeries([RING]), r"must have a coordinate reference system \(got none\)"),
    (gpd.GeoSeries([RING, LineString([(0, 0), (1, 1)])], crs=4326), r"be polygons \(row 1 is a LineString\).*buffer"),
    (Point(1, 1), r"be polygons \(row 0 is a Point\)"),
    (gpd.GeoSeries([], crs=4326), r"at least one \(got none\)"),
    (gpd.GeoDataFrame({"name": ["a"]}), "column of geometries"),
    (RING.bounds, r"polygon of shapely \(got tuple\)"),
    (box(500_000, 4_800_000, 600_000, 4_900_000), r"lie on the globe.*row 0 reaches from 4.8e\+06, 500000.*with their crs"),
    (gpd.GeoSeries([Point(0, 0).buffer(1e6)], crs=3413), "must not hold a pole"),
    (gpd.GeoSeries([box(0, 0, 1e9, 1e9)], crs=32632), "lie on the globe|valid"),
    call=Areas,
)


def test_areas_stand_in_for_a_grid():
    """Four quarters of a square degree as a table of areas and as cells: the same heat maps, ranks and priors."""
    quarters = [box(x, y, x + 0.5, y + 0.5) for y in (45, 45.5) for x in (5, 5.5)]
    table = Areas(gpd.GeoDataFrame({"name": list("abcd")}, geometry=quarters, crs=4326).to_crs(3857))
    assert repr(table) == "Areas(4)"
    rng = np.random.default_rng(2)
    traces = pd.concat([traces_at(rng.uniform(45 + i / 5, 46, 50), rng.uniform(5, 6 - i / 5, 50), f"u{i}") for i in range(3)])
    traces = as_traces(traces.astype({"user": str}))
    maps = heat_maps(traces, table)
    assert maps.cells.tolist() == [0, 1, 2, 3]
    expected = [2 * (lat >= 45.5) + (lng >= 5.5) for lat, lng in zip(traces["lat"], traces["lng"], strict=True)]
    assert table.cells(traces["lat"], traces["lng"]).tolist() == expected
    ranking = APAttack(grid=table).fit(traces).rank(traces)
    assert (np.diag(ranking) < 1e-12).all()
    assert (ranking.to_numpy()[~np.eye(3, dtype=bool)] > 0.01).all()
    shares = priors.priors(traces, table).shares
    np.testing.assert_allclose(shares.to_numpy(), maps.shares.toarray())
    geodataframe = table.to_geodataframe()
    assert geodataframe.crs == "EPSG:4326"
    assert geodataframe["name"].tolist() == list("abcd")
    assert geodataframe.index.name == "cell"
    pd.testing.assert_frame_equal(as_polygons(table), geodataframe)


def walk():
    lat, lng = 45 + np.repeat([0, 0.1, 0], 9), 5 + np.repeat([0, 0, 0.1], 9)
    return traces_at(lat, lng)


@pytest.mark.parametrize("kind", ["records", "stays", "pois", "states"])
def test_tables_come_out_as_points_and_go_into_files(kind, tmp_path):
    traces = walk()
    tables = {"records": traces, "stays": stays(traces), "pois": pois(traces)[0], "states": markov_chains(traces).states}
    table = tables[kind]
    points = as_points(table)
    assert points.crs == "EPSG:4326"
    pd.testing.assert_frame_equal(pd.DataFrame(points.drop(columns="geometry")), table)
    assert points.geometry.x.tolist() == table["lng"].tolist()
    assert points.geometry.y.tolist() == table["lat"].tolist()
    points.to_file(tmp_path / "points.gpkg")
    read_back = gpd.read_file(tmp_path / "points.gpkg")
    assert read_back["user"].tolist() == table["user"].tolist()
    assert read_back.geometry.geom_equals(points.geometry).all()
    # and the areas it came from find them again
    around = points.to_crs(3857).buffer(100)
    assert (Areas(around).cells(table["lat"], table["lng"]) >= 0).all()


def test_points_need_places_and_grids_polygons():
    refuses(r"missing: lng \(got \['user', 'lat'\]\)", as_points, pd.DataFrame({"user": ["a"], "lat": [1.0]}))
    assert len(as_points(stays(walk().head(1)))) == 0
    refuses(r"knows their bounds \(got S2Grid\(level=13\)\)", as_polygons, S2Grid(13), [1])
    refuses(r"knows their size: say which cells", as_polygons, SquareGrid())


@pytest.mark.parametrize(("lat", "lng"), [(0.0, 10.0), (45.0, 11.3), (-70.0, -60.0)])
def test_square_cells_have_their_area(lat, lng):
    """800 × 800 m: by the geodesic and in an equal-area map of the place."""
    grid = SquareGrid(800.0)
    rng = np.random.default_rng(3)
    cells = np.unique(grid.cells(lat + rng.uniform(-0.3, 0.3, 50), lng + rng.uniform(-0.3, 0.3, 50)))
    polygons = as_polygons(grid, cells)
    assert polygons.index.tolist() == cells.tolist()
    flat = polygons.to_crs(f"+proj=laea +lat_0={lat} +lon_0={lng} +datum=WGS84").area
    np.testing.assert_allclose(flat, 640_000, rtol=1e-4)
    np.testing.assert_allclose([abs(EARTH.geometry_area_perimeter(p)[0]) for p in polygons.geometry], 640_000, rtol=1e-4)


def test_the_cells_of_an_area_have_their_sides_in_utm():
    grid = AreaGrid.around(46.52, 6.63)
    polygons = as_polygons(grid)
    assert len(polygons) == grid.size
    zone = polygons.estimate_utm_crs()
    assert zone.to_epsg() == 32632
    # 2.4° west of the zone's meridian the scale is 0.9996 + 0.0004: areas agree to a thousandth
    assert polygons.to_crs(zone).area.mean() == pytest.approx(750 * 8000 / 15, rel=1e-3)


@pytest.mark.parametrize("plane", ["ground", "mercator"])
def test_cells_at_the_date_line_and_their_positions(plane):
    """A position lies in the polygon of its cell, also where cells end or an area runs on."""
    rng = np.random.default_rng(4)
    lat, lng = rng.uniform(-80, 80, 300), (180 + rng.uniform(-0.02, 0.02, 300) + 180) % 360 - 180
    grid = SquareGrid(1000.0, plane)
    shapes = as_polygons(grid, grid.cells(lat, lng))
    assert (shapes.geom_type == "Polygon").all()  # a cell ends at the date line, it does not run on
    assert np.abs(grid.bounds(shapes.index)[:, [1, 3]]).max() == 180
    assert shapely.dwithin(shapes.geometry.to_numpy(), shapely.points(lng, lat), 1e-9).all()
    around = AreaGrid.around(-17.0, 180.0, 10_000, 4_000, 10, 4)
    polygons = as_polygons(around)
    assert polygons.total_bounds.tolist() == pytest.approx([-180, *around.bounds([0])[0, :1], 180, around.bounds([39])[0, 2]])
    centre = around.centres_in_degrees()
    assert Areas(polygons).cells(*centre.T).tolist() == list(range(40))


def test_municipalities(real_data):
    """Every record of a region lies in at most one area; the areas' middles lie in themselves."""
    table = gpd.read_file(real_data / "tuscany_municipalities.geojson")
    municipalities = Areas(table)
    inner = table.geometry.representative_point()
    assert municipalities.cells(inner.y, inner.x).tolist() == list(range(len(table)))
    utm = Areas(table.to_crs(32632))
    rng = np.random.default_rng(5)
    west, south, east, north = table.total_bounds
    lat, lng = rng.uniform(south, north, 20_000), rng.uniform(west, east, 20_000)
    assert (utm.cells(lat, lng) == municipalities.cells(lat, lng)).all()
    assert municipalities.to_geodataframe().crs == "EPSG:4326"


def test_around_antennas_lies_what_no_other_s_are_nearer_to():
    rng = np.random.default_rng(4)
    places = pd.DataFrame({"lat": 45 + rng.random(30), "lng": 9 + rng.random(30), "town": rng.choice(list("abc"), 30)})
    towns = around(places, "town")
    assert list(towns["town"]) == ["a", "b", "c"]
    squeeze = np.cos(np.radians((places["lat"].max() + places["lat"].min()) / 2))
    one, other = (places[["lat", "lng"]].to_numpy()[rng.integers(0, 30, 200)] for _ in range(2))
    for lat, lng in one + rng.random((200, 1)) * (other - one):  # between two of them
        within = towns["town"][towns.geometry.contains(shapely.Point(lng, lat))].tolist()
        nearest = np.hypot(places["lat"] - lat, (places["lng"] - lng) * squeeze).idxmin()
        assert within == [places["town"][nearest]]


def test_around_two_places_places_at_one_point_and_places_without_position_or_name():
    one = around(pd.DataFrame({"lat": [45.0, 45.0], "lng": [9.0, 9.0], "town": ["a", "b"]}), "town")
    assert list(one["town"]) == ["a"]
    assert one.geometry[0].contains(shapely.Point(9, 45))
    two = around(pd.DataFrame({"lat": [45.0, 46.0], "lng": [9.0, 9.0], "town": ["a", "b"]}), "town")
    south, north = shapely.area(two.geometry.to_numpy())
    assert south == pytest.approx(north, rel=0.02)  # cut in degrees, and one of longitude is shorter in the north
    known = pd.DataFrame({"lat": [0.0, 0.0, 1.0], "lng": [0.0, 1.0, 0.0], "town": ["a", "b", "b"]})
    incomplete = pd.DataFrame({"lat": [np.nan, 0.5], "lng": [0.2, 0.5], "town": ["c", None]})
    one, with_incomplete = around(known, "town"), around(pd.concat([known, incomplete]), "town")
    assert one["town"].tolist() == with_incomplete["town"].tolist() == ["a", "b"]
    assert one.geometry.geom_equals(with_incomplete.geometry).all()
