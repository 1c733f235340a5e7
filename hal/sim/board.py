"""A simulated board: pins, analog channels and interrupt counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from hal.ports.analog import Range
from hal.sim.device import Device
from hal.sim.gpio import Clock, EdgeCounter, SimPin
from hal.sim.wiring import Pin, Wiring

BOARD_CURRENT: Final = 0.25  # amperes: a small computer doing little
PIN_CURRENT: Final = 0.015  # amperes: an indicator on each pin
VOLTS: Final = 3.3
COUNTS: Final = 1024  # a 10-bit converter


class SimAnalog:
    """A channel of the board's converter: reads a quantity of the bench, or the mean level of a pin."""

    range: Final = Range(0.0, VOLTS, VOLTS / (COUNTS - 1))

    def __init__(self, share: Callable[[], float], pin: SimPin) -> None:
        self._share = share
        self._pin = pin

    def read(self) -> int:
        """Counts now."""
        return round(min(1.0, max(0.0, self._share())) * (COUNTS - 1))

    def write(self, value: int) -> None:
        """Hold a voltage on the pin."""
        if not 0 <= value < COUNTS:
            raise ValueError(f"analog value {value} is outside 0 to {COUNTS - 1}")
        self._pin.set_mean(value / (COUNTS - 1))


class SimBoard(Device):
    """A board whose pins exist as soon as they are named."""

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
        """The pin called `name`."""
        if name not in self._pins:
            self._pins[name] = SimPin(self.wiring, self.wiring.pin(self.name, name), self.clock)
        return self._pins[name]

    def wire(self, wires: Iterable[tuple[str, str]]) -> None:
        """Connect pins by name; `other-board:pin` names a pin of another board."""
        for one, other in wires:
            self.wiring.connect(self._resolve(one), self._resolve(other), self.clock())
            self._wires.append((one, other))

    def _resolve(self, text: str) -> Pin:
        board, colon, pin = text.rpartition(":")
        return self.wiring.pin(board if colon else self.name, pin)

    def count_edges(self, pin: str) -> EdgeCounter:
        """The counter of rising edges on `pin`, counting since it was first asked for."""
        if pin not in self._counters:
            self._counters[pin] = EdgeCounter(self.wiring, self.wiring.pin(self.name, pin), self.clock())
        return self._counters[pin]

    def current(self, t: float) -> float:
        """The board itself and what its outputs feed."""
        outputs = sum(pin.drive.mean(t) for pin in self.wiring.pins(self.name) if pin.drive is not None)
        return BOARD_CURRENT * (0.1 if t < self.asleep_until else 1.0) + PIN_CURRENT * outputs

    def close(self, t: float) -> None:
        """Outputs go low and let go, wires come off."""
        for counter in self._counters.values():
            counter.close()
        for pin in self.wiring.pins(self.name):
            if pin.drive is not None:
                self.wiring.set_drive(pin, None, t)
        for one, other in self._wires:
            self.wiring.cut(self._resolve(one), self._resolve(other), t)
