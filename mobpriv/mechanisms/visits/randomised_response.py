"""Randomised response on boolean profiles.

Source: Olivier, Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§III-B and Proposition 7.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mobpriv.base.noise import flips, least_p, log_added, log_flip
from mobpriv.base.ranges import between, true_or_false
from mobpriv.mechanisms.visits.choices import VisitsMechanism, as_column, chi_text, common_epsilon
from mobpriv.visits.profiles import as_booleans

_P_TOLERANCE = 1e-12  # relative tolerance of p's interval: rounding error of computing 1/(1 + e^ε) in another way


@dataclass(frozen=True, eq=False)
class RandomisedResponse(VisitsMechanism):
    """M_i(b_i) = b_i + d_i modulo 2, d_ij = 1 with probability p for j ∈ χ_i, and 0 for j ∉ χ_i: bits in χ_i flip with
    probability p.

    Proposition 7: d_{χ,ε}-private for 1/(1 + e^ε) ≤ p ≤ e^ε/(1 + e^ε), else ValueError; by default p is the least admissible
    value. The guarantee is given χ_i: see :class:`mobpriv.visits.affinity.Neighbourhood`.

    Departures from the paper: the body of §III-B omits "modulo 2", which the proof in its appendix has. ``modulo=False`` adds
    as the body says: it publishes 0, 1 or 2, and a 0 or a 2 reveals b_ij for any ε.
    """

    p: float | None = None
    modulo: bool = True

    name = "randomised response"
    values, outputs = range(2), range(2)  # possible true and published values of a coordinate

    def __post_init__(self):
        super().__post_init__()
        true_or_false("modulo", self.modulo)
        if not self.modulo:
            object.__setattr__(self, "outputs", range(3))
        if self.p is not None:
            min_p = float(np.max(least_p(self.epsilon)))
            rule = f"must lie in 1/(1 + e^ε) … e^ε/(1 + e^ε), {min_p:.6g} … {1 - min_p:.6g}, for Proposition 7"
            p = between("p", self.p, min_p * (1 - _P_TOLERANCE), 1 - min_p * (1 - _P_TOLERANCE), rule)
            object.__setattr__(self, "p", float(p))

    def __repr__(self) -> str:
        return f"RandomisedResponse(epsilon={self.epsilon!r}, chi={chi_text(self.chi)}, p={self.p})"

    @property
    def flip(self):
        """p, for arrays (users, m)."""
        return least_p(as_column(self.epsilon)) if self.p is None else self.p

    def checked(self, profiles: pd.DataFrame) -> np.ndarray:
        return as_booleans(profiles).to_numpy()

    def noisy(self, b: np.ndarray, chi: np.ndarray, u: np.ndarray) -> np.ndarray:
        d = flips(u, self.flip) & chi
        return b ^ d if self.modulo else b.astype(np.int64) + d

    def log_probability(self, published, true) -> np.ndarray:
        """ln P(b̃_ij = published | b_ij = true) for j ∈ χ_i."""
        common_epsilon(self)
        return (log_flip if self.modulo else log_added)(published, true, self.flip)
