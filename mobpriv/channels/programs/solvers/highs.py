"""The linear programs of `interior` and the worst-case objective (12), solved by HiGHS: slower, but for all of them.

Source: Shokri, *Privacy Games*, PETS 2015.

Variables are p(o|s), x_o and, for (12), the largest conditional cost z. The rows have multipliers of at least 0:

    p_o(target) - ratio * p_o(source) >= 0       (24d); where ratio = 0 the variable's own bound p >= 0

    F(h) . p_o - x_o >= 0                        (24b)
    sum_o x_o >= d_m                             (24c)
    z - sum_o c(o, s) p_o(s) >= 0                (12), one row a secret
    sum_o p_o = 1

HiGHS's interior-point method "ipx" without crossover runs first: points inside the feasible set violate few of the pairs that
are not listed. It stops at about 1e-10 of its own measures, which does not always reach the gap required. Then the simplex
method runs, with and without HiGHS's presolve, which drops tiny numbers. If epsilon is so large that the channel nearly always
reports the true cell, the cost (12) may be less than about 1e-3 of the largest cost. There none of them may reach a relative
gap of 1e-8.

HiGHS may also violate a row slightly, and a chain of rows by more. So the point is moved towards a constant channel until it
satisfies all rows, including (24c). This module does not certify the result: see `certificate`.
"""

import highspy
import numpy as np
from scipy import sparse

from mobpriv.channels.programs import reductions
from mobpriv.channels.programs.certificate import Multipliers, Program, lower_bound, value

MAX_STEPS = 500
"""Steps after which HiGHS ends its interior-point method (20 to 60 are usual); the simplex method may take `PIVOTS` times as many."""
PIVOTS = 100
_HOPELESS = {highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible}
_TOLERANCE = 1e-10
"""Tolerance of the rows, the multipliers and the gap between the two objectives, in HiGHS's own scaling: its smallest."""


def solve(program: Program, gap: float) -> tuple[np.ndarray, Multipliers]:
    """Columns P (m, n) of a channel that satisfies every listed constraint, and multipliers.

    (24c) holds up to the tolerance of a certificate. The methods are tried until one reaches value - bound <= gap * |value|;
    the attempt with the narrowest gap is returned. A method that is stopped early returns its current point. RuntimeError with
    HiGHS's message if there is none.
    """
    lp = _Rows(program)
    best, narrowest, status = None, np.inf, None
    for method, presolve in [("ipx", "on"), ("simplex", "on"), ("simplex", "off")]:
        solution, status = _run(lp.model(), method, gap, presolve)
        P = None if solution is None else lp.channel(solution.col_value)
        if P is None:
            continue
        multipliers = lp.multipliers(solution.row_dual)
        cost, bound = value(program, P), lower_bound(program, multipliers)
        if best is None or cost - bound < narrowest:
            best, narrowest = (P, multipliers), cost - bound
        if narrowest <= gap * abs(cost):
            break
    if best is None:
        raise RuntimeError(f"HiGHS found no channel ({status}) in {MAX_STEPS} steps, {MAX_STEPS * PIVOTS} pivots")
    return best


def least_largest(cost: np.ndarray) -> tuple[np.ndarray, float]:
    """The mixture (O,) of observables that minimises max_s sum_o q(o) c(o, s), and a lower bound of that cost.

    The bound is the cost of the cheapest observable under the least favourable prior, given by HiGHS's multipliers.
    """
    secrets, observables = cost.shape
    unit = np.abs(cost).max() or 1.0
    rows = sparse.csc_matrix(np.block([[-cost / unit, np.ones((secrets, 1))], [np.ones(observables), np.zeros(1)]]))
    model = lp_of(rows, np.append(np.zeros(observables), 1.0), np.append(np.zeros(secrets), 1.0), equalities=1, free=1)
    solution, status = _run(model, "simplex", 0.0)
    if solution is None:
        raise RuntimeError(f"HiGHS found no lottery ({status})")
    lottery = np.clip(solution.col_value[:-1], 0, None)
    worst = np.clip(solution.row_dual[:-1], 0, None)
    worst = worst / worst.sum() if worst.sum() > 0 else np.full(secrets, 1 / secrets)
    return lottery / lottery.sum(), float((worst @ cost).min())


