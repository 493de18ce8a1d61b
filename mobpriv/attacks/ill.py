"""ILL-Attack: a classifier that learns users from short sub-traces (thesis §5.4).

It instantiates §5.3's model "S splits, T makes a vector, I classifies":

* S: sub-traces of a fixed length in time (§5.4.1);
* T: the heat map and four more features of each (Table 5.1);
* I: Extremely Randomized Trees (§5.4.3).

Source of the trees: Geurts, Ernst, Wehenkel, Machine Learning 63, 2006.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numba
import numpy as np
import pandas as pd
from scipy.sparse import csc_array, csr_array, hstack

from mobpriv.attacks.extra_trees import ExtraTrees
from mobpriv.base.ranges import between, one_of, positive, true_or_false, whole
from mobpriv.base.sharing import once
from mobpriv.ground.grid import S2Grid
from mobpriv.traces.profiles import heat_maps
from mobpriv.traces.sub_traces import SubTraces, slices
from mobpriv.traces.table import Traces, by_user, milliseconds

DAY = 86_400.0  # s
_HOUR = 3_600_000  # ms


class TrainedModel(NamedTuple):
    """The model that the adversary learned from the known traces."""

    forest: object | None  # what ``classifier`` made, trained, classes = positions in users; None: no known user
    cells: np.ndarray  # the cells of the known traces, one feature each
    users: pd.Index


class Features(NamedTuple):
    """The examples of a classifier."""

    users: pd.Index  # one row each
    names: list[str]  # of the first columns
    cells: np.ndarray  # S2 ids, of the other columns
    values: csc_array  # (traces, features), float32


def extra_trees(ill: "ILLAttack") -> ExtraTrees:
    """Extremely Randomized Trees, untrained, with the settings of an attack (§5.4.3)."""
    return ExtraTrees(ill.trees, ill.max_features, ill.min_leaf, ill.min_split, ill.seed)


@dataclass(frozen=True)
class ILLAttack:
    """The most probable user by Extremely Randomized Trees over sub-traces of ``delta`` seconds; dissimilarity 1 − P[class].

    ``fit`` cuts the known traces and learns one example a sub-trace. ``rank`` takes every anonymous trace as one example,
    without cutting it; its length should be about ``delta`` (§5.4.1). Features of a (sub-)trace, Table 5.1:

    * ``hourOfDay``: whole hour, UTC, of the mean time of its records; only if ``delta`` is less than a day;
    * ``nbRecords``: number of records;
    * ``centerLat``: mean latitude, degrees;
    * ``centerLng``: mean longitude, degrees, computed around the first record's, so that no trace lies on both sides of ±180°;
    * ID of cell: share of its records in each S2 cell of ``level`` that the known traces visit.

    A cell that only anonymous traces visit has no feature, because no tree could have used it. Learning compares features in
    single precision, so the mean position is exact to about a metre.

    Every known user is a class and every trace has features. So there is no NaN, and rows of probabilities sum to 1
    (``largest`` = 1 makes 1 − d/largest of §3.2 that probability). With ``min_leaf`` = 2 a user with one sub-trace shares each
    of her leaves with another user. The dissimilarity of a pair depends on the other known users, but not on the other attacked
    users, nor on names.

    Learning is random. The attack has a field ``seed`` and no Generator, whose state would differ at the second ``fit``. The
    same seed gives the same numbers on any number of threads. A rate over a few hundred traces varies by some points with the
    seed: use several seeds.

    Departures from the text, as in the authors' program:

    * ``hour="program"`` takes the hour that lies half the trace's span *before* its first record, at any ``delta``; the text
      means the middle.
    * ``zero_count=True`` adds two features before the others: how many of a vector's entries are zero, and how many are not.
      The program also counts columns of cells that only anonymous traces visit: its number of zeros is larger by the same
      number for all.

    ``classifier`` may be another function of the attack that returns an untrained classifier, with ``fit`` and
    ``predict_proba`` as in scikit-learn.

    A tree takes 32 bytes a sub-trace: 100 trees over 38 000 sub-traces take 0.12 GB.

    >>> from mobpriv import load
    >>> from mobpriv.traces.table import split_in_half
    >>> known, secret = split_in_half(load("city", max_users=3).traces, "set")
    >>> from mobpriv.traces.sub_traces import slices
    >>> ILLAttack(delta=86400.0, trees=10).fit(known).rank(slices(secret, 86400.0).traces).shape
    (34, 3)
    """

    delta: float = 1800.0  # s, Δ
    level: int = 13  # of the S2 cells, 0 … 30
    trees: int = 100
    max_features: float = 0.6  # share of the features from which a node takes the best
    min_leaf: int = 2  # least sub-traces in a leaf
    min_split: int = 8  # least sub-traces in a node that is split
    hour: str = "mean"
    zero_count: bool = False
    seed: int = 0
    classifier: Callable = field(default=extra_trees, repr=False)
    known_: TrainedModel | None = field(default=None, repr=False, compare=False)

    name = "ILL-Attack"
    largest = 1.0

    def __post_init__(self):
        positive("delta", self.delta, "s", least=0.001)
        checked = {
            "level": S2Grid(self.level).level,
            "trees": whole("trees", self.trees, 1),
            "max_features": between("max_features", self.max_features, 1e-6, 1, "must be a share of the features, in ]0, 1]"),
            "min_leaf": whole("min_leaf", self.min_leaf, 1),
            "min_split": whole("min_split", self.min_split, 2),
            "seed": whole("seed", self.seed, 0, 2**32 - 1, "must be a whole number in 0 … 2³² − 1"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        one_of("hour", self.hour, ("mean", "program"))
        true_or_false("zero_count", self.zero_count)
        if not callable(self.classifier):
            raise ValueError(f"classifier must be a function of the attack (got {type(self.classifier).__name__})")

    def fit(self, known: Traces) -> Self:
        """The attack with a forest that has learned from the known users' sub-traces."""
        return self.fit_split(slices(known, self.delta))

    def fit_split(self, known: SubTraces) -> Self:
        """Learn from sub-traces that "the attacker could receive split" (§5.3), for instance each protected separately.

        ``known.owner`` may name sub-traces that a mechanism erased; a user without any sub-trace left is not known.
        """
        sub_traces = by_user(known.traces)[0]
        if len(without_owner := sub_traces.difference(known.owner.index)):
            raise ValueError(f"owner must name the user of every sub-trace (sub-trace {without_owner[0]} has no owner)")
        owner = known.owner[sub_traces]
        users = pd.Index(sorted(owner.unique()), dtype="str", name="user")
        examples = self.features(known.traces)
        learn = once(ILLAttack._learned) if self.classifier is extra_trees else ILLAttack._learned
        forest = learn(replace(self, known_=None), examples.values, users.get_indexer(owner)) if len(users) else None
        return replace(self, known_=TrainedModel(forest, examples.cells, users))

    def _learned(self, values: csc_array, classes: np.ndarray):
        """The trained classifier."""
        forest = self.classifier(self)
        with warnings.catch_warnings():  # users with few sub-traces are classes, not a regression by mistake
            warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
            forest.fit(values, classes)
        return forest

    def rank(self, anonymous: Traces) -> pd.DataFrame:
        """1 − the forest's probability, one row an anonymous sub-trace, one column a known user."""
        if self.known_ is None:
            raise ValueError("fit the attack on known traces first")
        forest, cells, users = self.known_
        examples = self.features(anonymous, cells)
        probability = np.zeros((len(examples.users), len(users)))
        if probability.size:
            probability = forest.predict_proba(csr_array(examples.values))
        return pd.DataFrame(1 - probability, index=examples.users, columns=users)

    def features(self, traces: Traces, cells: np.ndarray | None = None) -> Features:
        """Table 5.1 of every trace; ``cells``: those that have a feature, ascending, by default all that the traces visit."""
        maps = heat_maps(traces, S2Grid(self.level))
        cells = maps.cells if cells is None else cells
        users, offsets = by_user(traces)
        columns = _moments(milliseconds(traces), traces["lat"].to_numpy(), traces["lng"].to_numpy(), offsets)
        table = dict(zip(("centerLat", "centerLng", "hourOfDay", "programHour"), columns, strict=True))
        table = pd.DataFrame({**table, "nbRecords": maps.counts.sum(axis=1)}, users)
        hour = {"program": ["programHour"], "mean": ["hourOfDay"] if self.delta < DAY else []}[self.hour]
        table = table[[*hour, "nbRecords", "centerLat", "centerLng"]]
        if self.zero_count:
            filled = np.count_nonzero(table, axis=1) + np.diff(maps.counts.indptr)
            table.insert(0, "zeros", table.shape[1] + len(cells) - filled)
            table.insert(1, "nonZeros", filled)
        with_feature = np.flatnonzero(np.isin(maps.cells, cells))
        column = np.searchsorted(cells, maps.cells[with_feature])
        selection = csr_array((np.ones(len(with_feature)), (with_feature, column)), shape=(len(maps.cells), len(cells)))
        values = hstack([csc_array(table.to_numpy(float)), maps.shares @ selection], format="csc", dtype=np.float32)
        # scikit-learn requires indices of 32 bits
        indices, indptr = (part.astype(np.int32) for part in (values.indices, values.indptr))
        return Features(maps.users, list(table.columns), cells, csc_array((values.data, indices, indptr), shape=values.shape))


@numba.njit(cache=True, parallel=True)
def _moments(time, lat, lng, offsets):
    """Mean latitude and longitude of each trace; the hour of its mean time, and of half its span before its start."""
    users = len(offsets) - 1
    centre_lat, centre_lng = np.empty(users), np.empty(users)
    mean_hour, early_hour = np.empty(users, np.int64), np.empty(users, np.int64)
    for user in numba.prange(users):
        a, b = offsets[user], offsets[user + 1]
        north, east, after = 0.0, 0.0, 0
        for i in range(a, b):
            north += lat[i] - lat[a]
            east += (lng[i] - lng[a] + 180) % 360 - 180
            after += time[i] - time[a]
        centre_lat[user] = lat[a] + north / (b - a)
        centre_lng[user] = (lng[a] + east / (b - a) + 180) % 360 - 180
        mean_hour[user] = (time[a] + after // (b - a)) // _HOUR % 24
        early_hour[user] = (time[a] - (time[b - 1] - time[a]) / 2) // _HOUR % 24
    return centre_lat, centre_lng, mean_hour, early_hour
