"""Areas of any shape, and conversion of the package's tables to and from GeoDataFrames (geopandas, trackintel, QGIS).

* Export: :func:`as_points` for a table of places (records, stays, POIs, states of a Markov chain), :func:`as_polygons` for the
  cells of a grid.
* Import: :class:`Areas`, polygons in any coordinate reference system. They serve as cells of the map or select the records
  inside them (:func:`records_inside`).

All degrees are WGS 84, EPSG:4326. geopandas takes about a second to load, so only the functions that need it import it.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import shapely

from mobpriv.traces.table import Traces, needed, rows

_DEGREES = "EPSG:4326"
_BLOCK = 50_000  # records per block: their columns fit into the processor's cache
_GLOBE = shapely.box(-180, -90, 180, 90)


@dataclass(frozen=True, eq=False)
class Areas:
    """Polygons as cells of the map. The id of a cell is its position in the table, 0, 1, …; −1 means outside all areas.

    ``shapes`` is a GeoDataFrame or a GeoSeries (any coordinate reference system) or a shapely polygon (longitude and latitude
    in degrees). Holes and several parts are allowed. Areas can be used wherever a grid with ``cells`` is expected.

    * The border of an area belongs to it. Where areas touch or overlap, the first in the table applies. The borders of real
      tables overlap by a few metres, so rejecting overlaps would reject most tables.
    * Edges are straight in degrees. Edges of another reference system are straight there: they are divided into hundredths of
      the table's extent before they are reprojected.
    * An area across the date line may be cut there, may have continuous longitudes (179 … 181), or may have a reference system
      that crosses the date line.
    """

    shapes: object

    def __post_init__(self):
        table = _table(self.shapes)
        _check(table.geometry)
        shapes = _in_degrees(table.geometry)
        _check(shapes, " in degrees")
        shapely.prepare(shapes.array)
        object.__setattr__(self, "shapes", table.set_geometry(shapes))

    def __repr__(self) -> str:
        return f"Areas({self.size})"

    @property
    def size(self) -> int:
        """Number of areas."""
        return len(self.shapes)

    def cells(self, lat, lng) -> np.ndarray:
        """The id (int64) of the area that contains each position; −1 for positions outside and for NaN."""
        lat, lng = np.asarray(lat, float), np.asarray(lng, float)
        blocks = (slice(start, start + _BLOCK) for start in range(0, len(lat), _BLOCK))
        ids = np.concatenate([np.empty(0, np.int64), *(self._cells(lat[block], lng[block]) for block in blocks)])
        on_date_line = np.flatnonzero(np.abs(lng) == 180)  # 180° and −180° are the same meridian
        if len(on_date_line):
            both = np.stack([ids[on_date_line], self._cells(lat[on_date_line], -lng[on_date_line])])
            ids[on_date_line] = np.where(both.min(axis=0) < 0, both.max(axis=0), both.min(axis=0))
        return ids

    def _cells(self, lat, lng) -> np.ndarray:
        west, south, east, north = self.shapes.total_bounds
        near = np.flatnonzero((lat >= south) & (lat <= north) & (lng >= west) & (lng <= east))
        # sorted by latitude, each area only searches its own band
        near = near[np.argsort(lat[near])]
        y, x = lat[near], lng[near]
        cell = np.full(len(near), -1)
        shapes = self.shapes.geometry.to_numpy()
        box = shapely.bounds(shapes)
        first, last = np.searchsorted(y, box[:, 1], "left"), np.searchsorted(y, box[:, 3], "right")
        for i, (west, _, east, _) in enumerate(box):
            band = slice(first[i], last[i])
            free = first[i] + np.flatnonzero((cell[band] < 0) & (x[band] >= west) & (x[band] <= east))
            cell[free[shapely.intersects_xy(shapes[i], x[free], y[free])]] = i
        ids = np.full(len(lat), -1)
        ids[near] = cell
        return ids

    def bounds(self, cells) -> np.ndarray:
        """South, west, north and east of each area in degrees, shape (n, 4); from −180 to 180 across the date line."""
        cells = np.asarray(cells, np.int64)
        wrong = (cells < 0) | (cells >= self.size)
        if wrong.any():
            raise ValueError(f"areas run from 0 to {self.size - 1} (got {cells[wrong].flat[0]})")
        return shapely.bounds(self.shapes.geometry.to_numpy()[cells])[:, [1, 0, 3, 2]]

    def to_geodataframe(self):
        """The areas in degrees, with the columns of the original table; the index ``cell`` holds their ids."""
        return self.shapes.set_axis(pd.RangeIndex(self.size, name="cell"))


def records_inside(traces: Traces, areas) -> Traces:
    """The records inside the ``areas``, borders included. ``areas`` is an :class:`Areas` or an argument for it."""
    areas = areas if isinstance(areas, Areas) else Areas(areas)
    return rows(traces, areas.cells(traces["lat"].to_numpy(), traces["lng"].to_numpy()) >= 0)


def as_points(table: pd.DataFrame):
    """A GeoDataFrame of points from a table with the columns ``lat`` and ``lng`` in degrees; columns and index are kept."""
    import geopandas

    needed("points", ("lat", "lng"), table)
    lng, lat = table["lng"].to_numpy(float), table["lat"].to_numpy(float)
    return geopandas.GeoDataFrame(table, geometry=geopandas.points_from_xy(lng, lat, crs=_DEGREES))


def as_polygons(grid, cells=None):
    """A GeoDataFrame of the cells of ``grid``, one row per cell in the order given; the index ``cell`` holds their ids.

    ``grid`` is any object with ``bounds(cells)``. ``cells`` may be omitted if the grid knows their number (``grid.size``).
    Cells across the date line are cut there.
    """
    import geopandas

    if isinstance(grid, Areas):
        return grid.to_geodataframe().loc[slice(None) if cells is None else cells]
    if not hasattr(grid, "bounds") or (cells is None and not hasattr(grid, "size")):
        needed = "bounds" if not hasattr(grid, "bounds") else "size: say which cells"
        raise ValueError(f"cells come out as polygons where the grid knows their {needed} (got {grid!r})")
    cells = np.arange(grid.size) if cells is None else np.asarray(cells, np.int64)
    south, west, north, east = grid.bounds(cells).T
    shapes = _cut(shapely.box(west, south, east, north))
    return geopandas.GeoDataFrame(index=pd.Index(cells, name="cell"), geometry=shapes, crs=_DEGREES)


def _table(shapes):
    """A GeoDataFrame with a reference system, for each accepted type of ``shapes``."""
    import geopandas

    if isinstance(shapes, shapely.Geometry):
        shapes = geopandas.GeoSeries([shapes], crs=_DEGREES)
    if isinstance(shapes, geopandas.GeoSeries):
        shapes = shapes.to_frame("geometry")
    if not isinstance(shapes, geopandas.GeoDataFrame):
        kind = type(shapes).__name__
        raise ValueError(f"areas must be a GeoDataFrame, a GeoSeries or a polygon of shapely (got {kind})")
    if shapes.active_geometry_name is None:
        raise ValueError("areas must have a column of geometries: name it with set_geometry (got none)")
    if not len(shapes):
        raise ValueError("areas must be at least one (got none)")
    if shapes.crs is None:
        raise ValueError('areas must have a coordinate reference system (got none): name it, as set_crs("EPSG:4326")')
    return shapes


def _check(shapes, where: str = "") -> None:
    """Raise a ValueError that names the first invalid area."""

    def rule(text, broken, shown, remedy):
        if broken.any():
            i = int(np.argmax(broken))
            raise ValueError(f"areas must {text}{where} (row {shapes.index[i]!r} is {shown(array[i])}): {remedy}")

    array = shapes.to_numpy()
    rule("not be missing or empty", shapely.is_missing(array) | shapely.is_empty(array), lambda s: "so", "leave it out")
    polygons = np.isin(shapely.get_type_id(array), (shapely.GeometryType.POLYGON, shapely.GeometryType.MULTIPOLYGON))
    rule("be polygons", ~polygons, lambda s: f"a {s.geom_type}", "give lines and points a width with buffer()")
    reason = lambda s: f"not: {shapely.is_valid_reason(s)}"  # noqa: E731
    rule("have valid borders", ~shapely.is_valid(array), reason, "repair it with make_valid()")


def _in_degrees(shapes):
    """The areas in EPSG:4326, cut at the date line."""
    import geopandas

    if not shapes.crs.equals(_DEGREES, ignore_axis_order=True):
        west, south, east, north = shapes.total_bounds
        shapes = shapes.segmentize(max(east - west, north - south) / 100).to_crs(_DEGREES)
        shapes = shapes.map(_continuous)
    array = shapes.to_numpy()
    box = shapely.bounds(array)
    wrong = ~(np.abs(box) <= [540, 90, 540, 90]).all(axis=1)  # also where it is not finite
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"areas must lie on the globe, latitudes in [-90, 90] (row {shapes.index[i]!r} reaches from {box[i, 1]:g}, {box[i, 0]:g} "
            f"to {box[i, 3]:g}, {box[i, 2]:g}): metres? give them as a GeoSeries with their crs"
        )
    return geopandas.GeoSeries(_cut(array), index=shapes.index, crs=_DEGREES)


def _continuous(shape):
    """Make the longitudes of each ring continuous: reprojection lets them jump by 360° at the date line."""
    if not np.isfinite(shapely.bounds(shape)).all():
        return shape  # outside the projection: the caller rejects the row
    polygons = []
    for part in shapely.get_parts(shape):
        rings = [shapely.get_coordinates(ring) for ring in (part.exterior, *part.interiors)]
        for ring in rings:
            ring[:, 0] = np.unwrap(ring[:, 0], period=360)
            if abs(ring[-1, 0] - ring[0, 0]) > 180:
                raise ValueError("areas must not hold a pole: degrees cannot draw one around it (cut it along a meridian)")
        middle = [(ring[:, 0].min() + ring[:, 0].max()) / 2 for ring in rings]
        turns = [np.array([360 * round((middle[0] - m) / 360), 0]) for m in middle]
        holes = [ring + turn for ring, turn in zip(rings[1:], turns[1:], strict=True)]
        polygons.append(shapely.Polygon(rings[0], holes))
    return polygons[0] if len(polygons) == 1 else shapely.MultiPolygon(polygons)


def _cut(shapes: np.ndarray) -> np.ndarray:
    """Cut each shape at ±180° and shift the part beyond by 360°."""
    box = shapely.bounds(shapes)
    shapes = np.array(shapes)
    for i in np.flatnonzero((box[:, 0] < -180) | (box[:, 2] > 180)):
        turns = [shapely.transform(shapes[i], lambda xy, turn=turn: xy - [turn, 0]) for turn in (-360, 0, 360)]
        parts = shapely.get_parts(shapely.intersection(turns, _GLOBE))
        shapes[i] = shapely.union_all(parts[shapely.area(parts) > 0])
    return shapes


def around(places: pd.DataFrame, by: str):
    """Voronoi cells of ``places`` (columns lat, lng, ``by``), merged by name, as a GeoDataFrame (``by``, geometry).

    Example: the cells of antennas, merged by municipality, approximate municipal borders that are not available.

    * The cells end a tenth of the places' extent beyond the convex hull of the places.
    * Distances are equal northwards and eastwards at the middle latitude.
    * If several places share a point, the first counts. A place without a position or a name is ignored.
    * The area of a name may have several parts.
    """
    import geopandas

    first = places.dropna(subset=["lat", "lng", by]).drop_duplicates(["lat", "lng"])
    squeeze = np.cos(np.radians((first["lat"].max() + first["lat"].min()) / 2))
    points = shapely.points(first["lng"] * squeeze, first["lat"])
    hull = shapely.multipoints(points).convex_hull
    area = hull.buffer(0.1 * max(hull.length / 4, 1e-3))
    cells = shapely.get_parts(shapely.voronoi_polygons(shapely.multipoints(points), extend_to=area, ordered=True))
    polygons = cells if len(points) > 1 else np.array([area])  # a single place owns the whole area
    degrees = shapely.transform(shapely.intersection(polygons, area), lambda xy: xy / [squeeze, 1])
    table = geopandas.GeoDataFrame({by: first[by].astype(str).to_numpy()}, geometry=degrees, crs=_DEGREES)
    return table.dissolve(by, sort=True).reset_index()
