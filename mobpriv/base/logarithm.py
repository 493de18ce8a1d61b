"""The natural logarithm for compiled loops: without a branch or a call, so that the compiler computes several at once.

``np.log`` in a loop of numba is a call for each number. AP-Attack spends most of its time in it.
"""

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_ROOT_OF_HALF = int(np.sqrt([0.5]).view(np.int64)[0])  # its bits
_WHOLE = 3 * 2.0**51  # a float64 between 2⁵² and 2⁵³ holds a whole number in its last bits
_WHOLE_BITS = int(np.array([_WHOLE]).view(np.int64)[0])
_LN2 = np.log(2.0)


@intrinsic
def _bits(typingctx, x):
    return types.int64(types.float64), lambda context, builder, signature, args: builder.bitcast(args[0], ir.IntType(64))


@intrinsic
def _float(typingctx, bits):
    return types.float64(types.int64), lambda context, builder, signature, args: builder.bitcast(args[0], ir.DoubleType())


@numba.njit(inline="always")
def log(x):
    """ln x of a positive float64 that is not subnormal, to within 4 units in the last place.

    With x = 2ᵏ m, √½ ≤ m < √2, and s = (m − 1) / (m + 1)::

        ln x = k ln 2 + 2 (s + s³/3 + s⁵/5 + …)

    |s| < 0.172, so the terms after s²¹/21 are below the last bit.
    """
    bits = _bits(x)
    k = (bits - _ROOT_OF_HALF) >> 52
    m = _float(bits - (k << 52))
    s = np.divide(m - 1.0, m + 1.0)  # `/` would test for zero
    z = s * s
    series = 1 / 21
    for odd in (19, 17, 15, 13, 11, 9, 7, 5, 3):
        series = series * z + 1 / odd
    return (_float(k + _WHOLE_BITS) - _WHOLE) * _LN2 + 2.0 * (s + s * z * series)
