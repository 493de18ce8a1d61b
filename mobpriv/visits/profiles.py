"""Boolean and count profiles from call records.

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
Examples 1 and 2, and the sample of §VI-A.

Calls are a table with the columns user (text), t (times with a zone) and cell (where the call began). A point of interest (POI)
is "the location of an antenna" (§II-A): here a site, which may have several cells. Profiles are tables with a row per user and
a column per POI. They hold whole numbers (how often) or truth values (whether).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from mobpriv.base.ranges import one_of, whole

CALL_COLUMNS = ("user", "t", "cell")
MIN_POIS = 6  # least number of distinct POIs per day of a user in the paper's sample (§VI-A)
USERS = 100  # n
POIS = 29  # m
_MAX_VISITS = 2**53  # from here on a float cannot represent every whole number, and noise is added in floats


class Profiles(NamedTuple):
    counts: pd.DataFrame  # users × POIs, whole numbers
    left_out: pd.DataFrame  # rule, records, users: the calls that are in no profile, and the number of their users


class Day(NamedTuple):
    """A day and its halves (§VI-A: 00:00 to 11:59 and 12:00 to 23:59), each [start, end), times with a zone."""

    full: tuple[pd.Timestamp, pd.Timestamp]
    first: tuple[pd.Timestamp, pd.Timestamp]
    second: tuple[pd.Timestamp, pd.Timestamp]


def day(date, zone: str) -> Day:
    """The day ``date`` by the clocks of ``zone``. If they skip midnight, the day begins at the first existing minute.

    A ``date`` with a zone is a moment; the result is the day of ``zone`` that contains it.
    """
    if not isinstance(zone, str):
        raise ValueError(f"zone must be the name of a time zone, such as Europe/Paris (got {zone!r})")
    try:
        at = pd.Timestamp(date)
        if at is pd.NaT:
            raise ValueError(f"no date: {date!r}")
        at = at.tz_convert(zone).tz_localize(None) if at.tz is not None else at
        clock = [at.normalize() + pd.Timedelta(hours=hours) for hours in (0, 12, 24)]
        start, noon, end = (t.tz_localize(zone, ambiguous=True, nonexistent="shift_forward") for t in clock)
    except (ValueError, TypeError, LookupError, OverflowError, OSError) as error:  # an unknown zone raises KeyError
        raise ValueError(
            f"date and zone must be a day and a time zone, such as 2026-03-02 and Europe/Paris ({error})"
        ) from None
    if not start < noon < end:
        raise ValueError(f"date must be a day that exists by the clocks of {zone} (got {at:%Y-%m-%d}, which they skip)")
    return Day((start, end), (start, noon), (noon, end))


def count_profiles(calls: pd.DataFrame, pois: Mapping, period: tuple | None = None) -> Profiles:
    """Counts c_ij of Example 2: the number of calls of each user at each POI in the period [start, end).

    ``pois`` maps cell -> POI, as :func:`pois_of` returns it. The columns are its POIs in their order, including POIs without a
    call. Every user of ``calls`` has a row, sorted; a user without a counted call has a row of zeros. ``left_out`` counts the
    calls at other cells, outside the period, without a time or without a cell, each under the first rule that it breaks.
    """
    _check(calls)
    poi_of, names = _poi_of(pois)
    user_position, users = user_positions(calls["user"])
    cell = calls["cell"].astype("category").cat
    poi_position = np.r_[pd.Index(names).get_indexer(cell.categories.map(poi_of)), -1][cell.codes]
    rules = _rules(calls, poi_position, period)
    in_profile = np.ones(len(calls), bool)
    left_out = []
    for rule, broken in rules:
        broken = broken & in_profile
        in_profile &= ~broken
        if broken.any():
            left_out.append((rule, int(broken.sum()), len(np.unique(user_position[broken]))))
    flat = np.bincount(user_position[in_profile] * len(names) + poi_position[in_profile], minlength=len(users) * len(names))
    counts = pd.DataFrame(flat.reshape(len(users), len(names)), users, pd.Index(names, name="poi"))
    return Profiles(counts, pd.DataFrame(left_out, columns=["rule", "records", "users"]))


def user_positions(user: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """The index of each call's user among the sorted names. Codes avoid a text comparison per call."""
    user = user.astype("category").cat.remove_unused_categories().cat
    names = user.categories.astype(str)
    if not names.is_unique:
        duplicate = names[names.duplicated()][0]
        raise ValueError(
            f"users must have distinct names as texts ({duplicate} occurs twice, for example as a number and as a text): make all of them texts"
        )
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(names)] = np.arange(len(names))
    return rank[user.codes], pd.Index(names.sort_values(), dtype="str", name="user")


