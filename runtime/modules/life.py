"""One run of a module: its process from start to end."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from hal.lines import LineBuffer
from hal.linux.inotify import Inotify
from nursery_graph import ProcessFailed, ProcessGroup, process_group
from rpc.api.client import ApiClient
from rpc.client import Channel
from runtime.builtin.together import plain
from runtime.modules.client import ModuleClient
from runtime.modules.command import command_line, environment_of, executable, home, socket_address
from runtime.modules.link import ModuleLink
from schema.errors import ErrorKind, MachineError
from telemetry.names import STDERR_SUFFIX, STDOUT_SUFFIX, of_module

STOP_GRACE: Final = 10.0  # seconds between SIGTERM and SIGKILL; reference value
TAIL: Final = 5  # lines of output that are told when the process ends by itself


class ModuleLife:
    """Starts the module of `link` with its parent at `parent`, until cancelled."""

    def __init__(self, link: ModuleLink, parent: Path, *, debug: bool, environment: Mapping[str, str]) -> None:
        self._link = link
        self._parent = parent
        self._debug = debug
        self._environment = environment
        self._tail: deque[str] = deque(maxlen=TAIL)
        self._reading = 0  # pipes that are not at their end
        self._drained = trio.Event()
        self._log = structlog.get_logger(of_module(link.module.name))

    async def run(self, *, task_status: trio.TaskStatus[ModuleLink]) -> None:
        """Ready when the module is, and was asked about its resources. Raises MachineError when it ends by itself."""
        module = self._link.module
        program = executable(module, self._link.path)
        data = home(self._environment) / "module-data" / "local" / module.name
        data.mkdir(mode=0o750, parents=True, exist_ok=True)
        address = socket_address(self._parent.parent, module.name)
        command = command_line(program, address, module.log_level or ("debug" if self._debug else ""))
        try:
            async with process_group(
                command,
                grace=STOP_GRACE,
                cwd=program.parent,
                env=environment_of(module, program, address, data, self._environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as group:
                self._log.info("module started", pid=group.pid, program=str(program))
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._read, group.process.stdout, STDOUT_SUFFIX)
                    nursery.start_soon(self._read, group.process.stderr, STDERR_SUFFIX)
                    nursery.start_soon(self._watch, group)
                    await self._serve(address, task_status)
        except OSError as error:
            raise MachineError(
                f"{program} cannot be started: {error.strerror}",
                kind=ErrorKind.PRECONDITION,
                remedy="check that it is a program for this computer and that its interpreter exists",
            ) from error
        except BaseExceptionGroup as group_of_errors:
            raise plain(group_of_errors) from None
        finally:
            address.unlink(missing_ok=True)

    async def _serve(self, address: Path, task_status: trio.TaskStatus[ModuleLink]) -> None:
        await _appeared(address)
        async with Channel(f"unix:{address}") as channel:
            client = ModuleClient(ApiClient(channel), self._link.module.name)
            try:
                await self._link.opened(client, await client.ready(self._parent))
                self._log.info("module is ready", models=sorted(str(model) for _, model in self._link.offers))
                task_status.started(self._link)
                await self._link.follow()
            finally:
                self._link.closed()

    async def _watch(self, group: ProcessGroup) -> None:
        status = await group.wait()
        with trio.move_on_after(1):  # what it said last is still in the pipes
            await self._drained.wait()
        said = f"; it said last: {' | '.join(self._tail)}" if self._tail else ""
        raise MachineError(f"{ProcessFailed([self._link.module.name], status)}{said}", kind=ErrorKind.UNAVAILABLE)

    async def _read(self, pipe: Any, suffix: str) -> None:
        """Its lines go to the log; the newest are kept for the reason of its end."""
        log = structlog.get_logger(f"{of_module(self._link.module.name)}{suffix}")
        lines = LineBuffer()
        self._reading += 1
        async for data in pipe:
            for line in lines.feed(data):
                text = line.decode(errors="replace").rstrip("\r")
                self._tail.append(text[:300])
                log.info(text)
        self._reading -= 1
        if not self._reading:
            self._drained.set()


async def _appeared(address: Path) -> None:
    """Return when the module has made its socket."""
    notices = Inotify()
    try:
        notices.watch({address.parent})
        while not os.path.exists(address):  # noqa: ASYNC240
            await notices.wait({address})
    finally:
        notices.close()
