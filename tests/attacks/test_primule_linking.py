"""The linking attack on call profiles and the nearest published one: the contract of attacks, §5 against its definition, risk, municipalities."""

import inspect
import json
from fractions import Fraction
from itertools import combinations

import naive_primule as naive
import numpy as np
import pandas as pd
import pytest
from conftest import refusals, refuses
from hypothesis import given, settings
from hypothesis import strategies as st

import mobpriv.attacks.icp
from mobpriv.attacks.icp import Linking, Nearest, linking, nearest
from mobpriv.attacks.icp.linking import anonymity_across_municipalities, anonymity_sets, candidates, risk
from mobpriv.attacks.icp.nearest import guesses
from mobpriv.attacks.policies import min_k, reidentified
from mobpriv.icp.profiles import keys, known_cells, values

FEW = st.tuples(*[st.integers(0, 1)] * 3, *[st.just(0)] * 18, *[st.integers(0, 1)] * 3)  # 64 profiles: many are equal
CROWD = st.lists(FEW, min_size=1, max_size=12).map(np.array)
CELLS = st.none() | st.integers(1, 4) | st.lists(st.integers(0, 23), min_size=1, max_size=6, unique=True)


def h_of(h):
    return list(range(24)) if h is None else list(range(6 * h)) if isinstance(h, int) else h


def table(rows, users=None):
    return pd.DataFrame(rows, [f"u{k}" for k in range(len(rows))] if users is None else users)


@given(CROWD, CELLS)
def test_c_and_the_risk_equal_the_definition(days, h):
    shares = values(keys(days))
    matches = [naive.matched(row, shares, h_of(h)) for row in shares]
    assert candidates(keys(days), h=h).tolist() == candidates(shares, h=h).tolist() == [len(c) for c in matches]
    assert risk(keys(days), h).tolist() == risk(shares, h).tolist() == [1 / len(c) for c in matches]
    group = anonymity_sets(shares, h)
    assert [np.flatnonzero(group == g).tolist() for g in group] == matches
    assert list(dict.fromkeys(group)) == list(range(group.max() + 1))
    assert np.array_equal(group, anonymity_sets(keys(days), h))


@given(CROWD, CROWD, CELLS, st.randoms())
def test_c_of_what_is_known_in_part(days, others, h, random):
    """PB with −1 in any cells, among other published profiles."""
    pb, published = values(keys(days)), values(keys(others))
    pb[np.array([[random.random() < 0.3 for _ in row] for row in pb])] = -1
    matches = [naive.matched(row, published, h_of(h)) for row in pb]
    assert candidates(pb, published, h).tolist() == [len(c) for c in matches]
    ranking = Linking(h).fit(table(pb)).rank(table(published))
    assert [np.flatnonzero(column == 0).tolist() for column in ranking.to_numpy().T] == matches
    assert np.isin(ranking.to_numpy(), [0, np.inf]).all()
    if len(pb) == len(published):
        expected = [1 / len(c) if row in c else 0 for row, c in enumerate(matches)]
        assert risk(pb, h, published).tolist() == expected


@given(CROWD, CROWD, CELLS)
def test_keys_among_others(days, others, h):
    assert candidates(keys(days), keys(others), h).tolist() == candidates(days, others, h).tolist()
    if len(days) == len(others):
        assert risk(keys(days), h, keys(others)).tolist() == risk(days, h, others).tolist()


@given(st.lists(st.tuples(st.sampled_from("PL"), FEW), min_size=1, max_size=12), CELLS)
def test_only_profiles_of_ones_own_municipality_match(rows, h):
    towns, days = np.array([town for town, _ in rows]), np.array([row for _, row in rows])
    expected = np.zeros(len(rows))
    for town in set(towns):
        expected[towns == town] = risk(keys(days[towns == town]), h)
    for profiles in (keys(days), days):
        assert risk(profiles, h, within=towns).tolist() == expected.tolist()
        assert risk(profiles, h, profiles, within=towns).tolist() == expected.tolist()
    back = candidates(days, days[::-1], h, towns, towns[::-1])
    assert back.tolist() == candidates(days, h=h, within=towns).tolist()


def test_who_is_not_matched_is_not_at_risk():
    true = np.zeros((3, 24))
    published = true.copy()
    published[2, 0] = 0.1
    assert risk(true, None, published).tolist() == [0.5, 0.5, 0]
    # merged profiles are equal to the last bit, whatever their values
    assert risk(np.full((7, 24), 0.1 + 0.2)).tolist() == [1 / 7] * 7
    assert risk(np.array([[0.0] * 24, [-0.0] * 24])).tolist() == [0.5, 0.5]


