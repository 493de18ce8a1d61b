"""Attacks on call profiles: ``fit`` on true profiles that leaked, ``rank`` sanitised ones, as for traces (:mod:`mobpriv.attacks`).

``rank`` returns dissimilarities, one row a sanitised profile, one column a leaked user; smaller is more alike, infinite is impossible.
The policies of :mod:`mobpriv.attacks.policies` turn it into answers. What does not rank stands in its own module: whole grids of
(δ, M), inconsistencies, estimates of the noise, the most visited POI, and which profiles leak in a scenario.
"""

from mobpriv.attacks.profiles.likelihood import Likelihood
from mobpriv.attacks.profiles.reidentification import ProfileGuess

__all__ = ["Likelihood", "ProfileGuess"]
