"""Movement through the synthetic city: a day as a list of stays and ways, and the position at any second of it."""

from typing import NamedTuple

import numpy as np

from mobpriv.datasets.city.streets import FREE_SPEED, Streets, way

_WALK, _RIDE, DRIVE = "walk", "ride", "drive"
_PACE = {_WALK: 1.3, _RIDE: 4.2}  # m/s
_STOP_SHARE, _STOP_MEAN = 0.3, 18.0  # of junctions a car stops at; s


class Spot(NamedTuple):
    x: float
    y: float
    node: int


class Stay(NamedTuple):
    start: float  # s since the start of the month
    end: float
    x: float
    y: float
    role: str


class Track:
    """The movement of one user: knots (t, x, y) with straight, uniform motion between them, and the stays."""

    def __init__(self, streets: Streets, spot: Spot, t: float):
        self.streets, self.spot, self.t = streets, spot, t
        self.knots = [np.array([[t, spot.x, spot.y]])]
        self.stays: list[Stay] = []
        self.ways: list[tuple[float, float]] = []

    def stay(self, until: float, role: str) -> None:
        until = max(until, self.t)
        self.stays.append(Stay(self.t, until, self.spot.x, self.spot.y, role))
        self.knots.append(np.array([[until, self.spot.x, self.spot.y]]))
        self.t = until

    def go(self, to: Spot, mode: str, rng: np.random.Generator) -> None:
        """Go the quickest way to ``to``: from the door to the street, from junction to junction, to the other door."""
        nodes = way(self.streets, self.spot.node, to.node)
        x = np.r_[self.spot.x, self.streets.x[nodes], to.x]
        y = np.r_[self.spot.y, self.streets.y[nodes], to.y]
        length = np.hypot(np.diff(x), np.diff(y))
        seconds = length / self._speeds(nodes, mode, rng)
        wait = np.zeros(len(seconds))
        if mode != _WALK:
            stops = rng.random(len(seconds)) < _STOP_SHARE
            wait[stops] = rng.exponential(_STOP_MEAN, stops.sum())
            wait[-1] = 0
        arrive = self.t + np.cumsum(seconds + wait) - wait
        t = np.column_stack([arrive, arrive + wait]).ravel()  # each junction twice: arrival and departure
        knots = np.column_stack([t, np.repeat(x[1:], 2), np.repeat(y[1:], 2)])
        self.knots.append(knots)
        self.ways.append((self.t, float(t[-1])))
        self.spot, self.t = to, float(t[-1])

    def _speeds(self, nodes, mode, rng):
        steps = len(nodes) + 1
        if mode in _PACE:
            return np.full(steps, _PACE[mode] * np.exp(rng.normal(0, 0.12)))
        kinds = self.streets.kind[nodes[:-1], nodes[1:]]
        speed = FREE_SPEED[kinds] * traffic(self.t) * np.exp(rng.normal(0, 0.08)) * rng.uniform(0.8, 1.15, len(kinds))
        return np.r_[3.0, speed, 3.0]  # at walking pace in the yard

    def path(self) -> np.ndarray:
        return np.concatenate(self.knots)


def traffic(t: float) -> float:
    """Share of the free speed at that hour: slow at 8 and at 17.5 on workdays."""
    day, hour = int(t // 86_400), t % 86_400 / 3_600
    if day % 7 > 4:
        return 0.9
    return 1 - 0.35 * np.exp(-(((hour - 8.2) / 1.1) ** 2)) - 0.4 * np.exp(-(((hour - 17.5) / 1.4) ** 2))


def mode_of(metres: float, rng: np.random.Generator) -> str:
    """Short ways on foot, long ones motorised, some by bicycle."""
    if metres < 900 or (metres < 1_800 and rng.random() < 0.5):
        return _WALK
    return _RIDE if metres < 5_000 and rng.random() < 0.25 else DRIVE
