"""Profile users under many metrics at once, from the same protected traces.

§VI-B3 varies the definition of a place, of a match and of a cell. This does not change the protected trace. It is protected
once per setting and measured with every :class:`mobpriv.pulp.Metrics`, so variants differ only in the metric.

Source: Cerf et al., TDSC 2018, §VI-B3.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from mobpriv.base.ranges import whole
from mobpriv.pulp import SWEEPS, Levels, Metrics, Sweep
from mobpriv.pulp.profiler import COLUMNS
from mobpriv.pulp.users import each_user, noise
from mobpriv.traces.table import Traces, by_user


def profiles(
    traces: Traces,
    metrics: Mapping[str, Metrics],
    sweeps: Sequence[Sweep] = SWEEPS,
    seeds: Sequence[int] = (1,),  # one repetition each; a deterministic mechanism runs once
    workers: int = 1,  # processes
    keep: Callable[[str, Callable], list[dict]] = lambda name, compute: compute(),
) -> dict[str, pd.DataFrame]:
    """Return name of a metric -> its table as from :func:`mobpriv.pulp.profile`: the same rows with the same noise.

    ``keep`` is that of :func:`mobpriv.pulp.profile`. ValueError without metrics, sweeps or seeds, and for two sweeps with the
    same name.
    """
    seeds = [whole("a seed", seed, 0) for seed in seeds]
    for what, of in {"metrics": metrics, "sweeps": sweeps, "seeds": seeds}.items():
        if not of:
            raise ValueError(f"{what} must hold at least one (got none)")
    names = [sweep.name for sweep in sweeps]
    if len(set(names)) < len(names):
        raise ValueError(f"sweeps must have different names (got {', '.join(names)}): name them")
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds must be all different (got {seeds})")
    found = each_user(_of_user, traces, lambda user: (dict(metrics), sweeps, seeds), "variants", workers, keep)
    table = pd.DataFrame(found, columns=["metrics", *COLUMNS])
    kinds = dict.fromkeys(("value", "privacy", "utility", "pois", "standard"), float) | {"repetition": int, "records": int}
    return {
        name: table.loc[table["metrics"] == name, COLUMNS].astype(kinds).reset_index(drop=True)  #
        for name in metrics
    }


def _of_user(trace: Traces, metrics: dict[str, Metrics], sweeps: Sequence[Sweep], seeds: Sequence[int]) -> list[dict]:
    user, found = by_user(trace)[0][0], []
    originals = {name: of.of(trace) for name, of in metrics.items()}
    for sweep in sweeps:
        for value in sweep.values:
            mechanism = sweep.at(value)
            for repetition, seed in enumerate(seeds if getattr(mechanism, "random", True) else seeds[:1], 1):
                row = {"user": user, "mechanism": sweep.name, "parameter": sweep.parameter, "value": value}
                row |= {"repetition": repetition, "standard": sweep.standard, "rises": sweep.rises}
                try:
                    published = mechanism.protect(trace, noise(seed, f"{user}, {sweep.name}, {value!r}"))
                except ValueError as refused:
                    levels = dict.fromkeys(metrics, Levels(np.nan, np.nan, f"{mechanism.name} refused the trace: {refused}"))
                    records = 0
                else:
                    levels, records = _levels(originals, published), len(published)
                for name, of in levels.items():
                    own = {"metrics": name, "records": records, "pois": len(originals[name].pois.lat)}
                    found.append(own | row | of._asdict())
    return found


def _levels(originals: dict, published: Traces) -> dict[str, Levels]:
    memory: dict[tuple, object] = {}
    return {
        name: original._replace(metrics=_Remembering(original.metrics, memory)).levels(published)
        for name, original in originals.items()
    }


class _Remembering:
    """Metrics that cache the cells and the places of one protected trace."""

    def __init__(self, metrics: Metrics, memory: dict):
        self._metrics, self._memory = metrics, memory
        self.near, self.matched, self.plane = metrics.near, metrics.matched, metrics.plane

    def cells(self, traces: Traces):
        return self._once(("cells", self._metrics.level), self._metrics.cells, traces)

    def centres(self, traces: Traces):
        m = self._metrics
        return self._once(("places", m.diameter, m.duration, m.max_gap, m.merged, m.plane), m.centres, traces)

    def _once(self, key: tuple, compute: Callable, traces: Traces):
        if key not in self._memory:
            self._memory[key] = compute(traces)
        return self._memory[key]
