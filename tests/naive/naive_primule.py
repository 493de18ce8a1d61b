"""Slow twins of the PRIMULE chapter, written from the definitions of Pratesi, Gabrielli, Cintia, Monreale and Giannotti, in plain Python."""

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction
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
    moments, moment = [begin], begin
    while moment < last:
        moment = min(moment + QUARTER, last)
        moments.append(moment)
    return moments


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
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


# the linking attack, §5


def matched(pb, published, h):
    """C: the rows of published profiles that PB does not contradict."""
    return [row for row, p in enumerate(published) if all(pb[j] < 0 or pb[j] == p[j] for j in h)]


def nearest(pb, published, h):
    """The rows of published profiles that differ least from PB, exactly: shares are fractions."""
    distances = [sum((Fraction(pb[j]) - Fraction(p[j])) ** 2 for j in h if pb[j] >= 0) for p in published]
    return [row for row, d in enumerate(distances) if d == min(distances)]


def k_across_municipalities(rows, user, max_municipalities, h):
    """Users who have all that is known of a user; rows are (user, municipality, days of each cell)."""
    used = sorted((r for r in rows if r[0] == user), key=lambda r: (-sum(r[2]), r[1]))[:max_municipalities]
    return sum(
        1
        for other in {r[0] for r in rows}
        if all(
            any(r[0] == other and r[1] == town and all(r[2][j] == days[j] for j in h) for r in rows) for _, town, days in used
        )
    )


# mechanisms on profiles, §6: profiles are lists of fractions


def euclidean(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))  # in the order of its root


def manhattan(a, b):
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))


def cosine(a, b):
    """Minus the square of the cosine, which is in the order of one minus it."""
    dot, left, right = (sum(x * y for x, y in zip(*pair, strict=True)) for pair in ((a, b), (a, a), (b, b)))
    if not left or not right:
        return -1 if left == right else 0
    return -Fraction(dot * dot, left * right)


def mean(rows):
    return [sum(column, Fraction(0)) / len(rows) for column in zip(*rows, strict=True)]


def primule(profiles, h, k, dist=euclidean, printed=False):
    """Algorithms 1 and 2: of each row its published values; the members of the groups; the number of groups round by round."""
    known = [tuple(p[j] for j in h) for p in profiles]
    groups = {}  # by the smallest profile: the rows
    for row, part in enumerate(known):
        groups.setdefault(part, []).append(row)
    if len(profiles) < k:
        return profiles, list(groups.values()), [len(groups)]

    def rank(name):
        return -len(groups[name]), mean([known[row] for row in groups[name]]), name

    unsafe, rounds = {name for name in groups if len(groups[name]) < k}, [len(groups)]
    while unsafe and len(groups) > 1:
        pairs = []
        means = {name: mean([known[row] for row in rows]) for name, rows in groups.items()}
        ranks = {name: rank(name) for name in groups}
        for g in unsafe:
            d, which = min((dist(means[g], means[other]), ranks[other]) for other in groups if other != g)
            pairs.append((d, which, ranks[g]))
        touched = set()
        for _, (*_, g2), (*_, g1) in sorted(pairs):
            if g1 in touched or g2 in touched:
                continue
            rows = groups.pop(g1) + groups.pop(g2)
            unsafe -= {g1, g2}
            groups[min(g1, g2)] = rows
            if len(rows) < k or (printed and len(rows) == k):
                unsafe.add(min(g1, g2))
            touched |= {g1, g2}
        rounds.append(len(groups))
    published = [list(p) for p in profiles]
    for rows in groups.values():
        for j, value in zip(h, mean([known[row] for row in rows]), strict=True):
            for row in rows:
                published[row][j] = value
    return published, list(groups.values()), rounds


def line_17(cardinalities, means, k, dist=euclidean):
    """Algorithm 2 word for word: only g2 is looked up among the modified groups, and what D says of g1 and g2 is what they were or have become.
    Returns the cardinalities and the means at the end; there may be more rounds than 50 in none of the tests."""
    size, at = dict(enumerate(cardinalities)), dict(enumerate(means))
    live, unsafe = set(size), {g for g in size if size[g] < k}
    for _ in range(50):
        if not unsafe or len(live) < 2:
            break
        pairs = []
        for g in sorted(unsafe):
            d, other = min((dist(at[g], at[o]), o) for o in live if o != g)
            pairs.append((d, g, other))
        modified = set()
        for _, g1, g2 in sorted(pairs):
            if g2 not in modified:
                live -= {g1, g2}
                unsafe -= {g1, g2}
                n = size[g1] + size[g2]
                at[g2] = [(x * size[g1] + y * size[g2]) / n for x, y in zip(at[g1], at[g2], strict=True)]
                size[g2] = n
                if n <= k:
                    unsafe.add(g2)
                live.add(g2)
                modified.add(g2)
    return [size[g] for g in sorted(live)], [at[g] for g in sorted(live)]


def mdav(records, k):
    """MDAV-generic on single records, sorted ones: the groups as lists of records."""
    remaining, groups = sorted(records), []

    def take(centre):
        nearest = sorted(remaining, key=lambda x: (euclidean(x, centre), x))[:k]
        for x in nearest:
            remaining.remove(x)
        groups.append(nearest)

    def farthest(centre):
        return max(remaining, key=lambda x: (euclidean(x, centre), [-v for v in x]))

    while len(remaining) >= 3 * k:
        r = farthest(mean(remaining))
        remaining.remove(r)
        s = farthest(r)
        remaining.remove(s)
        remaining.append(r)
        take(r)
        remaining.append(s)
        take(s)
    if len(remaining) >= 2 * k:
        take(farthest(mean(remaining)))
    groups.append(remaining)
    return groups


def clamped_laplace_cdf(y, x, b):
    """P(min(1, max(0, x + d)) ≤ y)."""
    if y < 0 or y >= 1:
        return float(y >= 1)
    return 0.5 * math.exp((y - x) / b) if y < x else 1 - 0.5 * math.exp((x - y) / b)
