"""Slow twins of mobpriv.traces.table, written from the definitions with sets and dictionaries."""

from itertools import combinations

import pandas as pd


def records_of(traces):
    """user -> [(time, lat, lng)]."""
    out = {}
    for user, *record in zip(traces["user"], traces["t"], traces["lat"], traces["lng"], strict=True):
        out.setdefault(user, []).append(tuple(record))
    return out


def same_person(traces, share):
    """user -> first of her names: connected pairs that share enough distinct records."""
    records = records_of(traces)
    group = {user: {user} for user in records}
    for a, b in combinations(sorted(records), 2):
        common = set(records[a]) & set(records[b])
        if common and len(common) >= share * min(len(records[a]), len(records[b])):
            joined = group[a] | group[b]
            for user in joined:
                group[user] = joined
    return {user: min(names) for user, names in group.items() if user != min(names)}


def right(record):
    """Whether a record (user, time, lat, lng) breaks no rule."""
    user, t, lat, lng = record
    year = None if t is pd.NaT else t.tz_convert("UTC").year
    return (
        isinstance(user, str)
        and year is not None
        and pd.Timestamp("1980-01-06", tz="UTC") <= t
        and year < 2100
        and -90 <= lat <= 90
        and -180 <= lng <= 180
    )


def without(rows):
    """The valid records, each once, by user and time, equal times in the order given; and how many were left out."""
    kept = list(dict.fromkeys(row for row in rows if right(row)))
    return sorted(kept, key=lambda row: row[:2]), len(rows) - len(kept)
