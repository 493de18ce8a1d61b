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

from dataclasses import dataclass

import numba
import numpy as np
from scipy.linalg import blas, lapack

from mobpriv.channels.certificate import Multipliers, Program, gradient, lower_bound

STEPS = 150
"""Newton steps after which the method gives up; 15 to 40 are usual."""
STALLED = 8
"""Steps in a row that improve neither side, after which it stops."""
TO_BOUNDARY = 0.995
"""Share of the way to the nearest constraint that a step may go."""
REFINED = 1
"""Times that a Newton direction is solved anew for what rounding left of it."""
REGULAR = 1e-15
"""Relative addition to the blocks' diagonals: near the optimum their smallest eigenvalues drown in rounding."""


@dataclass
class _Point:
    P: np.ndarray  # p(o|s), shape (m, n)
    x: np.ndarray  # (m,)
    slack: float
    pairs: np.ndarray  # multipliers of g
    attacks: np.ndarray  # multipliers of f, (m, estimates)
    y: np.ndarray  # multipliers of the rows' sums, (n,)
    nu: float  # multiplier of (24c)
    g: np.ndarray  # (22b), moved with P: computed anew from it, the smallest would be rounding
    f: np.ndarray  # (24b), likewise


def solve(program: Program, gap: float, watch=None) -> tuple[np.ndarray, Multipliers]:
    """Columns P (m, n) of the channel, strictly inside every constraint, and the multipliers of the best lower bound.

    Stops at value - bound <= gap * |value|, or when rounding ends all progress. `watch(value, bound)` sees each step.
    """
    at = _start(program)
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
        if value - bound <= gap * max(abs(value), np.finfo(float).tiny) or stalled > STALLED or not _step(program, at):
            break
    return best


def _start(program: Program) -> _Point:
    """A channel that tells nothing, p(o|s) = 1/m, lies inside every constraint; all products with multipliers equal."""
    m, n = program.kappa.shape
    product = 30 / len(program.pairs.source)  # a first gap of about 30, well above any cost
    P = np.full((m, n), 1 / m)
    pairs = product * m / (1 - program.pairs.ratio)
    d_max = float(program.F.sum(axis=1).min()) if len(program.F) else 0.0  # what a guess without observing errs
    limited = program.d_m is not None
    x = np.full(m, (d_max + (program.d_m if limited else 0.0)) / 2 / m)
    f = P @ program.F.T - x[:, None]
    attacks = product / f
    slack = float(x.sum() - program.d_m) if limited else 0.0
    return _Point(P, x, slack, pairs, attacks, np.zeros(n), product / slack if limited else 0.0, _slacks(P, *program.pairs), f)


@np.errstate(all="ignore")  # where rounding ends all progress, slacks of 0 and no numbers: neither is better than the best
def _step(program: Program, at: _Point) -> bool:
    """One predictor and corrector step, in place; False when rounding leaves a block that cannot be factored."""
    g, f = at.g, at.f
    system = _factor(program, at, g, f)
    if system is None:
        return False
    step, dg, df = _direction(program, at, g, f, system, np.zeros_like(g), np.zeros_like(f), 0.0)
    a, b = _lengths(program, at, g, f, step, dg, df, 1.0)
    total = at.pairs @ g + np.vdot(at.attacks, f) + at.slack * at.nu
    after = (at.pairs + b * step.pairs) @ (g + a * dg) + np.vdot(at.attacks + b * step.attacks, f + a * df)
    after += (at.slack + a * step.slack) * (at.nu + b * step.nu)
    target = (after / total) ** 3 * total / (g.size + f.size + (program.d_m is not None))
    corrected = (target - dg * step.pairs) / g, (target - df * step.attacks) / f, target - step.slack * step.nu
    step, dg, df = _direction(program, at, g, f, system, *corrected)
    a, b = _lengths(program, at, g, f, step, dg, df, TO_BOUNDARY)
    at.P += a * step.P
    at.x += a * step.x
    at.slack += a * step.slack
    at.g += a * dg
    at.f += a * df
    at.pairs += b * step.pairs
    at.attacks += b * step.attacks
    at.y += b * step.y
    at.nu += b * step.nu
    return True


def _lengths(program, at, g, f, step, dg, df, share: float) -> tuple[float, float]:
    """How far the primal and the dual side may go: `share` of the way to the first zero, at most 1."""
    primal = [share, (-dg / g).max(), (-df / f).max(initial=0.0)]
    dual = [share, (-step.pairs / at.pairs).max(), (-step.attacks / at.attacks).max(initial=0.0)]
    if program.d_m is not None:
        primal.append(-step.slack / at.slack)
        dual.append(-step.nu / at.nu)
    return share / max(primal), share / max(dual)


