"""Is differential privacy of call profiles kept? Exact worst cases of the baseline in Pratesi, Gabrielli, Cintia, Monreale and
Giannotti, *PRIMULE: Privacy risk mitigation for user profiles*, §7.

Cells are independent, so the worst log-ratio of two profiles is the sum over the cells in which they differ. Each cell is
audited from its law itself: over pairs of values that are a change apart, over both atoms and over outputs between them.
"""

from typing import NamedTuple

import numpy as np

from mobpriv.mechanisms.call_profiles.noise import changed_at_once, changes
from mobpriv.ranges import whole


class Loss(NamedTuple):
    """The worst of all neighbouring profiles: which, and what is published."""

    epsilon: float  # the largest ln P(published | true) − ln P(published | neighbour)
    true: np.ndarray  # (cells,)
    neighbour: np.ndarray
    published: np.ndarray  # the worst output: 0 and 1 have a probability, values between a density


def privacy_loss(mechanism, unit: str, cells: int = 24, steps: int = 20) -> Loss:
    """The least ε for which one release of a profile is ε-differentially private, if one ``unit`` of privacy changes: cell,
    call, day or profile.

    Values are looked at on a grid of ``steps`` over [0, 1], and where a change begins or ends; a finer one finds nothing worse,
    as the log-ratio of a Laplace law depends on the difference alone and the atoms at 0 and 1 reach it.
    """
    whole("steps", steps, 2)
    found = np.empty((4, cells))
    kinds = np.column_stack([changes(unit, cells), mechanism.scale(cells)])
    for change, scale in np.unique(kinds, axis=0):
        found[:, (kinds == (change, scale)).all(axis=1)] = np.array(_of_cell(mechanism, change, scale, steps))[:, None]
    together = _together(unit, found[0], cells)
    found[:, ~together] = 0.0  # equal there: nothing is told
    return Loss(float(found[0].sum()), *found[1:])


def _of_cell(mechanism, change, scale, steps) -> tuple[float, float, float, float]:
    """The worst log-ratio of a cell, and at which values and output."""
    x = np.union1d(np.linspace(0, 1, steps + 1), [change, 1 - change])
    one, other = (side.ravel() for side in np.meshgrid(x, x))
    near = np.abs(one - other) <= change * (1 + 1e-12)
    one, other = one[near], other[near]
    ratio = mechanism.log_law(x[:, None], one, scale) - mechanism.log_law(x[:, None], other, scale)
    o, p = np.unravel_index(ratio.argmax(), ratio.shape)
    return ratio[o, p], one[p], other[p], x[o]


def _together(unit, worst, cells) -> np.ndarray:
    """The cells that may change at once and tell most: one, all, or those of one day."""
    many = changed_at_once(unit, cells)
    start = worst.reshape(-1, many).sum(axis=1).argmax() * many
    return (np.arange(cells) >= start) & (np.arange(cells) < start + many)