def _rules(calls, poi_position, period):
    t, cell = calls["t"], calls["cell"]
    rules = [("no time", t.isna().to_numpy()), ("no cell", cell.isna().to_numpy())]
    if period is not None:
        start, end = _period(period)
        rules.append(("outside the period", ~((t >= start) & (t < end)).to_numpy()))
    return [*rules, ("outside the region", poi_position < 0)]


def _check(calls) -> None:
    if not isinstance(calls, pd.DataFrame) or set(CALL_COLUMNS) - set(calls.columns):
        got = list(calls.columns) if isinstance(calls, pd.DataFrame) else type(calls).__name__
        hint = ": these are traces, not call records" if {"lat", "lng"} <= set(got if isinstance(got, list) else []) else ""
        raise ValueError(f"calls must be a table with the columns {', '.join(CALL_COLUMNS)} (got {got}{hint})")
    if not isinstance(calls["t"].dtype, pd.DatetimeTZDtype):
        raise ValueError(f"column t of calls must hold times with a zone (it holds {calls['t'].dtype})")
    without_user = calls["user"].isna().to_numpy()
    if without_user.any():
        raise ValueError(
            f"every call must have a user ({without_user.sum()} of {len(calls)} have none, the first in row {without_user.argmax()})"
        )


def _poi_of(pois):
    if isinstance(pois, pd.Series):
        if not pois.index.is_unique:
            raise ValueError(f"every cell must occur once in pois ({pois.index[pois.index.duplicated()][0]} occurs twice)")
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
    """Booleans b_ij of Example 1: whether user i has visited POI j; b_ij = 1 if and only if c_ij ≠ 0 (§V-B)."""
    return as_counts(counts) > 0


def eligible(counts: pd.DataFrame, least: int = MIN_POIS) -> pd.DataFrame:
    """The profiles with visits to at least ``least`` distinct POIs (§VI-A), at least one."""
    whole("least", least, 1)
    return counts[(as_counts(counts) > 0).sum(axis=1) >= least]


def sample(counts: pd.DataFrame, rng: np.random.Generator, n: int = USERS, least: int = MIN_POIS) -> pd.DataFrame:
    """The paper's sample: n users with at least ``least`` distinct POIs, drawn without replacement, in table order."""
    candidates = eligible(counts, least)
    whole("n", n, 1)
    if len(candidates) < n:
        raise ValueError(
            f"a sample of {n} users needs as many with {least} distinct POIs or more (got {len(candidates)} of {len(counts)}): "
            "sample fewer users, or users of fewer POIs"
        )
    return candidates.iloc[np.sort(rng.choice(len(candidates), n, replace=False))]


