"""What is computed once for all processes of a build."""

import os
import shutil
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mobpriv.base import sharing

CALLS = []


def doubled(values, by):
    CALLS.append(by)
    time.sleep(0.05)
    return values * by


def test_what_one_process_computed_is_not_computed_again_inside_a_build():
    CALLS.clear()
    values, before = np.arange(4.0), sharing.saved_seconds()
    with sharing.sharing():
        for by in (2, 3, 2):
            assert (sharing.once(doubled)(values, by) == by * values).all()
        sharing.once(doubled)(values + 1, 2)
        folder = Path(os.environ[sharing.FOLDER])
        assert CALLS == [2, 3, 2]  # other numbers are others' business
        assert sharing.saved_seconds() - before >= 0.05  # the third would have taken as long as the first
    assert not folder.exists()
    assert sharing.FOLDER not in os.environ
    sharing.once(doubled)(values, 2)
    assert CALLS == [2, 3, 2, 2]  # alone nothing is kept


@dataclass(frozen=True)
class Shifted:
    by: int

    @cached_property
    def computed_since(self):
        return object()

    def shift(self, values, **helpers):
        CALLS.append((self.by, *helpers))
        return values + self.by


def test_of_a_dataclass_its_fields_count_and_arguments_by_keyword_do_not():
    CALLS.clear()
    with sharing.sharing():
        for shifted in (Shifted(1), Shifted(2), Shifted(1)):
            assert shifted.computed_since
            assert (sharing.once(Shifted.shift)(shifted, np.zeros(2), faster=object()) == shifted.by).all()
    assert CALLS == [(1, "faster"), (2, "faster")]


def test_code_of_a_notebook_is_not_shared(monkeypatch):
    monkeypatch.setattr(Shifted, "__module__", "__main__")
    CALLS.clear()
    with sharing.sharing():
        for _ in range(2):
            sharing.once(Shifted.shift)(Shifted(1), np.zeros(2))
    assert CALLS == [(1,), (1,)]


def test_the_folder_is_bounded(monkeypatch):
    monkeypatch.setattr(sharing, "_LARGEST", 1000)
    monkeypatch.setattr(sharing, "_ALL", 1000)
    CALLS.clear()
    with sharing.sharing():
        for by in (1, 2, 1, 2):  # of two results of 500 bytes and more one is kept
            sharing.once(doubled)(np.ones(50), by)
            time.sleep(0.01)
        assert CALLS == [1, 2, 1, 2]
        for _ in range(2):
            sharing.once(doubled)(np.ones(200), 3)
    assert CALLS == [1, 2, 1, 2, 3, 3]  # too large to be kept


def test_the_folder_of_a_build_that_has_ended_does_not_come_back():
    with sharing.sharing():
        folder = Path(os.environ[sharing.FOLDER])
        shutil.rmtree(folder)
        assert (sharing.once(doubled)(np.ones(2), 5) == 5).all()
        assert not folder.exists()


def test_the_folder_of_recorded_data_is_none_of_a_build(tmp_path, monkeypatch):
    """MOBPRIV_SHARED names what lies beside the project for tests: nothing may be written or looked up there."""
    monkeypatch.setenv("MOBPRIV_SHARED", str(tmp_path))
    monkeypatch.delenv(sharing.FOLDER, raising=False)
    assert sharing.once(doubled) is doubled
    with sharing.sharing():
        sharing.once(doubled)(np.ones(2), 3)
    assert list(tmp_path.iterdir()) == []
