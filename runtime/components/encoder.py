"""Encoder: where a shaft is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from runtime.resource import Component, Extra
from schema.names import API


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
    """In which units an encoder can tell its position."""

    ticks_count_supported: bool
    angle_degrees_supported: bool


class Encoder(Component):
    """Something that measures rotation."""

    API: ClassVar[API] = API("rdk", "component", "encoder")

    async def get_position(self, position_type: PositionType | None = None, *, extra: Extra = None) -> EncoderPosition:
        """Position in the unit asked for; None and UNSPECIFIED mean the encoder's own."""
        raise NotImplementedError

    async def reset_position(self, *, extra: Extra = None) -> None:
        """Call the present position zero."""
        raise NotImplementedError

    async def get_properties(self, *, extra: Extra = None) -> EncoderProperties:
        """In which units this encoder can tell its position."""
        raise NotImplementedError