class TestContract:
    """What every attack promises (tests/attacks/test_attacks.py), on profiles."""

    def test_the_face_shows_every_attack(self):
        modules = (linking, nearest)
        classes = [c for m in modules for _, c in inspect.getmembers(m, inspect.isclass) if c.__module__ == m.__name__]
        assert [c.__name__ for c in classes if hasattr(c, "rank")] == mobpriv.attacks.icp.__all__

    def test_the_policies_answer(self):
        days = np.zeros((4, 24), int)
        days[[1, 2], 4], days[3, 4] = 1, 2
        profiles = table(values(keys(days)), list("abcd"))
        before = profiles.copy()
        ranking = Linking(4).fit(profiles).rank(profiles.iloc[::-1])
        assert ranking.index.tolist() == list("dcba")
        assert ranking.columns.tolist() == list("abcd")
        assert min_k(ranking).to_dict() == {"a": 1, "b": 2, "c": 2, "d": 1}
        assert (1 / min_k(ranking)[profiles.index]).tolist() == risk(profiles.to_numpy()).tolist()
        assert reidentified(ranking).sum() == 2
        pd.testing.assert_frame_equal(profiles, before)

    @pytest.mark.parametrize("kind", [Linking, Nearest])
    def test_fit_leaves_the_attack_as_it_was(self, kind):
        attack, profiles = kind((0, 1)), table(np.zeros((2, 24)))
        assert attack.fit(profiles) == attack == kind([0, 1])
        assert attack.known_ is None
        refuses("fit the attack on known profiles first", attack.rank, profiles)

    @pytest.mark.parametrize(("kind", "instead"), [(Linking, "candidates"), (Nearest, "guesses")])
    def test_a_ranking_that_no_memory_holds(self, kind, instead, monkeypatch):
        monkeypatch.setattr(linking, "MAX_ENTRIES", 3)
        with pytest.raises(ValueError, match=rf"a ranking of 2 × 2 profiles .*use {instead}\(\), which holds none"):
            kind().fit(table(np.zeros((2, 24)))).rank(table(np.zeros((2, 24))))

    @pytest.mark.parametrize("kind", [Linking, Nearest])
    @pytest.mark.parametrize(
        ("known", "published", "words"),
        [
            (np.zeros((1, 24)), None, "known profiles must be a table"),
            (table(np.zeros((2, 24)), ["a", "a"]), None, "every user must occur once in the known profiles .a"),
            (table([[np.nan] * 24]), None, "known profiles must be finite and not negative, or −1 .* row 0, cell 0"),
            (table(np.zeros((1, 24))), np.zeros((1, 24)), "published profiles must be a table"),
            (table(np.zeros((1, 24))), table(np.full((1, 24), -1)), "published profiles .*got -1.0 in row 0"),
            (table(np.zeros((1, 24))), table(np.zeros((1, 6))), "must have the cells of the known ones"),
        ],
    )
    def test_what_cannot_be_ranked_is_refused(self, kind, known, published, words):
        refuses(words, lambda: kind().fit(known).rank(published))

    def test_equal_ways_to_say_h(self):
        assert Linking(2.0) == Linking(2) == Linking(known_cells(2)) != Linking()
        assert Linking(np.array([3, 1])) == Linking([3, 1]) == Linking((1, 3))


