"""The prose that people wrote for the book, sentence by sentence, and the rules of ``book/prose.yml`` that it breaks.

    python -m mobpriv.book.prose [--count] [FILE …]

A number in braces is filled in by the build; here it counts as a number. Code, formulas, tables and links' addresses are no prose.
proselint, a general linter, checks the same sentences.
"""

import ast
import re
import sys
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import nbformat

from mobpriv.book import yaml_files
from mobpriv.book.results import ROOT

_WRITTEN = (
    "README.md",
    "CONTRIBUTING.md",
    "book/*.md",
    "book/claims/*.yml",
    "book/errata/*.yml",
    "notebooks/*.ipynb",
    "mobpriv/**/*.py",
)
_FIELDS = ("says", "matters", "landing", "claim", "short", "why", "by_definition", "impossible", "wrong", "decision")
_LONG = 30  # words of a sentence
_FEWEST_WORDS = 5  # words of a text in a program that is a sentence
_HEADLESS = re.compile(
    r"(?:^|[:;(–—]\s*|\b(?:of|by|to|for|than|that|as|from|against|with|and|or|but|if|where|is|are|was|what|only|not|tells?|says?)\s+)"
    r"(who(?:m|se|ever)?)\b(?!.*\?\W*$)",
    re.IGNORECASE,
)
_FRONTED = re.compile(r"^(Of|Under|Behind|Beside|Among)\b")
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_EXAMPLE = re.compile(r"(?ms)^\s*>>> .*?(?:\n\s*\n|\Z)|:\w+:(?=`)")
_NOT_PROSE = (
    (r"(?ms)^```\{glossary\}$(.*?)^```$", r"\1"),  # its definitions are prose
    (r"(?ms)^(`{3,}|~{3,}).*?^\1`*\s*$", "\n"),
    (r"(?s)\$\$.*?\$\$", "\n"),
    (r"(?m)^\s*(:{3,}.*|\|.*|:[\w-]+:.*|\([\w-]+\)=|%.*)$", ""),
    (r"(?s)<!--.*?-->", ""),
    (r"\{\{.*?\}\}", "12"),
    (r"\{[\w:]+\}`[^`]*`", "Name"),
    (r"`+[^`]*`+", "Code"),
    (r"\$[^$]*\$", "x"),
    (r"!?\[([^\]]*)\]\([^)]*\)", r"\1"),
    (r"<[^>]+>", " "),
    (r"\{[^{}]*\}", "12"),
    (r"[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}", ""),
)
_ABBREVIATED = re.compile(r"\b(e\.g|i\.e|et al|cf|vs|Eq|Eqs|Fig|Figs|p|pp|Sec|Alg|Prop|Thm)\.(?=\s)")
_END = re.compile(r"(?<=[.?!])[”\"’')]*\s+(?=[A-Z0-9“\"(§εχαΔ])")


class Sentence(NamedTuple):
    place: str  # file, and in it the entry or the cell
    text: str

    @property
    def words(self) -> int:
        return len(re.findall(r"[^\W_][\w'’.,/%-]*", self.text))


def sentences(text: str, place: str) -> Iterator[Sentence]:
    """The sentences of a text in Markdown; a heading and an entry of a list are texts of their own."""
    for pattern, instead in _NOT_PROSE:
        text = re.sub(pattern, instead, text)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s|#)|(?<=\n)#+ [^\n]*\n", text):
        plain = _ABBREVIATED.sub(r"\1", " ".join(re.sub(r"^\s*(?:[-*+]|\d+\.|#+|>)\s+", "", paragraph).split()))
        yield from (Sentence(place, part.strip()) for part in _END.split(plain) if re.search(r"[^\W\d_]", part))


def written(files: Iterable[Path] = (), root: Path = ROOT) -> Iterator[Sentence]:
    """Every sentence that people wrote in these files, or in all of the project."""
    for path in files or sorted(path for pattern in _WRITTEN for path in root.glob(pattern)):
        name = path.resolve().relative_to(root).as_posix() if path.resolve().is_relative_to(root) else path.name
        if path.suffix == ".md":
            yield from sentences(path.read_text(encoding="utf-8"), name)
        elif path.suffix == ".ipynb":
            for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
                shown = "figure" in cell.metadata.get("tags", [])
                texts = [cell.source] if cell.cell_type == "markdown" else _texts(cell.source) if shown else ()
                for text in texts:
                    yield from sentences(text, f"{name} cell {number}")
        elif path.suffix == ".py":
            for text in _texts(path.read_text(encoding="utf-8")):
                yield from sentences(_EXAMPLE.sub("", text), name)
        else:
            yield from _of_entries(yaml_files.content(path), name)


