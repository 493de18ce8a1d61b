"""PULP: which mechanism, at which setting, for which user (Cerf et al., "Automatic privacy and utility preservation for mobility data: a
nonlinear model-based approach", TDSC 2018)::

    profile(traces)  ->  a table of measured levels (§III-B)
"""

from mobpriv.pulp.levels import Levels, Metrics
from mobpriv.pulp.profiler import GEO_I, PROMESSE, SWEEPS, Sweep, achieved, profile

__all__ = ["GEO_I", "PROMESSE", "SWEEPS", "Levels", "Metrics", "Sweep", "achieved", "profile"]
