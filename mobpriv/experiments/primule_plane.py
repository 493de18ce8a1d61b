"""Compare PRIMULE, micro-aggregation and noise on one plane, risk against utility."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.estimates import Estimate, clustered_difference
from mobpriv.mechanisms.icp import Mdav


class Measured(NamedTuple):
    """One setting; arrays over the same targets, profiles and repetitions as the settings it is compared with."""

    risk: np.ndarray  # (targets,): probability of re-identification, mean over repetitions
    use: np.ndarray  # (profiles,): how often each keeps its label
    risk_drawn: np.ndarray  # (draws,), or (1,) without randomness: mean over the targets
    use_drawn: np.ndarray  # (draws,): mean over the profiles
    whose_risk: np.ndarray  # (targets,): the resampling unit of intervals: the group, or the user without groups
    whose_use: np.ndarray  # (profiles,)


class Beaten(Enum):
    """Is a setting dominated by another one? ``OPEN`` if inconclusive."""

    YES, NO, OPEN = "beaten", "not beaten", "open"


def mdav_over_municipalities(values: np.ndarray, town: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Run MDAV on the profiles (n, cells) of each municipality, like PRIMULE; return published profiles and group numbers.

    Groups are numbered through all municipalities. A municipality of fewer than k profiles stays unchanged.
    """
    said, group, start = np.empty(np.shape(values)), np.empty(len(values), np.int64), 0
    table = pd.DataFrame(values)
    for rows in table.groupby(np.asarray(town), sort=True, dropna=False).indices.values():
        protected = Mdav(k).protect(table.iloc[rows], np.random.default_rng())  # MDAV is deterministic
        said[rows], group[rows] = protected.values.to_numpy(), protected.group + start
        start += int(protected.group.max()) + 1
    return said, group


def beaten(point: Measured, others: Mapping[str, Measured]) -> Beaten:
    """Return whether another setting has significantly less risk and more utility, see :func:`_sign`.

    A setting is not dominated if each other one has significantly more risk or less utility.
    """
    sure = 0
    for other in others.values():
        risk = _sign(point.risk, other.risk, point.risk_drawn - other.risk_drawn, (point.whose_risk, other.whose_risk))
        use = _sign(other.use, point.use, other.use_drawn - point.use_drawn, (point.whose_use, other.whose_use))
        if risk == use == 1:
            return Beaten.YES
        sure += -1 in (risk, use)
    return Beaten.NO if sure == len(others) else Beaten.OPEN


def _sign(a: np.ndarray, b: np.ndarray, apart: np.ndarray, whose: tuple[np.ndarray, np.ndarray]) -> int:
    """Return 1 if mean(a) > mean(b) significantly, −1 if mean(a) < mean(b), else 0.

    Significant: the paired 95 % intervals over both kinds of groups exclude 0, and each repetition (``apart``) has the same
    sign.
    """
    of: list[Estimate] = [clustered_difference(a, b, groups) for groups in whose]
    above, below = all(one.low > 0 for one in of), all(one.high < 0 for one in of)
    return int(above and (apart > 0).all()) - int(below and (apart < 0).all())
