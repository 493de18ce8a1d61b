import numpy as np
import pytest
import s2sphere
from conftest import refusals
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.ground.geo import distance
from mobpriv.ground.grid import AreaGrid, S2Grid, SquareGrid, s2_keys

positions = st.lists(st.tuples(st.floats(-84, 84), st.floats(-179.9, 179.9)), min_size=1, max_size=20)


@settings(max_examples=50)
@given(positions, st.sampled_from(["ground", "mercator"]), st.sampled_from([50.0, 800.0]), st.floats(0, 0.99))
def test_a_position_lies_in_its_cell(where, plane, cell, shift):
    lat, lng = np.array(where).T
    grid = SquareGrid(cell, plane, (shift, shift))
    south, west, north, east = grid.bounds(grid.cells(lat, lng)).T
    near = 1e-9  # positions on an edge may fall to either side by the last digit
    assert (south - near <= lat).all()
    assert (lat <= north + near).all()
    assert (west - near <= lng).all()
    assert (lng <= east + near).all()


@pytest.mark.parametrize("lat", [0.0, 37.7, -69.0])
def test_cells_are_squares_on_the_ground(lat):
    grid = SquareGrid(800.0)
    south, west, north, east = grid.bounds(grid.cells([lat], [12.3]))[0]
    assert distance(south, west, north, west) == pytest.approx(800, abs=1e-3)
    assert distance((south + north) / 2, west, (south + north) / 2, east) == pytest.approx(800, abs=1e-3)


def test_mercator_cells_shrink_with_the_latitude():
    grid = SquareGrid(800.0, "mercator")
    _, west, _, east = grid.bounds(grid.cells([60.0], [12.3]))[0]
    assert distance(60, west, 60, east) == pytest.approx(400, rel=0.01)  # cos 60° = 1/2


@pytest.mark.parametrize("level", [0, 7, 13, 15, 30])
def test_s2_cells_are_those_of_s2(level):
    rng = np.random.default_rng(3)
    lat, lng = np.degrees(np.arcsin(rng.uniform(-1, 1, 300))), rng.uniform(-180, 180, 300)
    expected = [
        s2sphere.CellId.from_lat_lng(s2sphere.LatLng.from_degrees(*p)).parent(level).id() for p in zip(lat, lng, strict=True)
    ]
    assert (S2Grid(level).cells(lat, lng).view(np.uint64) == np.array(expected, np.uint64)).all()


@pytest.mark.parametrize("level", [0, 1, 13, 15, 30])
def test_s2_keys_tell_the_same_cells_apart(level):
    rng = np.random.default_rng(level)
    around = rng.normal(0, 10.0 ** -rng.integers(0, 7, 20_000))
    lat, lng = np.degrees(np.arcsin(rng.uniform(-1, 1, 200))).repeat(100), rng.uniform(-180, 180, 200).repeat(100)
    lat, lng = np.clip(lat + around, -90, 90), lng + rng.permutation(around)
    lat[:6], lng[:6] = [90, -90, 0, 0, 0, 35.26438968], [0, 0, 0, 45, 180, 45]  # the faces' middles, an edge, a corner
    pairs = np.unique(np.column_stack([s2_keys(lat, lng, level), S2Grid(level).cells(lat, lng)]), axis=0)
    assert len(pairs) == len(np.unique(pairs[:, 0])) == len(np.unique(pairs[:, 1])) >= 6


areas = st.builds(
    AreaGrid.around,
    st.floats(-70, 70),
    st.floats(-180, 179.9),
    st.sampled_from([900.0, 15_000.0]),
    st.sampled_from([600.0, 8_000.0]),
    st.integers(1, 20),
    st.integers(1, 15),
)


