"""Pose tracker: measures the poses of visible bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from engine.resource import Component, Extra
from schema import API, PoseInFrame


class PoseTracker(Component):
    """A motion capture system or a marker tracker."""

    API: ClassVar[API] = API("rdk", "component", "pose_tracker")

    async def get_poses(self, body_names: Sequence[str] = (), *, extra: Extra = None) -> Mapping[str, PoseInFrame]:
        """Return the pose (mm, degrees) of each body by name; all visible bodies if `body_names` is empty."""
        raise NotImplementedError
