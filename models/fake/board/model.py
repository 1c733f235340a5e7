"""A simulated board with pins, wires between them, analog inputs and interrupts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import ClassVar, TypeVar

import trio

from engine import AnalogReading, Attributes, Board, Extra, PowerMode, Started, Tick, model
from hal.sim import COUNTS, VOLTS, EdgeCounter, SimAnalog, SimBoard, first_edge
from models.common.motion import check_finite
from models.fake.board.attributes import _SPANS, Analog, FakeBoardConfig
from models.fake.common.simulated import SimulatedResource
from schema import ErrorKind, MachineError

T = TypeVar("T")


@model("rdk:builtin:fake")
class FakeBoard(SimulatedResource, Board):
    """Outputs drive inputs through wires and are visible in the simulated world. They go low when the board stops."""

    Config: ClassVar[type[Attributes]] = FakeBoardConfig

    async def run(self, *, task_status: Started) -> None:
        """Add the board to the simulated world until cancelled."""
        config: FakeBoardConfig = self.attributes
        if config.fail_new:
            raise MachineError(
                f"{self.name}: configured to fail", kind=ErrorKind.PRECONDITION, remedy="remove the attribute fail_new"
            )
        self._board: SimBoard = self.world.board(self.name.short)
        with self.world.holding(self._board):
            self._board.wire(config.wires)
            self._interrupts = {
                entry.name: (entry.pin, self._board.count_edges(entry.pin)) for entry in config.digital_interrupts
            }
            self._analogs = {entry.name: self._analog(entry) for entry in config.analogs}
            task_status.started()
            await trio.sleep_forever()

    def _analog(self, entry: Analog) -> SimAnalog:
        pin = self._board.pin(entry.pin or str(entry.channel) or entry.name)
        if entry.quantity:
            low, high = _SPANS[entry.quantity]
            return SimAnalog(lambda: (self.world.quantities()[entry.quantity] - low) / (high - low), pin)
        noise = f"{self.name}/{entry.name}"
        return SimAnalog(lambda: pin.mean() + self.world.noise(noise, 0.0005), pin)

    def identify(self, pin: str) -> str:
        """Return the same name for a pin and an interrupt on it."""
        return super().identify(self._pin_name(pin))

    def _pin_name(self, name: str) -> str:
        """Return the pin of an interrupt; any other name is that of a pin."""
        config: FakeBoardConfig = self.attributes
        return next((entry.pin for entry in config.digital_interrupts if entry.name == name), name)

    async def set_gpio(self, pin: str, high: bool, *, extra: Extra = None) -> None:
        """Drive a pin high or low."""
        await self.access()
        self._board.pin(pin).write(high)

    async def get_gpio(self, pin: str, *, extra: Extra = None) -> bool:
        """Return the level of a pin or an interrupt; undriven pins are low."""
        await self.access()
        return self._board.pin(self._pin_name(pin)).read()

    async def pwm(self, pin: str, *, extra: Extra = None) -> float:
        """Return the duty cycle of a pin."""
        await self.access()
        return self._board.pin(pin).mean()

    async def set_pwm(self, pin: str, duty_cycle_pct: float, *, extra: Extra = None) -> None:
        """Start PWM on a pin."""
        check_finite("the duty cycle", duty_cycle_pct)
        if not 0 <= duty_cycle_pct <= 1:
            raise MachineError(
                f"{duty_cycle_pct:g} is not a valid duty cycle",
                kind=ErrorKind.INVALID,
                remedy="use 0 (always low) to 1 (always high)",
            )
        await self.access()
        line = self._board.pin(pin)
        line.set_wave(duty_cycle_pct, line.wave()[1] or self.attributes.default_pwm_frequency_hz)

    async def pwm_frequency(self, pin: str, *, extra: Extra = None) -> int:
        """Return the PWM frequency of a pin (Hz)."""
        await self.access()
        return round(self._board.pin(pin).wave()[1])

    async def set_pwm_frequency(self, pin: str, frequency_hz: int, *, extra: Extra = None) -> None:
        """Set the PWM frequency of a pin now, or for when PWM starts."""
        if frequency_hz < 0:
            raise MachineError(f"{frequency_hz} Hz is not a valid frequency", kind=ErrorKind.INVALID)
        await self.access()
        self._board.pin(pin).set_frequency(frequency_hz or self.attributes.default_pwm_frequency_hz)

    async def read_analog_reader(self, analog_reader_name: str, *, extra: Extra = None) -> AnalogReading:
        """Return a reading of 0 to 1023 counts."""
        channel = self._find(self._analogs, "analog", analog_reader_name)
        await self.access()
        return AnalogReading(channel.read(), 0.0, VOLTS, VOLTS / (COUNTS - 1))

    async def write_analog(self, pin: str, value: int, *, extra: Extra = None) -> None:
        """Set the voltage of a pin: 0 to 1023 counts of 3.3 V."""
        await self.access()
        if not 0 <= value < COUNTS:
            raise MachineError(
                f"{value} is not a valid analog value", kind=ErrorKind.INVALID, remedy=f"use 0 to {COUNTS - 1}"
            )
        self._board.pin(pin).set_mean(value / (COUNTS - 1))

    async def get_digital_interrupt_value(self, digital_interrupt_name: str, *, extra: Extra = None) -> int:
        """Return the rising edges since the board started."""
        _, counter = self._interrupt(digital_interrupt_name)
        return counter.count(await self.access())

    async def stream_ticks(self, pin_names: Sequence[str], *, extra: Extra = None) -> AsyncGenerator[Tick, None]:
        """Stream both edges of the named interrupts, in order of time."""
        pins = [(name, self._interrupt(name)[0]) for name in pin_names]
        await self.access()
        if not pins:
            await trio.sleep_forever()
        with ExitStack() as open_streams:
            streams = [open_streams.enter_context(self._board.pin(pin).listening()) for _, pin in pins]
            while True:
                index, edge = await first_edge(streams)
                yield Tick(pins[index][0], int(edge.time * 1e9), edge.high)

    async def set_power_mode(
        self, power_mode: PowerMode, duration: timedelta | None = None, *, extra: Extra = None
    ) -> None:
        """Set the power mode; a sleeping board draws a tenth of the current."""
        now = await self.access()
        if power_mode is PowerMode.OFFLINE_DEEP:
            self._board.asleep_until = float("inf") if duration is None else now + duration.total_seconds()
        else:
            self._board.asleep_until = now

    def _interrupt(self, name: str) -> tuple[str, EdgeCounter]:
        return self._find(self._interrupts, "digital interrupt", name)

    def _find(self, devices: Mapping[str, T], kind_of_name: str, name: str) -> T:
        if name not in devices:
            raise MachineError(
                f"{self.name} has no {kind_of_name} called {name!r}",
                kind=ErrorKind.NOT_FOUND,
                remedy=f"configure it, or use one of: {', '.join(devices) or 'none is configured'}",
            )
        return devices[name]
