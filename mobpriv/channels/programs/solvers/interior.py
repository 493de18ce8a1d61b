"""An interior-point method for the linear programs (21), (22) and (24), written for their structure.

Source: Shokri, *Privacy Games*, PETS 2015. Method: predictor and corrector of Mehrotra (1992), as in Wright, Primal-Dual
Interior-Point Methods (1997), chapter 10.

For every observable o let p_o be the vector of p(o|s) over the n secrets and x_o its share of the distortion privacy:

    min  sum_o kappa_o . p_o - reward * sum_o x_o          kappa_o(s) = pi(s) c(o, s)

    s.t. g = p_o(target) - ratio * p_o(source) >= 0        ratio = exp(-eps d_eps), (24d)
         f_o(h) = F(h) . p_o - x_o >= 0                    F(h, s) = pi(s) d(h, s), (24b)

         sum_o p_o = 1                                     one row for every secret
         sum_o x_o - slack = d_m, slack >= 0               (24c)

Rows with ratio = 0 say p >= 0. All constraints but the last two involve one observable alone. So the Newton system of a
primal-dual method is one dense block of order n + 1 for every observable, joined by one system of order n + 1. This takes time
O(m n^3) and memory O(m n^2), where a general solver factors a matrix of n m rows. Only the c core secrets have pairs with each
other, which leaves blocks of order c + 1 and time O(m c n^2 + n^3), see `blocks`. Iterates stay strictly inside g, f >= 0. This
module does not certify the result: `certificate.lower_bound` computes a bound from the multipliers by weak duality.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from mobpriv.channels.programs.certificate import Multipliers, Program, gradient, lower_bound
from mobpriv.channels.programs.solvers import blocks as newton
from mobpriv.channels.programs.solvers import points
from mobpriv.channels.programs.solvers.points import Point, Warm, slacks

MAX_STEPS = 150
"""Newton steps after which the method ends; 15 to 40 are usual."""
_STALLED = 8
"""Successive steps that improve neither side after which the method ends."""
_SMALL = 2_000_000
"""Observables × secrets², below which one thread solves a program."""
_TO_BOUNDARY = 0.995
"""Share of the way to the nearest constraint that a step may go."""


# with many small blocks BLAS threads wait for one another: 10 to 100 times slower
@threadpool_limits.wrap(limits=1, user_api="blas")
def solve(program: Program, gap: float, warm: Warm | None = None) -> tuple[np.ndarray, Multipliers]:
    """Columns P (m, n) of the channel, strictly inside every constraint, and the multipliers of the best lower bound.

    Stops at value - bound <= gap * |value|, or when rounding prevents progress. `warm` is read at the start and written during
    the iterations.
    """
    # another thread of a page that runs beside others, or for work of a few milliseconds, costs more than it gains
    count = min(newton.THREAD_PARTS, numba.get_num_threads())
    if count == 1 or program.kappa.size * program.kappa.shape[1] < _SMALL:
        return _solve(program, gap, warm, map)
    with ThreadPoolExecutor(count) as threads:
        return _solve(program, gap, warm, threads.map)


def _solve(program: Program, gap: float, warm: Warm | None, for_each: Callable) -> tuple[np.ndarray, Multipliers]:
    point = (warm and points.restart(program, warm)) or points.start(program)
    blocks = newton.Blocks(program, for_each)
    ahead = [] if warm is None else list(points.WAYPOINTS)
    best, value, bound, stalled = (point.P, None), np.inf, -np.inf, 0
    for _ in range(MAX_STEPS):
        multipliers = Multipliers(point.pairs, point.attacks, point.nu)
        new_value = float(np.vdot(program.kappa, point.P)) - program.reward * float(point.x.sum())
        new_bound = lower_bound(program, multipliers)
        stalled = 0 if new_value < value or new_bound > bound else stalled + 1
        if new_value < value:
            value, best = new_value, (point.P.copy(), best[1])
        if new_bound > bound:
            bound, best = new_bound, (best[0], multipliers.copy())
        passed = [waypoint for waypoint in ahead if value - bound <= waypoint * abs(value)]
        for waypoint in passed:  # a step may pass several waypoints; an older point is the better start for those far behind
            if waypoint == passed[-1] or waypoint not in warm.points:
                warm.points[waypoint] = deepcopy(point)
        ahead = ahead[len(passed) :]
        closed = value - bound <= gap * max(abs(value), np.finfo(float).tiny)
        if closed or stalled > _STALLED or not _step(program, point, blocks):
            break
    return best


@np.errstate(all="ignore")  # at the limit of rounding slacks become 0 or nan: such points never replace the best
def _step(program: Program, point: Point, blocks: newton.Blocks) -> bool:
    """One predictor and corrector step, in place; False if rounding makes a block impossible to factor."""
    joined = _joined(program, point, blocks)
    if joined is None:
        return False
    step = _direction(program, point, blocks, joined, np.zeros_like(point.g), np.zeros_like(point.f), 0.0)
    a, b = _lengths(program, point, step, 1.0)
    total = point.pairs @ point.g + np.vdot(point.attacks, point.f) + point.slack * point.nu
    after = (point.pairs + b * step.pairs) @ (point.g + a * step.g)
    after += np.vdot(point.attacks + b * step.attacks, point.f + a * step.f)
    after += (point.slack + a * step.slack) * (point.nu + b * step.nu)
    target = (after / total) ** 3 * total / (point.g.size + point.f.size + (program.d_m is not None))
    pairs, attacks = (target - step.g * step.pairs) / point.g, (target - step.f * step.attacks) / point.f
    step = _direction(program, point, blocks, joined, pairs, attacks, target - step.slack * step.nu)
    if not np.isfinite(step.P).all():
        return False
    a, b = _lengths(program, point, step, _TO_BOUNDARY)
    for side, length in (("P x slack g f", a), ("pairs attacks y nu", b)):
        for name in side.split():
            setattr(point, name, getattr(point, name) + length * getattr(step, name))
    return True


def _lengths(program: Program, point: Point, step: Point, share: float) -> tuple[float, float]:
    """Step lengths of the primal and the dual side: `share` of the distance to the first zero, at most 1."""
    primal = [share, (-step.g / point.g).max(), (-step.f / point.f).max(initial=0.0)]
    dual = [share, (-step.pairs / point.pairs).max(), (-step.attacks / point.attacks).max(initial=0.0)]
    if program.d_m is not None:
        primal.append(-step.slack / point.slack)
        dual.append(-step.nu / point.nu)
    return share / max(primal), share / max(dual)


def _joined(program: Program, point: Point, blocks: newton.Blocks) -> np.ndarray | None:
    """The factor of the system for y and nu that joins the observables' blocks."""
    total, n = blocks.factor(point.pairs / point.g, point.attacks / point.f), point.P.shape[1]
    if total is None:
        return None
    if program.d_m is None:
        return newton.join(total[:n, :n])
    total[n, n] += point.slack / point.nu
    return newton.join(total)