test_what_no_attack_can_do_is_refused = refusals(
    *((lambda h=h: Linking(h), "^h must be the first 1 to 4 weeks, or a list of cells") for h in (5, "all", [], [1.5], [-1])),
    (lambda: Linking([1, 1]), r"each once .got \[1, 1\]"),
    (lambda: Linking([24]), "0 to 23, each once .got 24"),
    (lambda: risk(np.zeros((1, 6)), 2), "0 to 5, each once .got 6"),
    (lambda: risk(np.array([[0.5, np.inf]]), [0]), "finite and not negative .got inf in row 0, cell 1"),
    (lambda: risk(np.array([[-1.0] * 24])), "finite and not negative"),
    (lambda: risk(np.array([-1])), "a key must be"),
    (lambda: risk(np.array([["x"]])), "must be numbers"),
    (lambda: risk(np.zeros((2, 24)), None, np.zeros((3, 24))), "row i of both must be the same person's"),
    (lambda: risk(np.zeros(2, int), within=["a"]), "the municipality of each of the 2 profiles"),
    (lambda: risk(np.zeros(2, int), within=["a", None]), "got 1 of 2"),
    (lambda: candidates(np.zeros(2, int), np.zeros((2, 24))), "both be keys, or both be values"),
    (lambda: candidates(np.zeros((2, 24)), np.zeros((2, 6))), "the same cells .got 24 and 6"),
    (lambda: anonymity_across_municipalities(CROWDED, 0), "max_known must be a whole number, at least 1"),
    (lambda: anonymity_across_municipalities(CROWDED, 1, values=np.zeros((1, 24))), "a row for each of the 4 profiles"),
    (lambda: anonymity_across_municipalities(CROWDED.assign(user=None), 1), "a user and a municipality .4 have not"),
    (lambda: Nearest(5), "^h must be the first 1 to 4 weeks"),
    (lambda: guesses(np.zeros((2, 6)), np.zeros((3, 6))), "row i of both must be the same person's"),
    (lambda: guesses(np.zeros((1, 6)), np.zeros((3, 6)), own=[3]), "a row of the 3 published profiles for each of the 1"),
    (lambda: guesses(np.full((1, 6), np.nan), np.zeros((1, 6))), "known profiles must be finite"),
    (lambda: guesses(np.zeros((1, 6)), np.full((1, 6), -1)), "published profiles must be finite and not negative"),
    (lambda: guesses(np.zeros((1, 6)), np.zeros((1, 6)), [6]), "0 to 5, each once .got 6"),
    (lambda: guesses(np.zeros((2, 6)), np.zeros((2, 6)), within=["a"]), "the municipality of each of the 2 profiles"),
)


def crowd_of(rows):
    """``Icps`` of (user, municipality, days)."""
    user, town, days = zip(*sorted(rows, key=lambda r: (r[1], r[0])), strict=True)
    return pd.DataFrame({"user": pd.Categorical(user), "municipality": pd.Categorical(town), "key": keys(np.array(days))})


def days_of(**cells):
    return [cells.get(f"c{k}", 0) for k in range(24)]


CROWDED = crowd_of([("a", "P", days_of(c1=2)), ("a", "L", days_of(c1=1)), ("b", "P", days_of(c1=2)), ("c", "L", days_of(c1=1))])


def test_several_municipalities_of_one_person():
    """a is known by Pisa, as b is; by Pisa and Lucca she is alone. b and c have one each: more cannot be known."""
    assert anonymity_across_municipalities(CROWDED, 1).to_dict() == {"a": 2, "b": 2, "c": 2}
    assert anonymity_across_municipalities(CROWDED, 2).to_dict() == {"a": 1, "b": 2, "c": 2}
    assert anonymity_across_municipalities(CROWDED, 9).to_dict() == {"a": 1, "b": 2, "c": 2}
    # published all alike, only the places tell
    assert anonymity_across_municipalities(CROWDED, 2, values=np.zeros((4, 24))).to_dict() == {"a": 1, "b": 2, "c": 2}
    assert anonymity_across_municipalities(CROWDED.iloc[:0], 1).tolist() == []


rows_of = st.dictionaries(st.tuples(st.sampled_from("abcde"), st.sampled_from("PLM")), FEW, min_size=1).map(
    lambda by_pair: [(u, m, days) for (u, m), days in by_pair.items()]
)


@settings(max_examples=30)
@given(rows_of, st.integers(1, 3), CELLS)
def test_the_k_that_remains_equals_the_definition(rows, max_municipalities, h):
    k = anonymity_across_municipalities(crowd_of(rows), max_municipalities, h)
    assert k.to_dict() == {
        u: naive.k_across_municipalities(rows, u, max_municipalities, h_of(h)) for u in sorted({r[0] for r in rows})
    }
    assert np.array_equal(
        k, anonymity_across_municipalities(crowd_of(rows).sample(frac=1, random_state=1), max_municipalities, h)
    )
    table = crowd_of(rows)
    assert np.array_equal(k, anonymity_across_municipalities(table, max_municipalities, h, values(table["key"].to_numpy())))
    if max_municipalities > 1:
        assert (anonymity_across_municipalities(crowd_of(rows), max_municipalities - 1, h) >= k).all()


