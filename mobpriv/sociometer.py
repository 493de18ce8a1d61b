"""The Sociometer: which individual call profiles are those of residents, commuters or visitors. Pratesi, Gabrielli, Cintia, Monreale and
Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §3.2 and Figure 2; after Furletti, Gabrielli, Renso and Rinzivillo,
*Identifying users profiles from mobile calls habits* (2012) and *Analysis of GSM calls data for understanding user mobility behavior*
(2013), and Furletti, Trasarti, Cintia and Gabrielli, *Discovering and understanding city events with big data: the case of Rome* (2017).

Phase 1, the profiles, is the caller's: arrays (n, 6 · weeks) of shares of days in [0, 1], as :mod:`mobpriv.archetypes` orders their cells.
Phase 2 groups similar profiles by k-means; the centroids are the prototypes. Phase 3 gives each the label of the nearest archetype. Phase
4 propagates: a profile has the label of the prototype nearest to it.
"""

import warnings
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numba
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from mobpriv.archetypes import PASSING, PER_WEEK, Archetypes, archetypes, categories_of
from mobpriv.ranges import one_of, whole
from mobpriv.sharing import once

STARTS = ("random", "k-means++")
DISTANCES = ("euclidean", "manhattan", "cosine")
PASSING_BY = ("archetype", "rule")
TIE = 1e-9  # distances in [0, 24] that differ by less are equal but for rounding
RULE = 0.5  # of the program: who has one cell alone, and less than this in it, is passing by
_KEYS = 2**62


class Distinct(NamedTuple):
    """Profiles that are all different, in lexicographic order: equal ones are one with a size."""

    values: np.ndarray  # (d, cells)
    sizes: np.ndarray  # (d,): how many profiles are so
    of: np.ndarray  # (n,): the row that each profile has become


@dataclass(frozen=True, eq=False)
class Fitted:
    """A Sociometer with its prototypes; frozen, it labels other profiles with them: those of the original data, say, private ones."""

    prototypes: np.ndarray  # (p, cells), in lexicographic order
    category: np.ndarray  # (p,): the label of each, its place in CATEGORIES
    sizes: np.ndarray  # (p,): of how many of the profiles that it was fitted on each is the nearest
    rule: bool = False  # the program's rule for who passes by
    own: np.ndarray | None = field(
        default=None, repr=False
    )  # (n,): of each row that it was fitted on the place of the nearest prototype

    def nearest(self, values) -> np.ndarray:
        """Phase 4, the place of the prototype nearest to each profile (n,); of equally near ones the first."""
        return _nearest(
            np.ascontiguousarray(as_profiles(values, self.prototypes.shape[1])), np.ascontiguousarray(self.prototypes.T)
        )

    def codes(self, values) -> np.ndarray:
        """Phase 4, the labels as places in CATEGORIES (n,)."""
        found = self.category[self.nearest(values)]
        return np.where(passes_by(values), np.int8(PASSING), found) if self.rule else found

    def label(self, values) -> pd.Categorical:
        """Phase 4, the label of each profile."""
        return categories_of(self.codes(values))


