"""Heat-map alteration, Algorithm 1 of HMC (thesis §4.4): a heat map is changed until another user's is nearer than its owner's own.

Maps are shares of records per cell. H is the map to protect; among the profiles P of the known users U is the nearest to H and V
the one that H is to be taken for.
"""

from typing import NamedTuple

import numba
import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from mobpriv.attacks.ap import topsoe
from mobpriv.profiles import HeatMaps

NOT_NEEDED, CONFUSED, REPLACED, UNKNOWN = range(4)
OUTCOMES = ("not needed", "confused", "replaced", "not known")


class Alteration(NamedTuple):
    """What Algorithm 1 made of the heat maps of some traces.

    ``users`` has one row a trace (the index): ``outcome`` ("not needed": the nearest profile is somebody else's already; "not known":
    her own is not among the profiles; "confused": the target's profile is nearer than her own now; "replaced": no such map
    was found, the target's own map stands for it), ``target`` (the user she is to be taken for; missing where no alteration is
    needed), ``iterations``, ``coverage`` (F-score of the target's cells and hers), and the Topsoe divergences ``own_before``,
    ``own``, ``target_before``, ``target_after`` of her map to her own profile and to the target's, in nats.
    """

    users: pd.DataFrame
    cells: np.ndarray  # one column of shares each: the grid's ids
    shares: csr_array  # H' (traces, cells), rows sum to 1


def alter(
    maps: HeatMaps,
    known: HeatMaps,
    owner: np.ndarray,  # of each trace: its user's row in `known`, -1 where she is not there
    step: float,
    least: float,
    patience: int,
    margin: float,
    unlike: str,
) -> Alteration:
    """Algorithm 1 for every row of ``maps``; the parameters are those of :class:`mobpriv.mechanisms.HMC`."""
    d = topsoe(maps, known)
    outcome = np.where(owner < 0, UNKNOWN, np.where(d.argmin(axis=1) == owner, CONFUSED, NOT_NEEDED))
    at_risk = np.flatnonzero(outcome == CONFUSED)
    coverage = area_coverage(maps, known)
    target = _targets(coverage, d, owner, at_risk)
    cells = np.union1d(maps.cells, known.cells)
    h, p = _on(cells, maps), _on(cells, known)
    records = np.asarray(maps.counts.sum(axis=1), float)
    rows, iterations = [h[[i]] for i in range(len(owner))], np.zeros(len(owner), np.int64)
    after = np.full((2, len(owner)), np.nan)
    for i in at_risk:
        own, hers = _dense_at(h[[i]].indices, p, owner[i]), h[[i]]
        like = _dense_at(hers.indices, p, target[i])
        added = max(step * records[i], least) / records[i]
        share, iterations[i], after[0, i], after[1, i], done = _iterate(
            hers.data, own, like, added, patience, margin, unlike == "exclusion"
        )
        if done:
            rows[i] = csr_array((share, hers.indices, [0, len(share)]), shape=(1, len(cells)))
        else:
            outcome[i], rows[i] = REPLACED, p[[target[i]]]
            after[:, i] = _divergence_of(p, target[i], owner[i]), 0.0
    every = np.arange(len(owner))
    needed = target >= 0
    own_before = np.where(owner >= 0, d[every, owner], np.nan)
    names = np.where(needed, known.users.to_numpy(object)[target], None)
    columns = {
        "outcome": np.array(OUTCOMES, object)[outcome],
        "target": names,
        "iterations": iterations,
        "coverage": np.where(needed, coverage[every, target], np.nan),
        "own_before": own_before,
        "own": np.where(needed, after[0], own_before),
        "target_before": np.where(needed, d[every, target], np.nan),
        "target_after": after[1],
    }
    shares = csr_array((0, len(cells))) if not rows else csr_array(_stacked(rows, len(cells)))
    return Alteration(pd.DataFrame(columns, index=maps.users), cells, shares)


