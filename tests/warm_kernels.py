"""Kernels that begin with the package imported: forked from a process that has imported it once, not started anew.

A new kernel imports for two seconds what the one before it has imported, too. All else is as in a run by the book: papermill, the
kernel's own process and folder, its sockets, its end. Kernels that import for themselves: ``tests/test_book.py``, ``make book``.
"""

import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from unittest import mock

from mobpriv import processes
from mobpriv.book.build import ONE_THREAD
from mobpriv.book.running import QUIET

IMPORTED = [
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.zmqshell",
    "mobpriv.attacks.ill",
    "mobpriv.book",
    "mobpriv.channels.optimal",
    "mobpriv.channels.rivals",
    "mobpriv.datasets",
    "mobpriv.experiments.dchi",
    "mobpriv.experiments.joint",
    "mobpriv.experiments.pulp",
    "mobpriv.experiments.thesis_6",
    "mobpriv.maps",
    "mobpriv.plot",
    "sklearn.ensemble",
]


class Forked:
    """A forked process with the methods of ``subprocess.Popen`` that jupyter_client calls."""

    stdin = stdout = stderr = None

    def __init__(self, process: multiprocessing.Process):
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        return self._process.exitcode

    def send_signal(self, signal: int) -> None:
        os.kill(self.pid, signal)

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()


def launch(command: list[str], *, env: dict[str, str], cwd: str | None = None, **_) -> Forked:
    """In place of :func:`jupyter_client.launcher.launch_kernel`."""
    context = multiprocessing.get_context("forkserver")
    ready, leads_its_group = context.Pipe(duplex=False)
    arguments = command[command.index("ipykernel_launcher") + 1 :]
    process = context.Process(target=_kernel, args=(arguments, env | ONE_THREAD, cwd or os.getcwd(), leads_its_group))
    process.start()
    leads_its_group.close()
    ready.recv()  # signals go to the group of the kernel: it must no longer be that of the tests
    ready.close()
    return Forked(process)


def _kernel(arguments: list[str], environment: dict[str, str], folder: str, leads_its_group) -> None:
    processes.end_with_parent()
    os.setsid()
    leads_its_group.send(True)
    leads_its_group.close()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    processes.get_context = lambda _: multiprocessing.get_context("forkserver")  # the kernel's own workers, too
    import matplotlib as mpl
    from ipykernel import kernelapp

    mpl.rcParams["backend"] = "module://matplotlib_inline.backend_inline"  # what a kernel says before matplotlib is imported
    kernelapp.launch_new_instance(argv=arguments)


@contextmanager
def kernels() -> Iterator[None]:
    """All kernels that are started inside the block; each has one thread, as when a book is built by two workers."""
    from jupyter_client.provisioning import local_provisioner

    if sys.platform != "linux":  # elsewhere libraries do not bear a fork
        yield
        return
    with mock.patch.dict(os.environ, ONE_THREAD | QUIET):
        multiprocessing.get_context("forkserver").set_forkserver_preload(IMPORTED)
        forkserver.ensure_running()
    with mock.patch.object(local_provisioner, "launch_kernel", launch):
        yield
