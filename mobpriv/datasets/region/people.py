"""The people of the synthetic region: their homes, their work, and where they are from the first day to the last.

Sources:

* Days begin and end at home and are organised around work: TimeGeo, Jiang et al. 2016, ``doi:10.1073/pnas.1524261113``.
* Places of free time follow exploration and preferential return: Song et al. 2010, ``doi:10.1038/nphys1760``. A person who
  knows S places goes to a new one with probability 0.6·S^−0.21, else to a known one in proportion to past visits.
* New places are chosen by gravity, inhabitants / distance²: d-EPR, Pappalardo & Simini 2018, ``doi:10.1007/s10618-017-0548-4``.

The other parameters are round numbers of everyday life, defined below.

A person's places are antenna cells. Times are seconds on the clock of :data:`mobpriv.datasets.region.ZONE` since the first
midnight.
"""

from typing import NamedTuple

import numba
import numpy as np

from mobpriv.datasets.region.ground import PIXEL, Ground
from mobpriv.datasets.region.streams import chosen, exponential, standard_normal, uniform

HOUR, DAY = 3_600.0, 86_400.0
AT_WORKPLACE, ON_THE_ROAD = 0, 1  # kinds of working days; other people do not work away from home
_WORKING, _ROAD = 0.55, 0.1  # shares of the people: 55 % at a workplace (or school), 10 % on the road, the others at home
_NEAR, _COMMUTE = 1_000.0, 3_000.0  # m, added to the distance in gravity: of free time, of work
RHO, GAMMA = 0.6, 0.21  # Song et al. 2010
_KNOWN, PLACES = 10, 60  # outings before the first day; most places that a person can know
# median over people of outings a day, and the standard deviation of its logarithm: stay-at-homes, rovers
_OUTINGS, _SPREAD = 0.6, 0.8
_TRIP = 0.08  # probability of a day's trip on a day of the weekend, for someone of median outings
_STOP = 40.0  # min, mean length of a stop of work on the road
_SPEED, _START_UP = 9.0, 240.0  # m/s on the way (32 km/h), s before it
_CHRONOTYPE = 0.8  # h, standard deviation of the shift of a person's day
_STAYS = 64  # of a day, at most


class World(NamedTuple):
    """The ground as arrays for compiled code."""

    x: np.ndarray
    y: np.ndarray
    owner: np.ndarray
    neighbours: np.ndarray
    serving: np.ndarray
    west: float
    south: float
    homes: np.ndarray  # cumulative weights of all cells
    free_time: np.ndarray  # (cells, cells): row i, cumulative weights of gravity seen from cell i
    work: np.ndarray


class Person(NamedTuple):
    home: int  # a cell
    work: int  # a cell; −1 for people without one
    kind: int  # AT_WORKPLACE, ON_THE_ROAD, 2: neither
    outings: float  # of free time, a day
    late: float  # s, by which the day is later than usual


def world_of(ground: Ground) -> World:
    squared = (ground.x[:, None] - ground.x) ** 2 + (ground.y[:, None] - ground.y) ** 2
    gravity = [np.cumsum(ground.weight / (np.sqrt(squared) + near) ** 2, axis=1) for near in (_NEAR, _COMMUTE)]
    cells = ground.x, ground.y, ground.owner, ground.neighbours, ground.serving
    return World(*cells, *ground.corner, np.cumsum(ground.weight), *gravity)


@numba.njit(cache=True)
def person_of(world, s):
    """Draw a person's attributes."""
    home = chosen(s, world.homes)
    kind, work = 2, -1
    u = uniform(s)
    if u < _WORKING + _ROAD:
        kind = AT_WORKPLACE if u < _WORKING else ON_THE_ROAD
        work = chosen(s, world.work[home])
    return Person(home, work, kind, _OUTINGS * np.exp(_SPREAD * standard_normal(s)), HOUR * _CHRONOTYPE * standard_normal(s))


