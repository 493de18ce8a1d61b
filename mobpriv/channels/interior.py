"""An interior-point method for the linear programs (21), (22) and (24) of Shokri 2015, written for their structure.

For every observable o let p_o be the vector of p(o|s) over the n secrets and x_o its share of the distortion privacy:

    min  sum_o kappa_o . p_o - reward * sum_o x_o          kappa_o(s) = pi(s) c(o, s)
    s.t. g = p_o(target) - ratio * p_o(source) >= 0        ratio = exp(-eps d_eps), (24d); ratio = 0 says p >= 0
         f_o(h) = F(h) . p_o - x_o >= 0                    F(h, s) = pi(s) d(h, s), (24b)
         sum_o p_o = 1                                     one row for every secret
         sum_o x_o - slack = d_m, slack >= 0               (24c)

All but the last two lines speak of one observable alone, so the Newton system of a primal-dual method is one dense
block of order n + 1 for every observable, joined by one system of order n + 1: time O(m n^3), memory O(m n^2), where a
general solver factors a matrix of n m rows. Iterates stay strictly inside g, f >= 0. What the result is worth is not
for this module to say: `certificate.lower_bound` takes a bound from the multipliers by weak duality.

Method: predictor and corrector of Mehrotra (1992), as in Wright, Primal-Dual Interior-Point Methods (1997), chapter 10.
"""

import os
from concurrent.futures import Executor, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise

import numba
import numpy as np
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from mobpriv.channels import cholesky
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
REGULAR, MOST_REGULAR = 1e-15, 1e-11
"""Relative addition to the blocks' diagonals: near the optimum their smallest eigenvalues drown in rounding. Ten times
more, and so on, where a factorisation fails."""
PARTS = 4
"""The observables are dealt with in as many parts, in threads: always, so that sums do not depend on the number of cores."""


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
    with ThreadPoolExecutor(min(PARTS, os.cpu_count() or 1)) as threads:
        return _solve(program, gap, watch, warm, threads)


def _solve(program: Program, gap: float, watch, warm: Warm | None, threads: Executor) -> tuple[np.ndarray, Multipliers]:
    at = (warm and _restart(program, warm)) or _start(program)
    blocks = np.empty((len(at.P),) + 2 * (at.P.shape[1] + bool(len(program.F)),))  # of every step: fresh memory costs time
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
        if (
            value - bound <= gap * max(abs(value), np.finfo(float).tiny)
            or stalled > STALLED
            or not _step(program, at, blocks, threads)
        ):
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
    return _Point(P, x, slack, product / g, product / f, np.zeros(n), product / slack if limited else 0.0, g, f)


def _restart(program: Program, warm: Warm) -> _Point | None:
    """The farthest of the old points that can be drawn into the new program: towards a channel that tells nothing until
    the new pairs hold and the new secrets fit in. That costs about as much as the share it takes, which should not exceed
    the gap there.

    New secrets, and every observable's new pairs, stand behind the old ones.
    """
    m, n = program.kappa.shape
    listed = len(program.pairs.source) // m
    for way, old in sorted(warm.points.items()):
        attacks = old.attacks.shape[1]
        if len(old.P) != m or len(old.pairs) > m * listed or (attacks != len(program.F) and (attacks or not program.reward)):
            continue
        const, known = old.P.mean(axis=1), old.P.shape[1]
        inside = np.maximum(program.pairs.source, program.pairs.target) < known
        P = np.full((m, n), const[:, None])
        P[:, :known] = old.P
        short = np.maximum(-_slacks(P, *program.pairs), 0.0)[inside]
        room = (ROOM * np.repeat(const, listed) * (1 - program.pairs.ratio))[inside]
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
    (m, n), at = P.shape, deepcopy(old)
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
    g = at.g.reshape(m, -1)
    known = at.pairs.reshape(m, -1)
    product = float((known * g[:, : known.shape[1]]).mean())
    at.pairs = np.concatenate([known, product / g[:, known.shape[1] :]], axis=1).ravel()
    at.y = np.concatenate([at.y, np.zeros(n - len(at.y))])
    return at


@np.errstate(all="ignore")  # where rounding ends all progress, slacks of 0 and no numbers: neither is better than the best
def _step(program: Program, at: _Point, blocks: np.ndarray, threads: Executor) -> bool:
    """One predictor and corrector step, in place; False when rounding leaves a block that cannot be factored."""
    joined = _factor(program, at, blocks, threads)
    if joined is None:
        return False
    step = _direction(program, at, blocks, joined, np.zeros_like(at.g), np.zeros_like(at.f), 0.0, threads)
    a, b = _lengths(program, at, step, 1.0)
    total = at.pairs @ at.g + np.vdot(at.attacks, at.f) + at.slack * at.nu
    after = (at.pairs + b * step.pairs) @ (at.g + a * step.g) + np.vdot(at.attacks + b * step.attacks, at.f + a * step.f)
    after += (at.slack + a * step.slack) * (at.nu + b * step.nu)
    target = (after / total) ** 3 * total / (at.g.size + at.f.size + (program.d_m is not None))
    pairs, attacks = (target - step.g * step.pairs) / at.g, (target - step.f * step.attacks) / at.f
    step = _direction(program, at, blocks, joined, pairs, attacks, target - step.slack * step.nu, threads)
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


