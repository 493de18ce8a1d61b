"""Individual call profiles (PRIMULE, §3.1) on a cluster: the chunks of :mod:`mobpriv.icp.files`, distributed with Dask.

The paper used Spark on a cluster of four nodes. Here one worker turns each chunk of records into a partial table. The partial
tables are split by municipality, and the pieces of the same municipalities are merged. Needs the extra ``cluster`` (``pip
install "mobpriv[cluster]"``).
"""

from operator import getitem

from mobpriv.base.clusters import dask_client
from mobpriv.base.ranges import positive
from mobpriv.base.ranges import whole as whole_number
from mobpriv.icp.files import CHUNK, MEMORY, Chunk, aggregate, assemble_profiles, make_job, merge_tables
from mobpriv.icp.profiles import Extraction, Window
from mobpriv.icp.sql import Job


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
) -> Extraction:
    """Run :func:`mobpriv.icp.files.icps_of_files` on a Dask cluster, with the same result.

    * ``cluster``: a ``distributed.Client``, or the address of a scheduler such as ``tcp://10.0.0.1:8786``. Every worker must
      find the ``files`` under the same paths, for example on a shared disk.
    * ``memory``: limit of DuckDB for one task, in GB. A task has one thread, so a worker with n threads uses up to n times as
      much.
    * ``pieces``: number of tasks for the municipalities; by default one per thread of the cluster.
    """
    memory = positive("memory", memory, "GB", least=0.1)
    pieces = whole_number("pieces", pieces, 0)
    with dask_client(cluster, "making profiles") as client:
        job, chunks = make_job(files, window, cells, columns, time, zone, every_slot, both_cells, chunk)
        return _distribute(client, job, chunks, memory, pieces)


def _distribute(client, job: Job, chunks: list[Chunk], memory: float, pieces: int) -> Extraction:
    pieces = pieces or max(1, sum(client.nthreads().values()))
    # a hashed key would let a second call reuse a job that the scheduler is about to forget
    shared_job = client.scatter(job, broadcast=True, hash=False)
    # pure tasks could reuse the result of an older file of the same name
    split = [client.submit(_split_by_place, shared_job, part, memory, pieces, pure=False) for part in chunks]
    merged = [
        client.submit(merge_tables, [client.submit(getitem, part, k, pure=False) for part in split], memory, pure=False)
        for k in range(pieces)
    ]
    return assemble_profiles(client.gather(merged), job, memory)


def _split_by_place(job: Job, chunk: Chunk, memory: float, pieces: int) -> list:
    """The partial table of a chunk, split by municipality into ``pieces`` tables."""
    table = aggregate(job, chunk, memory)
    piece = abs(table["place"].to_numpy().astype(int)) % pieces
    return [table.filter(piece == k) for k in range(pieces)]
