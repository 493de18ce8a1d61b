"""Obfuscation: a channel as a mechanism on traces.

Source: Shokri, "Privacy games: optimal user-centric data obfuscation", PETS 2015, §3 and §9.

The user is in a secret cell s. She publishes a cell o drawn with the probability p(o|s), "replacing [her] true location with
any location in the map" (§9). Drawing is the same for every channel: an optimum, a mechanism without optimisation, or a
remapping.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal

import numba
import numpy as np
import pandas as pd

from mobpriv.base.draws import generator, per_user
from mobpriv.base.ranges import one_of
from mobpriv.channels import checks
from mobpriv.ground.grid import AreaGrid
from mobpriv.traces.table import TableProblem, Traces, by_user, problem, rows


@dataclass(frozen=True, eq=False)
class Obfuscation:
    """Move every record to the centre of a cell drawn from its own cell's row of ``channel``; times and further columns stay.

    ``channel`` has one row a cell of ``grid`` and one column an observable: p(o|s), rows sum to 1. ``observables`` names the
    columns' cells; without it there is one column a cell. A remapped channel is a channel (its columns are the estimates).

    Records outside the area have no row. There are two options:

    * ``outside="leave_out"``: they are left out, and :meth:`left_out` counts them. A user without a record inside is missing in
      the result.
    * ``outside="nearest"``: they count as records of the nearest cell of the area, a position that she did not have. The
      guarantee then holds between the cells assigned to places.

    Departures from the paper: it publishes one place. Here every record is drawn independently, so the bounds on privacy hold
    per record (n records of one user in different cells together have n·ε).

    >>> import numpy as np
    >>> from mobpriv import load
    >>> traces = load("city", max_users=3).traces
    >>> from mobpriv.ground.grid import AreaGrid
    >>> lat, lng = traces[["lat", "lng"]].median()
    >>> grid = AreaGrid(lat, lng, 1000.0, 1000.0, 2, 2)
    >>> always_first = np.tile([1.0, 0.0, 0.0, 0.0], (4, 1))
    >>> protected = Obfuscation(always_first, grid, outside="nearest").protect(traces, np.random.default_rng(1))
    >>> protected[["lat", "lng"]].drop_duplicates().shape
    (1, 2)
    """

    channel: np.ndarray
    grid: AreaGrid
    observables: np.ndarray | None = None  # cell of each column
    outside: Literal["leave_out", "nearest"] = "leave_out"

    name = "obfuscation"

    @property
    def random(self) -> bool:
        """Whether the output is random: false if every cell has one observable of its own."""
        return bool((self.channel.max(axis=1) < 1).any())

    def __post_init__(self):
        one_of("outside", self.outside, ("leave_out", "nearest"))
        if not isinstance(self.grid, AreaGrid):
            raise ValueError(f"grid must be an AreaGrid, whose cells are the channel's rows (got {self.grid!r})")
        try:
            channel = np.array(self.channel, float)
            observables = (
                np.arange(self.grid.size) if self.observables is None else np.array(self.observables, np.int64).reshape(-1)
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"channel must be a table of numbers and observables a list of cells ({error})") from None
        if channel.shape != (self.grid.size, len(observables)) or not len(observables):
            raise ValueError(
                f"the channel must have a row for each of the {self.grid.size} cells of the area and a column for each of the "
                f"{len(observables)} observables (got {channel.shape})"
            )
        checks.channel(channel)
        self.grid.rows_and_columns(observables)  # checks that the area has these cells
        for name, array in (("channel", channel), ("observables", observables)):
            array.flags.writeable = False  # our copy, protected from later changes
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        return f"Obfuscation({self.channel.shape[0]} secrets, {self.channel.shape[1]} observables, outside={self.outside!r})"

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        cell = self._cells(traces)
        inside = rows(traces, cell >= 0)
        _, offsets = by_user(inside)
        drawn = np.empty(len(inside), np.int64)
        cumulative = np.cumsum(self.channel, axis=1)
        cumulative /= cumulative[:, -1:]
        per_user(partial(_draw, cumulative), rng, offsets, cell[cell >= 0], drawn)
        lat, lng = self.grid.centres_in_degrees()[self.observables[drawn]].T
        return inside.assign(lat=lat, lng=lng)

    def left_out(self, traces: Traces) -> pd.DataFrame:
        """The records that :meth:`protect` leaves out: columns as in :func:`mobpriv.traces.table.without`, empty if nothing."""
        outside = self._cells(traces) < 0
        problems = []
        if outside.any():
            problems.append(problem("outside the area", outside, traces, 'a larger area, or outside="nearest"'))
        return pd.DataFrame(problems, columns=TableProblem._fields)

    def _cells(self, traces: Traces) -> np.ndarray:
        place = self.grid.nearest if self.outside == "nearest" else self.grid.cells
        return place(traces["lat"].to_numpy(), traces["lng"].to_numpy())


@dataclass(frozen=True, eq=False)
class PersonalisedObfuscation:
    """Protect each user's records with her personalised channel, as :class:`Obfuscation` does: "user-centric" (§1).

    ``channels``: user -> p(o|s), a row and a column for each cell of ``grid``. Records outside the area are left out. Raises
    ValueError for records of a user who has no channel.

    >>> import numpy as np
    >>> from mobpriv import load
    >>> traces = load("city", max_users=3).traces
    >>> from mobpriv.ground.grid import AreaGrid
    >>> lat, lng = traces[["lat", "lng"]].min()
    >>> grid = AreaGrid(lat, lng, 10_000.0, 10_000.0, 2, 2)
    >>> first, unchanged = np.tile([1.0, 0.0, 0.0, 0.0], (4, 1)), np.eye(4)  # p(o|s): always the first cell, the own cell
    >>> channels = dict(zip(traces["user"].cat.categories, [first, first, unchanged]))
    >>> protected = PersonalisedObfuscation(channels, grid).protect(traces, np.random.default_rng(1))
    >>> protected.drop_duplicates(["user", "lat", "lng"])["user"].value_counts(sort=False).tolist()
    [1, 1, 4]
    """

    channels: Mapping[str, np.ndarray]
    grid: AreaGrid

    name = "own obfuscation"
    random = True

    def __post_init__(self):
        if not isinstance(self.channels, Mapping) or not self.channels:
            raise ValueError(f"channels must name one channel or more, user -> p(o|s) (got {type(self.channels).__name__})")
        checked = {user: Obfuscation(channel, self.grid).channel for user, channel in self.channels.items()}
        object.__setattr__(self, "channels", MappingProxyType(checked))

    def __repr__(self) -> str:
        return f"PersonalisedObfuscation({len(self.channels)} users, {self.grid.size} secrets)"

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        users, offsets = by_user(traces)
        missing = [user for user in users if user not in self.channels]
        if missing:
            raise ValueError(f"no channel for {len(missing)} of {len(users)} users: the first is {missing[0]}")
        parts = [rows(traces, np.arange(0))]
        for user, start, end, child in zip(users, offsets[:-1], offsets[1:], generator(rng).spawn(len(users)), strict=True):
            parts.append(Obfuscation(self.channels[user], self.grid).protect(rows(traces, np.arange(start, end)), child))
        names = pd.Categorical.from_codes(
            np.repeat(np.arange(len(users)), [len(part) for part in parts[1:]]), categories=users.rename(None)
        )
        return rows(pd.concat(parts, ignore_index=True).assign(user=names), np.arange(len(names)))


@numba.njit(cache=True, nogil=True)
def _draw(cumulative, rng, cell, drawn):
    """Fill ``drawn`` with columns of the channel, by the inverse of each row's distribution function."""
    for i in range(len(cell)):
        u = rng.random()  # below 1, where every row of ``cumulative`` ends
        # the first column above u: never one of probability 0
        drawn[i] = np.searchsorted(cumulative[cell[i]], u, side="right")
