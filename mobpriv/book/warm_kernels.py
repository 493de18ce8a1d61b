"""Kernels forked from a process that has already imported the package.

A new kernel takes two seconds for its imports, and a book needs a hundred kernels. Everything else is as in a run of a single
notebook: papermill, the kernel's own process, folder and sockets, and its end.
"""

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from multiprocessing import forkserver, util
from pathlib import Path

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

import mobpriv
from mobpriv.base import processes
from mobpriv.book import claims, quantities, runs
from mobpriv.book.results import ROOT
from mobpriv.book.running import KERNEL, ONE_THREAD

_BACKEND = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}  # set by a kernel before it draws
NAME = "mobpriv-warm"


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


class WarmKernel(LocalProvisioner):
    """Start a kernel as jupyter_client's provisioner does, but as a forked process."""

    async def launch_kernel(self, cmd, **options):
        self.process = _launch(cmd, options["env"], options.get("cwd") or os.getcwd())
        self.pid = self.pgid = self.process.pid  # it leads its own process group
        return self.connection_info


def _launch(command: list[str], variables: dict[str, str], folder: str) -> Forked:
    context = multiprocessing.get_context("forkserver")
    ready, leads_its_group = context.Pipe(duplex=False)
    arguments = command[command.index("ipykernel_launcher") + 1 :]
    process = context.Process(target=_kernel, args=(arguments, variables | ONE_THREAD, folder, leads_its_group))
    process.start()
    leads_its_group.close()
    ready.recv()  # signals go to the process group of the kernel, which must differ from its parent's
    ready.close()
    return Forked(process)


def _kernel(arguments: list[str], variables: dict[str, str], folder: str, leads_its_group) -> None:
    processes.end_with_parent()
    os.setsid()
    leads_its_group.send(True)
    leads_its_group.close()
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    multiprocessing.set_start_method(None, force=True)  # the default, as in a kernel that is not forked
    processes.get_context = lambda _: multiprocessing.get_context("forkserver")  # for the workers of the kernel
    from ipykernel import kernelapp

    kernelapp.launch_new_instance(argv=arguments)


_begun: list[float] = []  # time at which this process imported the package for its kernels


def _changed() -> bool:
    """Whether the package has changed since its import, so that a forked kernel would run old code."""
    if not _begun:
        _begun.append(time.time())
    return any(file.stat().st_mtime > _begun[0] for file in Path(mobpriv.__file__).parent.rglob("*.py"))


def read_texts() -> None:
    """Read what every page shows of other files; their texts stay parsed."""
    quantities.read(ROOT, {})
    claims.read(ROOT / "book" / "claims", claims.Claim)
    runs.read(ROOT)


@contextmanager
def kernels() -> Iterator[None]:
    """Fork all kernels that are started inside the block; each has one thread.

    If forking is not possible, or the package has changed since its import, new kernels start as usual.
    """
    # on other systems libraries fail after a fork; the path of a socket, 31 characters in the temporary folder, is limited to about 100
    if sys.platform != "linux" or len(tempfile.gettempdir()) > 70 or _changed():
        yield
        return
    read_texts()  # a mistake in them is named here; it would end the process that forks
    with processes.environment(ONE_THREAD | KERNEL | _BACKEND):
        multiprocessing.get_context("forkserver").set_forkserver_preload(["mobpriv.book.before_fork"])
        forkserver.ensure_running()
    processes.ends_with_parent(util.get_temp_dir())  # with its socket
    factory = KernelProvisionerFactory.instance()
    factory.provisioners[NAME] = EntryPoint(NAME, f"{__name__}:{WarmKernel.__name__}", factory.GROUP_NAME)
    before, factory.default_provisioner_name = factory.default_provisioner_name, NAME
    try:
        yield
    finally:
        factory.default_provisioner_name = before
