"""What one process need not compute again that another process of the same build has computed."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path

import numpy as np

from mobpriv.processes import environment, temporary_folder

FOLDER = "MOBPRIV_COMPUTED"  # where the processes of one build find what another of them has computed
_spared = [0.0]  # seconds that this process would have computed for, were it alone


@contextmanager
def sharing() -> Iterator[None]:
    """Processes that begin inside the block compute once for all of them what is given to :func:`once`; nothing of it outlives the block."""
    with temporary_folder("mobpriv-computed-") as folder, environment({FOLDER: str(folder)}):
        yield


def once(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The function, which takes from another process of the same build (:func:`sharing`) what that has computed of equal arguments.

    It must be one of a module, and give an array that its arguments decide. Outside a build it is called as it is.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return function
    from joblib import hash as digest  # a tenth of a second that who is alone need not pay

    @wraps(function)
    def shared(*arguments):
        file = Path(folder) / f"{digest((function.__module__, function.__qualname__, arguments))}.npz"
        if file.exists():
            with np.load(file) as found:
                _spared[0] += float(found["seconds"])
                return found["value"]
        begun = time.perf_counter()
        value = function(*arguments)
        part = file.with_suffix(f".{os.getpid()}.part")
        with suppress(FileNotFoundError):  # the build has ended, and its folder is gone: it must not come back
            with part.open("wb") as out:
                np.savez(out, value=value, seconds=time.perf_counter() - begun)
            os.replace(part, file)
        return value

    return shared


def spared() -> float:
    """How many seconds this process would have computed for, were it alone."""
    return _spared[0]
