"""Compute what Figures 5 and 6 show, for as many profiles as in the paper.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §7.
"""

from collections.abc import Mapping

import numpy as np

from mobpriv.base.estimates import Estimate, clustered_difference, clustered_ratio, rate
from mobpriv.experiments.primule_scale import OverAll, published
from mobpriv.icp.archetypes import CATEGORIES
from mobpriv.icp.profiles import Icps, values
from mobpriv.icp.sociometer import PROGRAM
from mobpriv.metrics.information_loss import similarity

ALMOST = 0.95  # a similarity above it: "almost identical" (§7.1)
_ROWS = 1 << 18  # profiles whose values are in memory together


def outcome(profiles: Icps, over: Mapping[int, OverAll], rng: np.random.Generator) -> dict[str, Estimate | int]:
    """Compute the results of Figures 5 and 6; ``over``: k -> the result of PRIMULE on all cells.

    * ``above.{k}``: the share of profiles that is almost identical after protection.
    * ``gain``: the difference of this share between the least and the largest k.
    * ``safe.{k}``: groups of k or more equal profiles before merging; ``safe_alone.{k}``: those never merged with others.
    * ``label.original.{class}``, ``label.{k}.{class}``: labels of the authors' program, of the original and of the re-clustered
      published profiles.
    * ``kept.{k}.{class}``: share of the labels that stay the same.

    Labels are of one k-means seed each. Intervals of published values are over groups. Memory: twice the values of the distinct
    profiles.
    """
    keys, where = profiles["key"].to_numpy(), ["municipality", "key"]
    equal = profiles.groupby(where, observed=True)["key"].transform("size").to_numpy()
    first = ~profiles.duplicated(where).to_numpy()
    own = _labels_of(keys, rng)
    found = {f"label.original.{c}": rate(own == i) for i, c in enumerate(CATEGORIES)}
    almost = {}
    for k, one in over.items():
        almost[k] = _almost(profiles, one)
        said = PROGRAM.fit(one.means, one.members, rng).codes(one.means)[one.group]
        safe = first & (equal >= k)
        found |= {
            f"above.{k}": clustered_ratio(almost[k], 1, one.group, bounds=(0, 1)),
            f"safe.{k}": int(safe.sum()),
            f"safe_alone.{k}": int((safe & (one.members[one.group] == equal)).sum()),
        }
        for i, c in enumerate(CATEGORIES):
            found[f"label.{k}.{c}"] = clustered_ratio(said == i, 1, one.group, bounds=(0, 1))
            if (here := own == i).any():
                found[f"kept.{k}.{c}"] = clustered_ratio((said == i)[here], 1, one.group[here], bounds=(0, 1))
    least, most = min(over), max(over)
    return found | {"gain": clustered_difference(almost[least], almost[most], over[most].group)}


def _labels_of(keys: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the program's labels of profiles, as places in CATEGORIES; equal profiles are labelled once."""
    different, of, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    shares = values(different)
    return PROGRAM.fit(shares, sizes, rng).codes(shares)[of]


def _almost(profiles: Icps, found: OverAll) -> np.ndarray:
    """Return for each profile whether its published version is almost identical."""
    keys = profiles["key"].to_numpy()
    parts = (slice(start, start + _ROWS) for start in range(0, len(keys), _ROWS))
    return np.concatenate([similarity(values(keys[rows]), published(profiles, found, rows)) > ALMOST for rows in parts])
