"""Measure how often a name is right if the adversary knows only some users; the paper's r(δ, M, n) does not count wrong names.

Source (extended here): Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized
sanitization mechanisms*.
"""

import numpy as np

from mobpriv.attacks.visits.distances import l1
from mobpriv.base.ranges import whole
from mobpriv.experiments.dchi_samples import Protection, Samples, leaked, published


def names_right(samples: Samples, protection: Protection, epsilon: float, users: int, pois: int) -> np.ndarray:
    """Return the share of right names among the sanitised profiles to which Algorithm 11 gives exactly one name, (draws,).

    * ``users`` users leaked at ``pois`` POIs; *all* n sanitised profiles are attacked, at M = 1.
    * δ is the smallest one that names most leaked users correctly.
    * A profile whose owner did not leak can only get a wrong name.

    The share is 0 if no profile gets a name.
    """
    said = published(samples, protection, epsilon, "2.2")
    whole("pois", pois, 1, said.shape[-1])
    known = leaked(samples, protection, said, "2.2", users)
    found = np.empty(len(said))
    for draw in range(len(said)):
        at = np.sort(samples.poi_order[draw, :pois])
        d = l1(said[draw : draw + 1][..., at], known.known[draw : draw + 1][..., at])[0]
        own = d[known.users[draw], np.arange(users)]
        deltas = np.unique(own)
        alone = np.stack([(d <= delta).sum(axis=-1) == 1 for delta in deltas])  # (δ, n): is there exactly one name?
        right = alone[:, known.users[draw]] & (own <= deltas[:, None])
        best = right.sum(axis=-1).argmax()
        found[draw] = right[best].sum() / max(1, alone[best].sum())
    return found


def fewest(amounts, rates: np.ndarray, least: float = 0.5) -> float:
    """Return the smallest amount with a mean rate of at least ``least``, rates (draws, amounts); infinity if none."""
    enough = np.flatnonzero(np.asarray(rates).mean(axis=0) >= least)
    return float(amounts[enough[0]]) if len(enough) else np.inf
