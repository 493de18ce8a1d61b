"""Whose records a reader takes of a file: a part of its users, chosen by their names alone, so the same of any order of records."""

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

MISSING = frozenset(r"nan NaN NAN -nan -NaN na NA n/a N/A #NA #N/A <NA> null Null NULL none None NONE \N".split())
"""How files write that a value is missing, where they do not leave it empty: nobody is called so."""


def plain_names(names: pd.Index) -> pd.Index:
    """Names as persons and cells are told apart by them: without blanks at their ends, a whole number without ".0" behind it."""
    return names.astype("str").str.strip().str.replace(r"^([+-]?\d+)\.0+$", r"\1", regex=True)


class Wanted(NamedTuple):
    """Of the users whose name begins with ``begins``, but for those named in ``without``, the first ``most`` by name (0: all)."""

    most: int = 0
    without: tuple[str, ...] = ()
    begins: str = ""

    @property
    def everybody(self) -> bool:
        return not (self.most or self.without or self.begins)

    def of(self, names: Iterable[str]) -> list[str]:
        found = sorted(name for name in set(names) - set(self.without) - MISSING if name.startswith(self.begins))
        return found[: self.most or None]
