"""An interior-point method for the linear programs (21), (22) and (24) of Shokri 2015, written for their structure.

For every observable o let p_o be the vector of p(o|s) over the n secrets and x_o its share of the distortion privacy:

    min  sum_o kappa_o . p_o - reward * sum_o x_o          kappa_o(s) = pi(s) c(o, s)
    s.t. g = p_o(target) - ratio * p_o(source) >= 0        ratio = exp(-eps d_eps), (24d); ratio = 0 says p >= 0
         f_o(h) = F(h) . p_o - x_o >= 0                    F(h, s) = pi(s) d(h, s), (24b)
         sum_o p_o = 1                                     one row for every secret
         sum_o x_o - slack = d_m, slack >= 0               (24c)

All but the last two lines speak of one observable alone, so the Newton system of a primal-dual method is one dense
block of order n + 1 for every observable, joined by one system of order n + 1: time O(m n^3), memory O(m n^2), where a
general solver factors a matrix of n m rows. Of the secrets only the c core ones have pairs with each other, which leaves
blocks of order c + 1 and time O(m c n^2 + n^3), see `blocks`. Iterates stay strictly inside g, f >= 0. What the result is
worth is not for this module to say: `certificate.lower_bound` takes a bound from the multipliers by weak duality.

Method: predictor and corrector of Mehrotra (1992), as in Wright, Primal-Dual Interior-Point Methods (1997), chapter 10.
"""

import os
from concurrent.futures import Executor, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from mobpriv.channels import blocks as newton
from mobpriv.channels.certificate import Multipliers, Program, gradient, lower_bound

STEPS = 150
"""Newton steps after which the method gives up; 15 to 40 are usual."""
STALLED = 8
"""Steps in a row that improve neither side, after which it stops."""
TO_BOUNDARY = 0.995
"""Share of the way to the nearest constraint that a step may go."""
WAYPOINTS, ROOM = (1e-2, 1e-4, 1e-6), 0.7
"""Relative gaps at which points are kept for a warm start; share of a broken pair's room that a restart leaves to it."""
FIT, CENTRED = 0.05, 4.0
"""Share of what the pairs leave to a new secret that a restart keeps free on either side; how many times larger than the
old multipliers the new ones may be (50 steps were lost to a point near the boundary at the wrong place)."""


@dataclass
class _Point:
    P: np.ndarray  # p(o|s), shape (m, n)
    x: np.ndarray  # (m,)
    slack: float
    pairs: np.ndarray  # multipliers of g
    attacks: np.ndarray  # multipliers of f, (m, estimates)
    y: np.ndarray  # multipliers of the rows' sums, (n,)
    nu: float  # multiplier of (24c)
    g: np.ndarray  # carried along: near the optimum slacks are far smaller than the rounding of the differences they are
    f: np.ndarray
    numbers: np.ndarray  # of the constraints g


def _numbers(pairs) -> np.ndarray:
    """One for every constraint: observable, source, target."""
    o = np.repeat(np.arange(len(pairs.first) - 1), np.diff(pairs.first))
    return ((o << 20) + pairs.source << 20) + pairs.target


class Warm:
    """Where the next program, with more pairs or secrets and else the same, may start: points on the way to the last optimum."""

    def __init__(self):
        self.points: dict[float, _Point] = {}  # by the relative gap below which they lie

    def for_reward(self) -> "Warm":
        """The same for (22) with another reward: what has been said of the distortion privacy is forgotten."""
        warm = Warm()
        warm.points = {
            way: replace(at, x=np.zeros(len(at.P)), attacks=np.zeros((len(at.P), 0)), f=np.zeros((len(at.P), 0)))
            for way, at in self.points.items()
        }
        return warm


@threadpool_limits.wrap(
    limits=1, user_api="blas"
)  # many small blocks: threads only wait for one another, 10 to 100 times longer
def solve(program: Program, gap: float, watch=None, warm: Warm | None = None) -> tuple[np.ndarray, Multipliers]:
    """Columns P (m, n) of the channel, strictly inside every constraint, and the multipliers of the best lower bound.

    Stops at value - bound <= gap * |value|, or when rounding ends all progress. `watch(value, bound)` sees each step;
    `warm` is read at the start and written on the way.
    """
    with ThreadPoolExecutor(min(newton.PARTS, os.cpu_count() or 1)) as threads:
        return _solve(program, gap, watch, warm, threads)


