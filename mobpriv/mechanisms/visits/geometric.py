"""Two-sided geometric noise on count profiles, a discrete alternative that the paper mentions.

Sources: Olivier, Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§III-C. Cormode, *Personal privacy vs population privacy: learning to attack anonymization*, KDD 2011, is their [17]. The
mechanism is from Ghosh, Roughgarden, Sundararajan, *Universally utility-maximizing privacy mechanisms*, STOC 2009.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mobpriv.base import exact_noise
from mobpriv.base.noise import geometric, log_geometric
from mobpriv.base.ranges import true_or_false
from mobpriv.mechanisms.visits.choices import (
    as_column,
    as_table,
    check_chi,
    check_epsilon,
    chi_of,
    chi_text,
    common_epsilon,
    in_table_order,
)
from mobpriv.visits.affinity import Neighbourhood
from mobpriv.visits.profiles import as_counts


@dataclass(frozen=True, eq=False)
class Geometric:
    """max(0, c_ij + d_ij) with P(d_ij = k) = (1 − q)/(1 + q) · q^|k|, q = e^−ε, for j ∈ χ_i, and d_ij = 0 for j ∉ χ_i.

    d_{χ,ε}-private given χ_i, and whole without rounding. It has the least noise for its ε among the mechanisms that add noise
    to a count.

    By default the noise is made of uniform numbers of 53 bits and is at most 36.7/ε. So the guarantee fails in the tails, with
    probability 2^−53 a count, and nothing is perturbed from about ε = 37 on. ``exact=True`` draws with whole numbers alone
    (:mod:`mobpriv.base.exact_noise`), about 0.1 ms a count: every count is a possible output.
    """

    epsilon: float | np.ndarray | pd.Series  # per visit; one number, or one a user
    chi: Neighbourhood | np.ndarray | pd.DataFrame | None = None  # None: all POIs
    exact: bool = False

    name = "geometric"
    random = True

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        check_chi(self.chi)
        true_or_false("exact", self.exact)

    def __repr__(self) -> str:
        return f"Geometric(epsilon={self.epsilon!r}, chi={chi_text(self.chi)}{', exact' if self.exact else ''})"

    def protect(self, profiles: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        c = as_counts(profiles).to_numpy().astype(np.int64)
        ordered, chi = in_table_order(self, profiles), chi_of(self, profiles)
        if self.exact:
            d = exact_noise.geometric(c.shape, as_column(ordered.epsilon), rng)
            return as_table(np.where(chi, np.maximum(0, c + d), c), profiles)
        return as_table(ordered.noisy(c, chi, rng.random(c.shape)), profiles)

    def noisy(self, c: np.ndarray, chi: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.where(chi, np.maximum(0, c + geometric(u, as_column(self.epsilon))), c)

    def log_probability(self, published, true) -> np.ndarray:
        """ln P(c̃_ij = published | c_ij = true) for j ∈ χ_i."""
        return log_geometric(published, true, common_epsilon(self))
