"""The ground of every experiment beside its limits: ``python benchmarks/bench_ground.py [FILE]`` prints a table.

From the Parquet file to the heat maps of AP-Attack, each step apart, on FILE (by default the embedded city); in the same run the
limit of each: columns read and not looked at, a packed key and a count. Each line is measured in a process of its own: the best
of several runs after a first one that compiles; memory is the largest resident size of that process. CPU seconds stand beside,
for other programs may use the machine. The last line is a whole program: Python's start, imports, reading, AP-Attack's rate.
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
import pyarrow.parquet as pq
from whole import AP
from whole import measure as measure_program

from mobpriv.datasets import data_folder, load
from mobpriv.datasets.fetching import sha256_of
from mobpriv.ground.grid import SquareGrid
from mobpriv.traces.profiles import heat_maps
from mobpriv.traces.table import HALVES, milliseconds, most_active_days, same_person, split_in_half, within_days

GRID = SquareGrid(800.0)


class Step(NamedTuple):
    task: str
    version: str
    prepare: Callable  # of the file
    call: Callable  # of what that gave
    runs: int = 5


def columns(file: Path):
    return pq.read_table(file, columns=["user", "t", "lat", "lng"], read_dictionary=["user"])


def traces(file: Path):
    return load(file).traces


def places(file: Path):
    table = traces(file)
    return table["user"].cat.codes.to_numpy(), table["lat"].to_numpy(), table["lng"].to_numpy()


def packed(file: Path):
    """User, row and column of each record; rows and columns counted from 0, so that they fit one key."""
    user, lat, lng = places(file)
    near = (np.abs(lat - np.median(lat)) < 1) & (np.abs(lng - np.median(lng)) < 1)
    row, column = ((c[near] - c[near].min()) * 125 for c in (lat, lng))
    return user[near].astype(np.int64), row.astype(np.int64), column.astype(np.int64)


def counted(keys) -> np.ndarray:
    user, row, column = keys
    return np.bincount((user * 256 + row) * 256 + column)


def grouped(given) -> pd.Series:
    user, lat, lng = given
    return pd.DataFrame({"user": user, "cell": GRID.cells(lat, lng)}).groupby(["user", "cell"]).size()


def sorted_records(table) -> pd.Series:
    """A peer of same_person: only the records that another one repeats, by pandas."""
    return pd.DataFrame({"t": milliseconds(table), "lat": table["lat"], "lng": table["lng"]}).duplicated(keep=False)


def halves(table):
    first = most_active_days(table, 30)
    return split_in_half(within_days(table, first, 30), HALVES[0], first, 30)


STEPS = [
    Step("from file to traces", "mobpriv load: read, validated, hashed", lambda file: file, load),
    Step("from file to traces", "limit: the four columns, not looked at", lambda file: file, columns),
    Step("from file to traces", "of that SHA-256 of the file", lambda file: file, sha256_of),
    Step("days and halves", "mobpriv most_active_days, within, split_in_half", traces, halves),
    Step("one person under two names", "mobpriv same_person", traces, same_person),
    Step("one person under two names", "peer: pandas duplicated, no pairs", traces, sorted_records),
    Step("heat maps, 800 m", "mobpriv heat_maps, from lat and lng", traces, lambda table: heat_maps(table, GRID)),
    Step("heat maps, 800 m", "of that SquareGrid.cells", places, lambda given: GRID.cells(given[1], given[2])),
    Step("heat maps, 800 m", "limit: packed key and bincount, cells given", packed, counted),
    Step("heat maps, 800 m", "peer: the same cells, pandas groupby", places, grouped),
]


def measure(line: tuple[Path, int]) -> dict:
    """One line of the table; to be called in a fresh process."""
    file, number = line
    step = importlib.import_module("bench_ground").STEPS[number]
    given = step.prepare(file)
    step.call(given)
    seconds, cpu = [], []
    for _ in range(step.runs):
        start, used = time.perf_counter(), time.process_time()
        step.call(given)
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    unit = 1024**2 if sys.platform != "darwin" else 1024**3  # ru_maxrss is in KB, on a Mac in bytes
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return {"seconds": min(seconds), "cpu": min(cpu), "memory": memory}


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else data_folder() / "city.parquet"
    records = pq.ParquetFile(file).metadata.num_rows
    print(f"{records:,} records\n")
    print("| task | version | seconds | CPU seconds | records/s | memory (GB) |\n|---|---|---:|---:|---:|---:|", flush=True)
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for step, line in zip(STEPS, pool.imap(measure, [(file, k) for k in range(len(STEPS))]), strict=True):
            print(
                f"| {step.task} | {step.version} | {line['seconds']:.3f} | {line['cpu']:.3f} | {records / line['seconds']:,.0f} "
                f"| {line['memory']:.2f} |",
                flush=True,
            )
    program = AP.format(file=str(file), given={})
    seconds, memory, rate = min(measure_program(program) for _ in range(3))
    print(f"| from file to AP-Attack's rate | a whole program: {float(rate):.4f} | {seconds:.2f} | | | {memory:.2f} |")
