"""Affinity between POIs and the neighbourhood N(b, n) of a profile.

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
Definition 8, §III-B and §V-B.

Boolean profiles are arrays (…, users, m). All functions process all users, and several samples, at once.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mobpriv.base.ranges import one_of

_VARIANTS, _TIES = ("printed", "further"), ("all", "first")
_TIE_DECIMALS = 9  # two affinities that agree to this many decimals are a tie: rounding errors must not break ties


def affinity(booleans) -> np.ndarray:
    """Affinity matrix Aff_j1j2 = |{i | b_ij1 = 1 and b_ij2 = 1}| / n of §V-B, shape (…, m, m).

    The diagonal holds the share of users at each POI.
    """
    values = np.asarray(booleans)
    if values.dtype.kind not in "biu" and not np.isfinite(values.astype(float)).all():
        raise ValueError(
            f"profiles must hold finite numbers or truth values (got {values[~np.isfinite(values.astype(float))][0]})"
        )
    b = (values != 0).astype(float)  # "may be computed from count profiles too" (§V-B)
    if b.ndim < 2 or not b.shape[-2]:
        raise ValueError(
            f"the affinity is a share of users: profiles must have the shape (…, users, m), users ≥ 1 (got {b.shape})"
        )
    return np.swapaxes(b, -1, -2) @ b / b.shape[-2]


def profile_affinity(booleans, matrix) -> np.ndarray:
    """Affinity of each profile to each POI, Aff(i, j) = Σ_{j1: b_ij1 = 1} Aff_{j1 j} of Definition 8, shape (…, users, m)."""
    return np.round(np.asarray(booleans, float) @ matrix, _TIE_DECIMALS)


def neighbourhood(booleans, matrix, n, variant: str = "printed", ties: str = "all") -> np.ndarray:
    """Mask χ_i = N(b_i, n_i) of §III-B, (…, users, m): the visited POIs and the POIs with the highest affinity to the profile.

    ``variant`` selects the rule:

    * ``printed``: {j | b_ij = 1} ∪ {j | Aff(i, j) = Aff_k for some k ≤ n_i}, where Aff_1 ≥ … ≥ Aff_m are the affinities to
      *all* POIs. Most of the n POIs are therefore visited ones.
    * ``further``: the n_i unvisited POIs with the highest affinity, in addition to the visited POIs (all, if fewer exist).

    ``ties="all"`` includes every POI that ties with the n-th, as printed ("equal to Aff_k"). ``ties="first"`` includes exactly
    n, the first ones in case of ties. ``n`` is one number, or one number per user.

    For a profile without visits all affinities are 0 and tie. As printed, χ_i is then the set of all POIs if n_i ≥ 1.
    """
    one_of("variant", variant, _VARIANTS)
    one_of("ties", ties, _TIES)
    b = np.asarray(booleans, bool)
    n = _numbers(n, b.shape)
    matrix = _matrix(matrix, b.shape[-1])
    score = profile_affinity(b, matrix / (matrix.max(initial=0) or 1.0))  # ties: to 9 decimals of the largest affinity
    if variant == "further":
        score[b] = -np.inf
    order = np.argsort(-score, axis=-1, kind="stable")
    if ties == "first":
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.broadcast_to(np.arange(b.shape[-1]), b.shape), axis=-1)
        return b | (rank < n)
    threshold = np.take_along_axis(score, np.take_along_axis(order, np.maximum(n - 1, 0), axis=-1), axis=-1)
    return b | ((score >= threshold) & (n > 0))


def _numbers(n, shape) -> np.ndarray:
    """n_i as whole numbers of shape (…, users, 1)."""
    m = shape[-1]
    values = np.asarray(n)
    if values.dtype.kind not in "iu" or (values < 0).any() or (values > m).any():
        worst = values if values.ndim == 0 or values.dtype.kind not in "iu" else values[(values < 0) | (values > m)].flat[0]
        raise ValueError(f"n must be a whole number of POIs, in 0 … {m} (got {worst})")
    if values.ndim and values.shape != shape[-2:-1]:
        raise ValueError(f"n must be one number, or one for each of the {shape[-2]} users (got {values.shape})")
    return np.broadcast_to(values[..., None] if values.ndim else values, (*shape[:-1], 1)).astype(np.intp)


def _matrix(matrix, m) -> np.ndarray:
    matrix = np.asarray(matrix, float)
    if matrix.shape[-2:] != (m, m):
        raise ValueError(f"affinity must be a matrix of {m} × {m} POIs (got shape {matrix.shape})")
    if not (np.isfinite(matrix) & (matrix >= 0)).all():
        bad = matrix[~(np.isfinite(matrix) & (matrix >= 0))].flat[0]
        raise ValueError(f"affinity must hold finite numbers, none negative (got {bad})")
    return matrix


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """χ_i = N(b_i, n_i), computed from each profile that is sanitised; see :func:`neighbourhood`.

    Because χ_i depends on the profile, a mechanism satisfies d_{χ,ε} only for a given χ_i. An output that is possible under one
    profile may be impossible under its neighbour (:mod:`mobpriv.metrics.visits_audits`).
    """

    n: int | np.ndarray
    affinity: np.ndarray  # (m, m)
    variant: Literal["printed", "further"] = "printed"
    ties: Literal["all", "first"] = "all"

    def __post_init__(self):
        one_of("variant", self.variant, _VARIANTS)
        one_of("ties", self.ties, _TIES)
        try:
            matrix = np.array(self.affinity, float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"affinity must be a matrix of POIs × POIs ({error})") from None
        if matrix.ndim != 2 or not matrix.size:
            raise ValueError(f"affinity must be a matrix of POIs × POIs (got shape {matrix.shape})")
        matrix = _matrix(matrix, len(matrix))
        matrix.flags.writeable = False
        object.__setattr__(self, "affinity", matrix)
        n = np.array(self.n)
        _numbers(n, (len(n) if n.ndim else 1, len(matrix)))
        if n.ndim:
            n.flags.writeable = False
            object.__setattr__(self, "n", n)

    def __repr__(self) -> str:
        n = self.n if np.ndim(self.n) == 0 else f"{np.min(self.n)} … {np.max(self.n)}"
        return f"N(b, {n}), {self.variant}" + (", ties by order" if self.ties == "first" else "")

    def masks(self, booleans) -> np.ndarray:
        return neighbourhood(booleans, self.affinity, self.n, self.variant, self.ties)
