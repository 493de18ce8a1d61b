"""The linear programs (28) and (29) of Appendix A (Shokri 2015), with the simplex method of HiGHS.

Variables: q(ŝ|o), estimate after estimate within each observable, and y, which is minimised. Rows: one simplex Σ_ŝ q(ŝ|o) = 1
an observable, then the rows "≤ y", one a secret (28b) or one a pair of secret and estimate (29b). Errors are scaled to [0, 1].

Few of the S·E rows of (29) bind (346 of 6 320 at 80 cells), so they are added as they are needed: a quarter of the time.
Every row has S·E or O entries, and no way around them was needed: at 80 cells (28) takes 0.3 s and (29) 8 s, at 30 cells
0.3 s together. For hundreds of cells these two attacks are out of reach here.
"""

from typing import NamedTuple

import highspy
import numpy as np

GAP = 1e-6  # relative: a wider bracket around the optimum is an error
ROUNDING = 1e-12  # of the largest error, where y itself is 0
ROWS_AT_ONCE = 8  # rows of (29) an estimate gets at most in one round


class MinMax(NamedTuple):
    """A min-max attack: q (O, E), the y it reaches and the bound below which no attack can go, both in the unit of d."""

    attack: np.ndarray
    y: float
    bound: float


def solve(channel: np.ndarray, error: np.ndarray, by_pair: bool) -> MinMax:
    """(28), or (29) if ``by_pair``; every observable occurs and some error is positive. RuntimeError if the gap stays open."""
    unit = error.max()
    program = _Program(channel, error / unit, by_pair)
    while True:
        found = program.optimum()
        if found.y - found.bound <= GAP / 100 * found.y + ROUNDING or not program.add_violated(found):
            break
    if found.y - found.bound > GAP * found.y + ROUNDING:
        raise RuntimeError(f"the solver left a gap: y = {found.y * unit:.9g}, but only {found.bound * unit:.9g} is proved")
    return MinMax(found.attack, float(found.y * unit), float(found.bound * unit))


class _Program:
    def __init__(self, channel, error, by_pair):
        self.channel, self.error, self.by_pair = channel, error, by_pair
        self.secrets, self.estimates = error.shape
        self.observables = channel.shape[1]
        self.solver = highspy.Highs()
        for option, value in {"output_flag": False, "solver": "simplex", "threads": 1}.items():
            self.solver.setOptionValue(option, value)
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self.solver.setOptionValue(option, 1e-9)
        self.solver.passModel(self._simplices())
        self.rows = np.empty((0, 2), np.int64)  # (s, ŝ) of the rows "≤ y"; in (28b), which sums over ŝ, ŝ is 0
        if by_pair:
            farthest = np.argsort(-error, axis=0, kind="stable")[:ROWS_AT_ONCE]
            self._add(self._positive(farthest))
        else:
            self._add(np.column_stack([np.arange(self.secrets), np.zeros(self.secrets, np.int64)]))

    def optimum(self) -> MinMax:
        """The optimum under the rows so far: the attack, its true y over all rows, and a bound that its duals prove."""
        self.solver.run()
        status = self.solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"the solver stopped early: {self.solver.modelStatusToString(status)}")
        solution = self.solver.getSolution()
        attack = np.asarray(solution.col_value)[:-1].reshape(self.observables, self.estimates).clip(0)
        attack /= attack.sum(1, keepdims=True)
        # weights λ ≥ 0 that sum to at most 1 prove y ≥ Σ_o min_ŝ Σ_s λ p(o|s) d(ŝ, s): an average is below a maximum
        weight = (-np.asarray(solution.row_dual)[self.observables :]).clip(0)
        weight /= max(weight.sum(), 1.0)
        if self.by_pair:
            weighted = np.zeros_like(self.error)
            weighted[tuple(self.rows.T)] = weight
            weighted *= self.error
        else:
            weighted = weight[:, None] * self.error
        bound = (self.channel.T @ weighted).min(1).sum()
        return MinMax(attack, self._errors(attack).max(), bound)

    def add_violated(self, found: MinMax) -> bool:
        """Adds the rows of (29) that the attack breaks most, for every estimate; False if there are none."""
        if not self.by_pair:
            return False
        errors = self._errors(found.attack)
        errors[tuple(self.rows.T)] = 0.0
        worst = np.argsort(-errors, axis=0, kind="stable")[:ROWS_AT_ONCE]
        pairs = self._positive(worst)
        pairs = pairs[errors[tuple(pairs.T)] > found.bound]
        self._add(pairs)
        return len(pairs) > 0

    def _errors(self, attack):
        """E_s, shape (S, 1), or E_{ŝ,s}, shape (S, E)."""
        if self.by_pair:
            return (self.channel @ attack) * self.error
        return np.einsum("so,so->s", self.channel, self.error @ attack.T)[:, None]

    def _positive(self, secrets):
        """The pairs (s, ŝ) of positive error among some secrets for each estimate (a column)."""
        pairs = np.column_stack([secrets.ravel(), np.tile(np.arange(self.estimates), len(secrets))])
        return pairs[self.error[tuple(pairs.T)] > 0]

    def _add(self, pairs):
        s, estimate = pairs.T
        if self.by_pair:
            q = np.arange(self.observables) * self.estimates + estimate[:, None]
            values = self.channel[s] * self.error[s, estimate][:, None]
        else:
            q = np.tile(np.arange(self.observables * self.estimates), (len(pairs), 1))
            values = np.einsum("so,se->soe", self.channel, self.error).reshape(len(pairs), -1)
        columns = np.column_stack([q, np.full(len(pairs), self.observables * self.estimates)])
        values = np.column_stack([values, np.full(len(pairs), -1.0)])
        never, zero = np.full(len(pairs), -highspy.kHighsInf), np.zeros(len(pairs))
        starts = np.arange(len(pairs)) * columns.shape[1]
        self.solver.addRows(len(pairs), never, zero, columns.size, starts, columns.ravel(), values.ravel())
        self.rows = np.concatenate([self.rows, pairs])

    def _simplices(self) -> highspy.HighsLp:
        """min y with q(·|o) on its simplex for every o, before any row "≤ y"."""
        program = highspy.HighsLp()
        entries = self.observables * self.estimates
        program.num_col_, program.num_row_ = entries + 1, self.observables
        program.col_cost_ = np.append(np.zeros(entries), 1.0)
        program.col_lower_ = np.zeros(entries + 1)
        program.col_upper_ = np.full(entries + 1, highspy.kHighsInf)
        program.row_lower_ = program.row_upper_ = np.ones(self.observables)
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = np.append(np.arange(entries + 1), entries)
        program.a_matrix_.index_ = np.repeat(np.arange(self.observables), self.estimates)
        program.a_matrix_.value_ = np.ones(entries)
        return program
