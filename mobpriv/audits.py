"""Is d_{χ,ε}-privacy kept? Exact worst cases for the mechanisms of Olivier and Quertier, *Towards an in-depth understanding of privacy
parameters for randomized sanitization mechanisms*, §III: Propositions 7 and 9, and what they leave out.

The coordinates in χ are independent, so for a fixed χ the worst log-ratio of two profiles' outputs is the sum over them, and by the
triangle inequality it is enough to look at one coordinate and values that differ by 1.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.affinity import Neighbourhood
from mobpriv.call_profiles import as_counts
from mobpriv.mechanisms.profiles.choices import common, of_users
from mobpriv.ranges import whole

LARGEST = 12  # count up to which values are looked at; beyond, every ratio repeats
MOST_POIS = 12  # whose 2^m profiles are all looked at


class Loss(NamedTuple):
    """The worst of all: how much likelier ``published`` is under the count ``true`` than under ``neighbour``."""

    epsilon: float  # |ln P(published | true) − ln P(published | neighbour)|, their ℓ1 distance being 1; infinite: impossible under one
    true: int
    neighbour: int
    published: int


def privacy_loss(mechanism, largest: int = LARGEST) -> Loss:
    """The least ε for which the mechanism is d_{χ,ε}-private, given χ: over every output of a coordinate and every two values 1 apart.

    Exact: from the probability of each output. Counts are looked at up to ``largest``, outputs to twice that: farther from the true
    count than 1 and above 0, both laws fall by e^−ε a visit, so that no new ratio occurs.
    """
    whole("largest", largest, 2)
    values = np.array(getattr(mechanism, "values", range(largest + 1)))
    outputs = np.array(getattr(mechanism, "outputs", range(2 * largest + 1)))
    log_p = np.asarray(mechanism.log_probability(outputs[None, :], values[:, None]), float)
    with np.errstate(invalid="ignore"):
        ratio = log_p[1:] - log_p[:-1]  # nan: impossible under both
    worst = np.nan_to_num(np.abs(ratio), nan=0.0, posinf=np.inf)
    i, o = np.unravel_index(worst.argmax(), worst.shape)
    more, less = (i + 1, i) if ratio[i, o] > 0 else (i, i + 1)
    return Loss(float(worst[i, o]), int(values[more]), int(values[less]), int(outputs[o]))


def composed(loss: Loss | float, releases: int = 1, distance: int = 1) -> float:
    """The worst log-ratio after so many independent releases of one profile, against a profile at that ℓ1 distance in χ.

    Exact for boolean profiles, if χ holds so many POIs: each release and each coordinate may show its worst output. A whole
    profile of m POIs is so protected by m·ε only; two days of it by 2·m·ε.
    """
    whole("releases", releases, 1)
    whole("distance", distance, 0)
    epsilon = loss.epsilon if isinstance(loss, Loss) else float(loss)
    return releases * distance * epsilon if distance else 0.0


def telling_probability(chi: np.ndarray, neighbours_chi: np.ndarray, k, p) -> np.ndarray:
    """How likely a profile publishes what its neighbour cannot: b' differs from b at POI k, χ and χ' are theirs (…, m).

    Outside χ' the neighbour publishes b' as it is. So b gives itself away where it flips a POI of χ outside χ' (each with probability
    p), and at k itself, if k is outside χ', where it does not flip.
    """
    chi, other = np.asarray(chi, bool), np.asarray(neighbours_chi, bool)
    at_k = np.zeros(chi.shape, bool)
    np.put_along_axis(at_k, np.broadcast_to(np.asarray(k), chi.shape[:-1])[..., None], True, axis=-1)
    flips = (chi & ~other & ~at_k).sum(axis=-1)
    outside = (~other & at_k).any(axis=-1)
    return 1 - (1 - p) ** flips * np.where(outside, p, 1.0)


def counterexamples(mechanism) -> pd.DataFrame:
    """All pairs of neighbouring boolean profiles of which one, b, can publish what the other, b', cannot: with χ = N(b, n) no ε holds.

    For randomised response on a small affinity matrix. One row a pair: the profiles and such an output as texts of 0 and 1, χ and
    χ' too, and the probability that b publishes one of them. Without a row, χ does not depend on the profile in a way that tells.
    """
    m = len(_neighbourhood(mechanism).affinity)
    common(mechanism)
    if m > MOST_POIS:
        raise ValueError(
            f"all profiles are looked at for at most {MOST_POIS} POIs (got {m}): count_telling looks at those of a table"
        )
    b = (np.arange(1 << m)[:, None] >> np.arange(m)[::-1] & 1).astype(bool)
    chi = mechanism.chi.of(b)
    found = []
    for k in range(m):
        other = np.arange(1 << m) ^ (1 << (m - 1 - k))
        probability = telling_probability(chi, chi[other], k, mechanism.flip)
        for i in np.flatnonzero(probability > 0):
            said = b[i].copy()
            new = np.flatnonzero(chi[i] & ~chi[other[i]] & (np.arange(m) != k))
            if chi[other[i], k]:
                said[new[0]] = ~said[new[0]]
            found.append((*(_text(row) for row in (b[i], b[other[i]], chi[i], chi[other[i]], said)), float(probability[i])))
    return pd.DataFrame(found, columns=["profile", "neighbour", "chi", "neighbours_chi", "published", "probability"])


def count_telling(mechanism, profiles: pd.DataFrame) -> pd.DataFrame:
    """In data: of each user how many of her m neighbouring profiles, one POI more or less, some output of hers excludes.

    Columns neighbours, and probability: the largest, over them, that she publishes such an output. ``profiles`` count or are boolean.
    """
    table = profiles if profiles.to_numpy().dtype.kind == "b" else as_counts(profiles) > 0
    b = table.to_numpy(bool)
    chi, p = _neighbourhood(mechanism).of(b), np.reshape(of_users(mechanism, profiles).flip, -1)
    neighbours, largest = np.zeros(len(b), np.int64), np.zeros(len(b))
    for k in range(b.shape[1]):
        other = b.copy()
        other[:, k] ^= True
        probability = telling_probability(chi, mechanism.chi.of(other), k, p)
        neighbours += probability > 0
        largest = np.maximum(largest, probability)
    return pd.DataFrame({"neighbours": neighbours, "probability": largest}, index=profiles.index)


def _neighbourhood(mechanism) -> Neighbourhood:
    chi = getattr(mechanism, "chi", None)
    if not isinstance(chi, Neighbourhood) or not hasattr(mechanism, "flip") or not mechanism.modulo:
        raise ValueError(f"the mechanism must be randomised response on a Neighbourhood, modulo 2 (got {mechanism!r})")
    return chi


def _text(row) -> str:
    return "".join("1" if x else "0" for x in row)
