"""What every mechanism promises, whichever it is: a new one in ``mechanisms.__all__`` is tested here at once.

A mechanism that draws names its law in ``LAWS``, and one harness draws from it and tests what comes out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numba
import numpy as np
import pandas as pd
import pytest
from naive_mechanisms import WGS84
from scipy import stats

import mobpriv.mechanisms
from mobpriv.attacks import APAttack
from mobpriv.ground.geo import to_plane
from mobpriv.ground.grid import AreaGrid
from mobpriv.mechanisms import Nothing, Promesse
from mobpriv.mechanisms.reconstruction import Track, adapted
from mobpriv.own_data.contract import RULES, depends_on_others, walks
from mobpriv.traces.table import as_traces, from_blocks

# four cells of 400 m around the traces below; two observables
AREA = AreaGrid.around(45.0, 5.0, 800.0, 800.0, 2, 2)
CHANNEL = np.array([[0.7, 0.3], [0.5, 0.5], [0.2, 0.8], [0.0, 1.0]])
TURNED = {
    f"{who}{i}": np.roll(np.pad(CHANNEL, ((0, 0), (0, 2))), i, axis=1) for who in ("user ", "xuser ", "u") for i in range(6)
}


NEEDED = {  # parameters without a default
    "HMC": {"known": walks(5), "owners": {f"{who}{i}": f"user {i}" for who in ("user ", "xuser ", "u") for i in range(6)}},
    "Hybrid": {
        "mechanisms": [Nothing(), Promesse(100.0)],
        "attacks": [APAttack().fit(walks(7))],
        "utility": lambda original, protected: protected["user"].value_counts() / original["user"].value_counts(),
    },
    "Obfuscation": {"channel": CHANNEL, "grid": AREA, "observables": [0, 3]},
    "PersonalisedObfuscation": {"channels": TURNED, "grid": AREA},
}
EVERY = [getattr(mobpriv.mechanisms, name)(**NEEDED.get(name, {})) for name in mobpriv.mechanisms.__all__]


@pytest.fixture
def traces():
    return walks(5)


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
class TestEveryMechanism:
    @pytest.mark.parametrize("rule", RULES)
    def test_the_contract(self, mechanism, rule, traces):
        name = type(mechanism).__name__
        if rule == "records at the date line" and name in ("HMC", "Obfuscation", "PersonalisedObfuscation"):
            pytest.skip("it publishes places that it is given")
        if rule == "the order of users does not matter" and name == "Hybrid":
            pytest.skip("its attacks know the users by name")
        RULES[rule](mechanism, traces)

    def test_no_time_span_is_invented(self, mechanism, traces):
        published = mechanism.protect(traces, np.random.default_rng(1))
        assert traces["t"].min() <= published["t"].min()
        assert published["t"].max() <= traces["t"].max()

    def test_which_ones_protect_users_together(self, mechanism, traces):
        assert depends_on_others(mechanism, traces) == (type(mechanism).__name__ == "W4M")

    def test_one_thread_and_all_of_them_give_the_same(self, mechanism, traces, threads):
        shared = mechanism.protect(traces, np.random.default_rng(1))
        numba.set_num_threads(1)
        pd.testing.assert_frame_equal(mechanism.protect(traces, np.random.default_rng(1)), shared, check_exact=True)

    def test_equal_times(self, mechanism, traces):
        """All records of a user at one time: allowed by ``Traces``."""
        frozen = as_traces(traces.assign(t=traces["t"].min()))
        published = mechanism.protect(frozen, np.random.default_rng(1))
        assert (published["t"] == traces["t"].min()).all()

    def test_parameters_cannot_be_changed(self, mechanism):
        with pytest.raises(AttributeError):
            mechanism.plane = "mercator"


@dataclass(frozen=True)
class Law:
    """What a mechanism draws, how it is distributed, and mechanisms that are wrong by so little that the test must tell.

    ``draws(mechanism, rng, at)`` gives named arrays of shape (users, draws of each), for users who all stay at the latitude
    ``at``; ``laws(mechanism)`` the distribution of each: continuous, frozen, of scipy.stats, or the probabilities of 0, 1, ….
    """

    draws: Callable
    laws: Callable
    wrong: dict  # in words -> what makes the wrong mechanism of a right one
    latitudes: tuple = (0.0, 60.0, -37.0, 89.5)
    per_user: bool = True  # whether a user's draws depend on her own records alone


USERS, RECORDS = 4, 10_000


def crowd(lat, counts=(RECORDS,) * USERS, lng=5.0):
    """Users who stay at one place, one record a second."""
    n = sum(counts)
    time = 1_400_000_000_000 + 1000 * np.arange(n)
    users = pd.Index([f"u{i}" for i in range(len(counts))])
    return from_blocks(users, counts, time, np.full(n, lat), np.full(n, lng))


def off(original, published, plane="ground"):
    """How far and in which direction (turns) each published record lies from where the crowd stays."""
    lat, lng = (np.full(len(published), original[c].iloc[0]) for c in ("lat", "lng"))
    if plane == "mercator":
        p, q = to_plane(lat, lng, plane), to_plane(published["lat"].to_numpy(), published["lng"].to_numpy(), plane)
        away, turn = np.hypot(q.x - p.x, q.y - p.y), np.arctan2(q.x - p.x, q.y - p.y) / (2 * np.pi)
    else:
        azimuth, _, away = WGS84.inv(lng, lat, published["lng"], published["lat"])
        turn = np.asarray(azimuth) / 360
    return {"radius": np.reshape(away, (USERS, -1)), "direction": np.reshape(turn % 1, (USERS, -1))}


def displacements(mechanism, rng, at):
    traces = crowd(at)
    return off(traces, mechanism.protect(traces, rng), getattr(mechanism, "plane", "ground"))


def cells_drawn(mechanism, rng, at):
    """Of each of the four secret cells the column drawn, for a user who stays there."""
    traces = crowd(at)
    for s, (lat, lng) in enumerate(mechanism.grid.centres_in_degrees()):
        traces.loc[s * RECORDS : (s + 1) * RECORDS - 1, ["lat", "lng"]] = lat + 1e-4, lng - 1e-4
    published = mechanism.protect(traces, rng)
    cell = mechanism.grid.cells(published["lat"].to_numpy(), published["lng"].to_numpy())
    column = {c: o for o, c in enumerate(getattr(mechanism, "observables", range(mechanism.grid.size)))}
    drawn = np.array([column[c] for c in cell]).reshape(USERS, -1)
    return {f"row {s}": drawn[[s]] for s in range(len(drawn))}


def records_kept(mechanism, rng, at):
    """Which one of the four records of a cell that is to have one is kept."""
    track = Track(np.arange(4), np.full(4, at), np.full(4, 5.0)).part(slice(getattr(mechanism, "records", 4)))
    cell, want = np.zeros(len(track.t), np.int64), np.array([1])
    return {"kept": np.array([adapted(track, cell, want, rng).t[0] for _ in range(USERS * RECORDS)]).reshape(USERS, -1)}


def first_pivots(mechanism, rng, at):
    """125 times four users who walk side by side: which of them becomes the pivot of the cluster that they make."""
    groups, n = 125, 3
    lane, group = np.tile(np.arange(4.0), groups), np.repeat(np.arange(groups), 4)
    lat = np.repeat(at + 0.01 * group + 1e-6 * lane, n)
    lng = 5 + np.tile(0.001 * np.arange(n), 4 * groups)
    time = 1_400_000_000_000 + np.tile(60_000 * np.arange(n), 4 * groups)
    names = pd.Index([f"{u:04}" for u in range(4 * groups)])
    walks = from_blocks(names, [n] * len(names), time, lat, lng)
    of_four = replace(mechanism, k=4, radius=10.0)
    runs = [of_four.clusters(walks, rng).members["pivot"].iloc[::4].astype(int) % 4 for _ in range(4)]
    return {"pivot": np.array(runs)}


def biased(rng):
    """In place of a generator: the first of four comes earlier in the order than the others, in 4 of 10 cases before all."""
    return SimpleNamespace(
        bit_generator=SimpleNamespace(state=None),
        permutation=lambda n: np.argsort(rng.random(n) * np.where(np.arange(n) % 4, 1, 0.65)),
    )


def off_by_5_percent(channel):
    """Every row gives to its least likely possible cell 5 % of what the likeliest has."""
    channel = channel.copy()
    for row in channel:
        likely, rare = row.argmax(), np.where(row > 0, row, 2).argmin()
        moved = 0.05 * row[likely] * (likely != rare)
        row[[likely, rare]] += [-moved, moved]
    return channel


turns = stats.uniform()
LAWS = {
    # Andrés et al. (2013), §4.1: the radius is a Gamma(2, 1/ε), the direction uniform
    "GeoI": Law(
        displacements,
        lambda m: {"radius": stats.gamma(2, scale=1 / m.epsilon), "direction": turns},
        {f"times {f}": lambda m, f=f: replace(m, epsilon=f * m.epsilon) for f in (1.05, 1 / 1.05)},
    ),
    # uniform in the disc: the share within r is (r / radius)²
    "TriLateration": Law(
        displacements,
        lambda m: {"radius": stats.powerlaw(2, scale=m.radius), "direction": turns},
        {f"times {f}": lambda m, f=f: replace(m, radius=f * m.radius) for f in (1.05, 1 / 1.05)},
    ),
    # Shokri (2015), §3: a record in cell s is published in o with the probability p(o|s)
    "Obfuscation": Law(
        cells_drawn,
        lambda m: {f"row {s}": row for s, row in enumerate(m.channel)},
        {"a channel 5 % off": lambda m: replace(m, channel=off_by_5_percent(m.channel))},
        latitudes=(45.0,),
    ),
    # the same, each user by her own channel: the user in cell s is "u" and s
    "PersonalisedObfuscation": Law(
        cells_drawn,
        lambda m: {f"row {s}": m.channels[f"u{s}"][s] for s in range(4)},
        {
            "channels 5 % off": lambda m: replace(m, channels={u: off_by_5_percent(c) for u, c in m.channels.items()}),
            "her neighbour's channel": lambda m: replace(
                m, channels={u: m.channels[f"u{(int(u[-1]) + 1) % 6}"] for u in m.channels}
            ),
        },
        latitudes=(45.0,),
    ),
    # thesis §4.5, Algorithm 2, line 12: of a cell's records each set of n is equally likely
    "HMC": Law(
        records_kept,
        lambda m: {"kept": np.full(4, 1 / 4)},
        {"one that forgets the last": lambda m: SimpleNamespace(records=3)},
        latitudes=(45.0,),
    ),
    # Abul et al. (2010): pivots are drawn at random from the traces still free
    "W4M": Law(
        first_pivots,
        lambda m: {"pivot": np.full(4, 1 / 4)},
        {"a favoured pivot": lambda m: SimpleNamespace(biased=m)},
        latitudes=(45.0,),
        per_user=False,
    ),
}
LEVEL = 1e-4  # of one test: of about 200 in all none fails by chance in 98 of 100 seeds


def p_value(drawn, law) -> float:
    """Kolmogorov and Smirnov for a continuous law, chi-square for probabilities; what has probability 0 may not be drawn."""
    if not isinstance(law, np.ndarray):
        return stats.kstest(drawn, law.cdf).pvalue
    counts = np.bincount(drawn, minlength=len(law))
    if counts[law == 0].any():
        return 0.0
    return stats.chisquare(counts[law > 0], len(drawn) * law[law > 0]).pvalue if (law > 0).sum() > 1 else 1.0


def quarters(drawn, law) -> np.ndarray:
    """Each draw as one of a few classes: the quarter of a continuous law it falls into, or what was drawn."""
    return drawn if isinstance(law, np.ndarray) else np.minimum(4 * law.cdf(drawn), 3).astype(int)


def p_independent(a, b) -> float:
    """Chi-square of the contingency table of two columns of classes."""
    table = pd.crosstab(a, b).to_numpy()
    return stats.chi2_contingency(table).pvalue if min(table.shape) > 1 else 1.0


RANDOM = {name: m for m in EVERY if (name := type(m).__name__) in LAWS}


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
def test_who_draws_has_a_law(mechanism, traces):
    """Different seeds give different results where a law is named, else the same: no mechanism draws without a law."""
    one, *others = (mechanism.protect(traces, np.random.default_rng(seed)) for seed in range(6))
    name, draws = type(mechanism).__name__, not all(one.equals(other) for other in others)
    assert draws == mechanism.random, f"{name}.random must say whether different seeds give different results"
    assert draws == (name in LAWS), f"LAWS must have an entry for {name} if, and only if, it draws"


@pytest.mark.parametrize(("name", "at"), [(name, at) for name in RANDOM for at in LAWS[name].latitudes])
class TestLaw:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_draws_follow_it(self, name, at, seed):
        mechanism, law = RANDOM[name], LAWS[name]
        drawn = law.draws(mechanism, np.random.default_rng(seed), at)
        for quantity, distribution in law.laws(mechanism).items():
            assert p_value(drawn[quantity].ravel(), distribution) > LEVEL, quantity

    def test_a_slightly_wrong_one_is_told_apart(self, name, at):
        mechanism, law = RANDOM[name], LAWS[name]
        for words, make in law.wrong.items():
            wrong, rng = make(mechanism), np.random.default_rng(1)
            if hasattr(wrong, "biased"):
                wrong, rng = wrong.biased, biased(rng)
            drawn = law.draws(wrong, rng, at)
            least = min(p_value(drawn[q].ravel(), distribution) for q, distribution in law.laws(mechanism).items())
            assert least < LEVEL / 100, words

    def test_draws_are_independent(self, name, at):
        """Of the draw before, of the other users' draws, and of one another (how far says nothing about where to)."""
        mechanism, law = RANDOM[name], LAWS[name]
        drawn, laws = law.draws(mechanism, np.random.default_rng(3), at), law.laws(mechanism)
        classes = {q: quarters(drawn[q], distribution) for q, distribution in laws.items()}
        for quantity, quantity_classes in classes.items():
            for row in quantity_classes:
                assert p_independent(row[:-1], row[1:]) > LEVEL, f"{quantity} and the one before"
        users = [row for quantity_classes in classes.values() for row in quantity_classes]
        for i, one in enumerate(users):
            for other in users[:i]:
                assert p_independent(one, other) > LEVEL