@numba.njit(cache=True)
def life(world, person, days, s):
    """Every stay of a person, in order; between two of them she travels in a straight line."""
    arrive, leave = np.empty(days * _STAYS + 1), np.empty(days * _STAYS + 1)
    place = np.empty(days * _STAYS + 1, np.int32)
    arrive[0], leave[0], place[0] = 0.0, 0.0, person.home
    n, known, visits = 1, np.empty(PLACES, np.int32), np.zeros(PLACES)
    for _ in range(_KNOWN):
        _place_to_go(world, person.home, known, visits, s)
    for day in range(days):
        midnight, weekend = day * DAY + person.late, day % 7 >= 5
        last = n + _STAYS - 2  # leaves room for the stay at home
        t, end, busy = midnight + 9.5 * HOUR, midnight + 21 * HOUR, person.outings
        if weekend:
            t, busy = t + HOUR, 1.5 * busy
            if uniform(s) < _TRIP * person.outings / _OUTINGS:
                t, n = _trip(world, midnight, arrive, leave, place, n, s)
        elif person.kind == AT_WORKPLACE:
            t = midnight + (17 + 0.5 * standard_normal(s)) * HOUR
            n = _go(world, person.work, midnight + (8.5 + 0.5 * standard_normal(s)) * HOUR, t, arrive, leave, place, n)
            busy = 0.5 * busy
        elif person.kind == ON_THE_ROAD:
            t, n = _rounds(world, person, midnight, arrive, leave, place, n, s)
            busy = 0.5 * busy
        # outings come at random while there is time; after two in three the person goes home before the next
        gap = (end - t) / max(busy, 1e-3)
        t += gap * exponential(s)
        while t < end and n < last:
            to = _place_to_go(world, person.home, known, visits, s)
            until = t + (0.3 + exponential(s)) * HOUR
            n = _go(world, to, t, until, arrive, leave, place, n)
            if uniform(s) < 0.67:
                n = _go(world, person.home, 0.0, until, arrive, leave, place, n)
            t = leave[n - 1] + gap * exponential(s)
        n = _go(world, person.home, 0.0, 0.0, arrive, leave, place, n)
    leave[n - 1] = np.inf
    return arrive, leave, place, n


@numba.njit(cache=True)
def _go(world, to, at, until, arrive, leave, place, n):
    """Add a stay at ``to`` from about ``at`` until ``until`` to the n earlier ones; return the new number of stays."""
    before = place[n - 1]
    if to == before:
        leave[n - 1] = max(leave[n - 1], until)
        return n
    way = _START_UP + np.hypot(world.x[to] - world.x[before], world.y[to] - world.y[before]) / _SPEED
    leave[n - 1] = max(leave[n - 1], at - way, arrive[n - 1] + 300.0)
    arrive[n], place[n] = leave[n - 1] + way, to
    leave[n] = max(until, arrive[n] + 300.0)
    return n + 1


@numba.njit(cache=True)
def _place_to_go(world, home, known, visits, s):
    """Choose a place by exploration and preferential return, and count the visit."""
    size = 0
    while size < PLACES and visits[size] > 0:
        size += 1
    if size == 0 or (size < PLACES and uniform(s) < RHO * size**-GAMMA):
        to = chosen(s, world.free_time[home])
        for k in range(size):
            if known[k] == to:
                visits[k] += 1
                return to
        known[size], visits[size] = to, 1
        return to
    sought, k = uniform(s) * visits[:size].sum(), 0
    while k < size - 1 and sought >= visits[k]:
        sought -= visits[k]
        k += 1
    visits[k] += 1
    return known[k]


@numba.njit(cache=True)
def _rounds(world, person, midnight, arrive, leave, place, n, s):
    """A working day on the road: from the place of work to stops around it, until five."""
    t, end = midnight + (8 + 0.5 * standard_normal(s)) * HOUR, midnight + (17 + 0.5 * standard_normal(s)) * HOUR
    until = t + 0.5 * HOUR
    n = _go(world, person.work, t, until, arrive, leave, place, n)
    stops = 0
    while leave[n - 1] < end and stops < 24:
        to = chosen(s, world.work[person.work])
        n = _go(world, to, 0.0, leave[n - 1] + 60 * _STOP * exponential(s) + 300.0, arrive, leave, place, n)
        stops += 1
    return max(end, leave[n - 1]), n


@numba.njit(cache=True)
def _trip(world, midnight, arrive, leave, place, n, s):
    """A day anywhere in the region, at any distance, and a second stop there."""
    destination = chosen(s, world.homes)
    n = _go(world, destination, midnight + 10.5 * HOUR, midnight + 14 * HOUR, arrive, leave, place, n)
    second = chosen(s, world.free_time[destination])
    until = midnight + (17 + standard_normal(s)) * HOUR
    n = _go(world, second, 0.0, until, arrive, leave, place, n)
    return max(until, leave[n - 1]), n


@numba.njit(cache=True)
def on_the_way(world, start, end, share):
    """The cell that serves a person after a ``share`` of the straight way between two cells."""
    x = world.x[start] + share * (world.x[end] - world.x[start])
    y = world.y[start] + share * (world.y[end] - world.y[start])
    row, column = np.int64((y - world.south) // PIXEL), np.int64((x - world.west) // PIXEL)
    rows, columns = world.serving.shape
    return world.serving[min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)]
