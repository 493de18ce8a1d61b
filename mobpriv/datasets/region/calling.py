"""Times of the synthetic region's calls, and the antennas that serve them.

Calls come in cascades (Malmgren et al. 2008, ``doi:10.1073/pnas.0800332105``). The first call of each comes at a rate that
follows the day and the week. Each call is followed by another with probability :data:`_AGAIN`, minutes later. A person's number
of calls is lognormal over people, and so is the activity of each of her days. With the cascades and the nights, this makes
inter-call times heavy-tailed.
"""

import numba
import numpy as np

from mobpriv.datasets.region.ground import ANTENNA_NEIGHBOURS
from mobpriv.datasets.region.people import DAY, HOUR, ON_THE_ROAD, life, on_the_way, person_of
from mobpriv.datasets.region.streams import above, exponential, person_stream, standard_normal, uniform

# standard deviation of the logarithm of someone's calls a day; calls a day at most on average
_ACTIVITY, _MAX_CALLS = 1.4, 100.0
_ROAD_CALLS = 8.0  # people who work on the road call eight times as much, for work
_BUSY = 0.5  # standard deviation of the logarithm of a day's factor
WEEKEND = 0.75  # calls of a weekend day relative to a working day
_AGAIN, _PAUSE = 0.5, 240.0  # probability that a call is followed by another; s, mean pause between them
_DURATION, _SHAPE, _LONGEST = 60.0, 0.6, 7_200.0  # s: log-logistic (Vaz de Melo et al. 2010, doi:10.1007/978-3-642-15939-8_23)
_STAND_IN, _HANDOVER = 0.3, 0.02  # probability that another antenna of the municipality serves a call; takes it over
# calls of each hour of the clock, midnight first: few at night, a morning, a late afternoon; at weekends later and flatter
_WORKING_DAY = np.array([2, 1, 1, 1, 1, 2, 6, 20, 45, 60, 65, 65, 62, 55, 55, 58, 62, 70, 72, 65, 52, 38, 20, 8.0])
_FREE_DAY = np.array([5, 3, 2, 1, 1, 1, 3, 8, 20, 38, 52, 60, 60, 52, 48, 48, 52, 56, 60, 58, 48, 36, 24, 12.0])
_WORKING, _FREE = np.cumsum(_WORKING_DAY), np.cumsum(_FREE_DAY)

PASSING, VISITING, WORKING_THERE, LIVING_THERE = 1, 2, 4, 8  # a person's activities in a municipality, as bits


@numba.njit(cache=True, nogil=True)
def block(world, key, first, last, days, median):
    """The calls of the people numbered ``first`` … ``last`` − 1, each by time, and their activities by municipality.

    Returns the columns person, seconds on the clock since the first midnight, cell, end cell, duration in s; and the columns
    person, municipality, bits. ``median`` is the calls a day of the median person, if she were always at a workplace or at
    home.
    """
    capacity, n = 1024, 0
    caller, t = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    cell, end_cell, duration = np.empty(capacity, np.int32), np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    role_person, role_place = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    bits, m = np.empty(capacity, np.int8), 0
    municipalities = world.owner.max() + 1
    for number in range(first, last):
        s = person_stream(key, number)
        person = person_of(world, s)
        arrive, leave, place, stays = life(world, person, days, s)
        begins = _times(person, days, median, s)
        if n + len(begins) > capacity:
            capacity = 2 * (n + len(begins))
            caller, t, cell = _grown(caller, capacity), _grown(t, capacity), _grown(cell, capacity)
            end_cell, duration = _grown(end_cell, capacity), _grown(duration, capacity)
        activities = _stayed(world, person, place[:stays], municipalities)
        stay, free = 0, 0.0
        for wanted in begins:
            begin = np.floor(max(wanted, free))
            u = uniform(s)
            length = np.ceil(min(_DURATION * (u / (1 - u)) ** _SHAPE, _LONGEST))
            if begin >= days * DAY:
                break
            free = begin + length + 2  # one phone makes one call at a time
            while stay + 1 < stays and arrive[stay + 1] <= begin:
                stay += 1
            served, moving = _serving(world, arrive, leave, place, stay, begin, s)
            end, later = served, stay
            while later + 1 < stays and arrive[later + 1] <= begin + length:
                later += 1
            if moving or later > stay or leave[stay] <= begin + length:
                end, end_moving = _serving(world, arrive, leave, place, later, begin + length, s)
                activities[world.owner[end]] |= PASSING if end_moving else VISITING
            elif uniform(s) < _HANDOVER:
                end = world.neighbours[served, np.int64(ANTENNA_NEIGHBOURS * uniform(s))]
            activities[world.owner[served]] |= PASSING if moving else VISITING
            caller[n], t[n], cell[n], end_cell[n], duration[n] = number, begin, served, end, length
            n += 1
        for k in range(municipalities):
            if activities[k]:
                if m == len(role_person):
                    role_person, role_place, bits = _grown(role_person, 2 * m), _grown(role_place, 2 * m), _grown(bits, 2 * m)
                role_person[m], role_place[m], bits[m] = number, k, activities[k]
                m += 1
    return (caller[:n], t[:n], cell[:n], end_cell[:n], duration[:n]), (role_person[:m], role_place[:m], bits[:m])


