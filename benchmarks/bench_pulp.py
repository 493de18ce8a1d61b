"""PULP's steps beside plain versions of the same (peers): ``python benchmarks/bench_pulp.py`` prints a table.

``python benchmarks/bench_pulp.py seconds`` writes ``pulp_seconds.csv``: PULP and ALP side by side, for users of the synthetic city; and the
two metrics of one trace behind Geo-I that becomes longer.

``python benchmarks/bench_pulp.py DATA [WORKERS]`` measures instead the whole way for all users of a data set in its 30 most active
days: the profile of 27 settings, the models, the laws.
"""

import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from measure import Case, table

from mobpriv.experiments.days import choose
from mobpriv.experiments.pulp import prepare
from mobpriv.ground.grid import S2Grid, s2_keys
from mobpriv.metrics import area_coverage, poi_privacy
from mobpriv.pulp import (
    GEO_I,
    SWEEPS,
    alp,
    both_thresholds,
    candidates_of,
    models,
    privacy_threshold,
    profile,
    pu_ratio,
    recommend,
    utility_threshold,
)
from mobpriv.traces.profiles import poi_centres, pois
from mobpriv.traces.table import Traces, as_traces

T0 = 1_211_033_530  # s, of the first record of a made trace
LAWS = {
    "PU-ratio": lambda c: pu_ratio(c, 2),
    "PU-thld": lambda c: both_thresholds(c, 0.6, 0.7),
    "P-thld": lambda c: privacy_threshold(c, 0.7),
    "U-thld": lambda c: utility_threshold(c, 0.5),
}


def plainly(traces: Traces, rng: np.random.Generator) -> pd.DataFrame:
    """The profile with the public metrics, all users at once."""
    found = []
    for sweep in SWEEPS:
        for value in sweep.values:
            published = sweep.at(value).protect(traces, rng)
            privacy = poi_privacy(traces, published)["privacy"]
            found.append(pd.DataFrame({"privacy": privacy, "utility": area_coverage(traces, published, S2Grid(15))["f_score"]}))
    return pd.concat(found)


def positions(traces: Traces) -> tuple[np.ndarray, np.ndarray]:
    return traces["lat"].to_numpy(), traces["lng"].to_numpy()


def one_setting(traces: Traces, rng: np.random.Generator) -> pd.DataFrame:
    """What ALP is for: Geo-I's ε for each user (§VI-D)."""
    return recommend(models(profile(traces, [GEO_I]), [GEO_I]), lambda own: pu_ratio(own, 1))


CASES = [
    Case("profile, 27 settings", "mobpriv profile, one process", lambda t, rng: profile(t), 5, 20_000, 1),
    Case("profile, 27 settings", "peer: the public metrics", plainly, 5, 20_000, 1),
    Case("Geo-I's setting", "mobpriv profile, models, PU-ratio", one_setting, 2, 5_000, 1),
    Case("Geo-I's setting", "mobpriv alp: 111 settings, 3 times each", lambda t, rng: alp(t), 2, 5_000, 1),
    Case("POIs", "mobpriv poi_centres", lambda t, rng: poi_centres(t, 200, 900), 50, 20_000),
    Case("POIs", "peer: mobpriv pois", lambda t, rng: pois(t, 200, 900), 50, 20_000),
    Case("S2 cells, level 15", "mobpriv s2_keys, one thread", lambda t, rng: s2_keys(*positions(t), 15), 50, 20_000),
    Case("S2 cells, level 15", "mobpriv S2Grid, all threads", lambda t, rng: S2Grid(15).cells(*positions(t)), 50, 20_000),
]


def clocks() -> np.ndarray:
    """Seconds of the wall clock, and of the processor by this process and all that have ended."""
    return np.array([time.perf_counter(), sum(os.times()[:4])])


def whole_way(data: str, workers: int) -> str:
    """The Markdown table of the steps on a data set."""
    traces = choose(data).traces
    spent = {}

    def timed(step, call):
        start = clocks()
        result = call()
        spent[step] = clocks() - start
        return result

    measured = timed(f"profile, {workers} processes", lambda: profile(traces, workers=workers))
    fitted = timed("models", lambda: models(measured))
    users = candidates_of(fitted)
    for name, law in LAWS.items():
        timed(name, lambda law=law: [law(own) for own in users.values()])
    lines = [f"{len(traces):,} records of {len(users)} users, {len(measured):,} levels, {len(fitted):,} models", ""]
    lines += ["| step | seconds | processor seconds | ms of it a user |", "|---|---:|---:|---:|"]
    lines += [f"| {step} | {s:.2f} | {cpu:.2f} | {1000 * cpu / len(users):.3f} |" for step, (s, cpu) in spent.items()]
    unit = 1024**2 if sys.platform != "darwin" else 1024**3  # ru_maxrss is in KB, on a Mac in bytes
    own, child = (resource.getrusage(who).ru_maxrss / unit for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return "\n".join([*lines, "", f"memory: {own:.2f} GB and {child:.2f} GB in the largest worker"])


def side_by_side(users: int = 12, days: int = 30) -> pd.DataFrame:
    """Processor seconds of PULP and of ALP for the same users of the synthetic city: profile, models and law; one annealing."""
    traces, found = prepare("city", days=days, sample=users).traces, []
    one_setting(traces, np.random.default_rng(1))  # compiled
    for method, call in {"PULP": lambda: one_setting(traces, np.random.default_rng(1)), "ALP": lambda: alp(traces)}.items():
        start = clocks()
        call()
        found.append({"method": method, "users": users, "records": len(traces), "seconds": (clocks() - start)[1].round(2)})
    return pd.DataFrame(found)


def by_length(records: int = 12_500, times: int = 6) -> pd.DataFrame:
    """Processor seconds of the two metrics for one user with ``records`` records, twice as many, … (§VII), protected by Geo-I."""
    every, found = prepare("city", days=30, sample=100).traces, []
    for n in records * 2 ** np.arange(times):
        own = every[:n].assign(t=pd.to_datetime(T0 + 60 * np.arange(n), unit="s", utc=True), user="one")
        own = as_traces(own)
        published = GEO_I.at(0.01).protect(own, np.random.default_rng(1))
        calls = {
            "privacy": lambda a=own, b=published: poi_privacy(a, b),
            "utility": lambda a=own, b=published: area_coverage(a, b, S2Grid(15)),
        }
        for metric, call in calls.items():
            call()  # compiled
            start = clocks()
            for _ in range(5):
                call()
            found.append({"method": metric, "users": 1, "records": n, "seconds": ((clocks() - start)[1] / 5).round(4)})
    return pd.DataFrame(found)


if sys.argv[1:] == ["seconds"]:
    pd.concat([side_by_side(), by_length()]).to_csv(Path(__file__).with_name("pulp_seconds.csv"), index=False)
elif __name__ == "__main__":
    print(whole_way(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2) if len(sys.argv) > 1 else table(__file__))
