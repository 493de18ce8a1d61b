"""What Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, leave open, moved: who is first
of equals, and the slots of the day.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mobpriv.experiments.primule import Setting
from mobpriv.icps import Window, icps, values
from mobpriv.mechanisms.call_profiles import Primule


def cells_in_order(original: np.ndarray, town: np.ndarray, k: int, order: np.ndarray) -> np.ndarray:
    """What PRIMULE publishes in each municipality where the cells of profiles are read in another ``order``.

    Distances and sizes of groups are the same then. Of groups that are alike in both the lexicographically smaller mean goes first, and
    which that is depends on the order of the cells: it is the rest of the ties that moves.
    """
    said, table = np.empty(np.shape(original)), pd.DataFrame(original)[list(order)]
    for rows in table.groupby(np.asarray(town), sort=True, dropna=False).indices.values():
        protected = Primule(k).protect(table.iloc[rows], np.random.default_rng())  # it draws nothing
        said[np.ix_(rows, order)] = protected.values
    return said


def with_slots(setting: Setting, slots: Sequence[int], weeks: int = 4) -> Setting:
    """The same calls in profiles of other slots of the day, of the municipalities that the setting has."""
    window = Window(setting.window.first, setting.window.zone, weeks, tuple(slots))
    profiles = icps(setting.data.calls, setting.data.cells, window).profiles
    profiles = profiles[profiles["municipality"].astype(str).isin(np.unique(setting.town))].reset_index(drop=True)
    town = profiles["municipality"].astype(str).to_numpy()
    return setting._replace(window=window, profiles=profiles, values=values(profiles["key"].to_numpy(), weeks), town=town)
