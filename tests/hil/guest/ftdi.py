"""A simulated FTDI serial cable on vhci_hcd: `python3 -m tests.hil.guest.ftdi`.

It prints the TCP port of its far end, which accepts one connection. Standard input has requests, one per line: a number
and `plug SERIAL` or `unplug`; when a request is done, `done` and its number are printed. The device disappears when the
program ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

import trio

from tests.hil.guest.usb_cable import UsbCable

IN: Final = 0x81
OUT: Final = 0x02
STATUS: Final = b"\x01\x60"  # modem and line status, the first bytes of every packet to the host
PAYLOAD: Final = 62  # bytes of data in a packet of 64 bytes
SET_LATENCY, GET_LATENCY, GET_STATUS = 0x09, 0x0A, 0x05
FAR_BUFFER: Final = 1000  # queued packets for the far end
NAMES: Final = {"manufacturer": "QEMU", "name": "QEMU USB SERIAL"}  # as QEMU names the same cable


class Ftdi:
    """The chip of the cable: the parts of an FT232 that ftdi_sio uses."""

    def __init__(self) -> None:
        self._push: Callable[[int, bytes], None] | None = None
        self._latency_ms = 16
        self._to_far, self.written = trio.open_memory_channel[bytes](FAR_BUFFER)

    def connected(self, push: Callable[[int, bytes], None]) -> None:
        """Store the function that sends data to the host."""
        self._push = push

    def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        """Return modem status and latency; zeros for all other requests."""
        if request == GET_STATUS:
            return STATUS[:length]
        return bytes([self._latency_ms]) if request == GET_LATENCY else bytes(length)

    def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes) -> None:
        """Accept baud rate, line parameters and other settings."""
        if request == SET_LATENCY:
            self._latency_ms = value & 0xFF

    def write(self, endpoint: int, data: bytes) -> None:
        """Forward data from the host; lost if the far end does not read it, as on a wire without flow control."""
        try:
            self._to_far.send_nowait(data)
        except trio.WouldBlock:
            pass

    def send(self, data: bytes) -> None:
        """Send bytes of the far end to the host."""
        assert self._push is not None
        for start in range(0, len(data), PAYLOAD):
            self._push(IN, STATUS + data[start : start + PAYLOAD])


async def main() -> None:
    """Serve until standard input ends."""
    chip = Ftdi()
    points = {IN: "bulk", OUT: "bulk"}
    cable = UsbCable(chip, False, vendor=0x0403, product=0x6001, release=0x0400, endpoints=points, **NAMES)
    [listener] = await trio.open_tcp_listeners(0, host="0.0.0.0")

    async def serve_far() -> None:
        async with listener:
            far = await listener.accept()
        async with far, trio.open_nursery() as nursery:
            nursery.start_soon(_forward, chip, far)
            async for data in far:
                chip.send(data)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        await nursery.start(cable.run)
        nursery.start_soon(serve_far)
        print(listener.socket.getsockname()[1], flush=True)
        await _obey(cable)
        nursery.cancel_scope.cancel()


async def _forward(chip: Ftdi, far: trio.SocketStream) -> None:
    async for data in chip.written:
        await far.send_all(data)


async def _obey(cable: UsbCable) -> None:
    rest = b""
    async for part in trio.lowlevel.FdStream(os.dup(0)):
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            number, request, *serial = line.decode().split()
            await (cable.plug(*serial) if request == "plug" else cable.unplug())
            print("done", number, flush=True)


if __name__ == "__main__":
    trio.run(main)
