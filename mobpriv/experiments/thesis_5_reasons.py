"""Explain by ablation why ILL-Attack re-identifies more than AP-Attack.

The thesis names these reasons:

* the trees (§5.4.3),
* the hour of day and the heat map (§5.4.2, Table 5.1),
* ILL-Attack "learns from individual short past behaviors", AP-Attack compares whole profiles (§5.5.3).

Each is ablated separately.

Source: Maouche, thesis, chapter 5.
"""

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numba
import numpy as np
import pandas as pd
from scipy.sparse import csc_array, csr_array, diags_array, hstack

from mobpriv.attacks import ILLAttack
from mobpriv.attacks.ap import topsoe
from mobpriv.attacks.ill import DAY, Features
from mobpriv.attacks.policies import TIE
from mobpriv.base.ranges import true_or_false, whole
from mobpriv.experiments.thesis_5 import Setting, attacks
from mobpriv.ground.grid import S2Grid
from mobpriv.traces.profiles import HeatMaps, heat_maps
from mobpriv.traces.sub_traces import SubTraces, slices
from mobpriv.traces.table import Traces

GROUPS = ("hourOfDay", "nbRecords", "centre", "cells")  # of the features of Table 5.1
_GROUP_OF = {
    "hourOfDay": "hourOfDay",
    "programHour": "hourOfDay",
    "nbRecords": "nbRecords",
    "centerLat": "centre",
    "centerLng": "centre",
    "zeros": "cells",  # in the author's program; most zeros are empty cells
    "nonZeros": "cells",
}
AT_ONCE = 1 << 23  # pairs of sub-traces whose divergences are in memory at one time: 64 MB


