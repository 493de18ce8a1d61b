"""Expressions over the results of a notebook, used to test claims and errata.

They consist of numbers, dotted names, comparisons, ``and``, ``or``, ``not``, arithmetic, ``abs``, ``min``, ``max`` and families.
``rate['AP-Attack', 'none']`` is the result "rate.AP-Attack.none". ``privacy[*]`` is the family of all results named privacy.<one part>.
``privacy[0.15:0.6]`` is the family of those whose part is a number from 0.15 to 0.6, ends included; a number with decimals is one part.
A family has the order of its numbers, or the order in which it was saved if not all parts are numbers. Arithmetic and comparisons
apply to each member. An expression with a family ends in one of

- ``falling(f)``, ``rising(f)``: every member is below (above) the one before it, by more than rounding;
- ``never_rising(f)``, ``never_falling(f)``: no member is above (below) the one before it, except for rounding;
- ``mean(f)``, ``min(f)``, ``max(f)``;
- ``count(f)``: the number of members, or of members for which a comparison holds.

Rounding is a millionth of the larger of two members. Numbers and truth values are never converted into each other.
Every error is a ``ValueError`` of one line.
"""

import ast
import difflib
import itertools
import math
import operator
import re
import statistics
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple

from mobpriv.book import spans

_MAX_CHARACTERS, _MAX_LEVELS = 2000, 60  # characters and levels of an expression
_RELATIVE_ROUNDING = 1e-6  # between two members of a family, relative to the larger
_MAX_CORNERED = 8  # results with intervals: up to so many, all combinations of ends are tried before the box is halved
_MAX_PARTS = 100  # parts of the box
NUMBER = r"-?\d+(?:\.\d*[1-9]|\.0)?(?:e[+-]?\d+)?"  # as Python writes it: "0.15" is one part, "100.900" are two
ALL = "*"


class Family(NamedTuple):
    """The results that a name with a ``*`` denotes."""

    members: dict[str, float | bool]  # variable part of the name -> value


_Value = float | bool | spans.Span | Family | None  # None: an inconclusive comparison


class Unknown(ValueError):
    """A name that is not in the results."""


def value_of(expression: str, results: dict[str, Any]) -> float | bool:
    """The value of an expression over results: name -> a number, a truth value, or a dict with the key "value"."""
    tree = parsed(expression)
    try:
        value = _evaluate(tree, results)
        undefined = not isinstance(value, Family) and math.isnan(value)
    except ArithmeticError as error:
        what = "divides by zero" if isinstance(error, ZeroDivisionError) else "has numbers that are too large"
        raise ValueError(f"{_in_quotes(expression)} {what}") from None
    if isinstance(value, Family):
        raise ValueError(f"{_in_quotes(expression)} ends in a family: add mean, min, max, count, falling or rising")
    if undefined:
        raise ValueError(f"{_in_quotes(expression)} is not a number (NaN)")
    return value


def number_of(expression: str, results: dict[str, Any]) -> float:
    value = value_of(expression, results)
    if isinstance(value, bool):
        raise ValueError(f"{_in_quotes(expression)} is a truth value, not a number")
    return value


def truth_value_of(expression: str, results: dict[str, Any]) -> bool:
    value = value_of(expression, results)
    if not isinstance(value, bool):
        raise ValueError(f"{_in_quotes(expression)} is a number, not a comparison")
    return value


def throughout(expression: str, results: dict[str, Any]) -> bool | None:
    """Whether a comparison holds for all values of its results inside their 95 % intervals; None if inconclusive.

    A result with too few cases for an interval makes it inconclusive. If some result could take any value without changing the
    decision, the decision is one of several tests. It must then hold with intervals at the level 1 − 0.05/m for m intervals (Bonferroni).
    """
    names = names_in(expression, results)
    extents = {name: interval(name, results) for name in names}
    if any(too_few(results[name]) for name in names):
        return None
    box = {name: (low, high) for name, (low, _, high) in extents.items() if low != high}
    outcome = _everywhere(expression, results, box)
    needless = (name for name in box if _everywhere(expression, results, {**box, name: spans.ANYWHERE}) is outcome)
    if outcome is None or len(box) == 1 or not any(needless):
        return outcome
    return _everywhere(expression, results, {name: widened(extents[name], len(box)) for name in box})


