"""PRIMULE, micro-aggregation and noise by what they cost and what they protect: settings of one mechanism are compared with those of another
where both are drawn on one plane, risk against use.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mobpriv.mechanisms.call_profiles import Mdav


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


def beaten_by(points: Mapping[str, tuple[float, float]], others: Mapping[str, tuple[float, float]]) -> list[str]:
    """The settings, name -> (risk, use), for which another mechanism has one of no more risk and no less use, and one of both better."""
    return [
        name
        for name, (risk, use) in points.items()
        if any(r <= risk and u >= use and (r < risk or u > use) for r, u in others.values())
    ]


def frontier(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The settings, name -> (risk, use), that no other of them beats, by rising risk."""
    kept = [name for name, point in points.items() if not beaten_by({name: point}, points)]
    return sorted(kept, key=lambda name: points[name])
