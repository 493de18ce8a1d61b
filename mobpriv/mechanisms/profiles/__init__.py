"""Mechanisms on call profiles: one file each, a frozen dataclass whose fields are the paper's parameters, with
``protect(profiles, rng) -> profiles``: tables with a row a user and a column a POI, of truth values or of whole numbers.

Beside ``protect`` each has what its law is made of: ``noisy(values, chi, u)`` on arrays (…, users, m), from uniform numbers u, and
``log_probability(published, true)`` of a coordinate in χ. A user takes m numbers of the generator, whatever her χ and whoever
stands before her: a table that is cut into chunks is sanitised as the whole is, with one generator from chunk to chunk.
"""

from mobpriv.mechanisms.profiles.geometric import Geometric
from mobpriv.mechanisms.profiles.laplace_counts import LaplaceCounts
from mobpriv.mechanisms.profiles.randomised_response import RandomisedResponse

__all__ = ["Geometric", "LaplaceCounts", "RandomisedResponse"]
