"""Mechanisms on individual call profiles (PRIMULE, §3.1), one file each.

Each is a frozen dataclass with ``protect(profiles, rng) -> Protected``, whose fields are the paper's parameters. The result is
a table with a row a profile and a column a cell, shares of days in [0, 1]. It comes with the group of each row, and whether
every group has k rows. All rows stay, in their order; no result depends on that order.
"""

from mobpriv.mechanisms.icp.mdav import Mdav
from mobpriv.mechanisms.icp.noise import NoisyProfiles
from mobpriv.mechanisms.icp.primule import Primule
from mobpriv.mechanisms.icp.tables import Protected, per_group

__all__ = ["Mdav", "NoisyProfiles", "Primule", "Protected", "per_group"]
