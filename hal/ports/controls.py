"""Controls: a gamepad, a joystick, a panel of buttons; what a person operates.

Codes are those of the Linux input subsystem (linux/input-event-codes.h), whatever the family: 0x130 is the south
button, absolute axis 0 is the left stick's x. Reports come in batches, one for each moment; a batch says only what
changed. A device that vanishes raises HalError (gone) from the iteration.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ControlsIdentity:
    """Which device is meant: by path, or by what it says of itself; all empty for the first gamepad.

    `name` is what the device calls itself, `serial` what makes it unique (a Bluetooth address, mostly).
    """

    path: str = ""
    name: str = ""
    vendor: int | None = None
    product: int | None = None
    serial: str = ""

    def __str__(self) -> str:
        if self.path:
            return self.path
        ids = [f"{number:04x}" if number is not None else "any" for number in (self.vendor, self.product)]
        words = [repr(self.name)] if self.name else []
        words += [":".join(ids)] if (self.vendor, self.product) != (None, None) else []
        words += [f"serial {self.serial}"] if self.serial else []
        return " ".join(words) or "any gamepad"

    def fits(self, found: ControlsIdentity) -> bool:
        """Whether a device that was found, with all its particulars, is meant; the path is not looked at."""
        return (
            self.name in ("", found.name)
            and self.vendor in (None, found.vendor)
            and self.product in (None, found.product)
            and self.serial in ("", found.serial)
        )


@dataclass(frozen=True, slots=True)
class AxisRange:
    """What an axis reports: least and greatest value, and how far from the centre still means rest."""

    minimum: int
    maximum: int
    flat: int = 0


@dataclass(frozen=True, slots=True)
class ControlChange:
    """A key (0 released, 1 pressed, 2 still held) or an axis (in the numbers of its range) has another value."""

    key: bool
    code: int
    value: int


@dataclass(frozen=True, slots=True)
class ControlReport:
    """What changed at one moment. `time` is in seconds since the epoch."""

    time: float
    changes: tuple[ControlChange, ...]


class Controls(Protocol):
    """One open device. One reader."""

    @property
    def identity(self) -> ControlsIdentity:
        """The device that was found, complete."""

    @property
    def axes(self) -> Mapping[int, AxisRange]:
        """Its axes by code."""

    @property
    def keys(self) -> frozenset[int]:
        """Codes of its keys."""

    def state(self) -> tuple[ControlChange, ...]:
        """Every key and axis as it is now."""

    def __aiter__(self) -> AsyncIterator[ControlReport]:
        """Wait for and return the reports; ends only by cancellation or HalError.

        After an overflow the next report says what is different from what was reported before.
        """
