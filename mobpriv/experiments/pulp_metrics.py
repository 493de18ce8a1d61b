"""PULP's metrics: the worked example as positions, and many metrics from the same protected traces.

Source: Cerf et al., TDSC 2018, §II-C and §VI-B3.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.ground.geo import metres_per_degree
from mobpriv.ground.grid import SquareGrid
from mobpriv.metrics import area_coverage, poi_privacy
from mobpriv.pulp import SWEEPS, Metrics, Sweep
from mobpriv.pulp.profiler import PROFILE_COLUMNS, profile_under
from mobpriv.traces.profiles import poi_centres
from mobpriv.traces.table import Traces, from_blocks

# ---------------- The worked example of PULP's metrics as positions, and the cases that Equations (1) and (2) leave undefined
# The paper draws a trace, three places and a map of cells, and prints their counts. Our positions are invented to have these
# counts. Places are those of §VI-A (200 m, 15 min, matched within 100 m), cells are squares of 300 m.
EXAMPLE_CELL = 300.0  # m, about as wide as the S2 cells of level 15
_GRID = SquareGrid(EXAMPLE_CELL)
_MINUTE = 60_000  # ms
_START = 1_450_000_000_000  # ms
_NEAR = 0.01, 5.0  # degrees: near the corner of the map; at the equator the rows of cells are exactly aligned

# m east and north of the corner of the map: a place at the top left, one at the top right, one at the bottom right
_PLACES = ((150.0, 1050.0), (1050.0, 1050.0), (1050.0, 150.0))
_ON_THE_WAY = (
    ((450.0, 1060.0), (700.0, 1050.0), (810.0, 1040.0)),
    ((1060.0, 750.0), (1040.0, 450.0), (1045.0, 270.0)),
    (),
)
_AROUND = ((-30.0, 20.0), (25.0, 30.0), (30.0, -25.0), (-25.0, -25.0))  # four records at a place
_NOISE = ((20.0, -10.0), (-15.0, 20.0), (-170.0, 5.0))  # shift of the records at each place: the third place moves 170 m west
_NOISY_WAY = (
    ((430.0, 1090.0), (740.0, 960.0), (820.0, 860.0)),
    ((1110.0, 720.0), (1080.0, 480.0), (1010.0, 240.0)),
    (),
)


class Example(NamedTuple):
    """A trace and two protected versions of it; traces have a record every five minutes."""

    original: Traces
    protected: dict[str, Traces]


def figure_1() -> Example:
    """Return the trace of Figure 1 with the outputs of Geo-I and Promesse.

    Promesse's points are 90 m and five minutes apart. On a straight line three of them fit into 200 m, which is ten minutes.
    Around the corner at the second place four fit: the one POI that remains. The ends of the walk are missing, and with them a
    cell.
    """
    original, noisy = [], []
    for place, shift, way, noisy_way in zip(_PLACES, _NOISE, _ON_THE_WAY, _NOISY_WAY, strict=True):
        stop = np.array(place) + np.array(_AROUND)
        original += [*stop.tolist(), *way]
        noisy += [*(stop + shift).tolist(), *noisy_way]
    corner = _PLACES[1][0] - 45.0
    even_points = [(x, _PLACES[1][1]) for x in corner - 90.0 * np.arange(9, -1, -1)]
    even_points += [(_PLACES[1][0], y) for y in corner - 90.0 * np.arange(8)]
    return Example(trace(original), {"Geo-I": trace(noisy), "Promesse": trace(even_points)})


def levels_with_counts(original: Traces, protected: Traces, matched: str = "protected") -> dict[str, float]:
    """Return both metrics of one user with their parts: counts of POIs and cells, precisions, recalls and levels."""
    pois = poi_privacy(original, protected, matched=matched).iloc[0]
    cells = area_coverage(original, protected, _GRID).iloc[0]
    before, after = (len(np.unique(_GRID.cells(t["lat"].to_numpy(), t["lng"].to_numpy()))) for t in (original, protected))
    return {
        "POIs": float(pois["real"]),
        "POIs, protected": float(pois["found"]),
        "POIs, matched": float(pois["matched"]),
        "precision of POIs": float(pois["precision"]),
        "recall of POIs": float(pois["recall"]),
        "privacy": float(pois["privacy"]),
        "cells": float(before),
        "cells, protected": float(after),
        "precision of cells": float(cells["precision"]),
        "recall of cells": float(cells["recall"]),
        "utility": float(cells["f_score"]),
    }


def edge_cases() -> dict[str, tuple[Traces, Traces]]:
    """Return (original, protected): no protection, fractions of Equation (1) or (2) that are 0/0, and privacy below 0."""
    stop = [tuple(np.array(_PLACES[0]) + around) for around in _AROUND]
    way = [(150.0 + 300.0 * i, 1050.0) for i in range(1, 4)]
    far = [(x + 300.0, y - 600.0) for x, y in stop]
    # three places 95 m around one place: 165 m apart, so that they are not merged
    three_pois = []
    for angle in np.radians([90, 210, 330]):
        x, y = _PLACES[0][0] + 95.0 * np.cos(angle), _PLACES[0][1] + 95.0 * np.sin(angle)
        three_pois += [*((x + 0.1 * east, y + 0.1 * north) for east, north in _AROUND), way[0]]
    stays, passes = trace([*stop, *way]), trace([stop[0], *way])
    erased = stays.iloc[:0]
    return {
        "published as it is": (stays, stays),
        "no POI in the original": (passes, stays),
        "none in the protected": (stays, passes),
        "none matched": (stays, trace([*far, *way])),
        "trace erased": (stays, erased),
        "three POIs around one": (stays, trace([*three_pois, *way])),
    }


def trace(metres) -> Traces:
    """Return one user's trace through positions in metres east and north of the corner of the map, five minutes apart."""
    metres = np.asarray(metres, float)
    time = _START + 5 * _MINUTE * np.arange(len(metres))
    south, west = corner()
    lat = south + metres[:, 1] / metres_per_degree(np.array(south))[1]
    lng = west + metres[:, 0] / metres_per_degree(np.array(south))[0]
    return from_blocks(pd.Index(["ann"]), [len(metres)], time, lat, lng)


