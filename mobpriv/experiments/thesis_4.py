"""The setting of the thesis's chapter 4: the days, halves and attacks of chapter 3, its three mechanisms, and HMC.

The two variants are those of :mod:`mobpriv.experiments.thesis_3`. HMC as in the author's released program differs in more than
its metres: see :func:`hmc`.

Source: Maouche, thesis, §4.7.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from mobpriv import metrics
from mobpriv.attacks.ap import topsoe
from mobpriv.attacks.policies import answer
from mobpriv.datasets import points as read_points
from mobpriv.datasets.city import city_points
from mobpriv.experiments import thesis_3
from mobpriv.experiments.days import AttackSetting
from mobpriv.ground.grid import SquareGrid
from mobpriv.mechanisms import HMC, GeoI
from mobpriv.mechanisms.alteration import (
    ALTERATION_OUTCOMES,
    CONFUSED,
    REPLACED,
    Alteration,
    alter,
    heat_map_coverage,
    users_nearer,
)
from mobpriv.metrics.pairs import row_ranges
from mobpriv.traces.profiles import HeatMaps, heat_maps
from mobpriv.traces.table import Traces, as_traces, by_user, milliseconds, rows

ATTACKS = ("AP-Attack", "POI-Attack", "PIT-Attack")
HIGH_AC, HIGH_SD = 0.8, 200.0  # Table 4.1; SD in m
BINS = {  # bins of the metrics in Figures 4.12 to 4.16: ends and names
    "AC": ([0.25, 0.5, 0.75], ["below ¼", "¼ to ½", "½ to ¾", "¾ or more"]),
    "SD": ([1.0, 10.0, 200.0], ["below 1 m", "1 to 10 m", "10 to 200 m", "200 m or more"]),
    "STD": ([10.0, 200.0], ["below 10 m", "10 to 200 m", "200 m or more"]),
    "DSP": ([0.25, 0.5, 0.75], ["below ¼", "¼ to ½", "½ to ¾", "¾ or more"]),
    "NVD": ([0.25, 0.5, 0.75], ["below ¼", "¼ to ½", "½ to ¾", "¾ or more"]),
}


def hmc(setting: AttackSetting, variant: str = "text") -> HMC:
    """Return HMC for users whose training half the adversary has; ``"program"``: the options of the released program:

    * cells of Mercator metres,
    * (1 - U) of (4.7) as an exclusion of U's cells,
    * at least 50 records per iteration, gaps of a quarter of an hour, 200 km/h.

    :class:`mobpriv.mechanisms.HMC` lists the program's other differences.
    """
    if thesis_3.check_variant(variant) == "text":
        return HMC(setting.known)
    return HMC(setting.known, plane="mercator", unlike="exclusion", least_step=50, gap=900.0, speed=200 / 3.6)


def mechanisms(setting: AttackSetting, variant: str = "text") -> dict:
    """Return no protection, Geo-I, Promesse, W4M (§3.4.2) and HMC (§4.7.3), by their names in figures and results."""
    confusion = hmc(setting, variant)
    return thesis_3.mechanisms(variant) | {confusion.name: confusion}


def shifted(mechanism: GeoI, traces: Traces, rng: np.random.Generator) -> Traces:
    """Shift every trace as a whole by one draw of the mechanism's noise, that of its first record."""
    offsets = by_user(traces)[1]
    first = rows(traces, offsets[:-1])
    noisy = mechanism.protect(first, rng)
    moved = {name: np.repeat(noisy[name].to_numpy() - first[name].to_numpy(), np.diff(offsets)) for name in ("lat", "lng")}
    return as_traces(traces.assign(**{name: traces[name].to_numpy() + by for name, by in moved.items()}))


def by_similarity(mechanism: HMC, traces: Traces) -> pd.DataFrame:
    """Rank the users towards whom ``mechanism`` could alter each trace, the most similar first: HMC's own V.

    One row per trace, one column per rank from 1. The order is that of Equation (4.6): falling area coverage, in case of ties
    the nearer heat map. A trace of an unknown user has no row.
    """
    maps, known = heat_maps(traces, mechanism.grid), mechanism.profiles
    owner = mechanism.owner_rows(maps.users)
    has_owner = np.flatnonzero(owner >= 0)
    coverage, d = heat_map_coverage(maps, known)[has_owner], topsoe(maps, known)[has_owner]
    coverage[np.arange(len(has_owner)), owner[has_owner]] = -1.0  # the owner ranks last
    order = np.lexsort((d, -coverage))[:, :-1]
    return pd.DataFrame(known.users.to_numpy(object)[order], maps.users[has_owner], range(1, len(known.users)))


