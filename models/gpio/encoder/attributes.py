"""Attributes of an encoder on pins. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from schema import Attributes


class IncrementalPins(msgspec.Struct, kw_only=True, frozen=True):
    """Digital interrupts of the board for the two tracks."""

    a: str  # track A, a quarter of a period ahead of B while turning forward
    b: str  # track B

    def __post_init__(self) -> None:
        if self.a == self.b:
            raise ValueError(f"a and b are both {self.a}")


class SinglePins(msgspec.Struct, kw_only=True, frozen=True):
    """Digital interrupt of the board for the track."""

    i: str  # the only track


class EncoderConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of all encoders."""

    board: str  # name of the board
    ticks_per_rotation: Annotated[int, msgspec.Meta(ge=0)] = 0  # ticks per revolution; 0: positions in ticks only

    def requires(self) -> list[str]:
        """Require the board."""
        return [self.board]


class IncrementalConfig(EncoderConfig, kw_only=True, frozen=True):
    """Attributes of an incremental encoder. It counts every edge of both tracks: 4 ticks per line of the disc."""

    pins: IncrementalPins  # digital interrupts of that board


class SingleConfig(EncoderConfig, kw_only=True, frozen=True):
    """Attributes of an encoder with one track. It counts rising edges, in the direction of the motor that names it."""

    pins: SinglePins  # digital interrupt of that board
