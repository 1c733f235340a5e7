"""Controls that a person operates: gamepads, joysticks, panels of buttons.

Codes are those of the Linux input subsystem (linux/input-event-codes.h) in all families: 0x130 is the south button,
absolute axis 0 is the left stick's x. A report contains all changes of one moment, and only the changes. If the device
vanishes, the iteration raises HalError (gone).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from schema import ControlsIdentity as ControlsIdentity


@dataclass(frozen=True, slots=True)
class AxisRange:
    """The values of an axis: minimum, maximum, and the distance from the centre that still counts as rest."""

    minimum: int
    maximum: int
    flat: int = 0


@dataclass(frozen=True, slots=True)
class ControlChange:
    """A new value of a key (0 released, 1 pressed, 2 still held) or of an axis (within its range)."""

    key: bool
    code: int
    value: int


@dataclass(frozen=True, slots=True)
class ControlReport:
    """The changes of one moment. `time` is in seconds since the epoch."""

    time: float
    changes: tuple[ControlChange, ...]


class Controls(Protocol):
    """An open device, for one reader."""

    @property
    def identity(self) -> ControlsIdentity:
        """The complete identity of the device."""

    @property
    def axes(self) -> Mapping[int, AxisRange]:
        """The axes by code."""

    @property
    def keys(self) -> frozenset[int]:
        """The codes of the keys."""

    def state(self) -> tuple[ControlChange, ...]:
        """Return the current values of all keys and axes."""

    def __aiter__(self) -> AsyncIterator[ControlReport]:
        """Iterate over the reports; ends only by cancellation or HalError.

        After an overflow, the next report contains the differences to what was reported before.
        """
