"""What a classifier's labels are still good for: confusion matrices, F-scores and how many of each class. Pratesi, Gabrielli, Cintia, Monreale
and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §7.2, Figures 6 to 9.

``true`` and ``found`` are the labels of the same n profiles: in the paper the Sociometer's on the original and on the private ones, since it
has no others. ``categories``: all classes, in their order. ``whose`` (n,): whose profile each is, a user or a municipality; profiles of
one are alike, and intervals cover another sample of *them* (:func:`mobpriv.estimates.clustered_rate`). Without it every profile
counts for itself (Wilson's).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mobpriv.estimates import Estimate, clustered_rate, quantile, rate

MEASURES = ("precision", "recall", "f_score")


def crossed(true, found, categories: Sequence[str], where=None, sizes=None) -> np.ndarray:
    """How many profiles of each true class (rows) have each label (columns): (c, c), or with ``where`` (places, c, c), places sorted.

    ``sizes`` (n,): how many profiles each row stands for.
    """
    t, f = _codes(true, found, categories)
    c = len(categories)
    if where is None:
        return _bincount(t * c + f, sizes, c * c).reshape(c, c)
    place, names = places(where, len(t))
    return _bincount((place * c + t) * c + f, sizes, len(names) * c * c).reshape(-1, c, c)


def places(where, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The place of the municipality of each of n profiles among the names, which are sorted."""
    place, names = pd.factorize(pd.Series(where), sort=True)
    if len(place) != n or (place < 0).any():
        raise ValueError(
            f"where must name the municipality of each of the {n} profiles (got {len(place)}, {int((place < 0).sum())} missing)"
        )
    return place.astype(np.int64), np.asarray(names)


def confusion(true, found, categories: Sequence[str], whose=None, level: float = 0.95) -> pd.DataFrame:
    """The confusion matrix as Figures 6 and 7 have it, a row a cell: true, found, count, and the share of the n profiles of the true class.

    Columns ``value, low, high, n`` are an :class:`mobpriv.estimates.Estimate`; the shares of a true class sum to 1. A class without a profile
    has n = 0 and no shares (NaN).
    """
    t, f = _codes(true, found, categories)
    rows = []
    for i, name in enumerate(categories):
        here = t == i
        owners = None if whose is None else _owners(whose, len(t))[here]
        for j, other in enumerate(categories):
            hit = f[here] == j
            rows.append({"true": name, "found": other, "count": int(hit.sum()), **_rate(hit, owners, level)})
    return pd.DataFrame(rows)


def shares(true, found, categories: Sequence[str], sizes=None) -> pd.DataFrame:
    """The same matrix as a table, true × found; NaN in the row of a class without a profile."""
    counts = crossed(true, found, categories, sizes=sizes)
    index, columns = pd.Index(categories, name="true"), pd.Index(categories, name="found")
    return pd.DataFrame(_divided(counts, counts.sum(axis=1, keepdims=True)), index, columns)


def scores(true, found, categories: Sequence[str], whose=None, level: float = 0.95) -> pd.DataFrame:
    """Precision, recall and F-score of each class, a row a class and measure, as estimates::

        precision = hits / found      recall = hits / true      f_score = 2 · P · R / (P + R) = 2 · hits / (true + found)

    0/0 is decided so: no precision (NaN) where nobody has the label, no recall where nobody is of the class, and no F-score where both
    hold; where only one holds there is no hit, and the F-score is 0. ``n`` is what the measure is a share of, 0 where it is none.

    The F-score's interval is that of the share J of hits among who is of the class or has its label: F = 2 J / (1 + J) rises with J.
    """
    t, f = _codes(true, found, categories)
    owners = None if whose is None else _owners(whose, len(t))
    rows = []
    for i, name in enumerate(categories):
        is_so, said = t == i, f == i
        for measure, among in zip(MEASURES, (said, is_so, is_so | said), strict=True):
            estimate = _rate((is_so & said)[among], None if owners is None else owners[among], level)
            if measure == "f_score":
                estimate = Estimate(*(2 * j / (1 + j) for j in (estimate.value, estimate.low, estimate.high)), estimate.n)
            rows.append({"category": name, "measure": measure, **estimate})
    return pd.DataFrame(rows)


def agreement(true, found, categories: Sequence[str], whose=None, level: float = 0.95) -> Estimate:
    """The share of the profiles whose two labels are the same."""
    t, f = _codes(true, found, categories)
    if not len(t):
        raise ValueError("an agreement needs one profile or more (got none)")
    return _rate(t == f, None if whose is None else _owners(whose, len(t)), level)


def kappa(counts) -> float:
    """Cohen's κ of a crossed table (c, c), (p_o − p_e) / (1 − p_e): agreement beyond chance; NaN where chance alone agrees on all."""
    p = np.asarray(counts, float) / np.sum(counts)
    chance = float(p.sum(axis=0) @ p.sum(axis=1))
    return float((np.trace(p) - chance) / (1 - chance)) if chance < 1 else np.nan


