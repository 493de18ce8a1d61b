"""The setting of the pages on PRIMULE, the choices of extraction, and the plane of risk and utility.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §3.1 and §7.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv import datasets
from mobpriv.attacks.icp.linking import candidates
from mobpriv.base.estimates import Estimate, clustered_difference, clustered_rate
from mobpriv.base.numbers import counted, shown
from mobpriv.base.ranges import whole
from mobpriv.calls.table import Calls
from mobpriv.datasets import CallSet
from mobpriv.experiments.days import check_no_trace_parameters, day_zone, first_day, simulated_calls
from mobpriv.icp.profiles import WEEKS, Extraction, Icps, Window, icps, values
from mobpriv.mechanisms.icp import Primule, per_group
from mobpriv.traces.table import milliseconds

# --------------- The setting shared by the pages on PRIMULE: the individual call profiles of four weeks in all municipalities


class Setting(NamedTuple):
    data: CallSet
    window: Window
    profiles: Icps  # one row per user and municipality
    values: np.ndarray  # (profiles, 6 · weeks), shares of days
    town: np.ndarray  # (profiles,): the municipality of each, as text
    left_out: pd.DataFrame  # rule, records, users
    selection: str  # in words, without a full stop at the end
    truth: "Truth | None" = None  # of people simulated for this run


class Truth(NamedTuple):
    """The true roles and borders of simulated people."""

    roles: pd.DataFrame  # person, municipality, role
    borders: pd.DataFrame  # a GeoDataFrame: municipality, geometry


def prepare(
    dataset: str,
    start: str = "",
    zone: str = "",
    weeks: int = WEEKS,
    max_municipalities: int = 0,
    rate: float = 0.0,  # calls simulated per user and day of traces
    antennas: int = 29,
    towns: int = 6,
    leave_out: str = "",
    seed: int = 1,
    people: int = 0,  # simulated in the municipalities of a file of boundaries
    ranks: str = "",  # of these municipalities by inhabitants: "Firenze 1, Pisa 2"
    k: int = 1,  # the largest k of the experiment
) -> Setting:
    """Make the profiles of ``weeks`` weeks from the day ``start`` on (empty: the first day with a call).

    * ``zone``: time zone; empty: that of the data set, see :func:`mobpriv.experiments.days.day_zone`.
    * ``max_municipalities`` > 0: only so many of the most populous municipalities.
    * ``rate`` > 0, for traces: calls a day of each user, a Poisson process. ``antennas`` are placed where the records are and
      assigned to ``towns`` municipalities.
    * ``people`` > 0: the data set is a file of boundaries; so many people of the synthetic region's kind live and call there,
      served by ``antennas``.
    * ``k``: municipalities with fewer profiles are left out and counted. Algorithm 1 returns them unchanged, so they would look
      protected.

    ValueError for traces without a ``rate``, for call records with a ``rate`` or ``leave_out``, which would do nothing, and if
    no municipality has ``k`` profiles.
    """
    whole("max_municipalities", max_municipalities, 0)
    zone, truth = day_zone(dataset, zone), None
    if whole("people", people, 0):
        data, truth = _simulated_data(dataset, people, antennas, ranks, zone, seed)
    elif datasets.kind_of(dataset) == "calls":
        check_no_trace_parameters(dataset, rate=rate, leave_out=leave_out)
        data = datasets.load_calls(dataset)
    elif rate:
        data = simulated_calls(dataset, rate, antennas, seed, leave_out, towns=towns)[0]
    else:
        raise ValueError(
            f"individual call profiles are made of call records: a table with user, t and cell ({dataset} holds traces; "
            "rate=30 simulates 30 calls a day for each user)"
        )
    if not len(data.calls):
        raise ValueError(f"{data.name} holds no calls")
    first = first_day(start, data.calls["t"], zone)
    window = Window(first, zone, weeks)
    extraction: Extraction = icps(data.calls, data.cells, window)
    profiles = extraction.profiles
    if not len(profiles) and not data.cells["municipality"].notna().any():
        raise ValueError(
            f"no cell of {data.name} has a municipality: add the column municipality to its table of cells, because a profile is of a user in a municipality"
        )
    if not len(profiles):
        raise ValueError(
            f"{data.name} has no call at a cell with a municipality in the {counted(weeks, 'week')} from {window.first} on: choose another start"
        )
    sizes = profiles["municipality"].value_counts()
    every = int((sizes > 0).sum())
    if max_municipalities:
        kept = sizes.index[:max_municipalities]
        profiles = profiles[profiles["municipality"].isin(kept)].reset_index(drop=True)
        sizes = sizes[kept]
    chosen = int((sizes > 0).sum())
    if sizes.max() < k:
        raise ValueError(
            f"k = {k} needs a municipality of {k} profiles or more (the largest of {data.name}, {sizes.idxmax()}, has {sizes.max()}): "
            "take more users or longer data"
        )
    small = sizes.index[(sizes > 0) & (sizes < k)].astype(str)
    left_out, too_few = extraction.left_out, ""
    if len(small):
        of_small = profiles["municipality"].isin(small)
        rule = f"municipalities of fewer than {k} profiles"
        too_few = f". We leave out {counted(int(of_small.sum()), 'profile')} ({rule})"
        left_out = pd.concat([left_out, _calls_of(data, window, small, rule)], ignore_index=True)
        profiles, sizes = profiles[~of_small].reset_index(drop=True), sizes[sizes >= k]
    used = sizes[sizes > 0]
    smallest, largest = int(used.min()), int(used.max())
    span = (f"{shown(smallest)} to " if smallest < largest else "") + counted(largest, "profile")
    last = data.calls["t"].max().tz_convert(zone).date()
    days = (last - window.first).days + 1  # a last day without a call is not missing
    selection = (
        f"{data.reading + '. ' if data.reading else ''}We use {shown(len(profiles))} profiles of {shown(profiles['user'].nunique())} users in {counted(len(used), 'municipality', 'municipalities')}{f', the most populous of {every}' if chosen < every else ''}. "
        f"A municipality has {span}. The profiles cover {counted(weeks, 'week')} from {window.first} on (time zone {zone})"
        f"{f'. The calls end on day {days} of {7 * weeks}; the later days are empty' if days < 7 * weeks - 1 else ''}"
        + "".join(
            f". We leave out {counted(int(n), 'record')} ({rule})"
            for rule, n in zip(extraction.left_out["rule"], extraction.left_out["records"], strict=True)
        )
        + too_few
    )
    town, shares = profiles["municipality"].astype(str).to_numpy(), values(profiles["key"].to_numpy(), weeks)
    return Setting(data, window, profiles, shares, town, left_out, selection, truth)


def _calls_of(data: CallSet, window: Window, municipalities: pd.Index, rule: str) -> pd.DataFrame:
    """Return the calls of these municipalities in the window as a row of the table of what was left out."""
    slot = window.slot_of(milliseconds(data.calls))
    cells = data.cells["cell"][data.cells["municipality"].isin(municipalities)]
    calls = data.calls[(slot >= 0) & (slot < 21 * window.weeks) & data.calls["cell"].isin(cells)]
    return pd.DataFrame([(rule, len(calls), calls["user"].nunique())], columns=["rule", "records", "users"])


def simulated_truth(setting: Setting) -> Truth | None:
    """Return the true roles and borders, known for the embedded region and for simulated people, else None."""
    if setting.truth is None and setting.data.name == "region" and setting.data.synthetic:
        return Truth(*datasets.region_truth())
    return setting.truth


def _simulated_data(dataset: str, people: int, antennas: int, ranks: str, zone: str, seed: int) -> tuple[CallSet, Truth]:
    """Simulate people on the boundaries of a file."""
    from mobpriv.datasets.region import make_on  # geopandas takes a second to load
    from mobpriv.datasets.region.boundaries import read_boundaries

    path = Path(dataset)
    if not path.is_file():
        raise FileNotFoundError(f"{dataset}: no such file; people are simulated in the municipalities of a file of boundaries")
    boundaries = read_boundaries(path)
    simulated = make_on(boundaries, people, antennas, _ranks(ranks), zone, seed=seed)
    left_out = pd.DataFrame({"rule": pd.Series(dtype=str), "records": pd.Series(dtype=int), "users": pd.Series(dtype=int)})
    how = (
        f"We simulate {shown(people)} people with {shown(antennas)} antennas on the real boundaries of "
        f"{counted(len(boundaries), 'municipality', 'municipalities')}"
    )
    name = path.resolve().name
    data = CallSet(simulated.calls, simulated.cells, left_out, name.split(".")[0], datasets.sha256_of(path), True, name, how)
    return data, Truth(simulated.people, simulated.municipalities)


def _ranks(text: str) -> dict[str, int]:
    """Parse "Firenze 1, Pisa 2" into a dictionary."""
    ranks = {}
    for part in filter(str.strip, text.split(",")):
        name, _, rank = part.strip().rpartition(" ")
        if not (name.strip() and rank.strip().isdigit()):
            raise ValueError(f"ranks are written as Firenze 1, Pisa 2 (got {part.strip()!r})")
        ranks[name.strip()] = int(rank)
    return ranks


# ---------------------- Measure how profiles change with the choices of their extraction (§3.1), and with the number of calls
K = 10  # the paper's least k


class ProfileChange(NamedTuple):
    profiles: int
    changed: Estimate  # share of the original profiles that change or disappear
    unsafe: Estimate  # share of the new profiles with an anonymity set below k
    shift: Estimate  # paired change of this share, over the profiles present before and after


def compare_profiles(before: Icps, after: Icps, k: int = K) -> ProfileChange:
    """Compare profiles of the same users and municipalities before and after a choice changes; neither is empty."""
    whole("k", k, 2)
    one, other = _with_anonymity(before, k), _with_anonymity(after, k)
    both = one.merge(other, on=["user", "municipality"], how="left", suffixes=("", " after"), indicator=True)
    in_both = (both["_merge"] == "both").to_numpy()
    changed = ~in_both | (both["key"] != both["key after"]).to_numpy()
    unsafe = [both[name].to_numpy()[in_both].astype(bool) for name in ("unsafe after", "unsafe")]
    return ProfileChange(
        len(other),
        clustered_rate(changed, both["user"].to_numpy()),
        clustered_rate(other["unsafe"].to_numpy(), other["user"].to_numpy()),
        clustered_difference(*unsafe, both["user"].to_numpy()[in_both])
        if in_both.any()
        else Estimate(np.nan, np.nan, np.nan, 0),
    )


def _with_anonymity(profiles: Icps, k: int) -> pd.DataFrame:
    user, town = (profiles[name].astype(str).to_numpy() for name in ("user", "municipality"))
    keys = profiles["key"].to_numpy()
    return pd.DataFrame({"user": user, "municipality": town, "key": keys, "unsafe": candidates(keys, within=town) < k})


def choices(data: CallSet, window: Window) -> Mapping[str, Icps]:
    """Return the profiles of the window with one choice of §3.1 varied at a time, by the choice's name."""
    first, zone, weeks = window.first, window.zone, window.weeks
    windows = {
        "slots from 8 and 16 h": Window(first, zone, weeks, (0, 8, 16)),
        "slots from 7 and 18 h": Window(first, zone, weeks, (0, 7, 18)),
        "slots from 6 and 20 h": Window(first, zone, weeks, (0, 6, 20)),
        "by the clocks of UTC": Window(first, "UTC", weeks),
        "by the clocks of Europe/Rome": Window(first, "Europe/Rome", weeks),
    }
    variants = {name: icps(data.calls, data.cells, varied_window).profiles for name, varied_window in windows.items()}
    variants["every slot that a call touches"] = icps(data.calls, data.cells, window, every_slot=True).profiles
    variants["also where a call ended"] = icps(data.calls, data.cells, window, both_cells=True).profiles
    start, end = window.period
    in_window = data.calls[(data.calls["t"] >= start) & (data.calls["t"] < end)]
    for least in (5, 28):
        frequent = in_window["user"].map(in_window["user"].value_counts()).astype(int).to_numpy() >= least
        if frequent.any():
            variants[f"users of {least} calls or more"] = icps(in_window[frequent], data.cells, window).profiles
    return {name: profiles for name, profiles in variants.items() if len(profiles)}


