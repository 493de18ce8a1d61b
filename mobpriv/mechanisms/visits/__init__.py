"""Mechanisms on profiles of visits (dχ), one file each.

Each is a frozen dataclass with ``protect(profiles, rng) -> profiles``, whose fields are the paper's parameters. Tables have a
row a user and a column a POI, of truth values or of whole numbers.

Each also defines its distribution: ``noisy(values, chi, u)`` on arrays (…, users, m), from uniform numbers u, and
``log_probability(published, true)`` of a coordinate in χ. A user takes m random numbers, for any χ. So a table that is cut into
chunks gives the same result as the full table, if the chunks use one generator in turn.
"""

from mobpriv.mechanisms.visits.geometric import Geometric
from mobpriv.mechanisms.visits.laplace_counts import LaplaceCounts
from mobpriv.mechanisms.visits.randomised_response import RandomisedResponse

__all__ = ["Geometric", "LaplaceCounts", "RandomisedResponse"]