def widened(extent: tuple[float, float, float], tries: int) -> tuple[float, float]:
    """The ends of a 95 % interval (low, value, high) at the level of ``tries`` tests: each side grows as a normal interval does."""
    low, value, high = extent
    longer = NormalDist().inv_cdf(1 - 0.025 / tries) / NormalDist().inv_cdf(0.975)
    return tuple(value + (end - value) * longer if math.isfinite(end) else end for end in (low, high))


def undecided_by(expression: str, results: dict[str, Any]) -> set[str]:
    """The results whose interval alone makes a comparison inconclusive, with all others at their values."""
    extents = {name: interval(name, results) for name in names_in(expression, results)}
    return {
        name
        for name, (low, _, high) in extents.items()
        if low != high and _everywhere(expression, results, {name: (low, high)}) is None
    }


def _everywhere(expression: str, results: dict[str, Any], box: spans.Box) -> bool | None:
    """Whether a comparison holds for all results in a box, with the others at their values.

    None if it holds in a part of the box only, or if ``_MAX_PARTS`` parts do not suffice for a proof.
    """
    tree, read_results = parsed(expression), {name: results[name] for name in names_in(expression, results)}

    def outcome_on(part: spans.Box) -> bool | None:
        return _evaluate(tree, {**read_results, **{name: spans.result(name, ends) for name, ends in part.items()}})

    def outcome_at(point: Iterable[float]) -> bool | None:
        return outcome_on({name: (value, value) for name, value in zip(box, point, strict=True)})

    outcomes, parts = {truth_value_of(expression, results)}, deque([(box, 0)])
    corners = itertools.product(*box.values()) if len(box) <= _MAX_CORNERED else zip(*box.values(), strict=True)
    if outcome_on(box) is None:
        outcomes |= {*map(outcome_at, corners)} - {None}
    for _ in range(_MAX_PARTS):
        if len(outcomes) > 1 or not parts:
            break
        part, depth = parts.popleft()
        outcome = outcome_on(part)
        if outcome is None:
            outcome = outcome_at(map(spans.middle, part.values()))
            name = list(box)[depth % len(box)]
            low, middle, high = part[name][0], spans.middle(part[name]), part[name][1]
            parts += [({**part, name: half}, depth + 1) for half in ((low, middle), (middle, high))]
        outcomes |= {outcome} - {None}
    return None if len(outcomes) > 1 or parts else outcomes.pop()


def interval(name: str, results: dict[str, Any]) -> tuple[float, float, float]:
    """(low, value, high) of a result; three times its value without an interval."""
    value, entry = _number(name, results), results[name]
    low, high = (entry.get("low"), entry.get("high")) if isinstance(entry, dict) else (None, None)
    return (value, value, value) if low is None or high is None else (_finite(low), value, _finite(high))


def of_mean(entry: Any, layouts: int | None = None) -> Any:
    """A result over samples, whose band covers 95 % of them, with the interval of its mean: narrower by √n.

    Samples that share a few ``layouts`` of antennas are not independent; the interval is then narrower by the root of the number
    of layouts only.
    """
    ends = [_finite(entry.get(key)) for key in ("low", "high")] if isinstance(entry, dict) and entry.get("n") else [None]
    if None in ends:
        return entry
    value, n = _finite(entry["value"]), min(entry["n"], layouts) if layouts and layouts > 1 else entry["n"]
    low, high = (value + (end - value) / math.sqrt(n) if math.isfinite(end) else end for end in ends)
    return {**entry, "low": low, "high": high}


def too_few(entry: Any) -> bool:
    """Whether a result has a number of cases but no interval."""
    return isinstance(entry, dict) and entry.get("n") is not None and (entry.get("low") is None or entry.get("high") is None)


