"""Differentially private profiles: the paper's baseline, as printed and with noise calibrated to the unit of privacy.

Source: Pratesi, Gabrielli, Cintia, Monreale, Giannotti, *PRIMULE: Privacy risk mitigation for user profiles*, §7.

ε-differential privacy of a release of one profile is defined as follows. For any two profiles x, x' that differ by one unit of
privacy, and any set of outputs, P(out | x) ≤ e^ε P(out | x'). With Laplace noise of scale b_j on cell j the worst log-ratio is
Σ_j |x_j − x'_j|/b_j. Clamping the values to [0, 1] does not change it: clamping is post-processing, and the outputs 0 and 1
still reach the worst ratio.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from mobpriv.base.draws import generator
from mobpriv.base.noise import laplace
from mobpriv.base.ranges import one_of, positive, true_or_false
from mobpriv.icp.profiles import DAYS
from mobpriv.mechanisms.icp.tables import Protected, name_ranks, profile_table

SENSITIVITIES = ("cell", "call", "day", "profile")
_SLOTS_PER_DAY = 3  # of a day


def changes(unit: str, cells: int) -> np.ndarray:
    """The largest change of a cell when one unit of privacy changes, (cells,), in shares of days.

    * A call, more or less, changes at most one day of a slot: 1/5 on weekdays, 1/2 at the weekend.
    * A day's calls change each of its three slots by as much.
    * A cell, or a profile, changes by 1.
    """
    one_of("sensitivity", unit, SENSITIVITIES)
    if unit in ("cell", "profile"):
        return np.ones(cells)
    if cells > len(DAYS) or cells % (2 * _SLOTS_PER_DAY):
        raise ValueError(
            f'profiles must hold one to four weeks of {2 * _SLOTS_PER_DAY} cells where the sensitivity is that of a "{unit}" (got {cells} cells)'
        )
    return 1 / DAYS[:cells]


def changed_at_once(unit: str, cells: int) -> int:
    """The number of cells that one unit of privacy may change at once: for a day the slots of that day, for a profile all."""
    return {"cell": 1, "call": 1, "day": _SLOTS_PER_DAY, "profile": cells}[unit]


@dataclass(frozen=True)
class NoisyProfiles:
    """x̃_ij = min(1, max(0, x_ij + d_ij)), d_ij Laplace, all of them independent.

    ``sensitivity`` names the unit of privacy: one ``cell`` of a profile, one ``call``, all calls of one ``day``, or the user's
    full ``profile`` of a municipality. The paper's scale is 1/ε on every cell: "fixing the sensitivity to 1 (i.e., the maximum
    value that each cell of the ICPs can have)". This is ε for a change in a single cell. By composition a profile of 24 cells
    is only protected by 24·ε (:func:`mobpriv.metrics.icp_audits.release_loss`).

    With ``calibrated`` the scale on cell j is s·δ_j/ε, which gives ε for the unit. Here δ_j is the largest change of the cell
    for that unit, s the number of cells changed at once. The scales are 1/ε (cell), 1/(5ε) and 1/(2ε) (call), 3/(5ε) and 3/(2ε)
    (day), 24/ε (profile).

    Departures from the paper: the calibrated scales are ours. No unit hides that the user has a profile in this municipality,
    because its row is published. Her profiles in other municipalities are not hidden, either; they get independent noise.
    """

    epsilon: float  # a release
    sensitivity: Literal["cell", "call", "day", "profile"] = "profile"
    calibrated: bool = False

    name = "noisy profiles"
    random = True

    def __post_init__(self):
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        one_of("sensitivity", self.sensitivity, SENSITIVITIES)
        true_or_false("calibrated", self.calibrated)

    def scale(self, cells: int) -> np.ndarray:
        """b_j, (cells,)."""
        if not self.calibrated:
            return np.full(cells, 1 / self.epsilon)
        return changed_at_once(self.sensitivity, cells) * changes(self.sensitivity, cells) / self.epsilon

    def protect(self, profiles: pd.DataFrame, rng: np.random.Generator) -> Protected:
        """Each row takes as many random numbers as there are cells, in the order of the rows' names, not of the rows."""
        x = profile_table(profiles).to_numpy(float)
        u = generator(rng).random(x.shape)[name_ranks(profiles)]
        perturbed = np.clip(x + laplace(u) * self.scale(x.shape[1]), 0, 1)
        return Protected(pd.DataFrame(perturbed, profiles.index, profiles.columns), None, None)

    @staticmethod
    def log_law(published, true, scale) -> np.ndarray:
        """The distribution of one cell's output for a noise scale: ln P(x̃ = 0), ln P(x̃ = 1); between them the log-density."""
        y, x, b = np.asarray(published, float), np.asarray(true, float), np.asarray(scale, float)
        inside = -np.abs(y - x) / b - np.log(2 * b)
        # x lies in [0, 1]: all outputs below 0, or above 1, are one tail
        return np.where(y == 0, -x / b - np.log(2), np.where(y == 1, -(1 - x) / b - np.log(2), inside))
