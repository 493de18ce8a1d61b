"""Cells of the map: squares of a given side, rows and columns of one rectangle, and S2 cells.

All grids return one int64 per record, for whole columns at once.
"""

from dataclasses import dataclass

import numba
import numpy as np

from mobpriv.base.ranges import between, positive, whole
from mobpriv.ground.geo import AUTHORS_RADIUS, check_plane, meridian_arc, metres_per_degree, readonly, to_degrees, to_plane

_ROW = 1 << 32  # the id of a square cell is row · 2³² + column, both offset to stay positive
_OFFSET = 1 << 30
_AUTHORS_ORIGIN = (-61.0, -131.0)  # degrees, corner of the grid in the author's program


@dataclass(frozen=True)
class SquareGrid:
    """Square cells of side ``cell`` metres over the whole world (thesis §3.2: "square regions of the map").

    On the ground the Earth is divided into bands of height ``cell``. Each band is divided into cells that are ``cell`` metres
    wide at the middle of the band, so a cell is a true square everywhere.

    In the Mercator plane the grid is the author's: one lattice from (-61°, -131°). Its cells are ``cell``·cos(latitude) metres
    wide on the ground. ``shift`` moves the lattice north and east by a share of a cell: the thesis does not state the origin of
    its grid.
    """

    cell: float = 800.0  # m, side of a cell
    plane: str = "ground"
    shift: tuple[float, float] = (0.0, 0.0)  # share of a cell (north, east)

    def __post_init__(self):
        check_plane(self.plane)
        # smaller cells exceed the range of row and column numbers
        least = 0.02 if self.plane == "ground" else 0.25
        object.__setattr__(self, "cell", positive("cell", self.cell, "m", least))
        if not (isinstance(self.shift, tuple | list) and len(self.shift) == 2):
            raise ValueError(f"shift must be two shares of a cell, (north, east) (got {self.shift!r})")
        for share in self.shift:
            between("shift", share, -1, 1, "must be two shares of a cell, in [-1, 1]")

    def cells(self, lat, lng) -> np.ndarray:
        """The id (int64) of the cell that contains each position."""
        lat, lng = np.asarray(lat, float), np.asarray(lng, float)
        if self.plane == "ground":
            return self._ground_cells(lat, lng)
        x0, y0 = self._mercator_origin()
        p = to_plane(lat, lng, "mercator")
        row = np.floor((p.y - y0) / self.cell - self.shift[0]).astype(np.int64)
        column = np.floor((p.x - x0) / self.cell - self.shift[1])
        return (row + _OFFSET) * _ROW + (column.astype(np.int64) + _OFFSET)

    def _ground_cells(self, lat: np.ndarray, lng: np.ndarray) -> np.ndarray:
        """Look up one width per band and the meridian arc: cheaper than five sines per record."""
        if not lat.size:
            return np.zeros(lat.shape, np.int64)
        shape = np.broadcast_shapes(lat.shape, lng.shape)
        lat, lng = (np.ascontiguousarray(np.broadcast_to(column, shape)).ravel() for column in (lat, lng))
        ends = self._row(np.array([lat.min(), lat.max()]))
        first, last = ends.min() - 1, ends.max() + 1
        if last - first > max(lat.size, 1 << 16):  # more bands than positions: small cells
            row = self._row(lat)
            bands, place = np.unique(row, return_inverse=True)
            return self._ids(row, lng, self._metres_per_degree_east(bands)[place]).reshape(shape)
        east = self._metres_per_degree_east(np.arange(first, last + 1))
        cells, unsure = _look_up(
            readonly(lat), readonly(lng), _ARC / self.cell, east / self.cell, first, *self.shift, _BEND / self.cell
        )
        unsure = np.flatnonzero(unsure)
        if len(unsure):  # too close to a border for the lookup
            row = self._row(lat[unsure])
            cells[unsure] = self._ids(row, lng[unsure], east[row - first])
        return cells.reshape(shape)

    def _ids(self, row, lng, east) -> np.ndarray:
        """Cells of positions whose band and metres per degree are known."""
        column = np.floor(lng * (east / self.cell) - self.shift[1]).astype(np.int64)
        return (row + _OFFSET) * _ROW + (column + _OFFSET)

    def _row(self, lat: np.ndarray) -> np.ndarray:
        return np.floor(meridian_arc(lat) / self.cell - self.shift[0]).astype(np.int64)

    def rows_and_columns(self, cells) -> tuple[np.ndarray, np.ndarray]:
        cells = np.asarray(cells, np.int64)
        return cells // _ROW - _OFFSET, cells % _ROW - _OFFSET

    def bounds(self, cells) -> np.ndarray:
        """South, west, north and east of each cell, in degrees; shape (n, 4). Cells end at the date line and at the poles."""
        row, column = self.rows_and_columns(cells)
        south, west = row + self.shift[0], column + self.shift[1]
        if self.plane == "ground":
            per_degree, origin = self._metres_per_degree_east(row) / self.cell, 0.0
            low, high = self._latitude(south), self._latitude(south + 1)
        else:
            x0, y0 = self._mercator_origin()
            per_degree, origin = np.radians(AUTHORS_RADIUS) / self.cell, np.degrees(x0 / AUTHORS_RADIUS)
            low, high = (to_degrees(x0, y0 + edge * self.cell, "mercator")[0] for edge in (south, south + 1))
        bounds = np.column_stack([low, origin + west / per_degree, high, origin + (west + 1) / per_degree])
        return np.clip(bounds, [-90, -180, -90, -180], [90, 180, 90, 180])

    def _latitude(self, row) -> np.ndarray:
        """Latitude of a band's lower edge."""
        return latitude_of_arc(np.asarray(row, float) * self.cell)

    def _metres_per_degree_east(self, row) -> np.ndarray:
        return metres_per_degree(np.clip(self._latitude(np.asarray(row) + self.shift[0] + 0.5), -89.99, 89.99))[0]

    def _mercator_origin(self) -> tuple[float, float]:
        p = to_plane(np.array([_AUTHORS_ORIGIN[0]]), np.array([_AUTHORS_ORIGIN[1]]), "mercator")
        return float(p.x[0]), float(p.y[0])


