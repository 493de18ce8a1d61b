"""How much noise there is: Algorithms 13 and 14, the maximum likelihood, and the binomial rule for δ."""

import naive_dchi as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mobpriv.attacks.visits.denoising import confident_delta, epsilon_of, guess_bernoulli, guess_laplacian, likeliest_epsilon
from mobpriv.base import noise

pairs = st.tuples(st.integers(1, 4), st.integers(1, 6)).flatmap(
    lambda shape: st.tuples(*(arrays(np.int64, shape, elements=st.integers(0, 7)) for _ in range(2)))
)


@settings(deadline=None)
@given(pairs)
def test_they_equal_algorithms_13_and_14(sides):
    said, true = sides
    for form in ("unbiased", "printed"):
        flips = guess_bernoulli(said > 2, true > 2, form=form)
        np.testing.assert_allclose(flips, [naive.algorithm_13(a > 2, b > 2, form) for a, b in zip(said, true, strict=True)])
        found = guess_laplacian(said, true, form=form)
        np.testing.assert_allclose(found, [naive.algorithm_14(a, b, form) for a, b in zip(said, true, strict=True)])
    together = guess_laplacian(said, true, pooled=True)
    assert together == pytest.approx(naive.algorithm_14(said.ravel(), true.ravel()))


def test_who_knows_chi_takes_no_other_poi():
    said, true = np.array([[3, 1, 0, 9]]), np.array([[1, 1, 0, 4]])
    chi = np.array([[True, True, False, False]])
    assert guess_laplacian(said, true, chi)[0] == 1.0
    assert guess_bernoulli(said > 1, true > 1, chi)[0] == 0.5
    with pytest.raises(ValueError, match="J, the POIs that leaked, must not be empty"):
        guess_laplacian(said, true, chi & False)
    with pytest.raises(ValueError, match="J, the POIs that leaked, must not be empty"):
        guess_bernoulli(said[:, :0], true[:, :0])


@pytest.mark.parametrize("guess", [guess_bernoulli, guess_laplacian, likeliest_epsilon])
@pytest.mark.parametrize(
    ("said", "words"),
    [
        (np.ones((2, 3)), "must have one shape"),
        (np.full((2, 4), np.nan), "sanitised profiles must be finite"),
        (-np.ones((2, 4)), "sanitised profiles must be finite and not negative"),
        (["x"], "sanitised profiles must be numbers"),
    ],
)
def test_what_is_no_pair_of_profiles_is_refused(guess, said, words):
    with pytest.raises(ValueError, match=words):
        guess(said, np.ones((2, 4)))


@pytest.mark.parametrize(
    ("guess", "wrong", "words"),
    [
        (guess_bernoulli, {"form": "corrected"}, 'form must be "unbiased" or "printed"'),
        (guess_laplacian, {"form": "corrected"}, "form must be"),
        (likeliest_epsilon, {"rounding": "up"}, "rounding must be"),
        (likeliest_epsilon, {"pooled": 3}, "pooled must be"),
    ],
)
def test_a_form_that_there_is_not(guess, wrong, words):
    with pytest.raises(ValueError, match=words):
        guess(np.ones((2, 4)), np.ones((2, 4)), **wrong)


def test_the_unbiased_form_of_algorithm_13_is_unbiased_and_the_printed_one_is_not():
    rng = np.random.default_rng(1)
    true, p = rng.random((20_000, 15)) < 0.25, 0.2
    said = true ^ (rng.random(true.shape) < p)
    assert guess_bernoulli(said, true).mean() == pytest.approx(p, abs=0.002)
    assert guess_bernoulli(said, true, form="printed").mean() == pytest.approx(p / 15, abs=0.0002)
    assert epsilon_of(p) == pytest.approx(np.log(4))
    assert noise.least_p(epsilon_of(0.3)) == pytest.approx(0.3)
    assert np.isinf(epsilon_of(0.0))


