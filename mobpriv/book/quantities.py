"""The labels of quantities on the pages, and expressions over quantities in words.

``book/quantities`` has a file for each chapter. It gives, for each notebook, patterns of the names of results with unit and label::

    parts: {none: no protection, chi=all: all POIs}
    quantities:
      thesis_3_mechanisms:
        rate.{attack}.{mechanism}: [share, "re-identified by {attack} under {mechanism}"]
        privacy.{epsilon}: [km, "AP at ε = {epsilon}", "AP at each ε"]

``parts`` gives the label of a part of a name, or with ``chi=`` of the part {chi} only; ``chi=`` alone is the label of an axis over it. A third entry is the label of the family ``privacy[*]``.
What a table or a figure shows also has a short label, for its head or axis, in the form ``{unit: km, words: "AP at ε = {epsilon}", short: AP}``.
Units: :mod:`mobpriv.base.numbers`.
"""

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from mobpriv.base.numbers import constant
from mobpriv.book import yaml_files
from mobpriv.book.expressions import ALL, NUMBER, is_name, parsed, result_name
from mobpriv.book.runs import Run, named

_COLUMNS = ("run", "name", "quantity", "value", "low", "high", "n", "interval", "unit", "words")  # of a tidy table
_LARGE = {"infinite": math.inf, "-infinite": -math.inf}
_FIELDS = ("unit", "words", "family", "short")
_PARTS = re.compile(r"\{(\w+)\}")  # of a label or of a family of names
_ONE_PART = rf"\*|{NUMBER}:{NUMBER}|{NUMBER}|[^.]+"  # of a name; * and a:b are the open part of a family


class Quantity(NamedTuple):
    unit: str
    words: str
    short: str = ""  # label of a row or column; "" if no table needs one


class Names(NamedTuple):
    """The contents of ``book/quantities``."""

    patterns: dict[str, list[tuple[str, str, str, str, str]]]  # notebook -> (names, unit, label, of a family, short label)
    parts: dict[str, str]
    runs: dict[str, Run]

    def of(self, notebook: str, name: str) -> Quantity:
        """Unit and label of a result or a family (``rate.AP-Attack.*``); one-line ValueError if it has none."""
        quantity = self.find(notebook, name)
        if quantity is None:
            raise ValueError(f"{name} of {notebook} has no name in book/quantities")
        return quantity

    def find(self, notebook: str, name: str) -> Quantity | None:
        """Unit and label of a result, if any; the name of a result compared across runs begins with its run."""
        for family, unit, words, of_family, short in self.patterns.get(notebook, ()):
            match = pattern(family).fullmatch(name)
            if match:
                text = of_family if of_family and ALL in match.groups() else words
                labels = {key: self._called(key, part) for key, part in match.groupdict().items()}
                return Quantity(unit, text.format_map(labels), short.format_map(labels))
        run, _, rest = name.partition(".")
        if run in self.runs and rest:
            of_run = self.find(notebook, rest)
            return of_run and of_run._replace(words=f"{of_run.words} on {named(self.runs[run].title)}")
        return None

    def check_declared(self, notebook: str, results: Iterable[str]) -> None:
        """One-line ValueError for a result that ``book/quantities`` does not declare; a notebook without entries is not checked."""
        unknown = [name for name in results if notebook in self.patterns and self.find(notebook, name) is None]
        if unknown:
            raise ValueError(
                f"book/quantities must declare each result (got {', '.join(unknown[:3])} of {notebook}): "
                "correct the name, or add it with unit and words"
            )

    def facets(self, notebook: str, name: str) -> tuple[str, dict[str, str]]:
        """The family of a result without its parts, and its parts: "rate.AP-Attack.HMC" -> "rate", {attack: AP-Attack, …}."""
        for family, *_ in self.patterns.get(notebook, ()):
            if match := pattern(family).fullmatch(name):
                ends = [match.span(part) for part in match.groupdict()]
                kept = [text for i, text in _dotted(name) if not any(start <= i < end for start, end in ends)]
                return ".".join(kept), match.groupdict()
        return name, {}

    def _called(self, key: str, part: str) -> str:
        if part == ALL:
            return f"each {key}"
        return self.parts.get(f"{key}={part}") or self.parts.get(part) or part.replace(":", " to ")


