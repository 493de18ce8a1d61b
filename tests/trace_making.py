"""Traces for the tests: random walks near Lyon, the edge cases of the oracles, users who stroll about their homes."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from mobpriv.ground import geo
from mobpriv.traces.table import as_traces, milliseconds


def traces_of(walks):
    """One user a walk; a walk is a list of (seconds, metres east, metres north) near Lyon."""
    east, north = geo.metres_per_degree(np.array([45.76]))
    rows = [(f"u{i}", t, 45.76 + y / north[0], 4.83 + x / east[0]) for i, walk in enumerate(walks) for t, x, y in walk]
    table = pd.DataFrame(rows, columns=["user", "t", "lat", "lng"])
    return as_traces(table.assign(t=pd.to_datetime(table["t"] + 1.45e9, unit="s", utc=True)))


steps = st.tuples(st.integers(0, 900), st.integers(-120, 120), st.integers(-120, 120))
walks = st.lists(steps, min_size=1, max_size=60).map(lambda s: [tuple(r) for r in np.cumsum(s, axis=0).tolist()])


def edge_traces(reference, folder="raw"):
    parts = [
        pd.read_csv(f, header=None, names=["lat", "lng", "t"]).assign(user=f.stem)
        for f in sorted((reference / "edge_traces" / folder).glob("*.csv"))
        if f.stat().st_size
    ]
    table = pd.concat(parts)
    return as_traces(table.assign(t=pd.to_datetime(table["t"], unit="ms", utc=True)))


def strolls(users, days=2, distance=30_000.0, spread=400.0, seed=1):
    """Users who are recorded every 10 min about homes ``distance`` metres from one another."""
    rng = np.random.default_rng(seed)
    walk = lambda home: [(600 * i, home + x, y) for i, (x, y) in enumerate(rng.normal(0, spread, (144 * days, 2)))]  # noqa: E731
    return traces_of([walk(distance * u) for u in range(users)])


def records(traces):
    """user -> [(time in ms, lat, lng)]."""
    out = {}
    for user, *record in zip(traces["user"], milliseconds(traces), traces["lat"], traces["lng"], strict=True):
        out.setdefault(user, []).append(tuple(record))
    return out
