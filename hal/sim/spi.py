"""Simulated SPI: buses with chips at chip selects."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from hal.errors import Fault, HalError
from hal.ports.spi import SpiDevice, SpiSettings
from hal.sim.faults import Faults, system_error
from hal.sim.hotplug import Hotplug
from hal.sim.owners import Owners
from hal.sim.target import SpiTarget


class SimSpiBus:
    """A bus to whose chip selects chips are attached."""

    def __init__(self, number: str, faults: Faults, hotplug: Hotplug, owners: Owners) -> None:
        self.number = number
        self._faults = faults
        self._hotplug = hotplug
        self._owners = owners
        self._targets: dict[int, SpiTarget] = {}
        self.powered = True  # whether the computer has power
        self._order = trio.Lock()
        self._free_at = -math.inf
        self._gone = False

    def attach(self, select: int, target: SpiTarget) -> None:
        """Connect a chip to a chip select; ValueError if it is already used."""
        if select in self._targets:
            raise ValueError(f"{self.label(select)} is already used by a chip: {self._targets[select]!r}")
        self._targets[select] = target

    def detach(self, select: int) -> None:
        """Disconnect the chip: the floating data line then reads as ones."""
        del self._targets[select]

    def label(self, select: int) -> str:
        """Return the name of a device of this bus in errors and faults."""
        return f"spidev{self.number}.{select}"

    def names(self) -> tuple[str, ...]:
        """Return the name of the bus."""
        return (f"spidev{self.number}",)

    def unplug(self) -> None:
        """Remove the controller."""
        if not self._gone:
            self._gone = True
            for select in self._targets:
                self._hotplug.removed("spidev", self.label(select), f"/dev/{self.label(select)}")

    def plug(self) -> None:
        """Add the controller again."""
        if self._gone:
            self._gone = False
            for select in self._targets:
                self._hotplug.added("spidev", self.label(select), f"/dev/{self.label(select)}")

    def check(self, select: int) -> None:
        """Raise HalError (gone) if the controller is removed."""
        if self._gone:
            raise HalError(f"/dev/{self.label(select)}: the device is gone", Fault.GONE)

    @asynccontextmanager
    async def opened(self, select: int, settings: SpiSettings) -> AsyncIterator[SpiDevice]:
        """Open a device exclusively; HalError busy or gone."""
        await trio.lowlevel.checkpoint()
        self.check(select)
        node = f"/dev/{self.label(select)}"
        if self._owners.owner(node) is not None:
            raise HalError(
                f"{node} is already open in this program", Fault.BUSY, remedy="use each device in only one resource"
            )
        with self._owners.hold(node):
            yield _Device(self, select, settings)

    async def transfer(self, select: int, data: bytes, settings: SpiSettings) -> bytes:
        """Transfer data while chip select is held."""
        async with self._order:
            await trio.sleep_until(self._free_at)
            self.check(select)
            delay, fault = self._faults.draw(self.label(select)) if self.powered else (0.0, Fault.BUS)
            self._free_at = trio.current_time() + delay
            try:
                await trio.sleep(delay)
            except trio.Cancelled:
                if fault is None:
                    self._execute(select, data)
                raise
            self.check(select)
            if fault is not None:
                raise system_error(f"/dev/{self.label(select)}", fault)
            return self._faults.garble(self.label(select), self._execute(select, data))

    def _execute(self, select: int, data: bytes) -> bytes:
        target = self._targets.get(select)
        if target is None:
            return b"\xff" * len(data)
        answer = target.transfer(data)
        if len(answer) != len(data):
            raise AssertionError(f"{target!r} returned {len(answer)} bytes instead of {len(data)}")
        return answer


class _Device:
    """A device of a bus, which implements SpiDevice."""

    def __init__(self, bus: SimSpiBus, select: int, settings: SpiSettings) -> None:
        self._bus = bus
        self._select = select
        self._settings = settings

    async def transfer(self, *parts: bytes) -> list[bytes]:
        """Send `parts` while chip select is held; return the received parts, which have the same lengths."""
        answer = await self._bus.transfer(self._select, b"".join(parts), self._settings)
        result, start = [], 0
        for part in parts:
            result.append(answer[start : start + len(part)])
            start += len(part)
        return result