def _factor(program: Program, at: _Point, blocks: np.ndarray, threads: Executor):
    """Cholesky factors of every observable's block, written to the upper triangles of `blocks`; of the system that joins them."""
    m, n = at.P.shape
    weights = at.pairs / at.g, at.attacks / at.f
    sums = list(threads.map(lambda part: _factor_part(program, weights, blocks, *part), _parts(m)))
    if any(part is None for part in sums):
        return None
    joined = np.sum(sums, axis=0).T
    if program.d_m is None:
        joined = joined[:n, :n]
    else:
        joined[n, n] += at.slack / at.nu
    joined, failed = lapack.dpotrf(joined, lower=True)
    return None if failed else joined


def _parts(observables: int):
    return pairwise(np.linspace(0, observables, min(PARTS, observables) + 1).astype(int).tolist())


@np.errstate(all="ignore")  # a thread does not inherit it
def _factor_part(program: Program, weights: tuple, blocks: np.ndarray, begin: int, end: int) -> np.ndarray | None:
    """The same for some of the observables; the sum of their blocks' inverses (upper triangle)."""
    pairs, attacks = weights
    n = program.kappa.shape[1]
    last = n - int(np.argmax(program.F.any(axis=0)[::-1])) if len(program.F) else 0  # beyond it no secret occurs and F is 0
    F = program.F[:, :last]
    blocks[begin:end] = 0.0
    _pair_blocks(pairs, program.pairs.first[begin : end + 1], *program.pairs[1:], blocks[begin:end])
    total, inverse = np.zeros(blocks.shape[1:]), np.empty(blocks.shape[1:])
    for o in range(begin, end):
        if len(F):
            cholesky.add_gram(F * np.sqrt(attacks[o])[:, None], blocks[o])
            blocks[o, :n, n] = -attacks[o] @ program.F
            blocks[o, n, n] = attacks[o].sum()
        regular, inverse[:] = REGULAR, blocks[o]
        while True:
            blocks[o].ravel()[:: len(inverse) + 1] *= 1 + regular
            if cholesky.factor(blocks[o]):
                break
            regular, blocks[o] = 10 * regular, inverse
            if regular > MOST_REGULAR:
                return None
        inverse[:] = blocks[o]
        cholesky.invert(inverse)
        total += inverse
    return total


def _solve_blocks(blocks: np.ndarray, vectors: np.ndarray, threads: Executor) -> None:
    list(threads.map(lambda part: cholesky.solve(blocks[slice(*part)], vectors[slice(*part)]), _parts(len(blocks))))


def _direction(
    program: Program, at: _Point, blocks: np.ndarray, joined: np.ndarray, pairs, attacks, slack, threads: Executor
) -> _Point:
    """The Newton direction that moves the products of slacks and multipliers to g * pairs, f * attacks and `slack`."""
    (m, n), size = at.P.shape, len(joined)
    moved = np.zeros((m, blocks.shape[1]))
    moved[:, :n] = at.y - program.kappa + gradient(m, n, pairs, *program.pairs)
    if len(program.F):
        moved[:, :n] += attacks @ program.F
        moved[:, n] = program.reward + at.nu - attacks.sum(axis=1)
    _solve_blocks(blocks, moved, threads)
    right = -moved.sum(axis=0)
    right[:n] += 1 - at.P.sum(axis=0)  # rounding only
    if program.d_m is not None:
        right[n] += program.d_m - at.x.sum() + slack / at.nu
    prices = np.zeros(blocks.shape[1])
    prices[:size] = lapack.dpotrs(joined, right[:size], lower=True)[0]
    answers = np.tile(prices, (m, 1))
    _solve_blocks(blocks, answers, threads)
    moved += answers
    dP = np.ascontiguousarray(moved[:, :n])
    dx = moved[:, n] if len(program.F) else np.zeros(m)
    dg, df = _slacks(dP, *program.pairs), dP @ program.F.T - dx[:, None]
    nu = float(prices[n]) if program.d_m is not None else 0.0
    dslack = (slack - at.slack * nu) / at.nu - at.slack if program.d_m is not None else 0.0
    dpairs = pairs - at.pairs - at.pairs / at.g * dg
    dattacks = attacks - at.attacks - at.attacks / at.f * df
    return _Point(dP, dx, dslack, dpairs, dattacks, prices[:n], nu, dg, df)


@numba.njit(cache=True, error_model="numpy", nogil=True)
def _pair_blocks(weights, first, source, target, ratio, blocks):
    """Adds G' diag(weights) G to the upper triangles of the blocks."""
    for o in range(len(blocks)):
        H = blocks[o]
        for i in range(first[o], first[o + 1]):
            s, t, k, w = source[i], target[i], ratio[i], weights[i]
            H[t, t] += w
            H[s, s] += k * k * w
            H[min(s, t), max(s, t)] -= k * w


@numba.njit(cache=True, error_model="numpy")
def _slacks(P, first, source, target, ratio):
    """G p for every listed constraint."""
    g = np.empty(len(source))
    for o in range(len(P)):
        for i in range(first[o], first[o + 1]):
            g[i] = P[o, target[i]] - ratio[i] * P[o, source[i]]
    return g
