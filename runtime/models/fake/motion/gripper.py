"""A simulated gripper with one sliding jaw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import trio

from catalogue.fake.motion.gripper import FakeGripperConfig
from hal.sim.bench.axes import SimAxes
from runtime.engine.components.motion.gripper import Grabbed, Gripper, Holding
from runtime.engine.components.motion.kinematics import Kinematics
from runtime.engine.geometry.sva import sliding
from runtime.engine.resource import Attributes, Extra, Started
from runtime.models.fake.simulated import SimulatedResource, finite_values
from runtime.models.motion import ExclusiveMotion
from schema.errors import ErrorKind, MachineError
from schema.geometry import Geometry, Pose, RectangularPrism, Vector3

SPEED: Final = 100.0  # mm per second
JAW: Final = ("jaw",)


class FakeGripper(SimulatedResource, Gripper):
    """The only joint is the opening in mm, 0 when closed. It holds an object when it closes on `object_mm`."""

    Config: ClassVar[type[Attributes]] = FakeGripperConfig

    async def run(self, *, task_status: Started) -> None:
        """Add the gripper to the simulated world until cancelled."""
        self._motion = ExclusiveMotion()
        self._jaw = SimAxes(self.name.short, "gripper", [self.attributes.opening_mm])
        with self.world.holding(self._jaw):
            task_status.started()
            await trio.sleep_forever()

    async def _halt(self) -> None:
        self._jaw.halt(self.world.now())

    async def _go(self, opening: float) -> None:
        await self.access()
        async with self._motion.begin(self._halt):
            await self.world.sleep_until(self._jaw.send([opening], [SPEED], self.world.now()))

    def _holds(self, time: float) -> bool:
        object_mm: float = self.attributes.object_mm
        return object_mm > 0 and abs(self._jaw.values(time)[0] - object_mm) < 0.01

    async def open(self, *, extra: Extra = None) -> None:
        """Open fully."""
        await self._go(self.attributes.opening_mm)

    async def grab(self, *, extra: Extra = None) -> Grabbed:
        """Close on the object, or completely if there is none."""
        await self._go(self.attributes.object_mm)
        return Grabbed(self._holds(self.world.now()))

    async def stop(self, *, extra: Extra = None) -> None:
        """Stop the jaw at its current position."""
        await self.access()
        await self._motion.supersede()
        await self._halt()

    async def is_moving(self) -> bool:
        """Return whether the jaw is moving."""
        return self._jaw.moving(await self.access())

    async def is_holding_something(self, *, extra: Extra = None) -> Holding:
        """Return whether the jaws hold the object."""
        return Holding(self._holds(await self.access()))

    async def get_current_inputs(self, *, extra: Extra = None) -> Sequence[float]:
        """Return the opening in mm."""
        return self._jaw.values(await self.access())

    async def go_to_inputs(self, values: Sequence[float], *, extra: Extra = None) -> None:
        """Move to an opening in mm. INVALID if it is out of reach."""
        (opening,) = finite_values("the opening", values, 1)
        if not self.attributes.object_mm <= opening <= self.attributes.opening_mm:
            raise MachineError(
                f"{self.name}: an opening of {opening:g} mm is out of reach",
                kind=ErrorKind.INVALID,
                remedy=f"use {self.attributes.object_mm:g} to {self.attributes.opening_mm:g}",
            )
        await self._go(opening)

    async def get_kinematics(
        self, include_collision_meshes: bool = False, include_visual_meshes: bool = False, *, extra: Extra = None
    ) -> Kinematics:
        """Return a chain with one sliding joint."""
        await self.access()
        return sliding("gripper", JAW, [self.attributes.opening_mm])

    async def get_geometries(self, *, extra: Extra = None) -> list[Geometry]:
        """Return a box around the jaws."""
        await self.access()
        width = self.attributes.opening_mm + 20.0
        return [Geometry(Pose(z=50.0), box=RectangularPrism(Vector3(width, 40.0, 100.0)), label=self.name.short)]
