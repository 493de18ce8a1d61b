"""PRIMULE over all municipalities, and Figures 5 and 6, for as many profiles as in the paper.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §7.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

from mobpriv.base.estimates import Estimate, clustered_difference, clustered_ratio, rate
from mobpriv.base.ranges import whole
from mobpriv.icp.archetypes import CATEGORIES
from mobpriv.icp.profiles import DAYS, Icps, cell_numbers, day_counts, values
from mobpriv.icp.rows import distinct, rows_by_group
from mobpriv.icp.sociometer import PROGRAM
from mobpriv.mechanisms.icp.primule import Primule, mitigate
from mobpriv.metrics.information_loss import mse, one_group, similarity

# ------------------- Run PRIMULE over all municipalities; §7 runs Algorithm 1 on the profiles of each municipality separately
# To save memory, a profile stays its key instead of 24 numbers. Its published values are the mean of its group on h and its own
# values elsewhere.
_TENTHS = 10  # of a share of five days, or of two
MUNICIPALITY_COLUMNS = ["municipality", "profiles", "distinct", "groups", "rounds", "anonymous", "mse", "bound"]


class MunicipalityResult(NamedTuple):
    """The result of Algorithm 1 for one municipality."""

    group: np.ndarray  # (profiles,), int32: the number of each profile's group
    totals: np.ndarray  # (groups, |h|), int64: sums of the groups' rows, in tenths
    members: np.ndarray  # (groups,), int64
    distinct: int  # number of profiles that differ on h
    rounds: int
    anonymous: bool
    mse: float  # §6.4, on h
    bound: float  # of a single group


class AllMunicipalities(NamedTuple):
    group: np.ndarray  # (profiles,), int32: the group of each row, numbered through all municipalities
    totals: np.ndarray  # (groups, |h|), int64, in tenths
    members: np.ndarray  # (groups,), int64
    municipalities: pd.DataFrame  # MUNICIPALITY_COLUMNS, one row per municipality, sorted by name
    h: np.ndarray  # places of cells

    @property
    def means(self) -> np.ndarray:
        """The groups' means, (groups, |h|), shares of days."""
        return self.totals / self.members[:, None] / _TENTHS


def over_municipalities(
    profiles: Icps,
    k: int,
    h: int | Sequence[int] | None = None,
    distance: str | Callable = "euclidean",
    unsafe: str = "below k",
    workers: int = 1,  # threads, one municipality each; compiled code releases the lock
) -> AllMunicipalities:
    """Run PRIMULE in each municipality, the largest first; the result depends neither on ``workers`` nor on the order of rows.

    Municipalities with fewer than k profiles stay unchanged, ``anonymous`` False.
    """
    whole("workers", workers, 1)
    mechanism = Primule(k, h, distance, unsafe)
    town, names = _towns(profiles)
    places = cell_numbers(mechanism.h)
    keys = profiles["key"].to_numpy()
    rows = rows_by_group(town, len(keys))

    largest_first = sorted(range(len(names)), key=lambda i: -len(rows[i]))
    results = [None] * len(names)
    with tqdm(total=len(keys), desc=f"k = {k}", unit="profile", disable=None) as bar:
        for i, result in zip(
            largest_first, _in_order(lambda i: _of_municipality(keys[rows[i]], mechanism), largest_first, workers), strict=True
        ):
            results[i] = result
            bar.update(len(rows[i]))
    return _combined(results, rows, keys, names, places)


def _in_order(function: Callable, arguments: list, workers: int) -> Iterator:
    if workers == 1:
        yield from map(function, arguments)
        return
    with ThreadPoolExecutor(workers) as threads:
        try:
            yield from threads.map(function, arguments)
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)  # drop the municipalities that have not started
            raise


