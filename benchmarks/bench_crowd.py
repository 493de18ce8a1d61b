"""AP-Attack among a large crowd of the synthetic city: ``python benchmarks/bench_crowd.py USERS`` prints a table and keeps it.

The first part of the time makes the users, protects their traces and makes the heat maps. The second part attacks the first users,
among all users and among the smaller crowds of :data:`SIZES`. Memory is the largest resident size. The rates and the measurements are
kept in ``benchmarks/crowd.csv``, from which the book draws its curves (page "Does a larger crowd replace protection?"). Crowds that
are not measured again stay there. An adversary who knows the mechanism protects all training halves: ``… USERS recorded`` leaves
him out.
"""

import os
import resource
import sys
import time
from pathlib import Path

import pandas as pd

from mobpriv.base.estimates import Estimate
from mobpriv.book.provenance import write_atomically
from mobpriv.datasets.city.crowd import Crowd
from mobpriv.experiments.thesis_3_crowd import MECHANISMS, crowd_maps, crowd_results

SEED = 1
ATTACKED = 2_000
SIZES = (1_000, 10_000, 100_000, 1_000_000)
TABLE = Path(__file__).with_name("crowd.csv")


def measured(users: int, trained: list[str]) -> pd.DataFrame:
    """The rates among crowds of up to ``users``, and what they took; a row a number."""
    start = time.perf_counter(), time.process_time()
    maps = crowd_maps(Crowd(SEED), users, min(ATTACKED, users), MECHANISMS, SEED, trained)
    made = time.perf_counter(), time.process_time()
    results = crowd_results(maps, [n for n in SIZES if n <= users])
    unit = 1024**2 if sys.platform != "darwin" else 1024**3  # ru_maxrss is in KB, on a Mac in bytes
    used = {
        "seconds.make": made[0] - start[0],
        "processor.make": made[1] - start[1],
        "seconds.attack": time.perf_counter() - made[0],
        "processor.attack": time.process_time() - made[1],
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit,
        "cores": os.cpu_count(),
    }
    rows = (
        {"name": name} | (dict(one) if isinstance(one, Estimate) else {"value": one}) for name, one in (results | used).items()
    )
    return pd.DataFrame(rows).assign(users=users)


if __name__ == "__main__":
    users = int(sys.argv[1])
    found = measured(users, ["none"] if "recorded" in sys.argv else list(MECHANISMS))
    print(found.to_string(index=False))
    if TABLE.is_file():
        kept = pd.read_csv(TABLE)
        found = pd.concat([kept[kept["users"] != users], found])
    table = found[["users", "name", "value", "low", "high", "n"]].sort_values("users", kind="stable")
    write_atomically(TABLE, table.round(6).astype({"n": "Int64"}).to_csv(index=False))
