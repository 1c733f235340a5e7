"""Simulated USB devices: Python objects behind sockets."""

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
    """A device: who it is, what it does, and whether it is plugged in. What a driver opens is this object too."""

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
        """By what it is known."""
        return self.identity.port, str(self.identity)

    @property
    def plugged(self) -> bool:
        """Whether it is there."""
        return not self._gone.is_set()

    def plug(self) -> None:
        """Put it into its socket."""
        if not self.plugged:
            self._gone = trio.Event()
            self._data.clear()
            self._hotplug.added("usb", self.identity.port, **self._properties())

    def unplug(self) -> None:
        """Take it out."""
        if self.plugged:
            self._gone.set()
            self._wake.set()
            self._hotplug.removed("usb", self.identity.port, **self._properties())

    def _properties(self) -> dict[str, str]:
        one = self.identity
        return {"PRODUCT": f"{one.vendor:x}/{one.product:x}/100", "DEVTYPE": "usb_device"}

    def push(self, endpoint: int, data: bytes) -> None:
        """The device has data at a bulk or interrupt endpoint (0x80 set)."""
        self._data.setdefault(endpoint, deque()).append(data)
        self._wake.set()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[UsbDevice]:
        """The device, alone."""
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

    def _refused(self, request_type: int, request: int, value: int, index: int) -> HalError:
        return HalError(
            f"{self.identity} refuses request 0x{request:02x} (type 0x{request_type:02x}, value 0x{value:04x}, "
            f"index 0x{index:04x})",
            Fault.UNSUPPORTED,
            remedy="look at the device's documentation",
        )

    async def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        """As the port says."""
        async with self._order:
            await self._access()
            try:
                return self._target.control_in(request_type, request, value, index, length)[:length]
            except Stall as stall:
                raise self._refused(request_type, request, value, index) from stall

    async def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes = b"") -> None:
        """As the port says."""
        async with self._order:
            await self._access()
            try:
                self._target.control_out(request_type, request, value, index, data)
            except Stall as stall:
                raise self._refused(request_type, request, value, index) from stall

    async def write(self, endpoint: int, data: bytes) -> None:
        """As the port says."""
        async with self._order:
            await self._access()
            try:
                self._target.write(endpoint, data)
            except Stall as stall:
                raise HalError(
                    f"{self.identity}: the device halted the endpoint", Fault.BUS, remedy="send what it expects"
                ) from stall

    async def read(self, endpoint: int, length: int) -> bytes:
        """As the port says; what does not fit into `length` is left for the next read."""
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
        """As the port says."""
        await self._gone.wait()
        raise self._gone_error()


def fitting(devices: Iterable[SimUsbDevice], wanted: UsbIdentity) -> SimUsbDevice:
    """The one plugged device that fits; HalError (gone) if none does, (unsupported) if several do, naming them."""
    plugged = [device for device in devices if device.plugged]
    found = [device for device in plugged if _fits(device.identity, wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise HalError(
            f"{wanted} may be {' or '.join(f'{d.identity}' for d in found)}",
            Fault.UNSUPPORTED,
            remedy="give serial or port",
        )
    there = ", ".join(str(device.identity) for device in plugged) or "no device"
    raise HalError(f"{wanted} is not there; there is {there}", Fault.GONE)


def _fits(one: UsbIdentity, wanted: UsbIdentity) -> bool:
    return (
        (one.vendor, one.product) == (wanted.vendor, wanted.product)
        and wanted.serial in ("", one.serial)
        and wanted.port in ("", one.port)
    )
