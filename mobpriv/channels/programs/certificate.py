"""Linear programs, and the cost and lower bound of a solution, computed without trusting the solver.

The notation is that of `interior`, for the linear programs (21), (22), (24) of Shokri 2015. Take any multipliers >= 0 of the
pair constraints g, of the adversary's answers f (scaled to sum to nu + reward for every observable) and nu >= 0 of (24c). Then

    sum_s min_o [kappa_o - G_o' multipliers - F' answers_o](s) + nu d_m

is at most the optimal value: weak duality with the best y for these multipliers. So a bound needs no optimal multipliers.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np

GAP = 1e-8
"""Largest relative gap between cost and bound of a channel called exact."""
SUM_ROUNDING = 1e-14
"""Rounding error of sums of doubles, as a share of the largest cost: a smaller gap counts as none."""
_SMALLEST_COST = 1e-280
"""Lower limit of the largest cost when SUM_ROUNDING is applied: sums of smaller doubles lose their digits."""
VIOLATION = 1e-9
"""Largest violation of (22b), and of (24c) as a share of d_m, of a channel called exact."""


class PairConstraints(NamedTuple):
    """Constraints p_o(target) >= ratio p_o(source): those of observable o are first[o] .. first[o + 1] of the lists."""

    first: np.ndarray
    source: np.ndarray
    target: np.ndarray
    ratio: np.ndarray


@dataclass(frozen=True)
class Program:
    """One linear program: kappa = pi(s) c(o, s) (m, n), `pairs`, F = pi(s) d(h, s) (estimates, n; none for (22)).

    Every pair contains at least one of the first `core` secrets, and the other secrets never occur; None: all are core.
    """

    kappa: np.ndarray
    pairs: PairConstraints
    F: np.ndarray
    d_m: float | None = None
    reward: float = 0.0
    core: int | None = None
    worst: np.ndarray | None = None  # c(o, s) (m, n): minimise the largest conditional cost (12), kappa is then unused


@dataclass(frozen=True)
class Multipliers:
    pairs: np.ndarray
    attacks: np.ndarray  # (m, estimates)
    nu: float
    secrets: np.ndarray | None = None  # of the worst-case rows (n,): a prior under which the average is as large

    def copy(self) -> "Multipliers":
        return Multipliers(self.pairs.copy(), self.attacks.copy(), self.nu, self.secrets)


@dataclass(frozen=True)
class Certificate:
    """Measured properties of a channel. Distances and epsilon in the units of the matrices given."""

    cost: float  # (11), or (12) for the worst case
    bound: float  # no channel that satisfies the constraints costs less
    violation: float  # largest p(o|s) - exp(eps d_eps) p(o|s') over all pairs and observables, at least 0
    epsilon: float  # effective: largest log-ratio of probabilities over d_eps; nan if d_eps is not used
    distortion: float | None  # AP, the error (18) of the optimal attack (19); None where no error was given
    d_m: float | None = None
    unit: float = 0.0  # the largest cost (11), or (12), of an observable that is used
    distortion_bound: float | None = None  # no channel of this cost has a larger AP; where the rule of (22) was asked for
    secrets: int = 0  # size of the program that was solved, after the reductions
    core: int = 0  # secrets that may have pairs with every other one: all that occur, and those of `reductions`
    observables: int = 0
    pairs: int = 0  # rows of (22b), of the last round
    rounds: int = 0
    solver: str = ""

    @property
    def gap(self) -> float:
        """(cost - bound) / cost; 0 if they are equal up to rounding, which matters for costs near 0."""
        if self.cost - self.bound <= SUM_ROUNDING * max(self.unit, _SMALLEST_COST):
            return 0.0
        return (self.cost - self.bound) / abs(self.cost) if self.cost else np.inf

    @property
    def exact(self) -> bool:
        short = 0.0 if self.d_m is None else (self.d_m - self.distortion) / self.d_m if self.d_m > 0 else 0.0
        return self.gap <= GAP and self.violation <= VIOLATION and short <= VIOLATION

    def __str__(self) -> str:
        text = f"cost {self.cost:.8g}, bound {self.bound:.8g}, gap {self.gap:.1e}, violation {self.violation:.1e}"
        text += f", effective epsilon {self.epsilon:.6g}"
        if self.distortion is not None:
            text += f", distortion privacy {self.distortion:.6g}"
            text += f" of {self.d_m:.6g} asked" if self.d_m is not None else ""
        return f"{'exact' if self.exact else 'NOT exact'}: {text}"


def value(program: Program, P: np.ndarray) -> float:
    """The objective at the columns P (m, n), with each x_o as large as (24b) allows."""
    if program.worst is not None:
        return float((program.worst * P).sum(axis=0).max())
    x = (P @ program.F.T).min(axis=1).sum() if len(program.F) else 0.0
    return float(np.vdot(program.kappa, P) - program.reward * x)


def lower_bound(program: Program, multipliers: Multipliers) -> float:
    """The bound of this module's docstring. With `worst`, `secrets` replaces the prior in the cost (12)."""
    kappa = program.kappa
    if program.worst is not None:
        kappa = program.worst * (multipliers.secrets / multipliers.secrets.sum())
    reduced = kappa - gradient(*kappa.shape, multipliers.pairs, *program.pairs)
    if len(program.F):
        total = multipliers.attacks.sum(axis=1, keepdims=True)
        scale = np.divide(multipliers.nu + program.reward, total, out=np.zeros_like(total), where=total > 0)
        if (total <= 0).any() and multipliers.nu + program.reward > 0:
            return -np.inf
        reduced -= (multipliers.attacks * scale) @ program.F
    return float(reduced.min(axis=0).sum()) + multipliers.nu * (program.d_m or 0.0)


@numba.njit(cache=True)
def gradient(m, n, multipliers, first, source, target, ratio):
    """G' multipliers, shape (m, n)."""
    out = np.zeros((m, n))
    for o in range(m):
        for i in range(first[o], first[o + 1]):
            out[o, target[i]] += multipliers[i]
            out[o, source[i]] -= ratio[i] * multipliers[i]
    return out
