"""What is computed once for all processes of a build."""

import os
import pickle
import shutil
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from trace_making import strolls

from mobpriv.attacks import ILLAttack
from mobpriv.base import sharing
from mobpriv.mechanisms import HMC, W4M, GeoI
from mobpriv.metrics.spatial import distances_to_path

CALLS = []


@pytest.fixture(autouse=True)
def _short_computations(monkeypatch):
    monkeypatch.setattr(sharing, "_SHORTEST", 0.0)


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


@dataclass(frozen=True)
class Held:
    """A dataclass that holds something of a notebook."""

    what: object

    def shift(self, values):
        CALLS.append("held")
        return values


def of_a_notebook():
    """Stands for a function, or a class, that a notebook defines."""


@pytest.mark.parametrize(
    "argument", [Shifted(1), Held(Shifted(1)), Held(of_a_notebook)], ids=["itself", "a field", "a function"]
)
def test_code_of_a_notebook_is_not_shared(argument, monkeypatch):
    monkeypatch.setattr(Shifted, "__module__", "__main__")
    monkeypatch.setattr(of_a_notebook, "__module__", "__main__")
    CALLS.clear()
    with sharing.sharing():
        for _ in range(2):
            sharing.once(type(argument).shift)(argument, np.zeros(2))
    assert len(CALLS) == 2


def test_a_result_that_another_process_has_just_removed_is_computed(monkeypatch):
    CALLS.clear()
    with sharing.sharing():
        monkeypatch.setattr(Path, "exists", lambda path: True)
        assert (sharing.once(doubled)(np.ones(2), 7) == 7).all()
    assert CALLS == [7]


def of_w4m(traces, seed, way):
    rng = np.random.default_rng(seed)
    return W4M(delta=(300.0, 900.0)[way]).protect(traces, rng), rng.random()


def of_hmc(traces, seed, way):
    rng = np.random.default_rng(seed)
    return HMC(traces, rounded_at=("end", "rule")[way], least_step=5).protect(traces, rng), rng.random()


def of_ill(traces, seed, way):
    return ILLAttack(7200.0, trees=5, seed=seed, max_features=(0.3, 0.9)[way]).fit(traces).rank(traces)


def of_distances(traces, seed, way):
    return distances_to_path(traces, GeoI(0.01).protect(traces, np.random.default_rng(seed)), interpolate=bool(way))


@pytest.mark.parametrize("compute", [of_w4m, of_hmc, of_ill, of_distances])
def test_what_pages_share_is_what_each_computes_alone(compute):
    """With two seeds and two settings, each twice: the second time the result is another's, and the generator stands where it would."""
    traces = strolls(8, distance=500.0)
    cases = [(seed, way) for seed in (1, 2) for way in (0, 1)]
    alone = [pickle.dumps(compute(traces, *case)) for case in cases]
    assert len(set(alone)) == len(cases)
    before = sharing.saved_seconds()
    with sharing.sharing():
        for _ in range(2):
            assert [pickle.dumps(compute(traces, *case)) for case in cases] == alone
    assert sharing.saved_seconds() > before


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


def test_a_short_computation_is_not_stored(monkeypatch):
    monkeypatch.setattr(sharing, "_SHORTEST", 10.0)
    CALLS.clear()
    with sharing.sharing():
        for _ in range(2):
            sharing.once(doubled)(np.ones(2), 3)
        assert list(Path(os.environ[sharing.FOLDER]).iterdir()) == []
    assert CALLS == [3, 3]


def test_a_full_disk_fails_no_page(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with sharing.sharing():
        monkeypatch.setattr(os, "replace", full)
        assert (sharing.once(doubled)(np.ones(2), 3) == 3).all()
        assert list(Path(os.environ[sharing.FOLDER]).iterdir()) == []


@pytest.mark.parametrize("hold", [lambda code: [code], lambda code: (1, {"a": code})], ids=["list", "dict in a tuple"])
def test_code_of_a_notebook_in_a_container_is_not_shared(hold, monkeypatch):
    monkeypatch.setattr(of_a_notebook, "__module__", "__main__")
    CALLS.clear()
    with sharing.sharing():
        for _ in range(2):
            sharing.once(Held.shift)(Held(hold(of_a_notebook)), np.zeros(2))
    assert CALLS == ["held", "held"]
