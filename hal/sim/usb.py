"""Simulated USB devices at sockets."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NoReturn

import trio

from hal.errors import Fault, HalError
from hal.ports.usb import UsbDevice, UsbIdentity
from hal.sim.faults import Faults, system_error
from hal.sim.hotplug import Hotplug
from hal.sim.owners import Owners
from hal.sim.target import Stall, UsbTarget


class SimUsbDevice:
    """A device with its identity and behaviour, which may be plugged in. It also implements the port UsbDevice."""

    def __init__(
        self, identity: UsbIdentity, target: UsbTarget, *, faults: Faults, hotplug: Hotplug, owners: Owners
    ) -> None:
        self.identity = identity
        self._target = target
        self._faults = faults
        self._hotplug = hotplug
        self._owners = owners
        self._order = trio.Lock()
        self._data: dict[int, deque[bytes]] = {}
        self._wake = trio.Event()
        self._gone = trio.Event()
        self._gone.set()

    def names(self) -> tuple[str, ...]:
        """Return the socket and the identity of the device."""
        return self.identity.port, str(self.identity)

    @property
    def plugged(self) -> bool:
        """Whether the device is plugged in."""
        return not self._gone.is_set()

    def plug(self) -> None:
        """Plug it in."""
        if not self.plugged:
            self._gone = trio.Event()
            self._data.clear()
            self._hotplug.added("usb", self.identity.port, **self._properties())

    def unplug(self) -> None:
        """Unplug it."""
        if self.plugged:
            self._gone.set()
            self._wake.set()
            self._hotplug.removed("usb", self.identity.port, **self._properties())

    def _properties(self) -> dict[str, str]:
        return {"PRODUCT": f"{self.identity.vendor:x}/{self.identity.product:x}/100", "DEVTYPE": "usb_device"}

    def push(self, endpoint: int, data: bytes) -> None:
        """Send data from the device at a bulk or interrupt endpoint (0x80 set)."""
        self._data.setdefault(endpoint, deque()).append(data)
        self._wake.set()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[UsbDevice]:
        """Open the device exclusively."""
        await trio.lowlevel.checkpoint()
        self._check()
        with self._owners.hold(str(self.identity)):
            yield self

    def _check(self) -> None:
        if not self.plugged:
            raise self._gone_error()

    def _gone_error(self) -> HalError:
        return HalError(f"{self.identity}: the device is gone", Fault.GONE, remedy="plug the device in again")

    async def _access(self) -> None:
        self._check()
        delay, fault = self._faults.draw(self.identity.port, str(self.identity))
        await trio.sleep(delay)
        self._check()
        if fault is not None:
            raise system_error(str(self.identity), fault, group="plugdev")

    def _rejected(self, request_type: int, request: int, value: int, index: int) -> HalError:
        return HalError(
            f"{self.identity} rejects request 0x{request:02x} (type 0x{request_type:02x}, value 0x{value:04x}, "
            f"index 0x{index:04x})",
            Fault.UNSUPPORTED,
            remedy="check the documentation of the device",
        )

    async def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        """Receive at most `length` bytes by a control transfer."""
        async with self._order:
            await self._access()
            try:
                return self._target.control_in(request_type, request, value, index, length)[:length]
            except Stall as stall:
                raise self._rejected(request_type, request, value, index) from stall

    async def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes = b"") -> None:
        """Send data by a control transfer."""
        async with self._order:
            await self._access()
            try:
                self._target.control_out(request_type, request, value, index, data)
            except Stall as stall:
                raise self._rejected(request_type, request, value, index) from stall

    async def write(self, endpoint: int, data: bytes) -> None:
        """Send all of `data` to a bulk or interrupt endpoint."""
        async with self._order:
            await self._access()
            try:
                self._target.write(endpoint, data)
            except Stall as stall:
                raise HalError(
                    f"{self.identity}: the device halted the endpoint", Fault.BUS, remedy="check the sent data"
                ) from stall

    async def read(self, endpoint: int, length: int) -> bytes:
        """Wait for data of a bulk or interrupt endpoint (0x80 set) and return at most `length` bytes.

        Data beyond `length` is left for the next read.
        """
        await self._access()
        while not self._data.get(endpoint):
            self._wake = trio.Event()
            await self._wake.wait()
            self._check()
        data = self._data[endpoint].popleft()
        if len(data) > length:
            self._data[endpoint].appendleft(data[length:])
        return data[:length]

    async def lost(self) -> NoReturn:
        """Wait until the device is gone, then raise HalError (gone)."""
        await self._gone.wait()
        raise self._gone_error()


def fitting(devices: Iterable[SimUsbDevice], selector: UsbIdentity) -> SimUsbDevice:
    """Return the only connected device that matches; HalError with a list: gone if none, unsupported if several do."""
    plugged = [device for device in devices if device.plugged]
    matches = [device for device in plugged if _fits(device.identity, selector)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise HalError(
            f"{selector} may be {' or '.join(f'{d.identity}' for d in matches)}",
            Fault.UNSUPPORTED,
            remedy="add the serial number or the port",
        )
    present = ", ".join(str(device.identity) for device in plugged) or "no device"
    raise HalError(f"{selector} is not plugged in; there is {present}", Fault.GONE)


def _fits(identity: UsbIdentity, selector: UsbIdentity) -> bool:
    return (
        (identity.vendor, identity.product) == (selector.vendor, selector.product)
        and selector.serial in ("", identity.serial)
        and selector.port in ("", identity.port)
    )
