"""Protection mechanisms (LPPMs) on traces: one file per published mechanism.

Each is a frozen dataclass with ``protect(traces, rng) -> Traces``, whose fields are the paper's parameters. Some have other
fields: ``Obfuscation`` a channel over an area, ``PersonalisedObfuscation`` one a user; ``HMC`` the adversary's knowledge;
``Hybrid`` mechanisms and attacks. Mechanisms on profiles of visits are in :mod:`mobpriv.mechanisms.visits`, on individual call
profiles in :mod:`mobpriv.mechanisms.icp`.
"""

from mobpriv.mechanisms.geo_i import GeoI
from mobpriv.mechanisms.hmc import HMC
from mobpriv.mechanisms.hybrid import Hybrid
from mobpriv.mechanisms.nothing import Nothing
from mobpriv.mechanisms.obfuscation import Obfuscation, PersonalisedObfuscation
from mobpriv.mechanisms.promesse import Promesse
from mobpriv.mechanisms.trilateration import TriLateration
from mobpriv.mechanisms.w4m import W4M

__all__ = ["HMC", "W4M", "GeoI", "Hybrid", "Nothing", "Obfuscation", "PersonalisedObfuscation", "Promesse", "TriLateration"]
