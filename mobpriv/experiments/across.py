"""What a table of traces gives away and what protection costs: the mechanisms, attacks and metrics of all chapters on the same users.

The adversary knows the training half. He attacks the published test half with AP-, POI- and PIT-Attack, and with AP-Attack on squares of
400 m. HMC alters traces against AP-Attack on squares of 800 m, so these squares alone would favour HMC. He trains each attack twice: on
the traces as recorded, and on traces that he protected with the same mechanism (the adversary who knows the mechanism).
"""

import pickle
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import permutations
from pathlib import Path
from typing import NamedTuple, Self

import numba
import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import gammaln, kl_div

from mobpriv import metrics
from mobpriv.attacks import APAttack
from mobpriv.attacks.policies import min_k, reidentified
from mobpriv.base import estimates, processes
from mobpriv.channels.area import Area
from mobpriv.channels.distances import euclidean
from mobpriv.channels.priors import densest_area, priors
from mobpriv.experiments.days import AttackSetting
from mobpriv.experiments.pulp_beyond import protected_with_settings
from mobpriv.experiments.thesis_3 import attacks
from mobpriv.experiments.thesis_6 import coverage
from mobpriv.mechanisms import HMC, W4M, GeoI, Hybrid, Nothing, Obfuscation, Promesse, TriLateration
from mobpriv.pulp import SWEEPS, models, profile, pu_ratio, recommend
from mobpriv.traces.profiles import computed_once
from mobpriv.traces.table import Traces, by_user, rows, share_of_records

VALUES = {  # mechanism -> the words for a setting, and the values of its parameter that we try, from weak to strong protection
    "Geo-I": ("{} at {:g} m", (40.0, 100.0, 200.0, 400.0, 1000.0, 2000.0)),  # mean length of the noise, 2/ε
    "Promesse": ("{} at {:g} m", (100.0, 200.0, 500.0, 1000.0, 2000.0)),  # α
    "W4M": ("{} with k = {}", (2, 4, 8)),
    "TriLateration": ("{} at {:g} m", (300.0, 1000.0, 3000.0)),  # radius
}
_CHANNELS = (0.0, 1000.0, 2000.0)  # m, 2/ε of the optimal channels, as of Geo-I; 0: cells without noise
_RATIOS = (1.0, 2.0, 3.0)  # of privacy to utility that all users of PULP request
_FINER = "AP-Attack on 400 m"
ATTACKS = ("AP-Attack", _FINER, "POI-Attack", "PIT-Attack")
TRAINED = ("recorded", "protected")
_UTILITIES = {"coverage": 1, "time": -1}  # quantity -> 1 if more is more useful, -1 if less is
_SEED_OFFSET = {"secret": 0, "known": 1000}  # half -> added to the seed: the adversary's random numbers are not the users'


@dataclass(frozen=True)
class OwnSetting:
    """PULP's law PU-ratio (§IV): each user gets the mechanism and parameter that her own trace asks for, at this ratio.

    The model of a user is fitted to the trace that is to be protected, as in the paper. A user without a model has no trace
    published.
    """

    ratio: float
    name = "PULP"
    random = True


@dataclass(frozen=True)
class OwnMechanism:
    """The hybrid (thesis, chapter 6): each user gets Geo-I, Promesse, TriLateration or HMC with the thesis's parameters.

    The proxy chooses by AP-, POI- and PIT-Attack, trained on the recorded traces; the AP-Attack on 400 m took no part.
    """

    name = "Hybrid-LPPM"
    random = True


class _OptimalChannel(Obfuscation):
    name = "Optimal channel"


CHOICES = {f"PULP at w = {ratio:g}": OwnSetting(ratio) for ratio in _RATIOS} | {"Hybrid-LPPM": OwnMechanism()}  # one per user