@contextmanager
def _many_classes():
    """Silence scikit-learn's warning of a mistaken regression: users with one sub-trace each are valid classes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
        yield


@dataclass(frozen=True)
class SomeFeatures(ILLAttack):
    """ILL-Attack with only some groups of Table 5.1's features; with all groups it is ILL-Attack.

    Each node still considers ``max_features`` of the remaining features, at least one.
    """

    groups: tuple[str, ...] = GROUPS

    def __post_init__(self):
        super().__post_init__()
        if unknown := [group for group in self.groups if group not in GROUPS]:
            raise ValueError(f"groups must be some of {', '.join(GROUPS)} (got {unknown[0]!r})")
        if not set(self.groups) - ({"hourOfDay"} if self.delta >= DAY and self.hour == "mean" else set()):
            raise ValueError(f"groups must hold a feature that sub-traces of {self.delta:g} s have (got {self.groups!r})")

    def features(self, traces: Traces, cells: np.ndarray | None = None) -> Features:
        users, names, cells, values = super().features(traces, cells)
        kept = [column for column, name in enumerate(names) if _GROUP_OF[name] in self.groups]
        if "cells" not in self.groups:
            cells = cells[:0]
        columns = np.r_[kept, len(names) + np.arange(len(cells))].astype(np.int32)
        return Features(users, [names[column] for column in kept], cells, values[:, columns])


@dataclass(frozen=True)
class RandomForest(ILLAttack):
    """A random forest instead of ILL-Attack's trees, with the same number, leaf, split and share.

    It searches the best cut-point of each feature; Extremely Randomized Trees draw one. ``bootstrap``: each tree is trained on
    as many sub-traces drawn with replacement, Breiman's rule and scikit-learn's default. ILL-Attack's trees are trained on all.

    Source: Breiman, Machine Learning 45, 2001.
    """

    bootstrap: bool = False

    name = "random forest"

    def __post_init__(self):
        super().__post_init__()
        true_or_false("bootstrap", self.bootstrap)

    def _learn(self, examples: csc_array, owner: np.ndarray):
        from sklearn.ensemble import RandomForestClassifier

        forest = RandomForestClassifier(
            n_estimators=self.trees,
            criterion="gini",
            min_samples_leaf=self.min_leaf,
            min_samples_split=self.min_split,
            max_features=self.max_features,
            bootstrap=self.bootstrap,
            random_state=self.seed,
            n_jobs=numba.get_num_threads(),
        )
        with _many_classes():
            forest.fit(examples, owner)
        return forest.set_params(n_jobs=1)  # one thread answers, as for ILL-Attack


@dataclass(frozen=True)
class LogisticRegression(ILLAttack):
    """Multinomial logistic regression (scikit-learn's, penalty 1) on standardised features instead of ILL-Attack's trees.

    It is deterministic: the fields of the trees and ``seed`` have no effect. It needs two known users.
    """

    name = "logistic regression"

    def _learn(self, examples: csc_array, owner: np.ndarray):
        return Standardised.learned(examples, owner)


class Standardised(NamedTuple):
    """A linear classifier of features in units of their standard deviations."""

    model: object  # sklearn.linear_model.LogisticRegression
    centre: np.ndarray
    scale: np.ndarray

    @classmethod
    def learned(cls, examples: csc_array, owner: np.ndarray) -> "Standardised":
        from sklearn.linear_model import LogisticRegression as Multinomial

        values = csc_array(examples, dtype=float)
        n, filled = values.shape[0], np.diff(values.indptr)
        mean = values.sum(axis=0) / n
        column = np.repeat(np.arange(len(mean)), filled)
        squares = np.bincount(column, (values.data - mean[column]) ** 2, len(mean)) + (n - filled) * mean**2
        deviation = np.sqrt(squares / n)
        # the intercept has no penalty and absorbs any shift, so centring is optional: it is done only for features that most
        # sub-traces have, because the solver fails on a latitude of 37.77 ± 0.02; the shares of the cells stay sparse
        centre, scale = np.where(filled > n / 2, mean, 0.0), np.where(deviation > 0, deviation, 1.0)
        blank = cls(Multinomial(max_iter=2000), centre, scale)
        with _many_classes():
            return blank._replace(model=blank.model.fit(blank.standardised(values), owner))

    def standardised(self, examples) -> csr_array:
        values, full = csc_array(examples, dtype=float), self.centre != 0
        moved = (values[:, full].toarray() - self.centre[full]) / self.scale[full]
        return csr_array(hstack([csc_array(moved), values[:, ~full] @ diags_array(1 / self.scale[~full])]))

    def predict_proba(self, examples) -> np.ndarray:
        return self.model.predict_proba(self.standardised(examples))


def classifiers(length: str, trees: int = 100, seed: int = 0) -> dict[str, ILLAttack]:
    """Return ILL-Attack as in §5.5.2 (except ``trees``), and with other classifiers on the same features."""
    ill = replace(attacks(length, seed=seed)[0], trees=trees)
    return {
        ill.name: ill,
        "random forest": _instead(ill, RandomForest),
        "random forest, bootstrap": _instead(ill, RandomForest, bootstrap=True),
        "logistic regression": _instead(ill, LogisticRegression),
    }


def groups_of(length: str) -> tuple[str, ...]:
    """Return the groups of features for this length: "this feature is limited to sub-traces that are smaller than a day"."""
    return GROUPS if length == "sessions" else GROUPS[1:]


def feature_groups(length: str, trees: int = 100, seed: int = 0) -> dict[str, ILLAttack]:
    """Return ILL-Attack without each group of features, and with each group alone."""
    ill, groups = replace(attacks(length, seed=seed)[0], trees=trees), groups_of(length)
    without = {f"without {one}": tuple(other for other in groups if other != one) for one in groups}
    alone = {f"{one} alone": (one,) for one in groups}
    return {name: _instead(ill, SomeFeatures, groups=kept) for name, kept in (without | alone).items()}


def _instead(ill: ILLAttack, kind: type[ILLAttack], **further) -> ILLAttack:
    """Return an attack of another kind with the settings of ``ill``."""
    return kind(**{part.name: getattr(ill, part.name) for part in fields(ill) if part.name != "known_"}, **further)


def nearest_past(known: SubTraces, anonymous: Traces, grid, k: int = 1) -> pd.DataFrame:
    """Run AP-Attack on a past cut into sub-traces, without training.

    For each trace and user: the mean of the ``k`` least Topsoe divergences (3.3), in nats, from her known sub-traces; of all if
    she has fewer. Every pair is compared, some traces at a time.
    """
    whole("k", k, 1)
    past, now = heat_maps(known.traces, grid), heat_maps(anonymous, grid)
    owner = known.owner[past.users].to_numpy()
    # sub-traces sorted by name are not sorted by owner: "a-1-0" is between "a-0" and "a-2"
    order = np.argsort(owner, kind="stable")
    users, first = np.unique(owner[order], return_index=True)
    ends = np.r_[first[1:], len(order)]
    theirs = HeatMaps(past.users[order], past.cells, past.counts[order])
    nearest, step = np.empty((len(now.users), len(users))), max(1, AT_ONCE // max(len(order), 1))
    for start in range(0, len(now.users), step):
        some = slice(start, start + step)
        d = topsoe(HeatMaps(now.users[some], now.cells, now.counts[some]), theirs)
        for user, (begin, end) in enumerate(zip(first, ends, strict=True)):
            least = min(k, end - begin)
            nearest[some, user] = np.partition(d[:, begin:end], least - 1, axis=1)[:, :least].mean(axis=1)
    return pd.DataFrame(nearest, index=now.users, columns=pd.Index(users, dtype="str", name="user"))


def by_lot(ranking: pd.DataFrame, owner: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return each trace's chance that a random one of the nearest users is the true one, and the number of nearest users.

    The policies settle ties against the adversary. Heat maps of one cell each are equal, so short traces often tie. To measure
    the effect of cutting, ties must not count as mistakes.
    """
    d = ranking.loc[owner.index].to_numpy()
    nearest = d <= d.min(axis=1, keepdims=True) + TIE
    mine = nearest[np.arange(len(d)), ranking.columns.get_indexer(owner)]
    return mine / nearest.sum(axis=1), nearest.sum(axis=1)


def unlearned(setting: Setting, length: str) -> dict[str, pd.DataFrame]:
    """Return rankings without training: AP-Attack, the past cut, with ILL-Attack's cells, with more neighbours."""
    ill, ap, _ = attacks(length)
    past, s2 = slices(setting.known, ill.delta), S2Grid(ill.level)
    return {
        "AP-Attack": ap.fit(setting.known).rank(setting.secret),
        "nearest past": nearest_past(past, setting.secret, ap.grid),
        "nearest past, S2": nearest_past(past, setting.secret, s2),
        "five nearest, S2": nearest_past(past, setting.secret, s2, 5),
    }
