"""PULP's profiler: measure each user's privacy and utility under every mechanism at a few values of its parameter.

A user's numbers depend on nobody else. The noise of a setting is drawn from the seed, her name, the mechanism and nine
digits of the value. It does not depend on other users, other values, the number of processes or the processor.

Source: Cerf et al., TDSC 2018, §III-B, §VI-A.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from mobpriv.base.ranges import one_of, positive, whole
from mobpriv.mechanisms import GeoI, Promesse
from mobpriv.pulp.levels import Levels, Metrics, Original
from mobpriv.pulp.users import each_user, noise_at
from mobpriv.traces.table import Traces, by_user

PROFILE_COLUMNS = ["user", "mechanism", "parameter", "value", "repetition", "privacy", "utility", "records", "reason"]
PROFILE_COLUMNS += ["pois", "standard", "rises"]


@dataclass(frozen=True)
class Sweep:
    """A mechanism, its one parameter, and the values to try.

    ``mechanism`` has the parameter at its standard value, where the modeler starts: "the default value of the configuration
    parameter defined by the authors" (§VI-A). PULP is for mechanisms that protect each user separately.
    """

    mechanism: Any
    parameter: str  # the field of the mechanism
    values: Sequence[float]  # to twelve digits: the last ones of a power depend on the processor
    rises: str  # "privacy" or "utility": the level that is expected to rise with the parameter
    name: str = ""  # in tables; "": the mechanism's

    def __post_init__(self):
        field_names = [f.name for f in fields(self.mechanism)]
        one_of("parameter", self.parameter, field_names)
        one_of("rises", self.rises, ("privacy", "utility"))
        values = sorted(float(f"{positive(f'a value of {self.parameter}', value):.12g}") for value in self.values)
        if not values:
            raise ValueError(f"values of {self.parameter} must hold at least one number (got none)")
        duplicates = [a for a, b in pairwise(values) if a == b]
        if duplicates:
            raise ValueError(f"values of {self.parameter} must differ ({duplicates[0]:g} occurs twice)")
        object.__setattr__(self, "values", tuple(values))
        object.__setattr__(self, "name", self.name or self.mechanism.name)
        for value in (*values, self.standard):
            self.at(positive(self.parameter, value))

    @property
    def standard(self) -> float:
        return getattr(self.mechanism, self.parameter)

    @property
    def low(self) -> float:
        return self.values[0]

    @property
    def high(self) -> float:
        return self.values[-1]

    def at(self, value: float) -> Any:
        """Return the mechanism with its parameter at ``value``."""
        return replace(self.mechanism, **{self.parameter: value})


# four values a decade (§VI-A): 17 in [1e-4, 1] 1/m, 10 in [50, 1e4] m
GEO_I = Sweep(GeoI(), "epsilon", np.geomspace(1e-4, 1, 17), rises="utility")
PROMESSE = Sweep(Promesse(), "alpha", np.geomspace(50, 1e4, 10), rises="privacy")
SWEEPS = (GEO_I, PROMESSE)


def profile(
    traces: Traces,
    sweeps: Sequence[Sweep] = SWEEPS,
    seeds: Sequence[int] = (1,),  # one repetition each; a deterministic mechanism runs once
    metrics=Metrics(),  # noqa: B008 - it cannot be changed
    workers: int = 1,  # processes
    keep: Callable[[str, Callable], list[dict]] = lambda name, compute: compute(),
) -> pd.DataFrame:
    """Measure the levels of every user at every value of every sweep: one row per user, mechanism, value and repetition.

    Columns:

    * user, mechanism, parameter, value, repetition (from 1 on, in the order of the seeds), privacy, utility.
    * records: of the protected trace; 0 if it was erased.
    * reason: why a level is NaN: the user has no POI, or the mechanism refused her trace, in its own words.
    * pois: of the original trace; NaN if other metrics do not count them.
    * standard, rises: of the sweep, for :func:`mobpriv.pulp.models`.

    ``keep(name, compute)`` stores the rows of one user, for example with :func:`mobpriv.book.step`, so that an interrupted run
    continues. Profiles with other metrics or sweeps need other names: ``lambda name, compute: book.step(f"500 m {name}",
    compute)``.
    """
    return profile_under("profile", traces, {"": metrics}, sweeps, seeds, workers, keep)[PROFILE_COLUMNS]


def profile_under(
    name: str, traces: Traces, metrics: Mapping[str, Any], sweeps: Sequence[Sweep], seeds, workers: int, keep: Callable
) -> pd.DataFrame:
    """Return :func:`profile` under several metrics, from the same protected traces; the column ``metrics`` has their names."""
    by_name = _named(sweeps)
    settings = [(sweep.name, value) for sweep in by_name.values() for value in sweep.values]
    return _measured(name, traces, dict.fromkeys(by_user(traces)[0], settings), by_name, seeds, metrics, workers, keep)


def achieved(
    traces: Traces,
    chosen: pd.DataFrame,  # user, mechanism, value: one row per setting; rows without a mechanism are skipped
    sweeps: Sequence[Sweep] = SWEEPS,
    seeds: Sequence[int] = tuple(range(1001, 1011)),
    metrics=Metrics(),  # noqa: B008
    workers: int = 1,
    keep: Callable[[str, Callable], list[dict]] = lambda name, compute: compute(),
) -> pd.DataFrame:
    """Protect users again, each with her own settings, and measure the levels: a table like that of :func:`profile`.

    Seeds that no profile used give fresh noise, as for a user who follows a recommendation (§VI-C).
    """
    by_name = _named(sweeps)
    settings = {user: [] for user in by_user(traces)[0]}
    for user, mechanism, value in chosen[["user", "mechanism", "value"]].dropna().itertuples(index=False):
        if user not in settings:
            raise ValueError(f"settings must be those of users who have records ({user} has none)")
        one_of("a chosen mechanism", mechanism, tuple(by_name))
        settings[user].append((mechanism, positive(f"the value chosen for {user}", value)))
    return _measured("achieved", traces, settings, by_name, seeds, {"": metrics}, workers, keep)[PROFILE_COLUMNS]


def _named(sweeps: Sequence[Sweep]) -> dict[str, Sweep]:
    by_name = {sweep.name: sweep for sweep in sweeps}
    if not by_name:
        raise ValueError("sweeps must hold at least one mechanism (got none)")
    if len(by_name) < len(sweeps):
        raise ValueError(f"sweeps must have different names (got {', '.join(s.name for s in sweeps)}): name them")
    return by_name


def _measured(
    name: str, traces: Traces, settings: dict, sweeps: dict, seeds, metrics: Mapping[str, Any], workers: int, keep: Callable
) -> pd.DataFrame:
    if not metrics:
        raise ValueError("metrics must hold at least one (got none)")
    seeds = [whole("a seed", seed, 0) for seed in seeds]
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds must hold at least one, all different (got {seeds})")
    rows = each_user(_profile_user, traces, lambda user: (settings[user], sweeps, seeds, dict(metrics)), name, workers, keep)
    table = pd.DataFrame(rows, columns=["metrics", *PROFILE_COLUMNS])
    numbers = dict.fromkeys(("value", "privacy", "utility", "pois", "standard"), float)
    return table.astype({**numbers, "repetition": int, "records": int})


def _profile_user(trace: Traces, settings: list, sweeps: dict[str, Sweep], seeds: Sequence[int], metrics: dict) -> list[dict]:
    """Return the rows of one user at settings (mechanism, value), under each of the metrics."""
    user, originals, rows = by_user(trace)[0][0], {name: one.of(trace) for name, one in metrics.items()}, []
    for name, value in settings:
        sweep = sweeps[name]
        mechanism = sweep.at(value)
        for repetition, seed in enumerate(seeds if getattr(mechanism, "random", True) else seeds[:1], 1):
            rng, refusal, computed = noise_at(seed, user, name, value), "", {}
            row = {"user": user, "mechanism": name, "parameter": sweep.parameter, "value": value, "repetition": repetition}
            row |= {"standard": sweep.standard, "rises": sweep.rises}
            try:
                published = mechanism.protect(trace, rng)
            except ValueError as refused:
                refusal = f"{mechanism.name} refused the trace: {refused}"
            row["records"] = 0 if refusal else len(published)
            for of, original in originals.items():
                own = isinstance(original, Original)  # other metrics know neither POIs nor what is computed already
                if refusal:
                    levels = Levels(np.nan, np.nan, refusal)
                else:
                    levels = original.levels(published, computed) if own else original.levels(published)
                levels = {"privacy": levels.privacy, "utility": levels.utility, "reason": levels.reason}
                rows.append({"metrics": of, **row, "pois": len(original.pois.lat) if own else None, **levels})
    return rows
