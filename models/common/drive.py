"""The interface to the part of a motor's driver that controls position, and checks of arguments."""

from __future__ import annotations

from typing import Final, Protocol

from models.common.motion import check_finite
from schema import ErrorKind, MachineError

MIN_RPM: Final = 0.1  # slower speeds are rejected as mistakes, as clients of the API expect


class Drive(Protocol):
    """Control of a motor in revolutions and rpm of its user. A new command cancels the current one (CANCELLED)."""

    @property
    def top_rpm(self) -> float:
        """The highest speed (rpm), to which faster ones are limited; 0 if unknown."""

    @property
    def busy(self) -> bool:
        """Whether a command is in progress."""

    async def run(self) -> None:
        """Run until cancelled."""

    async def stop(self) -> None:
        """Cancel the current command and switch off the power."""

    async def set_power(self, power: float) -> None:
        """Apply power until the next command."""

    async def set_rpm(self, rpm: float) -> None:
        """Keep a speed until the next command."""

    async def go_for(self, rpm: float, revolutions: float) -> None:
        """Turn by `revolutions` (signed) at `rpm` (above 0), then stop."""

    async def go_to(self, rpm: float, position: float) -> None:
        """Turn to `position` at `rpm` (above 0), then stop."""

    async def position(self) -> float:
        """Return the position in revolutions from zero."""

    async def reset_zero(self, offset: float) -> None:
        """Define the current position as `-offset`."""


def check_rpm(name: str, rpm: float) -> None:
    """Raise INVALID if a speed is not finite or nearly 0."""
    check_finite("the speed", rpm)
    if abs(rpm) < MIN_RPM:
        raise MachineError(
            f"{name}: a speed of {rpm:g} rpm is nearly 0", kind=ErrorKind.INVALID, remedy="call stop instead"
        )


def check_revolutions(name: str, revolutions: float) -> None:
    """Raise INVALID if a number of revolutions is not finite or 0."""
    check_finite("the number of revolutions", revolutions)
    if revolutions == 0:
        raise MachineError(f"{name} cannot turn by 0 revolutions", kind=ErrorKind.INVALID, remedy="call stop instead")
