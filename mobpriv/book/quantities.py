"""What the pages call a quantity, and the one form of every number in the book.

The files of ``book/quantities``, one for each chapter, hold, notebook by notebook, patterns of results' names with their unit and their words::

    parts: {none: no protection}                      # a part of a name -> what the pages call it
    quantities:
      thesis_3_mechanisms:
        rate.{attack}.{mechanism}: [share, "users re-identified by {attack} under {mechanism}"]
        privacy.{epsilon}: [km, "AP at ε = {epsilon} per km", "AP at each ε"]   # the third: for the family privacy[*]

Units: ``share`` is shown as a percentage, ``points`` (a difference of shares) as percentage points, anything else stands behind the
number as it is.
"""

import ast
import math
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mobpriv.book.expressions import ALL, NUMBER, is_name, name_of, parsed
from mobpriv.book.runs import Run

NARROW, FIXED = "\u202f", "\u00a0"  # spaces at which no line breaks: within a number, before its unit
ONE_PART = rf"\*|{NUMBER}:{NUMBER}|{NUMBER}|[^.]+"  # of a name, also the open one of a family
SMALLEST = 1e-6  # below it, in the unit shown, a number is said to be about 0


class Quantity(NamedTuple):
    unit: str
    words: str


class Names(NamedTuple):
    """The contents of ``book/quantities``."""

    patterns: dict[str, list[tuple[re.Pattern, str, str, str]]]  # notebook -> (names, unit, words, words of a family)
    parts: dict[str, str]
    runs: dict[str, Run]

    def of(self, notebook: str, name: str) -> Quantity:
        """Unit and words of a result, or of a family (``rate.AP-Attack.*``); ValueError, one line, for what has none."""
        found = self.find(notebook, name)
        if found is None:
            raise ValueError(f"{name} of {notebook} has no name in book/quantities")
        return found

    def find(self, notebook: str, name: str) -> Quantity | None:
        """Unit and words of a result, if it has any; one that is compared across runs bears its run in front."""
        for pattern, unit, words, of_family in self.patterns.get(notebook, ()):
            found = pattern.fullmatch(name)
            if found:
                text = of_family if of_family and ALL in found.groups() else words
                return Quantity(
                    unit, text.format_map({key: self._called(key, part) for key, part in found.groupdict().items()})
                )
        run, _, rest = name.partition(".")
        if run in self.runs and rest:
            of_run = self.find(notebook, rest)
            return of_run and of_run._replace(words=f"{of_run.words}, {self.runs[run].title}")
        return None

    def _called(self, key: str, part: str) -> str:
        if part == ALL:
            return f"each {key}"
        return self.parts.get(part) or part.replace(":", " to ")


def read(root: Path, runs: dict[str, Run]) -> Names:
    """The names in the files of ``book/quantities``; ValueError, one line, for what they must not hold."""
    patterns, parts = {}, {}
    for path in sorted((root / "book" / "quantities").glob("*.yml")):
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        try:
            found = names(content.get("quantities", {}), content.get("parts", {}), runs)
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}") from None
        twice = sorted(found.patterns.keys() & patterns.keys()) + [
            p for p in found.parts if parts.get(p, found.parts[p]) != found.parts[p]
        ]
        if twice:
            raise ValueError(f"{path.name}: {', '.join(twice)} stands in another file of book/quantities already")
        patterns |= found.patterns
        parts |= found.parts
    return Names(patterns, parts, runs)


def names(quantities: dict[str, dict[str, list[str]]], parts: dict[str, str], runs: dict[str, Run]) -> Names:
    """The names that a file of ``book/quantities`` holds."""
    patterns = {}
    for notebook, entries in quantities.items():
        for name, entry in entries.items():
            if not isinstance(entry, list) or len(entry) not in (2, 3) or not all(isinstance(text, str) for text in entry):
                raise ValueError(f"{notebook}: {name}: needs a unit, its words, perhaps those of its family")
            unit, words, *of_family = entry
            text = re.sub(r"\\\{(\w+)\\\}", lambda found: rf"(?P<{found[1]}>{ONE_PART})", re.escape(name))
            patterns.setdefault(notebook, []).append((re.compile(text), unit, words, *(of_family or [""])))
    return Names(patterns, {str(part): words for part, words in parts.items()}, runs)


# ---------------------------------------------------------------------------------------------------------------- numbers
def shown(value: Any, unit: str = "") -> str:
    """A value as every page shows it: three digits of a share, four of anything else, none of a whole number left out."""
    if isinstance(value, str):
        return _bound(value, unit)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or math.isnan(value):
        return "–"
    return _digits(value, unit) + _behind(unit)


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


def _constant(value: float, unit: str) -> str:
    """A number of an expression: as it stands there, however small."""
    scale = 100 if unit in ("share", "points") else 1
    exact = format(scale * Decimal(repr(value)), "f")
    return (exact.rstrip("0").rstrip(".") if "." in exact else exact) + _behind(unit)


def _behind(unit: str) -> str:
    return {"share": f"{FIXED}%", "points": f"{FIXED}points", "": ""}.get(unit, f"{FIXED}{unit}")


