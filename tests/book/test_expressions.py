"""Expressions of the ledger: values, families, and one line for whatever is wrong."""

import ast
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobpriv.book.expressions import (
    interval,
    named_in,
    names_in,
    number_of,
    plain_name,
    throughout,
    truth_value_of,
    undecided_by,
    value_of,
)

RESULTS = {
    "rate.AP-Attack.Promesse": {"value": 0.12, "low": 0.10, "high": 0.14, "n": 536},
    "rate.AP-Attack.none": 0.45,
    "rate.AP-Attack.W4M": 0.3,
    "rate.POI-Attack.none": 0.9,
    **{f"privacy.{epsilon}": value for epsilon, value in (("0.9", 1.0), ("0.15", 3.0), ("0.45", 2.0), ("10", 0.5))},
    **{f"loss.{part}": value for part, value in ((1, 2.0), (2, 2.0 + 1e-7), ("full", 9.0))},
    "poi.100.900": 1,
    "min_k.median": 3,
    "q3": {"value": "infinite", "low": 34, "high": "infinite", "n": 35},
    **{"holds": True, "missing": None, "table": [{"a": 1}]},
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3 - 4 / 2", 5),
        ("-min_k.median", -3),
        ("abs(-2) + min(3, 1, 2) + max(1, 2)", 5),
        ("min_k['median']", 3),
        ("1 < 2 < 3 and not 2 < 1", True),
        ("1 > 2 or holds", True),
        ("holds == True", True),
        ("min_k.median == 3 != 4", True),
        ("q3 > 1000", True),
        ("not " * 50 + "holds", True),
    ],
)
def test_expressions(expression, value):
    assert value_of(expression, RESULTS) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("max(rate['AP-Attack', *])", 0.45),
        ("min(rate[ *, 'none' ], 0.5)", 0.45),
        ("mean(rate['AP-Attack', *])", 0.29),
        ("count(privacy[*])", 4),
        ("count(privacy[*] <= 1)", 2),
        ("count(0.9 < privacy[*] < 2.5)", 2),
        ("max(abs(privacy[*] - 2))", 1.5),
        ("max(-privacy[*])", -0.5),
        ("min(privacy[0.15:0.9])", 1.0),  # both ends belong to it
        ("min(privacy[0.15:0.89])", 2.0),
        ("count(privacy[0.15:10])", 4),
        ("max(privacy[*] / privacy[*])", 1),
        ("count(loss[1:2])", 2),  # a part that is no number lies between no two
        ("count(loss[*])", 3),
        ("falling(privacy[*])", True),  # by the numbers, not as saved
        ("rising(privacy[*])", False),
        ("rising(rate['AP-Attack', *])", False),  # as saved: .12, .45, .3
        ("falling(0 - rate['AP-Attack', *])", False),
        ("never_rising(loss[1:2])", True),  # 5e-8 of its size is rounding
        ("rising(loss[1:2])", False),
        ("never_falling(loss[1:2])", True),
        ("falling(1 / privacy[*])", False),
        ("never_falling(privacy[*])", False),
    ],
)
def test_families(expression, value):
    assert value_of(expression, RESULTS) == pytest.approx(value)


def test_steps_hold_up_to_a_millionth_and_just_not_beyond():
    def of(function, *values):
        return value_of(f"{function}(x[*])", {f"x.{i}": value for i, value in enumerate(values)})

    for up, step in [(1 + 2e-6, True), (1 + 1.1e-6, True), (1 + 0.9e-6, False), (1.0, False)]:
        assert of("rising", 1, up) is of("falling", up, 1) is step
        assert of("never_rising", 1, up) is of("never_falling", up, 1) is not step
    assert not of("falling", 3, 2, 2)  # every step counts, the last one too
    assert of("rising", 1, math.inf)
    assert not of("rising", math.inf, math.inf)
    assert of("never_rising", math.inf, math.inf, 1)


