"""Solve the complete problem by a sequence of small programs.

Each program leaves out pairs and secrets; those that turn out to matter are added. `reductions` describes what can be left out,
and why that is exact. Every program of the sequence is a relaxation of the complete problem, so the largest of all bounds is
valid. A channel is accepted once it satisfies every pair and all secrets fit in.
"""

from dataclasses import dataclass, field
from types import ModuleType
from typing import NamedTuple

import numpy as np

from mobpriv.channels.programs import reductions
from mobpriv.channels.programs.certificate import GAP, SUM_ROUNDING, Multipliers, Program, lower_bound, value
from mobpriv.channels.programs.problem import ChannelProblem
from mobpriv.channels.programs.solvers import generation, highs, interior
from mobpriv.channels.programs.solvers.points import Warm

_TINY = 1e-10
"""An observable is left out if every secret gives it with a smaller probability than this."""
GAP_LEVELS = (3e-3, 1e-4, GAP / 4)
"""Relative gaps of the programs; the first, larger ones serve to find violated pairs and secrets."""
_TIGHT_LEVEL = len(GAP_LEVELS) - 1
_MARGIN = 1e-3
"""The tight programs begin once this share of a constant channel repairs a loose solution."""
ROUNDS = 60
_IN_VAIN, _PROMOTIONS = 2, 3
"""Tight rounds in which rounding alone violates listed pairs, after which the channel is accepted; times that single secrets
become core before all of the program do.
"""
_NO_INDICES = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class SolvedProgram:
    """What was learned about the program: with another reward it needs much the same secrets and pairs."""

    secrets: np.ndarray
    core: int
    observables: int
    rows: int  # of (22b) in the last program, without p >= 0
    rounds: int
    solver: str
    pairs: np.ndarray  # in the last program, by their numbers
    warm: Warm

    def facts(self) -> dict:
        return {
            "secrets": len(self.secrets),
            "core": self.core,
            "observables": self.observables,
            "pairs": self.rows,
            "rounds": self.rounds,
            "solver": self.solver,
        }


class Solution(NamedTuple):
    """A channel (S, O), a lower bound of the complete problem's value, and what was learned about the program."""

    channel: np.ndarray
    bound: float
    program: SolvedProgram


def solve(problem: ChannelProblem, solver: ModuleType = interior, previous: SolvedProgram | None = None) -> Solution:
    """A channel that is optimal up to GAP, or the best found; a certificate must check it.

    `previous` is what was learned of this problem with another reward. If `solver` ends before the gap is closed, all secrets
    become core, and after that the library solver is tried; the best channel is kept. The library solver alone is used for
    (12), and for a d_m that leaves no interior. `generation` solves only (21).
    """
    state = _begun(problem, solver, previous)
    for rounds in range(1, ROUNDS + 1):  # noqa: B007
        state.list_neighbours()
        program, core = state.program(), state.secrets[: state.core]
        try:
            P, multipliers = state.solved(program)
        except generation.Stopped:
            state.solver = highs
            continue
        state.bound = max(state.bound, lower_bound(program, multipliers))
        share, listed, done = state.check(P)
        P = reductions.mended(P, share)
        added, promoted = reductions.misfits(P, state.ratio, state.secrets, state.core), _NO_INDICES
        if done and not len(added):
            promoted = state.complete(program, P)
            if promoted is None:
                break
        state.tighten(settled=(share <= _MARGIN or len(listed) == len(state.pairs)) and not len(added))
        state.extend(listed, added, promoted)
    if state.best is None:  # ROUNDS did not suffice
        state.best, _ = reductions.extended(P, state.ratio, core, problem.prior)
    channel = np.zeros(problem.cost.shape)
    channel[:, state.observables] = _tidied(state.best, problem).T
    rows = int((program.pairs.source != program.pairs.target).sum())
    name = state.solver.__name__.rpartition(".")[2]
    program = SolvedProgram(state.secrets, state.core, len(state.observables), rows, rounds, name, state.pairs, state.warm)
    return Solution(channel, state.bound, program)


def _begun(problem: ChannelProblem, solver: ModuleType, previous: SolvedProgram | None) -> "_State":
    """The first program, with the secrets that occur, or with those of the same program with another reward."""
    ratio = reductions.ratios(problem.exponents)
    occur = np.flatnonzero((problem.prior > 0) | problem.worst_case)
    weights = None if problem.worst_case else problem.prior
    observables = reductions.kept_observables(problem.cost, weights, ratio, occur)
    F = np.zeros((0, len(problem.prior)))
    if problem.d_m or problem.reward:
        F = problem.prior * problem.error.T[reductions.kept_estimates(problem.error[problem.prior > 0])]
    state = _State(problem, ratio, observables, F, _suitable(problem, solver, ratio, F), occur, len(occur))
    if previous is not None:
        state.secrets, state.core = previous.secrets, previous.core
        state.pairs, state.warm = previous.pairs, previous.warm.for_reward()
        state.known[state.secrets] = True
    state.level = _TIGHT_LEVEL if state.solver is not interior else 0 if previous is None else 1
    return state


def _suitable(problem: ChannelProblem, solver: ModuleType, ratio: np.ndarray, F: np.ndarray) -> ModuleType:
    """The solver asked for, if it can solve the problem."""
    unbound = not ratio[~np.eye(len(ratio), dtype=bool)].any()
    if unbound and problem.d_m and not problem.worst_case and solver is interior:
        return generation
    if problem.worst_case or (problem.d_m and problem.d_m > (1 - 1e-7) * F.sum(axis=1).min()):
        return highs  # (12), or a d_m that leaves the feasible set without an interior
    return solver


