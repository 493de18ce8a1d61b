"""Areas of any shape, and the package's tables as GeoDataFrames: the way to geopandas, trackintel, QGIS and back.

Out: :func:`as_points` of a table of places (records, stays, POIs, states of a Markov chain), :func:`as_polygons` of the cells
of a grid. In: :class:`Areas`, polygons of any coordinate reference system, as cells of the map or to choose the records inside
(:func:`inside`). All degrees are WGS 84, EPSG:4326.

geopandas takes about a second to load, so it is loaded by the functions that make a GeoDataFrame, not with this module.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import shapely

from mobpriv.traces import Traces, rows

DEGREES = "EPSG:4326"
_BLOCK = 50_000  # records looked up at once: their columns fit into the processor's cache
_GLOBE = shapely.box(-180, -90, 180, 90)


@dataclass(frozen=True, eq=False)
class Areas:
    """Polygons as cells of the map: a cell's id is its place in the table, 0, 1, …; −1 stands for outside of all.

    ``shapes`` is a GeoDataFrame, a GeoSeries (of any coordinate reference system) or a polygon of shapely (longitude and
    latitude in degrees), with holes and several parts if need be. Wherever a grid goes in that is asked for ``cells``, these go
    in too.

    * The border of an area belongs to it. Where areas touch or overlap, the first in the table has the place: the borders of
      real tables overlap by a few metres, so to refuse them would refuse most tables.
    * Edges are straight in degrees. Those of another reference system are straight there: they are cut into hundredths of the
      table's extent before they are reprojected.
    * An area across the date line is cut there, or its longitudes run on (179 … 181), or its reference system takes it across.
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
        """How many areas there are."""
        return len(self.shapes)

    def cells(self, lat, lng) -> np.ndarray:
        """The id (int64) of the area that holds each position, −1 for positions outside (and what is not a number)."""
        lat, lng = np.asarray(lat, float), np.asarray(lng, float)
        blocks = (slice(start, start + _BLOCK) for start in range(0, len(lat), _BLOCK))
        found = np.concatenate([np.empty(0, np.int64), *(self._cells(lat[block], lng[block]) for block in blocks)])
        seam = np.flatnonzero(np.abs(lng) == 180)  # one place with two longitudes
        if len(seam):
            both = np.stack([found[seam], self._cells(lat[seam], -lng[seam])])
            found[seam] = np.where(both.min(axis=0) < 0, both.max(axis=0), both.min(axis=0))
        return found

    def _cells(self, lat, lng) -> np.ndarray:
        west, south, east, north = self.shapes.total_bounds
        near = np.flatnonzero((lat >= south) & (lat <= north) & (lng >= west) & (lng <= east))
        # sorted by latitude each area looks at the band of its own only
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
        found = np.full(len(lat), -1)
        found[near] = cell
        return found

    def bounds(self, cells) -> np.ndarray:
        """South, west, north and east of each area, in degrees; shape (n, 4). Across the date line: from −180 to 180."""
        cells = np.asarray(cells, np.int64)
        wrong = (cells < 0) | (cells >= self.size)
        if wrong.any():
            raise ValueError(f"areas run from 0 to {self.size - 1} (got {cells[wrong].flat[0]})")
        return shapely.bounds(self.shapes.geometry.to_numpy()[cells])[:, [1, 0, 3, 2]]

    def to_geodataframe(self):
        """The areas in degrees, with the columns of the table they came from; the index ``cell`` holds their ids."""
        return self.shapes.set_axis(pd.RangeIndex(self.size, name="cell"))


def inside(traces: Traces, areas) -> Traces:
    """The records that lie in one of the ``areas``, borders included: :class:`Areas` or what they are made of."""
    areas = areas if isinstance(areas, Areas) else Areas(areas)
    return rows(traces, areas.cells(traces["lat"].to_numpy(), traces["lng"].to_numpy()) >= 0)


def as_points(table: pd.DataFrame):
    """A GeoDataFrame of a table with the columns ``lat`` and ``lng`` in degrees: its columns and index, and points."""
    import geopandas

    missing = [c for c in ("lat", "lng") if c not in table.columns]
    if missing:
        raise ValueError(f"points need the columns lat and lng; missing: {', '.join(missing)} (got {list(table.columns)})")
    lng, lat = table["lng"].to_numpy(float), table["lat"].to_numpy(float)
    return geopandas.GeoDataFrame(table, geometry=geopandas.points_from_xy(lng, lat, crs=DEGREES))


