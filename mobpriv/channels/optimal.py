"""Optimal obfuscation channels: the linear programs (21), (22), (23) and (24) of Shokri, *Privacy Games* (PETS 2015).

    min_p  sum_{s,o} pi(s) p(o|s) c(o, s)                                                    (11); or (12), the worst case
    s.t.   p(o|s) <= exp(eps d_eps(s, s')) p(o|s')                        for all s, s', o    (22b) = (24d)
           sum_s pi(s) p(o|s) d(h, s) >= x(o) for all o, h;  sum_o x(o) >= d_m                (21b, c) = (24b, c)

Arrays have the secret first: prior (S,), cost c (S, O), error d(h, s) (S, estimates), d_epsilon (S, S). Any unit of length
will do, the same everywhere, with epsilon in its inverse; mobpriv uses metres.

At 20 x 15 cells (22b) alone has 26.9 million rows. Almost all of them can be left out, exactly; `reductions` says which,
and why. So the certificate speaks of the whole problem: its bound holds for it, and every pair of all secrets has been
looked at.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from mobpriv.channels import checks, generation, highs, interior, reductions
from mobpriv.channels.certificate import (
    GAP,
    ROUNDING,
    Certificate,
    Program,
    effective,
    lower_bound,
    value,
    violation,
)
from mobpriv.channels.inference import distortion_privacy, optimal_attack, prior_error

TINY = 1e-10
"""An observable given with less probability than this by every secret is left out."""
GAPS = (3e-3, 1e-4, GAP / 4)
"""Relative gaps of the programs: the first ones are there to find broken pairs and secrets."""
MARGIN = 1e-3
"""Once this share of a channel that tells nothing mends a loose solution, the tight ones begin."""
REWARDS = (1e-4, 1e-5, 1e-6)
"""Weights of the distortion privacy against the cost, as shares of cost / d_max, tried in this order."""
ROUNDS = 60
IN_VAIN, PROMOTIONS = 2, 3
"""Tight rounds that may break listed pairs only, by rounding, before their channel counts as it is; times that single secrets
become core before all of the program do."""


@dataclass(frozen=True)
class Optimum:
    """A channel (S, O), rows sum to 1, and what is known of it. Read `certificate.exact` before calling it optimal."""

    channel: np.ndarray
    certificate: Certificate
    found: "Found | None" = field(default=None, repr=False)


@dataclass(frozen=True)
class Found:
    """What was found out about the program on the way: a similar one needs much the same secrets and pairs."""

    secrets: np.ndarray
    core: int
    observables: int
    rows: int
    rounds: int
    solver: str
    pairs: np.ndarray  # in the last program, by their numbers
    warm: interior.Warm

    def facts(self) -> dict:
        return {
            "secrets": len(self.secrets),
            "core": self.core,
            "observables": self.observables,
            "pairs": self.rows,
            "rounds": self.rounds,
            "solver": self.solver,
        }


def distortion(prior, cost, error, d_m: float, worst_case: bool = False) -> Optimum:
    """The least costly channel whose distortion privacy is at least d_m, (21). Secrets of prior 0 answer like the average.

    Many channels are optimal; all have the same cost, and other attacks than the optimal one (19) err differently on them. The
    result is the corner of the optimal set in which the simplex method ends, for which the paper has no rule.
    """
    return _optimum(_problem(prior, cost, np.inf, error, d_m, worst_case), None)


def differential(
    prior, cost, d_epsilon, epsilon: float, error=None, worst_case: bool = False, near: Optimum | None = None
) -> Optimum:
    """The least costly eps-d_eps-private channel, (22).

    Many channels are optimal, with different distortion privacy AP (§9.1 compares them by it). Without `error` the result is
    one from the middle of them. With `error` it is the one of largest AP: our rule, for the paper has none.
    `near` as in `joint`.
    """
    exponents = _exponents(d_epsilon, epsilon)
    problem = _problem(prior, cost, exponents, None, None, worst_case)
    plain = _optimum(problem, d_epsilon, near)
    if error is None:
        return plain
    if worst_case:
        raise ValueError("the rule of the largest distortion privacy is for the average cost: leave error or worst_case out")
    problem.error = checks.matrix(error, "error", rows=len(problem.prior), negative=False)
    return _largest_distortion(problem, d_epsilon, plain)


def within(prior, cost, d_epsilon, epsilon: float, threshold: float, worst_case: bool = False) -> Optimum:
    """The least costly channel with p(o|s) <= exp(eps) p(o|s') for all d_eps(s, s') <= threshold, (23).

    Chains of such pairs bind pairs farther apart: with B the length of the shortest chain, times eps, this is (22) with
    exponents B, and unbound where no chain leads. The effective epsilon of the certificate is per step of such a chain.
    """
    from scipy.sparse.csgraph import shortest_path

    d = checks.metric(d_epsilon, "d_epsilon")
    checks.epsilon(epsilon)
    if not threshold > 0:
        raise ValueError(f"threshold must be positive, in the unit of d_epsilon (got {threshold})")
    steps = shortest_path(np.ascontiguousarray((d <= threshold) & (d > 0), float), unweighted=True)
    return _optimum(_problem(prior, cost, epsilon * steps, None, None, worst_case), steps)


def joint(
    prior, cost, error, d_m: float, d_epsilon, epsilon: float, worst_case: bool = False, near: Optimum | None = None
) -> Optimum:
    """The least costly eps-d_eps-private channel whose distortion privacy is at least d_m, (24).

    `near`: the optimum of a similar problem for the same secrets. It saves time, and changes nothing that is certified.
    """
    return _optimum(_problem(prior, cost, _exponents(d_epsilon, epsilon), error, d_m, worst_case), d_epsilon, near)


def _exponents(d_epsilon, epsilon: float) -> np.ndarray:
    """eps d_eps; eps = 0 is allowed: no secret can then be told from another."""
    if not 0 <= epsilon < np.inf:
        raise ValueError(f"epsilon must be finite and not negative, in 1 over the unit of d_epsilon (got {epsilon})")
    return epsilon * checks.metric(d_epsilon, "d_epsilon")


@dataclass
class _Problem:
    """The whole problem, checked: exponents B (S, S) with inf where no pair is bound."""

    prior: np.ndarray
    cost: np.ndarray
    exponents: np.ndarray
    error: np.ndarray | None
    d_m: float | None
    worst_case: bool
    reward: float = 0.0


def _problem(prior, cost, exponents, error, d_m, worst_case: bool) -> _Problem:
    prior = checks.prior(prior)
    cost = checks.matrix(cost, "cost", rows=len(prior))
    if np.ndim(exponents) == 0:
        exponents = np.where(np.eye(len(prior), dtype=bool), 0.0, exponents)
    if exponents.shape != (len(prior), len(prior)):
        raise ValueError(f"d_epsilon must have a row and a column a secret, {len(prior)} (got shape {exponents.shape})")
    if d_m is not None:
        error = checks.matrix(error, "error", rows=len(prior), negative=False)
        d_max = prior_error(prior, error)
        if not 0 <= d_m <= d_max * (1 + 1e-12):
            raise ValueError(
                f"no channel has a distortion privacy of d_m = {d_m:.9g}: an adversary who sees nothing errs by "
                f"d_max = {d_max:.9g} under this prior; choose 0 <= d_m <= d_max"
            )
        d_m = min(d_m, d_max)
    return _Problem(prior, cost, exponents, error, d_m, worst_case)


def _optimum(problem: _Problem, d_epsilon, near: Optimum | None = None) -> Optimum:
    """A channel that tells nothing where that is optimal, or as good as that; else what `_solve` finds.

    p(o|s) <= exp(B) p(o|t) for the largest exponent B: the least cost is at most (exp(B) - 1) max |c| below that of a channel
    that tells nothing, p(.|t) for everybody.
    """
    if near is not None and near.channel.shape != problem.cost.shape:
        raise ValueError(
            f"near must be the optimum of a problem with the same secrets and observables: its channel has shape "
            f"{near.channel.shape}, this cost {problem.cost.shape}"
        )
    exponent = problem.exponents.max()
    if exponent < GAP or 1 in problem.cost.shape:
        channel, bound = _constant(problem)
        if 1 not in problem.cost.shape:
            bound -= np.expm1(exponent) * _unit(problem, slice(None))
        told_nothing = _certified(problem, d_epsilon, channel, bound, {"solver": "closed form"})
        if told_nothing.certificate.exact or not exponent:
            return told_nothing
    channel, bound, found = _solve(problem, hint=None if near is None else near.found)
    return _certified(problem, d_epsilon, channel, bound, found.facts(), found)


def _constant(problem: _Problem) -> tuple[np.ndarray, float]:
    """A channel that tells nothing: always the observable of least cost. Optimal if eps = 0 or nothing can be chosen."""
    costs = problem.cost.max(axis=0) if problem.worst_case else problem.prior @ problem.cost
    channel = np.zeros(problem.cost.shape)
    channel[:, costs.argmin()] = 1.0
    if problem.worst_case and problem.cost.shape[1] > 1 and len(problem.prior) > 1:
        channel[:], bound = highs.least_largest(problem.cost)  # a lottery can be better than any one observable
        return channel, bound
    return channel, float(costs.min())


def _certified(
    problem: _Problem, d_epsilon, channel: np.ndarray, bound: float, facts: dict, found: Found | None = None
) -> Optimum:
    conditional = (channel * problem.cost).sum(axis=1)
    ap = None
    if problem.error is not None:
        answers = optimal_attack(problem.prior, channel, problem.error)
        ap = distortion_privacy(problem.prior, channel, problem.error, answers)
    certificate = Certificate(
        cost=float(conditional.max() if problem.worst_case else problem.prior @ conditional),
        bound=bound,
        unit=_unit(problem, channel.any(axis=0)),
        violation=violation(channel, problem.exponents),
        epsilon=np.nan if d_epsilon is None else _effective(channel, d_epsilon),
        distortion=ap,
        d_m=problem.d_m,
        **facts,
    )
    return Optimum(channel, certificate, found)


def _unit(problem: _Problem, observables) -> float:
    """The largest cost, or average cost, of an observable that is used: what its rounding is measured by.

    A cost that never falls due must not excuse a gap: that of a secret that never occurs, that of an observable never given.
    """
    costs = np.abs(problem.cost[:, observables])
    return float(costs.max() if problem.worst_case else (problem.prior @ costs).max())


def _effective(channel: np.ndarray, d_epsilon: np.ndarray) -> float:
    """The effective epsilon among the secrets that are at a finite distance of one another."""
    groups = np.unique(np.isfinite(d_epsilon), axis=0)
    return max(effective(channel[one], np.asarray(d_epsilon, float)[np.ix_(one, one)]) for one in groups)


def _largest_distortion(problem: _Problem, d_epsilon, plain: Optimum) -> Optimum:
    """Among the optimal channels of (22) one of largest AP: min cost - reward * AP, the reward small enough.

    A linear program has a reward below which its optimum is optimal for the cost too; whether this one was is seen from the
    cost. If A is the AP of any channel of this cost, value <= cost - reward A bounds A from above.
    """
    found, bound, d_max = plain.found, plain.certificate.bound, prior_error(problem.prior, problem.error)
    for share in REWARDS if found is not None and plain.certificate.exact and d_max > 0 else ():
        reward = share * (abs(plain.certificate.cost) or plain.certificate.unit) / d_max
        if reward == 0:
            break
        channel, value, found = _solve(replace(problem, reward=reward), again=found)
        better = _certified(problem, d_epsilon, channel, bound, found.facts(), found)
        if better.certificate.exact:
            most = min(d_max, (better.certificate.cost - value) / reward)
            return replace(better, certificate=replace(better.certificate, distortion_bound=most))
    facts = {"solver": plain.certificate.solver} if plain.found is None else plain.found.facts()
    return _certified(problem, d_epsilon, plain.channel, bound, facts, plain.found)


def _solve(
    problem: _Problem, solver=interior, hint: "Found | None" = None, again: "Found | None" = None
) -> "tuple[np.ndarray, float, Found]":
    """A channel (S, O), a lower bound of the whole problem's value, and what was found out about the program.

    `hint`: of a similar problem; `again`: of this one, with another reward.

    Every program on the way is a relaxation of the whole problem, so the largest bound of all counts. If `solver` ends
    before the gap is closed, all secrets become core, then the library solver has a try; the best channel is kept.
    """
    ratio = reductions.ratios(problem.exponents)
    occur = np.flatnonzero((problem.prior > 0) | problem.worst_case)
    weights = None if problem.worst_case else problem.prior
    observables = reductions.kept_observables(problem.cost, weights, ratio, occur)
    secrets, core, pairs, warm = occur, len(occur), np.empty(0, dtype=np.int64), interior.Warm()
    known = np.zeros(len(ratio), dtype=bool)  # secrets whose neighbours' pairs are listed
    if again is not None:
        secrets, core, pairs, warm = again.secrets, again.core, again.pairs, again.warm.for_reward()
        known[secrets] = True
    elif hint is not None:  # perhaps under another prior
        secrets = np.concatenate([occur, np.setdiff1d(hint.secrets, occur)])
        pairs = reductions.still(hint.pairs, observables, occur, len(ratio))
    F = np.zeros((0, len(problem.prior)))
    if problem.d_m or problem.reward:
        F = problem.prior * problem.error.T[reductions.kept_estimates(problem.error[problem.prior > 0])]
    unbound = not ratio[~np.eye(len(ratio), dtype=bool)].any()
    if unbound and problem.d_m and not problem.worst_case and solver is interior:
        solver = generation
    elif problem.worst_case or (problem.d_m and problem.d_m > (1 - 1e-7) * F.sum(axis=1).min()):
        solver = highs  # (12), or a d_m that leaves the feasible set without an interior
    level = len(GAPS) - 1 if solver is not interior else 0 if hint is None and again is None else 1
    best, least, bound, none = None, np.inf, -np.inf, np.empty(0, dtype=np.int64)
    in_vain = promotions = 0
    for rounds in range(1, ROUNDS + 1):  # noqa: B007
        new = reductions.first_pairs(problem.exponents, secrets, core, ~known[secrets], observables)
        pairs, known[secrets], inside = reductions.merged(pairs, new), True, secrets[:core]
        program = _program(problem, secrets, core, observables, F, pairs)
        gap, tight = GAPS[level], GAPS[level] < GAP
        try:
            P, multipliers = solver.solve(program, gap, warm=warm) if solver is interior else solver.solve(program, gap)
        except generation.Stopped:
            solver = highs
            continue
        P = P / P.sum(axis=0)
        bound = max(bound, lower_bound(program, multipliers))
        share, broken = reductions.broken(P, ratio, secrets, core, observables)
        listed = reductions.merged(pairs, broken)
        in_vain += tight and share > reductions.REPAIR and len(listed) == len(pairs)  # all are listed, rounding breaks them
        done = tight and (share <= reductions.REPAIR or in_vain > IN_VAIN)
        P = reductions.mended(P, share)
        added, promoted = reductions.misfits(P, ratio, secrets, core), none
        if done and not len(added):
            columns, promoted = reductions.extended(P, ratio, inside, problem.prior)
            if not len(promoted):
                reached = value(program, P)
                if reached < least:
                    best, least = columns, reached
                rounding = ROUNDING * _unit(problem, observables[best.max(axis=1) >= TINY])
                if least - bound <= max(GAP * abs(least), rounding) or (solver is highs and core == len(secrets)):
                    break
                solver, promoted = (solver, secrets[core:]) if core < len(secrets) else (highs, none)
            elif promotions == PROMOTIONS:
                promoted = np.union1d(promoted, secrets[core:])
            promotions += bool(len(promoted))
        if solver is interior:  # what a small share mends is found only nearer to the optimum
            settled = (share <= MARGIN or len(listed) == len(pairs)) and not len(added)
            level = min(level + 1, len(GAPS) - 1) if settled else min(level, 1)
        pairs = listed
        secrets = np.concatenate([secrets, added])  # behind what was there, which a warm start relies on
        if len(promoted):
            known[promoted] = False
            secrets = np.concatenate([secrets[:core], promoted, np.setdiff1d(secrets[core:], promoted)])
            core, warm, in_vain = core + len(promoted), interior.Warm(), 0
            level = 1 if solver is interior else level
    channel = np.zeros(problem.cost.shape)
    if best is None:  # ROUNDS did not suffice
        best, _ = reductions.extended(P, ratio, inside, problem.prior)
    channel[:, observables] = _tidied(best, problem).T
    return (
        channel,
        bound,
        Found(
            secrets,
            core,
            len(observables),
            int((program.pairs.source != program.pairs.target).sum()),
            rounds,
            solver.__name__.rpartition(".")[2],
            pairs,
            warm,
        ),
    )


def _program(problem: _Problem, secrets, core: int, observables, F: np.ndarray, pairs: np.ndarray) -> Program:
    cost = np.ascontiguousarray(problem.cost[np.ix_(secrets, observables)].T)
    return Program(
        kappa=problem.prior[secrets] * cost,
        pairs=reductions.listed(problem.exponents, secrets, pairs, observables),
        F=np.ascontiguousarray(F[:, secrets]),
        d_m=problem.d_m or None,  # 0 asks for nothing
        reward=problem.reward,
        core=core,
        worst=cost if problem.worst_case else None,
    )


def _tidied(columns: np.ndarray, problem: _Problem) -> np.ndarray:
    """Observables that are given with probability below TINY by every secret, merged into the commonest one.

    Merging keeps (22b) and does not lower the distortion privacy; the cost rises by TINY at most, times the largest c.
    """
    tiny = columns.max(axis=1) < TINY
    columns = columns.copy()
    columns[(columns @ problem.prior).argmax()] += columns[tiny].sum(axis=0)
    columns[tiny] = 0.0
    return columns
