"""Points of interest of the synthetic city: the public places that its people visit, and shops along the streets nearby."""

import numpy as np
import pandas as pd

from mobpriv.datasets.city.places import Places
from mobpriv.datasets.city.streets import Streets, degrees

_NEIGHBOURS = 5  # mean number of shops around a public place
_SETBACK = (8.0, 20.0)  # m, from the middle of the street to a door


def shops(streets: Streets, public: Places, rng: np.random.Generator) -> pd.DataFrame:
    """lat, lng and kind ("public place" or "shop") of every point: the public places, then the shops.

    Shops gather where people go, as in a Neyman–Scott process. Each public place has a Poisson number of shops. Each shop is
    placed uniformly along one of the streets that leave the place's corner, on either side.
    """
    corner = np.repeat(public.node, rng.poisson(_NEIGHBOURS, len(public.node)))
    leaving = [np.flatnonzero(row >= 0) for row in streets.kind]
    ways = np.array([len(nodes) for nodes in leaving])
    choice = (rng.random(len(corner)) * ways[corner]).astype(int)
    end = np.array([leaving[node][k] for node, k in zip(corner, choice, strict=True)])
    dx, dy = streets.x[end] - streets.x[corner], streets.y[end] - streets.y[corner]
    share = rng.random(len(corner))
    off = rng.uniform(*_SETBACK, len(corner)) * rng.choice([-1, 1], len(corner)) / np.hypot(dx, dy)
    x = np.r_[public.x, streets.x[corner] + share * dx - off * dy]
    y = np.r_[public.y, streets.y[corner] + share * dy + off * dx]
    lat, lng = degrees(x, y)
    kind = np.repeat(["public place", "shop"], [len(public.x), len(corner)])
    return pd.DataFrame({"lat": lat, "lng": lng, "kind": kind})