def scores_by_place(true, found, categories: Sequence[str], where) -> pd.DataFrame:
    """Figure 8: the scores of each municipality, a row a municipality and class, with how many are of the class, have its label, and both.

    0/0 as in :func:`scores`.
    """
    counts = crossed(true, found, categories, where)
    is_so, said, hits = counts.sum(axis=2), counts.sum(axis=1), np.diagonal(counts, axis1=1, axis2=2)
    columns = {
        "true": is_so,
        "found": said,
        "hits": hits,
        "precision": _divided(hits, said),
        "recall": _divided(hits, is_so),
        "f_score": _divided(2 * hits, is_so + said),
    }
    return _by_place(columns, where, categories)


def medians(by_place: pd.DataFrame, measure: str = "f_score", level: float = 0.95) -> pd.DataFrame:
    """The median of a measure over the municipalities, a row a class, as an estimate; ``undefined``: in how many it is 0/0 and left out."""
    rows = []
    for name, values in by_place.groupby("category", sort=False, observed=True)[measure]:
        known = values.dropna()
        estimate = quantile(known, 0.5, level) if len(known) else Estimate(np.nan, np.nan, np.nan, 0)
        rows.append({"category": name, **estimate, "undefined": int(values.isna().sum())})
    return pd.DataFrame(rows)


def quantification(
    true, found, categories: Sequence[str], where=None, joined: Mapping[str, Sequence[str]] | None = None
) -> pd.DataFrame:
    """Figure 9: how many of each class there are by the true labels and by those found, a row a class, or a municipality and class.

    ``error`` = found − true; ``relative`` = error / true, NaN where nobody is of the class. ``joined``: name -> classes that are counted as
    one in a further row, as §7.2 does with visitors and passing by.
    """
    t, f = _codes(true, found, categories)
    place, names = (np.zeros(len(t), np.int64), [None]) if where is None else places(where, len(t))
    c = len(categories)
    true_n, found_n = (_bincount(place * c + x, None, len(names) * c).reshape(-1, c) for x in (t, f))
    together = dict(joined or {})
    for name, those in together.items():
        strange = [one for one in those if one not in categories]
        if strange or name in categories:
            raise ValueError(
                f"joined must give a new name to some of {', '.join(categories)} (got {name}: {', '.join(map(str, those))})"
            )
        at = [list(categories).index(one) for one in those]
        true_n, found_n = (np.column_stack([x, x[:, at].sum(axis=1)]) for x in (true_n, found_n))
    error = found_n - true_n
    columns = {"true": true_n, "found": found_n, "error": error, "relative": _divided(error, true_n)}
    return _by_place(columns, where, [*categories, *together])


def _by_place(columns: Mapping[str, np.ndarray], where, categories) -> pd.DataFrame:
    """Arrays (places, classes) as the columns of a table; without ``where`` there is one place, which has no name."""
    names = [None] if where is None else places(where, len(where))[1]
    table = {name: values.ravel() for name, values in columns.items()}
    table = {"category": pd.Categorical(np.tile(list(categories), len(names)), list(categories)), **table}
    return pd.DataFrame(table if where is None else {"municipality": np.repeat(names, len(categories)), **table})


def _rate(hit: np.ndarray, owners: np.ndarray | None, level: float) -> Estimate:
    if not len(hit):
        return Estimate(np.nan, np.nan, np.nan, 0)
    return rate(hit, level) if owners is None else clustered_rate(hit, owners, level)


def _codes(true, found, categories) -> tuple[np.ndarray, np.ndarray]:
    t, f = (_code(labels, categories, name) for labels, name in ((true, "true"), (found, "found")))
    if len(t) != len(f):
        raise ValueError(f"true and found must be labels of the same profiles (got {len(t)} and {len(f)})")
    return t, f


def _code(labels, categories, name: str) -> np.ndarray:
    """The place of each label among the categories; whole numbers are places already."""
    if isinstance(labels, pd.Series):
        labels = labels.array
    if not isinstance(labels, pd.Categorical):
        labels = np.asarray(labels)
        if np.issubdtype(labels.dtype, np.integer):
            codes = labels.astype(np.int64)
            wrong = (codes < 0) | (codes >= len(categories))
        else:
            codes = pd.Index(categories).get_indexer(labels)
            wrong = codes < 0
    else:
        codes = np.r_[pd.Index(categories).get_indexer(labels.categories), -1][labels.codes].astype(np.int64)
        wrong = codes < 0
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"labels must be among {', '.join(categories)} ({int(wrong.sum())} of {name} are not, first: {labels[row]} in row {row}): "
            "leave those profiles out, and count them"
        )
    return codes


def _owners(whose, n: int) -> np.ndarray:
    owners, _ = pd.factorize(pd.Series(whose))
    if len(owners) != n or (owners < 0).any():
        raise ValueError(
            f"whose must name whose each of the {n} profiles is (got {len(owners)}, {int((owners < 0).sum())} missing)"
        )
    return owners


def _bincount(codes, sizes, length: int) -> np.ndarray:
    if sizes is None:
        return np.bincount(codes, minlength=length)
    sizes = np.asarray(sizes)
    if sizes.shape != codes.shape:
        raise ValueError(f"sizes must be a number for each of the {len(codes)} rows (got the shape {sizes.shape})")
    return np.bincount(codes, sizes, length).astype(np.int64)


def _divided(above, below) -> np.ndarray:
    """The quotient, NaN where it is by 0."""
    below = np.asarray(below, float)
    return np.asarray(above, float) / np.where(below == 0, np.nan, below)
