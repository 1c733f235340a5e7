"""Module processes on this computer: start, stop, sockets."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import Final, Protocol

import trio

from nursery_graph import ProcessGroup, process_group
from rpc import Limits, Router, ServerCore
from rpc.client import Channel
from rpc.network import HAS_UNIX_SOCKETS, names_of, open_listeners, open_unix_listener
from rpc.server import serve
from runtime.parts.modules import limits
from runtime.programs import install
from runtime.programs.command import Program, socket_address, tcp_address
from runtime.programs.output import Output
from schema import ConfigError, ErrorKind, MachineError
from schema.document import Module, ModuleLimits
from support import Worker
from support.files import Inotify
from support.foreign import remove

LONGEST_FOLDER: Final = 60
"""Bytes of the path of the folder for temporary files; 43 are left for those of a machine and a module's name."""

CHANNEL: Final = Limits(keepalive_interval=inf)
"""Limits without keepalive. The watchdog checks whether a module answers. A constructor may keep a module from
answering PING, and some servers close the connection if a client sends PING often."""

PARENT: Final = Limits(late_streams=True, header_table=0, authentication_timeout=inf)
"""Limits that tolerate frames out of order. Python modules send logs from a second thread, so frames of different
streams may be reordered. Header blocks that refer to earlier ones would then be misread, so the header table is
empty."""

STOP_GRACE: Final = 10.0  # seconds between SIGTERM and SIGKILL; reference value


class Running(Protocol):
    """A module's process."""

    pid: int

    def follow(self, nursery: trio.Nursery, output: Output) -> None:
        """Start to read its standard output and standard error into `output`, in tasks of `nursery`."""
        ...

    async def wait(self) -> int:
        """Wait for its end; return the exit status, or the negative number of the signal that ended it."""
        ...

    async def kill(self) -> None:
        """Kill it and its descendants with SIGKILL."""
        ...

    async def appeared(self) -> None:
        """Wait until its address exists, so that it can be dialed. Return immediately if that cannot be observed."""
        ...

    async def usage(self) -> limits.ProcessUsage:
        """Return its current usage, including its descendants."""
        ...


class Processes(Protocol):
    """Starts module processes and provides connections to them."""

    def parent(self, router: Router, *, tcp: bool) -> AbstractAsyncContextManager[str]:
        """Serve `router` to modules while the context is open, and yield the address."""
        ...

    async def prepare(self, module: Module, path: str) -> Program:
        """Return the program of a module, after unpacking if necessary. Raises MachineError if there is none."""
        ...

    async def first_run(self, module: Module, program: Program, environment: dict[str, str]) -> None:
        """Run the module's first_run program if it has not run yet. Raises MachineError if it fails."""
        ...

    def address(self, module: Module, parent: str, *, tcp: bool) -> str:
        """Return the address at which the next process of a module is to listen; `parent` is the parent's address."""
        ...

    def start(
        self, command: Sequence[str], address: str, environment: dict[str, str], kept: ModuleLimits
    ) -> AbstractAsyncContextManager[Running]:
        """Run a module while the context is open; then stop it and its descendants. Raises OSError."""
        ...

    def channel(self, address: str) -> Channel:
        """Return a channel to a module's address."""
        ...


class LocalProcesses:
    """Runs modules as processes of this computer."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment

    @asynccontextmanager
    async def parent(self, router: Router, *, tcp: bool) -> AsyncIterator[str]:
        """Serve on loopback TCP, or on a Unix socket in a folder that only this user can enter. See Processes.parent.

        Clients are not authenticated.
        """
        async with trio.open_nursery() as nursery:
            tcp = tcp or not HAS_UNIX_SOCKETS
            folder = None if tcp else Path(tempfile.mkdtemp(prefix="machine-module-", dir=_short_folder()))
            try:
                if folder is None:
                    listeners = await open_listeners("127.0.0.1:0")
                    address = names_of(listeners)[0]
                else:
                    address = str(folder / "parent.sock")
                    listeners = [await open_unix_listener(Path(address))]
                await nursery.start(partial(serve, listeners, ServerCore(router, limits=PARENT), app=None, tls=None))
                yield address
                nursery.cancel_scope.cancel()
            finally:
                if folder is not None:
                    remove(folder)

    async def prepare(self, module: Module, path: str) -> Program:
        """Return the program of a module, after unpacking if necessary."""
        return await install.prepared(module, path, self._environment)

    async def first_run(self, module: Module, program: Program, environment: dict[str, str]) -> None:
        """Run the module's first_run program if it has not run yet."""
        await install.first_run(module, program, environment)

    def address(self, module: Module, parent: str, *, tcp: bool) -> str:
        """Return the address at which the next process of a module is to listen; `parent` is the parent's address."""
        return tcp_address() if tcp else str(socket_address(Path(parent).parent, module.name))

    @asynccontextmanager
    async def start(
        self, command: Sequence[str], address: str, environment: dict[str, str], kept: ModuleLimits
    ) -> AsyncIterator[Running]:
        """Run a module in its own session and process group, with pipes for its output. See Processes.start."""
        folder = environment["VIAM_MODULE_ROOT"]
        if not os.path.isdir(folder):  # noqa: ASYNC240 - looks at one name
            raise ConfigError(
                "env.VIAM_MODULE_ROOT", "there is no such folder", value=folder, remedy="correct or remove it"
            )
        try:
            async with process_group(
                command,
                grace=STOP_GRACE,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as group:
                limits.keep(group.pid, kept)
                try:
                    yield _LocalProcess(group, address)
                finally:
                    with trio.CancelScope(shield=True):
                        await group.resume()
        finally:
            if not is_tcp(address):
                _remove(address)

    def channel(self, address: str) -> Channel:
        """Return a channel to a module's address."""
        return Channel(address if is_tcp(address) else f"unix:{address}", limits=CHANNEL)


def _short_folder() -> str | None:
    """Return where sockets fit into the 107 bytes of their paths: None for the usual folder, unless TMPDIR is long."""
    return None if len(os.fsencode(tempfile.gettempdir())) <= LONGEST_FOLDER else "/tmp"


class _LocalProcess:
    def __init__(self, group: ProcessGroup, address: str) -> None:
        self.pid = group.pid
        self._group = group
        self._address = address
        self._worker = Worker("usage of a module")

    def follow(self, nursery: trio.Nursery, output: Output) -> None:
        output.follow(nursery, self._group.process)

    async def wait(self) -> int:
        return await self._group.wait()

    async def kill(self) -> None:
        await self._group.strike()

    async def appeared(self) -> None:
        """Wait until its Unix socket exists. Return immediately for TCP, which has no event: callers retry."""
        if is_tcp(self._address):
            return
        address = Path(self._address)
        notices = Inotify()
        try:
            notices.watch({address.parent})
            while not os.path.exists(address):  # noqa: ASYNC240
                await notices.wait({address})
        finally:
            notices.close()

    async def usage(self) -> limits.ProcessUsage:
        async with self._worker.opened():
            return await self._worker.run(lambda: limits.usage(self.pid))


def is_tcp(address: str) -> bool:
    """Return whether `address` is host and port, not a path."""
    return not address.startswith("/")


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)


def cannot_start(program: Program, error: OSError) -> MachineError:
    """Return the error for a program that could not be started."""
    return MachineError(
        f"{program.executable} cannot be started: {error.strerror}",
        kind=ErrorKind.PRECONDITION,
        remedy="check that it is a program for this computer and that its interpreter exists",
    )
