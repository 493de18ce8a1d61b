"""Boolean and count profiles out of call records: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters
for randomized sanitization mechanisms*, Examples 1 and 2, and the sample of §VI-A.

Calls are a table with the columns user (texts), t (times with a zone) and cell (where the call began). A point of interest (POI) is
"the location of an antenna" (§II-A): here a site, which may bear several cells. Profiles are tables, a row a user and a column a POI:
whole numbers (how often) or truth values (whether).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from mobpriv.ranges import one_of, whole

COLUMNS = ("user", "t", "cell")
LEAST = 6  # distinct POIs in the day of who is in the paper's sample (§VI-A)
USERS = 100  # n
POIS = 29  # m
MOST_VISITS = 2**53  # from it on not every whole number is a float, which noise is added in


class Profiles(NamedTuple):
    counts: pd.DataFrame  # users × POIs, whole numbers
    left_out: pd.DataFrame  # rule, records, users: which calls are in no profile, and of how many users


class Day(NamedTuple):
    """A day and its halves (§VI-A: 00:00 to 11:59 and 12:00 to 23:59), each [start, end) of times with a zone."""

    whole: tuple[pd.Timestamp, pd.Timestamp]
    first: tuple[pd.Timestamp, pd.Timestamp]
    second: tuple[pd.Timestamp, pd.Timestamp]


def day(date, zone: str) -> Day:
    """The day ``date`` by the clocks of ``zone``; where they are put forward at midnight it begins at the first minute there is. A ``date`` with a
    zone is a moment: the day is that of ``zone`` in which it lies."""
    if not isinstance(zone, str):
        raise ValueError(f"zone must be the name of a time zone, as Europe/Paris (got {zone!r})")
    try:
        at = pd.Timestamp(date)
        if at is pd.NaT:
            raise ValueError(f"no date: {date!r}")
        at = at.tz_convert(zone).tz_localize(None) if at.tz is not None else at
        clock = [at.normalize() + pd.Timedelta(hours=hours) for hours in (0, 12, 24)]
        start, noon, end = (t.tz_localize(zone, ambiguous=True, nonexistent="shift_forward") for t in clock)
    except (ValueError, TypeError, LookupError, OverflowError, OSError) as error:  # an unknown zone is a KeyError
        raise ValueError(f"date and zone must be a day and a time zone, as 2026-03-02 and Europe/Paris ({error})") from None
    if not start < noon < end:
        raise ValueError(f"date must be a day that there is by the clocks of {zone} (got {at:%Y-%m-%d}, which they skip)")
    return Day((start, end), (start, noon), (noon, end))


def count_profiles(calls: pd.DataFrame, pois: Mapping, period: tuple | None = None) -> Profiles:
    """c_ij of Example 2: how often each user of ``calls`` was at each POI in the period [start, end).

    ``pois``: cell -> POI, as :func:`pois_of` makes it; the columns are its POIs in their order, also those without a call. Every user
    of ``calls`` has a row, sorted; of whom no call counts, one of zeros. Calls at other cells, outside the period, without a time or
    a cell are counted in ``left_out``, each under the first rule that it breaks.
    """
    _check(calls)
    poi_of, names = _poi_of(pois)
    who, users = _who(calls["user"])
    cell = calls["cell"].astype("category").cat
    place = np.r_[pd.Index(names).get_indexer(cell.categories.map(poi_of)), -1][cell.codes]
    rules = _rules(calls, place, period)
    counted = np.ones(len(calls), bool)
    found = []
    for rule, broken in rules:
        broken = broken & counted
        counted &= ~broken
        if broken.any():
            found.append((rule, int(broken.sum()), len(np.unique(who[broken]))))
    flat = np.bincount(who[counted] * len(names) + place[counted], minlength=len(users) * len(names))
    counts = pd.DataFrame(flat.reshape(len(users), len(names)), pd.Index(users, name="user"), pd.Index(names, name="poi"))
    return Profiles(counts, pd.DataFrame(found, columns=["rule", "records", "users"]))


def _who(user: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """Of each call the place of its user among the sorted names; no text is compared for every call."""
    user = user.astype("category").cat.remove_unused_categories().cat
    names = user.categories.astype(str)
    if not names.is_unique:
        twice = names[names.duplicated()][0]
        raise ValueError(
            f"users must be told apart by their names as texts ({twice} is the name of a number and of a text): make all of them texts"
        )
    place = np.empty(len(names), np.int64)
    place[np.argsort(names)] = np.arange(len(names))
    return place[user.codes], names.sort_values()


def _rules(calls, place, period):
    t, cell = calls["t"], calls["cell"]
    rules = [("no time", t.isna().to_numpy()), ("no cell", cell.isna().to_numpy())]
    if period is not None:
        start, end = _period(period)
        rules.append(("outside the period", ~((t >= start) & (t < end)).to_numpy()))
    return [*rules, ("outside the region", place < 0)]


def _check(calls) -> None:
    if not isinstance(calls, pd.DataFrame) or set(COLUMNS) - set(calls.columns):
        got = list(calls.columns) if isinstance(calls, pd.DataFrame) else type(calls).__name__
        hint = ": these are traces, not call records" if {"lat", "lng"} <= set(got if isinstance(got, list) else []) else ""
        raise ValueError(f"calls must be a table with the columns {', '.join(COLUMNS)} (got {got}{hint})")
    if not isinstance(calls["t"].dtype, pd.DatetimeTZDtype):
        raise ValueError(f"column t of calls must hold times with a zone (it holds {calls['t'].dtype})")
    nobody = calls["user"].isna().to_numpy()
    if nobody.any():
        raise ValueError(
            f"every call must have a user ({nobody.sum()} of {len(calls)} have none, the first in row {nobody.argmax()})"
        )


def _poi_of(pois):
    if isinstance(pois, pd.Series):
        if not pois.index.is_unique:
            raise ValueError(
                f"every cell must stand once in pois ({pois.index[pois.index.duplicated()][0]} stands there twice)"
            )
        pois = pois.to_dict()
    if not isinstance(pois, Mapping) or not pois:
        raise ValueError(f"pois must map one cell or more to its POI, as pois_of does (got {type(pois).__name__})")
    return dict(pois), list(dict.fromkeys(pois.values()))


def _period(period):
    try:
        start, end = (pd.Timestamp(t) for t in period)
    except (TypeError, ValueError):
        raise ValueError(f"a period must be two times, [start, end) (got {period!r})") from None
    if start.tz is None or end.tz is None or not start < end:
        raise ValueError(f"a period must be two times with a zone, the first before the second (got {start}, {end})")
    return start, end


def booleans(counts: pd.DataFrame) -> pd.DataFrame:
    """b_ij of Example 1: whether user i has visited POI j; b_ij = 1 if and only if c_ij ≠ 0 (§V-B)."""
    return as_counts(counts) > 0


def eligible(counts: pd.DataFrame, least: int = LEAST) -> pd.DataFrame:
    """The profiles with visits on at least ``least`` distinct POIs (§VI-A); a user without a visit is never among them."""
    whole("least", least, 1)
    return counts[(as_counts(counts) > 0).sum(axis=1) >= least]


def sample(counts: pd.DataFrame, rng: np.random.Generator, n: int = USERS, least: int = LEAST) -> pd.DataFrame:
    """The paper's sample: n users with at least ``least`` distinct POIs, drawn without replacement, in their order."""
    among = eligible(counts, least)
    whole("n", n, 1)
    if len(among) < n:
        raise ValueError(
            f"a sample of {n} users needs so many with {least} distinct POIs or more (there are {len(among)} of {len(counts)}): "
            "a smaller n or a smaller least"
        )
    return among.iloc[np.sort(rng.choice(len(among), n, replace=False))]


