"""Monitoring of the outputs that the machine under test drives: each level, and whether it ended at a safe level."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeVar

from hal import Reservations
from hal.linux import LinuxHardware
from hal.ports import DigitalOutput, Line, OutputSettings, PwmChannel, PwmOutput
from hal.sim import SimHardware, World


class Open(Protocol):
    """An open output."""

    def force(self) -> None:
        """Set the output to its safe level immediately, without blocking."""


InnerT = TypeVar("InnerT")
OpenT = TypeVar("OpenT", bound=Open)


class Note(Protocol):
    """Callback for every level (0 to 1) that an output is set to."""

    def __call__(self, name: str, level: float, at: float | None = None) -> None:
        """Record a level now, or `at` seconds after the start of the test."""


class Outputs:
    """The monitored outputs of one machine."""

    def __init__(self, note: Note) -> None:
        self.note = note
        self.reservations: Reservations | None = None  # of the hardware of the outputs
        self._open: dict[str, Open] = {}
        self._failures: list[str] = []

    def digital(
        self, line: Line, settings: OutputSettings, inner: AbstractAsyncContextManager[DigitalOutput]
    ) -> AbstractAsyncContextManager[DigitalOutput]:
        """Wrap the digital output `inner` so that it is monitored."""
        name = str(line)
        return self._monitored(name, inner, lambda output: _Digital(self, name, output, settings), float(settings.safe))

    def pwm(
        self, target: PwmChannel | Line, inner: AbstractAsyncContextManager[PwmOutput]
    ) -> AbstractAsyncContextManager[PwmOutput]:
        """Wrap the PWM output `inner` so that it is monitored."""
        name = str(target)
        return self._monitored(name, inner, lambda output: _Pwm(self, name, output), 0.0)

    def title(self, name: str) -> str:
        """Return which resource drives an output by which pin, such as `heater on pi 11 (GPIO17)`; empty if unknown."""
        if self.reservations is None:
            return ""
        owners = map(self.reservations.owner, (name, f"control of {name}"))
        return " on ".join(owner.rpartition("/")[2] for owner in owners if owner)

    @asynccontextmanager
    async def _monitored(
        self, name: str, inner: AbstractAsyncContextManager[InnerT], wrap: Callable[[InnerT], OpenT], safe: float
    ) -> AsyncIterator[OpenT]:
        body_error: BaseException | None = None
        try:
            async with inner as output:
                watched = wrap(output)
                self._open[name] = watched
                self.note(name, safe)
                try:
                    yield watched
                except BaseException as error:
                    body_error = error
                    raise
        except Exception as error:
            if name in self._open and error is not body_error:
                self._failures.append(f"{name} could not be set to its safe level: {error}")
            raise
        finally:
            if self._open.pop(name, None) is not None:
                self.note(name, safe)

    def unsafe(self) -> list[str]:
        """Force outputs that are still open to safe levels after the machine has stopped; return a list of failures."""
        failures = list(self._failures)
        for name, output in self._open.items():
            try:
                output.force()
                failures.append(f"{name} was still driven; it has been forced to its safe level")
            except Exception as error:
                failures.append(f"{name} is still driven and could not be forced to its safe level: {error}")
        self._open.clear()
        self._failures.clear()
        return failures


class _Digital:
    def __init__(self, outputs: Outputs, name: str, inner: DigitalOutput, settings: OutputSettings) -> None:
        self._outputs = outputs
        self._name = name
        self._inner = inner
        self._settings = settings

    def read(self) -> bool:
        """Return the level on the line, which is the written one unless the line is shorted."""
        return self._inner.read()

    def write(self, high: bool) -> None:
        """Set the line to a level and hold it."""
        self._inner.write(high)
        self._outputs.note(self._name, high)

    def force(self) -> None:
        """Set the safe level."""
        self.write(self._settings.safe)


class _Pwm:
    def __init__(self, outputs: Outputs, name: str, inner: PwmOutput) -> None:
        self._outputs = outputs
        self._name = name
        self._inner = inner

    def wave(self) -> tuple[float, float]:
        """Return the current duty (0 to 1) and frequency in Hz."""
        return self._inner.wave()

    def set_wave(self, duty: float, frequency: float) -> None:
        """Set duty (0 to 1) and frequency (Hz, above 0) together; HalError (unsupported) outside the range."""
        self._inner.set_wave(duty, frequency)
        self._outputs.note(self._name, duty)

    def force(self) -> None:
        """Set the output low."""
        self.set_wave(0.0, self._inner.wave()[1])


class WatchedSim(SimHardware):
    """Simulated hardware with monitored outputs."""

    def __init__(self, world: World, outputs: Outputs) -> None:
        super().__init__(world)
        self._watch = outputs
        outputs.reservations = self.reservations

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """Open a line as an output at its safe level."""
        return self._watch.digital(line, settings, super().digital_output(line, settings))

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """Open a hardware channel, or a line on which software generates the wave (slow and with jitter)."""
        return self._watch.pwm(target, super().pwm(target))


class WatchedLinux(LinuxHardware):
    """The hardware of this computer with monitored outputs."""

    def __init__(self, outputs: Outputs) -> None:
        super().__init__()
        self._watch = outputs
        outputs.reservations = self.reservations

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """Open a line as an output at its safe level."""
        return self._watch.digital(line, settings, super().digital_output(line, settings))

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """Open a hardware channel, or a line on which software generates the wave (slow and with jitter)."""
        return self._watch.pwm(target, super().pwm(target))
