"""A simulated world state store, one object of which moves."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from engine import Extra, TransformChange, TransformChangeType, WorldStateStore, model
from engine.geometry import SuppliedFrame
from models.fake.common.simulated import SimulatedResource
from schema import (
    WORLD,
    Capsule,
    ErrorKind,
    Geometry,
    MachineError,
    Pose,
    PoseInFrame,
    RectangularPrism,
    Sphere,
    Vector3,
)

PERIOD_S: Final = 1.0  # between the changes of the object that moves
LAP_S: Final = 20.0
RADIUS_MM: Final = 500.0
MOVING: Final = "ball"
SHAPES: Final = {
    "box": Geometry(box=RectangularPrism(Vector3(100.0, 100.0, 100.0)), label="box"),
    "capsule": Geometry(capsule=Capsule(50.0, 200.0), label="capsule"),
    MOVING: Geometry(sphere=Sphere(50.0), label=MOVING),
}
MOVED: Final = ("pose_in_observer_frame.pose.x", "pose_in_observer_frame.pose.y")


@model("rdk:builtin:fake")
class FakeWorldStateStore(SimulatedResource, WorldStateStore):
    """Has a box and a capsule, and a ball that moves around the origin once in 20 s. UUIDs are the names."""

    def _object(self, name: str, now: float) -> SuppliedFrame:
        angle = 2 * math.pi * (now % LAP_S) / LAP_S
        poses = {
            "box": Pose(x=1000.0),
            "capsule": Pose(x=-1000.0),
            MOVING: Pose(RADIUS_MM * math.cos(angle), RADIUS_MM * math.sin(angle)),
        }
        return SuppliedFrame(name, PoseInFrame(WORLD, poses[name]), SHAPES[name], name.encode(), {"simulated": True})

    async def list_uuids(self, *, extra: Extra = None) -> Sequence[bytes]:
        """Return the names of the objects."""
        await self.access()
        return [name.encode() for name in SHAPES]

    async def get_transform(self, uuid: bytes = MOVING.encode(), *, extra: Extra = None) -> SuppliedFrame:
        """Return an object where it is now."""
        now = await self.access()
        name = uuid.decode(errors="replace")
        if name not in SHAPES:
            raise MachineError(
                f"{self.name} has no object {name[:60]!r}", kind=ErrorKind.NOT_FOUND, remedy="list them with ListUUIDs"
            )
        return self._object(name, now)

    async def stream_transform_changes(self, *, extra: Extra = None) -> AsyncGenerator[TransformChange, None]:
        """Yield all objects as added, then the ball once a second."""
        now = await self.access()
        for name in SHAPES:
            yield TransformChange(TransformChangeType.ADDED, self._object(name, now), ())
        while True:
            now += PERIOD_S
            await self.world.sleep_until(now)
            yield TransformChange(TransformChangeType.UPDATED, self._object(MOVING, now), MOVED)
