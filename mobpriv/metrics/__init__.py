"""Utility metrics of the thesis, §4.7.2, one file each, and the POI privacy of PULP (§II-C).

PULP's utility is the area coverage on S2 cells of level 15. The privacy metrics of §4.7.1 are in
:mod:`mobpriv.attacks.policies`.

A metric is a function of ``(original, protected, …)``. Its result has one row per user of ``original``, sorted: a Series, or a
DataFrame for several numbers. NaN means that the metric is not defined for a user. Most metrics are undefined if the mechanism
has erased the trace; each metric states its value in this case.
"""

from mobpriv.metrics.coverage import area_coverage
from mobpriv.metrics.poi_matching import MATCHED, poi_privacy
from mobpriv.metrics.spatial import distances_to_path, spatial_distortion
from mobpriv.metrics.surroundings import EMPTY_BOXES, surrounding_pois
from mobpriv.metrics.temporal import spatio_temporal_distortion, temporal_projection
from mobpriv.metrics.visit_counts import number_of_visits, visits_distortion

__all__ = [
    "EMPTY_BOXES",
    "MATCHED",
    "area_coverage",
    "distances_to_path",
    "number_of_visits",
    "poi_privacy",
    "spatial_distortion",
    "spatio_temporal_distortion",
    "surrounding_pois",
    "temporal_projection",
    "visits_distortion",
]
