"""Board: a computer's or microcontroller's pins."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import ClassVar

from runtime.resource import Component, Extra
from schema.names import API


class PowerMode(IntEnum):
    """How much of the board stays awake."""

    UNSPECIFIED = 0
    NORMAL = 1
    OFFLINE_DEEP = 2


@dataclass(frozen=True, slots=True)
class AnalogReading:
    """A raw value and what it means: volts from `min_range` to `max_range` in steps of `step_size`; 0 if unknown."""

    value: int
    min_range: float = 0.0
    max_range: float = 0.0
    step_size: float = 0.0


@dataclass(frozen=True, slots=True)
class Tick:
    """An edge of a digital interrupt: the level after it, at `time` (nanoseconds of a monotonic clock)."""

    pin_name: str
    time: int
    high: bool


class Board(Component):
    """Pins, by the names the model documents."""

    API: ClassVar[API] = API("rdk", "component", "board")

    def identify(self, pin: str) -> str:
        """What `pin` is called in reservations: the same for every name of one pin. Not part of the wire's API."""
        return f"pin {pin} of {self.name}"

    async def set_gpio(self, pin: str, high: bool, *, extra: Extra = None) -> None:
        """Drive a pin high or low."""
        raise NotImplementedError

    async def get_gpio(self, pin: str, *, extra: Extra = None) -> bool:
        """True if the pin is high."""
        raise NotImplementedError

    async def pwm(self, pin: str, *, extra: Extra = None) -> float:
        """Duty cycle of a pin: 0 to 1."""
        raise NotImplementedError

    async def set_pwm(self, pin: str, duty_cycle_pct: float, *, extra: Extra = None) -> None:
        """Set the duty cycle of a pin: 0 (always low) to 1 (always high)."""
        raise NotImplementedError

    async def pwm_frequency(self, pin: str, *, extra: Extra = None) -> int:
        """PWM frequency of a pin (Hz)."""
        raise NotImplementedError

    async def set_pwm_frequency(self, pin: str, frequency_hz: int, *, extra: Extra = None) -> None:
        """Set the PWM frequency of a pin (Hz); 0 means the board's default."""
        raise NotImplementedError

    async def read_analog_reader(self, analog_reader_name: str, *, extra: Extra = None) -> AnalogReading:
        """Read a configured analog input."""
        raise NotImplementedError

    async def write_analog(self, pin: str, value: int, *, extra: Extra = None) -> None:
        """Set an analog output to a raw value, whose range the model documents."""
        raise NotImplementedError

    async def get_digital_interrupt_value(self, digital_interrupt_name: str, *, extra: Extra = None) -> int:
        """Edges that a configured interrupt has counted."""
        raise NotImplementedError

    def stream_ticks(self, pin_names: Sequence[str], *, extra: Extra = None) -> AsyncGenerator[Tick, None]:
        """Yield the edges of configured interrupts as they come, without end."""
        raise NotImplementedError

    async def set_power_mode(
        self, power_mode: PowerMode, duration: timedelta | None = None, *, extra: Extra = None
    ) -> None:
        """Save power, for `duration` or until told otherwise."""
        raise NotImplementedError
