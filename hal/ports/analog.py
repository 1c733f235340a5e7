"""Analog channels: a voltage as a converter sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Range:
    """What a converter spans: volts at count 0, volts at the last count, and volts of one count."""

    low: float
    high: float
    step: float


class AnalogInput(Protocol):
    """A channel of an analog-to-digital converter."""

    @property
    def range(self) -> Range:
        """What the counts mean."""

    def read(self) -> int:
        """The voltage now, in counts from 0; clipped to the range."""


class AnalogOutput(Protocol):
    """A channel of a digital-to-analog converter."""

    def write(self, value: int) -> None:
        """Hold a voltage, in counts from 0; ValueError beyond the range."""
