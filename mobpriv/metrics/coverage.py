"""Area coverage: agreement between the cells of a protected trace and those of the original (thesis §4.7.2)."""

import numpy as np
import pandas as pd

from mobpriv.base.ranges import positive
from mobpriv.ground.grid import SquareGrid
from mobpriv.metrics.pairs import row_ranges
from mobpriv.traces.profiles import heat_maps
from mobpriv.traces.table import Traces, by_user, milliseconds

_SQUARES = SquareGrid(800.0)  # §4.7.3: "the size of a square region, it is set to 800 meters"


def area_coverage(
    original: Traces,
    protected: Traces,
    grid=_SQUARES,  # square cells of 800 m; any object with a method cells(lat, lng)
    window: float | None = None,  # s; if given, a cell counts per time window, as in Accio's program; None: the thesis
) -> pd.DataFrame:
    """Area coverage of Equations (4.10) to (4.13), one row per user, with C(T) the cells that contain a record of T::

        precision = |C(T) ∩ C(T')| / |C(T')|      recall = |C(T) ∩ C(T')| / |C(T)|      f_score = 2 · P · R / (P + R)

    Only records count, not the lines between them (4.10). Without a common cell, precision, recall and F-score are 0. An erased
    trace T' has recall 0 and F-score 0. Its precision, 0/0, is 1, as in the author's program: it claims no false cell.

    The grid determines the plane: ``SquareGrid(800, "mercator")`` is the author's lattice. Positions outside a grid (−1) form
    one ordinary cell. With ``window`` a cell counts once per window of that many seconds, counted from 1970-01-01 UTC.

    Departures from the paper: none. The author's program exchanges precision and recall on the square grid (the F-score is the
    same).

    >>> import numpy as np
    >>> from mobpriv import GeoI, load
    >>> traces = load("city", max_users=3).traces
    >>> protected = GeoI().protect(traces, np.random.default_rng(1))
    >>> area_coverage(traces, protected)["f_score"].round(2).tolist()
    [0.9, 0.89, 0.91]
    """
    if not callable(getattr(grid, "cells", None)):
        raise ValueError(f"grid must have a method cells(lat, lng), as SquareGrid has (got {grid!r})")
    if window is not None:
        positive("window", window, "s", least=0.001, hint="; None: the whole trace")
    ranges = row_ranges(original, protected)
    before, after = (_visited(traces, ranges.users, grid, window) for traces in (original, protected))
    common = before.merge(after)
    c, c_after, c_common = (np.bincount(table["user"], minlength=len(ranges.users)) for table in (before, after, common))
    precision = np.where(c_after > 0, c_common / np.maximum(c_after, 1), 1.0)
    # 2 P R / (P + R) simplified: 0 without a common cell, where the formula is 0/0
    f_score = 2 * c_common / (c + c_after)
    return pd.DataFrame({"precision": precision, "recall": c_common / c, "f_score": f_score}, index=ranges.users)


def _visited(traces: Traces, users: pd.Index, grid, window: float | None) -> pd.DataFrame:
    """The cells C(T) of Equation (4.10) for every user: one row per user (her position in ``users``) and cell (and window)."""
    if window is None:
        maps = heat_maps(traces, grid)
        user = np.repeat(users.get_indexer(maps.users), np.diff(maps.counts.indptr))
        return pd.DataFrame({"user": user, "cell": maps.cells[maps.counts.indices]})
    owners, offsets = by_user(traces)
    cells = np.asarray(grid.cells(traces["lat"].to_numpy(), traces["lng"].to_numpy()), np.int64)
    user = np.repeat(users.get_indexer(owners), np.diff(offsets))
    return pd.DataFrame({"user": user, "cell": cells, "window": milliseconds(traces) // round(1000 * window)}).drop_duplicates()
