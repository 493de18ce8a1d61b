"""ILL-Attack on a data set, beside AP- and POI-Attack: ``python benchmarks/bench_ill.py [FILE] [name=value …]`` prints a table.

Sessions of 30 minutes and days of 24 hours as in §5.5 of the thesis, on FILE (by default the embedded city); values are those of
mobpriv.experiments.thesis_5.prepare, for instance active=50 leave_out=NAME. Each line is measured in a process of its own and
counts imports and reading, too; memory is the largest resident size of that process. CPU seconds stand beside, for other programs
may use the machine. The last two lines are the choice inside the attack: trees learn from sparse columns or from full ones.
"""

import multiprocessing
import resource
import sys
import time
from pathlib import Path

import numba
import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from mobpriv.attacks.policies import reidentified
from mobpriv.experiments.thesis_5 import LENGTHS, attacks, prepare
from mobpriv.ground.grid import S2Grid
from mobpriv.traces.profiles import heat_maps
from mobpriv.traces.sub_traces import slices

TREES = 10  # for sparse against full columns: the time is linear in them
LINES = [(length, name) for length in LENGTHS for name in ("ILL-Attack", "AP-Attack", "POI-Attack")]
LINES += [("sessions", "sparse columns"), ("sessions", "full columns")]


def attacked(setting, length: str, name: str) -> tuple[float, float, str]:
    """Seconds to fit and to rank, and the rate in words."""
    attack = {attack.name: attack for attack in attacks(length)}[name]
    start = time.perf_counter()
    fitted = attack.fit(setting.known)
    middle = time.perf_counter()
    ranking = fitted.rank(setting.secret)
    end = time.perf_counter()
    rate = reidentified(ranking, setting.users, setting.person).mean()
    return middle - start, end - middle, f"{rate:.3f} of {len(setting.users):,}"


def learned(setting, length: str, columns: str) -> tuple[float, float, str]:
    """Seconds of a few trees over the shares of cells alone."""
    sub, owner = slices(setting.known, LENGTHS[length])
    shares = heat_maps(sub, S2Grid(13)).shares.astype(np.float32)
    examples = shares.tocsc() if columns == "sparse columns" else np.asfortranarray(shares.toarray())
    if columns == "sparse columns":
        examples.indices, examples.indptr = examples.indices.astype(np.int32), examples.indptr.astype(np.int32)
    forest = ExtraTreesClassifier(
        TREES, min_samples_leaf=2, min_samples_split=8, max_features=0.6, random_state=0, n_jobs=numba.get_num_threads()
    )
    start = time.perf_counter()
    forest.fit(examples, owner)
    return time.perf_counter() - start, 0.0, f"{TREES} trees, {examples.shape[0]:,} × {examples.shape[1]:,}"


def measure(line: tuple[dict, str, str]) -> str:
    """One line of the table; to be called in a fresh process."""
    given, length, name = line
    setting = prepare(length=length, **given)
    used = time.process_time()
    fit, rank, found = (learned if name.endswith("columns") else attacked)(setting, length, name)
    cpu = time.process_time() - used
    unit = 1024**2 if sys.platform != "darwin" else 1024**3  # ru_maxrss is in KB, on a Mac in bytes
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return f"| {length} | {name} | {fit:.1f} | {rank:.1f} | {cpu:.1f} | {memory:.2f} | {found} |"


def arguments(words: list[str]) -> dict:
    """``FILE name=value …`` as the arguments of ``prepare``; numbers where it wants numbers."""
    pairs = dict(word.split("=", 1) for word in words if "=" in word)
    given = {name: int(value) if name in ("active", "days", "most") else value for name, value in pairs.items()}
    files = [str(Path(word)) for word in words if "=" not in word]
    return ({"dataset": files[0]} if files else {}) | given


if __name__ == "__main__":
    given = arguments(sys.argv[1:])
    print(
        "| sub-traces | what | fit (s) | rank (s) | CPU (s) | memory (GB) | re-identified |\n|---|---|---:|---:|---:|---:|---|"
    )
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for text in pool.imap(measure, [(given, *line) for line in LINES]):
            print(text, flush=True)