def _dotted(name: str) -> list[tuple[int, str]]:
    """The texts between the dots of a name, each with its place."""
    return [(match.start(), match[0]) for match in re.finditer(r"[^.]+", name)]


def read(root: Path, runs: dict[str, Run]) -> Names:
    """Read the files of ``book/quantities``; one-line ValueError for a malformed entry."""
    files = sorted((root / "book" / "quantities").glob("*.yml"))
    patterns, parts = _read(tuple((path, path.read_text(encoding="utf-8")) for path in files))
    return Names(patterns, parts, runs)


@lru_cache(maxsize=4)
def _read(files: tuple[tuple[Path, str], ...]) -> tuple[dict, dict]:
    """The patterns and parts of the files; their texts are a part of the key, because pages look up labels for every row."""
    patterns, parts = {}, {}
    for path, _ in files:
        content = yaml_files.content(path) or {}
        try:
            in_file = names(content.get("quantities", {}), content.get("parts", {}), {})
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}") from None
        repeated = sorted(in_file.patterns.keys() & patterns.keys()) + [
            p for p in in_file.parts if parts.get(p, in_file.parts[p]) != in_file.parts[p]
        ]
        if repeated:
            raise ValueError(f"{path.name}: {', '.join(repeated)} is already in another file of book/quantities")
        patterns |= in_file.patterns
        parts |= in_file.parts
    return patterns, parts


def names(quantities: dict[str, dict[str, list[str]]], parts: dict[str, str], runs: dict[str, Run]) -> Names:
    """The names in one file of ``book/quantities``."""
    patterns = {}
    for notebook, entries in quantities.items():
        for name, entry in entries.items():
            fields = dict(zip(_FIELDS, entry[:3], strict=False)) if isinstance(entry, list) else entry
            known = isinstance(fields, dict) and len(fields) == len(entry) and {"unit", "words"} <= set(fields) <= {*_FIELDS}
            if not known or not all(isinstance(text, str) for text in fields.values()):
                raise ValueError(
                    f"{notebook}: {name}: needs a unit and a label, and may have a label for its family and a short one"
                )
            patterns.setdefault(notebook, []).append((name, *(fields.get(field, "") for field in _FIELDS)))
    return Names(patterns, {str(part): words for part, words in parts.items()}, runs)


def parts_of(template: str) -> list[str]:
    """The parts that a label or a family of names has in braces."""
    return _PARTS.findall(template)


def filled(template: str, parts: Mapping[str, str]) -> str:
    """The template with these parts filled in; other braces stay."""
    return _PARTS.sub(lambda match: parts.get(match[1], match[0]), template)


def number_or_text(part: str) -> float | str:
    """A part of a name; a number as such."""
    return float(part) if re.fullmatch(NUMBER, part) else part


@cache
def pattern(names: str) -> re.Pattern:
    """A regular expression for the names ``"rate.{attack}.{mechanism}"``, with a group for each part."""
    return re.compile(re.sub(r"\\\{(\w+)\\\}", lambda match: rf"(?P<{match[1]}>{_ONE_PART})", re.escape(names)))


