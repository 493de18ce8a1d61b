import numba
import numpy as np

from mobpriv.base.logarithm import log


@numba.njit
def logs(x, out):
    for i in range(len(x)):
        out[i] = log(x[i])


def test_the_logarithm_is_that_of_numpy_to_four_units_in_the_last_place_and_several_are_computed_at_once():
    rng = np.random.default_rng(1)
    binary = np.ldexp(1.0, np.arange(-1022, 1024))
    root_of_half = np.sqrt(0.5) * (1 + np.arange(-8, 9) * 2.0**-52)
    near_one = 1 + rng.normal(0, 10.0 ** rng.integers(-15, 0, 100_000))
    x = np.concatenate([binary, root_of_half, near_one[near_one > 0], 10.0 ** rng.uniform(-307, 308, 100_000)])
    out = np.empty_like(x)
    logs(x, out)
    expected = np.log(x)
    assert (np.abs(out - expected) <= 4 * np.spacing(np.abs(expected))).all()
    assert (out[x == 1] == 0).all()
    module = "".join(logs.inspect_llvm().values())
    assert "fdiv <" in module  # a division of a vector
