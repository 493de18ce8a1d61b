"""What the mechanisms on profiles share: the parameters that each user chooses, ε_i and χ_i, and how a table is protected.

Source: Olivier, Quertier, *Towards an in-depth understanding of privacy parameters for randomized sanitization mechanisms*,
§III-B.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mobpriv.base.draws import generator
from mobpriv.base.ranges import between, positive
from mobpriv.visits.affinity import Neighbourhood
from mobpriv.visits.profiles import as_counts

_MIN_EPSILON = 1e-9  # below it the noise exceeds the range of integers
_MAX_EPSILON = 700.0  # above it 1/(1 + e^ε) is 0 in floating point: nothing would be perturbed, and no ratio bounded


@dataclass(frozen=True, eq=False)
class VisitsMechanism:
    """What the mechanisms on profiles share; each perturbs the values in χ in ``noisy(true, chi, u)``, u uniform numbers.

    Profiles are counts; a mechanism on booleans has its own ``checked``, one that draws other numbers its own ``drawn``.
    """

    epsilon: float | np.ndarray | pd.Series  # per visit, or visited POI; one number, or one a user
    chi: Neighbourhood | np.ndarray | pd.DataFrame | None = None  # None: all POIs

    random = True

    def __post_init__(self):
        object.__setattr__(self, "epsilon", _check_epsilon(self.epsilon))
        _check_chi(self.chi)

    def protect(self, profiles: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        true = self.checked(profiles)
        perturbed = in_table_order(self, profiles).drawn(true, _chi_of(self, profiles), generator(rng))
        return pd.DataFrame(perturbed, profiles.index, profiles.columns)

    def checked(self, profiles: pd.DataFrame) -> np.ndarray:
        return as_counts(profiles).to_numpy().astype(np.int64)

    def drawn(self, true: np.ndarray, chi: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.noisy(true, chi, rng.random(true.shape))


def _check_epsilon(value):
    """Check ε: a float, or one a user (a Series by user, or an array in the order of the table), each positive."""
    by_name = isinstance(value, pd.Series)
    if not by_name and not (isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1 and len(value)):
        return _check_range("epsilon", value, ", one number or one a user")
    for i, one in enumerate(np.asarray(value).tolist()):
        _check_range(f"epsilon of user {i}", one)
    if by_name:
        return value.astype(float)
    array = np.array(value, float)
    array.flags.writeable = False
    return array


def _check_range(name: str, value, hint: str = "") -> float:
    number = positive(name, value, "1 over a visit", _MIN_EPSILON, hint)
    return between(name, number, _MIN_EPSILON, _MAX_EPSILON, f"must be at most {_MAX_EPSILON:g}: above it nothing is perturbed")


def as_column(epsilon):
    """ε for arrays (users, m): a scalar is unchanged, one value a user becomes a column."""
    return epsilon if isinstance(epsilon, float) else np.asarray(epsilon)[:, None]


def _check_chi(chi) -> None:
    """Check χ: None for all POIs, a :class:`Neighbourhood`, or a fixed mask.

    A mask is a table users × POIs, a Series by POI, or an array of either.
    """
    if chi is None or isinstance(chi, Neighbourhood):
        return
    values = np.asarray(chi) if isinstance(chi, pd.DataFrame | pd.Series | np.ndarray) else np.zeros(0)
    if values.dtype != bool or values.ndim not in (1, 2) or not values.size:
        kind = f"{chi.dtype} of shape {chi.shape}" if isinstance(chi, np.ndarray) else repr(chi)[:60]
        raise ValueError(
            f"chi must be None for all POIs, a Neighbourhood, or a mask of truth values, POIs or users × POIs (got {kind})"
        )
    if not values.any(axis=-1).all():
        raise ValueError("chi must not be empty: a user without a POI in it publishes her profile as it is")


def chi_text(chi) -> str:
    """χ as a short text."""
    return "all" if chi is None else repr(chi) if isinstance(chi, Neighbourhood) else f"mask of shape {np.shape(chi)}"


def _chi_of(mechanism, profiles: pd.DataFrame) -> np.ndarray:
    """χ_i of each user, a mask (users, m). Raises ValueError if one is empty: that profile would be published unchanged."""
    chi, values = mechanism.chi, profiles.to_numpy()
    if chi is None:
        return np.ones(values.shape, bool)
    near = isinstance(chi, Neighbourhood)
    mask = chi.masks(values > 0) if near else _mask(chi, profiles)
    empty = ~mask.any(axis=1)
    if empty.any():
        why = "she has visited no POI, and n is 0; leave her out, or take n ≥ 1" if near else "none of these POIs is in it"
        raise ValueError(
            f"chi is empty for {empty.sum()} of {len(empty)} users, the first is {profiles.index[empty.argmax()]}: {why}"
        )
    return mask


def _mask(chi, profiles: pd.DataFrame) -> np.ndarray:
    """A fixed χ for the users and POIs of the table."""
    if isinstance(chi, pd.DataFrame):
        _named(profiles.index, chi.index, "user")
        _named(profiles.columns, chi.columns, "POI")
        return chi.reindex(index=profiles.index, columns=profiles.columns).to_numpy(bool)
    if isinstance(chi, pd.Series):
        _named(profiles.columns, chi.index, "POI")
        chi = chi.reindex(profiles.columns).to_numpy(bool)
    if chi.shape not in (profiles.shape, profiles.shape[1:]):
        raise ValueError(f"chi must have a column a POI, and a row a user or none (got {chi.shape} for {profiles.shape})")
    return np.broadcast_to(chi, profiles.shape)


def in_table_order(mechanism, profiles: pd.DataFrame):
    """The mechanism with ε_i in the order of the table."""
    epsilon = mechanism.epsilon
    if isinstance(epsilon, pd.Series):
        _named(profiles.index, epsilon.index, "epsilon of user")
        ordered = epsilon.reindex(profiles.index).to_numpy(float)
        return replace(mechanism, epsilon=ordered if len(ordered) else float(epsilon.max()))  # no users: any ε will do
    if not isinstance(epsilon, float) and len(epsilon) != len(profiles):
        raise ValueError(f"epsilon must be one number, or one for each of the {len(profiles)} users (got {len(epsilon)})")
    return mechanism


def common_epsilon(mechanism) -> float:
    """The ε of all users. Raises ValueError if users have different ones."""
    if not isinstance(mechanism.epsilon, float):
        raise ValueError("epsilon must be one number here: with one for each user, each user has a distribution of her own")
    return mechanism.epsilon


def _named(wanted: pd.Index, given: pd.Index, what: str) -> None:
    missing = wanted.difference(given)
    if len(missing):
        raise ValueError(f"no {what} {missing[0]} is given ({len(missing)} of {len(wanted)} are missing)")