def corner() -> tuple[float, float]:
    """Return south and west of the grid cell at the lower left of the map, in degrees."""
    south, west, *_ = _GRID.bounds(_GRID.cells(np.array([_NEAR[0]]), np.array([_NEAR[1]])))[0]
    return float(south), float(west)


def cell_corners(traces: Traces) -> list[tuple[float, float]]:
    """Return the lower left corners of the cells that a trace visits, in metres from the corner of the map."""
    south, west, *_ = _GRID.bounds(np.unique(_GRID.cells(traces["lat"].to_numpy(), traces["lng"].to_numpy()))).T
    return _in_metres(south, west)


def poi_positions(traces: Traces) -> list[tuple[float, float]]:
    """Return the centres of a trace's POIs, in metres from the corner of the map."""
    centres = poi_centres(traces, diameter=200.0, duration=900.0)
    return _in_metres(centres.lat, centres.lng)


def record_positions(traces: Traces) -> list[tuple[float, float]]:
    """Return a trace's records, in metres from the corner of the map."""
    return _in_metres(traces["lat"].to_numpy(), traces["lng"].to_numpy())


def _in_metres(lat: np.ndarray, lng: np.ndarray) -> list[tuple[float, float]]:
    south, west = corner()
    east, north = metres_per_degree(np.array(south))
    return list(zip(((lng - west) * east).tolist(), ((lat - south) * north).tolist(), strict=True))


# --------------------------------------------------- Profile users under many metrics at once, from the same protected traces
# §VI-B3 varies the definition of a place, of a match and of a cell. This does not change the protected trace. It is protected
# once per setting and measured with every :class:`mobpriv.pulp.Metrics`, so variants differ only in the metric.
def profiles_by_metrics(
    traces: Traces,
    metrics: Mapping[str, Metrics],
    sweeps: Sequence[Sweep] = SWEEPS,
    seeds: Sequence[int] = (1,),  # one repetition each; a deterministic mechanism runs once
    workers: int = 1,  # processes
    keep: Callable[[str, Callable], list[dict]] = lambda name, compute: compute(),
) -> dict[str, pd.DataFrame]:
    """Return name of a metric -> its table as from :func:`mobpriv.pulp.profile`: the same rows with the same noise.

    ``keep`` is that of :func:`mobpriv.pulp.profile`, as are the errors; ValueError without metrics.
    """
    table = profile_under("variants", traces, metrics, sweeps, seeds, workers, keep)
    return {name: table.loc[table["metrics"] == name, PROFILE_COLUMNS].reset_index(drop=True) for name in metrics}