def area_coverage(maps: HeatMaps, known: HeatMaps) -> np.ndarray:
    """AC, Equations (4.11) to (4.13), of every map with every profile: the F-score of their sets of cells, (maps, known)."""
    cells = np.union1d(maps.cells, known.cells)
    a, b = (_on(cells, m) for m in (maps, known))
    sizes = np.diff(a.indptr)[:, None] + np.diff(b.indptr)
    a, b = (csr_array((np.ones(len(m.data)), m.indices, m.indptr), shape=m.shape) for m in (a, b))
    return 2 * (a @ b.T).toarray() / sizes


def _targets(coverage: np.ndarray, d: np.ndarray, owner: np.ndarray, at_risk: np.ndarray) -> np.ndarray:
    """The row of V, Equation (4.6), for those at risk, -1 for the others; of several with one coverage the nearest heat map."""
    target = np.full(len(owner), -1)
    for i in at_risk:
        others = np.delete(np.arange(d.shape[1]), owner[i])
        best = others[coverage[i, others] == coverage[i, others].max()]
        target[i] = best[d[i, best].argmin()]
    return target


def _on(cells: np.ndarray, maps: HeatMaps) -> csr_array:
    """The shares of maps in columns for ``cells``, which hold all of theirs; indices sorted."""
    shares = maps.shares
    moved = csr_array(
        (shares.data, np.searchsorted(cells, maps.cells)[shares.indices], shares.indptr), (len(maps.users), len(cells))
    )
    moved.sort_indices()
    return moved


def _stacked(rows: list, columns: int) -> csr_array:
    indptr = np.cumsum([0, *(len(r.data) for r in rows)])
    data, indices = (np.concatenate([getattr(r, name) for r in rows]) for name in ("data", "indices"))
    return csr_array((data, indices, indptr), shape=(len(rows), columns))


def _dense_at(columns: np.ndarray, shares: csr_array, row: int) -> np.ndarray:
    """The shares of one row in the given columns."""
    own = slice(shares.indptr[row], shares.indptr[row + 1])
    place = np.searchsorted(shares.indices[own], columns)
    there = np.append(shares.indices[own], -1)[place] == columns
    return np.where(there, np.append(shares.data[own], 0.0)[place], 0.0)


def _divergence_of(shares: csr_array, one: int, other: int) -> float:
    own = slice(shares.indptr[one], shares.indptr[one + 1])
    return _divergence(shares.data[own], _dense_at(shares.indices[own], shares, other))


@numba.njit(cache=True)
def _divergence(h, p):
    """Topsoe, Equation (3.3), from the shares in the cells of h: cells that one map alone has need no logarithm."""
    d = 2 * np.log(2.0)
    for i in range(len(h)):
        if h[i] > 0 and p[i] > 0:
            d += h[i] * np.log(h[i]) + p[i] * np.log(p[i]) - (h[i] + p[i]) * np.log(h[i] + p[i])
    return max(d, 0.0)


@numba.njit(cache=True)
def _iterate(h, u, v, added, patience, margin, exclusion):
    """Lines 5 to 16 of Algorithm 1, in the cells of H; ``added`` = a / n. Returns H', iterations, d(H', U), d(H', V), found?"""
    h, weight = h.copy(), np.empty(len(h))
    own, like = _divergence(h, u), _divergence(h, v)
    vain = taken = 0
    while own - like <= margin and vain < patience and taken < 5 * patience:
        total = 0.0
        for i in range(len(h)):
            unlike = (1.0 if u[i] == 0 else 0.0) if exclusion else 1 - u[i]
            weight[i] = h[i] * v[i] * unlike  # (4.7)
            total += weight[i]
        if total <= 0:  # no cell to reinforce: H' would be H for ever
            break
        for i in range(len(h)):
            h[i] = (h[i] + added * weight[i] / total) / (1 + added)
        new_own, new_like = _divergence(h, u), _divergence(h, v)
        vain = 0 if new_own - new_like > own - like else vain + 1
        own, like = new_own, new_like
        taken += 1
    return h, taken, own, like, own - like > margin
