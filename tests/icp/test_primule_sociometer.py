"""The Sociometer: its archetypes, its prototypes, its labels; and what is refused."""

import naive_sociometer as naive
import numpy as np
import pytest
from conftest import refusals, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.cluster import KMeans

from mobpriv.base.sharing import sharing
from mobpriv.icp.archetypes import CATEGORIES, PASSING, VISITOR, archetypes, categories_of
from mobpriv.icp.rows import distinct
from mobpriv.icp.sociometer import PROGRAM, Sociometer, labelled, nearest_archetype

WORDS = archetypes()
SHARES = np.array([0, 0.2, 0.4, 0.5, 0.6, 0.8, 1])
profiles = arrays(np.float64, st.tuples(st.integers(1, 12), st.just(24)), elements=st.sampled_from(SHARES))
DAYS = np.tile(np.repeat([5, 2], 3), 4)
WEEKDAY_CELLS = DAYS == 5


def crowd(n, rng, quiet=0.0):
    """Profiles of n of each of three kinds (all over, weekdays' P2, one day once), so many days with a call out of those there are."""
    shape = np.zeros((3 * n, 24))
    shape[:n] = 0.8
    shape[n : 2 * n, naive.WORKING_WEEKDAYS] = 0.8
    shape[2 * n + np.arange(n), rng.integers(0, 24, n)] = 1e-9
    counts = rng.binomial(DAYS, np.maximum(shape, quiet))
    counts[2 * n :] = shape[2 * n :] > 0
    return counts / DAYS, np.repeat(["resident", "commuter", "passing by"], n)


class TestArchetypes:
    def test_the_words_of_the_paper(self):
        by_category = {name: WORDS.values[WORDS.category == i] for i, name in enumerate(CATEGORIES)}
        assert (by_category["resident"] == np.array([[1.0], [0.5], [0.1]])).all()
        away = np.isin(np.arange(24), naive.WORKING_WEEKDAYS)
        assert (by_category["dynamic resident"][:, away] == 0).all()
        assert (by_category["dynamic resident"][:, ~away] == np.array([[1.0], [0.5], [0.1]])).all()
        np.testing.assert_array_equal(by_category["commuter"] + by_category["dynamic resident"], by_category["resident"])
        # two days in one part of one week: in one slot (24 of them) or in all three (8)
        days = by_category["visitor"] * DAYS
        assert sorted((days > 0).sum(axis=1)) == [1] * 24 + [3] * 8
        assert set(days[days > 0]) == {2.0}
        assert ((days > 0).reshape(-1, 8, 3).any(axis=2).sum(axis=1) == 1).all()
        np.testing.assert_array_equal(by_category["passing by"] * DAYS, np.eye(24))

    @pytest.mark.parametrize(
        ("variant", "weeks"), [*(("words", w) for w in (1, 2, 3, 4)), *(("program", w) for w in (2, 3, 4))]
    )
    @pytest.mark.parametrize("distance", ["euclidean", "manhattan"])
    @pytest.mark.parametrize("curve", [(1, 1, 1), (0.1, 1, 0.4)])
    def test_each_archetype_has_its_own_label(self, variant, weeks, distance, curve):
        variant = archetypes(variant, weeks=weeks, visit_days=(2, 3, 4), curve=curve)
        assert variant.values.shape[1] == 6 * weeks
        assert len(np.unique(variant.values, axis=0)) == len(variant.values)
        labels = Sociometer(archetypes=variant, distance=distance).labels(variant.values)
        np.testing.assert_array_equal(labels, variant.category)
        assert (np.diff(variant.category) >= 0).all()

    def test_to_the_cosine_a_day_is_no_other_than_two(self):
        labels = Sociometer(distance="cosine").labels(WORDS.values)
        expected = np.where(WORDS.category == PASSING, VISITOR, WORDS.category)
        np.testing.assert_array_equal(labels, expected)

    def test_the_program(self):
        program = archetypes("program").values.reshape(-1, 4, 2, 3)
        code = archetypes("program").category
        assert np.bincount(code, minlength=5).tolist() == [5, 3, 3, 5, 0]
        assert (program[code == 1][:, :, 0] == 0).all()  # a dynamic resident is there on weekends only
        assert (program[code == 2][:, :, 1] == 0).all()  # and a commuter on weekdays, at all hours
        assert (program[code == 3][:, 1:] == 0).all()
        fading = program[code == 0][:, :, 0, 0].tolist()
        assert [1.0, 0.5, 0.1, 0.0] in fading
        assert [0.5, 0.1, 0.0, 0.0] in fading
        assert PROGRAM.passing == "rule"

    def test_a_curve_lowers_the_first_three_classes_alone(self):
        curved = archetypes(curve=(0.2, 1, 0.5))
        first = WORDS.category < VISITOR
        np.testing.assert_allclose(curved.values[first], WORDS.values[first] * np.tile([0.2, 1, 0.5], 8))
        np.testing.assert_array_equal(curved.values[~first], WORDS.values[~first])

    def test_a_visit_takes_no_more_days_than_a_weekend_has(self):
        longer = archetypes(visit_days=(2, 4))
        visits = longer.values[longer.category == VISITOR].reshape(-1, 4, 2, 3)
        assert set(visits[:, :, 1][visits[:, :, 1] > 0]) == {1.0}
        assert set(visits[:, :, 0][visits[:, :, 0] > 0]) == {0.4, 0.8}
        assert len(visits) == 32 + 16  # a weekend of two days is not there twice


