"""Share results between the processes of one build, so that none is computed twice."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path

import numpy as np

from mobpriv.base.processes import environment, temporary_folder

FOLDER = "MOBPRIV_COMPUTED"  # environment variable: the folder of results that the processes of one build share
_saved_seconds = [0.0]  # seconds of computation saved by this process


@contextmanager
def sharing() -> Iterator[None]:
    """Processes that start inside the block share the results of :func:`once`; the results are deleted after the block."""
    with temporary_folder("mobpriv-computed-") as folder, environment({FOLDER: str(folder)}):
        yield


def once(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Let a function reuse the result of another process of the same build (:func:`sharing`) for equal arguments.

    It must be a module-level function and return an array that depends only on its arguments. Outside a build it is called
    directly.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return function
    from joblib import hash as digest  # the import takes a tenth of a second, needed only when sharing

    @wraps(function)
    def shared(*arguments):
        file = Path(folder) / f"{digest((function.__module__, function.__qualname__, arguments))}.npz"
        if file.exists():
            with np.load(file) as stored:
                _saved_seconds[0] += float(stored["seconds"])
                return stored["value"]
        begun = time.perf_counter()
        value = function(*arguments)
        part = file.with_suffix(f".{os.getpid()}.part")
        with suppress(FileNotFoundError):  # the build has ended and removed its folder, which must not be created again
            with part.open("wb") as out:
                np.savez(out, value=value, seconds=time.perf_counter() - begun)
            os.replace(part, file)
        return value

    return shared


def saved_seconds() -> float:
    """Seconds of computation that sharing saved this process."""
    return _saved_seconds[0]