def pois_of(cells: pd.DataFrame, m: int = POIS, choose: str = "densest", use: pd.Series | None = None) -> pd.Series:
    """Which cells are POIs: cell -> POI for the cells at the m chosen sites, as "antennas cells co-located in some region around some
    big city" (§VI-A). A site is a position; its POI bears the name of its first cell, POIs in order of their names.

    ``cells``: cell, lat, lng in degrees. ``densest`` (default) takes the m sites that stand closest together: the one whose m-th
    nearest site is nearest, and those nearest to it. ``used`` takes the m sites with most calls, ``use``: cell -> number of calls.
    Of equally near or used sites the first by name. Raises ValueError for a cell without coordinates and for fewer than m sites.

    Departures from the paper: it does not say how its region was cut; both ways are ours.
    """
    whole("m", m, 1)
    one_of("choose", choose, ("densest", "used"))
    sites = _sites(cells)
    if len(sites) < m:
        raise ValueError(f"{m} POIs need so many sites (the {len(cells)} cells stand at {len(sites)}): a smaller m")
    if choose == "used":
        if use is None:
            raise ValueError('choose="used" needs use: a Series of the number of calls of each cell')
        if not use.index.isin(cells["cell"]).any():
            raise ValueError(
                f"use must hold calls of these cells (it has none of them; its first is {next(iter(use.index), None)!r})"
            )
        total = use.reindex(cells["cell"]).fillna(0).groupby(_names(cells)).sum()
        chosen = sites["poi"].to_numpy()[np.argsort(-total.reindex(sites["poi"]).to_numpy(), kind="stable")[:m]]
    else:
        lat, lng = np.radians(sites["lat"].to_numpy()), np.radians(sites["lng"].to_numpy())
        # chords of the unit sphere are in the order of the ground's distances, across the date line too
        place = np.column_stack([np.cos(lat) * np.cos(lng), np.cos(lat) * np.sin(lng), np.sin(lat)])
        away = np.reshape(cKDTree(place).query(place, k=[m])[0], -1)
        centre = np.argmin(np.round(away, 12))
        apart = np.round(np.linalg.norm(place - place[centre], axis=1), 12)
        chosen = sites["poi"].to_numpy()[np.argsort(apart, kind="stable")[:m]]
    poi = pd.Series(_names(cells), pd.Index(cells["cell"], name="cell"), name="poi")
    return poi[poi.isin(chosen)].sort_values(kind="stable")


