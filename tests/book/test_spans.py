"""What a comparison decides over intervals: never against a point of the box, and where it is monotone as its corners do."""

import itertools
import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mobpriv.book import spans
from mobpriv.book.expressions import of_mean, throughout, truth_value_of, undecided_by, widened


def estimate(low: float, value: float, high: float) -> dict[str, float]:
    return {"value": value, "low": low, "high": high}


X = {"x": estimate(0.13, 0.33, 0.62), "y": estimate(0.4, 0.5, 0.6), "z": estimate(2.0, 3.0, 4.0)}


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("abs(x - 0.40) <= 0.02", None),  # neither end and not the value lies there, but a part of the interval does
        ("abs(x - 0.40) > 0.02", None),
        ("abs(x - 0.70) <= 0.05", False),
        ("abs(x - 0.70) <= 0.57", True),
        ("0.38 < x < 0.42", None),
        ("not 0.38 < x < 0.42", None),
        ("x < 0.38 or x > 0.42", None),
        ("x < 0.70 or x > 0.42", True),
        ("abs(x - y) < 0.01", None),
        ("x == 0.4", None),
        ("x != 0.4", None),
        ("(x - 0.2) * (x - 0.6) < 0.05", True),  # at most .0294, at the lower end
        ("(x - 0.2) * (x - 0.6) >= 0", None),  # below 0 between .2 and .6 only
        ("min(abs(x - 0.2), abs(x - 0.5)) > 0", None),
        ("max(x, y, z) == z", True),
        ("max(x, y) - x >= 0", True),
        ("x - x == 0", True),
        ("x / (x + y) < 0.61", True),
        ("x / (x + y) < 0.6", None),
        ("1 / (x - 0.3) > 0", None),
    ],
)
def test_a_relation_may_turn_within_the_intervals(expression, holds):
    assert throughout(expression, X) is holds


def test_a_point_beside_an_interval_is_a_number():
    point, interval = spans.result("x", (1.0, 1.0)), spans.result("y", (0.0, 4.0))
    assert [2 * point > interval, 2 * point > interval - 3, 2 * point - point == 1] == [None, True, True]
    assert (2 * point + interval > 2 * point) is (interval + 1 > 1) is None
    assert (2 * point + interval + 1 > interval) is True


def test_what_leaves_it_open_may_turn_within_its_interval_too():
    assert undecided_by("abs(x - 0.40) <= 0.02", X) == {"x"}
    assert undecided_by("abs(x - 0.40) <= 0.02 and z > 1", X) == {"x"}


def test_the_interval_of_a_mean_over_samples_is_narrower_than_their_band_by_the_root_of_their_number():
    one = estimate(0.3, 0.5, 0.9) | {"n": 100}
    assert of_mean(one) == {**one, "low": pytest.approx(0.48), "high": pytest.approx(0.54)}
    for entry in (0.5, {"value": 0.5}, {"value": 0.5, "low": None, "high": None, "n": 3}):
        assert of_mean(entry) == entry
    assert of_mean(one, 4) == {**one, "low": pytest.approx(0.4), "high": pytest.approx(0.7)}  # of four layouts: by √4
    assert of_mean(one, 1) == of_mean(one)
    assert of_mean({**one, "n": 4}, 9) == of_mean({**one, "n": 4})
    assert of_mean({"value": 1, "low": 0, "high": "infinite", "n": 4})["high"] == math.inf


def test_an_interval_at_the_level_of_several_tries_is_longer_by_the_normal_quantiles():
    assert widened((-1.96, 0.0, 3.92), 5) == pytest.approx((-2.5758, 5.1517), abs=1e-3)
    assert widened((-1.0, 0.0, 2.0), 1) == pytest.approx((-1.0, 2.0))


