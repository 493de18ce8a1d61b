"""The nearest published profile (its contract: test_primule_linking.py): its guesses against the definition, municipalities, what is refused."""

from fractions import Fraction

import naive_primule as naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.attacks.icp import Linking, Nearest
from mobpriv.attacks.icp.linking import risk
from mobpriv.attacks.icp.nearest import guesses
from mobpriv.attacks.policies import min_k, reidentified
from mobpriv.mechanisms.icp import Primule

TENTHS = st.integers(0, 10)
ROWS = st.lists(st.lists(TENTHS, min_size=6, max_size=6), min_size=1, max_size=9).map(np.array)
CELLS = st.none() | st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True)


def table(rows):
    return pd.DataFrame(rows, [f"u{k}" for k in range(len(rows))])


@settings(deadline=None)
@given(ROWS, st.randoms(), CELLS)
def test_guesses_equal_the_definition(known, random, h):
    """Also with cells that are not known, and in municipalities for themselves."""
    published = known[random.sample(range(len(known)), len(known))]
    said = np.array([[Fraction(-1) if random.random() < 0.3 else Fraction(int(v), 10) for v in row] for row in known])
    fractions = [[Fraction(int(v), 10) for v in row] for row in published]
    town = np.array([random.choice("PL") for _ in known])
    found = guesses(said.astype(float), published / 10, h, town)
    every = range(6) if h is None else h
    for i, pb in enumerate(said):
        here = np.flatnonzero(town == town[i])
        near = here[naive.nearest(pb, [fractions[k] for k in here], every)]
        assert (found.many[i], found.own[i]) == (len(near), i in near)
        assert found.chance[i] == (1 / len(near) if i in near else 0)
        exact = float(sum((pb[j] - fractions[near[0]][j]) ** 2 for j in every if pb[j] >= 0)) ** 0.5
        assert found.distance[i] == pytest.approx(exact, abs=1e-9)
    some = np.array(random.sample(range(len(known)), random.randint(1, len(known))))
    asked = guesses(said[some].astype(float), published / 10, h, town, own=some)
    assert all(np.array_equal(of, every_of[some]) for of, every_of in zip(asked, found, strict=True))
    ranking = Nearest(None if h is None else tuple(h)).fit(table(said.astype(float))).rank(table(published / 10)).to_numpy()
    alone = guesses(said.astype(float), published / 10, h)
    assert np.allclose(ranking.min(axis=0), alone.distance)
    assert (np.isclose(ranking, ranking.min(axis=0), atol=1e-7).sum(axis=0) >= alone.many).all()


@settings(deadline=None, max_examples=30)
@given(ROWS, CELLS)
def test_of_profiles_published_as_they_are_it_is_the_linking_attack(rows, h):
    found = guesses(rows / 10, rows / 10, h)
    assert found.chance.tolist() == risk(rows / 10, h).tolist()
    assert (found.distance == 0).all()
    near, exact = (kind(h).fit(table(rows / 10)).rank(table(rows / 10)) for kind in (Nearest, Linking))
    assert np.array_equal(near == 0, exact == 0)


def test_k_anonymous_profiles_keep_their_promise_and_exact_matching_finds_nobody():
    """Two pairs that are far from each other: merged, each is the nearest of its own two, and equal to none."""
    rows = np.zeros((4, 6))
    rows[:, 0] = (0, 0.2, 0.8, 1)
    published = Primule(2).protect(pd.DataFrame(rows), np.random.default_rng()).values.to_numpy()
    assert published[:, 0] == pytest.approx([0.1, 0.1, 0.9, 0.9])
    assert guesses(rows, published).chance.tolist() == [0.5] * 4
    assert risk(rows, published=published).tolist() == [0] * 4


def test_the_policies_answer():
    rows = np.zeros((3, 6))
    rows[1, 0], rows[2, 0] = 0.5, 1
    ranking = Nearest().fit(table(rows)).rank(table(rows).iloc[::-1])
    assert ranking.to_numpy().tolist() == [[1, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 1]]
    assert min_k(ranking).tolist() == [1, 1, 1]
    assert reidentified(ranking).all()


def test_nobody():
    assert [len(of) for of in guesses(np.zeros((0, 6)), np.zeros((0, 6)))] == [0, 0, 0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Nearest(5), "^h must be the first 1 to 4 weeks"),
        (lambda: guesses(np.zeros((2, 6)), np.zeros((3, 6))), "row i of both must be the same person's"),
        (lambda: guesses(np.zeros((1, 6)), np.zeros((3, 6)), own=[3]), "a row of the 3 published profiles for each of the 1"),
        (lambda: guesses(np.full((1, 6), np.nan), np.zeros((1, 6))), "known profiles must be finite"),
        (lambda: guesses(np.zeros((1, 6)), np.full((1, 6), -1)), "published profiles must be finite and not negative"),
        (lambda: guesses(np.zeros((1, 6)), np.zeros((1, 6)), [6]), "0 to 5, each once .got 6"),
        (lambda: guesses(np.zeros((2, 6)), np.zeros((2, 6)), within=["a"]), "the municipality of each of the 2 profiles"),
    ],
)
def test_what_no_attack_can_do_is_refused(call, words):
    with pytest.raises(ValueError, match=words) as refused:
        call()
    assert "\n" not in str(refused.value)
