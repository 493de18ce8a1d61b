"""Recordings that devices make of a track: when they are on, how often they record, and their position error."""

import numba
import numpy as np

from mobpriv.datasets.city.people import DAY, HOUR
from mobpriv.datasets.city.travel import Track

_STEADY = 90.0  # s, correlation time of a receiver's error
_OUTLIERS, _OUTLIER_METRES = 0.001, 180.0  # share of the records, median of their error


def habits(rng: np.random.Generator, days: int) -> dict:
    """How one commuter records: most on most days, some seldom or in a part of the month; most phones are off at night."""
    seldom = rng.random() < 0.12
    first, last = 0, days
    if rng.random() < 0.15:
        length = int(rng.integers(min(4, days), days + 1))
        first = int(rng.integers(0, days - length + 1))
        last = first + length
    return {
        "share": float(rng.uniform(0.1, 0.35) if seldom else rng.beta(5, 1.2)),  # of the days
        "first": first,
        "last": last,
        "moving": float(rng.choice([20, 30, 45, 60, 60])),  # s between two records on the way
        "still": float(rng.choice([300, 480, 600, 600])),  # s between two records in a place
        "nights": bool(rng.random() < 0.15),  # on at night
        "on": float(rng.normal(7.0, 0.6)),
        "off": float(rng.normal(22.8, 0.7)),
        "noise": float(rng.uniform(3, 7)),  # m
    }


def times_of_phone(track: Track, habit: dict, days: int, rng: np.random.Generator) -> np.ndarray:
    """Seconds at which a phone records: often on the way, seldom in a place, not at all while off."""
    still = np.arange(0, days * DAY, habit["still"]) + rng.uniform(0, habit["still"])
    moving = [np.arange(start - 60, end + 120, habit["moving"]) for start, end in track.ways]
    t = np.concatenate([still, *moving])
    t = np.unique(np.round(t + rng.uniform(-0.15, 0.15, len(t)) * habit["moving"]))
    on = np.zeros(len(t), bool)
    for day in range(habit["first"], habit["last"]):
        if rng.random() < habit["share"]:
            start, end = (0, DAY) if habit["nights"] else HOUR * (np.array([habit["on"], habit["off"]]) + rng.normal(0, 0.5, 2))
            on |= (t >= day * DAY + start) & (t < day * DAY + end)
    for gap in np.sort(rng.uniform(0, days * DAY, rng.poisson(0.7 * days))):  # no battery, no sky
        on &= ~((t >= gap) & (t < gap + HOUR * 0.75 * np.exp(rng.normal(0, 1.0))))
    on &= rng.random(len(t)) > 0.03
    return t[on & (t >= 0) & (t < days * DAY)]


def times_of_cab(on: list[tuple[float, float]], days: int, rng: np.random.Generator) -> np.ndarray:
    """Seconds at which a cab's recorder reports: about once a minute during a shift, with a gap now and then."""
    t = np.concatenate([np.arange(start + rng.uniform(0, 60), end, 60.0) for start, end in on] or [np.zeros(0)])
    t = np.unique(np.round(t + rng.normal(0, 2, len(t))))
    keep = rng.random(len(t)) > 0.04
    for gap in np.sort(rng.uniform(0, days * DAY, rng.poisson(0.5 * days))):
        keep &= ~((t >= gap) & (t < gap + HOUR * 0.4 * np.exp(rng.normal(0, 1.0))))
    return t[keep & (t >= 0) & (t < days * DAY)]


def measured(path: np.ndarray, t: np.ndarray, noise: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions at ``t`` as a receiver records them: an error that changes slowly, a little noise, rarely an outlier (in m)."""
    x, y = np.interp(t, path[:, 0], path[:, 1]), np.interp(t, path[:, 0], path[:, 2])
    drift = _drift(t, rng.normal(0, 1, (len(t), 2)), _STEADY) * noise
    fine = rng.normal(0, 0.3 * noise, (len(t), 2))
    wild = rng.random(len(t)) < _OUTLIERS
    angle = rng.uniform(0, 2 * np.pi, len(t))
    reach = np.where(wild, np.minimum(_OUTLIER_METRES * np.exp(rng.normal(0, 0.9, len(t))), 3_000), 0)
    error = drift + fine + np.column_stack([reach * np.cos(angle), reach * np.sin(angle)])
    return x + error[:, 0], y + error[:, 1]


@numba.njit(cache=True)
def _drift(t, steps, steady):
    """Unit-variance noise that is correlated over time as exp(−Δt/steady)."""
    out = np.empty_like(steps)
    for k in range(len(t)):
        keep = np.exp(-(t[k] - t[k - 1]) / steady) if k else 0.0
        for c in range(2):
            before = out[k - 1, c] if k else 0.0
            out[k, c] = keep * before + np.sqrt(1 - keep * keep) * steps[k, c]
    return out
