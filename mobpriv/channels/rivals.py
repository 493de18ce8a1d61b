"""Mechanisms that need no optimisation, as channels on places, for comparison with the optimal ones.

Each satisfies p(o|s) ≤ exp(ε d(s, s')) p(o|s') for all places, Equation (15) of Shokri (PETS 2015). For their remapped versions
(Chatzikokolakis, ElSalamouny, Palamidessi, *Efficient utility improvement for location privacy*, PETS 2017) pass the channel
through :func:`mobpriv.channels.inference.remap`. Distances in metres, epsilon in 1/m; arrays indexed by the secret.
"""

import numba
import numpy as np

from mobpriv.channels import checks

_LARGEST_EXPONENT = 700.0  # exp(-700) is about the smallest probability that a double holds with all its digits


def planar_laplace(x_edges, y_edges, epsilon: float) -> np.ndarray:
    """Planar Laplace noise from the centre of the cell, truncated to the grid; shape (cells, cells).

    Source: Andrés, Bordenabe, Chatzikokolakis, Palamidessi, CCS 2013, §4, §5.

    z has the density ε²/(2π) exp(−ε |z − x|) around the centre x (§4). A z outside the area moves to the nearest point of it
    (§5), and the cell that contains z is reported. Both steps are post-processing, so ε holds between centres. ``x_edges``
    (columns + 1) and ``y_edges`` (rows + 1) are the cells' borders in metres, ascending. Cells count along x first: cell = row
    · columns + column.

    The probability of a cell is an integral over the angle θ, with the distribution of the radius in closed form:

        p = 1/(2π) ∫ G(r_in(θ)) − G(r_out(θ)) dθ,      G(r) = Pr{radius > r} = (1 + ε r) exp(−ε r)

    where the ray enters the cell at r_in and leaves it at r_out; truncation extends cells at the border to infinity. The range
    of angles is cut at the axes and at the corners, between which the integrand is smooth. Each part is integrated by the
    tanh-sinh rule, which copes with the steep ends that unbounded strips have. Relative error below 1e-9; each row is then
    normalised to sum to 1.
    """
    x_edges, y_edges = _edges(x_edges, "x_edges"), _edges(y_edges, "y_edges")
    epsilon = checks.epsilon(epsilon)
    cells = (len(x_edges) - 1) * (len(y_edges) - 1)
    checks.fits(cells, cells, "the channel")
    x, y = (x_edges[1:] + x_edges[:-1]) / 2, (y_edges[1:] + y_edges[:-1]) / 2
    x_open, y_open = x_edges.copy(), y_edges.copy()
    x_open[[0, -1]] = y_open[[0, -1]] = -np.inf, np.inf
    _check_exponent(epsilon * np.hypot(x[-1] - x[0] + np.diff(x_edges).max(), y[-1] - y[0] + np.diff(y_edges).max()))
    channel = _cell_probabilities(x, y, x_open, y_open, epsilon, *_tanh_sinh())
    return channel / channel.sum(1, keepdims=True)


def exponential_mechanism(d_epsilon, epsilon: float) -> np.ndarray:
    """p(o|s) ∝ exp(−ε d(s, o) / 2) with the secrets as observables, shape (S, S).

    Source: McSherry and Talwar, FOCS 2007.

    Half of ε covers the numerator and the other half the normalisation, which differs from secret to secret. Most pairs use
    less than that: :func:`mobpriv.channels.guarantees.effective_epsilon` computes the ε of the channel.
    """
    d = checks.metric(d_epsilon, "d_epsilon")
    _check_exponent(checks.epsilon(epsilon) * d.max())
    channel = np.exp(-epsilon / 2 * d)
    return channel / channel.sum(1, keepdims=True)


def _check_exponent(exponent: float) -> None:
    if exponent > _LARGEST_EXPONENT:
        raise ValueError(
            f"epsilon times the largest distance must not exceed {_LARGEST_EXPONENT:g} (got {exponent:.4g}): the smallest "
            "probabilities would become 0 in floating point, and with them the bound; use a smaller epsilon or a smaller area"
        )


def _edges(values, name: str) -> np.ndarray:
    values = np.asarray(values, float)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
        raise ValueError(f"{name} must be at least two finite, ascending borders of cells, in m (got {values.tolist()})")
    return values


def _tanh_sinh(step: float = 0.04, end: float = 3.2) -> tuple[np.ndarray, np.ndarray]:
    """Nodes in (-1, 1) and weights of the double-exponential rule (Takahasi and Mori 1974)."""
    t = np.arange(-round(end / step), round(end / step) + 1) * step
    inner = np.pi / 2 * np.sinh(t)
    return np.tanh(inner), step * np.pi / 2 * np.cosh(t) / np.cosh(inner) ** 2


@numba.njit(cache=True)
def _cell_probabilities(x, y, x_edges, y_edges, epsilon, nodes, weights):
    channel = np.empty((len(y) * len(x), len(y) * len(x)))
    for s in range(len(channel)):
        west, south = x_edges - x[s % len(x)], y_edges - y[s // len(x)]
        for o in range(len(channel)):
            column, row = o % len(x), o // len(x)
            channel[s, o] = _in_box(west[column], west[column + 1], south[row], south[row + 1], epsilon, nodes, weights)
    return channel


@numba.njit(cache=True)
def _in_box(west, east, south, north, epsilon, nodes, weights):
    """Probability of a box around or next to the origin; its sides may be infinite."""
    cuts = np.empty(9)
    for quarter in range(5):
        cuts[quarter] = (quarter - 2) * np.pi / 2
    n = 5
    for u in (west, east):
        for v in (south, north):
            if np.isfinite(u) and np.isfinite(v):
                cuts[n] = np.arctan2(v, u)
                n += 1
    cuts = np.sort(cuts[:n])
    open_box = n < 9
    total = 0.0
    for k in range(n - 1):
        middle = (cuts[k] + cuts[k + 1]) / 2
        enter, leave = _crossing(west, east, south, north, middle)
        if cuts[k + 1] - cuts[k] < 1e-14 or leave <= enter:
            continue
        half = (cuts[k + 1] - cuts[k]) / 2
        # twice the step, with every other node, is accurate enough for bounded cells
        stride = 1 if open_box else 2
        for node in range(0, len(nodes), stride):
            enter, leave = _crossing(west, east, south, north, middle + half * nodes[node])
            if leave > enter:
                total += stride * weights[node] * half * (_beyond(epsilon * enter) - _beyond(epsilon * leave))
    return total / (2 * np.pi)


@numba.njit(cache=True)
def _beyond(r):
    """Pr{ε · radius > r}."""
    return (1 + r) * np.exp(-r) if r < np.inf else 0.0


@numba.njit(cache=True)
def _crossing(west, east, south, north, angle):
    """The radii at which the ray at this angle enters and leaves the box."""
    enter, leave = 0.0, np.inf
    for direction, low, high in ((np.cos(angle), west, east), (np.sin(angle), south, north)):
        if direction < 0:
            direction, low, high = -direction, -high, -low
        if direction > 0:
            enter, leave = max(enter, low / direction), min(leave, high / direction)
        elif low > 0 or high < 0:
            return 0.0, 0.0
    return enter, leave