_STEPS = 64  # per degree: between two steps the arc is linear up to _BEND
_BEND = 1.01 * np.radians(1 / _STEPS) ** 2 / 8 * 85_400  # m: the arc's second derivative is below 2 e² a = 85.4 km
_ARC = meridian_arc(np.arange(-90 * _STEPS, 90 * _STEPS + 2) / _STEPS)  # m, at every step


@numba.njit(cache=True, parallel=True)
def _look_up(lat, lng, arc, east, first, north_shift, east_shift, margin):
    """The cell of each position, lengths in cells; and the positions within ``margin`` of a band's border, or invalid."""
    cells, unsure = np.empty(len(lat), np.int64), np.empty(len(lat), np.bool_)
    for i in numba.prange(len(lat)):
        steps = (lat[i] + 90.0) * _STEPS
        unsure[i] = True
        if 0 <= steps <= 180 * _STEPS:
            k = np.int64(steps)
            y = arc[k] + (steps - k) * (arc[k + 1] - arc[k]) - north_shift
            row = np.int64(np.floor(y))
            unsure[i] = not (margin < y - row < 1 - margin)
            column = np.int64(np.floor(lng[i] * east[row - first] - east_shift))
            cells[i] = (row + _OFFSET) * _ROW + (column + _OFFSET)
    return cells, unsure


