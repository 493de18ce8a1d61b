import numpy as np
import pytest
import s2sphere
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.geo import distance
from mobpriv.grid import S2Grid, SquareGrid

positions = st.lists(st.tuples(st.floats(-84, 84), st.floats(-179.9, 179.9)), min_size=1, max_size=20)


@settings(deadline=None, max_examples=50)
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


@pytest.mark.parametrize("cell", [0, -800, float("nan"), float("inf")])
def test_a_cell_has_a_positive_side(cell):
    with pytest.raises(ValueError, match="cell must be positive, in m"):
        SquareGrid(cell)


def test_s2_levels_end_at_30():
    with pytest.raises(ValueError, match=r"level .* \(got 31\)"):
        S2Grid(31)
