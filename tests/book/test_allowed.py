"""Ranges of parameters, as their comments say them."""

import math

import pytest
from notebook_making import make

from mobpriv.book import allowed, notebooks


@pytest.mark.parametrize(
    ("comment", "meaning", "bounds"),
    [
        ("side of a cell, > 0", "side of a cell", "> 0"),
        ("of the users, > 0 and ≤ 1", "of the users", "> 0 and ≤ 1"),
        ("level, ≤ -2.5e-3", "level", "≤ -2.5e-3"),
        ("other windows, a date or none", "other windows", "a date or none"),
        ("what decides, one of text | program", "what decides", "one of text | program"),
        ("name, or file", "name, or file", ""),
        ("larger than 0, > zero", "larger than 0, > zero", ""),
        ("> 0", "> 0", ""),
    ],
)
def test_the_range_stands_behind_the_last_comma(comment, meaning, bounds):
    assert allowed.split(comment) == (meaning, bounds)


@pytest.mark.parametrize(
    ("bounds", "right", "wrong"),
    [
        ("> 0", [1, 1e-9, [1.0, 2.0]], [0, -1, math.nan, math.inf, [], [1.0, 0.0], [math.nan]]),
        ("≥ 1", [1, 2], [0, 0.999]),
        ("> 0 and ≤ 1", [0.5, 1], [0, 1.001]),
        ("≥ -1 and < 1", [-1, 0], [-1.1, 1]),
        ("≤ 3", [3, -5], [4]),
        ("> 0 or none", [[], [1]], [[0]]),
        ("one of calendar | set or none", ["calendar", "set", ""], ["user", "Set"]),
        ("one of text | program", ["text"], ["", "test"]),
        ("a date", ["2009-02-13", "2009-01-13T23:00"], ["", "bogus", "2009-02-30", "NaT", "now", "today", "10:00", "2024Q1"]),
        ("a time zone", ["UTC", "Europe/Rome"], ["", "Mars/Base", "Europe", "localtime", "Factory", "right/Europe/Paris"]),
        ("a date or none", ["", [], ["2009-02-13"]], [["2009-02-13", "bogus"]]),
        ("a place or none", ["", "37.788,-122.4075", "-90,180"], ["nan,nan", "nan", "91,0", "0,181", "1,2,3", "here"]),
        ("", ["anything", 3, -1, []], [math.nan]),
    ],
)
def test_what_lies_within(bounds, right, wrong):
    assert [value for value in right if not allowed.within(value, bounds)] == []
    assert [value for value in wrong if allowed.within(value, bounds)] == []


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("cell", 0, "parameter cell of demo must be > 0 (m) (got 0)"),
        ("sizes", [1, 0], "parameter sizes of demo must be one or more, each ≥ 1 (users) (got [1, 0])"),
        ("sizes", [], "parameter sizes of demo must be one or more, each ≥ 1 (users) (got [])"),
        ("seed", "-1", "parameter seed of demo must be ≥ 0 (got '-1')"),
    ],
)
def test_a_value_outside_is_refused_in_one_line(tmp_path, name, value, line):
    with pytest.raises(ValueError) as error:  # noqa: PT011  (the whole line is compared)
        notebooks.checked_parameters(make(tmp_path, "demo"), {name: value})
    assert str(error.value) == line


def test_what_a_quick_run_shortens_is_one_line_each(tmp_path):
    path = make(tmp_path, "demo", "sizes = sizes[:1] if quick else sizes\ncell = 800.0 if quick else cell", tags={2: "quick"})
    assert notebooks.shortened(path) == {"sizes": "sizes[:1]", "cell": "800.0"}
    with pytest.raises(ValueError, match="a line of the cell tagged quick reads"):
        notebooks.shortened(make(tmp_path, "other", "if quick:\n    cell = 1", tags={2: "quick"}))
