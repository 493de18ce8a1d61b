"""PRIMULE, micro-aggregation and noise by what they cost and what they protect: settings of one mechanism are compared with those of another
where both are drawn on one plane, risk against use.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.estimates import Estimate, clustered_difference
from mobpriv.mechanisms.call_profiles import Mdav


class Measured(NamedTuple):
    """A setting; arrays of the same targets, profiles and draws as those of the settings that it is compared with."""

    risk: np.ndarray  # (targets,): how likely each is found, mean of the draws
    use: np.ndarray  # (profiles,): how often each keeps its label
    risk_drawn: np.ndarray  # (draws,), or (1,) of what is not drawn: mean over the targets
    use_drawn: np.ndarray  # (draws,): mean over the profiles
    whose_risk: np.ndarray  # (targets,): what an interval draws, the group of each, or the user where there are no groups
    whose_use: np.ndarray  # (profiles,)


class Beaten(Enum):
    """Is a setting beaten by one of others? ``OPEN`` where neither is sure."""

    YES, NO, OPEN = "beaten", "not beaten", "open"


def mdav_over_municipalities(values: np.ndarray, town: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """MDAV on the profiles (n, cells) of each municipality for itself, as PRIMULE is run: what is published, and the group of each, numbered
    through all. A municipality of fewer than k profiles stays as it is."""
    said, group, start = np.empty(np.shape(values)), np.empty(len(values), np.int64), 0
    table = pd.DataFrame(values)
    for rows in table.groupby(np.asarray(town), sort=True, dropna=False).indices.values():
        protected = Mdav(k).protect(table.iloc[rows], np.random.default_rng())  # it draws nothing
        said[rows], group[rows] = protected.values.to_numpy(), protected.group + start
        start += int(protected.group.max()) + 1
    return said, group


def beaten(point: Measured, others: Mapping[str, Measured]) -> Beaten:
    """Whether one of the others has less risk and more use, both beyond chance: see :func:`_sign`. A setting is not beaten where each of the
    others has, beyond chance, more risk or less use."""
    sure = 0
    for other in others.values():
        risk = _sign(point.risk, other.risk, point.risk_drawn - other.risk_drawn, (point.whose_risk, other.whose_risk))
        use = _sign(other.use, point.use, other.use_drawn - point.use_drawn, (point.whose_use, other.whose_use))
        if risk == use == 1:
            return Beaten.YES
        sure += -1 in (risk, use)
    return Beaten.NO if sure == len(others) else Beaten.OPEN


def _sign(a: np.ndarray, b: np.ndarray, apart: np.ndarray, whose: tuple[np.ndarray, np.ndarray]) -> int:
    """1 where mean(a) > mean(b) beyond chance: the paired 95 % intervals over the groups of each of the two lie above 0, and so does each draw
    (``apart``); −1 where all lie below; else 0."""
    of: list[Estimate] = [clustered_difference(a, b, groups) for groups in whose]
    above, below = all(one.low > 0 for one in of), all(one.high < 0 for one in of)
    return int(above and (apart > 0).all()) - int(below and (apart < 0).all())
