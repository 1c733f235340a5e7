"""Every output that the machine under test drives, watched from outside: what it did, and that it ended safe."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeVar

from hal.linux.hardware import LinuxHardware
from hal.ports.digital import DigitalOutput, Line, OutputSettings
from hal.ports.pwm import PwmChannel, PwmOutput
from hal.reservations import Reservations
from hal.sim.hardware import SimHardware
from hal.sim.world import World


class Open(Protocol):
    """An output that is open."""

    def force(self) -> None:
        """Bring it to its safe level now, without waiting for anything."""


InnerT = TypeVar("InnerT")
OpenT = TypeVar("OpenT", bound=Open)


class Note(Protocol):
    """Told of every level, from 0 to 1, that an output is given."""

    def __call__(self, name: str, level: float, at: float | None = None) -> None:
        """Now, or `at` seconds since the test's beginning."""


class Outputs:
    """The outputs of one machine."""

    def __init__(self, note: Note) -> None:
        self.note = note
        self.reservations: Reservations | None = None  # of the hardware that the outputs belong to
        self._open: dict[str, Open] = {}
        self._failures: list[str] = []

    def digital(
        self, line: Line, settings: OutputSettings, inner: AbstractAsyncContextManager[DigitalOutput]
    ) -> AbstractAsyncContextManager[DigitalOutput]:
        """`inner`, watched."""
        name = str(line)
        return self._watched(name, inner, lambda output: _Digital(self, name, output, settings), float(settings.safe))

    def pwm(
        self, target: PwmChannel | Line, inner: AbstractAsyncContextManager[PwmOutput]
    ) -> AbstractAsyncContextManager[PwmOutput]:
        """`inner`, watched."""
        name = str(target)
        return self._watched(name, inner, lambda output: _Pwm(self, name, output), 0.0)

    def title(self, name: str) -> str:
        """Return which resource drives an output and by which pin: `heater on pi 11 (GPIO17)`; empty if not known."""
        if self.reservations is None:
            return ""
        owners = map(self.reservations.owner, (name, f"control of {name}"))
        return " on ".join(owner.rpartition("/")[2] for owner in owners if owner)

    @asynccontextmanager
    async def _watched(
        self, name: str, inner: AbstractAsyncContextManager[InnerT], wrap: Callable[[InnerT], OpenT], safe: float
    ) -> AsyncIterator[OpenT]:
        inside: BaseException | None = None
        try:
            async with inner as output:
                watched = wrap(output)
                self._open[name] = watched
                self.note(name, safe)
                try:
                    yield watched
                except BaseException as error:
                    inside = error
                    raise
        except Exception as error:
            if name in self._open and error is not inside:
                self._failures.append(f"{name} could not be brought to its safe level: {error}")
            raise
        finally:
            if self._open.pop(name, None) is not None:
                self.note(name, safe)

    def unsafe(self) -> list[str]:
        """What is wrong once the machine has stopped; everything still open is forced to its safe level here."""
        wrong = list(self._failures)
        for name, output in self._open.items():
            try:
                output.force()
                wrong.append(f"{name} was still driven; it has been forced to its safe level")
            except Exception as error:
                wrong.append(f"{name} is still driven and could not be forced to its safe level: {error}")
        self._open.clear()
        self._failures.clear()
        return wrong


class _Digital:
    def __init__(self, outputs: Outputs, name: str, inner: DigitalOutput, settings: OutputSettings) -> None:
        self._outputs = outputs
        self._name = name
        self._inner = inner
        self._settings = settings

    def read(self) -> bool:
        """As the port says."""
        return self._inner.read()

    def write(self, high: bool) -> None:
        """As the port says."""
        self._inner.write(high)
        self._outputs.note(self._name, high)

    def force(self) -> None:
        """Its safe level."""
        self.write(self._settings.safe)


class _Pwm:
    def __init__(self, outputs: Outputs, name: str, inner: PwmOutput) -> None:
        self._outputs = outputs
        self._name = name
        self._inner = inner

    def wave(self) -> tuple[float, float]:
        """As the port says."""
        return self._inner.wave()

    def set_wave(self, duty: float, frequency: float) -> None:
        """As the port says."""
        self._inner.set_wave(duty, frequency)
        self._outputs.note(self._name, duty)

    def force(self) -> None:
        """Low."""
        self.set_wave(0.0, self._inner.wave()[1])


class WatchedSim(SimHardware):
    """The simulated family with its outputs watched."""

    def __init__(self, world: World, outputs: Outputs) -> None:
        super().__init__(world)
        self._watch = outputs
        outputs.reservations = self.reservations

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """As the port says."""
        return self._watch.digital(line, settings, super().digital_output(line, settings))

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """As the port says."""
        return self._watch.pwm(target, super().pwm(target))


class WatchedLinux(LinuxHardware):
    """This computer's hardware with its outputs watched."""

    def __init__(self, outputs: Outputs) -> None:
        super().__init__()
        self._watch = outputs
        outputs.reservations = self.reservations

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """As the port says."""
        return self._watch.digital(line, settings, super().digital_output(line, settings))

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """As the port says."""
        return self._watch.pwm(target, super().pwm(target))
