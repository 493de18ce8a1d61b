"""The linear program (21) by generating its columns and rows: without (22b) an optimal channel is sparse.

Source: Shokri, *Privacy Games*, PETS 2015.

The notation is that of `interior`, with no pairs but p >= 0. The program of 211 secrets has 44,521 variables p(o|s) and 53,383
rows (21b) of 211 entries each; an optimal vertex needs about a thousand of both. The method is:

* solve a small program;
* add the variables of negative reduced cost and the rows that the solution violates;
* continue from the same basis (HiGHS, dual and primal simplex), until neither is left.

Then the multipliers prove the bound for all variables (`certificate.lower_bound`).
"""

import highspy
import numpy as np

from mobpriv.channels.programs.certificate import Multipliers, Program, lower_bound, value
from mobpriv.channels.programs.reductions import mended

ROUNDS = 300
"""Programs after which the last one is returned; 20 to 60 are usual."""
_NEAR, _LIKELY = 6, 6
"""The first program has, for every secret, its NEAR cheapest observables and the LIKELY likeliest of a constant channel."""
_TOLERANCE = 1e-10
"""Tolerance of rows and reduced costs, in a program whose errors are divided by d_max."""


class Stopped(RuntimeError):
    """HiGHS ended without an optimum, which may happen if d_m is d_max up to rounding, or tiny compared with the errors."""


def solve(program: Program, gap: float) -> tuple[np.ndarray, Multipliers]:
    """Columns P (m, n) of a channel with the distortion privacy required, and multipliers; see `interior.solve`."""
    d_max = float(program.F.sum(axis=1).min())
    # Subtract the error of the best guess without an observation: for any channel it sums to d_max over the observables.
    # A constant channel then has x = 0 for every d_m, and d_m = d_max leaves more than one point.
    uninformed = program.F[program.F.sum(axis=1).argmin()]
    restricted = _Restricted(program.kappa, (program.F - uninformed) / d_max, min(program.d_m / d_max - 1, 0.0))
    restricted.add_columns(_first_columns(program.kappa))
    restricted.add_rows(_first_rows(program))
    best, least, bound = None, np.inf, -np.inf
    for _ in range(ROUNDS):
        P, y, answers, nu = restricted.solve()
        multipliers = Multipliers(np.zeros(len(program.pairs.source)), answers, nu / d_max)
        lower = lower_bound(program, multipliers)
        P = _mended(P / P.sum(axis=0), program, d_max)
        cost = value(program, P)
        if best is None or lower > bound:
            bound, best = lower, (None if best is None else best[0], multipliers)
        if cost < least:
            least, best = cost, (P, best[1])
        columns, rows = restricted.negative(y, answers), restricted.broken()
        if least - bound <= gap * abs(least) or not (len(columns) or len(rows)):
            break
        restricted.add_columns(columns)
        restricted.add_rows(rows)
    return best


def _first_columns(kappa: np.ndarray) -> np.ndarray:
    """(o, s) of the first variables. They include a constant channel, so that the program is feasible."""
    m, n = kappa.shape
    chosen = np.zeros((m, n), dtype=bool)
    chosen[np.argsort(kappa, axis=0, kind="stable")[: min(_NEAR, m)], np.arange(n)] = True
    chosen[np.argsort(kappa.sum(axis=1), kind="stable")[: min(_LIKELY, m)]] = True
    return np.argwhere(chosen)


def _first_rows(program: Program) -> np.ndarray:
    """(o, h): for every observable the answers that are best if only its cheapest secret gives it, and if all do."""
    of_cheapest = program.F[:, program.kappa.argmin(axis=1)].argmin(axis=0)
    uninformed, every = np.full(len(of_cheapest), program.F.sum(axis=1).argmin()), np.arange(len(of_cheapest))
    return np.unique(np.concatenate([np.column_stack([every, h]) for h in (of_cheapest, uninformed)]), axis=0)


def _mended(P: np.ndarray, program: Program, d_max: float) -> np.ndarray:
    """Mix with a constant channel until the distortion privacy is d_m: it is concave, and d_max at a constant channel."""
    ap = (P @ program.F.T).min(axis=1).sum()
    nearly = _TOLERANCE if program.d_m > (1 - 1e-6) * d_max else 0.0  # a tiny gap would need a near-constant channel
    if ap >= min(program.d_m, d_max) - nearly * d_max:
        return P
    return mended(P, min(1.0, (program.d_m - ap) / (d_max - ap) * (1 + 1e-9) + 1e-15))


def _end_to_end(index: list[np.ndarray], entries: list[np.ndarray]) -> tuple:
    """Rows or columns as HiGHS takes them: how many entries, where each begins, and all of their places and values."""
    starts = np.cumsum([0, *map(len, index[:-1])], dtype=np.int32)
    places = np.concatenate(index).astype(np.int32)
    return len(places), starts, places, np.concatenate(entries)


