"""A crowd: up to millions of inhabitants of the synthetic city, and what their phones record in two periods.

The ground, the places and the daily rhythm are those of :mod:`mobpriv.datasets.city`: days organised around home and work,
exploration and preferential return (Song et al. 2010), new places by gravity. The records are simpler, so that a thousand users
take less than a second:

* everybody moves at one of two speeds, and there is no traffic;
* phones record on the half hour in a place, every two minutes on the way, and from 7 to 23 o'clock only;
* positions have a normal error of 5 m, without drift or outliers.

All parameters come from :mod:`.people` and :mod:`.recording`, or are round numbers of everyday life. We fitted nothing to a
rate of re-identification. The city does not grow with the crowd: a crowd of n is the first n inhabitants of the same city. A
user's records do not depend on the number of others.
"""

from typing import NamedTuple

import numba
import numpy as np
import pandas as pd

from mobpriv.base.ranges import whole
from mobpriv.datasets.city.people import DAY, GAMMA, HOUR, RHO
from mobpriv.datasets.city.places import make_places
from mobpriv.datasets.city.streets import degrees, make_streets
from mobpriv.traces.table import Traces, from_blocks

DAYS = 28  # two periods of two weeks
START = pd.Timestamp("2024-09-02", tz="UTC")  # a Monday
LARGEST = 10_000_000  # users, by the digits of their names
_BUILT_FOR = 100_000  # people: that many decide how many homes and workplaces there are; more people share them
_PAST_VISITS = 80  # before the first day, as of the city's commuters
_STILL, _MOVING = 1_800.0, 120.0  # s between two records in a place, on the way
_ON, _OFF = 7 * HOUR, 23 * HOUR
_ERROR = 5.0  # m, standard deviation of a position's error in each direction
_WALK, _RIDE, _ON_FOOT = 1.3, 7.0, 900.0  # m/s, m/s, m: shorter ways are walked
_STOPS = DAYS * 20  # room for a user's stops


class _Ground(NamedTuple):
    """The city as arrays for compiled code. Places: homes, workplaces (the last is the campus), public places, in this order."""

    x: np.ndarray  # m, of the places
    y: np.ndarray
    node: np.ndarray  # the nearest street node
    homes: np.ndarray  # cumulative weights
    work: np.ndarray  # cumulative weights, without the campus
    gravity: np.ndarray  # (nodes, public places): row i, cumulative weights of gravity seen from node i
    node_x: np.ndarray
    node_y: np.ndarray
    before: np.ndarray  # (nodes, nodes): the node before j on the quickest way from i to j


def name_of(user: int) -> str:
    """The name of a user by her number; names sort like numbers."""
    return f"u{user:07d}"


class Crowd:
    """The inhabitants of the city of ``seed``.

    >>> known, secret = Crowd(seed=1).halves(0, 3)
    >>> known["user"].cat.categories.tolist()
    ['u0000000', 'u0000001', 'u0000002']
    """

    def __init__(self, seed: int):
        ground_rng, place_rng, self._people = np.random.SeedSequence(seed).spawn(3)
        streets = make_streets(np.random.default_rng(ground_rng))
        city = make_places(streets, _BUILT_FOR, np.random.default_rng(place_rng))
        places = city.homes, city.workplaces, city.public
        far = np.hypot(streets.x[:, None] - city.public.x, streets.y[:, None] - city.public.y)
        self._ground = _Ground(
            *(np.concatenate([getattr(place, column) for place in places]) for column in ("x", "y", "node")),
            np.cumsum(city.homes.weight),
            np.cumsum(city.workplaces.weight[:-1]),
            np.cumsum(city.public.weight / np.maximum(far, 250.0) ** 2, axis=1),
            streets.x,
            streets.y,
            streets.before,
        )

    def halves(self, first: int, end: int) -> tuple[Traces, Traces]:
        """The records of users ``first`` … ``end`` − 1 in the first two weeks and in the last two weeks."""
        whole("end, the number of users,", end, 1, LARGEST)
        blocks = [self._records(k) for k in range(first, end)]
        t, x, y = np.concatenate(blocks, axis=1)
        lat, lng = degrees(x, y)
        user = np.repeat(np.arange(end - first), [block.shape[1] for block in blocks])
        time = START.value // 1_000_000 + np.round(1000 * t).astype(np.int64)
        users = pd.Index([name_of(k) for k in range(first, end)])
        late = t >= DAYS / 2 * DAY
        return tuple(
            from_blocks(users, np.bincount(user[half], minlength=len(users)), time[half], lat[half], lng[half])
            for half in (~late, late)
        )

    def _records(self, user: int) -> np.ndarray:
        """Seconds since the start, and metres east and north of each record of a user; shape (3, records)."""
        people = self._people
        child = np.random.SeedSequence(people.entropy, spawn_key=(*people.spawn_key, user))
        return _recorded(np.random.Generator(np.random.PCG64(child)), self._ground)


