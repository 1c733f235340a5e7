"""Encoder: measures the position of a shaft."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from engine.resource import Component, Extra
from schema import API


class PositionType(IntEnum):
    """Unit of an encoder's position."""

    UNSPECIFIED = 0
    TICKS_COUNT = 1  # ticks since the last reset
    ANGLE_DEGREES = 2  # degrees


@dataclass(frozen=True, slots=True)
class EncoderPosition:
    """A position and its unit."""

    value: float
    position_type: PositionType


@dataclass(frozen=True, slots=True)
class EncoderProperties:
    """Units in which an encoder can report its position."""

    ticks_count_supported: bool
    angle_degrees_supported: bool


class Encoder(Component):
    """A sensor for the rotation of a shaft."""

    API: ClassVar[API] = API("rdk", "component", "encoder")

    async def get_position(self, position_type: PositionType | None = None, *, extra: Extra = None) -> EncoderPosition:
        """Return the position in a unit; None and UNSPECIFIED select the encoder's own unit."""
        raise NotImplementedError

    async def reset_position(self, *, extra: Extra = None) -> None:
        """Define the current position as zero."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> EncoderProperties:
        """Return the units in which this encoder can report its position."""
        raise NotImplementedError
