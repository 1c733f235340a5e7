"""Gantry: linear axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from engine.components.motion.kinematics import Kinematics
from engine.resource import Actuator, Component, Extra
from schema import API


class Gantry(Actuator, Component):
    """A gantry; lists have one entry for each axis."""

    API: ClassVar[API] = API("rdk", "component", "gantry")

    async def get_position(self, *, extra: Extra = None) -> Sequence[float]:
        """Return the position of each axis (mm)."""
        raise NotImplementedError

    async def move_to_position(
        self, positions_mm: Sequence[float], speeds_mm_per_sec: Sequence[float] = (), *, extra: Extra = None
    ) -> None:
        """Move each axis to its position (mm) at its speed (mm/s). Returns on arrival; cancel to stop."""
        raise NotImplementedError

    async def home(self, *, extra: Extra = None) -> bool:
        """Find the zero position of every axis; returns True on success. Cancel to stop."""
        raise NotImplementedError

    async def get_lengths(self, *, extra: Extra = None) -> Sequence[float]:
        """Return the length of each axis (mm)."""
        raise NotImplementedError

    async def get_kinematics(
        self, include_collision_meshes: bool = False, include_visual_meshes: bool = False, *, extra: Extra = None
    ) -> Kinematics:
        """Return links, joints and limits; meshes carry only their paths unless requested."""
        raise NotImplementedError
