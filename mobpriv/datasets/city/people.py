"""Commuters: a daily rhythm of home and work, and in between exploration and preferential return.

Sources:

* Song, Koren, Wang, Barabási 2010 ("Modelling the scaling properties of human mobility", Nature Physics 6, 818), Equations 2
  and 3 with their ρ and γ. A person who knows S places explores a new one with probability ρ·S^(−γ), else returns to a known
  one in proportion to past visits.
* Pappalardo and Simini 2018 ("Data-driven generation of spatio-temporal routines in human mobility", Data Mining and Knowledge
  Discovery 32, 787), their d-EPR model, for new places. They are chosen by gravity: in proportion to their weight and to
  distance^(−2).
* Jiang et al. 2016 ("The TimeGeo modeling framework for urban mobility without travel surveys", PNAS 113, E5370) for days that
  begin and end at home and are organised around work.

The hours are ordinary office hours, not fitted to any data set.
"""

import numpy as np

from mobpriv.datasets.city.places import City, Places
from mobpriv.datasets.city.streets import Streets
from mobpriv.datasets.city.travel import Spot, Track, mode_of

RHO, GAMMA = 0.6, 0.21  # Song et al. 2010
_PAST_VISITS = 80  # before the month begins: all know the town already
HOUR, DAY = 3_600.0, 86_400.0


class Preferences:
    """The public places that a person knows and the number of past visits to each."""

    def __init__(self, public: Places):
        self.public = public
        self.visits = np.zeros(len(public.x))

    def choose(self, x: float, y: float, rng: np.random.Generator) -> int:
        known = np.count_nonzero(self.visits)
        if known == 0 or (rng.random() < RHO * known**-GAMMA and known < len(self.visits)):
            far = np.hypot(self.public.x - x, self.public.y - y)
            weight = np.where(self.visits == 0, self.public.weight / np.maximum(far, 250.0) ** 2, 0.0)
        else:
            weight = self.visits
        place = int(rng.choice(len(weight), p=weight / weight.sum()))
        self.visits[place] += 1
        return place


def spot(places: Places, k: int) -> Spot:
    return Spot(float(places.x[k]), float(places.y[k]), int(places.node[k]))


def households(people: int, city: City, rng: np.random.Generator) -> list[dict]:
    """Home, work and habits of each commuter; several commuters may share a building or an office."""
    out = []
    for _ in range(people):
        occupation = rng.choice(["worker", "student", "at home"], p=[0.75, 0.15, 0.10])
        campus, weights = len(city.workplaces.x) - 1, city.workplaces.weight[:-1]
        work = campus if occupation == "student" else int(rng.choice(campus, p=weights / weights.sum()))
        out.append(
            {
                "occupation": str(occupation),
                "home": int(rng.choice(len(city.homes.x), p=city.homes.weight)),
                "work": work,
                "leaves": float(rng.normal(8.0, 0.6)),  # hour of leaving for work
                "works": float(rng.normal(8.3, 0.6)),  # hours
                "outgoing": float(rng.gamma(4, 0.25)),  # frequency of going out, mean 1
            }
        )
    return out


def diary(person: dict, city: City, streets: Streets, days: int, rng: np.random.Generator) -> Track:
    """A commuter's month."""
    home, work = spot(city.homes, person["home"]), spot(city.workplaces, person["work"])
    likes = Preferences(city.public)
    for _ in range(_PAST_VISITS):
        likes.choose(home.x, home.y, rng)
    track = Track(streets, home, 0.0)
    for day in range(days):
        base = day * DAY
        if track.t > base + 12 * HOUR:
            continue  # still out from the day before
        if day % 7 < 5 and person["occupation"] != "at home" and rng.random() > 0.08:
            _workday(track, person, home, work, likes, base, rng)
        else:
            _free_day(track, person, home, likes, base, rng)
        _evening(track, person, home, likes, base, rng)
    track.stay(max(days * DAY, track.t), "home")
    return track


def _workday(track, person, home, work, likes, base, rng):
    track.stay(base + HOUR * (person["leaves"] + rng.normal(0, 0.3)), "home")
    _go(track, work, rng)
    hours = person["works"] if person["occupation"] == "worker" else rng.uniform(3, 8)
    leaves = track.t + HOUR * max(2.0, hours + rng.normal(0, 0.5))
    if rng.random() < 0.35:  # lunch out
        track.stay(base + HOUR * (12.2 + rng.normal(0, 0.4)), "work")
        _visit(track, likes, HOUR * rng.uniform(0.4, 0.9), rng)
        _go(track, work, rng)
    track.stay(leaves, "work")
    if rng.random() < 0.4 * min(person["outgoing"], 2):
        _visit(track, likes, _hours(0.7, rng), rng)
    _go(track, home, rng)


def _free_day(track, person, home, likes, base, rng):
    for _ in range(rng.poisson(1.3 * person["outgoing"])):
        track.stay(max(base + HOUR * 9.5, track.t) + HOUR * rng.exponential(1.5), "home")
        if track.t > base + HOUR * 19:
            break
        _visit(track, likes, _hours(1.2, rng), rng)
        if rng.random() < 0.4:
            _visit(track, likes, _hours(0.8, rng), rng)
        _go(track, home, rng)


def _evening(track, person, home, likes, base, rng):
    friday = (base // DAY) % 7 in (4, 5)
    if track.t < base + HOUR * 20.5 and rng.random() < (0.45 if friday else 0.22) * min(person["outgoing"], 2):
        track.stay(max(track.t + 0.3 * HOUR, base + HOUR * rng.normal(19.7, 0.5)), "home")
        _visit(track, likes, _hours(1.8, rng), rng)
        _go(track, home, rng)


def _visit(track, likes, seconds, rng):
    place = likes.choose(track.spot.x, track.spot.y, rng)
    _go(track, spot(likes.public, place), rng)
    track.stay(track.t + seconds, "public")


def _go(track, to: Spot, rng):
    if (to.x, to.y) != (track.spot.x, track.spot.y):
        far = 1.25 * np.hypot(to.x - track.spot.x, to.y - track.spot.y)
        track.go(to, mode_of(far, rng), rng)


def _hours(median: float, rng) -> float:
    """Seconds of a free visit: log-normal, at most five hours."""
    return HOUR * float(min(median * np.exp(rng.normal(0, 0.6)), 5.0))
