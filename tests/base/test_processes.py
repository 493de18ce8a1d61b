"""Worker processes: none is left behind, however the work ends."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
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

def scenario(area):
    if area.prior[0] == 1:
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
    priors, distances = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.25, 0.75]], [[0.0, 100.0], [100.0, 0.0]]
    joint.for_each_user(scenario, priors, distances, keep=keep, workers=2)
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
    (script := tmp_path / "script.py").write_text(SCRIPT)
    with subprocess.Popen([sys.executable, script, tmp_path], stderr=subprocess.PIPE, text=True) as parent:
        with _ended(parent, end, lambda: kept.exists() and len(_busy(parent.pid)) == 2):
            pass
        stderr = parent.stderr.read()
    assert json.loads(kept.read_text()) == [{"cost": 0.0}]
    assert ("KeyboardInterrupt" in stderr) == (end == signal.SIGINT)


@contextmanager
def _ended(parent: subprocess.Popen, end: signal.Signals, ready) -> Iterator[list[psutil.Process]]:
    """Waits until the script is ready, gives the processes below it, sends it the signal and sees them gone."""
    started = []
    try:
        _wait(ready)
        started = psutil.Process(parent.pid).children(recursive=True)
        yield started
        parent.send_signal(end)
        assert psutil.wait_procs(started, timeout=20)[1] == []  # they would be busy for 100 s
        assert parent.wait(20) != 0
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


def test_work_that_is_done_is_handed_back_and_only_a_worker_can_end_with_its_parent():
    with processes.pool(2) as pool:
        assert list(pool.map(abs, [-1, -2, -3])) == [1, 2, 3]
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
    (temporary := short / ("here" if warm else "far" * 25)).mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    (script := tmp_path / "script.py").write_text(BUILD)
    # the kernel stands in the project's folder when it is ready
    with (
        subprocess.Popen([sys.executable, script, tmp_path], stderr=subprocess.DEVNULL) as parent,
        _ended(parent, end, (tmp_path / "city").exists) as started,
    ):
        forked = any("forkserver" in " ".join(one.cmdline()) for one in started)
        assert forked == (warm and sys.platform == "linux")
        assert forked or any("ipykernel_launcher" in " ".join(one.cmdline()) for one in started)
    assert list(temporary.glob("*")) == []
