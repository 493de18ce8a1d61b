"""Heat-map alteration, Algorithm 1 of HMC: change a heat map until another user's profile is nearer than its owner's own.

Source: Maouche, thesis, §4.4.

Maps are shares of records per cell. H is the map to protect. U is the nearest to H among the profiles P of the known users, and
V is the target, to which H shall be attributed.
"""

from typing import NamedTuple

import numba
import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from mobpriv.attacks.ap import topsoe
from mobpriv.traces.profiles import HeatMaps

_NOT_NEEDED, CONFUSED, REPLACED, _UNKNOWN = range(4)
ALTERATION_OUTCOMES = ("not needed", "confused", "replaced", "not known")
TARGETS = ("users", "mean", "population")
ROUNDINGS = ("up", "nearest", "remainder")
ROUNDED_AT = ("end", "rule", "iteration")


class Alteration(NamedTuple):
    """The result of Algorithm 1 for the heat maps of some traces.

    ``users`` has one row a trace (the index) and the columns:

    * ``outcome``:
      * "not needed": enough other users' profiles are nearer already;
      * "not known": her own is not among the profiles;
      * "confused": the target's profile is now nearer than her own;
      * "replaced": no such map was found, and the target's own map is used;
    * ``target``: the target of the attribution, of several users the one with the best coverage; missing if no alteration is
      needed or the target is the population;
    * ``iterations``; ``coverage``: F-score of the target's cells and hers;
    * ``own_before``, ``own``, ``target_before``, ``target_after``: Topsoe divergences of her map to her own profile and to the
      target's (the farthest of several), in nats;
    * ``nearer``: how many other users' profiles are nearer to H' than her own; all of them if her own is not known;
    * ``held``: the number of records whose shares H' holds.
    """

    users: pd.DataFrame
    cells: np.ndarray  # one column of shares each: the grid's ids
    shares: csr_array  # H' (traces, cells), rows sum to 1
    targets: pd.DataFrame  # pairs of a trace and a user towards whose map it is altered: columns trace and target


def alter(
    maps: HeatMaps,
    known: HeatMaps,
    owner: np.ndarray,  # for each trace its user's row in `known`, -1 if she is not known
    step: float,
    least_step: float,
    patience: int,
    margin: float,
    unlike: str,
    k: int = 1,
    target: str = "users",
    rounding: str = "up",
    rounded_at: str = "end",
) -> Alteration:
    """Apply Algorithm 1 to every row of ``maps``; the parameters are those of :class:`mobpriv.mechanisms.HMC`."""
    d = topsoe(maps, known)
    required = k if target == "users" else 1  # number of other users that must be nearer
    outcome = np.where(owner < 0, _UNKNOWN, np.where(users_nearer(d, owner) < required, CONFUSED, _NOT_NEEDED))
    at_risk = np.flatnonzero(outcome == CONFUSED)
    coverage = heat_map_coverage(maps, known)
    chosen = _targets(coverage, d, owner, at_risk, 0 if target == "population" else k)
    cells = np.union1d(maps.cells, known.cells)
    h, p = _in_cells(cells, maps), _in_cells(cells, known)
    all_shares = np.asarray(p.sum(axis=0)).ravel() if target == "population" else None
    records = np.asarray(maps.counts.sum(axis=1), float)
    rows, iterations = [_row(h, i) for i in range(len(owner))], np.zeros(len(owner), np.int64)
    before, after = np.full(len(owner), np.nan), np.full((2, len(owner)), np.nan)
    rule = patience, margin, unlike == "exclusion", ROUNDINGS.index(rounding), ROUNDED_AT.index(rounded_at)
    for i in at_risk:
        original, owner_profile = rows[i], _row(p, owner[i])
        if target == "population":
            target_maps = [_population_map(all_shares, owner_profile, original)]
        else:
            target_maps = [_row(p, j) for j in chosen[i]]
        combined_target = _mean(target_maps)
        if target == "mean":
            target_maps = [combined_target]
        v, *compared = (_dense_at(original.cells, m) for m in (combined_target, owner_profile, *target_maps))
        compared = np.array(compared)
        before[i] = _divergences(original.shares, compared, _entropy_terms(compared))[1:].max()
        share, iterations[i], held, done = _iterate(original.shares, v, compared, records[i], step, least_step, *rule)
        if done:
            rows[i], records[i] = _Map(original.cells, share), held
        else:
            outcome[i], rows[i] = REPLACED, combined_target
        compared = np.array([_dense_at(rows[i].cells, m) for m in (owner_profile, *target_maps)])
        own, *others = _divergences(rows[i].shares, compared, _entropy_terms(compared))
        after[:, i] = own, max(others)
    shares = _stacked(rows, len(cells))
    each_trace = np.arange(len(owner))
    first = np.array([target_rows[0] if len(target_rows) else -1 for target_rows in chosen], int)
    owner_distance = np.where(owner >= 0, d[each_trace, owner], np.nan)
    columns = {
        "outcome": np.array(ALTERATION_OUTCOMES, object)[outcome],
        "target": np.where(first >= 0, known.users.to_numpy(object)[first], None),
        "iterations": iterations,
        "coverage": np.where(first >= 0, coverage[each_trace, first], np.nan),
        "own_before": owner_distance,
        "own": np.where(np.isnan(after[0]), owner_distance, after[0]),
        "target_before": before,
        "target_after": after[1],
        "nearer": users_nearer(topsoe(HeatMaps(maps.users, cells, shares), known), owner),
        "held": np.rint(records).astype(np.int64),
    }
    pairs = [(trace, known.users[j]) for trace, target_rows in zip(maps.users, chosen, strict=True) for j in target_rows]
    targets = pd.DataFrame(pairs, columns=["trace", "target"])
    return Alteration(pd.DataFrame(columns, index=maps.users), cells, shares, targets)


