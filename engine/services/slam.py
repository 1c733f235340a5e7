"""SLAM service: a map of the surroundings, and where the machine is in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from engine.resource import Service
from schema import API, Pose


class MappingMode(IntEnum):
    """Whether the map grows; the numbers are those of the API."""

    UNSPECIFIED = 0
    CREATE_NEW_MAP = 1
    LOCALIZE_ONLY = 2
    UPDATE_EXISTING_MAP = 3


class SlamSensorType(IntEnum):
    """The kind of a sensor."""

    UNSPECIFIED = 0
    CAMERA = 1
    MOVEMENT_SENSOR = 2


@dataclass(frozen=True, slots=True)
class SlamSensor:
    """A sensor that the service uses."""

    name: str = ""
    type: SlamSensorType = SlamSensorType.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class SlamProperties:
    """Where and how the service works."""

    cloud_slam: bool = False
    mapping_mode: MappingMode = MappingMode.UNSPECIFIED
    internal_state_file_type: str | None = None
    sensor_info: Sequence[SlamSensor] = ()


class Slam(Service):
    """A service that makes a map, and knows where the machine is in it."""

    API: ClassVar[API] = API("rdk", "service", "slam")

    async def get_position(self) -> Pose:
        """Return the pose in the map (mm)."""
        raise NotImplementedError

    def get_point_cloud_map(self, return_edited_map: bool = False) -> AsyncGenerator[bytes, None]:
        """Yield the map in pieces: a PCD file, x and y along the ground, in m."""
        raise NotImplementedError

    def get_internal_state(self) -> AsyncGenerator[bytes, None]:
        """Yield in pieces what the service needs to continue."""
        raise NotImplementedError

    async def get_properties(self) -> SlamProperties:
        """Return where and how the service works."""
        raise NotImplementedError