@dataclass(frozen=True, eq=False)
class Sociometer:
    """Phases 2 and 3. ``fit`` on any profiles: on private ones again, as the paper does, or once on the original ones, and frozen.

    Departures from the paper, which says neither how profiles are grouped nor how many groups there are: k-means, 100 prototypes, the best of 5
    starts at random profiles with 20 rounds each are what its authors' program has (the ASAP project's telecom-analytics, 2017; 10
    starts, and 10 rounds of one, in other versions of it); so is the Euclidean distance to the archetypes. ``start="k-means++"`` with more
    ``iterations`` settles k-means better. ``distance="cosine"`` compares shapes only: how often somebody calls is no matter then, and a day in
    a slot is no nearer to who passes by than to who visits; of archetypes equally near the first in the order of the classes counts.

    ``passing="rule"``: who has calls in one cell alone, and on less than half of its days, passes by, whatever the prototypes say. That is the
    program's; the paper has five labels for the prototypes, hence ``"archetype"``.

    Equal profiles are one with a weight: the sums are those over all profiles, and the result depends on neither their order nor on threads.
    Of no more distinct profiles than prototypes each is a prototype.
    """

    prototypes: int = 100
    restarts: int = 5
    iterations: int = 20
    start: Literal["random", "k-means++"] = "random"
    archetypes: Archetypes = field(default_factory=archetypes)
    distance: Literal["euclidean", "manhattan", "cosine"] = "euclidean"  # of a prototype to the archetypes
    passing: Literal["archetype", "rule"] = "archetype"

    def __post_init__(self):
        for name in ("prototypes", "restarts", "iterations"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1))
        one_of("start", self.start, STARTS)
        one_of("distance", self.distance, DISTANCES)
        one_of("passing", self.passing, PASSING_BY)
        if not isinstance(self.archetypes, Archetypes) or not len(self.archetypes.values):
            raise ValueError(f"archetypes must be what archetypes(…) returns (got {type(self.archetypes).__name__})")

    def fit(self, values, sizes, rng: np.random.Generator) -> Fitted:
        """The prototypes of profiles (n, cells) that stand for ``sizes`` profiles each (None: for one), and their labels."""
        found = distinct(as_profiles(values, self.archetypes.values.shape[1]), sizes)
        centres = self._prototypes(found, int(rng.integers(2**31 - 1)))
        nearest = _nearest(found.values, np.ascontiguousarray(centres.T))
        members = np.bincount(nearest, found.sizes, len(centres)).astype(np.int64)
        return Fitted(centres, self.labels(centres), members, self.passing == "rule", nearest[found.of])

    def labels(self, prototypes: np.ndarray) -> np.ndarray:
        """Phase 3: the category of the archetype nearest to each prototype, its place in CATEGORIES."""
        return self.archetypes.category[nearest_archetype(prototypes, self.archetypes.values, self.distance)]

    def _prototypes(self, found: Distinct, seed: int) -> np.ndarray:
        """Phase 2."""
        if len(found.values) <= self.prototypes:
            return found.values
        start = {"init": self.start, "n_init": self.restarts, "max_iter": self.iterations, "random_state": seed}
        return once(_centres)(found.values, found.sizes.astype(float), self.prototypes, start)


PROGRAM = Sociometer(archetypes=archetypes("program"), passing="rule")
"""The authors' program: its archetypes and its rule for who passes by."""


def labelled(sociometer: Sociometer, values, rng: np.random.Generator, where=None) -> np.ndarray:
    """Phases 2 to 4 on the same profiles: their labels as places in CATEGORIES (n,).

    ``where`` (n,): the municipality of each, and prototypes are found in each municipality for itself. The paper does not say. By
    default they are found in all together, as in the program: a small municipality has fewer profiles than there are prototypes.
    """
    values = as_profiles(values, sociometer.archetypes.values.shape[1])
    if where is None:
        return sociometer.fit(values, None, rng).codes(values)
    group, names = pd.factorize(pd.Series(where), sort=True)
    if len(group) != len(values) or (group < 0).any():
        raise ValueError(
            f"where must name the municipality of each of the {len(values)} profiles (got {len(group)}, {(group < 0).sum()} missing)"
        )
    found = np.empty(len(values), np.int8)
    order = np.argsort(group, kind="stable")
    for rows, child in zip(np.split(order, np.cumsum(np.bincount(group))[:-1]), rng.spawn(len(names)), strict=True):
        found[rows] = sociometer.fit(values[rows], None, child).codes(values[rows])
    return found


def unclustered(sociometer: Sociometer, values) -> np.ndarray:
    """The labels (n,) without phases 2 and 4, each profile that of its own nearest archetype: what the grouping changes, beyond the paper."""
    values = as_profiles(values, sociometer.archetypes.values.shape[1])
    each = distinct(values)
    found = sociometer.labels(each.values)[each.of]
    return np.where(passes_by(values), np.int8(PASSING), found) if sociometer.passing == "rule" else found


def passes_by(values) -> np.ndarray:
    """The program's rule: calls in one cell alone, on less than half of its days."""
    values = as_profiles(values)
    return ((values != 0).sum(axis=1) == 1) & (values.sum(axis=1) < RULE)


