"""Find settings that are both useful and safe: mean error and best attack of every ε and χ, over the same samples.

Source (extended here): Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized
sanitization mechanisms*.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mobpriv.attacks.visits.distances import l1
from mobpriv.attacks.visits.likelihood import unlikeliness
from mobpriv.attacks.visits.most_visited import picked_rightly, read_off
from mobpriv.base.estimates import Estimate
from mobpriv.base.noise import least_p
from mobpriv.experiments.dchi import level
from mobpriv.experiments.dchi_equal import likeliest
from mobpriv.experiments.dchi_samples import Protection, Samples, leaked
from mobpriv.experiments.dchi_statistician import corrected_visits
from mobpriv.visits.statistician import corrected_visitors, mean_error, visitors, visits

CHIS = ("all", *(f"N{n}" for n in range(1, 11)), *(f"F{n}" for n in range(1, 11)))


class Measured(NamedTuple):
    """The error of a χ and the success of the attacks at each ε, arrays (draws, ε)."""

    plain: np.ndarray  # mean error of the published values, as a share of the average
    corrected: np.ndarray  # of the unbiased estimate, ε and n_j known; booleans with N(b, n): or as if χ were the visited POIs
    nearest: np.ndarray  # share re-identified by the nearest profile, scenario 2.2
    likeliest: np.ndarray
    place: np.ndarray  # share of users whose most visited POI is the argmax of the counts; 0 for booleans

    @property
    def best_way(self) -> np.ndarray:
        """The error of a statistician who knows which of the two estimates has the smaller mean error at this ε."""
        return np.where(self.corrected.mean(axis=0) < self.plain.mean(axis=0), self.corrected, self.plain)

    @property
    def reidentified(self) -> np.ndarray:
        return np.maximum(self.nearest, self.likeliest)

    @property
    def risk(self) -> np.ndarray:
        """The best attack in each sample: "the worst case should be considered" (§VI-C)."""
        return np.maximum(self.reidentified, self.place)


def measured(samples: Samples, protection: Protection, epsilons: Sequence[float]) -> Measured:
    counts, true = samples.day, protection.of(samples.day)
    chi, average = protection.chi(counts, samples.affinity), level(samples, protection)
    holding = chi.sum(axis=-2)
    of = visits if protection.counts else visitors
    rows = []
    for epsilon in epsilons:
        mechanism = protection.at(epsilon)
        said = mechanism.noisy(true, chi, samples.u)
        if protection.counts:
            ways = [corrected_visits(said, epsilon, holding)]
            place = picked_rightly(read_off(said), counts).mean(axis=-1)
        else:
            p = least_p(epsilon)
            ways = [corrected_visitors(said, p, holding)] + ([of(said) / (1 - p)] if protection.neighbours is not None else [])
            place = np.zeros(len(said))
        errors = [mean_error(of(true), way) / average for way in (of(said), *ways)]
        leak = leaked(samples, protection, said, "2.2")
        own = np.take_along_axis(chi, leak.users[:, :, None], axis=1)
        attacks = [
            likeliest(l1(leak.published, leak.known).astype(float)),
            likeliest(unlikeliness(mechanism, leak.published, leak.known.astype(np.int64), own)),
        ]
        rows.append((errors[0], min(errors[1:], key=lambda error: error.mean()), *attacks, place))
    return Measured(*(np.stack(column, axis=-1) for column in zip(*rows, strict=True)))


def keeps(found: Estimate, limit: float) -> bool:
    """Return whether 95 % of the samples are within the limit: compares the upper end of the band, not the mean."""
    return bool(found.high <= limit)