def settings(known: Traces) -> dict[str, object]:
    """Name of each setting that we try -> its mechanism. The papers' settings are among them, then the choices for each user."""
    kinds = {"Geo-I": lambda length: GeoI(2 / length), "Promesse": Promesse, "W4M": W4M, "TriLateration": TriLateration}
    tried = {words.format(name, value): kinds[name](value) for name, (words, values) in VALUES.items() for value in values}
    return {"none": Nothing(), **tried, **_optimal_channels(known), "HMC": HMC(known), **CHOICES}


def _optimal_channels(known: Traces) -> dict[str, Obfuscation]:
    """Name -> Program (22) of "Privacy games" at an ε, for the mean of the users' priors; each record is reported by itself.

    At 0 m (ε = ∞) each record is reported in its own cell, without noise.

    The area is the densest of the size in the paper, 15 × 8 km, but has 10 × 8 cells. With the paper's 300 cells the program for
    all users takes minutes. The paper computes a channel for each user. Records outside the area are left out.
    """
    grid = densest_area(known, columns=10, rows=8)
    inside = grid.cells(known["lat"].to_numpy(), known["lng"].to_numpy()) >= 0
    area = Area(priors(rows(known, inside), grid).shares.mean().to_numpy(), euclidean(grid.centres()))
    channels = {}
    for length in _CHANNELS:
        name, optimum = f"{_OptimalChannel.name} at {length:g} m", area.differential(2 / length) if length else None
        if optimum and not optimum.certificate.exact:
            warnings.warn(f"{name} is not proven to be optimal: {optimum.certificate}", stacklevel=2)
        channels[name] = _OptimalChannel(optimum.channel if optimum else np.eye(grid.size), grid)
    return channels


def mechanism_in(setting: str) -> str:
    """The name of the mechanism in the name of a setting."""
    return re.split(" at | with ", setting)[0]


def _fitted(known: Traces) -> dict[str, object]:
    """The attacks of :data:`ATTACKS`, trained on ``known``."""
    thesis = {attack.name: attack for attack in attacks()} | {_FINER: APAttack(400.0)}
    return {name: thesis[name].fit(known) for name in ATTACKS}


