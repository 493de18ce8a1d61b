"""Metres and degrees.

All distances of the book are measured in one of two planes:

* ``"ground"`` (the default): true local metres on the WGS 84 ellipsoid, at every latitude.
* ``"mercator"``: metres of the spherical Mercator plane with R = 6 367 000 m, as in the programs of the thesis's author (SFERA,
  HMC) and in Accio. One of these "metres" is cos(latitude) metres on the ground: 0.79 m in San Francisco.

Both are plane coordinates with two local scales, so one formula serves both::

    distance(i, j)² = (sx · (x_j − x_i))² + (sy · (y_j − y_i))²,   sx, sy = mean of the scales at i and j

On the ground x is the longitude, y the latitude, and the scales are metres per degree. In Mercator metres both scales are 1.
Compared with the geodesic on the ellipsoid, the relative error of the ground distance is below 1e-6 up to 1 km. It is below
1e-3 up to 500 km (latitudes below 60°).
"""

from typing import NamedTuple

import numba
import numpy as np

from mobpriv.base.ranges import one_of

AUTHORS_RADIUS = 6_367_000.0  # m, the Earth's radius in the authors' programs
_A, _E2 = 6_378_137.0, 0.006_694_379_990_141_316  # WGS 84: semi-major axis in m, first eccentricity squared

PLANES = ("ground", "mercator")


class Points(NamedTuple):
    """Columns of equal length: plane coordinates and the metres per unit of x and of y at each point."""

    x: np.ndarray
    y: np.ndarray
    sx: np.ndarray
    sy: np.ndarray


def check_plane(plane: str) -> str:
    return one_of("plane", plane, PLANES)


@numba.njit(inline="always")
def metres_per_degree_at(lat):
    """:func:`metres_per_degree` for one latitude in compiled code."""
    phi = np.radians(lat)
    w = 1.0 - _E2 * np.sin(phi) ** 2
    north = np.radians(_A) * (1.0 - _E2) / (w * np.sqrt(w))
    return np.radians(_A) * np.cos(phi) / np.sqrt(w), north


@numba.njit(cache=True)
def _scales(lat):
    east, north = np.empty(len(lat)), np.empty(len(lat))
    for i in range(len(lat)):
        east[i], north[i] = metres_per_degree_at(lat[i])
    return east, north


@numba.njit(cache=True, parallel=True)
def _scales_in_threads(lat):  # separate from _scales: numba would keep one compiled copy for both
    east, north = np.empty(len(lat)), np.empty(len(lat))
    for i in numba.prange(len(lat)):
        east[i], north[i] = metres_per_degree_at(lat[i])
    return east, north


