"""Protection mechanisms (LPPMs): one file per published mechanism, each a frozen dataclass whose fields are the paper's
parameters (of an ``Obfuscation``: a channel over an area, of an ``OwnObfuscation`` one a user), with ``protect(traces, rng) -> Traces``."""

from mobpriv.mechanisms.geo_i import GeoI
from mobpriv.mechanisms.nothing import Nothing
from mobpriv.mechanisms.obfuscation import Obfuscation, OwnObfuscation
from mobpriv.mechanisms.promesse import Promesse
from mobpriv.mechanisms.trilateration import TriLateration
from mobpriv.mechanisms.w4m import W4M

__all__ = ["W4M", "GeoI", "Nothing", "Obfuscation", "OwnObfuscation", "Promesse", "TriLateration"]
