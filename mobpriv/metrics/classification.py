"""Quality of a classifier's labels on protected profiles: confusion matrices, F-scores and class sizes.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §7.2, Figures
6 to 9.

* ``true`` and ``predicted``: two labels of the same n profiles. The paper compares the Sociometer's labels of original and
  private profiles, since it has no others.
* ``categories``: all classes, in order.
* ``whose`` (n,): the user or municipality of each profile. Profiles of the same one are correlated, and intervals cover another
  sample of *them* (:func:`mobpriv.base.estimates.clustered_rate`). Without it profiles count as independent (Wilson's interval).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mobpriv.base.estimates import Estimate, clustered_rate, quantile, rate
from mobpriv.icp.rows import factorize_places


def confusion_counts(true, predicted, categories: Sequence[str], where=None, sizes=None) -> np.ndarray:
    """Number of profiles of each true class (rows) with each label (columns), shape (c, c).

    With ``where`` the shape is (places, c, c), places sorted. ``sizes`` (n,): the number of profiles that each row represents.
    """
    t, p = _codes(true, predicted, categories)
    c = len(categories)
    if where is None:
        return _bincount(t * c + p, sizes, c * c).reshape(c, c)
    place, names = factorize_places(where, len(t))
    return _bincount((place * c + t) * c + p, sizes, len(names) * c * c).reshape(-1, c, c)


def confusion_estimates(true, predicted, categories: Sequence[str], whose=None, level: float = 0.95) -> pd.DataFrame:
    """The confusion matrix of Figures 6 and 7 with a row per cell: true, found, count, and the share of the true class.

    The columns ``value, low, high, n`` are an :class:`mobpriv.base.estimates.Estimate`; n is the size of the true class, whose
    shares sum to 1. A class without profiles has n = 0 and NaN as shares.
    """
    t, p = _codes(true, predicted, categories)
    rows = []
    for i, name in enumerate(categories):
        in_class = t == i
        owners = None if whose is None else _owners(whose, len(t))[in_class]
        for j, other in enumerate(categories):
            hit = p[in_class] == j
            rows.append({"true": name, "found": other, "count": int(hit.sum()), **_rate(hit, owners, level)})
    return pd.DataFrame(rows)


def agreement(true, predicted, categories: Sequence[str], whose=None, level: float = 0.95) -> Estimate:
    """The share of the profiles with two equal labels."""
    t, p = _codes(true, predicted, categories)
    if not len(t):
        raise ValueError("an agreement needs one profile or more (got none)")
    return _rate(t == p, None if whose is None else _owners(whose, len(t)), level)


def kappa(counts) -> float:
    """Cohen's κ of a confusion matrix (c, c), (p_o − p_e) / (1 − p_e): agreement beyond chance; NaN if p_e = 1."""
    p = np.asarray(counts, float) / np.sum(counts)
    chance = float(p.sum(axis=0) @ p.sum(axis=1))
    return float((np.trace(p) - chance) / (1 - chance)) if chance < 1 else np.nan


def scores_by_place(true, predicted, categories: Sequence[str], where) -> pd.DataFrame:
    """The scores of each municipality (Figure 8), a row per municipality and class, with the numbers true, found and hits::

        precision = hits / found    recall = hits / true    f_score = 2 · P · R / (P + R) = 2 · hits / (true + found)

    Precision is NaN if no profile has the label, recall if none is of the class, the F-score in both cases together.
    """
    counts = confusion_counts(true, predicted, categories, where)
    true_n, predicted_n, hits = counts.sum(axis=2), counts.sum(axis=1), np.diagonal(counts, axis1=1, axis2=2)
    columns = {
        "true": true_n,
        "found": predicted_n,
        "hits": hits,
        "precision": _divided(hits, predicted_n),
        "recall": _divided(hits, true_n),
        "f_score": _divided(2 * hits, true_n + predicted_n),
    }
    return _by_place(columns, where, categories)


