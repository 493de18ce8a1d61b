"""No protection: the baseline of every comparison (thesis §3.4.6, "non-obfuscated data")."""

from dataclasses import dataclass

import numpy as np

from mobpriv.traces.table import Traces, rows


@dataclass(frozen=True)
class Nothing:
    """Publish the traces unchanged.

    >>> import numpy as np
    >>> from mobpriv import load
    >>> traces = load("city", max_users=3).traces
    >>> Nothing().protect(traces, np.random.default_rng(1)).equals(traces)
    True
    """

    name = "none"
    random = False

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        return rows(traces, np.ones(len(traces), bool))
