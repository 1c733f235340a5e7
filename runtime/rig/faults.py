"""Faults as a test asks for them: each is on inside `async with`, and over afterwards whatever happened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import NoReturn, Protocol

import pytest
import trio

from hal.errors import Fault
from hal.ports.digital import Line
from hal.sim.faults import FaultPlan
from hal.sim.hardware import SimHardware
from hal.sim.signal import HIGH, LOW

Context = AbstractAsyncContextManager[None]


class Bench(Protocol):
    """What a rig can do to the surroundings of its machine. Things are named as in hal/sim/faults.py."""

    async def inject(self, name: str, plan: FaultPlan) -> None:
        """Let what is called `name` misbehave."""

    async def clear(self, name: str) -> None:
        """Let it behave again."""

    async def set_plugged(self, name: str, plugged: bool) -> None:
        """Unplug or plug an I2C or SPI bus, a serial port, a USB socket or a GPIO chip."""

    async def set_stuck(self, bus: str, stuck: bool) -> None:
        """Hold the clock of an I2C bus low, or let it go."""

    async def set_short(self, line: Line, level: bool | None) -> None:
        """Short a line to a level, or mend it."""


class Faults:
    """The fixture `faults`. On a rig that cannot do what is asked the test is skipped, with the reason."""

    def __init__(self, bench: Bench | None, kind: str, power_loss: Callable[[], Context] | None = None) -> None:
        self._bench = bench
        self._kind = kind
        self._power_loss = power_loss

    def _on(self, what: str) -> Bench:
        if self._bench is None:
            self._missing(what)
        return self._bench

    def _missing(self, what: str) -> NoReturn:
        pytest.skip(f"the rig {self._kind!r} has no way to make {what}")

    def inject(self, name: str, plan: FaultPlan) -> Context:
        """Any plan for what is called `name`: `i2c-1 address 0x48`, `i2c-1`, `spidev0.0`, a serial port's path."""
        return self._injected(name, plan, "a fault")

    @asynccontextmanager
    async def _injected(self, name: str, plan: FaultPlan, what: str) -> AsyncIterator[None]:
        bench = self._on(what)
        await bench.inject(name, plan)
        try:
            yield
        finally:
            with _undoing():
                await bench.clear(name)

    def no_acknowledge(self, bus: str, address: int | None = None, *, probability: float = 1.0) -> Context:
        """The chip at `address` of the bus, or every chip, does not answer; with a probability of each transaction."""
        name = bus if address is None else f"{bus} address 0x{address:02x}"
        return self._injected(name, FaultPlan(Fault.NO_ACKNOWLEDGE, probability=probability), "a chip silent")

    def slow(self, name: str, seconds: float) -> Context:
        """Every answer comes late."""
        return self._injected(name, FaultPlan(delay=seconds), "a device slow")

    def noise(self, name: str, spread: float) -> Context:
        """A quantity of the plant is measured with noise of that standard deviation, in its own unit."""
        return self._injected(name, FaultPlan(noise=spread), "noise")

    def bit_errors(self, name: str, share: float) -> Context:
        """That share of the bytes on a line arrives with one wrong bit."""
        return self._injected(name, FaultPlan(bit_errors=share), "wrong bits")

    @asynccontextmanager
    async def stuck(self, bus: str) -> AsyncIterator[None]:
        """An I2C bus hangs: each transaction ends with a time-out of the adapter."""
        bench = self._on("a bus stuck")
        await bench.set_stuck(bus, True)
        try:
            yield
        finally:
            with _undoing():
                await bench.set_stuck(bus, False)

    @asynccontextmanager
    async def unplugged(self, name: str) -> AsyncIterator[None]:
        """A bus (`i2c-1`, `spidev0`), serial port, USB socket or GPIO chip is not there."""
        bench = self._on("a device unplugged")
        await bench.set_plugged(name, False)
        try:
            yield
        finally:
            with _undoing():
                await bench.set_plugged(name, True)

    @asynccontextmanager
    async def shorted(self, line: Line, level: bool) -> AsyncIterator[None]:
        """A line has that level whatever drives it."""
        bench = self._on("a short circuit")
        await bench.set_short(line, level)
        try:
            yield
        finally:
            with _undoing():
                await bench.set_short(line, None)

    def power_loss(self) -> Context:
        """The computer that runs the machine has no power; at the end it starts again."""
        if self._power_loss is None:
            self._missing("a power loss")
        return self._power_loss()


@contextmanager
def _undoing() -> Iterator[None]:
    """A fault ends also when the test was cancelled; within a limit."""
    with trio.CancelScope(deadline=trio.current_time() + 10.0, shield=True):
        yield


class SimBench:
    """The bench of the simulated family."""

    def __init__(self, hardware: SimHardware) -> None:
        self._hardware = hardware

    async def inject(self, name: str, plan: FaultPlan) -> None:
        """As the protocol says."""
        await trio.lowlevel.checkpoint()
        self._hardware.faults.inject(name, plan)

    async def clear(self, name: str) -> None:
        """As the protocol says."""
        await trio.lowlevel.checkpoint()
        self._hardware.faults.clear(name)

    async def set_plugged(self, name: str, plugged: bool) -> None:
        """As the protocol says."""
        await trio.lowlevel.checkpoint()
        self._hardware.set_plugged(name, plugged)

    async def set_stuck(self, bus: str, stuck: bool) -> None:
        """As the protocol says."""
        await trio.lowlevel.checkpoint()
        i2c = self._hardware.bus(bus)
        if stuck:
            i2c.stall()
        else:
            i2c.release()

    async def set_short(self, line: Line, level: bool | None) -> None:
        """As the protocol says."""
        await trio.lowlevel.checkpoint()
        world = self._hardware.world
        signal = None if level is None else HIGH if level else LOW
        world.wiring.set_short(self._hardware.pin(line), signal, world.now())
