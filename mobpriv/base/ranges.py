"""Range checks for parameters: each function returns the value or raises a one-line ValueError with the rule and the value.

Python's and numpy's numbers are accepted; truth values and texts are not. The returned value is Python's float or int.
"""

from itertools import pairwise
from math import inf, nan
from numbers import Integral, Real

import numpy as np

# no length on Earth, time or rate exceeds these; within them squares and reciprocals stay finite
_SMALLEST, _LARGEST = 1e-100, 1e100


def positive(name: str, value, unit: str = "", least: float = _SMALLEST, hint: str = "") -> float:
    """A finite number above 0, at least ``least``; the message contains ``unit`` and ``hint``."""
    number = _number(value)
    if not least <= number <= _LARGEST:
        floor = f", at least {least}" if least > _SMALLEST else ""
        raise ValueError(f"{name} must be positive{_in(unit)}{floor}{hint} (got {_shown(value)})")
    return number


def not_negative(name: str, value, unit: str = "", hint: str = "") -> float:
    """A finite number, 0 or above."""
    number = _number(value)
    if not 0 <= number <= _LARGEST:
        raise ValueError(f"{name} must not be negative{_in(unit)}{hint} (got {_shown(value)})")
    return number


def between(name: str, value, low: float, high: float, rule: str) -> float:
    """A number in [low, high]; ``rule`` is the text of the message."""
    number = _number(value)
    if not low <= number <= high:
        raise ValueError(f"{name} {rule} (got {_shown(value)})")
    return number


def whole(name: str, value, least: int, greatest: float = _LARGEST, rule: str = "") -> int:
    """A whole number in least … greatest (2.0 is accepted); ``rule`` replaces the text "at least ``least``" of the message."""
    number = _number(value)
    if not (least <= number <= greatest and number == int(number)):
        raise ValueError(f"{name} {rule or f'must be a whole number, at least {least}'} (got {_shown(value)})")
    return int(value)


def levels(name: str, values, also: tuple[float, ...] = ()) -> list[float]:
    """Two or more numbers in rising order, with ``also``; results are stored by their first six digits, which must differ."""
    numbers = sorted({*also, *map(float, values)})
    if len(numbers) < 2:
        raise ValueError(f"{name} must hold two or more different numbers (got {_shown(values)})")
    for one, other in pairwise(numbers):
        if f"{one:g}" == f"{other:g}":
            raise ValueError(f"{name} must differ in their first six digits (got {one} and {other})")
    return numbers


def one_of(name: str, value, choices) -> str:
    """One of the texts ``choices``."""
    if not (isinstance(value, str) and value in choices):
        *rest, last = (f'"{choice}"' for choice in choices)
        raise ValueError(f"{name} must be {', '.join(rest)} or {last} (got {_shown(value)})")
    return value


def true_or_false(name: str, value) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False (got {_shown(value)})")
    return bool(value)


def _number(value) -> float:
    """The value as Python's float; NaN, which lies in no range, for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return nan
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _in(unit: str) -> str:
    return f", in {unit}" if unit else ""


def _shown(value) -> str:
    """The value on one line: texts in quotation marks, numbers as printed."""
    text = str(value) if isinstance(value, Integral | Real) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:80]}…"
