"""Worker processes that end with their parent, so that none remains after an interrupted or killed computation.

The worker of a plain pool survives a killed parent, and an interrupted parent waits for its workers. Here a thread in every
worker waits for the end of the parent. The operating system signals it by closing a pipe of the parent, however the parent
ended.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any


def end_with_parent(*others: connection.Connection) -> None:
    """Make this process, started by ``multiprocessing``, end with its parent; usable as a pool's ``initializer``.

    ``others``: connections; the process also ends when one of them is closed at the far end. It ends at once, without cleaning
    up. Compiled code that holds Python's lock delays the end (half a second for channels of 1,200 cells).
    """
    parent = parent_process()
    if parent is None:
        raise RuntimeError("end_with_parent is for processes that multiprocessing has started: this one has no such parent")
    Thread(target=_end_after, args=([parent.sentinel, *others],), daemon=True, name="end with parent").start()


def _end_after(held: list) -> None:
    connection.wait(held)
    for folder in tuple(_FOLDERS):
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


_FOLDERS: set[str] = set()  # temporary folders of this process


def ends_with_parent(folder: str) -> None:
    """Also remove the folder if this process ends with its parent (:func:`end_with_parent`)."""
    _FOLDERS.add(folder)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A temporary folder that is removed after the block, also if this process ends with its parent."""
    # an ending kernel may still write there: that error must not hide the reason why it ends
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        _FOLDERS.add(folder)
        try:
            yield Path(folder)
        finally:
            _FOLDERS.discard(folder)


@contextmanager
def pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of ``workers`` processes. If an error or an interrupt leaves the block, they end at once, finished or not.

    They ignore Ctrl-C, which reaches every process of a terminal: the parent decides.
    """
    context = get_context("spawn")
    far, near = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(far,))
    try:
        yield executor
    except BaseException:
        near.close()
        raise
    finally:
        executor.shutdown(cancel_futures=True)
        near.close()
        far.close()


def _begin(leash: connection.Connection) -> None:
    signal.signal(signal.SIGINT, lambda *_: None)  # not SIG_IGN, which child processes of a worker would inherit
    end_with_parent(leash)


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables for processes that start inside the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def in_one_thread(function: Callable, *arguments) -> Any:
    """Run ``function(*arguments)`` without threads: the work for one user is too small for them."""
    import numba  # the import takes a third of a second, and a parent that only hands out work needs none
    from threadpoolctl import threadpool_limits

    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with threadpool_limits(1):
            return function(*arguments)
    finally:
        numba.set_num_threads(threads)
