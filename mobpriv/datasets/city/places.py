"""Places of the synthetic city to live, work and go out, with a street node, a weight and a role."""

from typing import NamedTuple

import numpy as np

from mobpriv.datasets.city.streets import Streets

_DISTRICTS = 7  # centres besides downtown
_PUBLIC = 900  # shops, restaurants, gyms, parks: choices of free visits
_BUILDINGS_PER_PERSON = 0.55  # homes: two people in three share a building with another one
_WORKPLACES_PER_PERSON = 0.22
_CAMPUS = (2_900.0, 2_200.0)
_STANDS = 18


class Places(NamedTuple):
    """Columns, one entry a place: position in m, nearest street node, weight of the choice."""

    x: np.ndarray
    y: np.ndarray
    node: np.ndarray
    weight: np.ndarray


class City(NamedTuple):
    homes: Places
    workplaces: Places  # the last one is the campus
    public: Places
    stands: Places  # where cabs wait; the first is the airport
    garages: Places


def make_places(streets: Streets, people: int, rng: np.random.Generator) -> City:
    homes_rng, work_rng, public_rng, stands_rng = rng.spawn(4)
    inner = np.hypot(streets.x, streets.y) < 7_500
    chosen = homes_rng.choice(np.flatnonzero(inner), _DISTRICTS, replace=False)
    centres = np.column_stack([np.append(0.0, streets.x[chosen]), np.append(0.0, streets.y[chosen])])
    share = np.r_[0.45, np.full(_DISTRICTS, 0.55 / _DISTRICTS)]

    def density(width, downtown):
        """Weight of every node: normal hills around the centres."""
        part = np.r_[downtown, share[1:] / share[1:].sum() * (1 - downtown)]
        far = np.hypot(streets.x[:, None] - centres[:, 0], streets.y[:, None] - centres[:, 1])
        hill = (part / width**2 * np.exp(-((far / width) ** 2) / 2)).sum(axis=1)
        hill[streets.airport] = 0
        return hill

    homes = _places(streets, density(2_400, 0.25), max(3, round(_BUILDINGS_PER_PERSON * people)), 4.0, homes_rng)
    work = _places(streets, density(1_100, 0.55), max(3, round(_WORKPLACES_PER_PERSON * people)), 1.0, work_rng)
    public = _places(streets, density(1_300, 0.40), _PUBLIC, 1.0, public_rng)
    stands = _places(streets, density(1_000, 0.60), _STANDS - 1, 1.5, stands_rng)
    garages = _places(streets, density(4_000, 0.0), 6, 3.0, stands_rng)
    return City(homes, _with(work, streets, _CAMPUS), public, _with(stands, streets, None), garages)


def _places(streets, density, count, pareto, rng) -> Places:
    """Places off the street at nodes drawn by density; weights have a Pareto tail: few places attract many people."""
    node = rng.choice(len(density), count, p=density / density.sum())
    angle, off = rng.uniform(0, 2 * np.pi, count), rng.uniform(15, 60, count)
    weight = 1 + rng.pareto(pareto, count).clip(0, 50)
    return Places(streets.x[node] + off * np.cos(angle), streets.y[node] + off * np.sin(angle), node, weight / weight.sum())


def _with(places: Places, streets: Streets, spot) -> Places:
    """``places`` and the campus (last), or the airport (first)."""
    if spot is None:
        node = streets.airport
        x, y = streets.x[node] + 40, streets.y[node] + 30
        weight = np.r_[0.12, places.weight * 0.88]
        return Places(np.r_[x, places.x], np.r_[y, places.y], np.r_[node, places.node], weight)
    node = int(np.hypot(streets.x - spot[0], streets.y - spot[1]).argmin())
    return Places(
        np.r_[places.x, spot[0]], np.r_[places.y, spot[1]], np.r_[places.node, node], np.r_[places.weight, places.weight.max()]
    )
