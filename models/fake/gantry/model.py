"""A simulated gantry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from engine import Attributes, Extra, Gantry, Kinematics, Started, model
from engine.geometry import sliding
from models.fake.common.axes import MovingAxes
from models.fake.common.simulated import finite_values
from models.fake.gantry.attributes import FakeGantryConfig
from schema import ErrorKind, MachineError

SPEED: Final = 100.0  # mm per second, unless the call specifies speeds


@model("rdk:builtin:fake")
class FakeGantry(MovingAxes, Gantry):
    """Each axis moves independently from 0 to its length."""

    Config: ClassVar[type[Attributes]] = FakeGantryConfig

    async def run(self, *, task_status: Started) -> None:
        """Add the gantry to the simulated world until cancelled."""
        self._lengths: list[float] = self.attributes.lengths
        await self.simulate("gantry", [0.0] * len(self._lengths), task_status)

    async def get_position(self, *, extra: Extra = None) -> Sequence[float]:
        """Return the position of each axis in mm."""
        return await self.positions()

    async def move_to_position(
        self, positions_mm: Sequence[float], speeds_mm_per_sec: Sequence[float] = (), *, extra: Extra = None
    ) -> None:
        """Move to a position, by default at 100 mm/s. INVALID for positions outside the axes."""
        count = len(self._lengths)
        positions = finite_values("positions", positions_mm, count)
        speeds = finite_values("speeds", speeds_mm_per_sec, count) if speeds_mm_per_sec else [SPEED] * count
        for position, length in zip(positions, self._lengths, strict=True):
            self.check_range(f"{position:g} mm is out of reach", position, 0.0, length)
        if min(speeds) <= 0:
            raise MachineError(
                f"{self.name}: {min(speeds):g} mm/s is not a valid speed",
                kind=ErrorKind.INVALID,
                remedy="use more than 0",
            )
        await self.move_axes(positions, speeds)

    async def home(self, *, extra: Extra = None) -> bool:
        """Move every axis to 0."""
        await self.move_to_position([0.0] * len(self._lengths))
        return True

    async def get_lengths(self, *, extra: Extra = None) -> Sequence[float]:
        """Return the configured lengths in mm."""
        await self.access()
        return list(self._lengths)

    async def get_kinematics(
        self, include_collision_meshes: bool = False, include_visual_meshes: bool = False, *, extra: Extra = None
    ) -> Kinematics:
        """Return a chain with a sliding joint for each axis: x, y, z."""
        await self.access()
        return sliding("gantry", ("x", "y", "z")[: len(self._lengths)], self._lengths)