class _Rows:
    """The program's rows and variables, scaled so that the largest cost and the largest error are 1."""

    def __init__(self, program: Program):
        self.program = program
        self.m, self.n = program.kappa.shape
        self.bound = program.pairs.ratio > 0  # the other constraints say p >= 0
        self.stretch = 1 / np.sqrt(np.maximum(program.pairs.ratio[self.bound], 1e-20))  # HiGHS rounds entries below 1e-12 to 0
        self.error_unit = np.abs(program.F).max(initial=0.0) or 1.0
        self.cost_unit = np.abs(program.kappa if program.worst is None else program.worst).max() or 1.0
        blocks = [self._pairs(), self._attacks(), self._distortion(), self._worst(), self._sums()]
        self.rows = [len(right) for _, right in blocks]
        self.matrix = sparse.vstack([rows for rows, _ in blocks], format="csc")
        self.right = np.concatenate([right for _, right in blocks])

    def model(self) -> highspy.HighsLp:
        costs = [np.zeros(self.m * self.n), np.zeros(self.attacked), np.ones(self.averse)]
        if not self.averse:
            costs[0] = self.program.kappa.ravel() / self.cost_unit
        costs[1] -= self.program.reward * self.error_unit / self.cost_unit
        return lp_of(self.matrix, np.concatenate(costs), self.right, equalities=self.n, free=self.attacked + self.averse)

    @property
    def attacked(self) -> int:
        return self.m if len(self.program.F) else 0

    @property
    def averse(self) -> int:
        return int(self.program.worst is not None)

    def _wide(self, p, x=None, z=None) -> sparse.csr_matrix:
        """Rows over all variables from the parts of each kind."""
        parts = [p, sparse.csr_matrix((p.shape[0], self.attacked)) if x is None else x]
        return sparse.hstack([*parts, sparse.csr_matrix((p.shape[0], self.averse)) if z is None else z], format="csr")

    def _pairs(self):
        first, source, target, ratio = self.program.pairs
        o = np.repeat(np.arange(self.m), np.diff(first))[self.bound]
        count = len(o)
        columns = np.concatenate([o * self.n + target[self.bound], o * self.n + source[self.bound]])
        values = np.concatenate([self.stretch, -self.stretch * ratio[self.bound]])
        p = sparse.csr_matrix((values, (np.tile(np.arange(count), 2), columns)), (count, self.m * self.n))
        return self._wide(p), np.zeros(count)

    def _attacks(self):
        F = sparse.csr_matrix(self.program.F / self.error_unit)
        x = sparse.kron(sparse.eye(self.attacked), -np.ones((len(self.program.F), 1)))
        p = sparse.kron(sparse.eye(self.m), F) if self.attacked else sparse.csr_matrix((0, self.m * self.n))
        return self._wide(p, x if self.attacked else None), np.zeros(p.shape[0])

    def _distortion(self):
        count = int(self.program.d_m is not None)
        p, x = sparse.csr_matrix((count, self.m * self.n)), np.ones((count, self.attacked))
        return self._wide(p, sparse.csr_matrix(x)), np.full(count, (self.program.d_m or 0.0) / self.error_unit)

    def _worst(self):
        if not self.averse:
            return self._wide(sparse.csr_matrix((0, self.m * self.n))), np.zeros(0)
        p = sparse.hstack([sparse.diags(-c) for c in self.program.worst / self.cost_unit])
        return self._wide(p, None, np.ones((self.n, 1))), np.zeros(self.n)

    def _sums(self):
        return self._wide(sparse.hstack([sparse.eye(self.n)] * self.m)), np.ones(self.n)

    def channel(self, values) -> np.ndarray | None:
        """The columns, moved just far enough to a constant channel to satisfy every listed pair; None if they are 0."""
        P = np.clip(np.asarray(values)[: self.m * self.n].reshape(self.m, self.n), 0, None)
        if not P.sum(axis=0).all():
            return None
        P /= P.sum(axis=0)
        mean = P.mean(axis=1)
        constant = 0.99 * mean + 0.01 / self.m  # little weight on columns that are hardly used
        first, source, target, ratio = self.program.pairs
        o = np.repeat(np.arange(self.m), np.diff(first))
        missing = ratio * P[o, source] - P[o, target]
        broken = np.flatnonzero(missing > 0)
        to_spare = constant[o[broken]] * (1 - ratio[broken])
        share = (missing[broken] / (missing[broken] + to_spare)).max(initial=0.0)
        return reductions.distorting(P + share * (constant[:, None] - P), self.program)

    def multipliers(self, duals) -> Multipliers:
        unit = self.cost_unit / self.error_unit
        pairs, attacks, nu, secrets, _ = np.split(np.clip(duals, 0, None), np.cumsum(self.rows)[:-1])
        full = np.zeros(len(self.bound))
        full[self.bound] = pairs * self.stretch * self.cost_unit
        secrets = secrets if self.averse else None
        return Multipliers(full, unit * attacks.reshape(self.m, -1), float(unit * nu.sum()), secrets)


def lp_of(rows: sparse.csc_matrix, costs, right, equalities: int, free: int) -> highspy.HighsLp:
    """min costs . v with rows v >= right, the last rows equal to it, v >= 0 but for the last `free` variables."""
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = rows.shape
    lp.col_cost_ = costs
    lp.col_lower_ = np.where(np.arange(len(costs)) < len(costs) - free, 0.0, -highspy.kHighsInf)
    lp.col_upper_ = np.full(len(costs), highspy.kHighsInf)
    lp.row_lower_ = right
    lp.row_upper_ = np.where(np.arange(len(right)) < len(right) - equalities, highspy.kHighsInf, right)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    return lp


def _run(model: highspy.HighsLp, method: str, gap: float, presolve: str = "on"):
    """The solution, or None if there is none, and HiGHS's status message."""
    solver = highspy.Highs()
    options = {"output_flag": False, "threads": 1, "solver": method, "run_crossover": "off", "presolve": presolve}
    options |= {"ipm_iteration_limit": MAX_STEPS, "simplex_iteration_limit": MAX_STEPS * PIVOTS}
    options |= {"small_matrix_value": 1e-12, "ipm_optimality_tolerance": max(_TOLERANCE, gap / 10)}
    options |= {"primal_feasibility_tolerance": _TOLERANCE, "dual_feasibility_tolerance": _TOLERANCE}
    for option, setting in options.items():
        if solver.setOptionValue(option, setting) != highspy.HighsStatus.kOk:
            raise RuntimeError(f"HiGHS does not take {option} = {setting}")
    solver.passModel(model)
    solver.run()
    solution, status = solver.getSolution(), solver.getModelStatus()
    valid = solution.value_valid and solution.dual_valid and status not in _HOPELESS
    return solution if valid else None, solver.modelStatusToString(status)
