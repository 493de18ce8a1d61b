"""What is computed once for all processes of a build."""

import os
from pathlib import Path

import numpy as np

from mobpriv import sharing

CALLS = []


def doubled(values, by):
    CALLS.append(by)
    return values * by


def test_what_one_process_computed_is_not_computed_again_inside_a_build():
    CALLS.clear()
    values = np.arange(4.0)
    with sharing.sharing():
        for by in (2, 3, 2):
            assert (sharing.once(doubled)(values, by) == by * values).all()
        sharing.once(doubled)(values + 1, 2)
        folder = Path(os.environ[sharing.FOLDER])
        assert CALLS == [2, 3, 2]  # other numbers are others' business
    assert not folder.exists()
    assert sharing.FOLDER not in os.environ
    sharing.once(doubled)(values, 2)
    assert CALLS == [2, 3, 2, 2]  # alone nothing is kept
