"""Slow twins of the PRIMULE chapter, written from the definitions of Pratesi, Gabrielli, Cintia, Monreale and Giannotti, in plain Python."""

from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

# individual call profiles, §3.1

QUARTER = timedelta(minutes=15)


def cell_of(moment, first, weeks, zone, slots):
    """Date and cell of a profile that a moment belongs to; None outside the window."""
    local = moment.astimezone(ZoneInfo(zone))
    day = (local.date() - first).days
    if not 0 <= day < 7 * weeks:
        return None
    part = 1 if local.weekday() >= 5 else 0
    slot = sum(1 for hour in slots[1:] if local.hour >= hour)
    return local.date(), (day // 7 * 2 + part) * 3 + slot


def touched(begin, seconds):
    """Moments of every slot that a call touches: none is shorter than an hour."""
    last = max(begin, begin + timedelta(seconds=seconds) - timedelta(milliseconds=1))
    found, moment = [begin], begin
    while moment < last:
        moment = min(moment + QUARTER, last)
        found.append(moment)
    return found


def profiles(calls, first, weeks, zone, slots=(0, 8, 19), every_slot=False, both_cells=False):
    """{(municipality, user): [value of each cell]} of records (user, begin, municipality, seconds, municipality at the end)."""
    days = {}
    for user, begin, town, seconds, end_town in calls:
        if cell_of(begin, first, weeks, zone, slots) is None or town is None:
            continue
        moments = touched(begin, seconds)
        events = [(town, moment) for moment in (moments if every_slot else moments[:1])]
        if both_cells and end_town is not None:
            events += [(end_town, moment) for moment in (moments if every_slot else moments[-1:])]
        for where, moment in events:
            place = cell_of(moment, first, weeks, zone, slots)
            if place is not None:
                days.setdefault((where, user), set()).add(place)
    divisors = [5, 5, 5, 2, 2, 2] * weeks
    return {
        pair: [sum(1 for _, cell in those if cell == k) / divisors[k] for k in range(6 * weeks)] for pair, those in days.items()
    }


def key(days):
    """The key of the days of each cell: 3 bits of a weekday's cell, 2 of a weekend's, the first lowest."""
    text = "".join(reversed([f"{n:0{3 if k // 3 % 2 == 0 else 2}b}" for k, n in enumerate(days)]))
    return int(text, 2)


def at(milliseconds):
    """A moment from ms since 1970 UTC."""
    from datetime import datetime

    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


# the linking attack, §5


def matched(pb, published, h):
    """C: the rows of published profiles that PB does not contradict."""
    return [row for row, p in enumerate(published) if all(pb[j] < 0 or pb[j] == p[j] for j in h)]


def k_of_several(rows, user, most, h):
    """Users who have all that is known of a user; rows are (user, municipality, days of each cell)."""
    own = sorted((r for r in rows if r[0] == user), key=lambda r: (-sum(r[2]), r[1]))[:most]
    return sum(
        1
        for other in {r[0] for r in rows}
        if all(
            any(r[0] == other and r[1] == town and all(r[2][j] == days[j] for j in h) for r in rows) for _, town, days in own
        )
    )
