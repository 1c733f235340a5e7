"""Simulated GPIO lines: pins of the world, which can be opened once at a time and have a safe level."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

import trio

from hal.errors import Fault
from hal.ports.digital import (
    DigitalInput,
    DigitalOutput,
    EdgeEvents,
    InputSettings,
    Line,
    OutputSettings,
)
from hal.ports.pwm import PwmChannel, PwmOutput
from hal.sim.faults import Faults, system_error
from hal.sim.gpio.debounce import DebouncedEdges, Debouncer
from hal.sim.gpio.pins import SimPin
from hal.sim.gpio.signal import HIGH, LOW, Constant, Signal
from hal.sim.gpio.wiring import Pin, Wiring
from hal.sim.owners import Owners

_PULL: Final = {"as_is": None, "none": None, "up": HIGH, "down": LOW}


@dataclass(frozen=True, slots=True)
class OutputState:
    """The state of an output that was opened. The levels are those of the pin, with `active_low` applied."""

    name: str
    owner: str | None  # the task that has opened it; None when it is closed
    safe: bool
    level: bool


class Lines:
    """All lines and PWM channels of the simulated computer."""

    def __init__(self, wiring: Wiring, clock: Callable[[], float], faults: Faults, owners: Owners) -> None:
        self._wiring = wiring
        self._clock = clock
        self._faults = faults
        self._owners = owners
        self._gone: set[str] = set()  # chips
        self.powered = True
        self._outputs: dict[str, tuple[Pin, bool]] = {}  # by name: the pin and its safe level

    def pin(self, line: Line | PwmChannel) -> Pin:
        """Return the pin of the world for a line or a channel."""
        chip = line.chip.removeprefix("/dev/")
        return self._wiring.pin(chip, str(line.offset) if isinstance(line, Line) else f"pwm{line.channel}")

    def outputs(self) -> list[OutputState]:
        """Return all outputs that were opened so far, open or closed."""
        now = self._clock()
        return [
            OutputState(name, self._owners.owner(name), safe, self._wiring.signal(pin).level(now))
            for name, (pin, safe) in self._outputs.items()
        ]

    def power_off(self) -> None:
        """Switch the computer off: all pins are released regardless of their safe levels."""
        self.powered = False
        for pin, _ in self._outputs.values():
            self._wiring.set_drive(pin, None, self._clock())

    def power_on(self) -> None:
        """Switch the computer on; no pin is an output yet."""
        self.powered = True
        self._outputs.clear()

    def drive(self, pin: Pin, signal: Signal | None) -> None:
        """Let a pin of the computer drive `signal`, or release it with None; without effect if the power is off."""
        if self.powered:
            self._wiring.set_drive(pin, signal, self._clock())

    def has_chip(self, chip: str) -> bool:
        """Return whether a line or channel of the chip was ever used."""
        return bool(self._wiring.pins(chip))

    def unplug(self, chip: str) -> None:
        """Remove a chip: opening, reading and writing its lines then raises HalError (gone)."""
        self._gone.add(chip)

    def plug(self, chip: str) -> None:
        """Add a removed chip again."""
        self._gone.discard(chip)

    def check(self, line: Line | PwmChannel) -> None:
        """Raise HalError if the chip is gone or the line has an injected fault."""
        if line.chip in self._gone:
            raise system_error(str(line), Fault.GONE)
        _, fault = self._faults.draw(str(line))
        if fault is not None:
            raise system_error(str(line), fault, group="gpio")

    @contextmanager
    def _taken(self, line: Line | PwmChannel) -> Iterator[Pin]:
        self.check(line)
        with self._owners.hold(str(line)):
            yield self.pin(line)

    @asynccontextmanager
    async def digital_input(self, line: Line, settings: InputSettings) -> AsyncIterator[DigitalInput]:
        """Open a pin as an input; its resistor is kept when it is closed, as in the registers of a chip."""
        await trio.lowlevel.checkpoint()
        with self._taken(line) as pin:
            now = self._clock()
            self._outputs.pop(str(line), None)
            if pin.drive is not None:
                self.drive(pin, None)
            if settings.bias != "as_is":
                self._wiring.set_pull(pin, _PULL[settings.bias], now)
            source = SimPin(self._wiring, pin, self._clock)
            with Debouncer(self._wiring, pin, self._clock, settings.debounce) as level:
                yield _Input(self, line, source, level, settings)

    @asynccontextmanager
    async def digital_output(self, line: Line, settings: OutputSettings) -> AsyncIterator[DigitalOutput]:
        """Open a pin as an output at its safe level; it is driven at that level after it is closed."""
        await trio.lowlevel.checkpoint()
        with self._taken(line) as pin:
            output = _Output(self, line, pin, self._wiring, self._clock, settings)
            self._outputs[str(line)] = pin, settings.safe != settings.active_low
            output.drive(settings.safe)
            try:
                yield output
            finally:
                output.drive(settings.safe)

    @asynccontextmanager
    async def pwm(self, target: PwmChannel | Line, routed: tuple[Line, ...] = ()) -> AsyncIterator[PwmOutput]:
        """Open a channel or a line for a wave; `routed` are the lines of a channel, connected if they are free."""
        await trio.lowlevel.checkpoint()
        with self._taken(target) as pin:
            wired = [self.pin(line) for line in routed if self._owners.owner(str(line)) is None]
            now = self._clock()
            for other in wired:
                self.drive(other, None)
                self._wiring.connect(pin, other, now)
            output = _Pwm(self, target, SimPin(self._wiring, pin, self._clock))
            self._outputs[str(target)] = pin, False
            self.drive(pin, LOW)
            try:
                yield output
            finally:
                now = self._clock()
                self.drive(pin, LOW)
                for other in wired:
                    self._wiring.cut(pin, other, now)


class _Input:
    def __init__(self, lines: Lines, line: Line, pin: SimPin, level: Debouncer, settings: InputSettings) -> None:
        self._lines = lines
        self._line = line
        self._pin = pin
        self._level = level
        self._settings = settings

    def read(self) -> bool:
        """Return the current level."""
        self._lines.check(self._line)
        return self._level.read() != self._settings.active_low

    @asynccontextmanager
    async def edges(self) -> AsyncIterator[EdgeEvents]:
        """Listen to the edges while the context is open."""
        self._lines.check(self._line)
        with self._pin.listening() as stream:
            yield DebouncedEdges(stream, self._level.read(), self._settings.debounce, invert=self._settings.active_low)


class _Output:
    def __init__(
        self,
        lines: Lines,
        line: Line,
        pin: Pin,
        wiring: Wiring,
        clock: Callable[[], float],
        settings: OutputSettings,
    ) -> None:
        self._lines = lines
        self._line = line
        self._pin = pin
        self._wiring = wiring
        self._clock = clock
        self._settings = settings

    def read(self) -> bool:
        """Return the level on the pin."""
        self._lines.check(self._line)
        return self._wiring.signal(self._pin).level(self._clock()) != self._settings.active_low

    def write(self, high: bool) -> None:
        """Drive the pin."""
        self._lines.check(self._line)
        self.drive(high)

    def drive(self, high: bool) -> None:
        """Drive the pin, or release it if it is open drain or open source."""
        level = high != self._settings.active_low
        released = {"push_pull": None, "open_drain": True, "open_source": False}[self._settings.drive]
        signal: Constant | None = None if level is released else HIGH if level else LOW
        if self._pin.drive is not signal or (signal is not None and self._wiring.signal(self._pin) is not signal):
            self._lines.drive(self._pin, signal)


class _Pwm:
    def __init__(self, lines: Lines, target: PwmChannel | Line, pin: SimPin) -> None:
        self._lines = lines
        self._target = target
        self._pin = pin

    def wave(self) -> tuple[float, float]:
        """Return duty and frequency."""
        self._lines.check(self._target)
        return self._pin.wave()

    def set_wave(self, duty: float, frequency: float) -> None:
        """Set duty and frequency."""
        self._lines.check(self._target)
        if not (0.0 <= duty <= 1.0 and math.isfinite(frequency)):
            raise ValueError(
                f"{self._target}: a duty of {duty:g} at {frequency:g} Hz is not valid: use 0 to 1, and finite Hz"
            )
        if self._lines.powered:
            self._pin.set_wave(duty, frequency)
