"""The linear programs (28) and (29) of Appendix A (Shokri 2015), solved by HiGHS.

Variables are q(ŝ|o), estimate after estimate within each observable, and y, which is minimised. The first rows are one simplex
Σ_ŝ q(ŝ|o) = 1 an observable. The rows "≤ y" follow, one a secret (28b) or one a pair of secret and estimate (29b). Errors are
scaled to [0, 1].

Program (28) uses the simplex method (0.3 s at 80 cells and observables). Program (29) uses the interior-point method, because
nearly all of its rows are close to binding. It takes 1 s at 48 cells and 20 s at 80 (simplex: 12 s and more than a minute).
Both hold S·O·E numbers: they are meant for at most about a hundred cells.
"""

from typing import NamedTuple

import highspy
import numpy as np
from scipy import sparse

from mobpriv.channels.programs.solvers.highs import lp_of

_RELATIVE_GAP = 1e-6  # relative: a wider bracket around the optimum is an error
_ABSOLUTE_GAP = 1e-12  # of the largest error, where y itself is 0
MAX_STEPS, PIVOTS = 1000, 1_000_000  # of the interior-point and of the simplex method, after which HiGHS gives up


class MinMax(NamedTuple):
    """A min-max attack: q (O, E), the y it reaches, and a lower bound of y for any attack; both in the unit of d."""

    attack: np.ndarray
    y: float
    bound: float


def solve(channel: np.ndarray, error: np.ndarray, by_pair: bool) -> MinMax:
    """Solve (28), or (29) if ``by_pair``; all observables occur, some error is positive. RuntimeError if the gap stays open."""
    unit = error.max()
    program = _Program(channel, error / unit, by_pair)
    for method in ("ipx", "simplex") if by_pair else ("simplex",):  # simplex: slower for (29), but it ends at a vertex
        status = program.run(method)
        if status == highspy.HighsModelStatus.kOptimal:
            candidate = program.solution()
            if candidate.y - candidate.bound <= _RELATIVE_GAP * candidate.y + _ABSOLUTE_GAP:
                return MinMax(candidate.attack, float(candidate.y * unit), float(candidate.bound * unit))
            status = f"y = {candidate.y * unit:.9g}, of which only {candidate.bound * unit:.9g} is proved"
    raise RuntimeError(f"the solver stopped early: {status}")


class _Program:
    def __init__(self, channel, error, by_pair):
        self.channel, self.error, self.by_pair = channel, error, by_pair
        self.secrets, self.estimates = error.shape
        self.observables = channel.shape[1]
        self.solver = highspy.Highs()
        options = {"output_flag": False, "threads": 1, "run_crossover": "off"}
        options |= {"ipm_iteration_limit": MAX_STEPS, "simplex_iteration_limit": PIVOTS}
        for option, value in options.items():
            self.solver.setOptionValue(option, value)
        for tolerance in ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "ipm_optimality_tolerance"):
            self.solver.setOptionValue(tolerance, 1e-9)
        self.solver.passModel(self._simplices())
        self._add_rows()

    def run(self, method: str) -> highspy.HighsModelStatus:
        self.solver.setOptionValue("solver", method)
        self.solver.run()
        return self.solver.getModelStatus()

    def solution(self) -> MinMax:
        """The attack found, its true y over all rows, and the bound that its duals prove."""
        solution = self.solver.getSolution()
        attack = np.asarray(solution.col_value)[:-1].reshape(self.observables, self.estimates).clip(0)
        attack /= attack.sum(1, keepdims=True)
        # weights λ ≥ 0 that sum to at most 1 prove y ≥ Σ_o min_ŝ Σ_s λ p(o|s) d(ŝ, s): an average is below a maximum
        weight = (-np.asarray(solution.row_dual)[self.observables :]).clip(0)
        weight /= max(weight.sum(), 1.0)
        if self.by_pair:
            weighted = np.zeros_like(self.error)
            weighted[self.pairs] = weight
            weighted *= self.error
        else:
            weighted = weight[:, None] * self.error
        bound = (self.channel.T @ weighted).min(1).sum()
        return MinMax(attack, self._errors(attack).max(), bound)

    def _errors(self, attack):
        """E_s, shape (S, 1), or E_{ŝ,s}, shape (S, E)."""
        if self.by_pair:
            return (self.channel @ attack) * self.error
        return np.einsum("so,so->s", self.channel, self.error @ attack.T)[:, None]

    def _add_rows(self):
        """Add the rows "≤ y"; for (29) only those with an error, because the others say 0 ≤ y."""
        entries = self.observables * self.estimates
        if self.by_pair:
            s, estimate = self.pairs = np.nonzero(self.error)
            q = np.arange(self.observables) * self.estimates + estimate[:, None]
            values = self.channel[s] * self.error[s, estimate][:, None]
        else:
            q = np.tile(np.arange(entries), (self.secrets, 1))
            values = np.einsum("so,se->soe", self.channel, self.error).reshape(self.secrets, -1)
        rows = len(q)
        columns = np.column_stack([q, np.full(rows, entries)])
        values = np.column_stack([values, np.full(rows, -1.0)])
        never, starts = np.full(rows, -highspy.kHighsInf), np.arange(rows) * columns.shape[1]
        self.solver.addRows(rows, never, np.zeros(rows), columns.size, starts, columns.ravel(), values.ravel())

    def _simplices(self) -> highspy.HighsLp:
        """min y with q(·|o) on its simplex for every o, before any row "≤ y"."""
        sums = sparse.kron(sparse.eye(self.observables), np.ones((1, self.estimates)))
        rows = sparse.hstack([sums, sparse.csc_matrix((self.observables, 1))], format="csc")
        costs = np.append(np.zeros(sums.shape[1]), 1.0)
        return lp_of(rows, costs, np.ones(self.observables), equalities=self.observables, free=0)
