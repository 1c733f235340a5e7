"""Pulse-width modulation: a square wave with a variable duty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PwmChannel:
    """A channel of a hardware PWM chip: the chip by name (`pwmchip0`) or by its device's name, and the channel."""

    chip: str
    channel: int

    def __str__(self) -> str:
        return f"{self.chip} channel {self.channel}"


class PwmOutput(Protocol):
    """A line that carries a square wave.

    A duty of 0 or 1 is a constant level. Closing the owner leaves the line low.
    """

    def wave(self) -> tuple[float, float]:
        """Return the current duty (0 to 1) and frequency in Hz."""

    def set_wave(self, duty: float, frequency: float) -> None:
        """Set duty (0 to 1) and frequency (Hz, above 0) together; HalError (unsupported) outside the range."""
