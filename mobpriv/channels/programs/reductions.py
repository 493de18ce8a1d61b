"""What can be left out of the linear programs (21) to (24) exactly, and what must then be checked again.

Source of the programs: Shokri, *Privacy Games*, PETS 2015.

Columns P (m, n) hold p(o|s) with the observable first. B = eps d_eps are the exponents of (22b), inf for pairs without a
constraint, and ratio = exp(-B).

- Observables (`kept_observables`). Moving all of column o to o' preserves (22b) and never lowers the distortion privacy. It
  does not raise the cost if sum_s pi(s) (c(o, s) - c(o', s)) q(s) >= 0 for every q that satisfies (22b). It suffices to check
  the least such q with q(a) = 1. Its q(s) is exp(-eps d(s, a)) where the bracket is positive, exp(eps d(s, a)) where it is
  negative. For the Hamming cost that is pi(o) <= pi(o') exp(-eps d(o, o')): a likelier neighbour makes o superfluous.
- Estimates. h can be left out of (24b) if another h' has d(h', s) <= d(h, s) for every s that occurs. The others are all
  listed from the start, because every estimate binds for some observable.
- Secrets that never occur, lazily. Solve without them; a secret s then extends the channel if

      sum_o L_o <= 1 <= sum_o U_o with L_o = max_t exp(-eps d(s, t)) p(o|t), U_o = min_t exp(eps d(s, t)) p(o|t)

  The secrets that do not are put into the program, which is solved again. A program without some secrets is a relaxation: its
  bound holds. A program where these secrets have pairs only with the core, the secrets that occur, is a relaxation, too, and
  far cheaper (`blocks`). At the end all are filled in from the core one after the other, the one with the least room first;
  one that fails becomes core. On a lattice many fail in other orders, hardly any in this one. Room for each of several
  secrets is not always room for all of them: the tests have a tree.
- Pairs, lazily. Start with neighbours, add for every observable the pairs that the solution violates, solve again: also a
  relaxation. Pairs that are never near their limit do harm: they bend the interior-point method's path, which then takes up
  to three times the steps.
"""

import numba
import numpy as np

from mobpriv.channels.programs.certificate import VIOLATION, PairConstraints, Program

_NEIGHBOURHOOD = 4
"""Size of the neighbourhood of a secret that does not fit, from which only the worst is added to the program at once."""
_DETOUR = 0.02
"""Pairs whose distance is within this share of a path over a third secret are left out of the first program."""
_NEARLY, _GIVEN = 0.3, 1e-7
"""When a pair is violated, pairs whose probabilities are within the share NEARLY of the limit are added, too: they would be
next. Probabilities below GIVEN are all near the limit, so they do not predict violations.
"""
REPAIR = 1e-10
"""Violations that this share of a constant channel repairs are repaired so; the cost hardly changes."""
_SMALLEST_EXPONENT, _LARGEST_EXPONENT = 1e-12, 600.0
"""Exponents of constrained pairs are clipped to this range.

Nearer to 0 the constraint has no interior (the certificate then shows a violation of 1e-12 at most). The factor exp(-600) costs
nothing, and leaves no probability at 0, which no exponent allows.
"""


def ratios(exponents: np.ndarray) -> np.ndarray:
    """exp(-B) in (22b), 0 only for pairs without a constraint."""
    return np.where(np.isfinite(exponents), np.exp(-np.clip(exponents, _SMALLEST_EXPONENT, _LARGEST_EXPONENT)), 0.0)


def kept_observables(cost, prior, ratio: np.ndarray, secrets: np.ndarray) -> np.ndarray:
    """The observables that no other one makes superfluous; the most costly are tried first. Prior None: for (12)."""
    weights = np.ones(len(secrets)) if prior is None else prior[secrets]
    cost = np.ascontiguousarray(cost[secrets].T)
    order = np.argsort(-(cost @ weights), kind="stable")
    within = np.zeros((len(secrets),) * 2) if prior is None else np.ascontiguousarray(ratio[np.ix_(secrets, secrets)])
    return np.flatnonzero(_not_superfluous(cost, weights, within, order))


@numba.njit(cache=True)
def _not_superfluous(cost, weights, ratio, order):
    """Mark the observables that stay. An observable is only merged into one that is still there, so there are no cycles."""
    m, n = cost.shape
    kept = np.ones(m, dtype=np.bool_)
    for o in order:
        for other in range(m):
            if other == o or not kept[other]:
                continue
            anchor, least = -1, 0.0
            for s in range(n):
                difference = weights[s] * (cost[o, s] - cost[other, s])
                if difference < least:
                    anchor, least = s, difference
            if anchor < 0:
                kept[o] = False
                break
            total = 0.0
            for s in range(n):
                difference = weights[s] * (cost[o, s] - cost[other, s])
                k = 1.0 if s == anchor else ratio[anchor, s]
                if difference >= 0:
                    total += difference * k
                elif k > 0:
                    total += difference / k
                else:
                    total = -np.inf
            if total >= 0:
                kept[o] = False
                break
    return kept


