"""Draw samples of any size, up to all users, to test whether a larger sample protects its users (§VI-A).

A repetition is an order of all users. Its sample of size n is the first n, so a larger sample contains the smaller one with the
same noise.

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§VI-A.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mobpriv.attacks.visits.distances import l1
from mobpriv.attacks.visits.reidentification import fits
from mobpriv.base.ranges import whole
from mobpriv.experiments.dchi import at_best
from mobpriv.experiments.dchi_days import Days
from mobpriv.experiments.dchi_samples import Protection, Samples
from mobpriv.visits.affinity import affinity
from mobpriv.visits.profiles import LEAST, count_profiles, day, eligible
from mobpriv.visits.statistician import mean_error, visitors, visits


class Found(NamedTuple):
    """Success rates of the attack, as shares of the attacked users."""

    top: float  # the right profile is nearer than all others
    best: tuple[float, ...]  # r(δ, M, n) at the best δ, for each M


def everybody(chosen: Days, first: str, last: str, least: int = LEAST) -> list[np.ndarray]:
    """Return in each layout the counts, (users, m), of all users with visits at ``least`` POIs or more between two days.

    ``first`` and ``last`` are the first and the last day. ValueError if no user qualifies.
    """
    period, found = (day(first, chosen.zone).whole[0], day(last, chosen.zone).whole[1]), []
    for layout in chosen.layouts:
        calls = layout.data.calls
        calls = calls[calls["cell"].isin(layout.pois.index)]
        found.append(eligible(count_profiles(calls, layout.pois, period).counts, least).to_numpy())
        if not len(found[-1]):
            raise ValueError(f"from {first} to {last} no user has visits at {least} distinct POIs or more: choose other days")
    return found


def sizes_up_to(wanted: Sequence[int], everybody: int) -> tuple[int, ...]:
    """Return the sizes below the number of all users, and that number."""
    return (*(n for n in wanted if n < everybody), everybody)


def crowds(
    counts: Sequence[np.ndarray], sizes: Sequence[int], rng: np.random.Generator, draws: int
) -> Iterator[dict[int, Samples]]:
    """Yield for each repetition: size -> its sample, a :class:`Samples` with one draw and all visits in the first half.

    ``counts``: one array per layout; the repetitions take the layouts in turn. ValueError for a size above the number of users
    in a layout.
    """
    whole("draws", draws, 1)
    most = min(map(len, counts))
    for n in sizes:
        whole("sizes", n, 2, most, f"must be whole numbers in 2 … {most}, the number of users")
    for d, child in enumerate(rng.spawn(draws)):
        here = counts[d % len(counts)]
        order, u, pois = child.permutation(len(here)), child.random(here.shape), child.permutation(here.shape[1])
        yield {n: _crowd(here[order[:n]], u[:n], order[:n], pois) for n in sizes}


def _crowd(counts, u, users, pois) -> Samples:
    here, n = counts[None], len(counts)
    return Samples(
        here, np.zeros_like(here), affinity(here > 0), u[None], users[None], np.arange(n)[None], pois[None], np.zeros(1, int)
    )


def attacked(crowd: Samples, protection: Protection, said: np.ndarray, most: Sequence[int], share: float = 0.5) -> Found:
    """Attack scenario 2.2 with a fixed share of leaked users: compare each of their sanitised profiles with all leaked ones.

    ``said``: the published profiles, from :func:`mobpriv.experiments.dchi_samples.published`.
    """
    said, true = _sides(crowd, protection, said)
    known = max(1, int(share * len(true)))
    return _found(said[:known], true[:known], most)


def sought(crowd: Samples, protection: Protection, said: np.ndarray, most: Sequence[int], leaked: int) -> Found:
    """Attack in the other direction: search for each leaked profile, of ``leaked`` users, among *all* sanitised ones."""
    said, true = _sides(crowd, protection, said)
    return _found(true[: whole("leaked", leaked, 1, len(true))], said, most)


def mean_share(crowd: Samples, protection: Protection, said: np.ndarray) -> float:
    """Return the mean error of f_1 or f_2 as a share of its average over the POIs."""
    of = visits if protection.counts else visitors
    true = of(protection.of(crowd.day))
    return float((mean_error(true, of(said)) / true.mean(axis=-1))[0])


def _sides(crowd, protection, said):
    return np.asarray(said)[0].astype(np.int64), protection.of(crowd.day)[0].astype(np.int64)


def _found(rows: np.ndarray, candidates: np.ndarray, most: Sequence[int]) -> Found:
    """Evaluate the attack; candidate i is the right one for row i."""
    fits(len(rows), len(candidates))
    d = l1(rows[None], candidates[None])[0]
    own = np.diagonal(d).astype(np.int64)
    beyond = {
        m: np.partition(d, m, axis=-1)[:, m].astype(np.int64) if m < d.shape[1] else np.full(len(own), np.iinfo(np.int64).max)
        for m in {1, *most}
    }
    return Found(float((own < beyond[1]).mean()), tuple(at_best(own, beyond[m]) for m in most))
