"""World state store: objects in space, for programs that draw or avoid them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from engine.geometry.supplied import SuppliedFrame
from engine.resource import Extra, Service
from schema import API


class TransformChangeType(IntEnum):
    """What has happened to an object; the numbers are those of the API."""

    UNSPECIFIED = 0
    ADDED = 1
    REMOVED = 2
    UPDATED = 3


@dataclass(frozen=True, slots=True)
class TransformChange:
    """A change of an object. `updated_fields` are paths of fields, such as `pose_in_observer_frame.pose.x`."""

    change_type: TransformChangeType = TransformChangeType.UNSPECIFIED
    transform: SuppliedFrame | None = None
    updated_fields: Sequence[str] | None = None


class WorldStateStore(Service):
    """A service that knows objects: frames with shapes, each with a UUID."""

    API: ClassVar[API] = API("rdk", "service", "world_state_store")

    async def list_uuids(self, *, extra: Extra = None) -> Sequence[bytes]:
        """Return the UUIDs of all objects."""
        raise NotImplementedError

    async def get_transform(self, uuid: bytes, *, extra: Extra = None) -> SuppliedFrame:
        """Return an object. NOT_FOUND if there is none with this UUID."""
        raise NotImplementedError

    def stream_transform_changes(self, *, extra: Extra = None) -> AsyncGenerator[TransformChange, None]:
        """Yield changes as they happen, until closed."""
        raise NotImplementedError
