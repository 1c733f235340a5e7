"""Gantry: linear axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from runtime.components.kinematics import Kinematics
from runtime.resource import Actuator, Component, Extra
from schema.names import API


class Gantry(Actuator, Component):
    """Axes that slide; lists have one entry for each axis."""

    API: ClassVar[API] = API("rdk", "component", "gantry")

    async def get_position(self, *, extra: Extra = None) -> Sequence[float]:
        """Position of each axis (mm)."""
        raise NotImplementedError

    async def move_to_position(
        self, positions_mm: Sequence[float], speeds_mm_per_sec: Sequence[float] = (), *, extra: Extra = None
    ) -> None:
        """Move each axis to its position (mm) at its speed (mm/s). Returns when there; cancelling stops it."""
        raise NotImplementedError

    async def home(self, *, extra: Extra = None) -> bool:
        """Find the zero of every axis; True when it is known. Returns when done; cancelling stops it."""
        raise NotImplementedError

    async def get_lengths(self, *, extra: Extra = None) -> Sequence[float]:
        """Length of each axis (mm)."""
        raise NotImplementedError

    async def get_kinematics(
        self, include_collision_meshes: bool = False, include_visual_meshes: bool = False, *, extra: Extra = None
    ) -> Kinematics:
        """Links, joints and limits; meshes carry only their paths unless asked for."""
        raise NotImplementedError
