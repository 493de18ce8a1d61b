"""The Dask cluster that a function is given: needs the extra ``cluster`` (``pip install "mobpriv[cluster]"``)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def dask_client(cluster, what: str) -> Iterator[Any]:
    """A client of a Dask cluster: ``cluster`` is one, or the address of a scheduler; ``what`` needs it, for the errors."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f'{what} on a cluster needs Dask: pip install "mobpriv[cluster]"') from None
    if isinstance(cluster, str):
        with Client(cluster, set_as_default=False) as client:
            yield client
    elif isinstance(cluster, Client):
        yield cluster
    else:
        raise ValueError(f"cluster must be a distributed.Client or the address of a scheduler (got {type(cluster).__name__})")
