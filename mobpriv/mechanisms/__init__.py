"""Protection mechanisms (LPPMs): one file per published mechanism, each a frozen dataclass whose fields are the paper's
parameters (of an ``Obfuscation``: a channel over an area, of an ``OwnObfuscation`` one a user; of ``HMC`` what the adversary knows, of
``Hybrid`` other mechanisms and attacks), with ``protect(traces, rng) -> Traces``. Those on profiles of call records are in :mod:`mobpriv.mechanisms.profiles`."""

from mobpriv.mechanisms.geo_i import GeoI
from mobpriv.mechanisms.hmc import HMC
from mobpriv.mechanisms.hybrid import Hybrid
from mobpriv.mechanisms.nothing import Nothing
from mobpriv.mechanisms.obfuscation import Obfuscation, OwnObfuscation
from mobpriv.mechanisms.promesse import Promesse
from mobpriv.mechanisms.trilateration import TriLateration
from mobpriv.mechanisms.w4m import W4M

__all__ = ["HMC", "W4M", "GeoI", "Hybrid", "Nothing", "Obfuscation", "OwnObfuscation", "Promesse", "TriLateration"]