def test_the_order_and_the_parts_of_a_family():
    assert value_of("rising(x[*])", {"x.10": 3, "x.9": 2, "x.-1": 1})  # in the order of its numbers
    assert value_of("rising(x[*])", {"x.b": 1, "x.10": 2, "x.9": 3})  # or as it was saved
    results = {"x.0.25.0.5": 1, "x.0.25": 2, "x.100.900": 3}  # a number with decimals is one part of a name
    assert [value_of(of, results) for of in ("count(x[*])", "max(x[*, 0.5])", "max(x[100, *])")] == [1, 1, 3]


WRONG = {  # what is said -> the expressions
    "not allowed": ["__import__('os')", "holds if 1 else 2", "2 ** 9", "'a'", "max(1, key=abs)", "count()"],
    "not the name of a result": ["(1).real"],
    "cannot be part of the name": ["min_k[x]", "max(privacy[0.15:0.9:2])"],
    "is not an expression": ["1 +", "", "1\x00", "(" * 250 + "1" + ")" * 250],
    "divides by zero": ["1/0"],
    "needs a number": ["max()"],
    "abs needs one number (got 0)": ["abs()"],
    "abs needs one number (got 2)": ["abs(1, 2)"],
    "count needs a family": ["count(1)"],
    "needs one family": ["falling(1)", "falling(privacy[*], privacy[*])"],
    "of two results or more": ["falling(privacy[0.9:1])"],
    "ends in a family": ["privacy[*]", "privacy[*] < 1"],
    "uses a number as a truth value": ["privacy[*] < 1 and holds", "min_k.median and holds", "not min_k.median"],
    "more than one variable part": ["max(rate[*, *])"],
    "no result is named privacy.5:6": ["max(privacy[5:6])"],
    "no result is named privacie.* (near it: ": ["max(privacie[*])"],
    "the families differ": ["max(privacy[*] - loss[*])"],
    "uses a truth value as a number": ["max(holds, 1)"],
    "compares a truth value with a number": ["holds == 1", "holds < True"],
    "unknown quantity unknown": ["unknown"],
    "quantity missing has no value": ["missing"],
    "quantity table is not a number": ["table"],
    "too large": ["1e999 - 1e999", f"{'9' * 900} / 0.5", "9" * 1999],
    "too long": ["9" * 5000],
    "nested too deeply": ["-" * 1900 + "1", "not " * 400 + "holds", "not " * 60 + "holds"],  # 50 are read
}


@pytest.mark.parametrize(("says", "expression"), [(says, expression) for says, of in WRONG.items() for expression in of])
def test_whatever_is_wrong_is_one_line(says, expression):
    with pytest.raises(ValueError, match=re.escape(says)) as error:
        value_of(expression, RESULTS)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_numbers_and_truth_values_are_asked_for_by_name():
    assert number_of("min_k.median", RESULTS) == 3
    assert truth_value_of("holds", RESULTS) is True
    for read, name, fault in (
        (number_of, "holds", "is a truth value, not a number"),
        (truth_value_of, "min_k.median", "is a number, not a comparison"),
    ):
        with pytest.raises(ValueError, match=f"'{name}' {fault}"):
            read(name, RESULTS)


def said(read) -> str:
    """The message of the fault, if there is one; any other exception is none."""
    try:
        read()
    except ValueError as error:
        return str(error) or "nothing said\nat all"
    return ""


PIECES = st.sampled_from(
    [*"()[]*,.:+-/<>=' \n\\\x00é", "privacy", "rate", "'none'", "*", "[*]", "[0.15:0.9]", "holds", "max(", "count(", "falling(", "not ",
     " and ", " or ", "==", "1", "0.15", "1e999", "True", "None", "...", "if", "lambda", "f'{x}'", "await ", "**", ":="]
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=25).map("".join)))
def test_a_text_gives_a_value_or_one_line(text):
    for read in (lambda: value_of(text, RESULTS), lambda: names_in(text, RESULTS), lambda: throughout(text, RESULTS)):
        assert len(said(read).splitlines()) <= 1


