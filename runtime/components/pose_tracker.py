"""Pose tracker: where bodies are that it can see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from runtime.resource import Component, Extra
from schema.geometry import PoseInFrame
from schema.names import API


class PoseTracker(Component):
    """A motion capture system, a marker tracker."""

    API: ClassVar[API] = API("rdk", "component", "pose_tracker")

    async def get_poses(self, body_names: Sequence[str] = (), *, extra: Extra = None) -> Mapping[str, PoseInFrame]:
        """Pose (mm, degrees) of each body by name; of all that are seen if `body_names` is empty."""
        raise NotImplementedError
