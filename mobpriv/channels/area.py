"""A user's secrets: her prior and the distances between them, checked once.

Source: Shokri, *Privacy Games*, PETS 2015, §9.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from mobpriv.channels import checks
from mobpriv.channels.distances import hamming
from mobpriv.channels.inference import best_guesses, errors
from mobpriv.channels.optimal import Optimum, of_largest_ap, solved
from mobpriv.channels.programs.problem import posed, scaled


@dataclass(frozen=True, eq=False)
class Area:
    """The experiments of §9 take the same distances, (S, S) in metres, as the error d(ŝ, s) and as the metric d_ε.

    ``prior``: π (S,). ``cost``: c (S, O); by default that of §9, 0 for the true cell and 1 for any other. ε is in 1/m, d_m in m.
    ValueError for arrays that are no prior, metric or cost.

    >>> area = Area([0.5, 0.25, 0.25], [[0, 100, 200], [100, 0, 100], [200, 100, 0]])
    >>> area.d_max
    75.0
    >>> round(area.differential(0.01).certificate.cost, 3)
    0.336
    """

    prior: np.ndarray
    distances: np.ndarray
    cost: np.ndarray | None = None
    d_max: float = field(init=False)  # m, the error of an adversary without an observation, the largest d_m

    def __post_init__(self):
        prior = checks.prior(self.prior)
        checks.affordable(len(prior), np.count_nonzero(prior))
        distances = checks.metric(self.distances, "distances", size=len(prior))
        cost = hamming(len(prior)) if self.cost is None else checks.matrix(self.cost, "cost", rows=len(prior))
        values = {"prior": prior, "distances": distances, "cost": cost, "d_max": float((prior @ distances).min())}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def distortion(self, d_m: float) -> Optimum:
        """The channel of :func:`mobpriv.channels.optimal.distortion`, (21)."""
        return solved(posed(self.prior, self.cost, np.inf, self.distances, d_m), None)

    def differential(self, epsilon: float, largest_ap: bool = True) -> Optimum:
        """The channel of :func:`mobpriv.channels.optimal.differential`, (22); ``largest_ap``: our rule among the optima."""
        problem = posed(self.prior, self.cost, scaled(self.distances, epsilon))
        plain = solved(problem, self.distances)
        return of_largest_ap(replace(problem, error=self.distances), self.distances, plain) if largest_ap else plain

    def joint(self, d_m: float, epsilon: float) -> Optimum:
        """The channel of :func:`mobpriv.channels.optimal.joint`, (24)."""
        return solved(posed(self.prior, self.cost, scaled(self.distances, epsilon), self.distances, d_m), self.distances)

    def attack(self, channel) -> np.ndarray:
        """The optimal attack on a channel, (19); shape (O,), columns of the distances."""
        return best_guesses(self.prior, channel, self.distances)

    def ap(self, channel, attack=None) -> float:
        """The AP of a channel in m, (7): the expected error of the optimal attack, or of another ``attack``."""
        return float(self.prior @ errors(channel, self.distances, self.attack(channel) if attack is None else attack))
