"""Optimal channels beside a library solver on the same programs (peers): ``python benchmarks/bench_channels.py`` prints a table.

Cells of 15 × 8 km, a prior that is positive on some random cells, the Hamming cost, ε = 0.6 per km, d_m = 0.85 d_max, as in §9
of Shokri (PETS 2015). Each line is measured in a process of its own: the best of several runs after a small first one that
compiles; memory is the largest resident size of that process. The qif library is measured where it is installed (pip install qif).
HiGHS takes minutes on more than 60 cells that occur: it is measured up to there.
"""

import importlib.util
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # many small blocks: threads only wait for one another

import numpy as np

from mobpriv.channels import optimal
from mobpriv.channels.distances import euclidean, hamming
from mobpriv.channels.inference import prior_error
from mobpriv.channels.programs import relaxations
from mobpriv.channels.programs.certificate import GAP, PairConstraints, Program, lower_bound, value
from mobpriv.channels.programs.problem import ChannelProblem as Whole
from mobpriv.channels.programs.solvers import highs

SEED = 20150
EPSILON = 0.6e-3  # 1/m
SHARE = 0.85  # of d_max


class Problem(NamedTuple):
    prior: np.ndarray
    cost: np.ndarray
    d: np.ndarray
    d_m: float


class Case(NamedTuple):
    task: str
    version: str
    call: Callable  # of a Problem; returns cost and bound, nan where none is known
    columns: int
    rows: int
    support: int
    runs: int = 3


def area(columns: int, rows: int, support: int) -> Problem:
    """15 × 8 km; shares of the cells that occur drawn from a flat Dirichlet law."""
    rng, i = np.random.default_rng(SEED), np.arange(columns * rows)
    d = euclidean(np.column_stack([(i % columns + 0.5) * 15_000 / columns, (i // columns + 0.5) * 8_000 / rows]))
    prior = np.zeros(len(i))
    prior[rng.choice(len(i), support, replace=False)] = rng.dirichlet(np.ones(support))
    return Problem(prior, hamming(len(i)), d, SHARE * prior_error(prior, d))


def joint(p: Problem):
    found = optimal.joint(p.prior, p.cost, p.d, p.d_m, p.d, EPSILON).certificate
    return found.cost, found.bound


def differential(p: Problem):
    found = optimal.differential(p.prior, p.cost, p.d, EPSILON).certificate
    return found.cost, found.bound


def reduced(solver, limited: bool):
    """The same reductions with another solver inside."""

    def call(p: Problem):
        whole = Whole(p.prior, p.cost, EPSILON * p.d, p.d, p.d_m if limited else None)
        channel, bound, _ = relaxations.solve(whole, solver)
        return float(p.prior @ (channel * p.cost).sum(1)), bound

    return call


def unreduced(p: Problem):
    """(24) with all its rows."""
    n = len(p.prior)
    source, target = (np.tile(side, n) for side in np.nonzero(~np.eye(n, dtype=bool)))
    pairs = PairConstraints(np.arange(n + 1) * n * (n - 1), source, target, np.exp(-EPSILON * p.d[source, target]))
    program = Program(np.ascontiguousarray((p.prior[:, None] * p.cost).T), pairs, p.prior * p.d.T, p.d_m)
    P, multipliers = highs.solve(program, GAP)
    return value(program, P), lower_bound(program, multipliers)


def qif(p: Problem):
    """(22) by libqif (C++), which knows neither d_m nor a bound."""
    import qif

    channel = qif.mechanism.d_privacy.min_loss_given_d(
        p.prior, len(p.cost), lambda s, t: EPSILON * p.d[s, t], lambda s, o: p.cost[s, o]
    )
    return float(p.prior @ (channel * p.cost).sum(1)), np.nan


CASES = [
    Case("(24), 20 × 15 cells", "mobpriv joint", joint, 20, 15, 60),
    Case("(24), 20 × 15 cells", "peer: HiGHS ipx on the reduced program", reduced(highs, True), 20, 15, 60, 1),
    Case("(24), 20 × 15 cells", "mobpriv joint", joint, 20, 15, 100),
    Case("(24), 40 × 30 cells", "mobpriv joint", joint, 40, 30, 60),
    Case("(22), 20 × 15 cells, all occur", "mobpriv differential", differential, 20, 15, 300, 1),
    Case("(24), 10 × 8 cells", "mobpriv joint", joint, 10, 8, 30),
    Case("(24), 10 × 8 cells", "peer: HiGHS ipx on all rows", unreduced, 10, 8, 30, 1),
    Case("(22), 10 × 8 cells", "mobpriv differential", differential, 10, 8, 30),
]
if importlib.util.find_spec("qif"):
    CASES.append(Case("(22), 10 × 8 cells", "peer: qif", qif, 10, 8, 30, 1))


def measure(case: int) -> dict:
    """One line of the table; to be called in a fresh process."""
    c = CASES[case]
    c.call(area(4, 3, 6))
    problem, seconds = area(c.columns, c.rows, c.support), []
    for _ in range(c.runs):
        start = time.perf_counter()
        cost, bound = c.call(problem)
        seconds.append(time.perf_counter() - start)
    unit = 1024**2 if sys.platform != "darwin" else 1024**3  # ru_maxrss is in KB, on a Mac in bytes
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return {"seconds": min(seconds), "cost": cost, "gap": 1 - bound / cost, "memory": memory}


if __name__ == "__main__":
    wanted = [int(argument) for argument in sys.argv[1:]] or range(len(CASES))
    print("| program | version | cells that occur | seconds | cost | relative gap | memory (GB) |", flush=True)
    print("|---|---|---:|---:|---:|---:|---:|")
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for i, line in zip(wanted, pool.imap(measure, wanted), strict=True):
            task, version, *_, support, _ = CASES[i]
            print(
                f"| {task} | {version} | {support} | {line['seconds']:.2f} | {line['cost']:.9f} | {line['gap']:.1e} "
                f"| {line['memory']:.2f} |",
                flush=True,
            )
