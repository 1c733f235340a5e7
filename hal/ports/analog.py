"""Analog channels: voltages of converters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Range:
    """The range of a converter: volts at count 0, volts at the last count, and volts of one count."""

    low: float
    high: float
    step: float


class AnalogInput(Protocol):
    """A channel of an analog-to-digital converter."""

    @property
    def range(self) -> Range:
        """The range of voltages, to convert counts."""

    def read(self) -> int:
        """Return the current voltage in counts from 0, clipped to the range."""
