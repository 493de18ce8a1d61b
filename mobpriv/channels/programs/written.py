"""The programs as the paper writes them, row by row, for a few cells: the reference for the faster solvers.

Source: Shokri, *Privacy Games*, PETS 2015.

Nothing is left out unless the caller asks for it, and no row is derived from another. HiGHS's answer is used without a
certificate. Beyond some fifty cells (24d) alone has more rows than HiGHS solves in a minute; use
:mod:`mobpriv.channels.optimal` for those.

Arrays have the secret first: prior (S,), cost c (S, O), error d(h, s) (S, estimates), d_epsilon (S, S).
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Written(NamedTuple):
    cost: float  # of an optimal channel, (11)
    inequalities: int  # rows without those that make probabilities sum to 1


def optimum(
    prior, cost, error=None, d_m=None, d_epsilon=None, epsilon=None, secrets=None, observables=None, estimates=None, pairs=None
) -> Written:
    """The optimal cost of (21) with ``error`` and ``d_m``, of (22) with ``d_epsilon`` and ``epsilon``, of (24) with all four.

    ``secrets``, ``observables``, ``estimates`` (cells) and ``pairs`` (two columns of positions in ``secrets``) select the
    constraints to keep; None keeps everything. Raises RuntimeError with HiGHS's message if it finds no optimum.
    """
    prior, cost = np.asarray(prior, float), np.asarray(cost, float)
    if (error is None) != (d_m is None) or (d_epsilon is None) != (epsilon is None) or (d_m is None and epsilon is None):
        raise ValueError("error goes with d_m, d_epsilon with epsilon, and one of the two pairs must be given")
    secrets = np.arange(len(prior)) if secrets is None else np.asarray(secrets)
    prior, cost = prior[secrets], cost[secrets] if observables is None else cost[np.ix_(secrets, observables)]
    n, m = cost.shape
    blocks, right = [], []  # blocks @ (p, x) <= right; p is numbered o * n + s
    if epsilon is not None:
        s, t = np.nonzero(~np.eye(n, dtype=bool)) if pairs is None else pairs
        k = np.arange(len(s))
        # e^(-eps d) p(o|s) <= p(o|t): the same as p(o|s) <= e^(eps d) p(o|t), without coefficients that HiGHS treats as infinite
        pair_rows = sparse.csr_matrix((np.exp(-epsilon * d_epsilon[secrets[s], secrets[t]]), (k, s)), (len(s), n))
        pair_rows -= sparse.csr_matrix((np.ones(len(s)), (k, t)), (len(s), n))
        blocks.append(sparse.hstack([sparse.kron(sparse.eye(m), pair_rows), sparse.csr_matrix((m * len(s), m))]))  # (24d)
        right.append(np.zeros(m * len(s)))
    if d_m is not None:
        kept = error[secrets] if estimates is None else error[np.ix_(secrets, estimates)]
        rows, limits = answers(prior, kept, m, d_m)  # (24b), (24c)
        blocks.append(rows)
        right.append(limits)
    solution = linprog(
        np.r_[(prior[:, None] * cost).T.ravel(), np.zeros(m)],
        A_ub=sparse.vstack(blocks).tocsr(),
        b_ub=np.concatenate(right),
        A_eq=sparse.hstack([simplices(n, m), sparse.csr_matrix((n, m))]).tocsr(),
        b_eq=np.ones(n),
        bounds=[(0, None)] * (n * m) + [(None, None) if d_m is not None else (0, 0)] * m,
        options=TOLERANCES,
    )
    if solution.status != 0:
        raise RuntimeError(f"HiGHS found no optimum of the program as written: {solution.message}")
    return Written(float(solution.fun), sum(map(len, right)))


def simplices(n: int, m: int):
    """Constraint that each secret's probabilities sum to 1; p is numbered o * n + s."""
    return sparse.kron(np.ones((1, m)), sparse.eye(n))


def answers(prior, error, m: int, d_m: float) -> tuple:
    """Constraints (21b) = (24b) for every observable and estimate, and (21c) = (24c), with their right sides."""
    F = -(prior[:, None] * error).T
    rows = sparse.hstack([sparse.kron(sparse.eye(m), F), sparse.kron(sparse.eye(m), np.ones((len(F), 1)))])
    total = sparse.hstack([sparse.csr_matrix((1, m * len(prior))), -sparse.csr_matrix(np.ones((1, m)))])
    return sparse.vstack([rows, total]).tocsr(), np.r_[np.zeros(m * len(F)), -d_m]


def with_best_response(prior, cost, error, d_m: float, answer) -> float:
    """The least cost of (20) over the channels to which the attack ``answer`` is a best response of error ``d_m`` or more.

    ``answer`` holds a column of ``error`` for each observable; the cost is infinite if there is no such channel. The least cost
    over all answers is the value of (20): a mixed best response mixes deterministic ones, all of one error (33).
    """
    prior, cost, error = (np.asarray(a, float) for a in (prior, cost, error))
    n, m = cost.shape
    rows, right = [], []
    for o, estimate in np.ndindex(m, error.shape[1]):  # no other estimate has a smaller error
        row = np.zeros((n, m))
        row[:, o] = prior * (error[:, answer[o]] - error[:, estimate])
        rows.append(row.ravel())
        right.append(0.0)
    rows.append(-(prior[:, None] * error[:, list(answer)]).ravel())
    right.append(-d_m)
    solution = linprog((prior[:, None] * cost).ravel(), rows, right, np.kron(np.eye(n), np.ones(m)), np.ones(n))
    return float(solution.fun) if solution.status == 0 else np.inf
