"""Synthetic count profiles for the tests and benchmarks of the dχ chapter: about 7 of 29 POIs and 28 calls a user, as in the paper's sample."""

import numpy as np
import pandas as pd


def halves(users: int = 1000, seed: int = 1, m: int = 29) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Count profiles of the two halves of a day: users live and work about a town, near POIs more often than far ones."""
    rng = np.random.default_rng(seed)
    place = rng.random((m, 2))
    wanted = rng.gamma(2.0, size=m)
    centre = rng.random((users, 2))
    distance = np.linalg.norm(centre[:, None] - place, axis=-1)
    utility = np.log(wanted) - 5 * distance + rng.gumbel(size=(users, m))
    rank = np.argsort(np.argsort(-utility, axis=1), axis=1)
    pois = np.minimum(4 + rng.poisson(3.2, (users, 1)), m)
    weight = np.where(rank < pois, 1 / (1 + rank) ** 1.1, 0.0)
    calls = pois[:, 0] + rng.poisson(rng.gamma(3.0, 7.0, users))
    day = (rank < pois) + rng.multinomial(np.maximum(calls - pois[:, 0], 0), weight / weight.sum(axis=1, keepdims=True))
    first = rng.binomial(day, rng.beta(1.5, 2.0, (users, m)))
    index = pd.Index([f"u{i:06}" for i in range(users)], name="user")
    columns = pd.Index([f"p{j:02}" for j in range(m)], name="poi")
    return tuple(pd.DataFrame(part, index, columns) for part in (first, day - first))


def day(users: int = 1000, seed: int = 1, m: int = 29) -> pd.DataFrame:
    """Count profiles of the whole day."""
    first, second = halves(users, seed, m)
    return first + second
