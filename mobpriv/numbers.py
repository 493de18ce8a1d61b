"""The one form of every number in the book: on pages, in tables, in figures and in what a picture says to who cannot see it.

Units: ``share`` is shown as a percentage, ``points`` (a difference of shares) as percentage points, anything else stands behind the
number as it is.
"""

import math
import re
from decimal import Decimal
from typing import Any

NARROW, FIXED = "\u202f", "\u00a0"  # spaces at which no line breaks: within a number, before its unit
SMALLEST = 1e-4  # below it, in the unit shown, a number is said to be about 0


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def shown(value: Any, unit: str = "") -> str:
    """A value as every page shows it: three digits of a share, four of anything else, none of a whole number left out."""
    if isinstance(value, str):
        return _bound(value, unit)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or math.isnan(value):
        return "–"
    return _digits(value, unit) + behind(unit)


def _digits(value: float, unit: str = "") -> str:
    if unit in ("share", "points"):
        return _decimal(100 * value, 3)
    return _decimal(value, 4)


def _decimal(value: float, significant: int) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if 0 < size < SMALLEST:
        return f"≈{FIXED}0"
    decimals = significant - 1 - math.floor(math.log10(size)) if size else 0
    text = f"{size:,.{max(decimals, 0)}f}".replace(",", NARROW)
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"−{text}" if value < 0 else text


def constant(value: float, unit: str) -> str:
    """A number that somebody wrote down: as it stands there, however small."""
    exact = (100 if unit in ("share", "points") else 1) * Decimal(repr(value))
    if 0 < abs(exact) < Decimal(repr(SMALLEST)):
        sign, digits, _ = exact.normalize().as_tuple()
        size = "".join(map(str, digits))
        factor = f"{size[0]}.{size[1:]}".rstrip(".")
        power = f"10{str(exact.adjusted()).translate(_RAISED)}"
        return ("−" if sign else "") + (power if factor == "1" else f"{factor}{FIXED}×{FIXED}{power}") + behind(unit)
    text = format(exact, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) + behind(unit)


def behind(unit: str) -> str:
    """What stands behind a number in a unit."""
    return {"share": f"{FIXED}%", "points": f"{FIXED}points", "": ""}.get(unit, f"{FIXED}{unit}")


def _bound(text: str, unit: str) -> str:
    """A text as it is; an infinite number or a printed bound ("< 0.1") in words."""
    if text in ("infinite", "-infinite"):
        return "∞" if text == "infinite" else "−∞"
    found = re.fullmatch(r"([<>]=?)\s*(-?[\d.]+)", text)
    says = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
    return f"{says[found[1]]} {shown(float(found[2]), unit)}" if found else text


def counted(number: int, one: str, several: str = "") -> str:
    """So many of something: "1 record", "2 records"."""
    return f"{shown(number)} {one if number == 1 else several or one + 's'}"


def extent(low: Any, high: Any, unit: str = "") -> str:
    """An interval, its unit named once."""
    if low is None or high is None:
        return ""
    first = shown(low, unit).removesuffix(behind(unit))
    return f"{first} to {shown(high, unit)}"
