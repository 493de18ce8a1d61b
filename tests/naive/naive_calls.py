"""Slow twins of what is fast about call records, written row by row from the definitions."""

import numpy as np
import pandas as pd

from mobpriv.ground.geo import distance


def nearest_record(times: list[int], call: int, near: float) -> int:
    """The record nearest in time to a call, of several as near the first; −1 where none is near."""
    best = min(range(len(times)), key=lambda k: (abs(times[k] - call), k))
    return best if abs(times[best] - call) <= near else -1


def nearest_antenna(lat: float, lng: float, antennas: pd.DataFrame) -> float:
    """How far the nearest antenna is, in metres on the ground."""
    return min(float(distance(lat, lng, a.lat, a.lng)) for a in antennas.itertuples())


def user_days(calls: pd.DataFrame, zone: str) -> list[tuple[int, int]]:
    """Calls and distinct cells of each user's each day with a call, by user and day."""
    seen = {}
    for c in calls.itertuples():
        seen.setdefault((c.user, c.t.tz_convert(zone).date()), []).append(c.cell)
    return [(len(seen[key]), len(set(seen[key]))) for key in sorted(seen)]


def burstiness(gaps: list[float]) -> float:
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    return (spread - mean) / (spread + mean) if spread + mean else float("nan")


def top_share(cells: list[str]) -> float:
    return max(cells.count(cell) for cell in cells) / len(cells)


def someone(key: np.ndarray, number: int):
    """A person's stream of numbers in [0, 1), as numpy has it."""
    bits = np.random.Philox(key=key, counter=np.array([0, 0, number, 0], np.uint64))
    while True:
        yield int(bits.random_raw() >> 11) * 2.0**-53


def whereabouts(arrive: list[float], leave: list[float], place: list[int], t: float) -> tuple[int, int, float]:
    """Where somebody is: the last place, the next one, and the share of the way between them that lies behind her (0: still there)."""
    for k in range(len(place)):
        if arrive[k] <= t < leave[k]:
            return place[k], place[k], 0.0
        if k + 1 < len(place) and leave[k] <= t < arrive[k + 1]:
            return place[k], place[k + 1], (t - leave[k]) / (arrive[k + 1] - leave[k])
    raise ValueError(f"nowhere at {t}")
