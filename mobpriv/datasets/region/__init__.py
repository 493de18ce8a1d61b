"""The embedded call records: a synthetic island with municipalities, antennas, and people whose true roles are known.

``python -m mobpriv.datasets.region FOLDER`` writes it. One seed determines everything. The ground depends only on the numbers
of municipalities and antennas. A person's life and calls depend on the ground and on her own number. So the size of the blocks
does not change the records, and the first 10 000 of a million people are those of a region of 10 000.

We fitted nothing to the data of the papers or to their results. Parameters come from the models cited in :mod:`.ground`,
:mod:`.people` and :mod:`.calling`, and from round numbers of everyday life.

A person's role in a municipality (PRIMULE, §3.2) follows from her life, not from her calls:

* she lives there: ``resident`` if she works in it, too, or nowhere else; ``dynamic resident`` if she works in another one;
* she works there and lives elsewhere: ``commuter``;
* she stays there otherwise: ``visitor``, even if she returns often, for which the paper has no separate role;
* she only calls there while travelling: ``passing by``. A person who passes without a call is in no list.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import geopandas
import numpy as np
import pandas as pd

from mobpriv.base import ranges
from mobpriv.calls.table import Calls, Cells, as_calls, as_cells
from mobpriv.datasets.region import calling, files
from mobpriv.datasets.region.boundaries import ground_on
from mobpriv.datasets.region.files import Block, people_table, person_names
from mobpriv.datasets.region.ground import Ground, make_ground
from mobpriv.datasets.region.people import World, world_of
from mobpriv.datasets.region.streams import philox_key
from mobpriv.traces.table import in_utc

SEED = 20_241_007
ZONE = "Europe/Lisbon"  # that of the meridian: summer time ends on Sunday 2024-10-27, the 21st day, which has 25 hours
FIRST_MIDNIGHT = pd.Timestamp("2024-10-07", tz=ZONE)  # a Monday
PERIOD_DAYS = 28
PEOPLE, MUNICIPALITIES, ANTENNAS = 12_000, 20, 160
CALLS = 0.8  # a day, of the median person
PEOPLE_PER_BLOCK = 10_000  # people generated at a time
_HIGHEST = 10_000_000  # people: their names have seven digits


class SimulatedRegion(NamedTuple):
    calls: Calls
    cells: Cells
    people: pd.DataFrame  # person, municipality, role
    municipalities: geopandas.GeoDataFrame


def period(zone: str = ZONE) -> tuple[pd.Timestamp, pd.Timestamp]:
    """Four weeks: the first midnight, and the midnight after the last day."""
    start = FIRST_MIDNIGHT.tz_localize(None).tz_localize(zone)
    return start, start + pd.DateOffset(days=PERIOD_DAYS)


def ground_of(municipalities: int = MUNICIPALITIES, antennas: int = ANTENNAS, seed: int = SEED) -> Ground:
    return make_ground(municipalities, antennas, np.random.default_rng(seed))


def people_blocks(
    ground: Ground,
    people: int = PEOPLE,
    calls: float = CALLS,
    seed: int = SEED,
    block: int = PEOPLE_PER_BLOCK,
    workers: int = 1,
    zone: str = ZONE,
) -> Iterator[Block]:
    """The people in blocks of ``block``, in order, in the time zone ``zone``; ``workers`` blocks are generated at once."""
    people = ranges.whole("people", people, 1, _HIGHEST)
    calls, block = ranges.positive("calls", calls, "calls a day"), ranges.whole("block", block, 1)
    world, key, clock = world_of(ground), philox_key(seed), _clock(zone)
    starts = iter(range(0, people, block))

    def simulate(first: int) -> Block:
        return _block(world, key, first, min(first + block, people), calls, clock)

    if workers == 1:
        yield from map(simulate, starts)
        return
    with ThreadPoolExecutor(workers) as pool:  # compiled code releases the lock
        waiting = [pool.submit(simulate, first) for first in islice(starts, workers + 1)]
        while waiting:
            yield waiting.pop(0).result()
            waiting += [pool.submit(simulate, first) for first in islice(starts, 1)]


def _clock(zone: str = ZONE) -> np.ndarray:
    """The moment, s since 1970 UTC, of each full hour on the clock; for an hour that the clock shows twice, its first time."""
    hours = pd.date_range(FIRST_MIDNIGHT.tz_localize(None), periods=24 * PERIOD_DAYS, freq="h")
    return hours.tz_localize(zone, ambiguous=np.ones(len(hours), bool)).as_unit("s").asi8


def _block(world: World, key: np.ndarray, first: int, last: int, calls: float, clock: np.ndarray) -> Block:
    records, (role_person, municipality, activities) = calling.block(world, key, first, last, PERIOD_DAYS, calls)
    person, t, cell, end_cell, duration = records
    lives, works = (activities & calling.LIVING_THERE) > 0, (activities & calling.WORKING_THERE) > 0
    commutes = np.zeros(last - first, bool)
    commutes[role_person[works & ~lives] - first] = True
    conditions = [lives & ~commutes[role_person - first], lives, works, (activities & calling.VISITING) > 0]
    role = np.select(conditions, [0, 1, 2, 3], 4).astype(np.int8)
    return Block(person, clock[t // 3600] + t % 3600, cell, end_cell, duration, role_person, municipality, role)


def make_region(
    people: int = PEOPLE,
    municipalities: int = MUNICIPALITIES,
    antennas: int = ANTENNAS,
    calls: float = CALLS,
    seed: int = SEED,
    block: int = PEOPLE_PER_BLOCK,
) -> SimulatedRegion:
    """The region of ``seed`` as tables; ``calls`` is the number of calls a day of the median person."""
    return _simulated(ground_of(municipalities, antennas, seed), people, calls, seed, block, ZONE)


def make_on(
    boundaries: geopandas.GeoDataFrame,
    people: int,
    antennas: int,
    ranks: dict[str, int] | None = None,
    zone: str = ZONE,
    calls: float = CALLS,
    seed: int = SEED,
    block: int = PEOPLE_PER_BLOCK,
) -> SimulatedRegion:
    """The region's people in the municipalities of :func:`mobpriv.datasets.region.boundaries.read_boundaries`.

    ``zone`` is their time zone.
    """
    ground = ground_on(boundaries, antennas, ranks or {}, np.random.default_rng(seed))
    return _simulated(ground, people, calls, seed, block, zone)


def _simulated(ground: Ground, people: int, calls: float, seed: int, block: int, zone: str) -> SimulatedRegion:
    parts = people_blocks(ground, people, calls, seed, block, zone=zone)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    records, cells = Block(*columns), as_cells(ground.cells)
    names = pd.Index(cells["cell"])
    table = {
        "user": pd.Categorical.from_codes(records.person, pd.Index(person_names(np.arange(people)).to_pylist(), dtype="str")),
        "t": in_utc(records.t * 1000),
        "cell": pd.Categorical.from_codes(records.cell, names),
        "end_cell": pd.Categorical.from_codes(records.end_cell, names),
        "duration": records.duration.astype(float),
    }
    roles = people_table(records.role_person, records.municipality, records.role, ground).to_pandas().astype("str")
    return SimulatedRegion(as_calls(pd.DataFrame(table), cells, period(zone)), cells, roles, ground.municipalities)


def write_region(
    folder,
    people: int = PEOPLE,
    municipalities: int = MUNICIPALITIES,
    antennas: int = ANTENNAS,
    calls: float = CALLS,
    seed: int = SEED,
    block: int = PEOPLE_PER_BLOCK,
    workers: int = 1,
    level: int = 19,
) -> list[Path]:
    """Write the region to four files in ``folder``.

    They are ``region.parquet``, ``region_cells.parquet``, ``region_people.parquet`` and ``region_municipalities.geojson``.
    Calls are written as they are generated, so that memory does not grow with the region. The files do not depend on ``block``
    or ``workers``. ``level`` is the compression level: 19 for files to keep, 1 for fast writing.
    """
    ground = ground_of(municipalities, antennas, seed)
    return files.write(folder, ground, people_blocks(ground, people, calls, seed, block, workers), level)
