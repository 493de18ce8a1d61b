"""Attacks on individual call profiles: ``fit`` on what an adversary knows of her targets, ``rank`` published ones, as for traces
(:mod:`mobpriv.attacks`).

``rank`` returns dissimilarities, one row a published profile, one column a target; 0 is a match, infinite is impossible. The policies
of :mod:`mobpriv.attacks.policies` turn it into answers. What holds no matrix stands beside: how many profiles match, and the risk; who
is nearest.
"""

from mobpriv.attacks.call_profiles.linking import Linking
from mobpriv.attacks.call_profiles.nearest import Nearest

__all__ = ["Linking", "Nearest"]
