"""Adversaries whom Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §5, do not have:
who is wrong by some days, and what a group of k gives away of its members.
"""

import numpy as np

from mobpriv.icps import DAYS
from mobpriv.ranges import whole


def days_wrong(counts: np.ndarray, wrong: int, rng: np.random.Generator) -> np.ndarray:
    """Days with a call (n, cells) as an adversary has them who errs in ``wrong`` cells of each profile, drawn at random, by one day.

    As likely one more as one less; where there is no other way (no day, or all of them) the one that is left. Rows are drawn in their order.
    """
    counts = np.asarray(counts)
    n, cells = counts.shape
    wrong = whole("wrong", wrong, 0, cells, f"must be a whole number of cells, 0 to {cells}")
    seen = counts.astype(np.int64)
    at = rng.random((n, cells)).argsort(axis=1, kind="stable")[:, :wrong]
    step = np.where(rng.random((n, wrong)) < 0.5, -1, 1)
    rows = np.arange(n)[:, None]
    there, most = seen[rows, at], DAYS[:cells][at]
    seen[rows, at] = there + np.where(there == 0, 1, np.where(there == most, -1, step))
    return seen
