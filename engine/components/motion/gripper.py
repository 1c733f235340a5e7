"""Gripper: opens, grabs and holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from engine.components.motion.kinematics import Kinematics
from engine.resource import Actuator, Component, Extra
from schema import API


@dataclass(frozen=True, slots=True)
class Grabbed:
    """Whether something was grabbed; the driver defines `extra`."""

    success: bool
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Holding:
    """Whether something is held; the driver defines `meta`."""

    is_holding_something: bool
    meta: Mapping[str, Any] | None = None


class Gripper(Actuator, Component):
    """A device that grabs and holds objects."""

    API: ClassVar[API] = API("rdk", "component", "gripper")

    async def open(self, *, extra: Extra = None) -> None:
        """Open fully. Returns when open; cancel to stop."""
        raise NotImplementedError

    async def grab(self, *, extra: Extra = None) -> Grabbed:
        """Close until an object is held or the gripper is fully closed. Cancel to stop."""
        raise NotImplementedError

    async def is_holding_something(self, *, extra: Extra = None) -> Holding:
        """Return whether something is held now."""
        raise NotImplementedError

    async def get_current_inputs(self, *, extra: Extra = None) -> Sequence[float]:
        """Return the positions of the gripper's joints, in the units of its kinematics."""
        raise NotImplementedError

    async def go_to_inputs(self, values: Sequence[float], *, extra: Extra = None) -> None:
        """Move the gripper's joints, in the units of its kinematics. Returns on arrival; cancel to stop."""
        raise NotImplementedError

    async def get_kinematics(
        self, include_collision_meshes: bool = False, include_visual_meshes: bool = False, *, extra: Extra = None
    ) -> Kinematics:
        """Return links, joints and limits; meshes carry only their paths unless requested."""
        raise NotImplementedError
