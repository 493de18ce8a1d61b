"""Profiles and attacks beside plain versions of the same (peers): ``python benchmarks/bench_attacks.py`` prints a table."""

import pandas as pd
from measure import Case, table
from scipy.spatial.distance import cdist

from mobpriv.attacks import APAttack, PITAttack, POIAttack
from mobpriv.attacks.ap import topsoe
from mobpriv.attacks.crowd import nearest
from mobpriv.datasets.city.crowd import Crowd
from mobpriv.experiments.thesis_3_crowd import MECHANISMS, CrowdMaps, among_first, crowd_maps
from mobpriv.ground.geo import distance
from mobpriv.ground.grid import SquareGrid
from mobpriv.traces.profiles import heat_maps, stays
from mobpriv.traces.table import milliseconds

GRID = SquareGrid(800.0)


def our_stays(traces, rng):
    return stays(traces, 200.0, 900.0)


def looped_stays(traces, rng):
    """The definition record by record, as pure Python libraries do it."""
    found = 0
    for _, own in traces.groupby("user", observed=True):
        t, lat, lng, a = milliseconds(own), own["lat"].to_numpy(), own["lng"].to_numpy(), 0
        for i in range(len(t)):
            while a < i and (distance(lat[a:i], lng[a:i], lat[i], lng[i]) > 200.0).any():
                if i - a >= 2 and t[i - 1] - t[a] >= 900_000:
                    found, a = found + 1, i
                else:
                    a += 1
    return found


def our_heat_maps(traces, rng):
    return heat_maps(traces, GRID)


def grouped_heat_maps(traces, rng):
    cells = GRID.cells(traces["lat"].to_numpy(), traces["lng"].to_numpy())
    return pd.DataFrame({"user": traces["user"], "cell": cells}).groupby(["user", "cell"], observed=True).size()


def our_topsoe(traces, rng):
    maps = heat_maps(traces, GRID)
    return topsoe(maps, maps)


def scipy_topsoe(traces, rng):
    shares = heat_maps(traces, GRID).shares.toarray()
    return 2 * cdist(shares, shares, "jensenshannon") ** 2


def crowd(users, records):
    """Two halves of a crowd of the synthetic city, as heat maps: their traces would not fit in memory."""
    return crowd_maps(Crowd(1), users, users, {"none": MECHANISMS["none"]}, 1)


def first_hundred(maps):
    return CrowdMaps(*({"none": among_first(half["none"], 100)} for half in maps[:2]), maps.users[:100])


def published_records(maps):
    return int(maps.published["none"].counts.sum())


def compared(function):
    return lambda maps, rng: function(maps.published["none"], maps.known["none"])


def attacked(attack):
    return lambda traces, rng: attack.fit(traces).rank(traces)


CASES = [
    Case("stays, 200 m and 15 min", "mobpriv stays", our_stays, 500, 20_000),
    Case("stays, 200 m and 15 min", "peer: Python loop over NumPy windows", looped_stays, 5, 2_000, runs=1),
    Case("heat maps, 800 m", "mobpriv heat_maps", our_heat_maps, 500, 20_000),
    Case("heat maps, 800 m", "peer: the same cells, pandas groupby", grouped_heat_maps, 500, 20_000),
    Case("heat maps and Topsoe, all pairs", "mobpriv topsoe", our_topsoe, 536, 5_000),
    Case("heat maps and Topsoe, all pairs", "peer: SciPy cdist, Jensen-Shannon", scipy_topsoe, 536, 5_000),
    Case("AP-Attack, fit and rank", "mobpriv APAttack", attacked(APAttack()), 500, 20_000),
    *(
        Case(
            f"nearest heat maps, {users:,} users",
            version,
            compared(function),
            users,
            0,
            1,
            crowd,
            first_hundred,
            published_records,
        )
        for users, version, function in (
            (10_000, "mobpriv nearest", nearest),
            (10_000, "peer: mobpriv topsoe, all pairs", topsoe),
            (100_000, "mobpriv nearest", nearest),
        )
    ),
    Case("POI-Attack, fit and rank", "mobpriv POIAttack", attacked(POIAttack()), 500, 20_000),
    Case("PIT-Attack, fit and rank", "mobpriv PITAttack", attacked(PITAttack()), 500, 20_000),
]

if __name__ == "__main__":
    print(table(__file__))
