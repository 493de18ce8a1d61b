"""The samples, the days and the figures of dχ's §VI.

Source: Olivier and Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*, §VI.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv import datasets
from mobpriv.attacks.visits import denoising
from mobpriv.attacks.visits.distances import l1
from mobpriv.attacks.visits.likelihood import negative_log_likelihood
from mobpriv.attacks.visits.most_visited import most_visited, noisy_argmax, poi_guess, random_pick_probability, relative_delta
from mobpriv.attacks.visits.reidentification import check_ranking_size, guesses, reidentification_rate
from mobpriv.base.estimates import Estimate, middle_of, over_draws
from mobpriv.base.noise import geometric, laplace
from mobpriv.base.numbers import counted, shown
from mobpriv.base.ranges import one_of, true_or_false, whole
from mobpriv.datasets import CallSet
from mobpriv.experiments.days import check_no_trace_parameters, day_zone, first_day, simulated_calls
from mobpriv.mechanisms.visits import Geometric, LaplaceCounts, RandomisedResponse
from mobpriv.mechanisms.visits.laplace_counts import SCALES
from mobpriv.metrics.visits_audits import count_telling
from mobpriv.visits.affinity import Neighbourhood, affinity, neighbourhood
from mobpriv.visits.profiles import MIN_POIS, POIS, USERS, as_counts, count_profiles, day, eligible, pois_of
from mobpriv.visits.statistician import corrected_visitors, mean_error, visitors_per_poi, visits_per_poi

# ------------------------------------------------------------ Draw the sample of §VI-A many times
# The paper's figures use one sample; we draw ``draws`` samples, so that a figure has a band. Arrays have the sample first:
# profiles (draws, n, m), rates (draws, …).
_SCENARIOS = ("1", "2.1", "2.2")
_LEAKED_POIS, _LEAKED_USERS = 15, 50  # §VI-C: "restricted to 15 POIs"; §VI-A: "a subsample of |J| = 50 users"
_NOISE_LAWS = ("laplace", "geometric")


class SampleSetting(NamedTuple):
    """Count profiles of the eligible users of each day, one array (user-days, m) for each of §VI-A's periods."""

    users: pd.Index  # of each row
    pois: pd.Index
    first: np.ndarray  # T1, 00:00 to 11:59
    second: np.ndarray  # T2, 12:00 to 23:59
    total_users: int  # users in all
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
        return self.second if one_of("scenario", scenario, _SCENARIOS) == "1" else self.day


