"""Metrics on secrets: worked examples, the elastic requirement, spanners against their twin, refused input."""

import naive_inference as naive
import numpy as np
import pytest
from conftest import refusals
from hypothesis import given, settings
from hypothesis import strategies as st

from mobpriv.channels import checks
from mobpriv.channels.distances import elastic, euclidean, hamming, spanner

FEW = settings(max_examples=25)


def lattice(columns: int, rows: int, side: float = 1.0) -> np.ndarray:
    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    return side * np.column_stack([x.ravel(), y.ravel()]).astype(float)


places = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=9, unique=True).map(
    lambda points: np.array(points, float)
)


def test_worked_distances():
    assert euclidean([[0, 0], [3, 4]]).tolist() == [[0, 5], [5, 0]]
    assert euclidean([[0, 0], [3, 4]], [[3, 0]]).tolist() == [[3], [4]]
    assert hamming(2).tolist() == [[0, 1], [1, 0]]
    assert hamming(1).tolist() == [[0]]


def test_elastic_on_a_line():
    """Three places, mass (4, 1, 1), need 1/π, so req⁻¹(m) = √m.

    Place 0 hides in its own mass up to √4 = 2; place 1 in its own up to √1 = 1, then both neighbours come in reach; place 2
    sees place 1 at √1 and place 0 at √(1 + 1). Edges: (0, 1): min(2, 1); (1, 2): min(1, 1); (0, 2): min(√5, √2) = √2.
    """
    d = elastic([[0, 0], [1, 0], [2, 0]], [4, 1, 1], 1 / np.pi)
    assert d == pytest.approx(np.array([[0, 1, 2**0.5], [1, 0, 1], [2**0.5, 1, 0]]))


def test_a_metre_counts_for_more_where_mass_is_dense():
    """Four times the mass everywhere: all distances double. A dense half: its steps are longer than the empty half's."""
    centres = lattice(6, 5, 100.0)
    even = elastic(centres, np.ones(30), 1e-4)
    assert elastic(centres, np.full(30, 4.0), 1e-4) == pytest.approx(2 * even)
    west = centres[:, 0] < 250
    d = elastic(centres, np.where(west, 10.0, 0.1), 1e-4)
    assert d[12, 13] > 3 * d[16, 17]  # neighbours in the middle row, one pair on each side
    # 100 m on squares of the needed density: the own cell's mass 1 lasts to √(1 / (1e-4 π)) = 56.4 m
    assert even[14, 15] == pytest.approx(56.42, abs=0.01)


@FEW
@given(places, st.integers(0, 2**32 - 1))
def test_elastic_meets_its_requirement_at_every_length(centres, seed):
    mass = np.random.default_rng(seed).uniform(0.05, 3, len(centres))
    need = 0.2
    d = elastic(centres, mass, need)
    checks.metric(d)
    for place in range(len(centres)):
        for length in np.r_[np.linspace(0, d.max(), 7), d[place], np.maximum(d[place] * (1 - 1e-9) - 1e-9, 0)]:
            required = min(need * np.pi * length**2, mass.sum())
            assert naive.privacy_mass(d, mass, place, length * (1 + 1e-12)) >= required * (1 - 1e-6) - 1e-9


def test_elastic_is_tight():
    """A metric 1 % longer breaks the requirement, just below the length at which a neighbour comes in reach."""
    mass, need = np.ones(9), 0.3
    d = elastic(lattice(3, 3), mass, need)
    length = 1.005 * d[4, 1]
    assert naive.privacy_mass(d, mass, 4, length) >= need * np.pi * length**2
    assert naive.privacy_mass(1.01 * d, mass, 4, length) < need * np.pi * length**2


@FEW
@given(places, st.sampled_from([1.0, 1.1, 1.5, 2.0, 5.0]))
def test_spanner_equals_its_twin(centres, stretch):
    d = euclidean(centres)
    result = spanner(d, stretch)
    assert result.pairs.tolist() == [list(pair) for pair in naive.spanner_pairs(d, stretch)]
    assert (result.metric >= d * (1 - 1e-12)).all()
    assert (result.metric <= result.dilation * d * (1 + 1e-12)).all()
    assert result.dilation <= stretch * (1 + 1e-9)
    checks.metric(result.metric)


def test_spanner_of_a_square():
    """The four corners of a unit square. At stretch 1.5 the diagonals (√2) go along two sides (2 = 1.414 · √2); at 1.4 not."""
    d = euclidean(lattice(2, 2))
    loose = spanner(d, 1.5)
    assert loose.pairs.tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]
    assert loose.dilation == pytest.approx(2**0.5)
    assert loose.metric[0, 3] == pytest.approx(2)
    tight = spanner(d, 1.4)
    assert len(tight.pairs) == 6
    assert tight.dilation == 1


def test_spanner_thins_a_grid():
    """20 × 15 cells of 750 × 533 m: 44 850 pairs, 4 % of them within 5 %."""
    centres = lattice(20, 15) * [750, 8000 / 15]
    result = spanner(euclidean(centres), 1.05)
    assert len(result.pairs) < 0.04 * 300 * 299 / 2
    assert 1.04 < result.dilation <= 1.05


def test_one_place():
    assert euclidean([[1, 2]]).tolist() == [[0]]
    assert elastic([[1, 2]], [1.0], 1.0).tolist() == [[0]]
    result = spanner([[0.0]], 1.1)
    assert (result.pairs.shape, result.dilation) == ((0, 2), 1.0)


test_bad_input_is_refused = refusals(
    (lambda: euclidean([[0, 0, 0]]), "centres must have 2 columns"),
    (lambda: euclidean(np.empty((0, 2))), "at least one row"),
    (lambda: euclidean([[0, np.nan]]), r"centres must be finite \(got nan at \[0, 1\]\)"),
    (lambda: hamming(0), r"at least one secret \(got 0\)"),
    (lambda: elastic(lattice(2, 1), [1.0], 1.0), r"one value a place, shape \(2,\) \(got shape \(1,\)\)"),
    (lambda: elastic(lattice(2, 1), [1.0, 0.0], 1.0), r"must be positive.*\(got 0.0 at place 1\)"),
    (lambda: elastic(lattice(2, 1), [1.0, 1.0], 0.0), r"need must be positive, in mass per m² \(got 0.0\)"),
    (lambda: elastic([[0, 0], [0, 0]], [1.0, 1.0], 1.0), r"places must differ \(places 0 and 1"),
    (lambda: spanner(hamming(2), 0.9), r"stretch must be at least 1 \(got 0.9\)"),
    (lambda: spanner([[0, 1, 3], [1, 0, 1], [3, 1, 0]], 1.5), r"triangle inequality at \(2, 1, 0\)"),
)
