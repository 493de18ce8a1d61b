"""PRIMULE at the scale of its paper, step by step: ``python benchmarks/bench_scale.py [PEOPLE …]`` prints a table and keeps it.

Call records of the synthetic region with 139 municipalities and 1 500 antennas are generated and written; a file becomes individual call
profiles; the Sociometer labels them; PRIMULE protects them with k = 10 and 100. Each step runs in a process of its own and hands the
next one files, as a statistician would do it. 3 000 000 people make the 85 million records of PRIMULE's §7, for which its authors had 4
nodes with 24 cores. What comes out is checked when the clock has stopped: ``least`` is the smallest group, without the municipalities of
fewer than k profiles. Memory is the largest resident size of a step, with the processes that it starts counted for their largest.

The table is kept in ``benchmarks/scale.csv``, from which the book draws its curves (page "Does it work at Tuscany's scale?"); sizes that are not
measured again stay there. ``python benchmarks/bench_scale.py outcome [PEOPLE …]`` measures no time: it keeps in ``benchmarks/scale_outcome.csv``
what comes out, in Figure 5 and in the Sociometer's labels. It needs 2 GB, and for 3 000 000 people some six minutes.
"""

import multiprocessing
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from measure import SEED

from mobpriv.base.estimates import Estimate
from mobpriv.book.provenance import write_atomically
from mobpriv.datasets.region import ZONE, write_region
from mobpriv.experiments.primule_scale import AllMunicipalities, over_municipalities, scale_results
from mobpriv.icp.files import icps_of_files
from mobpriv.icp.profiles import Window, values
from mobpriv.icp.sociometer import Sociometer

WINDOW = Window("2024-10-07", ZONE)
SIZES = (35_300, 353_000)  # a million records, and ten
MUNICIPALITIES = 139  # PRIMULE's, §7
TABLE = Path(__file__).with_name("scale.csv")
OUTCOME = Path(__file__).with_name("scale_outcome.csv")
KS = (10, 100)


def generate(folder: Path, people: int) -> None:
    write_region(folder, people, MUNICIPALITIES, 1500, 0.25, workers=2, level=1)


def profiles(folder: Path, people: int) -> Callable:
    # 0.5 GB for DuckDB; Python and the profiles come on top
    found = icps_of_files(folder / "region.parquet", WINDOW, memory=0.5, threads=2)
    return lambda: found.profiles.to_parquet(folder / "profiles.parquet")


def _read(folder: Path, *columns: str) -> pd.DataFrame:
    return pd.read_parquet(folder / "profiles.parquet", columns=list(columns))


def labels(folder: Path, people: int) -> None:
    key = _read(folder, "key")["key"].to_numpy()
    different, of, sizes = np.unique(key, return_inverse=True, return_counts=True)
    shares = values(different)
    fitted = Sociometer().fit(shares, sizes, np.random.default_rng(SEED))
    np.save(folder / "labels.npy", fitted.codes(shares)[of])


def primule(folder: Path, people: int, k: int) -> Callable:
    profiles = _read(folder, "municipality", "key")
    found = over_municipalities(profiles, k, workers=2)
    return lambda: _least(profiles, found)


def _least(profiles: pd.DataFrame, found: AllMunicipalities) -> int:
    """The smallest group where PRIMULE could protect; raises where a profile is lost, or a sum over all profiles has changed."""
    if not (np.bincount(found.group, minlength=len(found.members)) == found.members).all():
        raise AssertionError("a profile is in no group, or in two")
    different, many = np.unique(profiles["key"], return_counts=True)
    if not (found.totals.sum(axis=0) == np.round(values(different) * 10 * many[:, None]).sum(axis=0)).all():
        raise AssertionError("the sum of a cell over all profiles is another after PRIMULE")
    anonymous = found.municipalities.set_index("municipality")["anonymous"]
    protected = profiles["municipality"].map(anonymous).to_numpy(bool)
    return int(found.members[np.unique(found.group[protected])].min())


STEPS = {
    "generated and written": (generate, ()),
    "profiles": (profiles, ()),
    "labels": (labels, ()),
    **{f"PRIMULE, k = {k}": (primule, (k,)) for k in KS},
}


def come_out(people: int) -> pd.DataFrame:
    """What comes out for so many people, a row a number: people, municipalities, records, profiles, name, value, low, high, n."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), people)
        profiles(Path(folder), people)()
        made = _read(Path(folder), "municipality", "key")
        records = pq.read_metadata(Path(folder) / "region.parquet").num_rows
    found = scale_results(made, {k: over_municipalities(made, k, workers=2) for k in KS}, np.random.default_rng(SEED))
    of = {"people": people, "municipalities": MUNICIPALITIES, "records": records, "profiles": len(made)}
    return pd.DataFrame(
        of | {"name": name} | (dict(one) if isinstance(one, Estimate) else {"value": one}) for name, one in found.items()
    )


def keep(file: Path, sizes: list[int], found: pd.DataFrame) -> None:
    """Write what was found for these sizes into a table, beside what it has of others."""
    if file.is_file():
        kept = pd.read_csv(file)
        found = pd.concat([kept[~kept["people"].isin(sizes)], found])
    write_atomically(file, found.sort_values("people", kind="stable").to_csv(index=False))


def measure(function, folder: Path, people: int, given: tuple) -> tuple:
    """Seconds, processor seconds and GB of one step; to be called in a fresh process. What it returns writes its files, or checks
    what came out: the last number."""
    start = time.perf_counter()
    keep = function(folder, people, *given)
    seconds = time.perf_counter() - start
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    unit = 1024**2 if sys.platform != "darwin" else 1024**3  # ru_maxrss is in KB, on a Mac in bytes
    least = keep() if keep else None
    return seconds, sum(u.ru_utime + u.ru_stime for u in used), max(u.ru_maxrss for u in used) / unit, least


def row(step: str, folder: Path, people: int) -> dict:
    function, given = STEPS[step]
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # a process hands its largest size on to those it starts
        seconds, processor, memory, least = pool.apply(measure, (function, folder, people, given))
    records = pq.read_metadata(folder / "region.parquet").num_rows
    made = folder / "profiles.parquet"
    return {
        "people": people,
        "municipalities": MUNICIPALITIES,
        "records": records,
        "profiles": pq.read_metadata(made).num_rows if made.is_file() else None,
        "step": step,
        "seconds": round(seconds, 2),
        "processor": round(processor, 2),
        "memory": round(memory, 3),
        "least": least,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "outcome"]
    sizes = [int(size) for size in given] or list(SIZES)
    if "outcome" in sys.argv[1:]:
        keep(OUTCOME, sizes, pd.concat(map(come_out, sizes)).round(6).astype({"n": "Int64"}))
        sys.exit()
    found = []
    print("| records | step | seconds | processor seconds | memory (GB) |\n|---:|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:  # compiles what is not compiled yet
            row(step, Path(folder), 1000)
    for people in sizes:
        with tempfile.TemporaryDirectory() as folder:
            for step in STEPS:
                one = row(step, Path(folder), people)
                found.append(one)
                print(f"| {one['records']:,} | {step} | {one['seconds']} | {one['processor']} | {one['memory']} |", flush=True)
    table = pd.DataFrame(found)
    table["profiles"] = table.groupby("people")["profiles"].transform("max").astype("int64")
    table["least"] = table["least"].astype("Int64")
    keep(TABLE, sizes, table)
