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
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from mobpriv.attacks import APAttack, ILLAttack, POIAttack
from mobpriv.base import estimates
from mobpriv.base.numbers import counted, shown
from mobpriv.base.ranges import one_of, whole
from mobpriv.datasets import Dataset
from mobpriv.experiments import thesis_4
from mobpriv.experiments.days import choose
from mobpriv.mechanisms import HMC, GeoI, Nothing, Promesse, TriLateration
from mobpriv.traces.profiles import HeatMaps, heat_maps
from mobpriv.traces.sub_traces import split_in_time
from mobpriv.traces.table import Traces, as_traces, by_user, milliseconds, rows, same_person

READINGS = ("text", "program")
LENGTHS = {"sessions": 1800.0, "days": 86_400.0}  # s, of a sub-trace: Figures 5.3 and 5.4, 5.5 and 5.6


class Setting(NamedTuple):
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
    reading: str = "text",
    active: int = 0,  # keep so many users with the most records in the days, 50 for Cabspotting; 0 keeps all
    start: str = "",
    days: int = 30,
    leave_out: str = "",
    most: int = 0,
) -> Setting:
    """Choose the days (see :func:`mobpriv.experiments.days.choose`), the most active users, their past and sub-traces."""
    seconds, border = LENGTHS[one_of("length", length, LENGTHS)], {"text": "ceiling", "program": "program"}[check(reading)]
    chosen = choose(dataset, start, days, leave_out, most)
    traces = most_active(chosen.traces, active) if whole("active", active, 0) else chosen.traces
    known, (secret, owner) = split_in_time(traces, seconds, 0.8, border)
    users = by_user(traces)[0]
    if len(users) < 2:
        raise ValueError(f"re-identification needs at least two users (got only {', '.join(users)})")
    if not len(secret):
        raise ValueError(
            f"no user has enough {length} to hold some back: all {length} of every user are among the known 80 % (a user whose name changes counts as several)"
        )
    second = same_person(traces)
    person = {sub_trace: second.get(whose, whose) for sub_trace, whose in owner.items()}
    words = chosen.selection
    if active and len(users) < len(by_user(chosen.traces)[0]):
        words += f". We use only the {len(users)} most active users, who have {shown(len(traces))} records"
    words += f". We attack {counted(len(owner), length[:-1])} of {counted(owner.nunique(), 'user')}; the first 80 % of each user's {length} are known"
    return Setting(chosen.data, known, secret, owner.index, owner, person | second, words)


def most_active(traces: Traces, users: int) -> Traces:
    """Keep the records of the ``users`` with the most records (§5.5.1), in case of ties the first by name."""
    _, offsets = by_user(traces)
    records = np.diff(offsets)
    chosen = np.zeros(len(records), bool)
    chosen[np.argsort(-records, kind="stable")[:users]] = True
    return rows(traces, np.repeat(chosen, records))


def check(reading: str) -> str:
    return one_of("reading", reading, READINGS)


def attacks(length: str = "sessions", reading: str = "text", seed: int = 0) -> list:
    """Return ILL-, AP- and POI-Attack configured as in §5.5.2: S2 cells of level 13; cells of 800 m; stops of 500 m and 15 min.

    ``seed`` is that of ILL-Attack, which is trained at random.
    """
    delta = LENGTHS[one_of("length", length, LENGTHS)]
    if check(reading) == "program":
        return [
            ILLAttack(delta, hour="program", zero_count=True, seed=seed),
            APAttack(800.0, plane="mercator", unit="bits"),
            POIAttack(500.0, 900.0, plane="mercator", merged=False),
        ]
    return [ILLAttack(delta, seed=seed), APAttack(800.0), POIAttack(500.0, 900.0)]


def mechanisms(setting: Setting, reading: str = "text") -> dict:
    """Return no protection and the four LPPMs configured as in §5.5.2, by their names in figures and results.

    HMC knows what the adversary knows, and the owner of each attacked sub-trace.
    """
    plane = {"text": "ground", "program": "mercator"}[check(reading)]
    confusion = replace(thesis_4.hmc(setting, reading), owners=setting.owner.to_dict())
    used = [Nothing(), GeoI(epsilon=0.01, plane=plane), Promesse(alpha=200.0, plane=plane), TriLateration(1000.0, plane=plane)]
    return {mechanism.name: mechanism for mechanism in [*used, confusion]}


def joined(setting: Setting) -> Traces:
    """Join the attacked sub-traces of each user under her own name: §5.2's data publishing scenario."""
    return of_owners(setting.secret, setting.owner)


def of_owners(sub_traces: Traces, owner: pd.Series) -> Traces:
    """Join sub-traces, as a mechanism left them, to traces of their owners."""
    return as_traces(sub_traces.assign(user=owner[sub_traces["user"].astype(str)].to_numpy()))