def metres_per_degree(lat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Metres on the ground in one degree (eastwards, northwards) at latitude ``lat``: N·cos φ·π/180 and M·π/180."""
    lat = np.asarray(lat, float)
    # on short columns, starting threads costs more than it saves
    scales = _scales_in_threads if lat.size > 10_000 else _scales
    east, north = scales(lat.ravel())
    return east.reshape(lat.shape), north.reshape(lat.shape)


def to_plane(lat, lng, plane: str = "ground") -> Points:
    """Plane coordinates of degrees (arrays of equal length). The Mercator plane has no poles: ValueError."""
    check_plane(plane)
    lat, lng = np.asarray(lat, float), np.asarray(lng, float)
    if plane == "ground":
        sx, sy = metres_per_degree(lat)
        return Points(lng, lat, sx, sy)
    polar = np.abs(lat) >= 90
    if polar.any():
        raise ValueError(
            f"the Mercator plane has no poles (got latitude {lat[polar].flat[0]} at position {np.flatnonzero(polar)[0]}): "
            'leave such records out, or measure on the ground (plane="ground")'
        )
    one = np.broadcast_to(1.0, lat.shape)
    north = np.log(np.tan(np.pi / 4 + np.radians(lat) / 2))
    return Points(AUTHORS_RADIUS * np.radians(lng), AUTHORS_RADIUS * north, one, one)


def across_the_date_line(lng: np.ndarray) -> np.ndarray:
    """Longitudes cut at the widest empty interval instead of ±180°, if the set spans more than half the globe."""
    if not len(lng) or lng.max() - lng.min() <= 180:
        return lng
    used = np.unique(np.floor(lng))
    gap = np.diff(np.r_[used, used[0] + 360])
    cut = used[gap.argmax()] + 1
    return lng if cut > 180 or gap.max() < 2 else np.where(lng < cut, lng + 360, lng)


def unwrapped(lng: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Longitudes that continue beyond ±180° where a trace crosses the date line; trace i begins at row offsets[i]."""
    turns = np.r_[0.0, -np.round(np.diff(lng) / 360)] if len(lng) else np.zeros(0)
    if not turns.any():
        return lng
    total = np.cumsum(turns)
    return lng + 360 * (total - np.repeat(total[offsets[:-1]], np.diff(offsets)))


def to_degrees(x, y, plane: str = "ground") -> tuple[np.ndarray, np.ndarray]:
    """Latitude and longitude of plane coordinates, in [-90, 90] and [-180, 180)."""
    check_plane(plane)
    x, y = np.asarray(x, float), np.asarray(y, float)
    if plane == "mercator":
        x, y = np.degrees(x / AUTHORS_RADIUS), np.degrees(2 * np.arctan(np.exp(y / AUTHORS_RADIUS)) - np.pi / 2)
    x, y = np.broadcast_arrays(x, y)
    lat, lng = _on_the_globe(y.ravel(), x.ravel())
    return lat.reshape(y.shape)[()], lng.reshape(x.shape)[()]


@numba.njit(inline="always")
def _on_the_globe_at(lat, lng):
    return min(max(lat, -90.0), 90.0), ((lng + 180.0) % 360.0 - 180.0 if lng < -180.0 or lng >= 180.0 else lng)


@numba.njit(cache=True)
def _on_the_globe(lat, lng):
    to_lat, to_lng = np.empty(len(lat)), np.empty(len(lat))
    for i in range(len(lat)):
        to_lat[i], to_lng[i] = _on_the_globe_at(lat[i], lng[i])
    return to_lat, to_lng


@numba.njit(inline="always")
def displacement(x, y, sx, sy, i, j):
    """Metres (east, north) from point i to point j of one point set."""
    return 0.5 * (sx[i] + sx[j]) * (x[j] - x[i]), 0.5 * (sy[i] + sy[j]) * (y[j] - y[i])


@numba.njit
def towards(x, y, sx, sy, dx, dy, metres, d, ground):
    """The point ``metres`` from (x, y) along the straight line of length ``d`` metres to (x + dx, y + dy), with its scales."""
    share = metres / d
    if ground:  # the scale changes along the line: correct the share by the distance it yields
        for _ in range(2):
            sx1, sy1 = metres_per_degree_at(y + share * dy)
            reached = np.sqrt((0.5 * (sx + sx1) * share * dx) ** 2 + (0.5 * (sy + sy1) * share * dy) ** 2)
            share = min(share * metres / reached, 1.0) if reached > 0 else 1.0
        sx, sy = metres_per_degree_at(y + share * dy)
    return x + share * dx, y + share * dy, sx, sy


@numba.njit
def _displaced(lat, lng, east, north):
    """The degrees at (east, north) metres on the ground from a position; :func:`distance` returns hypot(east, north) for them.

    The longitude is not wrapped into [-180, 180). Within 1° of a pole the direction "east" turns along the way. There the step
    is taken on the map centred at the pole (true distances and bearings from the pole; error below 1e-4).
    """
    sx0, sy0 = metres_per_degree_at(lat)
    sx, sy = sx0, sy0
    if abs(lat) < 89.0:
        # the scale is the mean of both ends; the far end is needed only roughly, so the near end's scale gives it
        sx1, sy1 = metres_per_degree_at(lat + north / sy0)
        sx, sy = 0.5 * (sx0 + sx1), 0.5 * (sy0 + sy1)
        if abs(lat + north / sy) < 90.0:
            return lat + north / sy, lng + east / sx
    side = 1.0 if lat > 0 else -1.0
    # metres from the pole along the old meridian; east is perpendicular to it
    outwards = (90.0 - side * lat) * sy - side * north
    return side * (90.0 - np.hypot(outwards, east) / sy), lng + np.degrees(np.arctan2(east, outwards))


@numba.njit(cache=True, parallel=True)
def _move(lat, lng, east, north):
    to_lat, to_lng = np.empty_like(lat), np.empty_like(lng)
    for i in numba.prange(len(lat)):
        to_lat[i], to_lng[i] = _displaced(lat[i], lng[i], east[i], north[i])
    return to_lat, to_lng


def readonly(column: np.ndarray) -> np.ndarray:
    """A read-only view of a column, as pandas returns it: numba compiles for one array type."""
    view = column.view()
    view.flags.writeable = False
    return view


def move(lat, lng, east, north, plane: str = "ground") -> tuple[np.ndarray, np.ndarray]:
    """Latitude and longitude of the positions (east, north) metres of the plane away (arrays of equal length)."""
    if check_plane(plane) == "mercator":
        p = to_plane(lat, lng, plane)
        return to_degrees(p.x + east, p.y + north, plane)
    lat, lng = _move(*(readonly(np.ascontiguousarray(column, float)) for column in (lat, lng, east, north)))
    return to_degrees(lng, lat)


def distance(lat1, lng1, lat2, lng2, plane: str = "ground") -> np.ndarray:
    """Distance in metres between degrees; the arguments broadcast."""
    p, q = to_plane(lat1, lng1, plane), to_plane(lat2, lng2, plane)
    dx = q.x - p.x
    if plane == "ground":
        dx = dx + 180
        if not ((dx >= 0) & (dx < 360)).all():  # a remainder costs more than all the rest
            dx = dx % 360
        dx = dx - 180
    return np.hypot((p.sx + q.sx) / 2 * dx, (p.sy + q.sy) / 2 * (q.y - p.y))


def cartesian(lat: np.ndarray, lng: np.ndarray) -> np.ndarray:
    """Positions on the WGS 84 ellipsoid in m from the Earth's centre, (n, 3).

    Straight lines between them equal distances on the ground to 1e-6 up to 10 km, so a k-d tree can find nearest neighbours.
    """
    phi, lam = np.radians(np.asarray(lat, float)), np.radians(np.asarray(lng, float))
    normal = _A / np.sqrt(1 - _E2 * np.sin(phi) ** 2)
    return np.column_stack(
        [normal * np.cos(phi) * np.cos(lam), normal * np.cos(phi) * np.sin(lam), normal * (1 - _E2) * np.sin(phi)]
    )


def meridian_arc(lat: np.ndarray) -> np.ndarray:
    """Metres on the ground from the equator to ``lat`` along a meridian (series in the third flattening, exact to 1e-5 m)."""
    n = 0.001_679_220_386_383_705
    phi = np.radians(lat)
    return (
        _A
        / (1 + n)
        * (
            (1 + n**2 / 4 + n**4 / 64) * phi
            - 3 / 2 * (n - n**3 / 8) * np.sin(2 * phi)
            + 15 / 16 * (n**2 - n**4 / 4) * np.sin(4 * phi)
            - 35 / 48 * n**3 * np.sin(6 * phi)
            + 315 / 512 * n**4 * np.sin(8 * phi)
        )
    )
