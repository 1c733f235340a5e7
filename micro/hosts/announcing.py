"""Answers questions of multicast DNS, so that clients of the local network find the machine."""

import asyncio
import socket

from micro.hosts.loop import MICRO
from micro.wire.mdns import GROUP, PORT, Zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from micro.engine.machine import Machine

LARGEST = 1500
RETRY_MS = 60000
PAUSE_MS = 20  # between two answers, so that a flood of questions does not take all the time
LINUX_MEMBERSHIP = 35


class Announcing:
    """Announces a machine at `address` and `port`."""

    def __init__(self, machine: "Machine", name: str, address: str, port: int) -> None:
        self._machine = machine
        self._address = address
        self._zone = Zone(name, address, port)

    async def run(self) -> None:
        """Answer as long as the machine runs. Where the port is taken, say so and try again."""
        said = False
        while True:
            try:
                await self._answer()
            except (OSError, MemoryError) as error:
                if not said:
                    said = True
                    self._machine.log("warn", "mdns", f"not announced: {error!r}")
            await self._machine.port.sleep(RETRY_MS)

    async def _answer(self) -> None:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(socket.getaddrinfo("0.0.0.0", PORT)[0][4])
            group = bytes([int(part) for part in GROUP.split(".")] + [int(part) for part in self._address.split(".")])
            opened.setsockopt(0, getattr(socket, "IP_ADD_MEMBERSHIP", LINUX_MEMBERSHIP), group)
            opened.setblocking(False)
            target: Any = socket.getaddrinfo(GROUP, PORT)[0][4]
            opened.sendto(self._zone.announcement(), target)
            while True:
                question, sender = await _receive(opened)
                once = _port_of(sender) != PORT
                data = self._zone.answer(question, once)
                if data:
                    opened.sendto(data, sender if once else target)
                    await self._machine.port.sleep(PAUSE_MS)
        finally:
            opened.close()


async def _receive(opened: "Any") -> "tuple[bytes, Any]":
    if MICRO:
        await _readable(opened)
        message: tuple[bytes, Any] = opened.recvfrom(LARGEST)
        return message
    return await asyncio.get_running_loop().sock_recvfrom(opened, LARGEST)


def _readable(opened: "Any") -> "Any":
    """Wait until a socket can be read; a coroutine of MicroPython, whose asyncio has no datagrams."""
    yield asyncio.core._io_queue.queue_read(opened)  # type: ignore[attr-defined]  # of MicroPython


def _port_of(sender: "Any") -> int:
    """Return the port of an address, which is a tuple, or on Linux with MicroPython a sockaddr_in."""
    return int(sender[1]) if isinstance(sender, tuple) else sender[2] << 8 | sender[3]
