"""Individual call profiles (PRIMULE, §3.1) by many machines: what :mod:`mobpriv.icp_files` does chunk by chunk, partitioned on Dask.

The paper used Spark on a cluster of four nodes. Here each chunk of records becomes a partial table on one worker; the partial tables are cut by
municipality, and the pieces of the same municipalities become one where they meet. Needs the extra ``cluster``
(``pip install "mobpriv[cluster]"``).
"""

from mobpriv.icp_files import CHUNK, MEMORY, Chunk, aggregate, merged, prepare, put_together
from mobpriv.icp_sql import Job
from mobpriv.icps import Found, Window
from mobpriv.ranges import positive
from mobpriv.ranges import whole as whole_number


def icps_on_cluster(
    files,
    window: Window,
    cluster,
    cells=None,
    *,
    columns: dict[str, str] | None = None,
    time: str = "",
    zone: str = "",
    every_slot: bool = False,
    both_cells: bool = False,
    memory: float = MEMORY,
    chunk: int = CHUNK,
    pieces: int = 0,
) -> Found:
    """:func:`mobpriv.icp_files.icps_of_files` on a Dask cluster, with the same result.

    ``cluster``: a ``distributed.Client``, or the address of a scheduler such as ``tcp://10.0.0.1:8786``. Every worker must find the ``files``
    under the same paths, as on a disk that they share. ``memory`` is what DuckDB may take for one task, in GB; a task has one
    thread, so a worker of n threads takes up to n times as much. The municipalities are dealt out to ``pieces`` tasks, by default one a thread
    of the cluster.
    """
    memory = positive("memory", memory, "GB", least=0.1)
    pieces = whole_number("pieces", pieces, 0)
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise ModuleNotFoundError('profiles on a cluster need Dask: pip install "mobpriv[cluster]"') from None
    if not isinstance(cluster, str | Client):
        raise ValueError(f"cluster must be a distributed.Client or the address of a scheduler (got {type(cluster).__name__})")
    job, chunks = prepare(files, window, cells, columns, time, zone, every_slot, both_cells, chunk)
    if isinstance(cluster, str):
        with Client(cluster, set_as_default=False) as client:
            return _spread(client, job, chunks, memory, pieces)
    return _spread(cluster, job, chunks, memory, pieces)


def _spread(client, job: Job, chunks: list[Chunk], memory: float, pieces: int) -> Found:
    pieces = pieces or max(1, sum(client.nthreads().values()))
    # by its content a second call would be given the key of a job that the scheduler is about to forget
    one = client.scatter(job, broadcast=True, hash=False)
    # pure would take the result of an older file of the same name, where a worker still holds it
    cut = [client.submit(_cut, one, part, memory, pieces, pure=False) for part in chunks]
    joined = [
        client.submit(_joined, [client.submit(_piece, part, k, pure=False) for part in cut], memory, pure=False)
        for k in range(pieces)
    ]
    return put_together(client.gather(joined), job, memory)


def _cut(job: Job, chunk: Chunk, memory: float, pieces: int) -> list:
    """The partial table of a chunk, by municipality in so many tables."""
    table = aggregate(job, chunk, memory)
    piece = abs(table["place"].to_numpy().astype(int)) % pieces
    return [table.filter(piece == k) for k in range(pieces)]


def _piece(tables: list, k: int):
    return tables[k]


def _joined(tables: list, memory: float):
    return merged(tables, memory)
