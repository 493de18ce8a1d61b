"""What one process need not compute again that another process of the same build has computed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mobpriv.processes import environment, temporary_folder

FOLDER = "MOBPRIV_SHARED"  # where the processes of one build find what another of them has computed


@contextmanager
def sharing() -> Iterator[None]:
    """Processes that begin inside the block compute once for all of them what is given to :func:`once`; nothing of it outlives the block."""
    with temporary_folder("mobpriv-shared-") as folder, environment({FOLDER: str(folder)}):
        yield


def once(function: Callable) -> Callable:
    """The function, which takes from another process of the same build (:func:`sharing`) what that has computed of equal arguments.

    It must be one of a module, and give what its arguments decide. Outside a build it is called as it is.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return function
    from joblib import Memory  # a tenth of a second that who is alone need not pay

    return Memory(folder, verbose=0).cache(function)
