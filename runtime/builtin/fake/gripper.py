"""A simulated gripper with one sliding jaw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import trio

from catalogue.fake.gripper import FakeGripperConfig
from hal.sim.axes import SimAxes
from runtime.builtin.fake.bench import OnBench, one_each
from runtime.builtin.fake.sva import sliding
from runtime.builtin.motion import OneMotion
from runtime.components.gripper import Grabbed, Gripper, Holding
from runtime.components.kinematics import Kinematics
from runtime.resource import Attributes, Extra, Started
from schema.errors import ErrorKind, MachineError
from schema.geometry import Geometry, Pose, RectangularPrism, Vector3

SPEED: Final = 100.0  # mm per second
JAW: Final = ("jaw",)


class FakeGripper(OnBench, Gripper):
    """Its one joint is the opening in mm, 0 when closed. It holds something if `object_mm` lies between its jaws."""

    Config: ClassVar[type[Attributes]] = FakeGripperConfig

    async def run(self, *, task_status: Started) -> None:
        """On the bench while it runs."""
        self._motion = OneMotion()
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

    def _holds(self, t: float) -> bool:
        held: float = self.attributes.object_mm
        return held > 0 and abs(self._jaw.values(t)[0] - held) < 0.01

    async def open(self, *, extra: Extra = None) -> None:
        """Open fully."""
        await self._go(self.attributes.opening_mm)

    async def grab(self, *, extra: Extra = None) -> Grabbed:
        """Close on the object, or altogether if there is none."""
        await self._go(self.attributes.object_mm)
        return Grabbed(self._holds(self.world.now()))

    async def stop(self, *, extra: Extra = None) -> None:
        """Stay where it is."""
        await self.access()
        await self._motion.overtake()
        await self._halt()

    async def is_moving(self) -> bool:
        """True while the jaw glides."""
        return self._jaw.moving(await self.access())

    async def is_holding_something(self, *, extra: Extra = None) -> Holding:
        """Whether the jaws rest on the object."""
        return Holding(self._holds(await self.access()))

    async def get_current_inputs(self, *, extra: Extra = None) -> Sequence[float]:
        """The opening in mm."""
        return self._jaw.values(await self.access())

    async def go_to_inputs(self, values: Sequence[float], *, extra: Extra = None) -> None:
        """Go to an opening in mm."""
        (opening,) = one_each("the opening", values, 1)
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
        """One sliding joint."""
        await self.access()
        return sliding("gripper", JAW, [self.attributes.opening_mm])

    async def get_geometries(self, *, extra: Extra = None) -> list[Geometry]:
        """A box around the jaws."""
        await self.access()
        width = self.attributes.opening_mm + 20.0
        return [Geometry(Pose(z=50.0), box=RectangularPrism(Vector3(width, 40.0, 100.0)), label=self.name.short)]
