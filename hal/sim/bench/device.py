"""The base class of all devices on the simulated bench."""

from __future__ import annotations

from typing import ClassVar


class Device:
    """A simulated device with a name, which draws current while it is on the bench."""

    kind: ClassVar[str]

    def __init__(self, name: str) -> None:
        self.name = name

    def current(self, t: float) -> float:
        """Return the current drawn from the bench's supply at `t`, in amperes."""
        return 0.0

    def open(self, t: float) -> None:
        """Connect to pins and shafts when the device is put on the bench at `t`."""

    def close(self, t: float) -> None:
        """Disconnect from everything when the device is taken from the bench at `t`."""
