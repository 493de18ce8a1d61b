"""The setting of all experiments of the thesis's chapter 5: days, users, sub-traces, mechanisms, attacks.

An adversary knows the first 80 % of everybody's sub-traces. Each later sub-trace has a name of its own: a session of 30 minutes
(§5.5.3) or a day (§5.5.4). AP- and POI-Attack compare it with the user's whole known trace. ILL-Attack is trained on that trace
cut into sub-traces of the same length. Mechanisms protect each attacked sub-trace separately; the known traces "never".

Every experiment runs in one of two *variants*: ``"text"``, the default, or ``"program"``, what the author's published code
does.

* Known: "text" ⌈0.8 n⌉ of n sub-traces; "program" ⌊0.8 n⌋ + 1.
* ILL-Attack: "text" uses the hour of the sub-trace's mean time, below a day. "program" uses the hour of half its span before
  its start, and counts of zeros.
* Metres: "text" on the ground; "program" of a Mercator plane (0.79 m on the ground in San Francisco).
* POI-Attack: "text" uses POIs; "program" stays, so that a place is weighted by its visits.
* HMC: "text" §4.3; "program" the options of :func:`mobpriv.experiments.thesis_4.hmc`.

The thesis attacks 2437 sessions and 200 days of its 50 cabs. Both variants have the same 50 cabs (1 409 687 records, as in
Table 5.2) and 200 days, but four times as many sessions; we do not know why.

Source: Maouche, thesis, §5.5.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csc_array, csr_array, diags_array, hstack

from mobpriv.attacks import APAttack, ILLAttack, POIAttack
from mobpriv.attacks.ap import topsoe
from mobpriv.attacks.ill import DAY, Features
from mobpriv.attacks.policies import TIE
from mobpriv.base import estimates
from mobpriv.base.numbers import counted, shown
from mobpriv.base.ranges import one_of, whole
from mobpriv.datasets import Dataset
from mobpriv.experiments import thesis_4
from mobpriv.experiments.days import choose
from mobpriv.experiments.thesis_3 import check_variant
from mobpriv.ground.grid import S2Grid
from mobpriv.mechanisms import HMC, GeoI, Nothing, Promesse, TriLateration
from mobpriv.traces.profiles import HeatMaps, heat_maps
from mobpriv.traces.sub_traces import SubTraces, slices, split_in_time
from mobpriv.traces.table import Traces, as_traces, by_user, milliseconds, rows, same_person

LENGTHS = {"sessions": 1800.0, "days": 86_400.0}  # s, of a sub-trace: Figures 5.3 and 5.4, 5.5 and 5.6


class SubTraceSetting(NamedTuple):
    data: Dataset
    known: Traces  # the first 80 %, KD, uncut
    secret: Traces  # the other sub-traces, each under a name of its own
    users: pd.Index  # the names of these sub-traces
    owner: pd.Series  # sub-trace -> its user
    person: dict[str, str]  # a sub-trace, or a second name of one person -> her first name; for the policies
    selection: str  # all of this in words, without a full stop at the end


def prepare(
    dataset: str = "city",
    length: str = "sessions",  # or "days": the unit that is attacked
    variant: str = "text",
    active: int = 0,  # keep so many users with the most records in the days, 50 for Cabspotting; 0 keeps all
    start: str = "",
    days: int = 30,
    leave_out: str = "",
    max_users: int = 0,
) -> SubTraceSetting:
    """Choose the days (see :func:`mobpriv.experiments.days.choose`), the most active users, their past and sub-traces."""
    seconds = LENGTHS[one_of("length", length, LENGTHS)]
    border = {"text": "ceiling", "program": "program"}[check_variant(variant)]
    chosen = choose(dataset, start, days, leave_out, max_users)
    traces = most_active_users(chosen.traces, active) if whole("active", active, 0) else chosen.traces
    known, (secret, owner) = split_in_time(traces, seconds, 0.8, border)
    users = by_user(traces)[0]
    if len(users) < 2:
        raise ValueError(f"re-identification needs at least two users (got only {', '.join(users)})")
    if not len(secret):
        raise ValueError(
            f"no user has enough {length} to hold some back: all {length} of every user are among the known 80 % (a user whose name changes counts as several)"
        )
    second_names = same_person(traces)
    person = {sub_trace: second_names.get(user, user) for sub_trace, user in owner.items()}
    words = chosen.selection
    if active and len(users) < len(by_user(chosen.traces)[0]):
        words += f". We use only the {len(users)} most active users, who have {shown(len(traces))} records"
    words += f". The adversary knows the first 80 % of each user's {length}. We attack the remaining {counted(len(owner), length[:-1])} of {counted(owner.nunique(), 'user')}"
    return SubTraceSetting(chosen.data, known, secret, owner.index, owner, person | second_names, words)


def most_active_users(traces: Traces, users: int) -> Traces:
    """Keep the records of the ``users`` with the most records (§5.5.1), in case of ties the first by name."""
    _, offsets = by_user(traces)
    records = np.diff(offsets)
    chosen = np.zeros(len(records), bool)
    chosen[np.argsort(-records, kind="stable")[:users]] = True
    return rows(traces, np.repeat(chosen, records))


def attacks(length: str = "sessions", variant: str = "text", seed: int = 0) -> list:
    """Return ILL-, AP- and POI-Attack configured as in §5.5.2: S2 cells of level 13; cells of 800 m; stops of 500 m and 15 min.

    ``seed`` is that of ILL-Attack, which is trained at random.
    """
    delta = LENGTHS[one_of("length", length, LENGTHS)]
    if check_variant(variant) == "program":
        return [
            ILLAttack(delta, hour="program", zero_count=True, seed=seed),
            APAttack(800.0, plane="mercator", unit="bits"),
            POIAttack(500.0, 900.0, plane="mercator", merged=False),
        ]
    return [ILLAttack(delta, seed=seed), APAttack(800.0), POIAttack(500.0, 900.0)]


def mechanisms(setting: SubTraceSetting, variant: str = "text") -> dict:
    """Return no protection and the four LPPMs configured as in §5.5.2, by their names in figures and results.

    HMC knows what the adversary knows, and the owner of each attacked sub-trace.
    """
    plane = {"text": "ground", "program": "mercator"}[check_variant(variant)]
    confusion = replace(thesis_4.hmc(setting, variant), owners=setting.owner.to_dict())
    used = [Nothing(), GeoI(epsilon=0.01, plane=plane), Promesse(alpha=200.0, plane=plane), TriLateration(1000.0, plane=plane)]
    return {mechanism.name: mechanism for mechanism in [*used, confusion]}


def joined(setting: SubTraceSetting) -> Traces:
    """Join the attacked sub-traces of each user under her own name: §5.2's data publishing scenario."""
    return of_owners(setting.secret, setting.owner)


