"""A simulated board: pins, analog channels and interrupt counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from hal.ports.analog import Range
from hal.sim.bench.device import Device
from hal.sim.gpio.pins import Clock, EdgeCounter, SimPin
from hal.sim.gpio.wiring import Pin, Wiring

BOARD_CURRENT: Final = 0.25  # amperes of a small idle computer
PIN_CURRENT: Final = 0.015  # amperes of an indicator on each pin
VOLTS: Final = 3.3
COUNTS: Final = 1024  # a 10-bit converter


class SimAnalog:
    """A channel of the board's converter, which reads a quantity of the bench or the mean level of a pin."""

    range: Final = Range(0.0, VOLTS, VOLTS / (COUNTS - 1))

    def __init__(self, share: Callable[[], float], pin: SimPin) -> None:
        self._share = share
        self._pin = pin

    def read(self) -> int:
        """Return the current value in counts."""
        return round(min(1.0, max(0.0, self._share())) * (COUNTS - 1))

    def write(self, value: int) -> None:
        """Set the voltage of the pin."""
        if not 0 <= value < COUNTS:
            raise ValueError(f"analog value {value} is outside 0 to {COUNTS - 1}")
        self._pin.set_mean(value / (COUNTS - 1))


class SimBoard(Device):
    """A board whose pins are created when they are first used."""

    kind: ClassVar[str] = "board"

    def __init__(self, name: str, wiring: Wiring, clock: Clock) -> None:
        super().__init__(name)
        self.wiring = wiring
        self.clock = clock
        self._pins: dict[str, SimPin] = {}
        self._counters: dict[str, EdgeCounter] = {}
        self._wires: list[tuple[str, str]] = []
        self.asleep_until = float("-inf")

    def pin(self, name: str) -> SimPin:
        """Return the pin `name`."""
        if name not in self._pins:
            self._pins[name] = SimPin(self.wiring, self.wiring.pin(self.name, name), self.clock)
        return self._pins[name]

    def wire(self, wires: Iterable[tuple[str, str]]) -> None:
        """Connect pins by name; `other-board:pin` means a pin of another board."""
        for first, second in wires:
            self.wiring.connect(self._resolve(first), self._resolve(second), self.clock())
            self._wires.append((first, second))

    def _resolve(self, text: str) -> Pin:
        board, colon, pin = text.rpartition(":")
        return self.wiring.pin(board if colon else self.name, pin)

    def count_edges(self, pin: str) -> EdgeCounter:
        """Return the counter of rising edges on `pin`, which counts since the first call."""
        if pin not in self._counters:
            self._counters[pin] = EdgeCounter(self.wiring, self.wiring.pin(self.name, pin), self.clock())
        return self._counters[pin]

    def current(self, t: float) -> float:
        """Return the current of the board and its outputs in amperes."""
        outputs = sum(pin.drive.mean(t) for pin in self.wiring.pins(self.name) if pin.drive is not None)
        return BOARD_CURRENT * (0.1 if t < self.asleep_until else 1.0) + PIN_CURRENT * outputs

    def close(self, t: float) -> None:
        """Release all outputs and disconnect the wires."""
        for counter in self._counters.values():
            counter.close()
        for pin in self.wiring.pins(self.name):
            if pin.drive is not None:
                self.wiring.set_drive(pin, None, t)
        for first, second in self._wires:
            self.wiring.cut(self._resolve(first), self._resolve(second), t)
