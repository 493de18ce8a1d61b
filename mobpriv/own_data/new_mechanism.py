"""Files to start a mechanism from: a class that keeps the contract and protects nothing yet, and its test."""

import importlib.util
import keyword
import os
import re
from pathlib import Path

_CLASS = '''"""{title}.

Source: the paper, its section and equation.
"""

from dataclasses import dataclass

import numpy as np

from mobpriv.base.draws import per_user
from mobpriv.base.ranges import positive
from mobpriv.traces.table import Traces, as_traces, by_user


@dataclass(frozen=True)
class {title}:
    """What the mechanism does to a user's records.

    Departures from the paper: none.
    """

    alpha: float = 100.0  # m, what the parameter means

    name = "{title}"
    random = False  # whether another seed gives another table
    # epsilon: float = 0.01  # 1/m; a class with this field claims geo-indistinguishability of each record, which is tested

    def __post_init__(self):
        positive("alpha", self.alpha, "m")

    def _alter(self, rng: np.random.Generator, lat: np.ndarray, lng: np.ndarray) -> None:
        """Change one user's positions, in degrees, with her own random numbers: nothing yet.

        ``lat[:], lng[:] = mobpriv.ground.geo.move(lat, lng, east, north)`` moves them by metres, also at the poles and the date line.
        """

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        """The protected traces."""
        _, offsets = by_user(traces)  # user i has the rows offsets[i] … offsets[i + 1] − 1
        lat, lng = (traces[column].to_numpy().copy() for column in ("lat", "lng"))  # the given table must not change
        per_user(self._alter, rng, offsets, lat, lng)
        published = as_traces(traces.assign(lat=lat, lng=lng))
        return published  # to leave out records: mobpriv.traces.table.rows(published, kept), with a mask
'''

_TEST = '''"""{title} keeps the contract of mechanisms; add what the paper promises."""

import pytest
from {name} import {title}

from mobpriv.own_data import contract


@pytest.mark.parametrize("rule", contract.RULES)
def test_the_contract(rule):
    contract.RULES[rule]({title}(), contract.walks())


def test_parameters_outside_their_range_are_refused():
    with pytest.raises(ValueError, match="alpha must be positive"):
        {title}(alpha=-1)
'''


def write(name: str, folder: Path) -> tuple[Path, Path]:
    """Write NAME.py and test_NAME.py; both files are new, or nothing is written."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ValueError(f"the name is one of a Python file: small letters, digits and _, a letter first (got {name!r})")
    texts = {folder / f"{name}.py": _CLASS, folder / f"test_{name}.py": _TEST}
    for file in texts:
        if os.path.lexists(file):
            raise FileExistsError(f"{file} exists, and nothing is overwritten: take another name")
    if importlib.util.find_spec(name):
        raise ValueError(f"{name} is the name of an installed module, which the file would hide: take another name")
    title = "".join(word.capitalize() for word in name.split("_"))
    for file, text in texts.items():
        with open(file, "x", encoding="utf-8") as new:
            new.write(text.format(name=name, title=title))
    return tuple(texts)