def thinned(calls: Calls, share: float, rng: np.random.Generator) -> Calls:
    """Keep each call with probability ``share``: the same people with fewer calls."""
    return calls[rng.random(len(calls)) < share]


# --------------------------- Vary two choices that the paper leaves open: the order in case of ties, and the slots of the day
def cells_in_order(original: np.ndarray, town: np.ndarray, k: int, order: np.ndarray) -> np.ndarray:
    """Return PRIMULE's published profiles in each municipality if the cells are read in another ``order``.

    Distances and sizes of groups stay the same. If groups are equal in both, the lexicographically smaller mean goes first,
    which depends on the order of the cells. So only the remaining ties change.
    """
    published, table = np.empty(np.shape(original)), pd.DataFrame(original)[list(order)]
    published[:, order] = per_group(Primule(k), table, town, np.random.default_rng()).values  # PRIMULE is deterministic
    return published


def with_slots(setting: Setting, slots: Sequence[int], weeks: int = 4) -> Setting:
    """Return the setting with the same calls in profiles of other slots of the day, for the same municipalities."""
    window = Window(setting.window.first, setting.window.zone, weeks, tuple(slots))
    profiles = icps(setting.data.calls, setting.data.cells, window).profiles
    profiles = profiles[profiles["municipality"].astype(str).isin(np.unique(setting.town))].reset_index(drop=True)
    town = profiles["municipality"].astype(str).to_numpy()
    return setting._replace(window=window, profiles=profiles, values=values(profiles["key"].to_numpy(), weeks), town=town)


