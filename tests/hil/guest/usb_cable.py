"""A simulated USB device, plugged into the kernel's virtual host controller, vhci_hcd.

The controller gets one end of a socket pair and exchanges the messages of USB/IP on it (Linux documentation,
usb/usbip_protocol); there is no network, and no driver but the stock one. The behavior of the device is a `UsbTarget`,
as in the simulated family; a target that sends data without a request has a method `connected(push)`.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from hal.sim.target import Stall, UsbTarget
from tests.hil.guest.uevents import wait_until

VHCI = Path("/sys/devices/platform/vhci_hcd.0")
FREE, USED = "004", "006"  # VDEV_ST_NULL and VDEV_ST_USED of the status file
HEADER = 48
SUBMIT, UNLINK, SUBMITTED, UNLINKED = 1, 2, 3, 4
LANGUAGE = struct.pack("<BBH", 4, 3, 0x0409)
ENDPOINT_KINDS = {"bulk": 2, "interrupt": 3}


@dataclass(frozen=True)
class Descriptors:
    """The identity of a device. `endpoints` maps addresses (0x80 set towards the host) to bulk or interrupt."""

    vendor: int = 0x1209  # pid.codes: numbers for devices that are not sold
    product: int = 0x0001
    release: int = 0x0100
    manufacturer: str = "Rig"
    name: str = "Device"
    serial: str = "RIG0001"
    interface_class: int = 0xFF
    endpoints: dict[int, str] = field(default_factory=dict)

    def device(self) -> bytes:
        """Return the device descriptor: USB 2.0 specification, table 9-8."""
        return struct.pack(
            "<BBHBBBBHHHBBBB", 18, 1, 0x0200, 0, 0, 0, 64, self.vendor, self.product, self.release, 1, 2, 3, 1
        )

    def configuration(self) -> bytes:
        """Return one configuration with one interface: tables 9-10, 9-12 and 9-13."""
        points = b"".join(
            struct.pack("<BBBBHB", 7, 5, address, ENDPOINT_KINDS[kind], 64, 10)
            for address, kind in self.endpoints.items()
        )
        interface = struct.pack("<BBBBBBBBB", 9, 4, 0, 0, len(self.endpoints), self.interface_class, 0, 0, 0)
        length = 9 + len(interface) + len(points)
        return struct.pack("<BBHBBBBB", 9, 2, length, 1, 1, 0, 0x80, 50) + interface + points

    def string(self, index: int) -> bytes:
        """Return a string descriptor: table 9-16."""
        if index == 0:
            return LANGUAGE
        texts = (self.manufacturer, self.name, self.serial)
        if index > len(texts):
            raise Stall
        text = texts[index - 1].encode("utf-16le")
        return struct.pack("<BB", len(text) + 2, 3) + text


class UsbCable:
    """A device and its plug. If `stalled`, the device ignores every request, and its users run into time limits."""

    def __init__(self, target: UsbTarget, plugged: bool = True, **descriptors: Any) -> None:
        points = {int(key): kind for key, kind in descriptors.pop("endpoints", {}).items()}
        self.descriptors = Descriptors(endpoints=points, **descriptors)
        self.target = target
        self.stalled = False
        self._wanted = plugged
        self._changed = trio.Event()
        self._socket: socket.socket | None = None
        self._port: int | None = None
        self._swallowed: set[int] = set()
        self._waiting: dict[int, deque[tuple[int, int]]] = {}  # endpoint -> requests (sequence, length) without data
        self._data: dict[int, deque[bytes]] = {}
        if hasattr(target, "connected"):
            target.connected(self.push)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve the device while it is plugged in."""
        task_status.started()
        try:
            while True:
                while not self._wanted:
                    await self._changed.wait()
                await self._attached()
        finally:
            self._detach()

    async def plug(self, serial: str = "") -> None:
        """Plug it in, optionally with another serial number; return when udev has processed it."""
        if serial:
            from dataclasses import replace

            self.descriptors = replace(self.descriptors, serial=serial)
        self._wanted = True
        self._wake()
        await wait_until(self.system_path)

    async def unplug(self) -> None:
        """Unplug it, even while it is in use."""
        path = self.system_path()
        self._wanted = False
        self._detach()
        self._wake()
        await wait_until(lambda: not path or not os.path.exists(path))

    def system_path(self) -> str:
        """Return its folder below /sys/bus/usb/devices; empty until it is configured.

        Read the controller's own table. The device's attribute `serial` would wait for the device's lock, which is held
        while the device is configured, for which we must answer.
        """
        for line in (VHCI / "status").read_text().splitlines():
            words = line.split()
            if self._port is not None and words[0] in ("hs", "ss") and int(words[1]) == self._port and words[2] == USED:
                path = Path("/sys/bus/usb/devices") / words[6]
                return str(path) if any(path.glob("*:1.0")) else ""
        return ""

    def push(self, endpoint: int, data: bytes) -> None:
        """Send data of the device to the host at an endpoint (0x80 set)."""
        self._data.setdefault(endpoint, deque()).append(data)
        self._deliver(endpoint)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _attached(self) -> None:
        mine, kernels = socket.socketpair()
        self._socket = mine
        self._swallowed.clear()
        self._waiting.clear()
        self._data.clear()
        with kernels:
            self._port = _free_port()
            (VHCI / "attach").write_text(f"{self._port} {kernels.fileno()} {self._port + 0x10001} 3")  # 3: high speed
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(mine.dup()))
        try:
            async with stream:
                while header := await _exactly(stream, HEADER):
                    await self._message(header, stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self._detach()

    def _detach(self) -> None:
        if self._port is not None:
            port, self._port = self._port, None
            try:
                (VHCI / "detach").write_text(str(port))
            except OSError:  # the kernel has already released it
                pass
        if self._socket is not None:
            self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._socket = None

    async def _message(self, header: bytes, stream: trio.SocketStream) -> None:
        command, sequence, _, towards_host, endpoint = struct.unpack(">5I", header[:20])
        if command == UNLINK:
            (victim,) = struct.unpack(">I", header[20:24])
            pending = victim in self._swallowed or any(
                victim == number for waiting in self._waiting.values() for number, _ in waiting
            )
            self._swallowed.discard(victim)
            for waiting in self._waiting.values():
                for request in [request for request in waiting if request[0] == victim]:
                    waiting.remove(request)
            self._send(struct.pack(">5Ii24x", UNLINKED, sequence, 0, 0, 0, -errno.ECONNRESET if pending else 0))
            return
        (length,) = struct.unpack(">i", header[24:28])
        data = await _exactly(stream, length) if not towards_host and length > 0 else b""
        if self.stalled:
            self._swallowed.add(sequence)
        elif endpoint == 0:
            self._control(sequence, header[40:48], data)
        elif towards_host:
            self._waiting.setdefault(endpoint | 0x80, deque()).append((sequence, length))
            self._deliver(endpoint | 0x80)
        else:
            self._answer(sequence, lambda: self.target.write(endpoint, data), length)

    def _control(self, sequence: int, setup: bytes, data: bytes) -> None:
        kind, request, value, index, length = struct.unpack("<BBHHH", setup)
        if kind & 0x60 == 0:
            self._answer(sequence, lambda: self._standard(request, value)[:length])
        elif kind & 0x80:
            self._answer(sequence, lambda: self.target.control_in(kind, request, value, index, length))
        else:
            self._answer(sequence, lambda: self.target.control_out(kind, request, value, index, data), length)

    def _standard(self, request: int, value: int) -> bytes:
        if request == 6:  # GET_DESCRIPTOR
            kind, index = value >> 8, value & 0xFF
            if kind == 1:
                return self.descriptors.device()
            if kind == 2:
                return self.descriptors.configuration()
            if kind == 3:
                return self.descriptors.string(index)
            raise Stall
        return b"\0\0" if request == 0 else b""  # GET_STATUS; SET_CONFIGURATION and others need no data

    def _answer(self, sequence: int, ask: Callable[[], bytes | None], length: int = 0) -> None:
        try:
            data = ask()
        except Stall:
            self._reply(sequence, -errno.EPIPE, 0, b"")
        else:
            self._reply(sequence, 0, length if data is None else len(data), data or b"")

    def _deliver(self, endpoint: int) -> None:
        waiting, data = self._waiting.get(endpoint), self._data.get(endpoint)
        while waiting and data:
            (sequence, length), part = waiting.popleft(), data.popleft()
            if len(part) > length:
                data.appendleft(part[length:])
                part = part[:length]
            self._reply(sequence, 0, len(part), part)

    def _reply(self, sequence: int, status: int, length: int, data: bytes) -> None:
        self._send(struct.pack(">5Iiiiii8x", SUBMITTED, sequence, 0, 0, 0, status, length, 0, 0, 0) + data)

    def _send(self, data: bytes) -> None:
        if self._socket is not None:
            try:
                self._socket.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass


def _free_port() -> int:
    """Return a port without a device.

    The hub removes a detached device later than the controller's table does. If a port gets an identical device before
    that, the hub keeps the old one and never configures the new one.
    """
    for line in (VHCI / "status").read_text().splitlines():
        words = line.split()
        if words[0] == "hs" and words[2] == FREE and not any(VHCI.glob(f"usb*/*-{int(words[1]) + 1}")):
            return int(words[1])
    raise OSError(errno.EBUSY, "all ports of vhci_hcd are taken")


async def _exactly(stream: trio.SocketStream, n: int) -> bytes:
    """Return `n` bytes; no bytes at the end of the stream."""
    data = b""
    while len(data) < n:
        part = await stream.receive_some(n - len(data))
        if not part:
            return b""
        data += part
    return data
