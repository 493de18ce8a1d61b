"""Sub-traces of a fixed duration: what one session or one day shows of a user (thesis §5.4.1, §5.5.3).

S_Δ(T) of §5.4.1 cuts a trace at t_0 + kΔ, where t_0 is its first record: "each time interval [t_0 + kΔ, t_0 + (k+1)Δ[
corresponds to one sub-trace". An interval without a record gives none.

Departure: Algorithm 4 as printed differs from that sentence. It moves the start of the interval by only one Δ when a record
lies after its end (``st ← st + δ``). After a pause of many Δ each following record becomes a separate sub-trace until the start
has caught up. This module implements the sentence; the tests implement the algorithm and compare the two.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numba
import numpy as np
import pandas as pd

from mobpriv.base.ranges import between, one_of, positive
from mobpriv.traces.table import Traces, by_user, milliseconds, rows

_BORDERS = ("ceiling", "program")


class SubTraces(NamedTuple):
    """Sub-traces as separate traces, and the owner of each."""

    traces: Traces  # users are "<owner>-<k>": the owner's records in interval k, counted from 0
    owner: pd.Series  # sub-trace -> owner, in the order of the traces


class TimeSplit(NamedTuple):
    """The adversary's knowledge, and the sub-traces that he receives."""

    known: Traces  # under the users' own names, not cut
    secret: SubTraces


def slices(traces: Traces, seconds: float) -> SubTraces:
    """S_Δ of every trace (§5.4.1), Δ = ``seconds``, to the millisecond; further columns are kept."""
    first, number = _borders(traces, seconds)
    return _named(traces, np.ones(len(traces), bool), first, number)


def split_in_time(traces: Traces, seconds: float, share: float = 0.8, border: str = "ceiling") -> TimeSplit:
    """The first ``share`` of each user's sub-traces as known traces, the others to attack (§5.5.3: "80% past mobility").

    The thesis does not say what is divided; here it is the sub-traces that have records, as in the authors' program. ``border``
    sets the known number of n sub-traces:

    * ``"ceiling"``: ⌈share·n⌉;
    * ``"program"``: those with index k (from 0) and k/n ≤ share, that is ⌊share·n⌋ + 1, at most n.

    The two differ if share·n is whole. The only sub-trace of a user is known and not attacked.
    """
    between("share", share, 1e-6, 1 - 1e-6, "must lie between 0 and 1, both excluded")
    one_of("border", border, _BORDERS)
    first, number = _borders(traces, seconds)
    _, offsets = by_user(traces)
    of_user = np.searchsorted(first, offsets)  # the first sub-trace of each user
    n = np.diff(of_user)
    exact = Fraction(float(share)).limit_denominator(10**6)  # in binary, 0.7 · 10 exceeds 7
    rounded_down = n * exact.numerator // exact.denominator
    known = np.minimum(n, rounded_down + 1) if border == "program" else -(-n * exact.numerator // exact.denominator)
    late_slice = np.arange(len(first)) - np.repeat(of_user[:-1], n) >= np.repeat(known, n)
    late = np.repeat(late_slice, np.diff(np.r_[first, len(traces)]))
    split = TimeSplit(rows(traces, ~late), _named(traces, late, first, number))
    clash = split.secret.owner.index.intersection(traces["user"].cat.categories)
    if len(clash):
        owner = split.secret.owner[clash[0]]
        raise ValueError(f"user {clash[0]} has the name of a sub-trace of user {owner}: rename one of them")
    return split


def _borders(traces: Traces, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each sub-trace, and the index k of its interval."""
    length = round(1000 * positive("seconds, the length of a sub-trace,", seconds, "s", least=0.001))
    return _cut(milliseconds(traces), by_user(traces)[1], min(length, 1 << 62))


@numba.njit(cache=True)
def _cut(time, offsets, length):
    first, number = np.empty(len(time), np.int64), np.empty(len(time), np.int64)
    n = 0
    for user in range(len(offsets) - 1):
        end = time[offsets[user]]
        for i in range(offsets[user], offsets[user + 1]):
            if time[i] >= end:
                k = (time[i] - time[offsets[user]]) // length
                first[n], number[n] = i, k
                end = time[offsets[user]] + (k + 1) * length
                n += 1
    return first[:n].copy(), number[:n].copy()


def _named(traces: Traces, chosen: np.ndarray, first: np.ndarray, number: np.ndarray) -> SubTraces:
    """The complete sub-traces with rows ``chosen``, under their names and sorted by them."""
    code = traces["user"].cat.codes.to_numpy()
    counts = np.diff(np.r_[first, len(traces)])
    selected = chosen[first] if len(first) else np.zeros(0, bool)
    first, number, counts = first[selected], number[selected], counts[selected]
    users = np.asarray(traces["user"].cat.categories, dtype=object)
    owners = users[code[first]]
    names = np.array([f"{owner}-{k}" for owner, k in zip(owners, number, strict=True)], dtype=object)
    order = np.argsort(names)  # "a-10" sorts before "a-2"
    place = np.repeat(first[order], counts[order]) + _within(counts[order])
    index = pd.Index(names[order], dtype="str")
    user = pd.Categorical.from_codes(np.repeat(np.arange(len(order)), counts[order]), index, validate=False)
    part = traces.take(place).assign(user=user).reset_index(drop=True)
    return SubTraces(part, pd.Series(pd.Index(owners[order], dtype="str"), index=index.rename("user"), name="owner"))


def _within(counts: np.ndarray) -> np.ndarray:
    """0, 1, … in each block."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def check_owners(owners) -> None:
    """Check the owners: a mapping trace -> user, or None if traces have their users' names."""
    if owners is not None and (not isinstance(owners, Mapping) or not owners):
        raise ValueError(
            f"owners must name the user of one trace or more, trace -> user, or be None if traces have their users' names (got {type(owners).__name__})"
        )
