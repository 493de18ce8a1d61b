"""AP-Attack among crowds of a synthetic city: beyond the thesis, which tests up to 536 users (§3.4.9, Figure 3.7).

The adversary knows the first two weeks of everybody and attacks the last two, as in :mod:`mobpriv.experiments.thesis_3`. The crowds are
nested: a crowd of n is the first n inhabitants of :class:`mobpriv.datasets.city.crowd.Crowd`. So the same users can be compared in
a small and in a large crowd.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from tqdm import tqdm

from mobpriv.attacks.crowd import nearest
from mobpriv.base.estimates import Estimate, paired_difference, rate
from mobpriv.base.ranges import whole
from mobpriv.datasets.city.crowd import Crowd, name_of
from mobpriv.ground.grid import SquareGrid
from mobpriv.mechanisms import GeoI, Nothing, Promesse
from mobpriv.traces.profiles import HeatMaps, heat_maps
from mobpriv.traces.table import rows

MECHANISMS = {mechanism.name: mechanism for mechanism in (Nothing(), GeoI(epsilon=0.01), Promesse(alpha=200.0))}  # as in §3.4.2
_AT_A_TIME = 2_000  # users whose records are in memory together; also the users of one generator of noise


class CrowdMaps(NamedTuple):
    """The heat maps of a crowd; memory: linear in the users' cells, not in their records."""

    known: dict[str, HeatMaps]  # mechanism -> maps of the training half, protected with it
    published: dict[str, HeatMaps]  # mechanism -> maps of the published half of the attacked users
    users: pd.Index  # the attacked users: those with records in the published half before protection


def crowd_maps(
    crowd: Crowd,
    users: int,
    attacked: int,
    mechanisms: Mapping,
    seed: int,
    trained: Iterable[str] = ("none",),
    cell: float = 800.0,  # m, side of a heat map's cells
) -> CrowdMaps:
    """Make the heat maps of the first ``users`` of a crowd; the first ``attacked`` users are attacked.

    ``mechanisms`` (name -> mechanism) protect the published half, those in ``trained`` also the training half; ``seed`` is that
    of their noise. A user's maps do not depend on ``users``.
    """
    whole("users", users, 1)
    whole("attacked", attacked, 1, users)
    grid = SquareGrid(cell)
    known, published, names = {name: [] for name in trained}, {name: [] for name in mechanisms}, []
    with tqdm(total=users, desc="crowd", unit="user", disable=None) as bar:
        for first in range(0, users, _AT_A_TIME):
            end = min(first + _AT_A_TIME, users)
            halves = crowd.halves(first, end)
            user = halves[1]["user"].cat
            secret = rows(halves[1], (user.codes < len(_first(user.categories, attacked))).to_numpy())
            for half, traces, parts in ((0, halves[0], known), (1, secret, published)):
                for name in parts if len(traces) else ():
                    protected = mechanisms[name].protect(traces, np.random.default_rng([seed, first, half]))
                    parts[name].append(heat_maps(protected, grid))
            names.append(secret["user"].cat.categories)
            bar.update(end - first)
    known, published = ({name: _joined(parts) for name, parts in maps.items()} for maps in (known, published))
    return CrowdMaps(known, published, pd.Index(np.concatenate(names), name="user"))


def _joined(parts: list[HeatMaps]) -> HeatMaps:
    """The heat maps of all users of the parts, in this order."""
    cells = np.unique(np.concatenate([part.cells for part in parts]))
    indices = np.concatenate([np.searchsorted(cells, part.cells)[part.counts.indices] for part in parts])
    data = np.concatenate([part.counts.data for part in parts])
    sizes = np.concatenate([np.diff(part.counts.indptr) for part in parts])
    users = pd.Index(np.concatenate([part.users for part in parts]), name="user")
    return HeatMaps(users, cells, csr_array((data, indices, np.r_[0, np.cumsum(sizes)]), shape=(len(users), len(cells))))


def among_first(maps: HeatMaps, users: int) -> HeatMaps:
    """The heat maps of the first ``users`` inhabitants."""
    here = _first(maps.users, users)
    return HeatMaps(here, maps.cells, maps.counts[: len(here)])


def _first(names: pd.Index, users: int) -> pd.Index:
    return names[: np.searchsorted(names, name_of(users))]


def reidentified(published: HeatMaps, known: HeatMaps, users: pd.Index) -> np.ndarray:
    """Whether AP-Attack re-identifies each of the ``users``, as :func:`mobpriv.attacks.policies.reidentified` counts it.

    The right user must be nearer than every other; an erased trace is not re-identified.
    """
    result = nearest(published, known)
    hit = (known.users[result.index] == published.users) & (result.ties == 1)
    return pd.Series(hit, published.users).reindex(users, fill_value=False).to_numpy()


def crowd_results(maps: CrowdMaps, sizes: Iterable[int]) -> dict[str, Estimate]:
    """Rates of AP-Attack by mechanism and size of the crowd, with intervals over users.

    * ``rate.{trained}.{mechanism}.{users}``: ``trained`` says whether the adversary trains on the training half as "recorded" or
      "protected" with the same mechanism.
    * ``change.{trained}.{mechanism}.{users}``: the change of the rate of the smallest crowd's users if ``users`` are known (paired).

    A user's noise is drawn once, independently of other users' noise: the intervals over users include it.
    """
    sizes, results = sorted(sizes), {}
    for name, published in maps.published.items():
        for trained, known in maps.known.items():
            if trained not in ("none", name):
                continue
            hits = {n: reidentified(among_first(published, n), among_first(known, n), _first(maps.users, n)) for n in sizes}
            prefix = "recorded" if trained == "none" else "protected"
            for n, hit in hits.items():
                results[f"rate.{prefix}.{name}.{n}"] = rate(hit)
            few = hits[sizes[0]]
            for n in sizes[1:]:
                results[f"change.{prefix}.{name}.{n}"] = paired_difference(hits[n][: len(few)], few)
    return results
