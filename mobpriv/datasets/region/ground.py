"""The ground of the synthetic region: an island, its municipalities as polygons, and its antennas.

Sizes of towns follow Zipf's law: the k-th largest has 1/k of the largest's inhabitants (Gabaix 1999,
``doi:10.1162/003355399556133``). Municipalities are the Voronoi cells of their towns, cut at the coast, of about :data:`AREA`
each (Tuscany's 279 have 82 km² on average). Antennas are distributed by inhabitants, denser towards each town's middle.
"""

from typing import NamedTuple

import geopandas
import numpy as np
import pandas as pd
import shapely
from scipy.spatial import cKDTree

from mobpriv.ground.geo import metres_per_degree

_ISLAND_CENTRE = (44.5, -14.5)  # degrees: open Atlantic, 200 km west of the synthetic city, where there is no land
AREA = 80e6  # m², of a municipality on average
_DEGREE_DECIMALS = 5  # of a degree: 1.1 m
MIN_ANTENNAS = 2  # antennas of a municipality
_MIN_SPACING = 0.4  # least distance between two antennas, in mean spacings of a municipality's antennas
_TOWN = 0.22  # standard deviation of an antenna's distance from the town's middle, in roots of the municipality's area
INNER = 50.0  # m, least distance of an antenna from the border
PIXEL = 250.0  # m, side of the squares of the map of serving antennas
ANTENNA_NEIGHBOURS = 3  # antennas of the same municipality that may replace one


class Ground(NamedTuple):
    """Cells are numbered 0, 1, … as in ``cells``, municipalities as in ``municipalities``."""

    municipalities: geopandas.GeoDataFrame  # municipality, share (of the inhabitants), antennas, geometry; largest first
    cells: pd.DataFrame  # Cells: cell, lat, lng, municipality
    x: np.ndarray  # m, of each cell
    y: np.ndarray
    owner: np.ndarray  # the municipality of each cell
    weight: np.ndarray  # share of the inhabitants that live at each cell
    neighbours: np.ndarray  # (cells, NEIGHBOURS): the nearest others of its municipality; itself if there are none
    serving: np.ndarray  # (rows, columns): the cell that serves each square of side PIXEL, from south-west
    corner: tuple[float, float]  # x, y of the south-west corner of that map


def make_ground(municipalities: int, antennas: int, rng: np.random.Generator) -> Ground:
    """The island with the given numbers of municipalities and antennas."""
    check_numbers(municipalities, antennas)
    coast_rng, town_rng, antenna_rng = rng.spawn(3)
    island = _coast(municipalities * AREA, coast_rng)
    polygons = _polygons(island, municipalities, town_rng)
    names = [f"M{k + 1:03d}" for k in range(municipalities)]
    shapes = shapely.transform(polygons, lambda xy: np.column_stack(plane_to_degrees(*xy.T)[::-1]))
    return ground_of_polygons(names, polygons, shapes, antennas, _ISLAND_CENTRE, antenna_rng)


def ground_of_polygons(
    names: list[str],
    polygons: np.ndarray,
    shapes: np.ndarray,
    antennas: int,
    centre: tuple[float, float],
    rng: np.random.Generator,
) -> Ground:
    """Municipalities with inhabitants and antennas, the largest first.

    ``polygons`` are in metres about ``centre``, ``shapes`` the same in degrees.
    """
    municipalities = len(names)
    share = 1 / np.arange(1, municipalities + 1)
    share /= share.sum()
    counts = _shared_out(antennas, share)
    x, y = (np.concatenate(c) for c in zip(*map(_antennas, polygons, counts, rng.spawn(municipalities)), strict=True))
    owner = np.repeat(np.arange(municipalities), counts)
    weight = rng.lognormal(0, 0.4, antennas)
    weight *= (share / np.bincount(owner, weight))[owner]
    lat, lng = plane_to_degrees(x, y, centre)
    cells = pd.DataFrame({"cell": [f"C{k + 1:05d}" for k in range(antennas)], "lat": lat, "lng": lng})
    cells["municipality"] = np.array(names)[owner]
    columns = {"municipality": np.array(names), "share": share.round(6), "antennas": counts}
    table = geopandas.GeoDataFrame(columns, geometry=shapes, crs="EPSG:4326")
    serving, corner = _serving(polygons, x, y, owner)
    return Ground(table, cells, x, y, owner, weight, _neighbours(x, y, owner), serving, corner)


def check_numbers(municipalities: int, antennas: int) -> None:
    """Refuse too few municipalities or antennas."""
    if municipalities < 2 or antennas < MIN_ANTENNAS * municipalities:
        raise ValueError(
            f"a region has at least 2 municipalities, each with at least {MIN_ANTENNAS} antennas "
            f"(got {municipalities} and {antennas} antennas)"
        )


def plane_to_degrees(x, y, centre: tuple[float, float] = _ISLAND_CENTRE) -> tuple[np.ndarray, np.ndarray]:
    """Latitude and longitude of the plane about ``centre``, to :data:`_DEGREE_DECIMALS`."""
    east, north = metres_per_degree(np.array(centre[0]))
    lat, lng = centre[0] + np.asarray(y, float) / north, centre[1] + np.asarray(x, float) / east
    return lat.round(_DEGREE_DECIMALS), lng.round(_DEGREE_DECIMALS)


