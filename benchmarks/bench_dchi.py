"""Boolean and count profiles beside plain versions (peers): ``python benchmarks/bench_dchi.py`` prints a table; a record is a profile.

Limits of the chapter on two quiet cores: a figure with 200 draws of 100 users within 20 s, Algorithm 11 for 100 000 users × 29 POIs
within 60 s and 4 GB.
"""

from functools import partial

import numpy as np
import pandas as pd
from measure import SEED, Case, table
from scipy.spatial.distance import cdist

from mobpriv.attacks.visits.most_visited import most_visited, poi_guess, relative_delta
from mobpriv.attacks.visits.reidentification import guesses, reidentification_rate
from mobpriv.experiments import dchi, dchi_attacks
from mobpriv.experiments.dchi import draw, sample_setting
from mobpriv.mechanisms.visits import LaplaceCounts, RandomisedResponse
from mobpriv.metrics.visits_audits import count_telling
from mobpriv.visits.affinity import Neighbourhood, affinity

POIS, DELTAS, MOST = 29, range(30), range(1, 21)
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
BOTH = (dchi.COUNTS, dchi.NEAR_COUNTS)


def crowd(users: int, calls: int) -> pd.DataFrame:
    """Count profiles of users who go to about a quarter of the POIs, with so many calls on average."""
    rng = np.random.default_rng(SEED)
    liking = rng.random((users, POIS)) * rng.random(POIS)
    there = liking >= np.quantile(liking, 0.75, axis=1, keepdims=True)
    return pd.DataFrame(there * (1 + rng.poisson(rng.gamma(0.6, calls / POIS / 0.15, (users, POIS)))))


def few(profiles: pd.DataFrame) -> pd.DataFrame:
    return profiles.iloc[::200]


def ours(kind, profiles, rng):
    """Sanitise, and the whole grid of (δ, M)."""
    true = profiles > 0 if kind is RandomisedResponse else profiles
    said = kind(2.0).protect(true, rng)
    return reidentification_rate(guesses(said.to_numpy(), true.to_numpy(), DELTAS), MOST)


def by_scipy(profiles, rng):
    """The same with SciPy's distances, 500 profiles at a time."""
    true, said = profiles.to_numpy(), LaplaceCounts(2.0).protect(profiles, rng).to_numpy()
    hits = np.zeros((len(DELTAS), len(MOST)))
    for start in range(0, len(true), 500):
        d = cdist(said[start : start + 500], true, "cityblock")
        own = d[np.arange(len(d)), start + np.arange(len(d))]
        for a, delta in enumerate(DELTAS):
            size = (d <= delta).sum(axis=1)
            hits[a] += ((own <= delta)[:, None] & (size[:, None] <= MOST)).sum(axis=0)
    return hits / len(true)


def algorithm_16(profiles, rng):
    said = LaplaceCounts(2.0).protect(profiles, rng).to_numpy()
    return most_visited(said, profiles.to_numpy(), relative_delta(0.3, profiles), poi_guess(said))


def near(profiles) -> RandomisedResponse:
    return RandomisedResponse(0.1, Neighbourhood(5, affinity(profiles > 0)))


def by_loop(profiles, rng):
    """N(b, 5) user by user."""
    b = profiles.to_numpy() > 0
    aff = affinity(b)
    found = b.copy()
    for row in range(len(b)):
        score = aff[b[row]].sum(axis=0)
        found[row] |= score >= np.sort(score)[-5]
    return found


def figure(draws, profiles, rng):
    first = pd.DataFrame(rng.binomial(profiles.to_numpy(), 0.4), profiles.index, profiles.columns)
    samples = draw(sample_setting(first, profiles - first), rng, 200)
    return draws(samples)


def errors(samples):
    return [dchi.error(samples, one, EPSILONS) for one in (dchi.BOOLEANS, dchi.NEAR_BOOLEANS, *BOTH)]


def surfaces(samples):
    return [dchi.surface(samples, one, e, range(60), MOST) for one in (dchi.BOOLEANS, dchi.COUNTS) for e in EPSILONS]


def estimates(samples):
    return [dchi.epsilon_error(samples, one, EPSILONS, estimator=how) for one in BOTH for how in dchi.ESTIMATORS]


def whole_table(samples):
    return [
        dchi.most_visited_rate(samples, dchi.COUNTS._replace(neighbours=row.neighbours), row.epsilon, row.scenario)
        for row in dchi.TABLE
    ]


def likelihoods(samples):
    return [dchi.nearest_rate(samples, one, e, "likelihood") for one in BOTH for e in EPSILONS]


def taus(samples):
    leak = dchi_attacks.perturb_and_leak(samples, dchi.BOOLEANS, 6.0)
    return dchi_attacks.grid(leak, samples.affinity, np.linspace(0, 0.3, 31), [8])


of = partial(Case, make=crowd, few=few)
CASES = [
    of("Algorithm 11, 30 δ and 20 M", "mobpriv guesses, booleans", partial(ours, RandomisedResponse), 100_000, 28, runs=1),
    of("Algorithm 11, 30 δ and 20 M", "mobpriv guesses, counts", partial(ours, LaplaceCounts), 100_000, 28, runs=1),
    of("Algorithm 11, 30 δ and 20 M", "mobpriv guesses, counts", partial(ours, LaplaceCounts), 5_000, 28),
    of("Algorithm 11, 30 δ and 20 M", "peer: SciPy cdist in blocks, counts", by_scipy, 5_000, 28, runs=1),
    of("Algorithm 16", "mobpriv most_visited", algorithm_16, 20_000, 28, runs=1),
    of("N(b, 5)", "mobpriv Neighbourhood", lambda p, rng: near(p).chi.masks(p > 0), 100_000, 28),
    of("N(b, 5)", "peer: Python loop over NumPy rows", by_loop, 100_000, 28, runs=1),
    of(
        "who betrays herself under N(b, 5)",
        "mobpriv count_telling",
        lambda p, rng: count_telling(near(p), p),
        100_000,
        28,
        runs=1,
    ),
    of("200 draws: Figures 4 to 7", "mobpriv error, 11 ε", partial(figure, errors), 100_000, 28),
    of("200 draws: Figures 8 and 10", "mobpriv surface, 11 ε, 60 δ, 20 M", partial(figure, surfaces), 100_000, 28),
    of("200 draws: Figure 13", "mobpriv grid, 31 τ", partial(figure, taus), 100_000, 28),
    of("200 draws: Figure 14", "mobpriv epsilon_error, 3 estimators, 11 ε", partial(figure, estimates), 100_000, 28),
    of("200 draws: table of §VI-E", "mobpriv most_visited_rate", partial(figure, whole_table), 100_000, 28),
    of("200 draws: likelihood", "mobpriv nearest_rate, 11 ε", partial(figure, likelihoods), 100_000, 28),
]

if __name__ == "__main__":
    print(table(__file__))
