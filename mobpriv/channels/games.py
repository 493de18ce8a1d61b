"""The game behind (21): can the user or the adversary gain by deviating from the strategy that the other expects?

Source: Shokri, *Privacy Games*, PETS 2015, §5, §6.

The user leads with a channel p, the adversary replies with an attack q. The pair ⟨p, q⟩ is *mutually* optimal under two
conditions:

* q errs least on p;
* p costs least among the channels on which q errs by d_m or more.

The optimal channel p* of (21) and a deterministic best reply (33) to it need not be mutually optimal. Several best replies tie,
and against an adversary who is certain of a wrong one the user has a cheaper channel. The channel p* is mutually optimal with
the mixed reply q(h|o) = f(o, h) / nu, where f are the multipliers of (21b). By duality no channel on which q errs by d_m costs
less than (21). By complementary slackness q answers with best estimates only.

For a few dozen cells: the programs are written out, and HiGHS's answer is not verified. Arrays have the secret first: prior
(S,), cost c (S, O), error d(h, s) (S, estimates), attack q(h|o) (O, estimates).
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from mobpriv.channels import checks
from mobpriv.channels.programs.written import TOLERANCES, answers, simplices


class Equilibrium(NamedTuple):
    cost: float  # of (21)
    channel: np.ndarray  # (S, O)
    attack: np.ndarray  # (O, estimates), mixed
    price: float  # nu, the multiplier of (21c): the marginal cost of distortion privacy


def equilibrium(prior, cost, error, d_m: float) -> Equilibrium:
    """An optimal channel of (21) and the mixed attack with which it is in equilibrium. ValueError if d_m costs nothing."""
    prior, cost, error = _checked(prior, cost, error)
    n, m = cost.shape
    optimum = _optimum(np.r_[(prior[:, None] * cost).T.ravel(), np.zeros(m)], *answers(prior, error, m, d_m), n, m, "(21)")
    multipliers = -optimum.ineqlin.marginals
    price = float(multipliers[-1])
    if price <= 0:
        raise ValueError(f"d_m = {d_m:.9g} costs nothing, so that no attack keeps the user from a deviation: take a larger d_m")
    attack = np.maximum(multipliers[:-1].reshape(m, -1), 0.0)
    channel = np.maximum(optimum.x[: n * m].reshape(m, n).T, 0.0)
    channel, attack = (part / part.sum(axis=1, keepdims=True) for part in (channel, attack))
    return Equilibrium(float(optimum.fun), channel, attack, price)


def cheapest_reply(prior, cost, error, attack, d_m: float) -> float:
    """The least cost (11) of a channel on which this attack errs by d_m or more; infinite if there is none."""
    prior, cost, error = _checked(prior, cost, error)
    n, m = cost.shape
    gained = prior[:, None] * (error @ np.asarray(attack, float).T)  # (s, o)
    costs, rows = (prior[:, None] * cost).T.ravel(), [-gained.T.ravel()]
    optimum = linprog(costs, rows, [-d_m], simplices(n, m), np.ones(n), options=TOLERANCES)
    return float(optimum.fun) if optimum.status == 0 else np.inf


def most_private(prior, cost, error, at_most: float) -> float:
    """The largest distortion privacy of a channel that costs no more than ``at_most``."""
    prior, cost, error = _checked(prior, cost, error)
    n, m = cost.shape
    rows, right = answers(prior, error, m, 0.0)
    spent = sparse.hstack([sparse.csr_matrix((prior[:, None] * cost).T.ravel()), sparse.csr_matrix((1, m))])
    rows, right = sparse.vstack([rows, spent]), np.r_[right, at_most]
    return -float(_optimum(np.r_[np.zeros(n * m), -np.ones(m)], rows, right, n, m, "the largest distortion privacy").fun)


def _checked(prior, cost, error) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    prior = checks.prior(prior)
    return prior, checks.matrix(cost, "cost", rows=len(prior)), checks.matrix(error, "error", rows=len(prior), negative=False)


def _optimum(objective, rows, right, n: int, m: int, what: str):
    """The optimum over p (n * m) and x (m), with the rows at most the right side."""
    sums, bounds = sparse.hstack([simplices(n, m), sparse.csr_matrix((n, m))]), [(0, None)] * (n * m) + [(None, None)] * m
    optimum = linprog(objective, rows, right, sums, np.ones(n), bounds=bounds, options=TOLERANCES)
    if optimum.status != 0:
        raise ValueError(f"{what} has no optimum: {optimum.message}")
    return optimum
