"""Vary two choices that the paper leaves open: the order in case of ties, and the slots of the day.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mobpriv.experiments.primule import Setting
from mobpriv.icp.profiles import Window, icps, values
from mobpriv.mechanisms.icp import Primule


def cells_in_order(original: np.ndarray, town: np.ndarray, k: int, order: np.ndarray) -> np.ndarray:
    """Return PRIMULE's published profiles in each municipality if the cells are read in another ``order``.

    Distances and sizes of groups stay the same. If groups are equal in both, the lexicographically smaller mean goes first,
    which depends on the order of the cells. So only the remaining ties change.
    """
    said, table = np.empty(np.shape(original)), pd.DataFrame(original)[list(order)]
    for rows in table.groupby(np.asarray(town), sort=True, dropna=False).indices.values():
        protected = Primule(k).protect(table.iloc[rows], np.random.default_rng())  # PRIMULE is deterministic
        said[np.ix_(rows, order)] = protected.values
    return said


def with_slots(setting: Setting, slots: Sequence[int], weeks: int = 4) -> Setting:
    """Return the setting with the same calls in profiles of other slots of the day, for the same municipalities."""
    window = Window(setting.window.first, setting.window.zone, weeks, tuple(slots))
    profiles = icps(setting.data.calls, setting.data.cells, window).profiles
    profiles = profiles[profiles["municipality"].astype(str).isin(np.unique(setting.town))].reset_index(drop=True)
    town = profiles["municipality"].astype(str).to_numpy()
    return setting._replace(window=window, profiles=profiles, values=values(profiles["key"].to_numpy(), weeks), town=town)
