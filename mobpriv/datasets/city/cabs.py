"""Cabs: shifts from a garage, waiting at stands, fares by a demand common to all drivers."""

import numpy as np

from mobpriv.datasets.city.people import DAY, HOUR, spot
from mobpriv.datasets.city.places import City
from mobpriv.datasets.city.streets import Streets
from mobpriv.datasets.city.travel import DRIVE, Track

_SHIFTS = {"day": (6.5, 8.0), "night": (16.5, 8.0), "double": (6.0, 15.0)}  # usual start (hour) and length (hours)


def fleet(cabs: int, city: City, rng: np.random.Generator) -> list[dict]:
    """Garage, shift, days off and favourite stands of each cab."""
    out = []
    for _ in range(cabs):
        shift = str(rng.choice(list(_SHIFTS), p=[0.45, 0.40, 0.15]))
        liking = city.stands.weight * rng.gamma(0.8, 1.0, len(city.stands.x))
        out.append(
            {
                "shift": shift,
                "garage": int(rng.choice(len(city.garages.x), p=city.garages.weight)),
                "starts": float(_SHIFTS[shift][0] + rng.normal(0, 0.7)),
                "off": sorted(int(d) for d in rng.choice(7, int(rng.integers(2, 4)), replace=False)),
                "liking": liking / liking.sum(),
            }
        )
    return out


def _demand(city: City, hour: float) -> np.ndarray:
    """Weight of each public place and home as an end of a fare: homes most early in the morning, least in the evening."""
    homes = 0.35 + 0.25 * np.cos((hour - 6) * np.pi / 12)
    return np.r_[city.public.weight * (1 - homes), city.homes.weight * homes]


def waiting(hour: float) -> float:
    """Mean seconds without a fare: short in the rush hours and in the evening, long before dawn."""
    return 240 + 900 * np.exp(-(((hour - 4) / 2.5) ** 2)) + 240 * np.exp(-(((hour - 14) / 2.0) ** 2))


def shifts(
    cab: dict, city: City, streets: Streets, days: int, rng: np.random.Generator
) -> tuple[Track, list[tuple[float, float]]]:
    """A cab's month, and the times its recorder is on (from leaving the garage to coming back)."""
    garage = spot(city.garages, cab["garage"])
    track, on = Track(streets, garage, 0.0), []
    for day in range(days):
        if day % 7 in cab["off"] or rng.random() < 0.05:
            continue
        start = day * DAY + HOUR * (cab["starts"] + rng.normal(0, 0.3))
        if start < track.t + HOUR or start > days * DAY - 2 * HOUR:
            continue
        track.stay(start, "garage")
        end = start + HOUR * (_SHIFTS[cab["shift"]][1] + rng.normal(0, 0.7))
        _work(track, cab, city, end, rng)
        track.go(garage, DRIVE, rng)
        on.append((start, track.t))
    track.stay(max(days * DAY, track.t), "garage")
    return track, on


def _work(track: Track, cab: dict, city: City, end: float, rng):
    pause = track.t + (end - track.t) * rng.uniform(0.4, 0.6)
    ends_x = np.r_[city.public.x, city.homes.x]
    ends_y = np.r_[city.public.y, city.homes.y]
    ends_node = np.r_[city.public.node, city.homes.node]
    while track.t < end:
        far = np.hypot(city.stands.x - track.spot.x, city.stands.y - track.spot.y)
        weight = cab["liking"] * np.exp(-far / 3_000)
        stand = int(rng.choice(len(weight), p=weight / weight.sum()))
        track.go(spot(city.stands, stand), DRIVE, rng)
        if track.t > pause:
            track.stay(track.t + HOUR * rng.uniform(0.4, 0.9), "break")
            pause = np.inf
        track.stay(track.t + rng.exponential(waiting(track.t % DAY / HOUR)), "airport" if stand == 0 else "stand")
        while True:  # a fare; sometimes the next one is hailed where it ends
            hour = track.t % DAY / HOUR
            if rng.random() < 0.07 and track.spot.node != track.streets.airport:
                track.go(spot(city.stands, 0), DRIVE, rng)
            else:
                weight = _demand(city, hour)
                k = int(rng.choice(len(weight), p=weight / weight.sum()))
                to = track.spot._replace(x=float(ends_x[k]), y=float(ends_y[k]), node=int(ends_node[k]))
                track.go(to, DRIVE, rng)
            track.stay(track.t + rng.uniform(30, 150), "drop-off")
            if track.t > end or rng.random() > 0.35:
                break
