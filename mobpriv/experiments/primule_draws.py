"""The Sociometer drawn many times: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User
Profiles*, §7.2, whose figures show one run of it. k-means begins at random profiles, and noise is random: what a figure owes to one
draw is told apart here from what it owes to the users.

Labels of several draws are arrays (draws, n) of places in CATEGORIES, all of the same n profiles.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.archetypes import CATEGORIES, PASSING
from mobpriv.estimates import Estimate, clustered_ratio, spread
from mobpriv.mechanisms.call_profiles import NoisyProfiles
from mobpriv.ranges import whole
from mobpriv.sociometer import Distinct, Fitted, Sociometer, as_profiles, distinct, passes_by

NONE = Estimate(np.nan, np.nan, np.nan, 0)


class Drawn(NamedTuple):
    """Labels of published profiles under several settings of the Sociometer, each (draws, n)."""

    again: dict[str, np.ndarray]  # with prototypes of their own: the paper's
    frozen: dict[str, np.ndarray]  # with the prototypes of the original profiles


def stream(seed: int, *of: str) -> np.random.Generator:
    """The draws of what has these names: the same on every page, whatever else a page draws."""
    return np.random.default_rng([seed, zlib.crc32("\n".join(of).encode())])


def prototypes(values, rng: np.random.Generator, draws: int, sociometer: Sociometer | None = None) -> list[Fitted]:
    """Phase 2 with so many seeds, the first ones the same for more of them. ``values``: profiles (n, cells), or as many of them as there are
    draws (draws, n, cells), as noise gives."""
    whole("draws", draws, 1)
    sociometer = sociometer or Sociometer()
    return [_fitted(sociometer, of, child) for of, child in zip(_each(values, draws), rng.spawn(draws), strict=True)]


def _fitted(sociometer: Sociometer, of: Distinct | np.ndarray, rng: np.random.Generator) -> Fitted:
    if not isinstance(of, Distinct):
        return sociometer.fit(of, None, rng)
    fitted = sociometer.fit(of.values, of.sizes, rng)
    return replace(fitted, own=fitted.own[of.of])


def labels(fits: Sequence[Fitted], values, chosen: Mapping[str, Sociometer]) -> dict[str, np.ndarray]:
    """Phases 3 and 4 under each setting with the *same* prototypes: k-means does not know the archetypes, so that settings are compared
    draw by draw and differ in nothing else. ``values`` as in :func:`prototypes`."""
    each = _each(values, len(fits))
    return _named(fits, _nearest(fits, each), _passing(each, chosen), chosen)


def _nearest(fits: Sequence[Fitted], each: Sequence) -> Iterator[np.ndarray]:
    for fit, of in zip(fits, each, strict=True):
        yield fit.nearest(of.values)[of.of] if isinstance(of, Distinct) else fit.nearest(of)


def _named(
    fits: Sequence[Fitted], nearest: Iterable[np.ndarray], passing: Iterable, chosen: Mapping[str, Sociometer]
) -> dict[str, np.ndarray]:
    """The labels, by the places of the nearest prototypes, and of who passes by the rule."""
    found = {name: [] for name in chosen}
    for fit, near, alone in zip(fits, nearest, passing, strict=True):
        for name, sociometer in chosen.items():
            codes = sociometer.labels(fit.prototypes)[near]
            found[name].append(np.where(alone, np.int8(PASSING), codes) if sociometer.passing == "rule" else codes)
    return {name: np.array(of, np.int8) for name, of in found.items()}


def _passing(each: Sequence, chosen: Mapping[str, Sociometer]) -> list:
    """Who passes by the program's rule, of each draw; None where no setting asks."""
    if all(sociometer.passing != "rule" for sociometer in chosen.values()):
        return [None] * len(each)
    if isinstance(each[0], Distinct):  # the same profiles in each draw
        return [passes_by(each[0].values)[each[0].of]] * len(each)
    return [passes_by(of) for of in each]


