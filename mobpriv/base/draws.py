"""Random draws per user that do not depend on the number of threads.

Each user has her own generator, spawned in the order of the (sorted) users. Her draws do not depend on the number of records of
other users.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numba
import numpy as np


def generator(rng) -> np.random.Generator:
    """``rng``, if it is a generator; a number or None raises ValueError."""
    if not hasattr(rng, "bit_generator"):
        raise ValueError(f"rng must be a generator of NumPy, such as np.random.default_rng(1) (got {rng!r})")
    return rng


def per_user(draw: Callable, rng: np.random.Generator, offsets: np.ndarray, *columns: np.ndarray) -> None:
    """Call ``draw(child, *blocks)`` for every user; it fills the user's blocks of the ``columns``.

    ``offsets`` comes from :func:`mobpriv.traces.table.by_user`. ``draw`` should release the interpreter's lock (numba: nogil=True).
    """
    children = generator(rng).spawn(len(offsets) - 1)

    def some(users):
        for i in users:
            draw(children[i], *(column[offsets[i] : offsets[i + 1]] for column in columns))

    workers = numba.get_num_threads()
    if workers == 1 or offsets[-1] < 100_000:
        some(range(len(children)))
        return
    # several blocks of users per thread, of similar numbers of records
    borders = np.searchsorted(offsets, np.linspace(0, offsets[-1], 8 * workers + 1))
    borders[0], borders[-1] = 0, len(children)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(some, [range(a, b) for a, b in pairwise(borders)]))
