"""Answers of an adversary, given the dissimilarities of an attack: the three policies of the thesis (§3.3).

``ranking`` is the result of an attack's ``rank``: anonymous traces × known users, smaller is more alike, NaN = no profile. A
row's label is the oracle's answer ID(T), the true user. The attacks do not use it; the measures below need it.

``users`` are the attacked users UD. A trace that its mechanism erased is in no ranking; it counts as a failure if ``users``
names it. Ties count against the adversary: a user who is exactly as alike as the true user ranks before her.
"""

import numpy as np
import pandas as pd

from mobpriv.base.ranges import between, positive, whole

TIE = 1e-12  # dissimilarities nearer than this are equal: rounding must not break a tie


def min_k(ranking: pd.DataFrame, users=None, person=None) -> pd.Series:
    """Equation (3.8): the smallest k for which the top-k policy names the true user; infinite if none does.

    The share of users at or below k is the k-anonymity set metric of §4.7.1: users at risk from an adversary who names k.

    The result is one plus the number of others at least as alike. It is infinite if the trace was erased or has no profile, or
    if its user is not known. ``person`` (user -> person) gives several names to one person: naming any of them is a hit.
    """
    d = ranking.to_numpy(float)
    persons_of = (
        (lambda names: pd.Index(names)) if person is None else (lambda names: pd.Index([person.get(u, u) for u in names]))
    )
    # codes instead of names: one comparison of numbers per pair
    code, names = pd.factorize(persons_of(ranking.columns))
    same_person = names.get_indexer(persons_of(ranking.index))[:, None] == code if len(names) else np.zeros(d.shape, bool)
    true_distance = np.where(same_person & ~np.isnan(d), d, np.inf).min(axis=1, initial=np.inf)
    k = np.where(np.isinf(true_distance), np.inf, 1 + ((d <= true_distance[:, None] + TIE) & ~same_person).sum(axis=1))
    k = pd.Series(k, index=ranking.index, name="min k")
    return k if users is None else k.reindex(pd.Index(users, name=ranking.index.name), fill_value=np.inf)


def reidentified(ranking: pd.DataFrame, users=None, person=None) -> pd.Series:
    """Single-output policy, Equations (3.4) and (3.5): is the most alike known user the true one? The mean is the rate r."""
    return (min_k(ranking, users, person) == 1).rename("re-identified")


def successful_attacks(rankings, users, person=None) -> pd.Series:
    """Equation (4.9): by how many of the attacks each of the ``users`` is re-identified; 0 means protected.

    ``rankings``: the ``rank`` of each attack. A trace that is in no ranking counts as a failure of that attack.
    """
    rankings = list(rankings)
    if any(not isinstance(ranking, pd.DataFrame) for ranking in rankings):
        raise ValueError("rankings must be what the rank of each attack returned, one table an attack, in a list")
    users = pd.Index(users)
    hits = [reidentified(ranking, users, person) for ranking in rankings]
    return pd.Series(np.sum(hits, axis=0, dtype=int) if hits else 0, users, name="successful attacks")


def answer(ranking: pd.DataFrame) -> pd.Series:
    """Single-output policy, Equation (3.4): the most alike known user, or missing if no known user can be compared."""
    filled = ranking.fillna(np.inf)
    nearest = filled.idxmin(axis=1).astype(object) if filled.size else pd.Series(index=ranking.index, dtype=object)
    return nearest.where(ranking.notna().any(axis=1)).rename("answer")


def probabilities(ranking: pd.DataFrame, largest: float | None) -> pd.DataFrame:
    """Equation (3.1): P[ID(T) = U_i] = s(T, U_i) / Σ_j s(T, U_j), with s = 1 − d/``largest``.

    It is 0 where there is no profile. Rows sum to 1, except for a trace that is like no user at all (all 0).

    ``largest`` is the dissimilarity of strangers. §3.2 normalises distances "between 0 and 1", which Topsoe's bound 2 ln 2
    does. The author's program instead stretches each trace's own distances over [0, 1] (``largest=None``). The most alike user
    then has s = 1 and the least alike s = 0, whatever their distances.
    """
    if largest is None:
        nearest, farthest = ranking.min(axis=1), ranking.max(axis=1)
        d = ranking.sub(nearest, axis=0).div((farthest - nearest).replace(0, 1), axis=0)
    else:
        d = ranking / positive("largest, the dissimilarity of strangers,", largest)
    s = (1 - d).clip(lower=0).fillna(0.0)
    return s.div(s.sum(axis=1).replace(0, 1), axis=0)