def altered_towards(mechanism: HMC, traces: Traces, targets: pd.Series) -> Alteration:
    """Run Algorithm 1 with another V: alter each trace that HMC alters towards the known user named in ``targets``.

    The result is that of an HMC that knows only the owner and this user, in the same cells; other traces stay unchanged.
    ``targets`` may name users for further traces. ValueError with ``k`` > 1 or a synthetic target, where there is no single V.
    """
    if mechanism.k != 1 or mechanism.target != "users":
        raise ValueError(
            f'a target can be named for HMC with k=1 and target="users" (got k={mechanism.k}, {mechanism.target!r})'
        )
    maps, known = heat_maps(traces, mechanism.grid), mechanism.profiles
    hmc_result = mechanism.alter(traces)
    owner, users = mechanism.owner_rows(maps.users), hmc_result.users.copy()
    rows, altered_tables = [hmc_result.shares[[i]] for i in range(len(maps.users))], []
    for i in np.flatnonzero(users["outcome"].isin([ALTERATION_OUTCOMES[CONFUSED], ALTERATION_OUTCOMES[REPLACED]])):
        owner_and_target = np.array([owner[i], _target(known, targets, maps.users[i], owner[i])])
        alteration = _towards(mechanism, _subset(maps, [i]), _subset(known, owner_and_target))
        place = np.searchsorted(hmc_result.cells, alteration.cells)[alteration.shares.indices]
        rows[i] = sparse.csr_array((alteration.shares.data, place, alteration.shares.indptr), shape=(1, len(hmc_result.cells)))
        altered_tables.append(alteration.users)
    if altered_tables:
        altered = pd.concat(altered_tables)
        users.loc[altered.index, altered.columns] = altered
    shares = sparse.vstack(rows, format="csr") if rows else hmc_result.shares
    users["nearer"] = users_nearer(topsoe(HeatMaps(maps.users, hmc_result.cells, shares), known), owner)
    with_target = users["target"].dropna()
    target_table = pd.DataFrame({"trace": with_target.index, "target": with_target.to_numpy()})
    return Alteration(users, hmc_result.cells, shares, target_table)


def _towards(mechanism: HMC, trace_map: HeatMaps, profiles: HeatMaps) -> Alteration:
    """Alter one map for an adversary who knows two users, the owner and her target."""
    rule = mechanism.step, mechanism.least_step, mechanism.patience, mechanism.margin, mechanism.unlike
    return alter(trace_map, profiles, np.array([0]), *rule, rounding=mechanism.rounding, rounded_at=mechanism.rounded_at)


def _subset(maps: HeatMaps, rows) -> HeatMaps:
    """Return the maps of some users, in the cells that they have."""
    counts = maps.counts[rows]
    visited = np.unique(counts.indices)
    return HeatMaps(maps.users[rows], maps.cells[visited], counts[:, visited])


def _target(known: HeatMaps, targets: pd.Series, trace: str, owner: int) -> int:
    """Return the row of the user named for a trace."""
    name = targets.get(trace)
    place = known.users.get_indexer([name])[0]
    if place < 0 or place == owner:
        raise ValueError(f"targets must name another known user for each altered trace (got {name} for {trace})")
    return place


ORIGINS = ("recorded", "within a visit", "between visits", "copied")


