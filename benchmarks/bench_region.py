"""The synthetic region, made, written and read, and calls made of traces: ``python benchmarks/bench_region.py [PEOPLE]`` prints a table.

With PEOPLE the last line writes that many people of 139 municipalities with 1 500 antennas, at about one call a day: 3 000 000 of them
are the 85 million records of PRIMULE's §7. Each line is measured in a process of its own, after a first small run that compiles;
memory is the largest resident size of that process. Processor seconds (of all threads) stand beside, for other programs may use the
machine.
"""

import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import SEED, fleet

from mobpriv.calls.events import calls_from_traces, place_antennas
from mobpriv.datasets import load_calls
from mobpriv.datasets.region import ground_of, people_blocks, write_region

ONE_A_DAY = {"municipalities": 139, "antennas": 1500, "calls": 0.25}


def generate(people: int, workers: int, municipalities: int = 20, antennas: int = 160, calls: float = 0.8):
    ground = ground_of(municipalities, antennas)
    next(people_blocks(ground, 10, calls))
    return lambda: sum(len(block.t) for block in people_blocks(ground, people, calls, workers=workers))


def write(people: int, workers: int, level: int, **ground):
    next(people_blocks(ground_of(2, 4), 10, 1.0))

    def call():
        with tempfile.TemporaryDirectory() as folder:
            first = write_region(folder, people, **ground, workers=workers, level=level)[0]
            return _records(first)

    return call


def _records(file: Path) -> int:
    import pyarrow.parquet as pq

    return pq.read_metadata(file).num_rows


def read():
    load_calls("region")
    return lambda: len(load_calls("region").calls)


def place():
    traces = fleet(100, 100_000)
    place_antennas(traces[::1000], 10, np.random.default_rng(SEED))
    return lambda: place_antennas(traces, 300, np.random.default_rng(SEED)).shape[0] and len(traces)


def from_traces():
    traces = fleet(100, 100_000)
    antennas = place_antennas(traces, 300, np.random.default_rng(SEED))
    calls_from_traces(traces[:1000], antennas, np.random.default_rng(SEED))
    return lambda: len(calls_from_traces(traces, antennas, np.random.default_rng(SEED), rate=28).calls) and len(traces)


LINES = [
    ("the embedded region, generated", generate, (12_000, 1)),
    ("the embedded region, generated and written for good (zstd 19)", write, (12_000, 1, 19)),
    ("the embedded region, read", read, ()),
    ("60 000 people, generated", generate, (60_000, 1)),
    ("60 000 people, generated, two at work", generate, (60_000, 2)),
    ("60 000 people, generated and written (zstd 1), two at work", write, (60_000, 2, 1)),
    ("300 antennas among 10 M records of traces", place, ()),
    ("calls of 10 M records of traces, 28 a day", from_traces, ()),
]


def measure(task: str, prepare, given: tuple, also: dict) -> str:
    call = prepare(*given, **also)
    wall, processor = time.perf_counter(), time.process_time()
    records = call()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    unit = 1024**2 if sys.platform != "darwin" else 1024**3  # ru_maxrss is in KB, on a Mac in bytes
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return f"| {task} | {records:,} | {wall:.2f} | {processor:.2f} | {records / wall:,.0f} | {memory:.2f} |"


if __name__ == "__main__":
    lines = [(*line, {}) for line in LINES]
    if len(sys.argv) > 1:
        people = int(sys.argv[1])
        lines.append(
            (
                f"{people:,} people in 139 municipalities, generated and written (zstd 1), two at work",
                write,
                (people, 2, 1),
                ONE_A_DAY,
            )
        )
    print("| task | records | seconds | processor seconds | records/s | memory (GB) |")
    print("|---|---:|---:|---:|---:|---:|")
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for line in pool.starmap(measure, lines, chunksize=1):
            print(line)
