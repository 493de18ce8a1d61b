"""The Sociometer: labels individual call profiles as those of residents, commuters or visitors.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §3.2 and
Figure 2. Earlier papers on the Sociometer:

* Furletti, Gabrielli, Renso and Rinzivillo, *Identifying users profiles from mobile calls habits* (2012) and *Analysis of GSM
  calls data for understanding user mobility behavior* (2013);
* Furletti, Trasarti, Cintia and Gabrielli, *Discovering and understanding city events with big data: the case of Rome* (2017).

Its four phases:

1. The caller provides the profiles: arrays (n, 6 · weeks) of shares of days in [0, 1], with cells as in
   :mod:`mobpriv.icp.archetypes`.
2. k-means groups similar profiles; the centroids are the prototypes.
3. Each prototype gets the label of the nearest archetype.
4. Each profile gets the label of the nearest prototype.
"""

import warnings
from dataclasses import dataclass, field
from typing import Literal

import numba
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from mobpriv.base.ranges import one_of, whole
from mobpriv.base.sharing import once
from mobpriv.icp.archetypes import CELLS_PER_WEEK, PASSING, Archetypes, archetypes, categories_of
from mobpriv.icp.rows import Distinct, distinct, rows_by_group

_STARTS = ("random", "k-means++")
_DISTANCES = ("euclidean", "manhattan", "cosine")
_PASSING_BY = ("archetype", "rule")
_DISTANCE_TIE = 1e-9  # distances in [0, 24] that differ by less are ties: only rounding distinguishes them
_RULE_LIMIT = 0.5  # the program's rule: a single active cell with a value below this means passing by


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted Sociometer. Its fixed prototypes can label other profiles: for example, those of the original data can label
    private profiles.
    """

    prototypes: np.ndarray  # (p, cells), in lexicographic order
    category: np.ndarray  # (p,): the label of each as an index into CATEGORIES
    sizes: np.ndarray  # (p,): number of training profiles nearest to each
    rule: bool = False  # the program's rule for passers-by
    # (n,): index of the prototype nearest to each training row
    nearest_in_training: np.ndarray | None = field(default=None, repr=False)

    def nearest(self, values) -> np.ndarray:
        """Phase 4: the index of the prototype nearest to each profile (n,); ties: the first."""
        return _nearest(
            np.ascontiguousarray(profile_array(values, self.prototypes.shape[1])), np.ascontiguousarray(self.prototypes.T)
        )

    def codes(self, values) -> np.ndarray:
        """Phase 4: the labels as indices into CATEGORIES (n,)."""
        labels = self.category[self.nearest(values)]
        return np.where(passes_by(values), np.int8(PASSING), labels) if self.rule else labels

    def label(self, values) -> pd.Categorical:
        """Phase 4, the label of each profile."""
        return categories_of(self.codes(values))


@dataclass(frozen=True, eq=False)
class Sociometer:
    """Phases 2 and 3. Fit again on private profiles, as the paper does, or once on the original ones with fixed prototypes.

    Departures from the paper: it states neither the clustering method nor the number of groups. The defaults follow the
    authors' program (telecom-analytics of the project ``ASAP``, 2017). They are k-means, 100 prototypes, the best of 5 starts
    at random profiles with 20 rounds each, and Euclidean distance to the archetypes. Other versions of the program have 10
    starts, and one has 10 rounds.

    * ``start="k-means++"`` with more ``iterations`` lets k-means converge better.
    * ``distance="cosine"`` compares only shapes and ignores the frequency of calls. A day in a slot is then no nearer to
      passing by than to visitor. In case of ties the first class in their order counts.
    * ``passing="rule"``: a profile with calls in a single cell, on less than half of its days, is passing by, whatever the
      prototypes. This is the program's rule. The paper has five labels for the prototypes, hence the default ``"archetype"``.

    Equal profiles are merged with a weight. The sums equal those over all profiles, and the result depends neither on their
    order nor on threads. If there are no more distinct profiles than prototypes, each is a prototype.
    """

    prototypes: int = 100
    restarts: int = 5
    iterations: int = 20
    start: Literal["random", "k-means++"] = "random"
    archetypes: Archetypes = field(default_factory=archetypes)
    distance: Literal["euclidean", "manhattan", "cosine"] = "euclidean"  # from a prototype to the archetypes
    passing: Literal["archetype", "rule"] = "archetype"

    def __post_init__(self):
        for name in ("prototypes", "restarts", "iterations"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1))
        one_of("start", self.start, _STARTS)
        one_of("distance", self.distance, _DISTANCES)
        one_of("passing", self.passing, _PASSING_BY)
        if not isinstance(self.archetypes, Archetypes) or not len(self.archetypes.values):
            raise ValueError(f"archetypes must be what archetypes(…) returns (got {type(self.archetypes).__name__})")

    def fit(self, values, sizes, rng: np.random.Generator) -> Fitted:
        """Prototypes and labels for profiles (n, cells) with multiplicities ``sizes`` (None: 1 each)."""
        merged = distinct(profile_array(values, self.archetypes.values.shape[1]), sizes)
        centres = self._prototypes(merged, int(rng.integers(2**31 - 1)))
        nearest = _nearest(merged.values, np.ascontiguousarray(centres.T))
        members = np.bincount(nearest, merged.sizes, len(centres)).astype(np.int64)
        return Fitted(centres, self.labels(centres), members, self.passing == "rule", nearest[merged.inverse])

    def labels(self, prototypes: np.ndarray) -> np.ndarray:
        """Phase 3: the category of the archetype nearest to each prototype, as an index into CATEGORIES."""
        return self.archetypes.category[nearest_archetype(prototypes, self.archetypes.values, self.distance)]

    def _prototypes(self, merged: Distinct, seed: int) -> np.ndarray:
        """Phase 2: the centroids of k-means."""
        if len(merged.values) <= self.prototypes:
            return merged.values
        start = {"init": self.start, "n_init": self.restarts, "max_iter": self.iterations, "random_state": seed}
        return once(_centres)(merged.values, merged.sizes.astype(float), self.prototypes, start)


PROGRAM = Sociometer(archetypes=archetypes("program"), passing="rule")
"""The authors' program: its archetypes and its rule for passers-by."""


