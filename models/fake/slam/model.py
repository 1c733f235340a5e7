"""A simulated SLAM service with the map of a room."""

from __future__ import annotations

import math
import struct
from collections.abc import AsyncGenerator
from typing import Final

from engine import MappingMode, Slam, SlamProperties, SlamSensor, SlamSensorType, model
from models.fake.common.simulated import SimulatedResource
from schema import Pose

ROOM_M: Final = 4.0  # length of each wall
STEP_M: Final = 0.1  # between the points of a wall
LAP_S: Final = 60.0  # the machine drives around the middle of the room
RADIUS_MM: Final = 1000.0
PIECE: Final = 4096  # bytes
CERTAIN: Final = 100  # confidence of a point, which maps keep in the blue part of its color


def room() -> bytes:
    """Return the PCD file of the walls."""
    half, count = ROOM_M / 2, round(ROOM_M / STEP_M)
    along = [STEP_M * number - half for number in range(count)]
    points = [place for way in along for place in ((way, -half), (way, half), (-half, way), (half, way))]
    body = b"".join(struct.pack("<fffI", x, y, 0.0, CERTAIN) for x, y in points)
    return (
        "VERSION .7\nFIELDS x y z rgb\nSIZE 4 4 4 4\nTYPE F F F I\nCOUNT 1 1 1 1\n"
        f"WIDTH {len(points)}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {len(points)}\nDATA binary\n"
    ).encode() + body


@model("rdk:builtin:fake")
class FakeSlam(SimulatedResource, Slam):
    """Is in a circle around the middle of a square room, once around in a minute."""

    async def get_position(self) -> Pose:
        """Return the pose in the room (mm)."""
        now = await self.access()
        angle = 2 * math.pi * (now % LAP_S) / LAP_S
        return Pose(RADIUS_MM * math.cos(angle), RADIUS_MM * math.sin(angle), theta=math.degrees(angle))

    async def get_point_cloud_map(self, return_edited_map: bool = False) -> AsyncGenerator[bytes, None]:
        """Yield the walls of the room."""
        await self.access()
        for piece in _pieces(room()):
            yield piece

    async def get_internal_state(self) -> AsyncGenerator[bytes, None]:
        """Yield a state that says nothing."""
        await self.access()
        yield b"simulated"

    async def get_properties(self) -> SlamProperties:
        """Return that the map does not change."""
        await self.access()
        sensors = (SlamSensor("simulated", SlamSensorType.CAMERA),)
        return SlamProperties(False, MappingMode.LOCALIZE_ONLY, ".txt", sensors)


def _pieces(data: bytes) -> list[bytes]:
    return [data[start : start + PIECE] for start in range(0, len(data), PIECE)]
