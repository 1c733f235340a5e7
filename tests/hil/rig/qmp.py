"""QEMU's monitor: add and remove devices, pause the machine, inspect it from outside."""

from __future__ import annotations

import itertools
import json
from contextlib import aclosing
from typing import Any

import trio

from tests.hil.rig.lines import Gone, connect, receive_lines
from tests.hil.rig.vm import VirtualMachine


class QmpError(Exception):
    """QEMU rejected a command; the message is QEMU's own."""


class Qmp:
    """A monitor connection: `await qmp("device_del", id="ftdi")` runs a command, `wait_event` waits for events."""

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
            while answer.get("id") != number:  # skip answers to cancelled commands
                try:
                    answer = await self._answered.receive()
                except trio.EndOfChannel:
                    raise Gone("QEMU closed its monitor") from None
        if "error" in answer:
            raise QmpError(f"{command}: {answer['error'].get('desc')}")
        return answer["return"]

    async def monitor(self, line: str) -> str:
        """Run a command of the human monitor, such as `xp /1wx 0x3f200034`, and return its output."""
        answer: str = await self("human-monitor-command", **{"command-line": line})
        return answer.strip()

    async def wait_event(self, name: str, **data: Any) -> dict[str, Any]:
        """Return the first event with this name and data, even if it has already arrived. Drop earlier events."""
        while True:
            for index, event in enumerate(self.events):
                if event["event"] == name and data.items() <= event.get("data", {}).items():
                    del self.events[: index + 1]
                    return event
            await self._changed.wait()

    async def receive(self) -> None:
        """Receive QEMU's messages until it closes the connection; run this in a nursery."""
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
    """Connect and negotiate the monitor's protocol."""
    qmp = Qmp(await connect(vm, "qmp.sock"))
    nursery.start_soon(qmp.receive)
    await qmp("qmp_capabilities")
    return qmp
