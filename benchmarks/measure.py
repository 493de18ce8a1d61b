"""Seconds, records a second and memory of one routine on generated cabs, or on other data; used by the bench_*.py beside it.

Each line is measured in a process of its own: the best of several runs after a first one that compiles; memory is the largest
resident size of that process, input included.
"""

import importlib
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.traces.table import Traces, from_blocks
from mobpriv.traces.table import rows as some_rows

SEED = 20190


def fleet(users: int, records: int) -> Traces:
    """Cab-like random walks about San Francisco: a record a minute, steps of 300 m, half of the records at a standstill."""
    rng = np.random.default_rng(SEED)
    n = users * records
    moves = rng.normal(0, 0.002, (2, users, records)) * (rng.random((users, records)) < 0.5)
    # the walks are pulled home, so that they stay in the town
    angle = np.cumsum(moves, axis=2) * 10
    lat, lng = 37.75 + 0.04 * np.sin(angle[0]), -122.42 + 0.05 * np.sin(angle[1])
    minute = np.tile(60_000 * np.arange(records), users) + 1_200_000_000_000
    names = pd.Index([f"cab {i:04d}" for i in range(users)])
    return from_blocks(names, np.full(users, n // users), minute, lat.ravel(), lng.ravel())


def every_200th(traces: Traces) -> Traces:
    return some_rows(traces, np.arange(0, len(traces), 200))


class Case(NamedTuple):
    task: str
    version: str
    call: Callable  # of (traces, rng)
    users: int
    records: int  # of each user
    runs: int = 3
    make: Callable = fleet  # the data, of (users, records)
    few: Callable = every_200th  # of the data, for the first run
    count: Callable = len  # of the data, the number of records


def measure(module: str, case: int) -> dict:
    """One line of a table; to be called in a fresh process."""
    c = importlib.import_module(module).CASES[case]
    traces = c.make(c.users, c.records)
    c.call(c.few(traces), np.random.default_rng(SEED))
    seconds = []
    for _ in range(c.runs):
        rng = np.random.default_rng(SEED)
        start = time.perf_counter()
        c.call(traces, rng)
        seconds.append(time.perf_counter() - start)
    unit = 1024**2 if sys.platform != "darwin" else 1024**3  # ru_maxrss is in KB, on a Mac in bytes
    return {
        "task": c.task,
        "version": c.version,
        "records": c.count(traces),
        "seconds": min(seconds),
        "records_per_second": c.count(traces) / min(seconds),
        "memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit,
    }


def table(file: str) -> str:
    """The Markdown table of the cases of a file ``bench_….py``."""
    module = Path(file).stem
    cases = importlib.import_module(module).CASES
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        lines = pool.starmap(measure, [(module, case) for case in range(len(cases))], chunksize=1)
    text = ["| task | version | records | seconds | records/s | memory (GB) |", "|---|---|---:|---:|---:|---:|"]
    for r in lines:
        text.append(
            f"| {r['task']} | {r['version']} | {r['records']:,} | {r['seconds']:.2f} | {r['records_per_second']:,.0f} "
            f"| {r['memory_gb']:.2f} |"
        )
    return "\n".join(text)