def with_own_counts(published: Traces, before: Traces) -> Traces:
    """Give each published sub-trace as many records as it had ``before``.

    The records are chosen evenly, first and last included, and repeated if there are too few.
    """
    (users, offsets), (old, ends) = by_user(published), by_user(before)
    have, want = np.diff(offsets), np.diff(ends)[old.get_indexer(users)]
    within = np.arange(want.sum()) - np.repeat(np.cumsum(want) - want, want)
    step = (have - 1) / np.maximum(want - 1, 1)
    place = np.repeat(offsets[:-1], want) + np.rint(within * np.repeat(step, want)).astype(np.int64)
    return published.take(place).reset_index(drop=True)


def days_of(setting: Setting) -> tuple[pd.Series, pd.Series]:
    """Return the day of each attacked session, and the user of each day: slices of 24 hours from her first record (§5.5.4)."""
    first, begins = (_first_moments(of) for of in (setting.known, setting.secret))
    after = begins[setting.users].to_numpy() - first[setting.owner].to_numpy()
    number = pd.Series(after // int(1000 * LENGTHS["days"]), setting.users)
    day = setting.owner + " " + number.astype(str)
    return day, pd.Series(setting.owner.to_numpy(), day).loc[lambda owner: ~owner.index.duplicated()]


def _first_moments(traces: Traces) -> pd.Series:
    """Return the beginning of each trace, in ms."""
    users, offsets = by_user(traces)
    return pd.Series(milliseconds(traces)[offsets[:-1]], users)


def shared_by(setting: Setting, grid) -> np.ndarray:
    """Return for each attacked sub-trace the share of other users whose known trace has visited all its cells of ``grid``."""
    known, secret = heat_maps(setting.known, grid), heat_maps(setting.secret, grid)
    cells = np.union1d(known.cells, secret.cells)
    been, passes = (_visited(of, cells) for of in (known, secret))
    everywhere = (passes @ been.T).toarray() == passes.sum(axis=1)[:, None]
    hers = known.users.get_indexer(setting.owner[secret.users])
    everywhere[np.arange(len(hers)), hers] = False
    return pd.Series(everywhere.sum(axis=1) / (len(known.users) - 1), secret.users)[setting.users].to_numpy()


def _visited(of: HeatMaps, cells: np.ndarray) -> csr_array:
    """Return 1 where a trace has been, one column per cell of ``cells``."""
    column = np.searchsorted(cells, of.cells)[of.counts.indices]
    return csr_array((np.ones(len(column), np.int64), column, of.counts.indptr), shape=(len(of.users), len(cells)))


def rates(found: Sequence[dict], owner: pd.Series) -> dict:
    """Compute the results of Figures 5.3 to 5.6.

    ``found``: for each run, mechanism -> attack -> whether it re-identifies each sub-trace.

    A sub-trace counts by its share of runs with a re-identification. Intervals are over users, not over sub-traces, because
    those of one user are similar.

    * "drawn": the rate run by run, if runs differ.
    * "lead": ILL-Attack's rate minus another attack's.
    * "apart": ILL-Attack's rate under one mechanism minus that under another.
    """
    whose, results, share = owner.to_numpy(), {"attacked": len(owner), "users": int(owner.nunique()), "runs": len(found)}, {}
    for mechanism, attack in ((m, a) for m in found[0] for a in found[0][m]):
        hits = np.array([run[mechanism][attack] for run in found], float)
        share[attack, mechanism] = hits.mean(axis=0)
        results[f"rate.{attack}.{mechanism}"] = estimates.clustered_rate(hits.mean(axis=0), whose)
        if hits.std(axis=0).any():
            results[f"drawn.{attack}.{mechanism}"] = estimates.spread(hits.mean(axis=1))
    for (attack, mechanism), own in share.items():
        if mechanism != "none":
            results[f"change.{attack}.{mechanism}"] = estimates.clustered_difference(own, share[attack, "none"], whose)
        if attack != "ILL-Attack":
            results[f"lead.{attack}.{mechanism}"] = estimates.clustered_difference(share["ILL-Attack", mechanism], own, whose)
    for one, other in permutations((m for m in found[0] if m != "none"), 2):
        both = share["ILL-Attack", one], share["ILL-Attack", other]
        results[f"apart.{one}.{other}"] = estimates.clustered_difference(*both, whose)
    results["gap"] = estimates.clustered_difference(share["AP-Attack", "none"], share["POI-Attack", "none"], whose)
    return results


def protected(mechanism, traces: Traces, seeds: Sequence[int]) -> Iterator[Traces]:
    """Yield the protected sub-traces for each seed; once for a deterministic ``mechanism``."""
    if isinstance(mechanism, HMC):  # deterministic up to the altered heat maps
        altered = mechanism.alter(traces)
        yield from (mechanism.rebuild(traces, altered, np.random.default_rng(seed)).traces for seed in seeds)
        return
    for seed in seeds if mechanism.random else seeds[:1]:
        yield mechanism.protect(traces, np.random.default_rng(seed))