class Protection(NamedTuple):
    """A mechanism without its ε, for booleans or counts, with χ = all POIs (``neighbours=None``) or N(b, n)."""

    counts: bool
    neighbours: int | None = None
    variant: str = "printed"
    ties: str = "all"
    rounding: str = "nearest"
    scale: str = "calibrated"
    law: str = "laplace"  # of counts: laplace or geometric

    def mechanism(self, epsilon: float):
        """Return the mechanism for one ε; χ is passed to its ``noisy``, because every sample has its own affinity."""
        if not self.counts:
            return RandomisedResponse(float(epsilon))
        if one_of("law", self.law, _NOISE_LAWS) == "geometric":
            return Geometric(float(epsilon))
        return LaplaceCounts(float(epsilon), rounding=self.rounding, scale=self.scale)

    def true_profiles(self, counts: np.ndarray) -> np.ndarray:
        """Return the true profiles to protect: the counts, or whether they are above 0."""
        return counts if self.counts else counts > 0

    def chi(self, counts: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        if self.neighbours is None:
            return np.ones(counts.shape, bool)
        return neighbourhood(counts > 0, matrix, self.neighbours, self.variant, self.ties)


class Leaked(NamedTuple):
    """What the adversary has: sanitised profiles (draws, n', J) and true ones (draws, k, J); row i of both is one user's."""

    published: np.ndarray
    known: np.ndarray
    users: np.ndarray  # (draws, n'): which of the n are attacked
    pois: np.ndarray  # (draws, J): which POIs leaked


def sample_setting(first: pd.DataFrame, second: pd.DataFrame, least: int = MIN_POIS) -> SampleSetting:
    """Make the setting from the count profiles of the two halves of a day, of the same users at the same POIs."""
    for one, two, what in ((first.index, second.index, "users"), (first.columns, second.columns, "POIs")):
        if not one.equals(two):
            raise ValueError(f"both halves of the day must be of the same {what}, in one order ({len(one)} and {len(two)})")
    eligible_users = eligible(as_counts(first) + as_counts(second), least).index
    halves = first.loc[eligible_users].to_numpy(), second.loc[eligible_users].to_numpy()
    return SampleSetting(
        eligible_users, first.columns, *halves, len(first), least, np.array([0, len(eligible_users)]), np.zeros(1, int)
    )


def join_settings(days: Sequence[SampleSetting]) -> SampleSetting:
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
    return SampleSetting(users, one.pois, *halves, max(day.total_users for day in days), one.least, offsets, layouts)


def draw(setting: SampleSetting, rng: np.random.Generator, draws: int = 200, n: int = USERS) -> Samples:
    """Draw ``draws`` samples of n users without replacement, each on a random day with enough users."""
    whole("draws", draws, 1)
    whole("n", n, 1)
    days = np.flatnonzero(setting.per_day >= n)
    if not len(days):
        raise ValueError(
            f"a sample of {n} users needs {n} users with {setting.least} distinct POIs or more (there are {setting.per_day.max()} of "
            f"{setting.total_users}{' on the best day' if len(setting.per_day) > 1 else ''}): take fewer users"
        )
    m, drawn = len(setting.pois), []
    for child in rng.spawn(draws):
        day = days[child.integers(len(days))] if len(days) > 1 else days[0]
        users = np.sort(setting.offsets[day] + child.choice(setting.per_day[day], n, replace=False))
        drawn.append((users, child.random((n, m)), child.permutation(n), child.permutation(m), setting.layouts[day]))
    users, u, user_order, poi_order, layout = (np.stack(part) for part in zip(*drawn, strict=True))
    first, second = setting.first[users], setting.second[users]
    return Samples(first, second, affinity(first + second > 0), u, users, user_order, poi_order, layout)


def perturbed_profiles(samples: Samples, protection: Protection, epsilon: float, scenario: str = "2.2") -> np.ndarray:
    """Return the sanitised profiles ã_i of all n users, (draws, n, m)."""
    counts = samples.period(scenario)
    chi = protection.chi(counts, samples.affinity)
    return protection.mechanism(epsilon).noisy(protection.true_profiles(counts), chi, samples.u)


def leaked(samples: Samples, protection: Protection, sanitised: np.ndarray, scenario: str, amount: int | None = None) -> Leaked:
    """Return the sanitised and the true profiles that the adversary has.

    * ``amount``: number of POIs in scenario 2.1 (15), of users in 2.2 (50); smaller amounts are parts of larger ones.
    * Scenario 1: the true profiles are those of T1, of all users.
    * Scenario 2.2: the leaked users' profiles are attacked, and rates are over these users.
    """
    one_of("scenario", scenario, _SCENARIOS)
    draws, n, m = sanitised.shape
    users, pois = np.broadcast_to(np.arange(n), (draws, n)), np.broadcast_to(np.arange(m), (draws, m))
    if scenario == "2.1":
        pois = np.sort(samples.poi_order[:, : whole("amount", _LEAKED_POIS if amount is None else amount, 1, m)], axis=1)
    elif scenario == "2.2":
        users = np.sort(samples.user_order[:, : whole("amount", _LEAKED_USERS if amount is None else amount, 1, n)], axis=1)
    true = protection.true_profiles(samples.first if scenario == "1" else samples.day)
    at = (np.arange(draws)[:, None, None], users[:, :, None], pois[:, None, :])
    return Leaked(sanitised[at], true[at], users, pois)


# ------------------------------------- Choose the days of the dχ samples, from call records or from calls simulated on traces
# §VI-A has m = 29 POIs "in some region around some big city" and one day. We use every day with enough users, and a sample is of
# one day, so that no figure depends on a single day.
_LAYOUTS = 5  # random layouts of antennas for calls simulated on traces


class Layout(NamedTuple):
    """Antennas and the calls at them: one layout for call records, several random ones for calls simulated on traces."""

    data: CallSet
    pois: pd.Series  # cell -> POI


class Days(NamedTuple):
    layouts: tuple[Layout, ...]
    setting: SampleSetting  # of all days with enough users, in every layout
    dates: tuple[str, ...]  # of the setting's days
    zone: str  # time zone in which they begin
    callers: np.ndarray  # number of users with a call on each day of the setting, at these POIs or elsewhere
    selection: str
    seed: tuple[int, ...]  # of the samples; traces and calls have different seeds, so that two runs do not share their noise

    @property
    def data(self) -> CallSet:
        return self.layouts[0].data

    @property
    def pois(self) -> pd.Series:
        return self.layouts[0].pois

    def places(self) -> np.ndarray:
        """Return latitude and longitude of each POI in each layout, (layouts, m, 2); a POI has the name of a cell."""
        cells = (layout.data.cells.set_index(layout.data.cells["cell"].astype(str)) for layout in self.layouts)
        return np.stack([table.loc[self.setting.pois.astype(str), ["lat", "lng"]].to_numpy() for table in cells])


def choose_days(
    dataset: str,
    start: str = "",
    days: int = 28,
    zone: str = "",
    m: int = POIS,
    region: str = "densest",
    n: int = USERS,
    least: int = MIN_POIS,
    rate: float = 0.0,
    seed: int = 1,
    leave_out: str = "",
    layouts: int = _LAYOUTS,
) -> Days:
    """Choose the days from ``start`` on with ``n`` users or more at ``least`` POIs or more (empty: from the first call on).

    * ``region``: "densest" takes the m sites that are closest together, "used" the sites with most calls.
    * ``rate``: calls a day of each user of traces, a Poisson process, at m antennas placed where their records are. With 0,
      traces are refused.
    * ``layouts``: how often antennas are placed and calls simulated, because the placement is random as well.
    * ``zone``: days begin at midnight there; empty: of the data set, see :func:`mobpriv.experiments.days.day_zone`.

    A ``rate`` or a ``leave_out`` for call records is refused, because it would do nothing.
    """
    whole("days", days, 1)
    whole("layouts", layouts, 1)
    zone, of_traces = day_zone(dataset, zone), datasets.kind_of(dataset) == "traces"
    if of_traces:
        if not rate:
            raise ValueError(
                f"{dataset} holds traces, and call records are needed: rate=30 simulates 30 calls a day for each user"
            )
        call_sets = simulated_calls(dataset, rate, m, seed, leave_out, layouts)
    else:
        check_no_trace_parameters(dataset, rate=rate, leave_out=leave_out)
        call_sets = [datasets.load_calls(dataset)]
    data = call_sets[0]
    if not len(data.calls):
        raise ValueError(f"{data.name} holds no calls")
    first = first_day(start, data.calls["t"], zone)
    wanted = [f"{date:%Y-%m-%d}" for date in pd.date_range(first, periods=days)]
    chosen_layouts, available = [], {}
    for k, calls in enumerate(call_sets):
        use = calls.calls["cell"].value_counts() if region == "used" else None
        chosen_layouts.append(Layout(calls, pois_of(calls.cells, m, region, use)))
        available |= {(k, date): day_users for date, day_users in _by_day(chosen_layouts[-1], wanted, zone, least).items()}
    sufficient = {key: day_users for key, day_users in available.items() if len(day_users[0].users) >= n}
    if not available:
        raise ValueError(f"no call of {data.name} begins in the chosen days: choose another start")
    if not sufficient:
        largest = max((len(setting.users) for setting, _ in available.values()), default=0)
        raise ValueError(
            f"no day of {data.name} has {n} users at {least} distinct POIs or more (the most on one of {len({date for _, date in available})} days "
            f"with calls: {largest}): take fewer users, or simulate more calls on traces"
        )
    setting = join_settings([day_users._replace(layouts=np.array([k])) for (k, _), (day_users, _) in sufficient.items()])
    dates = tuple(sorted({date for _, date in sufficient}))
    per_day = setting.per_day
    users = f"{per_day.min()}" if per_day.min() == per_day.max() else f"{per_day.min()} to {per_day.max()}"
    sites = counted(_sites(data), "site")
    which = "chosen to lie close together" if region == "densest" else "those with the most calls"
    when = f"{len(dates)} of the {len(wanted)} days from {wanted[0]} on" if len(wanted) > 1 else dates[0]
    together = f"; all days together have {shown(setting.users.nunique())} different users"
    draws = f"We draw each sample from one of these days. On each of them {users} users visited {least} POIs or more{together}"
    if len(sufficient) == 1:
        draws = f"We draw each sample from the {users} users who did"
    selection = (
        f"{data.reading + '. ' if data.reading else ''}The POIs are {f'all {sites}' if m == _sites(data) else f'{m} of the {sites}, {which}'}. "
        f"On {when}, at least {n} users visited {least} POIs or more. {draws}"
    )
    callers = np.array([calling for _, calling in sufficient.values()])
    return Days(tuple(chosen_layouts), setting, dates, zone, callers, selection, (seed, 1) if of_traces else (seed,))


def _by_day(layout: Layout, wanted: list[str], zone: str, least: int) -> dict[str, tuple[SampleSetting, int]]:
    """Return for each day with calls its eligible users and the number of callers."""
    calls, settings = layout.data.calls, {}
    t = calls["t"]
    for date in wanted:
        this_day = day(date, zone)
        day_calls = calls[(t >= this_day.full[0]) & (t < this_day.full[1])]
        if not len(day_calls):
            continue
        poi_calls = day_calls[day_calls["cell"].isin(layout.pois.index)]
        halves = (count_profiles(poi_calls, layout.pois, half).counts for half in (this_day.first, this_day.second))
        settings[date] = sample_setting(*halves, least), day_calls["user"].nunique()
    return settings


def _sites(data: CallSet) -> int:
    return len(data.cells[["lat", "lng"]].drop_duplicates())


# ------------------------------------------------------------------------------- Compute the figures of §VI over many samples
# Each function returns an array whose first axis is the sample; :func:`band` turns it into a curve with its band.
BOOLEANS, COUNTS = Protection(counts=False), Protection(counts=True)
NEAR_BOOLEANS, NEAR_COUNTS = BOOLEANS._replace(neighbours=5), COUNTS._replace(neighbours=5)
EPSILONS = (0.1, 0.2, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 10)
"""Values of ε for the figures over ε: the paper's own (0.1, 1, 2, 3, 4, 6, 7) and others between and beyond."""
ANCHORS = (0.1, 1, 2, 3, 4, 5, 6, 7)  # the values at which claims are tested
ESTIMATORS = ("unbiased", "printed", "likeliest")
ADVERSARIES = ("profileGuess", "likelihood")
_TIE_TOLERANCE = 1e-9


class Row(NamedTuple):
    """A row of the table of §VI-E."""

    scenario: str
    neighbours: int | None
    epsilon: float
    printed: float  # r̃(0.3, 100)


TABLE = (
    Row("1", None, 6.0, 0.76),
    Row("1", 5, 3.0, 0.70),
    Row("2.1", None, 4.0, 0.99),
    Row("2.1", 5, 2.0, 0.95),
    Row("2.2", None, 2.0, 1.0),
    Row("2.2", 3, 1.0, 0.85),
)


def bisected(too_small: Callable[[float], bool], low: float, high: float, steps: int) -> float:
    """Return the end of the range of ε, halved ``steps`` times in ln ε, below which ε is ``too_small``."""
    low, high = np.log(low), np.log(high)
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if too_small(np.exp(middle)) else (low, middle)
    return float(np.exp(high))


class Band(NamedTuple):
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def protection(chi: str, counts: bool = False, **options) -> Protection:
    """Return a mechanism by its χ: "all" POIs, "N5" for N(b, 5) as printed, "F5" for five additional, unvisited POIs."""
    if chi == "all":
        return Protection(counts, **options)
    if chi[:1] not in ("N", "F") or not chi[1:].isdecimal():
        raise ValueError(f'chi must be "all", or N or F and a number of POIs, as "N5" (got {chi!r})')
    return Protection(counts, int(chi[1:]), {"N": "printed", "F": "further"}[chi[0]], **options)


def estimates_over(name: str, labels: Sequence, values: np.ndarray) -> dict[str, Estimate]:
    """Name the results of a family: ``name`` and each of ``labels``, with the repetitions in ``values`` (draws, len(labels))."""
    return {f"{name}.{x}": over_draws(values[:, k]) for k, x in enumerate(labels)}


def band(values: np.ndarray, level: float = 0.9) -> Band:
    """Return the mean over samples and the ends of the middle ``level`` of them; infinite values count as such."""
    return Band(np.mean(values, axis=0), *middle_of(values, level))


def level(samples: Samples, protection: Protection) -> np.ndarray:
    """Return the reference of the mean error (§VI-B): the average of f_1 or of f_2 over the POIs, (draws,)."""
    per_poi = visits_per_poi(samples.day) if protection.counts else visitors_per_poi(samples.day > 0)
    return per_poi.mean(axis=-1)


def unique(profiles: np.ndarray) -> np.ndarray:
    """Return for each sample the share of the profiles (draws, n, m) that are unique, (draws,)."""
    shares = []
    for sample in profiles:
        _, inverse, set_sizes = np.unique(sample, axis=0, return_inverse=True, return_counts=True)
        shares.append((set_sizes[np.ravel(inverse)] == 1).mean())
    return np.array(shares)


def telling(samples: Samples, protection: Protection, epsilon: float = 1.0) -> dict[str, np.ndarray]:
    """Measure in each sample what χ = N(b, n) reveals by itself, see :func:`mobpriv.metrics.visits_audits.count_telling`.

    * ``users``: the share of users with a neighbouring profile that some output of theirs excludes.
    * ``neighbours``: the mean share of such neighbours among m.
    * ``probability``: the mean over users of their largest probability of such an output.
    """
    draws, n, m = samples.day.shape
    users, pois = (pd.RangeIndex(size) for size in (n, m))
    results = {name: np.empty(draws) for name in ("users", "neighbours", "probability")}
    for k, matrix in enumerate(samples.affinity):
        chi = Neighbourhood(protection.neighbours, matrix, protection.variant, protection.ties)
        excluded = count_telling(replace(protection.mechanism(epsilon), chi=chi), pd.DataFrame(samples.day[k], users, pois))
        results["users"][k], results["neighbours"][k] = (excluded["neighbours"] > 0).mean(), excluded["neighbours"].mean() / m
        results["probability"][k] = excluded["probability"].mean()
    return results


def error(samples: Samples, protection: Protection, epsilons: Sequence[float], corrected: bool = False) -> np.ndarray:
    """Figures 4 to 7: return the mean error of f_1 (visitors) or f_2 (visits, a sum) for each ε, (draws, ε).

    ``corrected``: debias booleans with the unbiased estimate of f_1; the statistician knows how many users have each POI in
    χ_i.
    """
    true_or_false("corrected", corrected)
    if corrected and protection.counts:
        raise ValueError("corrected is for booleans: the estimate of visits is not corrected")
    true, errors = protection.true_profiles(samples.day), []
    chi = protection.chi(samples.day, samples.affinity)
    statistic = visits_per_poi if protection.counts else visitors_per_poi
    for epsilon in epsilons:
        mechanism = protection.mechanism(epsilon)
        perturbed = mechanism.noisy(true, chi, samples.u)
        estimate = corrected_visitors(perturbed, mechanism.flip, chi.sum(axis=-2)) if corrected else statistic(perturbed)
        errors.append(mean_error(statistic(true), estimate))
    return np.stack(errors, axis=-1)


def surface(
    samples: Samples,
    protection: Protection,
    epsilon: float,
    deltas: Sequence[float],
    max_candidates: Sequence[int],
    scenario: str = "2.2",
    amount: int | None = None,
) -> np.ndarray:
    """Figures 8 to 12: return the re-identification rate r(δ, M, n) of Algorithm 11, (draws, δ, M)."""
    leak = leaked(samples, protection, perturbed_profiles(samples, protection, epsilon, scenario), scenario, amount)
    return reidentification_rate(guesses(leak.published, leak.known, deltas), max_candidates)


def estimated_epsilon(
    samples: Samples,
    protection: Protection,
    epsilons: Sequence[float],
    estimator: str = "unbiased",
    scenario: str = "2.2",
    pooled: bool = False,
    chi_known: bool = False,
) -> np.ndarray:
    """Estimate ε with Algorithms 13 and 14 or by maximum likelihood: ε̃ of every leaked user, (draws, ε, users).

    * ``pooled``: one ε̃ of all leaked users, (draws, ε).
    * ``chi_known``: the adversary uses only the POIs in χ_i. The paper does not mention this, so by default he uses all that
      leaked.

    The maximum-likelihood ε̃ uses the mechanism's own rounding and scale, and is for Laplace noise only.
    """
    one_of("estimator", estimator, ESTIMATORS)
    if protection.counts and estimator == "likeliest" and protection.law != "laplace":
        raise ValueError(
            f"the likeliest ε is that of Laplace noise, not of {protection.law}: take the unbiased or printed estimator"
        )
    chi, estimates = protection.chi(samples.period(scenario), samples.affinity), []
    for epsilon in epsilons:
        leak = leaked(samples, protection, perturbed_profiles(samples, protection, epsilon, scenario), scenario)
        mask = chi[np.arange(len(chi))[:, None, None], leak.users[:, :, None], leak.pois[:, None, :]] if chi_known else None
        sides = (leak.published, leak.known, mask)
        if not protection.counts:
            form = "printed" if estimator == "printed" else "unbiased"
            estimates.append(denoising.epsilon_of(denoising.guess_bernoulli(*sides, form, pooled)))
        elif estimator == "likeliest":
            estimates.append(SCALES[protection.scale] * denoising.max_likelihood_epsilon(*sides, protection.rounding, pooled))
        else:
            estimates.append(denoising.guess_laplacian(*sides, estimator, pooled))
    return np.stack(estimates, axis=1)


def epsilon_error(samples: Samples, protection: Protection, epsilons: Sequence[float], **options) -> np.ndarray:
    """Figure 14: return the relative error |ε̃ − ε|/ε, arguments and shape of :func:`estimated_epsilon`; infinite if ε̃ is."""
    estimates = estimated_epsilon(samples, protection, epsilons, **options)
    true = np.reshape(np.asarray(epsilons, float), (1, -1) + (1,) * (estimates.ndim - 2))
    return np.abs(estimates - true) / true


def most_visited_rate(
    samples: Samples,
    protection: Protection,
    epsilon: float,
    scenario: str,
    delta: float = 0.3,
    absolute: bool = False,
    guess: str = "sanitised",
    empty: str = "nothing",
    others: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """The table of §VI-E: return r̃(δ, n) of Algorithm 16 and the number of users it is a share of, each (draws,).

    * δ is a share of the true |c_i|₁ at the leaked POIs, or ``absolute``. The share favours an adversary who does not know it
      (scenarios 1 and 2.2).
    * ``guess``: poiGuess(j) is the argmax of the ``sanitised`` profile, as printed, or of the ``leaked`` one.
    * ``empty``: the answer if no profile is near enough, see :func:`most_visited`.
    * ``others=False``: only the user's own profile leaked.

    Users without a call in the published period have no most visited POI and are left out (scenario 1).
    """
    one_of("guess", guess, ("sanitised", "leaked"))
    counts = samples.period(scenario)
    perturbed = perturbed_profiles(samples, protection, epsilon, scenario)
    leak = leaked(samples, protection, perturbed, scenario)
    draws = np.arange(len(counts))[:, None, None]
    # true counts of the published period at the leaked POIs
    true = counts[draws, leak.users[:, :, None], leak.pois[:, None, :]]
    full_true, full_perturbed = counts[draws[:, :, 0], leak.users], perturbed[draws[:, :, 0], leak.users]
    if guess == "sanitised":
        guessed_pois = poi_guess(full_perturbed, protection.chi(counts, samples.affinity)[draws[:, :, 0], leak.users])
    else:
        guessed_pois = np.zeros(full_perturbed.shape, bool)
        np.put_along_axis(
            guessed_pois, np.broadcast_to(leak.pois[:, None, :], leak.known.shape), poi_guess(leak.known), axis=-1
        )
    limit = np.full(true.shape[:2], float(delta)) if absolute else relative_delta(delta, true)
    sides = (leak.published, leak.known, limit, guessed_pois)
    if not others:  # each user is a sample of her own
        sides = (side.reshape(-1, 1, *side.shape[2:]) for side in sides)
    predicted = most_visited(*sides, empty).predicted.reshape(guessed_pois.shape)
    has_visits = full_true.any(axis=-1)
    right = (predicted & poi_guess(full_true)).any(axis=-1) & has_visits
    return right.sum(axis=-1) / has_visits.sum(axis=-1), has_visits.sum(axis=-1)


def noisy_argmax_rate(samples: Samples, protection: Protection, epsilon: float, scenario: str = "2.2") -> np.ndarray:
    """Return how often a random argmax of the sanitised counts is a most visited POI, without a leak, (draws,)."""
    counts = samples.period(scenario)
    has_visits = counts.any(axis=-1)
    right = random_pick_probability(
        noisy_argmax(perturbed_profiles(samples, protection, epsilon, scenario)), np.where(has_visits[..., None], counts, 1)
    )
    return np.where(has_visits, right, 0).sum(axis=-1) / has_visits.sum(axis=-1)


def nearest_rate(
    samples: Samples, protection: Protection, epsilon: float, adversary: str, scenario: str = "2.2", amount: int | None = None
) -> np.ndarray:
    """Return how often the nearest or likeliest leaked profile is the user's own (top-1; ties against the adversary), (draws,).

    * ``profileGuess`` takes the nearest profile; no (δ, M) of Algorithm 11 does better at M = 1.
    * ``likelihood`` takes the likeliest profile, with ε and the rule for χ known.

    ``likelihood`` is undefined in scenario 1, whose true profiles are of another period. It is undefined for N(b, n) in 2.1,
    where a candidate's neighbourhood is unknown.
    """
    one_of("adversary", adversary, ADVERSARIES)
    leak = leaked(samples, protection, perturbed_profiles(samples, protection, epsilon, scenario), scenario, amount)
    check_ranking_size(leak.published.shape[0] * leak.published.shape[1], leak.known.shape[1])
    if adversary == "profileGuess":
        d = l1(leak.published, leak.known).astype(float)
    else:
        if scenario == "1" or (scenario == "2.1" and protection.neighbours is not None):
            raise ValueError("the likelihood needs true profiles of the published period, and with N(b, n) of all POIs")
        known = leak.known.astype(np.int64)
        chi = protection.chi(known, samples.affinity) if scenario == "2.2" else np.ones(known.shape, bool)
        d = negative_log_likelihood(protection.mechanism(epsilon), leak.published, known, chi)
    return likeliest_rate(d)


def likeliest_rate(scores: np.ndarray) -> np.ndarray:
    """Return how often a user's own profile has the least score of all (ties against the adversary), (draws,)."""
    true_score = np.diagonal(scores, axis1=1, axis2=2)
    return ((scores <= true_score[..., None] + _TIE_TOLERANCE).sum(axis=-1) == 1).mean(axis=-1)


def side_information(
    samples: Samples, protection: Protection, epsilon: float, users: Sequence[int], pois: Sequence[int], max_candidates: int = 1
) -> np.ndarray:
    """Beyond the paper, its open question: return the best r(δ, M, n) over δ if so many users leak at so many POIs.

    Shape: (draws, users, POIs).
    """
    perturbed = perturbed_profiles(samples, protection, epsilon, "2.2")
    pois = [
        whole("pois", n_pois, 1, perturbed.shape[-1], f"must be whole numbers in 1 … {perturbed.shape[-1]}") for n_pois in pois
    ]
    rates = np.empty((len(perturbed), len(users), len(pois)))
    for a, count in enumerate(users):
        leak = leaked(samples, protection, perturbed, "2.2", count)
        for b, n_pois in enumerate(pois):
            columns = np.broadcast_to(
                np.sort(samples.poi_order[:, :n_pois], axis=1)[:, None, :], (*leak.known.shape[:2], n_pois)
            )
            sides = (np.take_along_axis(side, columns, axis=-1) for side in (leak.published, leak.known))
            rates[:, a, b] = best_rate(*sides, max_candidates)
    return rates


def best_rate(perturbed: np.ndarray, known: np.ndarray, max_candidates: int = 1) -> np.ndarray:
    """Return max over δ of r(δ, M, n), (draws,).

    §VI-C: "the attacker's strategy is not known a priori, the worst case should be considered".
    """
    return best_rates(perturbed, known, [max_candidates])[:, 0]


def best_rates(perturbed: np.ndarray, known: np.ndarray, max_candidates: Sequence[int]) -> np.ndarray:
    """Return max over δ of r(δ, M, n) for each sample and M, (draws, M), also for large samples.

    Profiles (draws, n, J); row i of both belongs to one user. User i is a success from her own distance up to the distance of
    the (M+1)-th nearest profile. The most intervals that share a δ are counted along the sorted ends, one sample at a time, to
    save memory.
    """
    max_candidates = [whole("max_candidates", m, 1) for m in max_candidates]
    n, k = perturbed.shape[1], known.shape[1]
    check_ranking_size(n, k)
    rates = np.empty((len(perturbed), len(max_candidates)))
    no_limit = np.iinfo(np.int64).max
    for d in range(len(perturbed)):
        distance = l1(perturbed[d : d + 1], known[d : d + 1])[0]
        true_distance = np.diagonal(distance).astype(np.int64)
        nearest = np.partition(distance, [m for m in max_candidates if m < k], axis=-1) if min(max_candidates) < k else distance
        for column, m in enumerate(max_candidates):
            beyond = nearest[:, m].astype(np.int64) if m < k else np.full(n, no_limit)
            rates[d, column] = best_share(true_distance, beyond)
    return rates


def best_share(true_distance: np.ndarray, beyond: np.ndarray) -> float:
    """Return the largest share of users who succeed at one δ; user i succeeds for δ from ``true_distance`` to below ``beyond``."""
    possible = true_distance < beyond
    starts, ends = np.sort(true_distance[possible]), np.sort(beyond[possible])
    inside = np.searchsorted(starts, starts, side="right") - np.searchsorted(ends, starts, side="right")
    return float(inside.max(initial=0) / len(true_distance))


# --------------------------------------------------------------------- Measure how clamping at 0 changes the number of visits
# The paper takes the maximum with 0 "to provide consistent results for counts" (§III-C).
class Added(NamedTuple):
    """Visits that the mechanism adds, summed over users and averaged over POIs, arrays (draws,); negative if it removes visits."""

    visited: np.ndarray  # where the true count is above 0
    others: np.ndarray  # where it is 0


def unclamped(samples: Samples, protection: Protection, epsilon: float) -> np.ndarray:
    """Return [c_ij + d_ij] without the maximum, (draws, n, m): whole numbers, also negative, with the mechanism's own noise.

    The result is as private as the mechanism's: clamping is post-processing, which the adversary could do himself.
    """
    if not protection.counts:
        raise ValueError("booleans are not clamped: take counts")
    c, mechanism = samples.day, protection.mechanism(epsilon)
    if protection.law == "geometric":
        d = geometric(samples.u, epsilon)
    else:
        d = np.floor(laplace(samples.u) / mechanism.rate + (0.5 if protection.rounding == "nearest" else 0.0)).astype(np.int64)
    return c + np.where(protection.chi(c, samples.affinity), d, 0)


def unclamped_error(samples: Samples, protection: Protection, epsilons: Sequence[float]) -> np.ndarray:
    """Return the mean error of f_2 from counts that are not clamped, (draws, ε)."""
    true = visits_per_poi(samples.day)
    return np.stack([mean_error(true, visits_per_poi(unclamped(samples, protection, e))) for e in epsilons], axis=-1)


def added(samples: Samples, protection: Protection, epsilon: float) -> Added:
    """Return the visits added at visited and at unvisited POIs; their sum over the POIs is the bias of f_2."""
    c = samples.day
    change = perturbed_profiles(samples, protection, epsilon) - c
    return Added(*(np.where(at, change, 0).sum(axis=(1, 2)) / c.shape[-1] for at in (c > 0, c == 0)))


def mean_change(samples: Samples, protection: Protection, epsilon: float) -> np.ndarray:
    """Return the mechanism's mean change of a positive count in χ, as a share of the average of these counts, (draws,)."""
    c = samples.day
    positive = (c > 0) & protection.chi(c, samples.affinity)
    change = np.abs(perturbed_profiles(samples, protection, epsilon) - c)
    return np.where(positive, change, 0).sum(axis=(1, 2)) / np.where(positive, c, 0).sum(axis=(1, 2))
