"""PULP: recommend a mechanism and its setting to each user.

``measured = profile(traces)`` has the levels of privacy and utility at a few settings (§III-B).

``fitted = models(measured)`` has the levels as functions of the setting, over the profiled range (§III-C).

``chosen = recommend(fitted, lambda candidates: ratio(candidates, w=2))`` has the settings that satisfy a law (§IV, §V).

``kept = achieved(traces, chosen)`` has the levels of traces protected so, with fresh noise (§VI-C).

``rival = alp(traces)`` has settings by simulated annealing, which ``achieved`` accepts as well (§VI-D).

Source: Cerf et al., "Automatic privacy and utility preservation for mobility data: a nonlinear model-based approach", TDSC 2018.
"""

from mobpriv.pulp.alp import ALP_GEO_I, ALP_PROMESSE, BOTH, Objective, alp
from mobpriv.pulp.configurator import (
    Candidate,
    Recommendation,
    Setting,
    both_thresholds,
    candidates_of,
    privacy_threshold,
    ratio,
    recommend,
    utility_threshold,
)
from mobpriv.pulp.levels import Levels, Metrics
from mobpriv.pulp.modeler import Arctan, Fit, fit, models
from mobpriv.pulp.profiler import GEO_I, PROMESSE, SWEEPS, Sweep, achieved, profile

__all__ = [
    "ALP_GEO_I",
    "ALP_PROMESSE",
    "BOTH",
    "GEO_I",
    "PROMESSE",
    "SWEEPS",
    "Arctan",
    "Candidate",
    "Fit",
    "Levels",
    "Metrics",
    "Objective",
    "Recommendation",
    "Setting",
    "Sweep",
    "achieved",
    "alp",
    "both_thresholds",
    "candidates_of",
    "fit",
    "models",
    "privacy_threshold",
    "profile",
    "ratio",
    "recommend",
    "utility_threshold",
]