def of_owners(sub_traces: Traces, owner: pd.Series) -> Traces:
    """Join sub-traces, as a mechanism left them, to traces of their owners."""
    return as_traces(sub_traces.assign(user=owner[sub_traces["user"].astype(str)].to_numpy()))


def with_original_counts(published: Traces, before: Traces) -> Traces:
    """Give each published sub-trace as many records as it had ``before``.

    The records are chosen evenly, first and last included, and repeated if there are too few.
    """
    (users, offsets), (users_before, ends) = by_user(published), by_user(before)
    have, want = np.diff(offsets), np.diff(ends)[users_before.get_indexer(users)]
    index = np.arange(want.sum()) - np.repeat(np.cumsum(want) - want, want)
    step = (have - 1) / np.maximum(want - 1, 1)
    place = np.repeat(offsets[:-1], want) + np.rint(index * np.repeat(step, want)).astype(np.int64)
    return published.take(place).reset_index(drop=True)


def days_of(setting: SubTraceSetting) -> tuple[pd.Series, pd.Series]:
    """Return the day of each attacked session, and the user of each day: slices of 24 hours from her first record (§5.5.4)."""
    blocks = ((traces, *by_user(traces)) for traces in (setting.known, setting.secret))
    first, begins = (pd.Series(milliseconds(traces)[offsets[:-1]], users) for traces, users, offsets in blocks)  # ms
    after = begins[setting.users].to_numpy() - first[setting.owner].to_numpy()
    number = pd.Series(after // int(1000 * LENGTHS["days"]), setting.users)
    day = setting.owner + " " + number.astype(str)
    return day, pd.Series(setting.owner.to_numpy(), day).loc[lambda owner: ~owner.index.duplicated()]


def shared_by(setting: SubTraceSetting, grid) -> np.ndarray:
    """Return for each attacked sub-trace the share of other users whose known trace has visited all its cells of ``grid``."""
    known, secret = heat_maps(setting.known, grid), heat_maps(setting.secret, grid)
    cells = np.union1d(known.cells, secret.cells)
    known_cells, secret_cells = (_visited(maps, cells) for maps in (known, secret))
    everywhere = (secret_cells @ known_cells.T).toarray() == secret_cells.sum(axis=1)[:, None]
    owner_row = known.users.get_indexer(setting.owner[secret.users])
    everywhere[np.arange(len(owner_row)), owner_row] = False
    return pd.Series(everywhere.sum(axis=1) / (len(known.users) - 1), secret.users)[setting.users].to_numpy()


def _visited(maps: HeatMaps, cells: np.ndarray) -> csr_array:
    """Return 1 where a trace has been, one column per cell of ``cells``."""
    column = np.searchsorted(cells, maps.cells)[maps.counts.indices]
    return csr_array((np.ones(len(column), np.int64), column, maps.counts.indptr), shape=(len(maps.users), len(cells)))


def rates(runs: Sequence[dict], owner: pd.Series) -> dict:
    """Compute the results of Figures 5.3 to 5.6.

    ``runs``: for each run, mechanism -> attack -> whether it re-identifies each sub-trace.

    A sub-trace counts by its share of runs with a re-identification. Intervals are over users, not over sub-traces, because
    those of one user are similar.

    * "drawn": the rate run by run, if runs differ.
    * "lead": ILL-Attack's rate minus another attack's.
    * "apart": ILL-Attack's rate under one mechanism minus that under another.
    """
    users, results, share = owner.to_numpy(), {"attacked": len(owner), "users": int(owner.nunique()), "runs": len(runs)}, {}
    for mechanism, attack in ((m, a) for m in runs[0] for a in runs[0][m]):
        hits = np.array([run[mechanism][attack] for run in runs], float)
        share[attack, mechanism] = hits.mean(axis=0)
        results[f"rate.{attack}.{mechanism}"] = estimates.clustered_rate(hits.mean(axis=0), users)
        if hits.std(axis=0).any():
            results[f"drawn.{attack}.{mechanism}"] = estimates.spread(hits.mean(axis=1))
    for (attack, mechanism), hit_share in share.items():
        if mechanism != "none":
            results[f"change.{attack}.{mechanism}"] = estimates.clustered_difference(hit_share, share[attack, "none"], users)
        if attack != "ILL-Attack":
            results[f"lead.{attack}.{mechanism}"] = estimates.clustered_difference(
                share["ILL-Attack", mechanism], hit_share, users
            )
    for one, other in permutations((m for m in runs[0] if m != "none"), 2):
        both = share["ILL-Attack", one], share["ILL-Attack", other]
        results[f"apart.{one}.{other}"] = estimates.clustered_difference(*both, users)
    results["gap"] = estimates.clustered_difference(share["AP-Attack", "none"], share["POI-Attack", "none"], users)
    return results


def protected(mechanism, traces: Traces, seeds: Sequence[int]) -> Iterator[Traces]:
    """Yield the protected sub-traces for each seed; once for a deterministic ``mechanism``."""
    if isinstance(mechanism, HMC):  # deterministic up to the altered heat maps
        altered = mechanism.alter(traces)
        yield from (mechanism.rebuild(traces, altered, np.random.default_rng(seed)).traces for seed in seeds)
        return
    for seed in seeds if mechanism.random else seeds[:1]:
        yield mechanism.protect(traces, np.random.default_rng(seed))


# ------------------------------------------------------- Explain by ablation why ILL-Attack re-identifies more than AP-Attack
# The thesis names these reasons:
#
# * the trees (§5.4.3),
# * the hour of day and the heat map (§5.4.2, Table 5.1),
# * ILL-Attack "learns from individual short past behaviors", AP-Attack compares whole profiles (§5.5.3).
#
# Each is ablated separately.
_GROUPS = ("hourOfDay", "nbRecords", "centre", "cells")  # of the features of Table 5.1
_GROUP_OF = {
    "hourOfDay": "hourOfDay",
    "programHour": "hourOfDay",
    "nbRecords": "nbRecords",
    "centerLat": "centre",
    "centerLng": "centre",
    "zeros": "cells",  # in the author's program; most zeros are empty cells
    "nonZeros": "cells",
}
AT_ONCE = 1 << 23  # pairs of sub-traces whose divergences are in memory at one time: 64 MB


@dataclass(frozen=True)
class FeatureSubset(ILLAttack):
    """ILL-Attack with only some groups of Table 5.1's features; with all groups it is ILL-Attack.

    Each node still considers ``max_features`` of the remaining features, at least one.
    """

    groups: tuple[str, ...] = _GROUPS

    def __post_init__(self):
        super().__post_init__()
        if unknown := [group for group in self.groups if group not in _GROUPS]:
            raise ValueError(f"groups must be some of {', '.join(_GROUPS)} (got {unknown[0]!r})")
        if not set(self.groups) - ({"hourOfDay"} if self.delta >= DAY and self.hour == "mean" else set()):
            raise ValueError(f"groups must hold a feature that sub-traces of {self.delta:g} s have (got {self.groups!r})")

    def features(self, traces: Traces, cells: np.ndarray | None = None) -> Features:
        users, names, cells, values = super().features(traces, cells)
        kept = [column for column, name in enumerate(names) if _GROUP_OF[name] in self.groups]
        if "cells" not in self.groups:
            cells = cells[:0]
        columns = np.r_[kept, len(names) + np.arange(len(cells))].astype(np.int32)
        return Features(users, [names[column] for column in kept], cells, values[:, columns])


def random_forest(ill: ILLAttack, bootstrap: bool = False):
    """Return a random forest instead of ILL-Attack's trees, untrained, with the same number, leaf, split and share.

    It searches the best cut-point of each feature; Extremely Randomized Trees draw one. ``bootstrap``: each tree is trained on
    as many sub-traces drawn with replacement, Breiman's rule and scikit-learn's default. ILL-Attack's trees are trained on all.

    Source: Breiman, Machine Learning 45, 2001.
    """
    from sklearn.ensemble import RandomForestClassifier

    # one thread: otherwise the order in which threads finish changes the mean over the trees by rounding
    return RandomForestClassifier(
        n_estimators=ill.trees,
        min_samples_leaf=ill.min_leaf,
        min_samples_split=ill.min_split,
        max_features=ill.max_features,
        bootstrap=bootstrap,
        random_state=ill.seed,
    )


class LogisticRegression:
    """Multinomial logistic regression (scikit-learn's, penalty 1) on standardised features instead of ILL-Attack's trees.

    It is deterministic: the fields of the trees and ``seed`` have no effect. It needs two known users.
    """

    def __init__(self, ill: ILLAttack):
        from sklearn.linear_model import LogisticRegression as Multinomial

        self.model = Multinomial(max_iter=2000)

    def fit(self, examples: csc_array, owner: np.ndarray) -> None:
        values = csc_array(examples, dtype=float)
        n, filled = values.shape[0], np.diff(values.indptr)
        mean = values.sum(axis=0) / n
        column = np.repeat(np.arange(len(mean)), filled)
        squares = np.bincount(column, (values.data - mean[column]) ** 2, len(mean)) + (n - filled) * mean**2
        deviation = np.sqrt(squares / n)
        # the intercept has no penalty and absorbs any shift, so centring is optional: it is done only for features that most
        # sub-traces have, because the solver fails on a latitude of 37.77 ± 0.02; the shares of the cells stay sparse
        self.centre, self.scale = np.where(filled > n / 2, mean, 0.0), np.where(deviation > 0, deviation, 1.0)
        self.model.fit(self.standardised(values), owner)

    def standardised(self, examples) -> csr_array:
        values, dense = csc_array(examples, dtype=float), self.centre != 0
        moved = (values[:, dense].toarray() - self.centre[dense]) / self.scale[dense]
        return csr_array(hstack([csc_array(moved), values[:, ~dense] @ diags_array(1 / self.scale[~dense])]))

    def predict_proba(self, examples) -> np.ndarray:
        return self.model.predict_proba(self.standardised(examples))


def classifiers(length: str, trees: int = 100, seed: int = 0) -> dict[str, ILLAttack]:
    """Return ILL-Attack as in §5.5.2 (except ``trees``), and with other classifiers on the same features."""
    ill = replace(attacks(length, seed=seed)[0], trees=trees)
    return {
        ill.name: ill,
        "random forest": replace(ill, classifier=random_forest),
        "random forest, bootstrap": replace(ill, classifier=partial(random_forest, bootstrap=True)),
        "logistic regression": replace(ill, classifier=LogisticRegression),
    }


def feature_groups(length: str, trees: int = 100, seed: int = 0) -> dict[str, ILLAttack]:
    """Return ILL-Attack without each group of features, and with each group alone."""
    ill = replace(attacks(length, seed=seed)[0], trees=trees)
    groups = _GROUPS if length == "sessions" else _GROUPS[1:]  # the hour "is limited to sub-traces that are smaller than a day"
    without = {f"without {one}": tuple(other for other in groups if other != one) for one in groups}
    alone = {f"{one} alone": (one,) for one in groups}
    settings = {part.name: getattr(ill, part.name) for part in fields(ill)}
    return {name: FeatureSubset(**settings, groups=kept) for name, kept in (without | alone).items()}


def nearest_past(known: SubTraces, anonymous: Traces, grid, k: int = 1) -> pd.DataFrame:
    """Run AP-Attack on a past cut into sub-traces, without training.

    For each trace and user: the mean of the ``k`` least Topsoe divergences (3.3), in nats, from her known sub-traces; of all if
    she has fewer. Every pair is compared, some traces at a time.
    """
    whole("k", k, 1)
    past, now = heat_maps(known.traces, grid), heat_maps(anonymous, grid)
    owner = known.owner[past.users].to_numpy()
    # sub-traces sorted by name are not sorted by owner: "a-1-0" is between "a-0" and "a-2"
    order = np.argsort(owner, kind="stable")
    users, first = np.unique(owner[order], return_index=True)
    ends = np.r_[first[1:], len(order)]
    past_by_owner = HeatMaps(past.users[order], past.cells, past.counts[order])
    nearest, step = np.empty((len(now.users), len(users))), max(1, AT_ONCE // max(len(order), 1))
    for start in range(0, len(now.users), step):
        block = slice(start, start + step)
        d = topsoe(HeatMaps(now.users[block], now.cells, now.counts[block]), past_by_owner)
        for user, (begin, end) in enumerate(zip(first, ends, strict=True)):
            least = min(k, end - begin)
            nearest[block, user] = np.partition(d[:, begin:end], least - 1, axis=1)[:, :least].mean(axis=1)
    return pd.DataFrame(nearest, index=now.users, columns=pd.Index(users, dtype="str", name="user"))


def random_tie_breaking(ranking: pd.DataFrame, owner: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return each trace's chance that a random one of the nearest users is the true one, and the number of nearest users.

    The policies settle ties against the adversary. Heat maps of one cell each are equal, so short traces often tie. To measure
    the effect of cutting, ties must not count as mistakes.
    """
    d = ranking.loc[owner.index].to_numpy()
    nearest = d <= d.min(axis=1, keepdims=True) + TIE
    names_owner = nearest[np.arange(len(d)), ranking.columns.get_indexer(owner)]
    return names_owner / nearest.sum(axis=1), nearest.sum(axis=1)


def untrained_rankings(setting: SubTraceSetting, length: str) -> dict[str, pd.DataFrame]:
    """Return rankings without training: AP-Attack, the past cut, with ILL-Attack's cells, with more neighbours."""
    ill, ap, _ = attacks(length)
    past, s2 = slices(setting.known, ill.delta), S2Grid(ill.level)
    return {
        "AP-Attack": ap.fit(setting.known).rank(setting.secret),
        "nearest past": nearest_past(past, setting.secret, ap.grid),
        "nearest past, S2": nearest_past(past, setting.secret, s2),
        "five nearest, S2": nearest_past(past, setting.secret, s2, 5),
    }
