"""Exercises that check themselves: a reader learns whether her number is right, and is not shown the right one.

A cell tagged ``check`` calls ``book.check(notebook, quantity, ...)``; the reader writes her number in place of the dots. The build computes
the key of answers from the results of the solutions (:func:`key_of`). It holds a salted hash of each answer, rounded to a few digits. The answer can
be found by trying all numbers: the key only prevents a reader from seeing it by accident.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import nbformat

from mobpriv.base.numbers import counted
from mobpriv.book.quantities import Names
from mobpriv.book.results import ROOT

CHECK = "check"  # tag of a cell that calls :func:`check`
KEY = "answers.json"  # next to the notebooks of the student edition, or in book/_generated
_ROUNDS = 20_000  # of the hash; a hundredth of a second, so that trying all numbers takes longer than solving the exercise
_FACTORS = (  # pattern of the answer's unit -> a likely wrong factor
    (r"share", 100, "a share is between 0 and 1, not in %."),
    (r".*k?m", 1000, "is it in m or km, in 1/m or 1/km?"),
)


def check(notebook: str, quantity: str, number: Any, digits: int = 3) -> None:
    """Print whether ``number`` is the answer to an exercise, up to one unit of its last of ``digits`` digits."""
    print(verdict(notebook, quantity, number))


def verdict(notebook: str, quantity: str, number: Any, root: Path = ROOT) -> str:
    """What :func:`check` prints, in one line."""
    if number is ...:
        return "Not checked: write your number in place of the dots and run the cell again."
    try:
        value = math.nan if isinstance(number, bool | str) else float(number)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        return f"Give one finite number (got {number!r:.60}, of type {type(number).__name__})."
    answer = _key(root).get(notebook, {}).get(quantity)
    if answer is None:
        return f"No {KEY} with {quantity} of {notebook} was found: put the one of the student edition next to the notebook, or run `make book`."
    if _is(value, answer):
        return f"Right: {answer['words']}."
    if _is(-value, answer):
        return "The size is right, the sign is not."
    for unit, factor, hint in _FACTORS:
        if re.fullmatch(unit, answer["unit"]) and (_is(value / factor, answer) or _is(value * factor, answer)):
            return f"Right up to a factor of {factor}: {hint}"
    if answer["unit"] == "share" and _is(1 - value, answer):
        return "Right for the others: give 1 minus this share."
    return f"Not right: {answer['words']} (compared: {counted(answer['digits'], 'significant digit')})."


def _is(value: float, answer: dict) -> bool:
    return any(_hashed(answer["salt"], text) == answer["hash"] for text in _rounded(value, answer["digits"]))


def _rounded(value: float, digits: int) -> list[str]:
    """The nearest number of so many digits, then the next one on the other side: rounding must not turn a right answer into a wrong one."""
    exponent = math.floor(math.log10(abs(value))) - digits + 1 if value else 0
    scaled = value / 10.0**exponent
    return [
        f"{whole * 10.0**exponent:.{digits - 1}e}"
        for whole in sorted({math.floor(scaled), math.ceil(scaled)}, key=lambda w: abs(w - scaled))
    ]


def _hashed(salt: str, text: str) -> str:
    return hashlib.pbkdf2_hmac("sha256", text.encode(), salt.encode(), _ROUNDS).hex()


class Question(NamedTuple):
    """What a cell tagged ``check`` asks for."""

    quantity: str
    digits: int


def questions(notebook: nbformat.NotebookNode, name: str) -> Iterator[Question]:
    """What the exercises of a notebook ask for; ValueError for a cell that is more than a call of :func:`check` with dots."""
    for cell in notebook.cells:
        if CHECK in cell.metadata.get("tags", []):
            asked = re.fullmatch(
                rf'# in place of the dots: .+\nbook\.check\("{name}", "([^"]+)", \.\.\.(?:, digits=(\d))?\)', cell.source
            )
            if asked is None:
                raise ValueError(
                    f'{name}: a cell tagged {CHECK} is a comment and book.check("{name}", quantity, ...) (got {cell.source!r})'
                )
            yield Question(asked[1], int(asked[2] or 3))


def key_of(records: dict[str, dict], names: Names, root: Path = ROOT) -> dict[str, dict[str, dict]]:
    """The key: notebook -> quantity -> its words, the digits, the hash of the answer and its salt; ``records``: notebook -> record."""
    key = {}
    for notebook, record in records.items():
        for asked in questions(nbformat.read(root / "notebooks" / f"{notebook}.ipynb", as_version=4), notebook):
            result = record["results"].get(asked.quantity)
            value = result.get("value") if isinstance(result, dict) else result
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise ValueError(
                    f"{notebook}: an exercise asks for {asked.quantity}, and its results have no such number (got {value!r})"
                )
            quantity = names.of(notebook, asked.quantity)
            words = quantity.words + (f" ({quantity.unit})" if quantity.unit not in ("", "share") else "")
            salt = hashlib.sha256(f"{notebook} {asked.quantity}".encode()).hexdigest()[:16]
            hashed = _hashed(salt, _rounded(value, asked.digits)[0])
            key.setdefault(notebook, {})[asked.quantity] = {
                "words": words,
                "unit": quantity.unit,
                "digits": asked.digits,
                "salt": salt,
                "hash": hashed,
            }
    return key


def _key(root: Path) -> dict:
    found = (path for path in (Path(KEY), root / "book" / "_generated" / KEY) if path.is_file())
    path = next(found, None)
    return json.loads(path.read_text(encoding="utf-8")) if path else {}