test_what_no_archetypes_can_be = refusals(
    ({"variant": "paper"}, 'variant must be "words" or "program"'),
    ({"intensities": ()}, r"intensities must be one number or more \(got none\)"),
    ({"intensities": (0.5, 0)}, "intensities must be shares of the days, above 0 and at most 1"),
    ({"intensities": 2}, "intensities must be shares of the days"),
    ({"visit_days": (1,)}, "visit_days must be whole numbers in 2 … 5: one day is a passer-by"),
    ({"visit_days": (6,)}, "visit_days must be whole numbers in 2 … 5"),
    ({"curve": (1, 1)}, "curve must be a number for each of P1, P2 and P3"),
    ({"curve": (1, 0, 1)}, "curve must be a number for each of P1, P2 and P3, above 0 in P2"),
    ({"curve": (0, 1, 0)}, "and in one more, where a dynamic resident calls"),
    ({"curve": (1, np.nan, 1)}, r"curve must be a number in \[0, 1\]"),
    ({"weeks": 5}, "weeks must be a whole number in 1 … 4"),
    ({"weeks": 1, "variant": "program"}, "of one week the program cannot tell a visitor from a commuter"),
    call=lambda wrong: archetypes(**wrong),
)


class TestLabels:
    @settings(max_examples=25)
    @given(profiles, st.sampled_from(["euclidean", "manhattan", "cosine"]), st.sampled_from(["archetype", "rule"]))
    def test_equal_the_definition(self, values, distance, passing):
        before = values.copy()
        sociometer = Sociometer(prototypes=4, restarts=1, distance=distance, passing=passing)
        fitted = sociometer.fit(values, None, np.random.default_rng(1))
        categories = [CATEGORIES[c] for c in WORDS.category]
        expected = naive.labels(
            values.tolist(),
            fitted.prototypes.tolist(),
            WORDS.values.tolist(),
            categories,
            getattr(naive, distance),
            passing == "rule",
        )
        assert fitted.label(values).tolist() == expected
        np.testing.assert_array_equal(values, before)

    def test_the_rule_is_for_one_cell_with_less_than_half_of_its_days(self):
        values = np.zeros((4, 24))
        values[0, 1] = 0.4
        values[1, 4] = 0.5  # a day of a weekend
        values[2, [1, 2]] = 0.2
        values[3, 1] = 0.6
        fitted = PROGRAM.fit(values, None, np.random.default_rng(1))
        assert (fitted.codes(values) == PASSING).tolist() == [True, False, False, False]

    def test_people_of_one_day_each_in_one_prototype_are_taken_for_a_commuter(self):
        """Their mean is nearly empty, and 0.1 in the weekdays' P2 is no farther from nothing than one day in one cell."""
        nothing = np.zeros((1, 24))
        assert Sociometer().labels(nothing).tolist() == [CATEGORIES.index("commuter")]
        assert Sociometer(archetypes=archetypes(intensities=(1, 0.5))).labels(nothing).tolist() == [PASSING]
        days = np.eye(24) / DAYS
        assert Sociometer().labels(days).tolist() == [PASSING] * 24
        assert Sociometer().labels(days[WEEKDAY_CELLS].mean(axis=0, keepdims=True)).tolist() == [CATEGORIES.index("commuter")]

    def test_a_profile_without_a_call_has_the_same_direction_as_any(self):
        assert Sociometer(distance="cosine").labels(np.zeros((1, 24))).tolist() == [CATEGORIES.index("resident")]

    def test_of_equally_near_archetypes_the_first_counts(self):
        middle = np.full((1, 24), 0.5)
        assert nearest_archetype(middle, np.array([np.zeros(24), np.ones(24)])).tolist() == [0]
        assert nearest_archetype(middle, np.array([np.ones(24), np.zeros(24)])).tolist() == [0]
        for cells in range(1, 25):  # the same direction, but for rounding
            along = (np.arange(24) < cells) * np.array([[0.1], [0.7], [0.6]])
            assert nearest_archetype(0.3 * (along[:1] > 0), along, "cosine").tolist() == [0]

    def test_a_label_depends_on_no_other_profile(self, threads):
        values = crowd(100, np.random.default_rng(4), 0.1)[0]
        fitted = Sociometer(prototypes=20, restarts=1).fit(values, None, np.random.default_rng(5))
        codes = fitted.codes(values)
        np.testing.assert_array_equal(codes, [fitted.codes(values[i : i + 1])[0] for i in range(len(values))])
        np.testing.assert_array_equal(fitted.nearest(values[::-1]), fitted.nearest(values)[::-1])

    def test_they_are_a_categorical_in_the_papers_order(self):
        assert categories_of(np.array([4, 0], np.int8)).tolist() == ["passing by", "resident"]
        assert list(categories_of(np.array([0])).categories) == list(CATEGORIES)