@dataclass
class _State:
    """State of the rounds: the lists so far, the solver and its gap, the best channel and the best bound."""

    problem: ChannelProblem
    ratio: np.ndarray  # exp(-B)
    observables: np.ndarray  # that are kept
    F: np.ndarray  # pi(s) d(h, s), (estimates that are kept, S)
    solver: ModuleType
    secrets: np.ndarray  # in the program, the core first
    core: int
    level: int = 0  # index into GAP_LEVELS
    pairs: np.ndarray = field(default_factory=_NO_INDICES.copy)  # listed, by their numbers
    warm: Warm = field(default_factory=Warm)
    best: np.ndarray | None = None  # columns over all secrets (observables kept, S)
    least: float = np.inf  # cost of `best`
    bound: float = -np.inf
    in_vain: int = 0
    promotions: int = 0

    def __post_init__(self):
        self.known = np.zeros(len(self.ratio), dtype=bool)  # secrets whose neighbours' pairs are listed

    def list_neighbours(self) -> None:
        """Add the pairs with their neighbours for all secrets that are new in the program or in the core."""
        new = ~self.known[self.secrets]
        more = reductions.first_pairs(self.problem.exponents, self.secrets, self.core, new, self.observables)
        self.pairs = reductions.merged(self.pairs, more)
        self.known[self.secrets] = True

    def program(self) -> Program:
        cost = np.ascontiguousarray(self.problem.cost[np.ix_(self.secrets, self.observables)].T)
        return Program(
            kappa=self.problem.prior[self.secrets] * cost,
            pairs=reductions.listed(self.problem.exponents, self.secrets, self.pairs, self.observables),
            F=np.ascontiguousarray(self.F[:, self.secrets]),
            d_m=self.problem.d_m or None,  # 0 is no constraint
            reward=self.problem.reward,
            core=self.core,
            worst=cost if self.problem.worst_case else None,
        )

    def solved(self, program: Program) -> tuple[np.ndarray, Multipliers]:
        """Columns that sum to 1 over the observables and satisfy (24c), and multipliers."""
        warm = {"warm": self.warm} if self.solver is interior else {}
        P, multipliers = self.solver.solve(program, GAP_LEVELS[self.level], **warm)
        return reductions.distorting(P / P.sum(axis=0), program), multipliers

    def check(self, P: np.ndarray) -> tuple[float, np.ndarray, bool]:
        """The share of a constant channel that repairs P; the pairs with those it violates; whether the repaired P counts."""
        share, broken = reductions.broken(P, self.ratio, self.secrets, self.core, self.observables)
        listed, tight = reductions.merged(self.pairs, broken), self.level == _TIGHT_LEVEL
        # violated although all are listed: rounding
        self.in_vain += tight and share > reductions.REPAIR and len(listed) == len(self.pairs)
        return share, listed, tight and (share <= reductions.REPAIR or self.in_vain > _IN_VAIN)

    def complete(self, program: Program, P: np.ndarray) -> np.ndarray | None:
        """Fill in all secrets from the core, and return those that should become core.

        Those are the secrets that do not fit. If all fit and the gap is still open, they are all secrets of the program; after
        that the library solver is next. None at the end.
        """
        columns, promoted = reductions.extended(P, self.ratio, self.secrets[: self.core], self.problem.prior)
        if not len(promoted):
            cost = value(program, P)
            if cost < self.least:
                self.best, self.least = columns, cost
            if self._closed():
                return None
            promoted = self.secrets[self.core :]
            self.solver = self.solver if len(promoted) else highs
        elif self.promotions == _PROMOTIONS:
            promoted = np.union1d(promoted, self.secrets[self.core :])
        self.promotions += bool(len(promoted))
        return promoted

    def _closed(self) -> bool:
        """Whether the best channel reaches the bound up to GAP or rounding, or nothing is left to try."""
        rounding = SUM_ROUNDING * self.problem.unit(self.observables[self.best.max(axis=1) >= _TINY])
        if self.least - self.bound <= max(GAP * abs(self.least), rounding):
            return True
        return self.solver is highs and self.core == len(self.secrets)

    def tighten(self, settled: bool) -> None:
        """Set the next gap: pairs that a small share repairs are found only nearer to the optimum."""
        if self.solver is interior:
            self.level = min(self.level + 1, _TIGHT_LEVEL) if settled else min(self.level, 1)

    def extend(self, listed: np.ndarray, added: np.ndarray, promoted: np.ndarray) -> None:
        """Add pairs; add secrets after the existing ones, which a warm start requires; make secrets core."""
        self.pairs, self.secrets = listed, np.concatenate([self.secrets, added])
        if not len(promoted):
            return
        self.known[promoted] = False
        rest = np.setdiff1d(self.secrets[self.core :], promoted)
        self.secrets = np.concatenate([self.secrets[: self.core], promoted, rest])
        self.core, self.warm, self.in_vain = self.core + len(promoted), Warm(), 0
        self.level = 1 if self.solver is interior else self.level


def _tidied(columns: np.ndarray, problem: ChannelProblem) -> np.ndarray:
    """Merge the observables that every secret gives with probability below TINY into the most frequent one.

    Merging preserves (22b) and does not lower the distortion privacy; the cost rises by at most TINY times the largest c.
    """
    tiny = columns.max(axis=1) < _TINY
    columns = columns.copy()
    columns[(columns @ problem.prior).argmax()] += columns[tiny].sum(axis=0)
    columns[tiny] = 0.0
    return columns
