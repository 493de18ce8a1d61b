"""Worker processes that end with their parent: none is left behind when a computation is interrupted or killed.

A worker of a plain pool outlives a parent that is killed, and an interrupted parent waits until its workers are done. Here a thread
in every worker waits for the parent's end, which the operating system tells it of (a pipe that the parent holds is closed),
whichever way the parent went.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread


def end_with_parent(*others: connection.Connection) -> None:
    """Makes this process, started by ``multiprocessing``, end as soon as its parent is gone; fit for a pool's ``initializer``.

    ``others``: connections; it ends too when one of them is closed at the far end. It ends at once, without tidying up. Compiled
    code that keeps Python's lock delays it for as long as it runs (half a second for the channels of 1,200 cells).
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


_FOLDERS: set[str] = set()  # temporary ones of this process


def ends_with_parent(folder: str) -> None:
    """Removes the folder, too, where this process ends with its parent (:func:`end_with_parent`)."""
    _FOLDERS.add(folder)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A temporary folder that is gone behind the block, also where this process ends with its parent."""
    # a kernel that ends may still write there: that must not hide why it ends
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        _FOLDERS.add(folder)
        try:
            yield Path(folder)
        finally:
            _FOLDERS.discard(folder)


@contextmanager
def pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of ``workers`` processes. Where the block is left by an error or an interrupt they end at once, finished or not.

    They take no notice of Ctrl-C, which reaches every process of a terminal: the parent decides.
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
    signal.signal(signal.SIGINT, lambda *_: None)  # not SIG_IGN, which processes that a worker starts would inherit
    end_with_parent(leash)


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """These variables of the environment inside the block, for processes that begin there."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
