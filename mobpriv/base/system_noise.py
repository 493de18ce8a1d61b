"""Random numbers of the operating system, for noise that nobody can draw again.

A seeded generator repeats its numbers. An adversary who learns the seed, or rebuilds the state from published noise, removes the
noise. The functions and mechanisms of this package take a ``numpy.random.Generator``; this one asks the operating system for every bit.
"""

import ctypes
import os
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

_FEWEST, _BLOCK = 1 << 4, 1 << 12  # numbers of 64 bits that the operating system is asked for at once
_NEXT_64, _NEXT_32, _NEXT_DOUBLE = (
    ctypes.CFUNCTYPE(kind, ctypes.c_void_p) for kind in (ctypes.c_uint64, ctypes.c_uint32, ctypes.c_double)
)

_CAPSULE = b"BitGenerator"  # the name that numpy asks for; it must outlive the capsules
_USED_BY_NUMBA = ("next_uint64", "next_uint32", "next_double")
ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
ctypes.pythonapi.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class _BitGen(ctypes.Structure):
    """``bitgen_t`` of numpy/random/bitgen.h."""

    _fields_ = (
        ("state", ctypes.c_void_p),
        ("next_uint64", _NEXT_64),
        ("next_uint32", _NEXT_32),
        ("next_double", _NEXT_DOUBLE),
        ("next_raw", _NEXT_64),
    )


class _SystemBits:
    """What ``numpy.random.Generator`` and numba ask of a bit generator."""

    def __init__(self, failures: list[BaseException]):
        self.lock = threading.RLock()
        self._failures, self._numbers, self._asked = failures, [], _FEWEST
        next_uint64 = _NEXT_64(lambda _: self._next())
        self._bitgen = _BitGen(
            None,
            next_uint64,
            _NEXT_32(lambda _: self._next() >> 32),
            _NEXT_DOUBLE(lambda _: (self._next() >> 11) / (1 << 53)),
            next_uint64,
        )
        self.capsule = ctypes.pythonapi.PyCapsule_New(ctypes.byref(self._bitgen), _CAPSULE, None)
        address = ctypes.addressof(self._bitgen)  # also for the state, which numba must find and the functions do not read
        functions = (getattr(self._bitgen, name) for name in _USED_BY_NUMBA)
        self.ctypes = _Interface(address, ctypes.c_void_p(address), *functions, ctypes.c_void_p(address))

    def _next(self) -> int:
        """A whole number of 64 random bits; 0 after a failure, which compiled code could not pass on."""
        try:
            if not self._numbers:
                self._asked = min(2 * self._asked, _BLOCK)
                self._numbers = np.frombuffer(os.urandom(8 * self._asked), np.uint64).tolist()
            return self._numbers.pop()
        except BaseException as error:
            self._failures.append(error)
            return 0

    state = property(lambda self: None, lambda self, nothing: None)  # there is none to save or to restore


class _Interface(NamedTuple):
    """``bit_generator.ctypes`` of numpy."""

    state_address: int
    state: ctypes.c_void_p
    next_uint64: Callable
    next_uint32: Callable
    next_double: Callable
    bit_generator: ctypes.c_void_p


class SystemGenerator(np.random.Generator):
    """A generator that draws every bit from the operating system (``os.urandom``).

    Compiled code cannot raise an error, so numbers drawn may be used only if ``failures`` is empty afterwards.

    >>> 0 <= SystemGenerator().random() < 1
    True
    """

    def __init__(self, failures: list[BaseException] | None = None):
        self.failures = [] if failures is None else failures  # also of the children: what was drawn then must not be used
        super().__init__(_SystemBits(self.failures))

    def spawn(self, n_children: int) -> list["SystemGenerator"]:
        """``n_children`` generators; they need no seed to be independent."""
        return [SystemGenerator(self.failures) for _ in range(n_children)]