def tidy(notebook: str, results: Mapping[str, Mapping[str, Any]], names: Names) -> pd.DataFrame:
    """The numbers of ``results`` (run -> name -> value), a row each; tables inside the results are left out.

    The columns are run, name, quantity, a column for each part of the names (``attack`` of ``rate.{attack}.{mechanism}``; with an
    underscore if a column has that name already), value, low, high, n, interval, unit, words. ``interval`` says what low and high
    are; results saved before November 2026 have no such words. Unit and words: ``book/quantities``.
    """
    rows, parts = [], {}
    for run, values in results.items():
        for name, value in values.items():
            quantity, levels = names.facets(notebook, name)
            known = names.find(notebook, name)
            number = value if isinstance(value, dict) else {"value": value}
            if isinstance(number.get("value"), list | dict):
                continue
            levels = {f"{part}_" if part in _COLUMNS else part: level for part, level in levels.items()}
            parts |= dict.fromkeys(levels)
            rows.append(
                {"run": run, "name": name, "quantity": quantity, **levels}
                | {key: _LARGE.get(number.get(key), number.get(key)) for key in ("value", "low", "high", "n", "interval")}
                | {"unit": known.unit if known else "", "words": known.words if known else ""}
            )
    table = pd.DataFrame(rows, columns=[*_COLUMNS[:3], *parts, *_COLUMNS[3:]])
    table["n"] = table["n"].astype("Int64")
    for part in parts:
        if table[part].dropna().map(lambda level: bool(re.fullmatch(NUMBER, level))).all():
            table[part] = table[part].astype(float)
    return table


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
_OF = {
    "abs": "the absolute value of",
    "min": "the smallest of",
    "max": "the largest of",
    "mean": "the mean of",
}
_LARGER = {"min": "the smaller of", "max": "the larger of"}  # of two
_WITHIN = {ast.Lt: "by less than", ast.LtE: "by at most", ast.Gt: "by more than", ast.GtE: "by at least"}
_STEPS = {
    "falling": "falls from each value to the next",
    "rising": "rises from each value to the next",
    "never_rising": "never rises from one value to the next",
    "never_falling": "never falls from one value to the next",
}
AND = "; and "  # between the statements of a test


def expression_in_words(expression: str, called: Callable[[str], Quantity]) -> str:
    """An expression in words, with labels in quotation marks; a single name is its label alone.

    ``called``: gives unit and label of a name.
    """
    return _Words(called).of(parsed(expression))


def unit_of(expression: str, called: Callable[[str], Quantity]) -> str:
    """The unit in which an expression's value is shown."""
    return _Words(called).unit(parsed(expression))


def merged_texts(texts: list[str], fewest: int = 2) -> list[str]:
    """``fewest`` successive texts or more that differ only in one place, of at most four words, become one text that lists what differs there.

    >>> merged_texts(["“rate at k = 2”", "“rate at k = 5”", "“rate at k = 10”", "“n”"])
    ['“rate at k = 2, 5 and 10”', '“n”']
    """
    result, first = [], 0
    while first < len(texts):
        last = first + 1
        while last < len(texts) and _one(texts[first : last + 1]):
            last += 1
        result += [_one(texts[first:last])] if last - first >= fewest else texts[first:last]
        first = last
    return result


def _one(texts: list[str]) -> str:
    """Two or more texts as one, "" if they differ in more than one short place of a label, or within parentheses."""
    words = [re.findall(r"[“”(),;]|[^\s“”(),;]+|\s+", text) for text in texts]
    shortest = min(map(len, words))
    start = next((i for i, tokens in enumerate(zip(*words, strict=False)) if len(set(tokens)) > 1), shortest)
    behind = zip(*(reversed(tokens) for tokens in words), strict=False)
    end = next((i for i, tokens in enumerate(behind) if len(set(tokens)) > 1 or i == shortest - start), shortest - start)
    middles = ["".join(tokens[start : len(tokens) - end]) for tokens in words]
    before, after = "".join(words[0][:start]), "".join(words[0][len(words[0]) - end :])
    short = all(m.strip() and len(m.split()) <= 4 and not re.search("[“”(),;]", m) for m in middles)
    quoted, bracketed = (before.count(left) > before.count(right) for left, right in ("“”", "()"))
    if len(texts) < 2 or not short or not quoted or bracketed or len((before + after).split()) < 4:
        return ""
    *first, last = middles
    return f"{before}{', '.join(first)} and {last}{after}"


