"""Re-identification attacks: ``fit`` on known traces, ``rank`` anonymous ones.

``rank`` returns a DataFrame of dissimilarities, one row an anonymous trace, one column a known user. Smaller is more alike; NaN
means that one of the two has no profile. The policies turn it into answers. Attacks on profiles of visits are in
:mod:`mobpriv.attacks.visits`, on individual call profiles in :mod:`mobpriv.attacks.icp`.
"""

from mobpriv.attacks.ap import APAttack
from mobpriv.attacks.ill import ILLAttack
from mobpriv.attacks.pit import PITAttack
from mobpriv.attacks.poi import POIAttack

__all__ = ["APAttack", "ILLAttack", "PITAttack", "POIAttack"]
