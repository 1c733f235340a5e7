"""Simulated I2C: a bus with chips, which can hang, and an adapter, which can be unplugged."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NoReturn

import trio

from hal.errors import Fault, HalError
from hal.ports.i2c import STUCK, I2cBus, check_transaction
from hal.sim.faults import Faults, system_error
from hal.sim.hotplug import Hotplug
from hal.sim.target import I2cTarget, Nak

STALL_TIME: Final = 1.0  # seconds until an adapter aborts a hanging transfer: the default HZ of i2c-core-base.c

# The messages of the Linux family for these faults; other faults have the kernel's messages.
_MESSAGES: Final = {
    Fault.NO_ACKNOWLEDGE: "nobody answers",
    Fault.TIMEOUT: "not finished within the time limit: the clock or data line is held low",
    Fault.UNSUPPORTED: "the adapter does not support this transfer",
}


class SimI2cBus:
    """A bus to which chips are attached and that can be stalled or unplugged. It also implements the port I2cBus."""

    def __init__(self, number: str, faults: Faults, hotplug: Hotplug) -> None:
        self.name = f"i2c-{number}" if number.isdigit() else number
        self.path = f"/dev/{self.name}"
        self._faults = faults
        self._hotplug = hotplug
        self._targets: dict[int, I2cTarget] = {}
        self.powered = True  # whether the computer has power
        self._order = trio.Lock()
        self._free_at = -math.inf  # when the last transaction ends, in Trio's time; its caller may have been cancelled
        self._stalled = False
        self._gone: trio.Event = trio.Event()

    def attach(self, address: int, target: I2cTarget) -> None:
        """Connect a chip to the bus; ValueError if the address is already used."""
        if address in self._targets:
            raise ValueError(f"{self.label(address)} is already used by a chip: {self._targets[address]!r}")
        self._targets[address] = target

    def detach(self, address: int) -> None:
        """Disconnect the chip, so that the address is no longer acknowledged."""
        del self._targets[address]

    def targets(self) -> dict[int, I2cTarget]:
        """Return the chips by address."""
        return dict(self._targets)

    def label(self, address: int) -> str:
        """Return the name of an address on this bus in errors, reservations and faults."""
        return f"{self.name} address 0x{address:02x}"

    def names(self) -> tuple[str, ...]:
        """Return the names of the bus."""
        return self.name, self.path

    @property
    def plugged(self) -> bool:
        """Whether the adapter is connected."""
        return not self._gone.is_set()

    def unplug(self) -> None:
        """Disconnect the adapter, even while it is in use."""
        if self.plugged:
            self._gone.set()
            self._hotplug.removed("i2c-dev", self.name, self.path)

    def plug(self) -> None:
        """Connect the adapter again."""
        if not self.plugged:
            self._gone = trio.Event()
            self._hotplug.added("i2c-dev", self.name, self.path)

    def stall(self) -> None:
        """Hold the clock low: each transfer hangs until the adapter aborts it."""
        self._stalled = True

    def release(self) -> None:
        """Release the clock."""
        self._stalled = False

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[I2cBus]:
        """Open the bus, which its users share; HalError (gone) if the adapter is unplugged."""
        await trio.lowlevel.checkpoint()
        self._check()
        yield self

    def _check(self) -> None:
        if not self.plugged:
            raise self._gone_error()

    def _gone_error(self) -> HalError:
        return HalError(f"{self.name}: the adapter is gone", Fault.GONE, remedy="plug the adapter in again")

    def _error(self, address: int, fault: Fault) -> HalError:
        if fault is Fault.GONE:
            return self._gone_error()
        if fault in _MESSAGES:
            remedy = STUCK if fault is Fault.TIMEOUT else ""
            return HalError(f"{self.label(address)}: {_MESSAGES[fault]}", fault, remedy=remedy)
        return system_error(self.label(address), fault, group="i2c")

    async def transaction(self, address: int, *steps: bytes | int) -> list[bytes]:
        """Execute `steps` at a 7-bit `address` with repeated starts between them."""
        check_transaction(self.name, address, steps)
        async with self._order:
            await trio.sleep_until(self._free_at)
            self._check()
            delay, fault = self._faults.draw(self.label(address), self.name)
            if not self.powered:
                delay, fault = 0.0, Fault.BUS
            elif self._stalled:
                delay, fault = delay + STALL_TIME, Fault.TIMEOUT
            self._free_at = trio.current_time() + delay
            gone = self._gone
            try:
                with trio.move_on_after(delay):
                    await gone.wait()
            except trio.Cancelled:
                # A transaction that has begun is executed completely; only the result is dropped.
                if fault is None and not gone.is_set():
                    self._execute(address, steps, strict=False)
                raise
            if gone.is_set():
                self._free_at = -math.inf
                raise self._gone_error()
            if fault is not None:
                raise self._error(address, fault)
            return self._execute(address, steps)

    def _execute(self, address: int, steps: tuple[bytes | int, ...], *, strict: bool = True) -> list[bytes]:
        read: list[bytes] = []
        try:
            target = self._targets.get(address)
            if target is None:
                raise Nak
            for step in steps:
                if isinstance(step, int):
                    data = target.read(step)
                    if len(data) != step:
                        raise AssertionError(f"{target!r} returned {len(data)} bytes instead of {step}")
                    read.append(self._faults.garble(self.label(address), data))
                else:
                    target.write(bytes(step))
        except Nak as nak:
            if strict:
                raise self._error(address, Fault.NO_ACKNOWLEDGE) from nak
        return read

    async def lost(self) -> NoReturn:
        """Wait until the adapter is gone, then raise HalError (gone)."""
        await self._gone.wait()
        raise self._gone_error()
