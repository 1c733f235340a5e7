"""What was unplugged comes back: a failed resource is tried again as soon as a device appears, not at its next turn."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

import trio

from hal.errors import HalError
from hal.ports.hotplug import HotplugEvent
from runtime.machine import INTERNAL, Machine

NODE: Final = f"{INTERNAL}hotplug"

APPEARED: Final = frozenset({"add", "bind", "change", "move", "online", "lost"})
"""Actions after which a device may be there that was not before; `lost` may have been any."""

UNRELATED: Final = frozenset({"bdi", "block", "cpu", "drivers", "module", "net", "queues", "workqueue"})
"""Subsystems that drivers of resources do not use."""


def may_help(event: HotplugEvent) -> bool:
    """Whether a resource that failed could work after `event`."""
    return event.action in APPEARED and event.subsystem not in UNRELATED


class Hotplug:
    """Listens to the machine's hardware and lets its graph try failed resources at once."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def run(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Hotplug]) -> None:
        """Listen until cancelled; where the system tells nothing, say so once and leave it to the back-off."""
        machine = self._machine
        async with AsyncExitStack() as stack:
            try:
                events = await stack.enter_async_context(machine.hardware.hotplug())
            except HalError as error:
                machine.log.info("not told when devices appear: failed resources wait their turn", reason=str(error))
                task_status.started(self)
                await trio.sleep_forever()
            task_status.started(self)
            async for event in events:
                if may_help(event):
                    self._try_again(event)

    def _try_again(self, event: HotplugEvent) -> None:
        graph = self._machine.graph
        failed = [
            name
            for name, status in graph.snapshot().nodes.items()
            if status.retry_at is not None and name in self._machine.wanted
        ]
        for name in failed:
            graph.retry(name)
        if failed:
            device = event.node or event.device
            self._machine.log.info("a device appeared: trying again", device=device, resources=failed)
