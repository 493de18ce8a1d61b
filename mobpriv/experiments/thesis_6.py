"""The setting of the thesis's chapter 6: days, users and attacks of chapter 5, four mechanisms, and the proxy that chooses.

Users send one day at a time to a proxy that knows the first 80 % of everybody's days, KD, and has attacks trained on them. It
applies Geo-I, Promesse, TriLateration and HMC to the day. It publishes the version that the fewest attacks re-identify, in case
of ties the one with the best cell coverage (Equations 6.1 to 6.3). The adversary knows "the totality of the background
knowledge" (§6.4.2).

The two variants are those of :mod:`mobpriv.experiments.thesis_5`. The author's program for the hybrid itself differs in more:
see :class:`mobpriv.mechanisms.Hybrid`.

Source: Maouche, thesis, §6.4.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.attacks.policies import reidentified
from mobpriv.experiments import thesis_5
from mobpriv.experiments.thesis_5 import SubTraceSetting
from mobpriv.ground.grid import SquareGrid
from mobpriv.mechanisms import Hybrid
from mobpriv.mechanisms.hybrid import ProxyResult
from mobpriv.metrics import area_coverage
from mobpriv.traces.sub_traces import split_in_time
from mobpriv.traces.table import Traces

ATTACKS = ("ILL-Attack", "AP-Attack", "POI-Attack")
MECHANISMS = ("Geo-I", "Promesse", "TriLateration", "HMC")
TRIO = ("Promesse", "TriLateration", "HMC")  # of Figure 6.1
USEFUL = 0.75  # area coverage above which §6.4.2 counts a protected sub-trace as useful


class Trial(NamedTuple):
    """The outcome of one repetition, one row per sub-trace, one column per mechanism."""

    hits: dict[str, pd.DataFrame]  # attack -> does it re-identify the sub-trace?
    utility: pd.DataFrame  # area coverage
    mechanism: pd.Series  # the proxy's choice


def prepare(
    dataset: str = "city",
    variant: str = "text",
    active: int = 0,  # keep so many users with the most records, 50 for Cabspotting; 0 keeps all
    start: str = "",
    days: int = 30,
    leave_out: str = "",
    max_users: int = 0,
) -> SubTraceSetting:
    """Choose the days of the users' last fifth, to protect and attack; the earlier days are known.

    §6.4.2: "80 % for training and 20 % for testing".
    """
    return thesis_5.prepare(dataset, "days", variant, active, start, days, leave_out, max_users)


def attacks(known: Traces, variant: str = "text", seed: int = 0, shift: tuple[float, float] = (0.0, 0.0)) -> list:
    """Return ILL-, AP- and POI-Attack of §6.4.1, trained on ``known``.

    ``shift``: of AP-Attack's grid, north and east, as a share of a cell.
    """
    ill, ap, poi = thesis_5.attacks("days", variant, seed)
    shifted_ap = replace(ap, grid=SquareGrid(ap.cell, ap.plane, tuple(shift)))
    return [attack.fit(known) for attack in (ill, shifted_ap, poi)]


def mechanisms(setting: SubTraceSetting, variant: str = "text", known: Traces | None = None) -> list:
    """Return Geo-I, Promesse, TriLateration and HMC of §6.4.1; HMC uses the users of ``known``, by default all known data."""
    used = thesis_5.mechanisms(setting if known is None else setting._replace(known=known), variant)
    return [used[name] for name in MECHANISMS]


def coverage(original: Traces, protected: Traces) -> pd.Series:
    """Return U_T of §6.4.1: the F-score of the area coverage with square cells of 800 m; 0 for an erased trace."""
    return area_coverage(original, protected)["f_score"]


def full_traces(setting: SubTraceSetting) -> SubTraceSetting:
    """Join the attacked days of each user under her own name, as for a publisher (§6.3)."""
    users = pd.Index(setting.owner.unique())
    person = setting.person | {user: setting.person.get(user, user) for user in users}
    return setting._replace(secret=thesis_5.joined(setting), users=users, owner=pd.Series(users, users), person=person)


def proxy(setting: SubTraceSetting, fitted: Sequence, variant: str = "text", known: Traces | None = None) -> Hybrid:
    """Return Hybrid-LPPM configured as in §6.4.1: each attack has the weight 1."""
    return Hybrid(mechanisms(setting, variant, known), fitted, coverage, owners=setting.person)


def run_proxy(hybrid: Hybrid, setting: SubTraceSetting, seed: int = 0) -> ProxyResult:
    """Return the proxy's output for the attacked sub-traces; ``seed``: of the mechanisms."""
    return hybrid.choose(setting.secret, np.random.default_rng(seed))


def trial(setting: SubTraceSetting, variant: str = "text", seed: int = 0) -> Trial:
    """Run §6.4.2 once: the proxy and the adversary have the same attacks; ``seed``: of the mechanisms and of ILL-Attack."""
    fitted = attacks(setting.known, variant, seed)
    chosen = run_proxy(proxy(setting, fitted, variant), setting, seed)
    return Trial(hits(fitted, chosen.tried, setting), chosen.utility, chosen.mechanism)


def hits(fitted: Sequence, tried: dict[str, Traces], setting: SubTraceSetting) -> dict[str, pd.DataFrame]:
    """Return what each attack re-identifies: its name -> one row per sub-trace, one column per mechanism."""
    return {
        attack.name: pd.DataFrame(
            {name: reidentified(attack.rank(p), setting.users, setting.person) for name, p in tried.items()}
        )
        for attack in fitted
    }


def fully_protected(hit_tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return which sub-traces no attack re-identifies ("fully protected", §6.4.2), one column per mechanism."""
    return sum(table.astype(int) for table in hit_tables.values()) == 0


def of_chosen(table: pd.DataFrame, mechanism: pd.Series) -> pd.Series:
    """Return each sub-trace's entry in the column of the mechanism chosen for it."""
    column = table.columns.get_indexer(mechanism.reindex(table.index))
    return pd.Series(table.to_numpy()[np.arange(len(table)), column], table.index, name="Hybrid-LPPM")


def knowledge_in_two(setting: SubTraceSetting) -> tuple[Traces, Traces]:
    """Split KD into each user's earlier and later days, half each: for a proxy and an adversary with different knowledge."""
    earlier, later = split_in_time(setting.known, 86_400.0, 0.5)
    return earlier, thesis_5.of_owners(later.traces, later.owner)
