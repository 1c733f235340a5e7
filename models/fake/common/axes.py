"""Base of the simulated models that move axes: servo, gantry, gripper and arm."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from engine import Extra, Started
from hal.sim import SimAxes
from models.common.motion import ExclusiveMotion
from models.fake.common.simulated import SimulatedResource
from schema import ErrorKind, MachineError


class MovingAxes(SimulatedResource):
    """Moves simulated axes, one motion at a time. `run` of a subclass calls `simulate`."""

    motion: ExclusiveMotion
    axes: SimAxes

    async def simulate(self, kind: str, start: Sequence[float], task_status: Started) -> None:
        """Add the axes to the simulated world, at the positions `start`, until cancelled. `kind` is displayed."""
        self.motion = ExclusiveMotion()
        self.axes = SimAxes(self.name.short, kind, start)
        with self.world.holding(self.axes):
            task_status.started()
            await trio.sleep_forever()

    async def halt(self) -> None:
        """Stop every axis at its current position."""
        self.axes.halt(self.world.now())

    async def positions(self) -> list[float]:
        """Access the device and return the position of each axis."""
        return self.axes.values(await self.access())

    async def move_axes(self, targets: Sequence[float], speeds: Sequence[float], *, together: bool = False) -> None:
        """Access the device, end its current motion, and move each axis to its target at its speed (per second).

        With `together` the axes are slowed down so that all arrive at the same time. Returns when the last one arrives.
        CANCELLED if a newer command replaces this one.
        """
        await self.access()
        async with self.motion.begin(self.halt):
            send = self.axes.send_together if together else self.axes.send
            await self.world.sleep_until(send(targets, speeds, self.world.now()))

    def check_range(self, problem: str, value: float, low: float, high: float) -> None:
        """Raise INVALID with the sentence `problem` unless `value` is from `low` to `high`."""
        if not low <= value <= high:
            raise MachineError(f"{self.name}: {problem}", kind=ErrorKind.INVALID, remedy=f"use {low:g} to {high:g}")

    async def stop(self, *, extra: Extra = None) -> None:
        """End the current motion and hold every axis at its current position."""
        await self.access()
        await self.motion.supersede()
        await self.halt()

    async def is_moving(self) -> bool:
        """Return whether an axis is moving."""
        return self.axes.moving(await self.access())
