"""PIT-Attack: compare mobility Markov chains by the stats-prox distance (thesis §3.4.1).

Source: Gambs, Killijian, Núñez del Prado Cortez, *De-anonymization attack on geolocated data*, JCSS 2014.
"""

from dataclasses import dataclass, field, replace
from typing import Self

import numba
import numpy as np
import pandas as pd

from mobpriv.base.ranges import between, one_of, positive, true_or_false
from mobpriv.ground.geo import check_plane, to_plane
from mobpriv.traces.profiles import MarkovChains, check_stay, markov_chains
from mobpriv.traces.table import Traces, by_user

NOTHING_NEAR = 100_000_000.0  # the "10^5 km" of Equation (3.13), in m: the proximity distance of chains that share no place


@dataclass(frozen=True)
class PITAttack:
    """The nearest mobility Markov chain by the stats-prox distance of Equations (3.13) to (3.15).

    P_i, Q_j are the states of two chains in order of decreasing weight w; r_0 = ``rank_score``, Δ = ``near`` and d_0 =
    ``far``::

        stationary(P, Q) = Σ_i w(P_i) · min_j d(P_i, Q_j)                                            in m
        proximity(P, Q)  = 1 / Σ_{i ≤ min(|P|,|Q|)} (r_i if d(P_i, Q_i) < Δ else 0),   r_{i+1} = r_i / 2

        stats-prox       = proximity   if stationary > d_0 and some pair is near,   else stationary

    Departures from the paper, each shown in the errata:

    * (3.14) as printed sums w(P_i)·d(P_i, Q_j) over the pairs nearer than d_0. Two strangers who share no place then have
      distance 0. We take the nearest state, as Gambs et al. define it; ``stationary="printed"`` computes the printed sum.
    * (3.13) is damaged in the text, and r_0, Δ, d_0 are not given. We follow the author's program, with its values 10, 100 m,
      2000 m.
    * The most literal reading of (3.13) is "stationary if stationary ≤ d_0 and proximity ≤ 10⁵ km, else proximity"
      (``combined="printed"``). Beyond d_0 all chains without a near pair are then equally unlike.
    * (3.15) halves the scores. The program halves in whole numbers with a floor of 1 (``whole_scores=True``).
    * The text orders states by decreasing weight; the author's program pairs them by *increasing* weight
      (``order="ascending"``).
    * The metres of the stationary distance and the 1/score of the proximity are compared as bare numbers, as defined.

    The transition probabilities, which give the attack its name, are used in none of its distances, neither in the thesis nor
    in the program.

    >>> from mobpriv import load
    >>> from mobpriv.traces.table import split_in_half
    >>> known, secret = split_in_half(load("city", max_users=3).traces, "set")
    >>> PITAttack().fit(known).rank(secret).round()
    user    c001    c002     c003
    user
    c001    43.0    70.0   4598.0
    c002     0.0     0.0  10069.0
    c003  1901.0  1075.0    735.0
    """

    diameter: float = 200.0  # m, of the area of a stop
    duration: float = 3600.0  # s, least time of a stop
    near: float = 100.0  # m, Δ: two states of one rank count as one place
    far: float = 2000.0  # m, d_0
    rank_score: float = 10.0  # r_0
    max_gap: float | None = None  # s, see profiles.stays
    plane: str = "ground"
    order: str = "descending"
    stationary: str = "nearest"
    whole_scores: bool = False
    combined: str = "program"
    known_: tuple[MarkovChains, pd.Index] | None = field(default=None, repr=False, compare=False)

    name = "PIT-Attack"

    def __post_init__(self):
        check_plane(self.plane)
        check_stay(self.diameter, self.duration, self.max_gap)
        positive("near", self.near, "m")
        positive("rank_score", self.rank_score)
        between("far", self.far, -np.inf, np.inf, "must be a number, in m; below 0 the proximity distance is always taken")
        one_of("order", self.order, ("descending", "ascending"))
        one_of("stationary", self.stationary, ("nearest", "printed"))
        true_or_false("whole_scores", self.whole_scores)
        one_of("combined", self.combined, ("program", "printed"))

    def _profiles(self, traces: Traces) -> MarkovChains:
        # the author's program takes the mean of the distinct positions here, so plane="mercator" does, too
        centroid = "distinct" if self.plane == "mercator" else "records"
        return markov_chains(traces, self.diameter, self.duration, self.max_gap, plane=self.plane, centroid=centroid)

    def fit(self, known: Traces) -> Self:
        """The attack with the known users' Markov chains."""
        return replace(self, known_=(self._profiles(known), by_user(known)[0]))

    def rank(self, anonymous: Traces) -> pd.DataFrame:
        """Stats-prox distances, one row an anonymous trace, one column a known user; NaN: one of the two has no POI."""
        if self.known_ is None:
            raise ValueError("fit the attack on known traces first")
        chains, users = self.known_
        d = self.stats_prox(self._profiles(anonymous).states, chains.states)
        return d.reindex(index=by_user(anonymous)[0], columns=users)

    def stats_prox(self, a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
        """Equation (3.13) between every chain of ``a`` and of ``b``: tables of states (user, state, lat, lng, weight)."""
        if not len(a) or not len(b):
            return pd.DataFrame()
        falling = self.order == "descending"
        a, b = (s.sort_values(["user", "weight"], ascending=[True, not falling], kind="stable") for s in (a, b))
        (rows, a_start), (columns, b_start) = by_user(a), by_user(b)
        stationary, score = _compare(
            *to_plane(a["lat"], a["lng"], self.plane), a["weight"].to_numpy(), a_start,
            *to_plane(b["lat"], b["lng"], self.plane), b_start,
            self.plane == "ground", self.near, self.far, self.rank_score, self.whole_scores, self.stationary == "printed",
        )  # fmt: skip
        with np.errstate(divide="ignore"):
            proximity = np.where(score > 0, 1 / score, NOTHING_NEAR)
        # chains without a near pair have proximity 10⁵ km, so the printed condition on the proximity always holds
        by_place = stationary <= self.far
        if self.combined == "program":
            by_place |= proximity == NOTHING_NEAR
        d = np.where(by_place, stationary, proximity)
        return pd.DataFrame(d, index=rows, columns=columns)


@numba.njit(cache=True, parallel=True)
def _compare(ax, ay, asx, asy, weight, a_start, bx, by, bsx, bsy, b_start, wraps, near, far, rank_score, whole_scores, printed):
    """The stationary distance (3.14) and the score of (3.15) of every pair of chains."""
    rows, columns = len(a_start) - 1, len(b_start) - 1
    stationary, score = np.zeros((rows, columns)), np.zeros((rows, columns))
    for row in numba.prange(rows):
        for column in range(columns):
            r = rank_score
            for i in range(a_start[row], a_start[row + 1]):
                nearest, rank = np.inf, i - a_start[row]
                for j in range(b_start[column], b_start[column + 1]):
                    dx = bx[j] - ax[i]
                    if wraps and abs(dx) > 180:
                        dx = 360 - abs(dx)
                    dx, dy = 0.5 * (asx[i] + bsx[j]) * dx, 0.5 * (asy[i] + bsy[j]) * (by[j] - ay[i])
                    d = np.sqrt(dx * dx + dy * dy)
                    nearest = min(nearest, d)
                    if printed and d < far:
                        stationary[row, column] += weight[i] * d
                    if j - b_start[column] == rank and d < near:
                        score[row, column] += r
                if not printed:
                    stationary[row, column] += weight[i] * nearest
                if rank < b_start[column + 1] - b_start[column]:
                    r = max(r // 2, 1.0) if whole_scores else r / 2
    return stationary, score
