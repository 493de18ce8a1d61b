"""The setting of the thesis's chapter 4 (§4.7): the days, halves and attacks of chapter 3, its three mechanisms, and HMC.

The two readings are those of :mod:`mobpriv.experiments.thesis_3`. HMC as the author's released program configures it differs in more than
its metres: see :func:`hmc`.
"""

import numpy as np
import pandas as pd

from mobpriv.experiments import thesis_3
from mobpriv.experiments.days import Setting
from mobpriv.mechanisms import HMC

ATTACKS = ("AP-Attack", "POI-Attack", "PIT-Attack")


def hmc(setting: Setting, reading: str = "text") -> HMC:
    """HMC for users whose training half the adversary has; ``"program"``: the options of the released program that HMC has.

    These are cells of Mercator metres, (1 - U) of (4.7) as an exclusion of U's cells, 50 records an iteration or more, gaps of a quarter of an
    hour, 200 km/h. What else the program does otherwise stands in the docstring of :class:`mobpriv.mechanisms.HMC`.
    """
    if thesis_3.check_reading(reading) == "text":
        return HMC(setting.known)
    return HMC(setting.known, plane="mercator", unlike="exclusion", least_step=50, gap=900.0, speed=200 / 3.6)


def mechanisms(setting: Setting, reading: str = "text") -> dict:
    """No protection, Geo-I, Promesse, W4M (§3.4.2) and HMC (§4.7.3), by the names that figures and results bear."""
    confusion = hmc(setting, reading)
    return thesis_3.mechanisms(reading) | {confusion.name: confusion}


def by_average_rank(rankings: list[pd.DataFrame]) -> pd.DataFrame:
    """Several attacks as one (§4.7.1): the mean, over the attacks, of each known user's rank in each anonymous trace's order.

    Who has no profile stands last. Rows and columns are those of the first ranking.
    """
    first = rankings[0]
    ranks = [r.reindex(index=first.index, columns=first.columns).rank(axis=1, na_option="bottom").to_numpy() for r in rankings]
    return pd.DataFrame(np.mean(ranks, axis=0), index=first.index, columns=first.columns)


def by_vote(rankings: list[pd.DataFrame]) -> pd.DataFrame:
    """Several attacks as one (§4.7.1): minus the number of attacks that name a user first; of equals whom the first attack prefers."""
    first = rankings[0]
    votes = np.zeros(first.shape)
    for ranking in rankings:
        d = ranking.reindex(index=first.index, columns=first.columns).fillna(np.inf).to_numpy()
        named = np.isfinite(d.min(axis=1, initial=np.inf))
        votes[np.flatnonzero(named), d[named].argmin(axis=1)] += 1
    order = first.rank(axis=1, na_option="bottom").to_numpy() / (first.shape[1] + 1)  # below one vote
    return pd.DataFrame(order - votes, index=first.index, columns=first.columns)
