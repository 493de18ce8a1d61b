"""Newton's system of `interior`: one dense block for every observable, eliminated in threads, and the system that joins them.

All work on one observable is one piece of compiled code that releases Python's lock, because many short calls of SciPy's LAPACK
would wait for the lock. The compiled code calls LAPACK through SciPy's public tables `scipy.linalg.cython_lapack` and
`cython_blas`. Matrices are square, symmetric or triangular, C-ordered: LAPACK reads by columns, so the upper triangle by rows
is its lower one. Compiled functions call only functions of this file, because numba does not notice changes in other files.
"""

from collections.abc import Callable
from itertools import pairwise

import llvmlite.binding
import numba
import numpy as np
from numba.core import types
from numba.extending import get_cython_function_address
from scipy.linalg import lapack

from mobpriv.channels.programs.certificate import Program

THREAD_PARTS = 4
"""Number of parts into which the observables are split for threads: fixed, so that sums do not depend on the cores."""
_REGULAR, _MOST_REGULAR = 1e-15, 1e-11
"""Relative additions to the blocks' diagonals, because near the optimum their smallest eigenvalues vanish in rounding.

After a failed factorisation the addition is multiplied by ten, up to the second number.
"""
_PART_ORDER = 32
"""LAPACK inverts parts of triangles up to this order."""


class Blocks:
    """The blocks H_o = G' diag(w) G + [F, -1]' diag(v) [F, -1] of a program, in the order secrets, x_o (if there is an F).

    No pair joins two secrets that are not core, so their part D of a block is diagonal. With B (core, others), their
    elimination leaves S = A - B D^-1 B', of the order of the core (and of x_o).
    """

    def __init__(self, program: Program, for_each: Callable):
        m, n = program.kappa.shape
        c = n if program.core is None else program.core
        _, source, target, _ = program.pairs
        if ((np.minimum(source, target) >= c) & (source != target)).any():
            raise ValueError(f"every pair of a program needs one of its first {c} secrets, the core, on one side")
        order = c + bool(len(program.F))
        self.program, self.for_each, self.c = program, for_each, c
        self.F = np.ascontiguousarray(program.F[:, :c])  # the other secrets never occur: F is 0 there
        self.core = np.empty((m, order, order))  # S, then its Cholesky factor (upper triangles)
        self.diagonal, self.weights = np.empty((m, n - c)), np.empty((m, n - c, order))  # D; D^-1 B'
        self.parts = [slice(*ends) for ends in pairwise(np.linspace(0, m, min(THREAD_PARTS, m) + 1).astype(int).tolist())]

    def factor(self, pairs: np.ndarray, attacks: np.ndarray) -> np.ndarray | None:
        """Factor all blocks; return the sum of their inverses (upper triangle), or None if rounding prevents a factorisation.

        `pairs` are the weights w, `attacks` (m, estimates) the weights v.
        """
        sums = list(self.for_each(lambda part: self._factor(pairs, attacks[part], part), self.parts))
        return None if any(inverses is None for inverses in sums) else np.sum(sums, axis=0)

    def _factor(self, pairs, attacks, part: slice) -> np.ndarray | None:
        c, others, order = self.c, self.diagonal.shape[1], self.core.shape[1]
        blocks = self.core[part], self.diagonal[part], self.weights[part]
        first, *lists = self.program.pairs
        _pair_blocks(pairs, first[part.start : part.stop + 1], *lists, c, *blocks)
        inner, outer, between = np.zeros((order, order)), np.zeros((others, others)), np.zeros((others, order))
        if not _eliminate(*blocks, self.F, attacks, inner, outer, between):
            return None
        n = c + others
        total = np.zeros((order + others, order + others))
        total[:c, :c], total[:c, n:], total[n:, n:] = inner[:c, :c], inner[:c, c:], inner[c:, c:]
        total[:c, c:n], total[c:n, c:n], total[c:n, n:] = -between[:, :c].T, outer, -between[:, c:]
        return total

    def solve(self, vectors: np.ndarray) -> None:
        """Solve for a right side of every block (m, n or n + 1), in place."""
        blocks = self.core, self.diagonal, self.weights
        list(self.for_each(lambda p: _solve_part(*(b[p] for b in blocks), self.c, vectors[p]), self.parts))


def join(total: np.ndarray) -> np.ndarray | None:
    """Cholesky's factor of the sum of the inverses, for `solve_joined`."""
    factor, failed = lapack.dpotrf(total.T, lower=True)
    return None if failed else factor


