"""Exact worst-case privacy loss: do the mechanisms satisfy d_{χ,ε}-privacy?

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§III, Propositions 7 and 9, and what they leave out.

Whether the guarantee holds depends on the pairs of profiles that it compares. Definition 6 compares any two profiles of all
POIs, but outside of χ the true values are published. Two profiles that differ only there have distance 0 and no output in
common. Propositions 7 and 9 hold for profiles that agree outside of χ. This module assumes that too; :func:`profile_loss`
computes both.

The coordinates in χ are independent. For a fixed χ the worst log-ratio of two profiles' outputs is therefore the sum over the
coordinates. By the triangle inequality one coordinate with values that differ by 1 suffices. A
:class:`mobpriv.visits.affinity.Neighbourhood` is not fixed: it depends on the profile.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.ranges import whole
from mobpriv.mechanisms.visits.choices import common_epsilon, in_table_order
from mobpriv.visits.affinity import Neighbourhood
from mobpriv.visits.profiles import as_counts

_LARGEST_COUNT = 12  # largest count that is examined; beyond it every ratio repeats
_MAX_POIS = 12  # most POIs for which all 2^m profiles are examined
_LOG_RATIO_TOLERANCE = 1e-12  # tolerance for the log-ratio of two equal laws


class PrivacyLoss(NamedTuple):
    """The worst case: how much more likely ``published`` is under the count ``true`` than under ``neighbour``."""

    epsilon: float  # |ln P(published | true) − ln P(published | neighbour)| at ℓ1 distance 1; infinite if impossible under one of them
    true: int
    neighbour: int
    published: int


def privacy_loss(mechanism, largest: int = _LARGEST_COUNT) -> PrivacyLoss:
    """The smallest ε for which the mechanism is d_{χ,ε}-private, over all outputs of a coordinate and all values at distance 1.

    The result is exact: it uses the probability of each output. It examines counts up to ``largest`` and outputs up to twice
    that. Farther than 1 from the true count and above 0, both laws decrease by e^−ε per visit, so no new ratio occurs.

    With χ = N(b, n) the smallest ε is infinite as soon as a POI is outside of some profile's χ. A user who visits this POI can
    publish the visit; a neighbouring profile without the visit cannot.

    >>> from mobpriv.mechanisms.visits import LaplaceCounts
    >>> round(privacy_loss(LaplaceCounts(2.0)).epsilon, 9)
    2.0
    >>> privacy_loss(LaplaceCounts(2.0, Neighbourhood(1, np.eye(3)))).epsilon
    inf
    """
    whole("largest", largest, 2)
    if isinstance(getattr(mechanism, "chi", None), Neighbourhood) and not _is_everything(mechanism.chi):
        return PrivacyLoss(np.inf, 1, 0, 1)
    values = np.array(getattr(mechanism, "values", range(largest + 1)))
    outputs = np.array(getattr(mechanism, "outputs", range(2 * largest + 1)))
    log_p = np.asarray(mechanism.log_probability(outputs[None, :], values[:, None]), float)
    with np.errstate(invalid="ignore"):
        ratio = log_p[1:] - log_p[:-1]  # NaN if impossible under both
    worst = np.nan_to_num(np.abs(ratio), nan=0.0, posinf=np.inf)
    i, o = np.unravel_index(worst.argmax(), worst.shape)
    more, less = (i + 1, i) if ratio[i, o] > 0 else (i, i + 1)
    return PrivacyLoss(float(worst[i, o]), int(values[more]), int(values[less]), int(outputs[o]))


def composed(loss: PrivacyLoss | float, releases: int = 1, distance: int = 1) -> float:
    """The worst log-ratio after ``releases`` independent releases of one profile, compared with a profile at this ℓ1
    ``distance`` in χ.

    It is exact for boolean profiles if χ has that many POIs: each release and each coordinate may show its worst output. A
    whole profile of m POIs is thus protected by m·ε only, and two days of it by 2·m·ε.
    """
    whole("releases", releases, 1)
    whole("distance", distance, 0)
    epsilon = loss.epsilon if isinstance(loss, PrivacyLoss) else float(loss)
    return releases * distance * epsilon if distance else 0.0


def profile_loss(law, profiles, chi, agreeing: bool = True) -> float:
    """The smallest ε with P(y | a) ≤ e^(ε·|a − a'|_{1,χ}) · P(y | a') for every output y and every two of the ``profiles``.

    * ``law``: ln P(y | a), shape (profiles, outputs).
    * ``chi``: mask of the POIs.
    * ``agreeing``: compare only pairs that agree outside of χ; if False, all pairs, as Definition 6 states.

    >>> both, chi = np.array([[0], [1]]), np.array([False])  # one POI, not in χ: the truth is published
    >>> law = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    >>> profile_loss(law, both, chi), profile_loss(law, both, chi, agreeing=False)
    (0.0, inf)
    """
    law, a, chi = np.asarray(law, float), np.asarray(profiles, np.int64), np.asarray(chi, bool)
    differences = np.abs(a[:, None] - a)
    distance, outside = differences[..., chi].sum(axis=-1), differences[..., ~chi].any(axis=-1)
    with np.errstate(invalid="ignore"):  # NaN if impossible under both
        ratio = np.nan_to_num(np.abs(law[:, None] - law), nan=0.0, posinf=np.inf).max(axis=-1)
    pairs = ~outside if agreeing else np.ones(outside.shape, bool)
    if (ratio[pairs & (distance == 0)] > _LOG_RATIO_TOLERANCE).any():
        return np.inf
    return float((ratio / np.maximum(distance, 1))[pairs].max())


def _telling_probability(chi: np.ndarray, neighbours_chi: np.ndarray, k, kept, erased) -> np.ndarray:
    """Probability that a profile b publishes an output that its neighbour b' cannot publish.

    b' differs from b at POI ``k``; ``chi`` and ``neighbours_chi`` are the χ of both, shape (…, m). ``kept`` and ``erased`` are
    the probabilities that 0, and that 1, is published as 0 in χ.

    Outside χ' the neighbour publishes b' unchanged. The output therefore excludes b' in two cases:

    * a POI of χ outside χ' that b did not visit is published as visited;
    * k is outside χ' and the visit to k is not erased.
    """
    chi, other = np.asarray(chi, bool), np.asarray(neighbours_chi, bool)
    at_k = np.zeros(chi.shape, bool)
    np.put_along_axis(at_k, np.broadcast_to(np.asarray(k), chi.shape[:-1])[..., None], True, axis=-1)
    zeros = (chi & ~other & ~at_k).sum(axis=-1)
    outside = (~other & at_k).any(axis=-1)
    return 1 - kept**zeros * np.where(outside, erased, 1.0)


def counterexamples(mechanism) -> pd.DataFrame:
    """All pairs of neighbouring profiles of which one, b, can publish an output that the other, b', cannot.

    For such pairs no ε holds with χ = N(b, n). Use a small affinity matrix. Counts are limited to 0 and 1, because larger ones
    have the same neighbourhoods. Each row is a pair:

    * the profiles, such an output, χ and χ' as texts of 0 and 1;
    * the probability that b publishes one of these outputs.

    If there is no row, the dependence of χ on the profile reveals nothing.
    """
    m = len(_neighbourhood(mechanism).affinity)
    kept, erased = _zero_probabilities(mechanism, common_epsilon(mechanism))
    if m > _MAX_POIS:
        raise ValueError(
            f"all profiles are examined for at most {_MAX_POIS} POIs (got {m}): count_telling examines those of a table"
        )
    b = _every_profile(m)
    chi = mechanism.chi.masks(b)
    rows = []
    for k in range(m):
        neighbour = np.arange(1 << m) ^ (1 << (m - 1 - k))
        probability = _telling_probability(chi, chi[neighbour], k, kept, erased)
        for i in np.flatnonzero(probability > 0):
            perturbed = b[i].copy()
            flippable = np.flatnonzero(chi[i] & ~chi[neighbour[i]] & (np.arange(m) != k))
            if chi[neighbour[i], k]:
                perturbed[flippable[0]] = ~perturbed[flippable[0]]
            rows.append(
                (*(_text(row) for row in (b[i], b[neighbour[i]], chi[i], chi[neighbour[i]], perturbed)), float(probability[i]))
            )
    return pd.DataFrame(rows, columns=["profile", "neighbour", "chi", "neighbours_chi", "published", "probability"])


def count_telling(mechanism, profiles: pd.DataFrame) -> pd.DataFrame:
    """For each user of a table, count the neighbouring profiles (one POI more or less) that some output of hers excludes.

    Columns: neighbours (of m), and probability, the largest probability over them that she publishes such an output.
    ``profiles`` hold counts or booleans. For a mechanism on counts a neighbour has one visit more or less. If the user was at a
    POI twice, her neighbour was there too.
    """
    counts = profiles if profiles.to_numpy().dtype.kind == "b" else as_counts(profiles)
    c = counts.to_numpy().astype(np.int64)
    b = c > 0
    chi = _neighbourhood(mechanism).masks(b)
    epsilon = np.broadcast_to(np.reshape(in_table_order(mechanism, profiles).epsilon, -1), len(b))
    distinct, index = np.unique(epsilon, return_inverse=True)
    kept, erased = np.array([_zero_probabilities(mechanism, float(e)) for e in distinct]).reshape(-1, 2)[index].T
    neighbours, largest = np.zeros(len(b), np.int64), np.zeros(len(b))
    for k in range(b.shape[1]):
        neighbour = b.copy()
        neighbour[:, k] ^= True
        probability = _telling_probability(chi, mechanism.chi.masks(neighbour), k, kept, erased)
        if not hasattr(mechanism, "flip"):  # a mechanism on counts
            probability = np.where(c[:, k] > 1, 0.0, probability)
        neighbours += probability > 0
        largest = np.maximum(largest, probability)
    return pd.DataFrame({"neighbours": neighbours, "probability": largest}, index=profiles.index)


def _zero_probabilities(mechanism, epsilon: float) -> tuple[float, float]:
    """Probabilities in χ that 0, and that 1, is published as 0, for this ε."""
    return tuple(np.exp(replace(mechanism, epsilon=epsilon).log_probability(0, np.arange(2))))


def _neighbourhood(mechanism) -> Neighbourhood:
    chi = getattr(mechanism, "chi", None)
    if not isinstance(chi, Neighbourhood) or not getattr(mechanism, "modulo", True):
        raise ValueError(f"the mechanism must perturb a Neighbourhood, booleans modulo 2 (got {mechanism!r})")
    return chi


def _is_everything(chi: Neighbourhood) -> bool:
    """Whether N(b, n) is the set of all POIs for every profile, so that it reveals nothing about the profile.

    Raises ValueError if this would require examining too many profiles.
    """
    m, n = len(chi.affinity), int(np.min(chi.n))
    if n >= m:
        return True
    smallest = replace(chi, n=n)
    if m <= _MAX_POIS:
        return bool(smallest.masks(_every_profile(m)).all())
    single = np.eye(m, dtype=bool)
    if not (smallest.masks(single).all() and smallest.masks(~single).all()):
        return False
    if (chi.affinity == chi.affinity[0, 0]).all() and chi.ties == "all":
        return True
    raise ValueError(
        f"whether N(b, {n}) is ever less than all {m} POIs is examined for at most {_MAX_POIS}: choose another affinity"
    )


def _every_profile(m: int) -> np.ndarray:
    """All boolean profiles of m POIs, in the order of binary numbers, (2^m, m)."""
    return (np.arange(1 << m)[:, None] >> np.arange(m)[::-1] & 1).astype(bool)


def _text(row) -> str:
    return "".join("1" if x else "0" for x in row)
