"""Simulated SPI: chips behind chip selects."""

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
    """One bus: `attach` chips to its selects."""

    def __init__(self, number: str, faults: Faults, hotplug: Hotplug, owners: Owners) -> None:
        self.number = number
        self._faults = faults
        self._hotplug = hotplug
        self._owners = owners
        self._targets: dict[int, SpiTarget] = {}
        self.powered = True  # the computer, hence the controller
        self._order = trio.Lock()
        self._free_at = -math.inf
        self._gone = False

    def attach(self, select: int, target: SpiTarget) -> None:
        """Put a chip behind a select; ValueError if there is one."""
        if select in self._targets:
            raise ValueError(f"{self.place(select)} has a chip already: {self._targets[select]!r}")
        self._targets[select] = target

    def detach(self, select: int) -> None:
        """Take the chip away: the line back floats, and reads as ones."""
        del self._targets[select]

    def place(self, select: int) -> str:
        """What a device of this bus is called in errors and faults."""
        return f"spidev{self.number}.{select}"

    def names(self) -> tuple[str, ...]:
        """By what it is known."""
        return (f"spidev{self.number}",)

    def unplug(self) -> None:
        """Take the controller away."""
        if not self._gone:
            self._gone = True
            for select in self._targets:
                self._hotplug.removed("spidev", self.place(select), f"/dev/{self.place(select)}")

    def plug(self) -> None:
        """Bring the controller back."""
        if self._gone:
            self._gone = False
            for select in self._targets:
                self._hotplug.added("spidev", self.place(select), f"/dev/{self.place(select)}")

    def check(self, select: int) -> None:
        """HalError (gone) without a controller."""
        if self._gone:
            raise HalError(f"/dev/{self.place(select)}: the device is gone", Fault.GONE)

    @asynccontextmanager
    async def opened(self, select: int, settings: SpiSettings) -> AsyncIterator[SpiDevice]:
        """One device, alone; HalError busy or gone."""
        await trio.lowlevel.checkpoint()
        self.check(select)
        node = f"/dev/{self.place(select)}"
        if self._owners.owner(node) is not None:
            raise HalError(
                f"{node} is already open in this program", Fault.BUSY, remedy="give each device its own user"
            )
        with self._owners.hold(node):
            yield _Device(self, select, settings)

    async def transfer(self, select: int, data: bytes, settings: SpiSettings) -> bytes:
        """One transfer while chip select is held."""
        async with self._order:
            await trio.sleep_until(self._free_at)
            self.check(select)
            delay, fault = self._faults.draw(self.place(select)) if self.powered else (0.0, Fault.BUS)
            self._free_at = trio.current_time() + delay
            try:
                await trio.sleep(delay)
            except trio.Cancelled:
                if fault is None:
                    self._carry_out(select, data)
                raise
            self.check(select)
            if fault is not None:
                raise system_error(f"/dev/{self.place(select)}", fault)
            return self._faults.garble(self.place(select), self._carry_out(select, data))

    def _carry_out(self, select: int, data: bytes) -> bytes:
        target = self._targets.get(select)
        if target is None:
            return b"\xff" * len(data)
        back = target.transfer(data)
        if len(back) != len(data):
            raise AssertionError(f"{target!r} gave {len(back)} bytes for {len(data)}")
        return back


class _Device:
    """The port."""

    def __init__(self, bus: SimSpiBus, select: int, settings: SpiSettings) -> None:
        self._bus = bus
        self._select = select
        self._settings = settings

    async def transfer(self, *parts: bytes) -> list[bytes]:
        """As the port says."""
        back = await self._bus.transfer(self._select, b"".join(parts), self._settings)
        result, start = [], 0
        for part in parts:
            result.append(back[start : start + len(part)])
            start += len(part)
        return result
