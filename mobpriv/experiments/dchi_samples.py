"""Draw the sample of §VI-A many times: n = 100 users with visits at 6 distinct POIs or more, what is published, and what leaks.

The paper's figures use one sample; we draw ``draws`` samples, so that a figure has a band. Arrays have the sample first:
profiles (draws, n, m), rates (draws, …).

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§VI-A.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.attacks.visits.scenarios import LEAKED_POIS, LEAKED_USERS
from mobpriv.base.ranges import one_of, whole
from mobpriv.mechanisms.visits import Geometric, LaplaceCounts, RandomisedResponse
from mobpriv.visits.affinity import affinity, neighbourhood
from mobpriv.visits.profiles import LEAST, USERS, as_counts, eligible

SCENARIOS = ("1", "2.1", "2.2")
LAWS = ("laplace", "geometric")


class Setting(NamedTuple):
    """Count profiles of the eligible users of each day, one array (user-days, m) for each of §VI-A's periods."""

    users: pd.Index  # of each row
    pois: pd.Index
    first: np.ndarray  # T1, 00:00 to 11:59
    second: np.ndarray  # T2, 12:00 to 23:59
    everybody: int  # users in all
    least: int  # distinct POIs in the day that an eligible user has at least
    offsets: np.ndarray  # (days + 1,): the rows of a day are offsets[d] … offsets[d + 1] − 1
    layouts: np.ndarray  # (days,): the layout of the POIs; a POI is at another place in another layout

    @property
    def per_day(self) -> np.ndarray:
        """The number of eligible users on each day, (days,)."""
        return np.diff(self.offsets)


class Samples(NamedTuple):
    """Samples of n users; each has its own random generator, so the first ten of a hundred are those of ten.

    The affinity is that of the n users: §V-B divides by n. A whole population's affinity is more likely to be public; to use
    it: ``samples._replace(affinity=np.broadcast_to(affinity(everybody), samples.affinity.shape))``.
    """

    first: np.ndarray  # (draws, n, m)
    second: np.ndarray
    affinity: np.ndarray  # (draws, m, m): §V-B, of the sample's n users in the whole day
    u: np.ndarray  # (draws, n, m): uniform numbers behind the noise, the same for every ε and χ
    users: np.ndarray  # (draws, n): their rows in the setting, of one day in each sample
    user_order: np.ndarray  # (draws, n): the order in which users leak (scenario 2.2)
    poi_order: np.ndarray  # (draws, m): the order in which POIs leak (scenario 2.1)
    layout: np.ndarray  # (draws,): of the setting's day

    @property
    def day(self) -> np.ndarray:
        return self.first + self.second

    def period(self, scenario: str) -> np.ndarray:
        """Return the counts of the published period: T2 in scenario 1, the whole day T in the others."""
        return self.second if one_of("scenario", scenario, SCENARIOS) == "1" else self.day