def kept_estimates(error: np.ndarray) -> np.ndarray:
    """The estimates (columns) for which no other is as near or nearer for every secret; of identical ones the last."""
    kept = np.ones(error.shape[1], dtype=bool)
    for h in np.argsort(-error.sum(axis=0), kind="stable"):
        nearer = (error <= error[:, [h]]).all(axis=0) & kept
        nearer[h] = False
        kept[h] = not nearer.any()
    return np.flatnonzero(kept)


def first_pairs(exponents: np.ndarray, secrets: np.ndarray, core: int, new: np.ndarray, observables: np.ndarray) -> np.ndarray:
    """The pairs that `new` secrets (a mask) add to a program, by their `pair_numbers`.

    For every observable these are the pairs of neighbours with at least one of the first `core` secrets. A secret without a
    pair gets p >= 0, which otherwise follows from the pairs.
    """
    inner = np.ascontiguousarray(exponents[np.ix_(secrets, secrets)])
    pairs = np.argwhere(_neighbours(inner, core, _DETOUR))
    alone = np.setdiff1d(np.arange(len(secrets)), pairs)
    pairs = np.concatenate([pairs, np.column_stack([alone, alone])])
    source, target = secrets[pairs[new[pairs].any(axis=1)]].T
    return _pair_numbers(observables[:, None], source, target, len(exponents)).ravel()


def _pair_numbers(o, source, target, size: int):
    """One number for the constraint p(target) >= ratio p(source) of observable o, in the order of the observables."""
    return (np.asarray(o, dtype=np.int64) * size + source) * size + target


