"""Fault injection for tests. Each fault is active inside `async with` and always ends with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import NoReturn, Protocol

import pytest
import trio

from hal import Fault
from hal.ports import Line
from hal.sim import HIGH, LOW, FaultPlan, SimHardware

Context = AbstractAsyncContextManager[None]


class Bench(Protocol):
    """Control of the hardware around a machine. Devices are named as in hal/sim/faults.py."""

    async def inject(self, name: str, plan: FaultPlan) -> None:
        """Inject faults into the device `name`."""

    async def clear(self, name: str) -> None:
        """Remove the faults of the device `name`."""

    async def set_plugged(self, name: str, plugged: bool) -> None:
        """Unplug or plug an I2C or SPI bus, a serial port, a USB socket or a GPIO chip."""

    async def set_stuck(self, bus: str, stuck: bool) -> None:
        """Hold the clock of an I2C bus low, or release it."""

    async def set_short(self, line: Line, level: bool | None) -> None:
        """Short a line to a level, or remove the short circuit (None)."""


class Faults:
    """The fixture `faults`. A fault that the rig does not support skips the test, with the reason."""

    def __init__(self, bench: Bench | None, kind: str, power_loss: Callable[[], Context] | None = None) -> None:
        self._bench = bench
        self._kind = kind
        self._power_loss = power_loss

    def _require_bench(self, fault: str) -> Bench:
        if self._bench is None:
            self._skip(fault)
        return self._bench

    def _skip(self, fault: str) -> NoReturn:
        pytest.skip(f"the rig {self._kind!r} cannot cause {fault}")

    def inject(self, name: str, plan: FaultPlan) -> Context:
        """Apply a plan to a device: `i2c-1 address 0x48`, `i2c-1`, `spidev0.0`, or the path of a serial port."""
        return self._injected(name, plan, "a fault")

    @asynccontextmanager
    async def _injected(self, name: str, plan: FaultPlan, fault: str) -> AsyncIterator[None]:
        bench = self._require_bench(fault)
        await bench.inject(name, plan)
        try:
            yield
        finally:
            with _shielded():
                await bench.clear(name)

    def no_acknowledge(self, bus: str, address: int | None = None, *, probability: float = 1.0) -> Context:
        """Make the chip at `address`, or every chip of the bus, not acknowledge; with a probability per transaction."""
        name = bus if address is None else f"{bus} address 0x{address:02x}"
        return self._injected(
            name, FaultPlan(Fault.NO_ACKNOWLEDGE, probability=probability), "a chip that does not answer"
        )

    def slow(self, name: str, seconds: float) -> Context:
        """Delay every answer by `seconds`."""
        return self._injected(name, FaultPlan(delay=seconds), "a slow device")

    def noise(self, name: str, spread: float) -> Context:
        """Add noise to a measured quantity of the plant; `spread` is the standard deviation in the quantity's unit."""
        return self._injected(name, FaultPlan(noise=spread), "noise")

    def bit_errors(self, name: str, share: float) -> Context:
        """Flip one bit in a share (0 to 1) of the bytes on a line."""
        return self._injected(name, FaultPlan(bit_errors=share), "bit errors")

    @asynccontextmanager
    async def stuck(self, bus: str) -> AsyncIterator[None]:
        """Block an I2C bus: each transaction ends with a timeout of the adapter."""
        bench = self._require_bench("a stuck bus")
        await bench.set_stuck(bus, True)
        try:
            yield
        finally:
            with _shielded():
                await bench.set_stuck(bus, False)

    @asynccontextmanager
    async def unplugged(self, name: str) -> AsyncIterator[None]:
        """Unplug a bus (`i2c-1`, `spidev0`), serial port, USB socket or GPIO chip."""
        bench = self._require_bench("an unplugged device")
        await bench.set_plugged(name, False)
        try:
            yield
        finally:
            with _shielded():
                await bench.set_plugged(name, True)

    @asynccontextmanager
    async def shorted(self, line: Line, level: bool) -> AsyncIterator[None]:
        """Short a line to a level, whatever drives it."""
        bench = self._require_bench("a short circuit")
        await bench.set_short(line, level)
        try:
            yield
        finally:
            with _shielded():
                await bench.set_short(line, None)

    def power_loss(self) -> Context:
        """Cut the power of the computer that runs the machine; it restarts at the end of the context."""
        if self._power_loss is None:
            self._skip("a power loss")
        return self._power_loss()


@contextmanager
def _shielded() -> Iterator[None]:
    """Shield the removal of a fault from cancellation, for at most 10 seconds."""
    with trio.CancelScope(deadline=trio.current_time() + 10.0, shield=True):
        yield


class SimBench:
    """The bench of simulated hardware."""

    def __init__(self, hardware: SimHardware) -> None:
        self._hardware = hardware

    async def inject(self, name: str, plan: FaultPlan) -> None:
        """Inject faults into the device `name`."""
        await trio.lowlevel.checkpoint()
        self._hardware.faults.inject(name, plan)

    async def clear(self, name: str) -> None:
        """Remove the faults of the device `name`."""
        await trio.lowlevel.checkpoint()
        self._hardware.faults.clear(name)

    async def set_plugged(self, name: str, plugged: bool) -> None:
        """Unplug or plug an I2C or SPI bus, a serial port, a USB socket or a GPIO chip."""
        await trio.lowlevel.checkpoint()
        self._hardware.set_plugged(name, plugged)

    async def set_stuck(self, bus: str, stuck: bool) -> None:
        """Hold the clock of an I2C bus low, or release it."""
        await trio.lowlevel.checkpoint()
        i2c = self._hardware.bus(bus)
        if stuck:
            i2c.stall()
        else:
            i2c.release()

    async def set_short(self, line: Line, level: bool | None) -> None:
        """Short a line to a level, or remove the short circuit (None)."""
        await trio.lowlevel.checkpoint()
        world = self._hardware.world
        signal = None if level is None else HIGH if level else LOW
        world.wiring.set_short(self._hardware.pin(line), signal, world.now())