def relabelled(
    fits: Sequence[Fitted], chosen: Mapping[str, Sociometer], published, rng: np.random.Generator, sociometer=None
) -> Drawn:
    """Published profiles grouped again, in each draw with a seed of its own, and by the prototypes ``fits`` of the original ones."""
    own = prototypes(published, rng, len(fits), sociometer)
    each = _each(published, len(fits))
    alone = _passing(each, chosen)
    # of its own profiles a fit knows the nearest prototypes already
    return Drawn(_named(own, (fit.own for fit in own), alone, chosen), _named(fits, _nearest(fits, each), alone, chosen))


def noisy(values: np.ndarray, mechanism: NoisyProfiles, rng: np.random.Generator, draws: int) -> np.ndarray:
    """The profiles (n, cells) with noise, (draws, n, cells)."""
    table = pd.DataFrame(values)
    return np.array([mechanism.protect(table, child).values.to_numpy() for child in rng.spawn(whole("draws", draws, 1))])


def confused(true, found, whose) -> pd.DataFrame:
    """The confusion matrix over all draws, a row a cell: true, found, ``value, low, high, n``, least, largest.

    The share of what has the true label (rows of ``true`` are draws of it, too) that is found with the other, with an interval that covers
    another sample of users; n profiles have that true label in some draw. ``least`` and ``largest`` are those of single draws.
    """
    true, found, owner = _checked(true, found, whose)
    rows = []
    for i, name in enumerate(CATEGORIES):
        is_so = true == i
        of, here = is_so.sum(axis=0), is_so.any(axis=0)
        for j, other in enumerate(CATEGORIES):
            both = is_so & (found == j)
            estimate = clustered_ratio(both.sum(axis=0)[here], of[here], owner[here], bounds=(0, 1)) if here.any() else NONE
            drawn = _of_draws(both.sum(axis=1), is_so.sum(axis=1))
            rows.append({"true": name, "found": other, **estimate, "least": drawn.low, "largest": drawn.high})
    return pd.DataFrame(rows)


def f_score(true, found, category: str, whose) -> Estimate:
    """2 · hits / (true + found) of a class over all draws, with an interval over the users; without a value where nobody is of the class or
    has its label."""
    true, found, owner = _checked(true, found, whose)
    code = CATEGORIES.index(category)
    is_so, said = true == code, found == code
    here = (is_so | said).any(axis=0)
    if not here.any():
        return NONE
    hits, of = 2 * (is_so & said).sum(axis=0)[here], (is_so.astype(int) + said).sum(axis=0)[here]
    return clustered_ratio(hits, of, owner[here], bounds=(0, 1))


def shares(found, category: str, whose) -> Estimate:
    """The share of profiles with a label over all draws, with an interval over the users."""
    return clustered_ratio((np.asarray(found) == CATEGORIES.index(category)).mean(axis=0), 1, whose, bounds=(0, 1))


def _each(values, draws: int) -> Sequence:
    """The profiles of each draw; where all have the same, equal ones as one, found once."""
    values = np.asarray(values)
    if values.ndim == 3 and len(values) != draws:
        raise ValueError(f"there must be as many sets of profiles as draws, or one for all (got {len(values)} for {draws})")
    return values if values.ndim == 3 else [distinct(as_profiles(values))] * draws


def _checked(true, found, whose) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    true, found = np.asarray(true), np.asarray(found)
    owner = pd.factorize(np.asarray(whose))[0]
    if true.shape != found.shape or true.ndim != 2 or true.shape[1:] != owner.shape:
        raise ValueError(
            f"labels must be (draws, n) of the same profiles, and each somebody's (got the shapes {true.shape}, {found.shape}, and {len(owner)} names)"
        )
    return true, found, owner


def _of_draws(hits: np.ndarray, of: np.ndarray) -> Estimate:
    return spread(hits[of > 0] / of[of > 0]) if (of > 0).any() else NONE
