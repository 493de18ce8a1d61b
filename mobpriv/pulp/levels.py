"""The levels of one user's privacy and utility, with the parameters of §VI-A.

They are those of :func:`mobpriv.metrics.poi_privacy` and of :func:`mobpriv.metrics.area_coverage`. A profile compares one trace
with many protected versions, so what the metrics need of the original is computed once.

Source: Cerf et al., "Automatic privacy and utility preservation for mobility data: a nonlinear model-based approach" (PULP,
TDSC 2018), §II-C.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.ranges import true_or_false
from mobpriv.ground.geo import check_plane
from mobpriv.ground.grid import S2Grid, s2_keys
from mobpriv.metrics.poi_matching import check_matching, matching_scores
from mobpriv.traces.profiles import Centres, check_stay, poi_centres
from mobpriv.traces.table import Traces, by_user

NO_POI = "no POI in the original trace: there is nothing to hide"


class Levels(NamedTuple):
    privacy: float  # Equation (1); NaN without a POI in the original
    utility: float  # Equation (2)
    reason: str  # why a level is NaN; "" if none is


@dataclass(frozen=True)
class Metrics:
    """Privacy, Equation (1), and utility, Equation (2), with the parameters that §VI-B3 varies.

    For other metrics, give :func:`mobpriv.pulp.profile` an object with a method ``of(original)``. It must return an object with
    a method ``levels(protected)``.
    """

    diameter: float = 200.0  # m, d: of a POI
    duration: float = 900.0  # s, t: least time of a stop
    near: float = 100.0  # m, d_max: two POIs match at up to this distance
    level: int = 15  # of the S2 cells, about 280 m wide
    merged: bool = True  # POIs; False: stays
    matched: str = "protected"  # as printed, or "both": see poi_privacy
    max_gap: float | None = None  # s, see profiles.stays
    plane: str = "ground"

    def __post_init__(self):
        check_stay(self.diameter, self.duration, self.max_gap)
        check_matching(self.near, self.matched)
        true_or_false("merged", self.merged)
        check_plane(self.plane)
        object.__setattr__(self, "level", S2Grid(self.level).level)

    def of(self, original: Traces) -> "Original":
        """Return what the metrics need of one user's trace. ValueError for several users, or none."""
        users = by_user(original)[0]
        if len(users) != 1:
            raise ValueError(f"levels need the trace of one user (got records of {len(users)} users)")
        return Original(self, users[0], self.cells(original), self.centres(original))

    def cells(self, traces: Traces) -> np.ndarray:
        """Return cell(T): the distinct cells that a trace visits, in the order of their first visits."""
        return pd.unique(s2_keys(traces["lat"].to_numpy(), traces["lng"].to_numpy(), self.level))

    def centres(self, traces: Traces) -> Centres:
        """Return poi(T)."""
        return poi_centres(traces, self.diameter, self.duration, self.max_gap, self.merged, self.plane)


class Original(NamedTuple):
    """What the metrics need of one user's trace."""

    metrics: Metrics
    user: str
    cells: np.ndarray
    pois: Centres

    def levels(self, protected: Traces, computed: dict | None = None) -> Levels:
        """Return the levels of a protected version of the trace; an erased one has privacy 1, as it has no POI, and utility 0.

        ``computed``: its cells and places under other metrics, which is added to: variants of the metrics share most of them.
        """
        other_users = [user for user in protected["user"].cat.categories if user != self.user]
        if other_users:
            raise ValueError(
                f"the protected trace of {self.user} must have only her records (it has records of {other_users[0]}): PULP is for mechanisms "
                "that protect each user separately and keep her name"
            )
        m, computed = self.metrics, {} if computed is None else computed
        if len(protected):
            kinds = m.level, (m.diameter, m.duration, m.max_gap, m.merged, m.plane)
            for kind, compute in zip(kinds, (m.cells, m.centres), strict=True):
                if kind not in computed:
                    computed[kind] = compute(protected)
            cells, pois = (computed[kind] for kind in kinds)
        else:
            cells, pois = np.zeros(0, np.int64), Centres(np.zeros(0), np.zeros(0), np.zeros(2, np.int64))
        common = len(self.cells) + len(cells) - len(pd.unique(np.concatenate([self.cells, cells])))
        privacy = float(matching_scores(self.pois, pois, m.near, m.matched, m.plane)["privacy"][0])
        # 2 P R / (P + R), simplified so that it is 0 without a common cell
        return Levels(privacy, 2 * common / (len(self.cells) + len(cells)), NO_POI if np.isnan(privacy) else "")