def _factor(program: Program, at: _Point, g: np.ndarray, f: np.ndarray):
    """Cholesky factors of every observable's block (in its upper triangle) and of the system that joins them."""
    m, n = at.P.shape
    wide = n + 1 if len(program.F) else n
    blocks = np.zeros((m, wide, wide))
    _pair_blocks(at.pairs / g, *program.pairs, blocks)
    weights = at.attacks / f
    joined = np.zeros((wide, wide), order="F")
    for o in range(m):
        if len(program.F):
            scaled = program.F * np.sqrt(weights[o])[:, None]
            blocks[o, :n, :n] += blas.dsyrk(1.0, scaled.T, lower=True).T
            blocks[o, :n, n] = -weights[o] @ program.F
            blocks[o, n, n] = weights[o].sum()
        diagonal, regular = blocks[o].ravel()[:: wide + 1].copy(), REGULAR
        while True:
            trial = blocks[o].copy()
            trial.ravel()[:: wide + 1] = diagonal * (1 + regular)
            # The upper triangle read by columns is LAPACK's lower one: factored in place, without a copy.
            factor, failed = lapack.dpotrf(trial.T, lower=True, clean=False, overwrite_a=True)
            if not failed:
                break
            regular *= 10
            if regular > 1e-11:
                return None
        blocks[o] = trial
        joined += lapack.dpotri(factor, lower=True)[0]
    if program.d_m is None:
        joined = joined[:n, :n]
    else:
        joined[n, n] += at.slack / at.nu
    joined, failed = lapack.dpotrf(joined, lower=True)
    return None if failed else (blocks, joined)


def _direction(program: Program, at: _Point, g, f, system: tuple, pairs, attacks, slack):
    """The Newton direction that moves the products of slacks and multipliers to g * pairs, f * attacks and `slack`.

    Solved twice, the second time for what rounding left of the first: near the optimum that is more than the step.
    """
    F, (m, n) = program.F, at.P.shape
    dg, df = np.zeros_like(g), np.zeros_like(f)
    dP, dx, prices = np.zeros((m, n)), np.zeros(m), np.zeros(n + 1)
    for _ in range(REFINED + 1):
        new_pairs, new_attacks = pairs - at.pairs / g * dg, attacks - at.attacks / f * df
        missing = np.zeros((m, system[0].shape[1]))
        missing[:, :n] = at.y + prices[:n] - program.kappa + gradient(m, n, new_pairs, *program.pairs)
        if len(F):
            missing[:, :n] += new_attacks @ F
            missing[:, n] = program.reward + at.nu + prices[n] - new_attacks.sum(axis=1)
        sums = np.append(1 - at.P.sum(axis=0) - dP.sum(axis=0), 0.0)
        if program.d_m is not None:
            sums[n] = program.d_m - at.x.sum() - dx.sum() + (slack - at.slack * prices[n]) / at.nu
        moved, more = _solved(*system, missing, sums)
        dP, prices[: len(more)] = dP + moved[:, :n], prices[: len(more)] + more
        if len(F):
            dx = dx + moved[:, n]
        dg, df = _slacks(dP, *program.pairs), dP @ F.T - dx[:, None]
    nu = float(prices[n]) if program.d_m is not None else 0.0
    dslack = (slack - at.slack * nu) / at.nu - at.slack if program.d_m is not None else 0.0
    dpairs = pairs - at.pairs - at.pairs / g * dg
    return _Point(dP, dx, dslack, dpairs, attacks - at.attacks - at.attacks / f * df, prices[:n], nu, dg, df), dg, df


def _solved(blocks, joined, missing, sums) -> tuple[np.ndarray, np.ndarray]:
    """The blocks' solutions, shape of `missing`, and the prices that make them add up to `sums`."""
    moved = np.stack([lapack.dpotrs(block.T, row, lower=True)[0] for block, row in zip(blocks, missing, strict=True)])
    size = len(joined)
    prices = lapack.dpotrs(joined, sums[:size] - moved.sum(axis=0)[:size], lower=True)[0]
    all_prices = np.append(prices, np.zeros(blocks.shape[1] - size))
    return moved + np.stack([lapack.dpotrs(block.T, all_prices, lower=True)[0] for block in blocks]), prices


@numba.njit(cache=True, error_model="numpy")
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
