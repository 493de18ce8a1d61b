"""Process users one by one, on request in several processes, so that an interrupted run can continue."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
from tqdm import tqdm

from mobpriv.base import processes
from mobpriv.base.ranges import whole
from mobpriv.traces.table import Traces, by_user, rows


def noise(seed: int, label: str) -> np.random.Generator:
    """Return a random generator determined by the seed and the label alone."""
    return np.random.default_rng([seed, *label.encode()])


def noise_at(seed: int, user: str, mechanism: str, value: float) -> np.random.Generator:
    """The generator for a user's setting. Nine digits of the value count: the last ones of a power or a fit depend on the processor."""
    return noise(seed, f"{user}, {mechanism}, {float(value):.9g}")


def each_user(
    function: Callable[..., list[dict]],
    traces: Traces,
    arguments: Callable[[str], tuple],
    name: str,
    workers: int,
    keep: Callable[[str, Callable], list[dict]],
) -> list[dict]:
    """Return the rows of ``function(her traces, *arguments(user))`` for every user, in the order of users.

    ``keep(name, compute)`` stores the rows of one user; the name has her number, because her own name may be invalid for a file.
    The numbers do not depend on the number of processes, ``workers``, if those of ``function`` do not depend on threads.
    """
    workers = whole("workers", workers, 1)
    users, offsets = by_user(traces)

    def inputs(i: int) -> tuple:
        return rows(traces, np.arange(offsets[i], offsets[i + 1])), *arguments(users[i])

    names = [f"{name}-{i}" for i in range(1, 1 + len(users))]
    progress = tqdm(range(len(users)), desc=name, unit="user", disable=None)
    if workers == 1:
        return [row for i in progress for row in keep(names[i], lambda i=i: processes.in_one_thread(function, *inputs(i)))]
    # one waiting thread per user in progress: users whose rows are stored already are never sent to a process
    with ExitStack() as ending:
        pool = ending.enter_context(processes.pool(workers))
        threads = ThreadPoolExecutor(workers)
        # the pool, which ends next, releases the waiting threads
        ending.callback(threads.shutdown, wait=False, cancel_futures=True)
        tables = threads.map(
            lambda i: keep(names[i], lambda: pool.submit(processes.in_one_thread, function, *inputs(i)).result()),
            range(len(users)),
        )
        return [row for _, table in zip(progress, tables, strict=True) for row in table]
