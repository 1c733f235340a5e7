"""Fault injection: no acknowledge, gone, slow, wrong bits, noise; with a seed, so that runs are reproducible.

A fault is injected by the name of its target: the simple name of a model on the bench, an I2C bus or an address on it
(`i2c-1`, `i2c-1 address 0x48`), an SPI device (`spidev0.0`), a GPIO line (`pinctrl-bcm2711 line 17`), the path of a
serial port, or the port of a USB device.
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

# The system's error for each fault, so that error messages are the same as on Linux.
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
    """Return the error that the Linux family raises for `what`: with the error `number`, by default that of `fault`."""
    number = number or _ERRNO[fault]
    cause = OSError(number, os.strerror(number))
    error = HalError.of(cause, what, group=group)
    error.__cause__ = cause
    return error


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The faults of an address, a device or a port; fields that do not apply to it are ignored."""

    fault: Fault | None = None
    probability: float = 1.0  # of the fault in each access, 0 to 1
    delay: float = 0.0  # delay of an answer in seconds
    bit_errors: float = 0.0  # fraction of transferred bytes with one wrong bit, 0 to 1
    noise: float = 0.0  # standard deviation of noise on a measured quantity, in its unit
    times: int | None = None  # number of faults until it ends; None: unlimited


@dataclass(slots=True)
class _Entry:
    plan: FaultPlan
    generator: random.Random
    count: int = 0

    def hit(self) -> Fault | None:
        plan = self.plan
        over = plan.times is not None and self.count >= plan.times
        if plan.fault is None or over or self.generator.random() >= plan.probability:
            return None
        self.count += 1
        return plan.fault


class Faults:
    """The faults of a bench by name. For a seed, the sequence of each name is independent of the others."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._entries: dict[str, _Entry] = {}

    def inject(self, name: str, plan: FaultPlan) -> None:
        """Inject faults into `name` from now on."""
        self._entries[name] = _Entry(plan, random.Random(f"{self._seed}:{name}"))

    def clear(self, name: str) -> None:
        """Stop injecting faults into `name`."""
        self._entries.pop(name, None)

    def clear_all(self) -> None:
        """Stop injecting all faults."""
        self._entries.clear()

    @contextmanager
    def injected(self, name: str, plan: FaultPlan) -> Iterator[None]:
        """Inject faults into `name` while the context is open; then restore its previous plan."""
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
        """Return the current plans by name."""
        return {name: entry.plan for name, entry in self._entries.items()}

    def draw(self, *names: str) -> tuple[float, Fault | None]:
        """Draw for an access to a target with several names: return the delay in seconds and the first fault."""
        delay, fault = 0.0, None
        for entry in [self._entries[name] for name in names if name in self._entries]:
            delay += entry.plan.delay
            fault = fault or entry.hit()
        return delay, fault

    async def strike(self, name: str) -> None:
        """Apply the faults to an access: delay it, and raise HalError for a fault. Always a checkpoint."""
        delay, fault = self.draw(name)
        await trio.sleep(delay)
        if fault is not None:
            raise HalError(f"{name}: {fault.value} (injected)", fault)

    def garble(self, name: str, data: bytes) -> bytes:
        """Return `data` with one wrong bit in a fraction of the bytes."""
        entry = self._entries.get(name)
        if entry is None or not entry.plan.bit_errors:
            return data
        generator = entry.generator
        return bytes(
            byte ^ (1 << generator.randrange(8)) if generator.random() < entry.plan.bit_errors else byte
            for byte in data
        )

    def noise(self, name: str) -> float:
        """Draw the error of a measurement."""
        entry = self._entries.get(name)
        return entry.generator.gauss(0.0, entry.plan.noise) if entry is not None and entry.plan.noise else 0.0
