"""The approximation of Appendix C: program (24) without the constraints between distant points.

Source: Shokri, *Privacy Games*, PETS 2015, Appendix C.

    p(o|s) <= exp(eps d_eps(s, s')) p(o|s')    is kept where d(s, s') < threshold and d(o, s) < threshold

and only p >= 0 elsewhere. The paper does not say which secret the distance "between observable and secret" refers to; here it
is s, whose probability is limited. Distances d are in one unit of length (metres in mobpriv), epsilon in its inverse.

The paper does not report which epsilon the result satisfies: pairs without a constraint may differ by any factor. We report the
cost together with two quantities over *all* pairs: the effective epsilon, usually infinite since probabilities become 0, and
delta.

The observables' part of `reductions` does not apply here. Secrets that never occur may be left out if the channel found can be
extended to them; otherwise they are added. A channel of all secrets that satisfies all constraints at the cost of a relaxation
is optimal, whatever the constraints are.

If d_m does not bind, optimal channels differ in AP. Our rule, as for (22), is to return one of largest AP. Otherwise the AP of
two programs would also differ by the choice among optima.
"""

from dataclasses import dataclass, replace

import numba
import numpy as np

from mobpriv.channels import checks
from mobpriv.channels.guarantees import certificate, steepest
from mobpriv.channels.optimal import REWARDS
from mobpriv.channels.programs import reductions
from mobpriv.channels.programs.certificate import GAP, Certificate, PairConstraints, Program, lower_bound, value
from mobpriv.channels.programs.problem import ChannelProblem, checked_problem, exponents
from mobpriv.channels.programs.relaxations import GAP_LEVELS
from mobpriv.channels.programs.solvers import highs, interior

_SEEN = 1e-6
"""Probabilities below this are ignored in `epsilon_seen`."""
_SINGLE_ROUNDS = 20
"""Programs after which secrets are added all together, no longer one by one."""


@dataclass(frozen=True)
class Approximation:
    """A channel (S, S) of the reduced program. Its certificate is for the complete one, (24): see `violation`, `epsilon`."""

    channel: np.ndarray
    certificate: Certificate  # cost and bound of the reduced program; violation, epsilon and distortion of the whole one
    constraints: int  # number kept, of S²(S - 1)
    epsilon_seen: float  # effective epsilon where both probabilities are at least 1e-6
    delta: float  # largest over pairs of secrets of sum_o max(0, p(o|s) - exp(eps d_eps(s, s')) p(o|s'))


def joint(prior, cost, error, d_m: float, d_epsilon, epsilon: float, distance, threshold: float) -> Approximation:
    """The least costly channel with distortion privacy d_m that satisfies (24d) for pairs nearer than `threshold`.

    Observables are the secrets; `distance` (S, S) is d(s, s') and d(o, s) of the module's rule. ValueError as in
    `optimal.joint`.
    """
    if not threshold > 0:
        raise ValueError(f"threshold must be positive, in the unit of distance (got {threshold})")
    problem = checked_problem(prior, cost, exponents(prior, d_epsilon, epsilon), error, d_m)
    distance = checks.metric(distance, "distance")
    for name, shape in [("cost", problem.cost.shape), ("distance", distance.shape)]:
        if shape != problem.exponents.shape:
            raise ValueError(f"{name} must have a row and a column a secret, {len(problem.prior)} (got shape {shape})")
    near = distance < threshold
    channel, certified = _of_largest_distortion(problem, near, d_epsilon)
    logs = np.where(channel > _SEEN, np.log(np.maximum(channel, _SEEN)), np.nan)
    seen = float(steepest(logs, np.asarray(d_epsilon, float)))
    delta = _delta(np.ascontiguousarray(channel), problem.exponents)
    return Approximation(channel, certified, kept_constraints(distance, threshold), seen, delta)


def kept_constraints(distance, threshold: float) -> int:
    """How many of the S²(S - 1) constraints (24d) the rule keeps: a measure that does not depend on the computer."""
    near = np.asarray(distance) < threshold
    return int((near.sum(axis=1) * (near.sum(axis=1) - 1)).sum())


def _of_largest_distortion(problem: ChannelProblem, near: np.ndarray, d_epsilon) -> tuple[np.ndarray, Certificate]:
    """An optimal channel of largest AP: min cost - reward * AP, the reward so small that the cost remains minimal."""
    channel, bound, facts = _solve(problem, near)
    plain = certificate(problem, d_epsilon, channel, bound, facts)
    for share in REWARDS if plain.cost > 0 and problem.d_max > 0 else ():
        reward = share * plain.cost / problem.d_max
        rewarded_channel, rewarded_value, facts = _solve(replace(problem, reward=reward), near)
        rewarded = certificate(problem, d_epsilon, rewarded_channel, bound, facts)
        if rewarded.gap <= GAP:
            largest = min(problem.d_max, (rewarded.cost - rewarded_value) / reward)
            return rewarded_channel, replace(rewarded, distortion_bound=largest)
    return channel, plain