class Trial:
    """The attacks and metrics on one setting of days and users, for any number of mechanisms.

    As a context manager it runs the draws of a random mechanism in as many processes as numba has threads. A draw has few steps
    that threads make faster, so processes save more. W4M runs in one process, where each draw adds to the distances that the next
    one needs. The numbers are the same.
    """

    def __init__(self, setting: AttackSetting, seeds: Sequence[int]):
        self.setting, self.seeds = setting, seeds
        self._distances = cache(lambda half: W4M().pairs(getattr(setting, half)))  # of all k
        self._models = cache(lambda half: models(profile(getattr(setting, half), workers=numba.get_num_threads())))
        self._hybrid = cache(self._hybrid_for)
        self._fixed = cache(lambda half: {})  # what PULP's mechanisms without randomness publish, by user and setting
        self._ending, self._pool, self._file = ExitStack(), None, None

    def __enter__(self) -> Self:
        self._ending.enter_context(computed_once(self.setting.known, self.setting.secret))
        workers = min(numba.get_num_threads(), len(self.seeds))
        if workers > 1:
            self._file = self._ending.enter_context(processes.temporary_folder("mobpriv-trial-")) / "setting.pickle"
            self._file.write_bytes(pickle.dumps(self.setting, protocol=pickle.HIGHEST_PROTOCOL))
            self._pool = self._ending.enter_context(processes.pool(workers))
        return self

    def __exit__(self, *error) -> None:
        self._ending.__exit__(*error)
        self._pool = None

    @cached_property
    def recorded(self) -> dict[str, object]:
        """The attacks, trained on the recorded traces."""
        return _fitted(self.setting.known)

    def measure(self, mechanism) -> dict[str, list]:
        """Quantity -> a value per user, in the order of ``setting.users``: the mean over the repetitions, NaN if not defined for her.

        * ``recorded.<attack>``, ``protected.<attack>``: the attack, trained on such traces, re-identifies her.
        * ``recorded``, ``protected``, ``either``: at least one of these attacks re-identifies her.
        * ``hidden``: the rank of her name in AP-Attack, trained on recorded traces; at most the number of known users.
        * ``erased``: the mechanism publishes no trace of her.
        * ``coverage``: F-score of squares of 800 m; 0 if erased.
        * ``time``: distance between her published and her original place at the same time, in m.
        * ``places``: F-score of her POIs that are found again, which is 1 − POI privacy.
        """
        seeds = self.seeds if mechanism.random else self.seeds[:1]
        common = {half: self._common(mechanism, half) for half in _SEED_OFFSET}
        if self._pool and len(seeds) > 1 and not isinstance(mechanism, W4M):
            draws = [self._pool.submit(_drawn, self._file, mechanism, seed, common) for seed in seeds]
            repetitions = [draw.result() for draw in draws]
        else:
            repetitions = [self.draw(mechanism, seed, common) for seed in seeds]
        stacked = {name: np.array([draw[name] for draw in repetitions], float) for name in repetitions[0]}
        return {name: _mean(values).tolist() for name, values in stacked.items()}

    def overheard(self, share: float, seeds: Sequence[Sequence[int]]) -> list[float]:
        """The share of the repetitions in which AP-Attack re-identifies each user if both halves have a random ``share`` of her records."""
        if self._pool and len(seeds) > 1:
            draws = [self._pool.submit(_overheard, self._file, share, seed) for seed in seeds]
            return np.mean([draw.result() for draw in draws], axis=0).tolist()
        return np.mean(
            [with_share_of_records(self.setting, share, np.random.default_rng(seed)) for seed in seeds], axis=0
        ).tolist()

    def _common(self, mechanism, half: str):
        """What all repetitions of a mechanism on this half share: W4M's distances of pairs, PULP's recommendations; else None."""
        if isinstance(mechanism, W4M):
            return self._distances(half)
        if isinstance(mechanism, OwnSetting):
            return recommend(self._models(half), lambda candidates: pu_ratio(candidates, mechanism.ratio))
        return None

    def draw(self, mechanism, seed: int, common: Mapping[str, object]) -> dict[str, np.ndarray]:
        """The values of :meth:`measure` in one repetition; ``common``: half -> what all repetitions share."""
        halves = {half: self._protected(mechanism, half, seed + offset, common[half]) for half, offset in _SEED_OFFSET.items()}
        with computed_once(halves["secret"], halves["known"]):
            return self._of_draw(halves["secret"], halves["known"])

    def _protected(self, mechanism, half: str, seed: int, common) -> Traces:
        traces, rng = getattr(self.setting, half), np.random.default_rng(seed)
        if isinstance(mechanism, W4M):
            return mechanism.protect(traces, rng, pairs=common)
        if isinstance(mechanism, OwnSetting):
            return protected_with_settings(traces, common, SWEEPS, None, seed, self._fixed(half))[0]
        if isinstance(mechanism, OwnMechanism):
            return self._hybrid(half).protect(traces, rng)
        return mechanism.protect(traces, rng)

    def _hybrid_for(self, half: str) -> Hybrid:
        promesse = _Published(Promesse(), getattr(self.setting, half))
        once = {id(promesse.traces)}
        choosing = [_Attack(_once_for(once, fitted.rank)) for name, fitted in self.recorded.items() if name != _FINER]
        mechanisms = [GeoI(), promesse, TriLateration(), HMC(self.setting.known)]
        return Hybrid(mechanisms, choosing, _once_for(once, coverage), owners=self.setting.person or None)

    def _of_draw(self, published: Traces, training: Traces) -> dict[str, np.ndarray]:
        users, person, secret = self.setting.users, self.setting.person, self.setting.secret
        rankings = {
            (trained, name): attack.rank(published)
            for trained, fitted in zip(TRAINED, (self.recorded, _fitted(training)), strict=True)
            for name, attack in fitted.items()
        }
        hits = {key: reidentified(ranking, users, person).to_numpy() for key, ranking in rankings.items()}
        values = {f"{trained}.{attack}": hit for (trained, attack), hit in hits.items()}
        for trained in TRAINED:
            values[trained] = np.any([hit for key, hit in hits.items() if key[0] == trained], axis=0)
        values["either"] = values["recorded"] | values["protected"]
        ranking = rankings["recorded", "AP-Attack"]
        values["hidden"] = min_k(ranking, users, person).clip(upper=ranking.shape[1])
        values["erased"] = ~users.isin(by_user(published)[0])
        measured = {
            "coverage": metrics.area_coverage(secret, published)["f_score"],
            "time": metrics.spatio_temporal_distortion(secret, published),
            "places": 1 - metrics.poi_privacy(secret, published)["privacy"],
        }
        return values | {name: of_user.reindex(users).to_numpy(float) for name, of_user in measured.items()}