def _solve(program: Program, gap: float, watch, warm: Warm | None, threads: Executor) -> tuple[np.ndarray, Multipliers]:
    at = (warm and _restart(program, warm)) or _start(program)
    blocks = newton.Blocks(program, threads)
    ahead = [] if warm is None else list(WAYPOINTS)
    best, value, bound, stalled = (at.P, None), np.inf, -np.inf, 0
    for _ in range(STEPS):
        multipliers = Multipliers(at.pairs, at.attacks, at.nu)
        new_value = float(np.vdot(program.kappa, at.P)) - program.reward * float(at.x.sum())
        new_bound = lower_bound(program, multipliers)
        if watch is not None:
            watch(new_value, new_bound)
        stalled = 0 if new_value < value or new_bound > bound else stalled + 1
        if new_value < value:
            value, best = new_value, (at.P.copy(), best[1])
        if new_bound > bound:
            bound, best = new_bound, (best[0], multipliers.copy())
        passed = [way for way in ahead if value - bound <= way * abs(value)]
        for way in passed:  # a step may pass several; of those it leaves far behind an older point is the better start
            if way == passed[-1] or way not in warm.points:
                warm.points[way] = deepcopy(at)
        ahead = ahead[len(passed) :]
        if value - bound <= gap * max(abs(value), np.finfo(float).tiny) or stalled > STALLED or not _step(program, at, blocks):
            break
    return best


def _start(program: Program) -> _Point:
    """A channel that tells nothing, p(o|s) = 1/m, lies inside every constraint; all products with multipliers equal."""
    m, n = program.kappa.shape
    product = 30 / len(program.pairs.source)  # a first gap of about 30, well above any cost
    P = np.full((m, n), 1 / m)
    d_max = float(program.F.sum(axis=1).min()) if len(program.F) else 0.0  # what a guess without observing errs
    limited = program.d_m is not None
    x = np.full(m, (d_max + (program.d_m if limited else 0.0)) / 2 / m)
    slack = float(x.sum() - program.d_m) if limited else 0.0
    g, f = _slacks(P, *program.pairs), P @ program.F.T - x[:, None]
    return _Point(
        P, x, slack, product / g, product / f, np.zeros(n), product / slack if limited else 0.0, g, f, _numbers(program.pairs)
    )


def _restart(program: Program, warm: Warm) -> _Point | None:
    """The farthest of the old points that can be drawn into the new program: towards a channel that tells nothing until
    the new pairs hold and the new secrets fit in. That costs about as much as the share it takes, which should not exceed
    the gap there.

    New secrets stand behind the old ones.
    """
    m, n = program.kappa.shape
    constants = np.repeat(np.arange(m), np.diff(program.pairs.first))
    for way, old in sorted(warm.points.items()):
        attacks = old.attacks.shape[1]
        if len(old.P) != m or (attacks != len(program.F) and (attacks or not program.reward)):
            continue
        const, known = old.P.mean(axis=1), old.P.shape[1]
        inside = np.maximum(program.pairs.source, program.pairs.target) < known
        P = np.full((m, n), const[:, None])
        P[:, :known] = old.P
        short = np.maximum(-_slacks(P, *program.pairs), 0.0)[inside]
        room = (ROOM * const[constants] * (1 - program.pairs.ratio))[inside]
        share, most = max(float((short / (short + room)).max()), way / 10), way if way < WAYPOINTS[0] else 0.5
        while share <= most:
            P[:, :known] = (1 - share) * old.P + share * const[:, None]
            if _fitted(P, known, const, *program.pairs):
                at = _drawn(program, old, P, share, const)
                if at.pairs.max() <= CENTRED * old.pairs.max():
                    return at
            share *= 2
    return None


@numba.njit(cache=True, error_model="numpy")
def _fitted(P, known, const, first, source, target, ratio):
    """Fills in the columns of P from `known` on, between what the listed pairs allow; False where there is no room."""
    m, n = P.shape
    low, high = np.empty(m), np.empty(m)
    for s in range(known, n):
        low[:], high[:] = 0.0, np.inf
        for o in range(m):
            for i in range(first[o], first[o + 1]):
                if target[i] == s and source[i] < s:
                    low[o] = max(low[o], ratio[i] * P[o, source[i]])
                elif source[i] == s and target[i] < s:
                    high[o] = min(high[o], P[o, target[i]] / ratio[i])
        least, most = low.sum(), high.sum()
        share = 0.0 if most == np.inf else (1 - least) / (most - least)
        if least == 0.0 and most == np.inf:  # bound to none that is there
            P[:, s] = const
        elif FIT < share < 1 - FIT and (low < high).all():
            P[:, s] = low + share * (high - low)
        else:
            return False
    return True


def _drawn(program: Program, old: _Point, P: np.ndarray, share: float, const: np.ndarray) -> _Point:
    at, n = deepcopy(old), P.shape[1]
    at.P = P
    if len(program.F) and not at.attacks.shape[1]:  # for_reward: multipliers sum to the reward and fit the slacks
        at.x = 0.9 * (P @ program.F.T).min(axis=1)
        at.attacks = 1 / (P @ program.F.T - at.x[:, None])
        at.attacks *= program.reward / at.attacks.sum(axis=1, keepdims=True)
    elif len(program.F):
        d_max = float(program.F.sum(axis=1).min())
        limited = program.d_m is not None
        at.x = (1 - share) * at.x + share * const * (d_max + (program.d_m if limited else 0.0)) / 2
        at.slack = float(at.x.sum() - program.d_m) if limited else 0.0
    at.g, at.f = _slacks(at.P, *program.pairs), at.P @ program.F.T - at.x[:, None]
    numbers = _numbers(program.pairs)
    _, new, kept = np.intersect1d(numbers, old.numbers, assume_unique=True, return_indices=True)
    product = float((old.pairs[kept] * at.g[new]).mean())
    at.pairs = product / at.g
    at.pairs[new] = old.pairs[kept]
    at.numbers = numbers
    at.y = np.concatenate([at.y, np.zeros(n - len(at.y))])
    return at