def merged(numbers: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Sorted union of sorted numbers: five times faster than np.union1d."""
    both = np.concatenate([numbers, more])
    both.sort(kind="stable")
    return both[np.append(True, both[1:] != both[:-1])] if len(both) else both


def listed(exponents: np.ndarray, secrets: np.ndarray, numbers: np.ndarray, observables: np.ndarray) -> PairConstraints:
    """The program's pairs from their sorted `numbers`; a pair of a secret with itself says p >= 0."""
    size = len(exponents)
    rest, target = np.divmod(numbers, size)
    o, source = np.divmod(rest, size)
    ratio = np.exp(-np.maximum(exponents[source, target], _SMALLEST_EXPONENT))
    ratio[source == target] = 0.0
    row = np.empty(size, dtype=np.int64)
    row[secrets] = np.arange(len(secrets))
    first = np.append(np.searchsorted(o, observables), len(o))
    return PairConstraints(first, row[source], row[target], ratio)


@numba.njit(cache=True)
def _neighbours(d, core, detour):
    """Mark the pairs without a third point, nearer to both, over which the path is at most 1 + detour times as long.

    One of the pair and the third point are among the first `core`.
    """
    n = len(d)
    marked = np.zeros((n, n), dtype=np.bool_)
    for s in range(n):
        for t in range(min(s, core)):
            near = np.isfinite(d[s, t])
            limit = (1 + detour) * d[s, t]
            for u in range(core):
                if not near:
                    break
                if d[s, u] < d[s, t] and d[u, t] < d[s, t] and d[s, u] + d[u, t] <= limit:
                    near = False
            marked[s, t] = marked[t, s] = near
    return marked


@numba.njit(cache=True)
def _needed(P, const, ratio, core):
    """The least share of a constant channel (const) that, mixed in, repairs every violated pair.

    Checks the pairs with at least one of the first `core` secrets.
    """
    share = 0.0
    m, n = P.shape
    for o in range(m):
        for s in range(n):
            for t in range(n):
                short = ratio[s, t] * P[o, s] - P[o, t]
                if short > 0 and s != t and min(s, t) < core:
                    share = max(share, short / (short + const[o] * (1 - ratio[s, t])))
    return share


def mended(P: np.ndarray, share: float) -> np.ndarray:
    """Mix with a constant channel.

    This preserves the rows' sums and never lowers the distortion privacy, which is concave and largest there.
    """
    return (1 - share) * P + share * P.mean(axis=1, keepdims=True)


def distorting(P: np.ndarray, program: Program) -> np.ndarray:
    """Mix with the cheapest constant channel until the distortion privacy is d_m, if it misses d_m by more than the tolerance.

    The tolerance is a certificate's. If all but one secret hardly ever occur, d_m is smaller than a solver's tolerance of its
    row.
    """
    d_m, F = program.d_m, program.F
    reached = (P @ F.T).min(axis=1).sum() if d_m else 0.0
    if not d_m or reached >= d_m * (1 - VIOLATION):
        return P
    d_max = F.sum(axis=1).min()
    share = min(1.0, (d_m - reached) / (d_max - reached)) if d_max > reached else 1.0
    costs = program.kappa.sum(axis=1) if program.worst is None else program.worst.max(axis=1)
    P = (1 - share) * P
    P[costs.argmin()] += share
    return P


def broken(P, ratio, secrets, core, observables) -> tuple[float, np.ndarray]:
    """The share of a constant channel that repairs all pairs of P, and the `pair_numbers` of pairs to add.

    Those are the pairs violated by more than REPAIR would repair, and the NEARLY violated ones.
    """
    const, inner = P.mean(axis=1), np.ascontiguousarray(ratio[np.ix_(secrets, secrets)])
    share = _needed(P, const, inner, core)
    if share <= REPAIR:
        return share, np.empty(0, dtype=np.int64)
    o, source, target = np.nonzero(_breaks(P, const, inner, core))
    return share, _pair_numbers(observables[o], secrets[source], secrets[target], len(ratio))


@numba.njit(cache=True)
def _breaks(P, const, ratio, core):
    m, n = P.shape
    marked = np.zeros((m, n, n), dtype=np.bool_)
    for o in range(m):
        for s in range(n):
            for t in range(n):
                least = ratio[s, t] * P[o, s]
                if s == t or min(s, t) >= core:
                    continue
                near = P[o, t] > _GIVEN and least > (1 - _NEARLY) * P[o, t]
                if near or least - P[o, t] > REPAIR * const[o] * (1 - ratio[s, t]):
                    marked[o, s, t] = True
    return marked


def misfits(P, ratio, secrets, core) -> np.ndarray:
    """Secrets outside the program that cannot be added given the core: sum_o L_o > 1 or sum_o U_o < 1."""
    others, room_left = _others(P, ratio, secrets[:core])
    failed = (room_left < -1e-12) & ~np.isin(others, secrets)
    return _worst(others[failed], -room_left[failed], ratio)


def extended(P, ratio, core, prior) -> tuple[np.ndarray, np.ndarray]:
    """The columns over all secrets (m, S) from those of the core, which come first in P; and the secrets to make core.

    Those find no room among the secrets filled in before them. The secrets with the least room between L and U are filled in
    first, because later ones have less choice. Secrets without any pair (as in (21)) get the average answer over the prior.
    """
    columns = np.zeros((len(P), len(prior)))
    columns[:, core] = P[:, : len(core)]
    average = columns @ prior / (columns @ prior).sum()
    others, room_left = _others(P, ratio, core)
    others = others[np.argsort(room_left, kind="stable")]
    short = fill_in(columns, np.ascontiguousarray(ratio), np.concatenate([core, others]), len(core), average)
    columns[:, others[short > 0]] = average[:, None]
    return columns, _worst(others[short > 0], short[short > 0], ratio)


def _others(P, ratio, core) -> tuple[np.ndarray, np.ndarray]:
    """The secrets that are not core, and the room that the core leaves them."""
    others = np.setdiff1d(np.arange(len(ratio)), core)
    return others, room(np.ascontiguousarray(P[:, : len(core)]), np.ascontiguousarray(ratio[np.ix_(others, core)]))


def _worst(failed: np.ndarray, short: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """The worst secret of every neighbourhood, by the amount by which it does not fit."""
    chosen = []
    for s in failed[np.argsort(-short, kind="stable")]:
        near = np.argsort(-ratio[s], kind="stable")[: _NEIGHBOURHOOD + 1]
        if not np.isin(chosen, near).any():
            chosen.append(s)
    return np.array(chosen, dtype=np.int64)


@numba.njit(cache=True)
def room(P, ratio):
    """min(1 - sum_o L_o, sum_o U_o - 1) of every secret (row of ratio, a column for each of P): below 0 it does not fit."""
    room_left = np.empty(len(ratio))
    for i in range(len(ratio)):
        low_sum, high_sum = 0.0, 0.0
        for o in range(len(P)):
            low, high = 0.0, np.inf
            for t in range(P.shape[1]):
                k = ratio[i, t]
                if k > 0:
                    low = max(low, k * P[o, t])
                    high = min(high, P[o, t] / k)
            low_sum += low
            high_sum += high
        room_left[i] = min(1 - low_sum, high_sum - 1)
    return room_left


@numba.njit(cache=True)
def fill_in(columns, ratio, order, known, average):
    """Fill in the secrets of `order` from position `known` on, one after the other, in place (columns (m, S)).

    Values lie between L and U of all secrets already there. Returns by how much each of them does not fit (0: it does). Later
    secrets ignore one that does not fit; one without any pair gets the answers of `average` (m,).
    """
    m = len(columns)
    short = np.zeros(len(order) - known)
    placed = list(order[:known])
    low, high = np.empty(m), np.empty(m)
    for i in range(known, len(order)):
        s = order[i]
        low[:] = 0.0
        high[:] = np.inf
        bound = False
        for t in placed:
            k = ratio[s, t]
            if k > 0:
                bound = True
                for o in range(m):
                    low[o] = max(low[o], k * columns[o, t])
                    high[o] = min(high[o], columns[o, t] / k)
        if not bound:
            columns[:, s] = average
            placed.append(s)
            continue
        low_sum, high_sum = low.sum(), high.sum()
        if low_sum > 1 + 1e-12 or high_sum < 1 - 1e-12:
            short[i - known] = max(low_sum - 1, 1 - high_sum)
            continue
        share = min(1.0, max(0.0, (1 - low_sum) / (high_sum - low_sum))) if high_sum > low_sum else 0.0
        columns[:, s] = low + share * (high - low)
        columns[:, s] /= columns[:, s].sum()
        placed.append(s)
    return short