NUMBERS = st.one_of(st.integers(-(10**30), 10**30), st.floats(allow_nan=False), st.booleans()).map(lambda v: ast.Constant(v))
NAMES = st.sampled_from(
    ["holds", "min_k.median", "privacy[0.9]", "privacy[*]", "rate['AP-Attack', *]", "loss[1:2]", "q3", "nothing"]
)
LEAVES = st.one_of(NUMBERS, NAMES.map(lambda name: ast.Name(name)))
OPERATORS = st.sampled_from([ast.Add(), ast.Sub(), ast.Mult(), ast.Div(), ast.Pow(), ast.BitAnd()])
COMPARED = st.sampled_from([ast.Lt(), ast.LtE(), ast.Gt(), ast.GtE(), ast.Eq(), ast.NotEq(), ast.In(), ast.Is()])
FUNCTIONS = st.sampled_from(["abs", "min", "max", "mean", "count", "falling", "rising", "never_rising", "never_falling", "sum"])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(ast.BinOp, inner, OPERATORS, inner),
        st.builds(ast.UnaryOp, st.sampled_from([ast.USub(), ast.Not(), ast.Invert()]), inner),
        st.builds(ast.BoolOp, st.sampled_from([ast.And(), ast.Or()]), st.lists(inner, min_size=2, max_size=3)),
        st.builds(lambda a, op, b: ast.Compare(a, [op], [b]), inner, COMPARED, inner),
        st.builds(lambda f, args: ast.Call(ast.Name(f), args, []), FUNCTIONS, st.lists(inner, max_size=3)),
    ),
    max_leaves=12,
)


@given(TREES)
def test_a_tree_gives_a_value_or_one_line(tree):
    text = ast.unparse(ast.fix_missing_locations(tree))
    message = said(lambda: value_of(text, RESULTS))
    assert len(message.splitlines()) <= 1
    if not message:
        value = value_of(text, RESULTS)
        assert isinstance(value, bool | int | float)
        assert not math.isnan(value)


def test_names():
    expression, members = "rate['AP-Attack', *] <= 2 * loss[1:2] and holds", ("Promesse", "none", "W4M")
    assert named_in(expression) == ["rate.AP-Attack.*", "loss.1:2", "holds"]
    assert names_in(expression, RESULTS) == [*(f"rate.AP-Attack.{name}" for name in members), "loss.1", "loss.2", "holds"]
    assert [plain_name(e) for e in ("privacy[0.9]", "privacy[*]", "-privacy[0.9]")] == ["privacy.0.9", "", ""]


class TestThroughout:
    """A comparison that holds wherever in their intervals its results may lie."""

    RESULTS = {  # noqa: RUF012
        "a": {"value": 1.0, "low": 0.5, "high": 2.0},
        "b": {"value": 3.0, "low": 2.5, "high": 4.0},
        "change": {"value": -0.1, "low": -0.2, "high": 0.0},
        "plain": 2.0,
        "q3": {"value": "infinite", "low": 34, "high": "infinite"},
        "half": {"value": 1, "low": 0.5, "high": None},
    }

    @pytest.mark.parametrize(
        ("expression", "holds"),
        [
            ("a < b", True),
            ("a < 2.0", None),  # only its upper end is not below
            ("a <= 2.0", True),
            ("change < 0", None),  # its interval holds 0
            ("q3 > 33", True),
            ("q3 > 34", None),
            ("plain == 2", True),
            ("half == 1", True),  # one end alone is no interval
        ],
    )
    def test_at_every_end(self, expression, holds):
        assert throughout(expression, self.RESULTS) is holds

    def test_intervals_and_which_of_many_leave_it_open(self):
        assert interval("a", self.RESULTS) == (0.5, 1.0, 2.0)
        assert interval("plain", self.RESULTS) == (2.0, 2.0, 2.0)
        assert interval("q3", self.RESULTS) == (34, math.inf, math.inf)
        many = {f"x.{i}": {"value": 1, "low": 0.5, "high": 2} for i in range(30)}
        assert throughout("max(x[*]) <= 2", many) is True
        assert throughout("min(x[*]) > 0.5", many) is None
        family = {f"x.{at}": {"value": v, "low": v - 1, "high": v + 1} for at, v in (("far", 9), ("near", 0.5), ("also", 0.6))}
        assert undecided_by("min(x[*]) > 0", family) == {"x.near", "x.also"}
        assert undecided_by("min(x[*]) > -1", family) == undecided_by("a < b", self.RESULTS) == set()
