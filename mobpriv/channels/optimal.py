"""Optimal obfuscation channels: the linear programs (21), (22), (23) and (24).

Source: Shokri, *Privacy Games*, PETS 2015.

    min_p  sum_{s,o} pi(s) p(o|s) c(o, s)                                                    (11); or (12), the worst case

    s.t.   p(o|s) <= exp(eps d_eps(s, s')) p(o|s')                        for all s, s', o    (22b) = (24d)
           sum_s pi(s) p(o|s) d(h, s) >= x(o) for all o, h;  sum_o x(o) >= d_m                (21b, c) = (24b, c)

Arrays have the secret first: prior (S,), cost c (S, O), error d(h, s) (S, estimates), d_epsilon (S, S). Any unit of length will
do if it is the same everywhere, with epsilon in its inverse; mobpriv uses metres.

At 20 x 15 cells (22b) alone has 26.9 million rows. Almost all of them can be left out exactly; `reductions` says which, and
why. The certificate is for the complete problem: its bound holds for it, and every pair of all secrets has been checked.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from mobpriv.channels import checks
from mobpriv.channels.guarantees import certificate
from mobpriv.channels.programs import relaxations
from mobpriv.channels.programs.certificate import GAP, Certificate
from mobpriv.channels.programs.problem import ChannelProblem, checked_problem, exponents
from mobpriv.channels.programs.relaxations import SolvedProgram
from mobpriv.channels.programs.solvers import highs

REWARDS = (1e-4, 1e-5, 1e-6)
"""Weights of the distortion privacy relative to the cost, as shares of cost / d_max, tried in this order."""


@dataclass(frozen=True)
class Optimum:
    """A channel (S, O), rows sum to 1, and what is known about it. Read `certificate.exact` before calling it optimal."""

    channel: np.ndarray
    certificate: Certificate
    program: SolvedProgram | None = field(default=None, repr=False)


def distortion(prior, cost, error, d_m: float, worst_case: bool = False) -> Optimum:
    """The least costly channel whose distortion privacy is at least d_m, (21).

    Secrets of prior 0 get the average answer. Many channels are optimal; all have the same cost, and attacks other than the
    optimal one (19) err differently on them. The paper has no rule to choose one. The result is the vertex at which the simplex
    method ends.
    """
    return solved(checked_problem(prior, cost, np.inf, error, d_m, worst_case), None)


def differential(prior, cost, d_epsilon, epsilon: float, error=None, worst_case: bool = False) -> Optimum:
    """The least costly eps-d_eps-private channel, (22).

    Many channels are optimal, with different distortion privacy AP (§9.1 compares them by it). Without `error` the result is
    one from the interior of the optimal set. With `error` it is the one of largest AP: our rule, for the paper has none.
    """
    problem = checked_problem(prior, cost, exponents(prior, d_epsilon, epsilon), worst_case=worst_case)
    plain = solved(problem, d_epsilon)
    if error is None:
        return plain
    if worst_case:
        raise ValueError("the rule of the largest distortion privacy is for the average cost: leave error or worst_case out")
    error = checks.matrix(error, "error", rows=len(problem.prior), negative=False)
    return of_largest_ap(replace(problem, error=error), d_epsilon, plain)


def within(prior, cost, d_epsilon, epsilon: float, threshold: float, worst_case: bool = False) -> Optimum:
    """The least costly channel with p(o|s) <= exp(eps) p(o|s') for all d_eps(s, s') <= threshold, (23).

    Chains of such pairs constrain pairs farther apart. With B = eps times the number of steps of the shortest chain, this is
    (22) with exponents B, without a constraint where no chain leads. The effective epsilon of the certificate is per step of
    such a chain.
    """
    from scipy.sparse.csgraph import shortest_path

    checks.epsilon(epsilon)
    if not threshold > 0:
        raise ValueError(f"threshold must be positive, in the unit of d_epsilon (got {threshold})")
    d = exponents(prior, d_epsilon, 1.0)
    steps = shortest_path(np.ascontiguousarray((d <= threshold) & (d > 0), float), unweighted=True)
    return solved(checked_problem(prior, cost, epsilon * steps, worst_case=worst_case), steps)


def joint(prior, cost, error, d_m: float, d_epsilon, epsilon: float, worst_case: bool = False) -> Optimum:
    """The least costly eps-d_eps-private channel whose distortion privacy is at least d_m, (24)."""
    return solved(checked_problem(prior, cost, exponents(prior, d_epsilon, epsilon), error, d_m, worst_case), d_epsilon)


def solved(problem: ChannelProblem, d_epsilon) -> Optimum:
    """A constant channel if it is optimal or as good as optimal; else the result of `relaxations`.

    p(o|s) <= exp(B) p(o|t) for the largest exponent B. So the least cost is at most (exp(B) - 1) max |c| below that of the
    constant channel p(.|t).
    """
    exponent = problem.exponents.max()
    if exponent < GAP or 1 in problem.cost.shape:
        channel, bound = _constant(problem)
        if 1 not in problem.cost.shape:
            bound -= np.expm1(exponent) * problem.unit()
        constant = certificate(problem, d_epsilon, channel, bound, {"solver": "closed form"})
        if constant.exact or not exponent:
            return Optimum(channel, constant)
    return _certified(problem, d_epsilon, *relaxations.solve(problem))


def _certified(problem: ChannelProblem, d_epsilon, channel: np.ndarray, bound: float, program: SolvedProgram) -> Optimum:
    return Optimum(channel, certificate(problem, d_epsilon, channel, bound, program.facts()), program)


def _constant(problem: ChannelProblem) -> tuple[np.ndarray, float]:
    """A constant channel, which always reports the observable of least cost. Optimal if eps = 0 or there is no choice."""
    costs = problem.cost.max(axis=0) if problem.worst_case else problem.prior @ problem.cost
    channel = np.zeros(problem.cost.shape)
    channel[:, costs.argmin()] = 1.0
    if problem.worst_case and problem.cost.shape[1] > 1 and len(problem.prior) > 1:
        channel[:], bound = highs.least_largest(problem.cost)  # a mixture can be better than any one observable
        return channel, bound
    return channel, float(costs.min())


def of_largest_ap(problem: ChannelProblem, d_epsilon, plain: Optimum) -> Optimum:
    """An optimal channel of (22) of largest AP: min cost - reward * AP, the reward small enough.

    A linear program has a reward below which its optimum is also optimal for the cost. The cost shows whether this reward was
    small enough. If A is the AP of any channel of this cost, value <= cost - reward A bounds A from above.
    """
    program, bound, d_max = plain.program, plain.certificate.bound, problem.d_max
    for share in REWARDS if program is not None and plain.certificate.exact and d_max > 0 else ():
        reward = share * (abs(plain.certificate.cost) or plain.certificate.unit) / d_max
        if reward == 0:
            break
        channel, value, program = relaxations.solve(replace(problem, reward=reward), previous=program)
        better = _certified(problem, d_epsilon, channel, bound, program)
        if better.certificate.exact:
            largest_ap = min(d_max, (better.certificate.cost - value) / reward)
            return replace(better, certificate=replace(better.certificate, distortion_bound=largest_ap))
    facts = {"solver": plain.certificate.solver} if plain.program is None else plain.program.facts()
    return replace(plain, certificate=certificate(problem, d_epsilon, plain.channel, bound, facts))
