"""PRIMULE, its search for the nearest group, and MDAV, beside plain versions (peers): ``python benchmarks/bench_primule.py
[PEOPLE]`` prints a table; a record is a profile.

With PEOPLE it measures PRIMULE alone, over the 139 municipalities of a region of so many people at about one call a day: three
million of them are the 85 million records of §7, about 8 million profiles, the largest municipality with 760 000. Limits there, on
two quiet cores: k = 10 within 150 s and 1.5 GB, k = 100 within 200 s.
"""

import sys
from functools import partial

import numpy as np
import pandas as pd
from measure import Case, table
from sklearn.neighbors import BallTree, KDTree

from mobpriv.datasets.region import FIRST_MIDNIGHT, ZONE, ground_of, people_blocks
from mobpriv.experiments.primule_scale import over_municipalities
from mobpriv.icp.profiles import Window, day_counts, keys_of_masks
from mobpriv.icp.rows import distinct
from mobpriv.mechanisms.icp import nearest
from mobpriv.mechanisms.icp.mdav import microaggregate
from mobpriv.mechanisms.icp.primule import mitigate
from mobpriv.metrics.information_loss import mse

TENTHS = np.tile(np.repeat([2, 5], 3), 4)


def icps_of(people: int, _: int) -> pd.DataFrame:
    """The profiles of so many people of the region, block by block: their calls are never held at once."""
    ground = ground_of(139, 1500)
    town_of, names = pd.factorize(ground.cells["municipality"], sort=True)
    window = Window(FIRST_MIDNIGHT.date(), ZONE)
    parts = []
    for block in people_blocks(ground, people, 0.25, workers=2):
        slot = window.slot_of(block.t * 1000)
        inside = (slot >= 0) & (slot < 84)
        at = block.person[inside].astype(np.int64) * len(names) + town_of[block.cell[inside]]
        order = np.argsort(at, kind="stable")
        who, first = np.unique(at[order], return_index=True)
        masks = [np.bitwise_or.reduceat(bits[order], first) for bits in (of[slot[inside]] for of in window.bits())]
        parts.append((who, keys_of_masks(*masks)))
    who, key = (np.concatenate(part) for part in zip(*parts, strict=True))
    found = pd.DataFrame({"user": who // len(names), "municipality": who % len(names), "key": key})
    found["municipality"] = pd.Categorical.from_codes(found["municipality"], names)
    return found.sort_values(["municipality", "user"], ignore_index=True)


def some(profiles: pd.DataFrame) -> pd.DataFrame:
    return profiles.iloc[:300]


def largest(profiles: pd.DataFrame):
    """The distinct profiles of the largest municipality, in tenths, with their numbers."""
    own = profiles["municipality"] == profiles["municipality"].value_counts().index[0]
    return distinct(day_counts(profiles["key"].to_numpy()[own]).astype(np.int64) * TENTHS)


def search(different) -> np.ndarray:
    """The first round: of every distinct profile the nearest other one, ties and all."""
    x, many = different.values.astype(float), np.arange(len(different.values))
    places = nearest.places(0, x, nearest.axes(0, x))
    far, found = np.full(len(x), nearest.FAR), np.full(len(x), nearest.NOBODY)
    t = nearest.tree(places, many)
    totals = different.values * different.sizes[:, None]
    nearest.search(t.ids, places[t.ids], 0, 10, 10**7, *t, totals, different.sizes, x, far, found)
    return np.sqrt(far)


def by_sklearn(kind, different) -> np.ndarray:
    """The same without the ties: the distance of the second nearest, the first being the profile itself."""
    x = different.values.astype(float)
    return kind(x, leaf_size=40).query(x, k=2)[0][:, 1]


def by_products(different) -> np.ndarray:
    """The same by matrix products, a thousand rows at a time."""
    x = different.values.astype(np.float32)
    square = (x**2).sum(axis=1)
    found = np.empty(len(x), np.float32)
    for start in range(0, len(x), 1000):
        rows = slice(start, start + 1000)
        d = square[rows, None] + square - 2 * x[rows] @ x.T
        d[np.arange(len(d)), start + np.arange(len(d))] = np.inf
        found[rows] = d.min(axis=1)
    return np.sqrt(found)


def plain(k: int, different) -> np.ndarray:
    """Algorithm 2 in rounds of scikit-learn's tree and a loop over pairs, ties as they fall."""
    means, sizes = different.values.astype(float), different.sizes.copy()
    while (sizes < k).any():
        unsafe = np.flatnonzero(sizes < k)
        d, which = KDTree(means, leaf_size=40).query(means[unsafe], k=2)
        itself = which[:, 0] == unsafe
        far, other = np.where(itself, d[:, 1], d[:, 0]), np.where(itself, which[:, 1], which[:, 0])
        touched = np.zeros(len(sizes), bool)
        for pair in np.argsort(far, kind="stable"):
            a, b = unsafe[pair], other[pair]
            if not touched[a] and not touched[b]:
                touched[a] = touched[b] = True
                means[b] = (means[a] * sizes[a] + means[b] * sizes[b]) / (sizes[a] + sizes[b])
                sizes[b] += sizes[a]
                sizes[a] = 0
        means, sizes = means[sizes > 0], sizes[sizes > 0]
    return sizes


def primule(k: int, different):
    return mitigate(different.values, different.sizes, 10, k)


def on_largest(function, profiles, rng):
    return function(largest(profiles))


def over_all(k: int, workers: int, profiles, rng):
    return over_municipalities(profiles, k, workers=workers).municipalities


def losses(k: int, different) -> tuple[float, float]:
    """The mean squared errors of PRIMULE and of MDAV on the same profiles."""
    one, other = primule(k, different), microaggregate(different.values, different.sizes, k)
    ours = one.totals / one.members[:, None]
    theirs = other.totals / other.members[:, None]
    x = different.values
    return mse(x, ours[one.group], different.sizes) / 100, mse(x[other.profile], theirs[other.group], other.rows) / 100


def losses_of_all(k: int, profiles: pd.DataFrame) -> np.ndarray:
    """The same over all municipalities with k profiles or more, each profile counted once."""
    of = [own for _, own in profiles.groupby("municipality", observed=True) if len(own) >= k]
    each = [losses(k, distinct(day_counts(own["key"].to_numpy()).astype(np.int64) * TENTHS)) for own in of]
    return np.average(each, axis=0, weights=[len(own) for own in of])


def _largest(task: str, version: str, function, people: int) -> Case:
    return Case(task, version, partial(on_largest, function), people, 28, 1, icps_of, some)


def _searches(people: int) -> list[Case]:
    task = f"nearest groups, first round, largest municipality of {people:,} people"
    return [
        _largest(task, "mobpriv tree, with ties", search, people),
        _largest(task, "peer: scikit-learn k-d tree", partial(by_sklearn, KDTree), people),
        _largest(task, "peer: scikit-learn ball tree", partial(by_sklearn, BallTree), people),
        _largest(task, "peer: blocked matrix products", by_products, people),
    ]


def _whole(k: int, people: int, workers: int) -> Case:
    return Case(
        f"PRIMULE, k = {k}, 139 municipalities",
        f"mobpriv, {workers} at work",
        partial(over_all, k, workers),
        people,
        28,
        1,
        icps_of,
        some,
    )


MANY = int(sys.argv[1]) if len(sys.argv) == 2 and sys.argv[1].isdigit() else None
CASES = [
    *_searches(10_000),
    *_searches(30_000),
    _largest("Algorithm 2, k = 10, largest municipality", "mobpriv mitigate", partial(primule, 10), 30_000),
    _largest("Algorithm 2, k = 10, largest municipality", "peer: scikit-learn and a loop", partial(plain, 10), 30_000),
    _largest("Algorithm 2, k = 100, largest municipality", "mobpriv mitigate", partial(primule, 100), 30_000),
    _largest(
        "MDAV, k = 10, largest municipality", "mobpriv microaggregate", lambda d: microaggregate(d.values, d.sizes, 10), 30_000
    ),
    _largest(
        "MDAV, k = 100, largest municipality",
        "mobpriv microaggregate",
        lambda d: microaggregate(d.values, d.sizes, 100),
        30_000,
    ),
    _whole(10, 30_000, 1),
    _whole(10, 30_000, 2),
    _whole(100, 30_000, 2),
]
if MANY:
    CASES = [_whole(10, MANY, 2), _whole(100, MANY, 2)]

if __name__ == "__main__":
    print(table(__file__))
    if MANY:
        sys.exit()
    profiles = icps_of(100_000, 0)
    for k in (10, 100):  # to be at most 1.15 and 1.25 times as much
        for where, found in (
            ("largest municipality", losses(k, largest(profiles))),
            ("139 municipalities", losses_of_all(k, profiles)),
        ):
            ours, theirs = found
            print(
                f"{where}, k = {k}: mean squared error {ours:.4f}, of MDAV {theirs:.4f}, {ours / theirs:.3f} times as much",
                flush=True,
            )