class Protection(NamedTuple):
    """A mechanism without its ε, for booleans or counts, with χ = all POIs (``neighbours=None``) or N(b, n)."""

    counts: bool
    neighbours: int | None = None
    reading: str = "printed"
    ties: str = "all"
    rounding: str = "nearest"
    scale: str = "calibrated"
    law: str = "laplace"  # of counts: laplace or geometric

    def at(self, epsilon: float):
        """Return the mechanism for one ε; χ is passed to its ``noisy``, because every sample has its own affinity."""
        if not self.counts:
            return RandomisedResponse(float(epsilon))
        if one_of("law", self.law, LAWS) == "geometric":
            return Geometric(float(epsilon))
        return LaplaceCounts(float(epsilon), rounding=self.rounding, scale=self.scale)

    def of(self, counts: np.ndarray) -> np.ndarray:
        """Return the true profiles to protect: the counts, or whether they are above 0."""
        return counts if self.counts else counts > 0

    def chi(self, counts: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        if self.neighbours is None:
            return np.ones(counts.shape, bool)
        return neighbourhood(counts > 0, matrix, self.neighbours, self.reading, self.ties)


class Leaked(NamedTuple):
    """What the adversary has: sanitised profiles (draws, n', J) and true ones (draws, k, J); row i of both is one user's."""

    published: np.ndarray
    known: np.ndarray
    users: np.ndarray  # (draws, n'): which of the n are attacked
    pois: np.ndarray  # (draws, J): which POIs leaked


def prepare(first: pd.DataFrame, second: pd.DataFrame, least: int = LEAST) -> Setting:
    """Make the setting from the count profiles of the two halves of a day, of the same users at the same POIs."""
    for one, two, what in ((first.index, second.index, "users"), (first.columns, second.columns, "POIs")):
        if not one.equals(two):
            raise ValueError(f"both halves of the day must be of the same {what}, in one order ({len(one)} and {len(two)})")
    among = eligible(as_counts(first) + as_counts(second), least).index
    halves = first.loc[among].to_numpy(), second.loc[among].to_numpy()
    return Setting(among, first.columns, *halves, len(first), least, np.array([0, len(among)]), np.zeros(1, int))


def together(days: Sequence[Setting]) -> Setting:
    """Join the settings of several days at the same POIs; a sample is of one of the days."""
    if not days:
        raise ValueError("there is no day to draw from")
    one = days[0]
    for other in days[1:]:
        if not other.pois.equals(one.pois) or other.least != one.least:
            raise ValueError(f"all days must be of the same POIs and the same least (got {other.least} and {one.least})")
    users = pd.Index(np.concatenate([day.users.to_numpy() for day in days]), name=one.users.name)
    offsets = np.concatenate([[0], np.cumsum([len(day.users) for day in days])])
    halves = (np.concatenate([getattr(day, half) for day in days]) for half in ("first", "second"))
    layouts = np.concatenate([day.layouts for day in days])
    return Setting(users, one.pois, *halves, max(day.everybody for day in days), one.least, offsets, layouts)


def draw(setting: Setting, rng: np.random.Generator, draws: int = 200, n: int = USERS) -> Samples:
    """Draw ``draws`` samples of n users without replacement, each on a random day with enough users."""
    whole("draws", draws, 1)
    whole("n", n, 1)
    days = np.flatnonzero(setting.per_day >= n)
    if not len(days):
        raise ValueError(
            f"a sample of {n} users needs {n} users with {setting.least} distinct POIs or more (there are {setting.per_day.max()} of "
            f"{setting.everybody}{' on the best day' if len(setting.per_day) > 1 else ''}): take fewer users"
        )
    m, taken = len(setting.pois), []
    for child in rng.spawn(draws):
        day = days[child.integers(len(days))] if len(days) > 1 else days[0]
        users = np.sort(setting.offsets[day] + child.choice(setting.per_day[day], n, replace=False))
        taken.append((users, child.random((n, m)), child.permutation(n), child.permutation(m), setting.layouts[day]))
    users, u, user_order, poi_order, layout = (np.stack(part) for part in zip(*taken, strict=True))
    first, second = setting.first[users], setting.second[users]
    return Samples(first, second, affinity(first + second > 0), u, users, user_order, poi_order, layout)


def published(samples: Samples, protection: Protection, epsilon: float, scenario: str = "2.2") -> np.ndarray:
    """Return the sanitised profiles ã_i of all n users, (draws, n, m)."""
    counts = samples.period(scenario)
    chi = protection.chi(counts, samples.affinity)
    return protection.at(epsilon).noisy(protection.of(counts), chi, samples.u)


def leaked(samples: Samples, protection: Protection, sanitised: np.ndarray, scenario: str, amount: int | None = None) -> Leaked:
    """Return the sanitised and the true profiles that the adversary has.

    * ``amount``: number of POIs in scenario 2.1 (15), of users in 2.2 (50); smaller amounts are parts of larger ones.
    * Scenario 1: the true profiles are those of T1, of all users.
    * Scenario 2.2: the leaked users' profiles are attacked, and rates are over these users.
    """
    one_of("scenario", scenario, SCENARIOS)
    draws, n, m = sanitised.shape
    users, pois = np.broadcast_to(np.arange(n), (draws, n)), np.broadcast_to(np.arange(m), (draws, m))
    if scenario == "2.1":
        pois = np.sort(samples.poi_order[:, : whole("amount", LEAKED_POIS if amount is None else amount, 1, m)], axis=1)
    elif scenario == "2.2":
        users = np.sort(samples.user_order[:, : whole("amount", LEAKED_USERS if amount is None else amount, 1, n)], axis=1)
    true = protection.of(samples.first if scenario == "1" else samples.day)
    at = (np.arange(draws)[:, None, None], users[:, :, None], pois[:, None, :])
    return Leaked(sanitised[at], true[at], users, pois)