def pois_of(cells: pd.DataFrame, m: int = POIS, choose: str = "densest", use: pd.Series | None = None) -> pd.Series:
    """Choose the POIs: a mapping cell -> POI for the cells at m sites, "antennas cells co-located in some region around some
    big city" (§VI-A).

    A site is a position. Its POI has the name of its first cell; POIs are sorted by name. ``cells`` has the columns cell, lat,
    lng in degrees. ``choose``:

    * ``densest`` (default): the site whose m-th nearest site is nearest, and the sites nearest to it;
    * ``used``: the m sites with the most calls; ``use`` maps cell -> number of calls.

    Ties are resolved by name. Raises ValueError for a cell without coordinates and for fewer than m sites.

    Departures from the paper: it does not say how its region was chosen; both methods are ours.
    """
    whole("m", m, 1)
    one_of("choose", choose, ("densest", "used"))
    sites = _sites(cells)
    if len(sites) < m:
        raise ValueError(f"{m} POIs need as many sites (the {len(cells)} cells are at {len(sites)}): choose fewer POIs")
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
        # chords of the unit sphere have the same order as distances on the ground, also across the date line
        points = np.column_stack([np.cos(lat) * np.cos(lng), np.cos(lat) * np.sin(lng), np.sin(lat)])
        radius = np.reshape(cKDTree(points).query(points, k=[m])[0], -1)
        centre = np.argmin(np.round(radius, 12))
        distance = np.round(np.linalg.norm(points - points[centre], axis=1), 12)
        chosen = sites["poi"].to_numpy()[np.argsort(distance, kind="stable")[:m]]
    poi = pd.Series(_names(cells), pd.Index(cells["cell"], name="cell"), name="poi")
    return poi[poi.isin(chosen)].sort_values(kind="stable")


def _names(cells: pd.DataFrame) -> np.ndarray:
    """The name of each cell's site: the first name among its cells."""
    return cells["cell"].astype(str).groupby([cells["lat"], cells["lng"]]).transform("min").to_numpy()


def _sites(cells: pd.DataFrame) -> pd.DataFrame:
    missing = {"cell", "lat", "lng"} - set(getattr(cells, "columns", ()))
    if missing:
        raise ValueError(f"cells must be a table with the columns cell, lat, lng (missing: {', '.join(sorted(missing))})")
    without_coordinates = ~np.isfinite(cells[["lat", "lng"]].to_numpy(float)).all(axis=1)
    if without_coordinates.any():
        first = cells["cell"].iloc[int(without_coordinates.argmax())]
        raise ValueError(
            f"every cell must have coordinates ({without_coordinates.sum()} of {len(cells)} have none, the first is {first})"
        )
    duplicated = cells["cell"].duplicated()
    if duplicated.any():
        raise ValueError(f"every cell must occur once in cells ({cells['cell'][duplicated].iloc[0]} occurs twice)")
    sites = cells[["lat", "lng"]].assign(poi=_names(cells)).drop_duplicates("poi")
    return sites.sort_values("poi").reset_index(drop=True)


def as_counts(profiles) -> pd.DataFrame:
    """Validate count profiles (whole numbers, not negative, each user and each POI once) and return the table."""
    values = _table(profiles)
    if values.dtype.kind not in "iu":
        raise ValueError(f"count profiles must hold whole numbers{_where_not_whole(profiles)}")
    too_large = values >= _MAX_VISITS
    for wrong, rule in ((values < 0, "not be negative"), (too_large, "be below 2^53, else noise is lost in rounding")):
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            at = f"user {profiles.index[i]}, POI {profiles.columns[j]}"
            raise ValueError(f"count profiles must {rule} (got {values[i, j]} of {at})")
    return profiles


def as_booleans(profiles) -> pd.DataFrame:
    """Validate boolean profiles (truth values, each user and each POI once) and return the table."""
    values = _table(profiles)
    if values.dtype != bool:
        raise ValueError(f"boolean profiles must hold truth values (they hold {values.dtype}): booleans(counts) makes them")
    return profiles


def _table(profiles) -> np.ndarray:
    if not isinstance(profiles, pd.DataFrame) or not profiles.shape[1]:
        raise ValueError(f"profiles must be a table with a row per user and a column per POI (got {type(profiles).__name__})")
    for what, names in (("user", profiles.index), ("POI", profiles.columns)):
        if not names.is_unique:
            raise ValueError(f"every {what} must occur once in the profiles ({names[names.duplicated()][0]} occurs twice)")
    return profiles.to_numpy()


def _where_not_whole(profiles) -> str:
    values = profiles.to_numpy()
    if values.dtype.kind == "f":
        wrong = ~(np.isfinite(values) & (values == np.floor(values)))
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            return f" (got {values[i, j]} of user {profiles.index[i]}, POI {profiles.columns[j]})"
    return f" (they hold {values.dtype})"
