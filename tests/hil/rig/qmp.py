"""QEMU's monitor: devices come and go, the machine is paused and looked at from outside."""

from __future__ import annotations

import itertools
import json
from contextlib import aclosing
from typing import Any

import trio

from tests.hil.rig.lines import Gone, connect, receive_lines
from tests.hil.rig.vm import VirtualMachine


class QmpError(Exception):
    """QEMU refused a command; its own words."""


class Qmp:
    """One connection. `await qmp("device_del", id="ftdi")`; events by `wait_event`."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._asking = trio.Lock()
        self._numbers = itertools.count()
        self._answers, self._answered = trio.open_memory_channel[dict[str, Any]](10)
        self._changed = trio.Event()
        self.events: list[dict[str, Any]] = []

    async def __call__(self, command: str, /, **arguments: Any) -> Any:
        async with self._asking:
            number = next(self._numbers)
            request = {"execute": command, "arguments": arguments, "id": number}
            await self._stream.send_all(json.dumps(request).encode() + b"\n")
            answer: dict[str, Any] = {}
            while answer.get("id") != number:  # answers to those who were cancelled come first
                try:
                    answer = await self._answered.receive()
                except trio.EndOfChannel:
                    raise Gone("QEMU closed its monitor") from None
        if "error" in answer:
            raise QmpError(f"{command}: {answer['error'].get('desc')}")
        return answer["return"]

    async def monitor(self, line: str) -> str:
        """A command of the human monitor, such as `xp /1wx 0x3f200034`."""
        answer: str = await self("human-monitor-command", **{"command-line": line})
        return answer.strip()

    async def wait_event(self, name: str, **data: Any) -> dict[str, Any]:
        """The first event called `name` with this data, also if it has come already. Forgets those before it."""
        while True:
            for index, event in enumerate(self.events):
                if event["event"] == name and data.items() <= event.get("data", {}).items():
                    del self.events[: index + 1]
                    return event
            await self._changed.wait()

    async def receive(self) -> None:
        """Take what QEMU says, until it closes the connection; run this in a nursery."""
        async with self._stream, self._answers, aclosing(receive_lines(self._stream)) as lines:
            try:
                async for message in lines:
                    if "event" in message:
                        self.events.append(message)
                        self._changed.set()
                        self._changed = trio.Event()
                    elif "QMP" not in message:
                        await self._answers.send(message)
            except trio.BrokenResourceError:
                pass


async def connect_qmp(vm: VirtualMachine, nursery: trio.Nursery) -> Qmp:
    """Connect and take part in the monitor's protocol."""
    qmp = Qmp(await connect(vm, "qmp.sock"))
    nursery.start_soon(qmp.receive)
    await qmp("qmp_capabilities")
    return qmp
