"""Compare simple curves for PULP's levels.

The paper chooses the arctan of ln ε "instead of general polynomial functions". Here others are fitted to the same points:

* sigmoids of four coefficients with the robust loss, bounds and search of :func:`mobpriv.pulp.fit`;
* polynomials with this loss;
* an isotonic regression, which assumes only a trend.

Source (extended here): Cerf et al., TDSC 2018, §III-C.
"""

from collections.abc import Callable
from math import log

import numpy as np
from scipy.optimize import least_squares
from scipy.special import erf, expit
from sklearn.isotonic import IsotonicRegression

from mobpriv.base.ranges import one_of, true_or_false
from mobpriv.pulp.modeler import COEFFICIENTS, OUTLIER, coarse, points

_MOST = 50.0  # bound of |u| in exp(u): beyond it nothing changes
# as in mobpriv.pulp.modeler; a test compares them
_SPEEDS, _BEYOND, _LATTICE = (1e-2, 1e2), 0.5, ((0.1, 0.3, 1, 3, 10, 30, 100), 49)
_FINE = (np.geomspace(0.05, 100, 34), 481)  # for the broken line: without a setting on its slope, a search has no gradient

Curve = Callable[[np.ndarray], np.ndarray]  # ε -> levels

# the curve from 0 to 1, and its slope; u = b (ln ε − c)
SIGMOIDS: dict[str, tuple[Callable, Callable]] = {
    "arctan": (lambda u: 0.5 + np.arctan(u) / np.pi, lambda u: 1 / (np.pi * (1 + u * u))),
    "logistic": (expit, lambda u: expit(u) * expit(-u)),
    "error function": (lambda u: 0.5 * (1 + erf(u)), lambda u: np.exp(-np.minimum(u * u, _MOST)) / np.sqrt(np.pi)),
    "Gompertz": (lambda u: np.exp(-np.exp(-_cut(u))), lambda u: np.exp(-_cut(u) - np.exp(-_cut(u)))),
    "Gompertz, mirrored": (lambda u: -np.expm1(-np.exp(_cut(u))), lambda u: np.exp(_cut(u) - np.exp(_cut(u)))),
    "broken line": (lambda u: np.clip(0.5 + u, 0, 1), lambda u: (np.abs(u) < 0.5).astype(float)),
}
POLYNOMIALS = {"constant": 0, "straight line": 1, "cubic": 3}
IN_EPSILON, ISOTONIC = "arctan of ε", "isotonic"
# saturation levels within the range of the metrics
WITHIN = {"arctan in [0, 1]": "arctan", "logistic in [0, 1]": "logistic"}
SHAPES = (*SIGMOIDS, *WITHIN, IN_EPSILON, *POLYNOMIALS, ISOTONIC)


def _cut(u):
    return np.clip(u, -_MOST, _MOST)


def curve(shape: str, values, levels, rises: bool) -> Curve:
    """Fit a curve of a shape to levels at ``values`` of ε; ``rises``: whether the level is expected to rise with ε.

    :data:`IN_EPSILON` is the arctan of ε itself, without the logarithm, with the same bounds as shares of the range. The
    isotonic curve is linear between the settings and constant beyond them. ValueError for fewer than four different values, the
    number of coefficients, and for invalid values and levels.
    """
    one_of("shape", shape, SHAPES)
    true_or_false("rises", rises)
    x, y = points(values, levels)
    values = np.asarray(values, float)
    if len(np.unique(x)) < COEFFICIENTS:
        raise ValueError(f"a curve needs at least {COEFFICIENTS} different values (got {len(np.unique(x))})")
    if shape == ISOTONIC:
        fitted = IsotonicRegression(increasing=rises, out_of_bounds="clip").fit(x, y)
        return lambda at: fitted.predict(np.log(np.asarray(at, float)))
    if shape in POLYNOMIALS:
        return _polynomial(x, y, POLYNOMIALS[shape])
    if (y == y[0]).all():
        return lambda at: np.full(np.shape(at), y[0])
    if shape != IN_EPSILON:
        sigmoid = SIGMOIDS[WITHIN.get(shape, shape)]
        p = _sigmoid(x, y, *sigmoid, beyond=0.0 if shape in WITHIN else _BEYOND)
        return lambda at: _between(p, np.log(np.asarray(at, float)), sigmoid[0])
    low, high = values.min(), values.max()
    scaled = lambda at: np.ptp(x) * (np.asarray(at, float) - low) / (high - low)  # noqa: E731
    p = _sigmoid(scaled(values), y, *SIGMOIDS["arctan"])
    return lambda at: _between(p, scaled(at), SIGMOIDS["arctan"][0])


def _polynomial(x: np.ndarray, y: np.ndarray, degree: int) -> Curve:
    middle, half = (x.min() + x.max()) / 2, max(np.ptp(x) / 2, 1e-9)
    powers = lambda at: np.vander((at - middle) / half, degree + 1)  # noqa: E731
    start = np.linalg.lstsq(powers(x), y, rcond=None)[0]
    slopes = powers(x)
    found = least_squares(lambda p: slopes @ p - y, start, lambda p: slopes, loss="soft_l1", f_scale=OUTLIER).x
    return lambda at: powers(np.log(np.asarray(at, float))) @ found


def _between(p: np.ndarray, x: np.ndarray, sigmoid: Callable) -> np.ndarray:
    """Evaluate the curve; p: level far left, level far right, ln b, c."""
    return p[0] + (p[1] - p[0]) * sigmoid(np.exp(p[2]) * (x - p[3]))


def _sigmoid(x: np.ndarray, y: np.ndarray, sigmoid: Callable, slope: Callable, beyond: float = _BEYOND) -> np.ndarray:
    low, high = min(0.0, y.min()) - beyond, max(1.0, y.max()) + beyond
    width = np.ptp(x)
    bounds = np.array([[low, low, log(_SPEEDS[0]), x.min() - width], [high, high, log(_SPEEDS[1]), x.max() + width]])

    def errors(p):
        return _between(p, x, sigmoid) - y

    def slopes(p):
        b = np.exp(p[2])
        u = b * (x - p[3])
        share, g = sigmoid(u), (p[1] - p[0]) * slope(u)
        return np.column_stack([1 - share, share, g * u, -g * b])

    kind = {"loss": "soft_l1", "f_scale": OUTLIER, "bounds": bounds, "xtol": 1e-6, "ftol": 1e-6, "max_nfev": 400}
    lattice = _FINE if sigmoid is SIGMOIDS["broken line"][0] else _LATTICE
    return least_squares(errors, coarse(x, y, bounds, sigmoid, *lattice), slopes, **kind).x