class TestPrototypes:
    @given(profiles, st.lists(st.integers(1, 4), min_size=12, max_size=12))
    def test_equal_profiles_are_one(self, values, sizes):
        sizes = sizes[: len(values)]
        merged = distinct(values, sizes)
        counts = {}
        for row, size in zip(map(tuple, values), sizes, strict=True):
            counts[row] = counts.get(row, 0) + size
        assert [tuple(row) for row in merged.values] == sorted(counts)
        assert merged.sizes.tolist() == [counts[row] for row in sorted(counts)]
        np.testing.assert_array_equal(merged.values[merged.inverse], values)

    def test_equal_profiles_of_noise_are_one_too(self):
        """More different numbers than 62 bits hold a key of."""
        values = np.random.default_rng(1).random((3000, 24))
        repeated = np.r_[values, values[::-1]]
        merged = distinct(repeated)
        np.testing.assert_array_equal(merged.values, values[np.lexsort(values.T[::-1])])
        assert set(merged.sizes) == {2}
        unrepeated = distinct(values)  # all different after a few cells, of which no more are looked at
        np.testing.assert_array_equal(unrepeated.values, merged.values)
        np.testing.assert_array_equal(unrepeated.values[unrepeated.inverse], values)

    @pytest.mark.parametrize("start", ["random", "k-means++"])
    def test_order_sizes_and_threads_change_nothing(self, start, threads):
        values = crowd(150, np.random.default_rng(1), 0.1)[0]
        sociometer = Sociometer(prototypes=12, restarts=2, start=start)

        def fit(rows, sizes=None):
            return sociometer.fit(rows, sizes, np.random.default_rng(7))

        first = fit(values)
        order = np.random.default_rng(2).permutation(len(values))
        unique = distinct(values)
        for other in (fit(values[order]), fit(unique.values, unique.sizes), fit(values, np.ones(len(values)))):
            np.testing.assert_array_equal(other.prototypes, first.prototypes)
            np.testing.assert_array_equal(other.category, first.category)
            np.testing.assert_array_equal(other.sizes, first.sizes)
        assert first.sizes.sum() == len(values)
        assert not np.array_equal(sociometer.fit(values, None, np.random.default_rng(8)).prototypes, first.prototypes)

    def test_settled_prototypes_are_the_means_of_their_profiles(self):
        values, rng = crowd(80, np.random.default_rng(1), 0.15)[0], np.random.default_rng
        settled = Sociometer(prototypes=8, restarts=3, iterations=300, start="k-means++").fit(values, None, rng(1))
        nearest = settled.nearest(values)
        means = np.array([values[nearest == k].mean(axis=0) for k in range(8)])
        np.testing.assert_allclose(settled.prototypes, means, atol=0.01)
        hasty = Sociometer(prototypes=8, restarts=1, iterations=1).fit(values, None, rng(1))
        reached = naive.spread_of(values.tolist(), settled.prototypes.tolist())
        assert reached <= naive.spread_of(values.tolist(), hasty.prototypes.tolist())
        # no eight profiles at random do as well
        chosen = rng(2).permutation(len(values))[:8]
        assert reached < 0.8 * naive.spread_of(values.tolist(), values[chosen].tolist())

    def test_of_few_different_profiles_each_is_a_prototype(self):
        values = np.repeat(np.eye(24)[:3] / 5, [1, 2, 3], axis=0)
        fitted = Sociometer().fit(values, None, np.random.default_rng(1))
        np.testing.assert_allclose(fitted.prototypes, np.eye(24)[[2, 1, 0]] / 5)
        assert fitted.sizes.tolist() == [3, 2, 1]
        assert fitted.label(values).tolist() == ["passing by"] * 6

    def test_frozen_prototypes_label_other_profiles(self):
        values = crowd(60, np.random.default_rng(2))[0]
        fitted = Sociometer(prototypes=70, restarts=2).fit(values, None, np.random.default_rng(3))
        others, true_labels = crowd(40, np.random.default_rng(9))
        assert (np.asarray(fitted.label(others)) == true_labels).mean() > 0.95
        assert fitted.label(np.full((1, 24), 0.9)).tolist() == ["resident"]

    def test_in_each_municipality_for_itself(self):
        values = crowd(100, np.random.default_rng(1), 0.3)[0]
        where = np.random.default_rng(2).permutation(np.repeat(["b", "a", "c"], 100))
        sociometer = Sociometer(prototypes=10, restarts=1)
        codes = labelled(sociometer, values, np.random.default_rng(3), where)
        for name, child in zip("abc", np.random.default_rng(3).spawn(3), strict=True):
            town_values = values[where == name]
            np.testing.assert_array_equal(codes[where == name], sociometer.fit(town_values, None, child).codes(town_values))
        order = np.random.default_rng(4).permutation(len(values))
        np.testing.assert_array_equal(labelled(sociometer, values[order], np.random.default_rng(3), where[order]), codes[order])
        shared = labelled(sociometer, values, np.random.default_rng(3))
        np.testing.assert_array_equal(shared, sociometer.fit(values, None, np.random.default_rng(3)).codes(values))
        assert not np.array_equal(shared, codes)

    def test_of_one_week(self):
        sociometer = Sociometer(archetypes=archetypes(weeks=1))
        values = np.array([[0, 0.8, 0, 0, 0, 0], [0.8, 0.8, 0.8, 1, 1, 1]])
        assert sociometer.fit(values, None, np.random.default_rng(1)).label(values).tolist() == ["commuter", "resident"]