def _of_municipality(keys: np.ndarray, mechanism: Primule) -> MunicipalityResult:
    """Run Algorithm 1 on the profiles of one municipality; equal profiles are processed once."""
    h = cell_numbers(mechanism.h)
    distinct_keys, inverse, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    x = (day_counts(distinct_keys).astype(np.int64) * (_TENTHS // DAYS))[:, h]
    on_h = distinct(x, sizes)
    group, totals, members = on_h.inverse, on_h.values * on_h.sizes[:, None], on_h.sizes
    rounds, anonymous = 0, len(keys) >= mechanism.k
    if anonymous:
        merged = mitigate(on_h.values, on_h.sizes, _TENTHS, mechanism.k, mechanism.distance, mechanism.unsafe)
        group, totals, members = merged.group[on_h.inverse], merged.totals, merged.members
        rounds = len(merged.rounds) - 1
    x, protected = x / _TENTHS, totals[group] / members[group, None] / _TENTHS
    loss = mse(x, protected, sizes), one_group(x, sizes)
    return MunicipalityResult(group[inverse].astype(np.int32), totals, members, len(on_h.sizes), rounds, anonymous, *loss)


def published_values(profiles: Icps, result: AllMunicipalities, rows=slice(None)) -> np.ndarray:
    """Return the published values of these rows, (rows, 24): the groups' means on h, their own values elsewhere."""
    protected = values(profiles["key"].to_numpy()[rows])
    group = result.group[rows]
    means = result.totals[group] / result.members[group, None] / _TENTHS
    protected[:, result.h] = means
    return protected


def _towns(profiles) -> tuple[np.ndarray, pd.Index]:
    """Return for each row the number of its municipality among those with profiles, sorted by name."""
    if not isinstance(profiles, pd.DataFrame) or {"municipality", "key"} - set(profiles.columns):
        got = list(profiles.columns) if isinstance(profiles, pd.DataFrame) else type(profiles).__name__
        raise ValueError(f"profiles must be a table with the columns user, municipality, key, as icps makes it (got {got})")
    if not len(profiles):
        raise ValueError("profiles must hold one row or more (got none)")
    town = profiles["municipality"].astype("category").cat.remove_unused_categories().cat
    if (town.codes < 0).any():
        row = int((town.codes < 0).to_numpy().argmax())
        raise ValueError(f"every profile must have a municipality (the one in row {row} has none)")
    sort = np.argsort(town.categories)
    rank = np.empty(len(sort), np.int64)
    rank[sort] = np.arange(len(sort))
    return rank[town.codes], town.categories[sort]


def _combined(results: list[MunicipalityResult], rows: list[np.ndarray], keys, names, h) -> AllMunicipalities:
    group = np.empty(len(keys), np.int32)
    lines, start = [], 0
    for name, town_rows, result in zip(names, rows, results, strict=True):
        group[town_rows] = result.group + start
        start += len(result.members)
        counts = len(town_rows), result.distinct, len(result.members), result.rounds
        lines.append((name, *counts, result.anonymous, result.mse, result.bound))
    totals, members = (np.concatenate([getattr(result, part) for result in results]) for part in ("totals", "members"))
    return AllMunicipalities(group, totals, members, pd.DataFrame(lines, columns=MUNICIPALITY_COLUMNS), h)


# ---------------------------------------------------- Compute what Figures 5 and 6 show, for as many profiles as in the paper
_ALMOST = 0.95  # a similarity above it: "almost identical" (§7.1)
_ROWS = 1 << 18  # profiles whose values are in memory together


def scale_results(profiles: Icps, over: Mapping[int, AllMunicipalities], rng: np.random.Generator) -> dict[str, Estimate | int]:
    """Compute the results of Figures 5 and 6; ``over``: k -> the result of PRIMULE on all cells.

    * ``above.{k}``: the share of profiles that is almost identical after protection.
    * ``gain``: the difference of this share between the least and the largest k.
    * ``safe.{k}``: groups of k or more equal profiles before merging; ``safe_alone.{k}``: those never merged with others.
    * ``label.original.{class}``, ``label.{k}.{class}``: labels of the authors' program, of the original and of the re-clustered
      published profiles.
    * ``kept.{k}.{class}``: share of the labels that stay the same.

    Labels are of one k-means seed each. Intervals of published values are over groups. Memory: twice the values of the distinct
    profiles.
    """
    keys, where = profiles["key"].to_numpy(), ["municipality", "key"]
    equal = profiles.groupby(where, observed=True)["key"].transform("size").to_numpy()
    first = ~profiles.duplicated(where).to_numpy()
    # equal profiles are labelled once
    distinct_keys, inverse, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    shares = values(distinct_keys)
    original_labels = PROGRAM.fit(shares, sizes, rng).codes(shares)[inverse]
    results = {f"label.original.{c}": rate(original_labels == i) for i, c in enumerate(CATEGORIES)}
    almost = {}
    for k, result in over.items():
        almost[k] = _almost(profiles, result)
        labels = PROGRAM.fit(result.means, result.members, rng).codes(result.means)[result.group]
        safe = first & (equal >= k)
        results |= {
            f"above.{k}": clustered_ratio(almost[k], 1, result.group, bounds=(0, 1)),
            f"safe.{k}": int(safe.sum()),
            f"safe_alone.{k}": int((safe & (result.members[result.group] == equal)).sum()),
        }
        for i, c in enumerate(CATEGORIES):
            results[f"label.{k}.{c}"] = clustered_ratio(labels == i, 1, result.group, bounds=(0, 1))
            if (here := original_labels == i).any():
                results[f"kept.{k}.{c}"] = clustered_ratio((labels == i)[here], 1, result.group[here], bounds=(0, 1))
    least, largest = min(over), max(over)
    return results | {"gain": clustered_difference(almost[least], almost[largest], over[largest].group)}


def _almost(profiles: Icps, result: AllMunicipalities) -> np.ndarray:
    """Return for each profile whether its published version is almost identical."""
    keys = profiles["key"].to_numpy()
    parts = (slice(start, start + _ROWS) for start in range(0, len(keys), _ROWS))
    return np.concatenate(
        [similarity(values(keys[rows]), published_values(profiles, result, rows)) > _ALMOST for rows in parts]
    )