class _Restricted:
    """The program with some of its variables and rows, in HiGHS. Rows: n sums, (21c), then (21b); columns: x, then p."""

    def __init__(self, kappa, F, d_m):
        self.kappa, self.F = kappa, F
        (m, n) = kappa.shape
        self.columns, self.rows = np.empty((0, 2), dtype=np.int64), np.empty((0, 2), dtype=np.int64)
        self.has_column, self.has_row = np.zeros((m, n), dtype=bool), np.zeros((m, len(F)), dtype=bool)
        self.highs = highspy.Highs()
        for name, setting in [
            ("output_flag", False),
            ("threads", 1),
            ("solver", "simplex"),
            ("primal_feasibility_tolerance", _TOLERANCE),
            ("dual_feasibility_tolerance", _TOLERANCE),
        ]:
            self.highs.setOptionValue(name, setting)
        none = np.empty(0, dtype=np.int32), np.empty(0)
        lower, upper = np.append(np.ones(n), d_m), np.append(np.ones(n), highspy.kHighsInf)
        self.highs.addRows(n + 1, lower, upper, 0, np.zeros(n + 1, dtype=np.int32), *none)
        every = np.arange(m, dtype=np.int32)
        free = np.full(m, highspy.kHighsInf)
        self.highs.addCols(m, np.zeros(m), -free, free, m, every, np.full(m, n, dtype=np.int32), np.ones(m))

    def add_columns(self, pairs: np.ndarray) -> None:
        if not len(pairs):
            return
        fixed = self.kappa.shape[1] + 1
        rows_of = [np.flatnonzero(self.rows[:, 0] == o) for o in range(len(self.kappa))]
        index = [np.append(s, fixed + rows_of[o]) for o, s in pairs]
        entries = [np.append(1.0, self.F[self.rows[rows_of[o], 1], s]) for o, s in pairs]
        zero, no_end = np.zeros(len(pairs)), np.full(len(pairs), highspy.kHighsInf)
        self.highs.addCols(len(pairs), self.kappa[pairs[:, 0], pairs[:, 1]], zero, no_end, *_end_to_end(index, entries))
        self.columns = np.concatenate([self.columns, pairs])
        self.has_column[pairs[:, 0], pairs[:, 1]] = True

    def add_rows(self, pairs: np.ndarray) -> None:
        if not len(pairs):
            return
        m = len(self.kappa)
        columns_of = [np.flatnonzero(self.columns[:, 0] == o) for o in range(m)]
        index = [np.append(o, m + columns_of[o]) for o, _ in pairs]
        entries = [np.append(-1.0, self.F[h, self.columns[columns_of[o], 1]]) for o, h in pairs]
        zero, no_end = np.zeros(len(pairs)), np.full(len(pairs), highspy.kHighsInf)
        self.highs.addRows(len(pairs), zero, no_end, *_end_to_end(index, entries))
        self.rows = np.concatenate([self.rows, pairs])
        self.has_row[pairs[:, 0], pairs[:, 1]] = True

    def solve(self):
        """P (m, n), the rows' prices y (n,), the attacks' multipliers (m, estimates) and that of (21c)."""
        (m, n) = self.kappa.shape
        self.highs.run()
        status, solution = self.highs.getModelStatus(), self.highs.getSolution()
        rows = n + 1 + len(self.rows)  # HiGHS refuses rows with entries above 1e15
        if status != highspy.HighsModelStatus.kOptimal or len(solution.row_dual) != rows:
            raise Stopped(f"HiGHS stopped at {self.highs.modelStatusToString(status)} in (21) by generation")
        values, duals = np.asarray(solution.col_value), np.asarray(solution.row_dual)
        self.P, self.x = np.zeros((m, n)), values[:m]
        self.P[self.columns[:, 0], self.columns[:, 1]] = np.maximum(values[m:], 0.0)
        answers = np.zeros(self.has_row.shape)
        answers[self.rows[:, 0], self.rows[:, 1]] = np.maximum(duals[n + 1 :], 0.0)
        return self.P, duals[:n], answers, max(float(duals[n]), 0.0)

    def negative(self, y: np.ndarray, answers: np.ndarray) -> np.ndarray:
        """(o, s) of missing variables with a negative reduced cost: the four lowest of every secret."""
        reduced = self.kappa - y - answers @ self.F
        reduced[self.has_column | (reduced > -_TOLERANCE)] = 0.0
        lowest = np.argsort(reduced, axis=0, kind="stable")[:4]
        chosen = np.zeros_like(self.has_column)
        chosen[lowest, np.arange(reduced.shape[1])] = True
        return np.argwhere(chosen & (reduced < 0))

    def broken(self) -> np.ndarray:
        """(o, h) of missing rows that the solution violates: the two most violated of every observable."""
        short = self.x[:, None] - self.P @ self.F.T
        short[self.has_row | (short < _TOLERANCE)] = 0.0
        worst = np.argsort(-short, axis=1, kind="stable")[:, :2]
        chosen = np.zeros_like(self.has_row)
        chosen[np.arange(len(short))[:, None], worst] = True
        return np.argwhere(chosen & (short > 0))
