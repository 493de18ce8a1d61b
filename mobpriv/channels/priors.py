"""Priors: distributions of a user's position before an observation.

Source: Shokri, "Privacy games", PETS 2015, §9.

A prior π is a distribution over the cells of an area (:class:`mobpriv.ground.grid.AreaGrid`): an array (cells,), or (users, cells)
with a row per user. The paper divides 15 × 8 km of Lausanne into 20 × 15 cells. It builds π "for each user separately given
their individual location traces, using maximum likelihood estimation (normalizing the user's number of visits to each cell in
the trace)".
"""

from typing import NamedTuple

import numba
import numpy as np
import pandas as pd

from mobpriv.base.ranges import between, one_of, positive, whole
from mobpriv.channels import checks
from mobpriv.ground.geo import across_the_date_line, meridian_arc, metres_per_degree
from mobpriv.ground.grid import AreaGrid, latitude_of_arc
from mobpriv.traces.table import Traces, by_user

COUNTS = ("records", "visits")
_CANDIDATES = 10**7
"""Largest number of candidate positions of an edge: more are finer than an area needs, and the search takes many minutes."""


class Priors(NamedTuple):
    shares: pd.DataFrame  # (users, cells): the prior of each user, rows sum to 1
    records: pd.DataFrame  # one row per user: inside, outside (records), counted (records or visits), cells (visited ones)


def densest_area(
    traces: Traces,
    width: float = 15_000.0,  # m, west to east
    height: float = 8_000.0,  # m, south to north
    columns: int = 20,
    rows: int = 15,
) -> AreaGrid:
    """The area of this size with the most records of all users together.

    The candidates lie on a raster with steps of one cell. Southern edges are at multiples of height/rows metres from the
    equator. Western edges are at multiples of width/columns metres from Greenwich, measured on the parallel through the
    candidate's middle. Ties are resolved in favour of the southernmost area, then the westernmost.

    This area replaces the paper's: the paper says "15 × 8 km", but not where.
    """
    AreaGrid(0.0, 0.0, width, height, columns, rows)  # raises for impossible sizes
    if not len(traces):
        raise ValueError("there are no records to choose an area from")
    step = height / rows
    row = np.floor(meridian_arc(traces["lat"].to_numpy()) / step).astype(np.int64)
    _check_candidates("rows", rows, len(np.unique(row)) * rows)
    order = np.argsort(row, kind="stable")
    lng = across_the_date_line(traces["lng"].to_numpy())[order]
    row = row[order]
    # southern edges of the areas with a record that do not extend beyond a pole
    pole = int(meridian_arc(90.0) / step)
    south = np.unique((np.unique(row)[:, None] - np.arange(rows)).clip(-pole, pole - rows))
    middle = latitude_of_arc((south + rows / 2) * step)
    per_degree = metres_per_degree(middle)[0] * columns / width  # columns per degree
    _check_candidates("columns", columns, float(np.ptp(lng) * per_degree.max()) + columns)
    first, last = np.searchsorted(row, south), np.searchsorted(row, south + rows)
    best, column, _ = _densest(lng, first, last, per_degree, columns)
    if best < 0:
        raise ValueError("no area of this size holds a record: they all lie at a pole")
    west = (column / per_degree[best] + 180) % 360 - 180
    return AreaGrid(float(latitude_of_arc(south[best] * step)), float(west), width, height, columns, rows)


def _check_candidates(name: str, number: int, candidates: float) -> None:
    if candidates > _CANDIDATES:
        raise ValueError(
            f"{name} must be fewer: {number:,} {name} make {candidates:,.0f} candidates for an edge of the area, more than the "
            f"{_CANDIDATES:,} allowed"
        )


@numba.njit(cache=True)
def _densest(lng, first, last, per_degree, columns):
    """The band (an index of ``first``), western column and record count of the area with the most records."""
    best, west, best_count = -1, 0, 0
    for band in range(len(first)):
        lng_in_band = lng[first[band] : last[band]]
        if len(lng_in_band) <= best_count:
            continue
        low = int(np.floor(lng_in_band.min() * per_degree[band])) - columns + 1
        high = int(np.floor(lng_in_band.max() * per_degree[band]))
        count = np.zeros(high - low + columns, np.int64)
        for x in lng_in_band:
            count[int(np.floor(x * per_degree[band])) - low] += 1
        within = count[:columns].sum()
        for column in range(high - low + 1):
            if within > best_count:
                best, west, best_count = band, low + column, within
            if column < high - low:
                within += count[column + columns] - count[column]
    return best, west, best_count


def most_active(traces: Traces, grid: AreaGrid, n: int = 10, start: str = "") -> list[str]:
    """The ``n`` users with the most records inside the area, the most active first; ties by name.

    ``start``: only users whose name begins with it. They replace the paper's "10 randomly selected users".
    """
    n = whole("the number of users", n, 1)
    users, offsets = by_user(traces)
    inside = _per_user(grid.cells(traces["lat"].to_numpy(), traces["lng"].to_numpy()) >= 0, offsets)
    count = pd.Series(inside, index=users)[[name.startswith(start) for name in users]]
    count = count[count > 0]
    if len(count) < n:
        condition = f" whose name begins with {start!r}" if start else ""
        raise ValueError(
            f"{n} users are requested, the area has records of {len(count)}{condition}: request fewer users or choose another area"
        )
    return count.sort_values(ascending=False, kind="stable").index[:n].tolist()  # users are already sorted by name


