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
from mobpriv.datasets.city.crowd import Crowd
from mobpriv.ground.grid import SquareGrid
from mobpriv.traces.profiles import HeatMaps, heat_maps

_AT_A_TIME = 2_000  # users whose records are in memory together; also the users of one generator of noise


class CrowdMaps(NamedTuple):
    """The heat maps of a crowd; memory: linear in the users' cells, not in their records."""

    known: dict[str, HeatMaps]  # mechanism -> maps of the training half, protected with it
    published: dict[str, HeatMaps]  # mechanism -> maps of the published half
    users: pd.Index  # the attacked users: those with records in the published half before protection


def crowd_maps(crowd: Crowd, users: int, mechanisms: Mapping, seed: int, cell: float = 800.0) -> CrowdMaps:
    """Make the first ``users`` of a crowd, protect both halves with each of the ``mechanisms`` (name -> mechanism).

    ``seed`` is that of the mechanisms' noise, ``cell`` the side of the heat maps' cells in m. The maps of a user do not depend
    on ``users``.
    """
    whole("users", users, 1)
    grid = SquareGrid(cell)
    maps, attacked = {(name, half): [] for name in mechanisms for half in range(2)}, []
    with tqdm(total=users, desc="crowd", unit="user", disable=None) as bar:
        for first in range(0, users, _AT_A_TIME):
            end = min(first + _AT_A_TIME, users)
            halves = crowd.halves(first, end)
            for name, half in maps:
                rng = np.random.default_rng([seed, first, half])
                maps[name, half].append(heat_maps(mechanisms[name].protect(halves[half], rng), grid))
            attacked.append(halves[1]["user"].cat.categories)
            bar.update(end - first)
    known, published = ({name: _joined(maps[name, half]) for name in mechanisms} for half in range(2))
    return CrowdMaps(known, published, pd.Index(np.concatenate(attacked), name="user"))


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
    here = int(np.searchsorted(maps.users, f"u{users:07d}"))
    return HeatMaps(maps.users[:here], maps.cells, maps.counts[:here])


def reidentified(published: HeatMaps, known: HeatMaps, users: pd.Index) -> np.ndarray:
    """Whether AP-Attack re-identifies each of the ``users``, as :func:`mobpriv.attacks.policies.reidentified` counts it.

    The right user must be nearer than every other; an erased trace is not re-identified.
    """
    result = nearest(published, known)
    hit = (known.users[result.index] == published.users) & (result.ties == 1)
    return pd.Series(hit, published.users).reindex(users, fill_value=False).to_numpy()


def crowd_results(maps: CrowdMaps, sizes: Iterable[int]) -> dict[str, Estimate]:
    """Rates of AP-Attack by mechanism and size of the crowd, with intervals over users.

    * ``rate.{mechanism}.{users}``: the adversary's training half is not protected.
    * ``aware.{mechanism}.{users}``: he protects it with the same mechanism.
    * ``change.…``, ``aware_change.…``: the same users, those of the smallest crowd, attacked among ``users`` minus among the
      smallest crowd (paired).

    Each user's noise is drawn once and independently of the others', so that the intervals cover it.
    """
    sizes, results = sorted(sizes), {}
    for prefix, changed, trained in (("rate", "change", "none"), ("aware", "aware_change", "")):
        for name, published in maps.published.items():
            if not trained and name == "none":
                continue
            for n in sizes:
                users = maps.users[: np.searchsorted(maps.users, f"u{n:07d}")]
                hit = reidentified(among_first(published, n), among_first(maps.known[trained or name], n), users)
                results[f"{prefix}.{name}.{n}"] = rate(hit)
                if n == sizes[0]:
                    smallest = hit
                else:
                    results[f"{changed}.{name}.{n}"] = paired_difference(hit[: len(smallest)], smallest)
    return results
