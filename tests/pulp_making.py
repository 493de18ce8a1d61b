"""Small traces for the tests of PULP."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mobpriv.ground.geo import metres_per_degree
from mobpriv.traces.table import Traces, from_blocks

START = 1_450_000_000_000  # ms
EAST, NORTH = (float(scale) for scale in metres_per_degree(np.array(45.0)))


def journey(stops, user="ann") -> Traces:
    """A trace through places (metres east, metres north of 45°, 5°), each with minutes of stay: a record a minute."""
    east, north = (np.concatenate([np.full(minutes + 1, place[k], float) for place, minutes in stops]) for k in (0, 1))
    time = START + 60_000 * np.arange(len(east))
    return from_blocks(pd.Index([user]), [len(east)], time, 45 + north / NORTH, 5 + east / EAST)


def wanderers(counts, seed) -> Traces:
    """Users a, b, … who stand about and walk on, a record a minute."""
    rng = np.random.default_rng(seed)
    n = sum(counts)
    moves = rng.normal(0, 0.004, (2, n)) * (rng.random(n) < 0.1)
    lat, lng = 0.03 * np.sin(np.cumsum(moves, axis=1) / 0.03)
    users = pd.Index([chr(97 + i) for i in range(len(counts))])
    return from_blocks(users, counts, START + 60_000 * np.arange(n), 45 + lat, 5 + lng)


@dataclass(frozen=True)
class Moody:
    """Refuses traces of more than a few records, or gives them to somebody else."""

    most: float = 300.0
    name = "Moody"
    renames: bool = False

    def protect(self, traces, rng):
        if len(traces) > self.most and not self.renames:
            raise ValueError(f"at most {self.most:g} records are taken")
        return traces.assign(user=pd.Categorical(["zoe"] * len(traces)))


class StepStore(dict):
    """Keeps what was computed under its name, as a ``keep`` does."""

    def __call__(self, name, compute):
        return self[name] if name in self else self.setdefault(name, compute())
