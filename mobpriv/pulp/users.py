"""Work done user by user, in several processes or on a cluster if asked for, that can be interrupted."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from mobpriv import processes
from mobpriv.ranges import whole
from mobpriv.traces import Traces, by_user, rows

PATIENCE = 10  # s until a scheduler has answered
AHEAD = 2  # users handed to a cluster for each of its threads: the next is there when one is done


def noise(seed: int, words: str) -> np.random.Generator:
    """A generator for what the words name: the same wherever and in whatever order it is asked for."""
    return np.random.default_rng([seed, *words.encode()])


def each_user(
    function: Callable[..., list[dict]],
    traces: Traces,
    arguments: Callable[[str], tuple],
    name: str,
    workers: int | str,
    keep: Callable[[str, Callable], list[dict]],
) -> list[dict]:
    """The rows of ``function(her traces, *arguments(user))`` for every user, in the order of users, by ``workers`` processes, or by those
    of the Dask cluster whose scheduler has that address ("tcp://host:8786"; mobpriv must be installed there).

    ``keep(name, compute)`` gets the rows of one user, the name with her number: her own may be no name of a file. The numbers do not
    depend on ``workers`` as long as those of ``function`` do not depend on threads.
    """
    if not isinstance(workers, str):
        whole("workers", workers, 1)
    users, offsets = by_user(traces)

    def given(i: int) -> tuple:
        return rows(traces, np.arange(offsets[i], offsets[i + 1])), *arguments(users[i])

    names = [f"{name}-{i}" for i in range(1, 1 + len(users))]
    progress = tqdm(range(len(users)), desc=name, unit="user", disable=None)
    if workers == 1:
        return [row for i in progress for row in keep(names[i], lambda i=i: in_one_thread(function, *given(i)))]
    # A thread for each user under way waits for her, so that one whose rows are kept already is never handed over.
    with ExitStack() as ending:
        pool, at_once = ending.enter_context(_pool(workers))
        threads = ThreadPoolExecutor(at_once)
        ending.callback(threads.shutdown, wait=False, cancel_futures=True)  # who waits is let go by the pool, which ends next
        tables = threads.map(
            lambda i: keep(names[i], lambda: pool.submit(in_one_thread, function, *given(i)).result()), range(len(users))
        )
        return [row for _, table in zip(progress, tables, strict=True) for row in table]


@contextmanager
def _pool(workers: int | str) -> Iterator[tuple[Executor, int]]:
    """Who computes, and how many users it is worth handing over at once."""
    if isinstance(workers, int):
        with processes.pool(workers) as pool:
            yield pool, workers
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(f"a cluster ({workers}) needs the package distributed: pip install 'mobpriv[cluster]'") from None
    try:
        client = Client(workers, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"workers must be a number of processes, or the address of a Dask scheduler that answers (got {workers!r}: {error})"
        ) from None
    with client:
        yield client.get_executor(pure=False), max(1, AHEAD * sum(client.nthreads().values()))


def in_one_thread(function: Callable, *given) -> Any:
    """``function(*given)`` without threads: what is done for one user is too little for them."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with threadpool_limits(1):
            return function(*given)
    finally:
        numba.set_num_threads(threads)
