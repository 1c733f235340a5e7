"""Retries failed resources as soon as a device appears, instead of waiting for their next restart."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

import structlog
import trio

from engine import Roster
from engine.planning import INTERNAL
from hal import HalError, Hardware
from hal.ports import HotplugEvent
from nursery_graph import Graph

NODE: Final = f"{INTERNAL}hotplug"

APPEARED: Final = frozenset({"add", "bind", "change", "move", "online", "lost"})
"""Actions after which a new device may be present; `lost` stands for any missed events."""

UNRELATED: Final = frozenset({"bdi", "block", "cpu", "drivers", "module", "net", "queues", "workqueue"})
"""Subsystems that are not used by drivers of resources."""


def may_help(event: HotplugEvent) -> bool:
    """Return whether a failed resource could work after `event`."""
    return event.action in APPEARED and event.subsystem not in UNRELATED


class Hotplug:
    """Listens to hot-plug events, and makes the graph retry failed resources immediately."""

    def __init__(self, hardware: Hardware, graph: Graph, roster: Roster, log: structlog.stdlib.BoundLogger) -> None:
        self._hardware = hardware
        self._graph = graph
        self._roster = roster
        self._log = log

    async def run(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Hotplug]) -> None:
        """Listen until cancelled; if the system sends no events, log that once and rely on timed restarts."""
        async with AsyncExitStack() as stack:
            try:
                events = await stack.enter_async_context(self._hardware.hotplug())
            except HalError as error:
                self._log.info(
                    "new devices cannot be detected: failed resources are retried at intervals", reason=str(error)
                )
                task_status.started(self)
                await trio.sleep_forever()
            task_status.started(self)
            async for event in events:
                if may_help(event):
                    self._retry(event)

    def _retry(self, event: HotplugEvent) -> None:
        graph = self._graph
        failed = [
            name
            for name, status in graph.snapshot().nodes.items()
            if status.retry_at is not None and name in self._roster.planned
        ]
        for name in failed:
            graph.retry(name)
        if failed:
            device = event.node or event.device
            self._log.info("a device appeared: retrying failed resources", device=device, resources=failed)
