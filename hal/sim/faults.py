"""Faults on purpose: no acknowledge, gone, slow, wrong bits, noise; by seed, so that a run can be repeated.

A fault has the name of what misbehaves: a model on the bench by its simple name, an I2C bus or an address on it
(`i2c-1`, `i2c-1 address 0x48`), an SPI device (`spidev0.0`), a GPIO line (`pinctrl-bcm2711 line 17`), a serial port by
the path it was plugged in under, a USB device by its port.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import trio

from hal.errors import Fault, HalError

# The system's own error for each fault, so that what a driver meets here reads as on Linux.
_ERRNO: Final = {
    Fault.NO_ACKNOWLEDGE: errno.ENXIO,
    Fault.BUS: errno.EIO,
    Fault.TIMEOUT: errno.ETIMEDOUT,
    Fault.GONE: errno.ENODEV,
    Fault.BUSY: errno.EBUSY,
    Fault.PERMISSION: errno.EACCES,
    Fault.UNSUPPORTED: errno.EOPNOTSUPP,
}


def system_error(what: str, fault: Fault, *, number: int = 0, group: str = "") -> HalError:
    """What the Linux family raises about `what`: the kernel's words, by default those usual for `fault`."""
    number = number or _ERRNO[fault]
    cause = OSError(number, os.strerror(number))
    error = HalError.of(cause, what, group=group)
    error.__cause__ = cause
    return error


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """How something misbehaves. A plan for an address, a device or a port; fields that do not fit it do nothing."""

    fault: Fault | None = None
    probability: float = 1.0  # that an access meets the fault, 0 to 1
    delay: float = 0.0  # seconds that an answer comes late
    bit_errors: float = 0.0  # share of bytes on the wire with one wrong bit, 0 to 1
    noise: float = 0.0  # standard deviation added to a measured quantity, in its own unit
    times: int | None = None  # accesses that meet the fault, then it is over; None for no end


@dataclass(slots=True)
class _Entry:
    plan: FaultPlan
    dice: random.Random
    struck: int = 0

    def hit(self) -> Fault | None:
        plan = self.plan
        over = plan.times is not None and self.struck >= plan.times
        if plan.fault is None or over or self.dice.random() >= plan.probability:
            return None
        self.struck += 1
        return plan.fault


class Faults:
    """The faults of a bench, by name. One seed gives one sequence for each name, whatever happens to the others."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._entries: dict[str, _Entry] = {}

    def inject(self, name: str, plan: FaultPlan) -> None:
        """Let what is called `name` misbehave from now on."""
        self._entries[name] = _Entry(plan, random.Random(f"{self._seed}:{name}"))

    def clear(self, name: str) -> None:
        """Let it behave again."""
        self._entries.pop(name, None)

    def clear_all(self) -> None:
        """Let everything behave again."""
        self._entries.clear()

    @contextmanager
    def injected(self, name: str, plan: FaultPlan) -> Iterator[None]:
        """Misbehaves while the context is open; what it did before comes back."""
        before = self._entries.get(name)
        self.inject(name, plan)
        try:
            yield
        finally:
            if before is None:
                self.clear(name)
            else:
                self._entries[name] = before

    def plans(self) -> dict[str, FaultPlan]:
        """What misbehaves now."""
        return {name: entry.plan for name, entry in self._entries.items()}

    def draw(self, *names: str) -> tuple[float, Fault | None]:
        """An access to something known by several names: seconds of delay, and the first fault that it meets."""
        delay, fault = 0.0, None
        for entry in [self._entries[name] for name in names if name in self._entries]:
            delay += entry.plan.delay
            fault = fault or entry.hit()
        return delay, fault

    async def strike(self, name: str) -> None:
        """Called on each access to a device: HalError, a delay, or nothing. A checkpoint in any case."""
        delay, fault = self.draw(name)
        await trio.sleep(delay)
        if fault is not None:
            raise HalError(f"{name}: {fault.value} (injected)", fault)

    def garble(self, name: str, data: bytes) -> bytes:
        """`data` as it arrives: one wrong bit in a share of the bytes."""
        entry = self._entries.get(name)
        if entry is None or not entry.plan.bit_errors:
            return data
        dice = entry.dice
        return bytes(
            byte ^ (1 << dice.randrange(8)) if dice.random() < entry.plan.bit_errors else byte for byte in data
        )

    def noise(self, name: str) -> float:
        """What a measurement is off by, this time."""
        entry = self._entries.get(name)
        return entry.dice.gauss(0.0, entry.plan.noise) if entry is not None and entry.plan.noise else 0.0
