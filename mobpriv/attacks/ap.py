"""AP-Attack: compare heat maps of all points of a trace by the Topsoe divergence (thesis §3.2).

Source: Maouche, Ben Mokhtar, Bouchenak, *AP-Attack: A Novel User Re-identification Attack on Mobility Datasets*, MobiQuitous
2017.
"""

from dataclasses import dataclass, field
from typing import Self

import numba
import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from mobpriv.base.logarithm import log
from mobpriv.base.ranges import one_of
from mobpriv.ground.grid import S2Grid, SquareGrid
from mobpriv.traces.profiles import HeatMaps, heat_maps
from mobpriv.traces.table import Traces

_MAX_DIVERGENCE = {"nats": 2 * np.log(2), "bits": 1.0}


@dataclass(frozen=True)
class APAttack:
    """The nearest heat map by the Topsoe divergence, Equation (3.3)::

        d(X, Y) = Σ_i X_i ln(2 X_i / (X_i + Y_i)) + Y_i ln(2 Y_i / (X_i + Y_i)),   0 ln 0 = 0

    X_i is the share of the trace's records in cell i. The divergence lies in [0, 2 ln 2]. Its maximum ``largest`` normalises
    the similarity s = 1 − d/largest of §3.2. Variants:

    * ``unit="bits"`` gives d / (2 ln 2), the Jensen-Shannon divergence in bits of the author's later program; both units rank
      alike.
    * ``plane="mercator"`` takes the author's grid.
    * ``grid`` may be any object with a method ``cells(lat, lng)``, for instance ``S2Grid(13)`` or :class:`mobpriv.traces.areas.Areas`.
      What such a grid calls outside (−1) is one cell like the others, shared by all records outside;
      :func:`mobpriv.traces.areas.records_inside` removes them first.

    >>> from mobpriv import load
    >>> from mobpriv.traces.table import split_in_half
    >>> known, secret = split_in_half(load("city", max_users=3).traces, "set")
    >>> APAttack().fit(known).rank(secret).round(2)
    user  c001  c002  c003
    user
    c001  0.07  0.11  0.13
    c002  0.13  0.04  0.11
    c003  0.16  0.11  0.04
    """

    cell: float = 800.0  # m, side of a heat map's square cells
    plane: str = "ground"
    unit: str = "nats"
    grid: SquareGrid | S2Grid | None = None  # None: square cells of side ``cell``
    known_: HeatMaps | None = field(default=None, repr=False, compare=False)

    name = "AP-Attack"

    def __post_init__(self):
        one_of("unit", self.unit, _MAX_DIVERGENCE)
        squares = SquareGrid(self.cell, self.plane)  # checks cell and plane
        if self.grid is None:
            object.__setattr__(self, "grid", squares)
        elif not callable(getattr(self.grid, "cells", None)):
            raise ValueError(f"grid must have a method cells(lat, lng), as SquareGrid has (got {self.grid!r})")

    @property
    def largest(self) -> float:
        """The dissimilarity of two heat maps without a common cell."""
        return _MAX_DIVERGENCE[self.unit]

    def fit(self, known: Traces) -> Self:
        """The attack with the known users' heat maps."""
        return type(self)(self.cell, self.plane, self.unit, self.grid, heat_maps(known, self.grid))

    def rank(self, anonymous: Traces) -> pd.DataFrame:
        """Topsoe divergences, one row an anonymous trace, one column a known user; smaller is more alike."""
        if self.known_ is None:
            raise ValueError("fit the attack on known traces first")
        maps = heat_maps(anonymous, self.grid)
        d = topsoe(maps, self.known_)
        return pd.DataFrame(d * (self.largest / _MAX_DIVERGENCE["nats"]), index=maps.users, columns=self.known_.users)


def topsoe(a: HeatMaps, b: HeatMaps) -> np.ndarray:
    """Topsoe divergences, Equation (3.3), in nats; shape (users of a, users of b).

    A cell that only one map has adds its share times ln 2, so that only common cells need a logarithm::

        d = 2 ln 2 + Σ_{i common} X_i ln X_i + Y_i ln Y_i − (X_i + Y_i) ln(X_i + Y_i)
    """
    cells = np.union1d(a.cells, b.cells)
    x, y = a.shares, b.shares
    y_of_cell = csr_array((y.data, np.searchsorted(cells, b.cells)[y.indices], y.indptr), (y.shape[0], len(cells))).tocsc()
    return _topsoe(
        x.data,
        np.searchsorted(cells, a.cells)[x.indices],
        x.indptr.astype(np.int64),
        y_of_cell.data,
        y_of_cell.indices.astype(np.int64),
        y_of_cell.indptr.astype(np.int64),
        y.shape[0],
        numba.get_num_threads(),
    )


@numba.njit(cache=True, parallel=True)
def _topsoe(x, x_cell, x_start, y, y_user, y_start, users, threads):
    """Each cell of a row meets the users who share it: the cells that only one map has cost nothing."""
    out = np.full((len(x_start) - 1, users), 2 * np.log(2.0))
    y_log = np.empty(len(y))
    for j in range(len(y)):
        y_log[j] = y[j] * log(y[j])
    for first in numba.prange(threads):
        terms = np.empty(users)
        for row in range(first, len(x_start) - 1, threads):
            d = out[row]
            for i in range(x_start[row], x_start[row + 1]):
                if not x[i] > 0:  # an altered map may keep a cell without a share
                    continue
                p, p_log = x[i], x[i] * log(x[i])
                of_cell = slice(y_start[x_cell[i]], y_start[x_cell[i] + 1])
                share, share_log, user = y[of_cell], y_log[of_cell], y_user[of_cell]
                for j in range(len(share)):  # a loop of its own: the compiler computes several terms at once
                    both = p + share[j]
                    terms[j] = p_log + share_log[j] - both * log(both)
                for j in range(len(user)):
                    d[user[j]] += terms[j]
            for column in range(users):
                d[column] = max(d[column], 0.0)
    return out
