"""How modules are run and reached on this computer: processes, sockets, files."""

from __future__ import annotations

import os
import shutil
import signal
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
from rpc.call import Router, ServerCore
from rpc.client import Channel
from rpc.limits import Limits
from rpc.listeners import names_of, open_listeners, open_unix_listener
from rpc.port import serve
from runtime.modules import install, limits
from runtime.modules.command import Program, socket_address, tcp_address
from runtime.modules.output import Output
from schema.errors import ConfigError, ErrorKind, MachineError
from schema.modules import Module, ModuleLimits
from support.inotify import Inotify

CHANNEL: Final = Limits(keepalive_interval=inf)
"""The watchdog looks whether a module answers. A constructor may keep one from answering PING, and some servers hang up
on clients that send PING often."""

PARENT: Final = Limits(late_streams=True, header_table=0, authentication_timeout=inf)
"""Python modules write logs from a second thread: frames of different streams may change places on their way. Header
blocks that refer to earlier ones would then be misread, so there is no table to refer to."""

STOP_GRACE: Final = 10.0  # seconds between SIGTERM and SIGKILL; reference value


class Running(Protocol):
    """A module's process."""

    pid: int

    def follow(self, nursery: trio.Nursery, output: Output) -> None:
        """Read what it prints."""
        ...

    async def wait(self) -> int:
        """Return when it has ended: its status, or minus the signal that ended it."""
        ...

    def kill(self) -> None:
        """End it with everything it started, without asking."""
        ...

    async def appeared(self) -> None:
        """Return when it may be dialled."""
        ...

    def usage(self) -> limits.Usage:
        """What it uses now with everything it started."""
        ...


class Processes(Protocol):
    """How modules are run and reached."""

    def parent(self, router: Router, *, tcp: bool) -> AbstractAsyncContextManager[str]:
        """Serve `router` to modules while the context is open; at which address."""
        ...

    async def prepare(self, module: Module, path: str) -> Program:
        """The program of a module; MachineError if there is none."""
        ...

    async def first_run(self, module: Module, program: Program, environment: dict[str, str]) -> None:
        """Run what must have run once before; MachineError if it fails."""
        ...

    def address(self, module: Module, parent: str, *, tcp: bool) -> str:
        """Where the next process of a module shall listen, whose parent listens at `parent`."""
        ...

    def start(
        self, command: Sequence[str], address: str, environment: dict[str, str], kept: ModuleLimits
    ) -> AbstractAsyncContextManager[Running]:
        """Run a module while the context is open; at its end it ends, with everything it started. OSError."""
        ...

    def channel(self, address: str) -> Channel:
        """A channel to a module's address."""
        ...


class LocalProcesses:
    """Processes of this computer."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment

    @asynccontextmanager
    async def parent(self, router: Router, *, tcp: bool) -> AsyncIterator[str]:
        """A Unix socket in a folder that only this user may enter, hence without further keys; or loopback TCP."""
        async with trio.open_nursery() as nursery:
            folder = None if tcp else Path(tempfile.mkdtemp(prefix="machine-module-"))
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
                    shutil.rmtree(folder, ignore_errors=True)

    async def prepare(self, module: Module, path: str) -> Program:
        """As Processes."""
        return await install.prepared(module, path, self._environment)

    async def first_run(self, module: Module, program: Program, environment: dict[str, str]) -> None:
        """As Processes."""
        await install.first_run(module, program, environment)

    def address(self, module: Module, parent: str, *, tcp: bool) -> str:
        """As Processes."""
        return tcp_address() if tcp else str(socket_address(Path(parent).parent, module.name))

    @asynccontextmanager
    async def start(
        self, command: Sequence[str], address: str, environment: dict[str, str], kept: ModuleLimits
    ) -> AsyncIterator[Running]:
        """In a session and process group of its own, with what it prints in pipes."""
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
                    group.signal(signal.SIGCONT)  # else a stopped one would not hear SIGTERM
        finally:
            if not is_tcp(address):
                _remove(address)

    def channel(self, address: str) -> Channel:
        """As Processes."""
        return Channel(address if is_tcp(address) else f"unix:{address}", limits=CHANNEL)


class _LocalProcess:
    def __init__(self, group: ProcessGroup, address: str) -> None:
        self.pid = group.pid
        self._group = group
        self._address = address

    def follow(self, nursery: trio.Nursery, output: Output) -> None:
        output.follow(nursery, self._group.process)

    async def wait(self) -> int:
        return await self._group.wait()

    def kill(self) -> None:
        self._group.signal(signal.SIGKILL)

    async def appeared(self) -> None:
        """Its Unix socket is there. A TCP port tells nobody that it is open: it is dialled until it answers."""
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

    def usage(self) -> limits.Usage:
        return limits.usage(self.pid)


def is_tcp(address: str) -> bool:
    """Whether this is host and port, not a path."""
    return not address.startswith("/")


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)


def cannot_start(program: Program, error: OSError) -> MachineError:
    """Why a program could not be started."""
    return MachineError(
        f"{program.executable} cannot be started: {error.strerror}",
        kind=ErrorKind.PRECONDITION,
        remedy="check that it is a program for this computer and that its interpreter exists",
    )
