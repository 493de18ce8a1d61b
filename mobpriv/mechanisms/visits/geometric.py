"""Two-sided geometric noise on count profiles, a discrete alternative that the paper mentions.

Sources: Olivier, Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§III-C. Cormode, *Personal privacy vs population privacy: learning to attack anonymization*, KDD 2011, is their [17]. The
mechanism is from Ghosh, Roughgarden, Sundararajan, *Universally utility-maximizing privacy mechanisms*, STOC 2009.
"""

from dataclasses import dataclass

import numpy as np

from mobpriv.base import exact_noise
from mobpriv.base.noise import geometric, log_geometric
from mobpriv.base.ranges import true_or_false
from mobpriv.mechanisms.visits.choices import VisitsMechanism, as_column, chi_text, common_epsilon


@dataclass(frozen=True, eq=False)
class Geometric(VisitsMechanism):
    """max(0, c_ij + d_ij) with P(d_ij = k) = (1 − q)/(1 + q) · q^|k|, q = e^−ε, for j ∈ χ_i, and d_ij = 0 for j ∉ χ_i.

    d_{χ,ε}-private given χ_i, and whole without rounding. It has the least noise for its ε among the mechanisms that add noise
    to a count.

    By default the noise is made of uniform numbers of 53 bits and is at most 36.7/ε. So the guarantee fails in the tails, with
    probability 2^−53 a count, and nothing is perturbed from about ε = 37 on. ``exact=True`` draws with whole numbers alone
    (:mod:`mobpriv.base.exact_noise`), about 0.1 ms a count: every count is a possible output.
    """

    exact: bool = False

    name = "geometric"

    def __post_init__(self):
        super().__post_init__()
        true_or_false("exact", self.exact)

    def __repr__(self) -> str:
        return f"Geometric(epsilon={self.epsilon!r}, chi={chi_text(self.chi)}{', exact' if self.exact else ''})"

    def drawn(self, c: np.ndarray, chi: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if not self.exact:
            return super().drawn(c, chi, rng)
        d = exact_noise.geometric(c.shape, as_column(self.epsilon), rng)
        return np.where(chi, np.maximum(0, c + d), c)

    def noisy(self, c: np.ndarray, chi: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.where(chi, np.maximum(0, c + geometric(u, as_column(self.epsilon))), c)

    def log_probability(self, published, true) -> np.ndarray:
        """ln P(c̃_ij = published | c_ij = true) for j ∈ χ_i."""
        return log_geometric(published, true, common_epsilon(self))
