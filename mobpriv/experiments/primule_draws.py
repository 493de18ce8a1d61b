"""Run the Sociometer with many seeds, to separate the variation between seeds from the variation between users.

The paper's figures show one run. k-means starts at random profiles, and noise is random. Labels of several repetitions are
arrays (draws, n) of places in CATEGORIES, all of the same n profiles.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy Risk Mitigation for User Profiles*, §7.2.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.base.estimates import Estimate, clustered_ratio, spread
from mobpriv.base.ranges import whole
from mobpriv.icp.archetypes import CATEGORIES, PASSING
from mobpriv.icp.sociometer import Distinct, Fitted, Sociometer, as_profiles, distinct, passes_by
from mobpriv.mechanisms.icp import NoisyProfiles

NONE = Estimate(np.nan, np.nan, np.nan, 0)


class Drawn(NamedTuple):
    """Labels of published profiles under several settings of the Sociometer, each (draws, n)."""

    again: dict[str, np.ndarray]  # re-clustered, as in the paper
    frozen: dict[str, np.ndarray]  # with the fixed prototypes of the original profiles


def stream(seed: int, *of: str) -> np.random.Generator:
    """Return the random generator of these names: the same on every page, whatever else the page draws."""
    return np.random.default_rng([seed, zlib.crc32("\n".join(of).encode())])


def prototypes(values, rng: np.random.Generator, draws: int, sociometer: Sociometer | None = None) -> list[Fitted]:
    """Run phase 2 with ``draws`` seeds; more seeds start with the same ones.

    ``values``: profiles (n, cells), or one set per seed (draws, n, cells), as noise gives.
    """
    whole("draws", draws, 1)
    sociometer = sociometer or Sociometer()
    return [_fitted(sociometer, of, child) for of, child in zip(_each(values, draws), rng.spawn(draws), strict=True)]


def _fitted(sociometer: Sociometer, of: Distinct | np.ndarray, rng: np.random.Generator) -> Fitted:
    if not isinstance(of, Distinct):
        return sociometer.fit(of, None, rng)
    fitted = sociometer.fit(of.values, of.sizes, rng)
    return replace(fitted, own=fitted.own[of.of])


def labels(fits: Sequence[Fitted], values, chosen: Mapping[str, Sociometer]) -> dict[str, np.ndarray]:
    """Run phases 3 and 4 under each setting with the *same* prototypes; ``values`` as in :func:`prototypes`.

    k-means does not depend on the archetypes, so settings are compared seed by seed and differ in nothing else.
    """
    each = _each(values, len(fits))
    return _named(fits, _nearest(fits, each), _passing(each, chosen), chosen)


def _nearest(fits: Sequence[Fitted], each: Sequence) -> Iterator[np.ndarray]:
    for fit, of in zip(fits, each, strict=True):
        yield fit.nearest(of.values)[of.of] if isinstance(of, Distinct) else fit.nearest(of)


def _named(
    fits: Sequence[Fitted], nearest: Iterable[np.ndarray], passing: Iterable, chosen: Mapping[str, Sociometer]
) -> dict[str, np.ndarray]:
    """Return the labels from the nearest prototypes and from the rule for passers-by."""
    found = {name: [] for name in chosen}
    for fit, near, alone in zip(fits, nearest, passing, strict=True):
        for name, sociometer in chosen.items():
            codes = sociometer.labels(fit.prototypes)[near]
            found[name].append(np.where(alone, np.int8(PASSING), codes) if sociometer.passing == "rule" else codes)
    return {name: np.array(of, np.int8) for name, of in found.items()}


def _passing(each: Sequence, chosen: Mapping[str, Sociometer]) -> list:
    """Return who is passing by under the program's rule, for each repetition; None if no setting uses the rule."""
    if all(sociometer.passing != "rule" for sociometer in chosen.values()):
        return [None] * len(each)
    if isinstance(each[0], Distinct):  # the same profiles in each repetition
        return [passes_by(each[0].values)[each[0].of]] * len(each)
    return [passes_by(of) for of in each]


def relabelled(
    fits: Sequence[Fitted], chosen: Mapping[str, Sociometer], published, rng: np.random.Generator, sociometer=None
) -> Drawn:
    """Label published profiles re-clustered, with one seed per repetition, and with the fixed prototypes ``fits``."""
    own = prototypes(published, rng, len(fits), sociometer)
    each = _each(published, len(fits))
    alone = _passing(each, chosen)
    # a fit already has the nearest prototypes of its own profiles
    return Drawn(_named(own, (fit.own for fit in own), alone, chosen), _named(fits, _nearest(fits, each), alone, chosen))


def noisy(values: np.ndarray, mechanism: NoisyProfiles, rng: np.random.Generator, draws: int) -> np.ndarray:
    """Return the profiles (n, cells) with noise, (draws, n, cells)."""
    table = pd.DataFrame(values)
    return np.array([mechanism.protect(table, child).values.to_numpy() for child in rng.spawn(whole("draws", draws, 1))])


def confused(true, found, whose) -> pd.DataFrame:
    """Return the confusion matrix over all repetitions, one row per cell: true, found, ``value, low, high, n``, least, largest.

    The value is the share of profiles with the true label that get the other label; rows of ``true`` are repetitions as well.
    The interval is over users; n profiles have the true label in some repetition. ``least`` and ``largest`` are over single
    repetitions.
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
    """Return the F-score 2 · hits / (true + found) of a class over all repetitions, with an interval over users.

    It has no value if no profile is of the class or has its label.
    """
    true, found, owner = _checked(true, found, whose)
    code = CATEGORIES.index(category)
    is_so, said = true == code, found == code
    here = (is_so | said).any(axis=0)
    if not here.any():
        return NONE
    hits, of = 2 * (is_so & said).sum(axis=0)[here], (is_so.astype(int) + said).sum(axis=0)[here]
    return clustered_ratio(hits, of, owner[here], bounds=(0, 1))


def shares(found, category: str, whose) -> Estimate:
    """Return the share of profiles with a label over all repetitions, with an interval over the users."""
    return clustered_ratio((np.asarray(found) == CATEGORIES.index(category)).mean(axis=0), 1, whose, bounds=(0, 1))


def _each(values, draws: int) -> Sequence:
    """Return the profiles of each repetition; if all are the same, with equal ones collapsed, computed once."""
    values = np.asarray(values)
    if values.ndim == 3 and len(values) != draws:
        raise ValueError(f"there must be as many sets of profiles as draws, or one for all (got {len(values)} for {draws})")
    return values if values.ndim == 3 else [distinct(as_profiles(values))] * draws


def _checked(true, found, whose) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    true, found = np.asarray(true), np.asarray(found)
    owner = pd.factorize(np.asarray(whose))[0]
    if true.shape != found.shape or true.ndim != 2 or true.shape[1:] != owner.shape:
        raise ValueError(
            f"labels must be (draws, n) of the same profiles, with an owner for each (got the shapes {true.shape}, {found.shape}, and {len(owner)} names)"
        )
    return true, found, owner


def _of_draws(hits: np.ndarray, of: np.ndarray) -> Estimate:
    return spread(hits[of > 0] / of[of > 0]) if (of > 0).any() else NONE
