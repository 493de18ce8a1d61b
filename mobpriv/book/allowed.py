"""The range of a notebook's parameter, written in its comment, and the check against it.

The range follows unit and meaning, after the last comma::

    cell: float = 800.0  # m, side of a heat-map cell, > 0
    shares: list[float] = [0.1, 0.5]  # share, of the users, > 0 and ≤ 1

    windows: list[str] = []  # first days of other windows, a date or none
    zone: str = ""  # time zone of the days, a time zone or none

    place: str = ""  # "lat,lng" of a square, a place or none
    reading: str = "text"  # variant of the method, one of text | program

A list has at least one entry, and every entry is in the range; ``or none`` allows the empty list or text.
"""

import math
import re
from typing import Any
from zoneinfo import available_timezones

import pandas as pd

from mobpriv.datasets.times import known_zone

_NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
_BOUNDS = re.compile(rf"([>≥]) ({_NUMBER})(?: and ([<≤]) ({_NUMBER}))?|([<≤]) ({_NUMBER})")
_HOLDS = {">": lambda a, b: a > b, "≥": lambda a, b: a >= b, "<": lambda a, b: a < b, "≤": lambda a, b: a <= b}


def split(comment: str) -> tuple[str, str]:
    """Split a parameter's comment into meaning and range ("" if there is none)."""
    meaning, comma, last = comment.rpartition(",")
    allowed = last.strip()
    if comma and (
        _BOUNDS.fullmatch(allowed.removesuffix(" or none"))
        or re.fullmatch(r"one of .+|a (date|time zone|place)( or none)?", allowed)
    ):
        return meaning.strip(), allowed
    return comment.strip(), ""


def within(value: Any, allowed: str) -> bool:
    """Whether a parameter's value is in its range; NaN and infinite numbers never are."""
    optional, allowed = allowed.endswith(" or none"), allowed.removesuffix(" or none")
    if isinstance(value, list):
        return (bool(value) or optional or not allowed) and all(within(entry, allowed) for entry in value)
    if optional and value == "":
        return True
    if isinstance(value, float) and not math.isfinite(value):
        return False
    if allowed.startswith("one of "):
        return str(value) in [word.strip() for word in allowed.removeprefix("one of ").split("|")]
    if allowed == "a date":
        return _is_date(value)
    if allowed == "a time zone":
        return _is_zone(value)
    if allowed == "a place":
        return _is_place(value)
    bounds = _BOUNDS.fullmatch(allowed)
    if not bounds:
        return True
    rules = zip(bounds.groups()[::2], bounds.groups()[1::2], strict=True)
    return all(_HOLDS[rule](value, float(bound)) for rule, bound in rules if rule)


def _is_date(text: str) -> bool:
    if not re.match(r"\d{4}-\d{2}-\d{2}", text):  # "now" and "10:00" would mean another day tomorrow
        return False
    try:
        return 1980 <= pd.Timestamp(text).year < 2100  # NaT has no such year
    except ValueError:
        return False


def _is_zone(name: str) -> bool:
    try:
        known_zone(name)
    except ValueError:
        return False
    return name in available_timezones() - {"localtime", "Factory"}  # names that depend on the machine


def _is_place(text: str) -> bool:
    try:
        lat, lng = map(float, text.split(","))
    except ValueError:
        return False
    return abs(lat) <= 90 and abs(lng) <= 180  # False for NaN
