"""mobpriv: the experiments of five papers on mobility privacy, run again.

``import mobpriv`` gives ``load`` and the mechanisms, attacks and metrics on traces. A module is loaded when one of its names is first used.

>>> import mobpriv
>>> mobpriv.GeoI(epsilon=0.01).name
'Geo-I'
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for editors, and for the hash of what a notebook depends on
    from mobpriv.attacks import APAttack, ILLAttack, PITAttack, POIAttack
    from mobpriv.datasets import load
    from mobpriv.mechanisms import (
        HMC,
        W4M,
        GeoI,
        Hybrid,
        Nothing,
        Obfuscation,
        PersonalisedObfuscation,
        Promesse,
        TriLateration,
    )
    from mobpriv.metrics import (
        area_coverage,
        distances_to_path,
        poi_privacy,
        spatial_distortion,
        spatio_temporal_distortion,
        surrounding_pois,
        temporal_projection,
        visits_distortion,
    )

__version__ = "0.1.0"
_PACKAGES = {
    "datasets": ("load",),
    "mechanisms": (
        "HMC",
        "W4M",
        "GeoI",
        "Hybrid",
        "Nothing",
        "Obfuscation",
        "PersonalisedObfuscation",
        "Promesse",
        "TriLateration",
    ),
    "attacks": ("APAttack", "ILLAttack", "PITAttack", "POIAttack"),
    "metrics": (
        "area_coverage",
        "distances_to_path",
        "poi_privacy",
        "spatial_distortion",
        "spatio_temporal_distortion",
        "surrounding_pois",
        "temporal_projection",
        "visits_distortion",
    ),
}
__all__ = [name for names in _PACKAGES.values() for name in names]


def __getattr__(name: str):
    for package, names in _PACKAGES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{package}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
