"""What a reader may write by mistake, in every field of every mechanism, attack and grid: one clear line."""

from dataclasses import MISSING, fields

import numpy as np
import pandas as pd
import pytest
from conftest import NOTHING_CAN_BE, refusals, refuses

import mobpriv.attacks
import mobpriv.attacks.visits
import mobpriv.mechanisms
import mobpriv.mechanisms.visits
from mobpriv.attacks import APAttack
from mobpriv.base import ranges
from mobpriv.ground.grid import AreaGrid, S2Grid, SquareGrid
from mobpriv.mechanisms import Nothing
from mobpriv.mechanisms.visits import Geometric, LaplaceCounts, RandomisedResponse
from mobpriv.traces.profiles import markov_chains, pois, stays
from mobpriv.traces.table import from_blocks
from mobpriv.visits.affinity import Neighbourhood

KNOWN = from_blocks(pd.Index(["ann", "bob"]), [2, 2], np.arange(4) * 1000, np.array([45.0, 45.1, 45.2, 45.3]), np.full(4, 5.0))
CROWD = from_blocks(pd.Index(list("abcdef")), [1] * 6, np.arange(6) * 1000, np.linspace(45.0, 45.3, 6), np.full(6, 5.0))
AREA = AreaGrid(45.0, 5.0, 800.0, 800.0, 2, 1)
NEEDED = {
    "HMC": {"known": CROWD},
    "Hybrid": {"mechanisms": [Nothing()], "attacks": [APAttack().fit(KNOWN)], "utility": max},
    "Obfuscation": {"channel": np.full((2, 2), 0.5), "grid": AREA},
    "PersonalisedObfuscation": {"channels": {"ann": np.full((2, 2), 0.5)}, "grid": AREA},
    "AreaGrid": {"south": 45.0, "west": 5.0},
    "Neighbourhood": {"n": 2, "affinity": np.eye(3)},
    "Likelihood": {"mechanism": Geometric(1.0)},
    **{kind.__name__: {"epsilon": 1.0} for kind in (Geometric, LaplaceCounts, RandomisedResponse)},
}
PACKAGES = (mobpriv.mechanisms, mobpriv.attacks, mobpriv.mechanisms.visits, mobpriv.attacks.visits)
EVERY = [getattr(package, name) for package in PACKAGES for name in package.__all__]
EVERY += [SquareGrid, AreaGrid, S2Grid, Neighbourhood]
FIELDS = [(kind, field) for kind in EVERY for field in fields(kind) if field.name != "known_"]


def made(kind, **parameters):
    return kind(**{**NEEDED.get(kind.__name__, {}), **parameters})


@pytest.mark.parametrize("value", NOTHING_CAN_BE, ids=lambda v: type(v).__name__ + str(v)[:8])
@pytest.mark.parametrize(("kind", "field"), FIELDS, ids=lambda f: getattr(f, "__name__", None) or f.name)
def test_what_no_parameter_can_be(kind, field, value):
    if field.name == "far" and isinstance(value, float) and value == -np.inf:
        assert made(kind, far=value).far == value  # the proximity distance is always taken
        return
    refuses(rf"\b{field.name}\b", made, kind, **{field.name: value})


NUMBERS = [(kind, f) for kind, f in FIELDS if f.type in (float, int, float | None, "float", "int", "float | None")]


@pytest.mark.parametrize("value", [True, False, np.True_, np.inf, 10**400, "1"], ids=lambda v: str(v)[:5])
@pytest.mark.parametrize(("kind", "field"), NUMBERS, ids=lambda f: getattr(f, "__name__", None) or f.name)
def test_what_no_number_can_be(kind, field, value):
    if field.name == "far" and not isinstance(value, bool | np.bool_ | str):
        assert made(kind, far=value).far == value  # the proximity distance is never taken
        return
    refuses(rf"\b{field.name}\b", made, kind, **{field.name: value})


@pytest.mark.parametrize("as_type", [float, np.float64, np.float32, int, np.int64, np.uint8])
@pytest.mark.parametrize(
    ("kind", "field"), [(kind, f) for kind, f in NUMBERS if f.name != "p"], ids=lambda f: getattr(f, "__name__", None) or f.name
)
def test_numbers_of_numpy_are_numbers(kind, field, as_type):
    default = field.default if field.default not in (MISSING, None) else 5.0
    number = {"trash_max": 0, "epsilon": 1, "south": 45, "level": 15, "max_features": 1}.get(field.name, 5)
    value = as_type(number) if issubclass(as_type, int | np.integer) else as_type(default)
    if field.name in ("south", "west", "level", "k", "cap", "columns", "rows"):
        value = as_type(number)
    assert getattr(made(kind, **{field.name: value}), field.name) == value


@pytest.mark.parametrize("as_type", [float, np.float64, np.float32])
def test_probabilities_of_numpy_are_probabilities(as_type):
    assert RandomisedResponse(1.0, p=as_type(0.5)).p == 0.5


test_every_kind_of_range_says_its_rule = refusals(
    (ranges.positive, (1, "m", 2, ", or None"), r"^a must be positive, in m, at least 2, or None \(got 1\)$"),
    (ranges.positive, ("one two",), r"^a must be positive \(got 'one two'\)$"),
    (ranges.positive, ("x" * 500,), r"…\)$"),
    (ranges.not_negative, (-1, "s"), r"^a must not be negative, in s \(got -1\)$"),
    (ranges.between, (1.5, 0, 1, "must lie in [0, 1]"), r"^a must lie in \[0, 1\] \(got 1.5\)$"),
    (ranges.whole, (2, 3), r"^a must be a whole number, at least 3 \(got 2\)$"),
    (ranges.one_of, ("w", ("x", "y", "z")), r"""^a must be "x", "y" or "z" \(got 'w'\)$"""),
    (ranges.true_or_false, (1,), r"^a must be True or False \(got 1\)$"),
    (ranges.levels, ([0.5],), "^a must .*two or more"),
    (ranges.levels, ([0.5, 0.5],), "^a must .*two or more"),
    (ranges.levels, ([0.5, 0.5000001],), "^a must .*first six digits"),
    call=lambda check, given: check("a", *given),
)


def test_what_lies_in_its_range_comes_back_as_a_number_of_python():
    assert ranges.levels("margins", [0.3, 0.1], also=(0.0,)) == [0.0, 0.1, 0.3]
    assert ranges.true_or_false("a", np.True_) is True
    assert ranges.positive("a", np.float32(0.5)) == 0.5
    assert (ranges.whole("k", 2.0, 2), type(ranges.whole("k", np.int8(2), 2))) == (2, int)
    assert ranges.between("a", 1, 0, 1, "") == 1


@pytest.mark.parametrize("profile", [stays, pois, markov_chains])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("diameter", "200"), ("diameter", 0), ("diameter", np.nan), ("duration", True), ("duration", -1)),
        *(("max_gap", np.inf), ("max_gap", 0), ("plane", "moon"), ("centroid", []), ("centroid", "mode")),
    ],
)
def test_profiles_refuse_them_too(profile, name, value):
    refuses(name, profile, KNOWN, **{name: value})


@pytest.mark.parametrize("value", [0, 1.5, True, "2"])
def test_least_number_of_stays(value):
    refuses("min_stays must be a whole number, at least 1", pois, KNOWN, min_stays=value)
