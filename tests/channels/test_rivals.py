"""Rivals of the optimal channels: the law of planar Laplace noise in cells, the privacy each keeps, refused input."""

import naive_inference as naive
import numpy as np
import pytest
from conftest import refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad, quad
from scipy.special import k1

from mobpriv.channels import checks, inference
from mobpriv.channels.distances import euclidean, hamming
from mobpriv.channels.guarantees import effective_epsilon
from mobpriv.channels.rivals import exponential_mechanism, planar_laplace
from mobpriv.mechanisms.geo_i import density, radius_quantile

FEW = settings(max_examples=20)
X, Y = np.linspace(0, 3000, 5), np.linspace(0, 1200, 4)  # four columns of 750 m, three rows of 400 m


def middles(x_edges, y_edges) -> np.ndarray:
    x, y = np.meshgrid((x_edges[1:] + x_edges[:-1]) / 2, (y_edges[1:] + y_edges[:-1]) / 2)
    return np.column_stack([x.ravel(), y.ravel()])


D = euclidean(middles(X, Y))


@pytest.mark.parametrize("epsilon", [0.3e-3, 3e-3])
def test_an_inner_cell_has_the_integral_of_the_density(epsilon):
    """Cell 6 (x 1500 … 2250, y 400 … 800), from the centre of cell 0 at (375, 200) and from its own at (1875, 600)."""
    channel = planar_laplace(X, Y, epsilon)
    for s, (x, y) in [(0, (375, 200)), (6, (1875, 600))]:

        def law(v, u, x=x, y=y):
            return density(np.hypot(u - x, v - y), epsilon)

        # cut at the peak, where the density has a corner
        expected = sum(
            dblquad(law, a, b, c, d, epsabs=1e-10)[0]
            for a, b in [(1500, 1875), (1875, 2250)]
            for c, d in [(400, 600), (600, 800)]
        )
        assert channel[s, 6] == pytest.approx(expected, rel=1e-7)


def test_the_border_takes_what_falls_outside():
    """Two columns, one row: the border between them, 500 m from both centres, leaves Pr{X > 500} on the far side.

    X has the density ε² |x| K₁(ε |x|) / π (Bessel): the planar Laplace law with its y integrated out.
    """
    epsilon = 1e-3
    channel = planar_laplace([0, 1000, 2000], [0, 10], epsilon)
    beyond = quad(lambda x: epsilon**2 * x * k1(epsilon * x) / np.pi, 500, np.inf, epsabs=1e-13)[0]
    assert channel == pytest.approx(np.array([[1 - beyond, beyond], [beyond, 1 - beyond]]), rel=1e-9)


def test_many_draws_fall_as_the_channel_says():
    """20 000 draws of the mechanism on traces, clamped to the area, fall into the cells as the channel says."""
    n, epsilon, cell = 20_000, 1e-3, 5
    rng = np.random.default_rng(3)
    radius, angle = radius_quantile(rng.random(n), epsilon), rng.uniform(0, 2 * np.pi, n)
    at = middles(X, Y)[cell] + np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    column = np.clip(np.floor(at[:, 0] / 750), 0, 3)
    row = np.clip(np.floor(at[:, 1] / 400), 0, 2)
    counts = np.bincount((row * 4 + column).astype(int), minlength=12)
    expected = n * planar_laplace(X, Y, epsilon)[cell]
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < 31.3  # the 99.9 % quantile with 11 degrees of freedom
    moved = n * planar_laplace(X, Y, 1.1 * epsilon)[cell]
    assert ((counts - moved) ** 2 / moved).sum() > 31.3  # 10 % more epsilon is noticed


