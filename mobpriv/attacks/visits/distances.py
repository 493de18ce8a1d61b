"""The ℓ1 distances between sanitised and true profiles: as a matrix, or the number of true profiles within each δ.

Source: Olivier, Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§V-A.

Arrays: published (draws, n, m), known (draws, k, m), whole numbers or truth values. Distances are whole and exact.
"""

import numba
import numpy as np

_MAX_TALLIED_DELTA = 1 << 18  # up to this δ the distances are tallied; a larger tally would exceed the memory
PROFILES_PER_BLOCK = 1024  # known profiles compared with one published at a time: their distances fit into the cache


def l1(published, known) -> np.ndarray:
    """d(a_j, ã_i), shape (draws, n, k), whole numbers."""
    published, known = _laid_out(published, known)
    out = np.zeros((*published.shape[:2], known.shape[2]), np.int32 if published.dtype == np.int16 else np.int64)
    _l1(published, known, out)
    return out


def l1_to_true(published, known, owner) -> np.ndarray:
    """d(a_i, ã_i), shape (draws, n): of each published profile to the true one.

    ``owner`` (n,): its row of the known; inf where it is −1.
    """
    if not np.shape(known)[1]:
        return np.full(np.shape(published)[:2], np.inf)
    d = np.abs(np.asarray(published, np.int64) - np.asarray(known, np.int64)[:, np.maximum(owner, 0)]).sum(axis=-1)
    return np.where(np.asarray(owner) >= 0, d, np.inf)


def count_within(published, known, deltas) -> np.ndarray:
    """#{j | d(a_j, ã_i) ≤ δ} for every δ, shape (draws, n, number of δ), without a matrix of all pairs."""
    perturbed, true = published, known
    published, known = _laid_out(published, known)
    farthest = published.shape[-1] * max(int(side.max(initial=0)) for side in (published, known))
    steps = np.floor(np.minimum(np.asarray(deltas, float), farthest))
    largest_delta = int(steps.max(initial=0))
    counts = np.empty((*published.shape[:2], len(steps)), np.int32)
    if largest_delta > _MAX_TALLIED_DELTA:
        for i in range(counts.shape[1]):
            for draw, d in enumerate(np.sort(l1(perturbed[:, i : i + 1], true)[:, 0], axis=-1)):
                counts[draw, i] = np.searchsorted(d, steps, side="right")
        return counts
    _count_within(published, known, largest_delta, steps.astype(np.int64), counts)
    return counts


def _laid_out(published, known):
    """The arrays as numbers of 16 bits, if the distances fit: the processor subtracts 16 or 32 of them at a time.

    Up to three POIs with value 0 are added; the known profiles are transposed, a POI a row.
    """
    published, known = (np.asarray(side).astype(np.int64, copy=False) for side in (published, known))
    m = published.shape[-1]
    largest = m * max(int(side.max(initial=0)) for side in (published, known))
    dtype = np.int16 if largest < np.iinfo(np.int16).max else np.int64
    sides = []
    for side in (published, known):
        padded = np.zeros((*side.shape[:-1], m + -m % 4), dtype)
        padded[..., :m] = side
        sides.append(padded)
    return sides[0], np.ascontiguousarray(np.swapaxes(sides[1], 1, 2))


@numba.njit(cache=True, parallel=True)
def _l1(published, known, out):
    draws, n, m = published.shape
    for row in numba.prange(draws * n):
        d, i = row // n, row % n
        distances = out[d, i]
        for j in range(m):
            x = published[d, i, j]
            candidates = known[d, j]
            for s in range(len(distances)):
                distances[s] += max(candidates[s], x) - min(candidates[s], x)


@numba.njit(cache=True, parallel=True)
def _count_within(published, known, largest_delta, steps, counts):
    """`count_within` for one block of memory; m is a multiple of 4.

    Four POIs are subtracted at once, so that sums are stored a quarter as often. Four tallies avoid waiting until the last
    entry is stored. max − min is |·| within 16 bits.
    """
    draws, n, m = published.shape
    k = known.shape[2]
    for row in numba.prange(draws * n):
        d, i = row // n, row % n
        tally = np.zeros((4, largest_delta + 2), np.int64)  # number at each distance; the last: farther than every δ
        distance = np.empty(PROFILES_PER_BLOCK, np.int64)
        for start in range(0, k, PROFILES_PER_BLOCK):
            size = min(PROFILES_PER_BLOCK, k - start)
            total = np.zeros(PROFILES_PER_BLOCK, published.dtype)
            for j in range(0, m, 4):
                x0, x1, x2, x3 = published[d, i, j], published[d, i, j + 1], published[d, i, j + 2], published[d, i, j + 3]
                y0, y1 = known[d, j, start : start + size], known[d, j + 1, start : start + size]
                y2, y3 = known[d, j + 2, start : start + size], known[d, j + 3, start : start + size]
                for s in range(size):
                    total[s] += (
                        (max(y0[s], x0) - min(y0[s], x0))
                        + (max(y1[s], x1) - min(y1[s], x1))
                        + (max(y2[s], x2) - min(y2[s], x2))
                        + (max(y3[s], x3) - min(y3[s], x3))
                    )
            for s in range(size):
                distance[s] = min(np.int64(total[s]), largest_delta + 1)
            for s in range(0, size - 3, 4):
                tally[0, distance[s]] += 1
                tally[1, distance[s + 1]] += 1
                tally[2, distance[s + 2]] += 1
                tally[3, distance[s + 3]] += 1
            for s in range(size - size % 4, size):
                tally[0, distance[s]] += 1
        cumulative = np.cumsum(tally.sum(axis=0))
        for s in range(len(steps)):
            counts[d, i, s] = cumulative[steps[s]]