def origins(original: Traces, published: Traces, grid) -> np.ndarray:
    """Return where each record published by HMC comes from, one of :data:`ORIGINS` (Algorithms 2 and 3).

    * "recorded": a record of the trace, perhaps repeated.
    * "within a visit": a midpoint of two successive records in a cell, with no other cell in between.
    * "between visits": such a midpoint, with other cells in between.
    * "copied": in a cell that the trace never visited.

    The two records are those around the record's time in its cell; of original records with the same time the last counts.
    """
    ranges = row_ranges(original, published)
    columns = [(milliseconds(t), t["lat"].to_numpy(), t["lng"].to_numpy()) for t in (original, published)]
    cells = [np.asarray(grid.cells(lat, lng), np.int64) for _, lat, lng in columns]
    origin = np.zeros(len(published), np.int64)
    for i in range(len(ranges.users)):
        before, after = slice(ranges.start[i], ranges.start[i + 1]), slice(ranges.first[i], ranges.last[i])
        both = zip(columns, cells, (before, after), strict=True)
        origin[after] = _origins(*([c[part] for c in (*time_and_place, cell)] for time_and_place, cell, part in both))
    return np.array(ORIGINS, object)[origin]


def _origins(before: list, after: list) -> np.ndarray:
    """Return the origins of one user's records as numbers; ``before``, ``after``: time, lat, lng and cell of her records."""
    visited, place = np.unique(before[3], return_inverse=True)
    span = max(c[0].max(initial=0) for c in (before, after)) + 1  # ms: cell and time as one number that sorts
    order = np.argsort(place, kind="stable")
    key = place[order] * span + before[0][order]
    cell = np.minimum(np.searchsorted(visited, after[3]), len(visited) - 1)
    # the preceding record in its cell; at the time of the last record: the last but one
    first = np.searchsorted(key, cell * span + after[0], side="right") - 1
    ends = np.searchsorted(place[order], cell, side="right")
    first = np.minimum(first, ends - 2)
    successive = order[np.minimum(first + 1, len(order) - 1)] == order[first] + 1
    keys = [np.column_stack(c[:3]).astype(float).copy().view("V24").ravel() for c in (before, after)]
    return np.where(visited[cell] != after[3], 3, np.where(np.isin(keys[1], keys[0]), 0, np.where(successive, 1, 2)))


def by_average_rank(rankings: list[pd.DataFrame]) -> pd.DataFrame:
    """Combine attacks (§4.7.1): average each known user's rank over the attacks, for each anonymous trace.

    A user without a profile ranks last. Rows and columns are those of the first ranking.
    """
    first = rankings[0]
    ranks = [r.reindex(index=first.index, columns=first.columns).rank(axis=1, na_option="bottom").to_numpy() for r in rankings]
    return pd.DataFrame(np.mean(ranks, axis=0), index=first.index, columns=first.columns)


def by_vote(rankings: list[pd.DataFrame]) -> pd.DataFrame:
    """Combine attacks (§4.7.1): minus the number of attacks that name a user first; the first attack decides ties."""
    first = rankings[0]
    votes = np.zeros(first.shape)
    for ranking in rankings:
        d = ranking.reindex(index=first.index, columns=first.columns).fillna(np.inf).to_numpy()
        has_answer = np.isfinite(d.min(axis=1, initial=np.inf))
        votes[np.flatnonzero(has_answer), d[has_answer].argmin(axis=1)] += 1
    order = first.rank(axis=1, na_option="bottom").to_numpy() / (first.shape[1] + 1)  # below one vote
    return pd.DataFrame(order - votes, index=first.index, columns=first.columns)


def accusations(ranking: pd.DataFrame, person: dict[str, str] | None = None) -> pd.Series:
    """Count how often an attack wrongly names each known user first; ``person`` as in :mod:`mobpriv.attacks.policies`."""
    answers, person_of = answer(ranking).dropna(), person or {}
    wrong = [person_of.get(accused, accused) != person_of.get(trace, trace) for trace, accused in answers.items()]
    return answers[wrong].value_counts().reindex(ranking.columns, fill_value=0).rename("accusations")


def one_to_one(ranking: pd.DataFrame) -> pd.Series:
    """Return the names given by an adversary who assigns each user to at most one trace, with the least sum of dissimilarities.

    A user who cannot be compared is named only if nobody else is left. Some traces have no answer if there are more traces than
    users.
    """
    d = ranking.to_numpy(float)
    worst = np.nanmax(d, initial=0.0)
    rows, columns = linear_sum_assignment(np.where(np.isnan(d), 1 + worst * (1 + len(d)), d))
    answers = pd.Series(None, ranking.index, dtype=object, name="answer")
    answers.iloc[rows] = ranking.columns.to_numpy(object)[columns]
    return answers