class TestRefused:
    good = np.full((3, 24), 0.2)

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            (good[:, :23], r"profiles must have the shape \(n, 6 · weeks\), n at least 1 \(got \(3, 23\)\)"),
            (good[:0], r"n at least 1 \(got \(0, 24\)\)"),
            (good[0], r"\(got \(24,\)\)"),
            (good[:, :6], r"profiles must have the 24 cells .*got 6.: archetypes.weeks=….*fewer weeks"),
            (np.where(np.eye(3, 24) > 0, np.nan, good), r"3 profiles have others, first: nan in row 0, cell 0"),
            (np.where(np.eye(3, 24, 4) > 0, 5, good), r"first: 5.0 in row 0, cell 4\): divide counts by days, clamp noise"),
            (good - 0.3, r"values of a profile must be shares of days, in \[0, 1\]"),
            ([["a"] * 24], "profiles must be an array of numbers"),
        ],
    )
    def test_profiles(self, values, words):
        refuses(words, lambda: Sociometer().fit(values, None, np.random.default_rng(1)))
        refuses(words, lambda: Sociometer().fit(self.good, None, np.random.default_rng(1)).label(values))

    @pytest.mark.parametrize("sizes", [[1, 1], [1, 0, 1], [1, np.nan, 1], [1, 1.5, 1], ["a", "b", "c"], 3])
    def test_sizes(self, sizes):
        with pytest.raises(ValueError, match=r"sizes must be a whole number, at least 1, for each of the 3 profiles"):
            Sociometer().fit(self.good, sizes, np.random.default_rng(1))

    @pytest.mark.parametrize("where", [["a", "b"], ["a", None, "b"]])
    def test_municipalities(self, where):
        with pytest.raises(ValueError, match="where must name the municipality of each of the 3 profiles"):
            labelled(Sociometer(), self.good, np.random.default_rng(1), where)


