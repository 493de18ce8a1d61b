"""Hybrid-LPPM: its choice by Equations 6.1 to 6.3, written out trace by trace, and what can be wrong with what it is given."""

import numpy as np
import pandas as pd
from conftest import refusals
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.attacks import APAttack
from mobpriv.mechanisms import GeoI, Hybrid, Nothing
from mobpriv.traces.table import as_traces, by_user, from_blocks

NAMES = ["one", "three", "two"]


def standing(users=NAMES, n=3):
    """Users who stand still, each at a latitude of her own."""
    time, lat = np.tile(1_400_000_000_000 + 1000 * np.arange(n), len(users)), np.repeat(45.0 + np.arange(len(users)), n)
    return from_blocks(pd.Index(users), [n] * len(users), time, lat, np.full(len(lat), 5.0))


class Marks:
    """Publishes every record at a longitude of its own, which says who published it; nothing of the users in ``erased``."""

    random = False

    def __init__(self, number, erased=()):
        self.name, self.number, self.erased = f"m{number}", number, set(erased)

    def protect(self, traces, rng):
        kept = as_traces(traces[~traces["user"].isin(self.erased)])
        return kept.assign(lng=float(self.number))


class ScriptedAttack:
    """Names the true user exactly where it is told to: by user and mechanism."""

    name = "told"

    def __init__(self, hits):
        self.hits = hits

    def rank(self, published):
        users, offsets = by_user(published)
        number = published["lng"].to_numpy()[offsets[:-1]].astype(int)
        d = np.array([[float((u == v) != self.hits[u, m]) for v in NAMES] for u, m in zip(users, number, strict=True)])
        return pd.DataFrame(d.reshape(len(users), len(NAMES)), index=users, columns=NAMES)


@given(data=st.data(), weights=st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=2, max_size=2))
def test_the_choice_is_that_of_the_equations(data, weights):
    traces = standing()
    hits = [{(u, m): data.draw(st.booleans()) for u in NAMES for m in range(3)} for _ in range(2)]
    useful = {(u, m): data.draw(st.sampled_from([0.1, 0.5, 0.9])) for u in NAMES for m in range(3)}
    erased = [data.draw(st.sets(st.sampled_from(NAMES), max_size=2)) for _ in range(3)]

    def utility(original, protected):
        users, offsets = by_user(protected)
        number = protected["lng"].to_numpy()[offsets[:-1]].astype(int)
        return pd.Series([useful[u, m] for u, m in zip(users, number, strict=True)], index=users, dtype=float)

    hybrid = Hybrid([Marks(m, erased[m]) for m in range(3)], [ScriptedAttack(h) for h in hits], utility, weights)
    chosen = hybrid.choose(traces, np.random.default_rng(1))
    pd.testing.assert_frame_equal(hybrid.protect(traces, np.random.default_rng(1)), chosen.traces)
    for u in NAMES:
        risks = [sum(w * h[u, m] for w, h in zip(weights, hits, strict=True)) for m in range(3)]
        risk = {m: 0 if u in erased[m] else risks[m] for m in range(3)}  # (6.1)
        l_min = [m for m in range(3) if risk[m] == min(risk.values())]  # (6.2)
        best = max(l_min, key=lambda m: (-np.inf if u in erased[m] else useful[u, m], -m))  # (6.3)
        assert chosen.risk.loc[u].tolist() == [risk[m] for m in range(3)]
        assert chosen.mechanism[u] == f"m{best}"
        published = chosen.traces.loc[chosen.traces["user"] == u, "lng"]
        assert published.tolist() == ([] if u in erased[best] else [float(best)] * 3)


def everything(original, protected):
    return pd.Series(1.0, index=by_user(protected)[0])


def test_sub_traces_are_their_owners():
    """A hit is a hit on the owner, whatever the sub-trace is called."""
    known = standing()
    parts = standing(["one-0", "three-0", "two-0"])
    owners = {f"{name}-0": name for name in NAMES}
    for options, risk in (({"owners": owners}, 1), ({}, 0)):
        hybrid = Hybrid([Nothing()], [APAttack().fit(known)], everything, **options)
        assert hybrid.choose(parts, np.random.default_rng(1)).risk["none"].tolist() == [risk] * 3


test_what_cannot_be = refusals(
    ({"mechanisms": []}, r"mechanisms must be one or more, each with a name of its own \(got none\)"),
    ({"mechanisms": [GeoI(), GeoI(0.1)]}, r"each with a name of its own \(got Geo-I, Geo-I\)"),
    ({"attacks": []}, "attacks must be one or more, fitted"),
    ({"weights": [1.0, 2.0]}, r"weights must have one number an attack \(got 2 for 1 attacks\)"),
    ({"weights": [-1.0]}, r"weights must .*\(got -1"),
    call=lambda parameters: Hybrid(
        **{"mechanisms": [Nothing()], "attacks": [APAttack().fit(standing())], "utility": everything} | parameters
    ),
)


def test_risks_are_not_compared_as_floats():
    """0.1 + 0.2 of two attacks equals 0.3 of a third one: the utility decides."""
    hits = [{(u, m): m == hit for u in NAMES for m in range(2)} for hit in (0, 0, 1)]
    mechanisms = [Marks(0), Marks(1)]

    def utility(original, protected):
        useful = 0.9 if (protected["lng"] == 0).all() else 0.1
        return pd.Series(useful, index=by_user(protected)[0])

    chosen = Hybrid(mechanisms, [ScriptedAttack(h) for h in hits], utility, [0.1, 0.2, 0.3])
    assert chosen.choose(standing(), np.random.default_rng(1)).mechanism.tolist() == ["m0"] * 3


def test_a_published_trace_without_utility_comes_before_an_erased_one():
    hits = {(u, m): False for u in NAMES for m in range(2)}
    mechanisms = [Marks(0, erased=NAMES), Marks(1)]
    hybrid = Hybrid(
        mechanisms, [ScriptedAttack(hits)], lambda original, protected: pd.Series(np.nan, index=by_user(protected)[0])
    )
    chosen = hybrid.choose(standing(), np.random.default_rng(1))
    assert chosen.mechanism.tolist() == ["m1"] * 3
    assert len(chosen.traces) == 9
    chosen = Hybrid(mechanisms[:1], [ScriptedAttack({})], everything).choose(standing(), np.random.default_rng(1))
    assert len(chosen.traces) == 0
    assert chosen.risk["m0"].tolist() == [0, 0, 0]
    assert chosen.utility["m0"].isna().all()
