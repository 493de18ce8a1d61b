"""The Sociometer beside plain versions (peers): ``python benchmarks/bench_sociometer.py`` prints a table; a record is a profile.

Profiles as calls give them: most are of one or two days, so that a million have few distinct ones. Noisy ones are all distinct.
"""

from functools import partial

import numpy as np
import pandas as pd
from measure import SEED, Case, table
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from mobpriv.experiments.primule_sociometer import control
from mobpriv.icp.archetypes import CATEGORIES
from mobpriv.icp.rows import distinct
from mobpriv.icp.sociometer import Sociometer
from mobpriv.metrics.classification import confusion_estimates, scores_by_place

DAYS = np.tile(np.repeat([5, 2], 3), 4)
AT_HOME = np.tile([0.1, 1.0, 0.4], 8)


def crowd(profiles: int, each: int) -> np.ndarray:
    """Profiles of whom three in five call on a day or two, the others up to every day."""
    rng = np.random.default_rng(SEED)
    n = profiles * each
    often = np.where(rng.random(n) < 0.6, 0.02, rng.beta(0.6, 2.5, n))
    counts = rng.binomial(DAYS, often[:, None] * AT_HOME)
    counts[np.arange(n), rng.choice(24, n, p=AT_HOME / AT_HOME.sum())] += counts.sum(axis=1) == 0
    return counts / DAYS


def noisy(profiles: int, each: int) -> np.ndarray:
    rng = np.random.default_rng(SEED)
    return np.clip(crowd(profiles, each) + rng.laplace(0, 0.1, (profiles * each, 24)), 0, 1)


def few(values: np.ndarray) -> np.ndarray:
    return values[::200]


def fit_and_label(values, rng):
    return Sociometer().fit(values, None, rng).codes(values)


def by_scikit_learn(values, rng):
    """Every profile a row of its own, however many are equal; with one thread too."""
    with threadpool_limits(1):
        return KMeans(100, init="random", n_init=5, max_iter=20, random_state=1).fit(values).labels_


def label(values, rng):
    return Sociometer(restarts=1, iterations=1).fit(values[:20_000], None, rng).codes(values)


def by_tables(rng, n):
    true = rng.integers(0, 5, n).astype(np.int8)
    return true, np.where(rng.random(n) < 0.7, true, 3), rng.integers(0, n // 3, n)


def matrix(values, rng):
    true, found, whose = by_tables(rng, len(values))
    return confusion_estimates(true, found, CATEGORIES, whose)


def by_municipality(values, rng):
    true, found, whose = by_tables(rng, len(values))
    return scores_by_place(true, found, CATEGORIES, whose % 139)


def by_pandas(values, rng):
    true, found, whose = by_tables(rng, len(values))
    return pd.crosstab([whose % 139, true], found)


of = partial(Case, make=crowd, few=few)
CASES = [
    of("equal profiles as one", "mobpriv distinct", lambda v, rng: distinct(v), 1_000_000, 1),
    of("equal profiles as one", "peer: numpy.unique over rows", lambda v, rng: np.unique(v, axis=0), 1_000_000, 1, runs=1),
    of("fit and label", "mobpriv Sociometer", fit_and_label, 1_000_000, 1, runs=1),
    of("fit and label", "mobpriv Sociometer", fit_and_label, 100_000, 1),
    of("fit and label", "peer: scikit-learn on all rows", by_scikit_learn, 100_000, 1, runs=1),
    of("fit and label, all distinct", "mobpriv Sociometer", fit_and_label, 100_000, 1, runs=1, make=noisy),
    of("label with frozen prototypes", "mobpriv Fitted", label, 1_000_000, 1, runs=1),
    of("control of 5 seeds", "mobpriv control", lambda v, rng: control(Sociometer(), v, rng), 100_000, 1, runs=1),
    of("confusion matrix over users", "mobpriv confusion", matrix, 1_000_000, 1, runs=1),
    of("scores of 139 municipalities", "mobpriv scores_by_place", by_municipality, 1_000_000, 1),
    of("scores of 139 municipalities", "peer: pandas crosstab", by_pandas, 1_000_000, 1),
]

if __name__ == "__main__":
    print(table(__file__))