# --------------------------------------------------------------------------------------------------------------- reading
@cache  # a claim is read for each of its data sets, several times
def parsed(expression: str) -> ast.expr:
    """The syntax tree of an expression, in which the ``*`` of a family is an ``Ellipsis``."""
    if len(expression) > _MAX_CHARACTERS:
        raise ValueError(f"{_in_quotes(expression)} is too long ({len(expression)} characters, at most {_MAX_CHARACTERS})")
    star = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|(?<=[\[,])(\s*)\*(?=\s*[\],])")
    text = star.sub(lambda match: match[0] if match[1] is None else f"{match[1]}...", expression.strip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an invalid escape in a string
            tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{_in_quotes(expression)} is not an expression") from None
    if _depth(tree) > _MAX_LEVELS:
        raise ValueError(f"{_in_quotes(expression)} is nested too deeply (at most {_MAX_LEVELS} levels)")
    return tree


def conjuncts(expression: str) -> list[str]:
    """The parts of an expression joined by ``and``."""
    tree = parsed(expression)
    joined = isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And)
    return [ast.unparse(part).replace("...", ALL) for part in tree.values] if joined else [expression]


def _depth(tree: ast.AST) -> int:
    """The depth of a tree, computed without recursion."""
    level, depth = [tree], 0
    while level:
        level, depth = [child for node in level for child in ast.iter_child_nodes(node)], depth + 1
    return depth


def _in_quotes(expression: str) -> str:
    """An expression in quotes, shortened for a message."""
    return repr(expression if len(expression) <= 120 else f"{expression[:117]}...")


def _unparsed(node: ast.AST) -> str:
    return _in_quotes(ast.unparse(node).replace("...", ALL))


def is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript)


def result_name(node: ast.AST) -> str:
    """The name of a result, or of a family, which has ``*`` or ``0.15:0.6`` as one part."""
    parts = _parts(node)
    if sum(isinstance(part, Wildcard) for part in parts) > 1:
        raise ValueError(f"{_unparsed(node)} has more than one variable part")
    return ".".join(str(part) for part in parts)


class Wildcard(NamedTuple):
    """The variable part of a family's name; two numbers restrict it."""

    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        return ALL if self.low is None else f"{self.low}:{self.high}"


def _parts(node: ast.AST) -> list[str | Wildcard]:
    match node:
        case ast.Name(id=name):
            return [name]
        case ast.Attribute(value, attr):
            return [*_parts(value), attr]
        case ast.Subscript(value, ast.Tuple(elts)):
            return [*_parts(value), *(_part(entry) for entry in elts)]
        case ast.Subscript(value, index):
            return [*_parts(value), _part(index)]
    raise ValueError(f"{_unparsed(node)} is not the name of a result")


def _part(node: ast.AST) -> str | Wildcard:
    match node:
        case ast.Constant(value=value) if value is ...:
            return Wildcard()
        case ast.Slice(ast.Constant(value=int() | float() as low), ast.Constant(value=int() | float() as high), None):
            return Wildcard(low, high)
        case ast.Constant(value=str() | int() | float() as value):
            return str(value)
    raise ValueError(f"{_unparsed(node)} cannot be part of the name of a result")


def plain_name(expression: str) -> str:
    """The name of a result if the expression is one, else ""."""
    node = parsed(expression)
    return result_name(node) if is_name(node) and not any(isinstance(part, Wildcard) for part in _parts(node)) else ""


def named_in(expression: str) -> list[str]:
    """The names of results and families in an expression, in order."""
    names = []

    def visit(node):
        if is_name(node):
            names.append(result_name(node))
        else:
            children = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
            for child in children:
                visit(child)

    visit(parsed(expression))
    return list(dict.fromkeys(names))


def names_in(expression: str, results: dict[str, Any]) -> list[str]:
    """The results that an expression reads, including every member of its families."""
    names = [
        named
        for name in named_in(expression)
        for named in (member_names(name, results).values() if is_family(name) else [name])
    ]
    return list(dict.fromkeys(names))


def is_family(name: str) -> bool:
    """Whether a name denotes a family."""
    return re.search(rf"(?:^|\.)(?:\*|{NUMBER}:{NUMBER})(?:\.|$)", name) is not None