def _coast(area: float, rng: np.random.Generator) -> shapely.Polygon:
    """An island of this area: a circle with bays of six widths."""
    angle = np.linspace(0, 2 * np.pi, 361)[:-1]
    radius = np.ones(len(angle))
    for k in range(2, 8):
        radius += 0.22 / k * np.cos(k * angle + rng.uniform(0, 2 * np.pi))
    island = shapely.Polygon(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))
    side = np.sqrt(area / island.area)
    return shapely.transform(island, lambda xy: np.round(xy * side))


def _polygons(island: shapely.Polygon, count: int, rng: np.random.Generator) -> np.ndarray:
    """Municipalities: first the largest town's, the one nearest to a bay's head in the east; the others in any order."""
    towns = _within(island, count, rng)
    for _ in range(2):  # Lloyd 1982: towards polygons of similar size
        towns = shapely.centroid(_voronoi(island, towns))
    parts = _voronoi(island, towns)
    east = island.bounds[2]
    city = int(np.hypot(shapely.get_x(towns) - 0.5 * east, shapely.get_y(towns)).argmin())
    others = rng.permutation(np.delete(np.arange(count), city))
    return parts[np.r_[city, others]]


def _within(polygon: shapely.Polygon, count: int, rng: np.random.Generator) -> np.ndarray:
    """A number of random points in a polygon."""
    west, south, east, north = polygon.bounds
    inside = np.zeros((0, 2))
    while len(inside) < count:
        points = rng.uniform((west, south), (east, north), (4 * count, 2))
        inside = np.vstack([inside, points[shapely.contains_xy(polygon, points)]])
    return shapely.points(inside[:count])


def _voronoi(island: shapely.Polygon, towns: np.ndarray) -> np.ndarray:
    """The part of the island that is nearer to each town than to the others.

    If the coast cuts a part in two, the smaller piece goes to its neighbour with the longest common border.
    """
    cells = shapely.get_parts(shapely.voronoi_polygons(shapely.multipoints(towns), extend_to=island, ordered=True))
    parts = shapely.intersection(shapely.set_precision(cells, 1.0), island, grid_size=1.0)
    pieces = [sorted(shapely.get_parts(part), key=lambda piece: -piece.area) for part in parts]
    parts = np.array([sorted_pieces[0] for sorted_pieces in pieces])
    for piece in (piece for sorted_pieces in pieces for piece in sorted_pieces[1:]):
        neighbour = int(np.argmax(shapely.length(shapely.intersection(parts, piece))))
        parts[neighbour] = shapely.union(parts[neighbour], piece, grid_size=1.0)
    return parts


def _shared_out(total: int, share: np.ndarray) -> np.ndarray:
    """``total`` in proportion to ``share``, at least :data:`MIN_ANTENNAS` each, by largest remainders."""
    quota = MIN_ANTENNAS + (total - MIN_ANTENNAS * len(share)) * share
    count = np.floor(quota).astype(int)
    count[np.argsort(count - quota, kind="stable")[: total - count.sum()]] += 1
    return count


def _antennas(polygon: shapely.Polygon, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions in a municipality, denser towards its middle, none too near to another one or to the border."""
    polygon = max(shapely.get_parts(polygon), key=shapely.area)
    middle, side = np.array(polygon.centroid.coords[0]), np.sqrt(polygon.area)
    inner, spacing = polygon.buffer(-INNER), _MIN_SPACING * side / np.sqrt(count)
    positions = np.zeros((0, 2))
    while len(positions) < count:
        point = np.round(middle + rng.normal(0, _TOWN * side, 2))
        if shapely.contains_xy(inner, *point) and (not len(positions) or np.hypot(*(positions - point).T).min() > spacing):
            positions = np.vstack([positions, point])
        spacing *= 0.999  # guarantees that the loop ends
    return positions[:, 0], positions[:, 1]


def _neighbours(x: np.ndarray, y: np.ndarray, owner: np.ndarray) -> np.ndarray:
    out = np.repeat(np.arange(len(x))[:, None], ANTENNA_NEIGHBOURS, axis=1)
    for k in range(owner.max() + 1):
        cells = np.flatnonzero(owner == k)
        distance = np.hypot(x[cells, None] - x[cells], y[cells, None] - y[cells])
        nearest = np.argsort(distance, axis=1, kind="stable")[:, 1 : ANTENNA_NEIGHBOURS + 1]
        out[cells[:, None], np.arange(ANTENNA_NEIGHBOURS)] = cells[nearest[:, np.arange(ANTENNA_NEIGHBOURS) % nearest.shape[1]]]
    return out


def _serving(polygons: np.ndarray, x: np.ndarray, y: np.ndarray, owner: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """A map of squares: the nearest cell of the municipality that contains the square's middle, at sea of the nearest one."""
    west, south, east, north = shapely.total_bounds(polygons)
    columns, rows = int(np.ceil((east - west) / PIXEL)), int(np.ceil((north - south) / PIXEL))
    px, py = np.meshgrid(west + PIXEL * (np.arange(columns) + 0.5), south + PIXEL * (np.arange(rows) + 0.5))
    middle = shapely.points(px.ravel(), py.ravel())
    pixel, polygon = shapely.STRtree(polygons).query_nearest(middle, all_matches=False)
    serving = np.zeros(rows * columns, np.int32)
    for k in range(len(polygons)):
        cells, pixels = np.flatnonzero(owner == k), pixel[polygon == k]
        at = np.column_stack([px.ravel()[pixels], py.ravel()[pixels]])
        serving[pixels] = cells[cKDTree(np.column_stack([x[cells], y[cells]])).query(at)[1]]
    return serving.reshape(rows, columns), (float(west), float(south))