@FEW
@given(st.integers(1, 4), st.integers(1, 4), st.floats(1e-5, 2e-2), st.integers(0, 2**32 - 1))
def test_rivals_keep_epsilon(columns, rows, epsilon, seed):
    """At every size of uneven cells, remapped or not; and what each uses of ε is what the twin finds."""
    rng = np.random.default_rng(seed)
    x, y = np.cumsum(rng.uniform(50, 900, columns + 1)), np.cumsum(rng.uniform(50, 900, rows + 1))
    d = euclidean(middles(x, y))
    prior = rng.dirichlet(np.ones(len(d)))
    for channel in (planar_laplace(x, y, epsilon), exponential_mechanism(d, epsilon)):
        checks.channel(channel, len(d))
        used = effective_epsilon(channel, d)
        assert used <= epsilon * (1 + 1e-6)
        assert used == pytest.approx(naive.effective_epsilon(channel, d))
        remapped = inference.remap(prior, channel, hamming(len(d)))
        assert effective_epsilon(remapped, d) <= used * (1 + 1e-6) + 1e-12
        cost = prior @ (remapped * hamming(len(d))).sum(1)
        assert cost <= prior @ (channel * hamming(len(d))).sum(1) + 1e-12


def test_planar_laplace_uses_nearly_all_of_epsilon():
    """Far along a row the truncated noise differs by almost the full factor exp(ε d): the bound is not idle."""
    epsilon = 5e-3
    used = effective_epsilon(planar_laplace(X, Y, epsilon), D)
    assert 0.99 * epsilon < used <= epsilon * (1 + 1e-9)


def test_exponential_mechanism_by_hand():
    """Two places 1 apart, ε = 2 ln 3: weights 1 and 1/3, so rows (3/4, 1/4); ln 3 of the 2 ln 3 is used."""
    d = hamming(2)
    channel = exponential_mechanism(d, 2 * np.log(3))
    assert channel == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75]]))
    assert effective_epsilon(channel, d) == pytest.approx(np.log(3))


@pytest.mark.parametrize("name", ["euclid", "hamming"])
def test_effective_epsilon_of_a_peers_channel(reference, name):
    """qif's optimal channels for ε = ln 2 on 6 × 5 cells use all of it."""
    case = np.load(reference / "channels" / f"qif_geoind_6x5_{name}_uniform.npz")
    channel = np.where(case["C"].max(0) > 1e-9, case["C"].clip(0), 0.0)  # without the solver's dust in unused columns
    used = effective_epsilon(channel / channel.sum(1, keepdims=True), case["D"])
    assert used == pytest.approx(np.log(2), rel=1e-6)


def test_effective_epsilon_of_the_extremes():
    assert effective_epsilon(np.eye(3), hamming(3)) == np.inf
    assert effective_epsilon(np.full((3, 2), 0.5), hamming(3)) == 0
    # an observable that nobody gives says nothing
    assert effective_epsilon([[0.5, 0.5, 0], [0.25, 0.75, 0]], 2 * hamming(2)) == pytest.approx(np.log(2) / 2)


def test_one_cell():
    assert planar_laplace([0, 1], [0, 1], 1.0).tolist() == [[1.0]]
    assert exponential_mechanism([[0.0]], 1.0).tolist() == [[1.0]]
    assert effective_epsilon([[1.0]], [[0.0]]) == 0


@pytest.mark.parametrize("epsilon", [0, -1, np.nan, np.inf])
def test_epsilon_must_be_positive(epsilon):
    for make in (lambda: planar_laplace(X, Y, epsilon), lambda: exponential_mechanism(D, epsilon)):
        refuses("epsilon must be positive and finite", make)


def test_a_huge_epsilon_is_refused():
    """Beyond exp(−700) probabilities would be 0 and the bound infinite; just below, it still holds."""
    d = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert effective_epsilon(exponential_mechanism(d, 699.0), d) <= 699 * (1 + 1e-9)
    refuses(r"must not exceed 700 \(got 701\)", exponential_mechanism, d, 701.0)
    refuses("must not exceed 700", planar_laplace, X, Y, 1.0)


@pytest.mark.parametrize("edges", [[0], [0, 0], [1, 0], [0, np.nan], [[0, 1]]])
def test_bad_borders_are_refused(edges):
    refuses("x_edges must be at least two finite, ascending borders", planar_laplace, edges, Y, 1e-3)