class _Published:
    """What a mechanism without randomness publishes of a half: computed once for all repetitions."""

    random = False

    def __init__(self, mechanism, half: Traces):
        self.name, self.traces = mechanism.name, mechanism.protect(half, np.random.default_rng(0))

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        return self.traces


class _Attack(NamedTuple):
    """A trained attack, as the hybrid calls it."""

    rank: Callable[[Traces], pd.DataFrame]


def _once_for(fixed: set[int], function: Callable) -> Callable:
    """``function``, computed once for each last argument whose identity is in ``fixed``."""
    results = {}

    def computed(*arguments):
        key = id(arguments[-1])
        if key not in fixed:
            return function(*arguments)
        if key not in results:
            results[key] = function(*arguments)
        return results[key]

    return computed


def _drawn(file: Path, mechanism, seed: int, common: Mapping[str, object]) -> dict[str, np.ndarray]:
    """:meth:`Trial.draw` in a process of its own, which reads the setting once."""
    return processes.in_one_thread(_trial(file).draw, mechanism, seed, common)


def _overheard(file: Path, share: float, seed: Sequence[int]) -> np.ndarray:
    """:func:`with_share_of_records` in a process of its own."""
    return processes.in_one_thread(with_share_of_records, _trial(file).setting, share, np.random.default_rng(seed))