def solve_joined(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    return lapack.dpotrs(factor, right, lower=True)[0]


@numba.njit(cache=True, error_model="numpy", nogil=True)
def _pair_blocks(weights, first, source, target, ratio, c, core, diagonal, across):
    """G' diag(weights) G in the upper triangles of the blocks, see `Blocks`."""
    core[:], diagonal[:], across[:] = 0.0, 0.0, 0.0
    for o in range(len(core)):
        H, D, B = core[o], diagonal[o], across[o]
        for i in range(first[o], first[o + 1]):
            s, t, k, w = source[i], target[i], ratio[i], weights[i]
            if t < c:
                H[t, t] += w
            else:
                D[t - c] += w
            if s < c:
                H[s, s] += k * k * w
            else:
                D[s - c] += k * k * w
            if s < c and t < c:
                H[min(s, t), max(s, t)] -= k * w
            elif s < c:
                B[t - c, s] -= k * w
            elif t < c:
                B[s - c, t] -= k * w


@numba.njit(cache=True, error_model="numpy", nogil=True)
def _eliminate(core, diagonal, across, F, attacks, inner, outer, between):
    """Compute what `Blocks` stores from the pairs' parts A, D, B' of some blocks; add up their inverses (upper triangles).

    With S = A - B D^-1 B' and W = D^-1 B': `inner` of S^-1, `outer` of D^-1 + W S^-1 W', `between` of W S^-1.
    """
    m, k, others = len(core), core.shape[1], diagonal.shape[1]
    scaled, kept, inverse, Y = np.empty_like(F), np.empty((k, k)), np.empty((k, k)), np.empty((others, k))
    diagonal_of_core = np.empty(k)
    for o in range(m):
        H, D, W = core[o], diagonal[o], across[o]
        if len(F):
            c = F.shape[1]
            for h in range(len(F)):
                root = np.sqrt(attacks[o, h])
                H[c, c] += attacks[o, h]
                for s in range(c):
                    scaled[h, s] = F[h, s] * root
                    H[s, c] -= F[h, s] * attacks[o, h]
            add_gram(scaled, H)
        for s in range(others):
            D[s] *= 1 + _REGULAR
            Y[s] = W[s] / np.sqrt(D[s])
            W[s] /= D[s]
        for s in range(k):
            diagonal_of_core[s] = H[s, s]
        if others:
            add_gram(Y, H, -1.0)
        kept[:] = H
        regular = _REGULAR
        while True:
            for s in range(k):  # for a secret close to another one the remainder may be pure rounding error
                H[s, s] += regular * diagonal_of_core[s]
            if cholesky(H):
                break
            regular *= 10
            H[:] = kept
            if regular > _MOST_REGULAR:
                return False
        inverse[:] = H
        invert(inverse)
        inner += inverse
        if others:
            Y[:] = W
            divide(Y, H, False)
            add_outer(Y, outer)
            divide(Y, H, True)
            between += Y
            for s in range(others):
                outer[s, s] += 1 / D[s]
    return True


@numba.njit(cache=True, error_model="numpy", nogil=True)
def _solve_part(core, diagonal, weights, c, vectors):
    """`Blocks.solve` for some of the observables."""
    others, k = weights.shape[1:]
    inner = np.empty(k)
    for o in range(len(core)):
        v, W, D = vectors[o], weights[o], diagonal[o]
        inner[:c], inner[c:] = v[:c], v[c + others :]
        for s in range(others):
            for t in range(c):
                inner[t] -= W[s, t] * v[c + s]
        solve_factored(core[o], inner)
        for s in range(others):
            total = v[c + s] / D[s]
            for t in range(c):
                total -= W[s, t] * inner[t]
            v[c + s] = total
        v[:c], v[c + others :] = inner[:c], inner[c:]


def _function(table: str, name: str, arguments: int):
    """A subroutine of SciPy's table, called by name: unlike an address, a name stays valid when compiled code is cached."""
    symbol = f"mobpriv_{name}"
    llvmlite.binding.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.cython_{table}", name))
    return types.ExternalFunction(symbol, types.void(*[types.voidptr] * arguments))


_potrf = _function("lapack", "dpotrf", 5)
_trtri = _function("lapack", "dtrtri", 6)
_lauum = _function("lapack", "dlauum", 5)
_trmm = _function("blas", "dtrmm", 11)
_trsm = _function("blas", "dtrsm", 11)
_syrk = _function("blas", "dsyrk", 10)


_LOW, _NO, _YES, _LEFT, _RIGHT = (ord(letter) for letter in "LNTLR")


@numba.njit(cache=True, nogil=True)
def _at(value):
    """A letter or an integer in memory that LAPACK can read."""
    return np.full(1, value, dtype=np.int32)


@numba.njit(cache=True, nogil=True)
def _number(value):
    return np.full(1, value, dtype=np.float64)


@numba.njit(cache=True, nogil=True)
def add_gram(A, block, sign=1.0):
    """Add sign A' A, A of shape (k, n), to the upper triangle of the first n rows and columns of a C-ordered block."""
    low, no, n, k, stride = _at(_LOW), _at(_NO), _at(A.shape[1]), _at(A.shape[0]), _at(block.shape[1])
    factor, one = _number(sign), _number(1.0)
    # fmt: off
    _syrk(low.ctypes, no.ctypes, n.ctypes, k.ctypes, factor.ctypes, A.ctypes, n.ctypes, one.ctypes, block.ctypes, stride.ctypes)
    # fmt: on


@numba.njit(cache=True, nogil=True)
def add_outer(A, total):
    """Add A A', A of shape (n, k), to the upper triangle of `total` (n, n)."""
    low, yes, n, k = _at(_LOW), _at(_YES), _at(A.shape[0]), _at(A.shape[1])
    one = _number(1.0)
    _syrk(low.ctypes, yes.ctypes, n.ctypes, k.ctypes, one.ctypes, A.ctypes, k.ctypes, one.ctypes, total.ctypes, n.ctypes)


@numba.njit(cache=True, nogil=True)
def divide(A, triangle, transposed):
    """A U^-1, or A U^-1' if `transposed`, in place of A, for the upper triangle U."""
    left, low, no, n, k = _at(_LEFT), _at(_LOW), _at(_NO), _at(A.shape[0]), _at(A.shape[1])
    how, one = _at(_YES if transposed else _NO), _number(1.0)
    # fmt: off
    _trsm(left.ctypes, low.ctypes, how.ctypes, no.ctypes, k.ctypes, n.ctypes, one.ctypes, triangle.ctypes, k.ctypes, A.ctypes,
          k.ctypes)
    # fmt: on


@numba.njit(cache=True, nogil=True)
def cholesky(block):
    """Cholesky's factor in place of the upper triangle; False if the block is not positive definite."""
    low, n, failed = _at(_LOW), _at(len(block)), _at(0)
    _potrf(low.ctypes, n.ctypes, block.ctypes, n.ctypes, failed.ctypes)
    return failed[0] == 0


@numba.njit(cache=True, nogil=True)
def invert(triangle):
    """The inverse, from Cholesky's factor, of the matrix, in place.

    The triangle is inverted from small parts of it: twice as fast as LAPACK's dtrtri in OpenBLAS, which multiplies by vectors.
    """
    left, right, low, no, order, failed = _at(_LEFT), _at(_RIGHT), _at(_LOW), _at(_NO), _at(len(triangle)), _at(0)
    one, minus, n, size = _number(1.0), _number(-1.0), len(triangle), _PART_ORDER
    for begin in range(0, n, size):
        part, length = triangle[begin:, begin:], _at(min(size, n - begin))
        _trtri(low.ctypes, no.ctypes, length.ctypes, part.ctypes, order.ctypes, failed.ctypes)
    while size < n:
        for begin in range(0, n - size, 2 * size):
            half, columns = begin + size, _at(size)
            rows, first = _at(min(size, n - half)), triangle[begin:, begin:]
            below, corner = triangle[begin:, half:], triangle[half:, half:]
            # fmt: off
            _trmm(left.ctypes, low.ctypes, no.ctypes, no.ctypes, rows.ctypes, columns.ctypes, minus.ctypes, corner.ctypes,
                  order.ctypes, below.ctypes, order.ctypes)
            _trmm(right.ctypes, low.ctypes, no.ctypes, no.ctypes, rows.ctypes, columns.ctypes, one.ctypes, first.ctypes,
                  order.ctypes, below.ctypes, order.ctypes)
            # fmt: on
        size *= 2
    _lauum(low.ctypes, order.ctypes, triangle.ctypes, order.ctypes, failed.ctypes)


@numba.njit(cache=True, error_model="numpy", nogil=True, fastmath={"reassoc", "contract"})
def solve_factored(triangle, x):
    """The solution for the right side x, from Cholesky's factor, in place."""
    U, n = triangle, len(x)
    for i in range(n):
        x[i] /= U[i, i]
        for j in range(i + 1, n):
            x[j] -= x[i] * U[i, j]
    for i in range(n - 1, -1, -1):
        total = 0.0
        for j in range(i + 1, n):
            total += U[i, j] * x[j]
        x[i] = (x[i] - total) / U[i, i]
