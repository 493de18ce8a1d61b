"""What the pages call a quantity, and an expression over quantities in words.

The files of ``book/quantities``, one for each chapter, hold, notebook by notebook, patterns of results' names with their unit and their words::

    parts: {none: no protection, chi=all: all POIs}    # a part of a name, or only as {chi} -> what the pages call it
    quantities:
      thesis_3_mechanisms:
        rate.{attack}.{mechanism}: [share, "users re-identified by {attack} under {mechanism}"]
        privacy.{epsilon}: [km, "AP at ε = {epsilon} per km", "AP at each ε"]   # the third: for the family privacy[*]

Units: :mod:`mobpriv.numbers`.
"""

import ast
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mobpriv.book import yaml_files
from mobpriv.book.expressions import ALL, NUMBER, is_name, name_of, parsed
from mobpriv.book.runs import Run, named
from mobpriv.numbers import constant

ONE_PART = rf"\*|{NUMBER}:{NUMBER}|{NUMBER}|[^.]+"  # of a name, also the open one of a family


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
            return of_run and of_run._replace(words=f"{of_run.words} on {named(self.runs[run].title)}")
        return None

    def _called(self, key: str, part: str) -> str:
        if part == ALL:
            return f"each {key}"
        return self.parts.get(f"{key}={part}") or self.parts.get(part) or part.replace(":", " to ")


def read(root: Path, runs: dict[str, Run]) -> Names:
    """The names in the files of ``book/quantities``; ValueError, one line, for what they must not hold."""
    patterns, parts = {}, {}
    for path in sorted((root / "book" / "quantities").glob("*.yml")):
        content = yaml_files.content(path) or {}
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
            patterns.setdefault(notebook, []).append((pattern(name), unit, words, *(of_family or [""])))
    return Names(patterns, {str(part): words for part, words in parts.items()}, runs)


@cache
def pattern(names: str) -> re.Pattern:
    """The names that ``"rate.{attack}.{mechanism}"`` stands for, a group a part."""
    return re.compile(re.sub(r"\\\{(\w+)\\\}", lambda found: rf"(?P<{found[1]}>{ONE_PART})", re.escape(names)))


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
                return constant(value, unit)
            case ast.UnaryOp(ast.USub(), operand):
                return f"−{self._side(operand, unit)}"
            case ast.UnaryOp(ast.Not(), operand):
                return f"it is not so that {self.of(operand)}"
            case ast.BoolOp(op, values):
                return (", and " if isinstance(op, ast.And) else ", or ").join(self.of(value) for value in values)
            case ast.Compare(left, ops, comparators):
                return self._compared([left, *comparators], [type(op) for op in ops])
            case ast.Call(ast.Name(id=name), args, _):
                *first, last = (self.of(argument, self.unit(node)) for argument in args)
                texts = f"{', '.join(first)} and {last}" if first else last
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