@numba.njit(cache=True)
def _grown(column, capacity):
    out = np.empty(capacity, column.dtype)
    out[: len(column)] = column
    return out


@numba.njit(cache=True)
def _times(person, days, median, s):
    """Times of a person's possible calls, in order: seconds on the clock since the first midnight."""
    rate = median * np.exp(_ACTIVITY * standard_normal(s))
    if person.kind == ON_THE_ROAD:
        rate *= _ROAD_CALLS
    rate = min(rate, _MAX_CALLS) * (1 - _AGAIN)  # cascades a day: each has 1/(1 − AGAIN) calls on average
    out, n = np.empty(256), 0
    for day in range(days):
        weekend = day % 7 >= 5
        today = rate * np.exp(_BUSY * standard_normal(s) - _BUSY**2 / 2) * (WEEKEND if weekend else 1.0)
        share = exponential(s) / today  # a Poisson process of this rate, on the clock of the day's calls
        while share < 1:
            t = day * DAY + _hour(_FREE if weekend else _WORKING, share) * HOUR + 0.5 * person.late
            while True:
                if n == len(out):
                    out = _grown(out, 2 * n)
                if t >= 0:
                    out[n] = t
                    n += 1
                if uniform(s) >= _AGAIN:
                    break
                t += 30 + _PAUSE * exponential(s)
            share += exponential(s) / today
    return _sorted(out[:n])


@numba.njit(cache=True)
def _sorted(times):
    """Sort times in place by insertion, since they are unsorted only where cascades meet."""
    for i in range(1, len(times)):
        t, k = times[i], i
        while k > 0 and times[k - 1] > t:
            times[k] = times[k - 1]
            k -= 1
        times[k] = t
    return times


@numba.njit(cache=True)
def _hour(cumulative, share):
    """The hour of the day by which a ``share`` of its calls is made."""
    sought = share * cumulative[-1]
    k = above(cumulative, sought)
    before = cumulative[k - 1] if k else 0.0
    return k + (sought - before) / (cumulative[k] - before)


@numba.njit(cache=True)
def _serving(world, arrive, leave, place, stay, t, s):
    """The cell that serves a person at a time, and whether she is travelling; ``stay`` is the last stay that has begun."""
    if t < leave[stay]:
        if uniform(s) < _STAND_IN:
            return world.neighbours[place[stay], np.int64(ANTENNA_NEIGHBOURS * uniform(s))], False
        return place[stay], False
    share = (t - leave[stay]) / (arrive[stay + 1] - leave[stay])
    return on_the_way(world, place[stay], place[stay + 1], share), True


@numba.njit(cache=True)
def _stayed(world, person, places, municipalities):
    """A person's activities in each municipality, except passing."""
    activities = np.zeros(municipalities, np.int8)
    for place in places:
        activities[world.owner[place]] |= VISITING
    if person.work >= 0:
        activities[world.owner[person.work]] |= WORKING_THERE
    activities[world.owner[person.home]] |= LIVING_THERE
    return activities
