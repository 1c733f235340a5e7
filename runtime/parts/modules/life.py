"""One run of a module, from the start of its process to the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import structlog
import trio

from nursery_graph import ProcessFailed
from rpc import within
from rpc.client import Channel
from runtime.parts.modules.apis import learn
from runtime.parts.modules.client import ModuleClient
from runtime.parts.modules.link import ModuleLink
from runtime.parts.modules.process import Processes, Running, cannot_start
from runtime.parts.modules.watchdog import watch_answers, watch_usage
from runtime.programs.command import command_line, environment_of
from runtime.programs.output import Output
from schema import ErrorKind, MachineError
from support import unwrap
from support.files.private import make_folder
from telemetry.logs.logger_names import of_module

START_LIMIT: Final = 300.0  # seconds from the start of the process until it must be ready; reference: 5 min
START_LIMIT_VARIABLE: Final = "VIAM_MODULE_STARTUP_TIMEOUT"  # seconds or a duration; reference name


@dataclass(frozen=True, slots=True)
class Setting:
    """How to start a module, from the document. A change restarts the module."""

    level: str  # log level passed to the module; empty for its default
    tcp: bool
    data: Path  # its data folder
    facts: Mapping[str, str] = field(default_factory=dict)  # variables about the machine, for its environment
    start_limit: float = START_LIMIT
    build_limit: float = 120.0  # seconds to build a resource

    @property
    def version(self) -> tuple[object, ...]:
        """A value that is equal for equal settings."""
        return self.level, self.tcp, str(self.data), tuple(sorted(self.facts.items()))


class ModuleLife:
    """Runs the module of `link` once. `parent` is the address at which the module calls the machine."""

    def __init__(
        self,
        link: ModuleLink,
        parent: str,
        setting: Setting,
        *,
        processes: Processes,
        environment: Mapping[str, str],
    ) -> None:
        self._link = link
        self._parent = parent
        self._setting = setting
        self._processes = processes
        self._environment = environment
        self._output = Output(of_module(link.module.name))
        self._log = structlog.get_logger(of_module(link.module.name))

    async def run(self, *, task_status: trio.TaskStatus[ModuleLink]) -> None:
        """Run the module until cancelled. Started when it is ready and has validated its resources.

        Raises MachineError if the module does not start, ends by itself, or is ended by a watchdog.
        """
        module, setting, processes = self._link.module, self._setting, self._processes
        link = self._link
        link.starts()
        if module.is_archive:
            link.phase = "unpacking its archive"
        program = await processes.prepare(module, link.path)
        make_folder(setting.data)
        address = processes.address(module, self._parent, tcp=setting.tcp)
        environment = environment_of(
            module, program, address, setting.data, inherited=self._environment, facts=setting.facts
        )
        if program.first_run is not None:
            link.phase = "running its first_run program"
        await processes.first_run(module, program, environment)
        link.phase = "starting"
        command = command_line(program, address, setting.level, tcp=setting.tcp)
        try:
            async with processes.start(command, address, environment, module.limits) as process:
                self._link.pid = process.pid
                self._log.info("module started", pid=process.pid, program=str(program.executable))
                async with trio.open_nursery() as nursery:
                    process.follow(nursery, self._output)
                    nursery.start_soon(self._until_end, process)
                    nursery.start_soon(watch_usage, process.usage, module)
                    await self._serve(process, address, nursery, task_status)
        except OSError as error:
            raise cannot_start(program, error) from error
        except BaseExceptionGroup as group:
            raise unwrap(group) from None

    async def _serve(
        self, process: Running, address: str, nursery: trio.Nursery, task_status: trio.TaskStatus[ModuleLink]
    ) -> None:
        link, limit = self._link, self._setting.start_limit
        async with self._processes.channel(address) as channel:
            client = ModuleClient(channel, link.module.name)
            link.starting = client
            try:
                try:
                    await within(limit, partial(self._wait_until_ready, process, client, channel))
                except trio.TooSlowError:
                    reason = f": {client.not_ready_reason}" if client.not_ready_reason else ""
                    raise MachineError(
                        f"the module {link.module.name!r} was not ready within {limit:g} s{reason}",
                        kind=ErrorKind.TIMEOUT,
                    ) from None
                self._log.info("module is ready", models=sorted(str(model) for _, model in link.offers))
                task_status.started(link)
                nursery.start_soon(self._watch, process, client)
                await link.follow()
            finally:
                link.closed()

    async def _wait_until_ready(self, process: Running, client: ModuleClient, channel: Channel) -> None:
        await process.appeared()
        offer = await client.ready(self._parent)
        apis, faults = await learn(channel, offer)
        await self._link.opened(client, offer, apis, faults)

    async def _watch(self, process: Running, client: ModuleClient) -> None:
        try:
            await watch_answers(client, self._link.module, self._setting.build_limit)
        except MachineError:
            await process.kill()  # a process that does not answer does not handle SIGTERM either
            raise

    async def _until_end(self, process: Running) -> None:
        status = await process.wait()
        await self._output.ended()
        text = f"{ProcessFailed([self._link.module.name], status)}{self._output.last_output()}"
        raise MachineError(text, kind=ErrorKind.UNAVAILABLE)
