"""A simulated gripper with one sliding jaw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from engine import Attributes, Extra, Grabbed, Gripper, Holding, Kinematics, Started, model
from engine.geometry import sliding
from models.fake.common.axes import MovingAxes
from models.fake.common.simulated import finite_values
from models.fake.gripper.attributes import FakeGripperConfig
from schema import Geometry, Pose, RectangularPrism, Vector3

SPEED: Final = 100.0  # mm per second
JAW: Final = ("jaw",)


@model("rdk:builtin:fake")
class FakeGripper(MovingAxes, Gripper):
    """The only joint is the opening in mm, 0 when closed. It holds an object when it closes on `object_mm`."""

    Config: ClassVar[type[Attributes]] = FakeGripperConfig

    async def run(self, *, task_status: Started) -> None:
        """Add the gripper to the simulated world until cancelled."""
        await self.simulate("gripper", [self.attributes.opening_mm], task_status)

    async def _go(self, opening: float) -> None:
        await self.move_axes([opening], [SPEED])

    def _holds(self, time: float) -> bool:
        object_mm: float = self.attributes.object_mm
        return object_mm > 0 and abs(self.axes.values(time)[0] - object_mm) < 0.01

    async def open(self, *, extra: Extra = None) -> None:
        """Open fully."""
        await self._go(self.attributes.opening_mm)

    async def grab(self, *, extra: Extra = None) -> Grabbed:
        """Close on the object, or completely if there is none."""
        await self._go(self.attributes.object_mm)
        return Grabbed(self._holds(self.world.now()))

    async def is_holding_something(self, *, extra: Extra = None) -> Holding:
        """Return whether the jaws hold the object."""
        return Holding(self._holds(await self.access()))

    async def get_current_inputs(self, *, extra: Extra = None) -> Sequence[float]:
        """Return the opening in mm."""
        return await self.positions()

    async def go_to_inputs(self, values: Sequence[float], *, extra: Extra = None) -> None:
        """Move to an opening in mm. INVALID if it is out of reach."""
        (opening,) = finite_values("the opening", values, 1)
        problem = f"an opening of {opening:g} mm is out of reach"
        self.check_range(problem, opening, self.attributes.object_mm, self.attributes.opening_mm)
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