def test_algorithm_14_is_right_for_noise_that_is_neither_rounded_nor_clamped():
    """1/ε̃ is the mean of |noise|: unbiased; with the printed 1/√2 it is too small by that. Rounding and clamping lower it further."""
    rng = np.random.default_rng(1)
    u, epsilon = rng.random((2_000, 29)), 0.5
    free = 1000 + noise.laplace(u) / epsilon
    true = np.full(u.shape, 1000)
    assert (1 / guess_laplacian(free, true)).mean() == pytest.approx(1 / epsilon, rel=0.01)
    assert (1 / guess_laplacian(free, true, form="printed")).mean() == pytest.approx(1 / epsilon / np.sqrt(2), rel=0.01)
    # half of the noise of zeros is clamped away
    zeros = noise.rounded(0 * true, noise.laplace(u) / epsilon)
    assert (1 / guess_laplacian(zeros, 0 * true)).mean() < 0.55 / epsilon


@pytest.mark.parametrize("rounding", noise.ROUNDING)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_likeliest_epsilon_is_near_where_the_paper_is_far(rounding, epsilon):
    rng = np.random.default_rng(1)
    true = rng.poisson(1.0, (50, 400))
    said = noise.rounded(true, noise.laplace(rng.random(true.shape)) / epsilon, rounding)
    assert likeliest_epsilon(said, true, rounding=rounding, pooled=True) == pytest.approx(epsilon, rel=0.05)
    assert abs(guess_laplacian(said, true, pooled=True) / epsilon - 1) > 0.3


@settings(deadline=None, max_examples=50)
@given(pairs, st.sampled_from(noise.ROUNDING), st.booleans())
def test_no_epsilon_is_likelier(sides, rounding, pooled):
    """The sum of the coordinates' exact log-probabilities is nowhere larger than where it is found."""
    said, true = sides
    found = np.atleast_1d(likeliest_epsilon(said, true, rounding=rounding, pooled=pooled))
    grid = np.geomspace(1e-3, 50, 400)
    log_p = noise.log_laplace(said[..., None], true[..., None], grid, rounding)
    every = log_p.sum(axis=(0, 1))[None] if pooled else log_p.sum(axis=1)
    for i, epsilon in enumerate(found):
        at = float(np.clip(epsilon, 1e-3, 50))
        own = noise.log_laplace(said, true, at, rounding)
        here = own.sum() if pooled else own[i].sum()
        assert here >= every[i].max() - 1e-6 * abs(every[i].max())


def test_an_epsilon_a_draw_side_by_side():
    rng = np.random.default_rng(1)
    true = rng.poisson(2.0, (3, 20, 29))
    said = noise.rounded(true, noise.laplace(rng.random(true.shape)))
    for pooled in (False, True):
        whole = likeliest_epsilon(said, true, pooled=pooled)
        assert whole.shape == ((3,) if pooled else (3, 20))
        np.testing.assert_allclose(whole[1], likeliest_epsilon(said[1], true[1], pooled=pooled))
    assert np.isinf(likeliest_epsilon(true, true)).all()


@settings(deadline=None)
@given(st.floats(0, 1), st.integers(0, 29), st.floats(0, 0.999))
def test_the_binomial_rule(p, size, confidence):
    delta = int(confident_delta(p, size, confidence))
    assert naive.within(delta, size, p) >= confidence - 1e-9
    assert delta == 0 or naive.within(delta - 1, size, p) < confidence + 1e-9


def test_the_binomial_rule_holds_in_draws():
    """D3: d(b, b̃) is Binomial(|χ|, p)."""
    rng = np.random.default_rng(1)
    flips = (rng.random((50_000, 12)) < 0.2).sum(axis=1)
    delta = confident_delta(0.2, 12)
    assert (flips <= delta).mean() >= 0.95 > (flips <= delta - 1).mean()
    assert confident_delta([0.1, 0.2], [29, 12]).tolist() == [6, 5]
    for wrong in ({"p": 1.2}, {"p": -0.1}, {"p": np.nan}, {"size": -1}, {"confidence": 1.5}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must"):
            confident_delta(**({"p": 0.1, "size": 12} | wrong))
