"""Gripper: opens and holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from runtime.components.kinematics import Kinematics
from runtime.resource import Actuator, Component, Extra
from schema.names import API


@dataclass(frozen=True, slots=True)
class Grabbed:
    """Whether something was grabbed; what `extra` means is the driver's."""

    success: bool
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Holding:
    """Whether something is held; what `meta` means is the driver's."""

    is_holding_something: bool
    meta: Mapping[str, Any] | None = None


class Gripper(Actuator, Component):
    """Something that holds things."""

    API: ClassVar[API] = API("rdk", "component", "gripper")

    async def open(self, *, extra: Extra = None) -> None:
        """Open fully. Returns when open; cancelling stops it."""
        raise NotImplementedError

    async def grab(self, *, extra: Extra = None) -> Grabbed:
        """Close until something is held or it is closed. Cancelling stops it."""
        raise NotImplementedError

    async def is_holding_something(self, *, extra: Extra = None) -> Holding:
        """Whether something is held now."""
        raise NotImplementedError

    async def get_current_inputs(self, *, extra: Extra = None) -> Sequence[float]:
        """Positions of the gripper's joints, in the units of its kinematics."""
        raise NotImplementedError

    async def go_to_inputs(self, values: Sequence[float], *, extra: Extra = None) -> None:
        """Move the gripper's joints, in the units of its kinematics. Returns when there; cancelling stops it."""
        raise NotImplementedError

    async def get_kinematics(
        self, include_collision_meshes: bool = False, include_visual_meshes: bool = False, *, extra: Extra = None
    ) -> Kinematics:
        """Links, joints and limits; meshes carry only their paths unless asked for."""
        raise NotImplementedError
