"""Rounded, clamped Laplace noise on count profiles.

Source: Olivier, Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§III-C and Proposition 9.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mobpriv.base.noise import ROUNDING_RULES, laplace, log_laplace, rounded_and_clamped
from mobpriv.base.ranges import one_of
from mobpriv.mechanisms.visits.choices import VisitsMechanism, as_column, chi_text, common_epsilon

SCALES = {"calibrated": 1.0, "printed": 0.5}  # the Laplace scale times ε


@dataclass(frozen=True, eq=False)
class LaplaceCounts(VisitsMechanism):
    """M̄_i(c_i) = max(0, [c_i + d_i]), d_ij Laplace for j ∈ χ_i and 0 for j ∉ χ_i: d_{χ,ε}-private by Proposition 9, given χ_i.

    Departures from the paper:

    * §III-C gives the noise the standard deviation 1/(√2·ε), that is the scale 1/(2ε). With it the mechanism is only 2ε-private
      (``scale="printed"``). Proposition 9 holds for the scale 1/ε, a standard deviation of √2/ε, which is the default.
    * [α] is "the integer part": ``rounding="floor"``, which on average subtracts half a visit from every count. By default we
      round to the nearest whole number, which preserves the mean except where clamping at 0 raises it.
    """

    rounding: Literal["nearest", "floor"] = "nearest"
    scale: Literal["calibrated", "printed"] = "calibrated"

    name = "Laplace counts"

    def __post_init__(self):
        super().__post_init__()
        one_of("rounding", self.rounding, ROUNDING_RULES)
        one_of("scale", self.scale, SCALES)

    def __repr__(self) -> str:
        return f"LaplaceCounts(epsilon={self.epsilon!r}, chi={chi_text(self.chi)}, rounding={self.rounding!r}, scale={self.scale!r})"

    @property
    def rate(self):
        """One over the scale of the noise, for arrays (users, m)."""
        return as_column(self.epsilon) / SCALES[self.scale]

    def noisy(self, c: np.ndarray, chi: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.where(chi, rounded_and_clamped(c, laplace(u) / self.rate, self.rounding), c)

    def log_probability(self, published, true) -> np.ndarray:
        """ln P(c̃_ij = published | c_ij = true) for j ∈ χ_i."""
        common_epsilon(self)
        return log_laplace(published, true, self.rate, self.rounding)