def top_k(probability: pd.DataFrame, k: int) -> pd.DataFrame:
    """Equation (3.7): True for the ``k`` most probable users of each trace, always k; ties go to the first columns.

    It also names users for a trace that is like nobody. For a rate with ties against the adversary use :func:`min_k`.
    """
    whole("k", k, 1, probability.shape[1], f"must lie in 1 … {probability.shape[1]}, the number of known users, and be whole")
    place = np.argsort(np.argsort(-probability.to_numpy(), axis=1, kind="stable"), axis=1)
    return pd.DataFrame(place < k, index=probability.index, columns=probability.columns)


def threshold(probability: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Equation (3.9) with max for its min: True for every user whose probability is at least ``alpha``.

    With min, as printed, l_0 = 0 always satisfies it and every answer is empty.
    """
    between("alpha", alpha, 0, 1, "is a probability, in [0, 1]")
    return (probability >= alpha) & (probability > 0)


def threshold_curve(probability: pd.DataFrame, users=None) -> pd.DataFrame:
    """Mean precision and false positives of the threshold policy at every α that makes a difference: the probabilities that
    occur.

    Columns alpha (descending), precision (3.10), fp (3.11). Between two of them no answer changes, so no grid of α has a better
    point. When α falls below a probability, its trace's answer gets one name longer; only there does a trace's term of the
    means change.
    """
    p = probability.to_numpy(float)
    cases = len(p) if users is None else len(users)
    if users is not None and (unnamed := probability.index.difference(pd.Index(users))).size:
        raise ValueError(f"the users must name every trace (trace {unnamed[0]} is not among them)")
    true_column = probability.columns.get_indexer(probability.index)[:, None]
    order = np.argsort(-p, axis=1, kind="stable")
    size = np.arange(1, p.shape[1] + 1)
    hit = np.logical_or.accumulate(order == true_column, axis=1)
    steps = {"precision": hit / size, "fp": np.where(hit, 1 - 1 / size, 1.0)}
    alpha = np.take_along_axis(p, order, axis=1).ravel()
    descending = np.argsort(-alpha, kind="stable")
    descending = descending[alpha[descending] > 0]
    last = np.r_[alpha[descending][1:] != alpha[descending][:-1], True] if len(descending) else np.zeros(0, bool)
    means = {
        name: np.cumsum(np.diff(values, axis=1, prepend=0).ravel()[descending])[last] / cases for name, values in steps.items()
    }
    return pd.DataFrame({"alpha": alpha[descending][last], **means})


def precision(answers: pd.DataFrame, users=None) -> pd.Series:
    """Equation (3.10) for each trace: 1/|A| if the true user is in the answer A, else 0. Its mean is the precision p."""
    hit, size = _hits(answers, users)
    return (hit / size.clip(lower=1)).rename("precision")


def false_positives(answers: pd.DataFrame, users=None) -> pd.Series:
    """Equation (3.11) for each trace: 1 − 1/|A| if the true user is in A; 0 if A is empty; else 1. The mean is the rate fp.

    The sentence after Table 3.1 says fp = 1 for an empty answer; we compute the equation, which says 0.
    """
    hit, size = _hits(answers, users)
    return pd.Series(np.where(size == 0, 0.0, np.where(hit, 1 - 1 / size.clip(lower=1), 1.0)), size.index, name="fp")


def _hits(answers: pd.DataFrame, users) -> tuple[pd.Series, pd.Series]:
    column = answers.columns.get_indexer(answers.index)
    in_answer = answers.to_numpy(bool)
    true_named = in_answer[np.arange(len(in_answer)), column] if in_answer.size else np.zeros(len(in_answer), bool)
    hit = pd.Series((column >= 0) & true_named, answers.index)
    size = pd.Series(in_answer.sum(axis=1), answers.index)
    if users is not None:  # an erased trace gets an empty answer
        users = pd.Index(users, name=answers.index.name)
        hit, size = hit.reindex(users, fill_value=False), size.reindex(users, fill_value=0)
    return hit, size