def _texts(program: str) -> Iterator[str]:
    """The docstrings of a program, its messages, and its other texts that are sentences; what is filled into one counts as a number."""
    inside, tree = set(), ast.parse(program)
    refused = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Raise) for part in ast.walk(node)}
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, _DOCUMENTED) and (docstring := ast.get_docstring(node)):
            inside.add(id(node.body[0].value))
            yield docstring
        if isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in ast.walk(node))
            text = "".join(part.value if isinstance(part, ast.Constant) else "12" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            text = node.value
        if id(node) in refused:  # one line of several parts
            yield from (part for part in re.split("[:;] ", text) if len(part.split()) >= _FEWEST_WORDS)
        elif len(text.split()) >= _FEWEST_WORDS and re.search(r"[.?:]\W*$", text):
            yield text


def _of_entries(content, place: str) -> Iterator[Sentence]:
    if isinstance(content, dict):
        place = f"{place.split(' ')[0]} {content.get('id', content.get('notebook'))}" if "notebook" in content else place
        for key, value in content.items():
            if key in _FIELDS:
                for text in value.values() if isinstance(value, dict) else [value]:
                    yield from sentences(str(text), place)
            elif isinstance(value, dict | list):
                yield from _of_entries(value, place)
    elif isinstance(content, list):
        for entry in content:
            yield from _of_entries(entry, place)


class Rules(NamedTuple):
    """What ``book/prose.yml`` holds."""

    instead: dict[re.Pattern, str]  # words that the book does not use -> what it says
    allowed: dict[str, str]  # part of a sentence -> why it may break a rule
    general: frozenset[str]  # checks of proselint that this book does not follow


def rules(root: Path = ROOT) -> Rules:
    content = yaml_files.content(root / "book" / "prose.yml")
    instead = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): term for words, term in content["instead"].items()}
    return Rules(instead, content.get("allowed") or {}, frozenset(content.get("general") or ()))


def faults(sentence: Sentence, rule_set: Rules) -> list[str]:
    """The rules that a sentence breaks, each in words."""
    if _allowed(sentence, rule_set):
        return []
    text, messages = sentence.text, []
    if sentence.words > _LONG:
        messages.append(f"{sentence.words} words, at most {_LONG}: make it two sentences, or a table")
    messages += [f"{match[1]!r} without a noun before it: a user who" for match in _HEADLESS.finditer(text)][:1]
    if fronted := _FRONTED.match(text):
        messages.append(f"begins with {fronted[1]!r}: say first who does something")
    if digits := re.search(r"\b\d+\.\d{4,}", text):
        messages.append(f"digits without meaning: {digits[0]}")
    messages += [f"{hit[0]!r}: say {term}" for pattern, term in rule_set.instead.items() if (hit := pattern.search(text))]
    return messages


def _allowed(sentence: Sentence, rule_set: Rules) -> bool:
    return any(part in sentence.text for part in rule_set.allowed)


def _general(all_sentences: list[Sentence], rule_set: Rules) -> Iterator[tuple[Sentence, str]]:
    """What proselint says."""
    from proselint.checks import __register__
    from proselint.registry import CheckRegistry
    from proselint.tools import LintFile

    registry = CheckRegistry()
    if not registry.checks:
        registry.register_many(__register__)
    starts = [*accumulate((len(sentence.text) + 1 for sentence in all_sentences), initial=1)]  # it puts a line in front
    for result in LintFile("prose", "\n".join(sentence.text for sentence in all_sentences)).lint():
        sentence, check = all_sentences[bisect(starts, result.check_result.span[0]) - 1], result.check_result
        if not any(check.check_path.startswith(name) for name in rule_set.general) and not _allowed(sentence, rule_set):
            yield sentence, f"{check.check_path}: {check.message}"


def main(arguments: list[str]) -> int:
    count = "--count" in arguments
    all_sentences, rule_set = [*written([Path(name) for name in arguments if not name.startswith("--")])], rules()
    broken = [(sentence, fault) for sentence in all_sentences for fault in faults(sentence, rule_set)]
    if not count:
        broken += _general(all_sentences, rule_set)
        for sentence, fault in broken:
            print(f"{sentence.place}: {fault}\n    {sentence.text[:160]}")
        for part in () if arguments else rule_set.allowed:
            if not any(part in one.text for one in all_sentences):
                broken.append((Sentence("book/prose.yml", part), "allowed, but nobody writes it"))
                print(f"book/prose.yml: allowed, but nobody writes it: {part}")
    kinds = Counter(re.sub(r"'[^']*'|\d+", "…", fault).split(":")[0] for _, fault in broken)
    long = sum(one.words > _LONG for one in all_sentences)
    print(
        f"{len(all_sentences)} sentences, {100 * long / max(len(all_sentences), 1):.1f} % longer than {_LONG} words; "
        + ", ".join(f"{k} {n}" for k, n in kinds.most_common())
    )
    return int(bool(broken) and not count)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
