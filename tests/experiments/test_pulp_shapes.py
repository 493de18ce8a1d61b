"""Curves of several shapes: each finds its own, their slopes, and the arctan is the modeler's."""

import math

import numpy as np
import pytest

from mobpriv.experiments.pulp_models import IN_EPSILON, ISOTONIC, POLYNOMIALS, SHAPES, SIGMOIDS, WITHIN, curve
from mobpriv.pulp import GEO_I, fit
from mobpriv.pulp.modeler import OUTLIER

VALUES = np.array(GEO_I.values)
X = np.log(VALUES)


@pytest.mark.parametrize("shape", SIGMOIDS)
def test_a_sigmoid_runs_from_0_to_1_and_its_slope_is_its_derivative(shape):
    sigmoid, slope = SIGMOIDS[shape]
    u = np.linspace(-4, 4, 81)
    assert sigmoid(np.array([-1e6, 1e6])) == pytest.approx([0, 1], abs=1e-5)
    assert (np.diff(sigmoid(u)) >= 0).all()
    by_hand = (sigmoid(u + 1e-6) - sigmoid(u - 1e-6)) / 2e-6
    inside = np.abs(np.abs(u) - 0.5) > 1e-3  # where a broken line bends it has no slope
    assert slope(u)[inside] == pytest.approx(by_hand[inside], abs=1e-5)


@pytest.mark.parametrize("shape", SIGMOIDS)
@pytest.mark.parametrize(("left", "right"), [(0.1, 0.9), (1.0, 0.2)])
def test_each_shape_finds_its_own(shape, left, right):
    sigmoid, _ = SIGMOIDS[shape]
    levels = left + (right - left) * sigmoid(0.7 * (X - math.log(0.013)))
    found = curve(shape, VALUES, levels, right > left)
    x = np.linspace(math.log(2e-4), math.log(0.7), 50)
    assert found(np.exp(x)) == pytest.approx(left + (right - left) * sigmoid(0.7 * (x - math.log(0.013))), abs=2e-3)


@pytest.mark.parametrize("seed", range(12))
def test_the_arctan_is_the_modeler_s(seed):
    """The same loss, bounds and search: no worse than the modeler, and no better."""
    rng = np.random.default_rng(seed)
    levels = np.clip(1 / (1 + np.exp(-rng.uniform(0.3, 3) * (X + rng.uniform(2, 7)))) + rng.normal(0, 0.08, len(X)), 0, 1)
    model = fit(VALUES, levels, 0.01, True).model
    own = curve("arctan", VALUES, levels, True)

    def cost(error):
        return (OUTLIER**2 * (np.sqrt(1 + (error / OUTLIER) ** 2) - 1)).sum()

    theirs = np.array([model.at(x) for x in X])
    assert cost(own(VALUES) - levels) == pytest.approx(cost(theirs - levels), rel=1e-3, abs=1e-7)


def test_polynomials_isotonic_and_the_parameter_itself():
    cubic = lambda x: 0.2 + 0.05 * (x - X.mean()) + 0.01 * (x - X.mean()) ** 3 / 9  # noqa: E731
    at = np.geomspace(2e-4, 0.7, 20)
    assert curve("cubic", VALUES, cubic(X), True)(at) == pytest.approx(cubic(np.log(at)))
    line = 0.3 + 0.02 * X
    assert curve("straight line", VALUES, line, True)(at) == pytest.approx(0.3 + 0.02 * np.log(at))
    outlier = np.r_[np.full(16, 0.4), 1.0]
    assert curve("constant", VALUES, outlier, True)(at)[0] == pytest.approx(0.4, abs=0.02), "one strange level hardly counts"
    steps = np.repeat([0.1, 0.5, 0.9], [5, 6, 6])
    isotonic = curve(ISOTONIC, VALUES, steps, True)
    assert isotonic(VALUES) == pytest.approx(steps)
    assert isotonic(np.array([1e-6, 10.0])) == pytest.approx([0.1, 0.9])
    assert curve(ISOTONIC, VALUES, steps, False)(VALUES) == pytest.approx(np.full(17, steps.mean()))
    values, at = np.linspace(0.01, 1, 20), np.array([0.25, 0.5, 0.8])
    itself = lambda value: 0.5 + 0.4 * np.arctan(8 * (value - 0.5)) / (math.pi / 2)  # noqa: E731
    assert curve(IN_EPSILON, values, itself(values), True)(at) == pytest.approx(itself(at), abs=2e-3)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_level_that_never_changes_is_met(shape):
    assert curve(shape, VALUES, np.ones(17), True)(np.array([1e-3, 0.3])) == pytest.approx([1, 1])
    assert set(POLYNOMIALS) < set(SHAPES)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: curve("spline", VALUES, np.ones(17), True), r"^shape must be .* \(got 'spline'\)$"),
        (lambda: curve("arctan", VALUES, np.ones(17), 1), r"^rises must be True or False \(got 1\)$"),
        (lambda: curve("arctan", [0.1] * 5, [0, 0.5, 1, 1, 1], True), r"^a curve needs at least 4 different values \(got 1\)$"),
        (lambda: curve("isotonic", VALUES, np.ones(16), True), r"^each value needs one level \(got 17 values, 16 levels\)$"),
        (lambda: curve("cubic", [-1, 1, 2, 3], np.ones(4), True), r"^values must be positive and finite \(got -1.0 at "),
        (lambda: curve("cubic", VALUES[:4], [0, np.nan, 1, 1], True), r"^levels must be numbers \(got nan at place 1\): leave"),
    ],
)
def test_what_is_refused(call, line):
    with pytest.raises(ValueError, match=line):
        call()


def test_saturation_levels_within_the_metrics_range():
    """A level that is seen in part, far from saturation: only curves that may saturate outside of [0, 1] follow it."""
    levels = 0.9 + 0.5 * np.arctan(0.3 * (X - X.max())) / math.pi * 2
    levels = np.clip(levels, 0, 1)
    free, bound = (curve(shape, VALUES, levels, True)(VALUES) - levels for shape in ("arctan", "arctan in [0, 1]"))
    assert np.abs(free).max() < 0.01 < np.abs(bound).max()
    assert set(WITHIN.values()) <= set(SIGMOIDS)