def labelled(sociometer: Sociometer, values, rng: np.random.Generator, where=None) -> np.ndarray:
    """Phases 2 to 4 on the same profiles: their labels as indices into CATEGORIES (n,).

    With ``where`` (n,), the municipality of each profile, every municipality has its own prototypes. The paper does not say. By
    default all profiles share them, as in the program: a small municipality has fewer profiles than there are prototypes.
    """
    values = profile_array(values, sociometer.archetypes.values.shape[1])
    if where is None:
        return sociometer.fit(values, None, rng).codes(values)
    codes = np.empty(len(values), np.int8)
    groups = rows_by_group(where, len(values))
    for rows, child in zip(groups, rng.spawn(len(groups)), strict=True):
        codes[rows] = sociometer.fit(values[rows], None, child).codes(values[rows])
    return codes


def passes_by(values) -> np.ndarray:
    """The program's rule for passers-by: calls in a single cell, on less than half of its days."""
    values = profile_array(values)
    return ((values != 0).sum(axis=1) == 1) & (values.sum(axis=1) < _RULE_LIMIT)


def nearest_archetype(prototypes: np.ndarray, archetypes: np.ndarray, distance: str = "euclidean") -> np.ndarray:
    """The row of the archetype nearest to each prototype; ties: the first. A profile without calls has cosine 0 with any
    archetype.
    """
    one_of("distance", distance, _DISTANCES)
    if distance == "cosine":
        prototypes, archetypes = _directions(prototypes), _directions(archetypes)
        distances = 1 - prototypes @ archetypes.T
    else:
        power = 1 if distance == "manhattan" else 2
        distances = np.stack([(np.abs(prototypes - a) ** power).sum(axis=1) for a in archetypes], axis=1) ** (1 / power)
    return (distances <= distances.min(axis=1, keepdims=True) + _DISTANCE_TIE).argmax(axis=1)


def _directions(x: np.ndarray) -> np.ndarray:
    length = np.sqrt((x**2).sum(axis=1, keepdims=True))
    return x / np.where(length > 0, length, 1)


def profile_array(values, cells: int | None = None) -> np.ndarray:
    """Validate profiles and return them as an array (n, cells) of shares of days."""
    try:
        array = np.asarray(values, float)
    except (TypeError, ValueError):
        raise ValueError(f"profiles must be an array of numbers (got {type(values).__name__})") from None
    if array.ndim != 2 or not array.shape[1] or array.shape[1] % CELLS_PER_WEEK or not len(array):
        raise ValueError(f"profiles must have the shape (n, 6 · weeks), n at least 1 (got {array.shape})")
    if cells is not None and array.shape[1] != cells:
        raise ValueError(
            f"profiles must have the {cells} cells of the archetypes or of the prototypes (got {array.shape[1]}): archetypes(weeks=…) has those of fewer weeks"
        )
    wrong = ~((array >= -_DISTANCE_TIE) & (array <= 1 + _DISTANCE_TIE))  # also rejects NaN
    if wrong.any():
        row, cell = (int(i[0]) for i in wrong.nonzero())
        raise ValueError(
            f"values of a profile must be shares of days, in [0, 1] ({int(wrong.any(axis=1).sum())} profiles have others, first: {array[row, cell]} in "
            f"row {row}, cell {cell}): divide counts by days, clamp noise"
        )
    return array


def _centres(values: np.ndarray, sizes: np.ndarray, prototypes: int, start: dict) -> np.ndarray:
    """The distinct centres of k-means."""
    from sklearn.cluster import KMeans  # the import takes a second, and labelling alone does not need it
    from sklearn.exceptions import ConvergenceWarning

    means = KMeans(prototypes, **start)
    # threads add in varying order, and a difference in the last digit may assign a profile to another prototype
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one of two equal centres is removed here
        means.fit(values, sample_weight=sizes)
    return np.unique(means.cluster_centers_, axis=0)


@numba.njit(cache=True, parallel=True)
def _nearest(values, columns):
    """The column nearest to each row; ``columns``: (cells, p).

    Sums are computed row by row as defined, so that a row's result does not depend on other rows.
    """
    cells, p = columns.shape
    nearest = np.empty(len(values), np.int64)
    for i in numba.prange(len(values)):
        distances = np.zeros(p)
        for j in range(cells):
            value = values[i, j]
            for k in range(p):
                distances[k] += (value - columns[j, k]) ** 2
        nearest[i] = distances.argmin()
    return nearest
