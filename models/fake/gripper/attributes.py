"""Attributes of the simulated gripper. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec

from schema import Attributes


class FakeGripperConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated gripper."""

    NOT_BUILT: ClassVar[Mapping[str, str]] = {"model-path": "kinematics of a simulated gripper from a file"}

    opening_mm: Annotated[float, msgspec.Meta(gt=0)] = 80.0  # distance between the jaws when open
    object_mm: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # width of the object between the jaws; 0: no object

    def __post_init__(self) -> None:
        if self.object_mm >= self.opening_mm:
            raise ValueError("object_mm is not below opening_mm")
