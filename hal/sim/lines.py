"""Simulated GPIO lines behind the ports: pins of the world, each open once, at its safe level before and after."""

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
from hal.sim.debounce import DebouncedEdges, Debouncer
from hal.sim.faults import Faults, system_error
from hal.sim.gpio import SimPin
from hal.sim.owners import Owners
from hal.sim.signal import HIGH, LOW, Constant, Signal
from hal.sim.wiring import Pin, Wiring

_PULL: Final = {"as_is": None, "none": None, "up": HIGH, "down": LOW}


@dataclass(frozen=True, slots=True)
class OutputState:
    """An output that was opened: the levels are those of the pin, after `active_low` has been taken into account."""

    name: str
    owner: str | None  # who has it open; None when it is closed
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
        """The pin of the world behind a line or a channel."""
        chip = line.chip.removeprefix("/dev/")
        return self._wiring.pin(chip, str(line.offset) if isinstance(line, Line) else f"pwm{line.channel}")

    def outputs(self) -> list[OutputState]:
        """Every output that was opened so far, open or closed."""
        now = self._clock()
        return [
            OutputState(name, self._owners.owner(name), safe, self._wiring.signal(pin).level(now))
            for name, (pin, safe) in self._outputs.items()
        ]

    def power_off(self) -> None:
        """The computer loses its power: every pin lets go, whatever its safe level is, and nothing is driven."""
        self.powered = False
        for pin, _ in self._outputs.values():
            self._wiring.set_drive(pin, None, self._clock())

    def power_on(self) -> None:
        """The power is back; no pin is an output yet."""
        self.powered = True
        self._outputs.clear()

    def drive(self, pin: Pin, signal: Signal | None) -> None:
        """Let one of the computer's pins drive `signal` or let go, unless there is no power."""
        if self.powered:
            self._wiring.set_drive(pin, signal, self._clock())

    def has_chip(self, chip: str) -> bool:
        """Whether a line or channel of the chip was ever named."""
        return bool(self._wiring.pins(chip))

    def unplug(self, chip: str) -> None:
        """Take a chip away: opening, reading and writing its lines raises HalError (gone)."""
        self._gone.add(chip)

    def plug(self, chip: str) -> None:
        """Bring it back."""
        self._gone.discard(chip)

    def check(self, line: Line | PwmChannel) -> None:
        """HalError if the chip is gone or the line has an injected fault."""
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
        """A pin that somebody else drives; its resistor stays when it is closed, as in the chip's registers."""
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
        """A pin at its safe level, at first and at last; it is held there when it is closed."""
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
    async def pwm(self, target: PwmChannel | Line, beside: tuple[Line, ...] = ()) -> AsyncIterator[PwmOutput]:
        """A wave on a channel or a line; `beside` are the lines a channel comes out on, where they are free."""
        await trio.lowlevel.checkpoint()
        with self._taken(target) as pin:
            wired = [self.pin(line) for line in beside if self._owners.owner(str(line)) is None]
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
        """The level now."""
        self._lines.check(self._line)
        return self._level.read() != self._settings.active_low

    @asynccontextmanager
    async def edges(self) -> AsyncIterator[EdgeEvents]:
        """Listen."""
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
        """The level on the pin."""
        self._lines.check(self._line)
        return self._wiring.signal(self._pin).level(self._clock()) != self._settings.active_low

    def write(self, high: bool) -> None:
        """Drive it."""
        self._lines.check(self._line)
        self.drive(high)

    def drive(self, high: bool) -> None:
        """Drive it, or let go where it is open drain or open source."""
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
        """Duty and frequency."""
        self._lines.check(self._target)
        return self._pin.wave()

    def set_wave(self, duty: float, frequency: float) -> None:
        """Change both."""
        self._lines.check(self._target)
        if not (0.0 <= duty <= 1.0 and math.isfinite(frequency)):
            raise ValueError(
                f"{self._target}: a duty of {duty:g} at {frequency:g} Hz; give 0 to 1, and a finite frequency"
            )
        if self._lines.powered:
            self._pin.set_wave(duty, frequency)
