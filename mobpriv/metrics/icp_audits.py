"""Exact worst-case privacy loss of individual call profiles: does the differential-privacy baseline satisfy its guarantee?

Source: Pratesi, Gabrielli, Cintia, Monreale and Giannotti, *PRIMULE: Privacy risk mitigation for user profiles*, §7.

Cells are independent, so the worst log-ratio of two profiles is the sum over the cells in which they differ. The audit of a
cell uses its law directly. It covers pairs of values at the distance of one change, both atoms and outputs between them.
"""

from typing import NamedTuple

import numpy as np

from mobpriv.base.ranges import whole
from mobpriv.mechanisms.icp.noise import changed_at_once, changes


class WorstCase(NamedTuple):
    """The worst case over all neighbouring profiles, and its output."""

    epsilon: float  # the largest ln P(published | true) − ln P(published | neighbour)
    true: np.ndarray  # (cells,)
    neighbour: np.ndarray
    published: np.ndarray  # the worst output: 0 and 1 have a probability, values between them a density


def release_loss(mechanism, unit: str, cells: int = 24, steps: int = 20) -> WorstCase:
    """The smallest ε for which one release of a profile is ε-differentially private.

    ``unit`` is the unit of privacy, that is, what differs between neighbours: cell, call, day or profile.

    Values are examined on a grid of ``steps`` over [0, 1], and where a change begins or ends. A finer grid yields no larger
    loss. The log-ratio of a Laplace law depends only on the difference, and the atoms at 0 and 1 attain it.
    """
    whole("steps", steps, 2)
    worst = np.empty((4, cells))
    kinds = np.column_stack([changes(unit, cells), mechanism.scale(cells)])
    for change, scale in np.unique(kinds, axis=0):
        worst[:, (kinds == (change, scale)).all(axis=1)] = np.array(_of_cell(mechanism, change, scale, steps))[:, None]
    # the cells that may change at once and contribute most to the loss: one, all, or those of one day
    n = changed_at_once(unit, cells)
    most = worst[0].reshape(-1, n).sum(axis=1).argmax()
    worst[:, np.arange(cells) // n != most] = 0.0  # both profiles are equal in these cells
    return WorstCase(float(worst[0].sum()), *worst[1:])


def _of_cell(mechanism, change, scale, steps) -> tuple[float, float, float, float]:
    """The worst log-ratio of a cell, with its values and output."""
    x = np.union1d(np.linspace(0, 1, steps + 1), [change, 1 - change])
    one, other = (side.ravel() for side in np.meshgrid(x, x))
    near = np.abs(one - other) <= change * (1 + 1e-12)
    one, other = one[near], other[near]
    ratio = mechanism.log_law(x[:, None], one, scale) - mechanism.log_law(x[:, None], other, scale)
    o, p = np.unravel_index(ratio.argmax(), ratio.shape)
    return ratio[o, p], one[p], other[p], x[o]
