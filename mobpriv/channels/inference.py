"""Attacks on a channel: the estimates of an adversary who knows p(o|s) and sees an observable.

Source: Shokri, *Privacy Games: Optimal User-Centric Data Obfuscation*, PETS 2015, §3.4, §6.1, §9 and Appendix A.

Arrays are indexed by the secret first: prior π (S,), channel p(o|s) (S, O), error d(ŝ, s) (S, E) in metres, one column an
estimate. An attack q(ŝ|o) is a matrix (O, E) whose rows sum to 1. A deterministic attack may be a vector (O,) of columns of
``error``. For an observable that never occurs, the attack gives the answer that is best without an observation.
"""

import numpy as np

from mobpriv.channels import checks
from mobpriv.channels.programs.solvers.minmax import MinMax, solve


def distortion_privacy(prior, channel, error, attack) -> float:
    """Σ_{s,o,ŝ} π(s) p(o|s) q(ŝ|o) d(ŝ, s), Equation (7): the adversary's expected error, in the unit of ``error``."""
    prior = checks.prior(prior)
    return float(prior @ conditional_error(checks.channel(channel, len(prior)), error, attack))


def conditional_error(channel, error, attack) -> np.ndarray:
    """Σ_{o,ŝ} p(o|s) q(ŝ|o) d(ŝ, s) for every secret s, Equations (6) and (26); shape (S,), in the unit of ``error``."""
    channel = checks.channel(channel)
    error = checks.matrix(error, "error", rows=len(channel))
    return errors(channel, error, _attack(attack, channel.shape[1], error.shape[1]))


def errors(channel: np.ndarray, error: np.ndarray, attack: np.ndarray) -> np.ndarray:
    """:func:`conditional_error` of checked arrays."""
    expected = error[:, attack] if attack.ndim == 1 else error @ attack.T  # (S, O): error for secret s on seeing o
    return np.einsum("so,so->s", channel, expected)


def prior_error(prior, error) -> float:
    """min_ŝ Σ_s π(s) d(ŝ, s): the error of an adversary without an observation.

    No channel leaves a larger error, because the adversary can ignore the observable, and a constant channel leaves exactly
    this one. It is d_max, the largest d_m for which (21) and (24) have a solution.
    """
    prior = checks.prior(prior)
    return float((prior @ checks.matrix(error, "error", rows=len(prior))).min())


def optimal_attack(prior, channel, error) -> np.ndarray:
    """The attack of least expected error, Equation (19), in the closed form (33); shape (O,), columns of ``error``.

    For every observable it returns the estimate ŝ of least Σ_s π(s) p(o|s) d(ŝ, s). A deterministic answer is as good as any
    (Appendix B). Ties go to the lowest column. Observables of probability 0 get the best estimate under the prior.
    """
    prior = checks.prior(prior)
    return best_guesses(prior, checks.channel(channel, len(prior)), checks.matrix(error, "error", rows=len(prior)))


def unweighted_attack(channel, error) -> np.ndarray:
    """The attack of least Σ_s E_s, Equation (27); shape (O,), columns of ``error``.

    The paper states a linear program; none is needed. Its objective is Σ_o Σ_ŝ q(ŝ|o) w(o, ŝ) with the constants w(o, ŝ) = Σ_s
    p(o|s) d(ŝ, s). Its constraints are one simplex for each o, so every observable can be solved separately. A linear function
    on a simplex is least at a corner: at the ŝ of least w(o, ŝ). This is (19) under the uniform prior (times the number of
    secrets).
    """
    channel = checks.channel(channel)
    uniform = np.full(len(channel), 1 / len(channel))
    return best_guesses(uniform, channel, checks.matrix(error, "error", rows=len(channel)))


def bayes(prior, channel) -> np.ndarray:
    """q(ŝ|o) = π(ŝ) p(o|ŝ) / Σ_s π(s) p(o|s), Equation (25); shape (O, S): the estimates are the secrets.

    The adversary draws ŝ from the posterior. For observables of probability 0, where the quotient is 0/0, the result is the
    prior.
    """
    prior = checks.prior(prior)
    joint = (prior[:, None] * checks.channel(channel, len(prior))).T
    total = joint.sum(1, keepdims=True)
    return np.divide(joint, total, out=np.tile(prior, (len(joint), 1)), where=total > 0)