# -------------------------------------------- Compare PRIMULE, micro-aggregation and noise on one plane, risk against utility
class PlanePoint(NamedTuple):
    """One setting; arrays over the same targets, profiles and repetitions as the settings it is compared with."""

    risk: np.ndarray  # (targets,): probability of re-identification, mean over repetitions
    utility: np.ndarray  # (profiles,): how often each keeps its label
    risk_by_repetition: np.ndarray  # (draws,), or (1,) without randomness: mean over the targets
    utility_by_repetition: np.ndarray  # (draws,): mean over the profiles
    risk_clusters: np.ndarray  # (targets,): the resampling unit of intervals: the group, or the user without groups
    utility_clusters: np.ndarray  # (profiles,)


class Dominance(Enum):
    """Is a setting dominated by another one? ``OPEN`` if inconclusive."""

    YES, NO, INCONCLUSIVE = "beaten", "not beaten", "open"


def dominance(point: PlanePoint, others: Mapping[str, PlanePoint]) -> Dominance:
    """Return whether another setting has significantly less risk and more utility, see :func:`_sign`.

    A setting is not dominated if each other one has significantly more risk or less utility.
    """
    sure = 0
    for other in others.values():
        less_risk = point.risk_by_repetition - other.risk_by_repetition
        risk = _sign(point.risk, other.risk, less_risk, (point.risk_clusters, other.risk_clusters))
        more_utility = other.utility_by_repetition - point.utility_by_repetition
        utility = _sign(other.utility, point.utility, more_utility, (point.utility_clusters, other.utility_clusters))
        if risk == utility == 1:
            return Dominance.YES
        sure += -1 in (risk, utility)
    return Dominance.NO if sure == len(others) else Dominance.INCONCLUSIVE


def _sign(a: np.ndarray, b: np.ndarray, differences: np.ndarray, clusters: tuple[np.ndarray, np.ndarray]) -> int:
    """Return 1 if mean(a) > mean(b) significantly, −1 if mean(a) < mean(b), else 0.

    Significant: the paired 95 % intervals over both kinds of groups exclude 0, and each repetition (``differences``) has the
    same sign.
    """
    estimates: list[Estimate] = [clustered_difference(a, b, groups) for groups in clusters]
    above, below = all(one.low > 0 for one in estimates), all(one.high < 0 for one in estimates)
    return int(above and (differences > 0).all()) - int(below and (differences < 0).all())
