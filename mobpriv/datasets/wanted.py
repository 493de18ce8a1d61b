"""Whose records a reader takes of a file: a part of its users, chosen by their names alone, so the same of any order of records."""

from collections.abc import Iterable
from typing import NamedTuple

MISSING = frozenset(r"nan NaN NAN -nan -NaN na NA n/a N/A #NA #N/A <NA> null Null NULL none None NONE \N".split())
"""How files write that a value is missing, where they do not leave it empty: nobody is called so."""


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
