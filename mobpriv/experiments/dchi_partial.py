"""Compare partial with whole profiles: which POIs leak, and which users have the same partial profile (Figures 11 and 12).

Source (extended here): Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized
sanitization mechanisms*.
"""

import numpy as np

from mobpriv.attacks.visits.distances import l1
from mobpriv.base.ranges import one_of, whole
from mobpriv.experiments.dchi_samples import Samples
from mobpriv.visits.statistician import visitors

WHICH = ("drawn", "most visited", "least visited")


def order_of_pois(samples: Samples, which: str) -> Samples:
    """Reorder the POIs that leak first: ``drawn`` as they are, or by the most or the fewest visitors of the sample.

    POIs with equal numbers of visitors keep the order in which they were drawn.
    """
    if one_of("which", which, WHICH) == "drawn":
        return samples
    number = np.take_along_axis(visitors(samples.day > 0), samples.poi_order, axis=1)
    place = np.argsort(-number if which == "most visited" else number, axis=1, kind="stable")
    return samples._replace(poi_order=np.take_along_axis(samples.poi_order, place, axis=1))


def twins(known: np.ndarray) -> np.ndarray:
    """Return the share of users whose true profile another user has as well, (draws,): known (draws, n, J)."""
    whole("users", known.shape[1], 2)
    return ((l1(known, known) == 0).sum(axis=-1) > 1).mean(axis=-1)
