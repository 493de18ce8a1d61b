"""Call records to individual call profiles, and the linking attack, beside plain versions (peers): ``python benchmarks/bench_icps.py [PEOPLE]``
prints a table.

The records are those of the synthetic region with 139 municipalities and 1 500 antennas, at about one call a day: 35 300 people make a
million, 353 000 ten, and with PEOPLE there is a line for so many (3 000 000 are the 85 million records of PRIMULE's §7; limits on two
quiet cores: profiles within 12 s and 1.2 GB). Each line is measured in a process of its own; memory is the largest resident size of that process
(of a cluster, without its workers). Processor seconds (of all threads, and of the workers of a cluster) stand beside, for other programs may use
the machine.
"""

import multiprocessing
import os
import resource
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from measure import SEED

from mobpriv.attacks.icp.linking import anonymity_across_municipalities, risk
from mobpriv.datasets import load_calls, read_cells
from mobpriv.datasets.region import ZONE, write_region
from mobpriv.icp.cluster import icps_on_cluster
from mobpriv.icp.files import icps_of_files
from mobpriv.icp.profiles import DAYS, Window, icps, keys, values

WINDOW = Window("2024-10-07", ZONE)
MILLION, TEN = 35_300, 353_000


def by_duckdb(file: Path, stack: ExitStack, **options):
    return lambda: icps_of_files(file, WINDOW, **options)


def by_cluster(file: Path, stack: ExitStack):
    from distributed import Client, LocalCluster

    cluster = stack.enter_context(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))
    client = stack.enter_context(Client(cluster))
    client.wait_for_workers(2)
    return lambda: icps_on_cluster(file, WINDOW, client, chunk=1 << 21)


def by_table(file: Path, stack: ExitStack):
    data = load_calls(file)
    return lambda: icps(data.calls, data.cells, WINDOW)


def by_pandas(file: Path, stack: ExitStack):
    """The profiles of a file as one would write them with pandas."""
    towns = read_cells(file.with_name("region_cells.parquet")).set_index("cell")["municipality"]

    def call():
        calls = pq.read_table(file, columns=["user", "t", "cell"]).to_pandas()
        local = pd.to_datetime(calls["t"], unit="s", utc=True).dt.tz_convert(ZONE).dt.tz_localize(None)
        day = (local.dt.normalize() - pd.Timestamp(WINDOW.first)).dt.days
        slot = (local.dt.hour >= 8).astype(int) + (local.dt.hour >= 19)
        cell = (day // 7 * 2 + (local.dt.dayofweek >= 5)) * 3 + slot
        table = pd.DataFrame({"municipality": calls["cell"].map(towns), "user": calls["user"], "cell": cell, "day": day})
        days = table.drop_duplicates().groupby(["municipality", "user", "cell"], observed=True).size().unstack(fill_value=0)
        return keys(days.reindex(columns=range(24), fill_value=0).to_numpy(np.int64))

    return call


def profiles(n: int) -> np.ndarray:
    """Keys of n profiles, most of them sparse."""
    rng = np.random.default_rng(SEED)
    return keys(rng.binomial(DAYS, rng.beta(0.3, 2, (n, 1))))


def linking(file, stack, n: int, shares: bool):
    known = values(profiles(n)) if shares else profiles(n)
    return lambda: risk(known, 4)


def by_unique(file, stack, n: int):
    known = values(profiles(n))

    def call():
        _, group, many = np.unique(known, axis=0, return_inverse=True, return_counts=True)
        return 1 / many[group]

    return call


def k_of_three(file, stack):
    found = icps_of_files(file, WINDOW)
    anonymity_across_municipalities(found.profiles[:100], 3)
    return lambda: anonymity_across_municipalities(found.profiles, 3, 1)


LINES = [
    ("profiles of a file", "mobpriv icps_of_files, two threads", MILLION, by_duckdb, {"threads": 2}),
    ("profiles of a file", "mobpriv icps_of_files, one thread", MILLION, by_duckdb, {"threads": 1}),
    ("profiles of a file", "mobpriv icps_on_cluster, two workers", MILLION, by_cluster, {}),
    ("profiles of a file", "peer: pandas", MILLION, by_pandas, {}),
    ("profiles of a file", "mobpriv icps_of_files, two threads", TEN, by_duckdb, {"threads": 2}),
    ("profiles of a file", "the same in five chunks", TEN, by_duckdb, {"threads": 2, "chunk": 1 << 21}),
    (
        "profiles of a file",
        "the same in five chunks, DuckDB in 0.25 GB",
        TEN,
        by_duckdb,
        {"chunk": 1 << 21, "memory": 0.25, "threads": 2},
    ),
    ("profiles of a table", "mobpriv icps", MILLION, by_table, {}),
    ("risk of a million profiles", "mobpriv risk, keys", 0, linking, {"n": 1_000_000, "shares": False}),
    ("risk of a million profiles", "mobpriv risk, values", 0, linking, {"n": 1_000_000, "shares": True}),
    ("risk of 100 000 profiles", "mobpriv risk, values", 0, linking, {"n": 100_000, "shares": True}),
    ("risk of 100 000 profiles", "peer: NumPy unique of rows", 0, by_unique, {"n": 100_000}),
    ("the k of three municipalities", "mobpriv several, a record of the file", MILLION, k_of_three, {}),
]


def _processor() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measure(task: str, version: str, file: Path | None, prepare, given: dict) -> str:
    with ExitStack() as stack:
        call = prepare(file, stack, **given)
        processor, wall = _processor(), time.perf_counter()
        call()
        wall = time.perf_counter() - wall
    processor = _processor() - processor  # a cluster's workers have ended
    records = given.get("n") or pq.read_metadata(file).num_rows
    unit = 1024**2 if sys.platform != "darwin" else 1024**3  # ru_maxrss is in KB, on a Mac in bytes
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return f"| {task} | {version} | {records:,} | {wall:.2f} | {processor:.2f} | {records / wall:,.0f} | {memory:.2f} |"


if __name__ == "__main__":
    lines = list(LINES)
    if len(sys.argv) > 1:
        people = int(sys.argv[1])
        lines += [("profiles of a file", f"mobpriv icps_of_files, {os.cpu_count()} threads", people, by_duckdb, {})]
    print("| task | version | records | seconds | processor seconds | records/s | memory (GB) |")
    print("|---|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        files = {0: None}
        for people in sorted({line[2] for line in lines} - {0}):
            files[people] = Path(folder) / str(people) / "region.parquet"
            with multiprocessing.get_context("spawn").Pool(1) as pool:  # a process hands its largest size on to those it starts
                pool.apply(write_region, (files[people].parent, people, 139, 1500, 0.25), {"workers": 2, "level": 1})
        for task, version, people, prepare, given in lines:
            # a process with children of its own: no daemon, as those of a pool are
            with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
                if prepare is not by_cluster:
                    print(pool.apply(measure, (task, version, files[people], prepare, given)), flush=True)
                    continue
            print(measure(task, version, files[people], prepare, given), flush=True)
