"""Affinity and N(b, n): equal to the definition in every reading; what is no number of POIs and no matrix is refused."""

import naive_dchi as naive
import numpy as np
import pytest
from conftest import refuses
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mobpriv.visits.affinity import Neighbourhood, affinity, neighbourhood, profile_affinity

tables = st.tuples(st.integers(1, 6), st.integers(1, 7)).flatmap(lambda shape: arrays(bool, shape))


@given(tables, st.data())
def test_they_equal_the_definitions(b, data):
    aff = affinity(b)
    np.testing.assert_allclose(aff, naive.affinity(b.tolist()))
    np.testing.assert_allclose(
        profile_affinity(b, aff), [[naive.relative(row, aff, j) for j in range(b.shape[1])] for row in b]
    )
    n = data.draw(st.integers(0, b.shape[1]))
    for variant in ("printed", "further"):
        for ties in ("all", "first"):
            result = neighbourhood(b, aff, n, variant, ties)
            for row, mask in zip(b, result, strict=True):
                assert set(np.flatnonzero(mask)) == naive.neighbourhood(row, aff, n, variant, ties)


def test_many_samples_at_once_and_a_number_a_user():
    b = np.random.default_rng(1).random((3, 5, 6)) < 0.4
    aff, n = affinity(b), np.array([0, 1, 2, 3, 6])
    result = neighbourhood(b, aff, n)
    for d in range(3):
        for i in range(5):
            np.testing.assert_array_equal(result[d, i], neighbourhood(b[d, [i]], aff[d], int(n[i]))[0])
    np.testing.assert_array_equal(Neighbourhood(n, aff[0]).masks(b[0]), result[0])


def test_rounding_breaks_no_tie():
    """0.1 + 0.2 and 0.3 are equally near."""
    aff = np.array([[0.9, 0.1, 0.3], [0.1, 0.9, 0.0], [0.3, 0.0, 0.9]])
    aff = np.pad(aff, ((0, 1), (0, 1)))
    aff[0, 3], aff[1, 3], aff[0, 2], aff[1, 2] = 0.1, 0.2, 0.3, 0.0
    b = np.array([[True, True, False, False]])
    assert 0.1 + 0.2 != 0.3
    assert neighbourhood(b, aff, 1, "further").all()


@pytest.mark.parametrize("n", [-1, 5, 1.5, float("nan"), "2", True, [1, 2, 9], [1, 2]])
def test_what_is_no_number_of_pois_is_refused(n):
    refuses(r"\bn must be", neighbourhood, np.ones((3, 4), bool), np.eye(4), n)


@pytest.mark.parametrize("matrix", [np.eye(3), -np.eye(4), np.full((4, 4), np.nan), [[1, 2]], "text", None, np.zeros((0, 0))])
def test_what_is_no_affinity_is_refused(matrix):
    refuses("affinity must", lambda: Neighbourhood(1, matrix).masks(np.ones((3, 4), bool)))


def test_a_share_of_nobody_is_refused():
    refuses("users ≥ 1", affinity, np.zeros((0, 4), bool))


def test_a_neighbourhood_keeps_its_matrix():
    matrix = np.eye(3)
    chosen = Neighbourhood(1, matrix)
    matrix[:] = 5
    assert chosen.affinity.sum() == 3
    with pytest.raises(ValueError, match="read-only"):
        chosen.affinity[0, 0] = 2
    assert repr(chosen) == "N(b, 1), printed"
    refuses("variant must be", Neighbourhood, 1, matrix, "loose")
    refuses("ties must be", Neighbourhood, 1, matrix, ties="none")
