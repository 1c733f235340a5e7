"""What the models on the simulated bench share: a place on it and injected faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runtime.builtin.motion import finite
from runtime.resource import Resource
from schema.errors import ErrorKind, MachineError


class OnBench(Resource):
    """A resource whose device is simulated."""

    async def access(self) -> float:
        """A checkpoint before each access to the device, where injected faults strike; returns the time."""
        await self.world.faults.strike(self.name.short)
        return self.world.now()

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """The command itself."""
        await self.access()
        return dict(command)


def one_each(what: str, values: Iterable[float], count: int) -> list[float]:
    """The values as a list of `count` finite numbers, or an INVALID error."""
    numbers = list(values)
    finite(what, *numbers)
    if len(numbers) != count:
        raise MachineError(f"{len(numbers)} values of {what} for {count} axes", kind=ErrorKind.INVALID)
    return numbers
