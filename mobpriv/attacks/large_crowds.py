"""AP-Attack on tables and crowds that are too large for one memory or one machine: heat maps by DuckDB, the search by Dask.

Heat maps need memory for the users' cells only, not for their records. :func:`nearest_on_cluster` needs the extra ``cluster``
(``pip install "mobpriv[cluster]"``).
"""

from collections.abc import Sequence
from os import fspath

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.sparse import csr_array

from mobpriv.attacks.crowd import Nearest, nearest
from mobpriv.base.clusters import dask_client
from mobpriv.base.processes import temporary_folder
from mobpriv.base.ranges import positive, whole
from mobpriv.traces.profiles import HeatMaps

_AT_A_TIME = 2_000_000  # records in memory together
_CONFIG = {"preserve_insertion_order": False, "autoinstall_known_extensions": False}  # no downloads


def heat_maps_of_files(files, grid, begin: str = "", end: str = "", memory: float = 2.0) -> HeatMaps:
    """:func:`mobpriv.traces.profiles.heat_maps` of Parquet files as ``mobpriv validate -o`` writes them (user, t, lat, lng).

    * ``files``: a path, a pattern such as ``"traces-*.parquet"``, or several of them.
    * ``begin``, ``end``: only records from ``begin`` on and before ``end``, ISO times in UTC; "" takes all.
    * ``memory``: limit of DuckDB, in GB; it puts what exceeds this into a temporary folder.

    ValueError if no record is chosen, or if one has no user or no valid place. Repeated records count twice: validate the
    table as a whole.

    >>> import tempfile, mobpriv
    >>> from mobpriv.ground.grid import SquareGrid
    >>> table = pd.DataFrame({"user": ["ann", "ann", "eve"], "t": 0, "lat": 45.0, "lng": [4.8, 4.8, 4.9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_parquet(f"{folder}/traces.parquet")
    ...     maps = heat_maps_of_files(f"{folder}/*.parquet", SquareGrid(800.0))
    >>> maps.users.tolist(), maps.counts.toarray().tolist()
    (['ann', 'eve'], [[2, 0], [0, 1]])
    """
    limit = f"{positive('memory', memory, 'GB', least=0.1) * 1000:.0f}MB"
    paths = [fspath(files)] if not isinstance(files, Sequence) or isinstance(files, str) else [*map(fspath, files)]
    during = [f"t {sign} timestamptz '{_in_utc(text)}'" for sign, text in ((">=", begin), ("<", end)) if text]
    with (
        temporary_folder("mobpriv-heat-maps-") as spilled,
        duckdb.connect(config=_CONFIG | {"memory_limit": limit, "temp_directory": str(spilled)}) as con,
    ):
        con.execute("set timezone = 'UTC'")
        con.execute("create table counted (name varchar, cell bigint, records bigint)")
        # by name: the types of the first file do not hold for the others
        table = "read_parquet($paths, union_by_name = true, hive_partitioning = false)"
        chosen, paths = f"from {table} where {' and '.join(during) or 'true'}", {"paths": paths}
        valid = '"user" is not null and lat between -90 and 90 and lng between -180 and 180'
        ((records, usable),) = con.execute(f"select count(*), count(*) filter ({valid}) {chosen}", paths).fetchall()
        if not records:
            raise ValueError(f"the files hold no record (begin {begin or 'not set'}, end {end or 'not set'})")
        if usable < records:
            raise ValueError(
                f"{records - usable} of {records} records have no user or no valid place: run mobpriv validate first"
            )
        columns = '"user"::varchar as name, lat::double as lat, lng::double as lng'
        counting = con.cursor()  # beside the reader
        for batch in con.sql(f"select {columns} {chosen}", params=paths).to_arrow_reader(_AT_A_TIME):
            cells = np.asarray(grid.cells(batch["lat"].to_numpy(), batch["lng"].to_numpy()), np.int64)
            counting.register("part", pa.table({"name": batch["name"], "cell": cells}))
            counting.execute("insert into counted select name, cell, count(*) from part group by all").fetchall()
        con.execute(
            "create table users as select name, row_number() over (order by name) - 1 as number from (from counted select distinct name)"
        )
        users = [name for (name,) in con.execute("select name from users order by number").fetchall()]
        summed = "select number, cell, sum(records)::bigint as records from counted join users using (name) group by all order by number, cell"
        tally = {name: np.asarray(values, np.int64) for name, values in con.execute(summed).fetchnumpy().items()}
    cells, indices = np.unique(tally["cell"], return_inverse=True)
    starts = np.searchsorted(tally["number"], np.arange(len(users) + 1))
    counts = csr_array((tally["records"], indices.astype(np.int64), starts), shape=(len(users), len(cells)))
    return HeatMaps(pd.Index(users, name="user"), cells, counts)


def _in_utc(text: str) -> pd.Timestamp:
    try:
        moment = pd.Timestamp(text)
    except ValueError:
        moment = pd.NaT
    if moment is pd.NaT:
        raise ValueError(f"begin and end are ISO times such as 2024-09-15T12:00 (got {text!r})")
    return moment.tz_localize("UTC") if moment.tz is None else moment.tz_convert("UTC")


def nearest_on_cluster(a: HeatMaps, b: HeatMaps, cluster, pieces: int = 0) -> Nearest:
    """:func:`mobpriv.attacks.crowd.nearest` on a Dask cluster, equal to the last digit: each worker searches for a part of ``a``.

    * ``cluster``: a ``distributed.Client``, or the address of a scheduler such as ``tcp://10.0.0.1:8786``. Two workers on this
      computer: ``distributed.LocalCluster(n_workers=2).scheduler_address``. Each worker has all of ``b`` in memory.
    * ``pieces``: number of parts; by default one per thread of the cluster.
    """
    whole("pieces", pieces, 0)
    if not len(b.users):
        raise ValueError("nearest_on_cluster needs the heat map of one known user or more (got none)")
    with dask_client(cluster, "a search") as client:
        pieces = min(pieces or max(1, sum(client.nthreads().values())), len(a.users)) or 1
        known = client.scatter(b, broadcast=True, hash=False)  # a hashed key could be forgotten under a second call
        parts = np.array_split(np.arange(len(a.users)), pieces)
        found = [client.submit(nearest, HeatMaps(a.users[p], a.cells, a.counts[p]), known, pure=False) for p in parts]
        return Nearest(*map(np.concatenate, zip(*client.gather(found), strict=True)))