@cache
def _trial(file: Path) -> Trial:
    return Trial(pickle.loads(file.read_bytes()), ()).__enter__()


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean over the draws (rows) in which a value is defined; NaN without one."""
    defined = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(defined, values, 0).sum(axis=0) / defined.sum(axis=0)


def mean_within(values: Sequence[float], level: float) -> estimates.Estimate:
    """The mean of independent values between 0 and 1, with Hoeffding's interval.

    Each end is where n times the divergence of the end from the mean, KL(mean ‖ end), is log(2 / (1 − level)). The interval
    misses the expected value with a probability of at most 1 − level, for any number of values and any distribution. Wilson's
    and Student's intervals hold only approximately; at the level of a family of tests they fail several times too often.

    Source: Hoeffding, Journal of the American Statistical Association 58, 1963, Theorem 1.

    >>> round(mean_within([0.0] * 191, 0.95).high, 3)  # 1 − 0.025^(1/191)
    0.019
    """
    values = np.asarray(values, float)
    mean, largest = float(values.mean()), np.log(2 / (1 - level)) / len(values)

    def excess(end: float) -> float:
        return float(kl_div(mean, end) + kl_div(1 - mean, 1 - end)) - largest

    low = 0.0 if mean == 0 else brentq(excess, 0, mean, xtol=1e-12) if excess(0) > 0 else 0.0
    high = 1.0 if mean == 1 else brentq(excess, mean, 1, xtol=1e-12) if excess(1) > 0 else 1.0
    return estimates.Estimate(mean, low, high, len(values), f"Hoeffding, {100 * level:g} %")


def dominating(values: Mapping[str, Mapping[str, Sequence[float]]], level: float = 0.95) -> list[tuple[str, str]]:
    """Pairs of settings (worse, better): under the second fewer users are re-identified, and utility is better for the median user.

    ``values``: setting -> the result of :meth:`Trial.measure`. Differences are paired over the users; utility is compared over the users
    that have one under both settings. All intervals together have the confidence ``level``: Bonferroni over the pairs, because
    all conditions of a pair must hold.
    """
    pairs = list(permutations(values, 2))
    each = 1 - (1 - level) / max(len(pairs), 1)
    return [(worse, better) for worse, better in pairs if _dominates(values[better], values[worse], each)]


def best_single(values: Mapping[str, Mapping[str, Sequence[float]]], choice: str) -> tuple[str, estimates.Estimate] | None:
    """The setting for all users that is at least as useful as a choice for each user, and re-identifies the fewest of them.

    Useful: by the mean area coverage. Returns its name, and the share re-identified under it minus that under the choice, paired
    over the users; None if no setting is as useful. The best of many looks better than it is, so the difference favours the one
    setting for all.
    """
    least = np.mean(values[choice]["coverage"])
    useful = [name for name, of in values.items() if name not in CHOICES and np.mean(of["coverage"]) >= least]
    if not useful:
        return None
    best = min(useful, key=lambda name: np.mean(values[name]["either"]))
    return best, estimates.paired_difference(values[best]["either"], values[choice]["either"])


def _dominates(better: Mapping, worse: Mapping, level: float) -> bool:
    if estimates.paired_difference(better["either"], worse["either"], level).high >= 0:
        return False
    for quantity, sign in _UTILITIES.items():
        gain = sign * (np.array(better[quantity], float) - np.array(worse[quantity], float))
        gain = gain[~np.isnan(gain)]
        if not len(gain) or not estimates.quantile(gain, 0.5, level).low > 0:
            return False
    return True


def in_crowds(ranking: pd.DataFrame, users: pd.Index, person: Mapping[str, str], sizes: Sequence[int]) -> dict[int, np.ndarray]:
    """Size n -> the probability, for each user, that she is re-identified in a crowd of n: she and n − 1 random others of the known users.

    ``ranking`` places b of the N others before her. None of the b is in the crowd with probability C(N − b, n − 1) / C(N, n − 1). This is
    exact and needs no draws. Her second name (``person``) is no other.
    """
    of_person = pd.Series([person.get(name, name) for name in ranking.columns]).value_counts()
    others = ranking.shape[1] - np.array([of_person.get(person.get(user, user), 0) for user in users])
    nearer = min_k(ranking, users, person).to_numpy() - 1
    known = np.isfinite(nearer)
    b = np.where(known, nearer, 0)
    crowds = {}
    for n in sizes:
        drawn = np.minimum(n - 1, others)
        # how many of those who are not nearer stay outside; -1: some nearer one is inside
        room = np.maximum(others - b - drawn, -1)
        log_chance = (
            gammaln(others - b + 1) - gammaln(room + 1 + (room < 0)) - gammaln(others + 1) + gammaln(others - drawn + 1)
        )
        crowds[n] = np.where(known & (room >= 0), np.exp(np.minimum(log_chance, 0)), 0.0)  # rounding can exceed a chance of 1
    return crowds


def with_share_of_records(setting: AttackSetting, share: float, rng: np.random.Generator) -> np.ndarray:
    """The users whom AP-Attack re-identifies if both halves have a random ``share`` of each user's records."""
    known, secret = (share_of_records(traces, share, rng) for traces in (setting.known, setting.secret))
    ranking = attacks()[0].fit(known).rank(secret)
    return reidentified(ranking, setting.users, setting.person).to_numpy()
