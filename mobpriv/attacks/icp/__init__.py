"""Attacks on individual call profiles: ``fit`` on what an adversary knows of the targets, ``rank`` published profiles.

The interface is that of attacks on traces (:mod:`mobpriv.attacks`). ``rank`` returns dissimilarities, one row a published
profile, one column a target; 0 is a match, infinite is impossible. The policies of :mod:`mobpriv.attacks.policies` turn it into
answers. Functions without a matrix give the number of matching profiles, the risk, and the nearest profiles.
"""

from mobpriv.attacks.icp.linking import Linking
from mobpriv.attacks.icp.nearest import Nearest

__all__ = ["Linking", "Nearest"]