def test_one_of_five_tries_that_alone_decides_must_stand_at_the_level_of_five():
    barely = {f"gain.{i}": estimate(-1, 0, 1) for i in range(4)} | {"gain.4": estimate(0.1, 1, 1.9)}  # its end would be -.18
    assert throughout("max(gain[*]) > 0", barely) is None
    assert throughout("min(0 - gain[*]) >= 0", barely) is None
    assert throughout("max(gain[*]) > 0", barely | {"gain.4": estimate(0.3, 1, 1.7)}) is True
    assert throughout("gain[4] > 0", barely) is True
    assert throughout("gain[0] > 0 or gain[4] > 0", barely) is None
    # what every member must bear needs no other level
    equal = {f"gain.{i}": estimate(0.1, 1, 1.9) for i in range(5)}
    assert throughout("min(gain[*]) > 0", equal) is True
    assert throughout("count(gain[*] > 0) == 5", equal) is True
    assert throughout("count(gain[*] > 0) >= 4", equal) is None  # any four of five would do


# ------------------------------------------------------------------------------------------- against points of the box
ENDS = st.lists(st.integers(-8, 8).map(lambda i: i / 4), min_size=3, max_size=3).map(sorted).map(lambda ends: estimate(*ends))
BOXES = st.fixed_dictionaries({"f.1": ENDS, "f.2": ENDS, "a": ENDS})
CONSTANTS = st.integers(-8, 8).map(lambda i: f"({i / 4})")
LEAVES = st.one_of(CONSTANTS, st.sampled_from(["a", "f[1]", "f[2]"]))
NUMBERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
        st.builds("abs({})".format, inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max", "mean"]), inner, inner),
        st.builds("{}(f[*] - {})".format, st.sampled_from(["min", "max", "mean"]), inner),
        st.builds("count(f[*] < {})".format, inner),
    ),
    max_leaves=4,
)
COMPARED = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
ATOMS = st.one_of(
    st.builds("{} {} {}".format, NUMBERS, COMPARED, NUMBERS),
    st.builds("{} {} {} {} {}".format, NUMBERS, COMPARED, NUMBERS, COMPARED, NUMBERS),
    st.builds("{}(f[*] * {})".format, st.sampled_from(["falling", "rising", "never_rising", "never_falling"]), NUMBERS),
)
RELATIONS = st.one_of(
    ATOMS, ATOMS.map("not ({})".format), st.builds("({}) {} ({})".format, ATOMS, st.sampled_from(["and", "or"]), ATOMS)
)


def points(box: dict[str, dict[str, float]], steps: int = 4):
    spread = [sorted({e["low"] + (e["high"] - e["low"]) * i / steps for i in range(steps + 1)}) for e in box.values()]
    return (dict(zip(box, point, strict=True)) for point in itertools.product(*spread))


@settings(max_examples=30)  # a box is halved up to a hundred times
@given(RELATIONS, BOXES)
def test_no_point_of_the_box_contradicts_what_is_decided(relation, box):
    decided = throughout(relation, box)
    assume(decided is not None)
    assert {truth_value_of(relation, point) for point in points(box)} == {decided}


POSITIVE = (
    st.lists(st.integers(1, 16).map(lambda i: i / 4), min_size=3, max_size=3).map(sorted).map(lambda ends: estimate(*ends))
)
FACTORS = st.integers(1, 4).flatmap(lambda i: st.sampled_from([f"{i}", f"(-{i})"]))
MONOTONE = st.one_of(
    st.builds(
        "{} * a + {} * b + {} * c {} {}".format, FACTORS, FACTORS, FACTORS, COMPARED.filter(lambda op: "=" not in op), CONSTANTS
    ),
    st.builds("a * b / c {} {}".format, COMPARED.filter(lambda op: op not in ("==", "!=")), CONSTANTS),
)


@given(MONOTONE, st.fixed_dictionaries({"a": POSITIVE, "b": POSITIVE, "c": POSITIVE}))
def test_what_is_monotone_is_decided_by_its_corners(relation, box):
    outcomes = {truth_value_of(relation, point) for point in points(box, 1)}
    assert throughout(relation, box) is (outcomes.pop() if len(outcomes) == 1 else None)
