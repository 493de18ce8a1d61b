"""Interval arithmetic: numbers known only up to an interval, and comparisons that are certain.

A span is computed from results that vary independently in a box (name -> ends). It has two ends, bounds of its derivative by each result, and
a function that recomputes it on a smaller box. A comparison of two spans is True, False, or None if neither is certain. Their ends
decide it. If both spans depend on a common result, the parts of the box with the least and the largest difference decide.
This is exact for functions that are monotonic in each result.
"""

import math
import operator
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_Ends = tuple[float, float]
Box = dict[str, _Ends]
ANYWHERE = (-math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class Span:
    low: float
    high: float
    slopes: Box  # result -> smallest and largest derivative
    box: Box
    on: Callable[[Box], "Span"]  # recomputes the span on a smaller box

    @property
    def ends(self) -> _Ends:
        return self.low, self.high

    def __neg__(self):
        return _computed(lambda a: (-a[1], -a[0]), lambda a: [(-1, -1)], [self])

    def __abs__(self):
        return _computed(_size, lambda a: [(-1 if a[0] < 0 else 1, 1 if a[1] > 0 else -1)], [self])

    def __add__(self, other):
        return _computed(_sum, lambda a, b: [(1, 1), (1, 1)], [self, other])

    def __sub__(self, other):
        return self + -span(other)

    def __mul__(self, other):
        return _computed(_product, lambda a, b: [b, a], [self, other])

    def __truediv__(self, other):
        return _computed(
            _quotient, lambda a, b: [_quotient((1, 1), b), _product(_quotient(a, b), _quotient((-1, -1), b))], [self, other]
        )

    def __rsub__(self, other):
        return span(other) - self

    def __rtruediv__(self, other):
        return span(other) / self

    def __lt__(self, other):
        return _ordered(operator.lt, self, span(other))

    def __le__(self, other):
        return _ordered(operator.le, self, span(other))

    def __gt__(self, other):
        return _ordered(operator.gt, self, span(other))

    def __ge__(self, other):
        return _ordered(operator.ge, self, span(other))

    def __eq__(self, other):
        return every([self <= other, self >= other])

    def __ne__(self, other):
        return negated(self == other)

    __radd__, __rmul__ = __add__, __mul__
    __hash__ = None


def result(name: str, ends: _Ends) -> Span:
    """A result that may have any value between two ends."""
    return Span(*map(float, ends), {name: (1.0, 1.0)}, {name: ends}, lambda box: result(name, box.get(name, ends)))


def between(low: float, high: float) -> Span:
    """A number between two ends that depends on no result."""
    return Span(float(low), float(high), {}, {}, lambda box: between(low, high))


def span(value: float | Span) -> Span:
    """A number as a span of width 0."""
    return value if isinstance(value, Span) else between(value, value)


def middle(ends: _Ends) -> float:
    low, high = ends
    if math.isfinite(high - low):
        return low + (high - low) / 2
    if math.isfinite(low):
        return 2 * abs(low) + 1
    return -2 * abs(high) - 1 if math.isfinite(high) else 0.0


def are_in(values: Iterable[Any]) -> bool:
    return any(isinstance(value, Span) for value in values)


def largest(values: Sequence[float | Span]) -> Span:
    def shares(*extents: _Ends) -> list[_Ends]:
        """The share of each span in the maximum: 0 if it is below another span, 1 if no other can exceed it."""
        floor = max(low for low, _ in extents)
        above = [max((high for j, (_, high) in enumerate(extents) if j != i), default=-math.inf) for i in range(len(extents))]
        return [(float(low >= others), float(high >= floor)) for (low, high), others in zip(extents, above, strict=True)]

    return _computed(lambda *extents: _each(max, extents), shares, values)


def least(values: Sequence[float | Span]) -> Span:
    return -largest([-span(value) for value in values])


def mean(values: Sequence[float | Span]) -> Span:
    share = 1 / len(values)
    return _computed(lambda *extents: _each(_mean, extents), lambda *extents: [(share, share)] * len(extents), values)


# --------------------------------------------------------------------------------------------------------- three-valued logic
def every(truths: Iterable[bool | None]) -> bool | None:
    distinct = set(truths)
    return False if False in distinct else None if None in distinct else True


def some(truths: Iterable[bool | None]) -> bool | None:
    return negated(every(map(negated, truths)))


def negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _ordered(compare: Callable, left: Span, right: Span) -> bool | None:
    outcome = _by_ends(compare, left, right)
    if outcome is None and (difference := left - right).box:
        corners = [_corner(difference, side) for side in (0, 1)]
        outcomes = {_by_ends(compare, left.on(corner), right.on(corner)) for corner in corners}
        outcome = outcomes.pop() if len(outcomes) == 1 else None
    return outcome


def _by_ends(compare: Callable, left: Span, right: Span) -> bool | None:
    outcomes = {compare(left.low, right.high), compare(left.high, right.low)}
    return outcomes.pop() if len(outcomes) == 1 else None


def _corner(number: Span, side: int) -> Box:
    """The part of the box where a span is smallest (``side`` 0) or largest (1): one end of each monotonic result."""

    def part(ends: _Ends, slope: _Ends) -> _Ends:
        if slope[0] < 0 < slope[1]:
            return ends
        end = ends[side if slope[0] >= 0 else 1 - side]
        return end, end

    return {name: part(ends, number.slopes[name]) for name, ends in number.box.items()}


# ------------------------------------------------------------------------------------------------------------------- ends
def _computed(ends: Callable, shares: Callable, operands: Sequence[float | Span]) -> Span:
    """A function of several spans; ``ends`` gives its ends, ``shares`` its derivative by each of them."""
    operands = [span(operand) for operand in operands]
    extents = [operand.ends for operand in operands]
    slopes: Box = {}
    box: Box = {}
    if any(low != high for low, high in extents):  # at a single point nothing varies
        for operand, share in zip(operands, shares(*extents), strict=True):
            for name, slope in operand.slopes.items():
                slopes[name] = _sum(slopes.get(name, (0, 0)), _product(share, slope))
            box |= operand.box
    return Span(*ends(*extents), slopes, box, lambda part: _computed(ends, shares, [operand.on(part) for operand in operands]))


def _between(numbers: Iterable[float]) -> _Ends:
    numbers = list(numbers)
    return ANYWHERE if any(map(math.isnan, numbers)) else (min(numbers), max(numbers))


def _sum(a: _Ends, b: _Ends) -> _Ends:
    return _between([a[0] + b[0], a[1] + b[1]])


def _product(a: _Ends, b: _Ends) -> _Ends:
    return _between(x * y for x in a for y in b)


def _quotient(a: _Ends, b: _Ends) -> _Ends:
    return ANYWHERE if b[0] <= 0 <= b[1] else _between(x / y for x in a for y in b)


def _size(a: _Ends) -> _Ends:
    return (0.0, max(-a[0], a[1])) if a[0] < 0 < a[1] else _between(map(abs, a))


def _mean(numbers: Sequence[float]) -> float:
    return statistics.fmean(numbers) if all(map(math.isfinite, numbers)) else sum(numbers)


def _each(function: Callable, extents: Sequence[_Ends]) -> _Ends:
    low, high = (function(ends) for ends in zip(*extents, strict=True))
    return ANYWHERE if math.isnan(low) or math.isnan(high) else (low, high)