def priors(traces: Traces, grid: AreaGrid, users=None, count: str = "records") -> Priors:
    """The maximum likelihood prior of each user over the cells of ``grid``: the share of her visits to each cell.

    ``users``: the users in this order; None takes all. ``count`` defines a visit:

    * ``"records"``: a record in the cell;
    * ``"visits"``: a run of successive records in the same cell, however long. A stay of hours then weighs no more than a
      passage.

    Records outside the area do not count, but end a run; the second table counts them.

    Departures from the paper: it does not define a visit; by default it is a record.
    """
    one_of("count", count, COUNTS)
    names, offsets = by_user(traces)
    users = pd.Index(names if users is None else list(users), name="user")
    place = names.get_indexer(users)
    cell = grid.cells(traces["lat"].to_numpy(), traces["lng"].to_numpy())
    inside = cell >= 0
    inside_per_user = _per_user(inside, offsets)
    absent = [user for user, i in zip(users, place, strict=True) if i < 0 or not inside_per_user[i]]
    if absent:
        raise ValueError(f"no prior without a record inside the area: {', '.join(map(str, absent))}")
    counted = inside
    if count == "visits":
        counted = inside & np.r_[True, cell[1:] != cell[:-1]][: len(cell)]
        counted[offsets[:-1]] = inside[offsets[:-1]]  # the next user's first record starts a new run
    checks.fits(len(names), grid.size, "the counts of all users in all cells")
    code = np.repeat(np.arange(len(names)), np.diff(offsets))
    table = np.bincount(code[counted] * grid.size + cell[counted], minlength=len(names) * grid.size)
    table = table.reshape(len(names), grid.size)[place]
    total = table.sum(axis=1)
    shares = pd.DataFrame(table / total[:, None], index=users, columns=pd.RangeIndex(grid.size, name="cell"))
    records = {"inside": inside_per_user[place], "outside": (np.diff(offsets) - inside_per_user)[place]}
    return Priors(shares, pd.DataFrame({**records, "counted": total, "cells": (table > 0).sum(axis=1)}, index=users))


def _per_user(chosen: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Number of chosen records in each user's block."""
    total = np.r_[0, np.cumsum(chosen)]
    return total[offsets[1:]] - total[offsets[:-1]]


def smoothed(prior, grid: AreaGrid, width: float = 750.0, weight: float = 0.5) -> np.ndarray:
    """The prior with a share ``weight`` spread over nearby cells: (1 − weight) π + weight · π K.

    K(s, s') is a Gaussian of the distance between the cells' centres with standard deviation ``width`` in metres. It is zero
    beyond three widths; each row is normalised within the area. A user seen in a cell may well visit the next one, so
    neighbouring cells gain most. The usual smoothing, one count added to every cell, would make a lake as likely as the house
    next door. Cells farther than three widths from every visited cell stay at zero.
    """
    prior = checks.prior(prior, several=True)
    if prior.shape[-1] != grid.size:
        raise ValueError(f"the prior has {prior.shape[-1]} cells, the area {grid.size}")
    positive("width", width, "m")
    between("weight", weight, 0, 1, "must lie in [0, 1]")
    centres = grid.centres()
    d = np.hypot(*(centres[:, None, :] - centres[None, :, :]).transpose(2, 0, 1)) / width
    kernel = np.where(d <= 3 * (1 + 1e-12), np.exp(-0.5 * np.minimum(d, 4) ** 2), 0.0)
    kernel /= kernel.sum(axis=1, keepdims=True)
    return (1 - weight) * prior + weight * (prior @ kernel)


def entropy(prior) -> np.ndarray | float:
    """The Shannon entropy in bits, −Σ π log₂ π, with 0 log 0 = 0: a number for one prior, one per row for several."""
    prior = checks.prior(prior, several=True)
    bits = -(prior * np.log2(np.where(prior > 0, prior, 1.0))).sum(axis=-1) + 0.0  # + 0.0 removes a negative zero
    return float(bits) if prior.ndim == 1 else bits


def better_informed(prior, weight: float, places: int = 2) -> np.ndarray:
    """The prior of a better-informed adversary (§9.2): π̂ = (1 − w) π + w ρ, where ρ is π restricted to its most likely cells.

    ``places`` is the number of cells in ρ ("home and work": 2; ties: smaller id); ``weight`` is w in [0, 1]. The paper says in
    words what the adversary learns, "more evidence about most frequently visited locations", but not how much: w is this book's
    measure of it.

    The entropy of π̂ never increases with w, and decreases wherever π has more than ``places`` cells. Proof: H(π̂) is concave
    in w. Its slope at w = 0 is Σ ρ (−log π) − Σ π (−log π): the mean of −log π over the most likely cells minus its mean over
    all. It is not positive. A concave function that does not increase at 0 does not increase later; where ρ ≠ π it is strictly
    concave.
    """
    prior = checks.prior(prior, several=True)
    between("weight", weight, 0, 1, "must lie in [0, 1]")
    rule = f"must lie between 1 and the number of cells, {prior.shape[-1]}"
    whole("places", places, 1, prior.shape[-1], f"{rule}, and be whole")
    likeliest = np.argsort(-prior, axis=-1, kind="stable")[..., :places]
    kept = np.zeros_like(prior)
    np.put_along_axis(kept, likeliest, np.take_along_axis(prior, likeliest, axis=-1), axis=-1)
    return (1 - weight) * prior + weight * (kept / kept.sum(axis=-1, keepdims=True))