@np.errstate(all="ignore")  # where rounding ends all progress, slacks of 0 and no numbers: neither is better than the best
def _step(program: Program, at: _Point, blocks: newton.Blocks) -> bool:
    """One predictor and corrector step, in place; False when rounding leaves a block that cannot be factored."""
    joined = _joined(program, at, blocks)
    if joined is None:
        return False
    step = _direction(program, at, blocks, joined, np.zeros_like(at.g), np.zeros_like(at.f), 0.0)
    a, b = _lengths(program, at, step, 1.0)
    total = at.pairs @ at.g + np.vdot(at.attacks, at.f) + at.slack * at.nu
    after = (at.pairs + b * step.pairs) @ (at.g + a * step.g) + np.vdot(at.attacks + b * step.attacks, at.f + a * step.f)
    after += (at.slack + a * step.slack) * (at.nu + b * step.nu)
    target = (after / total) ** 3 * total / (at.g.size + at.f.size + (program.d_m is not None))
    pairs, attacks = (target - step.g * step.pairs) / at.g, (target - step.f * step.attacks) / at.f
    step = _direction(program, at, blocks, joined, pairs, attacks, target - step.slack * step.nu)
    if not np.isfinite(step.P).all():
        return False
    a, b = _lengths(program, at, step, TO_BOUNDARY)
    for name, length in [
        ("P", a),
        ("x", a),
        ("slack", a),
        ("g", a),
        ("f", a),
        ("pairs", b),
        ("attacks", b),
        ("y", b),
        ("nu", b),
    ]:
        setattr(at, name, getattr(at, name) + length * getattr(step, name))
    return True


def _lengths(program: Program, at: _Point, step: _Point, share: float) -> tuple[float, float]:
    """How far the primal and the dual side may go: `share` of the way to the first zero, at most 1."""
    primal = [share, (-step.g / at.g).max(), (-step.f / at.f).max(initial=0.0)]
    dual = [share, (-step.pairs / at.pairs).max(), (-step.attacks / at.attacks).max(initial=0.0)]
    if program.d_m is not None:
        primal.append(-step.slack / at.slack)
        dual.append(-step.nu / at.nu)
    return share / max(primal), share / max(dual)


def _joined(program: Program, at: _Point, blocks: newton.Blocks) -> np.ndarray | None:
    """The factor of the system for y and nu that joins the observables' blocks."""
    total, n = blocks.factor(at.pairs / at.g, at.attacks / at.f), at.P.shape[1]
    if total is None:
        return None
    if program.d_m is None:
        return newton.join(total[:n, :n])
    total[n, n] += at.slack / at.nu
    return newton.join(total)


def _direction(program: Program, at: _Point, blocks: newton.Blocks, joined: np.ndarray, pairs, attacks, slack) -> _Point:
    """The Newton direction that moves the products of slacks and multipliers to g * pairs, f * attacks and `slack`."""
    (m, n), size = at.P.shape, len(joined)
    moved = np.zeros((m, n + bool(len(program.F))))
    moved[:, :n] = at.y - program.kappa + gradient(m, n, pairs, *program.pairs)
    if len(program.F):
        moved[:, : blocks.c] += attacks @ blocks.F
        moved[:, n] = program.reward + at.nu - attacks.sum(axis=1)
    blocks.solve(moved)
    right = -moved.sum(axis=0)
    right[:n] += 1 - at.P.sum(axis=0)  # rounding only
    if program.d_m is not None:
        right[n] += program.d_m - at.x.sum() + slack / at.nu
    prices = np.zeros(moved.shape[1])
    prices[:size] = newton.solve_joined(joined, right[:size])
    answers = np.tile(prices, (m, 1))
    blocks.solve(answers)
    moved += answers
    dP = np.ascontiguousarray(moved[:, :n])
    dx = moved[:, n] if len(program.F) else np.zeros(m)
    dg, df = _slacks(dP, *program.pairs), dP[:, : blocks.c] @ blocks.F.T - dx[:, None]
    nu = float(prices[n]) if program.d_m is not None else 0.0
    dslack = (slack - at.slack * nu) / at.nu - at.slack if program.d_m is not None else 0.0
    dpairs = pairs - at.pairs - at.pairs / at.g * dg
    dattacks = attacks - at.attacks - at.attacks / at.f * df
    return _Point(dP, dx, dslack, dpairs, dattacks, prices[:n], nu, dg, df, at.numbers)


@numba.njit(cache=True, error_model="numpy")
def _slacks(P, first, source, target, ratio):
    """G p for every listed constraint."""
    g = np.empty(len(source))
    for o in range(len(P)):
        for i in range(first[o], first[o + 1]):
            g[i] = P[o, target[i]] - ratio[i] * P[o, source[i]]
    return g