class TestAreaGrid:
    def test_the_area_of_the_paper(self):
        """§9: 15 × 8 km in 20 × 15 cells: 15 000 / 20 = 750 m by 8 000 / 15 = 533.3 m."""
        grid = AreaGrid(46.5, 6.55)
        assert grid.size == 300
        assert grid.centres()[0] == pytest.approx([375, 800 / 3])
        assert grid.centres()[21] == pytest.approx([1125, 800])  # one to the east, one to the north
        assert grid.centres()[299] == pytest.approx([14_625, 8_000 - 800 / 3])
        south, west, north, east = grid.bounds([0])[0]
        assert (south, west) == pytest.approx((46.5, 6.55))
        assert distance(south, west, north, west) == pytest.approx(8000 / 15, abs=1e-3)
        middle = grid.centres_in_degrees()[7 * 20, 0]  # the middle row's centres lie on the middle parallel
        assert distance(middle, west, middle, east) == pytest.approx(750, abs=1e-3)

    def test_width_at_the_edges(self):
        """4 km from the middle at 45° the parallel is 4 / 6 371 · tan 45° = 0.063 % longer or shorter."""
        grid = AreaGrid.around(45, 5)
        low, high = grid.bounds([0])[0], grid.bounds([299])[0]
        assert distance(low[0], low[1], low[0], high[3]) / 15_000 - 1 == pytest.approx(0.00063, abs=1e-5)
        assert distance(high[2], low[1], high[2], high[3]) / 15_000 - 1 == pytest.approx(-0.00063, abs=1e-5)

    @given(areas)
    def test_centres_and_corners_lie_in_their_cells(self, grid):
        every = np.arange(grid.size)
        lat, lng = grid.centres_in_degrees().T
        assert ((lng >= -180) & (lng < 180)).all()
        assert (grid.cells(lat, lng) == every).all()
        assert (grid.nearest(lat, lng) == every).all()
        south, west, north, east = grid.bounds(every).T
        for share in (0.001, 0.999):
            inner = south + share * (north - south), west + share * (east - west)
            assert (grid.cells(*inner) == every).all()
        row, column = grid.rows_and_columns(every)
        assert (row * grid.columns + column == every).all()

    @given(areas, st.floats(0.001, 0.2), st.sampled_from(["south", "west", "north", "east"]))
    def test_beyond_the_edges_is_outside(self, grid, far, side):
        bounds = grid.bounds(np.arange(grid.size))
        south, west, north, east = *bounds[:, :2].min(0), *bounds[:, 2:].max(0)
        lat, lng = (south + north) / 2, (west + east) / 2
        lat, lng = {
            "south": (south - far, lng),
            "north": (north + far, lng),
            "west": (lat, west - far),
            "east": (lat, east + far),
        }[side]
        assert grid.cells([lat], [lng]).tolist() == [-1]
        assert grid.cells([lat], [lng], outside=99).tolist() == [99]
        row, column = (int(a[0]) for a in grid.rows_and_columns(grid.nearest([lat], [lng])))
        assert {"south": row == 0, "north": row == grid.rows - 1, "west": column == 0, "east": column == grid.columns - 1}[side]

    def test_metres_in_the_plane_are_metres_on_the_ground(self):
        grid = AreaGrid.around(46.52, 6.63)
        lat, lng = grid.centres_in_degrees().T
        flat = np.hypot(*(grid.centres()[0] - grid.centres()[1:]).T)
        assert distance(lat[0], lng[0], lat[1:], lng[1:]) == pytest.approx(flat, rel=7e-4)

    def test_an_area_across_the_date_line(self):
        grid = AreaGrid.around(-17.0, 180.0, 10_000, 4_000, 10, 4)
        cells = grid.cells([-17.001] * 2, [179.999, -179.999])
        assert grid.rows_and_columns(cells)[1].tolist() == [4, 5]

    def test_not_a_number_is_outside(self):
        assert AreaGrid(45.0, 5.0).cells([np.nan, 45.01], [5.01, np.nan]).tolist() == [-1, -1]

    def test_nothing_in_nothing_out(self):
        grid = AreaGrid(45.0, 5.0)
        assert grid.cells([], []).tolist() == []
        assert grid.bounds([]).shape == (0, 4)


test_what_no_grid_and_no_cell_can_be = refusals(
    (lambda: SquareGrid(0), "cell must be positive, in m"),
    (lambda: SquareGrid(-800), "cell must be positive, in m"),
    (lambda: S2Grid(31), r"level .* \(got 31\)"),
    (lambda: AreaGrid(45.0, 5.0, width=0), r"width must be positive, in m \(got 0\)"),
    (lambda: AreaGrid(45.0, 5.0, height=np.nan), r"height must be positive, in m \(got nan\)"),
    (lambda: AreaGrid(45.0, 5.0, columns=2.5), r"columns must be a whole number, at least 1 \(got 2.5\)"),
    (lambda: AreaGrid(45.0, 5.0, rows=0), "rows must be a whole number"),
    (lambda: AreaGrid(89.99, 5.0), "beyond the pole"),
    (lambda: AreaGrid(6.5, 246.5), "west must lie in"),
    (lambda: AreaGrid(80.0, 5.0, 9e6), "wider than its parallel"),
    (lambda: AreaGrid(45.0, 5.0).bounds([3, 300]), r"from 0 to 299 \(got 300\)"),
)
