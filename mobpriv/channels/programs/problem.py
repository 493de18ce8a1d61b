"""The complete problem, (21), (22), (23) or (24) of Shokri 2015, as posed: checked, without any reduction."""

from dataclasses import dataclass, replace

import numpy as np

from mobpriv.channels import checks


@dataclass(frozen=True)
class ChannelProblem:
    """min (11), or (12) if `worst_case`, over channels with p(o|s) <= exp(B(s, s')) p(o|s'), B the exponents, and AP >= d_m.

    `checked_problem` makes one from a caller's arguments, `posed` from checked arrays. With a `reward` the objective is (11) less reward * AP.
    """

    prior: np.ndarray  # (S,)
    cost: np.ndarray  # (S, O)
    exponents: np.ndarray  # (S, S), 0 on the diagonal, inf for pairs without a constraint
    error: np.ndarray | None = None  # d(h, s), (S, estimates); needed for d_m or a reward
    d_m: float | None = None
    worst_case: bool = False
    reward: float = 0.0

    @property
    def d_max(self) -> float:
        """The error of an adversary without an observation: no channel has a larger AP."""
        return float((self.prior @ self.error).min())

    def unit(self, observables=slice(None)) -> float:
        """The largest cost, or average cost, of an observable that is used: the scale of rounding.

        Costs that never occur (of a secret of prior 0, of an observable never given) are left out, because they must not hide a
        gap.
        """
        costs = np.abs(self.cost[:, observables])
        return float(costs.max() if self.worst_case else (self.prior @ costs).max())


def exponents(prior, d_epsilon, epsilon: float) -> np.ndarray:
    """eps d_eps; eps = 0 is allowed, and makes all secrets indistinguishable."""
    prior = checks.prior(prior)
    checks.affordable(len(prior), np.count_nonzero(prior))
    return scaled(checks.metric(d_epsilon, "d_epsilon"), epsilon)


def scaled(d_epsilon: np.ndarray, epsilon: float) -> np.ndarray:
    """`exponents` of a checked metric."""
    if not 0 <= epsilon < np.inf:
        raise ValueError(f"epsilon must be finite and not negative, in 1 over the unit of d_epsilon (got {epsilon})")
    return epsilon * d_epsilon


def checked_problem(prior, cost, exponents, error=None, d_m: float | None = None, worst_case: bool = False) -> ChannelProblem:
    """The problem, with `exponents` (S, S) or one number for all pairs. ValueError if invalid or if no channel is feasible."""
    prior = checks.prior(prior)
    checks.affordable(len(prior), len(prior) if worst_case else np.count_nonzero(prior))
    cost = checks.matrix(cost, "cost", rows=len(prior))
    if np.ndim(exponents) and exponents.shape != (len(prior), len(prior)):
        raise ValueError(f"d_epsilon must have a row and a column a secret, {len(prior)} (got shape {exponents.shape})")
    if error is not None:
        error = checks.matrix(error, "error", rows=len(prior), negative=False)
    return posed(prior, cost, exponents, error, d_m, worst_case)


def posed(prior, cost, exponents, error=None, d_m: float | None = None, worst_case: bool = False) -> ChannelProblem:
    """The problem of checked arrays. ValueError if no channel is feasible."""
    if np.ndim(exponents) == 0:
        exponents = np.where(np.eye(len(prior), dtype=bool), 0.0, exponents)
    problem = ChannelProblem(prior, cost, exponents, error, d_m, worst_case)
    if d_m is None:
        return problem
    if not 0 <= d_m <= problem.d_max * (1 + 1e-12):
        raise ValueError(
            f"no channel has a distortion privacy of d_m = {d_m:.9g}: an adversary who sees nothing errs by "
            f"d_max = {problem.d_max:.9g} under this prior; choose 0 <= d_m <= d_max"
        )
    return replace(problem, d_m=min(d_m, problem.d_max))
