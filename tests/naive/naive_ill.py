"""Slow twins of mobpriv.traces.sub_traces and of ILL-Attack's features, written from the definitions record by record."""

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import s2sphere

START = datetime(1970, 1, 1, tzinfo=UTC)


def slices(records, seconds):
    """§5.4.1 in words: [(k, records)] of one user's ``records`` (time in ms, …), every interval [t_0 + kΔ, t_0 + (k+1)Δ[ held against
    every record; intervals without one are left out."""
    length = 1000 * Fraction(seconds)
    found = []
    for k in range(math.floor((records[-1][0] - records[0][0]) / length) + 1):
        low, high = records[0][0] + k * length, records[0][0] + (k + 1) * length
        inside = [r for r in records if low <= r[0] < high]
        found += [(k, inside)] if inside else []
    return found


def known(n, share, border):
    """How many of n sub-traces the adversary knows: a share of at least 4/5, or the program's condition on each number k."""
    if border == "program":
        return sum(Fraction(k, n) <= share for k in range(n))
    return next(k for k in range(n + 1) if Fraction(k, n) >= share)


def cell(lat, lng, level):
    number = s2sphere.CellId.from_lat_lng(s2sphere.LatLng.from_degrees(lat, lng)).parent(level).id()
    return number if number < 1 << 63 else number - (1 << 64)  # signed, as tables hold it


def features(records, level):
    """Table 5.1 of one trace, a list of (time in ms, lat, lng): feature -> value, cells that are 0 left out."""
    n = len(records)
    times = [START + timedelta(milliseconds=int(t)) for t, _, _ in records]
    mean = times[0] + sum((t - times[0] for t in times), timedelta()) / n
    out = {
        "hourOfDay": mean.hour,
        "programHour": (times[0] - (times[-1] - times[0]) / 2).hour,
        "nbRecords": n,
        "centerLat": math.fsum(lat for _, lat, _ in records) / n,
        "centerLng": math.fsum(lng for _, _, lng in records) / n,
    }
    for _, lat, lng in records:
        place = cell(lat, lng, level)
        out[place] = out.get(place, 0) + 1
    return {name: value / n if isinstance(name, int) else value for name, value in out.items()}
