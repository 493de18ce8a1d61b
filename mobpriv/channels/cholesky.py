"""LAPACK and BLAS without Python's lock, so that threads can work on the observables' blocks at the same time.

SciPy's wrappers (`scipy.linalg.lapack`) keep the lock, ctypes lets go of it. The functions are those of SciPy's public table
`scipy.linalg.cython_lapack`. Matrices are square, symmetric or triangular, C-ordered: the upper triangle read by rows is the
lower one that LAPACK, which reads by columns, is told of.
"""

import ctypes

import numba
import numpy as np
from numba.extending import get_cython_function_address

HALVED = 32
"""Triangles up to this order are inverted by LAPACK."""


def _function(table: str, name: str, kinds: str):
    """A subroutine of SciPy's table; kinds: c for a letter, i for an integer, d for a number, a for an array's address."""
    types = {
        "c": ctypes.c_char_p,
        "i": ctypes.POINTER(ctypes.c_int),
        "d": ctypes.POINTER(ctypes.c_double),
        "a": ctypes.c_void_p,
    }
    address = get_cython_function_address(f"scipy.linalg.cython_{table}", name)
    return ctypes.CFUNCTYPE(None, *(types[kind] for kind in kinds))(address)


_potrf = _function("lapack", "dpotrf", "ciaii")
_trtri = _function("lapack", "dtrtri", "cciaii")
_lauum = _function("lapack", "dlauum", "ciaii")
_trmm = _function("blas", "dtrmm", "cccciidaiai")
_syrk = _function("blas", "dsyrk", "cciidaidai")
_ONE, _MINUS = ctypes.c_double(1.0), ctypes.c_double(-1.0)
_ITEM = 8


def add_gram(A: np.ndarray, block: np.ndarray) -> None:
    """Adds A' A, A of shape (k, n), to the upper triangle of the block's first n rows and columns."""
    k, n = (ctypes.c_int(length) for length in A.shape)
    _syrk(b"L", b"N", n, k, _ONE, A.ctypes.data, n, _ONE, block.ctypes.data, ctypes.c_int(len(block)))


def factor(block: np.ndarray) -> bool:
    """Cholesky's factor in place of the upper triangle; False where the block is not positive definite."""
    n, failed = ctypes.c_int(len(block)), ctypes.c_int(0)
    _potrf(b"L", n, block.ctypes.data, n, failed)
    return not failed.value


def invert(triangle: np.ndarray) -> None:
    """The inverse, from Cholesky's factor, of the matrix, in place.

    The triangle is inverted by halves: twice as fast as LAPACK's dtrtri in OpenBLAS, which multiplies by vectors.
    """
    n = ctypes.c_int(len(triangle))
    _invert(triangle.ctypes.data, len(triangle), n)
    _lauum(b"L", n, triangle.ctypes.data, n, ctypes.c_int(0))


def _invert(address: int, n: int, stride: ctypes.c_int) -> None:
    if n <= HALVED:
        _trtri(b"L", b"N", ctypes.c_int(n), address, stride, ctypes.c_int(0))
        return
    half = n // 2
    below = address + _ITEM * half
    corner = below + _ITEM * half * stride.value
    _invert(address, half, stride)
    _invert(corner, n - half, stride)
    rows, columns = ctypes.c_int(n - half), ctypes.c_int(half)
    _trmm(b"L", b"L", b"N", b"N", rows, columns, _MINUS, corner, stride, below, stride)
    _trmm(b"R", b"L", b"N", b"N", rows, columns, _ONE, address, stride, below, stride)


@numba.njit(cache=True, error_model="numpy", nogil=True, fastmath={"reassoc", "contract"})
def solve(triangles, vectors):
    """The solutions for a right side each (m, n), from Cholesky's factors (m, n, n), in their place."""
    for o in range(len(triangles)):
        U, x = triangles[o], vectors[o]
        n = len(x)
        for i in range(n):
            x[i] /= U[i, i]
            for j in range(i + 1, n):
                x[j] -= x[i] * U[i, j]
        for i in range(n - 1, -1, -1):
            total = 0.0
            for j in range(i + 1, n):
                total += U[i, j] * x[j]
            x[i] = (x[i] - total) / U[i, i]