def as_polygons(grid, cells=None):
    """A GeoDataFrame of the cells of ``grid``, one row a cell in the order given; the index ``cell`` holds their ids.

    ``grid``: whatever has ``bounds(cells)``. ``cells`` may be left out where their number is known (``grid.size``). Cells
    across the date line are cut there.
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
    return geopandas.GeoDataFrame(index=pd.Index(cells, name="cell"), geometry=shapes, crs=DEGREES)


def _table(shapes):
    """A GeoDataFrame with a reference system, whatever the areas were given as."""
    import geopandas

    if isinstance(shapes, shapely.Geometry):
        shapes = geopandas.GeoSeries([shapes], crs=DEGREES)
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
    """Raises with the first area that is none."""

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

    if not shapes.crs.equals(DEGREES, ignore_axis_order=True):
        west, south, east, north = shapes.total_bounds
        shapes = shapes.segmentize(max(east - west, north - south) / 100).to_crs(DEGREES)
        shapes = shapes.map(_run_on)
    array = shapes.to_numpy()
    box = shapely.bounds(array)
    wrong = ~(
        np.isfinite(box).all(axis=1) & (np.abs(box[:, [1, 3]]) <= 90).all(axis=1) & (np.abs(box[:, [0, 2]]) <= 540).all(axis=1)
    )
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"areas must lie on the globe, latitudes in [-90, 90] (row {shapes.index[i]!r} reaches from {box[i, 1]:g}, {box[i, 0]:g} "
            f"to {box[i, 3]:g}, {box[i, 2]:g}): metres? give them as a GeoSeries with their crs"
        )
    return geopandas.GeoSeries(_cut(array), index=shapes.index, crs=DEGREES)


def _run_on(shape):
    """The longitudes of each ring run on where it crosses the date line: reprojected ones jump there by 360°."""
    if not np.isfinite(shapely.bounds(shape)).all():
        return shape  # off the map: refused with its row
    polygons = []
    for part in shapely.get_parts(shape):
        rings = [shapely.get_coordinates(ring) for ring in (part.exterior, *part.interiors)]
        for ring in rings:
            ring[:, 0] = np.unwrap(ring[:, 0], period=360)
            if abs(ring[-1, 0] - ring[0, 0]) > 180:
                raise ValueError("areas must not hold a pole: degrees cannot draw one around it (cut it along a meridian)")
        middle = [(ring[:, 0].min() + ring[:, 0].max()) / 2 for ring in rings]
        holes = [
            ring + np.array([360 * round((middle[0] - m) / 360), 0]) for ring, m in zip(rings[1:], middle[1:], strict=True)
        ]
        polygons.append(shapely.Polygon(rings[0], holes))
    return polygons[0] if len(polygons) == 1 else shapely.MultiPolygon(polygons)


def _cut(shapes: np.ndarray) -> np.ndarray:
    """Each shape within [−180°, 180°]: what lies beyond is moved round the globe."""
    box = shapely.bounds(shapes)
    shapes = np.array(shapes)
    for i in np.flatnonzero((box[:, 0] < -180) | (box[:, 2] > 180)):
        turns = [shapely.transform(shapes[i], lambda xy, turn=turn: xy - [turn, 0]) for turn in (-360, 0, 360)]
        parts = shapely.get_parts(shapely.intersection(turns, _GLOBE))
        shapes[i] = shapely.union_all(parts[shapely.area(parts) > 0])
    return shapes


def around(places: pd.DataFrame, by: str):
    """What lies nearest to the ``places`` (columns lat, lng, ``by``) of one name, as a GeoDataFrame (``by``, geometry): the Voronoi cells of
    antennas put together by municipality, say, where nobody has its borders.

    The cells end a tenth of the places' extent beyond their convex hull. Kilometres are alike northwards and eastwards at the middle latitude. Of
    places at one point the first counts, and one without a position or a name none; a name may have several parts.
    """
    import geopandas

    first = places.dropna(subset=["lat", "lng", by]).drop_duplicates(["lat", "lng"])
    squeeze = np.cos(np.radians((first["lat"].max() + first["lat"].min()) / 2))
    points = shapely.points(first["lng"] * squeeze, first["lat"])
    hull = shapely.multipoints(points).convex_hull
    area = hull.buffer(0.1 * max(hull.length / 4, 1e-3))
    cells = shapely.get_parts(shapely.voronoi_polygons(shapely.multipoints(points), extend_to=area, ordered=True))
    inside = cells if len(points) > 1 else np.array([area])  # of one place there is no other to be nearer to
    degrees = shapely.transform(shapely.intersection(inside, area), lambda xy: xy / [squeeze, 1])
    table = geopandas.GeoDataFrame({by: first[by].astype(str).to_numpy()}, geometry=degrees, crs=DEGREES)
    return table.dissolve(by, sort=True).reset_index()
