"""Simulated serial ports with names, which can be plugged in and unplugged.

A port is a pty, which any program can open and which needs the real clock, or a pair of streams in memory, which works
with a virtual clock. For drivers there is no difference.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NoReturn

import trio

from hal.errors import Fault, HalError
from hal.linux.descriptor import DescriptorStream
from hal.ports.serial import SerialIdentity, SerialSettings
from hal.sim.faults import Faults, system_error
from hal.sim.hotplug import Hotplug

GROUP = "dialout"


class SimSerialPort:
    """A port at the current `path`; its constant `name` is its first path.

    With a stable name, it is also found below `/dev/serial/by-id`. `far` is the device's end of the line. `settings`
    are those of the last opening.
    """

    def __init__(
        self,
        path: str,
        by_id: str,
        identity: SerialIdentity | None = None,
        *,
        in_memory: bool,
        faults: Faults,
        hotplug: Hotplug,
    ) -> None:
        self.path = path
        self.name = path
        self.identity = identity
        self.by_id = f"/dev/serial/by-id/{by_id}" if by_id else ""
        self.settings: SerialSettings | None = None
        self.far = FarEnd(self, faults)
        self._in_memory = in_memory
        self._faults = faults
        self._hotplug = hotplug
        self._line: _Pty | _Memory | None = None

    def names(self) -> tuple[str, ...]:
        """Return its first path and its stable name."""
        return self.name, self.by_id

    @property
    def plugged(self) -> bool:
        """Whether the device is plugged in."""
        return self._line is not None

    @property
    def terminal(self) -> str:
        """The path of the pty, for other programs; HalError (gone) if it is unplugged, unsupported if in memory."""
        line = self.line()
        if not isinstance(line, _Pty):
            raise system_error(self.path, Fault.UNSUPPORTED)
        return line.terminal

    def plug(self, path: str = "") -> None:
        """Plug it in, optionally at another path; its stable name does not change."""
        if self._line is None:
            self.path = path or self.path
            self._line = _Memory() if self._in_memory else _Pty(self.path)
            self._hotplug.added("tty", self.path.rpartition("/")[2], self.path, **self._properties())

    def unplug(self) -> None:
        """Unplug it, even while it is in use; the far end is gone too until it is plugged in again."""
        line, self._line = self._line, None
        if line is not None:
            line.hang_up(self.path)
            self._hotplug.removed("tty", self.path.rpartition("/")[2], self.path, **self._properties())

    def _properties(self) -> dict[str, str]:
        return {"DEVLINKS": self.by_id} if self.by_id else {}

    def line(self) -> _Pty | _Memory:
        """Return the line; HalError (gone) if it is unplugged."""
        if self._line is None:
            raise system_error(self.path, Fault.GONE, number=2)
        return self._line

    def open(self, path: str, settings: SerialSettings) -> trio.abc.Stream:
        """Open the driver's end."""
        line = self.line()
        _, fault = self._faults.draw(self.name)
        if fault is not None:
            raise system_error(path, fault, group=GROUP)
        stream = line.open(path, settings)
        self.settings = settings
        return stream


class FarEnd(trio.abc.Stream):
    """The end of the line for the simulated device. HalError (gone) while the port is unplugged."""

    def __init__(self, port: SimSerialPort, faults: Faults) -> None:
        self._port = port
        self._faults = faults

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send data to the driver, with the faults of the line: delay and wrong bits."""
        delay, _ = self._faults.draw(self._port.name)
        await trio.sleep(delay)
        await self._port.line().far.send_all(self._faults.garble(self._port.name, bytes(data)))

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until a byte can be sent."""
        await self._port.line().far.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Receive data from the driver, with the faults of the line."""
        return self._faults.garble(self._port.name, bytes(await self._port.line().far.receive_some(max_bytes)))

    async def aclose(self) -> None:
        """Unplug the port."""
        self._port.unplug()
        await trio.lowlevel.checkpoint()


class _Pty:
    """A line through a pty of the kernel."""

    def __init__(self, name: str) -> None:
        master, slave = os.openpty()
        try:
            import tty  # only the pseudo-terminals of POSIX need it

            tty.setraw(slave)
            self.terminal = os.ttyname(slave)
            self.far: trio.abc.Stream = DescriptorStream(master, f"the device's end of {name}")
        finally:
            os.close(slave)

    def open(self, path: str, settings: SerialSettings) -> trio.abc.Stream:
        from hal.linux.serial import open_serial

        return open_serial(self.terminal, settings)

    def hang_up(self, path: str) -> None:
        assert isinstance(self.far, DescriptorStream)
        self.far.close()


class _Memory:
    """A line in memory: data arrives at once, and sending never waits."""

    def __init__(self) -> None:
        self._near = _MemoryEnd()
        self._far = _MemoryEnd()
        self._near.other, self._far.other = self._far, self._near
        self._open = False
        self.far: trio.abc.Stream = self._far

    def open(self, path: str, settings: SerialSettings) -> trio.abc.Stream:
        if self._near.in_use:
            raise system_error(path, Fault.BUSY)
        self._near.open_as(path)
        return self._near

    def hang_up(self, path: str) -> None:
        self._near.hang_up()
        self._far.hang_up()


class _MemoryEnd(trio.abc.Stream):
    """An end of a line in memory."""

    other: _MemoryEnd

    def __init__(self) -> None:
        self._data = bytearray()
        self._wake = trio.Event()
        self._name = "the device's end"
        self._gone = False
        self._closed = False
        self.in_use = False

    def open_as(self, name: str) -> None:
        """Open the end, discarding earlier data."""
        self._name, self._closed, self.in_use = name, False, True
        self._data.clear()

    def hang_up(self) -> None:
        """Disconnect the line."""
        self._gone = True
        self._wake.set()

    def _raise(self) -> NoReturn:
        if self._closed:
            raise trio.ClosedResourceError(f"{self._name} is closed")
        raise HalError(f"{self._name}: the device has vanished", Fault.GONE)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        while not self._data:
            if self._gone or self._closed:
                self._raise()
            self._wake = trio.Event()
            await self._wake.wait()
        data = bytes(self._data[:max_bytes])
        del self._data[:max_bytes]
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        if self._gone or self._closed:
            self._raise()
        self.other.arrive(bytes(data))

    def arrive(self, data: bytes) -> None:
        """Receive bytes from the other end."""
        self._data += data
        self._wake.set()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        self._closed, self.in_use = True, False
        self._wake.set()
        await trio.lowlevel.checkpoint()


def fitting_port(ports: Iterable[SimSerialPort], selector: str | SerialIdentity) -> SimSerialPort:
    """Return the connected port with that path or identity; otherwise HalError (gone) lists the ports."""
    plugged = [port for port in ports if port.plugged]
    if isinstance(selector, str):
        matches = [port for port in plugged if selector in (port.path, port.by_id)]
    else:
        matches = [port for port in plugged if port.identity is not None and selector.fits(port.identity)]
    if len(matches) == 1:
        return matches[0]
    present = ", ".join(
        f"{port.by_id or port.path}{f' ({port.identity})' if port.identity else ''}" for port in plugged
    )
    if matches:
        raise HalError(f"{len(matches)} serial ports match {selector}; there are {present}", Fault.UNSUPPORTED)
    problem = (
        f"{selector}: No such file or directory"
        if isinstance(selector, str)
        else f"no serial port belongs to {selector}"
    )
    raise HalError(f"{problem}; there are {present or 'no serial ports'}", Fault.GONE)