def _solve(problem: ChannelProblem, near: np.ndarray) -> tuple[np.ndarray, float, dict]:
    """A channel of all secrets, a lower bound, and facts; secrets that never occur are added when they turn out to matter.

    Programs are first solved roughly, to see which secrets those are.
    """
    ratio = reductions.ratios(problem.exponents)
    secrets = np.flatnonzero(problem.prior > 0)
    F = np.zeros((0, len(problem.prior)))
    if problem.d_m or problem.reward:
        F = problem.prior * problem.error.T[reductions.kept_estimates(problem.error[secrets])]
    solver = highs if problem.d_m and problem.d_m > (1 - 1e-7) * problem.d_max else interior
    rounds, tight = 0, False
    while True:
        rounds += 1
        kappa = np.ascontiguousarray((problem.prior[secrets, None] * problem.cost[secrets]).T)
        pairs = _pairs(ratio, near, secrets)
        program = Program(kappa, pairs, F[:, secrets].copy(), problem.d_m or None, problem.reward)
        P, multipliers = solver.solve(program, GAP / 4 if tight else GAP_LEVELS[0])
        bound = lower_bound(program, multipliers)
        if tight and solver is interior and value(program, P) - bound > GAP * abs(value(program, P)):
            solver = highs
            continue
        columns = np.zeros((len(near), len(near)))
        columns[:, secrets] = P / P.sum(axis=0)
        order = np.concatenate([secrets, np.setdiff1d(np.arange(len(near)), secrets)])
        failed = order[len(secrets) :][_extend(columns, ratio, near, order, len(secrets), columns @ problem.prior)]
        if not len(failed) and tight:
            break
        tight = not len(failed)
        secrets = np.arange(len(near)) if rounds >= _SINGLE_ROUNDS else np.sort(np.concatenate([secrets, failed]))
    facts = {"secrets": len(secrets), "observables": len(near), "rounds": rounds}
    return columns.T.copy(), bound, facts | {"solver": solver.__name__.rpartition(".")[2]}


def _pairs(ratio: np.ndarray, near: np.ndarray, secrets: np.ndarray) -> PairConstraints:
    """The constraints p(o|s') >= ratio p(o|s) for every observable and the pairs kept for it, and p >= 0 for all."""
    inner, n = ratio[np.ix_(secrets, secrets)], len(secrets)
    close = near[np.ix_(secrets, secrets)] & ~np.eye(n, dtype=bool)
    first, sources, targets = [0], [], []
    for o in range(len(near)):
        source, target = np.nonzero(close & near[secrets, o][:, None])
        sources += [source, np.arange(n)]
        targets += [target, np.arange(n)]
        first.append(first[-1] + len(source) + n)
    source, target = np.concatenate(sources), np.concatenate(targets)
    return PairConstraints(np.array(first), source, target, np.where(source == target, 0.0, inner[source, target]))


@numba.njit(cache=True)
def _extend(columns, ratio, near, order, known, average):
    """Fill in one secret after the other between the bounds set by those already there; mark those that do not fit."""
    m = len(columns)
    failed = np.zeros(len(order) - known, dtype=np.bool_)
    placed = list(order[:known])
    low, high = np.empty(m), np.empty(m)
    for i in range(known, len(order)):
        new = order[i]
        low[:] = 0.0
        high[:] = 1.0
        for t in placed:
            if near[new, t]:
                for o in range(m):
                    if near[t, o]:
                        low[o] = max(low[o], ratio[t, new] * columns[o, t])
                    if near[new, o]:
                        high[o] = min(high[o], columns[o, t] / ratio[new, t])
        if low.sum() > 1 + 1e-12 or high.sum() < 1 - 1e-12 or (low > high * (1 + 1e-12)).any():
            failed[i - known] = True
            continue
        columns[:, new] = _between(low, high, average)
        placed.append(new)
    return failed


@numba.njit(cache=True)
def _between(low, high, average):
    """Numbers between low and high that sum to 1: `average` if it lies between them, else moved evenly."""
    p = np.minimum(np.maximum(average, low), high)
    total = p.sum()
    limit = low if total > 1 else high
    room = limit.sum() - total
    if room != 0.0:
        p += min(1.0, (1 - total) / room) * (limit - p)
    return p / p.sum()


@numba.njit(cache=True)
def _delta(channel, exponents):
    worst = 0.0
    for s in range(len(channel)):
        for t in range(len(channel)):
            total, factor = 0.0, np.exp(min(exponents[s, t], 700.0))
            for o in range(channel.shape[1]):
                total += max(0.0, channel[s, o] - factor * channel[t, o])
            worst = max(worst, total)
    return worst
