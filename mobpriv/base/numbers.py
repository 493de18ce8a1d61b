"""The format of all numbers in the book: on pages, in tables, in figures and in alternative texts.

* ``share``: shown as a percentage with one decimal;
* ``points`` (a difference of shares): shown as percentage points with one decimal;
* metres: shown as kilometres with one decimal from one kilometre on;
* other units: follow the number unchanged.
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

NARROW, FIXED = "\u202f", "\u00a0"  # spaces without a line break: within a number, before its unit
_KILOMETRE = 1000  # m
_TWO_DIGITS_BELOW = 1e-3  # below it two digits suffice
_ABOUT_0_BELOW = 1e-4  # below it, in the unit shown, a number is shown as about 0
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def shown(value: Any, unit: str = "") -> str:
    """A value as pages show it.

    A share has one decimal. Other numbers have four digits (two below a thousandth); whole numbers are shown in full.
    """
    if isinstance(value, str):
        return _bound(value, unit)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or math.isnan(value):
        return "–"
    if unit == "m" and _KILOMETRE <= abs(value) < math.inf:
        return _signed(value, f"{abs(value) / _KILOMETRE:,.1f}") + behind("km")
    return (_percent(100 * value) if unit in ("share", "points") else _decimal(value)) + behind(unit)


def in_prose(value: Any, unit: str = "") -> str:
    """A number as sentences show it; tables use :func:`shown`.

    Shares are whole per cent, with one decimal below 1 % and between 99 and 101 %. Points are whole from 10 on. Other numbers
    have two digits; a count is unchanged.
    """
    if isinstance(value, str | bool) or value is None or not math.isfinite(value):
        return shown(value, unit)
    if unit in ("share", "points"):
        size = round(100 * abs(value), 9)  # rounded once: 43.49 is 43
        in_full = 1 <= size <= 99 or size >= 101 if unit == "share" else size >= 10
        return _signed(value, f"{size:.0f}") + behind(unit) if in_full else shown(value, unit)
    if value == round(value) or not _ABOUT_0_BELOW < abs(value) < _KILOMETRE:
        return shown(value, unit)
    return shown(float(f"{value:.2g}"), unit)


def _percent(value: float) -> str:
    """One decimal; none for exactly 0 and 100, and a ≈ sign for values that would round to them."""
    size = round(abs(value), 9)  # 62.75 and 62.750000000000007 are the same number
    if math.isinf(size) or round(size, 1) not in (0, 100):
        return _signed(value, f"{size:,.1f}")
    exact = math.isclose(size, round(size, 1))
    return _signed(value, f"{size:.0f}") if exact else f"≈{FIXED}{_signed(value if size > 1 else 0, f'{size:.0f}')}"


def _decimal(value: float) -> str:
    size = abs(value)
    if 0 < size < _ABOUT_0_BELOW:
        return f"≈{FIXED}0"
    digits = 4 if size >= _TWO_DIGITS_BELOW else 2
    decimals = digits - 1 - math.floor(math.log10(size)) if size and math.isfinite(size) else 0
    text = f"{size:,.{max(decimals, 0)}f}"
    return _signed(value, text.rstrip("0").rstrip(".") if "." in text else text)


def _signed(value: float, size: str) -> str:
    """The digits of a number with its sign and spaces between thousands."""
    text = "∞" if math.isinf(value) else size.replace(",", NARROW)
    return f"−{text}" if value < 0 else text


def constant(value: float | str, unit: str) -> str:
    """A typed number, unchanged however small; a printed bound ("< 0.1") in words."""
    if isinstance(value, str):
        return _bound(value, unit)
    exact = (100 if unit in ("share", "points") else 1) * Decimal(repr(value))
    if 0 < abs(exact) < Decimal(repr(_ABOUT_0_BELOW)):
        sign, digits, _ = exact.normalize().as_tuple()
        size = "".join(map(str, digits))
        factor = f"{size[0]}.{size[1:]}".rstrip(".")
        power = f"10{str(exact.adjusted()).translate(_RAISED)}"
        return ("−" if sign else "") + (power if factor == "1" else f"{factor}{FIXED}×{FIXED}{power}") + behind(unit)
    text = format(abs(exact), ",f")
    one = FIXED + "point" if unit == "points" and abs(exact) == 1 else behind(unit)
    return _signed(value, text.rstrip("0").rstrip(".") if "." in text else text) + one


def behind(unit: str) -> str:
    """The suffix for a unit."""
    return {"share": f"{FIXED}%", "points": f"{FIXED}points", "": ""}.get(unit, f"{FIXED}{unit}")


def _bound(text: str, unit: str) -> str:
    """A text unchanged; an infinite number or a printed bound ("< 0.1") in words."""
    if text in ("infinite", "-infinite"):
        return "∞" if text == "infinite" else "−∞"
    match = re.fullmatch(r"([<>]=?)\s*(-?[\d.]+)", text)
    says = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
    return f"{says[match[1]]} {constant(float(match[2]), unit)}" if match else text


def counted(number: int, one: str, several: str = "") -> str:
    """A number with its noun: "1 record", "2 records"."""
    return f"{shown(number)} {one if number == 1 else several or one + 's'}"


def extent(low: Any, high: Any, unit: str = "", form: Callable[[Any, str], str] = shown) -> str:
    """An interval with its unit once, its ends formatted by ``form``; empty if an end is missing."""
    if any(end is None or end != end for end in (low, high)):  # only NaN differs from itself
        return ""
    first, second = form(low, unit), form(high, unit)
    digits, _, suffix = first.rpartition(FIXED)
    return f"{digits if unit and second.endswith(FIXED + suffix) else first} to {second}"


def beside(interval: str, n: int | None = None, counted: bool = True) -> tuple[str, ...]:
    """The texts that accompany a number: its interval and its n, or that too few cases give no interval.

    ``interval``: from :func:`extent`; ``counted``: whether to include n.
    """
    count = f"n{FIXED}={FIXED}{shown(n)}" if n is not None and counted else ""
    if n is not None and not interval:
        return (f"no interval at {count}" if count else "no interval",)
    return tuple(filter(None, [interval, count]))
