"""The maximum-likelihood attack of an adversary who knows the mechanism: how likely is ã_i if a_j is the true profile?

Source of the setting: Olivier, Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization
mechanisms*; the attack is ours.

The paper's Algorithm 11 treats all differences alike. An adversary who knows ε and how χ is chosen ("the security parameters
should be made public", §VI-D) can do more. With N(b, n) a candidate is impossible if her neighbourhood does not contain all
differences.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numba
import numpy as np
import pandas as pd

from mobpriv.attacks.visits.reidentification import check_ranking_size
from mobpriv.attacks.visits.tables import at_known_pois, check_profiles
from mobpriv.visits.affinity import Neighbourhood


@dataclass(frozen=True)
class Likelihood:
    """−ln P(ã_i | a_j), Σ over the POIs; infinite if a_j cannot have become ã_i.

    ``mechanism`` is one of :mod:`mobpriv.mechanisms.visits` with one ε for all and χ = all POIs or a Neighbourhood. χ_j is
    computed from the candidate's own profile, as the mechanism computes it. With a neighbourhood all POIs of a candidate must
    be known. With χ = all, randomised response and one ε, it ranks as profileGuess does, because every flip is equally
    unlikely.
    """

    mechanism: Any  # of mobpriv.mechanisms.visits
    known_: pd.DataFrame | None = field(default=None, repr=False, compare=False)

    name = "likelihood"

    def __post_init__(self):
        if not callable(getattr(self.mechanism, "log_probability", None)):
            raise ValueError(f"mechanism must be one on profiles, with log_probability (got {self.mechanism!r})")
        chi = self.mechanism.chi
        if not (chi is None or isinstance(chi, Neighbourhood)):
            raise ValueError(
                "the mechanism must have chi=None or a Neighbourhood, which the adversary can compute for a candidate"
            )
        if not isinstance(self.mechanism.epsilon, float):
            raise ValueError("the mechanism must have one epsilon: the adversary does not know whose profile he looks at")

    def fit(self, known: pd.DataFrame) -> Self:
        return type(self)(self.mechanism, _possible(check_profiles(known, "leaked"), self.mechanism, "values", "leaked"))

    def rank(self, anonymous: pd.DataFrame) -> pd.DataFrame:
        if self.known_ is None:
            raise ValueError("fit the attack on known profiles first")
        published = at_known_pois(check_profiles(anonymous, "sanitised"), self.known_)
        _possible(published, self.mechanism, "outputs", "sanitised")
        check_ranking_size(len(published), len(self.known_))
        true, chi = self.known_.to_numpy(), self.mechanism.chi
        if isinstance(chi, Neighbourhood):
            if published.shape[1] < anonymous.shape[1]:
                raise ValueError(
                    f"a neighbourhood needs the whole profile of every candidate (only {published.shape[1]} of {anonymous.shape[1]} "
                    "POIs leaked): attack with profileGuess"
                )
            # the neighbourhood's matrix has the POIs in the order of the sanitised profiles
            chi = chi.masks(self.known_[anonymous.columns].to_numpy() > 0)
            chi = chi[:, anonymous.columns.get_indexer(self.known_.columns)]
        else:
            chi = np.ones(true.shape, bool)
        d = negative_log_likelihood(self.mechanism, published.to_numpy()[None], true[None], chi[None])[0]
        return pd.DataFrame(d, published.index, self.known_.index)


def _possible(table: pd.DataFrame, mechanism, field: str, what: str) -> pd.DataFrame:
    """The table, if the mechanism can take (``values``) or publish (``outputs``) its entries."""
    values, allowed = table.to_numpy(), getattr(mechanism, field, None)
    if allowed is not None and values.size and values.max() > allowed[-1]:
        raise ValueError(
            f"{what} profiles must hold 0 … {allowed[-1]} for {mechanism.name} (got {values.max()}): booleans(counts) makes such"
        )
    return table


def negative_log_likelihood(mechanism, published: np.ndarray, known: np.ndarray, chi: np.ndarray) -> np.ndarray:
    """−ln P(ã_i | a_j) for arrays (draws, n, m), (draws, k, m) and the candidates' χ_j; shape (draws, n, k)."""
    outputs, y = np.unique(np.asarray(published).astype(np.int64), return_inverse=True)
    values, x = np.unique(np.asarray(known).astype(np.int64), return_inverse=True)
    table = -np.asarray(mechanism.log_probability(outputs[:, None], values[None, :]), float)
    same = outputs[:, None] == values[None, :]
    out = np.empty((*np.shape(published)[:2], np.shape(known)[1]))
    _sum(y.reshape(np.shape(published)).astype(np.int32), x.reshape(np.shape(known)).astype(np.int32), chi, table, same, out)
    return out


@numba.njit(cache=True, parallel=True)
def _sum(y, x, chi, table, same, out):
    draws, n, m = y.shape
    for row in numba.prange(draws * n):
        d, i = row // n, row % n
        for a in range(x.shape[1]):
            total = 0.0
            for j in range(m):
                if chi[d, a, j]:
                    total += table[y[d, i, j], x[d, a, j]]
                elif not same[y[d, i, j], x[d, a, j]]:
                    total = np.inf  # outside χ nothing is perturbed: any difference is impossible
                if total == np.inf:
                    break
            out[d, i, a] = total