def _bound(text: str, unit: str) -> str:
    """A text as it is; an infinite number or a printed bound ("< 0.1") in words."""
    if text in ("infinite", "-infinite"):
        return "∞" if text == "infinite" else "−∞"
    found = re.fullmatch(r"([<>]=?)\s*(-?[\d.]+)", text)
    says = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
    return f"{says[found[1]]} {shown(float(found[2]), unit)}" if found else text


def extent(low: Any, high: Any, unit: str = "") -> str:
    """An interval, its unit named once."""
    if low is None or high is None:
        return ""
    first = shown(low, unit).removesuffix(_behind(unit))
    return f"{first} to {shown(high, unit)}"


def with_extent(value: Any, low: Any, high: Any, n: int | None, unit: str = "") -> str:
    """A value with its interval and the number of cases, where it has them."""
    between = extent(low, high, unit)
    return shown(value, unit) + (f" ({between})" if between else "") + (f", n{FIXED}={FIXED}{n}" if n is not None else "")


# ------------------------------------------------------------------------------------------------------------------ words
_SIGNS = {ast.Add: "+", ast.Sub: "−", ast.Mult: "×", ast.Div: "/"}
_COMPARED = {
    ast.Lt: "is below",
    ast.LtE: "is at most",
    ast.Gt: "is above",
    ast.GtE: "is at least",
    ast.Eq: "is",
    ast.NotEq: "is not",
}
_TURNED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_OF = {"abs": "the size of", "min": "the least of", "max": "the largest of", "mean": "the mean of"}
_STEPS = {
    "falling": "falls at every step",
    "rising": "rises at every step",
    "never_rising": "rises at no step",
    "never_falling": "falls at no step",
}


def in_words(expression: str, called: Callable[[str], Quantity]) -> str:
    """An expression as a sentence reads it; ``called``: a name in it -> unit and words."""
    return _Words(called).of(parsed(expression))


def unit_of(expression: str, called: Callable[[str], Quantity]) -> str:
    """The unit in which an expression's value is shown."""
    return _Words(called).unit(parsed(expression))


class _Words(NamedTuple):
    called: Callable[[str], Quantity]

    def of(self, node: ast.AST, unit: str = "") -> str:
        """``unit``: in which a number is shown that has none itself."""
        match node:
            case ast.Constant(value=value):
                return _constant(value, unit)
            case ast.UnaryOp(ast.USub(), operand):
                return f"−{self._side(operand, unit)}"
            case ast.UnaryOp(ast.Not(), operand):
                return f"it is not so that {self.of(operand)}"
            case ast.BoolOp(op, values):
                return (", and " if isinstance(op, ast.And) else ", or ").join(self.of(value) for value in values)
            case ast.Compare(left, ops, comparators):
                return self._compared([left, *comparators], [type(op) for op in ops])
            case ast.Call(ast.Name(id=name), args, _):
                texts = ", ".join(self.of(argument, self.unit(node)) for argument in args)
                if name in _STEPS:
                    return f"{texts} {_STEPS[name]}"
                return f"{_OF.get(name, 'the number of times that' if self._compares(args) else 'the number of')} {texts}"
            case ast.BinOp(left, op, right):
                linear = isinstance(op, ast.Add | ast.Sub)
                inner = self.unit(node) if linear else ""
                return f"{self._side(left, inner)} {_SIGNS[type(op)]} {self._side(right, inner)}"
        return self.called(name_of(node)).words if is_name(node) else ast.unparse(node)

    def _side(self, node: ast.AST, unit: str) -> str:
        text = self.of(node, unit)
        return f"({text})" if isinstance(node, ast.BinOp) else text

    def _compared(self, sides: list[ast.AST], ops: list[type]) -> str:
        unit = next(filter(None, map(self.unit, sides)), "")
        texts = [self.of(side, unit) for side in sides]
        if len(sides) == 3 and isinstance(sides[0], ast.Constant) and ops[0] in _TURNED:  # 29 < span <= 30
            first, second = _COMPARED[_TURNED[ops[0]]], _COMPARED[ops[1]].removeprefix("is ")
            return f"{texts[1]} {first} {texts[0]} and {second} {texts[2]}"
        pairs = [f"{a} {_COMPARED[op]} {b}" for a, op, b in zip(texts, ops, texts[1:], strict=False)]
        return ", and ".join(pairs)

    def _compares(self, nodes: list[ast.AST]) -> bool:
        return any(isinstance(node, ast.Compare) for node in nodes)

    def unit(self, node: ast.AST) -> str:
        match node:
            case ast.UnaryOp(ast.USub(), operand):
                return self.unit(operand)
            case ast.Call(ast.Name(id=name), args, _) if name in _OF:
                return next(filter(None, map(self.unit, args)), "")
            case ast.BinOp(left, ast.Sub(), right) if self.unit(left) == self.unit(right) == "share":
                return "points"
            case ast.BinOp(left, ast.Add() | ast.Sub(), right):
                return self.unit(left) or self.unit(right)
            case ast.BinOp(left, ast.Mult(), right):
                return self.unit(left) or self.unit(right)
            case ast.BinOp(left, ast.Div(), right) if not self.unit(right):
                return self.unit(left)
        return self.called(name_of(node)).unit if is_name(node) else ""
