"""Call records and individual call profiles for the tests of PRIMULE."""

import numpy as np
import pandas as pd

from mobpriv.calls.table import as_calls
from mobpriv.icp import profiles as icps

ROME = "Europe/Rome"


CELLS = pd.DataFrame(
    {
        "cell": ["c1", "c2", "c3", "nowhere"],
        "lat": [43.7, 43.8, 43.9, np.nan],
        "lng": [10.4, 10.5, 10.6, np.nan],
        "municipality": ["Pisa", "Pisa", "Lucca", None],
    }
)


def calls_of(records, zone="UTC"):
    """Calls from (user, time by the clocks of the zone or ms since 1970, cell, end_cell, seconds); the last two may be missing."""
    full = [(*r, r[2], 60.0)[:5] if len(r) == 3 else (*r, 60.0)[:5] for r in records]
    user, t, cell, end, seconds = zip(*full, strict=True) if full else ((), (), (), (), ())
    if full and isinstance(t[0], int | np.integer):
        t = pd.Series(np.array(t, "int64").view("datetime64[ms]")).dt.tz_localize("UTC")
    else:
        t = pd.Series(
            pd.to_datetime(pd.Series(t, dtype="object"), format="ISO8601").dt.tz_localize(zone), dtype=f"datetime64[ms, {zone}]"
        )
    return as_calls(
        pd.DataFrame({"user": user, "t": t, "cell": cell, "end_cell": end, "duration": seconds}).astype(
            {"user": "str", "cell": "str", "end_cell": "str"}
        )
    )


def crowd(n=150, seed=1, cells=24):
    """Sparse profiles, many of them equal, with a name each."""
    rng = np.random.default_rng(seed)
    calls = rng.poisson(rng.gamma(0.3, 1.0, (n, 1)) * rng.random((n, cells)) ** 2)
    days = np.minimum(calls, icps.DAYS[:cells])
    return pd.DataFrame(days / icps.DAYS[:cells], index=pd.Index([f"u{i:03}" for i in range(n)], name="user"))


def called_days(n, seed=1):
    """Shares of days of profiles for the Sociometer, fuller by day than in the morning."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.5, 0.3, (n, 1)) * np.tile([0.1, 1, 0.4], 8) * rng.choice([0.2, 1], (n, 24))
    return rng.binomial(icps.DAYS, np.minimum(rate, 1)) / icps.DAYS