def nearest_archetype(prototypes: np.ndarray, archetypes: np.ndarray, distance: str = "euclidean") -> np.ndarray:
    """The row of the archetype nearest to each prototype; of equally near ones the first. A profile without a call has the cosine 0 with any."""
    one_of("distance", distance, DISTANCES)
    if distance == "cosine":
        prototypes, archetypes = _directions(prototypes), _directions(archetypes)
        apart = 1 - prototypes @ archetypes.T
    else:
        power = 1 if distance == "manhattan" else 2
        apart = np.stack([(np.abs(prototypes - a) ** power).sum(axis=1) for a in archetypes], axis=1) ** (1 / power)
    return (apart <= apart.min(axis=1, keepdims=True) + TIE).argmax(axis=1)


def _directions(x: np.ndarray) -> np.ndarray:
    length = np.sqrt((x**2).sum(axis=1, keepdims=True))
    return x / np.where(length > 0, length, 1)


def as_profiles(values, cells: int | None = None) -> np.ndarray:
    """Profiles as an array (n, cells) of shares of days, checked."""
    try:
        array = np.asarray(values, float)
    except (TypeError, ValueError):
        raise ValueError(f"profiles must be an array of numbers (got {type(values).__name__})") from None
    if array.ndim != 2 or not array.shape[1] or array.shape[1] % PER_WEEK or not len(array):
        raise ValueError(f"profiles must have the shape (n, 6 · weeks), n at least 1 (got {array.shape})")
    if cells is not None and array.shape[1] != cells:
        raise ValueError(
            f"profiles must have the {cells} cells of the archetypes or of the prototypes (got {array.shape[1]}): archetypes(weeks=…) has those of fewer weeks"
        )
    wrong = ~((array >= -TIE) & (array <= 1 + TIE))  # NaN too
    if wrong.any():
        row, cell = (int(i[0]) for i in wrong.nonzero())
        raise ValueError(
            f"values of a profile are shares of days, in [0, 1] ({int(wrong.any(axis=1).sum())} profiles have others, first: {array[row, cell]} in "
            f"row {row}, cell {cell}): divide counts by days, clamp noise"
        )
    return array


def distinct(values: np.ndarray, sizes=None) -> Distinct:
    """Equal profiles as one; ``sizes`` (n,): how many profiles each row stands for."""
    n = len(values)
    weight = np.ones(n, np.int64) if sizes is None else np.asarray(sizes)
    if weight.shape != (n,) or not (
        np.issubdtype(weight.dtype, np.number) and (weight >= 1).all() and (weight == np.floor(weight)).all()
    ):
        raise ValueError(f"sizes must be a whole number, at least 1, for each of the {n} profiles (got {sizes!r:.60})")
    key, number = np.zeros(n, np.int64), 1
    for column in values.T:  # a number in the order of the rows' digits, made dense again where it would outgrow 62 bits
        digit, digits = pd.factorize(column, sort=True)
        if number * len(digits) > _KEYS:
            dense, key = np.unique(key, return_inverse=True)
            number = len(dense)
            if number == n:  # all are different already, and in their order: noise is so after a few cells
                break
        key, number = key * len(digits) + digit, number * len(digits)
    _, first, of = np.unique(key, return_index=True, return_inverse=True)
    return Distinct(np.ascontiguousarray(values[first]), np.bincount(of, weight).astype(np.int64), of)


def _centres(values: np.ndarray, sizes: np.ndarray, prototypes: int, start: dict) -> np.ndarray:
    """The centres of k-means, no two of them equal."""
    from sklearn.cluster import KMeans  # a second of imports that who only labels need not pay
    from sklearn.exceptions import ConvergenceWarning

    means = KMeans(prototypes, **start)
    # threads would add in whatever order they end, and a last digit may move a profile from one prototype to another
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of two equal centres one is left out here
        means.fit(values, sample_weight=sizes)
    return np.unique(means.cluster_centers_, axis=0)


@numba.njit(cache=True, parallel=True)
def _nearest(values, columns):
    """The column nearest to each row; ``columns``: (cells, p). Row for row the sums of the definition, so that no row depends on others."""
    cells, p = columns.shape
    found = np.empty(len(values), np.int64)
    for i in numba.prange(len(values)):
        apart = np.zeros(p)
        for j in range(cells):
            value = values[i, j]
            for k in range(p):
                apart[k] += (value - columns[j, k]) ** 2
        found[i] = apart.argmin()
    return found
