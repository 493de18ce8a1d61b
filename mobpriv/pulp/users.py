"""Work done user by user, in several processes if asked for, that can be interrupted."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from mobpriv import processes
from mobpriv.ranges import whole
from mobpriv.traces import Traces, by_user, rows


def noise(seed: int, words: str) -> np.random.Generator:
    """A generator for what the words name: the same wherever and in whatever order it is asked for."""
    return np.random.default_rng([seed, *words.encode()])


def each_user(
    function: Callable[..., list[dict]],
    traces: Traces,
    arguments: Callable[[str], tuple],
    name: str,
    workers: int,
    keep: Callable[[str, Callable], list[dict]],
) -> list[dict]:
    """The rows of ``function(her traces, *arguments(user))`` for every user, in the order of users, by ``workers`` processes.

    ``keep(name, compute)`` gets the rows of one user, the name with her number: her own may be no name of a file. The numbers do not
    depend on ``workers`` as long as those of ``function`` do not depend on threads.
    """
    whole("workers", workers, 1)
    users, offsets = by_user(traces)

    def given(i: int) -> tuple:
        return rows(traces, np.arange(offsets[i], offsets[i + 1])), *arguments(users[i])

    names = [f"{name}-{i}" for i in range(1, 1 + len(users))]
    progress = tqdm(range(len(users)), desc=name, unit="user", disable=None)
    if workers == 1:
        return [row for i in progress for row in keep(names[i], lambda i=i: in_one_thread(function, *given(i)))]
    # A thread for each process waits for it, so that a user whose rows are kept already is never handed over.
    with ThreadPoolExecutor(workers) as threads, processes.pool(workers) as pool:  # the pool ends first, at once if need be
        tables = threads.map(
            lambda i: keep(names[i], lambda: pool.submit(in_one_thread, function, *given(i)).result()), range(len(users))
        )
        return [row for _, table in zip(progress, tables, strict=True) for row in table]


def in_one_thread(function: Callable, *given) -> Any:
    """``function(*given)`` without threads: what is done for one user is too little for them."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with threadpool_limits(1):
            return function(*given)
    finally:
        numba.set_num_threads(threads)
