"""Is a mechanism ε-geo-indistinguishable? A lower bound of its ε from what it publishes.

Source of the definition: Andrés, Bordenabe, Chatzikokolakis, Palamidessi, CCS 2013, §3: for any two places x and x' and any set E
of published positions,

    P(z ∈ E | x) ≤ exp(ε d(x, x')) · P(z ∈ E | x').

A set for which this fails refutes the claim. No sample can prove it: the worst places and the worst set may be others.

The audit chooses the two places and E by small samples. Fresh samples estimate both probabilities by the bounds of Clopper and
Pearson (1934).
"""

from collections.abc import Callable
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from mobpriv.base.ranges import between, whole
from mobpriv.ground.geo import distance, move
from mobpriv.traces.table import Traces, from_blocks

_LATITUDES, _LNG = (0.0, 60.0), 5.0
_DISTANCES = (1.0, 3.0)  # between the two places, in units of 1/ε
# classes of published positions: distance from x in units of 1/ε; by how much x' is farther, as a share of d(x, x')
_NEAR = np.array([0.03, 0.1, 0.3, 1, 3, 10])
_FARTHER = np.r_[np.linspace(-0.8, 0.8, 9), 0.95]
_CHOOSING = 4_000  # records for each place, to choose with
_CALLS = 5  # tables for each sample
_DEPENDENT = 1e-9  # p-value from which the users of a table share their noise


class EpsilonBound(NamedTuple):
    """The lower bound, and the two places that were compared."""

    epsilon: float  # 1/m; 0 if they show no difference
    latitude: float
    direction: str  # "east", "north"
    distance: float  # m
    records: int  # published for each place


def epsilon_bound(
    mechanism, epsilon: float, rng: np.random.Generator, records: int = 20_000, level: float = 0.01
) -> EpsilonBound:
    """A lower bound, in 1/m, of the ε for which the mechanism is ε-geo-indistinguishable for a record.

    If the mechanism is ``epsilon``-geo-indistinguishable, the bound exceeds ``epsilon`` with a probability of at most ``level``.
    Each user has one record, so that users must get independent noise: ValueError if they share it. Places are 1/ε and 3/ε
    apart, eastwards and northwards, at two latitudes, and are compared in both directions.

    >>> from mobpriv.mechanisms import GeoI
    >>> bound = epsilon_bound(GeoI(0.01), 0.01, np.random.default_rng(1), records=2000)
    >>> 0.005 < bound.epsilon <= 0.01
    True
    """
    between("epsilon", epsilon, 1e-5, 1e3, "can be tested from 0.00001 to 1000 per metre")
    whole("records", records, 100)
    candidates = []
    for lat in _LATITUDES:
        here = _published(mechanism, (lat, _LNG), _CHOOSING, rng)
        for direction, scale in product(("east", "north"), _DISTANCES):
            sides = np.array([direction == "east", direction == "north"])[:, None] * scale / epsilon
            place = tuple(float(column[0]) for column in move([lat], [_LNG], *sides))
            there = _published(mechanism, place, _CHOOSING, rng)
            metres = float(distance(lat, _LNG, *place))
            for (x, z), (other, its_z) in permutations((((lat, _LNG), here), (place, there))):
                for chosen in _sets(z[::2], its_z[::2], x, other, epsilon, metres):
                    bound = _log_ratio(chosen(z[1::2]), chosen(its_z[1::2]), level) / metres
                    candidates.append((bound, x, other, chosen, (lat, direction, metres)))
    _, x, other, chosen, (lat, direction, metres) = max(candidates, key=lambda candidate: candidate[0])
    ratio = _log_ratio(*(chosen(_published(mechanism, place, records, rng)) for place in (x, other)), level)
    return EpsilonBound(max(ratio, 0.0) / metres, lat, direction, metres, records)


def _published(mechanism, place: tuple[float, float], records: int, rng: np.random.Generator) -> np.ndarray:
    """Where records at one place are published, (records, 2); NaN if they are not."""
    n = -(-records // _CALLS)
    users, (lat, lng) = pd.Index([f"u{i:06}" for i in range(n)]), place
    table = lambda: from_blocks(users, np.ones(n, int), np.full(n, 1_400_000_000_000), np.full(n, lat), np.full(n, lng))  # noqa: E731
    tables = [_first_positions(mechanism.protect(table(), rng), users) for _ in range(_CALLS)]
    for values in ([z[:, 0] for z in tables], [distance(lat, lng, *z.T) for z in tables]):
        values = [group[np.isfinite(group)] for group in values]
        if min(map(len, values)) and np.ptp(np.concatenate(values)) and stats.kruskal(*values).pvalue < _DEPENDENT:
            raise ValueError(
                "users must get independent noise (got noise that the users of a table share): draw it for each record"
            )
    return np.concatenate(tables)[:records]


def _first_positions(published: Traces, users: pd.Index) -> np.ndarray:
    first = published.drop_duplicates("user")
    positions, user = np.full((len(users), 2), np.nan), first["user"].cat
    positions[users.get_indexer(user.categories)[user.codes]] = first[["lat", "lng"]]
    return positions


def _sets(z, its_z, x, other, epsilon: float, metres: float) -> tuple[Callable, ...]:
    """Three sets E, each a function that gives the mask of published positions in E: x publishes there, x' hardly does.

    The first is a union of classes. The second is what lies beyond all that was published of x': noise may be cut off. The
    third has the positions that were published of x, and not of x', to the last digit: rounded noise may keep the digits of x.
    """

    def classes(z):
        near, far = (distance(*place, *z.T) for place in (x, other))
        farther = np.searchsorted(_FARTHER, (far - near) / metres)
        cell = np.searchsorted(_NEAR, epsilon * near) * (len(_FARTHER) + 1) + farther
        return np.where(np.isnan(z[:, 0]), n_classes - 1, cell)  # the last class: not published

    n_classes = (len(_NEAR) + 1) * (len(_FARTHER) + 1) + 1
    a, b = (np.bincount(classes(sample), minlength=n_classes) for sample in (z, its_z))
    order = np.argsort(-(a + 0.5) / (b + 0.5), kind="stable")
    best = order[: 1 + _lower_bound(np.cumsum(a[order]), np.cumsum(b[order]), len(z), 0.01).argmax()]
    reach = np.nanmax(distance(*other, *its_z.T), initial=0.0)
    seen = _positions(z).difference(_positions(its_z))
    return (
        lambda z: np.isin(classes(z), best),
        lambda z: distance(*other, *z.T) > reach,
        lambda z: _positions(z).isin(seen),
    )


def _positions(z: np.ndarray) -> pd.MultiIndex:
    return pd.MultiIndex.from_arrays(z.T)


def _log_ratio(inside: np.ndarray, others_inside: np.ndarray, level: float) -> float:
    return float(_lower_bound(inside.sum(), others_inside.sum(), len(inside), level))


def _lower_bound(a, b, n: int, level: float) -> np.ndarray:
    """The lower bound of ln of the ratio of two shares of n, a / b; −∞ if a is 0."""
    low = np.where(np.equal(a, 0), 0.0, stats.beta.ppf(level / 2, np.maximum(a, 1), n - a + 1))
    high = np.where(np.equal(b, n), 1.0, stats.beta.ppf(1 - level / 2, b + 1, np.maximum(n - b, 1)))
    with np.errstate(divide="ignore"):
        return np.log(low) - np.log(high)
