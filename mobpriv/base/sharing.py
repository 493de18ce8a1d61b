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
_SHORTEST = 0.1  # seconds; a shorter computation is not worth a file
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
        seconds = time.perf_counter() - begun
        if seconds >= _SHORTEST:
            _keep(file, pickle.dumps((seconds, value), protocol=pickle.HIGHEST_PROTOCOL))
        return value

    return shared


def _keep(file: Path, stored: bytes) -> None:
    """Store a result in the build's folder if there is space, and remove the oldest ones if the folder is too large."""
    if len(stored) > _LARGEST:
        return
    part = file.with_suffix(f".{os.getpid()}.part")
    with suppress(OSError):  # the disk is full, or the build has ended and removed its folder: the page needs the value only
        try:
            part.write_bytes(stored)
            os.replace(part, file)
        finally:
            part.unlink(missing_ok=True)
        files = sorted((entry.stat().st_mtime, entry.stat().st_size, entry) for entry in file.parent.glob("*.pickle"))
        excess = sum(size for _, size, _ in files) - _ALL
        for _, size, oldest in files:
            if excess <= 0:
                break
            oldest.unlink(missing_ok=True)  # another process may have removed it
            excess -= size


def _of_a_notebook(argument: Any) -> bool:
    """Whether an argument, or what it holds, is an object whose class or code is in a notebook."""
    if "__main__" in (type(argument).__module__, getattr(argument, "__module__", "")):
        return True
    if is_dataclass(argument):
        return any(_of_a_notebook(getattr(argument, field.name)) for field in fields(argument))
    if isinstance(argument, dict):
        return any(map(_of_a_notebook, argument.values()))
    return isinstance(argument, list | tuple) and any(map(_of_a_notebook, argument))


def _fields(argument: Any) -> Any:
    """A dataclass without what it has computed since: its name and fields."""
    if is_dataclass(argument):
        cls = type(argument)
        return cls.__module__, cls.__qualname__, [_fields(getattr(argument, field.name)) for field in fields(argument)]
    return argument


def saved_seconds() -> float:
    """Seconds of computation that sharing saved this process."""
    return _saved_seconds[0]