class _Words(NamedTuple):
    called: Callable[[str], Quantity]

    def of(self, node: ast.AST, unit: str = "") -> str:
        """A node in words; ``unit``: for a number that has no unit itself."""
        match node:
            case ast.Constant(value=value):
                return constant(value, unit)
            case ast.UnaryOp(ast.USub(), operand):
                return f"−{self._side(operand, unit)}"
            case ast.UnaryOp(ast.Not(), operand):
                return f"it is not the case that {self.of(operand)}"
            case ast.BoolOp(op, values):
                return (AND if isinstance(op, ast.And) else "; or ").join(merged_texts([self.of(value) for value in values]))
            case ast.Compare(left, ops, comparators):
                return self._compared([left, *comparators], [type(op) for op in ops])
            case ast.Call(ast.Name(id=name), args, _):
                texts = self._listed(args, self.unit(node))
                if name in _STEPS:
                    return f"{texts} {_STEPS[name]}"
                if name in _LARGER and len(args) == 2:
                    return f"{_LARGER[name]} {texts}"
                return f"{_OF.get(name, 'the number of cases in which' if self._compares(args) else 'the number of')} {texts}"
            case ast.BinOp(left, op, right):
                linear = isinstance(op, ast.Add | ast.Sub)
                inner = self.unit(node) if linear else ""
                return f"{self._side(left, inner)} {_SIGNS[type(op)]} {self._side(right, inner)}"
        return self.called(result_name(node)).words if is_name(node) else ast.unparse(node)

    def _number(self, node: ast.AST, unit: str) -> str:
        """A number in words: a label in quotation marks."""
        text = self.of(node, unit)
        return f"“{text}”" if is_name(node) else text

    def _side(self, node: ast.AST, unit: str) -> str:
        return f"({self.of(node, unit)})" if isinstance(node, ast.BinOp) else self._number(node, unit)

    def _listed(self, nodes: list[ast.AST], unit: str) -> str:
        texts = (self._number(node, unit) for node in nodes)
        several = (isinstance(node, ast.Call) and len(nodes) > 1 for node in nodes)
        *first, last = merged_texts([f"({text})" if inner else text for text, inner in zip(texts, several, strict=True)], 3)
        return f"{', '.join(first)} and {last}" if first else last

    def _compared(self, sides: list[ast.AST], ops: list[type]) -> str:
        unit = next(filter(None, map(self.unit, sides)), "")
        if len(sides) == 2 and ops[0] in _TURNED:
            match sides[0]:
                case ast.Call(ast.Name(id="abs"), [ast.BinOp(left, ast.Sub(), right) as change], _):
                    inner = self.unit(change)
                    limit = self._number(sides[1], "points" if inner == "share" else inner)
                    return f"{self._side(left, inner)} differs from {self._side(right, inner)} {_WITHIN[ops[0]]} {limit}"
            texts = [self._extreme(side, op, unit) for side, op in zip(sides, (ops[0], _TURNED[ops[0]]), strict=True)]
        else:
            texts = [self._number(side, unit) for side in sides]
        if len(sides) == 3 and isinstance(sides[0], ast.Constant) and ops[0] in _TURNED:  # 29 < span <= 30
            first, second = _COMPARED[_TURNED[ops[0]]], _COMPARED[ops[1]].removeprefix("is ")
            return f"{texts[1]} {first} {texts[0]} and {second} {texts[2]}"
        pairs = [f"{a} {_COMPARED[op]} {b}" for a, op, b in zip(texts, ops, texts[1:], strict=False)]
        return ", and ".join(pairs)

    def _extreme(self, node: ast.AST, op: type, unit: str) -> str:
        """A side of a comparison: ``min(…) > a`` says that each is above a, ``max(…) > a`` that at least one is."""
        match node:
            case ast.Call(ast.Name(id="min" | "max" as name), args, _):
                every = (name == "min") is (op in (ast.Gt, ast.GtE))
                what = (
                    ("each of" if every else "at least one of")
                    if len(args) > 1
                    else "every value of"
                    if every
                    else "at least one value of"
                )
                return f"{what} {self._listed(args, unit)}"
        return self._number(node, unit)

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
        return self.called(result_name(node)).unit if is_name(node) else ""