@dataclass(frozen=True)
class AreaGrid:
    """``rows`` × ``columns`` equal cells of one rectangle on the ground with its south-west corner at ``south``, ``west``.

    The default size is that of Shokri, "Privacy games" (PETS 2015), §9: 15 × 8 km in 20 × 15 cells of 750 × 533 m. Cells are
    numbered row by row from the south-west: cell = row · columns + column. A cell contains its southern and western edge.

    The plane is always the ground. Northward metres are those of the meridian. Eastward metres are those of the parallel
    through the middle of the area, where the width is exact. At its northern and southern edge the width of an area 8 km high
    differs by less than 0.07 % (latitudes below 45°) or 0.11 % (below 60°).
    """

    south: float  # degrees, of the south-west corner
    west: float
    width: float = 15_000.0  # m, west to east
    height: float = 8_000.0  # m, south to north
    columns: int = 20
    rows: int = 15

    def __post_init__(self):
        for name in ("width", "height"):
            object.__setattr__(self, name, positive(name, getattr(self, name), "m"))
        for name in ("columns", "rows"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1))
        for name, limit in (("south", 90), ("west", 180)):
            rule = f"must lie in [-{limit}, {limit}] degrees; are south and west swapped?"
            object.__setattr__(self, name, between(name, getattr(self, name), -limit, limit, rule))
        if self._arc + self.height > meridian_arc(90.0):
            raise ValueError(f"the area reaches beyond the pole: {self.height} m northwards from latitude {self.south}")
        if self.width > 360 * self._metres_per_degree_east:
            raise ValueError(f"the area is wider than its parallel: {self.width} m at latitude {self.south}")

    @classmethod
    def around(cls, lat: float, lng: float, width=15_000.0, height=8_000.0, columns=20, rows=15) -> "AreaGrid":
        """The area centred at ``lat``, ``lng`` (degrees)."""
        south = float(latitude_of_arc(meridian_arc(lat) - height / 2))
        west = lng - width / 2 / float(_metres_east_above(south, height))
        return cls(south, float((west + 180) % 360 - 180), width, height, columns, rows)

    @property
    def size(self) -> int:
        """Number of cells of the area."""
        return self.rows * self.columns

    def cells(self, lat, lng, outside: int = -1) -> np.ndarray:
        """The id (int64) of the cell that contains each position; ``outside`` for positions outside the area."""
        lat, lng = np.asarray(lat, float), np.asarray(lng, float)
        row = np.floor((meridian_arc(lat) - self._arc) * (self.rows / self.height))
        # the area may cross the date line: count eastwards from its western edge
        column = np.floor((lng - self.west) % 360 * (self._metres_per_degree_east * self.columns / self.width))
        inside = (row >= 0) & (row < self.rows) & (column < self.columns)
        return np.where(inside, np.where(inside, row * self.columns + column, 0).astype(np.int64), outside)

    def nearest(self, lat, lng) -> np.ndarray:
        """The id (int64) of the cell that contains each position, or of the nearest cell for positions outside the area."""
        lat, lng = np.asarray(lat, float), np.asarray(lng, float)
        row = np.floor((meridian_arc(lat) - self._arc) * (self.rows / self.height))
        middle = self.width / 2 / self._metres_per_degree_east
        from_middle = (lng - self.west - middle + 180) % 360 - 180
        column = np.floor((from_middle + middle) * (self._metres_per_degree_east * self.columns / self.width))
        row, column = np.clip(row, 0, self.rows - 1), np.clip(column, 0, self.columns - 1)
        return (row * self.columns + column).astype(np.int64)

    def rows_and_columns(self, cells) -> tuple[np.ndarray, np.ndarray]:
        cells = np.asarray(cells, np.int64)
        wrong = (cells < 0) | (cells >= self.size)
        if wrong.any():
            raise ValueError(f"cells of this area run from 0 to {self.size - 1} (got {cells[wrong].flat[0]})")
        return cells // self.columns, cells % self.columns

    def bounds(self, cells) -> np.ndarray:
        """South, west, north and east of each cell in degrees, shape (n, 4). Longitudes continue beyond the date line."""
        row, column = self.rows_and_columns(cells)
        lat = latitude_of_arc(self._arc + np.arange(self.rows + 1) * (self.height / self.rows))
        lng = self.west + np.arange(self.columns + 1) * (self.width / self.columns / self._metres_per_degree_east)
        return np.column_stack([lat[row], lng[column], lat[row + 1], lng[column + 1]])

    def centres(self) -> np.ndarray:
        """Metres (east, north) of every cell's centre from the area's south-west corner, shape (size, 2)."""
        row, column = self.rows_and_columns(np.arange(self.size))
        return np.column_stack([(column + 0.5) * (self.width / self.columns), (row + 0.5) * (self.height / self.rows)])

    def centres_in_degrees(self) -> np.ndarray:
        """Latitude and longitude of every cell's centre, shape (size, 2)."""
        east, north = self.centres().T
        lng = self.west + east / self._metres_per_degree_east
        return np.column_stack([latitude_of_arc(self._arc + north), np.where(lng >= 180, lng - 360, lng)])

    @property
    def _arc(self) -> float:
        return float(meridian_arc(self.south))

    @property
    def _metres_per_degree_east(self) -> float:
        return float(_metres_east_above(self.south, self.height))


def _metres_east_above(south, height: float) -> np.ndarray:
    """Metres per degree eastwards on the parallel ``height``/2 metres north of ``south``."""
    return metres_per_degree(latitude_of_arc(meridian_arc(south) + height / 2))[0]