@pytest.mark.parametrize("name", [name for name in RANDOM if LAWS[name].per_user])
def test_a_users_draws_do_not_depend_on_the_others_records(name):
    fewer, more = crowd(45.0, (7, 30)), crowd(45.0, (900, 30))
    one, two = (RANDOM[name].protect(t, np.random.default_rng(5)).query("user == 'u1'") for t in (fewer, more))
    same = np.array_equal(one[["lat", "lng"]].to_numpy(), two[["lat", "lng"]].to_numpy())
    assert same, "draw with mobpriv.base.draws.per_user, or set per_user=False in LAWS if users are drawn together"


def test_in_mercator_metres_the_laws_hold_in_that_plane():
    for name in ("GeoI", "TriLateration"):
        mechanism, law = replace(RANDOM[name], plane="mercator"), LAWS[name]
        drawn = law.draws(mechanism, np.random.default_rng(1), 60.0)
        for quantity, distribution in law.laws(mechanism).items():
            assert p_value(drawn[quantity].ravel(), distribution) > LEVEL


def test_the_harness_sees_dependence():
    """A generator that repeats itself, and users who share one: told apart by the same tests."""
    u = np.random.default_rng(1).random(10_000)
    assert p_independent(quarters(u[:-1], turns), quarters(u[1:], turns)) > LEVEL
    sticky = np.where(np.random.default_rng(2).random(9_999) < 0.1, u[:-1], u[1:])  # one draw in ten is the one before
    assert p_independent(quarters(u[:-1], turns), quarters(sticky, turns)) < LEVEL / 100


def test_thesis_parameters():
    """§3.4.2: ε = 0.01 1/m, α = 200 m, k = 2, δ = 600 m; §5: radius 1 km."""
    shown = {type(m).__name__: m for m in EVERY}
    assert shown["GeoI"].epsilon == 0.01
    assert shown["Promesse"].alpha == 200
    assert shown["TriLateration"].radius == 1000
    assert (shown["W4M"].k, shown["W4M"].delta) == (2, 600)
