"""Information loss of protected profiles.

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy risk mitigation for user profiles*, §6.4 and §7.1,
Figure 5.

Profiles are arrays (n, cells) of shares of days, either all cells or those of h.
"""

from typing import NamedTuple

import numpy as np

from mobpriv.base.ranges import one_of

SIMILARITIES = ("inverse", "linear", "exponential")
_WEEK_PARTS = 6  # parts of a week: weekdays and weekend, three slots each


class InformationLoss(NamedTuple):
    mse: float  # §6.4
    bound: float  # mse if all profiles form a single group
    share: float  # mse/bound; 0 if all profiles are equal, because then nothing is lost


def mse(original, protected, sizes=None) -> float:
    """Mean squared error of §6.4: 1/n Σ_i (x_i − x'_i)², with the squared Euclidean norm Σ_j (x_ij − x'_ij)².

    It is a sum over cells and a mean over profiles. Divide by the number of cells for a mean over cells. ``sizes`` (n,): the
    number of profiles that each row represents.

    Departures from the paper: it does not define the square of a vector.
    """
    x, y, n = _validated(original, protected, sizes)
    return float(np.average(((x - y) ** 2).sum(axis=1), weights=n))


def one_group(original, sizes=None) -> float:
    """The bound of §6.4: 1/n Σ_i (x_i − x̂)², where x̂ is the mean of all profiles."""
    x, _, n = _validated(original, original, sizes)
    return float(np.average(((x - np.average(x, axis=0, weights=n)) ** 2).sum(axis=1), weights=n))


def information_loss(original, protected, sizes=None) -> InformationLoss:
    loss, bound = mse(original, protected, sizes), one_group(original, sizes)
    return InformationLoss(loss, bound, loss / bound if bound else 0.0)


def profile_distances(original, protected) -> np.ndarray:
    """Distance ‖x_i − x'_i‖₂ of each profile, (n,)."""
    x, y, _ = _validated(original, protected, None)
    return np.sqrt(((x - y) ** 2).sum(axis=1))


def similarity(original, protected, form: str = "inverse") -> np.ndarray:
    """The similarity of Figure 5, "with respect to the Euclidean distance" d, of each profile, (n,), in [0, 1].

    * ``inverse``: 1/(1 + d);
    * ``linear``: 1 − d/√cells, where √cells is the largest distance;
    * ``exponential``: e^−d.

    Departures from the paper: it does not state the form, but its differential-privacy curves reveal it. Most cells are 0. On a
    profile of zeros, clamped Laplace noise of scale 1/ε has mean square (1 − (1 + ε)·e^−ε)/ε² in each of 24 cells. Thus d is
    about 2.5 at ε = 1 and 0.49 at ε = 10. The three forms then give:

    * inverse: 0.28 and 0.67 (§7.1: "between 0.2 and 0.3", "around 0.7");
    * linear: 0.49 and 0.90;
    * exponential: 0.08 and 0.61.
    """
    one_of("form", form, SIMILARITIES)
    d = profile_distances(original, protected)
    if form == "inverse":
        return 1 / (1 + d)
    return 1 - d / np.sqrt(np.shape(original)[1]) if form == "linear" else np.exp(-d)


def same_time(original, protected) -> np.ndarray:
    """Probability that the busiest week part of a profile stays the same after protection, for each profile, (n,).

    The six parts are weekdays and weekend in three slots each, averaged over the weeks; in case of ties one is drawn at random.
    This is our interpretation of §7.1, "the general behavior of the individual is preserved", which names no measure.
    """
    x, y, _ = _validated(original, protected, None)
    if x.shape[1] % _WEEK_PARTS:
        raise ValueError(f"profiles must hold whole weeks of {_WEEK_PARTS} cells (got {x.shape[1]} cells)")
    fullest = []
    for values in (x, y):
        of_part = values.reshape(len(values), -1, _WEEK_PARTS).mean(axis=1)
        fullest.append(of_part >= of_part.max(axis=1, keepdims=True) - 1e-9)
    before, after = fullest
    return (before & after).sum(axis=1) / after.sum(axis=1)


def _validated(original, protected, sizes):
    x, y = np.asarray(original, float), np.asarray(protected, float)
    if x.ndim != 2 or x.shape != y.shape or not x.size:
        raise ValueError(
            f"original and protected profiles must be two tables of the same shape, with at least one row (got {x.shape} and {y.shape})"
        )
    for what, values in (("original", x), ("protected", y)):
        if np.isnan(values).any():
            i, j = np.argwhere(np.isnan(values))[0]
            raise ValueError(f"{what} profiles must hold numbers (NaN in row {i}, cell {j})")
    n = np.ones(len(x)) if sizes is None else np.asarray(sizes, float)
    if n.shape != (len(x),) or not (n > 0).all():
        raise ValueError(f"sizes must hold a positive number for each of {len(x)} rows (got shape {n.shape})")
    return x, y, n
