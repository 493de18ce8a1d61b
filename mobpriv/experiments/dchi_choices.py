"""Vary what the paper leaves open about its sample, one choice at a time, and split the variance between users and noise.

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from mobpriv.base.estimates import Estimate, middle_of
from mobpriv.base.noise import least_p
from mobpriv.base.ranges import whole
from mobpriv.experiments.dchi_samples import Protection, Samples, Setting
from mobpriv.experiments.dchi_worst import worst
from mobpriv.ground.geo import cartesian
from mobpriv.visits.affinity import affinity
from mobpriv.visits.statistician import mean_error, visitors, visits


class Parts(NamedTuple):
    """The standard deviation over samples, and the share of the variance due to the users; the rest is due to the noise."""

    deviation: Estimate
    users: Estimate


def known_to_everybody(samples: Samples, setting: Setting) -> Samples:
    """Replace the affinity of each sample's n users by that of all eligible users, on all days of the sample's layout."""
    layouts, of_row = np.unique(np.repeat(setting.layouts, setting.per_day), return_inverse=True)
    visited = setting.first + setting.second > 0
    matrices = np.stack([affinity(visited[of_row == k]) for k in range(len(layouts))])
    return samples._replace(affinity=matrices[np.searchsorted(layouts, samples.layout)])


def by_place(samples: Samples, places: np.ndarray) -> Samples:
    """Replace the users' affinity by §III-B's *location* affinity 1/(1 + d) for POIs d km apart; the paper gives no formula.

    ``places``: latitude and longitude of the POIs in each layout, (layouts, m, 2).
    """
    return samples._replace(affinity=(1 / (1 + _apart(places)))[samples.layout])


def closeness(samples: Samples, places: np.ndarray) -> np.ndarray:
    """Correlate (Spearman) the distance of two POIs with the share of the one's visitors who visited the other, (draws,)."""
    m = samples.affinity.shape[-1]
    pairs = ~np.eye(m, dtype=bool)
    at = np.maximum(np.diagonal(samples.affinity, axis1=1, axis2=2), 1 / samples.day.shape[1])[
        ..., None
    ]  # a POI without visitors: 0 of 1
    found = zip(_apart(places)[samples.layout], samples.affinity / at, strict=True)
    return np.array([spearmanr(far[pairs], also[pairs]).statistic for far, also in found])


def _apart(places: np.ndarray) -> np.ndarray:
    """Return the distances between the POIs of each layout in km, (layouts, m, m)."""
    at = np.stack([cartesian(*layout.T) for layout in places])
    return np.linalg.norm(at[:, :, None] - at[:, None], axis=-1) / 1000


def among(setting: Setting, which: np.ndarray, least: int | None = None) -> Setting:
    """Keep only the user-days of the setting that the mask ``which`` selects."""
    days = np.repeat(np.arange(len(setting.per_day)), setting.per_day)
    sizes = np.bincount(days[which], minlength=len(setting.per_day))
    return setting._replace(
        users=setting.users[which],
        first=setting.first[which],
        second=setting.second[which],
        least=setting.least if least is None else least,
        offsets=np.r_[0, np.cumsum(sizes)],
    )


def stricter(setting: Setting, least: int) -> Setting:
    """Keep only the user-days with visits at ``least`` distinct POIs or more; ``least`` is at least the setting's own."""
    whole("least", least, setting.least)
    return among(setting, (setting.first + setting.second > 0).sum(axis=1) >= least, least)


def of_day(setting: Setting, day: int) -> Setting:
    """Keep a single day of the setting, in each layout."""
    place = np.arange(len(setting.layouts)) - np.searchsorted(setting.layouts, setting.layouts)
    return among(setting, np.repeat(place == whole("day", day, 0, place.max()), setting.per_day))


def pooled(setting: Setting) -> Setting:
    """Pool all days of a layout; each user-day counts as a user, so a user may be drawn on two of her days."""
    layouts, first = np.unique(setting.layouts, return_index=True)
    return setting._replace(offsets=np.append(setting.offsets[first], len(setting.users)), layouts=layouts)


def crossed(samples: Samples, rng: np.random.Generator, times: int) -> Samples:
    """Repeat each sample of users ``times`` times with fresh noise; sample d is at d · times … d · times + times − 1."""
    whole("times", times, 2)
    again = type(samples)(*(np.repeat(part, times, axis=0) for part in samples))
    return again._replace(u=rng.random(again.u.shape))


def parts_of_variance(values: np.ndarray, rng: np.random.Generator, resampled: int = 1000) -> Parts:
    """Split the variance of values (samples of users, times) into a part between users and a part due to the noise.

    The variance between users' means is reduced by what the noise adds to it. The intervals cover other sets of samples:
    percentiles of ``resampled`` sets of as many, drawn with replacement.
    """
    values = np.asarray(values, float)
    if values.ndim != 2 or min(values.shape) < 2:
        raise ValueError(f"values must be at least 2 draws of users, each at least twice (got {values.shape})")
    each = values.var(axis=1, ddof=1), values.mean(axis=1)
    draws = rng.integers(len(values), size=(resampled, len(values)))
    found, others = _parts(*each, values.shape[1]), _parts(*(of[draws] for of in each), values.shape[1])
    return Parts(
        *(Estimate(float(of), *map(float, middle_of(many)), len(values)) for of, many in zip(found, others, strict=True))
    )


def _parts(within: np.ndarray, means: np.ndarray, times: int) -> tuple[np.ndarray, np.ndarray]:
    within = within.mean(axis=-1)
    between = np.maximum(0.0, means.var(axis=-1, ddof=1) - within / times)
    total = within + between
    return np.sqrt(total), np.divide(between, total, out=np.zeros_like(total), where=total > 0)


def halfway(epsilon: float) -> float:
    """Return the ε whose least p is halfway from the least p of ``epsilon`` to 1/2, which Proposition 7 allows as well."""
    p = (least_p(epsilon) + 0.5) / 2
    return float(np.log((1 - p) / p))


def share(samples: Samples, protection: Protection, epsilon: float) -> np.ndarray:
    """Return the mean error of f_1 or f_2 as a share of its average over the POIs, (draws,)."""
    chi = protection.chi(samples.day, samples.affinity)
    true = protection.of(samples.day)
    said = protection.at(epsilon).noisy(true, chi, samples.u)
    of = visits if protection.counts else visitors
    return mean_error(of(true), of(said)) / of(true).mean(axis=-1)


def rate(
    samples: Samples, protection: Protection, epsilon: float, scenario: str = "2.2", amount: int | None = None
) -> np.ndarray:
    """Return the best re-identification rate over δ at M = 1, (draws,)."""
    return worst(samples, protection, epsilon, [1], scenario, amount)[:, 0]
