"""Base of the simulated models: access to the simulated world and injected faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from engine import Resource
from models.common.motion import check_finite
from schema import ErrorKind, MachineError


class SimulatedResource(Resource):
    """A resource whose device is simulated."""

    async def access(self) -> float:
        """Execute a checkpoint and injected faults before an access to the device; return the current time."""
        await self.world.faults.strike(self.name.short)
        return self.world.now()

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the command."""
        await self.access()
        return dict(command)


def finite_values(what: str, values: Iterable[float], count: int) -> list[float]:
    """Return the values as a list. INVALID if they are not `count` finite numbers."""
    numbers = list(values)
    check_finite(what, *numbers)
    if len(numbers) != count:
        raise MachineError(f"{what}: {len(numbers)} values for {count} axes", kind=ErrorKind.INVALID)
    return numbers
