"""The synthetic region's people within given boundaries, for instance of real municipalities.

Only the boundaries are real then, not the people who live, move or call there.
"""

from pathlib import Path

import geopandas
import numpy as np
import shapely

from mobpriv.base.ranges import whole
from mobpriv.datasets.region.ground import INNER, Ground, check_numbers, ground_of_polygons
from mobpriv.ground.geo import metres_per_degree

_NAME_COLUMNS = ("municipality", "name")  # columns of a file of boundaries that may hold the names of municipalities


def read_boundaries(path) -> geopandas.GeoDataFrame:
    """Municipalities (municipality, geometry in degrees) of a file for geopandas, names in a column of :data:`_NAME_COLUMNS`."""
    try:
        table = geopandas.read_file(path)
    except (OSError, RuntimeError, ValueError) as error:  # pyogrio's own are RuntimeErrors
        raise ValueError(f"{Path(path).name} is no file of boundaries: give GeoJSON, for instance ({error})") from None
    column = next((name for name in _NAME_COLUMNS if name in table), None)
    if column is None:
        raise ValueError(f"{Path(path).name} lacks the names of its municipalities: a column {' or '.join(_NAME_COLUMNS)}")
    if table.crs is None:
        raise ValueError(f"{Path(path).name} does not say its coordinate reference system")
    table = table.rename(columns={column: "municipality"})[["municipality", "geometry"]].to_crs("EPSG:4326")
    twice = table["municipality"][table["municipality"].duplicated() | table["municipality"].isna()]
    if len(twice):
        raise ValueError(f"{Path(path).name}: a municipality needs a name of its own (got {twice.iloc[0]!r} twice, or none)")
    bad = ~table.geometry.geom_type.isin(("Polygon", "MultiPolygon")) | ~table.geometry.is_valid
    if bad.any():
        raise ValueError(f"{Path(path).name}: {table['municipality'][bad].iloc[0]} is no valid polygon")
    return table


def in_order(names: list[str], ranks: dict[str, int], rng: np.random.Generator) -> list[str]:
    """The municipalities by inhabitants, the largest first.

    Those of ``ranks`` get their ranks (1: the largest), the others are in random order.
    """
    unknown = [name for name in ranks if name not in names]
    if unknown:
        raise ValueError(f"ranks name no municipality of the file: {', '.join(unknown)}")
    for name, rank in ranks.items():
        whole(f"rank of {name}", rank, 1, len(names))
    if len(set(ranks.values())) < len(ranks):
        raise ValueError(f"two municipalities cannot have one rank (got {ranks})")
    others = iter(rng.permutation(sorted(set(names) - set(ranks))).tolist())
    name_of_rank = {rank: name for name, rank in ranks.items()}
    return [name_of_rank.get(rank) or next(others) for rank in range(1, len(names) + 1)]


def ground_on(boundaries: geopandas.GeoDataFrame, antennas: int, ranks: dict[str, int], rng: np.random.Generator) -> Ground:
    """The ground of these municipalities.

    The numbers of inhabitants follow Zipf's law, as on the island; ``ranks`` says which municipality has which rank. Antennas
    are placed in a municipality's largest part, which also serves islets and exclaves.
    """
    check_numbers(len(boundaries), antennas)
    order_rng, antenna_rng = rng.spawn(2)
    names = in_order(boundaries["municipality"].astype(str).tolist(), ranks, order_rng)
    shapes = boundaries.set_index("municipality").geometry.loc[names].to_numpy()
    west, south, east, north = shapely.total_bounds(shapes)
    centre = (float(south + north) / 2, float(west + east) / 2)
    metres = np.array([float(scale) for scale in metres_per_degree(np.array(centre[0]))])
    polygons = shapely.transform(shapes, lambda xy: (xy - centre[::-1]) * metres)
    largest = np.array([max(shapely.get_parts(polygon), key=shapely.area) for polygon in polygons])
    small = shapely.is_empty(shapely.buffer(largest, -INNER))
    if small.any():
        raise ValueError(f"{names[int(small.argmax())]} is too small for an antenna: leave it out")
    return ground_of_polygons(names, polygons, shapes, antennas, centre, antenna_rng)