@numba.njit(cache=True, nogil=True)
def _recorded(rng, ground):
    place, until, at_least = _stops(rng, ground)
    # a phone is on each day or seldom, as in .recording
    share = rng.uniform(0.1, 0.35) if rng.random() < 0.12 else rng.beta(5.0, 1.2)
    on = rng.random(DAYS) < share
    t, x, y = _walked(ground, place, until, at_least)
    used = np.zeros(len(t), np.bool_)
    for i in range(len(t)):
        day = int(t[i] // DAY)
        used[i] = 0 <= day < DAYS and on[day] and _ON <= t[i] - day * DAY < _OFF
    out = np.empty((3, used.sum()))
    out[0], out[1], out[2] = t[used], x[used], y[used]
    for i in range(out.shape[1]):
        out[1, i] += rng.normal(0.0, _ERROR)
        out[2, i] += rng.normal(0.0, _ERROR)
    return out


@numba.njit(cache=True, nogil=True)
def _stops(rng, ground):
    """Where a user stops in four weeks: the place, the earliest time at which she leaves it, and the least seconds there."""
    place, until, at_least = np.empty(_STOPS, np.int64), np.zeros(_STOPS), np.zeros(_STOPS)
    homes, works = len(ground.homes), len(ground.work) + 1
    u = rng.random()  # 75 % work in a workplace, 15 % study on the campus, 10 % at home
    home = np.searchsorted(ground.homes, rng.random() * ground.homes[-1])
    work = homes + (np.searchsorted(ground.work, rng.random() * ground.work[-1]) if u < 0.75 else works - 1)
    leaves, hours = rng.normal(8.0, 0.6), rng.normal(8.3, 0.6)
    outgoing = rng.gamma(4.0, 0.25)
    visits = np.zeros(ground.gravity.shape[1], np.int64)
    order, places, before = np.empty(len(visits), np.int64), 0, 0
    while before < _PAST_VISITS:
        _, places = _chosen(rng, ground, ground.node[home], visits, order, places, before)
        before += 1
    n = 0
    for day in range(DAYS):
        midnight, at, out_of_home = day * DAY, home, 0
        working = u < 0.9 and day % 7 < 5 and rng.random() > 0.08
        if working:
            place[n], until[n] = home, midnight + HOUR * (leaves + rng.normal(0.0, 0.3))
            place[n + 1] = work
            at_least[n + 1] = HOUR * max(2.0, (hours if u < 0.75 else rng.uniform(3.0, 8.0)) + rng.normal(0.0, 0.5))
            n, at = n + 2, work
            out_of_home = int(rng.random() < 0.4 * min(outgoing, 2.0))
        else:
            out_of_home = min(rng.poisson(1.3 * outgoing), 8)
            place[n], until[n] = home, midnight + HOUR * 9.5
            n += 1
        evening = rng.random() < (0.45 if day % 7 in (4, 5) else 0.22) * min(outgoing, 2.0)
        for k in range(out_of_home + evening):
            late = k == out_of_home
            if late or (k > 0 and not working):  # back home first
                place[n] = home
                until[n] = midnight + HOUR * rng.normal(19.7, 0.5) if late else 0.0
                at_least[n] = HOUR * (0.3 if late else rng.exponential(1.5))
                n, at = n + 1, home
            chosen, places = _chosen(rng, ground, ground.node[at], visits, order, places, before)
            before += 1
            place[n] = homes + works + chosen
            at_least[n] = HOUR * min((1.8 if late else 0.7 if working else 1.2) * np.exp(rng.normal(0.0, 0.6)), 5.0)
            n += 1
    place[n], until[n] = home, DAYS * DAY
    return place[: n + 1], until[: n + 1], at_least[: n + 1]


@numba.njit(cache=True, nogil=True)
def _chosen(rng, ground, node, visits, order, places, before):
    """Choose a public place by exploration and preferential return, after ``before`` choices; count the visit.

    Return the place and how many are known; these are the first of ``order``.
    """
    if places == 0 or (places < len(visits) and rng.random() < RHO * places**-GAMMA):
        gravity = ground.gravity[node]
        chosen = np.searchsorted(gravity, rng.random() * gravity[-1])
        while visits[chosen] > 0:  # until it is a new one
            chosen = np.searchsorted(gravity, rng.random() * gravity[-1])
        order[places] = chosen
        places += 1
    else:
        k, left = 0, rng.random() * before
        while left >= visits[order[k]]:
            left -= visits[order[k]]
            k += 1
        chosen = order[k]
    visits[chosen] += 1
    return chosen, places


@numba.njit(cache=True, nogil=True)
def _walked(ground, place, until, at_least):
    """Times and positions of the records on the stops and on the quickest ways between them."""
    t, x, y = [0.0], [ground.x[place[0]]], [ground.y[place[0]]]
    nodes = np.empty(len(ground.node_x) + 2, np.int64)
    now = 0.0
    for s in range(len(place)):
        leave = max(until[s], now + at_least[s])
        for k in range(int(np.ceil(now / _STILL)), int(np.ceil(leave / _STILL))):
            t.append(k * _STILL)
            x.append(ground.x[place[s]])
            y.append(ground.y[place[s]])
        now = leave
        if s + 1 == len(place) or place[s + 1] == place[s]:
            continue
        a, b = place[s], place[s + 1]
        far = np.hypot(ground.x[b] - ground.x[a], ground.y[b] - ground.y[a])
        speed = _WALK if far < _ON_FOOT else _RIDE
        steps, nodes[0] = 1, ground.node[b]
        while nodes[steps - 1] != ground.node[a]:
            nodes[steps] = ground.before[ground.node[a], nodes[steps - 1]]
            steps += 1
        here_x, here_y, next_record = ground.x[a], ground.y[a], now + _MOVING
        for k in range(steps, -1, -1):  # along the nodes, to the door
            to_x = ground.node_x[nodes[k - 1]] if k else ground.x[b]
            to_y = ground.node_y[nodes[k - 1]] if k else ground.y[b]
            seconds = np.hypot(to_x - here_x, to_y - here_y) / speed
            while next_record < now + seconds:
                part = (next_record - now) / seconds
                t.append(next_record)
                x.append(here_x + part * (to_x - here_x))
                y.append(here_y + part * (to_y - here_y))
                next_record += _MOVING
            now += seconds
            here_x, here_y = to_x, to_y
    return np.array(t), np.array(x), np.array(y)
