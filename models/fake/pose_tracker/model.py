"""A simulated pose tracker that tracks simulated bases and one circling body."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from engine import Extra, PoseTracker, model
from hal.sim import SimBase
from models.fake.common.simulated import SimulatedResource
from schema import Pose, PoseInFrame

RADIUS: Final = 500.0  # mm
PERIOD: Final = 10.0  # seconds


@model("rdk:builtin:fake")
class FakePoseTracker(SimulatedResource, PoseTracker):
    """Tracks the simulated bases by name, and `body`, which circles the origin every ten seconds."""

    async def get_poses(self, body_names: Sequence[str] = (), *, extra: Extra = None) -> Mapping[str, PoseInFrame]:
        """Return the poses of the named bodies that exist; of all bodies without names."""
        now = await self.access()
        angle = 2 * math.pi * now / PERIOD
        poses = {"body": Pose(RADIUS * math.cos(angle), RADIUS * math.sin(angle), 0.0, theta=math.degrees(angle) % 360)}
        for device in self.world.devices():
            if isinstance(device, SimBase):
                place = device.place(now)
                poses[device.name] = Pose(place.x, place.y, 0.0, theta=place.heading)
        return {
            name: PoseInFrame("world", pose) for name, pose in poses.items() if not body_names or name in body_names
        }
