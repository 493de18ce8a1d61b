"""The setting of the thesis's chapter 6 (§6.4): the days, users and attacks of chapter 5, four mechanisms, and the proxy that chooses.

Users send a day at a time to a proxy that knows the first 80 % of everybody's days, KD, and has attacks trained on them. It tries Geo-I,
Promesse, TriLateration and HMC on the day and publishes what the fewest of its attacks re-identify, of these what covers the day's cells
best (Equations 6.1 to 6.3). The adversary knows "the totality of the background knowledge" (§6.4.2).

The two readings are those of :mod:`mobpriv.experiments.thesis_5`; the author's program for the hybrid itself departs in more:
see :class:`mobpriv.mechanisms.Hybrid`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.attacks.policies import reidentified
from mobpriv.experiments import thesis_5
from mobpriv.experiments.thesis_5 import Setting
from mobpriv.grid import SquareGrid
from mobpriv.mechanisms import Hybrid
from mobpriv.mechanisms.hybrid import Chosen
from mobpriv.metrics import area_coverage
from mobpriv.sub_traces import split_in_time
from mobpriv.traces import Traces, as_traces

ATTACKS = ("ILL-Attack", "AP-Attack", "POI-Attack")
MECHANISMS = ("Geo-I", "Promesse", "TriLateration", "HMC")
TRIO = ("Promesse", "TriLateration", "HMC")  # of Figure 6.1
USEFUL = 0.75  # area coverage above which §6.4.2 counts a protected sub-trace as useful


class Trial(NamedTuple):
    """What one draw of the mechanisms comes to, one row a sub-trace, one column a mechanism."""

    hits: dict[str, pd.DataFrame]  # attack -> does it re-identify the sub-trace?
    utility: pd.DataFrame  # area coverage
    mechanism: pd.Series  # the one that the proxy chose


def prepare(
    dataset: str = "city",
    reading: str = "text",
    active: int = 0,  # keep the so many users with the most records, 50 for Cabspotting; 0 keeps all
    start: str = "",
    days: int = 30,
    leave_out: str = "",
    most: int = 0,
) -> Setting:
    """Days of the users' last fifth to be protected and attacked, the days before known (§6.4.2: "80 % for training and 20 % for testing")."""
    return thesis_5.prepare(dataset, "days", reading, active, start, days, leave_out, most)


def attacks(known: Traces, reading: str = "text", seed: int = 0, shift: tuple[float, float] = (0.0, 0.0)) -> list:
    """ILL-, AP- and POI-Attack of §6.4.1, trained on ``known``. ``shift``: of AP-Attack's grid, north and east, as a share of a cell."""
    ill, ap, poi = thesis_5.attacks("days", reading, seed)
    shifted = replace(ap, grid=SquareGrid(ap.cell, ap.plane, tuple(shift)))
    return [attack.fit(known) for attack in (ill, shifted, poi)]


def mechanisms(setting: Setting, reading: str = "text", known: Traces | None = None) -> list:
    """Geo-I, Promesse, TriLateration and HMC of §6.4.1; HMC hides a day behind the users of ``known``, by default all that is known."""
    used = thesis_5.mechanisms(setting if known is None else setting._replace(known=known), reading)
    return [used[name] for name in MECHANISMS]


def coverage(original: Traces, protected: Traces) -> pd.Series:
    """U_T of §6.4.1, one utility metric: the F-score of the area coverage with square cells of 800 m; 0 for a trace that was erased."""
    return area_coverage(original, protected)["f_score"]


def whole_traces(setting: Setting) -> Setting:
    """The attacked days of each user as one trace under her own name, as a publisher has them (§6.3)."""
    users = pd.Index(setting.owner.unique())
    person = setting.person | {user: setting.person.get(user, user) for user in users}
    return setting._replace(secret=thesis_5.joined(setting), users=users, owner=pd.Series(users, users), person=person)


def proxy(setting: Setting, fitted: Sequence, reading: str = "text", known: Traces | None = None) -> Hybrid:
    """Hybrid-LPPM as §6.4.1 configures it: each attack has the weight 1."""
    return Hybrid(mechanisms(setting, reading, known), fitted, coverage, owners=setting.person)


def published(hybrid: Hybrid, setting: Setting, seed: int = 0) -> Chosen:
    """What the proxy makes of the attacked sub-traces; ``seed``: of the mechanisms' draws."""
    return hybrid.choose(setting.secret, np.random.default_rng(seed))


def trial(setting: Setting, reading: str = "text", seed: int = 0) -> Trial:
    """§6.4.2, once: the proxy and the adversary have the same attacks. ``seed``: of the mechanisms' draws and of ILL-Attack."""
    fitted = attacks(setting.known, reading, seed)
    chosen = published(proxy(setting, fitted, reading), setting, seed)
    return Trial(hits(fitted, chosen.tried, setting), chosen.utility, chosen.mechanism)


def hits(fitted: Sequence, tried: dict[str, Traces], setting: Setting) -> dict[str, pd.DataFrame]:
    """What each attack re-identifies: its name -> one row a sub-trace, one column a mechanism."""
    return {
        attack.name: pd.DataFrame(
            {name: reidentified(attack.rank(p), setting.users, setting.person) for name, p in tried.items()}
        )
        for attack in fitted
    }


def protected(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Which sub-traces none of the attacks re-identifies ("fully protected", §6.4.2), one column a mechanism."""
    return sum(table.astype(int) for table in found.values()) == 0


def of_chosen(table: pd.DataFrame, mechanism: pd.Series) -> pd.Series:
    """Each sub-trace's entry in the column of the mechanism that was chosen for it."""
    column = table.columns.get_indexer(mechanism.reindex(table.index))
    return pd.Series(table.to_numpy()[np.arange(len(table)), column], table.index, name="Hybrid-LPPM")


def knowledge_in_two(setting: Setting) -> tuple[Traces, Traces]:
    """KD cut in two, each user's earlier and later days, half of them each: for a proxy and an adversary who do not know the same."""
    earlier, later = split_in_time(setting.known, 86_400.0, 0.5)
    own = later.traces.assign(user=later.traces["user"].astype(str).map(later.owner))
    return earlier, as_traces(own)