def reidentified_among(target_ranking: pd.DataFrame, other_ranking: pd.DataFrame, users) -> pd.Series:
    """Return whether :func:`one_to_one` names each user if her trace ranks as in ``target_ranking`` and all others as in ``other_ranking``.

    A user whose trace was erased in ``target_ranking`` is not re-identified.
    """
    reidentified = {}
    for user in users:
        table = pd.concat([other_ranking.drop(index=user, errors="ignore"), target_ranking.loc[target_ranking.index == user]])
        reidentified[user] = bool(user in target_ranking.index and one_to_one(table)[user] == user)
    return pd.Series(reidentified, dtype=bool, name="found")


def points_of(setting: AttackSetting, dataset: str, points: str, source: str = "") -> pd.DataFrame | None:
    """Return the points of interest around the traces: from a file, perhaps next to the data, or of the synthetic city.

    None if no file is named and the data are real. ``source``: only points whose column ``source`` begins so, because a file
    with several sources may list a place twice.
    """
    if not points:
        return city_points() if setting.data.synthetic else None
    next_to_data = Path(dataset).parent / points
    table = read_points(next_to_data if next_to_data.is_file() else points)
    if not source:
        return table
    if "source" not in table:
        raise ValueError(f"{points}: points_source needs a column source (got {', '.join(map(str, table.columns))})")
    chosen = table[table["source"].astype(str).str.startswith(source)]
    if not len(chosen):
        available = ", ".join(sorted(table["source"].astype(str).unique())[:5])
        raise ValueError(f"{points}: no point has a source that begins with {source!r} (there are: {available})")
    return chosen.reset_index(drop=True)


def place_of(setting: AttackSetting, place: str) -> tuple[float, float]:
    """Return the place whose visits are counted: "lat,lng" in degrees, or the middle of the 100 m square with the most users."""
    if place:
        try:
            lat, lng = map(float, place.split(","))
            if not (abs(lat) <= 90 and abs(lng) <= 180):  # written so that NaN is refused
                raise ValueError(place)
        except ValueError:
            raise ValueError(f'place must be "lat,lng" in degrees, as "37.788,-122.4075" (got {place!r})') from None
        return lat, lng
    grid = SquareGrid(100.0)
    cell = grid.cells(setting.secret["lat"].to_numpy(), setting.secret["lng"].to_numpy())
    users = pd.DataFrame({"user": setting.secret["user"].cat.codes.to_numpy(), "cell": cell}).drop_duplicates()
    south, west, north, east = grid.bounds([users["cell"].value_counts(sort=False).sort_index().idxmax()])[0]
    return float(south + north) / 2, float(west + east) / 2


def utility(
    original: Traces, published: Traces, points: pd.DataFrame | None, place: tuple[float, float], variant: str = "text"
) -> pd.DataFrame:
    """Return the five metrics of §4.7.2 configured as in §4.7.3, one row per user: AC (F-score), SD and STD (m), DSP, NVD.

    DSP is NaN without ``points``. NVD is NaN for users who never visited the place.
    """
    plane = {"text": "ground", "program": "mercator"}[thesis_3.check_variant(variant)]
    users = by_user(original)[0]
    has_points = points is not None and len(published)
    return pd.DataFrame(
        {
            "AC": metrics.area_coverage(original, published, SquareGrid(800.0, plane))["f_score"],
            "SD": metrics.spatial_distortion(original, published, plane),
            "STD": metrics.spatio_temporal_distortion(original, published, plane),
            "DSP": metrics.surrounding_pois(original, published, points, plane=plane)["f_score"] if has_points else np.nan,
            "NVD": metrics.visits_distortion(original, published, *place, plane=plane)["distortion"],
        },
        index=users,
    )


def utility_levels(table: pd.DataFrame, successes: pd.Series) -> pd.Series:
    """Classify the protected users' traces by utility (Table 4.1, Figure 4.11), one repetition; erased: both low."""
    ac, sd = table["AC"] >= HIGH_AC, table["SD"] <= HIGH_SD
    both = np.select([ac & sd, ac, sd], ["AC and SD high", "AC high only", "SD high only"], "both low")
    return pd.Series(np.where(successes == 0, both, "not protected"), index=table.index)