def medians(by_place: pd.DataFrame, measure: str = "f_score", level: float = 0.95) -> pd.DataFrame:
    """The median of a measure over municipalities as an estimate, a row per class; ``undefined`` counts the omitted 0/0."""
    rows = []
    for name, values in by_place.groupby("category", sort=False, observed=True)[measure]:
        known = values.dropna()
        estimate = quantile(known, 0.5, level) if len(known) else Estimate(np.nan, np.nan, np.nan, 0)
        rows.append({"category": name, **estimate, "undefined": int(values.isna().sum())})
    return pd.DataFrame(rows)


def quantification(
    true, predicted, categories: Sequence[str], where=None, joined: Mapping[str, Sequence[str]] | None = None
) -> pd.DataFrame:
    """Class sizes by true and by predicted labels (Figure 9), a row per class, or per municipality and class.

    ``error`` = found − true; ``relative`` = error / true, NaN for an empty class. ``joined`` maps a name to classes that form
    one further row, as §7.2 joins visitors and passing by.
    """
    t, p = _codes(true, predicted, categories)
    place, names = (np.zeros(len(t), np.int64), [None]) if where is None else factorize_places(where, len(t))
    c = len(categories)
    true_n, predicted_n = (_bincount(place * c + x, None, len(names) * c).reshape(-1, c) for x in (t, p))
    merged_classes = dict(joined or {})
    for name, classes in merged_classes.items():
        unknown = [one for one in classes if one not in categories]
        if unknown or name in categories:
            raise ValueError(
                f"joined must give a new name to some of {', '.join(categories)} (got {name}: {', '.join(map(str, classes))})"
            )
        at = [list(categories).index(one) for one in classes]
        true_n, predicted_n = (np.column_stack([x, x[:, at].sum(axis=1)]) for x in (true_n, predicted_n))
    error = predicted_n - true_n
    columns = {"true": true_n, "found": predicted_n, "error": error, "relative": _divided(error, true_n)}
    return _by_place(columns, where, [*categories, *merged_classes])


def _by_place(columns: Mapping[str, np.ndarray], where, categories) -> pd.DataFrame:
    """Arrays (places, classes) as columns of a table; without ``where`` there is one unnamed place."""
    names = [None] if where is None else factorize_places(where, len(where))[1]
    table = {name: values.ravel() for name, values in columns.items()}
    table = {"category": pd.Categorical(np.tile(list(categories), len(names)), list(categories)), **table}
    return pd.DataFrame(table if where is None else {"municipality": np.repeat(names, len(categories)), **table})


def _rate(hit: np.ndarray, owners: np.ndarray | None, level: float) -> Estimate:
    if not len(hit):
        return Estimate(np.nan, np.nan, np.nan, 0)
    return rate(hit, level) if owners is None else clustered_rate(hit, owners, level)


def _codes(true, predicted, categories) -> tuple[np.ndarray, np.ndarray]:
    t, p = (_code(labels, categories, name) for labels, name in ((true, "true"), (predicted, "found")))
    if len(t) != len(p):
        raise ValueError(f"true and found must be labels of the same profiles (got {len(t)} and {len(p)})")
    return t, p


def _code(labels, categories, name: str) -> np.ndarray:
    """The index of each label among the categories; whole numbers are indices already."""
    if isinstance(labels, pd.Series):
        labels = labels.array
    if isinstance(labels, pd.Categorical):
        codes = np.r_[pd.Index(categories).get_indexer(labels.categories), -1][labels.codes].astype(np.int64)
    elif np.issubdtype((labels := np.asarray(labels)).dtype, np.integer):
        codes = labels.astype(np.int64)
    else:
        codes = pd.Index(categories).get_indexer(labels)
    wrong = (codes < 0) | (codes >= len(categories))
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
            f"whose must name the owner of each of the {n} profiles (got {len(owners)}, {int((owners < 0).sum())} missing)"
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
    """The quotient; NaN for a divisor of 0."""
    below = np.asarray(below, float)
    return np.asarray(above, float) / np.where(below == 0, np.nan, below)
