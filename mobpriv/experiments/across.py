"""What a table of traces gives away and what protection costs: the mechanisms, attacks and metrics of all chapters on the same users.

The adversary knows the training half. He attacks the published test half with AP-, POI- and PIT-Attack, and with AP-Attack on squares of
400 m. HMC alters traces against AP-Attack on squares of 800 m, so these squares alone would favour HMC. He trains each attack twice: on
the traces as recorded, and on traces that he protected with the same mechanism (the adversary who knows the mechanism).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
from scipy.special import gammaln

from mobpriv import metrics
from mobpriv.attacks import APAttack
from mobpriv.attacks.policies import min_k, reidentified
from mobpriv.base import estimates
from mobpriv.experiments.days import AttackSetting
from mobpriv.experiments.thesis_3 import attacks
from mobpriv.mechanisms import HMC, W4M, GeoI, Nothing, Promesse, TriLateration
from mobpriv.traces.table import Traces, by_user, rows

VALUES = {  # mechanism -> the words for a setting, and the values of its parameter that we try, from weak to strong protection
    "Geo-I": ("{} at {:g} m", (40.0, 100.0, 200.0, 400.0, 1000.0, 2000.0)),  # mean length of the noise, 2/ε
    "Promesse": ("{} at {:g} m", (100.0, 200.0, 500.0, 1000.0, 2000.0)),  # α
    "W4M": ("{} with k = {}", (2, 4, 8)),
    "TriLateration": ("{} at {:g} m", (300.0, 1000.0, 3000.0)),  # radius
}
_FINER = "AP-Attack on 400 m"
ATTACKS = ("AP-Attack", _FINER, "POI-Attack", "PIT-Attack")
TRAINED = ("recorded", "protected")
_UTILITIES = {"coverage": 1, "time": -1}  # quantity -> 1 if more is more useful, -1 if less is
_SEED_OFFSET = 1000  # the adversary's random numbers are not the users'


def settings(known: Traces) -> dict[str, object]:
    """Name of each setting that we try -> its mechanism. The papers' settings are among them."""
    kinds = {"Geo-I": lambda length: GeoI(2 / length), "Promesse": Promesse, "W4M": W4M, "TriLateration": TriLateration}
    tried = {words.format(name, value): kinds[name](value) for name, (words, values) in VALUES.items() for value in values}
    return {"none": Nothing(), **tried, "HMC": HMC(known)}


def mechanism_in(setting: str) -> str:
    """The name of the mechanism in the name of a setting."""
    return setting.split(" ")[0]


def _fitted(known: Traces) -> dict[str, object]:
    """The attacks of :data:`ATTACKS`, trained on ``known``."""
    thesis = {attack.name: attack for attack in attacks()} | {_FINER: APAttack(400.0)}
    return {name: thesis[name].fit(known) for name in ATTACKS}


class Trial:
    """The attacks and metrics on one setting of days and users, for any number of mechanisms."""

    def __init__(self, setting: AttackSetting, seeds: Sequence[int]):
        self.setting, self.seeds = setting, seeds
        self.recorded = _fitted(setting.known)
        self._distances = cache(lambda half: W4M().pairs(getattr(setting, half)))  # of all k

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
        repetitions = [self._of_draw(*halves) for halves in self._published(mechanism)]
        stacked = {name: np.array([draw[name] for draw in repetitions], float) for name in repetitions[0]}
        return {name: _mean(values).tolist() for name, values in stacked.items()}

    def _published(self, mechanism) -> Iterator[tuple[Traces, Traces]]:
        for seed in self.seeds if mechanism.random else self.seeds[:1]:
            halves = (("secret", seed), ("known", seed + _SEED_OFFSET))
            yield tuple(self._protected(mechanism, half, np.random.default_rng(s)) for half, s in halves)

    def _protected(self, mechanism, half: str, rng: np.random.Generator) -> Traces:
        distances = {"pairs": self._distances(half)} if isinstance(mechanism, W4M) else {}
        return mechanism.protect(getattr(self.setting, half), rng, **distances)

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


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean over the draws (rows) in which a value is defined; NaN without one."""
    defined = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(defined, values, 0).sum(axis=0) / defined.sum(axis=0)


def dominating(values: Mapping[str, Mapping[str, Sequence[float]]], level: float = 0.95) -> list[tuple[str, str]]:
    """Pairs of settings (worse, better): under the second fewer users are re-identified, and utility is better for the median user.

    ``values``: setting -> the result of :meth:`Trial.measure`. Differences are paired over the users; utility is compared over the users
    that have one under both settings. All intervals together have the confidence ``level``: Bonferroni over the pairs, because
    all conditions of a pair must hold.
    """
    pairs = list(permutations(values, 2))
    each = 1 - (1 - level) / max(len(pairs), 1)
    return [(worse, better) for worse, better in pairs if _dominates(values[better], values[worse], each)]


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
    known, secret = (_sampled(traces, share, rng) for traces in (setting.known, setting.secret))
    ranking = attacks()[0].fit(known).rank(secret)
    return reidentified(ranking, setting.users, setting.person).to_numpy()


def _sampled(traces: Traces, share: float, rng: np.random.Generator) -> Traces:
    key = rng.random(len(traces))
    kept = np.zeros(len(key), bool)
    for first, end in pairwise(by_user(traces)[1]):
        n = int(np.ceil(share * (end - first)))
        kept[first + np.argpartition(key[first:end], n - 1)[:n]] = True
    return rows(traces, kept)