def members(name: str, results: dict[str, Any]) -> dict[str, float | bool]:
    """The values of a family in order, by the variable part of the name."""
    return {part: _number(member, results) for part, member in member_names(name, results).items()}


def member_names(name: str, results: dict[str, Any]) -> dict[str, str]:
    """Variable part -> name of the result, in the family's order."""
    before, wildcard, after = re.fullmatch(rf"(.*?)(?<![^.])(\*|{NUMBER}:{NUMBER})(?![^.])(.*)", name, re.DOTALL).groups()
    part = re.compile(f"{re.escape(before)}({NUMBER}|[^.]+){re.escape(after)}")
    by_part = {match[1]: match[0] for match in map(part.fullmatch, results) if match}
    numbers = {key: float(key) for key in by_part if re.fullmatch(NUMBER, key)}
    if wildcard != ALL:
        low, high = map(float, wildcard.split(":"))
        by_part = {key: by_part[key] for key, number in numbers.items() if low <= number <= high}
    if not by_part:
        raise Unknown(f"no result is named {_in_quotes(name)[1:-1]} ({_near(name, results)})")
    return dict(sorted(by_part.items(), key=lambda entry: numbers[entry[0]])) if set(by_part) <= set(numbers) else by_part


# ------------------------------------------------------------------------------------------------------------- evaluating
_BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def _evaluate(node: ast.AST, results: dict[str, Any]) -> _Value:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.Name() | ast.Attribute() | ast.Subscript():
            name = result_name(node)
            if not is_family(name):
                return _number(name, results)
            return Family(members(name, results))
        case ast.BinOp(left, op, right) if type(op) in _BINARY:
            sides = [_evaluate(side, results) for side in (left, right)]
            return _each(_BINARY[type(op)], [_numeric(side, node) for side in sides], node)
        case ast.UnaryOp(ast.USub(), operand):
            return _each(operator.neg, [_numeric(_evaluate(operand, results), node)], node)
        case ast.UnaryOp(ast.Not(), operand):
            return spans.negated(_truth(_evaluate(operand, results), node))
        case ast.BoolOp(op, values):
            truths = [_truth(_evaluate(value, results), node) for value in values]  # all: an unknown name is always reported
            return spans.every(truths) if isinstance(op, ast.And) else spans.some(truths)
        case ast.Compare(left, ops, comparators) if all(type(op) in _COMPARE for op in ops):
            return _compared(
                [_evaluate(side, results) for side in (left, *comparators)], [_COMPARE[type(op)] for op in ops], node
            )
        case ast.Call(ast.Name(id=name), args, []) if name in _FUNCTIONS:
            return _FUNCTIONS[name]([_numeric(_evaluate(argument, results), node) for argument in args], node)
        case ast.Call(ast.Name(id="count"), [argument], []):
            family = _evaluate(argument, results)
            if isinstance(family, Family):
                upper, lower = (
                    sum(v is not False and v is not unsure for v in family.members.values()) for unsure in (..., None)
                )
                return upper if upper == lower else spans.between(lower, upper)
            raise ValueError(f"{_unparsed(node)}: count needs a family")
    raise ValueError(f"{_unparsed(node)} is not allowed in an expression")


def _each(function: Callable, sides: list[_Value], node: ast.AST) -> _Value:
    """Apply a function to numbers and families, member by member."""
    families = [side.members for side in sides if isinstance(side, Family)]
    if not families:
        return _defined(function(*sides))
    if any(list(family) != list(families[0]) for family in families):
        raise ValueError(f"{_unparsed(node)}: the families differ ({', '.join(families[0])}; {', '.join(families[-1])})")
    rows = [[side.members[key] if isinstance(side, Family) else side for side in sides] for key in families[0]]
    return Family({key: _defined(function(*row)) for key, row in zip(families[0], rows, strict=True)})


def _defined(value: _Value) -> _Value:
    if isinstance(value, float) and math.isnan(value):
        raise OverflowError("infinite from infinite")
    return value


