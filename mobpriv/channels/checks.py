"""Checks of the arrays that this package takes; each error states the rule, the value and the place.

Arrays are indexed by the secret first: prior (S,), channel (S, O), cost (S, O), error (S, E), metric (S, S).
"""

import numba
import numpy as np

SUM_TOLERANCE = 1e-9  # probabilities sum to 1 within this
_SIDE_TOLERANCE = 1e-9  # share by which rounding may lengthen a side of a triangle
MEMORY, HOURS = 8e9, 1.0
"""Bytes and hours that one channel may take. The limit is half the memory of a computer of 16 GB. A scenario solves dozens of
channels a user, so channels of one hour take days.
"""
MATRICES, _CUBES = 12, 1
"""Numbers held at once to find an optimal channel, per S² for S secrets and per V³ for V secrets that occur. Measured: 11 and 7
at 1,200 and 2,700 secrets; 1 and 0.6 at 200 and 300 that occur.
"""
OF_ALL, OF_VISITED = 1.5e-9, 2.6e-6
"""Seconds on one core, per S³ for S secrets and per V³ for V secrets that occur. Measured: 28 s at 2,700 secrets of which 60
occur; 21 s and 31 s at 300 of which 200 and 300 do.
"""


def prior(values, several: bool = False) -> np.ndarray:
    """Check a prior π, shape (S,): finite, non-negative, sums to 1 within 1e-9. With ``several`` also one a row, (users, S)."""
    values = np.asarray(values, float)
    if values.ndim not in ((1, 2) if several else (1,)) or not values.size:
        shape = "(S,), or (users, S) for several, none empty" if several else "(S,), S ≥ 1"
        raise ValueError(f"a prior is one probability a secret, shape {shape} (got shape {values.shape})")
    if values.ndim == 2:
        _probabilities(values, "prior", lambda u, s: f"in row {u}, of secret {s}", lambda u: f"row {u} of the priors")
    else:
        _probabilities(values[None], "prior", lambda _, s: f"of secret {s}", lambda _: "the prior")
    return values


def channel(values, secrets: int | None = None) -> np.ndarray:
    """Check a channel p(o|s), shape (S, O): every row is a probability distribution; ``secrets`` is the S it must have."""
    values = matrix(values, "channel", rows=secrets)
    _probabilities(values, "channel", lambda s, o: f"at secret {s}, observable {o}", lambda s: f"row {s} of the channel")
    return values


def matrix(values, name: str, rows: int | None = None, columns: int | None = None, negative: bool = True) -> np.ndarray:
    """Check a matrix: finite, two dimensions, neither empty; with the given numbers of rows and columns, if given."""
    values = np.asarray(values, float)
    if values.ndim != 2 or not values.size:
        raise ValueError(f"{name} must be a matrix with at least one row and one column (got shape {values.shape})")
    for axis, (wanted, what) in enumerate([(rows, "rows"), (columns, "columns")]):
        if wanted is not None and values.shape[axis] != wanted:
            raise ValueError(f"{name} must have {wanted} {what} (got shape {values.shape})")
    _refuse(~np.isfinite(values), values, f"{name} must be finite")
    if not negative:
        _refuse(values < 0, values, f"{name} must not be negative")
    return values


def metric(values, name: str = "d", size: int | None = None) -> np.ndarray:
    """Check a metric, shape (n, n): zero on the diagonal, positive off it, symmetric, with the triangle inequality.

    All n³ triples are checked (0.7 s at n = 1200 on one core); sides may differ by 1e-9 of their length.
    """
    d = matrix(values, name, rows=size)
    n = len(d)
    if d.shape != (n, n):
        raise ValueError(f"{name} must be square, one row and one column a secret (got shape {d.shape})")
    diagonal = np.eye(n, dtype=bool)
    _refuse(diagonal & (d != 0), d, f"the distance of {name} from a secret to itself must be 0")
    _refuse(~diagonal & (d <= 0), d, f"the distance of {name} between two secrets must be positive")
    crooked = np.argwhere(np.abs(d - d.T) > _SIDE_TOLERANCE * np.abs(d))
    if len(crooked):
        i, j = crooked[0]
        raise ValueError(f"{name} must be symmetric ({name}[{i}, {j}] = {d[i, j]:.6g}, {name}[{j}, {i}] = {d[j, i]:.6g})")
    i, k, j = _detour(np.ascontiguousarray(d), _SIDE_TOLERANCE)
    if i >= 0:
        raise ValueError(
            f"{name} breaks the triangle inequality at ({i}, {k}, {j}): {name}[{i}, {j}] = {d[i, j]:.9g} is longer than "
            f"{name}[{i}, {k}] + {name}[{k}, {j}] = {d[i, k]:.9g} + {d[k, j]:.9g}; "
            "take the shortest paths (scipy.sparse.csgraph.shortest_path) to make it a metric"
        )
    return d


def epsilon(value: float) -> float:
    if not 0 < value < np.inf:
        raise ValueError(f"epsilon must be positive and finite, in 1 over the metric's unit (got {value})")
    return float(value)


def affordable(secrets: int, visited: int = 1) -> None:
    """Refuse a problem whose optimal channel is estimated to take more than MEMORY or HOURS; ``visited``: those that occur."""
    memory = 8.0 * (MATRICES * float(secrets) ** 2 + _CUBES * float(visited) ** 3)
    hours = (OF_ALL * float(secrets) ** 3 + OF_VISITED * float(visited) ** 3) / 3600
    if memory > MEMORY or hours > HOURS:
        raise ValueError(
            f"an optimal channel for {secrets:,} cells, at least {visited:,} of them visited, takes about {memory / 1e9:,.3g} GB and "
            f"{hours:,.2g} hours, more than the {MEMORY / 1e9:g} GB or the {HOURS:g} hour allowed: choose fewer columns and rows"
        )


def fits(rows: int, columns: int, what: str) -> None:
    """Refuse a matrix of more than MEMORY before it is allocated."""
    if 8.0 * rows * columns > MEMORY:
        raise ValueError(
            f"{what} would be a matrix of {rows:,} × {columns:,} numbers, {8e-9 * rows * columns:,.3g} GB, more than the "
            f"{MEMORY / 1e9:g} GB allowed: choose fewer cells"
        )


@numba.njit(cache=True)
def _detour(d, tolerance):
    """The first (i, k, j) with d(i, j) > d(i, k) + d(k, j), or (-1, -1, -1)."""
    n = len(d)
    for k in range(n):
        for i in range(n):
            first = d[i, k]
            worst = 0.0
            for j in range(i):
                worst = max(worst, d[i, j] * (1.0 - tolerance) - d[k, j] - first)
            if worst > 0.0:
                for j in range(i):
                    if d[i, j] * (1.0 - tolerance) - d[k, j] - first > 0.0:
                        return i, k, j
    return -1, -1, -1


def _probabilities(rows: np.ndarray, name: str, where, row_name) -> None:
    """Raise where an entry is no probability or a row does not sum to 1."""
    for wrong, rule in [(~np.isfinite(rows), "finite"), (rows < 0, "not negative")]:
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise ValueError(f"the probabilities of the {name} must be {rule} (got {rows[i, j]} {where(i, j)})")
    sums = rows.sum(1)
    off = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
    if len(off):
        raise ValueError(f"{row_name(off[0])} must sum to 1 within {SUM_TOLERANCE:g} (got {sums[off[0]]:.12g})")


def _refuse(wrong: np.ndarray, values: np.ndarray, rule: str) -> None:
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ValueError(f"{rule} (got {values[i, j]} at [{i}, {j}])")
