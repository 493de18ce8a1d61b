"""HMC, Heat Map Confusion: alter traces so that their heat maps are attributed to other users.

Source: Maouche, Ben Mokhtar, Bouchenak, "HMC: robust privacy protection of mobility data against multiple re-identification
attacks", IMWUT 2(3), 2018; thesis chapter 4.

The heat map of a trace is altered, as little as possible, until another user's profile is nearer to it than the owner's own.
The trace is rebuilt to have this heat map. An attack by the nearest heat map then attributes the trace to the other user.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.draws import generator
from mobpriv.base.ranges import not_negative, one_of, positive, whole
from mobpriv.base.sharing import once
from mobpriv.ground.geo import Points, check_plane, to_plane
from mobpriv.ground.grid import SquareGrid
from mobpriv.mechanisms.alteration import ROUNDED_AT, ROUNDINGS, TARGETS, Alteration, alter, rounded_records
from mobpriv.mechanisms.reconstruction import Gaps, Sets, Track, adapted, joined, sets_of, without_stays
from mobpriv.traces.profiles import HeatMaps, heat_maps
from mobpriv.traces.sub_traces import check_owners
from mobpriv.traces.table import Traces, by_user, from_blocks, milliseconds


class Rebuilt(NamedTuple):
    """The published traces, and what was done to each.

    ``users`` has one row a trace and the columns:

    * ``records`` of the original trace, ``published`` records, ``erased`` records of small points of interest;
    * ``kept_cells`` and ``dropped_cells`` of the cells visited, ``lone_cells`` whose only record was repeated;
    * ``filled_cells``: others with records copied from known users;
    * ``no_donor`` and ``no_gap``: cells that could not be filled and are missing.
    """

    traces: Traces
    users: pd.DataFrame


@dataclass(frozen=True, eq=False)
class HMC:
    """Heat-map confusion in three phases (§4.3), for traces whose adversary knows ``known``.

    * Heat map: the shares H of the records in square cells, as AP-Attack computes them.
    * Alteration (:meth:`alter`, Algorithm 1): U is the profile nearest to H, V the one with the best area coverage among the
      others. If U is not the owner's, H stays. Otherwise records are added to the cells in proportion to W = H ⊙ V ⊙ (1 − U),
      (4.7), and H is normalised again, until V is nearer than U. After ``patience`` successive iterations that bring H no
      closer to V compared to U, V itself is taken.
    * Reconstruction (:meth:`rebuild`, Algorithms 2 and 3): each cell shall have n H' of the n records, rounded up. Cells that
      the trace visited lose records or gain midpoints. Other cells are filled with a known user's records there, in a gap of
      the trace that leaves time to get there and back.
    * Erasure: at the end, records of small points of interest are erased once in every trace. The records on both sides of an
      erased stay may form a new one. ``erased_passes=None`` erases until no stay is left.

    Extensions that §4.6 and §7.2 of the thesis only mention:

    * ``k`` > 1: H is altered towards the mean of the k profiles with the best area coverage, until each of the k is nearer than
      U, the owner's. This is done for every trace to which fewer than k other profiles are nearer. If it fails, the mean
      replaces H; ``nearer`` then shows whether the guarantee holds.
    * ``target="mean"``: a synthetic profile, the mean of these k; only this mean must be nearer than U, not a real user's
      profile.
    * ``target="population"``: a synthetic profile that imitates no user, the mean of all other known users in the cells of the
      trace.
    * ``rounded_at="rule"``: H' must be nearer to V as published, in whole records.

    Choices where the thesis does not specify: a is ``step`` of the trace's records. Ties in area coverage go to the nearer heat
    map. Cells are rounded up, so that rounding loses no cell, and filled in the order of their weight. A donor is any other
    user. ``gap``, ``limit`` and the stays erased are the defaults of the author's program. Iterations that improve without
    success end after 5 × ``patience``.

    Departures of the author's program, available as options:

    * ``least_step=50``: the least number of records that an iteration adds;
    * ``unlike="exclusion"``: cells of U do not count at all, instead of less;
    * ``speed=200 / 3.6``, ``plane="mercator"``;
    * ``rounded_at="iteration"``: after each iteration the shares times the number of records before it are rounded up, and the
      map grows by at most a record a cell.

    Not copied: its first iteration also alters the original. Its stopping rule also requires an area coverage, which is 1 as
    long as no cell is added or lost. Its step of removal removes nothing.

    >>> import numpy as np
    >>> from mobpriv import load
    >>> from mobpriv.traces.table import split_in_half
    >>> known, secret = split_in_half(load("city", max_users=3).traces, "set")
    >>> len(secret), len(HMC(known).protect(secret, np.random.default_rng(1)))
    (23345, 22827)
    """

    known: Traces  # KD, what the adversary knows of the users
    owners: Mapping[str, str] | None = field(default=None, repr=False)  # trace -> user; None: traces have their users' names
    cell: float = 800.0  # m, side of a heat map's square cells
    plane: str = "ground"
    grid: SquareGrid | None = None  # None: square cells of side ``cell``
    step: float = 0.002  # share of the trace's records that an iteration adds, a / n
    least_step: float = 0.0  # records that an iteration adds at least
    patience: int = 1000  # iterations without improvement, IT_max
    margin: float = 0.0  # nats that V must be nearer than U
    unlike: str = "weight"  # how (4.7) avoids U: by its "weight" (1 - U), or by "exclusion" of its cells
    k: int = 1  # other users that must be nearer than the owner, or whose mean must
    target: str = "users"  # target of the alteration: "users", the k others themselves; their "mean"; the "population"
    rounding: str = "up"  # of a cell's records: "up", "nearest", or down and the largest "remainder" up
    rounded_at: str = "end"  # or also in the stopping "rule"; or at every "iteration", which adds at most a record a cell
    filled_first: str = "most"  # first of several cells to fill: of "most" or of "least" records, or in order of "number"
    gap: float = 3600.0  # s, pauses longer than this can be filled; they also end a set of records to copy
    limit: float = 10_800.0  # s, longest set of records that is copied
    speed: float = 100 / 3.6  # m/s, v_max, of the way to a filled cell and back
    erased: float | None = 1200.0  # s, stays of this length are erased; None erases none
    erased_diameter: float = 200.0  # m, of these stays
    erased_passes: int | None = 1  # passes of erasing stays; None: until none is left
    erased_gap: float | None = None  # s, a longer pause ends a stay; None: pauses do not matter

    name = "HMC"
    random = True

    def __post_init__(self):
        check_plane(self.plane)
        check_owners(self.owners)
        if not isinstance(self.known, pd.DataFrame) or not {"user", "t", "lat", "lng"} <= set(self.known.columns):
            raise ValueError(f"known must be traces, a table with user, t, lat and lng (got {type(self.known).__name__})")
        one_of("unlike", self.unlike, ("weight", "exclusion"))
        squares = SquareGrid(self.cell, self.plane)  # checks cell and plane
        if self.grid is None:
            object.__setattr__(self, "grid", squares)
        elif not (callable(getattr(self.grid, "cells", None)) and callable(getattr(self.grid, "bounds", None))):
            raise ValueError(
                f"grid must have the methods cells(lat, lng) and bounds(cells), as SquareGrid has (got {type(self.grid).__name__})"
            )
        positive("step", self.step, "of the trace's records")
        for name, unit in (("least_step", "records"), ("margin", "nats"), ("gap", "s"), ("limit", "s")):
            not_negative(name, getattr(self, name), unit)
        whole("patience", self.patience, 1)
        for name, choices in (("target", TARGETS), ("rounding", ROUNDINGS), ("rounded_at", ROUNDED_AT)):
            one_of(name, getattr(self, name), choices)
        one_of("filled_first", self.filled_first, ("most", "least", "number"))
        positive("speed", self.speed, "m/s")
        positive("erased_diameter", self.erased_diameter, "m")
        if self.erased is not None:
            positive("erased", self.erased, "s", hint="; None erases nothing")
        if self.erased_passes is not None:
            whole("erased_passes", self.erased_passes, 1)
        if self.erased_gap is not None:
            positive("erased_gap", self.erased_gap, "s", hint="; None: pauses do not matter")
        n = len(by_user(self.known)[0])
        if n < 2:
            raise ValueError(f"HMC hides one known user behind another: known must have records of at least 2 users (got {n})")
        whole("k", self.k, 1, n - 1, f"must be a whole number in 1 … {n - 1}, the number of other known users")
        if self.target == "population" and self.k > 1:
            raise ValueError(f'k must be 1 with target="population": that is a single map (got {self.k})')

    def __repr__(self) -> str:
        return f"HMC({len(self.profiles.users)} known users, grid={self.grid!r})"

    @cached_property
    def profiles(self) -> HeatMaps:
        """P: the heat maps of the known users."""
        return heat_maps(self.known, self.grid)

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        return self.rebuild(traces, self.alter(traces), rng).traces

    def alter(self, traces: Traces) -> Alteration:
        """Apply Algorithm 1 to every trace; draws nothing."""
        maps = heat_maps(traces, self.grid)
        owner = self.owner_rows(maps.users)
        rule = self.step, self.least_step, self.patience, self.margin, self.unlike
        return once(alter)(maps, self.profiles, owner, *rule, self.k, self.target, self.rounding, self.rounded_at)

    def rebuild(self, traces: Traces, alteration: Alteration, rng: np.random.Generator) -> Rebuilt:
        """Apply Algorithms 2 and 3 to every trace, then erase small points of interest."""
        users, _ = by_user(traces)
        if not users.equals(alteration.users.index):
            differing = users.symmetric_difference(alteration.users.index)
            raise ValueError(
                f"alteration must be of the traces that are rebuilt, in their order (it differs in {differing[0] if len(differing) else 'the order'})"
            )
        return once(HMC._all_rebuilt)(self, traces, alteration, generator(rng).spawn(len(users)))

    def _all_rebuilt(self, traces: Traces, alteration: Alteration, rngs: list[np.random.Generator]) -> Rebuilt:
        users, offsets = by_user(traces)
        all_records = Track(milliseconds(traces), traces["lat"].to_numpy(), traces["lng"].to_numpy())
        cell = np.asarray(self.grid.cells(all_records.lat, all_records.lng), np.int64)
        map_records, owner = alteration.users["held"].to_numpy(), self.owner_rows(users)
        tracks, summary = [], []
        for i, child in enumerate(rngs):
            block = slice(offsets[i], offsets[i + 1])
            row = slice(*alteration.shares.indptr[i : i + 2])
            n = rounded_records(alteration.shares.data[row] * map_records[i], ROUNDINGS.index(self.rounding)).astype(np.int64)
            wanted, n = alteration.cells[alteration.shares.indices[row]][n > 0], n[n > 0]
            track, facts = self._rebuilt(all_records.part(block), cell[block], wanted, n, owner[i], child)
            tracks.append(track)
            summary.append(facts)
        counts = [len(track.t) for track in tracks]
        columns = [np.concatenate([track[k] for track in tracks]) if tracks else all_records[k] for k in range(3)]
        published = from_blocks(users, counts, *columns)
        kept, erased = published, pd.Series(dtype=np.int64)
        if self.erased is not None:
            stay_rule = self.erased_diameter, self.erased, self.plane, self.erased_passes, self.erased_gap
            kept, erased = without_stays(published, *stay_rule)
        columns = ["records", "kept_cells", "dropped_cells", "lone_cells", "filled_cells", "no_donor", "no_gap"]
        summary = pd.DataFrame(summary, users, columns)
        summary["erased"] = erased.reindex(users, fill_value=0)
        summary["published"] = counts - summary["erased"]
        return Rebuilt(kept, summary.astype(np.int64))

    def owner_rows(self, traces: pd.Index) -> np.ndarray:
        """The number of each trace's user among the known users, -1 if she is not known."""
        names = traces if self.owners is None else [self.owners.get(trace, trace) for trace in traces]
        return self.profiles.users.get_indexer(names)

    def _rebuilt(self, track: Track, cell, wanted, n, owner: int, rng) -> tuple[Track, tuple]:
        """One trace with ``n`` records in each of the ``wanted`` cells, and its counts for ``Rebuilt``."""
        place = np.searchsorted(wanted, cell)
        inside = np.append(wanted, -1)[place] == cell
        place, dropped = place[inside], len(np.unique(cell[~inside]))
        records = np.bincount(place, minlength=len(wanted))
        new = np.flatnonzero(records == 0)
        parts, places, missing = [track.part(inside)], [place], {"donor": 0, "gap": 0}
        gaps = Gaps(track, self.gap, self.speed, self.plane) if len(new) else None
        weight = {"most": -n[new], "least": n[new], "number": wanted[new]}[self.filled_first]
        for k in new[np.argsort(weight, kind="stable")]:
            candidates, centre = self._candidates(wanted[k], owner)
            # short traces have no gap: skip the search
            copied = gaps.filled(self._donors.sets, candidates, centre) if len(candidates) and len(gaps.ends) else None
            if copied is None:
                missing["gap" if len(candidates) else "donor"] += 1
                continue
            # the places of copied records follow those of the trace's own, in the order of filling
            n = np.append(n, n[k])
            parts.append(copied)
            places.append(np.full(len(copied.t), len(n) - 1))
        rebuilt = adapted(joined(parts), np.concatenate(places), n, rng)
        kept, lone = len(wanted) - len(new), int(((records == 1) & (n[: len(wanted)] > 1)).sum())
        return rebuilt, (len(track.t), kept, dropped, lone, len(parts) - 1, missing["donor"], missing["gap"])

    @cached_property
    def _donors(self) -> "Donors":
        users, offsets = by_user(self.known)
        lat, lng = self.known["lat"].to_numpy(), self.known["lng"].to_numpy()
        cell = np.asarray(self.grid.cells(lat, lng), np.int64)
        order = np.argsort(cell, kind="stable")
        user, cell = np.repeat(np.arange(len(users)), np.diff(offsets))[order], cell[order]
        visitor = np.cumsum(np.r_[0, (np.diff(cell) != 0) | (np.diff(user) != 0)])  # a new one for each user in each cell
        sets = sets_of(Track(milliseconds(self.known), lat, lng).part(order), visitor, self.gap, self.limit, self.plane)
        cells, start = np.unique(cell[sets.first], return_index=True)
        south, west, north, east = self.grid.bounds(cells).T
        centres = to_plane((south + north) / 2, (west + east) / 2, self.plane)
        return Donors(cells, np.append(start, len(sets.first)), centres, user[sets.first], sets)

    def _candidates(self, cell: int, owner: int) -> tuple[np.ndarray, Points | None]:
        """The sets of known users other than number ``owner`` in a cell, and the cell's centre."""
        donors = self._donors
        k = np.searchsorted(donors.cells, cell)
        if k == len(donors.cells) or donors.cells[k] != cell:
            return np.zeros(0, np.int64), None
        first = donors.start[k]
        others = np.flatnonzero(donors.user[first : donors.start[k + 1]] != owner) + first
        return others, Points(*(column[k] for column in donors.centres))


class Donors(NamedTuple):
    """All known records in sets that may be copied: the sets of cell c are start[c] … start[c+1]−1."""

    cells: np.ndarray  # the grid's ids, in rising order
    start: np.ndarray
    centres: Points  # of the cells
    user: np.ndarray  # of each set, her number
    sets: Sets