def _names(cells: pd.DataFrame) -> np.ndarray:
    """Of each cell the name of its site: its first cell by name."""
    return cells["cell"].astype(str).groupby([cells["lat"], cells["lng"]]).transform("min").to_numpy()


def _sites(cells: pd.DataFrame) -> pd.DataFrame:
    missing = {"cell", "lat", "lng"} - set(getattr(cells, "columns", ()))
    if missing:
        raise ValueError(f"cells must be a table with the columns cell, lat, lng (missing: {', '.join(sorted(missing))})")
    nowhere = ~np.isfinite(cells[["lat", "lng"]].to_numpy(float)).all(axis=1)
    if nowhere.any():
        first = cells["cell"].iloc[int(nowhere.argmax())]
        raise ValueError(f"every cell must have coordinates ({nowhere.sum()} of {len(cells)} have none, the first is {first})")
    twice = cells["cell"].duplicated()
    if twice.any():
        raise ValueError(f"every cell must stand once in cells ({cells['cell'][twice].iloc[0]} stands there twice)")
    sites = cells[["lat", "lng"]].assign(poi=_names(cells)).drop_duplicates("poi")
    return sites.sort_values("poi").reset_index(drop=True)


def as_counts(profiles) -> pd.DataFrame:
    """The table itself, if it holds count profiles: whole numbers, not negative, each user and each POI once."""
    values = _table(profiles)
    if values.dtype.kind not in "iu":
        raise ValueError(f"count profiles must hold whole numbers{_where_not_whole(profiles)}")
    if (values < 0).any():
        i, j = np.argwhere(values < 0)[0]
        at = f"user {profiles.index[i]}, POI {profiles.columns[j]}"
        raise ValueError(f"count profiles must not be negative (got {values[i, j]} of {at})")
    if (values >= MOST_VISITS).any():
        i, j = np.argwhere(values >= MOST_VISITS)[0]
        at = f"user {profiles.index[i]}, POI {profiles.columns[j]}"
        raise ValueError(f"count profiles must be below 2^53, else noise is lost in rounding (got {values[i, j]} of {at})")
    return profiles


def as_booleans(profiles) -> pd.DataFrame:
    """The table itself, if it holds boolean profiles: truth values, each user and each POI once."""
    values = _table(profiles)
    if values.dtype != bool:
        raise ValueError(f"boolean profiles must hold truth values (they hold {values.dtype}): booleans(counts) makes them")
    return profiles


def _table(profiles) -> np.ndarray:
    if not isinstance(profiles, pd.DataFrame) or not profiles.shape[1]:
        raise ValueError(f"profiles must be a table, a row a user and a column a POI (got {type(profiles).__name__})")
    for what, names in (("user", profiles.index), ("POI", profiles.columns)):
        if not names.is_unique:
            raise ValueError(
                f"every {what} must stand once in the profiles ({names[names.duplicated()][0]} stands there twice)"
            )
    return profiles.to_numpy()


def _where_not_whole(profiles) -> str:
    values = profiles.to_numpy()
    if values.dtype.kind == "f":
        wrong = ~(np.isfinite(values) & (values == np.floor(values)))
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            return f" (got {values[i, j]} of user {profiles.index[i]}, POI {profiles.columns[j]})"
    return f" (they hold {values.dtype})"
