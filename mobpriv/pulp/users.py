"""Process users one by one, on request in several processes or on a cluster, so that an interrupted run can continue."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import numpy as np
from tqdm import tqdm

from mobpriv.base import processes
from mobpriv.base.ranges import whole
from mobpriv.traces.table import Traces, by_user, rows

SCHEDULER_TIMEOUT = 10  # s to wait for a scheduler's answer
_USERS_PER_THREAD = 2  # users sent to a cluster per thread: the next one is ready when one is done


def noise(seed: int, label: str) -> np.random.Generator:
    """Return a random generator determined by the seed and the label alone."""
    return np.random.default_rng([seed, *label.encode()])


def each_user(
    function: Callable[..., list[dict]],
    traces: Traces,
    arguments: Callable[[str], tuple],
    name: str,
    workers: int | str,
    keep: Callable[[str, Callable], list[dict]],
) -> list[dict]:
    """Return the rows of ``function(her traces, *arguments(user))`` for every user, in the order of users.

    * ``workers``: a number of processes, or the address of a Dask scheduler ("tcp://host:8786"; mobpriv must be installed
      there).
    * ``keep(name, compute)`` stores the rows of one user; the name has her number, because her own name may be invalid for a
      file.

    The numbers do not depend on ``workers`` if those of ``function`` do not depend on threads.
    """
    if not isinstance(workers, str):
        whole("workers", workers, 1)
    users, offsets = by_user(traces)

    def inputs(i: int) -> tuple:
        return rows(traces, np.arange(offsets[i], offsets[i + 1])), *arguments(users[i])

    names = [f"{name}-{i}" for i in range(1, 1 + len(users))]
    progress = tqdm(range(len(users)), desc=name, unit="user", disable=None)
    if workers == 1:
        return [row for i in progress for row in keep(names[i], lambda i=i: processes.in_one_thread(function, *inputs(i)))]
    # one waiting thread per user in progress: users whose rows are stored already are never sent to a process
    with ExitStack() as ending:
        pool, at_once = ending.enter_context(_pool(workers))
        threads = ThreadPoolExecutor(at_once)
        # the pool, which ends next, releases the waiting threads
        ending.callback(threads.shutdown, wait=False, cancel_futures=True)
        tables = threads.map(
            lambda i: keep(names[i], lambda: pool.submit(processes.in_one_thread, function, *inputs(i)).result()),
            range(len(users)),
        )
        return [row for _, table in zip(progress, tables, strict=True) for row in table]


@contextmanager
def _pool(workers: int | str) -> Iterator[tuple[Executor, int]]:
    """Yield the executor and the number of users to submit at once."""
    if isinstance(workers, int):
        with processes.pool(workers) as pool:
            yield pool, workers
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(f"a cluster ({workers}) needs the package distributed: pip install 'mobpriv[cluster]'") from None
    try:
        client = Client(workers, timeout=SCHEDULER_TIMEOUT)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"workers must be a number of processes, or the address of a Dask scheduler that answers (got {workers!r}: {error})"
        ) from None
    with client:
        yield client.get_executor(pure=False), max(1, _USERS_PER_THREAD * sum(client.nthreads().values()))
