"""No protection: the baseline of every comparison (thesis §3.4.6, "non-obfuscated data")."""

from dataclasses import dataclass

import numpy as np

from mobpriv.traces.table import Traces, rows


@dataclass(frozen=True)
class Nothing:
    """Publish the traces unchanged."""

    name = "none"
    random = False

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        return rows(traces, np.ones(len(traces), bool))