def _compared(sides: list[_Value], operators: list[Callable], node: ast.AST) -> bool | Family:
    kinds = {
        isinstance(v, bool | None) for side in sides for v in (side.members.values() if isinstance(side, Family) else [side])
    }
    if len(kinds) > 1 or (kinds == {True} and not set(operators) <= {operator.eq, operator.ne}):
        raise ValueError(f"{_unparsed(node)} compares a truth value with a number, or two of them by size")

    def holds(*values):
        return spans.every(op(a, b) for op, a, b in zip(operators, values, values[1:], strict=False))

    def of_truths(*values):
        return None if None in values else holds(*values)

    return _each(of_truths if kinds == {True} else holds, sides, node)


def _numeric(value: _Value, node: ast.AST) -> _Value:
    if any(isinstance(v, bool | None) for v in (value.members.values() if isinstance(value, Family) else [value])):
        raise ValueError(f"{_unparsed(node)} uses a truth value as a number")
    return value


def _truth(value: _Value, node: ast.AST) -> bool:
    if not isinstance(value, bool | None):
        raise ValueError(f"{_unparsed(node)} uses a number as a truth value")
    return value


def _of_all(function: Callable, of_spans: Callable) -> Callable:
    """A function of all numbers and members of families together."""

    def combined(arguments: list[_Value], node: ast.AST) -> float:
        numbers = [v for a in arguments for v in (a.members.values() if isinstance(a, Family) else [a])]
        if not numbers:
            raise ValueError(f"{_unparsed(node)} needs a number")
        return (of_spans if spans.are_in(numbers) else function)(numbers)

    return combined


def _absolute(arguments: list[_Value], node: ast.AST) -> _Value:
    if len(arguments) != 1:
        raise ValueError(f"{_unparsed(node)}: abs needs one number (got {len(arguments)})")
    return _each(abs, arguments, node)


def _steps(allowed: Callable) -> Callable:
    """Whether every step between successive members of a family is allowed; ``allowed(step, rounding)``."""

    def steps_allowed(arguments: list[_Value], node: ast.AST) -> bool:
        if len(arguments) != 1 or not isinstance(arguments[0], Family) or len(arguments[0].members) < 2:
            raise ValueError(f"{_unparsed(node)} needs one family of two results or more")
        pairs = itertools.pairwise(arguments[0].members.values())
        return spans.every(allowed(*_step(a, b)) for a, b in pairs)

    return steps_allowed


def _step(a: float | spans.Span, b: float | spans.Span) -> tuple[float | spans.Span, float | spans.Span]:
    """The step from a to b, and the size that counts as rounding."""
    if spans.are_in((a, b)):
        return b - a, _RELATIVE_ROUNDING * spans.largest([abs(a), abs(b)])
    size = max(abs(a), abs(b))
    return b - a if a != b else 0.0, _RELATIVE_ROUNDING * size if size < math.inf else 0.0


_FUNCTIONS = {
    "abs": _absolute,
    "min": _of_all(min, spans.least),
    "max": _of_all(max, spans.largest),
    "mean": _of_all(statistics.fmean, spans.mean),
    "falling": _steps(lambda step, rounding: step < -rounding),
    "rising": _steps(lambda step, rounding: step > rounding),
    "never_rising": _steps(lambda step, rounding: step <= rounding),
    "never_falling": _steps(lambda step, rounding: step >= -rounding),
}


def _finite(value: Any) -> Any:
    """A value with the text "infinite" replaced by the number."""
    return {"infinite": math.inf, "-infinite": -math.inf}.get(value, value) if isinstance(value, str) else value


def _near(name: str, results: dict[str, Any]) -> str:
    near = difflib.get_close_matches(name, results, 3, 0.4) or sorted(results)[:5]
    return f"near it: {', '.join(near) or 'the notebook saved nothing'}"


def _number(name: str, results: dict[str, Any]) -> float | bool:
    if name not in results:
        raise Unknown(f"unknown quantity {_in_quotes(name)[1:-1]} ({_near(name, results)})")
    value = results[name]
    value = _finite(value.get("value") if isinstance(value, dict) else value)
    if value is None:
        raise ValueError(f"quantity {name} has no value")
    if not isinstance(value, int | float | spans.Span):
        raise ValueError(f"quantity {name} is not a number")
    return value