def latitude_of_arc(arc) -> np.ndarray:
    """The latitude ``arc`` metres north of the equator: the meridian arc inverted by Newton's method."""
    arc = np.asarray(arc, float)
    lat = arc / 111_132.95
    for _ in range(4):
        lat = lat - (meridian_arc(lat) - arc) / metres_per_degree(lat)[1]
    return lat


@dataclass(frozen=True)
class S2Grid:
    """Cells of one level of the S2 hierarchy (0 … 30; level 13: about 1 km wide, level 15: about 280 m), with S2's own ids."""

    level: int = 15

    def __post_init__(self):
        rule = "of an S2 cell must be a whole number in 0 … 30"
        object.__setattr__(self, "level", whole("level", self.level, 0, 30, rule))

    def cells(self, lat, lng) -> np.ndarray:
        return _s2_cells(np.asarray(lat, float), np.asarray(lng, float), self.level, *_HILBERT)


# The Hilbert curve over a face (S2 geometry, "S2CellId"): the order in which the four children (i, j) of a cell are visited,
# and how the curve turns in each. Orientation bit 0 swaps i and j, bit 1 inverts both.
def _hilbert_tables() -> tuple[np.ndarray, np.ndarray]:
    position_to_ij = np.array([[0, 1, 3, 2], [0, 2, 3, 1], [3, 2, 0, 1], [3, 1, 0, 2]])
    turn = np.array([1, 0, 0, 3])
    position, orientation = np.empty((4, 4), np.int64), np.empty((4, 4), np.int64)
    for o in range(4):
        for p in range(4):
            ij = position_to_ij[o, p]
            position[o, ij], orientation[o, ij] = p, o ^ turn[p]
    return position, orientation


_HILBERT = _hilbert_tables()


@numba.njit(inline="always")
def _on_cube(lat, lng):
    """The face of a position, and its column and row among the 2³⁰ × 2³⁰ smallest cells of the face."""
    phi, theta = np.radians(lat), np.radians(lng)
    x, y, z = np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)
    ax, ay, az = abs(x), abs(y), abs(z)
    if ax > ay and ax > az:
        face, u, v = (0, y / x, z / x) if x >= 0 else (3, z / x, y / x)
    elif ay > az:
        face, u, v = (1, -x / y, z / y) if y >= 0 else (4, z / y, -x / y)
    else:
        face, u, v = (2, -x / z, -y / z) if z >= 0 else (5, -y / z, -x / z)
    # the quadratic projection gives the cells nearly equal areas
    s = 0.5 * np.sqrt(1 + 3 * u) if u >= 0 else 1 - 0.5 * np.sqrt(1 - 3 * u)
    t = 0.5 * np.sqrt(1 + 3 * v) if v >= 0 else 1 - 0.5 * np.sqrt(1 - 3 * v)
    last = (1 << 30) - 1
    return face, max(0, min(last, int(np.floor(s * (1 << 30))))), max(0, min(last, int(np.floor(t * (1 << 30)))))


@numba.njit(cache=True, parallel=True)
def _s2_cells(lat, lng, level, hilbert_position, hilbert_orientation):
    out = np.empty(len(lat), np.int64)
    for k in numba.prange(len(lat)):
        face, i, j = _on_cube(lat[k], lng[k])
        cell = np.uint64(face)
        orientation = face & 1
        for depth in range(level):
            bit = 29 - depth
            ij = (((i >> bit) & 1) << 1) | ((j >> bit) & 1)
            cell = (cell << np.uint64(2)) | np.uint64(hilbert_position[orientation, ij])
            orientation = hilbert_orientation[orientation, ij]
        # the trailing one marks the level
        cell = ((cell << np.uint64(1)) | np.uint64(1)) << np.uint64(2 * (30 - level))
        out[k] = np.int64(cell)
    return out


def s2_keys(lat, lng, level: int) -> np.ndarray:
    """One int64 per position, equal for two positions if and only if :class:`S2Grid` gives them the same cell.

    It packs face, i and j and omits the walk along the Hilbert curve that yields S2's ids. For sets of cells it is three to
    four times as fast.
    """
    return _s2_keys(np.asarray(lat, float), np.asarray(lng, float), S2Grid(level).level)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _s2_keys(lat, lng, level):
    out = np.empty(len(lat), np.int64)
    for k in range(len(lat)):
        face, i, j = _on_cube(lat[k], lng[k])
        out[k] = (np.int64(face) << 60) | (np.int64(i >> (30 - level)) << 30) | np.int64(j >> (30 - level))
    return out