class TestReference:
    """PRUDEnce's risks as scikit-mobility has them, of which ours is the equality of some cells: a person's risk is the highest among all
    sets of so many of her cells."""

    @pytest.mark.parametrize("most", [1, 2, 3])
    @pytest.mark.parametrize(
        ("attack", "cells", "kind"),
        [
            ("UniqueLocationAttack", ["place"], "presence"),
            ("LocationFrequencyAttack", ["place"], "number"),
            ("LocationProbabilityAttack", ["place"], "share"),
            ("LocationTimeAttack", ["place", "day"], "presence"),  # that "hour" is a day is a known fault of the peer
        ],
    )
    def test_risks(self, reference, attack, cells, kind, most):
        file = reference / "risk" / "skmob_risk.json"
        if not file.is_file():
            pytest.skip("needs risk/skmob_risk.json among the reference")
        recorded = json.loads(file.read_text())
        visits = pd.DataFrame(recorded["input"])
        place = visits["lat"].map("{:.2f}".format) + visits["lng"].map(" {:.2f}".format)
        visits = visits.assign(place=place, day=visits["datetime"].str[:10])
        profiles = pd.crosstab(visits["uid"], [visits[name] for name in cells])
        number = profiles.to_numpy(float)
        rows = {"presence": np.sign(number), "number": number, "share": number / number.sum(axis=1, keepdims=True)}[kind]
        risks = {}
        for user, row in zip(profiles.index, rows, strict=True):
            visited = np.flatnonzero(row)
            sets = [list(chosen) for chosen in combinations(visited, min(most, len(visited)))]
            pb = np.full((len(sets), len(row)), -1.0)
            for one, chosen in zip(pb, sets, strict=True):
                one[chosen] = row[chosen]
            risks[str(user)] = float((1 / candidates(pb, rows)).max())
        assert risks == recorded["risk"][f"{attack} k={most}"]


TENTHS = st.integers(0, 10)
ROWS = st.lists(st.lists(TENTHS, min_size=6, max_size=6), min_size=1, max_size=9).map(np.array)
PLACES = st.none() | st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True)


@given(ROWS, st.randoms(), PLACES)
def test_guesses_equal_the_definition(known, random, h):
    """Also with cells that are not known, and in municipalities for themselves."""
    published = known[random.sample(range(len(known)), len(known))]
    partly_known = np.array([[Fraction(-1) if random.random() < 0.3 else Fraction(int(v), 10) for v in row] for row in known])
    fractions = [[Fraction(int(v), 10) for v in row] for row in published]
    town = np.array([random.choice("PL") for _ in known])
    guess = guesses(partly_known.astype(float), published / 10, h, town)
    every = range(6) if h is None else h
    for i, pb in enumerate(partly_known):
        here = np.flatnonzero(town == town[i])
        near = here[naive.nearest(pb, [fractions[k] for k in here], every)]
        assert (guess.ties[i], guess.includes_target[i]) == (len(near), i in near)
        assert guess.chance[i] == (1 / len(near) if i in near else 0)
        exact = float(sum((pb[j] - fractions[near[0]][j]) ** 2 for j in every if pb[j] >= 0)) ** 0.5
        assert guess.distance[i] == pytest.approx(exact, abs=1e-9)
    some = np.array(random.sample(range(len(known)), random.randint(1, len(known))))
    guess_of_some = guesses(partly_known[some].astype(float), published / 10, h, town, own=some)
    assert all(np.array_equal(part, full[some]) for part, full in zip(guess_of_some, guess, strict=True))
    ranking = (
        Nearest(None if h is None else tuple(h)).fit(table(partly_known.astype(float))).rank(table(published / 10)).to_numpy()
    )
    without_places = guesses(partly_known.astype(float), published / 10, h)
    assert np.allclose(ranking.min(axis=0), without_places.distance)
    assert (np.isclose(ranking, ranking.min(axis=0), atol=1e-7).sum(axis=0) >= without_places.ties).all()


def test_the_policies_answer():
    rows = np.zeros((3, 6))
    rows[1, 0], rows[2, 0] = 0.5, 1
    ranking = Nearest().fit(table(rows)).rank(table(rows).iloc[::-1])
    assert ranking.to_numpy().tolist() == [[1, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 1]]
    assert min_k(ranking).tolist() == [1, 1, 1]
    assert reidentified(ranking).all()
    assert [len(of) for of in guesses(np.zeros((0, 6)), np.zeros((0, 6)))] == [0, 0, 0]  # nobody
