"""Metrics on secrets (Euclidean, Hamming, elastic) and sparse graphs that span a metric.

Places are rows (east, north) in metres, shape (n, 2). All distances are returned as matrices indexed by the secret first.
"""

from typing import NamedTuple

import numba
import numpy as np
from scipy.sparse.csgraph import shortest_path

from mobpriv.channels import checks


def euclidean(a, b=None) -> np.ndarray:
    """Straight-line distances in metres between places ``a`` (n, 2) and ``b`` (m, 2; by default ``a``); shape (n, m)."""
    a = checks.matrix(a, "centres", columns=2)
    b = a if b is None else checks.matrix(b, "centres", columns=2)
    checks.fits(len(a), len(b), "the distances")
    return np.hypot(a[:, None, 0] - b[None, :, 0], a[:, None, 1] - b[None, :, 1])


def hamming(n: int) -> np.ndarray:
    """Hamming distance, shape (n, n): 0 on the diagonal and 1 elsewhere.

    It is the cost c of the paper's §9 and the metric of equality.
    """
    if n < 1:
        raise ValueError(f"there must be at least one secret (got {n})")
    checks.fits(n, n, "the Hamming distance")
    return 1.0 - np.eye(n)


def elastic(centres, mass, need: float) -> np.ndarray:
    """A metric under which every place hides among enough privacy mass; shape (n, n), in metres.

    Source: Chatzikokolakis, Palamidessi, Stronati, *Constructing elastic distinguishability metrics for location privacy*, PETS
    2015.

    Every place x has a privacy mass m(x) > 0, which says how well it hides a user. Examples are its number of visitors or of
    points of interest, plus a little for its area. The metric d must satisfy, for every place x and every length l (as long as
    the total mass suffices),

        m({y: d(x, y) ≤ l}) ≥ req(l)

    Here req(l) = ``need``·π·l² with ``need`` in mass per m², so d scales as the root of the local density. A metre counts for
    more in a dense place than in the empty country, where the same ε hides a place in a wider circle. The requirement holds at
    every l, also just before the next ring of places comes in reach. Therefore d is conservative: on squares of side a whose
    density is ``need``, a step to the neighbouring square counts a/√π = 0.56 a, not a.

    Construction: place y must come in reach of x at the length where the places nearer to x no longer suffice,

        w(x, y) = req⁻¹(m({z: |x − z| < |x − y|})),      d = shortest paths of the edge lengths min(w(x, y), w(y, x))

    The requirement holds by construction: the ball of all y with w(x, y) ≤ l has the mass required, and shortest paths only
    shorten.

    Departures from the source: we take only its requirement. The construction above is ours, and may give another metric than
    the source's. Mass and need are arguments here; in the source they come from a map and a chosen place.
    """
    centres = checks.matrix(centres, "centres", columns=2)
    mass = np.asarray(mass, float)
    if mass.shape != (len(centres),):
        raise ValueError(f"mass must have one value a place, shape {(len(centres),)} (got shape {mass.shape})")
    poor = ~((mass > 0) & np.isfinite(mass))
    if poor.any():
        i, remedy = int(poor.argmax()), "give every place a little for its area"
        raise ValueError(f"the privacy mass must be positive: {remedy} (got {mass[i]} at place {i})")
    if not 0 < need < np.inf:
        raise ValueError(f"need must be positive, in mass per m² (got {need})")
    straight = euclidean(centres)
    twins = np.argwhere((straight == 0) & ~np.eye(len(centres), dtype=bool))
    if len(twins):
        i, j = twins[0]
        raise ValueError(f"places must differ (places {i} and {j} are both at {centres[i].tolist()})")
    reach = np.sqrt(_nearer_mass(straight, mass) / (need * np.pi))
    np.fill_diagonal(reach, 0.0)
    # rounding differs between the two directions of a path: make d exactly symmetric
    d = shortest_path(np.minimum(reach, reach.T), method="FW", directed=False)
    return np.minimum(d, d.T)


def _nearer_mass(straight, mass) -> np.ndarray:
    """For every (x, y), the mass of the places nearer to x than y is; distances equal within 1e-9 do not count as nearer."""
    nearer = np.empty_like(straight)
    for x, row in enumerate(straight):
        order = np.argsort(row, kind="stable")
        total = np.append(0.0, np.cumsum(mass[order]))
        nearer[x] = total[np.searchsorted(row[order], row * (1 - 1e-9), side="left")]
    return nearer


class Spanner(NamedTuple):
    """Pairs whose shortest paths approximate a metric: ``pairs`` (m, 2), their ``metric`` (n, n), and max metric/d."""

    pairs: np.ndarray
    metric: np.ndarray
    dilation: float


def spanner(d, stretch: float) -> Spanner:
    """A greedy ``stretch``-spanner of the metric ``d``.

    Source: Bordenabe, Chatzikokolakis, Palamidessi, CCS 2014, §4.

    Pairs are taken from the shortest to the longest (ties by index). A pair becomes an edge if the path along the edges so far
    is longer than ``stretch`` times its distance. Then d ≤ metric ≤ dilation · d with dilation ≤ ``stretch``.

    Two smaller programs bracket the optimum of (22) at ε, because the constraints of the edges imply those of all pairs:

    * With ``metric`` at ε / dilation the channel is ε-private for d: its cost is an **upper** bound.
    * With ``metric`` at ε the program has only constraints that (22) implies (metric ≥ d): its cost is a **lower** bound.

    O(n²) for each of the edges, whose number is a few times n: below 1 s at n = 1200.
    """
    d = checks.metric(d)
    if not 1 <= stretch < np.inf:
        raise ValueError(f"stretch must be at least 1 (got {stretch})")
    first, second = np.triu_indices(len(d), 1)
    order = np.argsort(d[first, second], kind="stable")
    pairs, metric = _greedy(d, first[order], second[order], float(stretch))
    metric = np.minimum(metric, metric.T)  # rounding differs between the two directions
    distinct = d > 0
    dilation = float((metric[distinct] / d[distinct]).max()) if distinct.any() else 1.0
    return Spanner(pairs, metric, max(dilation, 1.0))


@numba.njit(cache=True)
def _greedy(d, first, second, stretch):
    n = len(d)
    metric = np.full((n, n), np.inf)
    for i in range(n):
        metric[i, i] = 0.0
    edges = np.empty((len(first), 2), np.int64)
    n_edges = 0
    for k in range(len(first)):
        i, j = first[k], second[k]
        if metric[i, j] <= stretch * d[i, j] * (1 + 1e-12):  # equal but for rounding: no edge needed
            continue
        edges[n_edges] = i, j
        n_edges += 1
        from_i, from_j, length = metric[i].copy(), metric[j].copy(), d[i, j]
        for a in range(n):
            over_i, over_j = from_i[a] + length, from_j[a] + length  # a → i → j and a → j → i
            if over_i < from_j[a]:
                for b in range(n):
                    metric[a, b] = min(metric[a, b], over_i + from_j[b])
            elif over_j < from_i[a]:
                for b in range(n):
                    metric[a, b] = min(metric[a, b], over_j + from_i[b])
    return edges[:n_edges], metric
