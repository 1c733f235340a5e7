"""What a motor's driver asks of the part that knows its position, by encoder or by time; and checks of arguments."""

from __future__ import annotations

from typing import Final, Protocol

from runtime.builtin.motion import finite
from schema.errors import ErrorKind, MachineError

MIN_RPM: Final = 0.1  # slower than this is refused as a mistake, as clients of the API have come to expect


class Drive(Protocol):
    """Revolutions and rpm as the motor's user sees them. The newest command wins; an overtaken one is CANCELLED."""

    @property
    def top_rpm(self) -> float:
        """The speed that faster ones are limited to; 0 if unknown."""

    @property
    def busy(self) -> bool:
        """Whether it works towards something."""

    async def run(self) -> None:
        """Live until cancelled."""

    async def stop(self) -> None:
        """Give up what it works towards, and take the power away."""

    async def set_power(self, power: float) -> None:
        """Apply power until told otherwise."""

    async def set_rpm(self, rpm: float) -> None:
        """Keep a speed until told otherwise."""

    async def go_for(self, rpm: float, revolutions: float) -> None:
        """Turn by `revolutions` (signed) at `rpm` (above 0), then rest."""

    async def go_to(self, rpm: float, position: float) -> None:
        """Turn to `position` at `rpm` (above 0), then rest."""

    async def position(self) -> float:
        """Revolutions from zero."""

    async def reset_zero(self, offset: float) -> None:
        """Call the present position `-offset`."""


def check_rpm(name: str, rpm: float) -> None:
    """Refuse a speed that is no speed: INVALID."""
    finite("the speed", rpm)
    if abs(rpm) < MIN_RPM:
        raise MachineError(
            f"{name}: a speed of {rpm:g} rpm is nearly 0", kind=ErrorKind.INVALID, remedy="call stop instead"
        )


def check_way(name: str, revolutions: float) -> None:
    """Refuse a way that is none: INVALID."""
    finite("the number of revolutions", revolutions)
    if revolutions == 0:
        raise MachineError(f"{name}: 0 revolutions", kind=ErrorKind.INVALID, remedy="call stop instead")
