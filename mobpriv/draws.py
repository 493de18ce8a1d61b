"""Random draws per user: the same numbers whatever the number of threads.

Every user gets a generator of his own, spawned in the order of the table (users are sorted), so what one user draws does not
depend on how many records another has.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numba
import numpy as np


def per_user(draw: Callable, rng: np.random.Generator, offsets: np.ndarray, *columns: np.ndarray) -> None:
    """Call ``draw(child, *blocks)`` for every user; it fills the user's blocks of the ``columns``.

    ``offsets`` are those of :func:`mobpriv.traces.by_user`. ``draw`` should release the interpreter's lock (numba: nogil=True).
    """
    children = rng.spawn(len(offsets) - 1)

    def some(users):
        for i in users:
            draw(children[i], *(column[offsets[i] : offsets[i + 1]] for column in columns))

    workers = numba.get_num_threads()
    if workers == 1 or offsets[-1] < 100_000:
        some(range(len(children)))
        return
    # several shares per thread, each of about as many records
    borders = np.searchsorted(offsets, np.linspace(0, offsets[-1], 8 * workers + 1))
    borders[0], borders[-1] = 0, len(children)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(some, [range(a, b) for a, b in pairwise(borders)]))
