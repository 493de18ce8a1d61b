"""PULP: recommend a mechanism and its setting to each user::

    # levels of privacy and utility at a few settings (§III-B)
    measured = profile(traces)

    # levels as functions of the setting (§III-C), over the profiled range
    fitted = models(measured)

    # the setting that satisfies a law (§IV, §V)
    chosen = recommend(fitted, lambda candidates: pu_ratio(candidates, w=2))

    # the levels of traces protected so, with fresh noise (§VI-C)
    kept = achieved(traces, chosen)

    # settings by simulated annealing, which achieved takes as well (§VI-D)
    rival = alp(traces)

Source: Cerf et al., "Automatic privacy and utility preservation for mobility data: a nonlinear model-based approach", TDSC 2018.
"""

from mobpriv.pulp.annealing import ALP_GEO_I, ALP_PROMESSE, BOTH, Objective, alp
from mobpriv.pulp.configurator import (
    Candidate,
    CandidateSetting,
    Recommendation,
    both_thresholds,
    candidates_of,
    privacy_threshold,
    pu_ratio,
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
    "CandidateSetting",
    "Fit",
    "Levels",
    "Metrics",
    "Objective",
    "Recommendation",
    "Sweep",
    "achieved",
    "alp",
    "both_thresholds",
    "candidates_of",
    "fit",
    "models",
    "privacy_threshold",
    "profile",
    "pu_ratio",
    "recommend",
    "utility_threshold",
]
