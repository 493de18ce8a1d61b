"""Worker processes: none is left behind, however the work ends."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from notebook_making import make, registry

from mobpriv.base import processes

SCRIPT = """
import json, signal, sys, time
from pathlib import Path
from mobpriv.experiments import joint

def scenario(prior):
    if prior[0] == 1:
        return [{"cost": 0.0}]
    end = time.monotonic() + 100
    while time.monotonic() < end:  # as busy as a solver
        pass

def keep(name, compute):
    kept = Path(sys.argv[1]) / name
    table = compute()
    kept.write_text(json.dumps(table))
    return table

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background of a shell inherits deafness to it
    joint.of_all(scenario, [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.25, 0.75]], keep=keep, workers=2)
"""


PLAIN = """
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from mobpriv.base.processes import end_with_parent

def busy(number):
    end = time.monotonic() + 100
    while time.monotonic() < end:
        pass

if __name__ == "__main__":
    with ProcessPoolExecutor(2, get_context("spawn"), initializer=end_with_parent) as pool:
        list(pool.map(busy, range(2)))
"""


BUILD = """
import sys
from pathlib import Path
from mobpriv import cli
from mobpriv.book import build

if __name__ == "__main__":
    with cli.one_clear_line():
        build.build(Path(sys.argv[1]), render=False)
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_scenario_that_is_ended_leaves_no_worker_and_keeps_who_is_done(end, tmp_path):
    kept = tmp_path / "scenario-1"
    said = _ended(SCRIPT, end, tmp_path, kept.exists)
    assert json.loads(kept.read_text()) == [{"cost": 0.0}]
    assert ("KeyboardInterrupt" in said) == (end == signal.SIGINT)


def test_workers_of_any_pool_end_with_a_parent_that_is_killed(tmp_path):
    _ended(PLAIN, signal.SIGKILL, tmp_path, lambda: True)


def _ended(text: str, end: signal.Signals, folder: Path, ready) -> str:
    """Runs the script until two workers are busy, sends it the signal and sees its workers gone; what it said."""
    script = folder / "script.py"
    script.write_text(text)
    with subprocess.Popen([sys.executable, script, folder], stderr=subprocess.PIPE, text=True) as parent:
        started = []
        try:
            _wait(lambda: ready() and len(_busy(parent.pid)) == 2)
            started = psutil.Process(parent.pid).children(recursive=True)
            parent.send_signal(end)
            _, alive = psutil.wait_procs(started, timeout=20)  # they would be busy for 100 s
            assert alive == []
            assert parent.wait(20) != 0
            return parent.stderr.read()
        finally:
            for process in [parent, *(one for one in started if one.is_running())]:
                process.kill()


def _busy(pid: int) -> list:
    """The processes below this one that have computed for a while."""
    below = psutil.Process(pid).children(recursive=True)
    return [one for one in below if one.cpu_times().user > 1.5 and "spawn_main" in " ".join(one.cmdline())]


def _wait(condition, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came so far"
        time.sleep(0.1)


def test_an_error_ends_the_others_at_once():
    """Otherwise the block would be left after a hundred seconds."""
    before, begun = psutil.Process().children(recursive=True), time.monotonic()
    with pytest.raises(ZeroDivisionError):
        _fail_beside_a_long_sleep()
    assert time.monotonic() - begun < 50
    left = [one for one in psutil.Process().children(recursive=True) if one not in before]
    assert [one for one in left if "resource_tracker" not in " ".join(one.cmdline())] == []


def _fail_beside_a_long_sleep() -> None:
    with processes.pool(2) as pool:
        pool.submit(time.sleep, 100)
        pool.submit(divmod, 1, 0).result()


def test_a_folder_that_is_written_to_while_it_is_removed_hides_no_interrupt(monkeypatch):
    """A kernel that ends may still write there: "Directory not empty"."""
    with monkeypatch.context() as patched:
        patched.setattr("os.rmdir", lambda *_, **__: (_ for _ in ()).throw(OSError(39, "Directory not empty")))
        with pytest.raises(KeyboardInterrupt), processes.temporary_folder("mobpriv-") as folder:
            raise KeyboardInterrupt
    folder.rmdir()


def test_work_that_is_done_is_handed_back():
    with processes.pool(2) as pool:
        assert list(pool.map(abs, [-1, -2, -3])) == [1, 2, 3]


def test_only_a_worker_can_end_with_its_parent():
    with pytest.raises(RuntimeError, match="no such parent"):
        processes.end_with_parent()


@pytest.fixture
def short() -> Iterator[Path]:
    """A temporary folder whose path leaves room for a socket's."""
    with TemporaryDirectory(prefix="t", dir="/tmp" if Path("/tmp").is_dir() else None) as folder:
        yield Path(folder)


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_build_that_is_ended_leaves_no_worker_no_kernel_and_no_folder(end, warm, tmp_path, short, monkeypatch):
    """Kernels are forked where the path of the temporary folder leaves room, else started anew."""
    registry(tmp_path)
    busy = "import time\nimport numpy as np\nfrom itertools import count\nfrom pathlib import Path\nfrom mobpriv.base.sharing import once\n"
    steps = "Path(dataset).touch()\nfor i in count():\n    once(np.full)(4, i)\n    time.sleep(0.05)"
    make(tmp_path, "slow", busy + steps)  # it goes on sharing until it is gone
    (tmp_path / "book" / "_toc.yml").write_text("format: jb-book\nroot: index\nchapters:\n  - file: notebooks/slow\n")
    temporary = short / ("here" if warm else "far" * 25)
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    script = tmp_path / "script.py"
    script.write_text(BUILD)
    with subprocess.Popen([sys.executable, script, tmp_path], stderr=subprocess.DEVNULL) as parent:
        started = []
        try:
            _wait((tmp_path / "city").exists)  # the kernel stands in the project's folder
            started = psutil.Process(parent.pid).children(recursive=True)
            forked = any("forkserver" in " ".join(one.cmdline()) for one in started)
            assert forked == (warm and sys.platform == "linux")
            assert forked or any("ipykernel_launcher" in " ".join(one.cmdline()) for one in started)
            parent.send_signal(end)
            _, alive = psutil.wait_procs(started, timeout=20)
            assert alive == []
            assert parent.wait(20) != 0
        finally:
            for process in [parent, *(one for one in started if one.is_running())]:
                process.kill()
    assert list(temporary.glob("*")) == []
