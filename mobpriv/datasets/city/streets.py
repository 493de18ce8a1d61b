"""The ground of the synthetic city: coast, river, park, streets, and the quickest ways along them.

All lengths are metres in the plane of the city: x eastwards, y northwards from its centre.
"""

import json
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from mobpriv.ground.geo import metres_per_degree

_CENTRE = (45.0, -12.0)  # degrees, open sea in the North Atlantic, hundreds of km off every coast
_BLOCK = 320.0  # m, side of a block near the centre; twice that in the suburbs
_SUBURB = 5_500.0  # m from the centre
_MAIN = 6  # every sixth street is a main street
AIRPORT = (10_300.0, -6_400.0)
_PARK = (-1_500.0, 600.0, 1_250.0, 2_650.0)  # west, east, south, north
_LOCAL, _MAIN_STREET, _MOTORWAY = 0, 1, 2
FREE_SPEED = np.array([8.0, 12.5, 24.0])  # m/s of a car without traffic, by kind of street


class Streets(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    kind: np.ndarray  # (nodes, nodes) int8: kind of street between two nodes, −1 if there is none
    before: np.ndarray  # (nodes, nodes) int32: the node before j on the quickest way from i to j
    lines: list[tuple[int, list[int]]]  # kind and nodes of each street, for maps
    airport: int


def coast(y):
    """x of the western shore."""
    return -5_200 + 900 * np.sin(np.asarray(y) / 3_800) + 450 * np.sin(np.asarray(y) / 1_500 + 1)


def river(x):
    """y of the river, which flows into the sea in the west."""
    return -1_400 + 500 * np.sin(np.asarray(x) / 2_500)


def make_streets(rng: np.random.Generator) -> Streets:
    """An irregular grid of streets: finer near the centre, bent, with gaps; bridges only on main streets."""
    x, y, i, j = _nodes(rng)
    rows = {(int(a), int(b)): k for k, (a, b) in enumerate(zip(i, j, strict=True))}
    lines = []
    for along, across in ((0, 1), (1, 0)):
        for line in np.unique((i, j)[across]):
            steps = sorted(key[along] for key in rows if key[across] == line)
            nodes = [rows[(s, line) if along == 0 else (line, s)] for s in steps]
            main = line % _MAIN == _MAIN // 2
            lines += _pieces(nodes, steps, main, x, y, rng)
    airport = len(x)
    x, y = np.append(x, AIRPORT[0]), np.append(y, AIRPORT[1])
    ends = np.unique([node for kind, nodes in lines if kind == _MAIN_STREET for node in nodes])
    far = np.hypot(x[ends] - AIRPORT[0], y[ends] - AIRPORT[1])
    lines += [(_MOTORWAY, [int(end), airport]) for end in ends[np.argsort(far, kind="stable")[[0, 4, 9]]]]
    return _connected(x, y, lines, airport)


def _nodes(rng):
    i, j = (a.ravel() for a in np.meshgrid(np.arange(-20, 34), np.arange(-30, 31), indexing="ij"))
    x = i * _BLOCK + 200 * np.sin(j * _BLOCK / 2_600) + rng.normal(0, 22, i.size)
    y = j * _BLOCK + 160 * np.sin(i * _BLOCK / 3_100) + rng.normal(0, 22, i.size)
    keep = (x > coast(y) + 80) & ((x / 10_000) ** 2 + (y / 9_200) ** 2 < 1) & (np.abs(y - river(x)) > 70)
    keep &= ~((x > _PARK[0]) & (x < _PARK[1]) & (y > _PARK[2]) & (y < _PARK[3]))
    keep &= (np.hypot(x, y) < _SUBURB) | ((i % 2 == 1) & (j % 2 == 1))
    return x[keep], y[keep], i[keep], j[keep]


def _pieces(nodes, steps, main, x, y, rng):
    """A line of the grid as streets: cut at the park, at the river (except for bridges), and at some random gaps."""
    out, piece = [], nodes[:1]
    for k in range(1, len(nodes)):
        a, b = nodes[k - 1], nodes[k]
        wet = (y[a] > river(x[a])) != (y[b] > river(x[b]))
        if steps[k] - steps[k - 1] > 2 or (not main and (wet or rng.random() < 0.07)):
            out.append(piece)
            piece = []
        piece = [*piece, b]
    return [(_MAIN_STREET if main else _LOCAL, p) for p in [*out, piece] if len(p) > 1]


def _connected(x, y, lines, airport) -> Streets:
    """The largest connected part, with the quickest way between all its nodes."""
    a = np.concatenate([nodes[:-1] for _, nodes in lines])
    b = np.concatenate([nodes[1:] for _, nodes in lines])
    kind = np.concatenate([np.full(len(nodes) - 1, k) for k, nodes in lines])
    seconds = np.hypot(x[a] - x[b], y[a] - y[b]) / FREE_SPEED[kind]
    graph = csr_array((seconds, (a, b)), shape=(len(x), len(x)))
    part = connected_components(graph, directed=False)[1]
    inside = part == np.bincount(part).argmax()
    new = np.cumsum(inside) - 1
    kept = inside[a]
    kinds = np.full((inside.sum(), inside.sum()), -1, np.int8)
    kinds[new[a[kept]], new[b[kept]]] = kinds[new[b[kept]], new[a[kept]]] = kind[kept]
    part = graph[inside][:, inside]
    before = dijkstra(part, directed=False, return_predecessors=True)[1].astype(np.int32)
    lines = [(k, [int(new[n]) for n in nodes]) for k, nodes in lines if inside[nodes[0]]]
    return Streets(x[inside], y[inside], kinds, before, lines, int(new[airport]))


def way(streets: Streets, a: int, b: int) -> np.ndarray:
    """The nodes of the quickest way from a to b, both included."""
    before, nodes = streets.before[a], [b]
    while nodes[-1] != a:
        nodes.append(int(before[nodes[-1]]))
    return np.array(nodes[::-1])


def degrees(x, y) -> tuple[np.ndarray, np.ndarray]:
    """Latitude and longitude of the city's plane."""
    lat = _CENTRE[0] + np.asarray(y, float) / metres_per_degree(np.array(_CENTRE[0]))[1]
    return lat, _CENTRE[1] + np.asarray(x, float) / metres_per_degree(lat)[0]


def as_geojson(streets: Streets) -> str:
    """Land, park, river and streets, for the background of maps; five decimals (1 m)."""
    y = np.linspace(-11_000, 11_000, 89)
    shore = list(zip(coast(y), y, strict=True))
    x = np.linspace(float(coast(river(-5_000))), 12_500, 60)
    west, east, south, north = _PARK
    features = [
        _feature("land", "Polygon", [[*shore, (12_500, 11_000), (12_500, -11_000), shore[0]]]),
        _feature("park", "Polygon", [[(west, south), (east, south), (east, north), (west, north), (west, south)]]),
        _feature("river", "LineString", list(zip(x, river(x), strict=True))),
        _feature("airport", "Point", AIRPORT),
    ]
    names = {_LOCAL: "street", _MAIN_STREET: "main street", _MOTORWAY: "motorway"}
    for kind, name in names.items():
        lines = [[(streets.x[n], streets.y[n]) for n in nodes] for k, nodes in streets.lines if k == kind]
        features.append(_feature(name, "MultiLineString", lines))
    return json.dumps({"type": "FeatureCollection", "features": features}, separators=(",", ":")) + "\n"


def _feature(kind, shape, points):
    flat = [points] if shape == "Point" else points if shape == "LineString" else [p for line in points for p in line]
    lat, lng = degrees(*np.array(flat, float).T)
    placed = np.column_stack([lng, lat]).round(5).tolist()
    if shape == "Point":
        placed = placed[0]
    elif shape != "LineString":
        ends = np.cumsum([len(line) for line in points])
        placed = [placed[end - len(line) : end] for line, end in zip(points, ends, strict=True)]
    return {"type": "Feature", "properties": {"kind": kind}, "geometry": {"type": shape, "coordinates": placed}}
