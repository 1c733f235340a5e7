"""What everything on the simulated bench has in common."""

from __future__ import annotations

from typing import ClassVar


class Device:
    """A simulated thing with a name, that draws current while it is on the bench."""

    kind: ClassVar[str]

    def __init__(self, name: str) -> None:
        self.name = name

    def current(self, t: float) -> float:
        """Amperes drawn from the bench's supply at `t`."""
        return 0.0

    def open(self, t: float) -> None:
        """It is put on the bench at `t`: take hold of pins and shafts."""

    def close(self, t: float) -> None:
        """It is taken from the bench at `t`: let go of everything outside itself."""
