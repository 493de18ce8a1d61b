"""The users whose records a reader takes from a file: chosen by their names alone, so independent of the order of records."""

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

MISSING = frozenset(r"nan NaN NAN -nan -NaN na NA n/a N/A #NA #N/A <NA> null Null NULL none None NONE \N".split())
"""Texts that mean a missing value in files: no user has such a name."""


def plain_names(names: pd.Index) -> pd.Index:
    """Normalised names of persons and cells: without spaces at the ends, a whole number without ".0"."""
    return names.astype("str").str.strip().str.replace(r"^([+-]?\d+)\.0+$", r"\1", regex=True)


class Wanted(NamedTuple):
    """The first ``max_users`` users by name (0: all) whose name begins with ``begins`` and is not in ``without``."""

    max_users: int = 0
    without: tuple[str, ...] = ()
    begins: str = ""

    @property
    def everybody(self) -> bool:
        return not (self.max_users or self.without or self.begins)

    def of(self, names: Iterable[str]) -> list[str]:
        chosen = sorted(name for name in set(names) - set(self.without) - MISSING if name.startswith(self.begins))
        return chosen[: self.max_users or None]