test_what_no_sociometer_can_be = refusals(
    ({"prototypes": 0}, "prototypes must be a whole number, at least 1"),
    ({"prototypes": 2.5}, "prototypes must be a whole number"),
    ({"restarts": True}, "restarts must be a whole number"),
    ({"iterations": np.nan}, "iterations must be a whole number"),
    ({"start": "farthest"}, 'start must be "random" or "k-means\\+\\+"'),
    ({"distance": "hamming"}, 'distance must be "euclidean", "manhattan" or "cosine"'),
    ({"passing": None}, 'passing must be "archetype" or "rule"'),
    ({"archetypes": WORDS.values}, r"archetypes must be what archetypes\(…\) returns"),
    call=lambda wrong: Sociometer(**wrong),
)


def test_processes_of_one_build_share_their_prototypes(monkeypatch):
    monkeypatch.setattr("mobpriv.base.sharing._SHORTEST", 0.0)
    values = np.random.default_rng(1).random((300, 24))
    small = Sociometer(prototypes=5)

    def fitted():
        return small.fit(values, None, np.random.default_rng(2)).prototypes

    unshared = fitted()
    with sharing():
        np.testing.assert_array_equal(fitted(), unshared)
        monkeypatch.setattr(KMeans, "fit", None)  # nothing can be grouped any more
        np.testing.assert_array_equal(fitted(), unshared)
        for sociometer, data, sizes, seed in (
            (Sociometer(prototypes=6), values, None, 2),
            (small, values / 2, None, 2),
            (small, values, np.full(300, 2), 2),
            (small, values, None, 3),
        ):
            rng = np.random.default_rng(seed)
            with pytest.raises(TypeError):
                sociometer.fit(data, sizes, rng)