def minmax_attack(channel, error) -> MinMax:
    """The attack of least max_s E_s, Equation (28), a linear program.

    By duality the bound is the error of the best attack under the *least favourable prior*: y = max_π min_q of (7). Observables
    that no secret gives do not affect y: their answer is that of the unweighted attack.

    Raises RuntimeError if the solver stops before y and the bound agree (1e-6 relative).
    """
    return _minmax(channel, error, by_pair=False)


def minmax_pair_attack(channel, error) -> MinMax:
    """The attack of least max_{s,ŝ} E_{ŝ,s} with E_{ŝ,s} = Pr{ŝ|s} d(ŝ, s), Equation (29), a linear program.

    Departures from the paper: none. (29b) has a row for every pair; we leave out the rows with d(ŝ, s) = 0, which say 0 ≤ y.
    E_{ŝ,s} shrinks when the answers are spread over many estimates, so a small y says little about E_s.

    Raises RuntimeError if the solver stops before y and the bound agree (1e-6 relative).
    """
    return _minmax(channel, error, by_pair=True)


def remap(prior, channel, cost_of_estimate) -> np.ndarray:
    """The channel after the optimal remapping: every observable o moves to the o' of least Σ_s π(s) p(o|s) c(o', s).

    ``cost_of_estimate`` is c (S, O'), one column a new observable; the result has shape (S, O'). Remapping is post-processing:
    it preserves every ε and does not raise the expected cost under this prior.
    """
    prior = checks.prior(prior)
    channel = checks.channel(channel, len(prior))
    cost = checks.matrix(cost_of_estimate, "cost", rows=len(prior))
    moved = np.zeros((cost.shape[1], len(prior)))
    np.add.at(moved, best_guesses(prior, channel, cost), channel.T)
    return moved.T


def best_guesses(prior: np.ndarray, channel: np.ndarray, error: np.ndarray) -> np.ndarray:
    """:func:`optimal_attack` of checked arrays."""
    joint = (prior[:, None] * channel).T
    guesses = (joint @ error).argmin(1)
    guesses[joint.sum(1) == 0] = (prior @ error).argmin()
    return guesses


def _attack(attack, observables: int, estimates: int) -> np.ndarray:
    """Check an attack: a vector of columns or a matrix of probabilities."""
    attack = np.asarray(attack)
    if attack.ndim == 2:
        attack = checks.matrix(attack, "attack", rows=observables, columns=estimates)
        wrong = (attack < 0).any(1) | (np.abs(attack.sum(1) - 1) > checks.SUM_TOLERANCE)
        if wrong.any():
            o = int(wrong.argmax())
            raise ValueError(f"row {o} of the attack must be probabilities that sum to 1 (got the sum {attack[o].sum():.12g})")
        return attack
    if attack.shape != (observables,) or not np.issubdtype(attack.dtype, np.integer):
        raise ValueError(
            f"an attack is {observables} columns of error (integers) or a matrix of shape {(observables, estimates)} "
            f"(got shape {attack.shape} of {attack.dtype})"
        )
    outside = (attack < 0) | (attack >= estimates)
    if outside.any():
        o = int(outside.argmax())
        raise ValueError(f"the estimate for observable {o} must lie in 0 … {estimates - 1} (got {attack[o]})")
    return attack


def _minmax(channel, error, by_pair: bool) -> MinMax:
    channel = checks.channel(channel)
    error = checks.matrix(error, "error", rows=len(channel), negative=False)
    attack = np.zeros((channel.shape[1], error.shape[1]))
    seen = channel.any(0)
    attack[np.arange(len(seen)), unweighted_attack(channel, error)] = 1.0
    if not error.any():
        return MinMax(attack, 0.0, 0.0)
    attack[seen], y, bound = solve(channel[:, seen], error, by_pair)
    return MinMax(attack, y, bound)
