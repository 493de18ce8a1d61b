"""The setting of all experiments of the thesis's chapter 3: days, halves, mechanisms, attacks.

The thesis and its program differ. Every experiment runs in one of two *variants*, named with every rate: ``"text"``, the
default, or ``"program"``, what the author's published code does.

* Halves: "text" has the first 15 days and the rest; "program" cuts in the middle of each user's own time span.
* Metres: "text" on the ground; "program" of a Mercator plane (0.79 m on the ground in San Francisco).
* POI-Attack: "text" uses POIs; "program" stays, so that a place is weighted by its visits.
* PIT-Attack: "text" sorts states by falling weight; "program" by rising weight, with scores in whole numbers.

Source: Maouche, thesis, §3.4.2 to §3.4.4.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from mobpriv.attacks import APAttack, PITAttack, POIAttack
from mobpriv.base.ranges import one_of
from mobpriv.experiments.days import AttackSetting, choose, in_halves
from mobpriv.mechanisms import W4M, GeoI, Nothing, Promesse
from mobpriv.traces.table import Traces

VARIANTS = ("text", "program")


def prepare(
    dataset: str = "city",
    variant: str = "text",
    halves: str = "",  # "" takes the rule of the variant
    start: str = "",
    days: int = 30,
    leave_out: str = "",
    max_users: int = 0,
) -> AttackSetting:
    """Choose the days of a data set (see :func:`mobpriv.experiments.days.choose`) and cut them into two halves."""
    check_variant(variant)
    chosen = choose(dataset, start, days, leave_out, max_users)
    rule = halves or {"text": "calendar", "program": "user"}[variant]
    return in_halves(chosen, rule, days, "choose fewer days, another start, or halves 'set' or 'user'")


def check_variant(variant: str) -> str:
    return one_of("variant", variant, VARIANTS)


def attacks(variant: str = "text") -> list:
    """Return AP-, POI- and PIT-Attack configured as in §3.4.2: cells of 800 m; stops of 200 m and 1 h."""
    if check_variant(variant) == "program":
        return [
            APAttack(800.0, plane="mercator", unit="bits"),
            POIAttack(200.0, 3600.0, plane="mercator", merged=False),
            PITAttack(200.0, 3600.0, plane="mercator", order="ascending", whole_scores=True),
        ]
    return [APAttack(800.0), POIAttack(200.0, 3600.0), PITAttack(200.0, 3600.0)]


def mechanisms(variant: str = "text") -> dict:
    """Return no protection, Geo-I, Promesse and W4M configured as in §3.4.2, by their names in figures and results."""
    plane = {"text": "ground", "program": "mercator"}[check_variant(variant)]
    used = [Nothing(), GeoI(epsilon=0.01, plane=plane), Promesse(alpha=200.0, plane=plane), W4M(k=2, delta=600.0, plane=plane)]
    return {mechanism.name: mechanism for mechanism in used}


def protected(mechanism, traces: Traces, seeds: Sequence[int]) -> Iterator[Traces]:
    """Yield the protected traces for each seed; once for a deterministic ``mechanism``."""
    distances = {"pairs": mechanism.pairs(traces)} if isinstance(mechanism, W4M) and len(traces) else {}
    for seed in seeds if mechanism.random else seeds[:1]:
        yield mechanism.protect(traces, np.random.default_rng(seed), **distances)
