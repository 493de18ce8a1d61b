"""Slow twins of PULP, written from the paper's definitions, one user and one place at a time."""

import math

from mobpriv.geo import distance
from mobpriv.profiles import pois, stays


def poi_privacy(original, protected, diameter, duration, near, merged, matched, plane):
    """user -> (precision, recall, privacy) of Equation (1), NaN where it is 0/0."""
    real, found = (_places(t, diameter, duration, merged, plane) for t in (original, protected))
    scores = {}
    for user in sorted(set(original["user"])):
        a, b = real.get(user, []), found.get(user, [])
        close = [[float(distance(*x, *y, plane)) <= near for y in b] for x in a]
        hit = sum(any(row[j] for row in close) for j in range(len(b)))
        again = sum(any(row) for row in close)
        precision = hit / len(b) if b else math.nan
        recall = (hit if matched == "protected" else again) / len(a) if a else math.nan
        if not a:
            privacy = math.nan
        elif hit == 0:
            privacy = 1.0
        else:
            privacy = 1 - 2 * precision * recall / (precision + recall)
        scores[user] = precision, recall, privacy
    return scores


def _places(traces, diameter, duration, merged, plane):
    table = pois(traces, diameter, duration, plane=plane)[0] if merged else stays(traces, diameter, duration, plane=plane)
    places = {}
    for user, lat, lng in zip(table["user"], table["lat"], table["lng"], strict=True):
        places.setdefault(user, []).append((lat, lng))
    return places
