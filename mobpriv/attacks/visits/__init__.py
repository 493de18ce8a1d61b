"""Attacks on profiles of visits (dχ): ``fit`` on true profiles that leaked, ``rank`` sanitised ones.

The interface is that of attacks on traces (:mod:`mobpriv.attacks`). ``rank`` returns dissimilarities, one row a sanitised
profile, one column a leaked user; smaller is more alike, infinite is impossible. The policies of
:mod:`mobpriv.attacks.policies` turn it into answers. Modules without a ranking cover grids of (δ, M), inconsistencies,
estimates of the noise, and the most visited POI.
"""

from mobpriv.attacks.visits.likelihood import Likelihood
from mobpriv.attacks.visits.reidentification import ProfileGuess

__all__ = ["Likelihood", "ProfileGuess"]
