"""Share results between the processes of one build, so that none is computed twice."""

import os
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from mobpriv.base.processes import environment, temporary_folder

FOLDER = "MOBPRIV_COMPUTED"  # environment variable: the folder of results that the processes of one build share
_LARGEST, _ALL = 1 << 25, 1 << 31  # bytes of one result, and of all results in the folder
_saved_seconds = [0.0]  # seconds of computation saved by this process


@contextmanager
def sharing() -> Iterator[None]:
    """Processes that start inside the block share the results of :func:`once`; the results are deleted after the block."""
    with temporary_folder("mobpriv-computed-") as folder, environment({FOLDER: str(folder)}):
        yield


def once(function: Callable) -> Callable:
    """Let a function reuse the result of another process of the same build (:func:`sharing`) for equal arguments.

    It must be a function or method of the package, and its result must depend only on its arguments by position. Arguments by
    keyword may make it faster, and of a dataclass only the fields count. Outside a build the function is called directly.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return function
    from joblib import hash as digest  # the import takes a tenth of a second, needed only when sharing

    @wraps(function)
    def shared(*arguments, **helpers):
        if any(map(_of_a_notebook, arguments)):  # other notebooks may have other code under the same name
            return function(*arguments, **helpers)
        key = digest((function.__module__, function.__qualname__, [_fields(argument) for argument in arguments]))
        file = Path(folder) / f"{key}.pickle"
        if file.exists():
            with suppress(FileNotFoundError):  # another process has just removed it
                seconds, value = pickle.loads(file.read_bytes())
                _saved_seconds[0] += seconds
                return value
        begun = time.perf_counter()
        value = function(*arguments, **helpers)
        stored = pickle.dumps((time.perf_counter() - begun, value), protocol=pickle.HIGHEST_PROTOCOL)
        with suppress(FileNotFoundError):  # the build has ended and removed its folder, which must not be created again
            _keep(file, stored)
        return value

    return shared


def _keep(file: Path, stored: bytes) -> None:
    """Store a result in the build's folder, and remove the oldest ones if the folder is full."""
    if len(stored) > _LARGEST:
        return
    part = file.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(stored)
    os.replace(part, file)
    files = sorted((entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in os.scandir(file.parent))
    excess = sum(size for _, size, _ in files) - _ALL
    for _, size, oldest in files:
        if excess <= 0:
            break
        os.unlink(oldest)
        excess -= size


def _of_a_notebook(argument: Any) -> bool:
    """Whether an argument, or a field of it, is an object whose class or code is in a notebook."""
    if "__main__" in (type(argument).__module__, getattr(argument, "__module__", "")):
        return True
    return is_dataclass(argument) and any(_of_a_notebook(getattr(argument, field.name)) for field in fields(argument))


def _fields(argument: Any) -> Any:
    """A dataclass without what it has computed since: its name and fields."""
    if is_dataclass(argument):
        return type(argument).__qualname__, [_fields(getattr(argument, field.name)) for field in fields(argument)]
    return argument


def saved_seconds() -> float:
    """Seconds of computation that sharing saved this process."""
    return _saved_seconds[0]
