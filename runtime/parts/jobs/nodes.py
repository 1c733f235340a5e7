"""The nodes of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec
import structlog
import trio

from engine import PartContext
from engine.planning import INTERNAL, NO_RESTART
from nursery_graph import Node
from rpc.api import ApiClient, MemoryChannel, find_method, methods_for, python_name
from runtime.parts.jobs.clock import SystemClock, WallClock
from runtime.parts.jobs.job import History, JobRunner
from runtime.parts.jobs.schedule import parse_schedule
from schema import API, ConfigError, ErrorKind, MachineError
from schema.decoding import did_you_mean
from schema.document import MachineDocument, ScheduledJob, schedule_kind
from telemetry.logs.logger_names import of_job

PREFIX: Final = f"{INTERNAL}job/"
CLOCK: Final = f"{INTERNAL}job-clock"


class Jobs:
    """The jobs of one machine and their histories. Calls go through the machine's router, like those of clients."""

    def __init__(self, context: PartContext, clock: WallClock | None = None) -> None:
        self._roster = context.roster
        self._client = ApiClient(MemoryChannel(context.router))
        self.clock = clock or SystemClock()
        self.histories: dict[str, History] = {}

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return a node for each job of `document`, and drop the histories of other jobs."""
        for name in self.histories.keys() - {job.name for job in document.jobs}:
            del self.histories[name]
        paths = document.places("jobs")
        nodes = [self._node(job, path) for job, path in zip(document.jobs, paths, strict=True)]
        if any(schedule_kind(job.schedule) == "cron" for job in document.jobs):
            nodes.append(Node(CLOCK, self._run_clock))
        return nodes

    async def _run_clock(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await self.clock.run()

    def _node(self, job: ScheduledJob, path: str) -> Node:
        history = self.histories.setdefault(job.name, History())
        return Node(
            f"{PREFIX}{job.name}",
            partial(self._run, job, path, history),
            version=msgspec.json.encode(job),
            restart=NO_RESTART,
        )

    async def _run(
        self,
        job: ScheduledJob,
        path: str,
        history: History,
        deps: Mapping[str, Any],
        /,
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        schedule = parse_schedule(job.schedule, f"{path}.schedule")
        log = structlog.get_logger(of_job(job.name))

        def report(error: MachineError | None) -> None:
            if error is None:
                log.debug("a run succeeded", resource=job.resource, method=job.method)
            else:
                log.error("a run failed", resource=job.resource, method=job.method, error=str(error))

        task_status.started()
        await JobRunner(schedule, partial(self._call, job, path), history, self.clock, report).run()
        raise ConfigError(f"{path}.schedule", f"{job.schedule!r} has no future run", value=job.schedule)

    async def _call(self, job: ScheduledJob, path: str) -> None:
        host = self._roster.find(job.resource)
        api = host.name.api
        method = self._method(api, job, path)
        arguments = {"command": job.command} if method == "do_command" else {}
        if find_method(api, method).server_streaming:
            raise MachineError(
                f"{path}.method: {job.method} returns a stream of results",
                kind=ErrorKind.INVALID,
                remedy="choose a method that returns one result",
            )
        await self._client.call(api, host.name.short, method, **arguments)

    def _method(self, api: API, job: ScheduledJob, path: str) -> str:
        name = python_name(job.method)
        names = {method.path.rpartition("/")[2]: name for name, method in methods_for(api).items()}
        if name not in names.values():
            raise MachineError(
                f"{path}.method: {api} has no method {job.method!r}",
                kind=ErrorKind.INVALID,
                remedy=did_you_mean(job.method, names),
            )
        return name
