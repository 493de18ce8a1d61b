"""Hybrid-LPPM: each trace gets the mechanism that protects it best, in case of ties the most useful one.

Source: Maouche, thesis, chapter 6.

A proxy tries all mechanisms: it knows the user, has background knowledge of all users, and has attacks trained on it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from mobpriv.attacks.policies import reidentified
from mobpriv.base.draws import generator
from mobpriv.base.ranges import not_negative
from mobpriv.traces.profiles import computed_once
from mobpriv.traces.sub_traces import check_owners
from mobpriv.traces.table import Traces, by_user, rows, together

_RISK_TOLERANCE = 1e-9  # share of the sum of the weights: risks that differ by less are equal, as .1 + .2 and .3 are


class ProxyResult(NamedTuple):
    """The traces that the proxy published, and its reasons. Tables have one row a trace and one column a mechanism, by name."""

    traces: Traces
    mechanism: pd.Series  # L*: name of the mechanism chosen for each trace
    risk: pd.DataFrame  # P_L(T), Equation (6.1): the weights of the attacks that succeed, summed up
    utility: pd.DataFrame  # U_T(T, L(T)); NaN where a mechanism published nothing of a trace
    tried: dict[str, Traces]  # L(T): all traces protected by each mechanism


@dataclass(frozen=True, eq=False)
class Hybrid:
    """L* of Equation (6.3): the mechanism of best utility among those of least risk (6.2); ties go to the first named.

    ``attacks`` are fitted on the background knowledge KD; their weights w^A are 1 unless ``weights`` is given. A risk is the
    weight of the attacks that succeed. Equation 6.1 may have had a divisor, which is lost in our copy of the text and changes
    no choice. ``utility(original, protected)`` gives one value a trace, larger is better, for instance
    :func:`mobpriv.metrics.area_coverage`, an F-score. If a mechanism erases a trace, the trace counts as protected with no
    utility. This mechanism is chosen only if every other one fails against more attacks, or also erases it. A published trace
    whose utility is not defined (NaN) is preferred to an erased one.

    Departures of the author's program, not copied:

    * It chooses once for all traces of a user.
    * Its mechanisms are no protection, Geo-I, Promesse, W4M and HMC; its attacks are AP, POI and PIT.
    * It reads both tables from files, and takes HMC for users whom they do not name.
    * An older part takes the first of no protection, Geo-I and Promesse against which AP-Attack fails, and no protection if it
      never fails.

    The thesis evaluates the result with the same attacks that chose it. For the risk from another adversary, fit other attacks
    (other seeds or other knowledge) and rank :attr:`ProxyResult.traces`.

    >>> import numpy as np
    >>> from mobpriv import APAttack, GeoI, Nothing, area_coverage, load
    >>> from mobpriv.traces.table import split_in_half
    >>> known, secret = split_in_half(load("city", max_users=3).traces, "set")
    >>> coverage = lambda original, protected: area_coverage(original, protected)["f_score"]
    >>> hybrid = Hybrid([Nothing(), GeoI(0.001)], [APAttack().fit(known)], coverage)
    >>> hybrid.choose(secret, np.random.default_rng(1)).mechanism.tolist()
    ['Geo-I', 'none', 'Geo-I']
    """

    mechanisms: Sequence
    attacks: Sequence  # fitted: with `rank`
    utility: Callable[[Traces, Traces], pd.Series]
    weights: Sequence[float] | None = None  # of the attacks; None: 1 each
    owners: Mapping[str, str] | None = field(default=None, repr=False)  # trace -> user; None: traces have their users' names

    name = "Hybrid-LPPM"

    def __post_init__(self):
        check_owners(self.owners)
        for name, method in (("mechanisms", "protect"), ("attacks", "rank")):
            given = getattr(self, name)
            if not isinstance(given, list | tuple) or not all(callable(getattr(item, method, None)) for item in given):
                raise ValueError(f"{name} must be a list of objects with the method {method} (got {type(given).__name__})")
        if not callable(self.utility):
            raise ValueError(f"utility must be a function of original and protected traces (got {type(self.utility).__name__})")
        if not isinstance(self.weights, list | tuple | np.ndarray | None):
            raise ValueError(f"weights must be a list with one number an attack (got {type(self.weights).__name__})")
        names = [mechanism.name for mechanism in self.mechanisms]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"mechanisms must be one or more, each with a name of its own (got {', '.join(names) or 'none'})")
        if not len(self.attacks):
            raise ValueError(
                "attacks must be one or more, fitted: without an attack every mechanism has the same risk (got none)"
            )
        weights = [1.0] * len(self.attacks) if self.weights is None else [not_negative("weights", w) for w in self.weights]
        if len(weights) != len(self.attacks):
            raise ValueError(f"weights must have one number an attack (got {len(weights)} for {len(self.attacks)} attacks)")
        object.__setattr__(self, "weights", tuple(weights))

    @property
    def random(self) -> bool:
        return any(mechanism.random for mechanism in self.mechanisms)

    def __repr__(self) -> str:
        return f"Hybrid({[m.name for m in self.mechanisms]}, {[a.name for a in self.attacks]}, weights={self.weights})"

    def protect(self, traces: Traces, rng: np.random.Generator) -> Traces:
        return self.choose(traces, rng).traces

    def choose(self, traces: Traces, rng: np.random.Generator) -> ProxyResult:
        """Try every mechanism on every trace; each has its own generator."""
        users, _ = by_user(traces)
        names = [mechanism.name for mechanism in self.mechanisms]
        children = generator(rng).spawn(len(names))
        published = [
            m.protect(traces, child) if len(users) else traces for m, child in zip(self.mechanisms, children, strict=True)
        ]
        with computed_once(*published):
            risk = pd.DataFrame({name: self.risk(p, users) for name, p in zip(names, published, strict=True)}, index=users)
        utility = pd.DataFrame(
            {n: self.utility(traces, p).reindex(users) for n, p in zip(names, published, strict=True)}, index=users
        )
        least_risk = risk.sub(risk.min(axis=1), axis=0).to_numpy(float) <= _RISK_TOLERANCE * sum(self.weights)  # L_min, (6.2)
        has_trace = np.array([users.isin(by_user(p)[0]) for p in published]).reshape(len(names), -1).T
        useful = utility.fillna(-np.inf).to_numpy(float)
        best = np.lexsort((-useful, ~has_trace, ~least_risk))[:, 0]  # L*, (6.3); in case of ties the first
        mechanism = pd.Series(np.array(names, object)[best], index=users, name="mechanism", dtype=object)
        parts = [rows(p, p["user"].isin(users[mechanism == n]).to_numpy()) for n, p in zip(names, published, strict=True)]
        return ProxyResult(together(parts), mechanism, risk, utility, dict(zip(names, published, strict=True)))

    def risk(self, published: Traces, users: pd.Index) -> np.ndarray:
        """P_L(T), Equation (6.1), for every user; 0 for an erased trace."""
        hits = [reidentified(attack.rank(published), users, self.owners).to_numpy(float) for attack in self.attacks]
        return np.asarray(self.weights) @ np.array(hits)