def _direction(program: Program, point: Point, blocks: newton.Blocks, joined: np.ndarray, pairs, attacks, slack) -> Point:
    """The Newton direction that moves the products of slacks and multipliers to g * pairs, f * attacks and `slack`."""
    (m, n), size = point.P.shape, len(joined)
    moved = np.zeros((m, n + bool(len(program.F))))
    moved[:, :n] = point.y - program.kappa + gradient(m, n, pairs, *program.pairs)
    if len(program.F):
        moved[:, : blocks.c] += attacks @ blocks.F
        moved[:, n] = program.reward + point.nu - attacks.sum(axis=1)
    blocks.solve(moved)
    right = -moved.sum(axis=0)
    right[:n] += 1 - point.P.sum(axis=0)  # rounding only
    if program.d_m is not None:
        right[n] += program.d_m - point.x.sum() + slack / point.nu
    prices = np.zeros(moved.shape[1])
    prices[:size] = newton.solve_joined(joined, right[:size])
    answers = np.tile(prices, (m, 1))
    blocks.solve(answers)
    moved += answers
    dP = np.ascontiguousarray(moved[:, :n])
    dx = moved[:, n] if len(program.F) else np.zeros(m)
    dg, df = slacks(dP, *program.pairs), dP[:, : blocks.c] @ blocks.F.T - dx[:, None]
    nu = float(prices[n]) if program.d_m is not None else 0.0
    dslack = (slack - point.slack * nu) / point.nu - point.slack if program.d_m is not None else 0.0
    dpairs = pairs - point.pairs - point.pairs / point.g * dg
    dattacks = attacks - point.attacks - point.attacks / point.f * df
    return Point(dP, dx, dslack, dpairs, dattacks, prices[:n], nu, dg, df, point.numbers)