def users_nearer(d: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """How many users are nearer to each trace than its owner; ties go to the first known; all if the owner is not known."""
    owner_distance = d[np.arange(len(owner)), owner][:, None]
    first = np.arange(d.shape[1]) < owner[:, None]
    return np.where(owner < 0, d.shape[1], ((d < owner_distance) | ((d == owner_distance) & first)).sum(axis=1))


def heat_map_coverage(maps: HeatMaps, known: HeatMaps) -> np.ndarray:
    """AC, Equations (4.11) to (4.13), of every map with every profile: the F-score of their sets of cells, (maps, known)."""
    cells = np.union1d(maps.cells, known.cells)
    a, b = (_in_cells(cells, m) for m in (maps, known))
    sizes = np.diff(a.indptr)[:, None] + np.diff(b.indptr)
    a, b = (csr_array((np.ones(len(m.data)), m.indices, m.indptr), shape=m.shape) for m in (a, b))
    return 2 * (a @ b.T).toarray() / sizes


def _targets(coverage: np.ndarray, d: np.ndarray, owner: np.ndarray, at_risk: np.ndarray, k: int) -> list[np.ndarray]:
    """The rows of V, Equation (4.6), for those at risk: the ``k`` others of best coverage; ties go to the nearest."""
    chosen = [np.zeros(0, np.int64)] * len(owner)
    for i in at_risk:
        others = np.delete(np.arange(d.shape[1]), owner[i])
        chosen[i] = others[np.lexsort((d[i, others], -coverage[i, others]))[:k]]
    return chosen


class _Map(NamedTuple):
    """One heat map: columns in rising order, and the shares there."""

    cells: np.ndarray
    shares: np.ndarray


def _row(maps: csr_array, i: int) -> _Map:
    part = slice(*maps.indptr[i : i + 2])
    return _Map(maps.indices[part], maps.data[part])


def _stacked(maps: list[_Map], cells: int) -> csr_array:
    """One row for each map."""
    columns, shares = (np.concatenate(parts) for parts in zip(_Map(np.zeros(0, np.int32), np.zeros(0)), *maps, strict=True))
    return csr_array((shares, columns, np.cumsum([0, *(len(m.cells) for m in maps)])), shape=(len(maps), cells))


def _mean(maps: list[_Map]) -> _Map:
    """The mean of the shares of several maps."""
    if len(maps) == 1:
        return maps[0]
    cells = np.unique(np.concatenate([m.cells for m in maps]))
    return _Map(cells, sum(_dense_at(cells, m) for m in maps) * (1 / len(maps)))


def _population_map(all_shares: np.ndarray, owner_profile: _Map, original: _Map) -> _Map:
    """The mean map of all other known users, restricted to the cells of her trace, in shares that sum to 1."""
    others = all_shares[original.cells] - _dense_at(original.cells, owner_profile)
    others = np.maximum(others, 0.0)  # in a cell that is hers alone rounding may leave a negative share
    if not others.sum() > 1e-9:
        others = np.ones(len(others))  # no other user was ever there: any map of these cells will do
    return _Map(original.cells, others / others.sum())


def _in_cells(cells: np.ndarray, maps: HeatMaps) -> csr_array:
    """The shares of maps in columns for ``cells``, a superset of theirs; indices sorted."""
    shares = maps.shares
    aligned = csr_array(
        (shares.data, np.searchsorted(cells, maps.cells)[shares.indices], shares.indptr), (len(maps.users), len(cells))
    )
    aligned.sort_indices()
    return aligned


def _dense_at(cells: np.ndarray, row: _Map) -> np.ndarray:
    """The shares of a map in the given columns."""
    position = np.searchsorted(row.cells, cells)
    present = np.append(row.cells, -1)[position] == cells
    return np.where(present, np.append(row.shares, 0.0)[position], 0.0)


@numba.njit(cache=True)
def _entropy_terms(shares):
    """x ln x of every share; 0 for 0."""
    terms = np.zeros(shares.shape)
    x, out = shares.ravel(), terms.ravel()
    for i in range(len(x)):
        if x[i] > 0:
            out[i] = x[i] * np.log(x[i])
    return terms


@numba.njit(cache=True)
def _divergences(h, maps, terms):
    """Topsoe, Equation (3.3), of h to each of ``maps``, whose p ln p are ``terms``, from the shares in the cells of h.

    Cells that only one map has need no logarithm.
    """
    d, h_terms = np.empty(len(maps)), _entropy_terms(h)
    for k in range(len(maps)):
        total = 2 * np.log(2.0)
        for i in range(len(h)):
            if h[i] > 0 and maps[k, i] > 0:
                total += h_terms[i] + terms[k, i] - (h[i] + maps[k, i]) * np.log(h[i] + maps[k, i])
        d[k] = max(total, 0.0)
    return d


@numba.njit(cache=True)
def _lead(h, maps, terms):
    """How much nearer h is to the farthest of the targets than to U, the first row of ``maps``."""
    d = _divergences(h, maps, terms)
    return d[0] - d[1:].max()


@numba.njit(cache=True)
def rounded_records(wanted, rounding):
    """Whole numbers of records (as floats) for ``wanted``; ``rounding`` is an index of :data:`ROUNDINGS`.

    It rounds up, so that no cell is lost, or to the nearest, or down. When it rounds down, the rest goes to the largest
    remainders (ties go to the first), so that the sum is preserved.
    """
    up = np.ceil(wanted - 1e-9)  # 1e-9, here and below: rounding error of a product of shares and records
    if rounding == 0:
        return up
    if rounding == 1:
        return np.floor(wanted + 0.5 + 1e-9)
    out = np.floor(wanted + 1e-9)
    missing = int(np.round(wanted.sum() - out.sum()))
    out[np.argsort(np.round(out - wanted, 9), kind="mergesort")[:missing]] += 1
    return out


@numba.njit(cache=True)
def _rounded(h, n, rounding):
    """The shares after rounding the records of a map, and their number; the map itself if no record is left."""
    counts = rounded_records(h * n, rounding)
    total = counts.sum()
    return (counts / total, total) if total > 0 else (h, n)


@numba.njit(cache=True)
def _iterate(h, v, maps, n, step, least_step, patience, margin, exclusion, rounding, rounded_at):
    """Lines 5 to 16 of Algorithm 1, in the cells of H; ``maps`` are U and each target that must be nearer than U.

    Returns H', the iterations, the number of records whose shares H' holds, and whether the targets are nearer. If the rule
    tests whole records, H' is the rounded map.
    """
    h, weight, u, terms = h.copy(), np.empty(len(h)), maps[0], _entropy_terms(maps)
    lead = _lead(h, maps, terms)
    without_progress = iterations = 0
    while True:
        tested, tested_records, tested_lead = h, n, lead
        if rounded_at == 1:
            tested, tested_records = _rounded(h, n, rounding)
            tested_lead = _lead(tested, maps, terms)
        done = tested_lead > margin
        if done or without_progress >= patience or iterations >= 5 * patience:
            break
        total = 0.0
        for i in range(len(h)):
            factor = (1.0 if u[i] == 0 else 0.0) if exclusion else 1 - u[i]
            weight[i] = h[i] * v[i] * factor  # (4.7)
            total += weight[i]
        if total <= 0:  # no cell to reinforce: H would never change
            break
        added = max(step, least_step / n)  # a / n
        for i in range(len(h)):
            h[i] = (h[i] + added * weight[i] / total) / (1 + added)
        if rounded_at == 2:  # as the program: n before the addition, so that only rounding makes the map grow
            h, n = _rounded(h, n, rounding)
        new_lead = _lead(h, maps, terms)
        without_progress = 0 if new_lead > lead else without_progress + 1
        lead = new_lead
        iterations += 1
    return tested, iterations, tested_records, done
