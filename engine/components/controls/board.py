"""Board: the pins of a computer or microcontroller."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import ClassVar

from engine.resource import Component, Extra
from schema import API


class PowerMode(IntEnum):
    """Power mode of a board."""

    UNSPECIFIED = 0
    NORMAL = 1
    OFFLINE_DEEP = 2


@dataclass(frozen=True, slots=True)
class AnalogReading:
    """A raw value with its scale: volts from `min_range` to `max_range` in steps of `step_size`; 0 if unknown."""

    value: int
    min_range: float = 0.0
    max_range: float = 0.0
    step_size: float = 0.0


@dataclass(frozen=True, slots=True)
class Tick:
    """An edge on a digital interrupt pin: the new level, and the time (nanoseconds of a monotonic clock)."""

    pin_name: str
    time: int
    high: bool


class Board(Component):
    """A board with pins; the model documents their names."""

    API: ClassVar[API] = API("rdk", "component", "board")

    def identify(self, pin: str) -> str:
        """Return the key that reserves `pin`, the same for all names of that pin. Clients cannot call this method."""
        return f"pin {pin} of {self.name}"

    async def set_gpio(self, pin: str, high: bool, *, extra: Extra = None) -> None:
        """Set the output level of a pin."""
        raise NotImplementedError

    async def get_gpio(self, pin: str, *, extra: Extra = None) -> bool:
        """Return True if the pin is high."""
        raise NotImplementedError

    async def pwm(self, pin: str, *, extra: Extra = None) -> float:
        """Return the duty cycle of a pin: 0 to 1."""
        raise NotImplementedError

    async def set_pwm(self, pin: str, duty_cycle_pct: float, *, extra: Extra = None) -> None:
        """Set the duty cycle of a pin: 0 (always low) to 1 (always high)."""
        raise NotImplementedError

    async def pwm_frequency(self, pin: str, *, extra: Extra = None) -> int:
        """Return the PWM frequency of a pin (Hz)."""
        raise NotImplementedError

    async def set_pwm_frequency(self, pin: str, frequency_hz: int, *, extra: Extra = None) -> None:
        """Set the PWM frequency of a pin (Hz); 0 selects the board's default."""
        raise NotImplementedError

    async def read_analog_reader(self, analog_reader_name: str, *, extra: Extra = None) -> AnalogReading:
        """Read a configured analog input."""
        raise NotImplementedError

    async def write_analog(self, pin: str, value: int, *, extra: Extra = None) -> None:
        """Set an analog output to a raw value; the model documents its range."""
        raise NotImplementedError

    async def get_digital_interrupt_value(self, digital_interrupt_name: str, *, extra: Extra = None) -> int:
        """Return the number of edges that a configured interrupt has counted."""
        raise NotImplementedError

    def stream_ticks(self, pin_names: Sequence[str], *, extra: Extra = None) -> AsyncGenerator[Tick, None]:
        """Yield the edges of configured interrupts as they occur, until closed."""
        raise NotImplementedError

    async def set_power_mode(
        self, power_mode: PowerMode, duration: timedelta | None = None, *, extra: Extra = None
    ) -> None:
        """Set the power mode, for `duration` or until the next call."""
        raise NotImplementedError
